//! Subgraph reduction (section 3.2.2): a fused operation that several kernels read is computed
//! again inside each of them, where that is cheap.
//!
//! The conditions are the paper's: (i) symmetrical, (ii) variadic with fewer than `K_W` inputs, or
//! (iii) monadic with fewer than `K_H` operations. As in fusion, only symmetrical readers can compute
//! it where they read it.

use super::computable::{Class, ComputableGraph};
use super::fusion::{Grouping, Kernel};

/// Inputs from which on a variadic operation is too heavy on bandwidth to be computed again.
const K_W: usize = 5;
/// Operations from which on a monadic operation is too heavy to be computed again.
const K_H: usize = 5;

/// Removes the kernels that their consumers can compute for themselves.
pub(super) fn reduce(graph: &ComputableGraph, grouping: Grouping) -> Grouping {
    let consumers = graph.consumers();
    // The nodes that stand in for a removed tensor, by the tensor.
    let mut inlined: Vec<Option<Vec<u32>>> = vec![None; graph.tensors.len()];
    let mut kept = Vec::with_capacity(grouping.kernels.len());
    for kernel in grouping.kernels {
        let kernel = with_inlined(graph, kernel, &inlined);
        let Some(&last) = kernel.nodes.last() else { continue };
        let output = graph.nodes[last as usize].output;
        let readers = &consumers[output as usize];
        let removable = readers.len() > 1
            && !graph.is_result(output)
            && readers.iter().all(|&reader| graph.nodes[reader as usize].class == Class::Symmetrical)
            && is_cheap(graph, &kernel);
        if removable {
            inlined[output as usize] = Some(kernel.nodes);
        } else {
            kept.push(kernel);
        }
    }
    Grouping { kernels: kept }
}

fn is_cheap(graph: &ComputableGraph, kernel: &Kernel) -> bool {
    let symmetrical = |&id: &u32| matches!(graph.nodes[id as usize].class, Class::Symmetrical | Class::Translation);
    if !kernel.nodes.iter().all(symmetrical) {
        return false;
    }
    match external_inputs(graph, kernel).len() {
        0 => false,
        1 => kernel.nodes.len() < K_H,
        inputs => inputs < K_W,
    }
}

/// The tensors that the kernel reads and does not make, each once, in order of first reading.
pub(super) fn external_inputs(graph: &ComputableGraph, kernel: &Kernel) -> Vec<u32> {
    let mut inputs: Vec<u32> = Vec::new();
    for &id in &kernel.nodes {
        for &input in &graph.nodes[id as usize].inputs {
            let own = graph.producer[input as usize].is_some_and(|p| kernel.nodes.binary_search(&p).is_ok());
            if !own && !inputs.contains(&input) {
                inputs.push(input);
            }
        }
    }
    inputs
}

/// The kernel with the nodes of every removed tensor that it reads.
fn with_inlined(graph: &ComputableGraph, kernel: Kernel, inlined: &[Option<Vec<u32>>]) -> Kernel {
    let mut nodes = kernel.nodes.clone();
    for input in external_inputs(graph, &kernel) {
        if let Some(stand_in) = &inlined[input as usize] {
            nodes.extend(stand_in);
        }
    }
    nodes.sort_unstable();
    nodes.dedup();
    Kernel { nodes }
}
