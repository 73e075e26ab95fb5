//! The arithmetic of the nodes of a graph that was rewritten in integers.
//!
//! A tensor is codes of eight bits and a step, a power of two. Products are of codes, with sums of 32 bits (`product`).
//! The operators between them are those of the eager graph: they are computed on the values of the codes, which fp32
//! represents exactly, and the results become codes again (`standing`). Nothing is differentiated here: each node names
//! the node of the eager graph whose arithmetic it computes.

mod chosen;
mod product;
mod rounding;
mod standing;

use haversack_workloads::mixed::{Arithmetic, Computes, Rewritten, with_initial_weights};
use haversack_workloads::{
    Element, Extent, FP32, Network, Node, Phase, Role, StorageId, TensorId, TrainingGraph, WorkloadError, mixed,
};

use self::rounding::encode;
use self::standing::Standing;
use super::{Known, Loss, Pass, Program, Result, TensorKind};
use crate::optimiser::MOMENTUM;
use crate::state::before_training;
use crate::{Contents, Eight, Floats, Memory, Meter, ProgramError, State};
use rounding::LARGEST;

/// The arithmetic of the nodes of a rewritten graph.
#[derive(Debug)]
pub(super) struct Integers {
    /// The eager graph's arithmetic.
    eager: Program,
    rewritten: Rewritten,
    rules: Arithmetic,
    /// Whether each tensor is stored in integers.
    coded: Vec<bool>,
}

impl Program {
    /// The arithmetic of the graph of `network` that was `rewritten` in integers.
    ///
    /// # Errors
    /// As [`Program::new`] for the eager graph; an algorithm that cannot compute real values, or an optimiser whose
    /// state its integers cannot represent.
    pub fn of_integers(network: &Network, rewritten: Rewritten) -> Result<Self> {
        let algorithm = &rewritten.algorithm;
        let refused = |reason: String| ProgramError::Refused(format!("{}: {reason}", algorithm.name));
        let rules = algorithm.arithmetic.clone().ok_or_else(|| refused(without_arithmetic()))?;
        if states(&rewritten) > 1 {
            let why = "its weights are integers, whose update has no place for such a state; expected the optimizer sgd or \
                       momentum";
            return Err(refused(why.to_owned()));
        }
        let network = with_initial_weights(network, algorithm);
        let eager = Self::new(&network, &rewritten.eager)?;
        let mut tensors = Vec::with_capacity(rewritten.graph.tensors.len());
        for (tensor, stands_for) in rewritten.graph.tensors.iter().zip(&rewritten.stands_for) {
            let kind = stands_for.map(|of| eager.tensors[of as usize]);
            let elements = tensor.bytes.times(1, FP32);
            let kind = kind.unwrap_or(TensorKind { elements, is_integer: false, is_coded: false });
            let holds_values = !kind.is_integer && tensor.element != Element::Whole && kind.elements != Extent::ZERO;
            let is_coded = stands_for.is_some() && holds_values && tensor.bytes == kind.elements;
            tensors.push(TensorKind { is_coded, ..kind });
        }
        let coded = tensors.iter().map(|kind: &TensorKind| kind.is_coded).collect();
        let known = vec![Known::default(); tensors.len()];
        let integers = Integers { eager, rewritten, rules, coded };
        Ok(Self { network, steps: Vec::new(), looks: Vec::new(), tensors, known, integers: Some(Box::new(integers)) })
    }

    /// The state of `graph` before training: weights drawn by `seed`, and an optimiser that has seen no gradients.
    ///
    /// # Errors
    /// A weight whose initial values are unknown.
    pub fn initial_state(&self, graph: &TrainingGraph, seed: u64, meter: &Meter) -> Result<State, WorkloadError> {
        self.state_with(graph, seed, &|_| None, meter)
    }

    /// The same with the values of `given` for weights, by their storage in the network.
    ///
    /// # Errors
    /// As [`Self::initial_state`].
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
            tensors.extend(held.map(|held| (id, self.as_held(id, held, meter))));
        }
        Ok(State::of(tensors))
    }

    /// Values in the form in which `tensor` stores them.
    fn as_held(&self, tensor: TensorId, contents: Contents, meter: &Meter) -> Contents {
        match contents {
            Contents::Floats(values) if self.is_in_eight_bits(tensor) => encode(&values, 0.0, meter),
            contents => contents,
        }
    }

    /// The storage of the network whose values a tensor of the graph has; `None` for sums of 32 bits.
    fn storage_of(&self, tensor: TensorId) -> Option<StorageId> {
        match &self.integers {
            Some(integers) => integers.rewritten.stands_for.get(tensor as usize).copied().flatten(),
            None => Some(tensor),
        }
    }

    /// The values of the weight in `storage` of the network, from a state of `graph`; `None` if
    /// the state does not have it.
    pub fn weight(&self, graph: &TrainingGraph, state: &State, storage: StorageId, meter: &Meter) -> Option<Floats> {
        let is_it = |tensor: TensorId| {
            let role = graph.tensors.get(tensor as usize).map(|tensor| tensor.role);
            matches!(role, Some(Role::Parameter { .. })) && self.storage_of(tensor) == Some(storage)
        };
        match &state.tensors().iter().find(|(tensor, _)| is_it(*tensor))?.1 {
            Contents::Floats(values) => Some(meter.copy(values)),
            coded => coded.decoded(meter),
        }
    }
}

/// The most state tensors that the optimiser keeps for a weight.
fn states(rewritten: &Rewritten) -> usize {
    let updates = rewritten.eager.nodes.iter().filter(|node| node.phase == Phase::Update);
    updates.map(|node| node.inputs.len().saturating_sub(2)).max().unwrap_or(0)
}

