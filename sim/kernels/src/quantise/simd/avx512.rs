//! Sixteen lanes as one 512-bit register.

use std::arch::x86_64::*;

use super::{AHEAD, Kernel, LANES, Simd};
use crate::isa::Isa;

/// Proof that the processor has AVX-512 F, BW, DQ and VL.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

/// Runs an intrinsic.
macro_rules! whole {
    ($function:ident, $($value:expr),+) => {
        // SAFETY: an `Avx512` exists only where `new` found AVX-512 F, BW, DQ and VL, all that the intrinsic needs.
        unsafe { $function($($value),+) }
    };
}

impl Avx512 {
    /// The proof, where there is one.
    pub(super) fn new() -> Option<Self> {
        Isa::Avx512.is_available().then_some(Self(()))
    }

    /// Compiles a kernel with these instructions, and runs it.
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
        fn run<K: Kernel>(kernel: K, simd: Avx512) -> K::Output {
            kernel.run(simd)
        }
        // SAFETY: `self` proves that the processor has every one of the features.
        unsafe { run(kernel, self) }
    }
}

impl Simd for Avx512 {
    type Floats = __m512;
    type Words = __m512i;
    const WIDE: bool = true;
    const TABLE_BITS: u32 = 4;

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::Floats {
        // SAFETY: the array holds the sixteen lanes; the load needs no alignment; see `whole` for the features.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }
    #[inline(always)]
    fn store(self, value: Self::Floats, to: &mut [f32; LANES]) {
        // SAFETY: the array holds the sixteen lanes; the store needs no alignment; see `whole` for the features.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), value) }
    }
    #[inline(always)]
    fn ask_ahead(self, at: &[f32; LANES]) {
        // SAFETY: a prefetch reads nothing that the program can see, and faults on no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.as_ptr().wrapping_add(AHEAD).cast()) }
    }
    #[inline(always)]
    fn splat(self, value: f32) -> Self::Floats {
        whole!(_mm512_set1_ps, value)
    }
    #[inline(always)]
    fn subtract(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        whole!(_mm512_sub_ps, a, b)
    }
    #[inline(always)]
    fn fused(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        whole!(_mm512_fmadd_ps, a, b, c)
    }
    // The instruction answers its second operand where either is NaN.
    #[inline(always)]
    fn smaller(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        whole!(_mm512_min_ps, a, b)
    }
    #[inline(always)]
    fn greater(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        whole!(_mm512_max_ps, a, b)
    }
    #[inline(always)]
    fn smallest(self, a: Self::Floats) -> f32 {
        whole!(_mm512_reduce_min_ps, a)
    }
    #[inline(always)]
    fn greatest(self, a: Self::Floats) -> f32 {
        whole!(_mm512_reduce_max_ps, a)
    }
    #[inline(always)]
    fn are_finite(self, a: Self::Floats) -> bool {
        // SAFETY: see `whole`.
        unsafe {
            // Infinity less itself is NaN, and anything finite less itself is not.
            let difference = _mm512_sub_ps(a, a);
            _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(difference, difference) == 0
        }
    }
    #[inline(always)]
    fn positive(self, a: Self::Floats) -> u16 {
        // SAFETY: see `whole`.
        unsafe { _mm512_cmp_ps_mask::<_CMP_GT_OQ>(a, _mm512_setzero_ps()) }
    }
    #[inline(always)]
    fn keep(self, a: Self::Floats, mask: u16) -> Self::Floats {
        whole!(_mm512_maskz_mov_ps, mask, a)
    }
    #[inline(always)]
    fn truncate(self, a: Self::Floats) -> Self::Words {
        whole!(_mm512_cvttps_epi32, a)
    }
    #[inline(always)]
    fn bits(self, a: Self::Floats) -> Self::Words {
        whole!(_mm512_castps_si512, a)
    }

    #[inline(always)]
    fn load_words(self, from: &[u32; LANES]) -> Self::Words {
        // SAFETY: the array holds the sixteen lanes; the load needs no alignment; see `whole` for the features.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn store_words(self, value: Self::Words, to: &mut [u32; LANES]) {
        // SAFETY: the array holds the sixteen lanes; the store needs no alignment; see `whole` for the features.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), value) }
    }
    #[inline(always)]
    fn splat_word(self, value: u32) -> Self::Words {
        whole!(_mm512_set1_epi32, value as i32)
    }
    #[inline(always)]
    fn add(self, a: Self::Words, b: Self::Words) -> Self::Words {
        whole!(_mm512_add_epi32, a, b)
    }
    #[inline(always)]
    fn multiply(self, a: Self::Words, b: Self::Words) -> Self::Words {
        whole!(_mm512_mullo_epi32, a, b)
    }
    #[inline(always)]
    fn and(self, a: Self::Words, b: Self::Words) -> Self::Words {
        whole!(_mm512_and_si512, a, b)
    }
    #[inline(always)]
    fn xor(self, a: Self::Words, b: Self::Words) -> Self::Words {
        whole!(_mm512_xor_si512, a, b)
    }
    #[inline(always)]
    fn up(self, a: Self::Words, count: u32) -> Self::Words {
        // SAFETY: see `whole`.
        unsafe { _mm512_sll_epi32(a, _mm_cvtsi32_si128(count as i32)) }
    }
    #[inline(always)]
    fn down(self, a: Self::Words, count: u32) -> Self::Words {
        // SAFETY: see `whole`.
        unsafe { _mm512_srl_epi32(a, _mm_cvtsi32_si128(count as i32)) }
    }
    #[inline(always)]
    fn to_floats(self, a: Self::Words) -> Self::Floats {
        whole!(_mm512_cvtepi32_ps, a)
    }
    #[inline(always)]
    fn lookup(self, table: Self::Floats, index: Self::Words) -> Self::Floats {
        whole!(_mm512_permutexvar_ps, index, table)
    }
}
