//! The gradient of a weight, a few samples at a time.

use haversack_kernels::Isa;
use haversack_kernels::simd::LANES;
use rayon::prelude::*;

use super::correlate::{Correlation, FILTERS};
use super::frame::Frame;
use crate::meter::Meter;

/// Elements of frames from which no further sample is taken together with others.
const FRAMED: usize = 1 << 17;
/// Samples that are taken together at most.
const SAMPLES: usize = 16;

/// The frames of input and gradient, which have rows of one length.
pub(super) struct Frames {
    pub(super) input: Frame,
    pub(super) gradient: Frame,
    /// Where each element of a filter looks in the input's frame.
    pub(super) distances: Vec<usize>,
}

impl Frames {
    /// Adds the gradient of the weight.
    ///
    /// Each task owns the weights of a few filters and adds up blocks of samples in their order.
    pub(super) fn add(
        &self,
        groups: usize,
        input: &[f32],
        gradient: &[f32],
        isa: Isa,
        meter: &Meter,
        weight: &mut [f32],
    ) {
        let sizes = [self.input, self.gradient].map(|frame| frame.planes * frame.size[0] * frame.size[1]);
        let lens = [self.input.len(), self.gradient.len()];
        let batch = gradient.len() / sizes[1];
        let block = (FRAMED / (lens[0] + lens[1])).clamp(1, SAMPLES.min(batch));
        let mut frames = [meter.zeros(block * lens[0]), meter.zeros(block * lens[1])];
        for (input, gradient) in input.chunks(block * sizes[0]).zip(gradient.chunks(block * sizes[1])) {
            let [inputs, gradients] = &mut frames;
            inputs
                .par_chunks_mut(lens[0])
                .zip(gradients.par_chunks_mut(lens[1]))
                .zip(input.par_chunks(sizes[0]).zip(gradient.par_chunks(sizes[1])))
                .for_each(|((inputs, gradients), (input, gradient))| {
                    self.input.write(input, inputs);
                    self.gradient.write(gradient, gradients);
                });
            self.add_block(groups, inputs, gradients, input.len() / sizes[0], isa, weight);
        }
    }

    fn add_block(&self, groups: usize, source: &[f32], gradient: &[f32], samples: usize, isa: Isa, weight: &mut [f32]) {
        let filters = self.gradient.planes / groups;
        let depth = self.distances.len();
        let [rows, columns] = self.gradient.size;
        let vectors = ((rows - 1) * self.gradient.framed[1] + columns).div_ceil(LANES);
        weight.par_chunks_mut(filters * depth).enumerate().for_each(|(group, weight)| {
            weight.par_chunks_mut(FILTERS * depth).enumerate().for_each(|(tile, weight)| {
                let plane = self.gradient.plane_len();
                Correlation {
                    source,
                    source_len: self.input.len(),
                    distances: &self.distances,
                    base: group * (self.input.planes / groups) * self.input.plane_len(),
                    gradient,
                    gradient_len: self.gradient.len(),
                    filter: [(group * filters + tile * FILTERS) * plane, plane],
                    samples,
                    vectors,
                    weight,
                }
                .run(isa);
            });
        });
    }
}
