//! From i32 back to i8: how many bits too wide a tensor is, and the shift that takes them off.
//!
//! # Listing 1
//! The paper prints `tscale = 32 - max(clz) - 7` within the loop over a tensor. The largest number of leading zeros is
//! that of the smallest magnitude, and a scale of it would overflow all larger ones; what an i8 must hold is the
//! largest magnitude, which has the fewest. So here it is `32 - min(clz) - 7`, with `clz` that of the magnitude (a
//! negative number itself has none) and 7 the bits of an i8's magnitude. The listing's running maximum, which starts
//! at 0, is kept: a tensor that fits is not scaled up. Its `temp / scale` is a division by 2^scale.

use crate::error::KernelError;
use crate::isa::Isa;
use crate::simd::{Kernel, LANES, STREAMED_FROM, Simd, dispatch, streams, words};

/// Bits of an i8's magnitude.
pub const MAGNITUDE_BITS: u32 = 7;

/// The most bits that [`round_shift`] shifts by; [`scale_of`] never asks for more than 25.
pub const LARGEST_SHIFT: u32 = 31;

/// The largest code: i8 is used from -127 to 127, as NITI does, so that a negated tensor is one too.
const LARGEST: u32 = 127;

/// Bits of a value's magnitude: `32 - clz(|value|)`; 0 for 0, and 32 for [`i32::MIN`].
pub const fn bits(value: i32) -> u32 {
    u32::BITS - value.unsigned_abs().leading_zeros()
}

/// `value / 2^shift` rounded to the nearest integer, halves away from zero, and no further from it than 127.
///
/// The definition of what [`round_shift`] does to an element. NITI decides halves, and more, by a pseudo-random draw
/// from the bits that are shifted out; here the same input always gives the same result, and its negative the
/// negative. A shift of 32 or more is taken for 31.
pub fn rounded(value: i32, shift: u32) -> i8 {
    let shift = shift.min(LARGEST_SHIFT);
    // At most 2^31 + 2^30.
    let magnitude = (value.unsigned_abs() + half(shift)) >> shift;
    let magnitude = magnitude.min(LARGEST) as i8;
    if value < 0 { -magnitude } else { magnitude }
}

/// Half of 2^shift; 0 where nothing is shifted out.
pub(super) const fn half(shift: u32) -> u32 {
    (1 << shift) >> 1
}

/// The smallest shift that brings every magnitude to 7 bits: the largest number of [`bits`] less 7, at least 0.
///
/// By so many bits an i32 result is too wide for i8, and by so many its scale grows. Of nothing it is 0. Rounding may
/// still carry the largest magnitude to 128, which [`round_shift`] holds at 127.
pub fn scale_of(values: &[i32], isa: Isa) -> u32 {
    scale_of_bits(dispatch(isa, Magnitudes(values)))
}

/// The scale of values whose magnitudes have been joined by OR: the highest bit of that is the highest of any.
pub(super) fn scale_of_bits(magnitudes: u32) -> u32 {
    (u32::BITS - magnitudes.leading_zeros()).saturating_sub(MAGNITUDE_BITS)
}

/// Every value [`rounded`] to i8 by `shift` bits.
///
/// # Errors
/// [`KernelError::Length`] for an output that is not as long as the values, and [`KernelError::Shift`] for a shift
/// above [`LARGEST_SHIFT`].
pub fn round_shift(values: &[i32], shift: u32, out: &mut [i8], isa: Isa) -> Result<(), KernelError> {
    KernelError::expect_length("output", out.len(), values.len())?;
    let shift = checked(shift)?;
    dispatch(isa, RoundShift { values, shift, out });
    Ok(())
}

/// The shift, if it is one of an i32.
pub(super) fn checked(shift: u32) -> Result<u32, KernelError> {
    if shift > LARGEST_SHIFT {
        return Err(KernelError::Shift { found: shift, most: LARGEST_SHIFT });
    }
    Ok(shift)
}

/// The OR of all magnitudes.
struct Magnitudes<'a>(&'a [i32]);

impl Kernel for Magnitudes<'_> {
    type Output = u32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> u32 {
        let mut seen = [simd.splat_word(0); 4];
        let rest = if S::REGISTER > 1 && size_of_val(self.0) >= STREAMED_FROM {
            let (streams, rest) = streams(self.0);
            for at in 0..streams[0].len() {
                for (i, stream) in streams.iter().enumerate() {
                    see(simd, &mut seen[i % 4], &stream[at]);
                }
            }
            rest
        } else {
            let (vectors, rest) = self.0.as_chunks::<LANES>();
            let (rows, single) = vectors.as_chunks::<4>();
            for row in rows {
                for i in 0..4 {
                    see(simd, &mut seen[i], &row[i]);
                }
            }
            for vector in single {
                see(simd, &mut seen[0], vector);
            }
            rest
        };
        let mut last = [0; LANES];
        simd.store_words(simd.or(simd.or(seen[0], seen[1]), simd.or(seen[2], seen[3])), &mut last);
        let rest = rest.iter().fold(0, |seen, value| seen | value.unsigned_abs());
        last.iter().fold(rest, |seen, &lane| seen | lane)
    }
}

/// Joins the magnitudes of a vector.
#[inline(always)]
fn see<S: Simd>(simd: S, seen: &mut S::Words, vector: &[i32; LANES]) {
    *seen = simd.or(*seen, simd.magnitude(simd.load_words(words(vector))));
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

/// [`rounded`] in sixteen lanes, by one shift.
#[derive(Clone, Copy)]
pub(super) struct Rounder<S: Simd> {
    simd: S,
    shift: u32,
    half: S::Words,
    largest: S::Words,
}

impl<S: Simd> Rounder<S> {
    /// By `shift`, at most [`LARGEST_SHIFT`].
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
