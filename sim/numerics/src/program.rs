//! The arithmetic of every node of an eager training graph.
//!
//! A [`Program`] is made once for a network and its graph. The walker of the graph [runs](Program::run) the nodes in
//! any order, and as often as it likes, as long as the tensors that they read are in memory. The walker also decides
//! where tensors are stored and in which form, behind [`Memory`].

mod backward;
mod forward;
mod integers;
mod look;
mod maps;
mod operands;
mod replay;
mod run;

use haversack_workloads::{Element, Extent, FP32, INT64, Layout, Network, Node, TensorId, TrainingGraph};

use self::integers::Integers;
use self::maps::Known;
use self::operands::{Operands, Outputs};
use self::run::Run;
use crate::{Contents, Eight, Memory, Meter, ProgramError, Rule};
use look::Look;

pub use self::maps::{Map, Passes, Positions, Scale};
pub use crate::dense::loss::Loss;

/// The result of computing a node.
pub(crate) type Result<T = (), E = ProgramError> = std::result::Result<T, E>;

/// The arithmetic of every node of a network's graph.
#[derive(Debug)]
pub struct Program {
    network: Network,
    steps: Vec<Step>,
    /// Where each value's elements are stored; `None` for those that are row by row over the whole of their storage.
    looks: Vec<Option<Layout>>,
    tensors: Vec<TensorKind>,
    known: Vec<Known>,
    /// The arithmetic of the nodes if the graph was rewritten in integers.
    integers: Option<Box<Integers>>,
}

/// The contents of a tensor.
#[derive(Clone, Copy, Debug)]
struct TensorKind {
    elements: Extent,
    is_integer: bool,
    /// Whether it is stored as integers of eight bits with a step.
    is_coded: bool,
}

/// The micro-batch that is being computed.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its samples.
    pub samples: usize,
    /// Samples of the mini-batch that contains it.
    pub batch: usize,
    /// Where it begins in the mini-batch.
    pub first: usize,
    /// The number of updates so far.
    pub update: u64,
    /// The seed of random masks.
    pub seed: u64,
    /// The statistics that normalise batches.
    pub statistics: Statistics,
    /// How weights are updated.
    pub rule: Rule,
}

impl Pass {
    /// A whole mini-batch of `samples` samples.
    pub const fn whole(samples: usize, update: u64, seed: u64, rule: Rule) -> Self {
        Self { samples, batch: samples, first: 0, update, seed, statistics: Statistics::Own, rule }
    }
}

/// The statistics that normalise a batch; masks are drawn for all but the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistics {
    /// Those of the samples that are computed, as frameworks do it.
    #[default]
    Own,
    /// Those that their tensors contain already, for example of the whole mini-batch.
    Given,
    /// The running averages: inference.
    Running,
}

impl Pass {
    /// Whether it is for training, not for inference.
    pub const fn trains(&self) -> bool {
        !matches!(self.statistics, Statistics::Running)
    }
}

impl Program {
    /// The arithmetic of `graph`, which is that of `network` differentiated eagerly.
    ///
    /// # Errors
    /// A network whose description is incomplete, an operator that has no arithmetic here, or another graph.
    pub fn new(network: &Network, graph: &TrainingGraph) -> Result<Self> {
        network.computable().map_err(|error| ProgramError::Refused(error.to_string()))?;
        let steps = replay::replay(network, graph)?;
        let looks = replay::looks(network)?;
        for node in &network.nodes {
            forward::check(network, node)?;
        }
        let tensors = graph.tensors.iter().enumerate().map(|(id, tensor)| {
            // A stack's masks may take one byte an element; here they take four, as in the network.
            let storage = network.storages.get(id);
            let bytes = storage.map_or(tensor.bytes, |storage| storage.bytes);
            let is_integer = tensor.element == Element::Whole && storage.is_none_or(|storage| !storage.dropout_mask);
            let width = if is_integer { INT64 } else { FP32 };
            TensorKind { elements: bytes.times(1, width), is_integer, is_coded: false }
        });
        let known = maps::of(network, graph.tensors.len());
        Ok(Self { network: network.clone(), steps, looks, tensors: tensors.collect(), known, integers: None })
    }

    /// The network.
    pub const fn network(&self) -> &Network {
        &self.network
    }

    /// Whether the elements of a tensor are integers.
    pub fn is_integer(&self, tensor: TensorId) -> bool {
        self.tensors[tensor as usize].is_integer
    }

    /// Whether the graph stores a tensor as eight-bit integers with a step.
    pub fn is_in_eight_bits(&self, tensor: TensorId) -> bool {
        self.tensors[tensor as usize].is_coded
    }

