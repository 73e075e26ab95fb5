//! What the nodes of a graph compute that was rewritten in integers.
//!
//! A tensor is codes of eight or sixteen bits and a step (`coding`). Products are of codes, with sums of 32 bits (`product`);
//! the operators between them are those of the eager graph, computed on the values that codes stand for, which fp32 holds
//! exactly where steps are powers of two, and brought back to codes (`standing`). Nothing is differentiated here: each node names the node of the eager
//! graph whose part it has.

mod chosen;
mod coding;
mod product;
mod rounding;
mod standing;
mod update;

use haversack_workloads::mixed::{Arithmetic, Computes, Rate, Rewritten, Scaling, Update, with_initial_weights};
use haversack_workloads::network::FP32;
use haversack_workloads::training_graph::{Element, Node};
use haversack_workloads::{Extent, Network, Phase, Role, StorageId, TensorId, TrainingGraph, WorkloadError, mixed};

use self::coding::draws;
use self::standing::{Product, Standing};
use super::maps::Known;
use super::{Coded, Loss, Pass, Program, TensorKind};
use crate::error::ProgramError;
use crate::memory::{Contents, Memory};
use crate::meter::{Floats, Meter};
use crate::state::{State, before_training};

/// What the nodes of a rewritten graph compute.
#[derive(Debug)]
pub(super) struct Integers {
    /// The eager graph's arithmetic.
    eager: Program,
    rewritten: Rewritten,
    rules: Arithmetic,
    /// The bits of the integers that each tensor is held in, if it is.
    coded: Vec<Option<Coded>>,
    /// How many values of each tensor lie together in a group.
    groups: Vec<usize>,
}

impl Program {
    /// The arithmetic of the graph of `network` that was `rewritten` in integers.
    ///
    /// # Errors
    /// As [`Program::new`] for the eager graph; [`ProgramError::Algorithm`] for an algorithm whose arithmetic is not
    /// described, or an optimiser whose state its integers do not hold.
    pub fn of_integers(network: &Network, rewritten: Rewritten) -> Result<Self, ProgramError> {
        let algorithm = &rewritten.algorithm;
        let refused = |reason: String| ProgramError::Algorithm { algorithm: algorithm.name.clone(), reason };
        let rules = algorithm.arithmetic.clone().ok_or_else(|| refused(without_arithmetic()))?;
        let states = states(&rewritten);
        if algorithm.weight.update == Update::Int8 && states > usize::from(rules.learning_rate == Rate::GradientBits) {
            let expected = if rules.learning_rate == Rate::GradientBits { "sgd or momentum" } else { "sgd" };
            return Err(refused(format!(
                "its weights are integers, whose update has no place for such a state; expected the optimizer {expected}"
            )));
        }
        let network = with_initial_weights(network, algorithm);
        let eager = Self::new(&network, &rewritten.eager)?;
        let mut tensors = Vec::with_capacity(rewritten.graph.tensors.len());
        for (tensor, stands_for) in rewritten.graph.tensors.iter().zip(&rewritten.stands_for) {
            let kind = stands_for.map(|of| eager.tensors[of as usize]);
            let kind = kind.unwrap_or_else(|| TensorKind::of_floats(tensor.bytes.times(1, FP32)));
            let holds_values = !kind.is_integer && tensor.element != Element::Whole && kind.elements != Extent::ZERO;
            let coded = match tensor.bytes {
                bytes if holds_values && bytes == kind.elements => Some(Coded::Eight),
                bytes if holds_values && bytes == kind.elements * 2 => Some(Coded::Sixteen),
                _ => None,
            };
            tensors.push(TensorKind { coded: stands_for.and(coded), ..kind });
        }
        let of_eager = coding::groups(&network, &eager, rewritten.eager.tensors.len());
        let groups = rewritten.stands_for.iter().map(|of| of.map_or(1, |of| of_eager[of as usize])).collect();
        let coded = tensors.iter().map(|kind: &TensorKind| kind.coded).collect();
        let known = Known::nothing(tensors.len());
        let integers = Integers { eager, rewritten, rules, coded, groups };
        Ok(Self { network, steps: Vec::new(), looks: Vec::new(), tensors, known, integers: Some(Box::new(integers)) })
    }

    /// What `graph` holds before training, drawn by `seed`, and an optimiser that has seen nothing.
    ///
    /// # Errors
    /// As [`State::initial`].
    pub fn initial_state(&self, graph: &TrainingGraph, seed: u64, meter: &Meter) -> Result<State, WorkloadError> {
        self.state_with(graph, seed, &|_| None, meter)
    }

    /// The same with the values that `given` has for weights, by their storage in the network.
    ///
    /// # Errors
    /// As [`State::initial`].
    pub fn state_with(
        &self,
        graph: &TrainingGraph,
        seed: u64,
        given: &dyn Fn(StorageId) -> Option<Vec<f32>>,
        meter: &Meter,
    ) -> Result<State, WorkloadError> {
        let mut tensors = Vec::new();
        for (id, tensor) in (0..).zip(&graph.tensors).filter(|(_, tensor)| tensor.role.is_state()) {
            let Some(storage) = self.storage_of(id) else { continue };
            let is_weight = matches!(tensor.role, Role::Parameter { .. });
            let held = if let Some(values) = is_weight.then(|| given(storage)).flatten() {
                Some(Contents::Floats(meter.copy(&values)))
            } else if tensor.role == Role::OptimiserState {
                Some(Contents::Floats(meter.zeros(self.elements(id, 1))))
            } else {
                before_training(&self.network, storage, tensor, seed, meter)?
            };
            let code = self.integers.as_ref().and_then(|integers| integers.code(id, None, (seed, 0, 0)));
            let held = held.map(|held| match (held, &code) {
                (Contents::Floats(values), Some(code)) => code.encode(&values, code.step(&values, 0.0), meter),
                (held, _) => held,
            });
            tensors.extend(held.map(|held| (id, held)));
        }
        Ok(State::of(tensors))
    }

