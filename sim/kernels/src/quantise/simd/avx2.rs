//! Sixteen lanes as two 256-bit registers.

use std::arch::x86_64::*;

use super::{AHEAD, Kernel, LANES, Simd};
use crate::isa::Isa;

/// Proof that the processor has AVX2 and FMA.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

/// Runs an intrinsic on both halves.
macro_rules! halves {
    ($function:ident, $($value:expr),+) => {
        // SAFETY: an `Avx2` exists only where `new` found AVX2 and FMA, all that the intrinsic needs.
        unsafe { ($function($($value.0),+), $function($($value.1),+)) }
    };
}

impl Avx2 {
    /// The proof, where there is one.
    pub(super) fn new() -> Option<Self> {
        Isa::Avx2.is_available().then_some(Self(()))
    }

    /// Compiles a kernel with these instructions, and runs it.
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma")]
        fn run<K: Kernel>(kernel: K, simd: Avx2) -> K::Output {
            kernel.run(simd)
        }
        // SAFETY: `self` proves that the processor has both features.
        unsafe { run(kernel, self) }
    }
}

impl Simd for Avx2 {
    type Floats = (__m256, __m256);
    type Words = (__m256i, __m256i);
    const WIDE: bool = false;
    const TABLE_BITS: u32 = 3;

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::Floats {
        let from = from.as_ptr();
        // SAFETY: the array holds both halves; the loads need no alignment; see `halves` for the features.
        unsafe { (_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))) }
    }
    #[inline(always)]
    fn store(self, value: Self::Floats, to: &mut [f32; LANES]) {
        let to = to.as_mut_ptr();
        // SAFETY: the array holds both halves; the stores need no alignment; see `halves` for the features.
        unsafe {
            _mm256_storeu_ps(to, value.0);
            _mm256_storeu_ps(to.add(8), value.1);
        }
    }
    #[inline(always)]
    fn ask_ahead(self, at: &[f32; LANES]) {
        // SAFETY: a prefetch reads nothing that the program can see, and faults on no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.as_ptr().wrapping_add(AHEAD).cast()) }
    }
    #[inline(always)]
    fn splat(self, value: f32) -> Self::Floats {
        halves!(_mm256_set1_ps, (value, value))
    }
    #[inline(always)]
    fn subtract(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        halves!(_mm256_sub_ps, a, b)
    }
    #[inline(always)]
    fn fused(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        halves!(_mm256_fmadd_ps, a, b, c)
    }
    // The instruction answers its second operand where either is NaN.
    #[inline(always)]
    fn smaller(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        halves!(_mm256_min_ps, a, b)
    }
    #[inline(always)]
    fn greater(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        halves!(_mm256_max_ps, a, b)
    }
    #[inline(always)]
    fn smallest(self, a: Self::Floats) -> f32 {
        // SAFETY: see `halves`.
        unsafe {
            let a = _mm256_min_ps(a.0, a.1);
            let a = _mm_min_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_min_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_min_ss(a, _mm_movehdup_ps(a)))
        }
    }
    #[inline(always)]
    fn greatest(self, a: Self::Floats) -> f32 {
        // SAFETY: see `halves`.
        unsafe {
            let a = _mm256_max_ps(a.0, a.1);
            let a = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_max_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a)))
        }
    }
    #[inline(always)]
    fn are_finite(self, a: Self::Floats) -> bool {
        // SAFETY: see `halves`.
        unsafe {
            // Infinity less itself is NaN, and anything finite less itself is not.
            let difference = _mm256_add_ps(_mm256_sub_ps(a.0, a.0), _mm256_sub_ps(a.1, a.1));
            _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_UNORD_Q>(difference, difference)) == 0
        }
    }
    #[inline(always)]
    fn positive(self, a: Self::Floats) -> u16 {
        // SAFETY: see `halves`.
        unsafe {
            let zero = _mm256_setzero_ps();
            let low = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(a.0, zero));
            let high = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(a.1, zero));
            (low | high << 8) as u16
        }
    }
    #[inline(always)]
    fn keep(self, a: Self::Floats, mask: u16) -> Self::Floats {
        // SAFETY: see `halves`.
        unsafe {
            let lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let (low, high) = (_mm256_set1_epi32(i32::from(mask)), _mm256_set1_epi32(i32::from(mask >> 8)));
            let (low, high) = (_mm256_and_si256(low, lane), _mm256_and_si256(high, lane));
            // The sign of 0 makes 0, a positive one keeps. A comparison and a conjunction would be stored under a
            // mask where they are stored back in place, which some processors do far more slowly than whole.
            let (low, high) =
                (_mm256_sign_epi32(_mm256_castps_si256(a.0), low), _mm256_sign_epi32(_mm256_castps_si256(a.1), high));
            (_mm256_castsi256_ps(low), _mm256_castsi256_ps(high))
        }
    }
    #[inline(always)]
    fn truncate(self, a: Self::Floats) -> Self::Words {
        halves!(_mm256_cvttps_epi32, a)
    }
    #[inline(always)]
    fn bits(self, a: Self::Floats) -> Self::Words {
        halves!(_mm256_castps_si256, a)
    }

    #[inline(always)]
    fn load_words(self, from: &[u32; LANES]) -> Self::Words {
        let from = from.as_ptr().cast::<__m256i>();
        // SAFETY: the array holds both halves; the loads need no alignment; see `halves` for the features.
        unsafe { (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))) }
    }
    #[inline(always)]
    fn store_words(self, value: Self::Words, to: &mut [u32; LANES]) {
        let to = to.as_mut_ptr().cast::<__m256i>();
        // SAFETY: the array holds both halves; the stores need no alignment; see `halves` for the features.
        unsafe {
            _mm256_storeu_si256(to, value.0);
            _mm256_storeu_si256(to.add(1), value.1);
        }
    }
    #[inline(always)]
    fn splat_word(self, value: u32) -> Self::Words {
        halves!(_mm256_set1_epi32, (value as i32, value as i32))
    }
    #[inline(always)]
    fn add(self, a: Self::Words, b: Self::Words) -> Self::Words {
        halves!(_mm256_add_epi32, a, b)
    }
    #[inline(always)]
    fn multiply(self, a: Self::Words, b: Self::Words) -> Self::Words {
        halves!(_mm256_mullo_epi32, a, b)
    }
    #[inline(always)]
    fn and(self, a: Self::Words, b: Self::Words) -> Self::Words {
        halves!(_mm256_and_si256, a, b)
    }
    #[inline(always)]
    fn xor(self, a: Self::Words, b: Self::Words) -> Self::Words {
        halves!(_mm256_xor_si256, a, b)
    }
    #[inline(always)]
    fn up(self, a: Self::Words, count: u32) -> Self::Words {
        // SAFETY: see `halves`.
        let count = unsafe { _mm_cvtsi32_si128(count as i32) };
        halves!(_mm256_sll_epi32, a, (count, count))
    }
    #[inline(always)]
    fn down(self, a: Self::Words, count: u32) -> Self::Words {
        // SAFETY: see `halves`.
        let count = unsafe { _mm_cvtsi32_si128(count as i32) };
        halves!(_mm256_srl_epi32, a, (count, count))
    }
    #[inline(always)]
    fn to_floats(self, a: Self::Words) -> Self::Floats {
        halves!(_mm256_cvtepi32_ps, a)
    }
    #[inline(always)]
    fn lookup(self, table: Self::Floats, index: Self::Words) -> Self::Floats {
        halves!(_mm256_permutevar8x32_ps, (table.0, table.0), index)
    }
}
