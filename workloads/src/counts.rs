//! The size of a network: weights, operations, and the bytes that autograd saves for backward.

use std::collections::HashSet;

use serde::Serialize;

use crate::network::Storage;
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

/// The counts of one operator of a network at one batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// The module or ONNX node that it belongs to.
    pub module: String,
    /// The operator's kind.
    pub operator: &'static str,
    /// The shape of its output; `B` is the batch.
    pub output: String,
    /// Weights that it is the first to read.
    pub parameters: u64,
    /// As in [`Counts`].
    pub forward_flops: u64,
    /// As in [`Counts`].
    pub training_flops: u64,
    /// Bytes that it is the first to save for backward, weights excluded.
    pub saved_bytes: u64,
}

/// Counts `network` at a batch of `samples`.
pub fn count(network: &Network, samples: u64) -> Counts {
    let elements = |trainable_only: bool| {
        network.parameters.iter().filter(|p| p.trainable || !trainable_only).map(|p| p.elements).sum::<u64>()
    };
    let saved: Vec<&Storage> = saved_by_node(network).flat_map(|(_, saved)| saved).collect();
    let sizes = || saved.iter().map(|storage| storage.bytes.at(samples));
    let activations = saved.iter().filter(|storage| storage.role == Role::Activation);
    Counts {
        parameters: elements(false),
        trainable_parameters: elements(true),
        parameter_bytes: elements(false) * FP32,
        forward_flops: network.nodes.iter().map(|node| node.flops.at(samples)).sum(),
        training_flops: network.nodes.iter().map(|node| training_flops(network, node, samples)).sum(),
        saved_bytes: sizes().sum(),
        saved_act_bytes: activations.map(|storage| storage.bytes.at(samples)).sum(),
        saved_tensors: saved.len() as u64,
        largest_saved_bytes: sizes().max().unwrap_or(0),
    }
}

/// The operators of a network at a batch of `samples`, in the order of execution.
pub fn layers(network: &Network, samples: u64) -> Vec<Layer> {
    let mut counted = HashSet::new();
    let mut layer = |(node, saved): (&OperatorNode, Vec<&Storage>)| Layer {
        module: node.module.clone(),
        operator: node.op.name(),
        output: network.shape(node.output).to_string(),
        parameters: (node.parameters.iter().filter(|&&parameter| counted.insert(parameter)))
            .map(|&parameter| network.parameter(parameter).elements)
            .sum(),
        forward_flops: node.flops.at(samples),
        training_flops: training_flops(network, node, samples),
        saved_bytes: saved.iter().map(|storage| storage.bytes.at(samples)).sum(),
    };
    saved_by_node(network).map(&mut layer).collect()
}

/// Each operator with the storages that it is the first to save.
fn saved_by_node(network: &Network) -> impl Iterator<Item = (&OperatorNode, Vec<&Storage>)> {
    let mut seen = HashSet::new();
    network.nodes.iter().map(move |node| {
        let first = node.saved.iter().filter(|&&storage| seen.insert(storage));
        (node, first.map(|&storage| network.storage(storage)).collect())
    })
}

/// Operations of the node's products in forward and backward.
fn training_flops(network: &Network, node: &OperatorNode, samples: u64) -> u64 {
    node.flops.at(samples) * (1 + products_in_backward(network, node))
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

    #[test]
    fn layers_add_up_to_the_network() {
        let network = crate::models::build("resnet50", None).unwrap();
        let (all, layers) = (super::count(&network, 8), super::layers(&network, 8));
        let sum = |of: fn(&super::Layer) -> u64| layers.iter().map(of).sum::<u64>();
        assert_eq!(sum(|layer| layer.parameters), all.parameters);
        assert_eq!(sum(|layer| layer.training_flops), all.training_flops);
        assert_eq!(sum(|layer| layer.saved_bytes), all.saved_bytes);
        // 64 filters of 3 × 7 × 7 over 112 × 112 positions of 8 samples, two operations each.
        let first = &layers[0];
        assert_eq!((first.module.as_str(), first.output.as_str(), first.parameters), ("conv1", "Bx64x112x112", 9_408));
        assert_eq!(first.forward_flops, 2 * 9_408 * 112 * 112 * 8);
    }
}
