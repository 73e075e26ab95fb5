//! The crate from outside: its graphs against PyTorch's measurements and counts by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod autograd;
mod counts;
mod data;
mod data_files;
mod express;
mod inference;
mod layouts;
mod lowering;
mod map_kinds;
mod mixed;
mod models;
mod onnx;
mod saved_needs;
mod small_models;

use haversack_workloads::TrainingGraph;
use haversack_workloads::autograd::{EagerRules, differentiate};

/// The iteration of a built-in model, as an eager framework runs it on a CPU.
fn eager(model: &str) -> TrainingGraph {
    differentiate(&haversack_workloads::models::build(model, None).unwrap(), EagerRules::default()).unwrap()
}

/// The bytes that are saved for backward.
fn saved_bytes(graph: &TrainingGraph, batch: u64) -> u64 {
    graph.saved().into_iter().map(|tensor| graph.tensor(tensor).bytes.at(batch)).sum()
}
