//! Sixteen lanes as an array: the definition that the instruction sets must agree with.

use std::array::from_fn;

use super::{LANES, Simd, Tiled, total};

/// Plain Rust.
#[derive(Clone, Copy)]
pub(super) struct Scalar;

/// Operations that are one expression on each lane.
macro_rules! lanes {
    ($($name:ident($($value:ident: $kind:ident),+) -> $result:ident = $expression:expr;)+) => { $(
        #[inline(always)]
        fn $name(self, $($value: Self::$kind),+) -> Self::$result {
            from_fn(|i| {
                $(let $value = $value[i];)+
                $expression
            })
        }
    )+ };
}

impl Simd for Scalar {
    type Floats = [f32; LANES];
    type Words = [u32; LANES];
    type Doubles = [f64; 8];
    type Products = [u32; LANES];
    const REGISTER: usize = 1;
    const TABLE_BITS: u32 = 4;

    lanes! {
        plus(a: Floats, b: Floats) -> Floats = a + b;
        subtract(a: Floats, b: Floats) -> Floats = a - b;
        fused(a: Floats, b: Floats, c: Floats) -> Floats = a.mul_add(b, c);
        smaller(a: Floats, b: Floats) -> Floats = if a < b { a } else { b };
        greater(a: Floats, b: Floats) -> Floats = if a > b { a } else { b };
        truncate(a: Floats) -> Words = a as u32;
        bits(a: Floats) -> Words = a.to_bits();
        floats_of_bits(a: Words) -> Floats = f32::from_bits(a);
        add(a: Words, b: Words) -> Words = a.wrapping_add(b);
        multiply(a: Words, b: Words) -> Words = a.wrapping_mul(b);
        and(a: Words, b: Words) -> Words = a & b;
        xor(a: Words, b: Words) -> Words = a ^ b;
        to_floats(a: Words) -> Floats = a as f32;
        magnitude(a: Words) -> Words = (a as i32).unsigned_abs();
        signed_as(a: Words, sign: Words) -> Words = if (sign as i32) < 0 { a.wrapping_neg() } else { a };
        smaller_unsigned(a: Words, b: Words) -> Words = a.min(b);
    }

    operations! {
        fn load(self, from: &[f32; LANES]) -> Self::Floats = *from;
        fn store(self, value: Self::Floats, to: &mut [f32; LANES]) = *to = value;
        fn splat(self, value: f32) -> Self::Floats = [value; LANES];
        fn smallest(self, a: Self::Floats) -> f32 = a.into_iter().fold(f32::INFINITY, f32::min);
        fn greatest(self, a: Self::Floats) -> f32 = a.into_iter().fold(f32::NEG_INFINITY, f32::max);
        fn are_finite(self, a: Self::Floats) -> bool = a.into_iter().all(f32::is_finite);
        fn keep(self, a: Self::Floats, mask: u16) -> Self::Floats =
            from_fn(|i| if mask >> i & 1 == 1 { a[i] } else { 0.0 });
        fn empty(self, a: Self::Floats, into: Self::Doubles) -> Self::Doubles =
            from_fn(|i| into[i] + f64::from(a[i] + a[i + 8]));
        fn no_doubles(self) -> Self::Doubles = [0.0; 8];
        fn total(self, a: Self::Doubles) -> f64 = total(a);

        fn load_words(self, from: &[u32; LANES]) -> Self::Words = *from;
        fn store_words(self, value: Self::Words, to: &mut [u32; LANES]) = *to = value;
        fn splat_word(self, value: u32) -> Self::Words = [value; LANES];
        fn up(self, a: Self::Words, count: u32) -> Self::Words = a.map(|word| word << count);
        fn down(self, a: Self::Words, count: u32) -> Self::Words = a.map(|word| word >> count);
    }

    // Not forced inline: the compiler then makes a slower loop of the whole.
    fn lookup(self, table: Self::Floats, index: Self::Words) -> Self::Floats {
        index.map(|i| table[i as usize % LANES])
    }

    operations! {
        fn widen(self, from: &[i8; LANES]) -> Self::Words = from.map(|byte| i32::from(byte) as u32);
        fn narrow(self, value: Self::Words, to: &mut [i8; LANES]) = *to = value.map(|word| word as i8);
        fn no_products(self) -> Self::Products = [0; LANES];
        fn multiply_add(self, sums: Self::Products, a: Self::Words, b: Self::Words) -> Self::Products = {
            let product = |a: i32, b: i32| (a as i16 as i32).wrapping_mul(b as i16 as i32);
            from_fn(|i| {
                let (a, b) = (a[i] as i32, b[i] as i32);
                sums[i].wrapping_add(product(a, b) as u32).wrapping_add(product(a >> 16, b >> 16) as u32)
            })
        };
        fn finish(self, sums: Self::Products) -> Self::Words = sums;
    }

    #[inline(always)]
    fn tiled<T: Tiled>(self, work: T) -> T::Output {
        work.run::<Self, 4>(self)
    }
}
