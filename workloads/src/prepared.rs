//! How an inference engine prepares a network before it runs it: operators after a product are folded into it, and all
//! tensors are stored in the format of the run.

use haversack_devices::Precision;

use crate::{Element, Network, Op, TrainingGraph, Unary};

/// The operators that are computed within the convolution or the dense layer before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Folds {
    /// Batch normalisation by known statistics, in the weights.
    pub batch_norm: bool,
    /// ReLU and its like, as results are written.
    pub activation: bool,
}

/// Whether each operator of `network` is folded into the product before it: that product's result must have no other
/// reader, and no function folded in yet.
pub(crate) fn folded(network: &Network, folds: Folds) -> Vec<bool> {
    let mut readers = vec![0_usize; network.values.len()];
    for &input in network.nodes.iter().flat_map(|node| &node.inputs) {
        readers[input as usize] += 1;
    }
    // Values that a product makes, alone or with a normalisation.
    let mut of_product = vec![false; network.values.len()];
    let mut folded = Vec::with_capacity(network.nodes.len());
    for node in &network.nodes {
        let follows = matches!(node.inputs[..], [input] if of_product[input as usize] && readers[input as usize] == 1);
        let is_norm = folds.batch_norm && matches!(node.op, Op::BatchNorm { .. });
        let is_activation = folds.activation
            && matches!(node.op, Op::Unary { function: Unary::Relu | Unary::Relu6 | Unary::Clip { .. }, .. });
        let is_product = matches!(node.op, Op::Convolution { .. } | Op::TransposedConvolution { .. } | Op::Linear);
        of_product[node.output as usize] = is_product || follows && is_norm;
        folded.push(follows && (is_norm || is_activation));
    }
    folded
}

impl TrainingGraph {
    /// The same with every number in `precision`, weights included: without training no fp32 masters are needed.
    pub fn stored_at(mut self, precision: Precision) -> Self {
        if precision == Precision::Fp16 {
            for tensor in self.tensors.iter_mut().filter(|tensor| tensor.element != Element::Whole) {
                tensor.bytes = tensor.bytes.times(1, 2);
            }
            for node in &mut self.nodes {
                let bytes = |&tensor: &u32| self.tensors[tensor as usize].bytes;
                node.work.dram = node.inputs.iter().chain(&node.outputs).map(bytes).sum();
                node.work.halve_parts();
            }
        }
        self
    }
}
