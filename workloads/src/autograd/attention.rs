//! Attention in one kernel: scores and probabilities never reach memory, forward or backward.

use std::collections::HashSet;

use haversack_devices::OperatorKind;

use crate::{Extent, LayerKind, Node, Phase, Role, TensorId, TrainingGraph};

/// Takes the scores of every attention in `graph`, and the tensors derived from them up to its second product,
/// out of memory. The products remain, and read their operands in place; the operators between them become part
/// of their kernels. A sum for each row of the scores, which the kernel keeps for backward, is left out.
pub(super) fn fuse(graph: &mut TrainingGraph) {
    let softmaxes: Vec<usize> = forward(graph).filter(|&id| graph.nodes[id].layer == LayerKind::Softmax).collect();
    for softmax in softmaxes {
        if let Some(region) = Region::around(graph, softmax) {
            region.take_from_memory(graph);
        }
    }
    for node in &mut graph.nodes {
        let bytes = |&tensor: &TensorId| graph.tensors[tensor as usize].bytes;
        node.work.dram = node.inputs.iter().chain(&node.outputs).map(bytes).sum();
    }
}

/// The nodes of one attention.
#[derive(Default)]
struct Region {
    /// From the first product to the second.
    nodes: Vec<usize>,
    /// The tensors that they pass to each other.
    tensors: HashSet<TensorId>,
    /// Operators of the network that they come from.
    origins: HashSet<u32>,
}

impl Region {
    /// The attention around `softmax`; `None` if it does not stand between two products of tensors.
    fn around(graph: &TrainingGraph, softmax: usize) -> Option<Self> {
        let mut region = Self::default();
        region.add(graph, softmax);
        let mut scores = *graph.nodes[softmax].inputs.first()?;
        loop {
            let producer = forward(graph).find(|&id| graph.nodes[id].outputs.contains(&scores))?;
            region.tensors.insert(scores);
            region.add(graph, producer);
            if is_product(&graph.nodes[producer]) {
                break;
            }
            scores = *sweeps(&graph.nodes[producer])?.inputs.first()?;
        }
        let mut shares = *graph.nodes[softmax].outputs.first()?;
        loop {
            let consumer = forward(graph).find(|&id| graph.nodes[id].inputs.contains(&shares))?;
            region.tensors.insert(shares);
            region.add(graph, consumer);
            if is_product(&graph.nodes[consumer]) {
                return Some(region);
            }
            shares = *sweeps(&graph.nodes[consumer])?.outputs.first()?;
        }
    }

    fn add(&mut self, graph: &TrainingGraph, node: usize) {
        self.nodes.push(node);
        self.origins.extend(graph.nodes[node].origin);
    }

    fn take_from_memory(mut self, graph: &mut TrainingGraph) {
        let inside = |node: &Node| node.origin.is_some_and(|origin| self.origins.contains(&origin));
        // Gradients that only its own nodes read; masks of dropout are drawn again.
        let own: Vec<TensorId> = (0..graph.tensors.len() as TensorId)
            .filter(|&id| matches!(graph.tensor(id).role, Role::Gradient | Role::Activation))
            .filter(|id| {
                let mut readers = graph.nodes.iter().filter(|node| node.inputs.contains(id)).peekable();
                let written = graph.nodes.iter().any(|node| inside(node) && node.outputs.contains(id));
                written && readers.peek().is_some() && readers.all(inside)
            })
            .collect();
        self.tensors.extend(own);
        for &tensor in &self.tensors {
            graph.tensors[tensor as usize].bytes = Extent::ZERO;
        }
        // Backward computes the scores again, in the kernel of its first product.
        let scores = self.nodes.iter().map(|&id| &graph.nodes[id]).find(|node| is_product(node));
        let mut again = scores.map_or(Extent::ZERO, |product| product.work.flops);
        for node in graph.nodes.iter_mut().filter(|node| node.phase != Phase::Update) {
            let inside = node.origin.is_some_and(|origin| self.origins.contains(&origin));
            if inside && is_product(node) && node.phase == Phase::Backward {
                node.work.flops += std::mem::replace(&mut again, Extent::ZERO);
            }
            if inside && !is_product(node) {
                node.work.launches = 0;
            }
        }
    }
}

/// The nodes of forward, by place.
fn forward(graph: &TrainingGraph) -> impl Iterator<Item = usize> {
    0..graph.nodes.iter().take_while(|node| node.phase == Phase::Forward).count()
}

fn is_product(node: &Node) -> bool {
    node.work.product.is_some_and(|product| product.of_each_sample)
}

/// A node that may be between the products: a scale, a mask, dropout.
fn sweeps(node: &Node) -> Option<&Node> {
    (node.work.kind == OperatorKind::ElementWise).then_some(node)
}
