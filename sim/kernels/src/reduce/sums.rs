//! Sums, sums of squares and the fused triple over vectors: f32 lanes, emptied into f64 before they lose digits.

use std::marker::PhantomData;

use rayon::iter::ParallelIterator;
use rayon::slice::ParallelSlice;

use super::extrema::{Largest, Order, Smallest, canonical};
use super::{PIECE, Triple, is_small, scalar, wide};
use crate::isa::Isa;
use crate::simd::{Kernel, LANES, Simd, dispatch};

/// The additions after which f32 lanes are emptied into f64: an error of at most 32 half units in the last place.
pub(super) const ADDITIONS: usize = 32;

/// What a sum adds for an element.
pub(super) trait Term {
    /// In f64, where products of f32 are exact.
    fn term(element: f32) -> f64;
    /// Adds it to a lane, as [`add`](Self::add) does.
    fn add_one(so_far: f32, next: f32) -> f32;
    /// Adds it to lanes.
    fn add<S: Simd>(simd: S, so_far: S::Floats, next: S::Floats) -> S::Floats;
    /// The sum of a piece by the scalar twin.
    fn by_scalar(piece: &[f32]) -> f64;
    /// Whether the sum of a piece that came from f32 lanes is to be trusted.
    fn is_good(sum: f64, len: usize) -> bool;
}

/// The element itself.
pub(super) struct Plain;
/// Its square.
pub(super) struct Square;

impl Term for Plain {
    #[inline(always)]
    fn term(element: f32) -> f64 {
        f64::from(element)
    }
    #[inline(always)]
    fn add_one(so_far: f32, next: f32) -> f32 {
        so_far + next
    }
    #[inline(always)]
    fn add<S: Simd>(simd: S, so_far: S::Floats, next: S::Floats) -> S::Floats {
        simd.plus(so_far, next)
    }
    fn by_scalar(piece: &[f32]) -> f64 {
        scalar::sum(piece)
    }
    /// Lanes may overflow where the sum does not; infinity in the data comes out of f64 again.
    fn is_good(sum: f64, _: usize) -> bool {
        sum.is_finite()
    }
}

impl Term for Square {
    #[inline(always)]
    fn term(element: f32) -> f64 {
        f64::from(element) * f64::from(element)
    }
    #[inline(always)]
    fn add_one(so_far: f32, next: f32) -> f32 {
        next.mul_add(next, so_far)
    }
    #[inline(always)]
    fn add<S: Simd>(simd: S, so_far: S::Floats, next: S::Floats) -> S::Floats {
        simd.fused(next, next, so_far)
    }
    fn by_scalar(piece: &[f32]) -> f64 {
        scalar::triple(piece).sum_of_squares
    }
    fn is_good(sum: f64, len: usize) -> bool {
        wide::is_good(sum, len)
    }
}

/// The sum of some terms and, if they were watched, the range of the elements.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub(super) sum: f64,
    minimum: f32,
    maximum: f32,
}

impl From<Seen> for Triple {
    fn from(Seen { sum, minimum, maximum }: Seen) -> Self {
        Self { minimum: canonical(minimum), maximum: canonical(maximum), sum_of_squares: sum }
    }
}

impl Seen {
    /// Of no elements.
    const NOTHING: Self = Self { sum: 0.0, minimum: f32::INFINITY, maximum: f32::NEG_INFINITY };

    /// Of two tensors, one after the other.
    fn then(self, next: Self) -> Self {
        Self {
            sum: self.sum + next.sum,
            minimum: Smallest::keep(self.minimum, next.minimum),
            maximum: Largest::keep(self.maximum, next.maximum),
        }
    }
}

/// The sum of the terms of a tensor, piece by piece, and its range if it is to be watched.
pub(super) fn pieces<T: Term, const WATCH: bool>(data: &[f32], isa: Isa) -> Seen {
    data.chunks(PIECE).map(|piece| one_piece::<T, WATCH>(piece, isa)).fold(Seen::NOTHING, Seen::then)
}

