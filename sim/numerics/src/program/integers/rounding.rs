//! From wide sums and from fp32 values to codes.

use haversack_kernels::int8::{round_shift, rounded};
use haversack_kernels::{Isa, LARGEST_SHIFT};
use haversack_workloads::mixed::Rounding;

use crate::eight::largest;
use crate::error::Result;
use crate::{Contents, Eight, Meter};

/// The largest code.
pub(super) const LARGEST: i8 = 127;
/// The exponent of the power of two that is not above the largest code.
const LARGEST_EXPONENT: i32 = 6;

/// 2^`exponent`, limited to the range of fp32.
pub(super) fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits((exponent.clamp(-126, 127) + 127).cast_unsigned() << 23)
}

/// The exponent of a step, which is a power of two.
pub(super) const fn exponent(step: f32) -> i32 {
    (step.to_bits() >> 23).cast_signed() - 127
}

/// The least power of two as a step at which `largest` has a code; 0 for 0.
pub(super) fn step_for(largest: f32) -> f32 {
    if largest == 0.0 {
        return 0.0;
    }
    let step = power_of_two(exponent(largest) - LARGEST_EXPONENT);
    if largest > step * f32::from(LARGEST) { step * 2.0 } else { step }
}

/// `values` as codes. Their step is the least at which all of them have codes, and not below `finest`, the step of the
/// values that they were selected from.
pub(super) fn encode(values: &[f32], finest: f32, meter: &Meter) -> Contents {
    let step = step_for(largest(values)).max(finest);
    let mut codes = meter.codes(values.len());
    to_the_nearest(values, step, &mut codes);
    Contents::Eight(Eight { codes, step })
}

/// Sums shifted by `shift` bits.
///
/// # Errors
/// None for a shift that [`shift_to`] gave.
pub(super) fn shift_all(rounding: Rounding, sums: &[i32], shift: u32, codes: &mut [i8]) -> Result {
    match rounding {
        Rounding::Nearest => round_shift(sums, shift, codes, Isa::chosen()?)?,
        Rounding::PseudoStochastic => pseudo_stochastic(sums, shift, codes),
    }
    Ok(())
}

/// The shift of sums after which the largest magnitude has at most `magnitude` bits.
pub(super) fn shift_to(sums: &[i32], magnitude: i32) -> u32 {
    let all = sums.iter().fold(0, |seen, &sum| seen | sum.unsigned_abs());
    let wide = (u32::BITS - all.leading_zeros()).cast_signed() - magnitude;
    if all == 0 { 0 } else { wide.clamp(0, LARGEST_SHIFT.cast_signed()).cast_unsigned() }
}

/// The nearest codes of eight bits, halves away from zero.
fn to_the_nearest(values: &[f32], step: f32, codes: &mut [i8]) {
    let (most, inverse) = (f32::from(LARGEST), if step > 0.0 { step.recip() } else { 0.0 });
    // The largest number below a half: added to a number just below a half, the sum stays below one, and added to a
    // half, it rounds up to one.
    const HALF: f32 = 0.5 - f32::EPSILON / 4.0;
    for (code, value) in codes.iter_mut().zip(values) {
        let scaled = (value * inverse).clamp(-most, most);
        *code = (scaled + HALF.copysign(scaled)) as i8;
    }
}

/// Sums shifted by `shift` bits, by NITI's pseudo-stochastic rounding.
fn pseudo_stochastic(sums: &[i32], shift: u32, codes: &mut [i8]) {
    if shift < 2 {
        codes.iter_mut().zip(sums).for_each(|(code, &sum)| *code = rounded(sum, shift));
        return;
    }
    let (half, odd) = (shift / 2, shift % 2);
    let (whole, lower) = ((1 << shift) - 1, (1 << half) - 1);
    for (code, &sum) in codes.iter_mut().zip(sums) {
        let lost = sum.unsigned_abs() & whole;
        // With an odd number of bits, the upper part has one more, and the lower is compared in steps of two.
        *code = kept(sum, shift, lost >> half > (lost & lower) << odd);
    }
}

/// A sum shifted by `shift` bits, one more away from zero if `up`.
#[inline(always)]
fn kept(sum: i32, shift: u32, up: bool) -> i8 {
    let kept = ((sum.unsigned_abs() >> shift) + u32::from(up)).min(LARGEST.unsigned_abs().into()) as i32;
    // The sign's bits are all ones or all zeros.
    let sign = sum >> 31;
    ((kept ^ sign) - sign) as i8
}

#[cfg(test)]
mod tests {
    use haversack_kernels::int8::bits;
    use proptest::prelude::*;

    use super::*;

    fn codes_of(values: &[f32], step: f32) -> Vec<i8> {
        let mut codes = vec![0; values.len()];
        to_the_nearest(values, step, &mut codes);
        codes
    }

