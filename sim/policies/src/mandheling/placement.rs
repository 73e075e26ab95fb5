//! Which operators run on the DSP: from a training graph to the row of operators that section 3.3 schedules and back,
//! by dynamic programming over the order of execution or by the scheme that the paper calls intuitive; and into which
//! parts a product's batch is split there (section 3.5).
//!
//! Also the time of an iteration on two processors with separate memory spaces, and a search for a placement that
//! improves it.
//!
//! Equations 1 to 3 count only the previous operator's output in a crossing. In the executor a map that forward saves
//! also crosses when backward reads it on the other side, and a tensor that is on both sides does not cross again.

use haversack_devices::{Bytes, Nanos, OperatorKind, Product};
use haversack_workloads::{Node, NodeId, Role, TensorId, TrainingGraph};

use super::factors::Factors;
use crate::{DspProfile, Setting};

/// The operators in a row, in the order of execution.
///
/// Two kinds of nodes are left out. A node that launches no kernel is free anywhere and runs where the one before it
/// does. An adaptive rescaling runs on the CPU, and rarely: it cuts a subgraph of the DSP in one out of several
/// batches, and the average cost of its two crossings is added to the DSP time of the operator before it.
#[derive(Debug, Default)]
pub(super) struct OperatorRow {
    nodes: Vec<usize>,
    cpu: Vec<Nanos>,
    /// `None` if the DSP has no such operator.
    pub(super) dsp: Vec<Option<Nanos>>,
    switch: Vec<Nanos>,
    unfriendly: Vec<bool>,
    /// Samples of the parts that each is split into on the DSP.
    parts: Vec<u64>,
    /// Average time per iteration of the rescalings after each operator if it runs on the DSP: to the CPU, and back.
    interruptions: Vec<[Nanos; 2]>,
    /// Whether scale factors are recomputed only as often as they change.
    seldom: bool,
}

/// Options of the row.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// Whether products are split.
    pub(super) splitting: bool,
    /// The factors that decide when to rescale, if that is adaptive.
    pub(super) factors: Option<&'a Factors>,
}

/// Which nodes run on the DSP, and the number of samples per part.
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

    /// Adds the average cost of an occasional rescaling on the CPU after the last operator: of the way there and of the
    /// way back.
    fn interrupted(&mut self, shares: [Nanos; 2]) {
        if let Some(interruption) = self.interruptions.last_mut() {
            interruption.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
        }
    }

    /// The processor of each node: for the least total time, or each on the processor that suits it.
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

    /// Which nodes the DSP runs if it runs the operators of the row marked in `there`.
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

    /// The times of operators on the DSP including both crossings of the rescalings that follow.
    fn interrupted_dsp(&self) -> Vec<Option<Nanos>> {
        let times = self.dsp.iter().zip(&self.interruptions);
        times.map(|(time, &[there, back])| time.map(|time| time + there + back)).collect()
    }

    /// The operators' time, without crossings that happen in every iteration, if the DSP runs those marked in `there`.
    pub(super) fn computing(&self, there: &[bool]) -> Nanos {
        let time = |place: usize| {
            let on_dsp = self.dsp[place].filter(|_| there[place])?;
            let [away, back] = self.interruptions[place];
            // If the CPU runs the next operator, the rescaled tensor would have crossed anyway.
            let goes_on = there.get(place + 1).is_some_and(|&there| there);
            Some(on_dsp + if goes_on { away + back } else { Nanos::ZERO })
        };
        (0..there.len()).map(|place| time(place).unwrap_or(self.cpu[place])).sum()
    }
}

impl Wanted<'_> {
    /// For an adaptive rescaling, the number of batches per run of it.
    pub(super) fn turns(&self, node: &Node) -> Option<u64> {
        Some(self.factors?.period(node.rescales?))
    }
}

fn parts(node: &Node, id: NodeId, batch: u64, dsp: &dyn DspProfile) -> Option<Parts> {
    node.work.product.filter(Product::is_dense)?;
    split(|samples| dsp.time(id, samples), batch, dsp.accumulation(id), THRESHOLD)
}