    /// The storage of the network whose values a tensor of the graph holds; `None` for sums of 32 bits.
    fn storage_of(&self, tensor: TensorId) -> Option<StorageId> {
        match &self.integers {
            Some(integers) => integers.rewritten.stands_for.get(tensor as usize).copied().flatten(),
            None => Some(tensor),
        }
    }

    /// The values of the weight in `storage` of the network, of a state of `graph`; `None` if it holds none.
    #[must_use]
    pub fn weight(&self, graph: &TrainingGraph, state: &State, storage: StorageId, meter: &Meter) -> Option<Floats> {
        let is_it = |tensor: TensorId| {
            let role = graph.tensors.get(tensor as usize).map(|tensor| tensor.role);
            matches!(role, Some(Role::Parameter { .. })) && self.storage_of(tensor) == Some(storage)
        };
        // A master in fp32 knows it better than its codes.
        let mut held = state.tensors().iter().filter(|(tensor, _)| is_it(*tensor)).map(|(_, contents)| contents);
        let first = held.clone().next()?;
        match held.find(|contents| matches!(contents, Contents::Floats(_))).unwrap_or(first) {
            Contents::Floats(values) => Some(meter.copy(values)),
            coded => coded.decoded(meter),
        }
    }
}

/// The most states that the optimiser keeps of a weight.
fn states(rewritten: &Rewritten) -> usize {
    let updates = rewritten.eager.nodes.iter().filter(|node| node.phase == Phase::Update);
    updates.map(|node| node.inputs.len().saturating_sub(2)).max().unwrap_or(0)
}

/// Why an algorithm whose arithmetic nobody has described is refused.
fn without_arithmetic() -> String {
    let described = mixed::algorithms().unwrap_or_default().iter().filter(|algorithm| algorithm.arithmetic.is_some());
    let ids: Vec<&str> = described.map(|algorithm| algorithm.id.as_str()).collect();
    format!("its description has no part `arithmetic`, so that it carries no data; expected one of {}", ids.join(", "))
}

impl Integers {
    pub(super) fn run(
        &self,
        program: &Program,
        node: &Node,
        memory: &mut dyn Memory,
        pass: &Pass,
        again: bool,
    ) -> Result<Option<Loss>, ProgramError> {
        let computes = node.step.and_then(|step| self.rewritten.computes.get(step as usize));
        match *computes.ok_or_else(|| program.unknown(node))? {
            Computes::Product { step, rescaled } if self.rules.scaling == Scaling::Channel => {
                // Sums between groups are of floats.
                return self.standing(step, Some(rescaled), node, memory, pass, again);
            }
            Computes::Product { step, rescaled } => self.product(step, rescaled, node, memory, pass)?,
            Computes::Integer { step } if self.choose(step, node, memory, pass)? => {}
            Computes::Integer { step } | Computes::Float { step } => {
                return self.standing(step, None, node, memory, pass, again);
            }
            // The product that it belongs to has shifted its sums already, and the description's sweeps are part of that.
            Computes::Rescaling | Computes::Pass { .. } => {}
            // The kernels here read operands in any order.
            Computes::Layout => copy(node, memory, |held, _| held)?,
            Computes::Quantise => copy(node, memory, |held, meter| self.quantised(node.outputs[0], held, pass, meter))?,
            Computes::Dequantise => {
                copy(node, memory, |held, meter| held.decoded(meter).map_or(held, Contents::Floats))?;
            }
            Computes::Update => self.update(node, memory, pass)?,
        }
        Ok(None)
    }

    /// The node of the eager graph that `step` is, on the values that stand for its own.
    fn standing(
        &self,
        step: u32,
        product: Option<Option<TensorId>>,
        node: &Node,
        memory: &mut dyn Memory,
        pass: &Pass,
        again: bool,
    ) -> Result<Option<Loss>, ProgramError> {
        let (eager, of) = (&self.rewritten.eager.nodes[step as usize], &self.eager.steps[step as usize]);
        let product = product.map(|rescaled| Product::of(rescaled, self.rounding_of(of), node, memory));
        let mut standing = Standing::new(self, [eager, node], of, memory, draws(pass), product);
        self.eager.compute(of, &mut standing, pass, again)
    }

    /// Values as `tensor` holds them.
    fn quantised(&self, tensor: TensorId, held: Contents, pass: &Pass, meter: &Meter) -> Contents {
        match (held, self.code(tensor, None, draws(pass))) {
            (Contents::Floats(values), Some(code)) => code.encode(&values, code.step(&values, 0.0), meter),
            (held, _) => held,
        }
    }
}

/// Writes what `of` makes of a node's input into its output.
fn copy(
    node: &Node,
    memory: &mut dyn Memory,
    of: impl FnOnce(Contents, &Meter) -> Contents,
) -> Result<(), ProgramError> {
    let (&[from], &[to]) = (&node.inputs[..], &node.outputs[..]) else { return Ok(()) };
    if memory.take(to).is_none() {
        return Ok(());
    }
    let held = match (memory.eight(from), memory.sixteen(from)) {
        (Some(held), _) => Contents::Eight(held.clone()),
        (_, Some(held)) => Contents::Sixteen(held.clone()),
        _ => Contents::Floats(memory.meter().copy(&memory.floats(from)?)),
    };
    let made = of(held, memory.meter());
    memory.put(to, made);
    Ok(())
}
