//! Sums of squares: f32 lanes, emptied into f64 before they lose digits.

use crate::isa::Isa;
use crate::simd::{Kernel, LANES, Simd, dispatch};

/// Elements that are summed on their own before their sum joins the others: 256 KiB.
const PIECE: usize = 1 << 16;
/// The additions after which f32 lanes are emptied into f64: an error of at most 32 half units in the last place.
const ADDITIONS: usize = 32;
/// Lanes of the scalar twin.
const TWIN_LANES: usize = 12;
/// Lanes of sums in f64.
const WIDE_LANES: usize = 8;

/// The sum of the squares of the elements.
pub fn sum_of_squares(data: &[f32], isa: Isa) -> f64 {
    data.chunks(PIECE).map(|piece| one_piece(piece, isa)).fold(0.0, |sum, piece| sum + piece)
}

/// The same of one piece: from f32 lanes or, if they were not good enough, from f64.
fn one_piece(piece: &[f32], isa: Isa) -> f64 {
    let sum = dispatch(isa, Pass(piece));
    if is_good(sum, piece.len()) { sum } else { in_f64(piece) }
}

/// Whether a sum of squares from f32 lanes is to be trusted: neither overflowed nor mostly underflow.
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
        // As many accumulators as hide the latency of additions and fit the registers.
        match S::REGISTER {
            1 => by_twin(self.0),
            LANES => in_vectors::<S, 8>(simd, self.0),
            _ => in_vectors::<S, 2>(simd, self.0),
        }
    }
}

#[inline(always)]
fn in_vectors<S: Simd, const N: usize>(simd: S, piece: &[f32]) -> f64 {
    let (rows, _) = piece.as_chunks::<LANES>().0.as_chunks::<N>();
    let mut totals = simd.no_doubles();
    for rows in rows.chunks(ADDITIONS) {
        let mut so_far = [simd.splat(0.0); N];
        for row in rows {
            for k in 0..N {
                let next = simd.load(&row[k]);
                so_far[k] = simd.fused(next, next, so_far[k]);
            }
        }
        totals = simd.empty(folded(simd, so_far), totals);
    }
    with_tail(simd, totals, &piece[rows.len() * N * LANES..])
}

/// The f64 sums with what is left of a piece, register by register, and the last few elements one by one.
#[inline(always)]
fn with_tail<S: Simd>(simd: S, totals: S::Doubles, tail: &[f32]) -> f64 {
    let registers = tail.chunks_exact(S::REGISTER);
    let (mut last, rest) = ([0.0_f32; LANES], registers.remainder());
    for register in registers {
        for (lane, &next) in last.iter_mut().zip(register) {
            *lane = next.mul_add(next, *lane);
        }
    }
    let lanes = simd.total(simd.empty(simd.load(&last), totals));
    rest.iter().fold(lanes, |total, &element| total + square(element))
}

/// The sum of vectors, as a tree.
#[inline(always)]
fn folded<S: Simd, const N: usize>(simd: S, mut so_far: [S::Floats; N]) -> S::Floats {
    let mut half = N / 2;
    while half > 0 {
        for k in 0..half {
            so_far[k] = simd.plus(so_far[k], so_far[k + half]);
        }
        half /= 2;
    }
    so_far[0]
}

/// The scalar twin: plain Rust over an array of lanes, which the compiler turns into whatever vectors the target has.
fn by_twin(data: &[f32]) -> f64 {
    let (chunks, rest) = data.as_chunks::<TWIN_LANES>();
    let mut total = 0.0;
    for block in chunks.chunks(ADDITIONS) {
        let mut lanes = [0.0; TWIN_LANES];
        add_all(block, &mut lanes);
        total += emptied(&lanes);
    }
    rest.iter().fold(total, |total, &next| total + square(next))
}

/// Never inlined: where the lanes are added up in the same function, the compiler makes vectors of that instead, and
/// the loop runs four to five times slower.
#[inline(never)]
fn add_all(chunks: &[[f32; TWIN_LANES]], lanes: &mut [f32; TWIN_LANES]) {
    let mut so_far = *lanes;
    for chunk in chunks {
        for (lane, &next) in so_far.iter_mut().zip(chunk) {
            *lane += next * next;
        }
    }
    *lanes = so_far;
}

/// The sum of lanes, in four f64 lanes at first.
fn emptied(lanes: &[f32; TWIN_LANES]) -> f64 {
    let mut sums = [0.0_f64; 4];
    for four in lanes.as_chunks::<4>().0 {
        for (sum, &lane) in sums.iter_mut().zip(four) {
            *sum += f64::from(lane);
        }
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}
