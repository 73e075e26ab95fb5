//! Operator fusion by the paper's three classes (section 3.2.1).
//!
//! Neighbouring symmetrical operations become one kernel; an asymmetrical one takes the symmetrical ones after it, but
//! never a second asymmetrical one; opaque ones stay alone. A tensor that must be in memory ends a kernel: one that
//! more than one operation reads, or a weight's gradient.
//!
//! The paper calls operations neighbours that an edge joins, and does not state in which direction an asymmetrical one
//! takes others. Here the reader decides, as in the authors' public code (`Operator::fuse` of `src/ops.rs`): a map
//! takes the producers of its operands, while reductions and products read buffers. A product reads an element once for
//! every tile of its outputs, so that its producer would be computed as often, which condition (ii) of section 3.2.2 is
//! there to prevent.
//!
//! Index translation covers operations that only view another tensor's elements: broadcasts and cuts here, and, from
//! *Direct* on, transpositions, permutations and concatenations, which then need no operation: the reader of a
//! concatenation reads its parts. A reshape never was an operation. Nothing else limits a kernel: of OpenCL's limits,
//! only the one on arguments could matter, 1,024 bytes or 128 buffers in a device of the full profile
//! (`CL_DEVICE_MAX_PARAMETER_SIZE`), and no kernel here comes near it.
//!
//! Subgraph reduction (section 3.2.2): a fused operation that several kernels read is computed
//! again inside each of them, if that is cheap. The conditions are the paper's: (i) symmetrical,
//! (ii) variadic with fewer than `K_W` inputs, or (iii) monadic with fewer than `K_H` operations. As
//! in fusion, only symmetrical readers can compute it where they read it.

use std::collections::HashSet;

use super::computable::{Class, ComputableGraph};
use crate::TensorId;

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
        // A tensor that is broadcast or cut has to exist in its own shape first.
        (_, Class::Translation) => false,
        (Class::Translation, _) => true,
        (Class::Symmetrical | Class::Asymmetrical, _) => takes(graph, consumer, graph.nodes[producer as usize].output),
    }
}

/// Whether `reader` can compute `tensor` for itself: a symmetrical operation of the same shape, and not one that reads
/// it as a part of a concatenation.
fn takes(graph: &ComputableGraph, reader: u32, tensor: TensorId) -> bool {
    let reader = &graph.nodes[reader as usize];
    reader.class == Class::Symmetrical && graph.elements_of(reader.output) == graph.elements_of(tensor)
}

/// Inputs from which on a variadic operation is too heavy on bandwidth to be computed again.
const K_W: usize = 5;
/// Operations from which on a monadic operation is too heavy to be computed again.
const K_H: usize = 5;

/// Removes the kernels that their consumers can compute for themselves.
pub(super) fn reduce(graph: &ComputableGraph, kernels: Vec<Kernel>) -> Vec<Kernel> {
    let consumers = graph.consumers();
    // The nodes that stand in for a removed tensor, by the tensor.
    let mut inlined: Vec<Option<Kernel>> = vec![None; graph.tensors.len()];
    let mut kept = Vec::with_capacity(kernels.len());
    for kernel in kernels {
        let kernel = with_inlined(graph, kernel, &inlined);
        let Some(&last) = kernel.last() else { continue };
        let output = graph.nodes[last as usize].output;
        let readers = &consumers[output as usize];
        let removable = readers.len() > 1
            && !graph.is_result(output)
            && readers.iter().all(|&reader| takes(graph, reader, output))
            && is_cheap(graph, &kernel);
        if removable {
            inlined[output as usize] = Some(kernel);
        } else {
            kept.push(kernel);
        }
    }
    kept
}

fn is_cheap(graph: &ComputableGraph, kernel: &Kernel) -> bool {
    let symmetrical = |&id: &u32| matches!(graph.nodes[id as usize].class, Class::Symmetrical | Class::Translation);
    if !kernel.iter().all(symmetrical) {
        return false;
    }
    match external_inputs(graph, kernel).len() {
        0 => false,
        1 => kernel.len() < K_H,
        inputs => inputs < K_W,
    }
}

/// The tensors that the kernel reads and does not make, each once, in order of first reading.
pub(super) fn external_inputs(graph: &ComputableGraph, kernel: &Kernel) -> Vec<u32> {
    let own = |input: u32| graph.producer[input as usize].is_some_and(|maker| kernel.binary_search(&maker).is_ok());
    let mut seen = HashSet::new();
    let read = kernel.iter().flat_map(|&id| &graph.nodes[id as usize].inputs).copied();
    read.filter(|&input| !own(input) && seen.insert(input)).collect()
}

/// The kernel with the nodes of every removed tensor that it reads.
fn with_inlined(graph: &ComputableGraph, mut kernel: Kernel, inlined: &[Option<Kernel>]) -> Kernel {
    let inputs = external_inputs(graph, &kernel);
    kernel.extend(inputs.into_iter().filter_map(|input| inlined[input as usize].as_ref()).flatten());
    kernel.sort_unstable();
    kernel.dedup();
    kernel
}
