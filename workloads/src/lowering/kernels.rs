//! From grouped computable nodes to kernels that a device can run.

use std::collections::HashMap;

use haversack_devices::OperatorKind;

use super::computable::{Class, ComputableGraph};
use super::fusion::{Kernel, external_inputs};
use super::{Gradients, Variant};
use crate::graph_writer::GraphWriter;
use crate::{Extent, MapKind, Network, NodeWork, Optimiser, Phase, Tensor, TensorId, TrainingGraph};

/// The training graph of `kernels`: one node a kernel, and the tensors that reside in memory.
pub(super) fn emit(
    graph: &ComputableGraph,
    kernels: &[Kernel],
    network: &Network,
    optimiser: Optimiser,
    gradients: Gradients,
    variant: Variant,
) -> TrainingGraph {
    let mut writer = GraphWriter::new(&network.name);
    let mut resident: Vec<Option<TensorId>> = vec![None; graph.tensors.len()];
    for (id, tensor) in graph.tensors.iter().enumerate() {
        if graph.producer[id].is_none() && !graph.joined.contains_key(&(id as TensorId)) {
            resident[id] = Some(writer.tensor(tensor.clone()));
        }
    }
    let weights = weights_by_gradient(graph);
    let mut updates = Vec::new();
    let mut holders = Holders::default();
    for kernel in kernels {
        let Some(&last) = kernel.last() else { continue };
        let root = &graph.nodes[last as usize];
        let origin = &network.nodes[root.origin as usize];
        let name = format!("{}.{}", origin.module, root.operator);
        let tensor = Tensor { name: name.clone(), ..graph.tensors[root.output as usize].clone() };
        let output = writer.tensor(tensor);
        resident[root.output as usize] = Some(output);
        let read = external_inputs(graph, kernel);
        let work = NodeWork { single_kernel: variant != Variant::Original, ..work_of(graph, kernel, &read) };
        let inputs = read.into_iter().filter_map(|input| resident[input as usize]).collect();
        (writer.phase, writer.makes) = (root.phase, MapKind::made_by(&origin.op));
        writer.write(name, inputs, vec![output], work);
        if matches!(variant, Variant::Original | Variant::Direct) {
            holders.note(&mut writer.graph, root.origin);
        }
        if let Some(weight) = weights.get(&root.output).and_then(|&weight| resident[weight as usize]) {
            writer.phase = if gradients == Gradients::Streamed { Phase::Backward } else { Phase::Update };
            updates.push(writer.update(weight, output, optimiser.states()));
            if gradients == Gradients::Streamed {
                writer.graph.nodes.append(&mut updates);
            }
        }
    }
    writer.graph.nodes.extend(updates);
    writer.graph
}

/// The operations of the network whose temporaries are still alive.
///
/// An unfused graph is evaluated operation by operation: an operation keeps its intermediate results and releases them
/// when it returns. Fusion dissolves operations into kernels, which have no such temporaries.
#[derive(Default)]
struct Holders {
    /// The last node so far of each operation and phase.
    last: HashMap<(u32, Phase), usize>,
}

impl Holders {
    /// The newest node takes over the temporaries that its operation has kept so far, and the output before it.
    fn note(&mut self, emitted: &mut TrainingGraph, origin: u32) {
        let id = emitted.nodes.len() - 1;
        if let Some(before) = self.last.insert((origin, emitted.nodes[id].phase), id) {
            let mut held = std::mem::take(&mut emitted.nodes[before].releases);
            held.extend(&emitted.nodes[before].outputs);
            emitted.nodes[id].releases = held;
        }
    }
}

/// The weight of each tensor that is the gradient of one.
fn weights_by_gradient(graph: &ComputableGraph) -> HashMap<TensorId, TensorId> {
    let pairs = graph.weight_gradients.iter().zip(&graph.weights);
    pairs.filter_map(|(gradient, &weight)| gradient.map(|gradient| (gradient, weight))).collect()
}

/// The work of `kernel`, which reads the tensors `read`.
fn work_of(graph: &ComputableGraph, kernel: &Kernel, read: &[TensorId]) -> NodeWork {
    let members = || kernel.iter().map(|&id| &graph.nodes[id as usize]);
    let heavy = members().find(|node| matches!(node.class, Class::Asymmetrical | Class::Opaque));
    let kind = match heavy {
        Some(node) => node.kind,
        None if members().all(|node| node.class == Class::Translation) => OperatorKind::Layout,
        None => OperatorKind::ElementWise,
    };
    // A generic kernel computes the place of every element that it touches, once for each shape
    // among its operands: those of one shape share it. A product's own operands are part of its rate.
    let span = members().map(|node| node.parallelism).fold(Extent::ZERO, Extent::max);
    let layouts = match heavy {
        Some(node) if node.class == Class::Opaque => 2,
        Some(node) if node.kind == OperatorKind::Reduction => 1,
        // Products and the copies laid out for them are kernels written by hand, which move whole rows.
        Some(_) => 0,
        None => {
            let output = members().next_back().map(|root| root.output);
            let operands = read.iter().copied().chain(output).map(|operand| graph.elements_of(operand));
            let mut shapes: Vec<Extent> = operands.collect();
            shapes.sort_unstable_by_key(|extent| (extent.per_sample, extent.fixed));
            shapes.dedup();
            shapes.len() as u64
        }
    };
    let flops = members().map(|node| node.flops).sum();
    NodeWork { index_translations: span * layouts, ..NodeWork::computing(kind, flops, span) }
}
