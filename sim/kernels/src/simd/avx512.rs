//! Sixteen lanes as one 512-bit register; with VNNI, four products of bytes a lane are added as they are made.

use std::arch::x86_64::*;

use super::{AHEAD, Kernel, LANES, Simd, Tiled, total};

/// Proof that the processor has AVX-512 F, BW, DQ and VL, and VNNI if the parameter is set: only [`run`]
/// and [`run_vnni`] make one.
#[derive(Clone, Copy)]
pub(super) struct Avx512<const VNNI: bool>(());

/// Compiles a kernel with these instructions, and runs it.
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512::<false>(()))
}

/// The same with VNNI.
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn run_vnni<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512::<true>(()))
}

/// Operations that are one intrinsic.
macro_rules! whole {
    ($($name:ident($($value:ident: $kind:ident),+) -> $result:ident = $intrinsic:ident;)+) => { $(
        #[inline(always)]
        fn $name(self, $($value: Self::$kind),+) -> Self::$result {
            // SAFETY: an `Avx512` exists only where the processor has AVX-512 F, BW, DQ and VL, all that it needs.
            unsafe { $intrinsic($($value),+) }
        }
    )+ };
}

// SAFETY of every block below: see `whole` for the features; arrays have sixteen lanes, and loads and
// stores need no alignment.
impl<const VNNI: bool> Simd for Avx512<VNNI> {
    type Floats = __m512;
    type Words = __m512i;
    type Doubles = __m512d;
    type Products = __m512i;
    const REGISTER: usize = 16;
    const TABLE_BITS: u32 = 4;
    const DEPTH: usize = if VNNI { 4 } else { 2 };

    whole! {
        plus(a: Floats, b: Floats) -> Floats = _mm512_add_ps;
        subtract(a: Floats, b: Floats) -> Floats = _mm512_sub_ps;
        fused(a: Floats, b: Floats, c: Floats) -> Floats = _mm512_fmadd_ps;
        // The instruction returns its second operand if either is NaN.
        smaller(a: Floats, b: Floats) -> Floats = _mm512_min_ps;
        greater(a: Floats, b: Floats) -> Floats = _mm512_max_ps;
        truncate(a: Floats) -> Words = _mm512_cvttps_epi32;
        bits(a: Floats) -> Words = _mm512_castps_si512;
        floats_of_bits(a: Words) -> Floats = _mm512_castsi512_ps;
        add(a: Words, b: Words) -> Words = _mm512_add_epi32;
        multiply(a: Words, b: Words) -> Words = _mm512_mullo_epi32;
        and(a: Words, b: Words) -> Words = _mm512_and_si512;
        xor(a: Words, b: Words) -> Words = _mm512_xor_si512;
        to_floats(a: Words) -> Floats = _mm512_cvtepi32_ps;
        magnitude(a: Words) -> Words = _mm512_abs_epi32;
        smaller_unsigned(a: Words, b: Words) -> Words = _mm512_min_epu32;
    }

    operations! {
        fn load(self, from: &[f32; LANES]) -> Self::Floats = unsafe { _mm512_loadu_ps(from.as_ptr()) };
        fn store(self, value: Self::Floats, to: &mut [f32; LANES]) =
            unsafe { _mm512_storeu_ps(to.as_mut_ptr(), value) };
        fn ask_ahead(self, at: &[f32; LANES]) = {
            // SAFETY: a prefetch reads nothing that the program can see, and faults on no address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at.as_ptr().wrapping_add(AHEAD).cast()) }
        };
        fn splat(self, value: f32) -> Self::Floats = unsafe { _mm512_set1_ps(value) };
        fn smallest(self, a: Self::Floats) -> f32 = unsafe { _mm512_reduce_min_ps(a) };
        fn greatest(self, a: Self::Floats) -> f32 = unsafe { _mm512_reduce_max_ps(a) };
        fn are_finite(self, a: Self::Floats) -> bool = unsafe {
            // Infinity less itself is NaN, and anything finite less itself is not.
            let difference = _mm512_sub_ps(a, a);
            _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(difference, difference) == 0
        };
        fn keep(self, a: Self::Floats, mask: u16) -> Self::Floats = unsafe { _mm512_maskz_mov_ps(mask, a) };
        fn empty(self, a: Self::Floats, into: Self::Doubles) -> Self::Doubles = unsafe {
            let halves = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps::<1>(a));
            _mm512_add_pd(into, _mm512_cvtps_pd(halves))
        };
        fn no_doubles(self) -> Self::Doubles = unsafe { _mm512_setzero_pd() };
        fn total(self, a: Self::Doubles) -> f64 = {
            let mut lanes = [0.0_f64; 8];
            // SAFETY: see above; `lanes` has eight elements.
            unsafe { _mm512_storeu_pd(lanes.as_mut_ptr(), a) };
            total(lanes)
        };

        fn load_words(self, from: &[u32; LANES]) -> Self::Words = unsafe { _mm512_loadu_si512(from.as_ptr().cast()) };
        fn store_words(self, value: Self::Words, to: &mut [u32; LANES]) =
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), value) };
        fn splat_word(self, value: u32) -> Self::Words = unsafe { _mm512_set1_epi32(value as i32) };
        fn up(self, a: Self::Words, count: u32) -> Self::Words =
            unsafe { _mm512_sll_epi32(a, _mm_cvtsi32_si128(count as i32)) };
        fn down(self, a: Self::Words, count: u32) -> Self::Words =
            unsafe { _mm512_srlv_epi32(a, _mm512_set1_epi32(count as i32)) };
        fn lookup(self, table: Self::Floats, index: Self::Words) -> Self::Floats =
            unsafe { _mm512_permutexvar_ps(index, table) };

        fn widen(self, from: &[i8; LANES]) -> Self::Words =
            unsafe { _mm512_cvtepi8_epi32(_mm_loadu_si128(from.as_ptr().cast())) };
        fn narrow(self, value: Self::Words, to: &mut [i8; LANES]) =
            unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), _mm512_cvtepi32_epi8(value)) };
        fn signed_as(self, a: Self::Words, sign: Self::Words) -> Self::Words =
            unsafe { _mm512_mask_sub_epi32(a, _mm512_movepi32_mask(sign), _mm512_setzero_si512(), a) };
        fn no_products(self) -> Self::Products = self.splat_word(0);
        fn multiply_add(self, sums: Self::Products, a: Self::Words, b: Self::Words) -> Self::Products = {
            if VNNI {
                // SAFETY: `run_vnni` is called only if the processor has VNNI, too.
                unsafe { _mm512_dpbusd_epi32(sums, a, b) }
            } else {
                self.add(sums, unsafe { _mm512_madd_epi16(a, b) })
            }
        };
        fn finish(self, sums: Self::Products) -> Self::Words = sums;
    }

    // There are registers for twice as many rows; twelve keep two multipliers busy, and fewer pad less.
    #[inline(always)]
    fn tiled<T: Tiled>(self, work: T) -> T::Output {
        work.run::<Self, 12>(self)
    }
}
