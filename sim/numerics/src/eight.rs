//! Tensors of eight-bit values, and products of them without dequantisation.
//!
//! A tensor is `codes × step`, the codes from −127 to 127. Products are of codes, their sums integers; a sum becomes a
//! value by the two steps, once (Jacob et al., "Quantization and training of neural networks for efficient
//! integer-arithmetic-only inference", CVPR 2018, section 2.2).

pub(crate) mod sums;

use rayon::prelude::*;

use crate::dense::convolution::Convolution;
use crate::dense::linear::Linear;
use crate::error::Result;
use crate::{Codes, Floats, Meter};

/// The largest code.
const LARGEST: f32 = 127.0;
/// 1.5 × 2²³: a number that it is added to loses all bits behind the point, ties to even. A loop of such additions
/// needs no call for each value.
const ROUNDING: f32 = 12_582_912.0;

/// A tensor of eight-bit values.
#[derive(Clone, Debug)]
#[must_use]
pub struct Eight {
    /// The codes.
    pub codes: Codes,
    /// The factor of a code.
    pub step: f32,
}

impl Eight {
    /// Zeros.
    pub fn zeros(len: usize, meter: &Meter) -> Self {
        let mut codes = meter.codes(len);
        codes.fill(0);
        Self { codes, step: 0.0 }
    }

    /// The nearest codes, with the step that the largest magnitude needs. NaN becomes 0.
    pub fn of(values: &[f32], meter: &Meter) -> Self {
        let largest = largest(values);
        let step = largest / LARGEST;
        let inverse = if step > 0.0 { 1.0 / step } else { 0.0 };
        let mut codes = meter.codes(values.len());
        for (code, value) in codes.iter_mut().zip(values) {
            let scaled = (value * inverse).clamp(-LARGEST, LARGEST);
            *code = (scaled + ROUNDING - ROUNDING) as i32 as i8;
        }
        Self { codes, step }
    }

    /// The values.
    pub fn values(&self, meter: &Meter) -> Floats {
        let mut values = meter.floats(self.codes.len());
        values.iter_mut().zip(&*self.codes).for_each(|(value, &code)| *value = f32::from(code) * self.step);
        values
    }
}

/// The largest magnitude; NaN does not count.
pub(crate) fn largest(values: &[f32]) -> f32 {
    let (rows, rest) = values.as_chunks::<16>();
    let larger = |largest: f32, value: f32| if value.abs() > largest { value.abs() } else { largest };
    let lanes = rows.iter().fold([0.0; 16], |lanes, row| std::array::from_fn(|i| larger(lanes[i], row[i])));
    lanes.into_iter().chain(rest.iter().copied()).fold(0.0, larger)
}

/// A linear layer of eight-bit rows and weights.
///
/// # Errors
/// Operands of other lengths, or rows too long for sums of 32 bits.
pub fn multiply(linear: Linear, input: &Eight, weight: &Eight, bias: Option<&[f32]>, output: &mut [f32]) -> Result {
    let mut sums = vec![0; output.len()];
    sums::linear(linear, &input.codes, &weight.codes, &mut sums)?;
    let (step, row) = (input.step * weight.step, linear.outputs.max(1));
    output.par_chunks_exact_mut(row).zip(sums.par_chunks_exact(row)).for_each(|(output, sums)| {
        for (column, (output, &sum)) in output.iter_mut().zip(sums).enumerate() {
            *output = sum as f32 * step + bias.map_or(0.0, |bias| bias[column]);
        }
    });
    Ok(())
}

/// A convolution of eight-bit maps and weights.
///
/// # Errors
/// Operands of other lengths, or windows too large for sums of 32 bits.
pub fn convolve(
    convolution: &Convolution,
    input: &Eight,
    weight: &Eight,
    bias: Option<&[f32]>,
    meter: &Meter,
    output: &mut [f32],
) -> Result {
    let mut sums = vec![0; output.len()];
    sums::convolution(convolution, &input.codes, &weight.codes, meter, &mut sums)?;
    let [_, filters, down, across] = convolution.output();
    let (step, plane) = (input.step * weight.step, (down * across).max(1));
    output.par_chunks_exact_mut(plane).zip(sums.par_chunks_exact(plane)).enumerate().for_each(|(at, (plane, sums))| {
        let bias = bias.map_or(0.0, |bias| bias[at % filters]);
        plane.iter_mut().zip(sums).for_each(|(value, &sum)| *value = sum as f32 * step + bias);
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_nearest_and_ties_go_to_even() {
        // The step is 1: the largest magnitude is 127.
        let mut values: Vec<f32> = (-508..=508).map(|quarter| quarter as f32 / 4.0).collect();
        values.extend([f32::NAN, -0.0, 126.499_99, -1.0e-30]);
        let eight = Eight::of(&values, &Meter::default());
        assert_eq!(eight.step, 1.0);
        for (code, value) in eight.codes.iter().zip(&values) {
            assert_eq!(*code, value.round_ties_even() as i8, "{value}");
        }
    }

    #[test]
    fn the_largest_magnitude_is_found_wherever_it_stands() {
        for place in 0..40 {
            let mut values = vec![1.0; 40];
            values[place] = -7.0;
            values[39 - place] = f32::NAN;
            assert_eq!(largest(&values), if place * 2 == 39 { 1.0 } else { 7.0 }, "{place}");
        }
        assert_eq!(Eight::of(&[f32::INFINITY, 3.0], &Meter::default()).codes[..], [0, 0]);
    }
}
