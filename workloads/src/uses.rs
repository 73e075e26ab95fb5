//! The writers and the readers of each tensor of a graph, which never change during a run.

use crate::{NodeId, Phase, Role, TensorId, TrainingGraph};

/// The writers and the readers of each tensor.
#[derive(Clone, Debug)]
#[must_use]
pub struct Uses {
    /// Nodes that read, write or release each tensor in the schedule, in order, one range of `nodes` a tensor.
    ranges: Vec<(u32, u32)>,
    nodes: Vec<NodeId>,
    /// Nodes that write each tensor, in order; more than one if it is written in place.
    writers: Vec<Vec<NodeId>>,
    /// The first writer of each tensor, for policies.
    producers: Vec<NodeId>,
    last_forward: Vec<Option<NodeId>>,
    saved: Vec<bool>,
    rematerialisable: Vec<bool>,
}

impl Uses {
    /// Of all tensors of `graph`.
    pub fn new(graph: &TrainingGraph) -> Self {
        let count = graph.tensors.len();
        let mut lists = vec![Vec::new(); count];
        let mut writers = vec![Vec::new(); count];
        let mut last_forward = vec![None; count];
        for (id, node) in (0..).zip(&graph.nodes) {
            for tensor in node.uses() {
                let list: &mut Vec<NodeId> = &mut lists[tensor as usize];
                if list.last() != Some(&id) {
                    list.push(id);
                }
                if node.phase == Phase::Forward {
                    last_forward[tensor as usize] = Some(id);
                }
            }
            for &tensor in &node.outputs {
                writers[tensor as usize].push(id);
            }
        }
        let mut nodes = Vec::new();
        let ranges = lists
            .into_iter()
            .map(|list| {
                let start = nodes.len() as u32;
                nodes.extend(list);
                (start, nodes.len() as u32)
            })
            .collect();
        let mut saved = vec![false; count];
        for tensor in graph.saved() {
            saved[tensor as usize] = true;
        }
        let made = graph.tensors.iter().zip(&writers);
        // A gradient is not: what it was computed from is gone by then.
        let rematerialisable =
            made.map(|(tensor, writers)| tensor.role == Role::Activation && !writers.is_empty()).collect();
        let producers = writers.iter().map(|list: &Vec<NodeId>| list.first().copied().unwrap_or(NodeId::MAX)).collect();
        Self { ranges, nodes, writers, producers, last_forward, saved, rematerialisable }
    }

    /// The nodes that read, write or release `tensor`, in order.
    #[inline]
    pub fn of(&self, tensor: TensorId) -> &[NodeId] {
        let (start, end) = self.ranges[tensor as usize];
        &self.nodes[start as usize..end as usize]
    }

    /// The nodes that write `tensor`, in order.
    pub fn writers(&self, tensor: TensorId) -> &[NodeId] {
        &self.writers[tensor as usize]
    }

    /// The first writer of every tensor; `NodeId::MAX` if no node makes it.
    #[inline]
    pub fn producers(&self) -> &[NodeId] {
        &self.producers
    }

    /// The last forward node that uses `tensor`.
    #[inline]
    pub fn last_forward(&self, tensor: TensorId) -> Option<NodeId> {
        self.last_forward[tensor as usize]
    }

    /// Whether forward makes `tensor` and backward reads it; `false` for an id that is none.
    #[inline]
    pub fn is_saved(&self, tensor: TensorId) -> bool {
        self.saved.get(tensor as usize) == Some(&true)
    }

    /// Whether `tensor` can be computed again.
    #[inline]
    pub fn is_rematerialisable(&self, tensor: TensorId) -> bool {
        self.rematerialisable[tensor as usize]
    }
}
