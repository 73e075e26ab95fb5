//! What a processor is asked to do, counted before any device is named.
//!
//! Counts live here; rates live with the devices, and efficiencies with the software stacks.

use serde::Deserialize;
use strum::{Display, IntoStaticStr, VariantArray};

use crate::{Bytes, Flops, Nanos};

/// How the thread of the host that drives an accelerator is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostThread {
    /// The time from one iteration to the next.
    pub span: Nanos,
    /// What of it the thread would work on the fastest core at its highest frequency.
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
    /// Those that a whole run can be asked for.
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
    /// Convolutions with one input channel a group.
    DepthwiseConvolution,
    /// Matrix products, linear layers and batched attention products.
    Gemm,
    /// Maps of elements to elements: activations, additions, masks, normalisation by known statistics.
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

/// How the maps of pictures lie in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Display, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum MemoryFormat {
    /// A map after the other: NCHW, an eager framework's default.
    #[default]
    Contiguous,
    /// All channels of a position side by side: NHWC, as tensor cores read them.
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

/// What a product computes of its layer.
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

/// The geometry of a layer whose work is a product: a convolution, or a linear layer as one of 1×1 taps over as many
/// positions as it has rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    /// What is computed.
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
    /// Groups that the channels are split into, each a product of its own.
    pub groups: u64,
    /// Whether both operands belong to a sample (attention), so that the products of different samples share neither.
    pub of_each_sample: bool,
}

/// Products of matrices, as many as `count`, each of `rows` × `depth` by `depth` × `columns`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matrices {
    /// Independent products.
    pub count: u64,
    /// Rows of the result.
    pub rows: u64,
    /// Its columns.
    pub columns: u64,
    /// Terms of each sum, on average where a stride leaves some of them out.
    pub depth: f64,
}

impl Product {
    /// Multiply-adds for `samples` samples; those of the gradients are as many as of the output.
    pub fn multiply_adds(&self, samples: u64) -> f64 {
        let all = [self.outputs, self.inputs, self.output_size[0], self.output_size[1], self.taps[0], self.taps[1]];
        all.iter().fold(samples as f64, |product, &factor| product * factor as f64) / self.groups.max(1) as f64
    }

    /// Whether it is one product for all samples: neither in groups nor of each sample.
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
    /// Reads and writes of global memory: DRAM, or a cache where the working set fits in one.
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
    /// Integer operations beside the arithmetic: index translation, comparisons, bit packing.
    pub integer_ops: f64,
    /// Bytes moved.
    pub traffic: Traffic,
    /// Bytes beside the traffic that an eager framework's kernels move where an operator takes several passes:
    /// statistics before they are applied, casts between formats. Whoever fuses the passes does not move them.
    pub passes: Bytes,
    /// Bytes that a product moves before it multiplies, to lay out its operands: gathered windows, transformed tiles.
    /// They are no part of the traffic.
    pub laid_out: Bytes,
    /// Bytes that one thread moves for that while the others wait.
    pub laid_out_alone: Bytes,
    /// The operand that each tile of a product reads again; zero where that is not known.
    pub reread: Bytes,
    /// Whether a copy moves whole rows, and not element by element.
    pub by_rows: bool,
    /// Arithmetic of Winograd's transforms, beside that of the products.
    pub transforms: Flops,
    /// How the maps of pictures lie in memory.
    pub memory_format: MemoryFormat,
    /// Bytes touched at least once; decides which cache level serves the traffic.
    pub working_set: Bytes,
    /// Kernels launched; zero for an operator that only renames a tensor.
    pub launches: u32,
    /// Barriers that one block passes from its start to its end.
    pub barriers: u32,
    /// Atomic updates of one contended address, over all blocks.
    pub atomics: u64,
    /// Independent outputs that can be computed at once.
    pub parallelism: f64,
    /// The parts that it is handed out in to threads; zero where those are its outputs.
    pub parts: u64,
    /// Samples that it works on; 1 where it is not of samples.
    pub samples: u64,
    /// The layer, of a dense product.
    pub product: Option<Product>,
}

impl Work {
    /// Work of one launch that does nothing yet, for struct-update syntax.
    pub fn empty(kind: OperatorKind, precision: Precision) -> Self {
        Self { kind, precision, launches: 1, parallelism: 1.0, samples: 1, ..Self::default() }
    }
}
