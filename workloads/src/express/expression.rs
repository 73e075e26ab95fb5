//! What an expression is, and the variables that it ties.

use crate::shape::Shape;
use crate::training_graph::{Need, TensorId};

/// A variable, by position.
pub(super) type VariableId = u32;

/// How a tensor lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Row-major, channels before positions (NCHW).
    Rows,
    /// Blocks of four channels side by side at each position (NC4HW4); channels are padded to a multiple of four.
    Blocks,
}

/// A shaped look at a tensor.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) tensor: TensorId,
    pub(super) shape: Shape,
    pub(super) order: Order,
    /// Whether a trained weight's gradient flows through it.
    pub(super) trains: bool,
    /// What backward needs of it, should it be kept.
    pub(super) need: Need,
}

/// A function of every element by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Square,
    Sqrt,
    Reciprocal,
    Negative,
    Log,
    Erf,
    Tanh,
    /// x³, as a power.
    Cube,
    Relu,
    Relu6,
}

impl Function {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Square => "square",
            Self::Sqrt => "sqrt",
            Self::Reciprocal => "reciprocal",
            Self::Negative => "negative",
            Self::Log => "log",
            Self::Erf => "erf",
            Self::Tanh => "tanh",
            Self::Cube => "pow",
            Self::Relu => "relu",
            Self::Relu6 => "relu6",
        }
    }
}

/// One expression of forward through which a gradient flows: `y` is its output.
#[derive(Clone, Debug)]
pub(super) enum Expression {
    Convolution {
        x: VariableId,
        weight: VariableId,
        bias: Option<VariableId>,
        y: VariableId,
    },
    /// A product of matrices, one operand transposed in place where need be.
    Product {
        a: VariableId,
        b: VariableId,
        y: VariableId,
    },
    Add {
        a: VariableId,
        b: VariableId,
        y: VariableId,
    },
    Subtract {
        a: VariableId,
        b: VariableId,
        y: VariableId,
    },
    Multiply {
        a: VariableId,
        b: VariableId,
        y: VariableId,
    },
    /// A constant is added.
    Offset {
        x: VariableId,
        y: VariableId,
    },
    /// Multiplied or divided by a constant.
    Scale {
        x: VariableId,
        y: VariableId,
    },
    Function {
        function: Function,
        x: VariableId,
        y: VariableId,
    },
    /// `x` where `condition` holds, a constant elsewhere.
    Select {
        condition: VariableId,
        x: VariableId,
        y: VariableId,
    },
    /// The sum over some axes, or their mean.
    Reduce {
        mean: bool,
        x: VariableId,
        y: VariableId,
    },
    Softmax {
        x: VariableId,
        y: VariableId,
    },
    Pool {
        x: VariableId,
        y: VariableId,
    },
    /// Rows of `table` by `ids`.
    Gather {
        table: VariableId,
        ids: VariableId,
        y: VariableId,
    },
    /// The same memory under another shape.
    Reshape {
        x: VariableId,
        y: VariableId,
    },
    /// A copy into another order, or to other places; `label` says which.
    Rearrange {
        label: &'static str,
        x: VariableId,
        y: VariableId,
    },
    /// A copy of a part.
    Slice {
        x: VariableId,
        y: VariableId,
    },
    /// Copies of all parts.
    Split {
        x: VariableId,
        parts: Vec<VariableId>,
    },
    Concat {
        parts: Vec<VariableId>,
        y: VariableId,
    },
}
