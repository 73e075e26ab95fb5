//! Float to unsigned integer and back without conversion instructions (DAF section 3.3.1).
//!
//! A float in [2^23, 2^24) has the bits 0x4B000000 + X, where X is what exceeds 2^23 (the paper's equation 5). So an
//! addition of 2^23 rounds an element to an integer, halves to even, and leaves it in the mantissa; and an integer
//! below 2^23 becomes a float by an OR with 0x4B000000 and a subtraction.

use crate::error::KernelError;
use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch};

/// The largest integer that both directions carry: 2^23 - 1.
pub const LARGEST: u32 = (1 << 23) - 1;

/// 2^23, the float whose mantissa counts integers.
const OFFSET: f32 = 8_388_608.0;
/// Its bits.
const EXPONENT: u32 = 0x4B00_0000;

/// Rounds each element to the nearest integer, halves to even.
///
/// Elements from 0 to [`LARGEST`] are in the domain, which holds every code that quantisation makes. Outside it the
/// answer saturates, as the `as` operator does: NaN and what is below 0 give 0, what is above gives `LARGEST`.
///
/// # Errors
/// `integers` is not as long as `floats`.
pub fn to_integers(floats: &[f32], integers: &mut [u32], isa: Isa) -> Result<(), KernelError> {
    KernelError::expect_length("output", integers.len(), floats.len())?;
    dispatch(isa, ToIntegers { floats, integers });
    Ok(())
}

/// Turns each integer into the float of its value.
///
/// Integers from 0 to [`LARGEST`] are in the domain, where the answer is exact. Of a larger one only the low 23 bits
/// count, as there are no more in a mantissa.
///
/// # Errors
/// `floats` is not as long as `integers`.
pub fn to_floats(integers: &[u32], floats: &mut [f32], isa: Isa) -> Result<(), KernelError> {
    KernelError::expect_length("output", floats.len(), integers.len())?;
    dispatch(isa, ToFloats { integers, floats });
    Ok(())
}

/// Rounds one element as [`to_integers`] does: the definition.
#[inline(always)]
pub fn to_integer(float: f32) -> u32 {
    // The comparisons, unlike `clamp`, take NaN to 0.
    let float = if float > 0.0 { float } else { 0.0 };
    let float = if float < LARGEST as f32 { float } else { LARGEST as f32 };
    (float + OFFSET).to_bits() - EXPONENT
}

/// Turns one integer into a float as [`to_floats`] does: the definition.
#[inline(always)]
pub fn to_float(integer: u32) -> f32 {
    f32::from_bits((integer & LARGEST) | EXPONENT) - OFFSET
}

/// A loop that the compiler turns into vectors of every instruction set.
struct ToIntegers<'a> {
    floats: &'a [f32],
    integers: &'a mut [u32],
}

impl Kernel for ToIntegers<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        for (integer, &float) in self.integers.iter_mut().zip(self.floats) {
            *integer = to_integer(float);
        }
    }
}

/// Another one.
struct ToFloats<'a> {
    integers: &'a [u32],
    floats: &'a mut [f32],
}

impl Kernel for ToFloats<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        for (float, &integer) in self.floats.iter_mut().zip(self.integers) {
            *float = to_float(integer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integers(floats: &[f32], isa: Isa) -> Vec<u32> {
        let mut integers = vec![7; floats.len()];
        to_integers(floats, &mut integers, isa).unwrap();
        integers
    }

    #[test]
    fn rounds_as_the_conversion_instruction_does() {
        // A quarter apart, every fourth a half: to even. Ragged lengths leave every kind of tail.
        let floats: Vec<f32> =
            (0..4099).map(|i| i as f32 * 0.25).chain((0..400).map(|i| 4_194_000.0 + i as f32 * 0.5)).collect();
        let expected: Vec<u32> = floats.iter().map(|x| x.round_ties_even() as u32).collect();
        assert_eq!((expected[2], expected[6], expected[10]), (0, 2, 2));
        for isa in Isa::available() {
            for len in (0..70).chain([floats.len()]) {
                assert_eq!(integers(&floats[..len], isa), expected[..len], "{isa}, {len}");
            }
        }
    }

    #[test]
    fn saturates_outside_its_domain() {
        let outside =
            [-0.0, -0.3, -1.0, f32::NEG_INFINITY, f32::NAN, -f32::NAN, 8_388_607.0, 8_388_608.0, 1e30, f32::INFINITY];
        let expected = [0, 0, 0, 0, 0, 0, LARGEST, LARGEST, LARGEST, LARGEST];
        for isa in Isa::available() {
            // Three times over, so that the vectors see them and not the tail alone.
            assert_eq!(integers(&outside.repeat(3), isa), expected.repeat(3), "{isa}");
        }
    }

    #[test]
    fn back_is_exact() {
        // All 2^23 integers, 37 apart, and the last.
        let integers: Vec<u32> = (0..LARGEST).step_by(37).chain([LARGEST]).collect();
        for isa in Isa::available() {
            let mut floats = vec![0.0; integers.len()];
            to_floats(&integers, &mut floats, isa).unwrap();
            assert!(floats.iter().zip(&integers).all(|(&float, &integer)| float == integer as f32), "{isa}");
            assert_eq!(super::tests::integers(&floats, isa), integers, "{isa}");
        }
    }

    #[test]
    fn only_the_bits_of_a_mantissa_count_on_the_way_back() {
        for isa in Isa::available() {
            let mut floats = [0.0; 33];
            to_floats(&[0xFF80_0005; 33], &mut floats, isa).unwrap();
            assert_eq!(floats, [5.0; 33], "{isa}");
        }
    }

    #[test]
    fn lengths_must_be_equal() {
        let error = to_integers(&[1.0; 3], &mut [0; 2], Isa::Scalar);
        assert_eq!(error, Err(KernelError::Length { what: "output", found: 2, expected: 3 }));
        assert!(to_floats(&[1; 2], &mut [0.0; 3], Isa::Scalar).is_err());
    }
}
