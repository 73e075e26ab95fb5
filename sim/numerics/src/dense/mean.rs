//! Means over an axis: global average pooling (outer = batch × channels, inner = 1), mean over tokens.

use rayon::prelude::*;

use super::parallel::rows_of_block;
use crate::error::{Result, expect_length};

/// A tensor of outer × axis × inner elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mean {
    /// Product of the dimensions before the axis.
    pub outer: usize,
    /// Elements that are averaged.
    pub axis: usize,
    /// Product of the dimensions after it.
    pub inner: usize,
}

impl Mean {
    /// `output[o, i] = Σ input[o, a, i] / axis`.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn forward(&self, input: &[f32], output: &mut [f32]) -> Result {
        self.check(input.len(), output.len())?;
        let Self { axis, inner, .. } = *self;
        let (run, share) = (axis * inner, 1.0 / axis as f32);
        let rows = rows_of_block(run);
        if run == 0 {
            return Ok(());
        }
        output.par_chunks_mut(rows * inner).zip(input.par_chunks(rows * run)).for_each(|(output, input)| {
            for (y, x) in output.chunks_exact_mut(inner).zip(input.chunks_exact(run)) {
                if inner == 1 {
                    y[0] = super::sums::sum(x) * share;
                    continue;
                }
                y.fill(0.0);
                for x in x.chunks_exact(inner) {
                    y.iter_mut().zip(x).for_each(|(y, x)| *y += x);
                }
                y.iter_mut().for_each(|y| *y *= share);
            }
        });
        Ok(())
    }

    /// The gradient of the input.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn backward(&self, gradient: &[f32], input_gradient: &mut [f32]) -> Result {
        self.check(input_gradient.len(), gradient.len())?;
        let Self { axis, inner, .. } = *self;
        let (run, share) = (axis * inner, 1.0 / axis as f32);
        let rows = rows_of_block(run);
        if run == 0 {
            return Ok(());
        }
        input_gradient.par_chunks_mut(rows * run).zip(gradient.par_chunks(rows * inner)).for_each(|(dx, dy)| {
            for (dx, dy) in dx.chunks_exact_mut(run).zip(dy.chunks_exact(inner)) {
                if inner == 1 {
                    dx.fill(dy[0] * share);
                    continue;
                }
                for dx in dx.chunks_exact_mut(inner) {
                    dx.iter_mut().zip(dy).for_each(|(dx, dy)| *dx = dy * share);
                }
            }
        });
        Ok(())
    }

    fn check(&self, input: usize, output: usize) -> Result {
        expect_length("the input of a mean", input, self.outer * self.axis * self.inner)?;
        expect_length("the output of a mean", output, self.outer * self.inner)
    }
}
