//! `elastictrainer`: trains the weights that matter most for their time (Huang et al., MobiSys 2023).
//!
//! Under a time budget it chooses the depth of backward, and which weights up to there are trained: for each depth,
//! those with the most importance for their time that still fit. It skips only computations (DAF, section 4.2): the
//! framework saves the same tensors as always, and keeps them until backward ends.

use haversack_devices::{Nanos, ensure};
use haversack_workloads::{Node, NodeId, Phase, TensorId, TrainingGraph};

use crate::importance::{Worth, gradients_in_order, of_gradients, writes_parameter_gradients_only};
use crate::{Metric, Policy, PolicyError, Schedule, Setting, TensorSet};

/// ElasticTrainer.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ElasticTrainer {
    metric: Metric,
}

impl ElasticTrainer {
    /// Ranks weights by `metric`.
    pub const fn new(metric: Metric) -> Self {
        Self { metric }
    }
}

impl Policy for ElasticTrainer {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let plain = Schedule::plain(setting.batch);
        let Some(budget) = setting.time_budget else { return Ok(plain) };
        let trained = choose(setting.graph, setting.times(), budget, setting.worth(self.metric))
            .map_err(|least| PolicyError::too_slow("elastictrainer", least, budget))?;
        let mut graph = setting.graph.without_gradients(|id| !trained[id as usize]);
        hold_to_the_end(&mut graph, &setting.graph.saved());
        Ok(Schedule { graph: Some(graph), ..plain })
    }
}

/// Extends the life of tensors of `saved` without a remaining reader to the end of backward.
fn hold_to_the_end(graph: &mut TrainingGraph, saved: &[TensorId]) {
    let read: TensorSet = graph.saved().into_iter().collect();
    let unread: Vec<TensorId> = saved.iter().copied().filter(|&tensor| !read.contains(tensor)).collect();
    if let Some(last) = graph.nodes.iter_mut().rev().find(|node| node.phase == Phase::Backward) {
        last.releases.extend(unread);
    }
}

/// The gradients of one layer, with their importance and cost.
struct Candidate {
    gradients: Vec<TensorId>,
    importance: f64,
    time: Nanos,
    /// Whether it is computed at no extra cost with the input gradient of its layer (a normalisation's weights).
    free: bool,
}

/// The parameter gradients to compute so that an iteration takes at most `budget`: the best sum of importance over
/// all depths of backward. By tensor id.
///
/// # Errors
/// The least time of an iteration, that of forward only, if it is above the budget.
pub(crate) fn choose(
    graph: &TrainingGraph,
    times: &[Nanos],
    budget: Nanos,
    worth: Worth<'_>,
) -> Result<Vec<bool>, Nanos> {
    let importance = of_gradients(graph, worth);
    let time_of = |is_of: &dyn Fn(&Node) -> bool| -> Nanos {
        graph.nodes.iter().zip(times).filter(|(node, _)| is_of(node)).map(|(_, &time)| time).sum()
    };
    let forward = time_of(&|node| node.phase == Phase::Forward);
    ensure!(forward <= budget, forward);
    let writers = completed_in_order(graph);
    let mut best: (f64, Vec<bool>) = (-1.0, vec![false; graph.tensors.len()]);
    // `path` is the time of bringing the gradient down to the current node.
    let (mut path, mut reached): (Nanos, Vec<Candidate>) = (Nanos::ZERO, Vec::new());
    for (id, node) in (0..).zip(&graph.nodes).filter(|(_, node)| node.phase == Phase::Backward) {
        let written_here = writers.iter().filter(|(writer, _)| *writer == id);
        let gradients: Vec<TensorId> = written_here.map(|&(_, gradient)| gradient).collect();
        if !writes_parameter_gradients_only(graph, node) {
            path += times[id as usize];
        }
        if gradients.is_empty() {
            continue;
        }
        let worth = gradients.iter().map(|&gradient| importance[gradient as usize]).sum();
        let has_some = |tensors: &[TensorId]| tensors.iter().any(|id| gradients.contains(id));
        // The time of the nodes that only compute these gradients.
        let alone = time_of(&|node| writes_parameter_gradients_only(graph, node) && has_some(&node.outputs));
        let time = alone + time_of(&|node| node.phase == Phase::Update && has_some(&node.inputs));
        reached.push(Candidate { gradients, importance: worth, time, free: alone == Nanos::ZERO });
        let Some(left) = budget.0.checked_sub((forward + path).0) else { break };
        let (sum, trained) = fill(&reached, Nanos(left), graph.tensors.len());
        if sum > best.0 {
            best = (sum, trained);
        }
    }
    Ok(best.1)
}

/// Every parameter gradient with the node that writes it last: shared weights have several writers.
fn completed_in_order(graph: &TrainingGraph) -> Vec<(NodeId, TensorId)> {
    let mut last = vec![None; graph.tensors.len()];
    for (id, node) in (0..).zip(&graph.nodes) {
        for &output in &node.outputs {
            last[output as usize] = Some(id);
        }
    }
    let written = gradients_in_order(graph).into_iter();
    written.filter_map(|(_, gradient)| Some((last[gradient as usize]?, gradient))).collect()
}

/// The candidates with the most importance for their time that fit into `left`, greedily.
fn fill(candidates: &[Candidate], left: Nanos, tensors: usize) -> (f64, Vec<bool>) {
    let mut order: Vec<&Candidate> = candidates.iter().collect();
    let density = |candidate: &Candidate| {
        if candidate.free { f64::INFINITY } else { candidate.importance / (candidate.time.0 as f64).max(1.0) }
    };
    order.sort_by(|a, b| density(b).total_cmp(&density(a)));
    let (mut sum, mut left, mut trained) = (0.0, left, vec![false; tensors]);
    for candidate in order {
        if candidate.time <= left {
            left -= candidate.time;
            sum += candidate.importance;
            for &gradient in &candidate.gradients {
                trained[gradient as usize] = true;
            }
        }
    }
    (sum, trained)
}