/// [`pieces`], on every core if the tensor is large.
pub(super) fn parallel<T: Term, const WATCH: bool>(data: &[f32], isa: Isa) -> Seen {
    if is_small(data) {
        return pieces::<T, WATCH>(data, isa);
    }
    // One answer a piece, in the order of the pieces, so that they can be added in it.
    let parts: Vec<Seen> = data.par_chunks(PIECE).map(|piece| one_piece::<T, WATCH>(piece, isa)).collect();
    parts.into_iter().fold(Seen::NOTHING, Seen::then)
}

/// The same of a tensor of any length as one piece: from f32 lanes or, if they were not good enough, from f64.
pub(super) fn one_piece<T: Term, const WATCH: bool>(piece: &[f32], isa: Isa) -> Seen {
    let seen = dispatch(isa, Pass::<T, WATCH>(piece, PhantomData));
    let sum = if T::is_good(seen.sum, piece.len()) { seen.sum } else { wide::sum::<T>(piece) };
    Seen { sum, ..seen }
}

/// A pass over a piece.
struct Pass<'a, T, const WATCH: bool>(&'a [f32], PhantomData<T>);

impl<T: Term, const WATCH: bool> Kernel for Pass<'_, T, WATCH> {
    type Output = Seen;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Seen {
        // As many accumulators as hide the latency of additions and, watched, fit the registers: eight of thirty-two, or
        // two pairs of sixteen.
        match S::REGISTER {
            1 if WATCH => {
                let Triple { minimum, maximum, sum_of_squares: sum } = scalar::triple(self.0);
                Seen { sum, minimum, maximum }
            }
            1 => Seen { sum: T::by_scalar(self.0), ..Seen::NOTHING },
            LANES => in_vectors::<T, S, 8, WATCH>(simd, self.0),
            _ => in_vectors::<T, S, 2, WATCH>(simd, self.0),
        }
    }
}

#[inline(always)]
fn in_vectors<T: Term, S: Simd, const N: usize, const WATCH: bool>(simd: S, piece: &[f32]) -> Seen {
    let (rows, _) = piece.as_chunks::<LANES>().0.as_chunks::<N>();
    let (mut low, mut high) = ([simd.splat(f32::INFINITY); N], [simd.splat(f32::NEG_INFINITY); N]);
    let mut totals = simd.no_doubles();
    for rows in rows.chunks(ADDITIONS) {
        let mut so_far = [simd.splat(0.0); N];
        for row in rows {
            for k in 0..N {
                let next = simd.load(&row[k]);
                so_far[k] = T::add(simd, so_far[k], next);
                if WATCH {
                    (low[k], high[k]) = (simd.smaller(next, low[k]), simd.greater(next, high[k]));
                }
            }
        }
        totals = simd.empty(folded(simd, so_far), totals);
    }
    let tail = &piece[rows.len() * N * LANES..];
    let mut seen = Seen { sum: with_tail::<T, S>(simd, totals, tail), ..Seen::NOTHING };
    if WATCH {
        for k in 1..N {
            (low[0], high[0]) = (simd.smaller(low[k], low[0]), simd.greater(high[k], high[0]));
        }
        let (minimum, maximum) = (simd.smallest(low[0]), simd.greatest(high[0]));
        seen.minimum = tail.iter().fold(minimum, |so_far, &next| Smallest::keep(so_far, next));
        seen.maximum = tail.iter().fold(maximum, |so_far, &next| Largest::keep(so_far, next));
    }
    seen
}

/// The f64 sums with what is left of a piece, register by register, and the last few elements one by one.
#[inline(always)]
fn with_tail<T: Term, S: Simd>(simd: S, totals: S::Doubles, tail: &[f32]) -> f64 {
    let registers = tail.chunks_exact(S::REGISTER);
    let (mut last, rest) = ([0.0; LANES], registers.remainder());
    for register in registers {
        for (lane, &next) in last.iter_mut().zip(register) {
            *lane = T::add_one(*lane, next);
        }
    }
    let lanes = simd.total(simd.empty(simd.load(&last), totals));
    rest.iter().fold(lanes, |total, &element| total + T::term(element))
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
