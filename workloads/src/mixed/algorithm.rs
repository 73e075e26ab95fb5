//! The definition of a mixed-precision training algorithm, as data: the four parts of Mandheling, section 3.2.
//!
//! Each algorithm is one TOML file. The `source` of a part gives the reason for choices that neither the paper of
//! Mandheling nor the algorithm's own settles.

use haversack_devices::{Precision, ProductRole};
use serde::Deserialize;

use crate::Optimiser;

/// A mixed-precision training algorithm.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Algorithm {
    /// Its id on the command line.
    pub id: String,
    /// Its name, for display.
    pub name: String,
    /// Where it was published.
    pub citation: String,
    /// The treatment of each operator.
    pub translation: Translation,
    /// How gradients are computed.
    pub backpropagation: Backpropagation,
    /// How weights are stored and updated.
    pub weight: WeightRules,
    /// The loss and the optimiser.
    pub optimiser: OptimiserChoice,
    /// How its sums are rounded; `None` if only its costs are described, and it cannot be run on data.
    pub arithmetic: Option<Arithmetic>,
    /// Further sweeps for every layer.
    #[serde(default, rename = "pass")]
    pub passes: Vec<Pass>,
}

/// The name of an operator, as [`crate::Op::name`] gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorName(pub &'static str);

/// From fp32 operators to those of mixed precision. An operator that is in none of the lists has no translation, and a
/// network that contains one is refused.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Translation {
    /// Operators on eight-bit integers.
    pub int8: Vec<OperatorName>,
    /// Operators that are unchanged, between a dequantisation and a quantisation.
    pub fp32: Vec<OperatorName>,
    /// Operators that the algorithm's networks do not have: their input passes through.
    #[serde(default)]
    pub absent: Vec<OperatorName>,
    /// Products whose scale is recomputed from their 32-bit sums, whenever the run requires it (dynamic rescaling).
    pub rescaled: Vec<ProductRole>,
    /// Where these choices come from.
    pub source: String,
}

/// The rules for gradients of errors and of weights.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backpropagation {
    /// How gradients are stored.
    pub gradients: GradientFormat,
    /// Whether the gradient of a convolution's input is a convolution with the rotated weight.
    pub rotates_weight: bool,
    /// The operands that are transposed before the gradient of a convolution's weight, so that the
    /// batch is their depth.
    pub transposes: Vec<Operand>,
    /// Where these choices come from.
    pub source: String,
}

/// How gradients are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GradientFormat {
    /// As eight-bit integers with one scale per tensor.
    Int8,
}

/// An operand of the gradient of a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operand {
    /// The layer's input.
    Input,
    /// The gradient of its output.
    Gradient,
}

/// How weights are stored and updated.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightRules {
    /// The format in which products read them.
    #[serde(rename = "type")]
    pub format: WeightFormat,
    /// Layers whose weights have sixteen bits instead.
    #[serde(default)]
    pub int16: Layers,
    /// The format of biases.
    pub bias: BiasFormat,
    /// The format that the update works on.
    pub update: Update,
    /// How they are initialised, which costs an iteration nothing.
    pub initialiser: Initialiser,
    /// Where these choices come from.
    pub source: String,
}

/// The format in which products read weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WeightFormat {
    /// Eight-bit integers.
    Int8,
    /// Sixteen-bit integers.
    Int16,
}

/// A choice of layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layers {
    /// No layer.
    #[default]
    None,
    /// The first and the last with a weight.
    FirstAndLast,
}

/// The format of biases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BiasFormat {
    /// Eight-bit integers.
    Int8,
    /// Thirty-two-bit integers, at the scale of the product's sums.
    Int32,
}

/// The format that the update works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Update {
    /// The integers themselves.
    Int8,
    /// An fp32 master, from which the integers are made once an iteration.
    Fp32,
    /// A 24-bit master; no processor here has such a format, so it is stored in 32-bit words.
    Fp24,
}

