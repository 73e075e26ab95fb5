//! Which operators run on the DSP: from a training graph to the row of operators that section 3.3 schedules and back, by
//! dynamic programming over the order of execution or by the scheme that the paper calls intuitive; and into which parts a
//! product's batch is split there (section 3.5).
//!
//! What an iteration takes on two processors with memory spaces of their own, and a placement that is better by it.
//!
//! Equations 1 to 3 know of a crossing only what the operator before has made. A map that forward saves crosses again for
//! whichever side reads it in backward, and what lies on both sides crosses no more: as the executor does it.

use haversack_devices::{Bytes, Nanos, OperatorKind, Product};
use haversack_workloads::{Node, NodeId, Role, TensorId, TrainingGraph};

use super::factors::Factors;
use crate::{DspProfile, Setting};

/// The operators in a row, in the order of execution.
///
/// Two kinds of nodes are not in it. What launches no kernel is free anywhere and runs where the one before it does.
/// A rescaling of the adaptive kind runs on the CPU, and rarely: it cuts a subgraph of the DSP in one of so many
/// batches, and its share of the two crossings that this takes is part of the time that the operator before it takes
/// on the DSP.
#[derive(Debug, Default)]
pub(super) struct OperatorRow {
    nodes: Vec<usize>,
    cpu: Vec<Nanos>,
    /// Nothing where the DSP lacks it.
    pub(super) dsp: Vec<Option<Nanos>>,
    switch: Vec<Nanos>,
    unfriendly: Vec<bool>,
    /// Samples of the parts that each is split into on the DSP.
    parts: Vec<u64>,
    /// What rescalings after each take of an iteration where it runs on the DSP: to the CPU, and back.
    interruptions: Vec<[Nanos; 2]>,
    /// Whether scale factors are taken anew as seldom as they change.
    seldom: bool,
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

impl OperatorRow {
    pub(super) fn new(setting: &Setting<'_>, dsp: &dyn DspProfile, wanted: Wanted<'_>) -> Self {
        let graph = setting.graph;
        let mut row = Self { seldom: wanted.factors.is_some(), ..Self::default() };
        for (place, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.work.launches > 0) {
            if let Some(turns) = wanted.turns(node) {
                let there = node.inputs.iter().map(|&input| crossing_for(graph, node, input, setting.batch)).sum();
                let back = node.inputs.iter().map(|&input| graph.tensor(input).bytes.at(setting.batch)).sum();
                let crossings = [there, back].map(|bytes| dsp.crossing(Bytes(bytes)));
                row.interrupted(crossings.map(|crossing| Nanos(crossing.0 / turns.max(1))));
                continue;
            }
            let parts = wanted.splitting.then(|| parts(node, place as NodeId, setting.batch, dsp)).flatten();
            let whole = || dsp.time(place as NodeId, setting.batch);
            row.cpu.push(setting.times().get(place).copied().unwrap_or_default());
            row.dsp.push(parts.map(|parts| parts.time).or_else(whole));
            row.switch.push(dsp.crossing(carried(graph, row.nodes.last().copied(), place, setting.batch)));
            row.unfriendly.push(node.work.kind == OperatorKind::Layout);
            row.parts.push(parts.map_or(0, |parts| parts.samples));
            row.interruptions.push([Nanos::ZERO; 2]);
            row.nodes.push(place);
        }
        row
    }

    /// The last operator is followed by a rescaling on the CPU now and then; its share of the way there and of that back.
    fn interrupted(&mut self, shares: [Nanos; 2]) {
        if let Some(interruption) = self.interruptions.last_mut() {
            interruption.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
        }
    }

    /// Where each node runs: so that the whole takes least, or each where it is at home.
    pub(super) fn place(&self, setting: &Setting<'_>, dsp: &dyn DspProfile, coscheduling: bool) -> Placement {
        let walk = Walk { graph: setting.graph, batch: setting.batch, dsp, row: self };
        let there = match coscheduling {
            true => walk.improved([
                assign(&self.cpu, &self.interrupted_dsp(), &self.switch),
                vec![false; self.nodes.len()],
                self.dsp.iter().map(Option::is_some).collect(),
            ]),
            false => apart(&self.dsp, &self.unfriendly),
        };
        let mut split = vec![0; setting.graph.nodes.len()];
        for ((&node, &there), &parts) in self.nodes.iter().zip(&there).zip(&self.parts) {
            split[node] = if there { parts } else { 0 };
        }
        Placement { on_dsp: self.by_node(setting.graph, &there), split }
    }

