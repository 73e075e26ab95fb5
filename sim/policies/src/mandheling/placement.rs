//! From a training graph to the row of operators that section 3.3 schedules, and back.

use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::work::{OperatorKind, Product};
use haversack_workloads::training_graph::Node;
use haversack_workloads::{NodeId, Role, TensorId, TrainingGraph};

use super::coschedule::{apart, assign};
use super::factors::Factors;
use super::splitting::{self, THRESHOLD};
use crate::setting::{DspProfile, Setting};

/// The operators in a row, in the order of execution.
///
/// Two kinds of nodes are not in it. What launches no kernel is free anywhere and runs where the one before it does.
/// A rescaling of the adaptive kind runs on the CPU, and rarely: it cuts a subgraph of the DSP in one of so many
/// batches, and its share of the two crossings that this takes is part of the time that the operator before it takes
/// on the DSP.
#[derive(Debug, Default)]
pub(super) struct Row {
    nodes: Vec<usize>,
    cpu: Vec<Nanos>,
    dsp: Vec<Option<Nanos>>,
    switch: Vec<Nanos>,
    unfriendly: Vec<bool>,
    /// Samples of the parts that each is split into on the DSP.
    parts: Vec<u64>,
}

/// What the row is made for.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// Whether products are split.
    pub(super) splitting: bool,
    /// Who decides about rescaling, where that is adaptive.
    pub(super) factors: Option<&'a Factors>,
}

/// Which nodes run on the DSP, and in parts of how many samples.
pub(super) struct Placement {
    pub(super) on_dsp: Vec<bool>,
    pub(super) split: Vec<u64>,
}

impl Row {
    pub(super) fn new(setting: &Setting<'_>, dsp: &dyn DspProfile, wanted: Wanted<'_>) -> Self {
        let graph = setting.graph;
        let mut row = Self::default();
        for (place, node) in graph.nodes.iter().enumerate() {
            if node.work.launches == 0 {
                continue;
            }
            if let Some(turns) = wanted.turns(node) {
                let there = node.inputs.iter().map(|&input| crossing_for(graph, node, input, setting.batch)).sum();
                let back = node.inputs.iter().map(|&input| graph.tensor(input).bytes.at(setting.batch)).sum();
                row.interrupted(dsp.crossing(Bytes(there)) + dsp.crossing(Bytes(back)), turns);
                continue;
            }
            let parts = wanted.splitting.then(|| parts(node, place as NodeId, setting.batch, dsp)).flatten();
            let whole = || dsp.time(place as NodeId, setting.batch);
            row.cpu.push(setting.times().get(place).copied().unwrap_or_default());
            row.dsp.push(parts.map(|parts| parts.time).or_else(whole));
            row.switch.push(dsp.crossing(carried(graph, row.nodes.last().copied(), place, setting.batch)));
            row.unfriendly.push(node.work.kind == OperatorKind::Layout);
            row.parts.push(parts.map_or(0, |parts| parts.samples));
            row.nodes.push(place);
        }
        row
    }

    /// The last operator is followed by a rescaling in one of `turns` batches, around which the CPU takes over.
    fn interrupted(&mut self, crossings: Nanos, turns: u64) {
        if let Some(Some(time)) = self.dsp.last_mut() {
            *time += Nanos(crossings.0 / turns.max(1));
        }
    }

    /// Where each of `nodes` nodes runs, by equations 1 to 3 or each where it is at home.
    pub(super) fn place(&self, graph: &TrainingGraph, coscheduling: bool) -> Placement {
        let there = match coscheduling {
            true => assign(&self.cpu, &self.dsp, &self.switch),
            false => apart(&self.dsp, &self.unfriendly),
        };
        let mut placement = Placement { on_dsp: vec![false; graph.nodes.len()], split: vec![0; graph.nodes.len()] };
        for ((&node, &there), &parts) in self.nodes.iter().zip(&there).zip(&self.parts) {
            placement.on_dsp[node] = there;
            placement.split[node] = if there { parts } else { 0 };
        }
        let mut before = false;
        for (on_dsp, node) in placement.on_dsp.iter_mut().zip(&graph.nodes) {
            match node.work.launches {
                0 => *on_dsp = before,
                _ if node.rescales.is_none() => before = *on_dsp,
                _ => {}
            }
        }
        placement
    }
}

impl Wanted<'_> {
    /// For a rescaling of the adaptive kind, the batches of which it runs in one.
    pub(super) fn turns(&self, node: &Node) -> Option<u64> {
        Some(self.factors?.period(node.rescales?))
    }
}

fn parts(node: &Node, id: NodeId, batch: u64, dsp: &dyn DspProfile) -> Option<splitting::Parts> {
    node.work.product.filter(Product::is_dense)?;
    splitting::split(|samples| dsp.time(id, samples), batch, dsp.accumulation(id), THRESHOLD)
}

/// Bytes that cross before the node at `place` where the operator at `before` ran on the other processor.
///
/// Equations 1 and 2 know only that neighbour: what it made, or what was made of that since, crosses. Where the node
/// reads nothing of it, all that was made for it in this iteration lies on one side or the other, and counts.
fn carried(graph: &TrainingGraph, before: Option<usize>, place: usize, batch: u64) -> Bytes {
    let since = &graph.nodes[before.unwrap_or(place)..place];
    let node = &graph.nodes[place];
    let inputs = &node.inputs;
    let bytes = |tensor: TensorId| crossing_for(graph, node, tensor, batch);
    let fresh = || inputs.iter().copied().filter(|input| since.iter().any(|node| node.outputs.contains(input)));
    if fresh().next().is_some() {
        return Bytes(fresh().map(bytes).sum());
    }
    let made = |tensor: &TensorId| {
        matches!(graph.tensor(*tensor).role, Role::Input | Role::Activation | Role::Gradient | Role::ParameterGradient)
    };
    Bytes(inputs.iter().copied().filter(made).map(bytes).sum())
}

/// The bytes of `input` that cross for `node`: what is rescaled is there as the sums of 32 bits that the node leaves.
fn crossing_for(graph: &TrainingGraph, node: &Node, input: TensorId, batch: u64) -> u64 {
    let bytes = |tensor: TensorId| graph.tensor(tensor).bytes.at(batch);
    let sums = || node.outputs.iter().copied().filter(|&output| output != input).map(bytes).sum();
    if node.rescales == Some(input) { sums() } else { bytes(input) }
}
