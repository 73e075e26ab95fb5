//! Reverse-mode differentiation as an eager framework does it: one graph of forward, backward and
//! update nodes, whose backward nodes read exactly the tensors that autograd saved.
//!
//! Sources: PyTorch 2.6's derivative formulas; the saved tensors are checked against measurements
//! of PyTorch in the crate's tests. Products have one backward node for each gradient, so that a
//! policy can give up a weight's gradient and keep the input's.

mod attention;
mod backward;

pub use haversack_devices::Attention;
use haversack_devices::{OperatorKind, Product, ProductRole};

use crate::graph_writer::GraphWriter;
use crate::prepared::{Folds, folded};
pub use crate::training_graph::Optimiser;
use crate::{
    Element, Extent, FP32, LayerKind, Need, Network, NodeWork, Op, OperatorNode, Phase, Role, StorageId, Taking,
    Tensor, TensorId, TrainingGraph, Unary, ValueId, WorkloadError,
};

/// The differences between stacks that run a network eagerly.
#[derive(Clone, Copy, Debug)]
pub struct EagerRules {
    /// Bytes of one element of a dropout mask: 4 in PyTorch on a CPU, 1 in CUDA's fused kernel.
    pub dropout_mask_bytes: u64,
    /// How weights are updated.
    pub optimiser: Optimiser,
    /// Copies of the trained weights that an update by Adam holds: PyTorch updates all weights together on CUDA
    /// (`_multi_tensor_adam`), with the roots of all second moments.
    pub adam_copies: f64,
    /// How attention is computed.
    pub attention: Attention,
    /// The operators that are folded into products in inference; none in an eager framework.
    pub folds: Folds,
}

impl Default for EagerRules {
    fn default() -> Self {
        Self {
            dropout_mask_bytes: FP32,
            optimiser: Optimiser::Sgd,
            adam_copies: 0.0,
            attention: Attention::Math,
            folds: Folds::default(),
        }
    }
}

/// The graph that an eager framework executes for one iteration of `network`.
///
/// # Errors
/// A network without a loss.
pub fn differentiate(network: &Network, rules: EagerRules) -> Result<TrainingGraph, WorkloadError> {
    let loss = network.loss()?;
    let mut differentiator = Differentiator::new(network, rules);
    for (id, node) in (0..).zip(&network.nodes) {
        differentiator.writer.now_of(id, &node.op);
        differentiator.forward(node);
    }
    differentiator.writer.phase = Phase::Backward;
    differentiator.seed(loss);
    for (id, node) in network.nodes.iter().enumerate().rev() {
        differentiator.writer.now_of(id as u32, &node.op);
        differentiator.backward(node);
    }
    differentiator.writer.layer = LayerKind::Other;
    (differentiator.writer.phase, differentiator.writer.origin) = (Phase::Update, None);
    differentiator.update(rules);
    Ok(differentiator.finish(rules))
}

/// The graph that an eager framework executes for inference of `network`, without gradients: nothing is kept, batch
/// normalisation applies its running statistics in one pass, dropout and stochastic depth drop nothing, the loss is
/// left out. Operators that `rules` fold are part of the product before them.
pub fn forward_alone(network: &Network, rules: EagerRules) -> TrainingGraph {
    let mut differentiator = Differentiator::new(network, rules);
    differentiator.infers = true;
    let folded = folded(network, rules.folds);
    for ((id, node), is_folded) in (0..).zip(&network.nodes).zip(folded) {
        let drops = matches!(node.op, Op::Dropout(_) | Op::Unary { function: Unary::DropPath(_), .. });
        match node.op {
            Op::CrossEntropy => {}
            _ if drops || is_folded => {
                let given = differentiator.storage(node.inputs[0]);
                differentiator.same_as[network.value(node.output).storage as usize] = given;
            }
            _ => {
                differentiator.writer.now_of(id, &node.op);
                differentiator.forward(node);
            }
        }
    }
    differentiator.finish(rules)
}

struct Differentiator<'a> {
    network: &'a Network,
    writer: GraphWriter,
    /// Storages that have been written so far.
    written: Vec<bool>,
    /// The gradient of each value, once a consumer has given one.
    gradients: Vec<Option<TensorId>>,
    parameter_gradients: Vec<Option<TensorId>>,
    /// The storage of each tensor: its own, or in inference the input's if the operator does nothing.
    same_as: Vec<StorageId>,
    /// The values that are parts of others.
    parts: Vec<bool>,
    /// Whether the graph is for inference, without backward.
    infers: bool,
}

