//! What a stack executes, what it makes of a network that it only runs, and where its tensors come from.

use crate::calibration::Visit;

/// The graph that a stack executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum StackGraph {
    /// Whole operators, as an eager framework records them.
    Eager,
    /// Operators decomposed into computable ones, as they are.
    Decomposed,
    /// The same, optimised as far as a run asks for (Sage).
    Optimised,
    /// MNN's expressions, with their layout transformations.
    Expressions,
    /// None: the stack runs networks and does not train them.
    Inference,
}

impl Visit for StackGraph {}

/// Where a stack's tensors come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum StackAllocator {
    /// A plan made before the run: every tensor its own exact piece.
    Exact,
    /// PyTorch's caching allocator.
    Caching,
}

impl Visit for StackAllocator {}

/// What an inference engine computes within the convolution or the dense layer before it, when it prepares a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Fold {
    /// Batch normalisation by known statistics, in the weights.
    BatchNorm,
    /// ReLU and its like, as results are written.
    Activation,
}

impl Visit for Fold {}
