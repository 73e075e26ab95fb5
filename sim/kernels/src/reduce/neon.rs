//! Registers of ARM: 128 bits of NEON.
//!
//! A comparison and a selection rather than `fminnm`, which makes NaN of a signalling NaN and would forget what it has.

use std::arch::aarch64::*;

use super::dispatch::Kernels;
use super::lanes::Lanes;

/// 128 bits.
#[derive(Clone, Copy)]
pub(super) struct Neon(float32x4_t);

// SAFETY of every block: NEON is part of every aarch64.
impl Lanes for Neon {
    const COUNT: usize = 4;
    const SUMS: usize = 8;
    type Wide = (float64x2_t, float64x2_t);

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: NEON.
        Self(unsafe { vdupq_n_f32(value) })
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: NEON; the caller owns four elements.
        Self(unsafe { vld1q_f32(from) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: NEON; the caller owns four elements.
        unsafe { vst1q_f32(to, self.0) }
    }
    #[inline(always)]
    unsafe fn smaller(self, next: Self) -> Self {
        // SAFETY: NEON.
        Self(unsafe { vbslq_f32(vcltq_f32(next.0, self.0), next.0, self.0) })
    }
    #[inline(always)]
    unsafe fn larger(self, next: Self) -> Self {
        // SAFETY: NEON.
        Self(unsafe { vbslq_f32(vcgtq_f32(next.0, self.0), next.0, self.0) })
    }
    #[inline(always)]
    unsafe fn magnitude(self) -> Self {
        // SAFETY: NEON.
        Self(unsafe { vabsq_f32(self.0) })
    }
    #[inline(always)]
    unsafe fn plus(self, next: Self) -> Self {
        // SAFETY: NEON.
        Self(unsafe { vaddq_f32(self.0, next.0) })
    }
    #[inline(always)]
    unsafe fn plus_square(self, next: Self) -> Self {
        // SAFETY: NEON.
        Self(unsafe { vfmaq_f32(self.0, next.0, next.0) })
    }
    #[inline(always)]
    unsafe fn nothing() -> Self::Wide {
        // SAFETY: NEON.
        unsafe { (vdupq_n_f64(0.0), vdupq_n_f64(0.0)) }
    }
    #[inline(always)]
    unsafe fn empty_into(self, total: Self::Wide) -> Self::Wide {
        // SAFETY: NEON.
        unsafe {
            let low = vcvt_f64_f32(vget_low_f32(self.0));
            (vaddq_f64(total.0, low), vaddq_f64(total.1, vcvt_high_f64_f32(self.0)))
        }
    }
    #[inline(always)]
    unsafe fn total(wide: Self::Wide) -> f64 {
        // SAFETY: NEON.
        unsafe { vaddvq_f64(vaddq_f64(wide.0, wide.1)) }
    }
}

super::dispatch::kernels!(NEON, neon, Neon, "neon");
