//! The executable graph of one training iteration: forward, backward and update nodes in order, and the tensors they
//! read and write. It knows sizes and work, not time: a device turns its work into time, a policy decides how its
//! tensors are stored, the executor walks it.

use std::collections::BTreeSet;

use haversack_devices::{Bytes, Flops, MemoryFormat, OperatorKind, Precision, Product, ProductRole, Traffic, Work};
use serde::Deserialize;

use crate::{Extent, MapKind, Op};

/// A tensor of a graph, by position.
pub type TensorId = u32;
/// A node of a graph, by position, which is its place in the order of execution.
pub type NodeId = u32;

/// The role of a tensor in the iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The samples.
    Input,
    /// The labels.
    Target,
    /// State that is not trained: running statistics, position ids.
    Buffer,
    /// A weight; `trainable` weights get gradients.
    Parameter {
        /// Whether it gets a gradient and an update.
        trainable: bool,
    },
    /// Made in forward.
    Activation,
    /// The gradient of an activation, or another tensor made in backward.
    Gradient,
    /// The gradient of a weight, summed over the micro-batches.
    ParameterGradient,
    /// The optimiser's state of a weight.
    OptimiserState,
}

impl Role {
    /// Whether it is resident before the forward pass and after the update.
    pub fn is_state(self) -> bool {
        matches!(self, Self::Parameter { .. } | Self::OptimiserState | Self::Buffer)
    }
}

/// The kind of a tensor's elements, which decides their size in lower precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Element {
    /// Numbers that mixed precision makes smaller.
    #[default]
    Float,
    /// Numbers that mixed precision leaves in fp32: the results of softmax, layer normalisation and the loss (PyTorch's
    /// list of operators that autocast to float32); in Sage's graph the weights, of which no copy is kept.
    FullFloat,
    /// Integers, indices, masks.
    Whole,
}

/// A tensor: storage with one size, with any number of views.
#[derive(Clone, Debug)]
#[must_use]
pub struct Tensor {
    /// Where it comes from, for display.
    pub name: String,
    /// Its size in bytes.
    pub bytes: Extent,
    /// Its role in the iteration.
    pub role: Role,
    /// The numbers in it, as mixed precision treats them.
    pub element: Element,
}

impl Tensor {
    /// A tensor of floating-point numbers that mixed precision makes smaller.
    pub fn new(name: impl Into<String>, bytes: Extent, role: Role) -> Self {
        Self { name: name.into(), bytes, role, element: Element::Float }
    }
}

/// The property of a saved tensor that a backward node needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// Its values, which a lower precision approximates.
    Values,
    /// Which elements let the gradient through (ReLU): a bit an element, and nothing is lost.
    Signs,
    /// A mask that was drawn at random (dropout): a bit an element, or none if it can be drawn again.
    Mask,
    /// Positions within a window (max-pooling): a byte an element.
    Indices,
    /// Only its shape (average pooling).
    Shape,
    /// A few numbers a channel or a row (means and deviations): never worth making smaller.
    Statistics,
}

/// The kind of layer that a node belongs to. The precision that a layer needs of its saved tensors depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum LayerKind {
    /// Convolutions: their input is saved.
    Convolution,
    /// Linear layers: their input is saved.
    Linear,
    /// Products of two tensors (attention's scores and sums): both are saved.
    Product,
    /// Softmax: its output is saved, attention's probabilities.
    Softmax,
    /// Normalisations: their input is saved.
    Norm,
    /// Functions and products of elements: their input or output is saved.
    Elementwise,
    /// The loss: the logarithms of the classes' probabilities are saved.
    Loss,
    /// Everything else: layers that need no saved values, and nodes that belong to no layer.
    #[default]
    Other,
}

