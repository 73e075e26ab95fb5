//! From grouped computable nodes to kernels that a device can be asked to run.

use std::collections::HashMap;

use haversack_devices::work::OperatorKind;

use super::computable::{Class, ComputableGraph};
use super::fusion::{Grouping, Kernel};
use super::reduction::external_inputs;
use super::{Gradients, Variant};
use crate::autograd::Optimiser;
use crate::network::{FP32, Network};
use crate::shape::Extent;
use crate::training_graph::{Element, Node, NodeWork, Phase, Role, Tensor, TensorId, TrainingGraph};

/// The training graph of `grouping`: one node a kernel, and the tensors that reside in memory.
pub(super) fn emit(
    graph: ComputableGraph,
    grouping: &Grouping,
    network: &Network,
    optimiser: Optimiser,
    gradients: Gradients,
    variant: Variant,
) -> TrainingGraph {
    let mut resident: Vec<Option<TensorId>> = vec![None; graph.tensors.len()];
    let mut emitted = TrainingGraph { name: network.name.clone(), ..TrainingGraph::default() };
    for (id, tensor) in graph.tensors.iter().enumerate() {
        if graph.producer[id].is_none() {
            resident[id] = Some(push_tensor(&mut emitted, tensor.clone()));
        }
    }
    let owners = gradient_owners(&graph);
    let mut updates = Vec::new();
    let mut holders = Holders::default();
    for kernel in &grouping.kernels {
        let Some(&last) = kernel.nodes.last() else { continue };
        let root = &graph.nodes[last as usize];
        let module = &network.nodes[root.origin as usize].module;
        let name = format!("{module}.{}", root.operator);
        let tensor = Tensor { name: name.clone(), ..graph.tensors[root.output as usize].clone() };
        let output = push_tensor(&mut emitted, tensor);
        resident[root.output as usize] = Some(output);
        let inputs: Vec<TensorId> =
            external_inputs(&graph, kernel).into_iter().filter_map(|input| resident[input as usize]).collect();
        let mut work = work_of(&graph, kernel, &emitted, &inputs, output);
        work.single_kernel = variant != Variant::Original;
        let node = Node {
            name,
            phase: root.phase,
            inputs,
            outputs: vec![output],
            releases: Vec::new(),
            origin: None,
            rescales: None,
            saved: Vec::new(),
            work,
        };
        emitted.nodes.push(node);
        if matches!(variant, Variant::Original | Variant::Direct) {
            holders.note(&mut emitted, root.origin);
        }
        if let Some(parameter) = owners[root.output as usize]
            && let Some(weight) = resident_weight(network, parameter, &emitted)
        {
            let phase = if gradients == Gradients::Streamed { Phase::Backward } else { Phase::Update };
            let update = update_node(&mut emitted, weight, output, optimiser, phase);
            match gradients {
                Gradients::Streamed => emitted.nodes.push(update),
                Gradients::Kept => updates.push(update),
            }
        }
    }
    emitted.nodes.extend(updates);
    emitted
}

/// The operations of the network whose temporaries are held.
///
/// An unfused graph is evaluated operation by operation: an operation holds what it computes on the
/// way and releases it when it returns. Fusion dissolves operations into kernels, and with them this.
#[derive(Default)]
struct Holders {
    /// The last node so far of each operation and phase.
    last: HashMap<(u32, Phase), usize>,
}

impl Holders {
    /// The newest node takes over what its operation has held so far, and the output before it.
    fn note(&mut self, emitted: &mut TrainingGraph, origin: u32) {
        let id = emitted.nodes.len() - 1;
        if let Some(before) = self.last.insert((origin, emitted.nodes[id].phase), id) {
            let mut held = std::mem::take(&mut emitted.nodes[before].releases);
            held.extend(&emitted.nodes[before].outputs);
            emitted.nodes[id].releases = held;
        }
    }
}

fn push_tensor(graph: &mut TrainingGraph, tensor: Tensor) -> TensorId {
    graph.tensors.push(tensor);
    (graph.tensors.len() - 1) as TensorId
}