/// The reason why an algorithm without a description of its arithmetic is refused.
fn without_arithmetic() -> String {
    let described = mixed::algorithms().unwrap_or_default().iter().filter(|algorithm| algorithm.arithmetic.is_some());
    let ids: Vec<&str> = described.map(|algorithm| algorithm.id.as_str()).collect();
    format!("this algorithm is not carried out on data; expected {}", ids.join(" or "))
}

impl Integers {
    pub(super) fn run(
        &self,
        program: &Program,
        node: &Node,
        memory: &mut dyn Memory,
        pass: &Pass,
        again: bool,
    ) -> Result<Option<Loss>> {
        let computes = node.step.and_then(|step| self.rewritten.computes.get(step as usize));
        match *computes.ok_or_else(|| program.unknown(node))? {
            Computes::Product { step, rescaled } => self.product(step, rescaled, node, memory, pass)?,
            Computes::Integer { step } if self.choose(step, node, memory, pass)? => {}
            Computes::Integer { step } | Computes::Float { step } => {
                return self.standing(step, node, memory, pass, again);
            }
            // The product before it has shifted its sums already, which includes the passes of the description.
            Computes::Rescaling | Computes::Pass { .. } => {}
            // The kernels here read operands in any order.
            Computes::Layout => copy(node, memory, |held, _| held)?,
            Computes::Quantise => copy(node, memory, |held, meter| program.as_held(node.outputs[0], held, meter))?,
            Computes::Dequantise => {
                copy(node, memory, |held, meter| held.decoded(meter).map_or(held, Contents::Floats))?;
            }
            Computes::Update => update(node, memory),
        }
        Ok(None)
    }

    /// Computes the node of the eager graph that `step` is, with the tensors of the rewritten node.
    fn standing(
        &self,
        step: u32,
        node: &Node,
        memory: &mut dyn Memory,
        pass: &Pass,
        again: bool,
    ) -> Result<Option<Loss>> {
        let (eager, of) = (&self.rewritten.eager.nodes[step as usize], &self.eager.steps[step as usize]);
        let mut standing = Standing::new(self, [eager, node], of, memory);
        self.eager.compute(of, &mut standing, pass, again)
    }
}

/// Applies `of` to a node's input and writes the result to its output.
fn copy(node: &Node, memory: &mut dyn Memory, of: impl FnOnce(Contents, &Meter) -> Contents) -> Result {
    let (&[from], &[to]) = (&node.inputs[..], &node.outputs[..]) else { return Ok(()) };
    if memory.take(to).is_none() {
        return Ok(());
    }
    let held = match memory.eight(from) {
        Some(held) => Contents::Eight(held.clone()),
        None => Contents::Floats(memory.meter().copy(&memory.floats(from)?)),
    };
    let made = of(held, memory.meter());
    memory.put(to, made);
    Ok(())
}

// The update of weights that are integers themselves.

/// The unit of a state of 32-bit integers: this fraction of a code.
const SHARES: f32 = 256.0;

/// The update of a weight by its gradient, with or without a state. The weight's step does not change.
fn update(node: &Node, memory: &mut dyn Memory) {
    let &[weight, gradient, ref states @ ..] = &node.inputs[..] else { return };
    let Some(held) = memory.take(weight) else { return };
    let mut state = states.first().and_then(|&state| Some((state, memory.take(state)?)));
    let held = match (held, memory.eight(gradient)) {
        (Contents::Eight(held), Some(gradient)) => Contents::Eight(match &mut state {
            Some((_, Contents::Floats(sums))) => without(held, &with_momentum(sums, &gradient.codes)),
            _ => without(held, &gradient.codes),
        }),
        (held, _) => held,
    };
    memory.put(weight, held);
    if let Some((state, held)) = state {
        memory.put(state, held);
    }
}

/// Codes less others (NITI, section 3).
fn without(mut held: Eight, less: &[i8]) -> Eight {
    for (code, &less) in held.codes.iter_mut().zip(less) {
        *code = code.saturating_sub(less).max(-LARGEST);
    }
    held
}

/// Adds codes to the decayed sums of earlier ones; returns the sums rounded to the nearest code.
fn with_momentum(sums: &mut [f32], codes: &[i8]) -> Vec<i8> {
    let one = |(sum, &code): (&mut f32, &i8)| {
        *sum = ((MOMENTUM * *sum + f32::from(code)) * SHARES).round() / SHARES;
        sum.round().clamp(-f32::from(LARGEST), LARGEST.into()) as i8
    };
    sums.iter_mut().zip(codes).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::Meter;

    #[test]
    fn sums_of_codes_fade_by_tenths_in_shares_of_a_code() {
        let mut sums = [0.0, 4.0];
        // 4; 0.9 · 4 - 1 = 2.6, which is 665.6 shares: 666.
        assert_eq!(with_momentum(&mut sums, &[4, -1]), [4, 3]);
        assert_eq!(sums, [4.0, 666.0 / 256.0]);
        // Beyond the range of a code the sum keeps growing, and the weight takes 127.
        assert_eq!(with_momentum(&mut [200.0], &[100]), [127]);
    }

    #[test]
    fn codes_end_at_127() {
        let held = Eight { codes: Meter::default().copy(&[8_i8, -5, 127, -127]), step: 0.5 };
        assert_eq!(*without(held, &[1, -1, -1, 1]).codes, [7, -4, 127, -127]);
    }
}
