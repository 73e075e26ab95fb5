//! Sixteen lanes as one 512-bit register; with VNNI, products are added as they are made.

use std::arch::x86_64::*;

use super::{Kernel, LANES, Lanes, Pair};
use crate::isa::Isa;

/// Proof that the processor has AVX-512 F, BW, DQ and VL, and VNNI where that is said.
#[derive(Clone, Copy)]
pub(super) struct Avx512<const VNNI: bool>(());

/// Runs an intrinsic.
macro_rules! whole {
    ($function:ident, $($value:expr),+) => {
        // SAFETY: an `Avx512` exists only where `new` found AVX-512 F, BW, DQ and VL, all that the intrinsic needs.
        unsafe { $function($($value),+) }
    };
}

impl<const VNNI: bool> Avx512<VNNI> {
    /// The proof, where there is one.
    pub(super) fn new() -> Option<Self> {
        let has_all = Isa::Avx512.is_available() && (!VNNI || is_x86_feature_detected!("avx512vnni"));
        has_all.then_some(Self(()))
    }
}

/// Rows of sums. There are registers for twice as many; twelve keep two multipliers busy, and fewer pad less.
const ROWS: usize = 12;

impl Avx512<false> {
    /// Compiles a kernel with these instructions, and runs it.
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl")]
        fn run<K: Kernel>(kernel: K, simd: Avx512<false>) -> K::Output {
            kernel.run::<Avx512<false>, ROWS>(simd)
        }
        // SAFETY: `self` proves that the processor has every one of the features.
        unsafe { run(kernel, self) }
    }
}

impl Avx512<true> {
    /// Compiles a kernel with these instructions, and runs it.
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
        fn run<K: Kernel>(kernel: K, simd: Avx512<true>) -> K::Output {
            kernel.run::<Avx512<true>, ROWS>(simd)
        }
        // SAFETY: `self` proves that the processor has every one of the features.
        unsafe { run(kernel, self) }
    }
}

impl<const VNNI: bool> Lanes for Avx512<VNNI> {
    type Words = __m512i;
    type Shift = __m128i;
    type Pairs = __m512i;
    type Sums = __m512i;

    #[inline(always)]
    fn load(self, from: &[i32; LANES]) -> Self::Words {
        // SAFETY: the array holds the sixteen lanes; the load needs no alignment; see `whole` for the features.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn store(self, value: Self::Words, to: &mut [i32; LANES]) {
        // SAFETY: the array holds the sixteen lanes; the store needs no alignment; see `whole` for the features.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), value) }
    }
    #[inline(always)]
    fn splat(self, value: i32) -> Self::Words {
        whole!(_mm512_set1_epi32, value)
    }
    #[inline(always)]
    fn widen(self, from: &[i8; LANES]) -> Self::Words {
        // SAFETY: the array holds the sixteen bytes; the load needs no alignment; see `whole` for the features.
        unsafe { _mm512_cvtepi8_epi32(_mm_loadu_si128(from.as_ptr().cast())) }
    }
    #[inline(always)]
    fn narrow(self, value: Self::Words, to: &mut [i8; LANES]) {
        // SAFETY: the array holds the sixteen bytes; the store needs no alignment; see `whole` for the features.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), _mm512_cvtepi32_epi8(value)) }
    }
    #[inline(always)]
    fn add(self, a: Self::Words, b: Self::Words) -> Self::Words {
        whole!(_mm512_add_epi32, a, b)
    }
    #[inline(always)]
    fn or(self, a: Self::Words, b: Self::Words) -> Self::Words {
        whole!(_mm512_or_si512, a, b)
    }
    #[inline(always)]
    fn magnitude(self, a: Self::Words) -> Self::Words {
        whole!(_mm512_abs_epi32, a)
    }
    #[inline(always)]
    fn signed_as(self, a: Self::Words, sign: Self::Words) -> Self::Words {
        // SAFETY: see `whole`.
        unsafe { _mm512_mask_sub_epi32(a, _mm512_movepi32_mask(sign), _mm512_setzero_si512(), a) }
    }
    #[inline(always)]
    fn smaller_unsigned(self, a: Self::Words, b: Self::Words) -> Self::Words {
        whole!(_mm512_min_epu32, a, b)
    }
    #[inline(always)]
    fn shift(self, count: u32) -> Self::Shift {
        // SAFETY: SSE2 is part of every x86-64.
        unsafe { _mm_cvtsi32_si128(count as i32) }
    }
    #[inline(always)]
    fn down(self, a: Self::Words, count: Self::Shift) -> Self::Words {
        whole!(_mm512_srl_epi32, a, count)
    }

    #[inline(always)]
    fn pairs(self, from: &[Pair; LANES]) -> Self::Pairs {
        // SAFETY: the array holds the sixteen pairs; the load needs no alignment; see `whole` for the features.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn splat_pair(self, pair: &Pair) -> Self::Pairs {
        // SAFETY: a pair is as long as an i32 and has no padding.
        let word = unsafe { pair.as_ptr().cast::<i32>().read_unaligned() };
        self.splat(word)
    }
    #[inline(always)]
    fn nothing(self) -> Self::Sums {
        self.splat(0)
    }
    #[inline(always)]
    fn multiply_add(self, sums: Self::Sums, a: Self::Pairs, b: Self::Pairs) -> Self::Sums {
        if VNNI {
            // SAFETY: `new` found VNNI too.
            unsafe { _mm512_dpwssd_epi32(sums, a, b) }
        } else {
            self.add(sums, whole!(_mm512_madd_epi16, a, b))
        }
    }
    #[inline(always)]
    fn finish(self, sums: Self::Sums) -> Self::Words {
        sums
    }
}
