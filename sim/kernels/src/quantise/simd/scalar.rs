//! Sixteen lanes as an array: the definition that the instruction sets are held to.

use std::array::from_fn;

use super::{LANES, Simd};

/// Plain Rust.
#[derive(Clone, Copy)]
pub(super) struct Scalar;

impl Simd for Scalar {
    type Floats = [f32; LANES];
    type Words = [u32; LANES];
    const WIDE: bool = false;
    const TABLE_BITS: u32 = 4;

    fn load(self, from: &[f32; LANES]) -> Self::Floats {
        *from
    }
    fn store(self, value: Self::Floats, to: &mut [f32; LANES]) {
        *to = value;
    }
    fn ask_ahead(self, _at: &[f32; LANES]) {}
    fn splat(self, value: f32) -> Self::Floats {
        [value; LANES]
    }
    fn subtract(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        from_fn(|i| a[i] - b[i])
    }
    fn fused(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        from_fn(|i| a[i].mul_add(b[i], c[i]))
    }
    fn smaller(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        from_fn(|i| if a[i] < b[i] { a[i] } else { b[i] })
    }
    fn greater(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        from_fn(|i| if a[i] > b[i] { a[i] } else { b[i] })
    }
    fn smallest(self, a: Self::Floats) -> f32 {
        a.into_iter().fold(f32::INFINITY, f32::min)
    }
    fn greatest(self, a: Self::Floats) -> f32 {
        a.into_iter().fold(f32::NEG_INFINITY, f32::max)
    }
    fn are_finite(self, a: Self::Floats) -> bool {
        a.into_iter().all(f32::is_finite)
    }
    fn positive(self, a: Self::Floats) -> u16 {
        (0..LANES).fold(0, |mask, i| mask | (u16::from(a[i] > 0.0) << i))
    }
    fn keep(self, a: Self::Floats, mask: u16) -> Self::Floats {
        from_fn(|i| if mask >> i & 1 == 1 { a[i] } else { 0.0 })
    }
    fn truncate(self, a: Self::Floats) -> Self::Words {
        a.map(|x| x as u32)
    }
    fn bits(self, a: Self::Floats) -> Self::Words {
        a.map(f32::to_bits)
    }

    fn load_words(self, from: &[u32; LANES]) -> Self::Words {
        *from
    }
    fn store_words(self, value: Self::Words, to: &mut [u32; LANES]) {
        *to = value;
    }
    fn splat_word(self, value: u32) -> Self::Words {
        [value; LANES]
    }
    fn add(self, a: Self::Words, b: Self::Words) -> Self::Words {
        from_fn(|i| a[i].wrapping_add(b[i]))
    }
    fn multiply(self, a: Self::Words, b: Self::Words) -> Self::Words {
        from_fn(|i| a[i].wrapping_mul(b[i]))
    }
    fn and(self, a: Self::Words, b: Self::Words) -> Self::Words {
        from_fn(|i| a[i] & b[i])
    }
    fn xor(self, a: Self::Words, b: Self::Words) -> Self::Words {
        from_fn(|i| a[i] ^ b[i])
    }
    fn up(self, a: Self::Words, count: u32) -> Self::Words {
        a.map(|word| word << count)
    }
    fn down(self, a: Self::Words, count: u32) -> Self::Words {
        a.map(|word| word >> count)
    }
    fn to_floats(self, a: Self::Words) -> Self::Floats {
        a.map(|word| word as f32)
    }
    fn lookup(self, table: Self::Floats, index: Self::Words) -> Self::Floats {
        index.map(|i| table[i as usize % LANES])
    }
}
