//! Reverse-mode differentiation as an eager framework does it: one graph of forward, backward and
//! update nodes, whose backward nodes read exactly the tensors that autograd saved.
//!
//! Sources: PyTorch 2.6's derivative formulas; the saved tensors are checked against measurements
//! of PyTorch in the crate's tests. Products have one backward node for each gradient, so that a
//! policy can give up a weight's gradient and keep the input's.

use haversack_devices::work::{OperatorKind, Product, ProductRole};

use crate::error::WorkloadError;
use crate::network::{FP32, Network, Node as Forward, StorageId, ValueId};
use crate::operator::{Op, Unary};
use crate::shape::Extent;
use crate::training_graph::{Element, Need, Node, NodeWork, Phase, Role, Saved, Tensor, TensorId, TrainingGraph};

/// How weights are updated, and the state that this keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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
    /// Values of state that every trained weight keeps.
    #[must_use]
    pub const fn states(self) -> u64 {
        match self {
            Self::Sgd => 0,
            Self::Momentum => 1,
            Self::Adam => 2,
        }
    }
}

/// What differs between the stacks that run a network eagerly.
#[derive(Clone, Copy, Debug)]
pub struct EagerRules {
    /// Bytes of one element of a dropout mask: 4 in PyTorch on a CPU, 1 in CUDA's fused kernel.
    pub dropout_mask_bytes: u64,
    /// The optimiser.
    pub optimiser: Optimiser,
}

impl Default for EagerRules {
    fn default() -> Self {
        Self { dropout_mask_bytes: FP32, optimiser: Optimiser::Sgd }
    }
}

/// The graph that an eager framework executes for one iteration of `network`.
///
/// # Errors
/// A network without a loss.
pub fn differentiate(network: &Network, rules: EagerRules) -> Result<TrainingGraph, WorkloadError> {
    let loss = network.loss.ok_or_else(|| WorkloadError::NoLoss(network.name.clone()))?;
    let mut tape = Tape::new(network, rules);
    for (id, node) in (0..).zip(&network.nodes) {
        tape.origin = Some(id);
        tape.forward(node);
    }
    tape.seed(loss);
    for (id, node) in network.nodes.iter().enumerate().rev() {
        tape.origin = Some(id as u32);
        tape.backward(node);
    }
    tape.origin = None;
    tape.update(rules.optimiser);
    Ok(tape.graph)
}

struct Tape<'a> {
    network: &'a Network,
    graph: TrainingGraph,
    /// Storages that have been written so far.
    written: Vec<bool>,
    /// The gradient of each value, once a consumer has given one.
    gradients: Vec<Option<TensorId>>,
    parameter_gradients: Vec<Option<TensorId>>,
    /// The operator that is being recorded.
    origin: Option<u32>,
}

impl<'a> Tape<'a> {
    fn new(network: &'a Network, rules: EagerRules) -> Self {
        let tensors = network.storages.iter().map(|storage| Tensor {
            name: storage.name.clone(),
            // Masks are drawn up as fp32 in the network.
            bytes: if storage.dropout_mask {
                storage.bytes.times(rules.dropout_mask_bytes, FP32)
            } else {
                storage.bytes
            },
            role: storage.role,
            element: storage.element,
        });
        let mut graph =
            TrainingGraph { name: network.name.clone(), tensors: tensors.collect(), ..TrainingGraph::default() };
        for node in &network.nodes {
            if node.op.keeps_full_precision() {
                graph.tensors[network.value(node.output).storage as usize].element = Element::FullFloat;
                for &saved in node.saved.iter().filter(|&&saved| network.storage(saved).role == Role::Activation) {
                    // What it was given keeps the precision of whoever made it.
                    if !node.inputs.iter().any(|&input| network.value(input).storage == saved) {
                        graph.tensors[saved as usize].element = Element::FullFloat;
                    }
                }
            }
        }
        let written = network.storages.iter().map(|storage| storage.role != Role::Activation).collect();
        Self {
            network,
            graph,
            written,
            gradients: vec![None; network.values.len()],
            parameter_gradients: vec![None; network.parameters.len()],
            origin: None,
        }
    }

