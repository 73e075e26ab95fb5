//! Errors of networks, model names and ONNX files.

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
        /// The shapes that it was given.
        got: String,
        /// The shapes that it takes.
        expected: String,
    },
    /// The model cannot take an input of this shape.
    #[error("model '{model}': {message}")]
    Input {
        /// The model.
        model: String,
        /// The fault, and the shapes that it takes.
        message: String,
    },
    /// A mixed-precision algorithm's description that cannot be used.
    #[error(transparent)]
    Algorithm(TomlError),
    /// A mixed-precision algorithm has no translation of an operator.
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
    /// Other faults, as text: an unknown model or mixed-precision algorithm, an ONNX file that cannot be read or
    /// understood, a tensor whose values before training are not known, an operator that cannot be computed on data.
    #[error("{0}")]
    Refused(String),
    /// The network has no loss to differentiate.
    #[error("network '{0}' has no loss: nothing to differentiate")]
    NoLoss(String),
}

/// The result of building a network or a graph.
pub type Result<T, E = WorkloadError> = std::result::Result<T, E>;