impl LayerKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The kind of an operator.
    pub const fn of(op: &Op) -> Self {
        match op {
            Op::Convolution { .. } => Self::Convolution,
            Op::Linear => Self::Linear,
            Op::Matmul => Self::Product,
            Op::Softmax => Self::Softmax,
            Op::BatchNorm { .. } | Op::LayerNorm { .. } => Self::Norm,
            Op::Unary { .. } | Op::Mul => Self::Elementwise,
            Op::CrossEntropy => Self::Loss,
            _ => Self::Other,
        }
    }
}

/// A tensor saved for one backward node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Saved {
    /// Which tensor is kept.
    pub tensor: TensorId,
    /// The property that is needed.
    pub need: Need,
    /// Whether a module of the framework saves it, so that hooks on saved tensors reach it; they do not reach the
    /// tensors of functional code.
    pub by_module: bool,
}

/// The part of an iteration that a node belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Phase {
    /// From the samples to the loss.
    #[default]
    Forward,
    /// From the loss to the gradients.
    Backward,
    /// From the gradients to the new weights, once a mini-batch.
    Update,
}

/// The overheads of a software stack's kernels, and the algorithms that they use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelCost {
    /// Integer operations of one index translation.
    pub index_ops: f64,
    /// The factor on the arithmetic of a product that finds its operands by index translation.
    pub direct_penalty: f64,
    /// The factor by which Winograd's algorithm reduces the arithmetic of a 3×3 convolution; 1 if the stack lacks it.
    pub winograd_saving: f64,
    /// Whether it applies to fp32 only: where fp16 has tensor cores, they compute the convolution directly.
    pub winograd_of_fp32: bool,
    /// The smallest batch at which the gradients of weights are computed by it, too.
    pub winograd_weight_batch: u64,
    /// Whether layouts are packed: a convolution lays out its operands before it multiplies.
    pub packed: bool,
    /// Outputs on the side of a tile of Winograd's algorithm in packed layouts; 0 if they do not use it.
    pub winograd_tile: u64,
    /// Tiles over all threads, where MNN's `bestWinogradUnit` chooses the side for each map by its operations; 0 where
    /// the side is fixed.
    pub winograd_tiles_at_once: u64,
    /// How the maps of pictures lie in memory.
    pub memory_format: MemoryFormat,
}

impl KernelCost {
    /// Kernels that read prepared operands in order.
    pub const NONE: Self = Self {
        index_ops: 0.0,
        direct_penalty: 1.0,
        winograd_saving: 1.0,
        winograd_of_fp32: false,
        winograd_weight_batch: 1,
        packed: false,
        winograd_tile: 0,
        winograd_tiles_at_once: 0,
        memory_format: MemoryFormat::Contiguous,
    };
}

/// The work of a node, for any batch.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct NodeWork {
    /// The kind of operator, which decides the rate that a processor reaches.
    pub kind: OperatorKind,
    /// Floating-point operations.
    pub flops: Extent,
    /// Element accesses whose place is computed from another index; a stack's generic kernels
    /// spend integer operations on each.
    pub index_translations: Extent,
    /// Bytes read from and written to memory.
    pub dram: Extent,
    /// Bytes that an eager framework's kernels move in addition, where the operator takes several passes.
    pub passes: Extent,
    /// Bytes of its operands that it does not touch: the rest of a map of which it reads a part.
    pub unread: Extent,
    /// Bytes of such a part that it copies to a temporary map.
    pub copied: Extent,
    /// Whether mixed precision leaves it in fp32.
    pub full_precision: bool,
    /// Independent outputs.
    pub parallelism: Extent,
    /// Kernels launched.
    pub launches: u32,
    /// Whether a product or convolution finds its operands by index translation in one kernel
    /// (Sage's *Direct*), instead of reading copies laid out for it.
    pub single_kernel: bool,
    /// Whether it is a dense 3×3 convolution of stride 1, which Winograd's algorithm computes with fewer products.
    pub winograd: bool,
    /// Output channels or columns of a product, for which its tiles of operands are read again; 0 for other operators.
    pub columns: u64,
    /// The number format, if the graph fixes it; otherwise the run's.
    pub precision: Option<Precision>,
    /// The layer, of a dense product.
    pub product: Option<Product>,
    /// The units of work that threads share, each of which one thread runs whole; zero if these are its outputs.
    pub parts: Extent,
    /// Whether a copy moves whole rows, and not element by element.
    pub by_rows: bool,
    /// Bytes that all threads together move to lay out a product's operands and its result.
    pub laid_out: Extent,
    /// Bytes that one thread moves for all, for the same purpose.
    pub laid_out_alone: Extent,
    /// The operand that each tile of a product reads again; zero where that is not known.
    pub reread: Extent,
    /// Bytes that it writes to newly mapped memory.
    pub fresh: Extent,
}