/// For each tensor the parameter whose gradient it is.
fn gradient_owners(graph: &ComputableGraph) -> Vec<Option<usize>> {
    let mut owners = vec![None; graph.tensors.len()];
    for (parameter, gradient) in graph.weight_gradients.iter().enumerate() {
        if let Some(gradient) = gradient {
            owners[*gradient as usize] = Some(parameter);
        }
    }
    owners
}

/// Leaves come first and in the order of the network's storages, so a weight is found by counting.
fn resident_weight(network: &Network, parameter: usize, emitted: &TrainingGraph) -> Option<TensorId> {
    let storage = network.parameters[parameter].storage as usize;
    let leaf = network.storages[..storage].iter().filter(|s| s.role != Role::Activation).count();
    matches!(emitted.tensors.get(leaf)?.role, Role::Parameter { .. }).then_some(leaf as TensorId)
}

fn update_node(
    graph: &mut TrainingGraph,
    weight: TensorId,
    gradient: TensorId,
    optimiser: Optimiser,
    phase: Phase,
) -> Node {
    let name = format!("{}.update", graph.tensor(weight).name);
    let bytes = graph.tensor(weight).bytes;
    let elements = Extent::fixed(bytes.fixed / FP32);
    let (mut inputs, mut outputs) = (vec![weight, gradient], vec![weight]);
    for _ in 0..optimiser.states() {
        let state = Tensor {
            name: format!("{}.state", graph.tensor(weight).name),
            bytes,
            role: Role::OptimiserState,
            element: Element::Float,
        };
        let state = push_tensor(graph, state);
        inputs.push(state);
        outputs.push(state);
    }
    let dram = inputs.iter().chain(&outputs).map(|&t| graph.tensor(t).bytes).sum();
    let work = NodeWork {
        kind: OperatorKind::Optimiser,
        flops: elements * (2 + 4 * optimiser.states()),
        index_translations: Extent::ZERO,
        dram,
        parallelism: elements,
        launches: 1,
        single_kernel: false,
        winograd: false,
        columns: 0,
        precision: None,
        product: None,
    };
    Node { name, phase, inputs, outputs, releases: Vec::new(), saved: Vec::new(), origin: None, rescales: None, work }
}

fn work_of(
    graph: &ComputableGraph,
    kernel: &Kernel,
    emitted: &TrainingGraph,
    inputs: &[TensorId],
    written: TensorId,
) -> NodeWork {
    let members = || kernel.nodes.iter().map(|&id| &graph.nodes[id as usize]);
    let heavy = members().find(|node| matches!(node.class, Class::Asymmetrical | Class::Opaque));
    let kind = match heavy {
        Some(node) => node.kind,
        None if members().all(|node| node.class == Class::Translation) => OperatorKind::Layout,
        None => OperatorKind::ElementWise,
    };
    // A generic kernel computes the place of every element that it touches, once for each shape
    // among its operands: those of one shape share it. A product's own operands are part of its rate.
    let span = members().map(|node| node.parallelism).fold(Extent::ZERO, Extent::max);
    let output = members().next_back().map(|root| graph.elements_of(root.output));
    let operands = external_inputs(graph, kernel).into_iter().map(|input| graph.elements_of(input));
    let mut shapes: Vec<Extent> = operands.chain(output).collect();
    shapes.sort_unstable_by_key(|extent| (extent.per_sample, extent.fixed));
    shapes.dedup();
    let layouts = match heavy {
        Some(node) if node.class == Class::Opaque => 2,
        Some(node) if node.kind == OperatorKind::Reduction => 1,
        // Products and the copies laid out for them are kernels written by hand, which move whole rows.
        Some(_) => 0,
        None => shapes.len() as u64,
    };
    NodeWork {
        kind,
        flops: members().map(|node| node.flops).sum(),
        index_translations: span * layouts,
        dram: inputs.iter().chain([&written]).map(|&t| emitted.tensor(t).bytes).sum(),
        parallelism: span,
        launches: 1,
        single_kernel: false,
        winograd: false,
        columns: 0,
        precision: None,
        product: None,
    }
}
