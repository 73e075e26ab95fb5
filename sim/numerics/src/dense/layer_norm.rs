//! Layer normalisation over the last dimension.

use rayon::prelude::*;

use super::batch_norm::{Affine, Normalised};
use super::parallel::{add_over_rows, rows_of_block};
use super::sums::{sum, sum_of};
use crate::error::{Result, expect_length};

/// Sizes of a tensor of rows × width, each row of which is normalised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerNorm {
    /// Number of rows.
    pub rows: usize,
    /// Elements of a row.
    pub width: usize,
    /// Added to every variance.
    pub epsilon: f32,
}

impl LayerNorm {
    /// `output = (input − mean) · inverse · weight + bias`; writes the mean and the inverse deviation of each row for the
    /// backward pass.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn forward(
        &self,
        input: &[f32],
        affine: Affine,
        mean: &mut [f32],
        inverse: &mut [f32],
        output: &mut [f32],
    ) -> Result {
        self.check(&[input, output], &[affine.weight, affine.bias], &[mean, inverse])?;
        let (width, rows) = (self.width, rows_of_block(self.width));
        if input.is_empty() {
            return Ok(());
        }
        let statistics = mean.par_chunks_mut(rows).zip(inverse.par_chunks_mut(rows));
        output.par_chunks_mut(rows * width).zip(input.par_chunks(rows * width)).zip(statistics).for_each(
            |((output, input), (mean, inverse))| {
                let rows = output.chunks_exact_mut(width).zip(input.chunks_exact(width));
                for ((y, x), (mean, inverse)) in rows.zip(mean.iter_mut().zip(inverse)) {
                    let m = sum(x) / width as f32;
                    let variance = sum_of(x, x, |x, _| (x - m) * (x - m)) / width as f32;
                    let i = 1.0 / (variance + self.epsilon).sqrt();
                    (*mean, *inverse) = (m, i);
                    for ((y, x), (w, b)) in y.iter_mut().zip(x).zip(affine.weight.iter().zip(affine.bias)) {
                        *y = (x - m) * i * w + b;
                    }
                }
            },
        );
        Ok(())
    }

    /// The gradient of the input, from the gradient of the output and the operands and results
    /// of [`forward`](Self::forward).
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn input_gradient(
        &self,
        of: Normalised<'_>,
        gradient: &[f32],
        weight: &[f32],
        input_gradient: &mut [f32],
    ) -> Result {
        let Normalised { input, mean, inverse } = of;
        self.check(&[input, gradient, input_gradient], &[weight], &[mean, inverse])?;
        let (width, rows) = (self.width, rows_of_block(self.width));
        if input.is_empty() {
            return Ok(());
        }
        let share = 1.0 / width as f32;
        input_gradient.par_chunks_mut(rows * width).enumerate().for_each(|(block, into)| {
            for (i, dx) in into.chunks_exact_mut(width).enumerate() {
                let row = block * rows + i;
                let (x, dy) = (&input[row * width..][..width], &gradient[row * width..][..width]);
                let (mean, inverse) = (mean[row], inverse[row]);
                dx.iter_mut().zip(dy.iter().zip(weight)).for_each(|(dx, (dy, w))| *dx = dy * w);
                let shift = sum(dx) * share;
                let slope = sum_of(x, dx, |x, g| (x - mean) * g) * share * inverse * inverse;
                dx.iter_mut().zip(x).for_each(|(dx, x)| *dx = (*dx - shift - (x - mean) * slope) * inverse);
            }
        });
        Ok(())
    }

    /// Adds the gradients of weight and bias.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn parameter_gradients(
        &self,
        of: Normalised<'_>,
        gradient: &[f32],
        weight_gradient: &mut [f32],
        bias_gradient: &mut [f32],
    ) -> Result {
        let Normalised { input, mean, inverse } = of;
        self.check(&[input, gradient], &[weight_gradient, bias_gradient], &[mean, inverse])?;
        let width = self.width;
        super::linear::add_rows(gradient, width, bias_gradient);
        add_over_rows(self.rows, weight_gradient, |rows, columns, sum| {
            for row in rows {
                let [x, dy] = [input, gradient].map(|of| &of[row * width..][columns.clone()]);
                let (mean, inverse) = (mean[row], inverse[row]);
                sum.iter_mut().zip(x.iter().zip(dy)).for_each(|(sum, (x, dy))| *sum += (x - mean) * inverse * dy);
            }
        });
        Ok(())
    }

    fn check(&self, tensors: &[&[f32]], parameters: &[&[f32]], statistics: &[&[f32]]) -> Result {
        let each =
            |what, operands: &[&[f32]], len| operands.iter().try_for_each(|of| expect_length(what, of.len(), len));
        each("a tensor of a layer norm", tensors, self.rows * self.width)?;
        each("a parameter of a layer norm", parameters, self.width)?;
        each("a row's statistics of a layer norm", statistics, self.rows)
    }
}
