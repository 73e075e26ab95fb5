//! Softmax over the last dimension.

use rayon::prelude::*;

use super::parallel::rows_of_block;
use super::sums::{largest, sum, sum_of};
use super::transcendental::exp;
use crate::error::{Result, expect_length, expect_rows};

/// `output[i] = e^input[i] / Σ e^input` in each row of `row` elements.
///
/// # Errors
/// Operands of different lengths, or of a length that does not divide into whole rows.
pub fn forward(input: &[f32], row: usize, output: &mut [f32]) -> Result {
    expect_rows("the input of a softmax", input.len(), row)?;
    expect_length("the output of a softmax", output.len(), input.len())?;
    if row == 0 {
        return Ok(());
    }
    let block = rows_of_block(row) * row;
    output.par_chunks_mut(block).zip(input.par_chunks(block)).for_each(|(output, input)| {
        for (y, x) in output.chunks_exact_mut(row).zip(input.chunks_exact(row)) {
            let most = largest(x);
            y.iter_mut().zip(x).for_each(|(y, x)| *y = exp(x - most));
            let inverse = 1.0 / sum(y);
            y.iter_mut().for_each(|y| *y *= inverse);
        }
    });
    Ok(())
}

/// The gradient of the input, from the output and its gradient.
///
/// # Errors
/// Operands of different lengths, or of a length that does not divide into whole rows.
pub fn backward(output: &[f32], gradient: &[f32], row: usize, input_gradient: &mut [f32]) -> Result {
    expect_rows("the output of a softmax", output.len(), row)?;
    expect_length("the gradient of a softmax's output", gradient.len(), output.len())?;
    expect_length("the gradient of a softmax's input", input_gradient.len(), output.len())?;
    if row == 0 {
        return Ok(());
    }
    let block = rows_of_block(row) * row;
    input_gradient.par_chunks_mut(block).zip(output.par_chunks(block).zip(gradient.par_chunks(block))).for_each(
        |(dx, (y, dy))| {
            for ((dx, y), dy) in dx.chunks_exact_mut(row).zip(y.chunks_exact(row)).zip(dy.chunks_exact(row)) {
                let dot = sum_of(y, dy, |y, dy| y * dy);
                dx.iter_mut().zip(y.iter().zip(dy)).for_each(|(dx, (y, dy))| *dx = y * (dy - dot));
            }
        },
    );
    Ok(())
}
