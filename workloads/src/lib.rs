//! The workload of a device: networks, and the graphs of one training iteration.
//!
//! ```text
//! models ─┐                ┌─ autograd ─> as an eager framework runs it ─> mixed: products of integers
//!         ├─> Network ─────┼─ lowering ─> Sage's computable operations, fused into kernels
//! onnx ───┘                └─ express ──> MNN's expressions with their layout conversions
//!                                                   │ all of them
//!                                                   v
//!                          TrainingGraph: nodes and tensors, forward, backward and update
//! ```
//!
//! - [`network`] contains the differentiable graph as one would write it in PyTorch, of the operators in [`operator`];
//!   [`models`] are built in, [`onnx`] imports files. Each operator notes what PyTorch saves for its backward, which
//!   [`counts`] adds up.
//! - [`autograd`] differentiates a network; [`lowering`] and [`express`] do so in the operations of other frameworks;
//!   [`mixed`] rewrites an eager graph for an algorithm of integer training, which a data file describes.
//! - [`training_graph`] is the result: nodes in an order of execution, with the work of each, and tensors with their
//!   sizes. [`map_kind`] gives the kind of operator that made the values of a tensor, [`prune`] leaves weights
//!   untrained, [`prepared`] describes how an inference engine fuses a network that it only runs.
//! - [`data`] makes and reads the training data: samples and labels in three parts.
//! - [`shape`]: sizes are linear in the batch ([`Extent`]), so that a graph is built once and evaluated for
//!   any micro-batch.
//!
//! Nothing here knows time: a device turns work into time, a policy decides how tensors are stored.
//!
//! ```
//! use haversack_workloads::autograd::{EagerRules, Optimiser, differentiate};
//! use haversack_workloads::lowering::{Gradients, Variant, lower};
//! use haversack_workloads::models;
//!
//! let network = models::build("lenet5", None)?;
//! let eager = differentiate(&network, EagerRules::default())?;
//! // The bytes that a batch of 32 keeps for backward.
//! let saved: u64 = eager.saved().into_iter().map(|tensor| eager.tensor(tensor).bytes.at(32)).sum();
//! assert_eq!(saved, haversack_workloads::counts::count(&network, 32).saved_act_bytes);
//!
//! let kernels = |variant| lower(&network, variant, Optimiser::Sgd, Gradients::Kept);
//! assert!(kernels(Variant::Fused)?.nodes.len() < kernels(Variant::Direct)?.nodes.len());
//! # Ok::<(), haversack_workloads::WorkloadError>(())
//! ```

pub mod autograd;
pub mod counts;
pub mod data;
pub mod error;
pub mod express;
mod graph_writer;
pub mod lowering;
pub mod map_kind;
pub mod mixed;
pub mod models;
pub mod network;
pub mod onnx;
pub mod operator;
pub mod prepared;
pub mod prune;
pub mod shape;
pub mod training_graph;
mod uses;

pub use autograd::{Attention, EagerRules, Optimiser};
pub use data::{DataSet, SampleForm};
pub use error::WorkloadError;
pub use lowering::{Gradients, Variant};
pub use map_kind::MapKind;
pub use network::layout::Layout;
pub use network::{FP32, INT64, Initial, Network, OperatorNode, ParameterId, Storage, StorageId, ValueId};
pub use operator::{
    Addend, Averaging, Copying, EPSILON, MOMENTUM, Mask, Op, Pairing, Pointwise, Reducing, Taking, Unary, View, Window,
};
pub use shape::{Dim, Extent, Shape};
pub use training_graph::{
    Element, KernelCost, LayerKind, Need, Node, NodeId, NodeWork, Phase, Role, Saved, Tensor, TensorId, TrainingGraph,
};
pub use uses::Uses;
