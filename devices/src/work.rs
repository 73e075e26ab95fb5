//! The work of an operator, counted independently of any device.
//!
//! This module has the counts. The devices have the rates, and the software stacks the efficiencies.

use serde::Deserialize;
use strum::{Display, IntoStaticStr, VariantArray};

use crate::{Bytes, Flops, Nanos};

/// The load of the host's thread that drives an accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostThread {
    /// The time from one iteration to the next.
    pub span: Nanos,
    /// The thread's working time per iteration, on the fastest core at its highest frequency.
    pub working: Nanos,
}

/// The number format that an operator computes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Display, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Precision {
    /// IEEE binary32.
    #[default]
    Fp32,
    /// IEEE binary16; on tensor cores where a device has them and the operator is a product.
    Fp16,
    /// Eight-bit integers with wider accumulation.
    Int8,
    /// Sixteen-bit integers.
    Int16,
    /// Thirty-two-bit integers: the sums of eight-bit products before they are rescaled.
    Int32,
}

impl Precision {
    /// Every precision.
    pub const ALL: [Self; 5] = [Self::Fp32, Self::Fp16, Self::Int8, Self::Int16, Self::Int32];
    /// The precisions that a whole run can have.
    pub const OF_RUNS: [Self; 3] = [Self::Fp32, Self::Fp16, Self::Int8];

    /// The name used in scenarios and calibrations.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether its numbers are floating-point.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Fp32 | Self::Fp16)
    }

    /// The size of one element.
    pub fn bytes(self) -> Bytes {
        match self {
            Self::Fp32 | Self::Int32 => Bytes(4),
            Self::Fp16 | Self::Int16 => Bytes(2),
            Self::Int8 => Bytes(1),
        }
    }
}

/// The classes of operators that reach different shares of a processor's peak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum OperatorKind {
    /// Dense and grouped convolutions, forward and backward.
    Convolution,
    /// Convolutions with one input channel per group.
    DepthwiseConvolution,
    /// Matrix products, linear layers and batched attention products.
    Gemm,
    /// Element-to-element maps: activations, additions, masks, normalisation with fixed statistics.
    ElementWise,
    /// Sums, means, minima, statistics of a normalisation, softmax denominators.
    Reduction,
    /// Copies that only move elements: im2col, padding, transposition, concatenation.
    #[default]
    Layout,
    /// Reads or writes at computed addresses: embeddings, pooling by indices.
    Gather,
    /// The update of parameters and optimiser states.
    Optimiser,
}

impl OperatorKind {
    /// Every kind, in the order of the calibrations.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The name used in calibrations and breakdowns.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether the operator is a dense product that a tensor core can compute.
    pub fn is_dense_product(self) -> bool {
        matches!(self, Self::Convolution | Self::Gemm)
    }
}

/// The memory layout of maps of pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Display, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum MemoryFormat {
    /// Channel by channel: NCHW, an eager framework's default.
    #[default]
    Contiguous,
    /// All channels of a position adjacent: NHWC, as tensor cores read them.
    ChannelsLast,
}

impl MemoryFormat {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Contiguous, Self::ChannelsLast];

    /// The name used in scenarios.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The result that a product computes for its layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProductRole {
    /// The layer's output.
    Forward,
    /// The gradient of its input.
    InputGradient,
    /// The gradient of its weight.
    WeightGradient,
}

/// The geometry of a layer whose work is a product: a convolution, or a linear layer treated as a 1×1 convolution over
/// as many positions as it has rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    /// The result that is computed.
    pub role: ProductRole,
    /// Channels of the layer's input.
    pub inputs: u64,
    /// Channels of its output.
    pub outputs: u64,
    /// Height and width of the input.
    pub input_size: [u64; 2],
    /// Height and width of the output.
    pub output_size: [u64; 2],
    /// Height and width of the filter.
    pub taps: [u64; 2],
    /// Groups that the channels are split into, each a separate product.
    pub groups: u64,
    /// Whether both operands belong to a sample (attention), so that products of different samples have no common
    /// operand.
    pub of_each_sample: bool,
}

