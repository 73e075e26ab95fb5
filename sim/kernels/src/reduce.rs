//! Reductions of f32 tensors to one number: minimum, maximum, absolute maximum, sum, sum of squares, and the three
//! that dynamic quantisation wants at once ([`triple`]).
//!
//! What an answer means, on every instruction set:
//! - NaN elements are ignored by the minimum, the maximum and the absolute maximum, as `fminf` ignores them in DAF's
//!   Algorithm 1. Nothing, or nothing but NaN, gives the identity: +inf, -inf and 0.
//! - Infinity is a value like any other, and a zero answer is +0. So these three have one right answer, to the bit,
//!   whatever the instruction set, the strategy, the number of threads and the order of evaluation.
//! - Sums are f32 lanes that are emptied into f64 after at most 32 additions each (at most every 4096 elements), so
//!   their error stays near 1e-7 of the sum of magnitudes however long the tensor. Where f32 lanes overflow, or
//!   underflow enough to matter, a piece of 65536 elements is summed again in f64. NaN and infinity in the data
//!   reach the sum. The sum of nothing is 0.
//! - The elements that share a lane, and the order in which lanes are added, depend on the length and the instruction
//!   set alone: not on the address, nor on the number of threads. [`Statistic::parallel`] gives the bits of
//!   [`Statistic::of`]. Two instruction sets agree within 1e-6 of the sum of magnitudes.
//!
//! An instruction set that the processor lacks runs the scalar twin. Extrema of tensors that no cache holds are read
//! as eight streams side by side, which memory serves faster than one; for sums, whose order is fixed, it was slower. How a reduction is spread over blocks and
//! threads is [`strategy`]'s.

use strum::{Display, IntoStaticStr};

use crate::isa::Isa;
use crate::simd::STREAMED_FROM;

mod extrema;
mod scalar;
pub mod strategy;
mod sums;
mod wide;

use extrema::{Farthest, Largest, Smallest, extremum, parallel_extremum};
use sums::{Plain, Square, parallel, pieces};

/// Elements that are summed on their own before their sum joins the others: 256 KiB.
///
/// The unit of work of a thread, too, which is what makes sums independent of how many there are.
pub const PIECE: usize = 1 << 16;

/// The tensor size in bytes below which [`Statistic::parallel`] stays on the calling thread.
///
/// Waking a pool costs 10 to 40 microseconds, in which one core reads 1 to 3 MiB from its cache: from 16 MiB on that
/// is less than a tenth of the time, even where the other cores turn out to be busy.
pub const PARALLEL_FROM: usize = 16 << 20;

/// What a reduction computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Statistic {
    /// The smallest element.
    Minimum,
    /// The largest element.
    Maximum,
    /// The largest magnitude of an element.
    AbsoluteMaximum,
    /// The sum of the elements.
    Sum,
    /// The sum of the squares of the elements.
    SumOfSquares,
}

impl Statistic {
    /// Every statistic.
    pub const ALL: [Self; 5] = [Self::Minimum, Self::Maximum, Self::AbsoluteMaximum, Self::Sum, Self::SumOfSquares];

    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The statistic of nothing.
    pub const fn identity(self) -> f64 {
        match self {
            Self::Minimum => f64::INFINITY,
            Self::Maximum => f64::NEG_INFINITY,
            Self::AbsoluteMaximum | Self::Sum | Self::SumOfSquares => 0.0,
        }
    }

    /// Whether its answer is the same, to the bit, in any order of evaluation.
    pub const fn is_order_free(self) -> bool {
        matches!(self, Self::Minimum | Self::Maximum | Self::AbsoluteMaximum)
    }

    /// The statistic of a tensor. An extremum is an f32, which an f64 holds exactly.
    pub fn of(self, data: &[f32], isa: Isa) -> f64 {
        match self {
            Self::Minimum => f64::from(minimum(data, isa)),
            Self::Maximum => f64::from(maximum(data, isa)),
            Self::AbsoluteMaximum => f64::from(absolute_maximum(data, isa)),
            Self::Sum => sum(data, isa),
            Self::SumOfSquares => sum_of_squares(data, isa),
        }
    }

    /// The bits of [`of`](Self::of), by every core for tensors of [`PARALLEL_FROM`] bytes and more.
    pub fn parallel(self, data: &[f32], isa: Isa) -> f64 {
        match self {
            Self::Minimum => f64::from(parallel_extremum::<Smallest>(data, isa)),
            Self::Maximum => f64::from(parallel_extremum::<Largest>(data, isa)),
            Self::AbsoluteMaximum => f64::from(parallel_extremum::<Farthest>(data, isa)),
            Self::Sum => parallel::<Plain, false>(data, isa).sum,
            Self::SumOfSquares => parallel::<Square, false>(data, isa).sum,
        }
    }
}

/// What dynamic quantisation wants to know of a tensor, from one pass over it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Triple {
    /// The smallest element.
    pub minimum: f32,
    /// The largest element.
    pub maximum: f32,
    /// The sum of the squares of the elements.
    pub sum_of_squares: f64,
}

impl Triple {
    /// The triple of an empty tensor.
    pub const IDENTITY: Self = Self { minimum: f32::INFINITY, maximum: f32::NEG_INFINITY, sum_of_squares: 0.0 };
}

/// The smallest element; +inf if there is none but NaN.
pub fn minimum(data: &[f32], isa: Isa) -> f32 {
    extremum::<Smallest>(data, isa)
}

/// The largest element; -inf if there is none but NaN.
pub fn maximum(data: &[f32], isa: Isa) -> f32 {
    extremum::<Largest>(data, isa)
}

/// The largest magnitude of an element; 0 if there is none but NaN.
pub fn absolute_maximum(data: &[f32], isa: Isa) -> f32 {
    extremum::<Farthest>(data, isa)
}

/// The sum of the elements.
pub fn sum(data: &[f32], isa: Isa) -> f64 {
    pieces::<Plain, false>(data, isa).sum
}

/// The sum of the squares of the elements.
pub fn sum_of_squares(data: &[f32], isa: Isa) -> f64 {
    pieces::<Square, false>(data, isa).sum
}

/// Minimum, maximum and sum of squares in one pass; the sum has the bits of [`sum_of_squares`].
pub fn triple(data: &[f32], isa: Isa) -> Triple {
    pieces::<Square, true>(data, isa).into()
}

/// [`triple`], on every core for tensors of [`PARALLEL_FROM`] bytes and more.
pub fn parallel_triple(data: &[f32], isa: Isa) -> Triple {
    parallel::<Square, true>(data, isa).into()
}

/// Whether one thread is enough, and one stream.
fn is_small(data: &[f32]) -> bool {
    const { assert!(PARALLEL_FROM == STREAMED_FROM, "one test is for both") };
    size_of_val(data) < PARALLEL_FROM
}
