//! Rounding to the nearest code, or stochastically up or down.

use super::format::Bits;
use crate::simd::{LANES, Simd};

/// How a value between two codes is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// To the nearest code, and to the even one of two that are equally near.
    NearestEven,
    /// Up with the probability of the fraction, so that the mean is kept. The draw for an element depends only on the
    /// seed and on the element's index (modulo 2^32).
    Stochastic {
        /// The seed of the draws.
        seed: u64,
    },
}

/// Added to a code below 2^23, it makes the bits of a float: those of 2^23 (DAF, equation 5).
pub(super) const MAGIC: u32 = 0x4B00_0000;
/// Spacing of the draws.
const DRAW: f32 = 1.0 / 16_777_216.0;

/// The two words that a seed is expanded to (Steele et al., `SplitMix64`, OOPSLA 2014).
fn keys(seed: u64) -> [u32; 2] {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    [z as u32, (z >> 32) as u32]
}

/// The draw of [`Rounding::Stochastic`] for an element: a multiple of 2^-24 in 0..1.
///
/// Two rounds of Wellons' `lowbias32` hash, each after a word of the key: a bijection of the index for every seed.
pub fn draw(seed: u64, element: usize) -> f32 {
    let [first, second] = keys(seed);
    (mix(mix(element as u32 ^ first).wrapping_add(second)) >> 8) as f32 * DRAW
}

fn mix(mut h: u32) -> u32 {
    h = (h ^ h >> 16).wrapping_mul(0x7FEB_352D);
    h = (h ^ h >> 15).wrapping_mul(0x846C_A68B);
    h ^ h >> 16
}

/// A way of rounding, with its constants in registers.
pub(super) trait Rounder<S: Simd>: Copy {
    /// The bias that [`code`](Self::code) adds to every code; the packer subtracts it once a word.
    const BIAS: u32;
    /// The codes of elements `element` to `element + 15`. `slope` is minus the inverse of the step: the difference is
    /// computed as `minimum - x`, whose `x` may come straight from memory.
    fn code(self, x: S::Floats, minimum: S::Floats, slope: S::Floats, element: usize) -> S::Words;
}

/// The sum of the biases of a word's codes.
pub(super) const fn word_bias(bias: u32, bits: u32, codes: usize) -> u32 {
    let (mut sum, mut i) = (0_u32, 0);
    while i < codes {
        sum = sum.wrapping_add(bias << (bits * i as u32));
        i += 1;
    }
    sum
}

/// To the nearest: adding 2^23 leaves no bits for a fraction.
///
/// With `CAREFUL`, NaN and values below the minimum give 0, and values above the range the last code. Without, no value
/// may be NaN or outside the range that the step was made from. Codes then cannot exceed the last: rounding is
/// monotone, so `x - minimum` is at most the range that the step was made from; the step and its inverse are each off
/// by 2^-21 at most (their parts, subnormals included); and 255 * (1 + 2^-20) is still nearer to 255 than to 256.
#[derive(Clone, Copy)]
pub(super) struct Nearest<S: Simd, const CAREFUL: bool> {
    simd: S,
    zero: S::Floats,
    magic: S::Floats,
    top: S::Floats,
}

impl<S: Simd, const CAREFUL: bool> Nearest<S, CAREFUL> {
    #[inline(always)]
    pub(super) fn new(simd: S, bits: Bits) -> Self {
        let top = simd.splat(f32::from_bits(MAGIC + bits.top()));
        Self { simd, zero: simd.splat(0.0), magic: simd.splat(f32::from_bits(MAGIC)), top }
    }
}

impl<S: Simd, const CAREFUL: bool> Rounder<S> for Nearest<S, CAREFUL> {
    const BIAS: u32 = MAGIC;

    // The minimum is not folded into the addend: minimum * slope + 2^23 would lose its fraction.
    #[inline(always)]
    fn code(self, x: S::Floats, minimum: S::Floats, slope: S::Floats, _element: usize) -> S::Words {
        let simd = self.simd;
        let below = simd.subtract(minimum, x);
        let below = if CAREFUL { simd.smaller(below, self.zero) } else { below };
        let code = simd.fused(below, slope, self.magic);
        simd.bits(if CAREFUL { simd.smaller(code, self.top) } else { code })
    }
}

/// Up or down by chance: a draw is added, and the fraction dropped. Handles NaN and values out of range as
/// [`Nearest`] does with `CAREFUL`.
#[derive(Clone, Copy)]
pub(super) struct Chance<S: Simd> {
    simd: S,
    zero: S::Floats,
    top: S::Floats,
    spacing: S::Floats,
    lane: S::Words,
    keys: [S::Words; 2],
    factors: [S::Words; 2],
}

impl<S: Simd> Chance<S> {
    #[inline(always)]
    pub(super) fn new(simd: S, seed: u64, bits: Bits) -> Self {
        let lane = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        let [first, second] = keys(seed);
        const { assert!(LANES == 16, "the lanes are counted above") };
        Self {
            simd,
            zero: simd.splat(0.0),
            top: simd.splat(bits.top() as f32),
            spacing: simd.splat(DRAW),
            lane: simd.load_words(&lane),
            keys: [simd.splat_word(first), simd.splat_word(second)],
            factors: [simd.splat_word(0x7FEB_352D), simd.splat_word(0x846C_A68B)],
        }
    }

    #[inline(always)]
    fn mix(self, h: S::Words) -> S::Words {
        let simd = self.simd;
        let h = simd.multiply(simd.xor(h, simd.down(h, 16)), self.factors[0]);
        let h = simd.multiply(simd.xor(h, simd.down(h, 15)), self.factors[1]);
        simd.xor(h, simd.down(h, 16))
    }
}

impl<S: Simd> Rounder<S> for Chance<S> {
    const BIAS: u32 = 0;

    #[inline(always)]
    fn code(self, x: S::Floats, minimum: S::Floats, slope: S::Floats, element: usize) -> S::Words {
        let simd = self.simd;
        let index = simd.add(simd.splat_word(element as u32), self.lane);
        let hash = self.mix(simd.add(self.mix(simd.xor(index, self.keys[0])), self.keys[1]));
        let draw = simd.fused(simd.to_floats(simd.down(hash, 8)), self.spacing, self.zero);
        let below = simd.smaller(simd.subtract(minimum, x), self.zero);
        // The greatest element plus a draw just below one may round to one code too many.
        simd.truncate(simd.smaller(simd.fused(below, slope, draw), self.top))
    }
}
