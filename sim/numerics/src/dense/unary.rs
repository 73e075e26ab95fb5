//! Element-wise functions of one tensor, and their gradients from the tensors that PyTorch saves.

use haversack_kernels::Isa;
use haversack_kernels::quantise::mask;
use haversack_workloads::{Addend, Unary};
use rayon::prelude::*;

use super::parallel::{BLOCK, blocks2};
use super::transcendental::{erf, exp, power, tanh};
use crate::error::{Result, expect_length};

/// The tensor that the backward pass of a function needs.
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
/// The factor of the cube in it.
const GELU_CUBE: f32 = 0.044_715;

#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

#[inline(always)]
fn gelu_tanh(x: f32) -> f32 {
    tanh(GELU_SLOPE * (x + GELU_CUBE * x * x * x))
}

/// The tensor that PyTorch saves for the backward pass.
#[must_use]
pub const fn saved(function: Unary) -> Saved {
    match function {
        Unary::Relu | Unary::Tanh | Unary::Sigmoid => Saved::Output,
        Unary::Scale(_)
        | Unary::AddConstant(_)
        | Unary::DivideByElement(_)
        | Unary::Where(_)
        | Unary::Other(_)
        | Unary::DropPath(_) => Saved::Nothing,
        _ => Saved::Input,
    }
}

/// `values = f(values)`, element by element; functions that are not arithmetic of single elements leave them unchanged.
pub fn forward(function: Unary, values: &mut [f32]) {
    // Each loop is compiled separately.
    match function {
        Unary::Relu => map_in_place(values, |x| if x > 0.0 || x.is_nan() { x } else { 0.0 }),
        Unary::Relu6 => map_in_place(values, |x| x.clamp(0.0, 6.0)),
        Unary::Clip { low, high } => map_in_place(values, move |x| {
            if x > high {
                high
            } else if x < low {
                low
            } else {
                x
            }
        }),
        Unary::Gelu => map_in_place(values, |x| 0.5 * x * (1.0 + erf(x * FRAC_1_SQRT_2))),
        Unary::GeluTanh => map_in_place(values, |x| 0.5 * x * (1.0 + gelu_tanh(x))),
        Unary::Silu => map_in_place(values, |x| x * sigmoid(x)),
        Unary::Tanh => map_in_place(values, tanh),
        Unary::Sigmoid => map_in_place(values, sigmoid),
        Unary::Power(3.0) => map_in_place(values, |x| x * x * x),
        Unary::Power(by) => map_in_place(values, move |x| power(x, by)),
        Unary::Scale(by) => map_in_place(values, move |x| x * by),
        Unary::DivideByElement(divisor) => forward(Unary::Scale(1.0 / divisor), values),
        Unary::AddConstant(Addend::Value(addend)) => map_in_place(values, move |x| x + addend),
        Unary::AddConstant(Addend::Tensor) | Unary::Where(_) | Unary::DropPath(_) | Unary::Other(_) => {}
    }
}

/// The gradient of the input, from the tensor that [`saved`] names (any slice of the same length, or none, if it names
/// nothing) and the gradient of the output. Functions that are not arithmetic of single elements leave it unchanged.
///
/// # Errors
/// Operands of different lengths.
pub fn backward(function: Unary, held: &[f32], gradient: &[f32], input_gradient: &mut [f32]) -> Result {
    let held = if saved(function) == Saved::Nothing { gradient } else { held };
    expect_length("what an element-wise function saved", held.len(), gradient.len())?;
    expect_length("the gradient of an input", input_gradient.len(), gradient.len())?;
    match function {
        Unary::Relu => map2(held, gradient, input_gradient, |y, g| if y > 0.0 { g } else { 0.0 }),
        Unary::Relu6 => map2(held, gradient, input_gradient, |x, g| if x > 0.0 && x < 6.0 { g } else { 0.0 }),
        Unary::Gelu => map2(held, gradient, input_gradient, |x, g| {
            let density = FRAC_1_SQRT_2PI * exp(-0.5 * x * x);
            g * (0.5 * (1.0 + erf(x * FRAC_1_SQRT_2)) + x * density)
        }),
        Unary::Clip { low, high } => {
            map2(held, gradient, input_gradient, move |x, g| if x > low && x < high { g } else { 0.0 });
        }
        Unary::GeluTanh => map2(held, gradient, input_gradient, |x, g| {
            let t = gelu_tanh(x);
            let slope = GELU_SLOPE * (1.0 + 3.0 * GELU_CUBE * x * x);
            g * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope)
        }),
        Unary::Silu => map2(held, gradient, input_gradient, |x, g| {
            let s = sigmoid(x);
            g * s * (1.0 + x * (1.0 - s))
        }),
        Unary::Tanh => map2(held, gradient, input_gradient, |y, g| g * (1.0 - y * y)),
        Unary::Sigmoid => map2(held, gradient, input_gradient, |y, g| g * y * (1.0 - y)),
        Unary::Power(3.0) => map2(held, gradient, input_gradient, |x, g| g * 3.0 * x * x),
        Unary::Power(by) => map2(held, gradient, input_gradient, move |x, g| g * by * power(x, by - 1.0)),
        Unary::Scale(by) => map2(held, gradient, input_gradient, move |_, g| g * by),
        Unary::DivideByElement(divisor) => {
            return backward(Unary::Scale(1.0 / divisor), held, gradient, input_gradient);
        }
        Unary::AddConstant(_) => input_gradient.copy_from_slice(gradient),
        Unary::Where(_) | Unary::DropPath(_) | Unary::Other(_) => {}
    }
    Ok(())
}

fn map_in_place(values: &mut [f32], f: impl Fn(f32) -> f32 + Sync) {
    values.par_chunks_mut(BLOCK).for_each(|block| block.iter_mut().for_each(|x| *x = f(*x)));
}

fn map2(a: &[f32], b: &[f32], y: &mut [f32], f: impl Fn(f32, f32) -> f32 + Sync) {
    blocks2(a, b, y, |a, b, y| y.iter_mut().zip(a.iter().zip(b)).for_each(|(y, (&a, &b))| *y = f(a, b)));
}

/// Words of a mask that are converted at a time.
const WORDS: usize = BLOCK / 32;

/// The gradient of a `ReLU`'s input, in place of that of its output, from a bit an element, lowest first: whether
/// the element is above zero.
///
/// # Errors
/// A mask of another length than a bit an element takes.
pub fn gate(mask: &[u8], isa: Isa, gradient: &mut [f32]) -> Result {
    expect_length("a mask", mask.len(), gradient.len().div_ceil(8))?;
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
