//! What a device is asked to train: operators, networks, automatic differentiation, lowering and models.
//!
//! A [`Network`] is the differentiable graph a person would write in PyTorch. From it come three
//! executable [`TrainingGraph`]s: [`autograd::differentiate`] yields the one an eager framework runs,
//! with exactly the tensors that PyTorch saves for backward, [`lowering`] yields Sage's graph of
//! computable operations, before or after its optimisations, and [`express::express`] yields MNN's
//! expressions with their layout transformations; [`mixed::rewrite`] turns the first into a graph of
//! mixed precision. Sizes are linear in the batch ([`Extent`]), so a graph is built once
//! and asked about any micro-batch.

pub mod autograd;
pub mod counts;
pub mod error;
pub mod express;
pub mod lowering;
pub mod mixed;
pub mod models;
pub mod network;
pub mod onnx;
pub mod operator;
pub mod prune;
pub mod shape;
pub mod training_graph;

pub use error::WorkloadError;
pub use network::{Network, ParameterId, StorageId, ValueId};
pub use operator::Op;
pub use shape::{Dim, Extent, Shape};
pub use training_graph::{NodeId, Phase, Role, TensorId, TrainingGraph};
