//! Forward: the computable operations of each differentiable one.

use haversack_devices::OperatorKind;

use super::computable::ComputableGraph;
use crate::{
    Element, Extent, Network, Op, OperatorNode, Phase, Role, Storage, Tensor, TensorId, Unary, ValueId, Window,
};

/// The chain of operations that GELU's share of the normal distribution takes: ½ (1 + erf(x/√2)).
pub(super) const NORMAL_SHARE: [&str; 4] = ["scale", "erf", "add_constant", "scale"];

/// A leaf of the graph: a weight keeps its precision where intermediate states are stored in half (section
/// 5: the target is to keep the original precision of the model), without a copy, as a generated kernel
/// converts what it reads.
fn in_own_precision(tensor: Tensor) -> Tensor {
    let is_weight = matches!(tensor.role, Role::Parameter { .. }) && tensor.element == Element::Float;
    if is_weight { Tensor { element: Element::FullFloat, ..tensor } } else { tensor }
}

/// The lowering of one network, with the forward tensors that backward needs.
pub(super) struct Lowering<'a> {
    pub(super) network: &'a Network,
    pub(super) graph: ComputableGraph,
    /// Whether products and windows are composed with copies (*Original*) or single kernels (*Direct*).
    pub(super) composite: bool,
    /// The tensor used for every mask; its few bytes belong to the samples.
    mask: TensorId,
    /// The tensor of each value.
    pub(super) tensors: Vec<TensorId>,
    /// For each operator, the inner tensors that its derivative refers to.
    pub(super) inner: Vec<Vec<TensorId>>,
    /// The gradient of each value, once a consumer has given one.
    pub(super) gradients: Vec<Option<TensorId>>,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(network: &'a Network, composite: bool) -> Self {
        let mut graph = ComputableGraph::default();
        let given = |storage: &Storage| storage.role != Role::Activation;
        let leaf =
            |storage: &Storage| given(storage).then(|| graph.leaf(in_own_precision(storage.tensor()), Extent::ZERO));
        let leaves: Vec<Option<TensorId>> = network.storages.iter().map(leaf).collect();
        let mut tensors = vec![TensorId::MAX; network.values.len()];
        for (tensor, value) in tensors.iter_mut().zip(&network.values) {
            if let Some(leaf) = leaves[value.storage as usize] {
                *tensor = leaf;
                graph.elements[leaf as usize] = value.shape.elements();
            }
        }
        for parameter in &network.parameters {
            // Every parameter has a storage with the role of one.
            let leaf = leaves[parameter.storage as usize].unwrap_or(TensorId::MAX);
            graph.elements[leaf as usize] = Extent::fixed(parameter.elements);
            graph.weights.push(leaf);
        }
        graph.weight_gradients = vec![None; network.parameters.len()];
        let mask = Tensor { element: Element::Whole, ..Tensor::new("attention mask", Extent::ZERO, Role::Buffer) };
        let mask = graph.leaf(mask, Extent::ZERO);
        Self {
            network,
            graph,
            mask,
            composite,
            tensors,
            inner: vec![Vec::new(); network.nodes.len()],
            gradients: vec![None; network.values.len()],
        }
    }

    pub(super) fn forward(&mut self) {
        self.graph.phase = Some(Phase::Forward);
        for (id, node) in self.network.nodes.iter().enumerate() {
            self.graph.origin = id as u32;
            let output = self.lower_forward(id, node);
            self.tensors[node.output as usize] = output;
        }
    }

    pub(super) fn elements(&self, value: ValueId) -> Extent {
        self.network.shape(value).elements()
    }

    /// The weight (0) or the bias (1) of an operator.
    pub(super) fn weight(&self, node: &OperatorNode, position: usize) -> TensorId {
        self.graph.weights[node.parameters[position] as usize]
    }

    fn lower_forward(&mut self, id: usize, node: &OperatorNode) -> TensorId {
        let x = self.tensors[node.inputs[0] as usize];
        let shape = self.network.shape(node.output);
        let elements = shape.elements();
        match node.op {
            Op::Convolution { window, groups } => {
                let y = self.convolution(node, x, window, groups);
                self.bias(node, y)
            }
            Op::Linear => {
                let y = self.product(x, self.weight(node, 0), elements, node.flops);
                self.bias(node, y)
            }
            Op::Matmul => {
                let other = self.tensors[node.inputs[1] as usize];
                self.product(x, other, elements, node.flops)
            }
            Op::TransposedConvolution { groups, .. } => {
                let kind = if groups == 1 { OperatorKind::Convolution } else { OperatorKind::DepthwiseConvolution };
                let operands = [x, self.weight(node, 0)];
                let y = self.graph.contract("transposed_conv", kind, &operands, elements, node.flops);
                self.bias(node, y)
            }
            Op::Recurrent { .. } => {
                let weights = (0..node.parameters.len()).map(|place| self.weight(node, place));
                let operands: Vec<_> = std::iter::once(x).chain(weights).collect();
                self.graph.contract("recurrent", OperatorKind::Gemm, &operands, elements, node.flops)
            }
            Op::GroupNorm { groups, .. } => self.normalise(id, node, x, Extent::per_sample(groups)),
            Op::Pairwise(_) => {
                let sides = [node.inputs[0], node.inputs[1]].map(|side| self.fitted(side, elements));
                self.graph.symmetrical(node.op.name(), &sides)
            }
            Op::Reduce { .. } => self.graph.reduce(node.op.name(), x, elements),
            Op::Take(_) => self.graph.rearrange(node.op.name(), &[x], elements),
            Op::BatchNorm { .. } => self.normalise(id, node, x, Extent::fixed(shape.size(1))),
            Op::LayerNorm { .. } => self.normalise(id, node, x, shape.with_last(1).elements()),
            Op::Unary { function, .. } => self.unary(function, x),
            Op::Add | Op::Subtract | Op::Mul => {
                let name = if node.op == Op::Mul { "mul" } else { "add" };
                let sides = [node.inputs[0], node.inputs[1]].map(|side| self.fitted(side, elements));
                self.graph.symmetrical(name, &sides)
            }
            Op::Concat { .. } => {
                let parts: Vec<_> = node.inputs.iter().map(|&part| self.tensors[part as usize]).collect();
                if self.composite {
                    self.graph.rearrange("concat", &parts, elements)
                } else {
                    self.graph.join(&parts, elements)
                }
            }
            Op::MaxPool(window) | Op::AveragePool { window, .. } => self.pool(id, node, x, window),
            Op::GlobalAveragePool { .. } => self.graph.reduce("reduce_mean", x, elements),
            Op::Dropout(_) => {
                let random = self.graph.opaque("random", &[], elements);
                let mask = self.graph.chain(&["greater", "scale"], random);
                self.inner[id] = vec![mask];
                self.graph.symmetrical("mul", &[x, mask])
            }
            Op::Softmax => self.softmax(x, shape.with_last(1).elements()),
            Op::Embedding | Op::IndexTable => {
                let table = self.weight(node, 0);
                self.graph.opaque("gather", &[x, table], elements)
            }
            Op::View(_) => x,
            Op::Slice(_) => self.graph.translate("slice", x, elements),
            Op::Copy(_) => self.copy(x, elements),
            Op::CrossEntropy => self.cross_entropy(id, node, x),
        }
    }

    /// The reduction of each window, gathered into columns (im2col) or read in place by one kernel.
    fn pool(&mut self, id: usize, node: &OperatorNode, x: TensorId, window: Window) -> TensorId {
        let elements = self.elements(node.output);
        let (kernel, reduction) = match node.op {
            Op::MaxPool(_) => ("max_pool", "reduce_max"),
            _ => ("average_pool", "reduce_mean"),
        };
        if !self.composite {
            let flops = elements * window.taps();
            return self.graph.contract(kernel, OperatorKind::Reduction, &[x], elements, flops);
        }
        let windows = self.graph.rearrange("im2col", &[x], elements * window.taps());
        self.inner[id] = vec![windows];
        self.graph.reduce(reduction, windows, elements)
    }

    /// A convolution: a product over gathered windows, or one kernel.
    fn convolution(&mut self, node: &OperatorNode, x: TensorId, window: Window, groups: u64) -> TensorId {
        let x = self.gathered(node, x, window, groups);
        let (operator, kind) = match groups {
            1 => ("conv", OperatorKind::Convolution),
            _ => ("depthwise_conv", OperatorKind::DepthwiseConvolution),
        };
        self.graph.contract(operator, kind, &[x, self.weight(node, 0)], self.elements(node.output), node.flops)
    }

    /// Whether a convolution is composed of gathered windows and a product. In a composite lowering all are, except
    /// dense pointwise ones; a depthwise (or grouped) one gathers the windows group by group.
    pub(super) fn gathers(&self, window: Window, groups: u64) -> bool {
        self.composite && (groups > 1 || !window.is_pointwise())
    }

    /// The gathered windows of a convolution's input, or the input if it is read in place.
    pub(super) fn gathered(&mut self, node: &OperatorNode, x: TensorId, window: Window, groups: u64) -> TensorId {
        let columns = self.columns(node, window);
        if self.gathers(window, groups) { self.graph.rearrange("im2col", &[x], columns) } else { x }
    }

    /// The elements of the gathered windows of a dense convolution: input channels × taps × positions.
    pub(super) fn columns(&self, node: &OperatorNode, window: Window) -> Extent {
        let (input, output) = (self.network.shape(node.inputs[0]), self.network.shape(node.output));
        let positions = output.size(2) * output.size(3);
        Extent::per_sample(input.size(1) * window.taps() * positions)
    }

    /// A product of matrices; a composed one first lays out both operands for its vector loads.
    pub(super) fn product(&mut self, a: TensorId, b: TensorId, elements: Extent, flops: Extent) -> TensorId {
        let [a, b] = if self.composite {
            [a, b].map(|side| {
                let size = self.graph.elements_of(side);
                self.graph.rearrange("transpose", &[side], size)
            })
        } else {
            [a, b]
        };
        self.graph.contract("matmul", OperatorKind::Gemm, &[a, b], elements, flops)
    }

    fn bias(&mut self, node: &OperatorNode, y: TensorId) -> TensorId {
        if node.parameters.len() < 2 { y } else { self.graph.with_wide("add", y, self.weight(node, 1)) }
    }

    /// (x − mean) / deviation × weight + bias, over groups of which there are `groups`.
    fn normalise(&mut self, id: usize, node: &OperatorNode, x: TensorId, groups: Extent) -> TensorId {
        let weights = node.parameters.len() == 2;
        let weights = weights.then(|| [0, 1].map(|position| self.weight(node, position)));
        let g = &mut self.graph;
        let mean = g.reduce("reduce_mean", x, groups);
        let centred = g.with_wide("sub", x, mean);
        let square = g.symmetrical("mul", &[centred, centred]);
        let variance = g.reduce("reduce_mean", square, groups);
        let inverse = g.chain(&["add_constant", "rsqrt"], variance);
        let normal = g.with_wide("mul", centred, inverse);
        let output = weights.map_or(normal, |[weight, bias]| {
            let scaled = g.with_wide("mul", normal, weight);
            g.with_wide("add", scaled, bias)
        });
        self.inner[id] = vec![normal, inverse];
        output
    }

    /// A function of each element is one operation (section 3.2.1); GELU and SiLU, for which kernels have no function,
    /// are composed of those that they have.
    fn unary(&mut self, function: Unary, x: TensorId) -> TensorId {
        let operator = match function {
            Unary::Relu => "max",
            Unary::Relu6 | Unary::Clip { .. } => "clamp",
            Unary::Tanh => "tanh",
            Unary::Sigmoid => "sigmoid",
            Unary::Silu => {
                let share = self.graph.symmetrical("sigmoid", &[x]);
                return self.graph.symmetrical("mul", &[share, x]);
            }
            Unary::Gelu | Unary::GeluTanh => {
                let share = self.graph.chain(&NORMAL_SHARE, x);
                return self.graph.symmetrical("mul", &[share, x]);
            }
            Unary::Power(_) => "pow",
            Unary::Other(function) => function.into(),
            Unary::Scale(_) | Unary::DivideByElement(_) | Unary::DropPath(_) => "scale",
            // The mask is broadcast over heads and rows before it is added.
            Unary::AddConstant(_) | Unary::Where(_) => return self.graph.with_wide("mask", x, self.mask),
        };
        self.graph.symmetrical(operator, &[x])
    }

    /// The tensor of `value` at `elements` elements, broadcast if it is smaller.
    pub(super) fn fitted(&mut self, value: ValueId, elements: Extent) -> TensorId {
        let tensor = self.tensors[value as usize];
        if self.elements(value) == elements { tensor } else { self.graph.translate("expand", tensor, elements) }
    }

    fn softmax(&mut self, x: TensorId, rows: Extent) -> TensorId {
        let [_, powers, total] = self.powers(x, rows);
        self.graph.with_wide("div", powers, total)
    }

    /// `x` less the largest of its row, the exponential of that, and its sum over each row.
    fn powers(&mut self, x: TensorId, rows: Extent) -> [TensorId; 3] {
        let g = &mut self.graph;
        let largest = g.reduce("reduce_max", x, rows);
        let shifted = g.with_wide("sub", x, largest);
        let powers = g.symmetrical("exp", &[shifted]);
        [shifted, powers, g.reduce("reduce_sum", powers, rows)]
    }

    /// A copy into row-major order; with *Direct*, the reader translates the index instead.
    pub(super) fn copy(&mut self, x: TensorId, elements: Extent) -> TensorId {
        if self.composite { self.graph.rearrange("permute", &[x], elements) } else { x }
    }

    fn cross_entropy(&mut self, id: usize, node: &OperatorNode, x: TensorId) -> TensorId {
        let target = self.tensors[node.inputs[1] as usize];
        let rows = self.network.shape(node.inputs[0]).with_last(1).elements();
        let [shifted, _, total] = self.powers(x, rows);
        let g = &mut self.graph;
        let total = g.symmetrical("log", &[total]);
        let log_probabilities = g.with_wide("sub", shifted, total);
        let picked = g.opaque("gather", &[log_probabilities, target], rows);
        self.inner[id] = vec![log_probabilities];
        g.reduce("reduce_mean", picked, Extent::fixed(1))
    }
}