/// `count` matrix products, each of `rows` × `depth` by `depth` × `columns`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matrices {
    /// Independent products.
    pub count: u64,
    /// Rows of the result.
    pub rows: u64,
    /// Its columns.
    pub columns: u64,
    /// Terms of each sum, averaged over outputs for which a stride leaves some of them out.
    pub depth: f64,
}

impl Product {
    /// Multiply-adds for `samples` samples; a gradient needs as many as the output.
    pub fn multiply_adds(&self, samples: u64) -> f64 {
        let all = [self.outputs, self.inputs, self.output_size[0], self.output_size[1], self.taps[0], self.taps[1]];
        all.iter().fold(samples as f64, |product, &factor| product * factor as f64) / self.groups.max(1) as f64
    }

    /// Whether it is a single product for all samples: neither grouped nor separate for each sample.
    pub fn is_dense(&self) -> bool {
        self.groups == 1 && !self.of_each_sample
    }

    /// The products of matrices that implicit GEMM computes for `samples` samples (Chetlur et al., arXiv 1410.0759).
    /// The gradient of a weight has few outputs, and sums over the batch and all positions.
    pub fn matrices(&self, samples: u64) -> Matrices {
        let groups = self.groups.max(1);
        let (inputs, outputs) = (self.inputs / groups, self.outputs / groups);
        let area = |size: [u64; 2]| size[0] * size[1];
        let (count, together) = if self.of_each_sample { (groups * samples, 1) } else { (groups, samples) };
        let (rows, columns) = match self.role {
            ProductRole::Forward => (together * area(self.output_size), outputs),
            ProductRole::InputGradient => (together * area(self.input_size), inputs),
            ProductRole::WeightGradient => (outputs, inputs * area(self.taps)),
        };
        let outputs = (count * rows * columns).max(1) as f64;
        Matrices { count, rows, columns, depth: self.multiply_adds(samples) / outputs }
    }
}

/// The bytes that an operator moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Traffic {
    /// Reads and writes of global memory: DRAM, or a cache if the working set fits in one.
    pub dram: Bytes,
    /// Reads and writes of a GPU's shared (local) memory, summed over all blocks.
    pub shared: Bytes,
}

/// One operator, in counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[must_use]
pub struct Work {
    /// The class of the operator.
    pub kind: OperatorKind,
    /// The number format.
    pub precision: Precision,
    /// Arithmetic in that format; a multiply-add counts as two.
    pub flops: Flops,
    /// Integer operations other than the arithmetic: index translation, comparisons, bit packing.
    pub integer_ops: f64,
    /// Bytes moved.
    pub traffic: Traffic,
    /// Additional bytes that an eager framework's kernels move in an operator of several passes: statistics before they
    /// are applied, casts between formats. Fused passes do not move them.
    pub passes: Bytes,
    /// Bytes that a product moves to lay out its operands before it multiplies: gathered windows, transformed tiles.
    /// The traffic does not include them.
    pub laid_out: Bytes,
    /// Bytes of such layout that one thread moves while the others wait.
    pub laid_out_alone: Bytes,
    /// The size of the operand that each tile of a product reads again; zero if unknown.
    pub reread: Bytes,
    /// Whether a copy moves whole rows instead of single elements.
    pub by_rows: bool,
    /// Arithmetic of Winograd's transforms, in addition to that of the products.
    pub transforms: Flops,
    /// The memory layout of maps of pictures.
    pub memory_format: MemoryFormat,
    /// Bytes touched at least once; decides which cache level serves the traffic.
    pub working_set: Bytes,
    /// Kernels launched; zero for an operator that only renames a tensor.
    pub launches: u32,
    /// Barriers that one block passes from its start to its end.
    pub barriers: u32,
    /// Atomic updates of one contended address, over all blocks.
    pub atomics: u64,
    /// Independent outputs that can be computed in parallel.
    pub parallelism: f64,
    /// The number of parts that threads take; zero if the parts are single outputs.
    pub parts: u64,
    /// Samples in the operator; 1 if it is not per sample.
    pub samples: u64,
    /// The layer, for a dense product.
    pub product: Option<Product>,
}

impl Work {
    /// Work of one launch with all counts zero, for struct-update syntax.
    pub fn empty(kind: OperatorKind, precision: Precision) -> Self {
        Self { kind, precision, launches: 1, parallelism: 1.0, samples: 1, ..Self::default() }
    }
}
