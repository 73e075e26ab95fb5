//! Maximum, average and adaptive average pooling of planes (each channel of each sample).

use std::ops::{AddAssign, Range};

use haversack_workloads::Window;
use rayon::prelude::*;

use super::parallel::rows_of_block;
use crate::error::{Result, expect_length, expect_window};

/// Elements that have a maximum: values, or codes of them.
pub trait Ordered: Copy + Default + PartialOrd + AddAssign + Send + Sync {
    /// The least value.
    const LEAST: Self;

    /// Whether it is a NaN.
    fn is_no_number(self) -> bool;
}

impl Ordered for f32 {
    const LEAST: Self = Self::NEG_INFINITY;

    fn is_no_number(self) -> bool {
        self.is_nan()
    }
}

impl Ordered for i8 {
    const LEAST: Self = Self::MIN;

    fn is_no_number(self) -> bool {
        false
    }
}

/// Sizes of a pooling, and the positions that each output reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Channels × samples.
    pub planes: usize,
    /// Height and width of a plane.
    pub input: [usize; 2],
    /// Height and width of an output plane.
    pub output: [usize; 2],
    seen: Seen,
}

/// Which input positions an output reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Window(Window),
    /// PyTorch's adaptive bounds: ⌊i · in / out⌋ to ⌈(i + 1) · in / out⌉.
    Adaptive,
}

impl Pool {
    /// A pooling by a window; `round_up` is PyTorch's `ceil_mode`.
    ///
    /// # Errors
    /// A window that does not fit.
    pub fn new(planes: usize, input: [usize; 2], window: Window, round_up: bool) -> Result<Self> {
        let output = expect_window(window, input, round_up)?;
        Ok(Self { planes, input, output, seen: Seen::Window(window) })
    }

    /// An adaptive pooling to `output`.
    pub const fn adaptive(planes: usize, input: [usize; 2], output: [usize; 2]) -> Self {
        Self { planes, input, output, seen: Seen::Adaptive }
    }

    /// Maxima, and where they are in their plane (`row · width + column`; the first of equals; NaN wins, as in PyTorch).
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn maximum<T: Ordered>(&self, input: &[T], output: &mut [T], indices: &mut [i64]) -> Result {
        self.check(input.len(), output.len())?;
        expect_length("the indices of a pooling", indices.len(), output.len())?;
        let (inner, outer, width) = (self.plane(), self.output_plane(), self.input[1]);
        if inner == 0 || outer == 0 {
            return Ok(());
        }
        let (rows, columns) = (self.spans(0), self.spans(1));
        output.par_chunks_mut(outer).zip(indices.par_chunks_mut(outer)).zip(input.par_chunks(inner)).for_each(
            |((output, indices), plane)| {
                let mut outputs = output.iter_mut().zip(indices);
                for row in &rows {
                    for (column, (y, index)) in columns.iter().zip(&mut outputs) {
                        let mut place = row.start * width + column.start;
                        let mut most = T::LEAST;
                        for i in row.clone() {
                            for j in column.clone() {
                                let x = plane[i * width + j];
                                if x > most || x.is_no_number() {
                                    (most, place) = (x, i * width + j);
                                }
                            }
                        }
                        (*y, *index) = (most, place as i64);
                    }
                }
            },
        );
        Ok(())
    }

    /// The gradient of the input of [`maximum`](Self::maximum).
    ///
    /// # Errors
    /// An operand whose length does not match the sizes, or an index outside its plane.
    pub fn maximum_gradient<T: Ordered>(&self, gradient: &[T], indices: &[i64], input_gradient: &mut [T]) -> Result {
        self.check(input_gradient.len(), gradient.len())?;
        expect_length("the indices of a pooling", indices.len(), gradient.len())?;
        super::embedding::expect_indices("index", indices, self.plane())?;
        let outer = self.output_plane();
        input_gradient.par_chunks_mut(self.plane().max(1)).enumerate().for_each(|(plane, into)| {
            into.fill(T::default());
            let span = plane * outer..(plane + 1) * outer;
            for (&index, &gradient) in indices[span.clone()].iter().zip(&gradient[span]) {
                into[index as usize] += gradient;
            }
        });
        Ok(())
    }

