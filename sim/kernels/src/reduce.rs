//! Reductions of f32 tensors to one number: minimum, maximum and sum of squares.
//!
//! Definition of the results, on every instruction set:
//! - NaN elements are ignored by the minimum and the maximum, as `fminf` ignores them in DAF's Algorithm 1. An empty
//!   tensor, or one of only NaN, gives the identity: +inf and -inf.
//! - Infinity is a value like any other, and a zero result is +0. So these two have one right result, to the bit,
//!   whatever the instruction set and the order of evaluation.
//! - Sums of squares are 32 f32 lanes that are emptied into eight f64 ones after at most 32 additions each (every 1024
//!   elements), so their error stays near 1e-7 of the sum however long the tensor. Where f32 lanes overflow, or
//!   underflow enough to matter, a piece of 65536 elements is summed again in f64. NaN and infinity in the data
//!   propagate to the sum. The empty sum is 0.
//! - Which elements share a lane, and the order in which lanes are added, depend only on the length, so a sum has the
//!   same bits on every instruction set and at every address.
//!
//! An instruction set that the processor lacks is replaced by the scalar twin. Extrema of tensors that fit
//! in no cache are read as eight parallel streams, which memory serves faster than one; for sums, whose
//! order is fixed, that was slower.

use strum::{Display, IntoStaticStr};

use crate::Isa;

mod extrema;
mod squares;

use extrema::{Largest, Smallest, extremum};
pub use squares::sum_of_squares;

/// The kinds of reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Statistic {
    /// The smallest element.
    Minimum,
    /// The largest element.
    Maximum,
    /// The sum of the squares of the elements.
    SumOfSquares,
}

impl Statistic {
    /// Every statistic.
    pub const ALL: [Self; 3] = [Self::Minimum, Self::Maximum, Self::SumOfSquares];

    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The statistic of an empty tensor.
    pub const fn identity(self) -> f64 {
        match self {
            Self::Minimum => f64::INFINITY,
            Self::Maximum => f64::NEG_INFINITY,
            Self::SumOfSquares => 0.0,
        }
    }

    /// Whether its result is the same, to the bit, in any order of evaluation.
    pub const fn is_order_free(self) -> bool {
        matches!(self, Self::Minimum | Self::Maximum)
    }

    /// The statistic of a tensor. An extremum is an f32, which an f64 represents exactly.
    pub fn of(self, data: &[f32], isa: Isa) -> f64 {
        match self {
            Self::Minimum => f64::from(minimum(data, isa)),
            Self::Maximum => f64::from(maximum(data, isa)),
            Self::SumOfSquares => sum_of_squares(data, isa),
        }
    }
}

/// The smallest element; +inf if there are only NaN.
pub fn minimum(data: &[f32], isa: Isa) -> f32 {
    extremum::<Smallest>(data, isa)
}

/// The largest element; -inf if there are only NaN.
pub fn maximum(data: &[f32], isa: Isa) -> f32 {
    extremum::<Largest>(data, isa)
}
