//! Operators of imported networks that cannot be computed on data: their kinds and what they save.

use strum::{IntoStaticStr, VariantNames};

/// An element-wise function of one tensor.
#[derive(Clone, Copy, Debug, PartialEq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Pointwise {
    /// x, or x times this slope where it is below zero.
    LeakyRelu(f32),
    /// x · min(max(x + 3, 0), 6) / 6.
    HardSwish,
    /// min(max(x/6 + 1/2, 0), 1).
    HardSigmoid,
    /// x, or e^x − 1 where it is below zero; SELU and CELU are scaled ones.
    Elu,
    /// log(1 + e^x).
    Softplus,
    /// x / (1 + |x|).
    Softsign,
    /// x · tanh(log(1 + e^x)).
    Mish,
    /// e^x.
    Exp,
    /// The natural logarithm.
    Log,
    /// The error function.
    Erf,
    /// The square root.
    Sqrt,
    /// 1/x.
    Reciprocal,
    /// 1/√x.
    InverseRoot,
    /// The magnitude.
    Abs,
    /// The sine, and the cosine.
    Sin,
    /// Rounded down, up or to the nearest integer, or the sign: no gradient but zero.
    Round,
}

impl Pointwise {
    /// Whether its derivative is computed from its output; otherwise from its input (PyTorch 2.6, `derivatives.yaml`).
    pub(crate) const fn saves_output(self) -> bool {
        matches!(self, Self::Exp | Self::Sqrt | Self::Reciprocal | Self::InverseRoot)
    }
}

/// An element-wise function of two tensors, each of whose derivatives needs both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Pairing {
    /// The quotient.
    Quotient,
    /// The larger one, or the smaller.
    Extreme,
    /// The first to the power of the second.
    PowerOf,
    /// The first, times the second where it is below zero: a leaky ReLU with trained slopes.
    PRelu,
    /// The first, times the sigmoid of the second: a gated linear unit.
    Gated,
    /// The first where a condition is true, else the second; saves the condition.
    Select,
}

/// A reduction over some axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Reducing {
    /// The sum; saves nothing.
    Sum,
    /// The largest or the smallest; saves its input and its output (`amax`).
    Largest,
    /// A norm, a product or a logarithm of a sum of exponentials; saves its input and its output.
    Norm,
}

impl Reducing {
    /// Whether its derivative needs its input and its output.
    pub const fn saves(self) -> bool {
        !matches!(self, Self::Sum)
    }
}

/// The elements to take. Backward computes indices and weights again from the shapes, except for a look-up's indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Taking {
    /// Those of a picture of another size; saves nothing.
    Resize {
        /// The input elements per output element: one for nearest, four for bilinear, sixteen for cubic interpolation.
        taps: u64,
    },
    /// All of them, with others around: zeros, or a mirror; saves nothing.
    PadAround,
    /// Those at given indices; saves the indices.
    LookUp,
    /// All of them, several times over; saves nothing.
    Repeat,
}

/// The cell of a recurrent layer, applied at each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Cell {
    /// Long short-term memory: four gates and a cell.
    Lstm,
    /// A gated recurrent unit: three gates.
    Gru,
    /// A plain recurrent unit: one function.
    Plain,
}

impl Cell {
    /// Rows of its weights for each unit of its state.
    pub const fn gates(self) -> u64 {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
            Self::Plain => 1,
        }
    }

    /// Values that a step saves for each unit of its state: states that products read, gates, and what gates multiply.
    ///
    /// Measured with PyTorch's saved-tensor hooks on a CPU. An LSTM keeps four gates, the state, the cell and its tanh;
    /// a GRU five values of its gates' kernel, the state and what the gates' kernel returns; a plain unit its state.
    pub(crate) const fn saved_values(self) -> u64 {
        match self {
            Self::Lstm | Self::Gru => 7,
            Self::Plain => 1,
        }
    }
}
