//! Sixteen lanes as four 128-bit registers.

use std::arch::aarch64::*;
use std::array::from_fn;

use super::{LANES, Simd, Tiled};

/// Every aarch64 processor that Rust's standard library runs on has NEON, so there is nothing to prove.
#[derive(Clone, Copy)]
pub(super) struct Neon;

/// Operations that are one intrinsic on each quarter.
macro_rules! quarters {
    ($($name:ident($($value:ident: $kind:ident),+) -> $result:ident = $intrinsic:ident;)+) => { $(
        #[inline(always)]
        fn $name(self, $($value: Self::$kind),+) -> Self::$result {
            // SAFETY: NEON is part of the base of the target.
            from_fn(|i| unsafe { $intrinsic($($value[i]),+) })
        }
    )+ };
}

/// Bits 0 to 3.
const BITS: [u32; 4] = [1, 2, 4, 8];

// SAFETY of every block below: NEON is part of the base of the target; arrays of sixteen have four quarters.
impl Simd for Neon {
    type Floats = [float32x4_t; 4];
    type Words = [uint32x4_t; 4];
    type Doubles = [float64x2_t; 4];
    /// The products of first and of second values apart, lane by lane: added up once, at the end.
    type Products = [[int32x4_t; 2]; 4];
    const REGISTER: usize = 4;
    const TABLE_BITS: u32 = 0;

    quarters! {
        plus(a: Floats, b: Floats) -> Floats = vaddq_f32;
        subtract(a: Floats, b: Floats) -> Floats = vsubq_f32;
        truncate(a: Floats) -> Words = vcvtq_u32_f32;
        bits(a: Floats) -> Words = vreinterpretq_u32_f32;
        floats_of_bits(a: Words) -> Floats = vreinterpretq_f32_u32;
        add(a: Words, b: Words) -> Words = vaddq_u32;
        multiply(a: Words, b: Words) -> Words = vmulq_u32;
        and(a: Words, b: Words) -> Words = vandq_u32;
        xor(a: Words, b: Words) -> Words = veorq_u32;
        to_floats(a: Words) -> Floats = vcvtq_f32_u32;
        smaller_unsigned(a: Words, b: Words) -> Words = vminq_u32;
    }

