//! `melon`: recomputation by size, remaining life and cost, and micro-batches where that is not enough (Wang et al.,
//! MobiSys 2022, and the planner that its authors published).
//!
//! While memory is short, the allocated tensor with the largest size × (release point − current operator) / cost goes:
//! the release point is the last operator that uses it, life is counted in operators, and the cost is that of all that
//! has to be computed to get it back now, without layout transformations. Where nothing is left to drop, the
//! micro-batch shrinks to what fits.
//!
//! The authors' planner does not wait until memory is short: after every operator, including recomputed ones, it gives
//! up tensors above its *computing budget*, except inputs of the next operator. It plans the outputs of operators;
//! weights and the optimiser's state are not part of it. Gradients are, but cannot be given up, so they crowd
//! everything else out as they accumulate. The budget is set by hand, 36% to 92% of the device's in the 42 published
//! entries, without a rule for other networks. Here it is derived from the memory it has to leave: an operator's
//! outputs and workspace while it runs, and the gaps of the [pool]. A parameter sets it by hand.
//!
//! The phone makes the plan itself, once for each memory budget (section 4.4): its time is charged to the first
//! iteration under that budget.

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

/// Parameters of `melon`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[must_use]
pub struct Parameters {
    /// Whether the micro-batch shrinks when no tensor is left to drop.
    pub micro_batching: bool,
    /// The planner's budget, in percent of the memory without weights and state; `None` derives it from the operators
    /// and the pool's gaps.
    pub computing_budget: Option<u64>,
    /// The statistics that batch normalisations use.
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
    /// Number of tensors that the planner has weighed: all candidates, for each tensor dropped.
    weighed: u64,
}

impl Melon {
    /// Melon with `parameters`.
    pub fn new(parameters: Parameters) -> Self {
        let accumulation = Dynamic::new(Order::AccumulationOnly, None).normalising_by(parameters.statistics);
        Self { parameters, accumulation, costs: None, ranking: Ranking::default(), weighed: 0 }
    }

    /// Drops the tensors that are worth most for their cost, among those that `may_go`, until `wanted` is freed.
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
            // At 100% the plan's limit is the device's.
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
            // Inputs of the next operator stay.
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
