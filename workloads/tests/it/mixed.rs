//! Mixed-precision graphs: counted by hand, compared with the eager graph, and refused with a reason.

mod algorithms;
mod by_hand;
mod descriptions;
mod properties;

use haversack_devices::work::Precision;
use haversack_workloads::autograd::{EagerRules, Optimiser, differentiate};
use haversack_workloads::mixed::{self, Algorithm};
use haversack_workloads::models;
use haversack_workloads::network::Network;
use haversack_workloads::training_graph::{Node, Tensor};
use haversack_workloads::{Phase, Role, TrainingGraph};

/// The rewrite of a built-in model, for plain gradient descent.
fn rewritten(model: &str, algorithm: &str) -> TrainingGraph {
    of_network(&models::build(model, None).unwrap(), mixed::algorithm(algorithm).unwrap())
}

fn of_network(network: &Network, algorithm: &Algorithm) -> TrainingGraph {
    mixed::rewrite(network, algorithm, Optimiser::Sgd).unwrap()
}

fn eager(model: &str) -> TrainingGraph {
    let rules = EagerRules { dropout_mask_bytes: 1, ..EagerRules::default() };
    differentiate(&models::build(model, None).unwrap(), rules).unwrap()
}

fn node<'a>(graph: &'a TrainingGraph, name: &str, phase: Phase) -> &'a Node {
    let found: Vec<&Node> = graph.nodes.iter().filter(|node| node.name == name && node.phase == phase).collect();
    assert_eq!(found.len(), 1, "nodes called {name} in {phase:?}");
    found[0]
}

fn tensor<'a>(graph: &'a TrainingGraph, name: &str) -> &'a Tensor {
    let found: Vec<&Tensor> = graph.tensors.iter().filter(|tensor| tensor.name == name).collect();
    assert_eq!(found.len(), 1, "tensors called {name}");
    found[0]
}

fn ending<'a>(graph: &'a TrainingGraph, end: &str) -> Vec<&'a Node> {
    graph.nodes.iter().filter(|node| node.name.ends_with(end)).collect()
}

fn parameter_bytes(graph: &TrainingGraph) -> u64 {
    graph.bytes_of(|role| matches!(role, Role::Parameter { .. })).fixed
}

fn is_product(node: &Node) -> bool {
    use haversack_devices::work::OperatorKind::{Convolution, DepthwiseConvolution, Gemm};
    let sweeps = node.outputs.iter().all(|output| node.inputs.contains(output));
    !sweeps && matches!(node.work.kind, Convolution | DepthwiseConvolution | Gemm)
}

fn is_integer(node: &Node) -> bool {
    !node.work.precision.is_some_and(Precision::is_float)
}