    fn storage(&self, value: ValueId) -> StorageId {
        self.network.value(value).storage
    }

    fn forward(&mut self, node: &Forward) {
        let output = self.storage(node.output);
        if matches!(node.op, Op::View | Op::Slice) {
            return;
        }
        let mut inputs: Vec<TensorId> = node.inputs.iter().map(|&value| self.storage(value)).collect();
        inputs.extend(node.parameters.iter().map(|&p| self.network.parameter(p).storage));
        inputs.extend(&node.buffers);
        let mut outputs = vec![output];
        self.written[output as usize] = true;
        for &saved in &node.saved {
            if !self.written[saved as usize] {
                self.written[saved as usize] = true;
                outputs.push(saved);
            }
        }
        let shape = self.network.shape(node.output);
        let elements =
            if node.op == Op::CrossEntropy { self.network.shape(node.inputs[0]).elements() } else { shape.elements() };
        let flops = match node.op {
            // Every position of every window is compared or added.
            Op::MaxPool(window) | Op::AveragePool(window) => elements * window.kernel.iter().product(),
            _ if node.flops.is_zero() => elements,
            _ => node.flops,
        };
        self.push(&node.module, Phase::Forward, kind_of(node), inputs, outputs, flops, elements);
        self.describe_products(node, self.graph.nodes.len() - 1);
    }

    /// Notes of the products among the nodes from `first` on, all of `node`, how wide they are and whether Winograd's
    /// algorithm suits them.
    fn describe_products(&mut self, node: &Forward, first: usize) {
        let shape = self.network.shape(node.output);
        let (columns, winograd) = match node.op {
            Op::Convolution { window, groups } => {
                (shape.size(1), groups == 1 && window.kernel == [3, 3] && window.stride == [1, 1])
            }
            Op::Linear | Op::Matmul => (shape.last(), false),
            _ => return,
        };
        let product = self.layer_of(node);
        let (nodes, tensors) = (&mut self.graph.nodes, &self.graph.tensors);
        for made in &mut nodes[first..] {
            if matches!(made.work.kind, OperatorKind::Convolution | OperatorKind::Gemm) {
                made.work.columns = columns;
                made.work.winograd = winograd;
                let of_weight = made.outputs.iter().any(|&t| tensors[t as usize].role == Role::ParameterGradient);
                let role = match (made.phase, of_weight) {
                    (Phase::Forward, _) => ProductRole::Forward,
                    (_, true) => ProductRole::WeightGradient,
                    (_, false) => ProductRole::InputGradient,
                };
                made.work.product = product.map(|product| Product { role, ..product });
            }
        }
    }

    /// The layer of a dense convolution, or of a linear layer: each of its rows (tokens) is a position.
    fn layer_of(&self, node: &Forward) -> Option<Product> {
        let (input, output) = (self.network.shape(node.inputs[0]), self.network.shape(node.output));
        let role = ProductRole::Forward;
        match node.op {
            Op::Convolution { window, groups: 1 } => Some(Product {
                role,
                inputs: input.size(1),
                outputs: output.size(1),
                input_size: [input.size(2), input.size(3)],
                output_size: [output.size(2), output.size(3)],
                taps: window.kernel,
            }),
            Op::Linear => {
                let rows = output.with_last(1).elements().per_sample.max(1);
                Some(Product {
                    role,
                    inputs: input.last(),
                    outputs: output.last(),
                    input_size: [rows, 1],
                    output_size: [rows, 1],
                    taps: [1, 1],
                })
            }
            _ => None,
        }
    }

    fn seed(&mut self, loss: ValueId) {
        let gradient = self.new_gradient("loss.gradient", Extent::fixed(FP32));
        // A one, whatever the loss is.
        self.push(
            "loss.seed",
            Phase::Backward,
            OperatorKind::ElementWise,
            Vec::new(),
            vec![gradient],
            Extent::fixed(1),
            Extent::fixed(1),
        );
        self.gradients[loss as usize] = Some(gradient);
    }

