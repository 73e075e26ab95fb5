//! Operator fusion by the paper's three classes (section 3.2.1).
//!
//! Neighbouring symmetrical operations become one kernel; an asymmetrical one takes the symmetrical
//! ones after it, but never a second asymmetrical one; opaque ones stay alone. An asymmetrical
//! operation reads an element in several places or in another order than its inputs make it, so
//! those have to reside in memory first, as has a tensor that more than one operation reads, or
//! that is a weight's gradient: each ends a kernel.

use super::computable::{Class, ComputableGraph};

/// The nodes that one kernel runs, in order; the last makes its output.
pub(super) type Kernel = Vec<u32>;

/// A kernel to which the reader of its output may still be added.
#[derive(Default)]
struct Growing {
    nodes: Kernel,
    asymmetrical: usize,
}

/// Fuses the nodes of `graph` into kernels in an order of execution.
pub(super) fn fuse(graph: &ComputableGraph) -> Vec<Kernel> {
    let consumers = graph.consumers();
    // The kernel that each node ends, while it ends one.
    let mut ending: Vec<Option<Growing>> = Vec::with_capacity(graph.nodes.len());
    for (id, node) in (0u32..).zip(&graph.nodes) {
        let mut kernel = Growing { asymmetrical: usize::from(node.class == Class::Asymmetrical), ..Growing::default() };
        for &input in &node.inputs {
            let Some(producer) = graph.producer[input as usize] else { continue };
            if consumers[input as usize].len() > 1 || graph.is_result(input) || !may_precede(graph, producer, id) {
                continue;
            }
            let fits = |earlier: &mut Growing| kernel.asymmetrical + earlier.asymmetrical <= 1;
            if let Some(mut earlier) = ending[producer as usize].take_if(fits) {
                // The longer list takes the shorter, so that a long chain of operations stays linear.
                if earlier.nodes.len() > kernel.nodes.len() {
                    std::mem::swap(&mut earlier.nodes, &mut kernel.nodes);
                }
                kernel.nodes.extend(earlier.nodes);
                kernel.asymmetrical += earlier.asymmetrical;
            }
        }
        kernel.nodes.push(id);
        ending.push(Some(kernel));
    }
    let mut kernels: Vec<Kernel> = ending.into_iter().flatten().map(|kernel| kernel.nodes).collect();
    kernels.iter_mut().for_each(|nodes| nodes.sort_unstable());
    kernels
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