impl<'a> Differentiator<'a> {
    fn new(network: &'a Network, rules: EagerRules) -> Self {
        let mut writer = GraphWriter::new(&network.name);
        for storage in &network.storages {
            // The network's masks have fp32 elements.
            let mask = rules.dropout_mask_bytes;
            let bytes = if storage.dropout_mask { storage.bytes.times(mask, FP32) } else { storage.bytes };
            writer.tensor(Tensor { bytes, ..storage.tensor() });
        }
        for node in network.nodes.iter().filter(|node| node.op.keeps_full_precision()) {
            let of_inputs = |saved: StorageId| node.inputs.iter().any(|&input| network.value(input).storage == saved);
            // Inputs keep the precision of the operator that made them.
            let own = |&&saved: &&StorageId| network.storage(saved).role == Role::Activation && !of_inputs(saved);
            let output = &network.value(node.output).storage;
            for &storage in node.saved.iter().filter(own).chain([output]) {
                writer.graph.tensors[storage as usize].element = Element::FullFloat;
            }
        }
        for node in &network.nodes {
            if promotes(network, &writer.graph.tensors, node) {
                writer.graph.tensors[network.value(node.output).storage as usize].element = Element::FullFloat;
            }
        }
        let mut parts = vec![false; network.values.len()];
        for node in network.nodes.iter().filter(|node| matches!(node.op, Op::Slice(_))) {
            parts[node.output as usize] = true;
        }
        Self {
            network,
            writer,
            parts,
            written: network.storages.iter().map(|storage| storage.role != Role::Activation).collect(),
            gradients: vec![None; network.values.len()],
            parameter_gradients: vec![None; network.parameters.len()],
            same_as: (0..network.storages.len() as StorageId).collect(),
            infers: false,
        }
    }

    fn storage(&self, value: ValueId) -> StorageId {
        self.same_as[self.network.value(value).storage as usize]
    }

    /// The graph, with attention as in `rules`.
    fn finish(self, rules: EagerRules) -> TrainingGraph {
        let mut graph = self.writer.graph;
        if rules.attention == Attention::Fused {
            attention::fuse(&mut graph);
        }
        for (place, node) in (0..).zip(&mut graph.nodes) {
            node.step = Some(place);
        }
        graph
    }

    fn forward(&mut self, node: &OperatorNode) {
        if node.op.is_look() {
            return;
        }
        let network = self.network;
        let mut inputs: Vec<TensorId> = node.inputs.iter().map(|&value| self.storage(value)).collect();
        inputs.extend(node.parameters.iter().map(|&parameter| network.parameter(parameter).storage));
        inputs.extend(&node.buffers);
        let mut outputs = vec![self.storage(node.output)];
        self.written[outputs[0] as usize] = true;
        for &saved in &node.saved {
            if !std::mem::replace(&mut self.written[saved as usize], true) {
                outputs.push(saved);
            }
        }
        let largest = if node.op == Op::CrossEntropy { node.inputs[0] } else { node.output };
        let elements = network.shape(largest).elements();
        let flops = match node.op {
            // Every position of every window is compared or added.
            Op::MaxPool(window) | Op::AveragePool { window, .. } => elements * window.taps(),
            Op::Take(Taking::Resize { taps }) => elements * (2 * taps),
            Op::Reduce { .. } => network.shape(node.inputs[0]).elements(),
            _ if node.flops.is_zero() => elements,
            _ => node.flops,
        };
        let copied = self.copied_forward(node);
        let work = NodeWork {
            passes: self.passes_forward(node) + copied * 2,
            copied,
            // A frame around a map leaves its rows whole, and so does joining maps.
            by_rows: matches!(node.op, Op::Take(Taking::PadAround) | Op::Concat { .. }),
            ..NodeWork::computing(kind_of(node), flops, at_once(node, elements))
        };
        self.writer.write(&node.module, inputs, outputs, work);
        self.describe_products(node, self.writer.graph.nodes.len() - 1);
    }

