//! Sums and products of two tensors, the second of which may be smaller: it is broadcast over the leading dimensions.

use rayon::prelude::*;

use super::linear::add_rows;
use super::parallel::{BLOCK, add_over_rows, blocks2, rows_of_block};
use crate::error::{Result, expect_length, expect_rows};

/// `sum[i] = left[i] + right[i mod right.len()]`.
///
/// # Errors
/// A right operand that does not divide the left one, or a sum of another length.
pub fn add(left: &[f32], right: &[f32], sum: &mut [f32]) -> Result {
    combine(left, right, sum, |a, b| a + b)
}

/// `product[i] = left[i] * right[i mod right.len()]`.
///
/// # Errors
/// A right operand that does not divide the left one, or a product of another length.
pub fn multiply(left: &[f32], right: &[f32], product: &mut [f32]) -> Result {
    combine(left, right, product, |a, b| a * b)
}

/// The gradient of an operand that was broadcast: the gradient of the result, summed over the
/// leading dimensions. Overwrites.
///
/// # Errors
/// A gradient that `sum` does not divide.
pub fn sum_to(gradient: &[f32], sum: &mut [f32]) -> Result {
    expect_rows("the gradient of a broadcast", gradient.len(), sum.len())?;
    sum.fill(0.0);
    add_rows(gradient, sum.len(), sum);
    Ok(())
}

/// The gradient of the right operand of a product: `Σ gradient · left` over the dimensions that it was broadcast over.
/// Overwrites. (That of the left operand is [`multiply`]'s product of the gradient and the right operand.)
///
/// # Errors
/// A gradient that `right_gradient` does not divide, or a left operand of another length.
pub fn right_factor_gradient(left: &[f32], gradient: &[f32], right_gradient: &mut [f32]) -> Result {
    expect_length("the left factor of a product", left.len(), gradient.len())?;
    let row = right_gradient.len();
    expect_rows("the gradient of a product", gradient.len(), row)?;
    right_gradient.fill(0.0);
    if row == gradient.len() {
        return multiply(left, gradient, right_gradient);
    }
    let rows = gradient.len().checked_div(row).unwrap_or(0);
    add_over_rows(rows, right_gradient, |rows, columns, sum| {
        for i in rows {
            let [left, gradient] = [left, gradient].map(|of| &of[i * row..][columns.clone()]);
            sum.iter_mut().zip(left.iter().zip(gradient)).for_each(|(sum, (a, g))| *sum += a * g);
        }
    });
    Ok(())
}

fn combine(left: &[f32], right: &[f32], result: &mut [f32], f: impl Fn(f32, f32) -> f32 + Sync) -> Result {
    expect_rows("the left of two operands", left.len(), right.len())?;
    expect_length("the result of two operands", result.len(), left.len())?;
    let rows = |a: &[f32], b: &[f32], y: &mut [f32]| {
        y.iter_mut().zip(a.iter().zip(b)).for_each(|(y, (&a, &b))| *y = f(a, b));
    };
    if left.len() == right.len() {
        blocks2(left, right, result, rows);
    } else if right.len() <= BLOCK && !right.is_empty() {
        let block = rows_of_block(right.len()) * right.len();
        result.par_chunks_mut(block).zip(left.par_chunks(block)).for_each(|(result, left)| {
            for (y, a) in result.chunks_exact_mut(right.len()).zip(left.chunks_exact(right.len())) {
                rows(a, right, y);
            }
        });
    } else if !right.is_empty() {
        for (y, a) in result.chunks_exact_mut(right.len()).zip(left.chunks_exact(right.len())) {
            blocks2(a, right, y, rows);
        }
    }
    Ok(())
}
