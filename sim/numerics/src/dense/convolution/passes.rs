//! A convolution as passes. A pass covers the positions of one phase of the output, and the taps that they read
//! in a frame of the source.
//!
//! Forward is one pass. The gradient of the input takes one pass for each remainder of the position modulo the stride,
//! because only every stride-th tap meets a position.

use std::ops::Range;

use haversack_kernels::Isa;
use haversack_kernels::simd::LANES;
use rayon::prelude::*;

use super::frame::Frame;
use super::product::{Product, most_rows, pack, tiles};
use crate::Meter;

/// Parts that a batch is cut into, each with its own scratch space, whatever the number of threads.
const PARTS: usize = 16;
/// Elements of scratch space from which there are fewer parts.
const SCRATCH: usize = 1 << 22;

/// Positions of the destination that read the same taps.
pub(super) struct Pass {
    /// Distance in the frame, for the first group, of each k.
    pub(super) distances: Vec<usize>,
    /// Rows and columns of positions.
    pub(super) grid: [usize; 2],
    /// First position in a plane of the destination.
    pub(super) first: usize,
    /// Elements of the destination from one row of the grid to the next, and from one column to the next.
    pub(super) step: [usize; 2],
}

/// The parameters that are the same for every sample.
pub(super) struct Passes<'a> {
    pub(super) frame: Frame,
    pub(super) passes: Vec<Pass>,
    /// Groups, planes of the source in a group, and planes of the destination in a group.
    pub(super) groups: usize,
    /// Planes of the destination in a group.
    pub(super) rows: usize,
    /// Elements of a plane of the destination.
    pub(super) plane: usize,
    /// The initial value of each plane of the destination.
    pub(super) bias: Option<&'a [f32]>,
    /// Number of samples.
    pub(super) batch: usize,
}

impl Pass {
    /// Elements that one row of sums takes: the grid's rows have the same pitch as the frame's.
    fn sums_len(&self, pitch: usize) -> usize {
        let [rows, columns] = self.grid;
        if rows == 0 { 0 } else { ((rows - 1) * pitch + columns).next_multiple_of(LANES) }
    }

    /// The places in a plane of the destination of row `i` of the grid.
    fn row(&self, i: usize) -> Range<usize> {
        let start = self.first + i * self.step[0];
        start..start + self.grid[1].saturating_sub(1) * self.step[1] + 1
    }
}

impl Passes<'_> {
    /// Computes the destination of each sample. `weight(pass, group, row, k)` is the weight of a plane of the
    /// destination at one k. Elements of the destination that no pass covers are left as they are.
    pub(super) fn run(
        &self,
        source: &[f32],
        weight: impl Fn(usize, usize, usize, usize) -> f32,
        isa: Isa,
        meter: &Meter,
        destination: &mut [f32],
    ) {
        let panels: usize = self.passes.iter().map(|pass| pass.distances.len() * self.rows * self.groups).sum();
        let mut panel = meter.floats(panels);
        self.pack(weight, isa, &mut panel);
        let sums = self.passes.iter().map(|pass| pass.sums_len(self.frame.framed[1])).max().unwrap_or(0);
        let scratch_len = self.frame.len() + sums * most_rows(isa).min(self.rows);
        let parts = PARTS.min(SCRATCH / scratch_len).max(2).min(self.batch);
        let each = self.batch.div_ceil(parts);
        let mut scratch = meter.zeros(parts * scratch_len);
        let source_len = self.frame.planes * self.frame.size[0] * self.frame.size[1];
        let into_len = self.groups * self.rows * self.plane;
        destination
            .par_chunks_mut(each * into_len)
            .zip(source.par_chunks(each * source_len))
            .zip(scratch.par_chunks_mut(scratch_len))
            .for_each(|((into, source), scratch)| {
                let (frame, sums) = scratch.split_at_mut(self.frame.len());
                for (into, source) in into.chunks_exact_mut(into_len).zip(source.chunks_exact(source_len)) {
                    self.frame.write(source, frame);
                    self.sample(frame, &panel, sums, isa, into);
                }
            });
    }

    fn pack(&self, weight: impl Fn(usize, usize, usize, usize) -> f32, isa: Isa, panel: &mut [f32]) {
        let mut at = 0;
        for (p, pass) in self.passes.iter().enumerate() {
            let depth = pass.distances.len();
            for group in 0..self.groups {
                pack(self.rows, depth, isa, |row, k| weight(p, group, row, k), &mut panel[at..at + self.rows * depth]);
                at += self.rows * depth;
            }
        }
    }

    fn sample(&self, frame: &[f32], mut panel: &[f32], sums: &mut [f32], isa: Isa, into: &mut [f32]) {
        let shift = self.frame.planes / self.groups * self.frame.plane_len();
        for pass in &self.passes {
            let (depth, len) = (pass.distances.len(), pass.sums_len(self.frame.framed[1]));
            for group in 0..self.groups {
                let source = &frame[group * shift..];
                for (first, rows) in tiles(self.rows, isa) {
                    let (tile, rest) = panel.split_at(rows * depth);
                    panel = rest;
                    let sums = &mut sums[..rows * len];
                    Product { source, distances: &pass.distances, panel: tile, rows, sums }.run(isa);
                    let first = group * self.rows + first;
                    for (plane, sums) in sums.chunks_exact(len.max(1)).enumerate() {
                        let plane = first + plane;
                        self.write(pass, sums, plane, &mut into[plane * self.plane..][..self.plane]);
                    }
                }
            }
        }
    }

    /// Copies the sums of the grid's positions to a plane of the destination.
    fn write(&self, pass: &Pass, sums: &[f32], plane: usize, into: &mut [f32]) {
        let bias = self.bias.map_or(0.0, |bias| bias[plane]);
        let columns = pass.grid[1];
        for (i, sums) in sums.chunks(self.frame.framed[1]).take(pass.grid[0]).enumerate() {
            let into = &mut into[pass.row(i)];
            if pass.step[1] == 1 {
                into.iter_mut().zip(&sums[..columns]).for_each(|(y, sum)| *y = sum + bias);
            } else {
                into.iter_mut().step_by(pass.step[1]).zip(&sums[..columns]).for_each(|(y, sum)| *y = sum + bias);
            }
        }
    }
}
