//! The differentiable operators, as PyTorch's autograd sees them.

mod kinds;

use strum::{IntoStaticStr, VariantNames};

pub use kinds::{Cell, Pairing, Pointwise, Reducing, Taking};

/// The epsilon of a normalisation where the framework's default is kept.
pub const EPSILON: f32 = 1e-5;
/// The share of the batch's statistics in new running ones where the framework's default is kept.
pub const MOMENTUM: f32 = 0.1;

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
    /// Positions from one tap to the next, down and across; one if they are neighbours.
    pub dilation: [u64; 2],
}

impl Window {
    /// A square window.
    pub const fn square(kernel: u64, stride: u64, padding: u64) -> Self {
        Self { kernel: [kernel, kernel], stride: [stride, stride], padding: [padding, padding], dilation: [1, 1] }
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
        let reach = self.dilation[axis].max(1).checked_mul(self.kernel[axis].saturating_sub(1))?.checked_add(1)?;
        let span = (input + 2 * self.padding[axis]).checked_sub(reach)?;
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
    /// min(max(x, low), high) with other bounds; it has the same name. Saves its input.
    #[strum(serialize = "relu6")]
    Clip {
        /// The lower bound.
        low: f32,
        /// The upper bound.
        high: f32,
    },
    /// The error-function GELU; saves its input.
    Gelu,
    /// GELU by its tanh approximation in one kernel; it has the same name. Saves its input.
    #[strum(serialize = "gelu")]
    GeluTanh,
    /// x / (1 + e⁻ˣ); saves its input.
    Silu,
    /// Saves its output.
    Tanh,
    /// 1 / (1 + e⁻ˣ); saves its output.
    Sigmoid,
    /// Raised to a constant power; saves its input.
    #[strum(serialize = "pow")]
    Power(f32),
    /// Multiplied by a constant; saves nothing.
    Scale(f32),
    /// A value that is not trained is added; saves nothing.
    AddConstant(Addend),
    /// Divided by a tensor of one element (GPT-2's scale): saves that element.
    #[strum(serialize = "divide")]
    DivideByElement(f32),
    /// Masked by a buffer of booleans (`where`); saves the condition.
    Where(Mask),
    /// Another element-wise function, which cannot be computed on data; [`Pointwise`] defines what it saves.
    #[strum(disabled)]
    Other(Pointwise),
    /// Drops a whole sample with this probability, otherwise divides it by the complement (stochastic depth); saves one
    /// factor per sample.
    DropPath(f32),
}

/// The addend of [`Unary::AddConstant`], which is not trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Addend {
    /// One number; zero for an attention mask that masks nothing.
    Value(f32),
    /// A tensor whose values are not known.
    Tensor,
}

/// Which elements a mask replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// Those whose last index is above the one before it become the least finite number: no query sees a later key.
    Causal,
    /// Those that a condition selects whose values are not known.
    Tensor,
}

/// The positions over which a pooling takes each mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Averaging {
    /// All positions of the window, padding included.
    Padded,
    /// The positions of the window that lie inside the input.
    Inside,
    /// Output `i` of `n` is the mean over the positions from `⌊i·size/n⌋` to before `⌈(i+1)·size/n⌉`; the window is
    /// the largest of them.
    Adaptive,
}

/// A differentiable operator; shapes and parameters are in its [`crate::network::OperatorNode`].
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
    /// 2-D convolution turned round: every position of the input is spread over a window of the output.
    TransposedConvolution {
        /// The positions of the output that each position of the input reaches.
        window: Window,
        /// Channel groups.
        groups: u64,
    },
    /// A recurrent layer over all steps of a sequence, in every direction: weights of the input, weights of the state
    /// and two biases for each direction.
    Recurrent {
        /// The kind of cell.
        cell: Cell,
        /// Steps of the sequence, which run one after the other.
        steps: u64,
    },
    /// `x Wᵀ + b` over the last dimension.
    Linear,
    /// Batched product of two tensors.
    Matmul,
    /// Batch normalisation with the batch's statistics.
    BatchNorm {
        /// Added to the variance.
        epsilon: f32,
        /// The share of the batch's mean and unbiased variance in the new running ones.
        momentum: f32,
    },
    /// Layer normalisation over the last dimension.
    LayerNorm {
        /// Added to the variance.
        epsilon: f32,
    },
    /// Normalisation of groups of channels, sample by sample; with one channel per group it is instance normalisation.
    GroupNorm {
        /// The groups.
        groups: u64,
        /// Added to the variance.
        epsilon: f32,
    },
    /// An element-wise function; `in_place` overwrites its input.
    Unary {
        /// The function.
        function: Unary,
        /// Whether the output is stored over the input.
        in_place: bool,
    },
    /// Element-wise sum of two tensors; a smaller second operand is broadcast.
    Add,
    /// Element-wise difference of two tensors; it costs as much as a sum and has the same name.
    #[strum(serialize = "add")]
    Subtract,
    /// Element-wise product of two tensors; a smaller second operand is broadcast.
    Mul,
    /// Another element-wise function of two tensors; a smaller operand is broadcast.
    Pairwise(Pairing),
    /// Tensors joined along one axis, in new storage.
    Concat {
        /// The axis.
        axis: usize,
    },
    /// Max-pooling; saves its input and 64-bit indices.
    MaxPool(Window),
    /// Average pooling, adaptive average pooling to more than one output included; saves its input.
    AveragePool {
        /// The positions that each output sees.
        window: Window,
        /// The positions that each mean is taken over.
        averaging: Averaging,
    },
    /// Mean over whole axes, by default all positions of a map; saves nothing.
    GlobalAveragePool {
        /// The axes of the input that it is over.
        axes: Vec<usize>,
    },
    /// A reduction over some axes other than their mean.
    Reduce {
        /// The reduction.
        how: Reducing,
        /// The axes of the input that it is over.
        axes: Vec<usize>,
    },
    /// Elements of a tensor at other places, in new storage.
    Take(Taking),
    /// Every element is dropped with this probability, or divided by its complement; saves a mask.
    Dropout(f32),
    /// Softmax over the last dimension; saves its output.
    Softmax,
    /// Rows of a table; saves the indices.
    Embedding,
    /// Rows of a small table by fixed indices (Swin's relative position bias); saves the indices.
    IndexTable,
    /// A view of the same storage: reshape, permute.
    View(View),
    /// A view of a part of a storage.
    Slice(Part),
    /// A copy in a new layout (`contiguous`, `roll`, an implicit copy before a product).
    Copy(Copying),
    /// Cross-entropy with the labels: log-softmax, then negative log-likelihood, averaged over the rows.
    CrossEntropy,
}