    /// Whether the graph was rewritten in integers.
    pub const fn is_in_integers(&self) -> bool {
        self.integers.is_some()
    }

    /// The number of elements of a tensor.
    pub fn elements(&self, tensor: TensorId, samples: u64) -> usize {
        self.tensors[tensor as usize].elements.at(samples) as usize
    }

    /// A tensor of `samples` samples that has not been written yet.
    pub fn blank(&self, tensor: TensorId, samples: u64, meter: &Meter) -> Contents {
        let len = self.elements(tensor, samples);
        match self.tensors[tensor as usize] {
            TensorKind { is_integer: true, .. } => Contents::Integers(meter.integers(len)),
            TensorKind { is_coded: true, .. } => Contents::Eight(Eight::zeros(len, meter)),
            _ => Contents::Floats(meter.floats(len)),
        }
    }

    /// The map of a sample of a tensor, or of all of it if the batch does not multiply it; one
    /// row if the map is unknown.
    pub fn map_of(&self, tensor: TensorId) -> Map {
        let Extent { fixed, per_sample } = self.tensors[tensor as usize].elements;
        let elements = if per_sample > 0 { per_sample } else { fixed } as usize;
        let known = self.known[tensor as usize].map;
        if known.elements() == elements { known } else { Map::row(elements) }
    }

    /// Which elements of a tensor let a gradient through.
    pub fn passes(&self, tensor: TensorId) -> Passes {
        self.known[tensor as usize].passes
    }

    /// How the positions in a tensor are encoded within their windows; `None` if it has no positions.
    pub fn positions(&self, tensor: TensorId) -> Option<&Positions> {
        self.known[tensor as usize].positions.as_ref()
    }

    /// The scale in which a tensor is stored with fewer bits.
    pub fn scale(&self, tensor: TensorId) -> Scale {
        self.known[tensor as usize].scale
    }

    /// Computes `node` for the micro-batch `pass`. With `again`, it has been computed for it before, and its result is
    /// not added to a sum a second time. Returns the loss, if this is the node that computes it.
    ///
    /// # Errors
    /// A node that the program does not know, an operand that is not in memory, or one that a kernel refuses.
    pub fn run(&self, node: &Node, memory: &mut dyn Memory, pass: &Pass, again: bool) -> Result<Option<Loss>> {
        if let Some(integers) = &self.integers {
            return integers.run(self, node, memory, pass, again).map_err(|error| error.at(&node.name));
        }
        let step = node.step.and_then(|step| self.steps.get(step as usize)).ok_or_else(|| self.unknown(node))?;
        self.compute(step, memory, pass, again).map_err(|error| error.at(&node.name))
    }

    fn compute(&self, step: &Step, memory: &mut dyn Memory, pass: &Pass, again: bool) -> Result<Option<Loss>> {
        let mut run = Run { program: self, memory, pass, again };
        match step {
            Step::Forward(operator) => run.forward(*operator),
            Step::Seed(gradient) => run.seed(*gradient).map(|()| None),
            Step::Accumulate { parts, sum } => run.accumulate(parts, *sum).map(|()| None),
            Step::Backward(derivative) => run.backward(derivative).map(|()| None),
            Step::Update { weight, gradient, states } => run.update(*weight, *gradient, states).map(|()| None),
        }
    }

    fn unknown(&self, node: &Node) -> ProgramError {
        other_graph(&self.network, &format!("{} is none of its nodes", node.name))
    }
}

/// The error that the graph of `network` differs from the one that eager differentiation makes of it, and where.
fn other_graph(network: &Network, found: &str) -> ProgramError {
    ProgramError::Refused(format!("the graph of {} is not one whose arithmetic is known: {found}", network.name))
}

// The arithmetic of one node.

/// The arithmetic of a node.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// The operator of the network at this position.
    Forward(u32),
    /// The gradient of the loss with respect to itself: the micro-batch's share of the mini-batch.
    Seed(TensorId),
    /// The sum of the gradients from two readers of a value.
    Accumulate {
        /// The two gradients.
        parts: [Look; 2],
        /// The tensor of their sum.
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
        /// The optimiser's state of the weight.
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
    /// The operator's inputs whose gradients are computed, by index, and the tensors of those gradients.
    pub(crate) inputs: Vec<(usize, TensorId)>,
    /// The operator's weights, by index, whose gradients are added to, and the tensors of those gradients.
    pub(crate) weights: Vec<(usize, TensorId)>,
    /// The first output.
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
