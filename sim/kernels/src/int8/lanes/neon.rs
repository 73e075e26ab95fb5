//! Sixteen lanes as four 128-bit registers.

use std::arch::aarch64::*;
use std::array::from_fn;

use super::{Kernel, LANES, Lanes, Pair};

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
    /// Runs a kernel. Of thirty-two registers three rows of sums take twenty-four.
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run::<Self, 3>(self)
    }
}

impl Lanes for Neon {
    type Words = [int32x4_t; 4];
    type Shift = int32x4_t;
    type Pairs = [int16x8_t; 4];
    /// The products of first and of second values apart, lane by lane: added up once, at the end.
    type Sums = [[int32x4_t; 2]; 4];

    #[inline(always)]
    fn load(self, from: &[i32; LANES]) -> Self::Words {
        // SAFETY: the array holds the four quarters.
        from_fn(|i| unsafe { vld1q_s32(from.as_ptr().add(4 * i)) })
    }
    #[inline(always)]
    fn store(self, value: Self::Words, to: &mut [i32; LANES]) {
        for (quarter, to) in value.into_iter().zip(to.as_chunks_mut::<4>().0) {
            // SAFETY: `to` holds a quarter.
            unsafe { vst1q_s32(to.as_mut_ptr(), quarter) }
        }
    }
    #[inline(always)]
    fn splat(self, value: i32) -> Self::Words {
        quarters!(vdupq_n_s32, [value; 4])
    }
    #[inline(always)]
    fn widen(self, from: &[i8; LANES]) -> Self::Words {
        // SAFETY: NEON is part of the base of the target; the array holds the sixteen bytes.
        unsafe {
            let bytes = vld1q_s8(from.as_ptr());
            let (low, high) = (vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes));
            [vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low), vmovl_s16(vget_low_s16(high)), vmovl_high_s16(high)]
        }
    }
    #[inline(always)]
    fn narrow(self, value: Self::Words, to: &mut [i8; LANES]) {
        let [a, b, c, d] = value;
        // SAFETY: NEON is part of the base of the target; the array holds the sixteen bytes.
        unsafe {
            let low = vmovn_high_s32(vmovn_s32(a), b);
            let high = vmovn_high_s32(vmovn_s32(c), d);
            vst1q_s8(to.as_mut_ptr(), vmovn_high_s16(vmovn_s16(low), high));
        }
    }
    #[inline(always)]
    fn add(self, a: Self::Words, b: Self::Words) -> Self::Words {
        quarters!(vaddq_s32, a, b)
    }
    #[inline(always)]
    fn or(self, a: Self::Words, b: Self::Words) -> Self::Words {
        quarters!(vorrq_s32, a, b)
    }
    #[inline(always)]
    fn magnitude(self, a: Self::Words) -> Self::Words {
        quarters!(vabsq_s32, a)
    }
    #[inline(always)]
    fn signed_as(self, a: Self::Words, sign: Self::Words) -> Self::Words {
        from_fn(|i| {
            // SAFETY: NEON is part of the base of the target.
            unsafe { vbslq_s32(vcltzq_s32(sign[i]), vnegq_s32(a[i]), a[i]) }
        })
    }
    #[inline(always)]
    fn smaller_unsigned(self, a: Self::Words, b: Self::Words) -> Self::Words {
        from_fn(|i| {
            // SAFETY: NEON is part of the base of the target.
            unsafe { vreinterpretq_s32_u32(vminq_u32(vreinterpretq_u32_s32(a[i]), vreinterpretq_u32_s32(b[i]))) }
        })
    }
    #[inline(always)]
    fn shift(self, count: u32) -> Self::Shift {
        // SAFETY: NEON is part of the base of the target. A negative count shifts down.
        unsafe { vdupq_n_s32(-(count as i32)) }
    }
    #[inline(always)]
    fn down(self, a: Self::Words, count: Self::Shift) -> Self::Words {
        from_fn(|i| {
            // SAFETY: NEON is part of the base of the target.
            unsafe { vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(a[i]), count)) }
        })
    }

    #[inline(always)]
    fn pairs(self, from: &[Pair; LANES]) -> Self::Pairs {
        // SAFETY: the array holds the four quarters, of four pairs each.
        from_fn(|i| unsafe { vld1q_s16(from.as_ptr().add(4 * i).cast()) })
    }
    #[inline(always)]
    fn splat_pair(self, pair: &Pair) -> Self::Pairs {
        // SAFETY: a pair is as long as an i32 and has no padding; NEON is part of the base of the target.
        let everywhere = unsafe { vreinterpretq_s16_s32(vdupq_n_s32(pair.as_ptr().cast::<i32>().read_unaligned())) };
        [everywhere; 4]
    }
    #[inline(always)]
    fn nothing(self) -> Self::Sums {
        // SAFETY: NEON is part of the base of the target.
        [[unsafe { vdupq_n_s32(0) }; 2]; 4]
    }
    #[inline(always)]
    fn multiply_add(self, sums: Self::Sums, a: Self::Pairs, b: Self::Pairs) -> Self::Sums {
        from_fn(|i| {
            let [low, high] = sums[i];
            // SAFETY: NEON is part of the base of the target.
            unsafe { [vmlal_s16(low, vget_low_s16(a[i]), vget_low_s16(b[i])), vmlal_high_s16(high, a[i], b[i])] }
        })
    }
    #[inline(always)]
    fn finish(self, sums: Self::Sums) -> Self::Words {
        // SAFETY: NEON is part of the base of the target.
        sums.map(|[low, high]| unsafe { vpaddq_s32(low, high) })
    }
}
