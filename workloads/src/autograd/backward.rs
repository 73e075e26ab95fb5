//! Backward: the nodes that make up each operation's derivative.

use haversack_devices::OperatorKind;

use super::{Differentiator, at_once, kind_of, need_of};
use crate::{
    Element, Extent, FP32, Need, Network, NodeWork, Op, OperatorNode, Role, Saved, Taking, Tensor, TensorId, ValueId,
};

impl Differentiator<'_> {
    /// The gradient of the loss with respect to itself, which is one for any loss.
    pub(super) fn seed(&mut self, loss: ValueId) {
        let gradient = self.new_gradient("loss.gradient", Extent::fixed(FP32), Element::FullFloat);
        let one = Extent::fixed(1);
        let work = NodeWork::computing(OperatorKind::ElementWise, one, one);
        self.writer.write("loss.seed", Vec::new(), vec![gradient], work);
        self.gradients[loss as usize] = Some(gradient);
    }

    pub(super) fn backward(&mut self, node: &OperatorNode) {
        let Some(gradient) = self.gradients[node.output as usize] else { return };
        let first = self.writer.graph.nodes.len();
        match node.op {
            Op::View(_) | Op::Copy(_) => self.give(node.inputs[0], gradient),
            // The parts of the gradient are views of it.
            Op::Concat { .. } => node.inputs.iter().for_each(|&input| self.give(input, gradient)),
            Op::Add | Op::Subtract => self.backward_add(node, gradient),
            Op::Convolution { .. } | Op::TransposedConvolution { .. } | Op::Linear => {
                self.backward_product_with_weight(node, gradient);
            }
            Op::Matmul => self.backward_matmul(node, gradient),
            Op::CrossEntropy => self.backward_loss(node, gradient),
            Op::Embedding | Op::IndexTable => self.backward_table(node, gradient),
            _ => self.backward_plain(node, gradient),
        }
        let by_module = !node.op.is_functional();
        self.describe_passes(node, first);
        self.describe_parts(node, gradient, first);
        for made in &mut self.writer.graph.nodes[first..] {
            let saved = (0..).zip(&node.saved).filter(|(_, saved)| made.inputs.contains(saved));
            made.saved =
                saved.map(|(place, &tensor)| Saved { tensor, need: need_of(&node.op, place), by_module }).collect();
        }
        if node.op == Op::CrossEntropy
            && let Some(log_probabilities) = self.writer.graph.nodes[first].saved.first_mut()
        {
            // The likelihood's derivative reads only the labels.
            log_probabilities.need = Need::Shape;
        }
        self.describe_products(node, first);
    }

    /// Notes of further passes of PyTorch's kernels among the nodes from `first` on: sums of a normalisation before
    /// they are applied, the gradient of a bias.
    fn describe_passes(&mut self, node: &OperatorNode, first: usize) {
        let bytes = |value| self.network.shape(value).elements() * FP32;
        let (of_norm, of_bias) = match node.op {
            Op::BatchNorm { .. } | Op::LayerNorm { .. } => (bytes(node.inputs[0]) * 2, Extent::ZERO),
            Op::Convolution { .. } | Op::Linear if node.parameters.len() > 1 => (Extent::ZERO, bytes(node.output)),
            _ => return,
        };
        let graph = &mut self.writer.graph;
        for made in &mut graph.nodes[first..] {
            let trains = made.gives_weights(&graph.tensors);
            made.work.passes += of_norm + if trains { of_bias } else { Extent::ZERO };
        }
    }

    /// Notes, among the nodes from `first` on, of a gradient that is a part of a concatenation's: the rest is not read,
    /// and the libraries of convolutions and normalisations are given a copy (`grad_output.contiguous()`).
    fn describe_parts(&mut self, node: &OperatorNode, gradient: TensorId, first: usize) {
        let (part, whole) =
            (self.network.shape(node.output).elements() * FP32, self.writer.graph.tensor(gradient).bytes);
        let Some(unread) = whole.less(part) else { return };
        let copies =
            matches!(node.op, Op::Convolution { .. } | Op::TransposedConvolution { .. } | Op::BatchNorm { .. });
        let readers = self.writer.graph.nodes[first..].iter_mut().filter(|made| made.inputs.contains(&gradient));
        for (place, made) in readers.enumerate() {
            made.work.unread += unread;
            if copies {
                made.work.copied += part;
                // The same copy serves the second product.
                made.work.passes += if place == 0 { part * 2 } else { Extent::ZERO };
            }
        }
    }

    /// One node that reads the gradient and the saved tensors, and writes every gradient that is wanted.
    fn backward_plain(&mut self, node: &OperatorNode, gradient: TensorId) {
        let mut inputs = with_saved(gradient, node);
        let read = if matches!(node.op, Op::Recurrent { .. }) { node.parameters.len() } else { 1 };
        inputs.extend(node.parameters.iter().take(read).map(|&p| self.network.parameter(p).storage));
        let wanted = node.inputs.iter().copied().filter(|&input| self.wants(input));
        let wanted: Vec<ValueId> = wanted.collect();
        let given: Vec<TensorId> = wanted.iter().map(|&input| self.gradient_of(&node.module, input)).collect();
        let mut outputs = given.clone();
        outputs.extend(self.trained_gradients(node));
        let elements = largest_of(self.network, node);
        let flops = match node.op {
            // One addition at each saved index.
            Op::MaxPool(_) => self.network.shape(node.output).elements(),
            // For each of its products, one for the weights and one for the input.
            Op::Recurrent { .. } => node.flops * 2,
            Op::Take(Taking::Resize { taps }) => self.network.shape(node.output).elements() * (2 * taps),
            _ => elements * 2,
        };
        self.writer.write(
            &node.module,
            inputs,
            outputs,
            NodeWork::computing(kind_of(node), flops, at_once(node, elements)),
        );
        wanted.into_iter().zip(given).for_each(|(input, made)| self.give(input, made));
    }

    fn backward_product_with_weight(&mut self, node: &OperatorNode, gradient: TensorId) {
        let input = node.inputs[0];
        let weight = self.network.parameter(node.parameters[0]);
        let trained = self.trained_gradients(node);
        if !trained.is_empty() {
            let elements = Extent::fixed(weight.elements);
            let work = if weight.trainable {
                let copied = self.copied_forward(node);
                NodeWork { copied, passes: copied * 2, ..NodeWork::computing(kind_of(node), node.flops, elements) }
            } else {
                // A trained bias with a frozen weight needs no product.
                let summed = self.network.shape(node.output).elements();
                NodeWork::computing(OperatorKind::Reduction, summed, elements)
            };
            let name = format!("{}.weight_gradient", node.module);
            self.writer.write(name, with_saved(gradient, node), trained, work);
        }
        if self.wants(input) {
            let work = NodeWork::computing(kind_of(node), node.flops, self.network.shape(input).elements());
            let name = format!("{}.input_gradient", node.module);
            self.write_gradient(node, &name, input, vec![gradient, weight.storage], work);
        }
    }

    fn backward_matmul(&mut self, node: &OperatorNode, gradient: TensorId) {
        for (wanted, other) in [(0, 1), (1, 0)] {
            let (input, operand) = (node.inputs[wanted], self.storage(node.inputs[other]));
            if self.wants(input) {
                let work = NodeWork::computing(OperatorKind::Gemm, node.flops, self.network.shape(input).elements());
                self.write_gradient(node, &node.module, input, vec![gradient, operand], work);
            }
        }
    }

    /// A sum passes its gradient on; a broadcast operand gets the sum over the axes that it was broadcast along.
    fn backward_add(&mut self, node: &OperatorNode, gradient: TensorId) {
        let output = self.network.shape(node.output).elements();
        for &input in node.inputs.iter() {
            if self.network.shape(input).elements() == output {
                self.give(input, gradient);
            } else if self.wants(input) {
                let work = NodeWork::computing(OperatorKind::Reduction, output, output);
                self.write_gradient(node, &node.module, input, vec![gradient], work);
            }
        }
    }

    fn backward_loss(&mut self, node: &OperatorNode, gradient: TensorId) {
        let scores = node.inputs[0];
        let elements = self.network.shape(scores).elements();
        let of_log =
            self.new_gradient(format!("{}.log_softmax.gradient", node.module), elements * FP32, Element::FullFloat);
        let work = NodeWork::computing(OperatorKind::ElementWise, elements, elements);
        self.writer.write(&node.module, with_saved(gradient, node), vec![of_log], work);
        let work = NodeWork::computing(OperatorKind::Reduction, elements * 2, elements);
        self.write_gradient(node, &node.module, scores, vec![of_log, node.saved[0]], work);
    }

    fn backward_table(&mut self, node: &OperatorNode, gradient: TensorId) {
        let trained = self.trained_gradients(node);
        let elements = self.network.shape(node.output).elements();
        let work = NodeWork::computing(OperatorKind::Gather, elements, elements);
        self.writer.write(&node.module, with_saved(gradient, node), trained, work);
    }

    /// Writes the node called `name` that makes the gradient of `input` out of `reads`, and gives it.
    fn write_gradient(
        &mut self,
        node: &OperatorNode,
        name: &str,
        input: ValueId,
        reads: Vec<TensorId>,
        work: NodeWork,
    ) {
        let made = self.gradient_of(&node.module, input);
        self.writer.write(name, reads, vec![made], work);
        self.give(input, made);
    }

    fn wants(&self, value: ValueId) -> bool {
        self.network.value(value).requires_grad
    }

    /// The gradient tensors of the node's trained weights, made where they do not exist yet.
    fn trained_gradients(&mut self, node: &OperatorNode) -> Vec<TensorId> {
        let network = self.network;
        let trained = node.parameters.iter().filter(|&&p| network.parameter(p).trainable);
        let gradient = |&p: &u32| {
            *self.parameter_gradients[p as usize].get_or_insert_with(|| {
                let parameter = network.parameter(p);
                let bytes = Extent::fixed(parameter.elements * FP32);
                let name = format!("{}.gradient", parameter.name);
                self.writer.tensor(Tensor::new(name, bytes, Role::ParameterGradient))
            })
        };
        trained.map(gradient).collect()
    }

    fn gradient_of(&mut self, module: &str, value: ValueId) -> TensorId {
        let bytes = self.network.shape(value).elements() * FP32;
        self.new_gradient(format!("{module}.gradient"), bytes, self.element_of(value))
    }

    /// The numbers of a value, which are those of its gradient, too.
    fn element_of(&self, value: ValueId) -> Element {
        match self.writer.graph.tensor(self.storage(value)).element {
            Element::FullFloat => Element::FullFloat,
            Element::Float | Element::Whole => Element::Float,
        }
    }

    fn new_gradient(&mut self, name: impl Into<String>, bytes: Extent, element: Element) -> TensorId {
        self.writer.tensor(Tensor { element, ..Tensor::new(name, bytes, Role::Gradient) })
    }

    /// Adds `gradient` to what the consumers of `value` have given so far, if `value` wants a gradient.
    fn give(&mut self, value: ValueId, gradient: TensorId) {
        if !self.wants(value) {
            return;
        }
        let mut total = gradient;
        if let Some(earlier) = self.gradients[value as usize] {
            let elements = self.network.shape(value).elements();
            total = self.new_gradient("accumulated.gradient", elements * FP32, self.element_of(value));
            let work = NodeWork::computing(OperatorKind::ElementWise, elements, elements);
            self.writer.write("accumulate", vec![earlier, gradient], vec![total], work);
        }
        self.gradients[value as usize] = Some(total);
    }
}

/// The elements that a derivative goes over: those of the input, or of the output where that is larger.
fn largest_of(network: &Network, node: &OperatorNode) -> Extent {
    let input = network.shape(node.inputs[0]).elements();
    match node.op {
        Op::Take(_) | Op::Pairwise(_) => input.max(network.shape(node.output).elements()),
        _ => input,
    }
}

/// The gradient, and the tensors saved for the backward of `node`.
fn with_saved(gradient: TensorId, node: &OperatorNode) -> Vec<TensorId> {
    std::iter::once(gradient).chain(node.saved.iter().copied()).collect()
}
