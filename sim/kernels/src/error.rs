//! Why a kernel cannot run.

use thiserror::Error;

/// Why a kernel cannot run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KernelError {
    /// A width, in bits, that no layout packs.
    #[error("{0} bits; expected 1 to 8")]
    Bits(u8),
    /// More bits than a packed tensor has: quantisation has dropped them for good.
    #[error("cannot requantise {from} bits to {to}; expected {from} or fewer")]
    Widen {
        /// The tensor's bits.
        from: u8,
        /// The requested bits.
        to: u8,
    },
    /// An input or output of the wrong length.
    #[error("{what} has {found} elements; expected {expected}")]
    Length {
        /// Which of them.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The expected length.
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
        /// The requested name.
        found: String,
        /// The available sets.
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
    /// A sum of more terms than are sure to fit in an i32.
    #[error("{terms} terms may sum to more than an i32 holds; expected at most {most}")]
    Overflow {
        /// The number of terms.
        terms: usize,
        /// The most terms that are sure to fit.
        most: usize,
    },
    /// A shift by as many bits as an i32 has, or more.
    #[error("a shift by {found} bits; expected 0 to {most}")]
    Shift {
        /// The requested shift.
        found: u32,
        /// The largest.
        most: u32,
    },
    /// A launch that the SIMT machine cannot run.
    #[error("cannot launch {kernel}: {reason}")]
    Launch {
        /// The kernel.
        kernel: &'static str,
        /// The reason.
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