    /// Bytes of further passes of PyTorch's kernels in forward: the statistics of a batch, the bias of a convolution.
    fn passes_forward(&self, node: &OperatorNode) -> Extent {
        let bytes = |value| self.network.shape(value).elements() * FP32;
        match node.op {
            Op::BatchNorm { .. } if !self.infers => bytes(node.inputs[0]),
            Op::Convolution { .. } if node.parameters.len() > 1 => bytes(node.output) * 2,
            _ => Extent::ZERO,
        }
    }

    /// Bytes of its input that a convolution copies first: a part of a map (`input.contiguous()` of PyTorch's
    /// convolutions; the slices of ncnn).
    fn copied_forward(&self, node: &OperatorNode) -> Extent {
        let input = node.inputs[0];
        let is_part = self.parts[input as usize] && !self.network.value(input).contiguous;
        let copies = matches!(node.op, Op::Convolution { .. });
        if copies && is_part { self.network.shape(input).elements() * FP32 } else { Extent::ZERO }
    }

    fn update(&mut self, rules: EagerRules) {
        let mut updates = Vec::new();
        for (parameter, gradient) in self.network.parameters.iter().zip(self.parameter_gradients.clone()) {
            if let Some(gradient) = gradient {
                updates.push(self.writer.update(parameter.storage, gradient, rules.optimiser.states()));
            }
        }
        let weights: Extent = updates.iter().map(|update| self.writer.graph.tensor(update.inputs[0]).bytes).sum();
        if let ([first, .., last], Optimiser::Adam) = (&mut updates[..], rules.optimiser)
            && rules.adam_copies > 0.0
        {
            let bytes = Extent::fixed((weights.fixed as f64 * rules.adam_copies) as u64);
            let roots = self.writer.tensor(Tensor::new("adam.roots", bytes, Role::Gradient));
            first.outputs.push(roots);
            last.inputs.push(roots);
            for node in [first, last] {
                node.work.dram += bytes;
            }
        }
        self.writer.graph.nodes.extend(updates);
    }
}

/// Whether what `node` makes is in fp32 under mixed precision because one of its operands is, as PyTorch promotes
/// types: a residual stream to which weights were added, for one. Products are cast to fp16, batch normalisation keeps
/// its input's format.
fn promotes(network: &Network, tensors: &[Tensor], node: &OperatorNode) -> bool {
    let output = &tensors[network.value(node.output).storage as usize];
    let is_map = output.role == Role::Activation && output.element == Element::Float;
    let is_full = |&value: &ValueId| {
        let tensor = &tensors[network.value(value).storage as usize];
        tensor.element == Element::FullFloat || matches!(tensor.role, Role::Parameter { .. })
    };
    let by_weights = matches!(node.op, Op::Add | Op::Subtract | Op::Mul | Op::Embedding | Op::IndexTable)
        && !node.parameters.is_empty();
    let is_cast = matches!(node.op, Op::Convolution { .. } | Op::Linear | Op::Matmul);
    is_map && !is_cast && (by_weights || node.inputs.iter().any(is_full))
}

/// The property that the backward of `op` needs of the tensor at `place` among those that it saved.
fn need_of(op: &Op, place: usize) -> Need {
    match (op, place) {
        (Op::Unary { function: Unary::Relu | Unary::Relu6 | Unary::Clip { .. }, .. }, _) => Need::Signs,
        (Op::Dropout(_), _) => Need::Mask,
        (Op::MaxPool(_), 0) | (Op::AveragePool { .. }, _) => Need::Shape,
        (Op::MaxPool(_) | Op::Take(_), _) => Need::Indices,
        // Their inputs come first, then means, deviations and weights.
        (Op::BatchNorm { .. } | Op::LayerNorm { .. } | Op::GroupNorm { .. } | Op::CrossEntropy, 1..) => {
            Need::Statistics
        }
        (Op::Unary { function: Unary::DivideByElement(_) | Unary::Where(_) | Unary::DropPath(_), .. }, _) => {
            Need::Statistics
        }
        _ => Need::Values,
    }
}

/// The `elements` that can be computed in parallel: for a recurrent layer, those of one step.
fn at_once(node: &OperatorNode, elements: Extent) -> Extent {
    if let Op::Recurrent { steps, .. } = node.op { elements.times(1, steps.max(1)) } else { elements }
}

