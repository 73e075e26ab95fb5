//! Graphs built tensor by tensor and node by node.

use haversack_devices::OperatorKind;
use haversack_workloads::{Extent, MapKind, Need, Node, NodeWork, Phase, Role, Saved, Tensor, TensorId, TrainingGraph};

/// A node that reads `inputs` and writes `outputs`; in forward it makes dense maps.
pub fn node(name: &str, phase: Phase, inputs: &[TensorId], outputs: &[TensorId], work: NodeWork) -> Node {
    let makes = (phase == Phase::Forward).then_some(MapKind::Dense);
    Node { inputs: inputs.to_vec(), outputs: outputs.to_vec(), makes, ..Node::new(name, phase, work) }
}

/// A graph under construction. Tensors and nodes have no names; nodes are element-wise operators without FLOPs or
/// memory traffic. Tests change other properties in `graph`.
#[derive(Clone, Debug, Default)]
pub struct GraphBuilder {
    /// The graph so far.
    pub graph: TrainingGraph,
}

impl GraphBuilder {
    /// Adds a tensor of `bytes` for each sample.
    pub fn tensor(&mut self, role: Role, bytes: u64) -> TensorId {
        self.add(role, Extent::per_sample(bytes))
    }

    /// Adds a tensor of `bytes` for any batch.
    pub fn fixed(&mut self, role: Role, bytes: u64) -> TensorId {
        self.add(role, Extent::fixed(bytes))
    }

    fn add(&mut self, role: Role, bytes: Extent) -> TensorId {
        self.graph.tensors.push(Tensor::new("", bytes, role));
        (self.graph.tensors.len() - 1) as TensorId
    }

    /// Adds a node, which may then be changed.
    pub fn node(&mut self, phase: Phase, inputs: &[TensorId], outputs: &[TensorId]) -> &mut Node {
        let place = self.graph.nodes.len();
        self.graph.nodes.push(node("", phase, inputs, outputs, NodeWork::new(OperatorKind::ElementWise)));
        &mut self.graph.nodes[place]
    }

    /// Adds a backward node that reads saved tensors: each tensor, which property of it is needed, and whether a module
    /// of the framework keeps it.
    pub fn backward(&mut self, saved: &[(TensorId, Need, bool)], outputs: &[TensorId]) -> &mut Node {
        let inputs: Vec<TensorId> = saved.iter().map(|&(tensor, ..)| tensor).collect();
        let saved = saved.iter().map(|&(tensor, need, by_module)| Saved { tensor, need, by_module }).collect();
        let node = self.node(Phase::Backward, &inputs, outputs);
        node.saved = saved;
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backward_node_reads_what_it_needs() {
        let mut builder = GraphBuilder::default();
        let mask = builder.tensor(Role::Activation, 4);
        let gradient = builder.fixed(Role::Gradient, 12);
        builder.backward(&[(mask, Need::Mask, true)], &[gradient]).name = "dropout".to_owned();
        let node = &builder.graph.nodes[0];
        assert_eq!((node.name.as_str(), &node.inputs, &node.outputs), ("dropout", &vec![mask], &vec![gradient]));
        assert_eq!((node.need_of(mask), node.need_of(gradient)), (Need::Mask, Need::Values));
        // Two samples: 4 bytes each, and 12 in all.
        assert_eq!([mask, gradient].map(|id| builder.graph.tensor(id).bytes.at(2)), [8, 12]);
    }
}
