//! Reverse-mode differentiation as an eager framework does it: one graph of forward, backward and
//! update nodes, whose backward nodes read exactly the tensors that autograd saved.
//!
//! Sources: PyTorch 2.6's derivative formulas; the saved tensors are checked against measurements
//! of PyTorch in the crate's tests. Products have one backward node for each gradient, so that a
//! policy can give up a weight's gradient and keep the input's.

mod backward;
mod operators;

use crate::error::WorkloadError;
use crate::graph_writer::GraphWriter;
use crate::network::{FP32, Network, OperatorNode, StorageId, ValueId};
use crate::operator::Op;
pub use crate::optimiser::Optimiser;
use crate::training_graph::{Element, NodeWork, Phase, Role, Tensor, TensorId, TrainingGraph};
use operators::kind_of;

/// What differs between the stacks that run a network eagerly.
#[derive(Clone, Copy, Debug)]
pub struct EagerRules {
    /// Bytes of one element of a dropout mask: 4 in PyTorch on a CPU, 1 in CUDA's fused kernel.
    pub dropout_mask_bytes: u64,
    /// How weights are updated.
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
    let loss = network.loss()?;
    let mut differentiator = Differentiator::new(network, rules);
    for (id, node) in (0..).zip(&network.nodes) {
        differentiator.writer.origin = Some(id);
        differentiator.forward(node);
    }
    differentiator.writer.phase = Phase::Backward;
    differentiator.seed(loss);
    for (id, node) in network.nodes.iter().enumerate().rev() {
        differentiator.writer.origin = Some(id as u32);
        differentiator.backward(node);
    }
    (differentiator.writer.phase, differentiator.writer.origin) = (Phase::Update, None);
    differentiator.update(rules.optimiser);
    Ok(differentiator.writer.graph)
}

struct Differentiator<'a> {
    network: &'a Network,
    writer: GraphWriter,
    /// Storages that have been written so far.
    written: Vec<bool>,
    /// The gradient of each value, once a consumer has given one.
    gradients: Vec<Option<TensorId>>,
    parameter_gradients: Vec<Option<TensorId>>,
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
            // What it was given keeps the precision of whoever made it.
            let own = |&&saved: &&StorageId| network.storage(saved).role == Role::Activation && !of_inputs(saved);
            let output = &network.value(node.output).storage;
            for &storage in node.saved.iter().filter(own).chain([output]) {
                writer.graph.tensors[storage as usize].element = Element::FullFloat;
            }
        }
        Self {
            network,
            writer,
            written: network.storages.iter().map(|storage| storage.role != Role::Activation).collect(),
            gradients: vec![None; network.values.len()],
            parameter_gradients: vec![None; network.parameters.len()],
        }
    }

    fn storage(&self, value: ValueId) -> StorageId {
        self.network.value(value).storage
    }

    fn forward(&mut self, node: &OperatorNode) {
        if matches!(node.op, Op::View | Op::Slice) {
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
            Op::MaxPool(window) | Op::AveragePool(window) => elements * window.taps(),
            _ if node.flops.is_zero() => elements,
            _ => node.flops,
        };
        self.writer.write(&node.module, inputs, outputs, NodeWork::computing(kind_of(node), flops, elements));
        self.describe_products(node, self.writer.graph.nodes.len() - 1);
    }

    fn update(&mut self, optimiser: Optimiser) {
        for (parameter, gradient) in self.network.parameters.iter().zip(self.parameter_gradients.clone()) {
            if let Some(gradient) = gradient {
                let update = self.writer.update(parameter.storage, gradient, optimiser);
                self.writer.push(update);
            }
        }
    }
}
