//! The kernels of each instruction set, and the choice among them at run time.

use super::Triple;
use super::extrema::{Farthest, Largest, Order, Smallest};
use super::sums::{Plain, Square};
use super::{scalar, wide};
use crate::isa::Isa;

/// The kernels of one instruction set, which the processor has: the only way to one is [`Kernels::of`].
#[derive(Clone, Copy)]
pub(crate) struct Kernels {
    pub(super) minimum: unsafe fn(&[f32]) -> f32,
    pub(super) maximum: unsafe fn(&[f32]) -> f32,
    pub(super) absolute_maximum: unsafe fn(&[f32]) -> f32,
    pub(super) sum: unsafe fn(&[f32]) -> f64,
    pub(super) sum_of_squares: unsafe fn(&[f32]) -> f64,
    pub(super) triple: unsafe fn(&[f32]) -> Triple,
    pub(super) limit: unsafe fn(&[f32]) -> f32,
}

static SCALAR: Kernels = Kernels {
    minimum: scalar::extremum::<Smallest>,
    maximum: scalar::extremum::<Largest>,
    absolute_maximum: scalar::extremum::<Farthest>,
    sum: scalar::sum,
    sum_of_squares: scalar::sum_of_squares,
    triple: scalar::triple,
    limit: scalar::limit,
};

impl Kernels {
    /// The kernels of an instruction set; the scalar twin's where the processor lacks it.
    pub(crate) fn of(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 if isa.is_available() => &super::x86::AVX512,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 if isa.is_available() => &super::x86::AVX2,
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => &super::neon::NEON,
            _ => &SCALAR,
        }
    }

    pub(crate) fn minimum(&self, data: &[f32]) -> f32 {
        // SAFETY: `of` has seen that the processor has these instructions; so for all that follow.
        unsafe { (self.minimum)(data) }
    }

    pub(crate) fn maximum(&self, data: &[f32]) -> f32 {
        // SAFETY: as above.
        unsafe { (self.maximum)(data) }
    }

    pub(crate) fn absolute_maximum(&self, data: &[f32]) -> f32 {
        // SAFETY: as above.
        unsafe { (self.absolute_maximum)(data) }
    }

    /// The sum of one piece.
    pub(crate) fn sum(&self, data: &[f32]) -> f64 {
        // SAFETY: as above.
        let sum = unsafe { (self.sum)(data) };
        // Lanes may overflow where the sum does not; infinity in the data comes out of f64 again.
        if sum.is_finite() { sum } else { wide::sum::<Plain>(data) }
    }

    /// The sum of squares of one piece.
    pub(crate) fn sum_of_squares(&self, data: &[f32]) -> f64 {
        // SAFETY: as above.
        let sum = unsafe { (self.sum_of_squares)(data) };
        if wide::is_good(sum, data.len()) { sum } else { wide::sum::<Square>(data) }
    }

    /// The triple of one piece.
    pub(crate) fn triple(&self, data: &[f32]) -> Triple {
        // SAFETY: as above.
        let mut triple = unsafe { (self.triple)(data) };
        if !wide::is_good(triple.sum_of_squares, data.len()) {
            triple.sum_of_squares = wide::sum::<Square>(data);
        }
        triple
    }

    pub(crate) fn limit(&self, data: &[f32]) -> f32 {
        // SAFETY: as above.
        unsafe { (self.limit)(data) }
    }
}

/// The smaller of two minima.
pub(crate) fn smaller(a: f32, b: f32) -> f32 {
    Smallest::keep(a, b)
}

/// The larger of two maxima.
pub(crate) fn larger(a: f32, b: f32) -> f32 {
    Largest::keep(a, b)
}

/// Compiles the kernels over the registers of one instruction set, with its instructions switched on.
macro_rules! kernels {
    ($table:ident, $module:ident, $lanes:ident, $features:literal) => {
        mod $module {
            use super::$lanes;
            use crate::reduce::extrema::{Farthest, Largest, Smallest, extremum};
            use crate::reduce::sums::{self, Plain, Square};
            use crate::reduce::{Triple, limit};

            // SAFETY of all: whoever calls has seen that the processor has these instructions.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn minimum(data: &[f32]) -> f32 {
                // SAFETY: as above.
                unsafe { extremum::<Smallest, $lanes>(data) }
            }
            #[target_feature(enable = $features)]
            pub(super) unsafe fn maximum(data: &[f32]) -> f32 {
                // SAFETY: as above.
                unsafe { extremum::<Largest, $lanes>(data) }
            }
            #[target_feature(enable = $features)]
            pub(super) unsafe fn absolute_maximum(data: &[f32]) -> f32 {
                // SAFETY: as above.
                unsafe { extremum::<Farthest, $lanes>(data) }
            }
            #[target_feature(enable = $features)]
            pub(super) unsafe fn sum(data: &[f32]) -> f64 {
                // SAFETY: as above.
                unsafe { sums::sum::<Plain, $lanes>(data) }
            }
            #[target_feature(enable = $features)]
            pub(super) unsafe fn sum_of_squares(data: &[f32]) -> f64 {
                // SAFETY: as above.
                unsafe { sums::sum::<Square, $lanes>(data) }
            }
            #[target_feature(enable = $features)]
            pub(super) unsafe fn triple(data: &[f32]) -> Triple {
                // SAFETY: as above.
                unsafe { sums::triple::<$lanes>(data) }
            }
            #[target_feature(enable = $features)]
            pub(super) unsafe fn limit(data: &[f32]) -> f32 {
                // SAFETY: as above.
                unsafe { limit::limit::<$lanes>(data) }
            }
        }

        /// The kernels of this instruction set; only for processors that have it.
        pub(super) static $table: Kernels = Kernels {
            minimum: $module::minimum,
            maximum: $module::maximum,
            absolute_maximum: $module::absolute_maximum,
            sum: $module::sum,
            sum_of_squares: $module::sum_of_squares,
            triple: $module::triple,
            limit: $module::limit,
        };
    };
}
pub(super) use kernels;
