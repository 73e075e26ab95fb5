//! Helpers for the tests of several crates of the simulator: training graphs of a few nodes, the graphs of built-in
//! models, random numbers that are the same on every machine, and weights by a formula ([`formula`]). A dev-dependency
//! only; crates below the simulator (`devices`, `workloads`) do not use it.
//!
//! ```text
//! GraphBuilder ──> TrainingGraph <── eager, lowered      Draws ──> random graphs, sizes and times
//! ```
//!
//! ```
//! use haversack_testing::GraphBuilder;
//! use haversack_workloads::{Phase, Role};
//!
//! let mut builder = GraphBuilder::default();
//! let samples = builder.tensor(Role::Input, 8);
//! let made = builder.tensor(Role::Activation, 100);
//! builder.node(Phase::Forward, &[samples], &[made]);
//! let gradient = builder.tensor(Role::Gradient, 100);
//! builder.node(Phase::Backward, &[made], &[gradient]);
//! assert_eq!(builder.graph.saved(), [made]);
//! ```
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod builder;
pub mod formula;
mod random;

use haversack_workloads::autograd::{EagerRules, Optimiser, differentiate};
use haversack_workloads::lowering::{Gradients, Variant, lower};
use haversack_workloads::{TrainingGraph, models};

pub use builder::{GraphBuilder, node};
pub use random::Draws;

/// The iteration of a built-in model at its own input size, as an eager framework runs it on a CPU.
///
/// # Panics
/// If the model is unknown.
pub fn eager(model: &str) -> TrainingGraph {
    differentiate(&models::build(model, None).unwrap(), EagerRules::default()).unwrap()
}

/// As [`eager`], with PyTorch's dropout masks on CUDA: a byte an element.
///
/// # Panics
/// If the model is unknown.
pub fn eager_on_cuda(model: &str) -> TrainingGraph {
    let rules = EagerRules { dropout_mask_bytes: 1, ..EagerRules::default() };
    differentiate(&models::build(model, None).unwrap(), rules).unwrap()
}

/// The iteration of a built-in model in Sage's computable operations, trained by plain SGD, with all gradients kept
/// until the update.
///
/// # Panics
/// If the model is unknown.
pub fn lowered(model: &str, variant: Variant) -> TrainingGraph {
    lower(&models::build(model, None).unwrap(), variant, Optimiser::Sgd, Gradients::Kept).unwrap()
}