    fn backward(&mut self, node: &Forward) {
        let Some(gradient) = self.gradients[node.output as usize] else { return };
        let first = self.graph.nodes.len();
        self.backward_of(node, gradient);
        for made in &mut self.graph.nodes[first..] {
            let saved = (0..).zip(&node.saved).filter(|(_, saved)| made.inputs.contains(saved));
            made.saved = saved
                .map(|(place, &tensor)| Saved {
                    tensor,
                    need: need_of(&node.op, place),
                    by_module: !node.op.is_functional(),
                })
                .collect();
        }
        if node.op == Op::CrossEntropy
            && let Some(log_probabilities) = self.graph.nodes[first].saved.first_mut()
        {
            // The likelihood's derivative reads the labels alone.
            log_probabilities.need = Need::Shape;
        }
        self.describe_products(node, first);
    }

    fn backward_of(&mut self, node: &Forward, gradient: TensorId) {
        match node.op {
            Op::View => self.give(node.inputs[0], gradient),
            Op::Copy => self.give(node.inputs[0], gradient),
            Op::Add => self.backward_add(node, gradient),
            Op::Convolution { .. } | Op::Linear => self.backward_product_with_weight(node, gradient),
            Op::Matmul => self.backward_matmul(node, gradient),
            Op::Concat => self.backward_concat(node, gradient),
            Op::CrossEntropy => self.backward_loss(node, gradient),
            Op::Embedding | Op::IndexTable => self.backward_table(node, gradient),
            _ => self.backward_plain(node, gradient),
        }
    }

    /// One node that reads the gradient and what was saved, and writes every gradient that is wanted.
    fn backward_plain(&mut self, node: &Forward, gradient: TensorId) {
        let mut inputs = vec![gradient];
        inputs.extend(&node.saved);
        inputs.extend(node.parameters.iter().take(1).map(|&p| self.network.parameter(p).storage));
        let mut outputs = Vec::new();
        let mut given = Vec::new();
        for &input in &node.inputs {
            if self.network.value(input).requires_grad {
                let made = self.gradient_of(&node.module, input);
                outputs.push(made);
                given.push((input, made));
            }
        }
        outputs.extend(self.trained_gradients(node));
        let elements = self.network.shape(node.inputs[0]).elements();
        let flops = match node.op {
            // One addition at each saved index.
            Op::MaxPool(_) => self.network.shape(node.output).elements(),
            _ => elements * 2,
        };
        self.push(&node.module, Phase::Backward, kind_of(node), inputs, outputs, flops, elements);
        for (input, made) in given {
            self.give(input, made);
        }
    }

    fn backward_product_with_weight(&mut self, node: &Forward, gradient: TensorId) {
        let input = node.inputs[0];
        let weight = self.network.parameter(node.parameters[0]);
        let trained = self.trained_gradients(node);
        if !trained.is_empty() {
            let mut inputs = vec![gradient];
            inputs.extend(&node.saved);
            // A trained bias with a frozen weight needs no product.
            let flops = if weight.trainable { node.flops } else { self.network.shape(node.output).elements() };
            let kind = if weight.trainable { kind_of(node) } else { OperatorKind::Reduction };
            let name = format!("{}.weight_gradient", node.module);
            self.push(&name, Phase::Backward, kind, inputs, trained, flops, Extent::fixed(weight.elements));
        }
        if self.network.value(input).requires_grad {
            let made = self.gradient_of(&node.module, input);
            let name = format!("{}.input_gradient", node.module);
            let elements = self.network.shape(input).elements();
            let (flops, storage) = (node.flops, weight.storage);
            self.push(&name, Phase::Backward, kind_of(node), vec![gradient, storage], vec![made], flops, elements);
            self.give(input, made);
        }
    }