    /// Which nodes the DSP runs where it runs those operators of the row that are `there`.
    pub(super) fn by_node(&self, graph: &TrainingGraph, there: &[bool]) -> Vec<bool> {
        let mut on_dsp = vec![false; graph.nodes.len()];
        for (&node, &there) in self.nodes.iter().zip(there) {
            on_dsp[node] = there;
        }
        let mut before = false;
        for (on_dsp, node) in on_dsp.iter_mut().zip(&graph.nodes) {
            match node.work.launches {
                0 => *on_dsp = before,
                _ if node.rescales.is_none() => before = *on_dsp,
                _ => {}
            }
        }
        on_dsp
    }

    /// What operators take on the DSP with both ways of the rescalings that follow.
    fn interrupted_dsp(&self) -> Vec<Option<Nanos>> {
        let times = self.dsp.iter().zip(&self.interruptions);
        times.map(|(time, &[there, back])| time.map(|time| time + there + back)).collect()
    }

    /// What the operators take, without what crosses in every iteration, where the DSP runs those that are `there`.
    pub(super) fn computing(&self, there: &[bool]) -> Nanos {
        let time = |place: usize| {
            let on_dsp = self.dsp[place].filter(|_| there[place])?;
            let [away, back] = self.interruptions[place];
            // Where the CPU goes on, what is rescaled would have come to it anyhow.
            let goes_on = there.get(place + 1).is_some_and(|&there| there);
            Some(on_dsp + if goes_on { away + back } else { Nanos::ZERO })
        };
        (0..there.len()).map(|place| time(place).unwrap_or(self.cpu[place])).sum()
    }

    /// Whether most iterations pass over `node`: what takes a scale anew, where that is seldom.
    pub(super) fn passes_over(&self, node: &Node) -> bool {
        self.seldom && node.rescales.is_some()
    }
}

impl Wanted<'_> {
    /// For a rescaling of the adaptive kind, the batches of which it runs in one.
    pub(super) fn turns(&self, node: &Node) -> Option<u64> {
        Some(self.factors?.period(node.rescales?))
    }
}

fn parts(node: &Node, id: NodeId, batch: u64, dsp: &dyn DspProfile) -> Option<Parts> {
    node.work.product.filter(Product::is_dense)?;
    split(|samples| dsp.time(id, samples), batch, dsp.accumulation(id), THRESHOLD)
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
pub(super) fn crossing_for(graph: &TrainingGraph, node: &Node, input: TensorId, batch: u64) -> u64 {
    let bytes = |tensor: TensorId| graph.tensor(tensor).bytes.at(batch);
    let sums = || node.outputs.iter().copied().filter(|&output| output != input).map(bytes).sum();
    if node.rescales == Some(input) { sums() } else { bytes(input) }
}

/// What cannot be reached; no sum of times comes near it.
const NEVER: Nanos = Nanos::MAX;

/// Which operators of an execution order run on the DSP, so that the whole takes least: equations 1 to 3, exactly.
///
/// Operator `i` takes `cpu[i]` or `dsp[i]`, nothing where the DSP has no such operator, and `switch[i]` more where the
/// operator before it ran on the other processor. The first operator comes without a crossing, as in the paper. Of
/// equal times, staying on a processor wins over crossing, and of the two ends the DSP's, which takes less energy.
/// Linear in the number of operators; the slices are of one length.
pub fn assign(cpu: &[Nanos], dsp: &[Option<Nanos>], switch: &[Nanos]) -> Vec<bool> {
    // Whether the best way to end with operator i on the CPU, or on the DSP, had the one before on the DSP.
    let mut before: Vec<[bool; 2]> = Vec::with_capacity(cpu.len());
    let mut least = [Nanos::ZERO; 2];
    for ((&on_cpu, &on_dsp), &crossing) in cpu.iter().zip(dsp).zip(switch) {
        let crossing = if before.is_empty() { Nanos::ZERO } else { crossing };
        let [cpu_then, dsp_then] = least;
        let to_cpu = plus(dsp_then, crossing) < cpu_then;
        let to_dsp = dsp_then <= plus(cpu_then, crossing);
        before.push([to_cpu, to_dsp]);
        let at_cpu = if to_cpu { plus(dsp_then, crossing) } else { cpu_then };
        let at_dsp = if to_dsp { dsp_then } else { plus(cpu_then, crossing) };
        least = [plus(at_cpu, on_cpu), plus(at_dsp, on_dsp.unwrap_or(NEVER))];
    }
    let mut here = least[1] <= least[0] && least[1] < NEVER;
    let mut on_dsp = vec![false; before.len()];
    for (place, came_from) in on_dsp.iter_mut().zip(&before).rev() {
        *place = here;
        here = came_from[usize::from(here)];
    }
    on_dsp
}

/// The scheme without the technique: what the DSP has an operator for and is not `unfriendly` to it runs there, the
/// rest on the CPU, neighbours together, whatever the crossings cost.
pub fn apart(dsp: &[Option<Nanos>], unfriendly: &[bool]) -> Vec<bool> {
    dsp.iter().zip(unfriendly).map(|(time, &unfriendly)| time.is_some() && !unfriendly).collect()
}

fn plus(one: Nanos, other: Nanos) -> Nanos {
    Nanos(one.0.saturating_add(other.0))
}

/// By how much the latency of a sample may exceed that of a smaller batch before an operator counts as abnormal.
const THRESHOLD: f64 = 1.2;

/// A batch in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Samples of each; the last one has what is left.
    pub samples: u64,
    /// What all take, sums included.
    pub time: Nanos,
}

