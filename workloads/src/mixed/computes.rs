//! What each node of a rewritten graph computes, for a run that carries data.

use super::algorithm::Algorithm;
use crate::training_graph::{TensorId, TrainingGraph};

/// A rewritten graph, and what it computes.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The graph; the `step` of each node is its place in `computes`.
    pub graph: TrainingGraph,
    /// The eager graph that it was made of.
    pub eager: TrainingGraph,
    /// What each node computes, in the order of the nodes.
    pub computes: Vec<Computes>,
    /// The tensor of the eager graph whose values each tensor holds, in integers or in fp32; `None` for sums of 32 bits,
    /// which only a rescaling sees.
    pub stands_for: Vec<Option<TensorId>>,
}

/// What a node of a rewritten graph computes. A `step` is the place of a node in the eager graph; the inputs and the outputs
/// of the node that computes it stand for that node's, in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computes {
    /// The product of `step` in integers: sums of 32 bits, which become eight.
    Product {
        /// The place in the eager graph.
        step: u32,
        /// The first of its outputs that have eight bits: its rescaling is said by that.
        rescaled: Option<TensorId>,
    },
    /// The scale of the product before it, taken anew.
    Rescaling,
    /// The operator of `step`, on integers.
    Integer {
        /// The place in the eager graph.
        step: u32,
    },
    /// The operator of `step`, on fp32 values.
    Float {
        /// The place in the eager graph.
        step: u32,
    },
    /// A copy of an operand in the order in which a kernel reads it.
    Layout,
    /// fp32 values brought to integers.
    Quantise,
    /// Integers brought to fp32.
    Dequantise,
    /// The algorithm's own sweep at this place among its passes.
    Pass {
        /// The place among them.
        place: usize,
    },
    /// The update of a weight that is an integer itself.
    Update,
}