impl NodeWork {
    /// One launch of an operator of `kind` that computes nothing and moves nothing yet.
    pub fn new(kind: OperatorKind) -> Self {
        Self { kind, launches: 1, ..Self::default() }
    }

    /// One launch of an operator of `kind` that computes `flops` for `outputs` independent outputs.
    pub fn computing(kind: OperatorKind, flops: Extent, outputs: Extent) -> Self {
        Self { flops, parallelism: outputs, ..Self::new(kind) }
    }

    /// Halves the traffic counted separately from whole operands, as elements are half the size.
    pub(crate) fn halve_parts(&mut self) {
        for bytes in [&mut self.passes, &mut self.unread, &mut self.copied] {
            *bytes = bytes.times(1, 2);
        }
    }

    /// Whether it multiplies matrices or convolves.
    pub const fn is_product(&self) -> bool {
        matches!(self.kind, OperatorKind::Convolution | OperatorKind::DepthwiseConvolution | OperatorKind::Gemm)
    }

    /// Whether Winograd's algorithm computes it in `precision` for a batch of `samples`.
    #[inline]
    pub fn uses_winograd(&self, samples: u64, precision: Precision, kernels: KernelCost) -> bool {
        let of_weights = self.product.is_some_and(|product| product.role == ProductRole::WeightGradient);
        let enough = !of_weights || samples >= kernels.winograd_weight_batch;
        // Its transforms leave the range of eight bits.
        let suits = if kernels.winograd_of_fp32 { precision == Precision::Fp32 } else { precision.is_float() };
        self.winograd && suits && enough
    }

    /// The work for a batch of `samples` with kernels that cost `kernels`.
    #[inline]
    pub fn at(&self, samples: u64, precision: Precision, kernels: KernelCost) -> Work {
        let dram = Bytes(self.dram.at(samples)).saturating_sub(Bytes(self.unread.at(samples)));
        let precision = self.precision.unwrap_or(precision);
        let penalty = if self.single_kernel && self.is_product() { kernels.direct_penalty } else { 1.0 };
        let saving = if self.uses_winograd(samples, precision, kernels) { kernels.winograd_saving } else { 1.0 };
        let mut work = Work {
            kind: self.kind,
            precision,
            flops: Flops(self.flops.at(samples) as f64 * penalty / saving),
            integer_ops: self.index_translations.at(samples) as f64 * kernels.index_ops,
            traffic: Traffic { dram, shared: Bytes::ZERO },
            passes: Bytes(self.passes.at(samples)),
            laid_out: Bytes(self.laid_out.at(samples)),
            laid_out_alone: Bytes(self.laid_out_alone.at(samples)),
            reread: Bytes(self.reread.at(samples)),
            by_rows: self.by_rows,
            transforms: Flops::ZERO,
            memory_format: kernels.memory_format,
            working_set: dram,
            launches: self.launches,
            barriers: 0,
            atomics: 0,
            parallelism: self.parallelism.at(samples) as f64,
            parts: self.parts.at(samples),
            samples,
            product: self.product,
        };
        if kernels.packed && self.kind == OperatorKind::Convolution {
            let side = match (kernels.winograd_tiles_at_once, self.product) {
                (at_once, Some(product)) if at_once > 0 => cheapest_side(&product, at_once),
                _ => kernels.winograd_tile,
            };
            let by_winograd = self.uses_winograd(samples, precision, kernels) && side > 0;
            lay_out(&mut work, by_winograd.then_some(side));
        }
        work
    }
}