/// The parts in which a batch of `batch` samples takes least, where the operator is abnormal as a whole.
///
/// `profile` gives the operator's latency for so many samples and is asked at powers of two below `batch`; adding the
/// results of one more part takes `accumulation` (equation 4, where all parts have one scale). An operator is abnormal
/// where a sample takes more than `threshold` times what it takes in a smaller batch. Nothing where it is normal, the
/// DSP does not run it, or no parts take less than the whole. Of equal times the larger parts win.
pub fn split(profile: impl Fn(u64) -> Option<Nanos>, batch: u64, accumulation: Nanos, threshold: f64) -> Option<Parts> {
    let whole = profile(batch)?;
    let mut smaller = Vec::new();
    let mut samples = 1;
    while samples < batch {
        smaller.push((samples, profile(samples)?));
        samples *= 2;
    }
    let each = |time: Nanos, samples: u64| time.0 as f64 / samples as f64;
    let normal = smaller.iter().map(|&(samples, time)| each(time, samples)).min_by(f64::total_cmp)?;
    if each(whole, batch) <= threshold * normal {
        return None;
    }
    let in_parts = |&(samples, time): &(u64, Nanos)| {
        let (full, rest) = (batch / samples, batch % samples);
        let last = if rest > 0 { profile(rest)? } else { Nanos::ZERO };
        let sums = full + u64::from(rest > 0) - 1;
        Some(Parts { samples, time: time * full + last + accumulation * sums })
    };
    // The first of equals is the least.
    let best = smaller.iter().rev().filter_map(in_parts).min_by_key(|parts| parts.time)?;
    (best.time < whole).then_some(best)
}

/// How often a placement is gone through for something better.
const SWEEPS: usize = 4;

/// An iteration of a graph whose operators stand in a row.
pub(super) struct Walk<'a> {
    pub(super) graph: &'a TrainingGraph,
    pub(super) batch: u64,
    pub(super) dsp: &'a dyn DspProfile,
    pub(super) row: &'a OperatorRow,
}

impl Walk<'_> {
    /// What an iteration takes after the first where `there` says which operators of the row the DSP runs.
    fn takes(&self, there: &[bool]) -> Nanos {
        let on_dsp = self.row.by_node(self.graph, there);
        let call = self.dsp.crossing(Bytes::ZERO);
        // Whether a tensor lies with the CPU, and with the DSP.
        let mut lies = vec![[true, false]; self.graph.tensors.len()];
        let mut steady = Nanos::ZERO;
        for _ in 0..2 {
            let mut before = false;
            steady = self.row.computing(there);
            for (node, &here) in self.graph.nodes.iter().zip(&on_dsp).filter(|(node, _)| !self.row.passes_over(node)) {
                let mut copied = 0;
                for &input in &node.inputs {
                    if !std::mem::replace(&mut lies[input as usize][usize::from(here)], true) {
                        copied += crossing_for(self.graph, node, input, self.batch);
                    }
                }
                if here != before || copied > 0 {
                    let under_way = if here == before { call } else { Nanos::ZERO };
                    steady += self.dsp.crossing(Bytes(copied)) - under_way;
                }
                before = here;
                for &output in &node.outputs {
                    lies[output as usize] = [!here, here];
                }
            }
        }
        steady
    }

    /// The best of `placements`, and what is better than it by one run of operators, or the first or last of one, on the
    /// other processor.
    pub(super) fn improved<const N: usize>(&self, placements: [Vec<bool>; N]) -> Vec<bool> {
        let timed = placements.into_iter().map(|there| (self.takes(&there), there));
        let Some((mut least, mut there)) = timed.min_by_key(|&(takes, _)| takes) else { return Vec::new() };
        for _ in 0..SWEEPS {
            let before = least;
            let mut first = 0;
            while first < there.len() {
                let length = there[first..].iter().take_while(|&&side| side == there[first]).count();
                let end = first + length;
                for turned in [first..end, first..first + 1, end - 1..end] {
                    let mut other = there.clone();
                    turned.for_each(|place| other[place] = !there[place] && self.row.dsp[place].is_some());
                    let takes = self.takes(&other);
                    if takes < least {
                        (least, there) = (takes, other);
                        break;
                    }
                }
                first = end;
            }
            if least == before {
                break;
            }
        }
        there
    }
}
