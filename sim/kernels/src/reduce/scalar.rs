//! The scalar twin: plain Rust over fixed arrays of lanes, which the compiler turns into whatever vectors the target
//! has.
//!
//! It does so as long as a loop over chunks ends by storing its lanes: hence the functions that update lanes in place
//! and are never inlined. Where the lanes are added up in the same function, the compiler makes vectors of that
//! instead, and the loop runs four to five times slower.

use super::Triple;
use super::extrema::{Largest, Order, Smallest};
use super::sums::ADDITIONS;

/// Lanes of an extremum.
const KEPT: usize = 24;
/// Lanes of a sum: eight registers of four.
const LANES: usize = 32;
/// Lanes of the fused triple, which keeps three of each.
const FUSED: usize = 12;

/// The extremum of a tensor.
pub(super) fn extremum<O: Order>(data: &[f32]) -> f32 {
    let (chunks, rest) = data.as_chunks();
    let mut lanes = [O::IDENTITY; KEPT];
    keep_all::<O>(chunks, &mut lanes);
    let rest = rest.iter().map(|&next| O::see(next));
    lanes.into_iter().chain(rest).fold(O::IDENTITY, O::keep)
}

#[inline(never)]
fn keep_all<O: Order>(chunks: &[[f32; KEPT]], lanes: &mut [f32; KEPT]) {
    let mut so_far = *lanes;
    for chunk in chunks {
        for (lane, &next) in so_far.iter_mut().zip(chunk) {
            *lane = O::keep(*lane, O::see(next));
        }
    }
    *lanes = so_far;
}

/// The sum of the elements.
pub(super) fn sum(data: &[f32]) -> f64 {
    let (chunks, rest) = data.as_chunks::<LANES>();
    let mut total = 0.0;
    for block in chunks.chunks(ADDITIONS) {
        let mut lanes = [0.0; LANES];
        add_all(block, &mut lanes);
        total += emptied(&lanes);
    }
    rest.iter().fold(total, |total, &next| total + f64::from(next))
}

#[inline(never)]
fn add_all(chunks: &[[f32; LANES]], lanes: &mut [f32; LANES]) {
    let mut so_far = *lanes;
    for chunk in chunks {
        for (lane, &next) in so_far.iter_mut().zip(chunk) {
            *lane += next;
        }
    }
    *lanes = so_far;
}

/// The lanes of the fused triple.
struct Fused {
    smallest: [f32; FUSED],
    largest: [f32; FUSED],
    squares: [f32; FUSED],
}

/// Minimum, maximum and sum of squares in one pass.
pub(super) fn triple(data: &[f32]) -> Triple {
    let (chunks, rest) = data.as_chunks::<FUSED>();
    let mut lanes =
        Fused { smallest: [f32::INFINITY; FUSED], largest: [f32::NEG_INFINITY; FUSED], squares: [0.0; FUSED] };
    let mut total = 0.0;
    for block in chunks.chunks(ADDITIONS) {
        lanes.squares = [0.0; FUSED];
        fuse_all(block, &mut lanes);
        total += emptied(&lanes.squares);
    }
    let smallest = lanes.smallest.iter().chain(rest);
    let largest = lanes.largest.iter().chain(rest);
    Triple {
        minimum: smallest.fold(f32::INFINITY, |so_far, &next| Smallest::keep(so_far, next)),
        maximum: largest.fold(f32::NEG_INFINITY, |so_far, &next| Largest::keep(so_far, next)),
        sum_of_squares: rest.iter().fold(total, |total, &next| total + f64::from(next) * f64::from(next)),
    }
}

#[inline(never)]
fn fuse_all(chunks: &[[f32; FUSED]], lanes: &mut Fused) {
    let Fused { mut smallest, mut largest, mut squares } = *lanes;
    for chunk in chunks {
        for (lane, &next) in squares.iter_mut().zip(chunk) {
            *lane += next * next;
        }
        for (lane, &next) in smallest.iter_mut().zip(chunk) {
            *lane = Smallest::keep(*lane, next);
        }
        for (lane, &next) in largest.iter_mut().zip(chunk) {
            *lane = Largest::keep(*lane, next);
        }
    }
    *lanes = Fused { smallest, largest, squares };
}

/// The sum of lanes, in four f64 lanes at first.
fn emptied<const N: usize>(lanes: &[f32; N]) -> f64 {
    let mut sums = [0.0_f64; 4];
    for four in lanes.as_chunks::<4>().0 {
        for (sum, &lane) in sums.iter_mut().zip(four) {
            *sum += f64::from(lane);
        }
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}