/// One operator of the iteration.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Where it comes from, for display.
    pub name: String,
    /// When it runs.
    pub phase: Phase,
    /// Tensors that it reads. A tensor that is also an output is written in place.
    pub inputs: Vec<TensorId>,
    /// Tensors that it writes.
    pub outputs: Vec<TensorId>,
    /// Tensors that must live until it has run although it does not read them: the temporaries of an operation composed
    /// of several nodes, released together when the last of them ends.
    pub releases: Vec<TensorId>,
    /// The saved tensors among its inputs; one that is not listed is needed whole.
    pub saved: Vec<Saved>,
    /// The operator of the network that it comes from, by position; `None` if it comes from no single one.
    pub origin: Option<u32>,
    /// The kind of that operator.
    pub layer: LayerKind,
    /// The kind of map that this operator makes in forward; `None` if it passes its input on, or makes no map.
    pub makes: Option<MapKind>,
    /// The position of the node in the eager graph of the network, or in the integer rewrite of that, which defines its
    /// computation; `None` in graphs of which only sizes are known.
    pub step: Option<u32>,
    /// The tensor whose scale it recomputes: it runs only in iterations that rescale (dynamic rescaling of
    /// integer training).
    pub rescales: Option<TensorId>,
    /// Its work.
    pub work: NodeWork,
}

impl Node {
    /// A node that reads and writes nothing yet.
    pub fn new(name: impl Into<String>, phase: Phase, work: NodeWork) -> Self {
        Self { name: name.into(), phase, work, ..Self::default() }
    }

    /// Its role, if it is a product: `tensors` are the graph's.
    pub(crate) fn role(&self, tensors: &[Tensor]) -> ProductRole {
        match self.phase {
            Phase::Forward => ProductRole::Forward,
            _ if self.gives_weights(tensors) => ProductRole::WeightGradient,
            _ => ProductRole::InputGradient,
        }
    }

    /// Whether it makes the gradient of a weight.
    pub(crate) fn gives_weights(&self, tensors: &[Tensor]) -> bool {
        self.outputs.iter().any(|&output| tensors[output as usize].role == Role::ParameterGradient)
    }

    /// Every tensor that its end may set free: what it reads, writes and releases.
    #[inline]
    pub fn uses(&self) -> impl Iterator<Item = TensorId> {
        self.inputs.iter().chain(&self.outputs).chain(&self.releases).copied()
    }

    /// The property that it needs of `tensor`.
    pub fn need_of(&self, tensor: TensorId) -> Need {
        self.saved.iter().find(|saved| saved.tensor == tensor).map_or(Need::Values, |saved| saved.need)
    }
}

/// One training iteration, ready to be executed for any batch.
///
/// Invariants: nodes are in an order in which every input was written before it is read (or is
/// state, input or target); phases come in the order forward, backward, update.
#[derive(Clone, Debug, Default)]
pub struct TrainingGraph {
    /// The name of the network that it trains.
    pub name: String,
    /// All tensors, by [`TensorId`].
    pub tensors: Vec<Tensor>,
    /// All nodes, in the order of execution.
    pub nodes: Vec<Node>,
}

