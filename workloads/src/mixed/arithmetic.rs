//! How the numbers of an algorithm are computed, in a run that carries data.

use serde::Deserialize;

/// How the numbers of an algorithm are computed.
///
/// Of eight bits a tensor has codes from −127 to 127, of sixteen those to 127 · 256 + 127; a value is its code times a step.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arithmetic {
    /// What steps are, and who shares one.
    pub scaling: Scaling,
    /// How sums of forward become eight bits.
    pub forward: Rounding,
    /// How sums of gradients of errors do.
    pub input_gradient: Rounding,
    /// How sums of gradients of weights do.
    pub weight_gradient: Rounding,
    /// How all other values become integers.
    #[serde(default)]
    pub values: Rounding,
    /// Steps that are always the same.
    #[serde(default)]
    pub fixed: FixedSteps,
    /// The share of the largest magnitude of a gradient of errors that its codes reach to; what is larger is cut to it.
    #[serde(default = "whole")]
    pub gradient_range: f32,
    /// What the learning rate of a run means.
    pub learning_rate: Rate,
    /// Where these choices come from.
    pub source: String,
}

const fn whole() -> f32 {
    1.0
}

/// What steps are, and who shares one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scaling {
    /// A tensor has one, the least power of two at which all its values have codes.
    PowerOfTwo,
    /// A tensor has one, at which its largest value has the largest code.
    Range,
    /// As `power_of_two`, and below that of the tensor each channel of a sample, filter of a channel or row of features has
    /// its own.
    Channel,
}

/// Steps that are always the same, as exponents of two; `None` where the values tell them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FixedSteps {
    /// That of weights.
    pub weight: Option<i32>,
    /// That of activations and of samples.
    pub activation: Option<i32>,
    /// That of gradients of weights, whose codes are those of their own scale.
    pub weight_gradient: Option<i32>,
    /// That of an optimiser's state.
    pub state: Option<i32>,
}

/// How a value becomes an integer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rounding {
    /// To the nearest, halves away from zero.
    #[default]
    Nearest,
    /// Of the bits that are shifted out, the upper half is compared with the lower half, which stands for a random draw:
    /// away from zero where the upper is the larger (NITI, pseudo-stochastic rounding). What is no sum of integers has no such
    /// bits, and goes to the nearest.
    PseudoStochastic,
    /// Away from zero with the probability of the fraction that is lost.
    Stochastic,
}

/// What a learning rate means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// The gradient of a weight that is an integer is rounded to so many bits that its largest value is that share of the
    /// weight's range of 128, and is subtracted.
    GradientBits,
    /// The gradient's value is multiplied by it, as in fp32.
    Value,
}
