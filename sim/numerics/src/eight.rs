//! Tensors of eight-bit values, and products of them that nobody dequantises.
//!
//! A tensor is `codes × step`, the codes from −127 to 127. Products are of codes, their sums integers; a sum becomes a
//! value by the two steps, once (Jacob et al., "Quantization and training of neural networks for efficient
//! integer-arithmetic-only inference", CVPR 2018, section 2.2).

pub(crate) mod sums;

use haversack_kernels::Isa;
use haversack_kernels::int8::{Gemm, Matrix};
use rayon::prelude::*;

use self::sums::unfold;
use crate::dense::convolution::Convolution;
use crate::dense::linear::Linear;
use crate::error::Result;
use crate::meter::{Codes, Floats, Meter};

/// The largest code.
const LARGEST: f32 = 127.0;
/// 1.5 × 2²³: what is added to it loses all bits behind the point, ties to even. A loop of it needs no call for each value.
const ROUNDING: f32 = 12_582_912.0;
/// Rows of a linear layer that are multiplied at a time.
const ROWS: usize = 64;

/// A tensor of eight-bit values.
#[derive(Clone, Debug)]
pub struct Eight {
    /// The codes.
    pub codes: Codes,
    /// What a code is multiplied by.
    pub step: f32,
}

impl Eight {
    /// Zeros.
    #[must_use]
    pub fn zeros(len: usize, meter: &Meter) -> Self {
        let mut codes = meter.codes(len);
        codes.fill(0);
        Self { codes, step: 0.0 }
    }

    /// The nearest codes, with the step that the largest magnitude needs. NaN becomes 0.
    #[must_use]
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
    #[must_use]
    pub fn values(&self, meter: &Meter) -> Floats {
        let mut values = meter.floats(self.codes.len());
        values.iter_mut().zip(&*self.codes).for_each(|(value, &code)| *value = f32::from(code) * self.step);
        values
    }
}

/// The largest magnitude; NaN does not count.
fn largest(values: &[f32]) -> f32 {
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
    let Linear { inputs, outputs, .. } = linear;
    let isa = Isa::chosen()?;
    let step = input.step * weight.step;
    let weight = Matrix::new(&weight.codes, outputs, inputs)?.transposed();
    let rows = output.par_chunks_mut((ROWS * outputs).max(1)).zip(input.codes.par_chunks((ROWS * inputs).max(1)));
    rows.try_for_each(|(output, input)| {
        let mut sums = vec![0; output.len()];
        let input = Matrix::new(input, input.len() / inputs.max(1), inputs)?;
        Gemm::new(isa).multiply(input, weight, &mut sums)?;
        for (output, sums) in output.chunks_exact_mut(outputs.max(1)).zip(sums.chunks_exact(outputs.max(1))) {
            for (column, (output, &sum)) in output.iter_mut().zip(sums).enumerate() {
                *output = sum as f32 * step + bias.map_or(0.0, |bias| bias[column]);
            }
        }
        Ok(())
    })
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
    let ([_, channels, height, width], [_, filters, ..]) = (convolution.input(), convolution.output());
    let (window, groups) = convolution.window();
    let positions = convolution.output()[2] * convolution.output()[3];
    let (per_group, taps) = (channels / groups, window.taps() as usize);
    let (depth, group_filters) = (per_group * taps, filters / groups);
    let isa = Isa::chosen()?;
    let step = input.step * weight.step;
    let samples = output
        .par_chunks_mut((filters * positions).max(1))
        .zip(input.codes.par_chunks((channels * height * width).max(1)));
    samples.try_for_each(|(output, input)| {
        let mut gemm = Gemm::new(isa);
        let mut unfolded = meter.codes(depth * positions);
        let mut sums = vec![0; group_filters * positions];
        for group in 0..groups {
            unfold(convolution, &input[group * per_group * height * width..], per_group, &mut unfolded);
            let weight = &weight.codes[group * group_filters * depth..][..group_filters * depth];
            let (left, right) = (Matrix::new(weight, group_filters, depth)?, Matrix::new(&unfolded, depth, positions)?);
            gemm.multiply(left, right, &mut sums)?;
            let planes = output[group * group_filters * positions..].chunks_exact_mut(positions.max(1));
            for (filter, (plane, sums)) in planes.zip(sums.chunks_exact(positions.max(1))).enumerate() {
                let bias = bias.map_or(0.0, |bias| bias[group * group_filters + filter]);
                plane.iter_mut().zip(sums).for_each(|(value, &sum)| *value = sum as f32 * step + bias);
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_nearest_and_ties_go_to_even() {
        // The step is 1: the largest magnitude is 127.
        let mut values: Vec<f32> = (-508..=508).map(|quarter| quarter as f32 / 4.0).collect();
        values.extend([f32::NAN, -0.0, 126.499_99, -1.0e-30]);
        let eight = Eight::of(&values, &Meter::new());
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
        assert_eq!(Eight::of(&[f32::INFINITY, 3.0], &Meter::new()).codes[..], [0, 0]);
    }
}
