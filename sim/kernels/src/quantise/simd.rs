//! Sixteen lanes of f32 and of u32, under whatever instructions the processor has.
//!
//! Every kernel of this module tree is written once, over [`Simd`], so that the instruction sets cannot disagree:
//! what each of them supplies is single operations, all exactly rounded or exact. The sixteen lanes are one
//! AVX-512 register, two of AVX2, four of NEON, or an array.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use crate::isa::Isa;

/// Lanes of one [`Simd`] vector, whatever the register width.
pub(crate) const LANES: usize = 16;

/// Operations on sixteen lanes. A value of an implementing type is the proof that the processor has the instructions.
pub(crate) trait Simd: Copy {
    /// Sixteen f32.
    type Floats: Copy;
    /// Sixteen u32.
    type Words: Copy;
    /// How many vectors of minima, and of maxima, fit the register file side by side.
    const WIDE: bool;
    /// `lookup` finds entries by this many low bits.
    const TABLE_BITS: u32;

    fn load(self, from: &[f32; LANES]) -> Self::Floats;
    fn store(self, value: Self::Floats, to: &mut [f32; LANES]);
    /// Asks for what lies 2 KiB after `at`, which may be beyond the tensor: the second-level cache answers in time.
    fn ask_ahead(self, at: &[f32; LANES]);
    fn splat(self, value: f32) -> Self::Floats;
    fn subtract(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a * b + c`, rounded once.
    fn fused(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    /// The smaller; `b` where `a` is NaN (`b` never is).
    fn smaller(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// The greater; `b` where `a` is NaN (`b` never is).
    fn greater(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// The smallest lane.
    fn smallest(self, a: Self::Floats) -> f32;
    /// The greatest lane.
    fn greatest(self, a: Self::Floats) -> f32;
    /// No lane is infinite or NaN.
    fn are_finite(self, a: Self::Floats) -> bool;
    /// Bit i is set where lane i is greater than zero.
    fn positive(self, a: Self::Floats) -> u16;
    /// Lane i of `a` where bit i of `mask` is set, and +0 elsewhere.
    fn keep(self, a: Self::Floats, mask: u16) -> Self::Floats;
    /// The integer part of lanes in 0..2^24.
    fn truncate(self, a: Self::Floats) -> Self::Words;
    fn bits(self, a: Self::Floats) -> Self::Words;

    fn load_words(self, from: &[u32; LANES]) -> Self::Words;
    fn store_words(self, value: Self::Words, to: &mut [u32; LANES]);
    fn splat_word(self, value: u32) -> Self::Words;
    /// `a + b` modulo 2^32.
    fn add(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// `a * b` modulo 2^32.
    fn multiply(self, a: Self::Words, b: Self::Words) -> Self::Words;
    fn and(self, a: Self::Words, b: Self::Words) -> Self::Words;
    fn xor(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Every lane shifted up by `count` < 32; a constant count costs one instruction.
    fn up(self, a: Self::Words, count: u32) -> Self::Words;
    /// Every lane shifted down by `count` < 32.
    fn down(self, a: Self::Words, count: u32) -> Self::Words;
    /// Lanes below 2^24 as f32, exactly.
    fn to_floats(self, a: Self::Words) -> Self::Floats;
    /// `table[index mod 2^TABLE_BITS]` in each lane; `table` repeats itself with that period.
    fn lookup(self, table: Self::Floats, index: Self::Words) -> Self::Floats;
}

/// How many f32 [`Simd::ask_ahead`] asks ahead.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 512;

/// Work that is written once and compiled for every instruction set.
pub(crate) trait Kernel {
    /// What it answers.
    type Output;
    /// Does the work. Implementations are `#[inline(always)]`, so that they take on the caller's instructions.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Runs a kernel under `isa`, or as plain Rust where this processor does not have it: the answer is the same.
pub(crate) fn dispatch<K: Kernel>(isa: Isa, kernel: K) -> K::Output {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => match avx512::Avx512::new() {
            Some(simd) => simd.run(kernel),
            None => kernel.run(scalar::Scalar),
        },
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => match avx2::Avx2::new() {
            Some(simd) => simd.run(kernel),
            None => kernel.run(scalar::Scalar),
        },
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => neon::Neon.run(kernel),
        _ => kernel.run(scalar::Scalar),
    }
}