    /// Averages; with `count_padding`, the default in PyTorch, the divisor is the window's size even where it
    /// reaches into the padding.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn average(&self, input: &[f32], count_padding: bool, output: &mut [f32]) -> Result {
        self.check(input.len(), output.len())?;
        let (inner, outer, width) = (self.plane(), self.output_plane(), self.input[1]);
        if inner == 0 || outer == 0 {
            return Ok(());
        }
        let (rows, columns) = (self.shares(0, count_padding), self.shares(1, count_padding));
        let block = rows_of_block(inner);
        output.par_chunks_mut(block * outer).zip(input.par_chunks(block * inner)).for_each(|(output, input)| {
            for (output, plane) in output.chunks_exact_mut(outer).zip(input.chunks_exact(inner)) {
                let mut outputs = output.iter_mut();
                for (row, down) in &rows {
                    for ((column, across), y) in columns.iter().zip(&mut outputs) {
                        let sum: f32 = row.clone().flat_map(|i| &plane[i * width..][column.clone()]).sum();
                        *y = sum / (down * across);
                    }
                }
            }
        });
        Ok(())
    }

    /// The gradient of the input of [`average`](Self::average).
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn average_gradient(&self, gradient: &[f32], count_padding: bool, input_gradient: &mut [f32]) -> Result {
        self.check(input_gradient.len(), gradient.len())?;
        let (inner, outer, width) = (self.plane(), self.output_plane(), self.input[1]);
        if inner == 0 || outer == 0 {
            return Ok(());
        }
        let (rows, columns) = (self.shares(0, count_padding), self.shares(1, count_padding));
        input_gradient.par_chunks_mut(inner).zip(gradient.par_chunks(outer)).for_each(|(into, gradient)| {
            into.fill(0.0);
            let mut gradients = gradient.iter();
            for (row, down) in &rows {
                for ((column, across), dy) in columns.iter().zip(&mut gradients) {
                    let share = dy / (down * across);
                    for i in row.clone() {
                        into[i * width..][column.clone()].iter_mut().for_each(|dx| *dx += share);
                    }
                }
            }
        });
        Ok(())
    }

    /// The input positions along an axis (0 down, 1 across) that each output reads.
    fn spans(&self, axis: usize) -> Vec<Range<usize>> {
        let (input, output) = (self.input[axis], self.output[axis]);
        let span = |i: usize| match self.seen {
            Seen::Window(window) => {
                let [kernel, stride, padding] = sides(window, axis);
                let start = i * stride.max(1);
                start.saturating_sub(padding).min(input)..(start + kernel).saturating_sub(padding).min(input)
            }
            Seen::Adaptive => i * input / output..((i + 1) * input).div_ceil(output),
        };
        (0..output).map(span).collect()
    }

    /// The same, and the divisor of the sum over each along this axis.
    fn shares(&self, axis: usize, count_padding: bool) -> Vec<(Range<usize>, f32)> {
        let share = |(i, span): (usize, Range<usize>)| {
            let mut count = span.len();
            if let (Seen::Window(window), true) = (self.seen, count_padding) {
                let [kernel, stride, padding] = sides(window, axis);
                // The padding counts; positions that `round_up` adds beyond it do not.
                count = kernel.min((self.input[axis] + 2 * padding).saturating_sub(i * stride.max(1)));
            }
            (span, count.max(1) as f32)
        };
        self.spans(axis).into_iter().enumerate().map(share).collect()
    }

    const fn plane(&self) -> usize {
        self.input[0] * self.input[1]
    }

    const fn output_plane(&self) -> usize {
        self.output[0] * self.output[1]
    }

    fn check(&self, input: usize, output: usize) -> Result {
        expect_length("the input of a pooling", input, self.planes * self.plane())?;
        expect_length("the output of a pooling", output, self.planes * self.output_plane())
    }
}

/// Kernel, stride and padding of a window along an axis.
fn sides(window: Window, axis: usize) -> [usize; 3] {
    [window.kernel, window.stride, window.padding].map(|of| of[axis] as usize)
}
