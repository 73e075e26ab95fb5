//! The arithmetic of one node.

use haversack_workloads::TensorId;

use super::look::Look;

/// What a node computes.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// The operator of the network at this position.
    Forward(u32),
    /// The gradient of the loss with respect to itself: the part's share of the mini-batch.
    Seed(TensorId),
    /// The sum of what two readers of a value gave.
    Accumulate {
        /// The two.
        parts: [Look; 2],
        /// Where their sum goes.
        sum: TensorId,
    },
    /// A part of an operator's derivative.
    Backward(Derivative),
    /// The new value of a weight.
    Update {
        /// The weight.
        weight: TensorId,
        /// Its gradient.
        gradient: TensorId,
        /// The optimiser's state of it.
        states: Vec<TensorId>,
    },
}

/// A part of an operator's derivative.
#[derive(Clone, Debug)]
pub(crate) struct Derivative {
    /// The operator, by position.
    pub(crate) operator: u32,
    pub(crate) part: Part,
    /// The gradient of the operator's output; of the log-probabilities, for the scores of the loss.
    pub(crate) gradient: Look,
    /// The operator's inputs, by place, whose gradients are made, and where those go.
    pub(crate) inputs: Vec<(usize, TensorId)>,
    /// The operator's weights, by place, to whose gradients is added.
    pub(crate) weights: Vec<(usize, TensorId)>,
    /// The first of all that is made.
    pub(crate) result: TensorId,
}

/// Which part of an operator's derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// The gradients of its weights.
    Weights,
    /// The gradient of one input.
    Input,
    /// That of the log-probabilities of a cross-entropy.
    LogProbabilities,
}
