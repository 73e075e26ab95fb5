//! The smallest and the greatest element, passing over NaN, and whether there may be one.

use super::simd::{LANES, Simd};

/// What one pass over some values finds.
#[derive(Clone, Copy)]
pub(super) struct Extremes {
    /// The smallest; +inf where there are none but NaN. The sign of a zero is not defined.
    pub(super) minimum: f32,
    /// The greatest; -inf where there are none but NaN. The sign of a zero is not defined.
    pub(super) maximum: f32,
    /// No value is NaN or infinite.
    pub(super) clean: bool,
}

/// The smallest and the greatest value.
#[inline(always)]
pub(super) fn extremes<S: Simd>(simd: S, values: &[f32]) -> Extremes {
    // Four vectors of each kind would spill on sixteen 256-bit registers, and two would wait on a wide machine.
    if S::WIDE { accumulate::<S, 4>(simd, values) } else { accumulate::<S, 2>(simd, values) }
}

#[inline(always)]
fn accumulate<S: Simd, const N: usize>(simd: S, values: &[f32]) -> Extremes {
    let (vectors, rest) = values.as_chunks::<LANES>();
    let (rows, single) = vectors.as_chunks::<N>();
    let mut low = [simd.splat(f32::INFINITY); N];
    let mut high = [simd.splat(f32::NEG_INFINITY); N];
    // 0 times a value is 0, or NaN if the value is NaN or infinite. The multipliers would idle otherwise.
    let zero = simd.splat(0.0);
    let mut sum = [zero; N];
    for row in rows {
        for i in 0..N {
            simd.ask_ahead(&row[i]);
            let x = simd.load(&row[i]);
            low[i] = simd.smaller(x, low[i]);
            high[i] = simd.greater(x, high[i]);
            sum[i] = simd.fused(x, zero, sum[i]);
        }
    }
    for vector in single {
        let x = simd.load(vector);
        low[0] = simd.smaller(x, low[0]);
        high[0] = simd.greater(x, high[0]);
        sum[0] = simd.fused(x, zero, sum[0]);
    }
    for i in 1..N {
        low[0] = simd.smaller(low[i], low[0]);
        high[0] = simd.greater(high[i], high[0]);
        sum[0] = simd.subtract(sum[0], sum[i]);
    }
    let (mut minimum, mut maximum) = (simd.smallest(low[0]), simd.greatest(high[0]));
    let mut clean = simd.are_finite(sum[0]);
    for &x in rest {
        minimum = if x < minimum { x } else { minimum };
        maximum = if x > maximum { x } else { maximum };
        clean &= x.is_finite();
    }
    Extremes { minimum, maximum, clean }
}
