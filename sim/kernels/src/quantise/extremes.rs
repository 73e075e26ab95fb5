//! The smallest and the greatest element, ignoring NaN, and whether there may be one.

use crate::simd::{LANES, STREAMED_FROM, STREAMS, Simd, identity, streams};

/// The result of one pass over some values.
#[derive(Clone, Copy)]
pub(super) struct Extremes {
    /// The smallest; +inf if there are none but NaN. The sign of a zero is not defined.
    pub(super) minimum: f32,
    /// The greatest; -inf if there are none but NaN. The sign of a zero is not defined.
    pub(super) maximum: f32,
    /// No value is NaN or infinite.
    pub(super) clean: bool,
}

/// The smallest and the greatest value of a tensor, read as streams if it fits in no cache.
#[inline(always)]
pub(super) fn of_tensor<S: Simd>(simd: S, values: &[f32]) -> Extremes {
    let is_streamed = S::REGISTER > 1 && size_of_val(values) >= STREAMED_FROM;
    if is_streamed { in_streams::<S, 2>(simd, values) } else { extremes(simd, values) }
}

/// The smallest and the greatest value.
#[inline(always)]
pub(super) fn extremes<S: Simd>(simd: S, values: &[f32]) -> Extremes {
    // Four vectors of each kind would spill on sixteen 256-bit registers, and two would wait on a wide machine.
    if S::REGISTER == LANES { in_rows::<S, 4>(simd, values) } else { in_rows::<S, 2>(simd, values) }
}

#[inline(always)]
fn in_rows<S: Simd, const N: usize>(simd: S, values: &[f32]) -> Extremes {
    let (vectors, rest) = values.as_chunks::<LANES>();
    let (rows, single) = vectors.as_chunks::<N>();
    let mut seen = Seen::<S, N>::new(simd);
    for row in rows {
        for (i, vector) in row.iter().enumerate() {
            simd.ask_ahead(vector);
            seen.see(simd, i, vector);
        }
    }
    for vector in single {
        seen.see(simd, 0, vector);
    }
    seen.extremes(simd, rest)
}

#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "streams are read side by side, a vector of each at a time")]
fn in_streams<S: Simd, const N: usize>(simd: S, values: &[f32]) -> Extremes {
    let (streams, rest) = streams(values);
    let mut seen = Seen::<S, N>::new(simd);
    for at in 0..streams[0].len() {
        for i in 0..STREAMS {
            seen.see(simd, i % N, &streams[i][at]);
        }
    }
    seen.extremes(simd, rest)
}

/// Running extremes over vectors.
struct Seen<S: Simd, const N: usize> {
    low: [S::Floats; N],
    high: [S::Floats; N],
    /// 0 times a value is 0, or NaN if the value is NaN or infinite. The multipliers would idle otherwise.
    sum: [S::Floats; N],
}

impl<S: Simd, const N: usize> Seen<S, N> {
    #[inline(always)]
    fn new(simd: S) -> Self {
        let (low, high) = (simd.splat(identity(f32::INFINITY)), simd.splat(identity(f32::NEG_INFINITY)));
        Self { low: [low; N], high: [high; N], sum: [simd.splat(0.0); N] }
    }

    #[inline(always)]
    fn see(&mut self, simd: S, i: usize, vector: &[f32; LANES]) {
        let x = simd.load(vector);
        self.low[i] = simd.smaller(x, self.low[i]);
        self.high[i] = simd.greater(x, self.high[i]);
        self.sum[i] = simd.fused(x, simd.splat(0.0), self.sum[i]);
    }

    /// Of all vectors, and of the elements after the last.
    #[inline(always)]
    fn extremes(self, simd: S, rest: &[f32]) -> Extremes {
        let Self { mut low, mut high, mut sum } = self;
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
}
