//! Sixteen lanes of i32, and products of pairs of i16, under whatever instructions the processor has.
//!
//! Every kernel of this module tree is written once, over [`Lanes`]. A product widens i8 to i16 as it packs, and
//! multiplies pairs: each lane adds `a0 * b0 + a1 * b1`, which x86-64 does in one instruction without rounding or
//! saturation. Its instruction for bytes would saturate, and not be faster for having to be kept from it.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use crate::isa::Isa;

/// Lanes of one vector, whatever the register width.
pub(super) const LANES: usize = 16;

/// Two successive values of a row or of a column.
pub(super) type Pair = [i16; 2];

/// Operations on sixteen lanes. A value of an implementing type is the proof that the processor has the instructions.
pub(super) trait Lanes: Copy {
    /// Sixteen i32.
    type Words: Copy;
    /// A count to shift by.
    type Shift: Copy;
    /// Sixteen pairs of i16.
    type Pairs: Copy;
    /// Sixteen sums of products in the making.
    type Sums: Copy;

    fn load(self, from: &[i32; LANES]) -> Self::Words;
    fn store(self, value: Self::Words, to: &mut [i32; LANES]);
    fn splat(self, value: i32) -> Self::Words;
    /// Bytes as words.
    fn widen(self, from: &[i8; LANES]) -> Self::Words;
    /// Words as bytes; they are in -128..=127.
    fn narrow(self, value: Self::Words, to: &mut [i8; LANES]);
    /// `a + b` modulo 2^32.
    fn add(self, a: Self::Words, b: Self::Words) -> Self::Words;
    fn or(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Without signs, as u32: that of [`i32::MIN`] is 2^31.
    fn magnitude(self, a: Self::Words) -> Self::Words;
    /// `a` or, where `sign` is negative, `-a`. Where `sign` is 0, so is `a`.
    fn signed_as(self, a: Self::Words, sign: Self::Words) -> Self::Words;
    /// The smaller of two u32.
    fn smaller_unsigned(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// `count` < 32, made ready to shift by.
    fn shift(self, count: u32) -> Self::Shift;
    /// Every lane, as u32, shifted down.
    fn down(self, a: Self::Words, count: Self::Shift) -> Self::Words;

    fn pairs(self, from: &[Pair; LANES]) -> Self::Pairs;
    /// One pair in every lane.
    fn splat_pair(self, pair: &Pair) -> Self::Pairs;
    /// No sums.
    fn nothing(self) -> Self::Sums;
    /// `sums + a0 * b0 + a1 * b1`, modulo 2^32.
    fn multiply_add(self, sums: Self::Sums, a: Self::Pairs, b: Self::Pairs) -> Self::Sums;
    fn finish(self, sums: Self::Sums) -> Self::Words;
}

/// Work that is written once and compiled for every instruction set.
pub(super) trait Kernel {
    /// What it answers.
    type Output;
    /// Does the work. `ROWS` rows of sums fit the register file beside what they are made from. Implementations are
    /// `#[inline(always)]`, so that they take on the caller's instructions.
    fn run<S: Lanes, const ROWS: usize>(self, simd: S) -> Self::Output;
}

/// Runs a kernel under `isa`, or as plain Rust where this processor does not have it: the answer is the same.
pub(super) fn dispatch<K: Kernel>(isa: Isa, kernel: K) -> K::Output {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => match (avx512::Avx512::<true>::new(), avx512::Avx512::<false>::new()) {
            (Some(simd), _) => simd.run(kernel),
            (None, Some(simd)) => simd.run(kernel),
            (None, None) => scalar::Scalar.run(kernel),
        },
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => match avx2::Avx2::new() {
            Some(simd) => simd.run(kernel),
            None => scalar::Scalar.run(kernel),
        },
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => neon::Neon.run(kernel),
        _ => scalar::Scalar.run(kernel),
    }
}
