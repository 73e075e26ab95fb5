//! Writes a training graph tensor by tensor and node by node, with the usual values of a node's fields.

use haversack_devices::OperatorKind;

use crate::{Extent, FP32, LayerKind, MapKind, Node, NodeWork, Op, Phase, Role, Tensor, TensorId, TrainingGraph};

/// A training graph in the making.
pub(crate) struct GraphWriter {
    pub(crate) graph: TrainingGraph,
    /// The phase of the nodes that are being written.
    pub(crate) phase: Phase,
    /// The operator of the network that they come from.
    pub(crate) origin: Option<u32>,
    /// Its kind.
    pub(crate) layer: LayerKind,
    /// The kind of map that it makes.
    pub(crate) makes: Option<MapKind>,
    /// Whether mixed precision leaves it in fp32.
    pub(crate) full_precision: bool,
}

impl GraphWriter {
    pub(crate) fn new(name: &str) -> Self {
        let graph = TrainingGraph { name: name.to_owned(), ..TrainingGraph::default() };
        Self { graph, phase: Phase::Forward, origin: None, layer: LayerKind::Other, makes: None, full_precision: false }
    }

    /// Makes the following nodes come from operator number `origin`.
    pub(crate) fn now_of(&mut self, origin: u32, op: &Op) {
        (self.origin, self.layer, self.makes) = (Some(origin), LayerKind::of(op), MapKind::made_by(op));
        self.full_precision = op.keeps_full_precision();
    }

    pub(crate) fn tensor(&mut self, tensor: Tensor) -> TensorId {
        self.graph.tensors.push(tensor);
        (self.graph.tensors.len() - 1) as TensorId
    }

    /// A node of the current phase and operator, which moves all of its operands once.
    pub(crate) fn node(
        &self,
        name: impl Into<String>,
        inputs: Vec<TensorId>,
        outputs: Vec<TensorId>,
        work: NodeWork,
    ) -> Node {
        let dram = inputs.iter().chain(&outputs).map(|&tensor| self.graph.tensor(tensor).bytes).sum();
        let full_precision = self.full_precision;
        let node = Node::new(name, self.phase, NodeWork { dram, full_precision, ..work });
        Node { inputs, outputs, origin: self.origin, layer: self.layer, makes: self.makes, ..node }
    }

    /// Adds a node unchanged.
    pub(crate) fn push(&mut self, node: Node) -> &mut Node {
        let place = self.graph.nodes.len();
        self.graph.nodes.push(node);
        &mut self.graph.nodes[place]
    }

    /// Makes a node as [`Self::node`] does, and adds it.
    pub(crate) fn write(
        &mut self,
        name: impl Into<String>,
        inputs: Vec<TensorId>,
        outputs: Vec<TensorId>,
        work: NodeWork,
    ) -> &mut Node {
        let node = self.node(name, inputs, outputs, work);
        self.push(node)
    }

    /// The node that updates `weight` by `gradient`, with `states` new tensors of the optimiser's state.
    pub(crate) fn update(&mut self, weight: TensorId, gradient: TensorId, states: u64) -> Node {
        let Tensor { name, bytes, .. } = self.graph.tensor(weight).clone();
        let (mut inputs, mut outputs) = (vec![weight, gradient], vec![weight]);
        for _ in 0..states {
            let state = self.tensor(Tensor::new(format!("{name}.state"), bytes, Role::OptimiserState));
            inputs.push(state);
            outputs.push(state);
        }
        let elements = Extent::fixed(bytes.fixed / FP32);
        let flops = elements * (2 + 4 * states);
        let work = NodeWork::computing(OperatorKind::Optimiser, flops, elements);
        self.node(format!("{name}.update"), inputs, outputs, work)
    }
}
