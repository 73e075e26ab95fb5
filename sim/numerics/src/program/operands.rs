//! The operands of a node, in the order that its kernel needs.

use haversack_workloads::{Network, OperatorNode, TensorId, ValueId};

use super::look::gather;
use super::{Pass, Program, Result};
use crate::{Contents, Eight, Memory, Meter, Seen, SeenIntegers};

/// The operands of the nodes of a micro-batch.
#[derive(Clone, Copy)]
pub(super) struct Operands<'m> {
    pub(super) program: &'m Program,
    pub(super) memory: &'m dyn Memory,
    pub(super) pass: &'m Pass,
}

impl<'m> Operands<'m> {
    pub(super) fn network(&self) -> &'m Network {
        &self.program.network
    }

    pub(super) fn meter(&self) -> &'m Meter {
        self.memory.meter()
    }

    /// The elements of a value, row by row.
    pub(super) fn value(&self, value: ValueId) -> Result<Seen<'m>> {
        let seen = self.memory.floats(self.network().value(value).storage)?;
        let Some(layout) = &self.program.looks[value as usize] else { return Ok(seen) };
        Ok(Seen::Copy(gather(layout, &seen, self.pass.samples, self.meter())?))
    }

    /// The ids of a value, row by row. If the output depends on the batch but the ids do not, they are
    /// repeated for each sample.
    pub(super) fn ids(&self, value: ValueId) -> Result<SeenIntegers<'m>> {
        let seen = self.memory.integers(self.network().value(value).storage)?;
        let wanted = self.elements(value);
        if seen.len() == wanted {
            return Ok(seen);
        }
        // More ids are stored than the value has (positions), or the same ones serve every sample.
        let mut copy = self.meter().integers(wanted);
        let shown = self.network().shape(value).sizes().iter().product::<u64>() as usize;
        let source = &seen[..shown.min(seen.len())];
        copy.chunks_exact_mut(source.len().max(1)).for_each(|ids| ids.copy_from_slice(source));
        Ok(SeenIntegers::Copy(copy))
    }

    /// The weight of an operator at index `place` of its weights.
    pub(super) fn weight(&self, node: &OperatorNode, place: usize) -> Result<Seen<'m>> {
        self.memory.floats(self.network().parameter(node.parameters[place]).storage)
    }

    /// The input and the weight of a product, if both are stored in eight bits and row by row.
    pub(super) fn in_eight_bits(&self, node: &OperatorNode) -> Option<[&'m Eight; 2]> {
        let (input, weight) = (node.inputs[0], self.network().parameter(node.parameters[0]).storage);
        if self.program.looks[input as usize].is_some() {
            return None;
        }
        Some([self.memory.eight(self.network().value(input).storage)?, self.memory.eight(weight)?])
    }

    /// The same, or `None` if the operator has fewer weights.
    pub(super) fn weight_if_any(&self, node: &OperatorNode, place: usize) -> Result<Option<Seen<'m>>> {
        (place < node.parameters.len()).then(|| self.weight(node, place)).transpose()
    }

    /// The tensor that the operator saved at index `place`.
    pub(super) fn saved(&self, node: &OperatorNode, place: usize) -> Result<Seen<'m>> {
        self.memory.floats(node.saved[place])
    }

    /// The number of elements of a value.
    pub(super) fn elements(&self, value: ValueId) -> usize {
        self.network().shape(value).elements().at(self.pass.samples as u64) as usize
    }

    /// The size of axis `axis` of a value, times the samples if the batch multiplies it.
    pub(super) fn size(&self, value: ValueId, axis: usize) -> usize {
        let dim = self.network().shape(value).dim(axis);
        dim.size as usize * if dim.batched { self.pass.samples } else { 1 }
    }

    /// The number of elements of the last axis of a value, and of rows before it.
    pub(super) fn rows(&self, value: ValueId) -> (usize, usize) {
        let width = self.network().shape(value).last() as usize;
        (self.elements(value) / width.max(1), width)
    }

    /// The number of elements before, along and after some axes of a value.
    pub(super) fn around(&self, value: ValueId, axes: std::ops::Range<usize>) -> [usize; 3] {
        let product = |range: std::ops::Range<usize>| range.map(|axis| self.size(value, axis)).product();
        let rank = self.network().shape(value).rank();
        [product(0..axes.start), product(axes.clone()), product(axes.end..rank)]
    }
}

/// Tensors that were taken out to be written.
pub(super) struct Outputs(Vec<(TensorId, Option<Contents>)>);

impl Outputs {
    /// Takes tensors out. Those that are stored in fewer bits are written as values.
    pub(super) fn take(memory: &mut dyn Memory, tensors: &[TensorId]) -> Self {
        let mut take = |tensor: TensorId| {
            let contents = memory.take(tensor)?;
            Some(contents.decoded(memory.meter()).map_or(contents, Contents::Floats))
        };
        Self(tensors.iter().map(|&tensor| (tensor, take(tensor))).collect())
    }

    pub(super) fn put_back(self, memory: &mut dyn Memory) {
        for (tensor, contents) in self.0 {
            if let Some(contents) = contents {
                memory.put(tensor, contents);
            }
        }
    }

    /// The values at `place`; `None` if nothing needs them.
    pub(super) fn floats(&mut self, place: usize) -> Option<&mut [f32]> {
        self.0.get_mut(place).and_then(|(_, contents)| floats_of(contents))
    }

    /// The values of each tensor.
    pub(super) fn each<const N: usize>(&mut self) -> [Option<&mut [f32]>; N] {
        let mut held = self.0.iter_mut().map(|(_, contents)| floats_of(contents));
        [(); N].map(|()| held.next().flatten())
    }

    /// The values of the first tensor, and the integers of the second.
    pub(super) fn floats_and_integers(&mut self) -> (Option<&mut [f32]>, Option<&mut [i64]>) {
        let mut held = self.0.iter_mut().map(|(_, contents)| contents);
        let values = held.next().and_then(floats_of);
        let integers = match held.next() {
            Some(Some(Contents::Integers(integers))) => Some(&mut **integers),
            _ => None,
        };
        (values, integers)
    }
}

fn floats_of(contents: &mut Option<Contents>) -> Option<&mut [f32]> {
    let Some(Contents::Floats(values)) = contents else { return None };
    Some(values)
}
