//! From i32 back to i8: a shift removes the bits by which a tensor is too wide.

use crate::simd::{Kernel, LANES, Simd, dispatch, words};
use crate::{Isa, KernelError};

/// The most bits that [`round_shift`] shifts by.
pub const LARGEST_SHIFT: u32 = 31;

/// The largest code: i8 is used from -127 to 127, as NITI does, so that a negated tensor is one too.
const LARGEST: u32 = 127;

/// Bits of a value's magnitude: `32 - clz(|value|)`; 0 for 0, and 32 for [`i32::MIN`].
pub const fn bits(value: i32) -> u32 {
    u32::BITS - value.unsigned_abs().leading_zeros()
}

/// `value / 2^shift` rounded to the nearest integer, halves away from zero, and no further from it than 127.
///
/// This defines the effect of [`round_shift`] on an element. NITI decides halves, and more, by a pseudo-random draw
/// from the bits that are shifted out; here the same input always gives the same result, and its negative the negative.
/// A shift of 32 or more counts as 31.
pub fn rounded(value: i32, shift: u32) -> i8 {
    let shift = shift.min(LARGEST_SHIFT);
    // At most 2^31 + 2^30.
    let magnitude = (value.unsigned_abs() + half(shift)) >> shift;
    let magnitude = magnitude.min(LARGEST) as i8;
    if value < 0 { -magnitude } else { magnitude }
}

/// Half of 2^shift; 0 where nothing is shifted out.
const fn half(shift: u32) -> u32 {
    (1 << shift) >> 1
}

/// Every value [`rounded`] to i8 by `shift` bits.
///
/// # Errors
/// [`KernelError::Length`] for an output that is not as long as the values, and [`KernelError::Shift`] for a shift
/// above [`LARGEST_SHIFT`].
pub fn round_shift(values: &[i32], shift: u32, out: &mut [i8], isa: Isa) -> Result<(), KernelError> {
    KernelError::expect_length("output", out.len(), values.len())?;
    if shift > LARGEST_SHIFT {
        return Err(KernelError::Shift { found: shift, most: LARGEST_SHIFT });
    }
    dispatch(isa, RoundShift { values, shift, out });
    Ok(())
}

/// Every value rounded.
struct RoundShift<'a> {
    values: &'a [i32],
    shift: u32,
    out: &'a mut [i8],
}

impl Kernel for RoundShift<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (vectors, rest) = self.values.as_chunks::<LANES>();
        let (narrow, narrow_rest) = self.out.as_chunks_mut::<LANES>();
        let rounder = Rounder::new(simd, self.shift);
        for (vector, narrow) in vectors.iter().zip(narrow) {
            simd.narrow(rounder.round(simd.load_words(words(vector))), narrow);
        }
        for (&value, narrow) in rest.iter().zip(narrow_rest) {
            *narrow = rounded(value, self.shift);
        }
    }
}

/// [`rounded`] in sixteen lanes, with one shift.
#[derive(Clone, Copy)]
pub(super) struct Rounder<S: Simd> {
    simd: S,
    shift: u32,
    half: S::Words,
    largest: S::Words,
}

impl<S: Simd> Rounder<S> {
    /// With `shift`, at most [`LARGEST_SHIFT`].
    #[inline(always)]
    pub(super) fn new(simd: S, shift: u32) -> Self {
        let (half, largest) = (simd.splat_word(half(shift)), simd.splat_word(LARGEST));
        Self { simd, shift, half, largest }
    }

    #[inline(always)]
    pub(super) fn round(self, values: S::Words) -> S::Words {
        let simd = self.simd;
        let magnitudes = simd.down(simd.add(simd.magnitude(values), self.half), self.shift);
        simd.signed_as(simd.smaller_unsigned(magnitudes, self.largest), values)
    }
}
