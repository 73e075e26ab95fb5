//! What defines a mixed-precision training algorithm, as data: the four parts of Mandheling, section 3.2.
//!
//! One TOML file an algorithm. Whatever the paper of Mandheling or the algorithm's own leaves open carries its reason
//! in the `source` of its part.

use haversack_devices::{Precision, ProductRole};
use serde::Deserialize;

use crate::Optimiser;

/// A mixed-precision training algorithm.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Algorithm {
    /// Its id on the command line.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// Where it was published.
    pub citation: String,
    /// What becomes of each operator.
    pub translation: Translation,
    /// How gradients are computed.
    pub backpropagation: Backpropagation,
    /// How weights are held and updated.
    pub weight: WeightRules,
    /// The loss and the optimiser.
    pub optimiser: OptimiserChoice,
    /// How its sums are rounded; `None` if only its costs are described, and it is not carried out on data.
    pub arithmetic: Option<Arithmetic>,
    /// What else it does for every layer.
    #[serde(default, rename = "pass")]
    pub passes: Vec<Pass>,
}

/// The name of an operator, as [`crate::Op::name`] gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorName(pub &'static str);

/// From fp32 operators to those of mixed precision. An operator that is in none of the lists has no translation, and a
/// network that has one is refused.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Translation {
    /// Operators on eight-bit integers.
    pub int8: Vec<OperatorName>,
    /// Operators that stay as they are, between a dequantisation and a quantisation.
    pub fp32: Vec<OperatorName>,
    /// Operators that the algorithm's networks do not have: their input passes through.
    #[serde(default)]
    pub absent: Vec<OperatorName>,
    /// Products whose scale is taken anew from their 32-bit sums, whenever the run asks for it (dynamic rescaling).
    pub rescaled: Vec<ProductRole>,
    /// Where these choices come from.
    pub source: String,
}

/// The rules for gradients of errors and of weights.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backpropagation {
    /// How gradients are held.
    pub gradients: GradientFormat,
    /// Whether the gradient of a convolution's input is a convolution with the rotated weight.
    pub rotates_weight: bool,
    /// The operands that are laid out anew before the gradient of a convolution's weight, so that the batch is their depth.
    pub transposes: Vec<Operand>,
    /// Where these choices come from.
    pub source: String,
}

/// How gradients are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GradientFormat {
    /// As eight-bit integers with a scale a tensor.
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

/// How weights are held and updated.
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
    /// What the update works on.
    pub update: Update,
    /// How they start; it costs an iteration nothing.
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

/// What the update works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Update {
    /// The integers themselves.
    Int8,
    /// An fp32 master, from which the integers are made once an iteration.
    Fp32,
    /// A master of 24 bits; no processor here has such a format, so it stands in 32-bit words.
    Fp24,
}

/// How weights start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Initialiser {
    /// Glorot and Bengio, AISTATS 2010, normal.
    XavierNormal,
    /// He et al., ICCV 2015, normal.
    KaimingNormal,
    /// As the network starts in fp32.
    Network,
}

/// The loss and the optimiser.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimiserChoice {
    /// The loss.
    pub loss: Loss,
    /// The optimiser of the paper; a run may ask for another.
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

/// How the numbers of an algorithm that is carried out on data are computed.
///
/// A tensor has codes from −127 to 127 and one step, the least power of two at which all its values have codes; a value is
/// its code times the step. What is no sum of integers is rounded to the nearest. The gradient of a weight is rounded to so
/// many bits that its largest code is the learning rate's share of the weight's range of 128, and is subtracted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arithmetic {
    /// How sums of forward become eight bits.
    pub forward: Rounding,
    /// How sums of gradients of errors do.
    pub input_gradient: Rounding,
    /// How sums of gradients of weights do.
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
    /// Of the bits that are shifted out, the upper half is compared with the lower half, which stands for a random draw:
    /// away from zero where the upper is the larger (NITI, pseudo-stochastic rounding).
    PseudoStochastic,
}

/// One more sweep over what a product made.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    /// Its name, for people.
    pub name: String,
    /// The products that it follows.
    pub after: Vec<ProductRole>,
    /// What it sweeps over.
    pub over: Sweep,
    /// Whether it runs only when the product's scale is taken anew.
    #[serde(default)]
    pub with_rescaling: bool,
    /// The number format of its arithmetic.
    pub precision: Precision,
    /// Operations an element of what it sweeps over.
    pub flops: u64,
    /// Bytes read and written an element.
    pub bytes: u64,
    /// Where it and its numbers come from.
    pub source: String,
}

/// What a pass sweeps over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sweep {
    /// The elements that the product makes.
    Outputs,
    /// The sums that a convolution has within the groups of elements with a common scale, a channel of a sample each: its
    /// multiply-adds over a filter's taps, or over an image for the gradient of the weight; as many as `Outputs` of other
    /// products. It is part of the product's loops and runs at its rate.
    GroupSums,
}

/// What becomes of an operator.
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
    /// Whether the scale of products with `role` is taken anew in some iterations.
    pub fn rescales(&self, role: ProductRole) -> bool {
        self.translation.rescaled.contains(&role)
    }

    /// What becomes of the operator called `name`; `None` if it has no translation.
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
