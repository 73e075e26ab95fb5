//! Forward: what each differentiable operation is composed of.

use haversack_devices::work::OperatorKind;

use super::computable::ComputableGraph;
use crate::network::{Network, Node, ValueId};
use crate::operator::{Op, Unary, Window};
use crate::shape::Extent;
use crate::training_graph::{Element, Phase, Role, Tensor, TensorId};

/// The lowering of one network, with what backward needs to know of forward.
pub(super) struct Lowering<'a> {
    pub(super) network: &'a Network,
    pub(super) graph: ComputableGraph,
    /// Whether products and windows are composed with copies (*Original*) or single kernels (*Direct*).
    pub(super) composite: bool,
    /// What stands for masks, whose few bytes belong to the samples.
    mask: TensorId,
    /// The tensor of each value.
    pub(super) tensors: Vec<TensorId>,
    /// The tensor of each parameter.
    pub(super) weights: Vec<TensorId>,
    /// For each operator, the inner tensors that its derivative refers to.
    pub(super) inner: Vec<Vec<TensorId>>,
    /// The gradient of each value, once a consumer has given one.
    pub(super) gradients: Vec<Option<TensorId>>,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(network: &'a Network, composite: bool) -> Self {
        let mut graph = ComputableGraph::default();
        let mut leaves = vec![None; network.storages.len()];
        for (id, storage) in network.storages.iter().enumerate() {
            if storage.role != Role::Activation {
                let tensor = Tensor {
                    name: storage.name.clone(),
                    bytes: storage.bytes,
                    role: storage.role,
                    element: storage.element,
                };
                leaves[id] = Some(graph.leaf(tensor, Extent::ZERO));
            }
        }
        let mut tensors = vec![TensorId::MAX; network.values.len()];
        for (id, value) in network.values.iter().enumerate() {
            if let Some(leaf) = leaves[value.storage as usize] {
                tensors[id] = leaf;
                graph.elements[leaf as usize] = value.shape.elements();
            }
        }
        let mut weights = Vec::new();
        for parameter in &network.parameters {
            // Every parameter has a storage with the role of one.
            let leaf = leaves[parameter.storage as usize].unwrap_or(TensorId::MAX);
            graph.elements[leaf as usize] = Extent::fixed(parameter.elements);
            weights.push(leaf);
        }
        graph.weight_gradients = vec![None; network.parameters.len()];
        let mask = Tensor {
            name: "attention mask".to_owned(),
            bytes: Extent::ZERO,
            role: Role::Buffer,
            element: Element::Whole,
        };
        let mask = graph.leaf(mask, Extent::ZERO);
        Self {
            network,
            graph,
            mask,
            composite,
            tensors,
            weights,
            inner: vec![Vec::new(); network.nodes.len()],
            gradients: vec![None; network.values.len()],
        }
    }

    pub(super) fn forward(&mut self) {
        self.graph.phase = Some(Phase::Forward);
        for (id, node) in self.network.nodes.iter().enumerate() {
            self.graph.origin = id as u32;
            self.graph.full_precision = node.op.keeps_full_precision();
            let output = self.lower_forward(id, node);
            self.tensors[node.output as usize] = output;
        }
    }

    pub(super) fn elements(&self, value: ValueId) -> Extent {
        self.network.shape(value).elements()
    }

    fn lower_forward(&mut self, id: usize, node: &Node) -> TensorId {
        let x = self.tensors[node.inputs[0] as usize];
        let shape = self.network.shape(node.output);
        let elements = shape.elements();
        match node.op {
            Op::Convolution { window, groups } => {
                let y = if groups == 1 { self.convolution(node, x, window) } else { self.depthwise(node, x, window) };
                self.bias(node, y)
            }
            Op::Linear => {
                let weight = self.weights[node.parameters[0] as usize];
                let y = self.product(x, weight, elements, node.flops);
                self.bias(node, y)
            }
            Op::Matmul => {
                let other = self.tensors[node.inputs[1] as usize];
                self.product(x, other, elements, node.flops)
            }
            Op::BatchNorm => self.normalise(id, node, x, Extent::fixed(shape.size(1))),
            Op::LayerNorm => self.normalise(id, node, x, shape.with_last(1).elements()),
            Op::Unary { function, .. } => self.unary(node, function, x),
            Op::Add | Op::Mul => {
                let name = if node.op == Op::Add { "add" } else { "mul" };
                let sides = [node.inputs[0], node.inputs[1]].map(|side| self.fitted(side, elements));
                self.graph.symmetrical(name, &sides)
            }
            Op::Concat => {
                let parts: Vec<_> = node.inputs.iter().map(|&part| self.tensors[part as usize]).collect();
                self.graph.rearrange("concat", &parts, elements)
            }
            Op::MaxPool(window) => {
                if self.composite {
                    let windows = self.windows(x, elements, window);
                    self.inner[id] = vec![windows];
                    self.graph.reduce("reduce_max", windows, elements)
                } else {
                    self.graph.contract("max_pool", OperatorKind::Reduction, &[x], elements, taps(elements, window))
                }
            }
            Op::AveragePool(window) => {
                if self.composite {
                    let windows = self.windows(x, elements, window);
                    self.graph.reduce("reduce_mean", windows, elements)
                } else {
                    self.graph.contract("average_pool", OperatorKind::Reduction, &[x], elements, taps(elements, window))
                }
            }
            Op::GlobalAveragePool => self.graph.reduce("reduce_mean", x, elements),
            Op::Dropout => {
                let random = self.graph.opaque("random", &[], elements);
                let kept = self.graph.symmetrical("greater", &[random]);
                let mask = self.graph.symmetrical("scale", &[kept]);
                self.inner[id] = vec![mask];
                self.graph.symmetrical("mul", &[x, mask])
            }
            Op::Softmax => self.softmax(x, elements, shape.with_last(1).elements()),
            Op::Embedding | Op::IndexTable => {
                let table = self.weights[node.parameters[0] as usize];
                self.graph.opaque("gather", &[x, table], elements)
            }
            Op::View => x,
            Op::Slice => self.graph.translate("slice", x, elements),
            Op::Copy => self.copy(x, elements),
            Op::CrossEntropy => self.cross_entropy(id, node, x),
        }
    }

    /// Windows gathered into columns (im2col), as wide as the taps of `outputs` outputs.
    pub(super) fn windows(&mut self, x: TensorId, outputs: Extent, window: Window) -> TensorId {
        self.graph.rearrange("im2col", &[x], taps(outputs, window))
    }

    /// A dense convolution: a product over gathered windows, or one kernel.
    fn convolution(&mut self, node: &Node, x: TensorId, window: Window) -> TensorId {
        let weight = self.weights[node.parameters[0] as usize];
        let shape = self.network.shape(node.output);
        let elements = shape.elements();
        let x = if self.composite && !window.is_pointwise() {
            let columns = self.columns(node, window);
            self.graph.rearrange("im2col", &[x], columns)
        } else {
            x
        };
        self.graph.contract("conv", OperatorKind::Convolution, &[x, weight], elements, node.flops)
    }

    /// The elements of the gathered windows of a dense convolution: input channels × taps × positions.
    pub(super) fn columns(&self, node: &Node, window: Window) -> Extent {
        let (input, output) = (self.network.shape(node.inputs[0]), self.network.shape(node.output));
        let positions = output.size(2) * output.size(3);
        Extent::per_sample(input.size(1) * window.kernel[0] * window.kernel[1] * positions)
    }

    /// A depthwise (or grouped) convolution: a product over gathered windows, group by group; or one kernel.
    fn depthwise(&mut self, node: &Node, x: TensorId, window: Window) -> TensorId {
        let weight = self.weights[node.parameters[0] as usize];
        let elements = self.elements(node.output);
        let x = if self.composite {
            let columns = self.columns(node, window);
            self.graph.rearrange("im2col", &[x], columns)
        } else {
            x
        };
        self.graph.contract("depthwise_conv", OperatorKind::DepthwiseConvolution, &[x, weight], elements, node.flops)
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

    fn bias(&mut self, node: &Node, y: TensorId) -> TensorId {
        let Some(&bias) = node.parameters.get(1) else { return y };
        let wide = self.graph.translate("expand", self.weights[bias as usize], self.graph.elements_of(y));
        self.graph.symmetrical("add", &[y, wide])
    }

    /// (x − mean) / deviation × weight + bias, over groups of which there are `groups`.
    fn normalise(&mut self, id: usize, node: &Node, x: TensorId, groups: Extent) -> TensorId {
        let g = &mut self.graph;
        let elements = g.elements_of(x);
        let mean = g.reduce("reduce_mean", x, groups);
        let mean = g.translate("expand", mean, elements);
        let centred = g.symmetrical("sub", &[x, mean]);
        let square = g.symmetrical("mul", &[centred, centred]);
        let variance = g.reduce("reduce_mean", square, groups);
        let safe = g.symmetrical("add_constant", &[variance]);
        let inverse = g.symmetrical("rsqrt", &[safe]);
        let wide = g.translate("expand", inverse, elements);
        let normal = g.symmetrical("mul", &[centred, wide]);
        let weight = g.translate("expand", self.weights[node.parameters[0] as usize], elements);
        let scaled = g.symmetrical("mul", &[normal, weight]);
        let bias = g.translate("expand", self.weights[node.parameters[1] as usize], elements);
        let output = g.symmetrical("add", &[scaled, bias]);
        self.inner[id] = vec![normal, inverse];
        output
    }

    fn unary(&mut self, node: &Node, function: Unary, x: TensorId) -> TensorId {
        let names: &[&'static str] = match function {
            Unary::Relu => &["max"],
            Unary::Relu6 => &["max", "min"],
            Unary::Gelu => &["scale", "erf", "add_constant", "scale"],
            Unary::Tanh => &["tanh"],
            Unary::Cube => &["pow"],
            Unary::Scale => &["scale"],
            Unary::DivideByElement => &["scale"],
            Unary::AddConstant | Unary::Where => &["mask"],
            Unary::DropPath => &["scale"],
        };
        let mut y = x;
        if matches!(function, Unary::AddConstant | Unary::Where) {
            // The mask is broadcast over heads and rows before it is added.
            let mask = self.graph.translate("expand", self.mask, self.elements(node.output));
            return self.graph.symmetrical("mask", &[x, mask]);
        }
        for name in names {
            y = self.graph.symmetrical(name, &[y]);
        }
        if function == Unary::Gelu {
            y = self.graph.symmetrical("mul", &[y, x]);
        }
        y
    }

    /// The tensor of `value` at `elements` elements, broadcast where it is smaller.
    pub(super) fn fitted(&mut self, value: ValueId, elements: Extent) -> TensorId {
        let tensor = self.tensors[value as usize];
        if self.elements(value) == elements { tensor } else { self.graph.translate("expand", tensor, elements) }
    }

    fn softmax(&mut self, x: TensorId, elements: Extent, rows: Extent) -> TensorId {
        let [_, powers, total] = self.powers(x, elements, rows);
        let g = &mut self.graph;
        let total = g.translate("expand", total, elements);
        g.symmetrical("div", &[powers, total])
    }

    /// `x` less the largest of its row, the exponential of that, and its sum over each row.
    fn powers(&mut self, x: TensorId, elements: Extent, rows: Extent) -> [TensorId; 3] {
        let g = &mut self.graph;
        let largest = g.reduce("reduce_max", x, rows);
        let largest = g.translate("expand", largest, elements);
        let shifted = g.symmetrical("sub", &[x, largest]);
        let powers = g.symmetrical("exp", &[shifted]);
        [shifted, powers, g.reduce("reduce_sum", powers, rows)]
    }

    /// A copy into row-major order; with *Direct*, the reader translates the index instead.
    pub(super) fn copy(&mut self, x: TensorId, elements: Extent) -> TensorId {
        if self.composite { self.graph.rearrange("permute", &[x], elements) } else { x }
    }

    fn cross_entropy(&mut self, id: usize, node: &Node, x: TensorId) -> TensorId {
        let target = self.tensors[node.inputs[1] as usize];
        let scores = self.network.shape(node.inputs[0]);
        let (elements, rows) = (scores.elements(), scores.with_last(1).elements());
        let [shifted, _, total] = self.powers(x, elements, rows);
        let g = &mut self.graph;
        let total = g.symmetrical("log", &[total]);
        let total = g.translate("expand", total, elements);
        let log_probabilities = g.symmetrical("sub", &[shifted, total]);
        let picked = g.opaque("gather", &[log_probabilities, target], rows);
        self.inner[id] = vec![log_probabilities];
        g.reduce("reduce_mean", picked, Extent::fixed(1))
    }
}

/// The taps of `outputs` windows.
pub(super) fn taps(outputs: Extent, window: Window) -> Extent {
    outputs * (window.kernel[0] * window.kernel[1])
}
