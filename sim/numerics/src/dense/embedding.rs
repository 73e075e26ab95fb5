//! Rows of a table by index.

use rayon::prelude::*;

use super::parallel::rows_of_block;
use crate::error::{NumericsError, Result, expect_length, expect_rows};

/// `output[i] = table[indices[i]]`, rows of `width` elements.
///
/// # Errors
/// An index outside the table, or an operand of the wrong length.
pub fn forward(table: &[f32], width: usize, indices: &[i64], output: &mut [f32]) -> Result {
    check(table.len(), width, indices, output.len())?;
    if width == 0 {
        return Ok(());
    }
    let rows = rows_of_block(width);
    output.par_chunks_mut(rows * width).zip(indices.par_chunks(rows)).for_each(|(output, indices)| {
        for (row, &index) in output.chunks_exact_mut(width).zip(indices) {
            row.copy_from_slice(&table[index as usize * width..][..width]);
        }
    });
    Ok(())
}

/// Adds to each row of the table's gradient those of its uses, in the order of the uses.
///
/// # Errors
/// An index outside the table, or an operand of the wrong length.
pub fn backward(gradient: &[f32], width: usize, indices: &[i64], table_gradient: &mut [f32]) -> Result {
    check(table_gradient.len(), width, indices, gradient.len())?;
    if width == 0 {
        return Ok(());
    }
    for (gradient, &index) in gradient.chunks_exact(width).zip(indices) {
        let row = &mut table_gradient[index as usize * width..][..width];
        row.iter_mut().zip(gradient).for_each(|(row, gradient)| *row += gradient);
    }
    Ok(())
}

fn check(table: usize, width: usize, indices: &[i64], rows: usize) -> Result {
    let height = expect_rows("a table", table, width)?;
    expect_length("the rows of a table", rows, indices.len() * width)?;
    expect_indices("index", indices, height)
}

/// Fails unless every index is below `len`.
pub(super) fn expect_indices(what: &'static str, indices: &[i64], len: usize) -> Result {
    let outside = |&index: &i64| usize::try_from(index).map_or(true, |index| index >= len);
    indices.iter().position(outside).map_or(Ok(()), |index| {
        let (found, most) = (indices[index], len.saturating_sub(1));
        Err(NumericsError::Refused(format!("{what} {index} is {found}; expected 0 to {most}")))
    })
}
