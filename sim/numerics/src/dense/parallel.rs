//! How work is split: into blocks of a fixed number of elements, on any number of threads.

use std::ops::Range;

use rayon::prelude::*;

/// Elements of one block of element-wise work: 64 KiB of f32.
pub(super) const BLOCK: usize = 1 << 14;

/// `f(x, y)` over blocks of an input and an output of the same length.
pub(super) fn blocks<X: Sync, Y: Send>(x: &[X], y: &mut [Y], f: impl Fn(&[X], &mut [Y]) + Sync) {
    if y.len() <= BLOCK {
        return f(x, y);
    }
    y.par_chunks_mut(BLOCK).zip(x.par_chunks(BLOCK)).for_each(|(y, x)| f(x, y));
}

/// `f(a, b, y)` over blocks of two inputs and an output of the same length.
pub(super) fn blocks2(a: &[f32], b: &[f32], y: &mut [f32], f: impl Fn(&[f32], &[f32], &mut [f32]) + Sync) {
    if y.len() <= BLOCK {
        return f(a, b, y);
    }
    y.par_chunks_mut(BLOCK).zip(a.par_chunks(BLOCK).zip(b.par_chunks(BLOCK))).for_each(|(y, (a, b))| f(a, b, y));
}

/// How many rows of `row` elements make a block of about [`BLOCK`] elements.
pub(super) const fn rows_of_block(row: usize) -> usize {
    if row == 0 || row >= BLOCK { 1 } else { BLOCK / row }
}

/// Columns from which on tasks split the columns, each summing its own over all rows.
const WIDE: usize = 1 << 11;

/// Adds the sum of `rows` rows to `sum`, in a fixed order. `f(rows, columns, sum)` adds some columns of some
/// rows to their sums in `sum`.
pub(super) fn add_over_rows(rows: usize, sum: &mut [f32], f: impl Fn(Range<usize>, Range<usize>, &mut [f32]) + Sync) {
    let row = sum.len();
    if row >= WIDE {
        let columns = |i: usize| i * WIDE..row.min((i + 1) * WIDE);
        return sum.par_chunks_mut(WIDE).enumerate().for_each(|(i, sum)| f(0..rows, columns(i), sum));
    }
    let each = rows_of_block(row);
    let starts: Vec<usize> = (0..rows).step_by(each).collect();
    let part = |&start: &usize| {
        let mut part = vec![0.0; row];
        f(start..rows.min(start + each), 0..row, &mut part);
        part
    };
    let parts: Vec<Vec<f32>> = starts.par_iter().map(part).collect();
    for part in parts {
        for (sum, part) in sum.iter_mut().zip(part) {
            *sum += part;
        }
    }
}
