//! What can be wrong with a network, a model's name or an ONNX file.

use thiserror::Error;

/// A fault in a network's description.
#[derive(Debug, Error)]
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
    /// No model has this name.
    #[error("unknown model '{name}'{}", nearest.as_ref().map(|n| format!("; did you mean '{n}'?")).unwrap_or_default())]
    UnknownModel {
        /// The name asked for.
        name: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// The model cannot take an input of this shape.
    #[error("model '{model}': {message}")]
    Input {
        /// The model.
        model: String,
        /// What is wrong, and what it takes.
        message: String,
    },
    /// An ONNX file that cannot be read or understood.
    #[error("{file}: {message}")]
    Onnx {
        /// The file.
        file: String,
        /// What is wrong, with the node and operator where there is one.
        message: String,
    },
    /// The network has no loss to differentiate.
    #[error("network '{0}' has no loss: nothing to differentiate")]
    NoLoss(String),
}
