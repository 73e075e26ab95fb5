//! Tensors side by side along one axis.
//!
//! A tensor of outer × axis × inner elements is `outer` runs of `axis · inner`; the parts' runs alternate in the whole.

use crate::error::{Result, expect_length};

/// Writes the parts side by side: `outer` runs of each.
///
/// # Errors
/// A part that does not divide into `outer` runs, or a whole that is not as long as its parts together.
pub fn concatenate(outer: usize, parts: &[&[f32]], whole: &mut [f32]) -> Result {
    let runs = runs(outer, parts.iter().map(|part| part.len()), whole.len())?;
    let (width, mut start) = (runs.iter().sum::<usize>(), 0);
    for (part, run) in parts.iter().zip(runs) {
        for (part, whole) in part.chunks_exact(run.max(1)).zip(whole.chunks_exact_mut(width.max(1))) {
            whole[start..start + run].copy_from_slice(part);
        }
        start += run;
    }
    Ok(())
}

fn runs(outer: usize, parts: impl Iterator<Item = usize>, whole: usize) -> Result<Vec<usize>> {
    let outer = outer.max(1);
    let mut total = 0;
    let runs = parts
        .map(|len| {
            total += len;
            expect_length("a part of a concatenation", len, len / outer * outer)?;
            Ok(len / outer)
        })
        .collect::<Result<Vec<_>>>()?;
    expect_length("a concatenation", whole, total)?;
    Ok(runs)
}
