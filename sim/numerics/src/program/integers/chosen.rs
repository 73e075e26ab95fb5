//! Operators that select codes without changing them: rectifiers and maxima. They need no conversion to fp32.

use haversack_workloads::{Node, Op, OperatorNode, TensorId, Unary, ValueId, Window};

use super::Integers;
use super::standing::standing_for;
use crate::dense::pool::Pool;
use crate::program::forward::pool;
use crate::program::operands::Operands;
use crate::program::{Derivative, Result, Step};
use crate::{Contents, Eight, Memory, Pass, ProgramError};

/// A node that selects, and its tensors.
struct Choice<'c> {
    of: &'c Integers,
    eager: &'c Node,
    node: &'c Node,
}

impl Integers {
    /// Computes the node of the eager graph at `step` on codes. Returns `false` without doing anything if the node does
    /// not select, or its operands are not stored in eight bits.
    pub(super) fn choose(&self, step: u32, node: &Node, memory: &mut dyn Memory, pass: &Pass) -> Result<bool> {
        let choice = Choice { of: self, eager: &self.rewritten.eager.nodes[step as usize], node };
        let network = &self.eager.network;
        Ok(match &self.eager.steps[step as usize] {
            Step::Forward(operator) => {
                let operator = &network.nodes[*operator as usize];
                match operator.op {
                    Op::Unary { function: Unary::Relu, .. } => choice.rectify(operator, memory).is_some(),
                    Op::MaxPool(window) => choice.maxima(operator, window, memory, pass)?,
                    _ => false,
                }
            }
            Step::Backward(of) if of.gradient.is_whole() => {
                let operator = &network.nodes[of.operator as usize];
                match operator.op {
                    Op::Unary { function: Unary::Relu, .. } => choice.gate(operator, of, memory).is_some(),
                    Op::MaxPool(window) => choice.spread(operator, window, of, memory, pass)?,
                    _ => false,
                }
            }
            _ => false,
        })
    }

    fn pool(&self, node: &OperatorNode, window: Window, memory: &dyn Memory, pass: &Pass) -> Result<Pool> {
        pool(&Operands { program: &self.eager, memory, pass }, node, window, None)
    }
}