impl TrainingGraph {
    /// The tensor at this position.
    #[inline]
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id as usize]
    }

    /// The bytes of all tensors of a role that `wanted` accepts.
    pub fn bytes_of(&self, wanted: impl Fn(Role) -> bool) -> Extent {
        self.tensors.iter().filter(|tensor| wanted(tensor.role)).map(|tensor| tensor.bytes).sum()
    }

    /// The tensors made in forward that backward reads: the saved tensors, in order of production.
    pub fn saved(&self) -> Vec<TensorId> {
        let mut read_in_backward = vec![false; self.tensors.len()];
        for node in self.nodes.iter().filter(|node| node.phase == Phase::Backward) {
            for &tensor in &node.inputs {
                read_in_backward[tensor as usize] = true;
            }
        }
        (0..)
            .zip(&self.tensors)
            .filter(|(id, t)| read_in_backward[*id as usize] && t.role == Role::Activation)
            .map(|(id, _)| id)
            .collect()
    }

    /// The kind of operator that made the values of each forward tensor, by [`TensorId`]; `None` if it is not a map.
    pub fn map_kinds(&self) -> Vec<Option<MapKind>> {
        let mut kinds = vec![None; self.tensors.len()];
        for node in self.nodes.iter().filter(|node| node.phase == Phase::Forward) {
            let given = node.inputs.first().and_then(|&input| kinds[input as usize]);
            // A rearrangement keeps the kind of its input.
            let makes = node.makes.filter(|_| node.work.kind != OperatorKind::Layout);
            // The last writer of a tensor defines its kind, as its values are the ones saved.
            node.outputs.iter().for_each(|&output| kinds[output as usize] = makes.or(given));
        }
        kinds
    }

    /// The gradients of weights that updates apply.
    pub fn applied_gradients(&self) -> BTreeSet<TensorId> {
        let updates = self.nodes.iter().filter(|node| node.phase == Phase::Update);
        let read = updates.flat_map(|node| node.inputs.iter().copied());
        read.filter(|&id| self.tensor(id).role == Role::ParameterGradient).collect()
    }
}

impl TrainingGraph {
    /// The same iteration in mixed precision: activations and gradients halve except for [`Element::FullFloat`],
    /// weights have an fp32 master and an fp16 copy, weight gradients and states stay fp32. Operators whose operands
    /// are of the other format cast them in separate passes. In Sage's graph all intermediate states halve, and weights
    /// stay as they are, without a copy (Gim and Ko, MobiSys 2022, sections 2.3 and 5).
    ///
    /// `Fp32` leaves the graph unchanged. `Int8` needs a rewrite of the graph and is not done here.
    pub fn at_precision(&self, precision: Precision) -> Self {
        let mut graph = self.clone();
        if precision != Precision::Fp16 {
            return graph;
        }
        for tensor in graph.tensors.iter_mut().filter(|tensor| tensor.element == Element::Float) {
            tensor.bytes = match tensor.role {
                Role::Activation | Role::Gradient => tensor.bytes.times(1, 2),
                Role::Parameter { .. } => tensor.bytes.times(3, 2),
                // Samples arrive in fp32 and are cast by their readers.
                _ => tensor.bytes,
            };
        }
        for node in graph.nodes.iter_mut().filter(|node| node.phase != Phase::Update) {
            let bytes = |tensor: &TensorId| graph.tensors[*tensor as usize].bytes;
            node.work.dram = node.inputs.iter().chain(&node.outputs).map(bytes).sum();
            if !node.work.full_precision {
                node.work.halve_parts();
            }
            node.work.passes += casts(node, &graph.tensors);
        }
        graph
    }
}

/// Bytes that casts around a node move in mixed precision, in addition to its operands.
fn casts(node: &Node, tensors: &[Tensor]) -> Extent {
    let cast = |&id: &TensorId| {
        let tensor = &tensors[id as usize];
        let is_map = matches!(tensor.role, Role::Activation | Role::Gradient);
        match tensor.element {
            // Four bytes become two, which are read again: two and two more in place of four.
            Element::FullFloat if is_map && node.work.is_product() => tensor.bytes,
            // Two bytes become four, which are read again: eight for two.
            Element::Float if is_map && node.work.full_precision => tensor.bytes * 4,
            _ => Extent::ZERO,
        }
    };
    node.inputs.iter().chain(&node.outputs).map(cast).sum()
}

