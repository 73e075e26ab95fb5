//! Computes one node.

use haversack_workloads::TensorId;

use super::{Look, Operands, Outputs, Pass, Program, Result};
use crate::dense::elementwise;
use crate::{Memory, Rule};

/// A node of a micro-batch, about to be computed.
pub(super) struct Run<'r> {
    pub(super) program: &'r Program,
    pub(super) memory: &'r mut dyn Memory,
    pub(super) pass: &'r Pass,
    /// Whether it has been computed for the micro-batch before.
    pub(super) again: bool,
}

impl Run<'_> {
    /// Takes `tensors` out, lets `compute` write them from the rest of memory, and puts them back.
    pub(super) fn write<T>(
        &mut self,
        tensors: &[TensorId],
        compute: impl FnOnce(Operands<'_>, &mut Outputs) -> Result<T>,
    ) -> Result<T> {
        let mut outputs = Outputs::take(self.memory, tensors);
        let operands = Operands { program: self.program, memory: self.memory, pass: self.pass };
        let done = compute(operands, &mut outputs);
        outputs.put_back(self.memory);
        done
    }

    /// Writes the micro-batch's share of the mini-batch, so that the gradients of all micro-batches add up to that
    /// of the mini-batch's mean.
    pub(super) fn seed(&mut self, gradient: TensorId) -> Result {
        let share = self.pass.samples as f32 / self.pass.batch as f32;
        self.write(&[gradient], |_, outputs| {
            outputs.floats(0).into_iter().for_each(|values| values.fill(share));
            Ok(())
        })
    }

    pub(super) fn accumulate(&mut self, parts: &[Look; 2], sum: TensorId) -> Result {
        let samples = self.pass.samples;
        self.write(&[sum], |operands, outputs| {
            let [first, second] = [&parts[0], &parts[1]].map(|part| part.read(operands.memory, samples));
            outputs.floats(0).map_or(Ok(()), |sum| Ok(elementwise::add(&first?, &second?, sum)?))
        })
    }

    pub(super) fn update(&mut self, weight: TensorId, gradient: TensorId, states: &[TensorId]) -> Result {
        let (rule, update): (Rule, u64) = (self.pass.rule, self.pass.update);
        let written: Vec<TensorId> = [weight].into_iter().chain(states.iter().copied()).collect();
        self.write(&written, |operands, outputs| {
            let gradient = operands.memory.floats(gradient)?;
            let [Some(weight), mean, square] = outputs.each() else { return Ok(()) };
            Ok(rule.apply(update, weight, &gradient, [mean, square])?)
        })
    }
}
