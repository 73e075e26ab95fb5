//! The value of keeping a saved tensor: the metric by which tensors are ranked for bits and for skipping.
//!
//! DAF leaves the metric open (section 3.2: "sensitivity or importance metrics"). Without data a prior is used; a run
//! that carries data reports its measurements, and the moving average of those is used instead.

use haversack_workloads::{Need, NodeId, Phase, Role, TensorId, TrainingGraph};

pub use crate::policy::setting::{Metric, Worth};

/// The importance of every parameter gradient, 0 for all other tensors.
pub fn of_gradients(graph: &TrainingGraph, worth: Worth<'_>) -> Vec<f64> {
    let metric = match worth {
        Worth::Prior(metric) => metric,
        Worth::Measured(measured) => return measured_of(graph, Role::ParameterGradient, measured),
    };
    let mut importance = vec![0.0; graph.tensors.len()];
    // Backward writes the gradients from the last layer to the first.
    let written = gradients_in_order(graph);
    let layers = written.len() as f64;
    for (place, &(_, gradient)) in written.iter().enumerate() {
        let values = graph.tensor(gradient).bytes.fixed as f64 / 4.0;
        importance[gradient as usize] = match metric {
            Metric::Depth | Metric::Stored => values * (layers - place as f64) / layers,
            Metric::Values => values,
            Metric::Uniform => 1.0,
        };
    }
    importance
}

/// The measured importance of tensors of a role, 0 for all other tensors.
fn measured_of(graph: &TrainingGraph, role: Role, measured: &[f64]) -> Vec<f64> {
    let found = measured.iter().copied().chain(std::iter::repeat(0.0));
    graph.tensors.iter().zip(found).map(|(tensor, found)| if tensor.role == role { found } else { 0.0 }).collect()
}

/// Every parameter gradient with the node that writes it first, in the order of backward.
pub fn gradients_in_order(graph: &TrainingGraph) -> Vec<(NodeId, TensorId)> {
    let mut seen = vec![false; graph.tensors.len()];
    let mut written = Vec::new();
    for (id, node) in (0..).zip(&graph.nodes).filter(|(_, node)| node.phase == Phase::Backward) {
        for &output in &node.outputs {
            if graph.tensor(output).role == Role::ParameterGradient
                && !std::mem::replace(&mut seen[output as usize], true)
            {
                written.push((id, output));
            }
        }
    }
    written
}

/// The importance of every saved tensor: as measured, or the sum over the parameter gradients that its values enter. A
/// tensor that only weight gradients read enters those; any other enters the gradients of all layers before it too.
pub fn of_saved(graph: &TrainingGraph, worth: Worth<'_>) -> Vec<f64> {
    let metric = match worth {
        Worth::Prior(metric) => metric,
        Worth::Measured(measured) => return measured_of(graph, Role::Activation, measured),
    };
    let of_gradient = of_gradients(graph, worth);
    // Sums over the tensors written by backward nodes from each position on.
    let mut after = vec![0.0; graph.nodes.len() + 1];
    for (position, node) in graph.nodes.iter().enumerate().rev() {
        let own: f64 = match node.phase {
            Phase::Backward => node.outputs.iter().map(|&output| of_gradient[output as usize]).sum(),
            _ => 0.0,
        };
        after[position] = after[position + 1] + own;
    }
    let mut importance = vec![0.0; graph.tensors.len()];
    let mut first_seen = vec![false; graph.tensors.len()];
    for (position, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.phase == Phase::Backward) {
        let own: f64 = node.outputs.iter().map(|&output| of_gradient[output as usize]).sum();
        let weights_only = writes_parameter_gradients_only(graph, node);
        for &input in node.inputs.iter().filter(|&&input| node.need_of(input) == Need::Values) {
            if graph.tensor(input).role != Role::Activation {
                continue;
            }
            if weights_only {
                importance[input as usize] += own;
            } else if !std::mem::replace(&mut first_seen[input as usize], true) {
                importance[input as usize] += after[position];
            }
        }
    }
    let of_one = |id: usize, importance: f64| match metric {
        Metric::Depth | Metric::Values => importance,
        Metric::Uniform => f64::from(importance > 0.0),
        Metric::Stored if importance > 0.0 => graph.tensors[id].bytes.at(1) as f64,
        Metric::Stored => 0.0,
    };
    importance.iter_mut().enumerate().for_each(|(id, value)| *value = of_one(id, *value));
    importance
}

/// Whether a node only computes gradients of weights, so that it can be given up.
pub fn writes_parameter_gradients_only(
    graph: &TrainingGraph,
    node: &haversack_workloads::training_graph::Node,
) -> bool {
    !node.outputs.is_empty() && node.outputs.iter().all(|&output| graph.tensor(output).role == Role::ParameterGradient)
}

/// Whether only weight gradients read the saved tensor, so that they can be given up with it.
pub fn skippable(graph: &TrainingGraph) -> Vec<bool> {
    let mut skippable = vec![false; graph.tensors.len()];
    for tensor in graph.saved() {
        skippable[tensor as usize] = true;
    }
    for node in graph.nodes.iter().filter(|node| node.phase == Phase::Backward) {
        if !writes_parameter_gradients_only(graph, node) {
            for &input in &node.inputs {
                // Signs and shapes are stored separately from its values.
                skippable[input as usize] &= node.need_of(input) != Need::Values;
            }
        }
    }
    skippable
}
