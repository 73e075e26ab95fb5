//! Element-wise functions of one tensor, and their gradients from what PyTorch saves.

use haversack_kernels::Isa;
use haversack_kernels::quantise::mask;
use rayon::prelude::*;

use super::parallel::{BLOCK, blocks2};
use super::transcendental::{erf, exp, tanh};
use crate::error::{Result, expect_length};

/// An element-wise function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Function {
    /// max(x, 0).
    Relu,
    /// min(max(x, 0), 6).
    Relu6,
    /// min(max(x, low), high).
    Clip {
        /// The lower bound.
        low: f32,
        /// The upper bound.
        high: f32,
    },
    /// x Φ(x) by the error function.
    Gelu,
    /// x Φ(x) by the approximation with a hyperbolic tangent.
    GeluTanh,
    /// x / (1 + e^−x).
    Silu,
    /// Hyperbolic tangent.
    Tanh,
    /// 1 / (1 + e^−x).
    Sigmoid,
    /// x³.
    Cube,
    /// x to a constant power.
    Power(f32),
    /// The product with a constant.
    Scale(f32),
}

/// What the backward pass of a function needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// The input.
    Input,
    /// The output.
    Output,
    /// Nothing.
    Nothing,
}

/// 1/√2.
const FRAC_1_SQRT_2: f32 = std::f32::consts::FRAC_1_SQRT_2;
/// 1/√(2π).
const FRAC_1_SQRT_2PI: f32 = 0.398_942_3;
/// √(2/π), in the approximation of GELU.
const GELU_SLOPE: f32 = 0.797_884_6;
/// The share of the cube in it.
const GELU_CUBE: f32 = 0.044_715;

#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

#[inline(always)]
fn gelu_tanh(x: f32) -> f32 {
    tanh(GELU_SLOPE * (x + GELU_CUBE * x * x * x))
}

impl Function {
    /// What PyTorch keeps for the backward pass.
    #[must_use]
    pub const fn saved(self) -> Saved {
        match self {
            Self::Relu | Self::Tanh | Self::Sigmoid => Saved::Output,
            Self::Scale(_) => Saved::Nothing,
            _ => Saved::Input,
        }
    }

    /// `values = f(values)`, element by element.
    pub fn forward_in_place(self, values: &mut [f32]) {
        // Each loop is compiled by itself.
        match self {
            Self::Relu => map_in_place(values, |x| if x > 0.0 || x.is_nan() { x } else { 0.0 }),
            Self::Relu6 => map_in_place(values, |x| x.clamp(0.0, 6.0)),
            Self::Clip { low, high } => map_in_place(values, move |x| {
                if x > high {
                    high
                } else if x < low {
                    low
                } else {
                    x
                }
            }),
            Self::Gelu => map_in_place(values, |x| 0.5 * x * (1.0 + erf(x * FRAC_1_SQRT_2))),
            Self::GeluTanh => map_in_place(values, |x| 0.5 * x * (1.0 + gelu_tanh(x))),
            Self::Silu => map_in_place(values, |x| x * sigmoid(x)),
            Self::Tanh => map_in_place(values, tanh),
            Self::Sigmoid => map_in_place(values, sigmoid),
            Self::Cube => map_in_place(values, |x| x * x * x),
            Self::Power(power) => map_in_place(values, move |x| x.powf(power)),
            Self::Scale(by) => map_in_place(values, move |x| x * by),
        }
    }

    /// The gradient of the input, from what [`saved`](Self::saved) names (any slice of the same length, or none, where it
    /// names nothing) and the gradient of the output.
    ///
    /// # Errors
    /// Operands of different lengths.
    pub fn backward(self, saved: &[f32], gradient: &[f32], input_gradient: &mut [f32]) -> Result {
        let saved = if self.saved() == Saved::Nothing { gradient } else { saved };
        expect_length("what an element-wise function saved", saved.len(), gradient.len())?;
        expect_length("the gradient of an input", input_gradient.len(), gradient.len())?;
        match self {
            Self::Relu => map2(saved, gradient, input_gradient, |y, g| if y > 0.0 { g } else { 0.0 }),
            Self::Relu6 => map2(saved, gradient, input_gradient, |x, g| if x > 0.0 && x < 6.0 { g } else { 0.0 }),
            Self::Gelu => map2(saved, gradient, input_gradient, |x, g| {
                let density = FRAC_1_SQRT_2PI * exp(-0.5 * x * x);
                g * (0.5 * (1.0 + erf(x * FRAC_1_SQRT_2)) + x * density)
            }),
            Self::Clip { low, high } => {
                map2(saved, gradient, input_gradient, move |x, g| if x > low && x < high { g } else { 0.0 })
            }
            Self::GeluTanh => map2(saved, gradient, input_gradient, |x, g| {
                let t = gelu_tanh(x);
                let slope = GELU_SLOPE * (1.0 + 3.0 * GELU_CUBE * x * x);
                g * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope)
            }),
            Self::Silu => map2(saved, gradient, input_gradient, |x, g| {
                let s = sigmoid(x);
                g * s * (1.0 + x * (1.0 - s))
            }),
            Self::Tanh => map2(saved, gradient, input_gradient, |y, g| g * (1.0 - y * y)),
            Self::Sigmoid => map2(saved, gradient, input_gradient, |y, g| g * y * (1.0 - y)),
            Self::Cube => map2(saved, gradient, input_gradient, |x, g| g * 3.0 * x * x),
            Self::Power(power) => map2(saved, gradient, input_gradient, move |x, g| g * power * x.powf(power - 1.0)),
            Self::Scale(by) => map2(saved, gradient, input_gradient, move |_, g| g * by),
        }
        Ok(())
    }
}

fn map_in_place(values: &mut [f32], f: impl Fn(f32) -> f32 + Sync) {
    values.par_chunks_mut(BLOCK).for_each(|block| block.iter_mut().for_each(|x| *x = f(*x)));
}

fn map2(a: &[f32], b: &[f32], y: &mut [f32], f: impl Fn(f32, f32) -> f32 + Sync) {
    blocks2(a, b, y, |a, b, y| y.iter_mut().zip(a.iter().zip(b)).for_each(|(y, (&a, &b))| *y = f(a, b)));
}

/// Words of a mask that are converted at a time.
const WORDS: usize = BLOCK / 32;

/// Bytes of a mask of `len` elements, one bit each.
#[must_use]
pub const fn mask_bytes(len: usize) -> usize {
    len.div_ceil(8)
}

/// The gradient of a `ReLU`'s input, over that of its output, by a bit an element, lowest first: whether it is above zero.
///
/// # Errors
/// A mask that is not [`mask_bytes`] long.
pub fn gate(mask: &[u8], isa: Isa, gradient: &mut [f32]) -> Result {
    expect_length("a mask", mask.len(), mask_bytes(gradient.len()))?;
    gradient.par_chunks_mut(BLOCK).zip(mask.par_chunks(BLOCK / 8)).try_for_each(|(gradient, bytes)| {
        let mut words = [0; WORDS];
        let words = &mut words[..mask::mask_words(gradient.len())];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(4)) {
            let mut whole = [0; 4];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u32::from_le_bytes(whole);
        }
        Ok(mask::gate(words, isa, gradient)?)
    })
}
