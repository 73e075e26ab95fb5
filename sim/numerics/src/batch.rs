//! Samples and labels of a mini-batch.

use std::ops::Range;

use crate::{Contents, Meter};

/// The data of the samples of a mini-batch, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub enum Samples {
    /// fp32 values.
    Values(Vec<f32>),
    /// Token ids.
    Ids(Vec<i64>),
}

impl Default for Samples {
    fn default() -> Self {
        Self::Values(Vec::new())
    }
}

/// A mini-batch.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct MiniBatch {
    /// The number of samples.
    pub len: usize,
    /// Their data.
    pub samples: Samples,
    /// Their labels: the same number for each sample.
    pub labels: Vec<i64>,
}

impl MiniBatch {
    /// The samples with the indices in `range`.
    pub fn samples_of(&self, range: Range<usize>, meter: &Meter) -> Contents {
        match &self.samples {
            Samples::Values(values) => Contents::Floats(meter.copy(self.part(values, range))),
            Samples::Ids(ids) => Contents::Integers(meter.copy(self.part(ids, range))),
        }
    }

    /// The labels of the samples with the indices in `range`.
    pub fn labels_of(&self, range: Range<usize>, meter: &Meter) -> Contents {
        Contents::Integers(meter.copy(self.part(&self.labels, range)))
    }

    /// The samples with the given `indices`, in their order; indices beyond the last sample are ignored.
    pub fn chosen(&self, indices: &[usize]) -> Self {
        let indices: Vec<usize> = indices.iter().copied().filter(|&index| index < self.len).collect();
        let samples = match &self.samples {
            Samples::Values(values) => Samples::Values(self.picked(values, &indices)),
            Samples::Ids(ids) => Samples::Ids(self.picked(ids, &indices)),
        };
        Self { len: indices.len(), samples, labels: self.picked(&self.labels, &indices) }
    }

    fn picked<T: Copy>(&self, values: &[T], indices: &[usize]) -> Vec<T> {
        indices.iter().flat_map(|&index| self.part(values, index..index + 1)).copied().collect()
    }

    /// The elements of some samples, all of which have the same number of elements.
    fn part<'v, T>(&self, values: &'v [T], range: Range<usize>) -> &'v [T] {
        let each = values.len() / self.len.max(1);
        &values[(range.start * each).min(values.len())..(range.end * each).min(values.len())]
    }
}
