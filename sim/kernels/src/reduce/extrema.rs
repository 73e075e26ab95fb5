//! Minimum and maximum: one order each, shared by the scalar twin and by every vector.

use std::marker::PhantomData;

use crate::Isa;
use crate::simd::{Kernel, LANES, STREAMED_FROM, STREAMS, Simd, dispatch, identity, streams};

/// Lanes of the scalar twin.
const TWIN_LANES: usize = 24;

/// Which of two elements an extremum keeps.
pub(super) trait Order {
    /// The extremum of an empty tensor.
    const IDENTITY: f32;
    /// Keeps `so_far` if `next` is NaN or equal.
    fn keep(so_far: f32, next: f32) -> f32;
    /// The same for every lane.
    fn keep_lanes<S: Simd>(simd: S, so_far: S::Floats, next: S::Floats) -> S::Floats;
    /// The extremum of all lanes, none of which is NaN.
    fn keep_one<S: Simd>(simd: S, lanes: S::Floats) -> f32;
}

/// The order of the minimum.
pub(super) struct Smallest;
/// The order of the maximum.
pub(super) struct Largest;

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

/// The extremum of a tensor.
pub(super) fn extremum<O: Order>(data: &[f32], isa: Isa) -> f32 {
    let extremum = if size_of_val(data) < STREAMED_FROM {
        dispatch(isa, OneStream::<O>(data, PhantomData))
    } else {
        // The result is the same, and loads of 256 bits keep more cache lines in flight than those of 512.
        let isa = if isa == Isa::Avx512 { Isa::Avx2 } else { isa };
        dispatch(isa, Streams::<O>(data, PhantomData))
    };
    // Turns -0 into +0: only the sign of a zero depends on the order of evaluation.
    extremum + 0.0
}

/// A tensor that is read from its first element to its last.
struct OneStream<'a, O>(&'a [f32], PhantomData<O>);

impl<O: Order> Kernel for OneStream<'_, O> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        // Eight registers of accumulators, enough that the loop waits for loads, not for latencies.
        match S::REGISTER {
            1 => by_twin::<O>(self.0),
            LANES => in_vectors::<O, S, 8>(simd, self.0),
            _ => in_vectors::<O, S, 4>(simd, self.0),
        }
    }
}

#[inline(always)]
fn in_vectors<O: Order, S: Simd, const N: usize>(simd: S, mut data: &[f32]) -> f32 {
    let mut so_far = [simd.splat(identity(O::IDENTITY)); N];
    if data.len() >= N * LANES
        && let Some(first) = data.first_chunk()
    {
        // Reading some elements twice costs little, and keeps all later loads within cache lines.
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
    rest.iter().fold(O::keep_one(simd, so_far[0]), |so_far, &next| O::keep(so_far, next))
}

/// A tensor that is read as [`STREAMS`] streams side by side.
struct Streams<'a, O>(&'a [f32], PhantomData<O>);

impl<O: Order> Kernel for Streams<'_, O> {
    type Output = f32;

    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "streams are read side by side, a vector of each at a time")]
    fn run<S: Simd>(self, simd: S) -> f32 {
        if S::REGISTER == 1 {
            return by_twin::<O>(self.0);
        }
        let (streams, rest) = streams(self.0);
        let mut so_far = [simd.splat(identity(O::IDENTITY)); 4];
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

/// The scalar twin: plain Rust over an array of lanes, which the compiler vectorises for the target.
fn by_twin<O: Order>(data: &[f32]) -> f32 {
    let (chunks, rest) = data.as_chunks();
    let mut lanes = [identity(O::IDENTITY); TWIN_LANES];
    keep_all::<O>(chunks, &mut lanes);
    lanes.into_iter().chain(rest.iter().copied()).fold(identity(O::IDENTITY), O::keep)
}

/// Never inlined: if the lanes are joined in the same function, the compiler vectorises that instead, and the loop runs
/// four to five times slower.
#[inline(never)]
fn keep_all<O: Order>(chunks: &[[f32; TWIN_LANES]], lanes: &mut [f32; TWIN_LANES]) {
    let mut so_far = *lanes;
    for chunk in chunks {
        for (lane, &next) in so_far.iter_mut().zip(chunk) {
            *lane = O::keep(*lane, next);
        }
    }
    *lanes = so_far;
}
