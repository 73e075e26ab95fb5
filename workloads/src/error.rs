//! What can be wrong with a network, a model's name or an ONNX file.

use haversack_devices::TomlError;
use thiserror::Error;

/// A fault in a network's description.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// An operator was given tensors that it cannot take.
    #[error("{module}: {operator} cannot take {got}; expected {expected}")]
    Shape {
        /// The module or ONNX node.
        module: String,
        /// The operator.
        operator: &'static str,
        /// What it was given.
        got: String,
        /// What it takes.
        expected: String,
    },
    /// The model cannot take an input of this shape.
    #[error("model '{model}': {message}")]
    Input {
        /// The model.
        model: String,
        /// What is wrong, and what it takes.
        message: String,
    },
    /// A mixed-precision algorithm's description that cannot be used.
    #[error(transparent)]
    Algorithm(TomlError),
    /// A mixed-precision algorithm does not say what becomes of an operator.
    #[error("{algorithm} has no translation of {operator} ({module}); it translates {translated}")]
    NoTranslation {
        /// The algorithm.
        algorithm: String,
        /// The operator.
        operator: &'static str,
        /// The module that has it.
        module: String,
        /// The operators that have one.
        translated: String,
    },
    /// In words: a model or a mixed-precision algorithm of another name than any, an ONNX file that cannot be read or understood, a
    /// tensor whose values before training are not known, an operator that cannot be computed with data.
    #[error("{0}")]
    Refused(String),
    /// The network has no loss to differentiate.
    #[error("network '{0}' has no loss: nothing to differentiate")]
    NoLoss(String),
}

/// What building a network, or a graph of one, gives.
pub type Result<T, E = WorkloadError> = std::result::Result<T, E>;
