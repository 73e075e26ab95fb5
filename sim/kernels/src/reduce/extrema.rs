//! Minimum, maximum and absolute maximum: one order each, shared by the scalar twin and by every vector.

use std::marker::PhantomData;

use rayon::iter::ParallelIterator;
use rayon::slice::ParallelSlice;

use super::{PIECE, is_small, scalar};
use crate::isa::Isa;
use crate::simd::{Kernel, LANES, STREAMS, Simd, dispatch, streams};

/// Which of two elements an extremum keeps.
pub(super) trait Order {
    /// The extremum of nothing.
    const IDENTITY: f32;
    /// What of an element is compared.
    #[inline(always)]
    fn see(element: f32) -> f32 {
        element
    }
    /// Keeps `so_far` if `next`, which has been seen, is NaN or equal.
    fn keep(so_far: f32, next: f32) -> f32;
    /// Sees and keeps, for every lane.
    fn keep_lanes<S: Simd>(simd: S, so_far: S::Floats, next: S::Floats) -> S::Floats;
    /// What all lanes keep, none of which is NaN.
    fn keep_one<S: Simd>(simd: S, lanes: S::Floats) -> f32;
}

/// The order of the minimum.
pub(super) struct Smallest;
/// The order of the maximum.
pub(super) struct Largest;
/// The order of the absolute maximum.
pub(super) struct Farthest;

impl Order for Smallest {
    const IDENTITY: f32 = f32::INFINITY;
    #[inline(always)]
    fn keep(so_far: f32, next: f32) -> f32 {
        if next < so_far { next } else { so_far }
    }
    #[inline(always)]
    fn keep_lanes<S: Simd>(simd: S, so_far: S::Floats, next: S::Floats) -> S::Floats {
        simd.smaller(next, so_far)
    }
    #[inline(always)]
    fn keep_one<S: Simd>(simd: S, lanes: S::Floats) -> f32 {
        simd.smallest(lanes)
    }
}

impl Order for Largest {
    const IDENTITY: f32 = f32::NEG_INFINITY;
    #[inline(always)]
    fn keep(so_far: f32, next: f32) -> f32 {
        if next > so_far { next } else { so_far }
    }
    #[inline(always)]
    fn keep_lanes<S: Simd>(simd: S, so_far: S::Floats, next: S::Floats) -> S::Floats {
        simd.greater(next, so_far)
    }
    #[inline(always)]
    fn keep_one<S: Simd>(simd: S, lanes: S::Floats) -> f32 {
        simd.greatest(lanes)
    }
}

impl Order for Farthest {
    const IDENTITY: f32 = 0.0;
    #[inline(always)]
    fn see(element: f32) -> f32 {
        element.abs()
    }
    #[inline(always)]
    fn keep(so_far: f32, next: f32) -> f32 {
        Largest::keep(so_far, next)
    }
    #[inline(always)]
    fn keep_lanes<S: Simd>(simd: S, so_far: S::Floats, next: S::Floats) -> S::Floats {
        let magnitude = simd.and(simd.bits(next), simd.splat_word(!SIGN));
        simd.greater(simd.floats_of_bits(magnitude), so_far)
    }
    #[inline(always)]
    fn keep_one<S: Simd>(simd: S, lanes: S::Floats) -> f32 {
        simd.greatest(lanes)
    }
}

/// The bit of an f32's sign.
const SIGN: u32 = 1 << 31;

/// Turns -0 into +0: which zero wins is the one thing about an extremum that shows the order of evaluation.
#[inline(always)]
pub(super) fn canonical(extremum: f32) -> f32 {
    extremum + 0.0
}

/// The extremum of a tensor.
pub(super) fn extremum<O: Order>(data: &[f32], isa: Isa) -> f32 {
    canonical(if is_small(data) {
        dispatch(isa, OneStream::<O>(data, PhantomData))
    } else {
        dispatch(isa.for_streams(), Streams::<O>(data, PhantomData))
    })
}

/// The same, on every core if the tensor is large.
pub(super) fn parallel_extremum<O: Order>(data: &[f32], isa: Isa) -> f32 {
    if is_small(data) {
        return extremum::<O>(data, isa);
    }
    data.par_chunks(PIECE).map(|piece| extremum::<O>(piece, isa)).reduce(|| O::IDENTITY, O::keep)
}

/// A tensor that is read from its first element to its last.
struct OneStream<'a, O>(&'a [f32], PhantomData<O>);

impl<O: Order> Kernel for OneStream<'_, O> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        // Enough accumulators that loads, not latencies, are what they wait for: eight registers.
        match S::REGISTER {
            1 => scalar::extremum::<O>(self.0),
            LANES => in_vectors::<O, S, 8>(simd, self.0),
            _ => in_vectors::<O, S, 4>(simd, self.0),
        }
    }
}

#[inline(always)]
fn in_vectors<O: Order, S: Simd, const N: usize>(simd: S, mut data: &[f32]) -> f32 {
    let mut so_far = [simd.splat(O::IDENTITY); N];
    if data.len() >= N * LANES
        && let Some(first) = data.first_chunk()
    {
        // Reading some elements twice costs nothing here, and lets all later loads stay inside cache lines.
        so_far[0] = O::keep_lanes(simd, so_far[0], simd.load(first));
        data = &data[data.as_ptr().align_offset(LANES * size_of::<f32>()).min(LANES)..];
    }
    let (vectors, rest) = data.as_chunks::<LANES>();
    let (rows, single) = vectors.as_chunks::<N>();
    for row in rows {
        for k in 0..N {
            so_far[k] = O::keep_lanes(simd, so_far[k], simd.load(&row[k]));
        }
    }
    for vector in single {
        so_far[0] = O::keep_lanes(simd, so_far[0], simd.load(vector));
    }
    for k in 1..N {
        so_far[0] = O::keep_lanes(simd, so_far[0], so_far[k]);
    }
    rest.iter().fold(O::keep_one(simd, so_far[0]), |so_far, &next| O::keep(so_far, O::see(next)))
}

/// A tensor that is read as [`STREAMS`] streams side by side.
struct Streams<'a, O>(&'a [f32], PhantomData<O>);

impl<O: Order> Kernel for Streams<'_, O> {
    type Output = f32;

    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "streams are read side by side, a vector of each at a time")]
    fn run<S: Simd>(self, simd: S) -> f32 {
        if S::REGISTER == 1 {
            return scalar::extremum::<O>(self.0);
        }
        let (streams, rest) = streams(self.0);
        let mut so_far = [simd.splat(O::IDENTITY); 4];
        for at in 0..streams[0].len() {
            for k in 0..STREAMS {
                so_far[k % 4] = O::keep_lanes(simd, so_far[k % 4], simd.load(&streams[k][at]));
            }
        }
        for k in 1..4 {
            so_far[0] = O::keep_lanes(simd, so_far[0], so_far[k]);
        }
        let rest = in_vectors::<O, S, 4>(simd, rest);
        O::keep(O::keep_one(simd, so_far[0]), rest)
    }
}