    fn backward_matmul(&mut self, node: &Forward, gradient: TensorId) {
        for (wanted, other) in [(0, 1), (1, 0)] {
            let (input, operand) = (node.inputs[wanted], self.storage(node.inputs[other]));
            if self.network.value(input).requires_grad {
                let made = self.gradient_of(&node.module, input);
                let elements = self.network.shape(input).elements();
                self.push(
                    &node.module,
                    Phase::Backward,
                    OperatorKind::Gemm,
                    vec![gradient, operand],
                    vec![made],
                    node.flops,
                    elements,
                );
                self.give(input, made);
            }
        }
    }

    /// A sum hands its gradient on; a broadcast operand gets the sum over what it was broadcast to.
    fn backward_add(&mut self, node: &Forward, gradient: TensorId) {
        let output = self.network.shape(node.output).elements();
        for &input in &node.inputs {
            let value = self.network.value(input);
            if !value.requires_grad {
                continue;
            }
            if value.shape.elements() == output {
                self.give(input, gradient);
            } else {
                let made = self.gradient_of(&node.module, input);
                self.push(
                    &node.module,
                    Phase::Backward,
                    OperatorKind::Reduction,
                    vec![gradient],
                    vec![made],
                    output,
                    output,
                );
                self.give(input, made);
            }
        }
    }

    fn backward_concat(&mut self, node: &Forward, gradient: TensorId) {
        for &input in &node.inputs {
            if self.network.value(input).requires_grad {
                // The parts of the gradient are views of it.
                self.give(input, gradient);
            }
        }
    }

    fn backward_loss(&mut self, node: &Forward, gradient: TensorId) {
        let scores = node.inputs[0];
        let elements = self.network.shape(scores).elements();
        let of_log = self.new_gradient(&format!("{}.log_softmax.gradient", node.module), elements * FP32);
        let mut inputs = vec![gradient];
        inputs.extend(&node.saved);
        self.push(&node.module, Phase::Backward, OperatorKind::ElementWise, inputs, vec![of_log], elements, elements);
        let made = self.gradient_of(&node.module, scores);
        let inputs = vec![of_log, node.saved[0]];
        self.push(&node.module, Phase::Backward, OperatorKind::Reduction, inputs, vec![made], elements * 2, elements);
        self.give(scores, made);
    }

    fn backward_table(&mut self, node: &Forward, gradient: TensorId) {
        let trained = self.trained_gradients(node);
        let mut inputs = vec![gradient];
        inputs.extend(&node.saved);
        let elements = self.network.shape(node.output).elements();
        self.push(&node.module, Phase::Backward, OperatorKind::Gather, inputs, trained, elements, elements);
    }

    /// The gradient tensors of the node's trained weights, made where they do not exist yet.
    fn trained_gradients(&mut self, node: &Forward) -> Vec<TensorId> {
        let network = self.network;
        let trained = node.parameters.iter().filter(|&&p| network.parameter(p).trainable);
        trained
            .map(|&p| {
                *self.parameter_gradients[p as usize].get_or_insert_with(|| {
                    let parameter = network.parameter(p);
                    let bytes = Extent::fixed(parameter.elements * FP32);
                    new_tensor(&mut self.graph, &format!("{}.gradient", parameter.name), bytes, Role::ParameterGradient)
                })
            })
            .collect()
    }

    fn gradient_of(&mut self, module: &str, value: ValueId) -> TensorId {
        let bytes = self.network.shape(value).elements() * FP32;
        self.new_gradient(&format!("{module}.gradient"), bytes)
    }

    fn new_gradient(&mut self, name: &str, bytes: Extent) -> TensorId {
        new_tensor(&mut self.graph, name, bytes, Role::Gradient)
    }

    /// Adds `gradient` to what the consumers of `value` have given so far.
    fn give(&mut self, value: ValueId, gradient: TensorId) {
        if !self.network.value(value).requires_grad {
            return;
        }
        let total = match self.gradients[value as usize] {
            None => gradient,
            Some(earlier) => {
                let elements = self.network.shape(value).elements();
                let sum = self.new_gradient("accumulated.gradient", elements * FP32);
                let inputs = vec![earlier, gradient];
                self.push(
                    "accumulate",
                    Phase::Backward,
                    OperatorKind::ElementWise,
                    inputs,
                    vec![sum],
                    elements,
                    elements,
                );
                sum
            }
        };
        self.gradients[value as usize] = Some(total);
    }

