//! Sixteen lanes as two 256-bit registers.

use std::arch::x86_64::*;

use super::{AHEAD, Kernel, LANES, Loops, Simd, Tiled};

/// Proof that the processor has AVX2 and FMA: only [`run`] makes one.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

/// Compiles a kernel with these instructions, and runs it.
#[target_feature(enable = "avx2,fma")]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2(()))
}

/// Whether the processor has the instructions for bits that came with AVX2.
pub(super) fn has_bits() -> bool {
    is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

/// Compiles loops with these instructions and those for bits, and runs them.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run_loops<L: Loops>(loops: L) -> L::Output {
    loops.run::<true>()
}

/// Operations that are one intrinsic on each half.
macro_rules! halves {
    ($($name:ident($($value:ident: $kind:ident),+) -> $result:ident = $intrinsic:ident;)+) => { $(
        #[inline(always)]
        fn $name(self, $($value: Self::$kind),+) -> Self::$result {
            // SAFETY: an `Avx2` exists only where the processor has AVX2 and FMA, all that the intrinsic needs.
            unsafe { ($intrinsic($($value.0),+), $intrinsic($($value.1),+)) }
        }
    )+ };
}

// SAFETY of every block below: see `halves` for the features; arrays of sixteen have both halves, and loads and
// stores need no alignment.
impl Simd for Avx2 {
    type Floats = (__m256, __m256);
    type Words = (__m256i, __m256i);
    type Doubles = (__m256d, __m256d);
    type Products = (__m256i, __m256i);
    const REGISTER: usize = 8;
    const TABLE_BITS: u32 = 3;

    halves! {
        plus(a: Floats, b: Floats) -> Floats = _mm256_add_ps;
        subtract(a: Floats, b: Floats) -> Floats = _mm256_sub_ps;
        fused(a: Floats, b: Floats, c: Floats) -> Floats = _mm256_fmadd_ps;
        // The instruction returns its second operand if either is NaN.
        smaller(a: Floats, b: Floats) -> Floats = _mm256_min_ps;
        greater(a: Floats, b: Floats) -> Floats = _mm256_max_ps;
        truncate(a: Floats) -> Words = _mm256_cvttps_epi32;
        bits(a: Floats) -> Words = _mm256_castps_si256;
        floats_of_bits(a: Words) -> Floats = _mm256_castsi256_ps;
        add(a: Words, b: Words) -> Words = _mm256_add_epi32;
        multiply(a: Words, b: Words) -> Words = _mm256_mullo_epi32;
        and(a: Words, b: Words) -> Words = _mm256_and_si256;
        xor(a: Words, b: Words) -> Words = _mm256_xor_si256;
        to_floats(a: Words) -> Floats = _mm256_cvtepi32_ps;
        lookup(table: Floats, index: Words) -> Floats = _mm256_permutevar8x32_ps;
        magnitude(a: Words) -> Words = _mm256_abs_epi32;
        signed_as(a: Words, sign: Words) -> Words = _mm256_sign_epi32;
        smaller_unsigned(a: Words, b: Words) -> Words = _mm256_min_epu32;
    }

