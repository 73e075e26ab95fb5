//! 2-D convolution: dense, grouped and depthwise, of any window.
//!
//! A sample's planes are written into a frame in which every tap of the window is one distance away; an output is then
//! a sum over distances, computed for many positions in parallel. Nothing is unfolded into a matrix, and nothing is
//! multiplied by the zeros of a stride.

mod correlate;
mod frame;
mod outer;
mod passes;
mod product;
mod weight;

use haversack_kernels::Isa;
use haversack_kernels::simd::LANES;
use haversack_workloads::Window;
use rayon::prelude::*;

use self::frame::Frame;
use self::passes::{Pass, Passes};
use self::weight::Frames;
use super::sums::sum;
use crate::error::{Result, expect_length, expect_window};
use crate::{Meter, NumericsError};

/// Sizes of a convolution: the input is batch × channels × height × width, the weight filters × channels/groups × kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution {
    batch: usize,
    channels: usize,
    input: [usize; 2],
    filters: usize,
    output: [usize; 2],
    window: Window,
    groups: usize,
}

impl Convolution {
    /// A convolution of an input of batch × channels × height × width.
    ///
    /// # Errors
    /// A window that does not fit the input, or channels or filters that do not split into the groups.
    pub fn new(input: [usize; 4], filters: usize, window: Window, groups: usize) -> Result<Self> {
        let [batch, channels, height, width] = input;
        let output = expect_window(window, [height, width], false)?;
        if groups == 0 || !channels.is_multiple_of(groups) || !filters.is_multiple_of(groups) {
            return Err(NumericsError::Refused(format!(
                "{channels} channels and {filters} filters do not split into {groups} groups"
            )));
        }
        Ok(Self { batch, channels, input: [height, width], filters, output, window, groups })
    }

    /// Batch, filters, height and width of the output.
    pub const fn output(&self) -> [usize; 4] {
        [self.batch, self.filters, self.output[0], self.output[1]]
    }

    /// Batch, channels, height and width of the input.
    pub const fn input(&self) -> [usize; 4] {
        [self.batch, self.channels, self.input[0], self.input[1]]
    }

    /// The window, and the number of groups of channels.
    pub const fn window(&self) -> (Window, usize) {
        (self.window, self.groups)
    }

    /// Elements of the weight.
    pub const fn weight_len(&self) -> usize {
        self.filters * (self.channels / self.groups) * self.window.taps() as usize
    }

    /// Elements of the input.
    pub const fn input_len(&self) -> usize {
        self.batch * self.channels * self.input[0] * self.input[1]
    }

    /// Elements of the output.
    pub const fn output_len(&self) -> usize {
        self.batch * self.filters * self.output[0] * self.output[1]
    }

