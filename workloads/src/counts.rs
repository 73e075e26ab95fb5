//! The size of a network: weights, operations, and the bytes that autograd saves for backward.

use std::collections::HashSet;

use serde::Serialize;

use crate::{FP32, Network, Op, OperatorNode, Role};

/// The counts of a network at one batch; all as PyTorch's tools count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Weights, frozen ones included.
    pub parameters: u64,
    /// Weights that are trained.
    pub trainable_parameters: u64,
    /// Bytes of the weights.
    pub parameter_bytes: u64,
    /// Operations of the products in forward; a multiply-add counts as two.
    pub forward_flops: u64,
    /// Operations of the products in forward and backward.
    pub training_flops: u64,
    /// Bytes saved for backward, all but weights.
    pub saved_bytes: u64,
    /// Bytes saved for backward that the forward pass allocates: no input, no labels, no buffers.
    pub saved_act_bytes: u64,
    /// Distinct storages saved, all but weights.
    pub saved_tensors: u64,
    /// Bytes of the largest of them.
    pub largest_saved_bytes: u64,
}

/// Counts `network` at a batch of `samples`.
pub fn count(network: &Network, samples: u64) -> Counts {
    let elements = |trainable_only: bool| {
        network.parameters.iter().filter(|p| p.trainable || !trainable_only).map(|p| p.elements).sum::<u64>()
    };
    let mut seen = HashSet::new();
    let (mut saved_bytes, mut saved_act_bytes, mut largest) = (0, 0, 0);
    for &storage in network.nodes.iter().flat_map(|node| &node.saved).filter(|&&storage| seen.insert(storage)) {
        let storage = network.storage(storage);
        let bytes = storage.bytes.at(samples);
        saved_bytes += bytes;
        largest = largest.max(bytes);
        if storage.role == Role::Activation {
            saved_act_bytes += bytes;
        }
    }
    Counts {
        parameters: elements(false),
        trainable_parameters: elements(true),
        parameter_bytes: elements(false) * FP32,
        forward_flops: network.nodes.iter().map(|node| node.flops.at(samples)).sum(),
        training_flops: network
            .nodes
            .iter()
            .map(|node| node.flops.at(samples) * (1 + products_in_backward(network, node)))
            .sum(),
        saved_bytes,
        saved_act_bytes,
        saved_tensors: seen.len() as u64,
        largest_saved_bytes: largest,
    }
}

/// How many products of the forward product's size the node needs in backward.
fn products_in_backward(network: &Network, node: &OperatorNode) -> u64 {
    let wanted = node.inputs.iter().filter(|&&input| network.value(input).requires_grad).count() as u64;
    match node.op {
        Op::Convolution { .. } | Op::TransposedConvolution { .. } | Op::Recurrent { .. } | Op::Linear => {
            wanted + u64::from(node.parameters.first().is_some_and(|&weight| network.parameter(weight).trainable))
        }
        Op::Matmul => wanted,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn resnet50_is_counted_as_pytorch_counts_it() {
        let n = crate::models::build("resnet50", None).unwrap();
        let c = super::count(&n, 8);
        println!("{c:?}");
        assert_eq!(c.saved_act_bytes, 682_703_620);
        assert_eq!(c.saved_tensors, 321);
        assert_eq!(c.parameters, 25_557_032);
        assert_eq!(c.training_flops, 194_392_621_056);
    }
}
