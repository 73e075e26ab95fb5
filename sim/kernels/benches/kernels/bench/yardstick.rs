//! Upper limits on the speed of any kernel: how fast this processor reads, writes and copies a tensor and adds up
//! products, with nothing else to do.
//!
//! These functions measure speed and compute nothing useful: [`read`] returns an inaccurate sum, [`multiply_adds`] a
//! meaningless one. Beyond the last cache, stores that bypass it save reading the line that they overwrite, and several
//! streams are read faster than one; within it both cost. The fastest way is the limit.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64;
use std::hint::black_box;

use haversack_kernels::Isa;
use haversack_kernels::int8::{STRETCH, Tile, add_products};
use haversack_kernels::simd::{Kernel, LANES, STREAMS, Simd, Tiled, dispatch, dispatch_tiled, streams};

/// A cache line of f32.
const LINE: usize = 64;

/// Adds up a tensor in f32 and nothing else: no f64, no care for NaN, no accuracy. Read as one stream, or as eight.
pub(crate) fn read(data: &[f32], in_streams: bool, isa: Isa) -> f32 {
    if in_streams { dispatch(isa, ReadStreams(data)) } else { dispatch(isa, Read(data)) }
}

struct Read<'a>(&'a [f32]);

impl Kernel for Read<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        // Eight registers of any width.
        if S::REGISTER == LANES { read_rows::<S, 8>(simd, self.0) } else { read_rows::<S, 4>(simd, self.0) }
    }
}

#[inline(always)]
fn read_rows<S: Simd, const N: usize>(simd: S, data: &[f32]) -> f32 {
    let (head, data) = data.split_at(data.as_ptr().align_offset(LINE).min(data.len()));
    let (vectors, rest) = data.as_chunks::<LANES>();
    let (rows, single) = vectors.as_chunks::<N>();
    let mut so_far = [simd.splat(0.0); N];
    for row in rows {
        for k in 0..N {
            so_far[k] = simd.plus(so_far[k], simd.load(&row[k]));
        }
    }
    let ends = head.iter().chain(single.as_flattened()).chain(rest).sum::<f32>();
    sum(simd, so_far) + ends
}

struct ReadStreams<'a>(&'a [f32]);

impl Kernel for ReadStreams<'_> {
    type Output = f32;

    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "streams are read side by side, a vector of each at a time")]
    fn run<S: Simd>(self, simd: S) -> f32 {
        let (streams, rest) = streams(self.0);
        let mut so_far = [simd.splat(0.0); STREAMS];
        for at in 0..streams[0].len() {
            for k in 0..STREAMS {
                so_far[k] = simd.plus(so_far[k], simd.load(&streams[k][at]));
            }
        }
        sum(simd, so_far) + rest.iter().sum::<f32>()
    }
}

#[inline(always)]
fn sum<S: Simd, const N: usize>(simd: S, mut so_far: [S::Floats; N]) -> f32 {
    for k in 1..N {
        so_far[0] = simd.plus(so_far[0], so_far[k]);
    }
    let mut lanes = [0.0; LANES];
    simd.store(so_far[0], &mut lanes);
    lanes.iter().sum()
}

/// Writes `value` to every element, past the caches if `past_caches`.
pub(crate) fn write(to: &mut [f32], value: f32, past_caches: bool, isa: Isa) {
    dispatch(isa, Write { from: None, to, value, past_caches });
}

/// Copies as many elements as both have, past the caches if `past_caches`.
pub(crate) fn copy(from: &[f32], to: &mut [f32], past_caches: bool, isa: Isa) {
    let length = from.len().min(to.len());
    dispatch(isa, Write { from: Some(&from[..length]), to: &mut to[..length], value: 0.0, past_caches });
}

struct Write<'a> {
    from: Option<&'a [f32]>,
    to: &'a mut [f32],
    value: f32,
    past_caches: bool,
}

impl Kernel for Write<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { from, to, value, past_caches } = self;
        let head = to.as_ptr().align_offset(LINE).min(to.len());
        let (first, to) = to.split_at_mut(head);
        let (vectors, rest) = to.as_chunks_mut::<LANES>();
        let Some(from) = from else {
            first.fill(value);
            rest.fill(value);
            if past_caches {
                vectors.iter_mut().for_each(|to| stream(&[value; LANES], to));
                fence();
            } else {
                let value = simd.splat(value);
                for to in vectors {
                    simd.store(value, to);
                }
            }
            return;
        };
        let (from_first, from) = from.split_at(head);
        let (from_vectors, from_rest) = from.as_chunks::<LANES>();
        first.copy_from_slice(from_first);
        rest.copy_from_slice(from_rest);
        if past_caches {
            vectors.iter_mut().zip(from_vectors).for_each(|(to, from)| stream(from, to));
            fence();
        } else {
            vectors.copy_from_slice(from_vectors);
        }
    }
}

/// Stores to an address that is a multiple of [`LINE`], past the caches where the processor can. [`fence`] must follow
/// before other code reads the data.
#[inline(always)]
fn stream(value: &[f32; LANES], to: &mut [f32; LANES]) {
    #[cfg(target_arch = "x86_64")]
    for (value, to) in value.as_chunks::<4>().0.iter().zip(to.as_chunks_mut::<4>().0) {
        // SAFETY: SSE is part of every x86-64, both arrays have four elements, and the caller has aligned the address.
        unsafe { x86_64::_mm_stream_ps(to.as_mut_ptr(), x86_64::_mm_loadu_ps(value.as_ptr())) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    to.copy_from_slice(value);
}

/// Makes streamed stores visible in order.
#[inline(always)]
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of every x86-64.
    unsafe {
        x86_64::_mm_sfence();
    }
}

/// Reads every element and writes it back in place, changed.
pub(crate) fn update(values: &mut [f32], isa: Isa) {
    dispatch(isa, Update(values));
}

struct Update<'a>(&'a mut [f32]);

impl Kernel for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (vectors, rest) = self.0.as_chunks_mut::<LANES>();
        let zero = simd.splat(0.0);
        for vector in vectors {
            // The negative, so that the compiler cannot merge two updates in a row.
            simd.store(simd.subtract(zero, simd.load(vector)), vector);
        }
        rest.iter_mut().for_each(|x| *x = -*x);
    }
}

/// Does at least `count` multiply-adds of i8 on a tile in registers and panels in the first-level cache: nothing is
/// packed, and no result is passed on. Returns a sum.
pub(crate) fn multiply_adds(count: usize, isa: Isa) -> u32 {
    dispatch_tiled(isa, MultiplyAdds(count))
}

struct MultiplyAdds(usize);

/// Aligned to a cache line, as panels are.
#[repr(align(64))]
struct Aligned<T>(T);

impl Tiled for MultiplyAdds {
    type Output = u32;

    #[inline(always)]
    fn run<S: Simd, const ROWS: usize>(self, simd: S) -> u32 {
        let (left, right) = (Aligned([[0x0102_0304; ROWS]; STRETCH]), Aligned([[0x0101_0201; LANES]; STRETCH]));
        let mut tile: Tile<ROWS> = [[0; LANES]; ROWS];
        let each = S::DEPTH * STRETCH * ROWS * LANES;
        for _ in 0..self.0.div_ceil(each) {
            tile = [[0; LANES]; ROWS];
            add_products::<S, ROWS>(simd, &black_box(&left).0, &black_box(&right).0, black_box(&mut tile));
        }
        tile[0][0]
    }
}