    operations! {
        fn load(self, from: &[f32; LANES]) -> Self::Floats = {
            let from = from.as_ptr();
            unsafe { (_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))) }
        };
        fn store(self, value: Self::Floats, to: &mut [f32; LANES]) = {
            let to = to.as_mut_ptr();
            unsafe {
                _mm256_storeu_ps(to, value.0);
                _mm256_storeu_ps(to.add(8), value.1);
            }
        };
        fn ask_ahead(self, at: &[f32; LANES]) = {
            // SAFETY: a prefetch reads nothing that the program can see, and faults on no address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at.as_ptr().wrapping_add(AHEAD).cast()) }
        };
        fn splat(self, value: f32) -> Self::Floats = {
            let all = unsafe { _mm256_set1_ps(value) };
            (all, all)
        };
        fn smallest(self, a: Self::Floats) -> f32 = unsafe {
            let a = _mm256_min_ps(a.0, a.1);
            let a = _mm_min_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_min_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_min_ss(a, _mm_movehdup_ps(a)))
        };
        fn greatest(self, a: Self::Floats) -> f32 = unsafe {
            let a = _mm256_max_ps(a.0, a.1);
            let a = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_max_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a)))
        };
        fn are_finite(self, a: Self::Floats) -> bool = unsafe {
            // Infinity less itself is NaN, and anything finite less itself is not.
            let difference = _mm256_add_ps(_mm256_sub_ps(a.0, a.0), _mm256_sub_ps(a.1, a.1));
            _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_UNORD_Q>(difference, difference)) == 0
        };
        fn keep(self, a: Self::Floats, mask: u16) -> Self::Floats = {
            let sign = unsafe {
                let lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
                let (low, high) = (_mm256_set1_epi32(i32::from(mask)), _mm256_set1_epi32(i32::from(mask >> 8)));
                (_mm256_and_si256(low, lane), _mm256_and_si256(high, lane))
            };
            // The sign of 0 makes 0, a positive one keeps. The compiler would turn a comparison and a
            // conjunction into a masked store when the result goes back in place, which is far slower than a
            // whole store on some processors.
            self.floats_of_bits(self.signed_as(self.bits(a), sign))
        };
        fn empty(self, a: Self::Floats, into: Self::Doubles) -> Self::Doubles = unsafe {
            let a = _mm256_add_ps(a.0, a.1);
            let low = _mm256_cvtps_pd(_mm256_castps256_ps128(a));
            let high = _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(a));
            (_mm256_add_pd(into.0, low), _mm256_add_pd(into.1, high))
        };
        fn no_doubles(self) -> Self::Doubles = unsafe { (_mm256_setzero_pd(), _mm256_setzero_pd()) };
        fn total(self, a: Self::Doubles) -> f64 = {
            let mut lanes = [0.0_f64; 4];
            // SAFETY: see above; `lanes` has four elements.
            unsafe { _mm256_storeu_pd(lanes.as_mut_ptr(), _mm256_add_pd(a.0, a.1)) };
            (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
        };

        fn load_words(self, from: &[u32; LANES]) -> Self::Words = {
            let from = from.as_ptr().cast::<__m256i>();
            unsafe { (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))) }
        };
        fn store_words(self, value: Self::Words, to: &mut [u32; LANES]) = {
            let to = to.as_mut_ptr().cast::<__m256i>();
            unsafe {
                _mm256_storeu_si256(to, value.0);
                _mm256_storeu_si256(to.add(1), value.1);
            }
        };
        fn splat_word(self, value: u32) -> Self::Words = {
            let all = unsafe { _mm256_set1_epi32(value as i32) };
            (all, all)
        };
        fn up(self, a: Self::Words, count: u32) -> Self::Words = unsafe {
            let count = _mm_cvtsi32_si128(count as i32);
            (_mm256_sll_epi32(a.0, count), _mm256_sll_epi32(a.1, count))
        };
        fn down(self, a: Self::Words, count: u32) -> Self::Words = unsafe {
            let count = _mm_cvtsi32_si128(count as i32);
            (_mm256_srl_epi32(a.0, count), _mm256_srl_epi32(a.1, count))
        };

        fn widen(self, from: &[i8; LANES]) -> Self::Words = unsafe {
            let bytes = _mm_loadu_si128(from.as_ptr().cast());
            (_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes)))
        };
        fn narrow(self, value: Self::Words, to: &mut [i8; LANES]) = unsafe {
            // The instruction packs the low halves of both, then the high ones, so the middle
            // quarters are swapped first.
            let halves = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(value.0, value.1));
            let bytes = _mm_packs_epi16(_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves));
            _mm_storeu_si128(to.as_mut_ptr().cast(), bytes);
        };
        fn no_products(self) -> Self::Products = self.splat_word(0);
        fn multiply_add(self, sums: Self::Products, a: Self::Words, b: Self::Words) -> Self::Products =
            self.add(sums, unsafe { (_mm256_madd_epi16(a.0, b.0), _mm256_madd_epi16(a.1, b.1)) });
        fn finish(self, sums: Self::Products) -> Self::Words = sums;
    }

    // Six rows of sums take twelve of the sixteen registers.
    #[inline(always)]
    fn tiled<T: Tiled>(self, work: T) -> T::Output {
        work.run::<Self, 6>(self)
    }
}