    operations! {
        fn load(self, from: &[f32; LANES]) -> Self::Floats =
            from_fn(|i| unsafe { vld1q_f32(from.as_ptr().add(4 * i)) });
        fn store(self, value: Self::Floats, to: &mut [f32; LANES]) = {
            for (quarter, to) in value.into_iter().zip(to.as_chunks_mut::<4>().0) {
                // SAFETY: `to` has room for a quarter.
                unsafe { vst1q_f32(to.as_mut_ptr(), quarter) }
            }
        };
        fn splat(self, value: f32) -> Self::Floats = [unsafe { vdupq_n_f32(value) }; 4];
        fn fused(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats =
            from_fn(|i| unsafe { vfmaq_f32(c[i], a[i], b[i]) });
        // A comparison and a selection rather than `fminnm`, which turns a signalling NaN into NaN. The comparison is
        // false for every kind of NaN.
        fn smaller(self, a: Self::Floats, b: Self::Floats) -> Self::Floats =
            from_fn(|i| unsafe { vbslq_f32(vcltq_f32(a[i], b[i]), a[i], b[i]) });
        fn greater(self, a: Self::Floats, b: Self::Floats) -> Self::Floats =
            from_fn(|i| unsafe { vbslq_f32(vcgtq_f32(a[i], b[i]), a[i], b[i]) });
        fn smallest(self, a: Self::Floats) -> f32 =
            unsafe { vminvq_f32(vminq_f32(vminq_f32(a[0], a[1]), vminq_f32(a[2], a[3]))) };
        fn greatest(self, a: Self::Floats) -> f32 =
            unsafe { vmaxvq_f32(vmaxq_f32(vmaxq_f32(a[0], a[1]), vmaxq_f32(a[2], a[3]))) };
        fn are_finite(self, a: Self::Floats) -> bool = {
            // Infinity less itself is NaN, anything finite less itself is 0, and the greatest of NaN and 0 is NaN.
            (0..4).all(|i| unsafe { vmaxvq_f32(vsubq_f32(a[i], a[i])) } == 0.0)
        };
        fn keep(self, a: Self::Floats, mask: u16) -> Self::Floats = {
            let kept = from_fn(|i| unsafe { vtstq_u32(vdupq_n_u32(u32::from(mask) >> (4 * i)), vld1q_u32(BITS.as_ptr())) });
            self.floats_of_bits(self.and(self.bits(a), kept))
        };
        fn empty(self, a: Self::Floats, into: Self::Doubles) -> Self::Doubles = unsafe {
            let (low, high) = (vaddq_f32(a[0], a[2]), vaddq_f32(a[1], a[3]));
            let wide = [
                vcvt_f64_f32(vget_low_f32(low)), vcvt_high_f64_f32(low),
                vcvt_f64_f32(vget_low_f32(high)), vcvt_high_f64_f32(high),
            ];
            from_fn(|i| vaddq_f64(into[i], wide[i]))
        };
        fn no_doubles(self) -> Self::Doubles = [unsafe { vdupq_n_f64(0.0) }; 4];
        fn total(self, a: Self::Doubles) -> f64 =
            unsafe { vaddvq_f64(vaddq_f64(vaddq_f64(a[0], a[2]), vaddq_f64(a[1], a[3]))) };

        fn load_words(self, from: &[u32; LANES]) -> Self::Words =
            from_fn(|i| unsafe { vld1q_u32(from.as_ptr().add(4 * i)) });
        fn store_words(self, value: Self::Words, to: &mut [u32; LANES]) = {
            for (quarter, to) in value.into_iter().zip(to.as_chunks_mut::<4>().0) {
                // SAFETY: `to` has room for a quarter.
                unsafe { vst1q_u32(to.as_mut_ptr(), quarter) }
            }
        };
        fn splat_word(self, value: u32) -> Self::Words = [unsafe { vdupq_n_u32(value) }; 4];
        fn up(self, a: Self::Words, count: u32) -> Self::Words =
            from_fn(|i| unsafe { vshlq_u32(a[i], vdupq_n_s32(count as i32)) });
        // A negative count shifts down.
        fn down(self, a: Self::Words, count: u32) -> Self::Words =
            from_fn(|i| unsafe { vshlq_u32(a[i], vdupq_n_s32(-(count as i32))) });
        // Never called: TABLE_BITS is 0. Two table instructions a quarter would be slower than the multiply-add.
        fn lookup(self, table: Self::Floats, _index: Self::Words) -> Self::Floats = table;

        fn widen(self, from: &[i8; LANES]) -> Self::Words = unsafe {
            let bytes = vld1q_s8(from.as_ptr());
            let (low, high) = (vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes));
            [vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low), vmovl_s16(vget_low_s16(high)), vmovl_high_s16(high)]
                .map(|quarter| vreinterpretq_u32_s32(quarter))
        };
        fn narrow(self, value: Self::Words, to: &mut [i8; LANES]) = unsafe {
            let [a, b, c, d] = value;
            let low = vmovn_high_u32(vmovn_u32(a), b);
            let high = vmovn_high_u32(vmovn_u32(c), d);
            vst1q_s8(to.as_mut_ptr(), vreinterpretq_s8_u8(vmovn_high_u16(vmovn_u16(low), high)));
        };
        fn magnitude(self, a: Self::Words) -> Self::Words =
            from_fn(|i| unsafe { vreinterpretq_u32_s32(vabsq_s32(vreinterpretq_s32_u32(a[i]))) });
        fn signed_as(self, a: Self::Words, sign: Self::Words) -> Self::Words = {
            from_fn(|i| unsafe {
                let negated = vreinterpretq_u32_s32(vnegq_s32(vreinterpretq_s32_u32(a[i])));
                vbslq_u32(vcltzq_s32(vreinterpretq_s32_u32(sign[i])), negated, a[i])
            })
        };
        fn no_products(self) -> Self::Products = [[unsafe { vdupq_n_s32(0) }; 2]; 4];
        fn multiply_add(self, sums: Self::Products, a: Self::Words, b: Self::Words) -> Self::Products = {
            from_fn(|i| {
                let [low, high] = sums[i];
                unsafe {
                    let (a, b) = (vreinterpretq_s16_u32(a[i]), vreinterpretq_s16_u32(b[i]));
                    [vmlal_s16(low, vget_low_s16(a), vget_low_s16(b)), vmlal_high_s16(high, a, b)]
                }
            })
        };
        fn finish(self, sums: Self::Products) -> Self::Words =
            sums.map(|[low, high]| unsafe { vreinterpretq_u32_s32(vpaddq_s32(low, high)) });
    }

    // Three rows of sums take twenty-four of the thirty-two registers.
    #[inline(always)]
    fn tiled<T: Tiled>(self, work: T) -> T::Output {
        work.run::<Self, 3>(self)
    }
}
