//! The order in which the elements of a tensor are read.

use haversack_workloads::{Layout, TensorId};

use crate::dense::strided::Strided;
use crate::{Floats, Memory, Meter, ProgramError, Seen};

/// A tensor, and the order in which its elements are read: as they are stored, or gathered in stages, each stage from
/// the result of the one before.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) tensor: TensorId,
    stages: Vec<Layout>,
}

impl Look {
    /// As the elements are stored.
    pub(crate) const fn whole(tensor: TensorId) -> Self {
        Self { tensor, stages: Vec::new() }
    }

    /// Whether the elements are read as they are stored.
    pub(crate) const fn is_whole(&self) -> bool {
        self.stages.is_empty()
    }

    /// The same, gathered once more; `None` gathers everything in order.
    pub(crate) fn through(mut self, layout: Option<Layout>) -> Self {
        self.stages.extend(layout);
        self
    }

    /// The elements in order.
    pub(crate) fn read<'m>(&self, memory: &'m dyn Memory, samples: usize) -> Result<Seen<'m>, ProgramError> {
        let mut seen = memory.floats(self.tensor)?;
        for stage in &self.stages {
            seen = Seen::Copy(gather(stage, &seen, samples, memory.meter())?);
        }
        Ok(seen)
    }
}

/// The elements that a layout shows, row by row.
pub(crate) fn gather(layout: &Layout, from: &[f32], samples: usize, meter: &Meter) -> Result<Floats, ProgramError> {
    with_batch(layout, samples, |strided| {
        let mut to = meter.floats(strided.dims.iter().product());
        strided.gather(from, &mut to)?;
        Ok(to)
    })
}

/// Adds the row-by-row elements of `from` to the elements of `to` that a layout selects.
pub(crate) fn scatter_add(layout: &Layout, from: &[f32], to: &mut [f32], samples: usize) -> Result<(), ProgramError> {
    with_batch(layout, samples, |strided| Ok(strided.scatter_add(from, to)?))
}

/// The layout with the samples as its outermost axis.
fn with_batch<T>(
    layout: &Layout,
    samples: usize,
    work: impl FnOnce(Strided<'_>) -> Result<T, ProgramError>,
) -> Result<T, ProgramError> {
    let samples = if layout.shape.is_batched() { samples } else { 1 };
    let sizes = layout.shape.sizes().into_iter().map(|size| size as usize);
    let dims: Vec<usize> = std::iter::once(samples).chain(sizes).collect();
    let strides: Vec<usize> = [layout.sample].iter().chain(&layout.strides).map(|&stride| stride as usize).collect();
    work(Strided { offset: layout.offset as usize, dims: &dims, strides: &strides })
}
