//! `melon`: recomputation by size, remaining life and cost, and micro-batches where that is not enough (Wang et al.,
//! MobiSys 2022, and the planner that its authors published).
//!
//! While memory is short, the allocated tensor with the largest size × (release point − current operator) / cost goes:
//! the release point is the last operator that uses it, life is counted in operators, and the cost is that of all that
//! has to be computed to get it back now, without layout transformations. Where nothing is left to drop, the
//! micro-batch shrinks to what fits.
//!
//! The authors' planner does not wait until memory is short: after every operator, also of one that is computed again,
//! it gives up what exceeds its *computing budget*, but for what the next operator reads. What it plans is what
//! operators make; weights and the optimiser's state are beside it, gradients are not and cannot be given up, so that
//! they crowd everything else out as they gather. The budget is told to it by hand, 36% to 92% of the device's in the 42
//! published entries, without a rule that would give it for another network. Here it follows from what it has to leave:
//! what an operator makes and borrows while it runs, and the gaps of the [pool]. A parameter tells it by hand.
//!
//! The phone makes the plan itself, once for each memory budget (section 4.4): the first iteration under one pays for it.

pub mod pool;

use haversack_devices::Bytes;
use serde::Deserialize;

use crate::ranking::promised;
use crate::restore::{Layouts, RestoreCosts, Snapshot, Technique, availability, worth};
use crate::sage::{Dynamic, Order};
use crate::{
    BatchStatistics, ComputingBudget, IterationPlan, IterationSummary, MemoryView, Operations, Policy, PolicyError,
    Ranking, Relief, Schedule, Scored, Setting, TensorState, Want,
};

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[must_use]
pub struct Parameters {
    /// Whether the micro-batch shrinks where nothing is left to drop.
    pub micro_batching: bool,
    /// Percent of the memory beside weights and state that the planner is told of; `None` for what operators and the pool's
    /// gaps leave.
    pub computing_budget: Option<u64>,
    /// Whose statistics batch normalisations take.
    #[serde(rename = "batch_norm")]
    pub statistics: BatchStatistics,
}

/// Melon.
#[derive(Clone, Debug)]
#[must_use]
pub struct Melon {
    parameters: Parameters,
    accumulation: Dynamic,
    costs: Option<RestoreCosts>,
    /// Tensors by size over cost, and by their release points.
    ranking: Ranking<2>,
    /// Tensors that the planner has weighed: all that may go, for each that goes.
    weighed: u64,
}

impl Melon {
    /// With `parameters`.
    pub fn new(parameters: Parameters) -> Self {
        let accumulation = Dynamic::new(Order::AccumulationOnly, None).normalising_by(parameters.statistics);
        Self { parameters, accumulation, costs: None, ranking: Ranking::default(), weighed: 0 }
    }

    /// Gives up the tensors that are worth most for their cost, among those that `may_go`, until `wanted` is freed.
    fn drop_best(
        &mut self,
        wanted: Bytes,
        memory: &MemoryView<'_>,
        may_go: impl Fn(&TensorState) -> bool,
    ) -> Vec<Relief> {
        let Some(costs) = &mut self.costs else { return Vec::new() };
        let (held, at) = (availability(memory), memory.at);
        let snapshot = Snapshot { graph: memory.graph, held: &held, at, samples: memory.micro_batch };
        let stale = costs.take_in(memory);
        let released = |costs: &RestoreCosts, tensor| f64::from(costs.released(tensor));
        self.ranking.refresh(memory, &stale, |tensor, _| Some([f64::INFINITY, released(costs, tensor)]));
        costs.begin_choice();
        let bound = |&[rate, released]: &[f64; 2]| promised(rate, released - f64::from(at));
        let mut reliefs = Vec::new();
        let mut freed = Bytes::ZERO;
        while freed < wanted {
            let victim = self.ranking.take_best(bound, |tensor| {
                let state = &memory.tensors[tensor as usize];
                if !may_go(state) {
                    return Scored::NotNow;
                }
                let bytes = state.bytes.as_f64();
                let life = costs.released(tensor).saturating_sub(at);
                let cost = costs.recomputation(tensor, at, &snapshot);
                Scored::At(worth(bytes * f64::from(life), cost), [worth(bytes, cost), released(costs, tensor)])
            });
            let Some(victim) = victim else { break };
            self.weighed += memory.candidates.iter().len() as u64;
            costs.give_up(victim, Technique::Recompute);
            freed += memory.tensors[victim as usize].bytes;
            reliefs.push(Relief::Rematerialise(victim));
        }
        reliefs
    }
}

impl Policy for Melon {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        self.costs = Some(RestoreCosts::new(setting, Layouts::Overlooked));
        let computing_budget = match self.parameters.computing_budget {
            // Plan and device agree.
            Some(100) => None,
            Some(percent) => Some(ComputingBudget::Percent(percent)),
            None => Some(pool::computing_budget(setting)),
        };
        Ok(Schedule { computing_budget, ..self.accumulation.prepare(setting)? })
    }

    fn begin_iteration(&mut self, plan: &mut IterationPlan) -> Result<(), PolicyError> {
        self.accumulation.begin_iteration(plan)
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        let dropped = match want {
            // What the next operator reads stays.
            Want::OverPlan(excess) => self.drop_best(excess, memory, |tensor| tensor.next_use != memory.at),
            Want::Shortfall(shortfall) => self.drop_best(shortfall, memory, |_| true),
        };
        let shrinks = matches!(want, Want::Shortfall(_)) && self.parameters.micro_batching;
        if dropped.is_empty() && shrinks { self.accumulation.relieve(want, memory) } else { Ok(dropped) }
    }

    fn end_iteration(&mut self, seen: &IterationSummary) -> Result<Operations, PolicyError> {
        self.accumulation.end_iteration(seen)?;
        let operators = self.costs.as_ref().map_or(0, |costs| costs.visited);
        Ok(Operations { scores: self.weighed, operators })
    }
}
