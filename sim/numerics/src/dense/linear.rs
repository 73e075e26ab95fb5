//! `x Wᵀ + b` over the last dimension.

use haversack_kernels::Isa;

use super::gemm::{Matrix, multiply};
use super::parallel::add_over_rows;
use crate::error::{Result, expect_length};

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
    /// An operand whose length does not match the sizes.
    pub fn forward(&self, input: &[f32], weight: &[f32], bias: Option<&[f32]>, output: &mut [f32]) -> Result {
        self.check(input.len(), weight.len(), output.len(), bias.map(<[f32]>::len))?;
        let Self { rows, inputs, outputs } = *self;
        if let Some(bias) = bias {
            output.chunks_exact_mut(outputs.max(1)).for_each(|row| row.copy_from_slice(bias));
        }
        let (input, weight) = (Matrix::rows(input, inputs), Matrix::transposed(weight, inputs));
        multiply([rows, inputs, outputs], input, weight, output, bias.is_some(), Isa::chosen()?);
        Ok(())
    }

    /// The gradient of the input, from that of the output.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn input_gradient(&self, gradient: &[f32], weight: &[f32], input_gradient: &mut [f32]) -> Result {
        self.check(input_gradient.len(), weight.len(), gradient.len(), None)?;
        let Self { rows, inputs, outputs } = *self;
        let (gradient, weight) = (Matrix::rows(gradient, outputs), Matrix::rows(weight, inputs));
        multiply([rows, outputs, inputs], gradient, weight, input_gradient, false, Isa::chosen()?);
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
        weight_gradient: &mut [f32],
        bias_gradient: Option<&mut [f32]>,
    ) -> Result {
        let bias = bias_gradient.as_deref().map(<[f32]>::len);
        self.check(input.len(), weight_gradient.len(), gradient.len(), bias)?;
        let Self { rows, inputs, outputs } = *self;
        let (turned, input) = (Matrix::transposed(gradient, outputs), Matrix::rows(input, inputs));
        multiply([outputs, rows, inputs], turned, input, weight_gradient, true, Isa::chosen()?);
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
