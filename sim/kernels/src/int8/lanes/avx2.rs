//! Sixteen lanes as two 256-bit registers.

use std::arch::x86_64::*;

use super::{Kernel, LANES, Lanes, Pair};
use crate::isa::Isa;

/// Proof that the processor has AVX2.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

/// Runs an intrinsic on both halves.
macro_rules! halves {
    ($function:ident, $($value:expr),+) => {
        // SAFETY: an `Avx2` exists only where `new` found AVX2, all that the intrinsic needs.
        unsafe { ($function($($value.0),+), $function($($value.1),+)) }
    };
}

impl Avx2 {
    /// The proof, where there is one.
    pub(super) fn new() -> Option<Self> {
        Isa::Avx2.is_available().then_some(Self(()))
    }

    /// Compiles a kernel with these instructions, and runs it. Of sixteen registers six rows of sums take twelve.
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2")]
        fn run<K: Kernel>(kernel: K, simd: Avx2) -> K::Output {
            kernel.run::<Avx2, 6>(simd)
        }
        // SAFETY: `self` proves that the processor has the feature.
        unsafe { run(kernel, self) }
    }
}

impl Lanes for Avx2 {
    type Words = (__m256i, __m256i);
    type Shift = __m128i;
    type Pairs = (__m256i, __m256i);
    type Sums = (__m256i, __m256i);

    #[inline(always)]
    fn load(self, from: &[i32; LANES]) -> Self::Words {
        let from = from.as_ptr().cast::<__m256i>();
        // SAFETY: the array holds both halves; the loads need no alignment; see `halves` for the feature.
        unsafe { (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))) }
    }
    #[inline(always)]
    fn store(self, value: Self::Words, to: &mut [i32; LANES]) {
        let to = to.as_mut_ptr().cast::<__m256i>();
        // SAFETY: the array holds both halves; the stores need no alignment; see `halves` for the feature.
        unsafe {
            _mm256_storeu_si256(to, value.0);
            _mm256_storeu_si256(to.add(1), value.1);
        }
    }
    #[inline(always)]
    fn splat(self, value: i32) -> Self::Words {
        halves!(_mm256_set1_epi32, (value, value))
    }
    #[inline(always)]
    fn widen(self, from: &[i8; LANES]) -> Self::Words {
        // SAFETY: the array holds the sixteen bytes; the load needs no alignment; see `halves` for the feature.
        unsafe {
            let bytes = _mm_loadu_si128(from.as_ptr().cast());
            (_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes)))
        }
    }
    #[inline(always)]
    fn narrow(self, value: Self::Words, to: &mut [i8; LANES]) {
        // SAFETY: the array holds the sixteen bytes; the store needs no alignment; see `halves` for the feature.
        unsafe {
            // The instruction packs the low halves of both, then the high ones: the middle quarters change places.
            let halves = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(value.0, value.1));
            let bytes = _mm_packs_epi16(_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves));
            _mm_storeu_si128(to.as_mut_ptr().cast(), bytes);
        }
    }
    #[inline(always)]
    fn add(self, a: Self::Words, b: Self::Words) -> Self::Words {
        halves!(_mm256_add_epi32, a, b)
    }
    #[inline(always)]
    fn or(self, a: Self::Words, b: Self::Words) -> Self::Words {
        halves!(_mm256_or_si256, a, b)
    }
    #[inline(always)]
    fn magnitude(self, a: Self::Words) -> Self::Words {
        halves!(_mm256_abs_epi32, a)
    }
    #[inline(always)]
    fn signed_as(self, a: Self::Words, sign: Self::Words) -> Self::Words {
        halves!(_mm256_sign_epi32, a, sign)
    }
    #[inline(always)]
    fn smaller_unsigned(self, a: Self::Words, b: Self::Words) -> Self::Words {
        halves!(_mm256_min_epu32, a, b)
    }
    #[inline(always)]
    fn shift(self, count: u32) -> Self::Shift {
        // SAFETY: SSE2 is part of every x86-64.
        unsafe { _mm_cvtsi32_si128(count as i32) }
    }
    #[inline(always)]
    fn down(self, a: Self::Words, count: Self::Shift) -> Self::Words {
        halves!(_mm256_srl_epi32, a, (count, count))
    }

    #[inline(always)]
    fn pairs(self, from: &[Pair; LANES]) -> Self::Pairs {
        let from = from.as_ptr().cast::<__m256i>();
        // SAFETY: the array holds both halves; the loads need no alignment; see `halves` for the feature.
        unsafe { (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))) }
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
        self.add(sums, halves!(_mm256_madd_epi16, a, b))
    }
    #[inline(always)]
    fn finish(self, sums: Self::Sums) -> Self::Words {
        sums
    }
}
