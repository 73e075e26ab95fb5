//! What the nodes of a graph compute that was rewritten in integers.
//!
//! A tensor is eight-bit codes and a step, a power of two. Products are of codes, with sums of 32 bits (`product`); the
//! operators between them are those of the eager graph, computed on the values that codes stand for, which fp32 holds
//! exactly, and brought back to codes (`standing`). Nothing is differentiated here: each node names the node of the eager
//! graph whose part it has.

mod product;
mod rounding;
mod standing;

use haversack_workloads::mixed::{Arithmetic, Computes, Rewritten, Update, with_initial_weights};
use haversack_workloads::network::FP32;
use haversack_workloads::training_graph::{Element, Node};
use haversack_workloads::{Extent, Network, Role, TrainingGraph, WorkloadError};

use self::rounding::{LARGEST, quantised, step_for};
use self::standing::Standing;
use super::maps::Known;
use super::{Loss, Pass, Program, TensorKind};
use crate::error::ProgramError;
use crate::memory::{Contents, Memory};
use crate::meter::Meter;
use crate::state::{State, before_training};

/// What the nodes of a rewritten graph compute.
#[derive(Debug)]
pub(super) struct Integers {
    /// The eager graph's arithmetic.
    eager: Program,
    rewritten: Rewritten,
    rules: Arithmetic,
}

impl Program {
    /// The arithmetic of the graph of `network` that was `rewritten` in integers.
    ///
    /// # Errors
    /// As [`Program::new`] for the eager graph; [`ProgramError::Algorithm`] for an algorithm whose arithmetic is not
    /// described, or that holds numbers of sixteen bits or an optimiser's state of integers.
    pub fn of_integers(network: &Network, rewritten: Rewritten) -> Result<Self, ProgramError> {
        let algorithm = &rewritten.algorithm;
        let refused = |reason: String| ProgramError::Algorithm { algorithm: algorithm.name.clone(), reason };
        let described = || refused("its description has no part `arithmetic`, so that it carries no data".to_owned());
        let rules = algorithm.arithmetic.clone().ok_or_else(described)?;
        let has_state = rewritten.graph.tensors.iter().any(|tensor| tensor.role == Role::OptimiserState);
        if has_state && algorithm.weight.update == Update::Int8 {
            return Err(refused(
                "weights that are integers are updated without a state; expected the optimizer sgd".to_owned(),
            ));
        }
        let network = with_initial_weights(network, algorithm);
        let eager = Self::new(&network, &rewritten.eager)?;
        let mut tensors = Vec::with_capacity(rewritten.graph.tensors.len());
        for (tensor, stands_for) in rewritten.graph.tensors.iter().zip(&rewritten.stands_for) {
            let kind = stands_for.map(|of| eager.tensors[of as usize]);
            let kind = kind.map_or_else(
                || TensorKind::of_floats(tensor.bytes.times(1, FP32)),
                |kind| {
                    let is_in_eight_bits =
                        !kind.is_integer && tensor.element != Element::Whole && tensor.bytes == kind.elements;
                    TensorKind { is_in_eight_bits, ..kind }
                },
            );
            let is_wide = tensor.element != Element::Whole && tensor.bytes == kind.elements * 2;
            if is_wide && kind.elements != Extent::ZERO {
                return Err(refused(format!("{} has sixteen bits, which are not computed", tensor.name)));
            }
            tensors.push(kind);
        }
        let known = Known::nothing(tensors.len());
        let integers = Integers { eager, rewritten, rules };
        Ok(Self { network, steps: Vec::new(), looks: Vec::new(), tensors, known, integers: Some(Box::new(integers)) })
    }

    /// What `graph` holds before training, drawn by `seed`, and an optimiser that has seen nothing.
    ///
    /// # Errors
    /// As [`State::initial`].
    pub fn initial_state(&self, graph: &TrainingGraph, seed: u64, meter: &Meter) -> Result<State, WorkloadError> {
        let Some(integers) = &self.integers else { return State::initial(&self.network, graph, seed, meter) };
        let mut tensors = Vec::new();
        for (id, tensor) in (0..).zip(&graph.tensors).filter(|(_, tensor)| tensor.role.is_state()) {
            let Some(&Some(storage)) = integers.rewritten.stands_for.get(id as usize) else { continue };
            let held = before_training(&self.network, storage, tensor, seed, meter)?.map(|held| match held {
                Contents::Floats(values) if self.is_in_eight_bits(id) => {
                    Contents::Eight(quantised(&values, step_for(&values), meter))
                }
                held => held,
            });
            tensors.extend(held.map(|held| (id, held)));
        }
        Ok(State::of(tensors))
    }
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
            Computes::Product { step, rescaled } => self.product(step, rescaled, node, memory, pass)?,
            Computes::Integer { step } | Computes::Float { step } => {
                let (eager, of) = (&self.rewritten.eager.nodes[step as usize], &self.eager.steps[step as usize]);
                let mut standing = Standing::new(program, &self.eager, [eager, node], of, memory);
                return self.eager.compute(of, &mut standing, pass, again);
            }
            // The product that it belongs to has shifted its sums already, and the description's sweeps are part of that.
            Computes::Rescaling | Computes::Pass { .. } => {}
            // The kernels here read operands in any order.
            Computes::Layout => copy(node, memory, |held, _| held.clone())?,
            Computes::Quantise => copy(node, memory, |held, meter| match held {
                Contents::Floats(values) => Contents::Eight(quantised(values, step_for(values), meter)),
                held => held.clone(),
            })?,
            Computes::Dequantise => copy(node, memory, |held, meter| match held {
                Contents::Eight(held) => Contents::Floats(held.values(meter)),
                held => held.clone(),
            })?,
            Computes::Update => update(node, memory)?,
        }
        Ok(None)
    }
}

/// Writes what `of` makes of a node's input into its output.
fn copy(
    node: &Node,
    memory: &mut dyn Memory,
    of: impl FnOnce(&Contents, &Meter) -> Contents,
) -> Result<(), ProgramError> {
    let (&[from], &[to]) = (&node.inputs[..], &node.outputs[..]) else { return Ok(()) };
    if memory.take(to).is_none() {
        return Ok(());
    }
    let held = match memory.eight(from) {
        Some(held) => Contents::Eight(held.clone()),
        None => Contents::Floats(memory.meter().copy(&memory.floats(from)?)),
    };
    let made = of(&held, memory.meter());
    memory.put(to, made);
    Ok(())
}

/// Subtracts the codes of a gradient from those of its weight, whose step stays (NITI, section 3).
fn update(node: &Node, memory: &mut dyn Memory) -> Result<(), ProgramError> {
    let &[weight, gradient] = &node.inputs[..] else { return Ok(()) };
    let Some(Contents::Eight(mut held)) = memory.take(weight) else { return Ok(()) };
    if let Some(gradient) = memory.eight(gradient) {
        for (code, &less) in held.codes.iter_mut().zip(&*gradient.codes) {
            *code = code.saturating_sub(less).max(-LARGEST);
        }
    }
    memory.put(weight, Contents::Eight(held));
    Ok(())
}
