//! The minimum and the step of a range of values, and how they are stored.

use super::format::{Bits, Format, GROUP, Grouping};
use crate::KernelError;

/// The mapping from codes to values: `minimum + code * step`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The value of code 0.
    pub minimum: f32,
    /// The distance between neighbouring codes; 0 if all values are equal.
    pub step: f32,
}

impl Scale {
    /// The scale of values from `minimum` to `maximum`: DAF's equation (1).
    ///
    /// The step is at least 2^-126, the smallest normal f32, unless the range is empty. Under [`Grouping::Group256`] both
    /// are rounded to bf16 and outwards, so that the range only grows and every value stays within half a (stored) step
    /// of a code: the minimum down, then the step that reaches the maximum from there up.
    ///
    /// # Errors
    /// [`KernelError::Range`] if a bound, or the value of a code, is not finite, or if the
    /// minimum is above the maximum.
    pub fn of(minimum: f32, maximum: f32, bits: Bits, grouping: Grouping) -> Result<Self, KernelError> {
        let scale = Self::raw(minimum, maximum, bits.top() as f32, grouping);
        if minimum <= maximum && scale.is_finite(bits.top() as f32) {
            Ok(scale)
        } else {
            Err(range_error(minimum, maximum))
        }
    }

    /// [`of`](Self::of) without the check. No branches, so that a loop over groups becomes SIMD.
    #[inline(always)]
    pub(super) fn raw(minimum: f32, maximum: f32, top: f32, grouping: Grouping) -> Self {
        let grouped = matches!(grouping, Grouping::Group256);
        // Adding +0 turns -0 into +0: the minimum instructions of different instruction sets treat zeros differently.
        let minimum = if grouped { bf16_down(minimum + 0.0) } else { minimum + 0.0 };
        let range = maximum - minimum;
        let step = range / top;
        let step = if step < f32::MIN_POSITIVE { f32::MIN_POSITIVE } else { step };
        let step = if grouped { bf16_up(step) } else { step };
        Self { minimum, step: if range == 0.0 { 0.0 } else { step } }
    }

    /// A step as the grouping stores it.
    pub(super) fn stored_step(step: f32, grouping: Grouping) -> f32 {
        match grouping {
            Grouping::Tensor => step,
            Grouping::Group256 => bf16_up(step),
        }
    }

    /// Whether every code up to `top` has a finite value.
    #[inline(always)]
    pub(super) fn is_finite(self, top: f32) -> bool {
        self.step.mul_add(top, self.minimum).abs() < f32::INFINITY
    }

    /// The factor that turns a distance from the minimum into a code.
    #[inline(always)]
    pub fn inverse(self) -> f32 {
        if self.step > 0.0 { 1.0 / self.step } else { 0.0 }
    }

    /// The value of a code.
    #[inline(always)]
    pub fn value(self, code: u8) -> f32 {
        f32::from(code).mul_add(self.step, self.minimum)
    }

    /// As two bf16 in a word, the minimum in the upper half. Both are bf16 already.
    #[inline(always)]
    pub(super) fn to_group_param(self) -> u32 {
        self.minimum.to_bits() | self.step.to_bits() >> 16
    }

    #[inline(always)]
    pub(super) fn from_group_param(param: u32) -> Self {
        Self { minimum: f32::from_bits(param & 0xFFFF_0000), step: f32::from_bits(param << 16) }
    }

    /// The scale of an element, from the stored ranges.
    #[inline(always)]
    pub(super) fn stored(format: Format, params: &[u32], element: usize) -> Self {
        match format.grouping {
            Grouping::Tensor => Self { minimum: f32::from_bits(params[0]), step: f32::from_bits(params[1]) },
            Grouping::Group256 => Self::from_group_param(params[element / GROUP]),
        }
    }
}

pub(super) fn range_error(minimum: f32, maximum: f32) -> KernelError {
    KernelError::Range { minimum: minimum.to_string(), maximum: maximum.to_string() }
}

/// The greatest bf16 that is not above `x`.
#[inline(always)]
fn bf16_down(x: f32) -> f32 {
    let bits = x.to_bits();
    let negative = ((bits as i32) >> 31) as u32;
    f32::from_bits(bits.wrapping_add(negative & 0xFFFF) & 0xFFFF_0000)
}

/// The smallest bf16 that is not below `x` >= 0.
#[inline(always)]
fn bf16_up(x: f32) -> f32 {
    f32::from_bits(x.to_bits().wrapping_add(0xFFFF) & 0xFFFF_0000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_rounds_outwards() {
        // bf16 has 8 significant bits: around 1 its neighbours lie 2^-7 above and 2^-8 below.
        assert_eq!(bf16_down(1.001), 1.0);
        assert_eq!(bf16_up(1.001), 1.0 + 1.0 / 128.0);
        assert_eq!(bf16_down(-1.001), -1.0 - 1.0 / 128.0);
        assert_eq!((bf16_down(1.5), bf16_up(1.5), bf16_down(-1.5)), (1.5, 1.5, -1.5));
        assert_eq!(bf16_down(f32::MIN), f32::NEG_INFINITY);
    }

    #[test]
    fn a_range_that_overflows_is_an_error() {
        // The bounds are finite, their distance, 6.8e38, is not.
        let bits = Bits::ALL[3];
        assert!(matches!(Scale::of(f32::MIN, f32::MAX, bits, Grouping::Tensor), Err(KernelError::Range { .. })));
        assert!(matches!(Scale::of(0.0, f32::INFINITY, bits, Grouping::Tensor), Err(KernelError::Range { .. })));
        assert!(matches!(Scale::of(f32::NAN, 1.0, bits, Grouping::Tensor), Err(KernelError::Range { .. })));
    }
}
