//! What the machine's memory allows: the fastest plain copy and the fastest plain write of a buffer.
//!
//! The fastest read is [`haversack_kernels::reduce::limit`], the fastest multiplication [`haversack_kernels::int8::limit`]. Beyond the last cache, stores that bypass it save reading the line
//! that they overwrite; within it they cost the trip to DRAM. Both forms are here, and the faster one is the limit.

use std::hint::black_box;

use haversack_devices::units::Bytes;

use super::contender::Contender;
use super::edge;
use haversack_kernels::Isa;
use haversack_kernels::{int8, reduce};

/// What a kernel cannot be faster than.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Reading the tensor, by the widest registers that the processor has.
    Read,
    /// Writing the tensor.
    Write,
    /// Reading one tensor and writing another.
    Copy,
    /// The multiply-adds of a product of i8 matrices, by registers and a first cache that nothing else keeps busy.
    Multiply,
}

impl Limit {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Copy => "copy",
            Self::Multiply => "multiply",
        }
    }

    /// The ways to it, of which the fastest is the limit.
    pub(super) fn contenders(self) -> Vec<Contender> {
        match self {
            Self::Read => {
                let widest = widest();
                vec![Contender::simple("limit: read", move |tensors| {
                    black_box(reduce::limit::sum(black_box(&tensors.values), widest));
                })]
            }
            Self::Write => vec![
                Contender::simple("limit: write", |tensors| fill(black_box(&mut tensors.output), black_box(0.5))),
                Contender::simple("limit: write past the caches", |tensors| {
                    fill_past_caches(black_box(&mut tensors.output), black_box(0.5));
                }),
            ],
            Self::Copy => vec![
                Contender::simple("limit: copy", |tensors| {
                    copy(black_box(&tensors.values), black_box(&mut tensors.output));
                }),
                Contender::simple("limit: copy past the caches", |tensors| {
                    copy_past_caches(black_box(&tensors.values), black_box(&mut tensors.output));
                }),
            ],
            Self::Multiply => {
                let widest = widest();
                vec![Contender::simple("limit: multiply", move |tensors| {
                    let edge = edge(Bytes(size_of_val(&*tensors.values) as u64));
                    black_box(int8::limit::multiply_adds(edge.pow(3), widest));
                })]
            }
        }
    }
}

fn widest() -> Isa {
    Isa::available().last().copied().unwrap_or(Isa::Scalar)
}

/// Copies by the system's `memcpy`.
pub(super) fn copy(from: &[f32], to: &mut [f32]) {
    let length = from.len().min(to.len());
    to[..length].copy_from_slice(&from[..length]);
}

/// Bytes from which a copy by-passes the caches: what is copied would drive out more of them than is read again.
const PAST_CACHES_FROM: usize = 16 << 20;

/// Copies in the way that is the faster one for so many bytes.
pub(super) fn copy_for_size(from: &[f32], to: &mut [f32]) {
    if size_of_val(from) < PAST_CACHES_FROM { copy(from, to) } else { copy_past_caches(from, to) }
}

/// Writes by the widest stores that the processor has.
pub(super) fn fill(to: &mut [f32], value: f32) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has AVX-512.
        return unsafe { x86::fill_512(to, value) };
    } else if is_x86_feature_detected!("avx") {
        // SAFETY: the processor has AVX.
        return unsafe { x86::fill_256(to, value) };
    }
    to.fill(value);
}

/// Copies by stores that bypass the caches, where the processor has them.
pub(super) fn copy_past_caches(from: &[f32], to: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx") {
        // SAFETY: the processor has AVX.
        return unsafe { x86::copy(from, to) };
    }
    copy(from, to);
}

/// Writes by stores that bypass the caches, where the processor has them.
pub(super) fn fill_past_caches(to: &mut [f32], value: f32) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx") {
        // SAFETY: the processor has AVX.
        return unsafe { x86::fill(to, value) };
    }
    fill(to, value);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm_sfence, _mm256_loadu_ps, _mm256_set1_ps, _mm256_storeu_ps, _mm256_stream_ps, _mm512_set1_ps,
        _mm512_storeu_ps,
    };

    /// Lanes of a vector.
    const LANES: usize = 8;

    #[target_feature(enable = "avx")]
    pub(super) fn copy(from: &[f32], to: &mut [f32]) {
        let length = from.len().min(to.len());
        let (from, to) = (&from[..length], &mut to[..length]);
        let head = to.as_ptr().align_offset(32).min(length);
        let vectors = (length - head) / LANES;
        to[..head].copy_from_slice(&from[..head]);
        for vector in 0..vectors {
            let at = head + vector * LANES;
            // SAFETY: `at + LANES <= length` for both slices, and `head` makes the store aligned to 32 bytes.
            unsafe { _mm256_stream_ps(to.as_mut_ptr().add(at), _mm256_loadu_ps(from.as_ptr().add(at))) };
        }
        let tail = head + vectors * LANES;
        to[tail..].copy_from_slice(&from[tail..]);
        // Such stores are not ordered with others; whoever reads the copy must see all of it.
        _mm_sfence();
    }

    #[target_feature(enable = "avx")]
    pub(super) fn fill_256(to: &mut [f32], value: f32) {
        let (vectors, rest) = to.as_chunks_mut::<LANES>();
        for vector in vectors {
            // SAFETY: a chunk holds eight floats.
            unsafe { _mm256_storeu_ps(vector.as_mut_ptr(), _mm256_set1_ps(value)) };
        }
        rest.fill(value);
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn fill_512(to: &mut [f32], value: f32) {
        let (vectors, rest) = to.as_chunks_mut::<{ 2 * LANES }>();
        for vector in vectors {
            // SAFETY: a chunk holds sixteen floats.
            unsafe { _mm512_storeu_ps(vector.as_mut_ptr(), _mm512_set1_ps(value)) };
        }
        rest.fill(value);
    }

    #[target_feature(enable = "avx")]
    pub(super) fn fill(to: &mut [f32], value: f32) {
        let head = to.as_ptr().align_offset(32).min(to.len());
        let vectors = (to.len() - head) / LANES;
        to[..head].fill(value);
        for vector in 0..vectors {
            // SAFETY: `head + (vector + 1) * LANES <= to.len()`, and `head` makes the store aligned to 32 bytes.
            unsafe { _mm256_stream_ps(to.as_mut_ptr().add(head + vector * LANES), _mm256_set1_ps(value)) };
        }
        to[head + vectors * LANES..].fill(value);
        _mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_copies_and_both_fills_reach_every_element_at_every_alignment() {
        let from: Vec<f32> = (0..100_u8).map(f32::from).collect();
        for start in 0..9 {
            for length in [0, 1, 7, 8, 9, 33, 80] {
                for copy in [copy, copy_past_caches] {
                    let mut to = vec![-1.0; 100];
                    copy(&from[3..3 + length], &mut to[start..start + length]);
                    assert_eq!(to[start..start + length], from[3..3 + length], "{start} {length}");
                    assert!(to[..start].iter().chain(&to[start + length..]).all(|&v| v == -1.0), "{start} {length}");
                }
                for fill in [fill, fill_past_caches] {
                    let mut to = vec![-1.0; 100];
                    fill(&mut to[start..start + length], 2.0);
                    // `length` twos among minus ones: 2·length − (100 − length).
                    assert_eq!(to.iter().sum::<f32>(), 3.0 * length as f32 - 100.0, "{start} {length}");
                    assert!(to[start..start + length].iter().all(|&v| v == 2.0));
                }
            }
        }
    }
}
