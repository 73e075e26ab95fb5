//! Why a kernel cannot run.

use thiserror::Error;

/// Why a kernel cannot run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KernelError {
    /// So many bits, a width that no layout packs.
    #[error("{0} bits; expected 1 to 8")]
    Bits(u8),
    /// More bits than a packed tensor has: what quantisation dropped cannot be had back.
    #[error("cannot requantise {from} bits to {to}; expected {from} or fewer")]
    Widen {
        /// What the tensor has.
        from: u8,
        /// What was asked for.
        to: u8,
    },
    /// An input or output of the wrong length.
    #[error("{what} has {found} elements; expected {expected}")]
    Length {
        /// Which of them.
        what: &'static str,
        /// What it has.
        found: usize,
        /// What it should have.
        expected: usize,
    },
    /// A tensor whose minimum and maximum are not both finite cannot be quantised.
    #[error("a tensor from {minimum} to {maximum} cannot be quantised: its range is not finite")]
    Range {
        /// The smallest element, as text.
        minimum: String,
        /// The largest element, as text.
        maximum: String,
    },
    /// An instruction set that this machine does not have.
    #[error("the instruction set '{found}' is not to be had here; expected {expected}")]
    Isa {
        /// What was asked for.
        found: String,
        /// What there is.
        expected: String,
    },
    /// Two matrices whose product does not exist.
    #[error(
        "cannot multiply {left_rows}x{left_columns} by {right_rows}x{right_columns}; expected {left_columns} rows on \
         the right"
    )]
    Shape {
        /// Rows of the left matrix.
        left_rows: usize,
        /// Its columns.
        left_columns: usize,
        /// Rows of the right matrix.
        right_rows: usize,
        /// Its columns.
        right_columns: usize,
    },
    /// A sum of so many terms that an i32 might not hold it.
    #[error("{terms} terms may sum to more than an i32 holds; expected at most {most}")]
    Overflow {
        /// What was asked for.
        terms: usize,
        /// What is sure to fit.
        most: usize,
    },
    /// A shift by as many bits as an i32 has, or more.
    #[error("a shift by {found} bits; expected 0 to {most}")]
    Shift {
        /// What was asked for.
        found: u32,
        /// The largest.
        most: u32,
    },
    /// A launch that the SIMT machine cannot run.
    #[error("cannot launch {kernel}: {reason}")]
    Launch {
        /// The kernel.
        kernel: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl KernelError {
    /// Fails unless `what` has as many elements as it should.
    ///
    /// # Errors
    /// [`KernelError::Length`].
    pub const fn expect_length(what: &'static str, found: usize, expected: usize) -> Result<(), Self> {
        if found == expected { Ok(()) } else { Err(Self::Length { what, found, expected }) }
    }
}
