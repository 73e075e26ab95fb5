//! Operator fusion by the paper's three classes (section 3.2.1).
//!
//! Neighbouring symmetrical operations become one kernel; an asymmetrical one takes the symmetrical
//! ones after it, but never a second asymmetrical one; opaque ones stay alone. An asymmetrical
//! operation reads an element in several places or in another order than its inputs make it, so
//! those have to reside in memory first, as has a tensor that more than one operation reads, or
//! that is a weight's gradient: each ends a kernel.

use super::computable::{Class, ComputableGraph};

/// One kernel: the nodes that it runs, the last of which makes its output.
#[derive(Clone, Debug, Default)]
pub(super) struct Kernel {
    /// Nodes, in order.
    pub(super) nodes: Vec<u32>,
}

/// The nodes of a computable graph, grouped into kernels in an order of execution.
#[derive(Clone, Debug)]
pub(super) struct Grouping {
    /// All kernels.
    pub(super) kernels: Vec<Kernel>,
}

impl Grouping {
    /// Every node a kernel of its own.
    pub(super) fn singles(graph: &ComputableGraph) -> Self {
        Self { kernels: (0..graph.nodes.len() as u32).map(|id| Kernel { nodes: vec![id] }).collect() }
    }
}

/// Fuses the nodes of `graph`.
pub(super) fn fuse(graph: &ComputableGraph) -> Grouping {
    let consumers = graph.consumers();
    // The kernel that each node ends, while it ends one.
    let mut ending: Vec<Option<Kernel>> = Vec::with_capacity(graph.nodes.len());
    for (id, node) in (0u32..).zip(&graph.nodes) {
        let mut kernel = Kernel::default();
        let mut asymmetrical = usize::from(node.class == Class::Asymmetrical);
        for &input in &node.inputs {
            let Some(producer) = graph.producer[input as usize] else { continue };
            if consumers[input as usize].len() > 1 || graph.is_result(input) || !may_precede(graph, producer, id) {
                continue;
            }
            let Some(earlier) = ending[producer as usize].take() else { continue };
            let more = count_asymmetrical(graph, &earlier);
            if asymmetrical + more > 1 {
                ending[producer as usize] = Some(earlier);
                continue;
            }
            asymmetrical += more;
            kernel.nodes.extend(earlier.nodes);
        }
        kernel.nodes.push(id);
        kernel.nodes.sort_unstable();
        ending.push(Some(kernel));
    }
    Grouping { kernels: ending.into_iter().flatten().collect() }
}

/// Whether the class of `producer` lets it run in one kernel with its only consumer.
fn may_precede(graph: &ComputableGraph, producer: u32, consumer: u32) -> bool {
    match (graph.nodes[producer as usize].class, graph.nodes[consumer as usize].class) {
        (Class::Opaque, _) | (_, Class::Opaque) => false,
        // What is broadcast or cut has to exist in its own shape first.
        (_, Class::Translation) => false,
        (Class::Translation, _) => true,
        (Class::Symmetrical | Class::Asymmetrical, after) => after == Class::Symmetrical,
    }
}

fn count_asymmetrical(graph: &ComputableGraph, kernel: &Kernel) -> usize {
    kernel.nodes.iter().filter(|&&id| graph.nodes[id as usize].class == Class::Asymmetrical).count()
}