impl Op {
    /// The operator's name, as it appears in messages and timelines.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unary { function: Unary::Other(function), .. } => function.into(),
            Self::Unary { function, .. } => function.into(),
            Self::Pairwise(pairing) => pairing.into(),
            Self::Reduce { how, .. } => how.into(),
            Self::Take(taking) => taking.into(),
            other => other.into(),
        }
    }

    /// Whether mixed precision runs it in fp32.
    pub(crate) const fn keeps_full_precision(&self) -> bool {
        matches!(self, Self::LayerNorm { .. } | Self::GroupNorm { .. } | Self::Softmax | Self::CrossEntropy)
    }

    /// Whether its output is a view of its input's storage, so that nothing runs.
    pub const fn is_look(&self) -> bool {
        matches!(self, Self::View(_) | Self::Slice(_))
    }

    /// Whether functional code, not a module, runs it in the networks here, so that what it saves
    /// is out of reach of a module's hooks.
    ///
    /// A tanh counts as part of a GELU written out in steps, of which only the first, a cube, saves the module's own
    /// input; BERT's pooler has a tanh that is a module, over one row a sample. The loss is a module.
    pub(crate) const fn is_functional(&self) -> bool {
        matches!(
            self,
            Self::Matmul
                | Self::Softmax
                | Self::Mul
                | Self::IndexTable
                | Self::Unary {
                    function: Unary::Tanh
                        | Unary::DivideByElement(_)
                        | Unary::Where(_)
                        | Unary::Scale(_)
                        | Unary::AddConstant(_),
                    ..
                }
        )
    }
}

// Which elements a view of a tensor shows, and how a copy rearranges them.

/// A view of all elements of a tensor, in the same storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// The elements in the same order, under the output's shape.
    Reshape,
    /// Axis `order[i]` of the tensor is axis `i` of the output.
    Permute(Vec<usize>),
}

/// One axis of a part: where its neighbours lie in the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Along {
    /// The axis of the whole that it runs along.
    pub axis: usize,
    /// The positions of the whole between two neighbours of the part; zero if the part has one position
    /// and no axis here.
    pub step: u64,
}

/// A part of a tensor, as the positions in the whole that it shows.
///
/// The element of the part at the index `i` is the whole's at `start + Σ i[d] · axes[d].step` along `axes[d].axis`; the
/// sizes are the output's. Two axes of a part may run along one of the whole: a fused projection seen by heads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The place of the first element, along each axis of the whole.
    pub start: Vec<u64>,
    /// The axes of the part.
    pub axes: Vec<Along>,
}

impl Part {
    /// The whole of a tensor of `rank` axes.
    pub fn whole(rank: usize) -> Self {
        Self { start: vec![0; rank], axes: (0..rank).map(|axis| Along { axis, step: 1 }).collect() }
    }

    /// Every `step`-th position from `start` on along `axis` of the whole, which the part still shows.
    #[must_use]
    pub fn from(mut self, axis: usize, start: u64, step: u64) -> Self {
        self.start[axis] = start;
        for along in self.axes.iter_mut().filter(|along| along.axis == axis) {
            along.step = step;
        }
        self
    }

    /// Only position `at` of `axis` of the whole; the part loses this axis.
    #[must_use]
    pub fn at(mut self, axis: usize, at: u64) -> Self {
        self.start[axis] = at;
        self.axes.retain(|along| along.axis != axis);
        self
    }
}

/// How a copy changes its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copying {
    /// The same elements, in row-major order.
    Plain,
    /// Zeros behind the elements of each axis, up to the output's size.
    Pad,
    /// Every element moved by this number of positions along each axis, from the end back to the front (`torch.roll`).
    Roll(Vec<u64>),
    /// A part.
    Part(Part),
    /// A value computed from integers, whose computation is not known: positions and masks of an imported file.
    Computed,
}
