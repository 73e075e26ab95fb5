//! Sixteen lanes as four 128-bit registers.

use std::arch::aarch64::*;
use std::array::from_fn;

use super::{Kernel, LANES, Simd};

/// Every aarch64 processor that Rust's standard library runs on has NEON, so there is nothing to prove.
#[derive(Clone, Copy)]
pub(super) struct Neon;

/// Runs an intrinsic on the four quarters.
macro_rules! quarters {
    ($function:ident, $($value:expr),+) => {
        // SAFETY: NEON is part of the base of the target.
        from_fn(|i| unsafe { $function($($value[i]),+) })
    };
}

impl Neon {
    /// Runs a kernel.
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }
}

impl Simd for Neon {
    type Floats = [float32x4_t; 4];
    type Words = [uint32x4_t; 4];
    const WIDE: bool = false;
    const TABLE_BITS: u32 = 0;

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::Floats {
        // SAFETY: the array holds the four quarters.
        from_fn(|i| unsafe { vld1q_f32(from.as_ptr().add(4 * i)) })
    }
    #[inline(always)]
    fn store(self, value: Self::Floats, to: &mut [f32; LANES]) {
        for (quarter, to) in value.into_iter().zip(to.as_chunks_mut::<4>().0) {
            // SAFETY: `to` holds a quarter.
            unsafe { vst1q_f32(to.as_mut_ptr(), quarter) }
        }
    }
    #[inline(always)]
    fn ask_ahead(self, _at: &[f32; LANES]) {}
    #[inline(always)]
    fn splat(self, value: f32) -> Self::Floats {
        quarters!(vdupq_n_f32, [value; 4])
    }
    #[inline(always)]
    fn subtract(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        quarters!(vsubq_f32, a, b)
    }
    #[inline(always)]
    fn fused(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        quarters!(vfmaq_f32, c, a, b)
    }
    #[inline(always)]
    fn smaller(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        from_fn(|i| {
            // SAFETY: NEON is part of the base of the target. The comparison is false for every kind of NaN.
            unsafe { vbslq_f32(vcltq_f32(a[i], b[i]), a[i], b[i]) }
        })
    }
    #[inline(always)]
    fn greater(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        from_fn(|i| {
            // SAFETY: NEON is part of the base of the target. The comparison is false for every kind of NaN.
            unsafe { vbslq_f32(vcgtq_f32(a[i], b[i]), a[i], b[i]) }
        })
    }
    #[inline(always)]
    fn smallest(self, a: Self::Floats) -> f32 {
        // SAFETY: NEON is part of the base of the target.
        unsafe { vminvq_f32(vminq_f32(vminq_f32(a[0], a[1]), vminq_f32(a[2], a[3]))) }
    }
    #[inline(always)]
    fn greatest(self, a: Self::Floats) -> f32 {
        // SAFETY: NEON is part of the base of the target.
        unsafe { vmaxvq_f32(vmaxq_f32(vmaxq_f32(a[0], a[1]), vmaxq_f32(a[2], a[3]))) }
    }
    #[inline(always)]
    fn are_finite(self, a: Self::Floats) -> bool {
        // Infinity less itself is NaN, anything finite less itself is 0, and the greatest of NaN and 0 is NaN.
        // SAFETY: NEON is part of the base of the target.
        (0..4).all(|i| unsafe { vmaxvq_f32(vsubq_f32(a[i], a[i])) } == 0.0)
    }
    #[inline(always)]
    fn positive(self, a: Self::Floats) -> u16 {
        (0..4).fold(0, |mask, i| {
            // SAFETY: NEON is part of the base of the target; the array holds four weights.
            let quarter = unsafe { vaddvq_u32(vandq_u32(vcgtzq_f32(a[i]), vld1q_u32([1, 2, 4, 8].as_ptr()))) };
            mask | (quarter as u16) << (4 * i)
        })
    }
    #[inline(always)]
    fn keep(self, a: Self::Floats, mask: u16) -> Self::Floats {
        from_fn(|i| {
            // SAFETY: NEON is part of the base of the target; the array holds four weights.
            unsafe {
                let kept = vtstq_u32(vdupq_n_u32(u32::from(mask) >> (4 * i)), vld1q_u32([1, 2, 4, 8].as_ptr()));
                vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(a[i]), kept))
            }
        })
    }
    #[inline(always)]
    fn truncate(self, a: Self::Floats) -> Self::Words {
        quarters!(vcvtq_u32_f32, a)
    }
    #[inline(always)]
    fn bits(self, a: Self::Floats) -> Self::Words {
        quarters!(vreinterpretq_u32_f32, a)
    }

    #[inline(always)]
    fn load_words(self, from: &[u32; LANES]) -> Self::Words {
        // SAFETY: the array holds the four quarters.
        from_fn(|i| unsafe { vld1q_u32(from.as_ptr().add(4 * i)) })
    }
    #[inline(always)]
    fn store_words(self, value: Self::Words, to: &mut [u32; LANES]) {
        for (quarter, to) in value.into_iter().zip(to.as_chunks_mut::<4>().0) {
            // SAFETY: `to` holds a quarter.
            unsafe { vst1q_u32(to.as_mut_ptr(), quarter) }
        }
    }
    #[inline(always)]
    fn splat_word(self, value: u32) -> Self::Words {
        quarters!(vdupq_n_u32, [value; 4])
    }
    #[inline(always)]
    fn add(self, a: Self::Words, b: Self::Words) -> Self::Words {
        quarters!(vaddq_u32, a, b)
    }
    #[inline(always)]
    fn multiply(self, a: Self::Words, b: Self::Words) -> Self::Words {
        quarters!(vmulq_u32, a, b)
    }
    #[inline(always)]
    fn and(self, a: Self::Words, b: Self::Words) -> Self::Words {
        quarters!(vandq_u32, a, b)
    }
    #[inline(always)]
    fn xor(self, a: Self::Words, b: Self::Words) -> Self::Words {
        quarters!(veorq_u32, a, b)
    }
    #[inline(always)]
    fn up(self, a: Self::Words, count: u32) -> Self::Words {
        // SAFETY: NEON is part of the base of the target.
        from_fn(|i| unsafe { vshlq_u32(a[i], vdupq_n_s32(count as i32)) })
    }
    #[inline(always)]
    fn down(self, a: Self::Words, count: u32) -> Self::Words {
        // SAFETY: NEON is part of the base of the target. A negative count shifts down.
        from_fn(|i| unsafe { vshlq_u32(a[i], vdupq_n_s32(-(count as i32))) })
    }
    #[inline(always)]
    fn to_floats(self, a: Self::Words) -> Self::Floats {
        quarters!(vcvtq_f32_u32, a)
    }
    // Never called: TABLE_BITS is 0. Two table instructions a quarter would be slower than the multiply-add.
    #[inline(always)]
    fn lookup(self, table: Self::Floats, _index: Self::Words) -> Self::Floats {
        table
    }
}
