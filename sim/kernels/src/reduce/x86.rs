//! Registers of x86-64: 256 bits of AVX2 with fused multiply-add, and 512 bits of AVX-512.
//!
//! `minps` and `maxps` answer their second operand when either is NaN. The accumulator, never NaN itself, stands
//! second: NaN data is ignored without an instruction more.

use std::arch::x86_64::*;

use super::dispatch::Kernels;
use super::lanes::Lanes;

/// 256 bits.
#[derive(Clone, Copy)]
pub(super) struct Avx2(__m256);

// SAFETY of every block: the instruction set is the caller's, as `Lanes` says.
impl Lanes for Avx2 {
    const COUNT: usize = 8;
    // Of sixteen registers the fused triple takes twelve.
    const SUMS: usize = 4;
    type Wide = (__m256d, __m256d);

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: AVX2.
        Self(unsafe { _mm256_set1_ps(value) })
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: AVX2; the caller owns eight elements.
        Self(unsafe { _mm256_loadu_ps(from) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: AVX2; the caller owns eight elements.
        unsafe { _mm256_storeu_ps(to, self.0) }
    }
    #[inline(always)]
    unsafe fn smaller(self, next: Self) -> Self {
        // SAFETY: AVX2.
        Self(unsafe { _mm256_min_ps(next.0, self.0) })
    }
    #[inline(always)]
    unsafe fn larger(self, next: Self) -> Self {
        // SAFETY: AVX2.
        Self(unsafe { _mm256_max_ps(next.0, self.0) })
    }
    #[inline(always)]
    unsafe fn magnitude(self) -> Self {
        // SAFETY: AVX2.
        Self(unsafe { _mm256_andnot_ps(_mm256_set1_ps(-0.0), self.0) })
    }
    #[inline(always)]
    unsafe fn plus(self, next: Self) -> Self {
        // SAFETY: AVX2.
        Self(unsafe { _mm256_add_ps(self.0, next.0) })
    }
    #[inline(always)]
    unsafe fn plus_square(self, next: Self) -> Self {
        // SAFETY: AVX2 and FMA.
        Self(unsafe { _mm256_fmadd_ps(next.0, next.0, self.0) })
    }
    #[inline(always)]
    unsafe fn nothing() -> Self::Wide {
        // SAFETY: AVX2.
        unsafe { (_mm256_setzero_pd(), _mm256_setzero_pd()) }
    }
    #[inline(always)]
    unsafe fn empty_into(self, total: Self::Wide) -> Self::Wide {
        // SAFETY: AVX2.
        unsafe {
            let low = _mm256_cvtps_pd(_mm256_castps256_ps128(self.0));
            let high = _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(self.0));
            (_mm256_add_pd(total.0, low), _mm256_add_pd(total.1, high))
        }
    }
    #[inline(always)]
    unsafe fn total(wide: Self::Wide) -> f64 {
        let mut lanes = [0.0_f64; 4];
        // SAFETY: AVX2; `lanes` has four elements.
        unsafe { _mm256_storeu_pd(lanes.as_mut_ptr(), _mm256_add_pd(wide.0, wide.1)) };
        (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
    }
}

/// 512 bits.
#[derive(Clone, Copy)]
pub(super) struct Avx512(__m512);

// SAFETY of every block: the instruction set is the caller's, as `Lanes` says.
impl Lanes for Avx512 {
    const COUNT: usize = 16;
    // Of thirty-two registers the fused triple takes twenty-four.
    const SUMS: usize = 8;
    type Wide = (__m512d, __m512d);

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: AVX-512F.
        Self(unsafe { _mm512_set1_ps(value) })
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: AVX-512F; the caller owns sixteen elements.
        Self(unsafe { _mm512_loadu_ps(from) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: AVX-512F; the caller owns sixteen elements.
        unsafe { _mm512_storeu_ps(to, self.0) }
    }
    #[inline(always)]
    unsafe fn smaller(self, next: Self) -> Self {
        // SAFETY: AVX-512F.
        Self(unsafe { _mm512_min_ps(next.0, self.0) })
    }
    #[inline(always)]
    unsafe fn larger(self, next: Self) -> Self {
        // SAFETY: AVX-512F.
        Self(unsafe { _mm512_max_ps(next.0, self.0) })
    }
    #[inline(always)]
    unsafe fn magnitude(self) -> Self {
        // SAFETY: AVX-512F.
        Self(unsafe { _mm512_abs_ps(self.0) })
    }
    #[inline(always)]
    unsafe fn plus(self, next: Self) -> Self {
        // SAFETY: AVX-512F.
        Self(unsafe { _mm512_add_ps(self.0, next.0) })
    }
    #[inline(always)]
    unsafe fn plus_square(self, next: Self) -> Self {
        // SAFETY: AVX-512F.
        Self(unsafe { _mm512_fmadd_ps(next.0, next.0, self.0) })
    }
    #[inline(always)]
    unsafe fn nothing() -> Self::Wide {
        // SAFETY: AVX-512F.
        unsafe { (_mm512_setzero_pd(), _mm512_setzero_pd()) }
    }
    #[inline(always)]
    unsafe fn empty_into(self, total: Self::Wide) -> Self::Wide {
        // SAFETY: AVX-512F and DQ.
        unsafe {
            let low = _mm512_cvtps_pd(_mm512_castps512_ps256(self.0));
            let high = _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(self.0));
            (_mm512_add_pd(total.0, low), _mm512_add_pd(total.1, high))
        }
    }
    #[inline(always)]
    unsafe fn total(wide: Self::Wide) -> f64 {
        let mut lanes = [0.0_f64; 8];
        // SAFETY: AVX-512F; `lanes` has eight elements.
        unsafe { _mm512_storeu_pd(lanes.as_mut_ptr(), _mm512_add_pd(wide.0, wide.1)) };
        let [a, b, c, d, e, f, g, h] = lanes;
        ((a + e) + (c + g)) + ((b + f) + (d + h))
    }
}

super::dispatch::kernels!(AVX2, avx2, Avx2, "avx2,fma");
super::dispatch::kernels!(AVX512, avx512, Avx512, "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl");
