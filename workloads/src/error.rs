//! What can be wrong with a network, a model's name or an ONNX file.

use haversack_devices::text::{TomlError, question, question_or};
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
    /// No model has this name.
    #[error("unknown model '{name}'{}", question_or(nearest.as_deref(), "expected an .onnx file, or an id of `haversack list models`"))]
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
        /// What is wrong, with the node and its operator if there is one.
        message: String,
    },
    /// A mixed-precision algorithm's description that cannot be used.
    #[error(transparent)]
    Algorithm(TomlError),
    /// No mixed-precision algorithm has this id.
    #[error("unknown algorithm '{id}'{}; expected one of {valid}", question(nearest.as_deref()))]
    UnknownAlgorithm {
        /// The id asked for.
        id: String,
        /// The nearest id there is.
        nearest: Option<String>,
        /// All ids.
        valid: String,
    },
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
    /// A tensor whose values before training are asked for, but not known.
    #[error("{name} ({bytes} bytes) has no initial values; expected {expected}")]
    NoInitialValues {
        /// The tensor.
        name: String,
        /// Its size, without what every sample adds.
        bytes: u64,
        /// What has some.
        expected: String,
    },
    /// An operator that cannot be computed with data.
    #[error("{module}: {operator} cannot be computed with data: the network does not describe {missing}")]
    NotComputable {
        /// The module or ONNX node.
        module: String,
        /// The operator.
        operator: &'static str,
        /// What is not described.
        missing: String,
    },
    /// The network has no loss to differentiate.
    #[error("network '{0}' has no loss: nothing to differentiate")]
    NoLoss(String),
}

/// What building a network, or a graph of one, gives.
pub type Result<T, E = WorkloadError> = std::result::Result<T, E>;
