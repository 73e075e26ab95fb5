//! Sums of squares: f32 lanes, emptied into f64 before they lose digits.

use crate::Isa;
use crate::simd::{Kernel, LANES, Simd, dispatch};

/// Elements that are summed separately before their sum joins the others: 256 KiB.
const PIECE: usize = 1 << 16;
/// The additions after which f32 lanes are emptied into f64: an error of at most 32 half units in the last place.
const ADDITIONS: usize = 32;
/// Lanes of sums in f64.
const WIDE_LANES: usize = 8;

/// The sum of the squares of the elements.
pub fn sum_of_squares(data: &[f32], isa: Isa) -> f64 {
    data.chunks(PIECE).map(|piece| one_piece(piece, isa)).fold(0.0, |sum, piece| sum + piece)
}

/// The same for one piece: from f32 lanes or, if they were not accurate enough, from f64.
fn one_piece(piece: &[f32], isa: Isa) -> f64 {
    let sum = dispatch(isa, Pass(piece));
    if is_good(sum, piece.len()) { sum } else { in_f64(piece) }
}

/// Whether a sum of squares from f32 lanes is accurate: neither overflowed nor mostly underflow.
///
/// Each term loses at most 2^-150 to underflow, so from `len * 2^-126` on the loss is below 2^-24 of the sum.
fn is_good(sum: f64, len: usize) -> bool {
    sum.is_finite() && sum >= len as f64 * f64::from(f32::MIN_POSITIVE)
}

/// In f64, where products of f32 are exact.
#[inline(always)]
fn square(element: f32) -> f64 {
    f64::from(element) * f64::from(element)
}

/// The sum in f64 lanes.
fn in_f64(data: &[f32]) -> f64 {
    let (chunks, rest) = data.as_chunks::<WIDE_LANES>();
    let mut lanes = [0.0; WIDE_LANES];
    for chunk in chunks {
        for (lane, &element) in lanes.iter_mut().zip(chunk) {
            *lane += square(element);
        }
    }
    lanes.into_iter().chain(rest.iter().map(|&element| square(element))).fold(0.0, |total, part| total + part)
}

/// A pass over a piece.
struct Pass<'a>(&'a [f32]);

impl Kernel for Pass<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f64 {
        let (rows, _) = self.0.as_chunks::<LANES>().0.as_chunks::<2>();
        let mut totals = simd.no_doubles();
        for rows in rows.chunks(ADDITIONS) {
            let mut so_far = [simd.splat(0.0); 2];
            for row in rows {
                for k in 0..2 {
                    let next = simd.load(&row[k]);
                    so_far[k] = simd.fused(next, next, so_far[k]);
                }
            }
            totals = simd.empty(simd.plus(so_far[0], so_far[1]), totals);
        }
        with_tail(simd, totals, &self.0[rows.len() * 2 * LANES..])
    }
}

/// Adds the rest of a piece to the f64 sums, eight by eight, and the last few elements one by one.
#[inline(always)]
fn with_tail<S: Simd>(simd: S, totals: S::Doubles, tail: &[f32]) -> f64 {
    let (eights, rest) = tail.as_chunks::<WIDE_LANES>();
    let mut last = [0.0_f32; LANES];
    for eight in eights {
        for (lane, &next) in last.iter_mut().zip(eight) {
            *lane = next.mul_add(next, *lane);
        }
    }
    let lanes = simd.total(simd.empty(simd.load(&last), totals));
    rest.iter().fold(lanes, |total, &element| total + square(element))
}
