//! The gradient of a weight, a few samples at a time.
//!
//! Many filters are placed side by side in vectors; with few filters, positions are. Either way each task owns the
//! gradients of some weights and adds up blocks of samples in their order.

use haversack_kernels::Isa;
use haversack_kernels::simd::LANES;
use rayon::prelude::*;

use super::correlate::{Correlation, FILTERS};
use super::frame::Frame;
use super::outer::{DISTANCES, Outer, transpose, transposed_len};
use crate::Meter;

/// Elements of frames from which on no further sample is added to a block.
const FRAMED: usize = 1 << 17;
/// The most samples of a block.
const SAMPLES: usize = 16;
/// Filters of a group from which on they are placed side by side.
const MANY: usize = 5;

/// The frames of input and gradient, which have rows of one length.
pub(super) struct Frames {
    pub(super) input: Frame,
    pub(super) gradient: Frame,
    /// Where each element of a filter reads in the input's frame.
    pub(super) distances: Vec<usize>,
    pub(super) groups: usize,
}

/// A block of samples.
struct Block<'a> {
    input: &'a [f32],
    gradient: &'a [f32],
    gradient_len: usize,
    samples: usize,
}

impl Frames {
    /// Adds the gradient of the weight.
    pub(super) fn add(&self, input: &[f32], gradient: &[f32], isa: Isa, meter: &Meter, weight: &mut [f32]) {
        let (filters, depth) = (self.filters(), self.distances.len());
        if filters < MANY {
            let len = self.gradient.len();
            let write = |from: &[f32], into: &mut [f32]| self.gradient.write(from, into);
            return self.each_block(input, gradient, len, write, meter, |block| self.correlate(&block, isa, weight));
        }
        let (positions, width) = (self.positions(), filters.next_multiple_of(LANES));
        let mut sums = meter.zeros(self.groups * depth * width);
        let len = transposed_len(self.groups, filters, positions);
        let write = |from: &[f32], into: &mut [f32]| transpose(from, filters, positions, into);
        self.each_block(input, gradient, len, write, meter, |block| self.outer(&block, isa, width, &mut sums));
        weight.par_chunks_mut(depth).enumerate().for_each(|(filter, weight)| {
            let sums = &sums[filter / filters * depth * width + filter % filters..];
            weight.iter_mut().zip(sums.iter().step_by(width)).for_each(|(weight, sum)| *weight += sum);
        });
    }

    /// Calls `f` with block after block of samples, the input in its frame and the gradient as `write` lays it out in
    /// `len` elements.
    fn each_block(
        &self,
        input: &[f32],
        gradient: &[f32],
        len: usize,
        write: impl Fn(&[f32], &mut [f32]) + Sync,
        meter: &Meter,
        mut f: impl FnMut(Block),
    ) {
        let sizes = [self.input, self.gradient].map(|frame| frame.planes * frame.size[0] * frame.size[1]);
        let batch = gradient.len() / sizes[1];
        let block = (FRAMED / (self.input.len() + len)).clamp(1, SAMPLES.min(batch));
        let mut frames = [meter.zeros(block * self.input.len()), meter.zeros(block * len)];
        for (input, gradient) in input.chunks(block * sizes[0]).zip(gradient.chunks(block * sizes[1])) {
            let [inputs, gradients] = &mut frames;
            inputs
                .par_chunks_mut(self.input.len())
                .zip(gradients.par_chunks_mut(len))
                .zip(input.par_chunks(sizes[0]).zip(gradient.par_chunks(sizes[1])))
                .for_each(|((inputs, gradients), (input, gradient))| {
                    self.input.write(input, inputs);
                    write(gradient, gradients);
                });
            f(Block { input: inputs, gradient: gradients, gradient_len: len, samples: input.len() / sizes[0] });
        }
    }

    fn outer(&self, block: &Block, isa: Isa, width: usize, sums: &mut [f32]) {
        sums.par_chunks_mut(self.distances.len() * width).enumerate().for_each(|(group, sums)| {
            let tasks = sums.par_chunks_mut(DISTANCES * width).zip(self.distances.par_chunks(DISTANCES));
            tasks.for_each(|(sums, distances)| {
                Outer {
                    source: block.input,
                    source_len: self.input.len(),
                    pitch: self.input.framed[1],
                    distances,
                    base: self.base(group),
                    gradient: block.gradient,
                    gradient_len: block.gradient_len,
                    group: group * width * self.positions(),
                    samples: block.samples,
                    grid: self.gradient.size,
                    sums,
                }
                .run(isa);
            });
        });
    }

    fn correlate(&self, block: &Block, isa: Isa, weight: &mut [f32]) {
        let (filters, depth) = (self.filters(), self.distances.len());
        let [rows, columns] = self.gradient.size;
        let vectors = ((rows - 1) * self.gradient.framed[1] + columns).div_ceil(LANES);
        weight.par_chunks_mut(filters * depth).enumerate().for_each(|(group, weight)| {
            weight.par_chunks_mut(FILTERS * depth).enumerate().for_each(|(tile, weight)| {
                let plane = self.gradient.plane_len();
                Correlation {
                    source: block.input,
                    source_len: self.input.len(),
                    distances: &self.distances,
                    base: self.base(group),
                    gradient: block.gradient,
                    gradient_len: block.gradient_len,
                    filter: [(group * filters + tile * FILTERS) * plane, plane],
                    samples: block.samples,
                    vectors,
                    weight,
                }
                .run(isa);
            });
        });
    }

    /// Filters of a group.
    const fn filters(&self) -> usize {
        self.gradient.planes / self.groups
    }

    /// Positions of the output.
    const fn positions(&self) -> usize {
        self.gradient.size[0] * self.gradient.size[1]
    }

    /// First element of a group in a sample's frame.
    const fn base(&self, group: usize) -> usize {
        group * (self.input.planes / self.groups) * self.input.plane_len()
    }
}