/// How weights are updated, and the state that this needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Optimiser {
    /// Plain stochastic gradient descent: no state.
    #[default]
    Sgd,
    /// Momentum: one value a weight.
    Momentum,
    /// Adam: two values a weight.
    Adam,
}

impl Optimiser {
    /// State values per trained weight.
    pub const fn states(self) -> u64 {
        match self {
            Self::Sgd => 0,
            Self::Momentum => 1,
            Self::Adam => 2,
        }
    }
}

// The work and the traffic of a convolution with packed layouts, as in inference engines on CPUs.
//
// Before it multiplies, the windows of its input are laid out in the order in which the product reads them (im2col), or
// the tiles of its input are transformed (Winograd's algorithm; Lavin and Gray, CVPR 2016): the input is read, and the
// result is written, which the product then reads. Transformed weights are kept, and are larger than plain ones. Source
// for which convolutions are computed so, and with which tile sizes: ncnn's `src/layer/arm/convolution_arm*`.

/// Operations of a transform on each value of a tile: in F(4×4, 3×3) twelve transforms in one dimension of a dozen
/// operations each make 36 values.
const TRANSFORM: f64 = 4.0;

/// The side of the tile for which MNN counts the fewest operations, with its penalty for large ones; 0 if plain windows
/// take no more. Tiles are limited to sizes of which the map has at least `at_once` (`ConvolutionWinograd.cpp`).
fn cheapest_side(product: &Product, at_once: u64) -> u64 {
    let [height, width] = product.output_size;
    let taps = product.taps[0] as f64;
    let (inputs, outputs) = (product.inputs as f64, product.outputs as f64);
    let plain = (height * width) as f64 * inputs * outputs * taps * taps;
    let largest = ((height * width).div_ceil(at_once) as f64).sqrt().max(2.0);
    let gain = |side: u64| {
        let (across, around) = (side as f64, side as f64 + taps - 1.0);
        let tile = around * around * (2.0 * inputs + inputs * outputs) + (around + across) * across * outputs;
        plain / (tile * (height.div_ceil(side) * width.div_ceil(side)) as f64) - 0.12 * (around / taps).powi(2)
    };
    let gains = [2, 4, 6].into_iter().filter(|&side| side as f64 <= largest).map(|side| (side, gain(side)));
    let best = gains.filter(|&(_, gain)| gain >= 1.0).reduce(|best, next| if next.1 > best.1 { next } else { best });
    best.map_or(0, |(side, _)| side)
}

/// Lays out the operands of a dense forward convolution, by Winograd's algorithm in tiles of `tile` × `tile` outputs if
/// that is given; other work is unchanged.
pub(crate) fn lay_out(work: &mut Work, tile: Option<u64>) {
    let Some(product) = work.product.filter(|product| product.role == ProductRole::Forward && product.is_dense())
    else {
        return;
    };
    let area = |[height, width]: [u64; 2]| height as f64 * width as f64;
    let (samples, element) = (work.samples as f64, work.precision.bytes().as_f64());
    let (inputs, outputs) = (product.inputs as f64, product.outputs as f64);
    let map = samples * inputs * area(product.input_size) * element;
    let (windows, more_weights) = match tile {
        None => (samples * area(product.output_size) * area(product.taps), 0.0),
        Some(side) => {
            let around = area(product.taps.map(|taps| side + taps - 1));
            let values = samples * area(product.output_size.map(|length| length.div_ceil(side))) * around;
            work.flops = Flops(2.0 * values * inputs * outputs);
            work.transforms = Flops(TRANSFORM * values * (inputs + outputs));
            (values, inputs * outputs * (around - area(product.taps)) * element)
        }
    };
    let laid_out = windows * inputs * element;
    work.laid_out = Bytes((map + laid_out) as u64);
    // A float cast saturates: a node that reads less than its map reads nothing.
    work.traffic.dram = Bytes((work.traffic.dram.as_f64() - map + laid_out + more_weights) as u64);
    work.working_set = work.traffic.dram;
}
