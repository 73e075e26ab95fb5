//! Why an operator, a node or a network cannot be computed.

use haversack_kernels::KernelError;
use haversack_workloads::Window;
use thiserror::Error;

/// Why an operator cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NumericsError {
    /// An operand of the wrong length, or an error of a kernel.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The reason in words: a window that does not fit its input, or is empty; channels or filters that do not
    /// split into groups; a label that is not a class, or an index that is not a row of a table; a view that
    /// reaches beyond its storage.
    #[error("{0}")]
    Refused(String),
}

/// Why a network or a node of its graph cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// The reason in words: an operator that has no arithmetic here, or one that an algorithm of integer training does
    /// not compute; a graph that eager differentiation does not make of the network; a network whose description is
    /// incomplete, or whose values cannot be described by strides.
    #[error("{0}")]
    Refused(String),
    /// A tensor that a node reads is not in memory, or has contents of another kind.
    #[error("{0} is not in memory in the form in which it is read")]
    Missing(String),
    /// Operands that a kernel refuses.
    #[error("{node}: {error}")]
    Kernel {
        /// The node.
        node: String,
        /// The kernel's error.
        error: NumericsError,
    },
}

impl From<NumericsError> for ProgramError {
    fn from(error: NumericsError) -> Self {
        Self::Kernel { node: String::new(), error }
    }
}

impl ProgramError {
    /// The same with the name of the node, where it matters.
    pub(crate) fn at(self, name: &str) -> Self {
        match self {
            Self::Kernel { error, .. } => Self::Kernel { node: name.to_owned(), error },
            other => other,
        }
    }
}

/// The result of a kernel.
pub(crate) type Result<T = (), E = NumericsError> = std::result::Result<T, E>;

/// The positions of `window` over an input of height and width, down and across.
pub(crate) fn expect_window(window: Window, [height, width]: [usize; 2], round_up: bool) -> Result<[usize; 2]> {
    let side = |axis, input: usize| window.output(axis, input as u64, round_up);
    let (Some(down), Some(across)) = (side(0, height), side(1, width)) else {
        let [kernel_height, kernel_width] = window.kernel;
        return Err(NumericsError::Refused(format!(
            "a window of {kernel_height}x{kernel_width} does not fit an input of {height}x{width} with its padding"
        )));
    };
    Ok([down as usize, across as usize])
}

/// Fails unless `what` has `expected` elements.
pub(crate) fn expect_length(what: &'static str, found: usize, expected: usize) -> Result {
    Ok(KernelError::expect_length(what, found, expected)?)
}

/// Fails unless `what` splits evenly into rows of `row` elements; returns the number of rows.
pub(crate) fn expect_rows(what: &'static str, found: usize, row: usize) -> Result<usize> {
    let rows = found.checked_div(row).unwrap_or(0);
    expect_length(what, found, rows * row)?;
    Ok(rows)
}
