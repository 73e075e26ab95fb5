//! Gradients of weights from parts of a mini-batch, each with its own scale factor, in integers.

use haversack_devices::ProductRole;
use haversack_numerics::{Contents, Eight, Memory, Meter, Pass, ProgramError, Seen, SeenIntegers};
use haversack_workloads::{Node, TensorId};

use super::Trained;
use crate::artefacts::prelude::*;

/// The gradient of a layer's weight in a mini-batch, whole and from parts of it.
pub(in crate::artefacts) struct SplitGradient {
    /// The scale factor of the whole mini-batch.
    pub(in crate::artefacts) whole_factor: u32,
    /// The factor of each part.
    pub(in crate::artefacts) factors: Vec<u32>,
    /// The sums of products, before they are shifted.
    exact: Vec<f32>,
    /// The gradient of the whole mini-batch in eight bits.
    whole: Vec<f32>,
    /// Those of the parts in eight bits, merged by equation 4.
    merged: Vec<f32>,
}

impl SplitGradient {
    /// The relative error of the whole mini-batch's gradient against the exact one.
    pub(in crate::artefacts) fn error_of_whole(&self) -> f64 {
        self.error(&self.whole)
    }

    /// The same for the merged gradient.
    pub(in crate::artefacts) fn error_of_merged(&self) -> f64 {
        self.error(&self.merged)
    }

    fn error(&self, found: &[f32]) -> f64 {
        let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
        let all = squares(&mut self.exact.iter().copied().map(f64::from));
        let error = squares(&mut self.exact.iter().zip(found).map(|(&x, &y)| f64::from(y) - f64::from(x)));
        if all == 0.0 { 0.0 } else { (error / all).sqrt() }
    }
}

/// A node's operands, cut to a part of the samples, and its results.
struct PartMemory<'m> {
    memory: &'m dyn Memory,
    /// The operands that are cut.
    cut: Vec<(TensorId, Eight)>,
    made: Vec<(TensorId, Contents)>,
    factors: Vec<(TensorId, u32)>,
}

impl Memory for PartMemory<'_> {
    fn floats(&self, tensor: TensorId) -> Result<Seen<'_>, ProgramError> {
        self.memory.floats(tensor)
    }

    fn integers(&self, tensor: TensorId) -> Result<SeenIntegers<'_>, ProgramError> {
        self.memory.integers(tensor)
    }

    fn eight(&self, tensor: TensorId) -> Option<&Eight> {
        let cut = self.cut.iter().find(|(id, _)| *id == tensor).map(|(_, held)| held);
        cut.or_else(|| self.memory.eight(tensor))
    }

    fn note_factor(&mut self, tensor: TensorId, factor: u32) {
        self.factors.push((tensor, factor));
    }

    fn take(&mut self, tensor: TensorId) -> Option<Contents> {
        let place = self.made.iter().position(|(id, _)| *id == tensor)?;
        Some(self.made.swap_remove(place).1)
    }

    fn put(&mut self, tensor: TensorId, contents: Contents) {
        self.made.push((tensor, contents));
    }

    fn meter(&self) -> &Meter {
        self.memory.meter()
    }
}

/// A gradient in `parts` parts: its values and the factor of each part; in floating point the sums,
/// which have no factor.
struct Split<'s> {
    trained: &'s Trained,
    node: &'s Node,
    memory: &'s dyn Memory,
    /// The gradient of the weight.
    tensor: TensorId,
}

impl Split<'_> {
    fn gradient(&self, parts: usize, in_floats: bool) -> Result<(Vec<f32>, Vec<u32>), ProgramError> {
        let (Self { trained, node, memory, tensor }, batch) = (self, self.trained.recipe.batch);
        let (len, samples) = (trained.program.elements(*tensor, 1), batch / parts);
        let meter = memory.meter();
        let nothing = match in_floats {
            true => Contents::Floats(meter.zeros(len)),
            false => Contents::Eight(Eight { codes: meter.codes(len), step: 0.0 }),
        };
        let mut of_parts =
            PartMemory { memory: *memory, cut: Vec::new(), made: vec![(*tensor, nothing)], factors: Vec::new() };
        for first in (0..parts).map(|part| part * samples) {
            of_parts.cut = self.operands(first, samples);
            let pass = Pass { samples, first, ..trained.pass(trained.updates()) };
            trained.program.run(node, &mut of_parts, &pass, false)?;
        }
        let factors = of_parts.factors.iter().filter(|(id, _)| id == tensor).map(|(_, factor)| *factor).collect();
        let values = match of_parts.take(*tensor) {
            Some(Contents::Eight(held)) => held.values(meter).to_vec(),
            Some(Contents::Floats(values)) => values.to_vec(),
            _ => Vec::new(),
        };
        Ok((values, factors))
    }

    /// The operands of the node for `samples` samples from `first` on.
    fn operands(&self, first: usize, samples: usize) -> Vec<(TensorId, Eight)> {
        let cut = |&tensor: &TensorId| {
            let held = self.memory.eight(tensor)?;
            let each = held.codes.len() / self.trained.recipe.batch;
            let mut codes = self.memory.meter().codes(samples * each);
            codes.copy_from_slice(&held.codes[first * each..][..samples * each]);
            Some((tensor, Eight { codes, step: held.step }))
        };
        self.node.inputs.iter().filter_map(cut).collect()
    }
}

impl Trained {
    /// The gradients of the weights of all layers in each of the next `batches` mini-batches, each split into `parts`.
    pub(in crate::artefacts) fn split_gradients(&self, batches: usize, parts: usize) -> Result<Vec<SplitGradient>> {
        let mut found = Vec::new();
        self.watch(batches, |node, memory| {
            let is_gradient = node
                .work
                .product
                .is_some_and(|product| product.is_dense() && product.role == ProductRole::WeightGradient);
            let Some(&tensor) = node.outputs.first().filter(|_| is_gradient) else { return Ok(()) };
            let split = Split { trained: self, node, memory, tensor };
            let (exact, _) = split.gradient(1, true)?;
            let (whole, factor) = split.gradient(1, false)?;
            let (merged, factors) = split.gradient(parts, false)?;
            if let &[whole_factor] = &factor[..] {
                found.push(SplitGradient { whole_factor, factors, exact, whole, merged });
            }
            Ok(())
        })?;
        Ok(found)
    }
}