/// How weights are initialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Initialiser {
    /// Glorot and Bengio, AISTATS 2010, normal.
    XavierNormal,
    /// He et al., ICCV 2015, normal.
    KaimingNormal,
    /// As the network is initialised in fp32.
    Network,
}

/// The loss and the optimiser.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimiserChoice {
    /// The loss.
    pub loss: Loss,
    /// The optimiser of the paper; a run may choose another.
    pub method: Optimiser,
    /// The format of its state, if it keeps one.
    pub state: StateFormat,
    /// Where these choices come from.
    pub source: String,
}

/// The loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Softmax and negative log-likelihood.
    CrossEntropy,
}

/// The format of an optimiser's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateFormat {
    /// Sixteen-bit integers.
    Int16,
    /// Thirty-two-bit integers.
    Int32,
    /// Floating-point numbers.
    Fp32,
}

/// How the numbers of an algorithm are computed when it runs on data.
///
/// A tensor has codes from −127 to 127 and one step, the smallest power of two at which all its values have codes; a
/// value is its code times the step. Results other than sums of integers are rounded to the nearest code. The gradient
/// of a weight is rounded to the number of bits at which its largest code is the learning rate's share of the weight's
/// range of 128, and is subtracted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arithmetic {
    /// How sums of forward become eight bits.
    pub forward: Rounding,
    /// How sums of gradients of errors become eight bits.
    pub input_gradient: Rounding,
    /// How sums of gradients of weights become eight bits.
    pub weight_gradient: Rounding,
    /// Where these choices come from.
    pub source: String,
}

/// How a sum of integers becomes a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rounding {
    /// To the nearest, halves away from zero.
    Nearest,
    /// The upper half of the bits that are shifted out is compared with the lower half, which acts as a random draw:
    /// away from zero if the upper half is larger (NITI, pseudo-stochastic rounding).
    PseudoStochastic,
}

/// One more sweep over the result of a product.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    /// Its name, for display.
    pub name: String,
    /// The products that it follows.
    pub after: Vec<ProductRole>,
    /// The elements that it sweeps over.
    pub over: Sweep,
    /// Whether it runs only when the product's scale is recomputed.
    #[serde(default)]
    pub with_rescaling: bool,
    /// The number format of its arithmetic.
    pub precision: Precision,
    /// Operations per element.
    pub flops: u64,
    /// Bytes read and written per element.
    pub bytes: u64,
    /// Where it and its numbers come from.
    pub source: String,
}

/// The elements that a pass sweeps over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sweep {
    /// The elements that the product makes.
    Outputs,
    /// The sums of a convolution within each group of elements with a common scale (one channel of one sample): its
    /// multiply-adds divided by a filter's taps, or by an image's positions for the gradient of the weight; for other
    /// products the same as `Outputs`. The pass is part of the product's loops and runs at its rate.
    GroupSums,
}

/// The treatment of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    /// It works on integers.
    Integer,
    /// It works on fp32 copies.
    Float,
    /// It vanishes.
    Absent,
}

impl Algorithm {
    /// Whether the scale of products with `role` is recomputed in some iterations.
    pub fn rescales(&self, role: ProductRole) -> bool {
        self.translation.rescaled.contains(&role)
    }

    /// The treatment of the operator called `name`; `None` if it has no translation.
    pub(super) fn treatment(&self, name: &str) -> Option<Treatment> {
        let lists = self.translation.lists();
        lists.into_iter().find(|(_, _, list)| list.iter().any(|o| o.0 == name)).map(|(_, treatment, _)| treatment)
    }
}

impl Translation {
    pub(super) fn lists(&self) -> [(&'static str, Treatment, &[OperatorName]); 3] {
        [
            ("int8", Treatment::Integer, &self.int8),
            ("fp32", Treatment::Float, &self.fp32),
            ("absent", Treatment::Absent, &self.absent),
        ]
    }

    /// The operators that have a translation, for messages.
    pub(super) fn operators(&self) -> impl Iterator<Item = &'static str> {
        self.lists().into_iter().flat_map(|(_, _, list)| list).map(|operator| operator.0)
    }
}
