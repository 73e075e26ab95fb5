//! `x Wᵀ + b` over the last dimension.

use haversack_kernels::Isa;
use rayon::prelude::*;

use super::gemm::{Matrix, multiply};
use super::parallel::add_over_rows;
use crate::error::{Result, expect_length};

/// Rows or columns of a product that one task computes.
const TILE: usize = 64;

/// Sizes of a linear layer: the weight is outputs × inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    /// Rows of the input: samples, or samples × tokens.
    pub rows: usize,
    /// Elements of a row of the input.
    pub inputs: usize,
    /// Elements of a row of the output.
    pub outputs: usize,
}

impl Linear {
    /// `output = input weightᵀ + bias`.
    ///
    /// # Errors
    /// An operand whose length is not what the sizes say.
    pub fn forward(&self, input: &[f32], weight: &[f32], bias: Option<&[f32]>, output: &mut [f32]) -> Result {
        self.check(input.len(), weight.len(), output.len(), bias.map(<[f32]>::len))?;
        let Self { inputs, outputs, .. } = *self;
        let isa = Isa::chosen()?;
        output.par_chunks_mut((TILE * outputs).max(1)).zip(input.par_chunks((TILE * inputs).max(1))).for_each(
            |(output, input)| {
                let add = bias.is_some_and(|bias| {
                    output.chunks_exact_mut(outputs).for_each(|row| row.copy_from_slice(bias));
                    true
                });
                let rows = output.len() / outputs;
                let weight = Matrix::transposed(weight, inputs);
                multiply([rows, inputs, outputs], Matrix::rows(input, inputs), weight, output, add, isa);
            },
        );
        Ok(())
    }

    /// The gradient of the input, from that of the output.
    ///
    /// # Errors
    /// An operand whose length is not what the sizes say.
    pub fn input_gradient(&self, gradient: &[f32], weight: &[f32], input_gradient: &mut [f32]) -> Result {
        self.check(input_gradient.len(), weight.len(), gradient.len(), None)?;
        let Self { inputs, outputs, .. } = *self;
        let isa = Isa::chosen()?;
        input_gradient
            .par_chunks_mut((TILE * inputs).max(1))
            .zip(gradient.par_chunks((TILE * outputs).max(1)))
            .for_each(|(into, gradient)| {
                let sizes = [into.len() / inputs, outputs, inputs];
                multiply(sizes, Matrix::rows(gradient, outputs), Matrix::rows(weight, inputs), into, false, isa);
            });
        Ok(())
    }

    /// Adds the gradients of the weight and the bias.
    ///
    /// # Errors
    /// An operand whose length is not what the sizes say.
    pub fn weight_gradient(
        &self,
        input: &[f32],
        gradient: &[f32],
        weight_gradient: &mut [f32],
        bias_gradient: Option<&mut [f32]>,
    ) -> Result {
        let bias = bias_gradient.as_deref().map(<[f32]>::len);
        self.check(input.len(), weight_gradient.len(), gradient.len(), bias)?;
        let Self { rows, inputs, outputs } = *self;
        let isa = Isa::chosen()?;
        weight_gradient.par_chunks_mut((TILE * inputs).max(1)).enumerate().for_each(|(tile, into)| {
            let sizes = [into.len() / inputs, rows, inputs];
            let gradient = Matrix { data: gradient.get(tile * TILE..).unwrap_or(&[]), row: 1, column: outputs };
            multiply(sizes, gradient, Matrix::rows(input, inputs), into, true, isa);
        });
        if let Some(bias) = bias_gradient {
            add_rows(gradient, outputs, bias);
        }
        Ok(())
    }

    fn check(&self, input: usize, weight: usize, output: usize, bias: Option<usize>) -> Result {
        expect_length("the input of a linear layer", input, self.rows * self.inputs)?;
        expect_length("the weight of a linear layer", weight, self.outputs * self.inputs)?;
        expect_length("the output of a linear layer", output, self.rows * self.outputs)?;
        bias.map_or(Ok(()), |bias| expect_length("the bias of a linear layer", bias, self.outputs))
    }
}

/// Adds the sum of the rows of `values` to `sum`.
pub(super) fn add_rows(values: &[f32], row: usize, sum: &mut [f32]) {
    let rows = values.len().checked_div(row).unwrap_or(0);
    add_over_rows(rows, sum, |rows, columns, sum| {
        for i in rows {
            let values = &values[i * row..][columns.clone()];
            sum.iter_mut().zip(values).for_each(|(sum, x)| *sum += x);
        }
    });
}