    /// The output.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn forward(
        &self,
        input: &[f32],
        weight: &[f32],
        bias: Option<&[f32]>,
        meter: &Meter,
        output: &mut [f32],
    ) -> Result {
        self.check(input.len(), weight.len(), output.len(), bias.map(<[f32]>::len))?;
        if output.is_empty() {
            return Ok(());
        }
        let frame = self.input_frame();
        let grid = self.output;
        let passes = vec![Pass { distances: self.distances(&frame), grid, first: 0, step: [grid[1], 1] }];
        let (rows, depth) = (self.filters / self.groups, self.depth());
        let plane = grid[0] * grid[1];
        let of = |_: usize, group: usize, row: usize, k: usize| weight[(group * rows + row) * depth + k];
        let passes = Passes { frame, passes, groups: self.groups, rows, plane, bias, batch: self.batch };
        passes.run(input, of, Isa::chosen()?, meter, output);
        Ok(())
    }

    /// The gradient of the input, from that of the output.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn input_gradient(
        &self,
        gradient: &[f32],
        weight: &[f32],
        meter: &Meter,
        input_gradient: &mut [f32],
    ) -> Result {
        self.check(input_gradient.len(), weight.len(), gradient.len(), None)?;
        if input_gradient.is_empty() {
            return Ok(());
        }
        let phases = self.phases();
        let frame = self.gradient_frame(&phases);
        let (rows, filters) = (self.channels / self.groups, self.filters / self.groups);
        let (passes, taps): (Vec<_>, Vec<_>) =
            phases.iter().map(|[down, across]| self.gradient_pass(&frame, filters, *down, *across)).unzip();
        let of = |pass: usize, group: usize, row: usize, k: usize| {
            let taps: &[usize] = &taps[pass];
            let (filter, tap) = (group * filters + k / taps.len(), taps[k % taps.len()]);
            weight[filter * self.depth() + row * self.taps() + tap]
        };
        let plane = self.input[0] * self.input[1];
        let passes = Passes { frame, passes, groups: self.groups, rows, plane, bias: None, batch: self.batch };
        passes.run(gradient, of, Isa::chosen()?, meter, input_gradient);
        Ok(())
    }

    /// Adds the gradients of the weight and the bias.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn weight_gradient(
        &self,
        input: &[f32],
        gradient: &[f32],
        meter: &Meter,
        weight_gradient: &mut [f32],
        bias_gradient: Option<&mut [f32]>,
    ) -> Result {
        let bias = bias_gradient.as_deref().map(<[f32]>::len);
        self.check(input.len(), weight_gradient.len(), gradient.len(), bias)?;
        if gradient.is_empty() || weight_gradient.is_empty() {
            return Ok(());
        }
        let frame = self.input_frame();
        let frames = Frames {
            input: frame,
            gradient: self.frame_like(&frame),
            distances: self.distances(&frame),
            groups: self.groups,
        };
        frames.add(input, gradient, Isa::chosen()?, meter, weight_gradient);
        if let Some(bias) = bias_gradient {
            let plane = self.output[0] * self.output[1];
            bias.par_iter_mut().enumerate().for_each(|(filter, bias)| {
                let planes = gradient.chunks_exact(plane).skip(filter).step_by(self.filters);
                *bias += planes.map(sum).sum::<f32>();
            });
        }
        Ok(())
    }

    /// Every phase of the input that the window sees, with its padding.
    fn input_frame(&self) -> Frame {
        let [kernel, stride, padding] = self.sides();
        let side = |axis: usize| self.output[axis] + (kernel[axis] - 1) / stride[axis];
        Frame {
            planes: self.channels,
            size: self.input,
            step: stride,
            phases: [stride[0].min(kernel[0]), stride[1].min(kernel[1])],
            before: padding,
            framed: [side(0), side(1)],
        }
    }

    /// The output in rows as long as those of the input's frame, and zeros up to a whole number of vectors.
    fn frame_like(&self, frame: &Frame) -> Frame {
        let ([rows, columns], pitch) = (self.output, frame.framed[1]);
        let framed = [((rows - 1) * pitch + columns).next_multiple_of(LANES).div_ceil(pitch), pitch];
        Frame { planes: self.filters, size: self.output, step: [1, 1], phases: [1, 1], before: [0, 0], framed }
    }

    /// Where in the input's frame each element of a filter reads, for the first output of the first group.
    fn distances(&self, frame: &Frame) -> Vec<usize> {
        let [[down, across], stride, _] = self.sides();
        let place = |k: usize| {
            let [i, j] = [k / across % down, k % across];
            let phase = [i % stride[0], j % stride[1]];
            frame.place(k / (down * across), phase, [i / stride[0], j / stride[1]])
        };
        (0..self.depth()).map(place).collect()
    }

    /// The phases of the input that have positions, down and across.
    fn phases(&self) -> Vec<[Phase; 2]> {
        let [kernel, stride, padding] = self.sides();
        let along = |axis: usize| {
            let of = move |phase| Phase::new(phase, kernel[axis], stride[axis], padding[axis], self.input[axis]);
            (0..stride[axis]).map(of).filter(|phase| phase.positions > 0).collect::<Vec<_>>()
        };
        let across = along(1);
        along(0).into_iter().flat_map(|down| across.iter().map(move |across| [down, *across])).collect()
    }

    /// The gradient of the output, with as many zeros around it as the phases' taps reach.
    fn gradient_frame(&self, phases: &[[Phase; 2]]) -> Frame {
        let before = [0, 1].map(|axis| phases.iter().map(|phase| phase[axis].reach()).max().unwrap_or(0));
        let end = |axis: usize| phases.iter().map(|phase| phase[axis].end()).max().unwrap_or(0);
        let framed = [0, 1].map(|axis| self.output[axis].max(end(axis)) + before[axis]);
        Frame { planes: self.filters, size: self.output, step: [1, 1], phases: [1, 1], before, framed }
    }

    /// One phase of the input's gradient, and the taps of the window that reach it.
    fn gradient_pass(&self, frame: &Frame, filters: usize, down: Phase, across: Phase) -> (Pass, Vec<usize>) {
        let [kernel, stride, _] = self.sides();
        let (mut distances, mut taps) = (Vec::new(), Vec::new());
        for filter in 0..filters {
            for i in 0..down.taps {
                for j in 0..across.taps {
                    let row = down.start + frame.before[0] - i;
                    distances.push(frame.place(filter, [0, 0], [row, across.start + frame.before[1] - j]));
                }
            }
        }
        for i in 0..down.taps {
            let row = (down.phase + i * stride[0]) * kernel[1];
            taps.extend((0..across.taps).map(|j| row + across.phase + j * stride[1]));
        }
        let width = self.input[1];
        let first = down.first * width + across.first;
        let grid = [down.positions, across.positions];
        (Pass { distances, grid, first, step: [stride[0] * width, stride[1]] }, taps)
    }

    /// Kernel, stride and padding.
    fn sides(&self) -> [[usize; 2]; 3] {
        let Window { kernel, stride, padding, .. } = self.window;
        [kernel, stride.map(|step| step.max(1)), padding].map(|of| of.map(|side| side as usize))
    }

    const fn taps(&self) -> usize {
        self.window.taps() as usize
    }

    /// Elements of a filter.
    const fn depth(&self) -> usize {
        self.channels / self.groups * self.taps()
    }

    fn check(&self, input: usize, weight: usize, output: usize, bias: Option<usize>) -> Result {
        expect_length("the input of a convolution", input, self.input_len())?;
        expect_length("the weight of a convolution", weight, self.weight_len())?;
        expect_length("the output of a convolution", output, self.output_len())?;
        bias.map_or(Ok(()), |bias| expect_length("the bias of a convolution", bias, self.filters))
    }
}

/// Along one axis, the positions of the input with the same remainder modulo the stride, counted from the padding on:
/// position `stride · q + phase − padding` meets tap `phase + stride · j` of output q − j.
#[derive(Clone, Copy, Debug)]
struct Phase {
    phase: usize,
    /// Number of taps.
    taps: usize,
    /// The first q.
    start: usize,
    /// Its position.
    first: usize,
    /// Number of positions.
    positions: usize,
}

impl Phase {
    const fn new(phase: usize, kernel: usize, stride: usize, padding: usize, input: usize) -> Self {
        let start = padding.saturating_sub(phase).div_ceil(stride);
        let first = start * stride + phase - padding;
        let positions = input.saturating_sub(first).div_ceil(stride);
        Self { phase, taps: kernel.saturating_sub(phase).div_ceil(stride), start, first, positions }
    }

    /// How far before the first output the taps reach.
    const fn reach(&self) -> usize {
        self.taps.saturating_sub(1).saturating_sub(self.start)
    }

    /// The q after the last.
    const fn end(&self) -> usize {
        self.start + self.positions
    }
}