impl Choice<'_> {
    /// The tensor that replaces one that is read.
    fn read(&self, tensor: TensorId) -> Option<TensorId> {
        standing_for(tensor, &self.eager.inputs, &self.node.inputs)
    }

    /// The tensor that replaces one that is written, if it is stored in eight bits.
    fn written(&self, tensor: TensorId) -> Option<TensorId> {
        let to = standing_for(tensor, &self.eager.outputs, &self.node.outputs)?;
        self.of.coded[to as usize].then_some(to)
    }

    /// The tensor that replaces the storage of a value that is row by row.
    fn storage(&self, value: ValueId) -> Option<TensorId> {
        let program = &self.of.eager;
        program.looks[value as usize].is_none().then(|| program.network.value(value).storage)
    }

    /// Lets `write` compute the codes of `to`, whose step is that of `from`; `None` if they are
    /// not stored in eight bits.
    fn write(
        &self,
        from: TensorId,
        to: TensorId,
        memory: &mut dyn Memory,
        write: impl FnOnce(&dyn Memory, &Eight, &mut [i8]),
    ) -> Option<()> {
        memory.eight(from).filter(|_| from != to)?;
        // Nothing needs the output, so nothing is computed.
        let Some(held) = memory.take(to) else { return Some(()) };
        let Contents::Eight(mut made) = held else {
            memory.put(to, held);
            return None;
        };
        if let Some(from) = memory.eight(from) {
            write(memory, from, &mut made.codes);
            made.step = from.step;
        }
        memory.put(to, Contents::Eight(made));
        Some(())
    }

    fn rectify(&self, operator: &OperatorNode, memory: &mut dyn Memory) -> Option<()> {
        let from = self.read(self.storage(operator.inputs[0])?)?;
        let to = self.written(self.storage(operator.output)?)?;
        if from != to {
            return self.write(from, to, memory, |_, from, codes| {
                codes.iter_mut().zip(&*from.codes).for_each(|(code, &from)| *code = from.max(0));
            });
        }
        in_place(to, memory, |_, codes| codes.iter_mut().for_each(|code| *code = (*code).max(0)))
    }

    /// The gradient passes where the output was positive.
    fn gate(&self, operator: &OperatorNode, of: &Derivative, memory: &mut dyn Memory) -> Option<()> {
        let saved = *operator.saved.first()?;
        let value = [operator.output, operator.inputs[0]].into_iter().find(|&value| self.storage(value) == Some(saved));
        value?;
        let (saved, from) = (self.read(saved)?, self.read(of.gradient.tensor)?);
        let to = self.written(of.inputs.first()?.1)?;
        memory.eight(saved)?;
        if from != to {
            return self.write(from, to, memory, |memory, from, codes| {
                let Some(saved) = memory.eight(saved) else { return };
                for ((code, &from), &saved) in codes.iter_mut().zip(&*from.codes).zip(&*saved.codes) {
                    *code = if saved > 0 { from } else { 0 };
                }
            });
        }
        in_place(to, memory, |memory, codes| {
            let saved = memory.eight(saved).into_iter().flat_map(|saved| &*saved.codes);
            codes.iter_mut().zip(saved).filter(|(_, saved)| **saved <= 0).for_each(|(code, _)| *code = 0);
        })
    }

    fn maxima(&self, operator: &OperatorNode, window: Window, memory: &mut dyn Memory, pass: &Pass) -> Result<bool> {
        let places = (|| {
            let from = self.read(self.storage(operator.inputs[0])?)?;
            Some((from, self.written(self.storage(operator.output)?)?))
        })();
        let (Some((from, to)), Some(&indices)) = (places, operator.saved.get(1)) else { return Ok(false) };
        let pool = self.of.pool(operator, window, memory, pass)?;
        let indices = standing_for(indices, &self.eager.outputs, &self.node.outputs);
        let mut taken = indices.and_then(|indices| memory.take(indices));
        let mut done = Ok(());
        let wrote = self.write(from, to, memory, |memory, from, codes| {
            let mut scratch = None;
            let indices = match &mut taken {
                Some(Contents::Integers(indices)) => indices,
                _ => scratch.insert(memory.meter().integers(codes.len())),
            };
            done = pool.maximum(&from.codes, codes, indices);
        });
        if let (Some(indices), Some(taken)) = (indices, taken) {
            memory.put(indices, taken);
        }
        done?;
        Ok(wrote.is_some())
    }

    /// Each gradient goes to the position of its maximum; windows that overlap may need sums, which is not a selection.
    fn spread(
        &self,
        operator: &OperatorNode,
        window: Window,
        of: &Derivative,
        memory: &mut dyn Memory,
        pass: &Pass,
    ) -> Result<bool> {
        let overlaps = (0..2).any(|axis| window.stride[axis] < window.kernel[axis]);
        let places = (|| {
            let from = self.read(of.gradient.tensor)?;
            Some((from, self.written(of.inputs.first()?.1)?, self.read(*operator.saved.get(1)?)?))
        })();
        let Some((from, to, indices)) = places.filter(|_| !overlaps) else { return Ok(false) };
        let pool = self.of.pool(operator, window, memory, pass)?;
        let mut done = Ok(());
        let wrote = self.write(from, to, memory, |memory, from, codes| {
            done = match memory.integers(indices) {
                Ok(indices) => pool.maximum_gradient(&from.codes, &indices, codes).map_err(ProgramError::from),
                Err(error) => Err(error),
            };
        });
        done?;
        Ok(wrote.is_some())
    }
}

/// Changes the codes of `tensor` in place; `None` if it has no codes.
fn in_place(tensor: TensorId, memory: &mut dyn Memory, change: impl FnOnce(&dyn Memory, &mut [i8])) -> Option<()> {
    memory.eight(tensor)?;
    if let Some(Contents::Eight(mut held)) = memory.take(tensor) {
        change(memory, &mut held.codes);
        memory.put(tensor, Contents::Eight(held));
    }
    Some(())
}
