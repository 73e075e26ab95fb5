//! Why a network or a node of its graph cannot be computed.

use thiserror::Error;

use crate::error::NumericsError;

/// Why a network or a node of its graph cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// An operator that has no arithmetic here.
    #[error("{module}: {operator} cannot be computed: {reason}")]
    Operator {
        /// The module of the network.
        module: String,
        /// The operator's name.
        operator: &'static str,
        /// What is missing.
        reason: String,
    },
    /// A graph that is not what eager differentiation makes of the network.
    #[error("the graph of {network} is not one whose arithmetic is known: {found}")]
    OtherGraph {
        /// The network.
        network: String,
        /// Where they part.
        found: String,
    },
    /// Values whose elements do not lie where strides can say.
    #[error("{0}")]
    Layout(String),
    /// A tensor that a node reads is not there, or holds something else.
    #[error("{0} is not in memory in the form in which it is read")]
    Missing(String),
    /// Operands that a kernel refuses.
    #[error("{node}: {error}")]
    Kernel {
        /// The node.
        node: String,
        /// What the kernel says.
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
    pub(super) fn at(self, name: &str) -> Self {
        match self {
            Self::Kernel { error, .. } => Self::Kernel { node: name.to_owned(), error },
            other => other,
        }
    }
}