    fn update(&mut self, optimiser: Optimiser) {
        for (parameter, gradient) in self.network.parameters.iter().zip(self.parameter_gradients.clone()) {
            let Some(gradient) = gradient else { continue };
            let elements = Extent::fixed(parameter.elements);
            let mut inputs = vec![parameter.storage, gradient];
            let mut outputs = vec![parameter.storage];
            for _ in 0..optimiser.states() {
                let name = format!("{}.state", parameter.name);
                let state = new_tensor(&mut self.graph, &name, elements * FP32, Role::OptimiserState);
                inputs.push(state);
                outputs.push(state);
            }
            let flops = elements * (2 + 4 * optimiser.states());
            let name = format!("{}.update", parameter.name);
            self.push(&name, Phase::Update, OperatorKind::Optimiser, inputs, outputs, flops, elements);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a node has as many parts")]
    fn push(
        &mut self,
        name: &str,
        phase: Phase,
        kind: OperatorKind,
        inputs: Vec<TensorId>,
        outputs: Vec<TensorId>,
        flops: Extent,
        parallelism: Extent,
    ) {
        let dram = inputs.iter().chain(&outputs).map(|&t| self.graph.tensor(t).bytes).sum();
        let work = NodeWork {
            kind,
            flops,
            index_translations: Extent::ZERO,
            dram,
            parallelism,
            launches: 1,
            single_kernel: false,
            winograd: false,
            columns: 0,
            precision: None,
            product: None,
        };
        let name = name.to_owned();
        let origin = self.origin;
        self.graph.nodes.push(Node {
            name,
            phase,
            inputs,
            outputs,
            releases: Vec::new(),
            saved: Vec::new(),
            origin,
            rescales: None,
            work,
        });
    }
}

fn new_tensor(graph: &mut TrainingGraph, name: &str, bytes: Extent, role: Role) -> TensorId {
    graph.tensors.push(Tensor { name: name.to_owned(), bytes, role, element: Element::Float });
    (graph.tensors.len() - 1) as TensorId
}

/// What the backward of `op` needs of the tensor at `place` among those that it saved.
fn need_of(op: &Op, place: usize) -> Need {
    match (op, place) {
        (Op::Unary { function: Unary::Relu | Unary::Relu6, .. }, _) => Need::Signs,
        (Op::Dropout, _) => Need::Mask,
        (Op::MaxPool(_), 0) | (Op::AveragePool(_), _) => Need::Shape,
        (Op::MaxPool(_), _) => Need::Indices,
        // Their inputs come first, then means, deviations and weights.
        (Op::BatchNorm | Op::LayerNorm | Op::CrossEntropy, 1..) => Need::Statistics,
        (Op::Unary { function: Unary::DivideByElement | Unary::Where | Unary::DropPath, .. }, _) => Need::Statistics,
        _ => Need::Values,
    }
}

fn kind_of(node: &Forward) -> OperatorKind {
    match node.op {
        Op::Convolution { groups, .. } if groups > 1 => OperatorKind::DepthwiseConvolution,
        Op::Convolution { .. } => OperatorKind::Convolution,
        Op::Linear | Op::Matmul => OperatorKind::Gemm,
        Op::BatchNorm | Op::LayerNorm | Op::Softmax | Op::CrossEntropy | Op::AveragePool(_) | Op::GlobalAveragePool => {
            OperatorKind::Reduction
        }
        // Max-pooling keeps the place of each maximum and scatters by it: element by element, as an embedding.
        Op::MaxPool(_) | Op::Embedding | Op::IndexTable => OperatorKind::Gather,
        Op::Concat | Op::Copy | Op::View | Op::Slice => OperatorKind::Layout,
        Op::Unary { .. } | Op::Add | Op::Mul | Op::Dropout => OperatorKind::ElementWise,
    }
}
