//! Sums in f64 throughout, for the pieces on which f32 lanes are not good enough.

use super::sums::Term;

const LANES: usize = 8;

/// Whether a sum of squares from f32 lanes is to be trusted: neither overflowed nor mostly underflow.
///
/// Each term loses at most 2^-150 to underflow, so from `len * 2^-126` on the loss is below 2^-24 of the sum.
pub(super) fn is_good(sum_of_squares: f64, len: usize) -> bool {
    sum_of_squares.is_finite() && sum_of_squares >= len as f64 * f64::from(f32::MIN_POSITIVE)
}

/// The sum of the terms of a tensor, in f64 lanes.
pub(super) fn sum<T: Term>(data: &[f32]) -> f64 {
    let (chunks, rest) = data.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        for (lane, &element) in lanes.iter_mut().zip(chunk) {
            *lane += T::term(element);
        }
    }
    lanes.into_iter().chain(rest.iter().map(|&element| T::term(element))).fold(0.0, |total, part| total + part)
}
