//! The tensors of a rewritten graph, in the role of the tensors that a node of the eager graph reads and writes.
//!
//! The eager arithmetic reads and writes values; here they come from codes and go back to codes. Values that are codes
//! times a power of two are exact in fp32, and so are the maxima, signs and sums of them that operators between products
//! make: rounding happens only where they become codes again.

use haversack_workloads::{Node, Op, Role, TensorId, Unary};

use super::Integers;
use super::rounding::encode;
use crate::program::{Result, Step};
use crate::{Contents, Memory, Meter, Passes, Program, ProgramError, Seen, SeenIntegers, Signs};

/// Maps the tensors of one node of the eager graph to those of the rewritten graph.
pub(super) struct Standing<'m> {
    of: &'m Integers,
    memory: &'m mut dyn Memory,
    eager: &'m Node,
    node: &'m Node,
    /// The least step of an output; 0 if the output takes the least step at which all its values have codes.
    finest: f32,
}

impl<'m> Standing<'m> {
    /// For a node of the eager graph and the node that computes it, whose arithmetic is `step`.
    pub(super) fn new(of: &'m Integers, [eager, node]: [&'m Node; 2], step: &Step, memory: &'m mut dyn Memory) -> Self {
        let mut standing = Self { of, memory, eager, node, finest: 0.0 };
        standing.finest = standing.finest_step(&selected(&of.eager, step));
        standing
    }

    /// The finest step of `tensors`; 0 if none has a step.
    fn finest_step(&self, tensors: &[TensorId]) -> f32 {
        let held = tensors.iter().filter_map(|&tensor| self.memory.eight(self.read(tensor)?));
        let steps = held.map(|held| held.step).filter(|&step| step > 0.0);
        steps.reduce(f32::min).unwrap_or(0.0)
    }

    /// The tensor that replaces one that is read.
    fn read(&self, tensor: TensorId) -> Option<TensorId> {
        standing_for(tensor, &self.eager.inputs, &self.node.inputs).or_else(|| self.written(tensor))
    }

    fn written(&self, tensor: TensorId) -> Option<TensorId> {
        let is_buffer = |&tensor: &TensorId| self.of.rewritten.graph.tensor(tensor).role == Role::Buffer;
        // Running averages are written where they are read, and are not outputs.
        let read = || standing_for(tensor, &self.eager.inputs, &self.node.inputs).filter(is_buffer);
        standing_for(tensor, &self.eager.outputs, &self.node.outputs).or_else(read)
    }

    fn found(&self, tensor: TensorId) -> Result<TensorId> {
        self.read(tensor).ok_or_else(|| ProgramError::Missing(format!("an operand of {}", self.eager.name)))
    }
}

/// The tensor at the index in `now` that `tensor` has in `eager`.
pub(super) fn standing_for(tensor: TensorId, eager: &[TensorId], now: &[TensorId]) -> Option<TensorId> {
    eager.iter().position(|&id| id == tensor).and_then(|place| now.get(place).copied())
}

/// The tensors whose values a step passes on, selects or adds, so that its results are whole multiples of their steps;
/// none for a step that computes other values.
fn selected(program: &Program, step: &Step) -> Vec<TensorId> {
    let network = &program.network;
    let chooses = |operator: u32| {
        use Op::{Add, Concat, Copy, MaxPool, Slice};
        let unary = |function: &Unary| matches!(function, Unary::Relu | Unary::Relu6 | Unary::Clip { .. });
        match &network.nodes[operator as usize].op {
            Op::Unary { function, .. } => unary(function),
            op => matches!(op, Add | Concat { .. } | Copy(_) | MaxPool(_) | Slice(_)),
        }
    };
    match step {
        Step::Forward(operator) if chooses(*operator) => {
            network.nodes[*operator as usize].inputs.iter().map(|&input| network.value(input).storage).collect()
        }
        Step::Backward(derivative) if chooses(derivative.operator) => vec![derivative.gradient.tensor],
        Step::Accumulate { parts, .. } => parts.iter().map(|part| part.tensor).collect(),
        _ => Vec::new(),
    }
}

impl Memory for Standing<'_> {
    fn floats(&self, tensor: TensorId) -> Result<Seen<'_>> {
        self.memory.floats(self.found(tensor)?)
    }

    fn integers(&self, tensor: TensorId) -> Result<SeenIntegers<'_>> {
        self.memory.integers(self.found(tensor)?)
    }

    fn signs(&self, tensor: TensorId) -> Result<Signs<'_>> {
        let found = self.found(tensor)?;
        match self.memory.eight(found) {
            // One bit for each code; values would take four bytes each.
            Some(held) if self.of.eager.passes(tensor) == Passes::Positive => {
                let mut bits = self.memory.meter().bytes(held.codes.len().div_ceil(8));
                for (bits, codes) in bits.iter_mut().zip(held.codes.chunks(8)) {
                    *bits = codes.iter().rev().fold(0, |bits, &code| bits << 1 | u8::from(code > 0));
                }
                Ok(Signs::Bits(bits))
            }
            Some(_) => self.memory.floats(found).map(Signs::Values),
            None => self.memory.signs(found),
        }
    }

    fn take(&mut self, tensor: TensorId) -> Option<Contents> {
        let to = self.written(tensor)?;
        // An operator in place expects its input in the tensor that it writes, although the input
        // is in another tensor now.
        let from = standing_for(tensor, &self.eager.inputs, &self.node.inputs);
        let elsewhere = from.filter(|&from| from != to).and_then(|from| self.memory.floats(from).ok());
        let before = elsewhere.map(|seen| self.memory.meter().copy(&seen));
        let held = self.memory.take(to)?;
        if let (Contents::Floats(_) | Contents::Eight(_), Some(before)) = (&held, before) {
            return Some(Contents::Floats(before));
        }
        // A gradient of a weight is added to.
        let is_read = from.is_some() || self.of.rewritten.graph.tensor(to).role == Role::ParameterGradient;
        let meter = self.memory.meter();
        match held {
            Contents::Eight(held) if !is_read => Some(Contents::Floats(meter.floats(held.codes.len()))),
            held => Some(held.decoded(meter).map_or(held, Contents::Floats)),
        }
    }

    fn put(&mut self, tensor: TensorId, contents: Contents) {
        let Some(to) = self.written(tensor) else { return };
        let contents = match contents {
            Contents::Floats(values) if self.of.coded[to as usize] => encode(&values, self.finest, self.memory.meter()),
            contents => contents,
        };
        self.memory.put(to, contents);
    }

    fn meter(&self) -> &Meter {
        self.memory.meter()
    }
}
