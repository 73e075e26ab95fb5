//! Tensors side by side along one axis, and apart again.
//!
//! A tensor of outer × axis × inner elements is `outer` runs of `axis · inner`; the parts' runs alternate in the whole.

use crate::error::{Result, expect_length};

/// Writes the parts side by side: of each, `outer` runs.
///
/// # Errors
/// A part that is no whole number of runs, or a whole that is not as long as its parts together.
pub fn concatenate(outer: usize, parts: &[&[f32]], whole: &mut [f32]) -> Result {
    let runs = runs(outer, parts.iter().map(|part| part.len()), whole.len())?;
    let (width, mut start) = (runs.iter().sum::<usize>(), 0);
    for (part, run) in parts.iter().zip(runs) {
        copy(outer, (part, 0, run), (whole, start, width), run);
        start += run;
    }
    Ok(())
}

/// Takes the whole apart: the inverse of [`concatenate`], and its gradient.
///
/// # Errors
/// A part that is no whole number of runs, or a whole that is not as long as its parts together.
pub fn split(outer: usize, whole: &[f32], parts: &mut [&mut [f32]]) -> Result {
    let runs = runs(outer, parts.iter().map(|part| part.len()), whole.len())?;
    let (width, mut start) = (runs.iter().sum::<usize>(), 0);
    for (part, run) in parts.iter_mut().zip(runs) {
        copy(outer, (whole, start, width), (part, 0, run), run);
        start += run;
    }
    Ok(())
}

/// Copies `outer` runs of `run` elements, each from a start and a distance to the next.
fn copy(outer: usize, from: (&[f32], usize, usize), to: (&mut [f32], usize, usize), run: usize) {
    for i in 0..outer {
        let (from, to) = (&from.0[from.1 + i * from.2..][..run], &mut to.0[to.1 + i * to.2..][..run]);
        to.copy_from_slice(from);
    }
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
