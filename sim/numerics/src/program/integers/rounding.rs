//! From wide sums and from fp32 values to eight-bit codes.

use haversack_kernels::Isa;
use haversack_kernels::int8::{LARGEST_SHIFT, MAGNITUDE_BITS, round_shift, rounded};
use haversack_workloads::mixed::Rounding;

use crate::eight::Eight;
use crate::error::Result;
use crate::meter::Meter;

/// The largest code.
pub(super) const LARGEST: i8 = 127;

/// 2^`exponent`, as near as fp32 has it.
pub(super) fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits((exponent.clamp(-126, 127) + 127).cast_unsigned() << 23)
}

/// The exponent of a step, which is a power of two.
pub(super) const fn exponent(step: f32) -> i32 {
    (step.to_bits() >> 23).cast_signed() - 127
}

/// The least step at which all `values` have codes; 0 where all are zero.
pub(super) fn step_for(values: &[f32]) -> f32 {
    let largest = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    // A number from 2^k on has at least 64 steps of 2^(k − 6).
    let step = power_of_two(exponent(largest) - (MAGNITUDE_BITS.cast_signed() - 1));
    if largest > step * f32::from(LARGEST) { step * 2.0 } else { step }
}

/// The nearest codes at a step, halves away from zero; NaN becomes 0.
pub(super) fn quantised(values: &[f32], step: f32, meter: &Meter) -> Eight {
    let (largest, inverse) = (f64::from(LARGEST), if step > 0.0 { f64::from(step).recip() } else { 0.0 });
    let mut codes = meter.codes(values.len());
    for (code, value) in codes.iter_mut().zip(values) {
        let scaled = (f64::from(*value) * inverse).clamp(-largest, largest);
        // A cast cuts the fraction off; in fp64 adding a half is exact.
        *code = (scaled + 0.5_f64.copysign(scaled)) as i8;
    }
    Eight { codes, step }
}

/// By how many bits sums are shifted so that the largest magnitude has at most `magnitude` bits.
pub(super) fn shift_to(sums: &[i32], magnitude: i32) -> u32 {
    let all = sums.iter().fold(0, |seen, &sum| seen | sum.unsigned_abs());
    let wide = (u32::BITS - all.leading_zeros()).cast_signed() - magnitude;
    if all == 0 { 0 } else { wide.clamp(0, LARGEST_SHIFT.cast_signed()).cast_unsigned() }
}

/// Sums shifted by `shift` bits.
///
/// # Errors
/// None for a shift that [`shift_to`] gave.
pub(super) fn shift_all(sums: &[i32], shift: u32, rounding: Rounding, codes: &mut [i8]) -> Result {
    match rounding {
        Rounding::Nearest => round_shift(sums, shift, codes, Isa::chosen()?)?,
        Rounding::PseudoStochastic => {
            codes.iter_mut().zip(sums).for_each(|(code, &sum)| *code = shifted(sum, shift, rounding));
        }
    }
    Ok(())
}

/// A sum shifted by `shift` bits.
fn shifted(sum: i32, shift: u32, rounding: Rounding) -> i8 {
    match rounding {
        Rounding::PseudoStochastic if shift > 1 => {
            let magnitude = sum.unsigned_abs();
            let lost = magnitude & ((1 << shift) - 1);
            let half = shift / 2;
            // Of an odd number of bits the upper part has one more, and the lower is drawn in steps of two.
            let (upper, lower) = (lost >> half, (lost & ((1 << half) - 1)) << (shift % 2));
            let kept = ((magnitude >> shift) + u32::from(upper > lower)).min(LARGEST.unsigned_abs().into()) as i8;
            if sum < 0 { -kept } else { kept }
        }
        _ => rounded(sum, shift),
    }
}

#[cfg(test)]
mod tests {
    use haversack_kernels::int8::bits;

    use super::*;

    #[test]
    fn steps_are_the_least_powers_of_two_that_hold_all() {
        // 127 steps of 1/2 are 63.5; 64 needs steps of 1.
        for (largest, step) in [(63.5, 0.5), (64.0, 1.0), (127.0, 1.0), (127.5, 2.0), (-1.0, 1.0 / 64.0), (0.0, 0.0)] {
            assert_eq!(step_for(&[0.25 * largest, largest]), step, "{largest}");
        }
        let held = quantised(&[63.5, -0.25, 0.2, f32::NAN, 1000.0], 0.5, &Meter::new());
        // 127, half a step away from zero, 0.4 of a step, no number, out of range.
        assert_eq!((*held.codes).to_vec(), [127, -1, 0, 0, 127]);
        assert_eq!((exponent(0.5), power_of_two(-1)), (-1, 0.5));
    }

    #[test]
    fn sums_are_shifted_to_the_bits_that_are_wanted() {
        // 1000 has ten bits: three too many for seven, five too many for five.
        assert_eq!((shift_to(&[3, -1000], 7), shift_to(&[3, -1000], 5), shift_to(&[3], 7)), (3, 5, 0));
        // To none at all, and to fewer.
        assert_eq!(
            (shift_to(&[1000], 0), shift_to(&[1000], -2), shift_to(&[0], -2), shift_to(&[1 << 30], -9)),
            (10, 12, 0, 31)
        );
        assert_eq!(bits(1000), 10);
    }

    #[test]
    fn lost_bits_decide_whether_a_sum_is_rounded_up() {
        let up = |sum, shift| shifted(sum, shift, Rounding::PseudoStochastic);
        // 4 bits lost: the upper two are the share, the lower two the draw. 0b1001: 2 of 4 against 1: up.
        assert_eq!((up(0b11_1001, 4), up(-0b11_1001, 4)), (4, -4));
        // 0b0110: 1 of 4 against 2: down. 0b1010: 2 against 2: down.
        assert_eq!((up(0b11_0110, 4), up(0b11_1010, 4)), (3, 3));
        // 3 bits: the upper two against the lowest, doubled. 0b101: 2 against 2: down; 0b110: 3 against 0: up.
        assert_eq!((up(0b1_101, 3), up(0b1_110, 3)), (1, 2));
        // One bit has no draw: a half goes up. Nothing lost is nothing changed, and 127 is the most.
        assert_eq!((up(5, 1), up(5, 0), up(1000, 2), up(i32::MIN, 24)), (3, 5, 127, -127));
        // To the nearest, halves away from zero: 0b1000 of 16 is a half.
        assert_eq!((shifted(0b11_1000, 4, Rounding::Nearest), shifted(0b11_0111, 4, Rounding::Nearest)), (4, 3));
        // On average nothing is gained or lost: over all 256 losses of 8 bits, up are those with upper > lower, 120 of 256,
        // where the mean share is 127.5 of 256.
        let ups: i32 = (0..256).map(|lost| i32::from(up(lost, 8))).sum();
        assert_eq!(ups, 120);
    }
}