/// Bytes that cross before the node at `place` if the operator at `before` ran on the other processor.
///
/// Equations 1 and 2 consider only that neighbour: its outputs, or tensors made from them since, cross. If the node
/// reads none of these, all of its inputs made in this iteration count, since they lie on one side or the other.
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

/// The bytes of `input` that cross for `node`: a rescaled tensor is stored as the 32-bit sums that the node leaves.
pub(super) fn crossing_for(graph: &TrainingGraph, node: &Node, input: TensorId, batch: u64) -> u64 {
    let bytes = |tensor: TensorId| graph.tensor(tensor).bytes.at(batch);
    let sums = || node.outputs.iter().copied().filter(|&output| output != input).map(bytes).sum();
    if node.rescales == Some(input) { sums() } else { bytes(input) }
}

/// The cost of an unreachable state; sums of times stay far below it.
const NEVER: Nanos = Nanos::MAX;

/// Which operators of an execution order run on the DSP, so that the total time is least: equations 1 to 3, exactly.
///
/// Operator `i` takes `cpu[i]` or `dsp[i]`, `None` if the DSP has no such operator, and `switch[i]` more if the
/// operator before it ran on the other processor. The first operator has no crossing, as in the paper. Ties: staying on
/// a processor wins over crossing, and ending on the DSP over ending on the CPU, since it takes less energy. Linear in
/// the number of operators; the slices must have equal lengths.
pub fn assign(cpu: &[Nanos], dsp: &[Option<Nanos>], switch: &[Nanos]) -> Vec<bool> {
    // For the best way to end with operator i on the CPU, and on the DSP: whether the previous one ran on the DSP.
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

/// The scheme without the technique: operators that the DSP has and that are not `unfriendly` to it run there, the rest
/// on the CPU, neighbours together, whatever the crossings cost.
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
    /// Samples of each part; the last one has the rest.
    pub samples: u64,
    /// Time of all parts, sums included.
    pub time: Nanos,
}

/// The fastest split of a batch of `batch` samples, if the operator is abnormal as a whole.
///
/// `profile` gives the operator's latency for a number of samples and is called for powers of two below `batch`; adding
/// the results of one more part takes `accumulation` (equation 4, where all parts have one scale). An operator is
/// abnormal if its time per sample is more than `threshold` times that in a smaller batch. `None` if it is normal, the
/// DSP does not run it, or no split is faster than the whole. Among equal times the larger parts win.
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
    // `min_by_key` returns the first of equals.
    let best = smaller.iter().rev().filter_map(in_parts).min_by_key(|parts| parts.time)?;
    (best.time < whole).then_some(best)
}

/// Number of passes over a placement in search of improvements.
const SWEEPS: usize = 4;

/// Computes the time of an iteration of a graph with its row of operators.
pub(super) struct Walk<'a> {
    pub(super) graph: &'a TrainingGraph,
    pub(super) batch: u64,
    pub(super) dsp: &'a dyn DspProfile,
    pub(super) row: &'a OperatorRow,
}

impl Walk<'_> {
    /// The time of an iteration after the first if the DSP runs the operators of the row marked in `there`.
    fn takes(&self, there: &[bool]) -> Nanos {
        let on_dsp = self.row.by_node(self.graph, there);
        let call = self.dsp.crossing(Bytes::ZERO);
        // Whether a tensor is on the CPU's side, and on the DSP's.
        let mut lies = vec![[true, false]; self.graph.tensors.len()];
        let mut steady = Nanos::ZERO;
        for _ in 0..2 {
            let mut before = false;
            steady = self.row.computing(there);
            // Most iterations skip rescalings, if those are adaptive.
            let runs = |(node, _): &(&Node, &bool)| !(self.row.seldom && node.rescales.is_some());
            for (node, &here) in self.graph.nodes.iter().zip(&on_dsp).filter(runs) {
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

    /// The best of `placements`, improved by moving one run of operators, or the first or last of one, to the other
    /// processor.
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