/// The rate that a processor reaches on an operation, forward and backward.
fn kind_of(node: &OperatorNode) -> OperatorKind {
    match node.op {
        Op::Convolution { groups, .. } | Op::TransposedConvolution { groups, .. } if groups > 1 => {
            OperatorKind::DepthwiseConvolution
        }
        Op::Convolution { .. } | Op::TransposedConvolution { .. } => OperatorKind::Convolution,
        Op::Linear | Op::Matmul | Op::Recurrent { .. } => OperatorKind::Gemm,
        Op::BatchNorm { .. }
        | Op::LayerNorm { .. }
        | Op::GroupNorm { .. }
        | Op::Reduce { .. }
        | Op::Softmax
        | Op::CrossEntropy
        | Op::AveragePool { .. }
        | Op::GlobalAveragePool { .. } => OperatorKind::Reduction,
        // Max-pooling keeps the place of each maximum and scatters by it: element by element, as an embedding.
        Op::MaxPool(_) | Op::Embedding | Op::IndexTable | Op::Take(Taking::Resize { .. } | Taking::LookUp) => {
            OperatorKind::Gather
        }
        Op::Concat { .. } | Op::Copy(_) | Op::View(_) | Op::Slice(_) | Op::Take(_) => OperatorKind::Layout,
        Op::Unary { .. } | Op::Add | Op::Subtract | Op::Mul | Op::Pairwise(_) | Op::Dropout(_) => {
            OperatorKind::ElementWise
        }
    }
}

impl Differentiator<'_> {
    /// Notes of the products among the nodes from `first` on, all of `node`, how wide they are, which layer they belong
    /// to, and whether Winograd's algorithm suits them.
    fn describe_products(&mut self, node: &OperatorNode, first: usize) {
        let shape = self.network.shape(node.output);
        let (columns, winograd) = match node.op {
            Op::Convolution { window, groups } => (
                shape.size(1),
                groups == 1 && window.kernel == [3, 3] && window.stride == [1, 1] && window.dilation == [1, 1],
            ),
            Op::TransposedConvolution { .. } => (shape.size(1), false),
            Op::Linear | Op::Matmul | Op::Recurrent { .. } => (shape.last(), false),
            _ => return,
        };
        let product = self.layer_of(node);
        let graph = &mut self.writer.graph;
        for made in &mut graph.nodes[first..] {
            if made.work.is_product() {
                let role = made.role(&graph.tensors);
                if made.work.kind != OperatorKind::DepthwiseConvolution {
                    (made.work.columns, made.work.winograd) = (columns, winograd);
                }
                made.work.product = product.map(|product| Product { role, ..product });
            }
        }
    }

    /// The layer of a convolution, of a linear layer, of which each row (token) is a position, or of a product of two
    /// tensors.
    fn layer_of(&self, node: &OperatorNode) -> Option<Product> {
        let (input, output) = (self.network.shape(node.inputs[0]), self.network.shape(node.output));
        let one = Product {
            role: ProductRole::Forward,
            inputs: input.size(1),
            outputs: output.size(1),
            input_size: [input.size(2), input.size(3)],
            output_size: [output.size(2), output.size(3)],
            taps: [1, 1],
            groups: 1,
            of_each_sample: false,
        };
        match node.op {
            Op::Convolution { window, groups } => Some(Product { taps: window.kernel, groups, ..one }),
            Op::Linear => {
                let size = [output.with_last(1).elements().per_sample.max(1), 1];
                Some(Product {
                    inputs: input.last(),
                    outputs: output.last(),
                    input_size: size,
                    output_size: size,
                    ..one
                })
            }
            Op::Matmul => {
                // Of an output of heads × rows × columns every head is a group.
                let (columns, rows) = (output.last(), output.size(output.rank().checked_sub(2)?));
                let all = output.elements().per_sample.max(output.elements().fixed).max(1);
                let groups = (all / (rows * columns).max(1)).max(1);
                let (inputs, outputs) = (input.last() * groups, columns * groups);
                let (input_size, output_size) = ([rows, 1], [rows, 1]);
                Some(Product { inputs, outputs, input_size, output_size, groups, of_each_sample: true, ..one })
            }
            _ => None,
        }
    }
}