    #[test]
    fn steps_are_the_least_powers_of_two_that_hold_all() {
        // 127 steps of 1/2 are 63.5; 64 needs steps of 1.
        for (largest, step) in [(63.5, 0.5), (64.0, 1.0), (127.0, 1.0), (127.5, 2.0), (1.0, 1.0 / 64.0), (0.0, 0.0)] {
            assert_eq!(step_for(largest), step, "{largest}");
        }
        assert_eq!(largest(&[0.25, -1.0]), 1.0);
        let held = codes_of(&[63.5, -0.25, 0.2, f32::NAN, 1000.0], 0.5);
        // 127, half a step away from zero, 0.4 of a step, NaN, out of range.
        assert_eq!(held, [127, -1, 0, 0, 127]);
        // Just below a half, and just below two and a half.
        assert_eq!(codes_of(&[0.5_f32.next_down(), 0.5, 2.5_f32.next_down(), -2.5], 1.0), [0, 1, 2, -3]);
        assert_eq!((exponent(0.5), power_of_two(-1)), (-1, 0.5));
    }

    #[test]
    fn sums_are_shifted_to_the_bits_that_are_wanted() {
        // 1000 has ten bits: three too many for seven, five too many for five.
        assert_eq!((shift_to(&[3, -1000], 7), shift_to(&[3, -1000], 5), shift_to(&[3], 7)), (3, 5, 0));
        // To zero bits, and to fewer.
        assert_eq!(
            (shift_to(&[1000], 0), shift_to(&[1000], -2), shift_to(&[0], -2), shift_to(&[1 << 30], -9)),
            (10, 12, 0, 31)
        );
        assert_eq!(bits(1000), 10);
    }

    #[test]
    fn lost_bits_decide_whether_a_sum_is_rounded_up() {
        let up = |sum: i32, shift| {
            let mut codes = [0];
            pseudo_stochastic(&[sum], shift, &mut codes);
            codes[0]
        };
        // 4 bits lost: the upper two are the share, the lower two the draw. 0b1001: 2 of 4 against 1: up.
        assert_eq!((up(0b11_1001, 4), up(-0b11_1001, 4)), (4, -4));
        // 0b0110: 1 of 4 against 2: down. 0b1010: 2 against 2: down.
        assert_eq!((up(0b11_0110, 4), up(0b11_1010, 4)), (3, 3));
        // 3 bits: the upper two against the lowest, doubled. 0b101: 2 against 2: down; 0b110: 3 against 0: up.
        assert_eq!((up(0b1_101, 3), up(0b1_110, 3)), (1, 2));
        // One bit has no draw: a half goes up. Without lost bits nothing changes, and 127 is the most.
        assert_eq!((up(5, 1), up(5, 0), up(1000, 2), up(i32::MIN, 24)), (3, 5, 127, -127));
        // The mean is kept: over all 256 losses of 8 bits, up are those with upper > lower, 120 of 256, where the
        // mean share is 127.5 of 256.
        let ups: i32 = (0..256).map(|lost| i32::from(up(lost, 8))).sum();
        assert_eq!(ups, 120);
    }

    fn rounding() -> impl Strategy<Value = Rounding> {
        prop_oneof![Just(Rounding::Nearest), Just(Rounding::PseudoStochastic)]
    }

    proptest! {
        #[test]
        fn codes_are_within_half_a_step_of_their_values(values in prop::collection::vec(-1e6_f32..1e6, 1..50)) {
            let meter = Meter::default();
            let held = |values: &[f32], finest| match encode(values, finest, &meter) {
                Contents::Eight(held) => held,
                other => panic!("{other:?} is not in eight bits"),
            };
            let first = held(&values, 0.0);
            // At most as much again for rounding in fp32.
            let most = first.step / 2.0 * 1.0001;
            for (value, code) in values.iter().zip(&*first.codes) {
                prop_assert!((f32::from(*code) * first.step - value).abs() <= most, "{value} as {code} of {}", first.step);
                prop_assert!(*value != 0.0 || *code == 0);
            }
            // A second time nothing changes.
            let second = held(&first.values(&meter), first.step);
            prop_assert_eq!((&second.codes[..], second.step), (&first.codes[..], first.step));
        }

        #[test]
        fn shifted_sums_are_within_a_step_or_at_the_end(
            sums in prop::collection::vec(any::<i32>(), 1..50),
            shift in 0_u32..=31,
            rounding in rounding(),
        ) {
            let mut codes = vec![0; sums.len()];
            shift_all(rounding, &sums, shift, &mut codes).unwrap();
            for (&sum, code) in sums.iter().zip(codes) {
                let exact = f64::from(sum) / f64::from(2.0_f32).powi(shift.cast_signed());
                let most = if rounding == Rounding::Nearest { 0.5 } else { 1.0 };
                let off = (f64::from(code) - exact).abs();
                prop_assert!(off <= most || (code.abs() == 127 && exact.abs() > 126.0), "{sum} by {shift} as {code}");
            }
        }
    }
}
