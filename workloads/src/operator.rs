//! The differentiable operators, as PyTorch's autograd sees them.

use strum::{IntoStaticStr, VariantNames};

/// Window of a convolution or a pooling: kernel, stride and padding, height then width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Window {
    /// Kernel height and width.
    pub kernel: [u64; 2],
    /// Positions between two windows, down and across.
    pub stride: [u64; 2],
    /// Zero padding on each side.
    pub padding: [u64; 2],
}

impl Window {
    /// A square window.
    pub const fn square(kernel: u64, stride: u64, padding: u64) -> Self {
        Self { kernel: [kernel, kernel], stride: [stride, stride], padding: [padding, padding] }
    }

    /// The positions that it covers.
    pub const fn taps(&self) -> u64 {
        self.kernel[0] * self.kernel[1]
    }

    /// Whether it is a point at every position, so that no neighbourhood has to be gathered.
    pub fn is_pointwise(&self) -> bool {
        self.kernel == [1, 1] && self.stride == [1, 1]
    }

    /// The output size along `axis` (0 height, 1 width), or `None` if the window does not fit.
    pub fn output(&self, axis: usize, input: u64, round_up: bool) -> Option<u64> {
        let span = (input + 2 * self.padding[axis]).checked_sub(self.kernel[axis])?;
        let stride = self.stride[axis].max(1);
        let mut steps = span / stride;
        if round_up {
            steps = span.div_ceil(stride);
            // PyTorch: the last window must start inside the input or its left padding.
            if steps * stride >= input + self.padding[axis] {
                steps -= 1;
            }
        }
        Some(steps + 1)
    }
}

/// An element-wise function of one tensor.
#[derive(Clone, Copy, Debug, PartialEq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Unary {
    /// max(x, 0); saves its output.
    Relu,
    /// min(max(x, 0), 6); saves its input.
    Relu6,
    /// The error-function GELU; saves its input.
    Gelu,
    /// Saves its output.
    Tanh,
    /// x³, as `pow`; saves its input.
    #[strum(serialize = "pow")]
    Cube,
    /// Multiplied by a constant; saves nothing.
    Scale,
    /// A constant or an unsaved mask is added; saves nothing.
    AddConstant,
    /// Divided by a tensor of one element (GPT-2's scale): saves that element.
    #[strum(serialize = "divide")]
    DivideByElement,
    /// Masked by a buffer of booleans (`where`); saves the condition.
    Where,
    /// A whole sample is dropped or scaled (stochastic depth): saves one factor a sample.
    DropPath,
}

/// A differentiable operator; shapes and parameters stand beside it in its [`crate::network::OperatorNode`].
#[derive(Clone, Debug, PartialEq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Op {
    /// 2-D convolution.
    Convolution {
        /// The positions that each output sees.
        window: Window,
        /// Channel groups; equal to the channels for a depthwise convolution.
        groups: u64,
    },
    /// `x Wᵀ + b` over the last dimension.
    Linear,
    /// Batched product of two tensors.
    Matmul,
    /// Batch normalisation with the batch's statistics.
    BatchNorm,
    /// Layer normalisation over the last dimension.
    LayerNorm,
    /// An element-wise function; `in_place` overwrites its input.
    Unary {
        /// What is computed of each element.
        function: Unary,
        /// Whether the output is stored over the input.
        in_place: bool,
    },
    /// Element-wise sum of two tensors; a smaller second operand is broadcast.
    Add,
    /// Element-wise product of two tensors.
    Mul,
    /// Tensors side by side along one axis, in storage of their own.
    Concat,
    /// Max-pooling; saves its input and 64-bit indices.
    MaxPool(Window),
    /// Average pooling, adaptive average pooling to more than one output included; saves its input.
    AveragePool(Window),
    /// Mean over all positions; saves nothing.
    GlobalAveragePool,
    /// Dropout; saves a mask.
    Dropout,
    /// Softmax over the last dimension; saves its output.
    Softmax,
    /// Rows of a table; saves the indices.
    Embedding,
    /// Rows of a small table by fixed indices (Swin's relative position bias); saves the indices.
    IndexTable,
    /// Another look at the same storage: reshape, permute, expand.
    View,
    /// A part of a storage, seen in place.
    Slice,
    /// A copy into a layout of its own (`contiguous`, `roll`, an implicit copy before a product).
    Copy,
    /// Cross-entropy with the labels: log-softmax, then negative log-likelihood.
    CrossEntropy,
}

impl Op {
    /// The operator's name, as it appears in messages and timelines.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unary { function, .. } => function.into(),
            other => other.into(),
        }
    }

    /// Whether mixed precision runs it in fp32.
    pub const fn keeps_full_precision(&self) -> bool {
        matches!(self, Self::LayerNorm | Self::Softmax | Self::CrossEntropy)
    }

    /// Whether functional code, not a module, runs it in the networks here, so that what it saves
    /// is out of reach of a module's hooks.
    ///
    /// A tanh counts as part of a GELU written out in steps, of which only the first, a cube, saves the module's own
    /// input; BERT's pooler has a tanh that is a module, over one row a sample. The loss is a module.
    pub const fn is_functional(&self) -> bool {
        matches!(
            self,
            Self::Matmul
                | Self::Softmax
                | Self::Mul
                | Self::IndexTable
                | Self::Unary {
                    function: Unary::Tanh | Unary::DivideByElement | Unary::Where | Unary::Scale | Unary::AddConstant,
                    ..
                }
        )
    }
}
