//! Expressions, and the variables that they connect.

use haversack_devices::OperatorKind;

use crate::{Extent, Need, Shape, TensorId};

/// A variable, by position.
pub(super) type VariableId = u32;

/// How a tensor lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum DataFormat {
    /// Row-major, channels before positions (NCHW).
    Rows,
    /// Blocks of four channels side by side at each position (NC4HW4); channels are padded to a multiple of four.
    Blocks,
    /// Positions before channels, as a product of matrices makes them; declared to readers as blocks.
    Columns,
    /// Rows that are declared to readers as blocks: a conversion that no kernel has needed yet.
    Unblocked,
}

impl DataFormat {
    /// The format that is declared to readers.
    pub(super) const fn told(self) -> Self {
        match self {
            Self::Columns | Self::Unblocked => Self::Blocks,
            other => other,
        }
    }
}

/// A declared shape and order of a tensor's elements.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) shape: Shape,
    pub(super) format: DataFormat,
}

impl Layout {
    pub(super) const fn rows(shape: Shape) -> Self {
        Self { shape, format: DataFormat::Rows }
    }

    pub(super) const fn blocks(shape: Shape) -> Self {
        Self { shape, format: DataFormat::Blocks }
    }
}

/// A shaped view of a tensor.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) tensor: TensorId,
    pub(super) shape: Shape,
    pub(super) format: DataFormat,
    /// Whether a trained weight's gradient flows through it.
    pub(super) trains: bool,
    /// The property of it that backward needs, should it be saved.
    pub(super) need: Need,
}

/// An element-wise function of one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Function {
    Square,
    Sqrt,
    Reciprocal,
    Negative,
    Log,
    Erf,
    Tanh,
    Sigmoid,
    /// x³, as a power.
    #[strum(serialize = "pow")]
    Cube,
    Relu,
    Relu6,
    /// A function with its own kernel, whose slope is one sweep over its input.
    Other,
}

/// The operation of an expression on its inputs, in this order.
#[derive(Clone, Copy, Debug, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Operation {
    /// The input, the weight, and the bias if there is one.
    Convolution,
    /// A product of matrices, one operand transposed in place if need be.
    Product,
    Add,
    Subtract,
    Multiply,
    /// A constant is added.
    #[strum(serialize = "add_constant")]
    Offset,
    /// Multiplied or divided by a constant.
    Scale,
    Function(Function),
    /// The second input where the first, a condition, is true; a constant elsewhere.
    Select,
    /// The sum over some axes, or their mean.
    Reduce {
        mean: bool,
    },
    Softmax,
    /// Pooling by an operator of `kind` that computes `flops`.
    Pool {
        kind: OperatorKind,
        flops: Extent,
    },
    /// Rows of a table by ids.
    Gather,
    /// The same memory under another shape.
    Reshape,
    /// The same memory, which its reader treats as surrounded by zeros.
    Pad,
    /// A copy into another format, or to other places, as the label states.
    Rearrange(&'static str),
    /// A copy of a part.
    Slice,
    /// Copies of all parts, one output each.
    Split,
    Concat,
}

impl Operation {
    /// The name of its node, if it is element-wise.
    pub(super) fn sweep_name(self) -> &'static str {
        match self {
            Self::Function(function) => function.into(),
            other => other.into(),
        }
    }
}

/// One expression of forward through which a gradient flows.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) operation: Operation,
    pub(super) inputs: Vec<VariableId>,
    /// One output, except for [`Operation::Split`].
    pub(super) outputs: Vec<VariableId>,
    /// The operator of the network that it comes from.
    pub(super) origin: Option<u32>,
}
