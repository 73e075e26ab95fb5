//! Element-wise functions of one tensor, and their gradients from what PyTorch saves.

use haversack_kernels::Isa;
use haversack_kernels::quantise::mask;
use rayon::prelude::*;

use super::parallel::{BLOCK, blocks, blocks2};
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

/// Calls a loop with the function of one element that belongs to each variant, so that each is compiled by itself.
macro_rules! each_function {
    ($function:expr, $loop:ident, $($argument:expr),+) => {
        match $function {
            Function::Relu => $loop($($argument),+, |x, _| if x > 0.0 || x.is_nan() { x } else { 0.0 }),
            Function::Relu6 => $loop($($argument),+, |x, _| x.clamp(0.0, 6.0)),
            Function::Clip { low, high } => $loop($($argument),+, move |x, _| if x > high { high } else if x < low { low } else { x }),
            Function::Gelu => $loop($($argument),+, |x, _| 0.5 * x * (1.0 + erf(x * FRAC_1_SQRT_2))),
            Function::GeluTanh => $loop($($argument),+, |x, _| 0.5 * x * (1.0 + gelu_tanh(x))),
            Function::Silu => $loop($($argument),+, |x, _| x * sigmoid(x)),
            Function::Tanh => $loop($($argument),+, |x, _| tanh(x)),
            Function::Sigmoid => $loop($($argument),+, |x, _| sigmoid(x)),
            Function::Cube => $loop($($argument),+, |x, _| x * x * x),
            Function::Power(power) => $loop($($argument),+, move |x, _| x.powf(power)),
            Function::Scale(by) => $loop($($argument),+, move |x, _| x * by),
        }
    };
}

/// The same for derivatives: of the saved element and the gradient.
macro_rules! each_derivative {
    ($function:expr, $loop:ident, $($argument:expr),+) => {
        match $function {
            Function::Relu => $loop($($argument),+, |y, g| if y > 0.0 { g } else { 0.0 }),
            Function::Relu6 => $loop($($argument),+, |x, g| if x > 0.0 && x < 6.0 { g } else { 0.0 }),
            Function::Gelu => $loop($($argument),+, |x, g| {
                let density = FRAC_1_SQRT_2PI * exp(-0.5 * x * x);
                g * (0.5 * (1.0 + erf(x * FRAC_1_SQRT_2)) + x * density)
            }),
            Function::Clip { low, high } => $loop($($argument),+, move |x, g| if x > low && x < high { g } else { 0.0 }),
            Function::GeluTanh => $loop($($argument),+, |x, g| {
                let t = gelu_tanh(x);
                let slope = GELU_SLOPE * (1.0 + 3.0 * GELU_CUBE * x * x);
                g * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope)
            }),
            Function::Silu => $loop($($argument),+, |x, g| {
                let s = sigmoid(x);
                g * s * (1.0 + x * (1.0 - s))
            }),
            Function::Tanh => $loop($($argument),+, |y, g| g * (1.0 - y * y)),
            Function::Sigmoid => $loop($($argument),+, |y, g| g * y * (1.0 - y)),
            Function::Cube => $loop($($argument),+, |x, g| g * 3.0 * x * x),
            Function::Power(power) => $loop($($argument),+, move |x, g| g * power * x.powf(power - 1.0)),
            Function::Scale(by) => $loop($($argument),+, move |_, g| g * by),
        }
    };
}

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

    /// `output = f(input)`, element by element.
    ///
    /// # Errors
    /// Operands of different lengths.
    pub fn forward(self, input: &[f32], output: &mut [f32]) -> Result {
        expect_length("the output of an element-wise function", output.len(), input.len())?;
        each_function!(self, map, input, output);
        Ok(())
    }

    /// `values = f(values)`, element by element.
    pub fn forward_in_place(self, values: &mut [f32]) {
        each_function!(self, map_in_place, values);
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
        each_derivative!(self, map2, saved, gradient, input_gradient);
        Ok(())
    }

    /// [`backward`](Self::backward) over the gradient itself.
    ///
    /// # Errors
    /// Operands of different lengths.
    pub fn backward_in_place(self, saved: &[f32], gradient: &mut [f32]) -> Result {
        if let Self::Scale(by) = self {
            Self::Scale(by).forward_in_place(gradient);
            return Ok(());
        }
        expect_length("what an element-wise function saved", saved.len(), gradient.len())?;
        each_derivative!(self, map_with, saved, gradient);
        Ok(())
    }
}

fn map(x: &[f32], y: &mut [f32], f: impl Fn(f32, f32) -> f32 + Sync) {
    blocks(x, y, |x, y| y.iter_mut().zip(x).for_each(|(y, &x)| *y = f(x, 0.0)));
}

fn map_in_place(values: &mut [f32], f: impl Fn(f32, f32) -> f32 + Sync) {
    values.par_chunks_mut(BLOCK).for_each(|block| block.iter_mut().for_each(|x| *x = f(*x, 0.0)));
}

fn map2(a: &[f32], b: &[f32], y: &mut [f32], f: impl Fn(f32, f32) -> f32 + Sync) {
    blocks2(a, b, y, |a, b, y| y.iter_mut().zip(a.iter().zip(b)).for_each(|(y, (&a, &b))| *y = f(a, b)));
}

fn map_with(a: &[f32], y: &mut [f32], f: impl Fn(f32, f32) -> f32 + Sync) {
    blocks(a, y, |a, y| y.iter_mut().zip(a).for_each(|(y, &a)| *y = f(a, *y)));
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
