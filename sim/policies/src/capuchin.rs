//! `capuchin`: swapping where it hides behind computation, else what stalls less (Peng et al., ASPLOS 2020).
//!
//! A saved tensor's free time is the time from its last use in forward to its first in backward, less what writing and
//! reading it take. Before the first iteration, as long as saved tensors take more than they may, the one with the
//! most free time is to be swapped while some have any. Then follow those whose transfer would stall backward, by
//! memory saved per second: of recomputing where the stall would be longer, of the stall where it would not. Where
//! memory runs short all the same, the same rule decides on what is in memory then.
//!
//! The first iteration is measured (section 4.2): nothing is planned, and where memory runs short, what was used longest ago is
//! swapped and waited for. The second goes by the plan that is made of it, which the phone pays for.
//!
//! On a phone there is no host memory: tensors go to flash (FedHybrid, section 3). Each is weighed as if flash served
//! it alone, as Capuchin does; that transfers wait for one another is the run's to find out. A device without flash
//! only recomputes.

use haversack_devices::{Bytes, Nanos};
use haversack_workloads::{NodeId, TensorId};

use crate::ranking::at_most;
use crate::restore::{Layouts, RestoreCosts, Snapshot, Technique, absences, availability, saved_alone, worth};
use crate::{
    Holding, IterationPlan, IterationSummary, MemoryView, Operations, Policy, PolicyError, Ranking, Relief, Schedule,
    Scored, Setting, Want,
};

/// Capuchin.
#[derive(Clone, Debug, Default)]
pub struct Capuchin {
    costs: Option<RestoreCosts>,
    planned: Vec<Option<Technique>>,
    rankings: Rankings,
    /// Tensors that were weighed for the plan.
    weighed: u64,
    /// Iterations that have begun; zero outside of a run.
    begun: u32,
}

impl Capuchin {
    /// Whether the iteration under way is measured, and there is flash to swap to meanwhile.
    fn is_measured(&self) -> bool {
        self.begun == 1 && self.costs.as_ref().is_some_and(|costs| costs.offers(Technique::Swap))
    }
}

/// Swaps what was used longest ago until `wanted` is free.
fn longest_unused(wanted: Bytes, memory: &MemoryView<'_>) -> Vec<Relief> {
    let mut candidates: Vec<TensorId> = memory.candidates.iter().collect();
    candidates.sort_unstable_by_key(|&tensor| (memory.tensors[tensor as usize].last_use, tensor));
    let mut freed = Bytes::ZERO;
    let missing = candidates.into_iter().take_while(|&tensor| {
        let is_short = freed < wanted;
        freed += memory.tensors[tensor as usize].bytes;
        is_short
    });
    missing.map(Relief::Swap).collect()
}

/// While a tensor that could be given up is not there.
#[derive(Clone, Copy)]
struct Absence {
    tensor: TensorId,
    bytes: Bytes,
    /// The node at which it would leave.
    from: NodeId,
    /// The node that wants it back.
    to: NodeId,
}

impl Absence {
    /// Its free time in nanoseconds; negative where its transfer would stall, `None` if there is no flash.
    fn free_time(self, costs: &RestoreCosts, samples: u64) -> Option<i128> {
        let flash = costs.swapping(self.tensor, samples)?;
        let absent = costs.between(self.from, self.to, samples);
        Some(i128::from(absent.0) - i128::from(flash.out.0) - i128::from(flash.back.0))
    }

    /// What stalls less, how long, and how long recomputing does.
    fn cheaper(self, costs: &mut RestoreCosts, snapshot: &Snapshot<'_>) -> (Technique, Nanos, Nanos) {
        let recompute = costs.recomputation(self.tensor, self.to, snapshot);
        let free = self.free_time(costs, snapshot.samples);
        let stall = free.map(|free| Nanos(u64::try_from(-free).unwrap_or(0)));
        match stall {
            Some(stall) if stall <= recompute => (Technique::Swap, stall, recompute),
            _ => (Technique::Recompute, recompute, recompute),
        }
    }
}

/// Tensors by what their absence leaves room for.
#[derive(Clone, Debug, Default)]
struct Rankings {
    /// By free time with the whole mini-batch, were now the beginning.
    hidden: Ranking<1>,
    /// By bytes over the time of recomputing, by bytes, and by the same free time.
    stalling: Ranking<3>,
}

/// The free time with the whole mini-batch of a tensor that is away from `start` to node `to`; of none without flash.
fn whole_free_time(costs: &RestoreCosts, tensor: TensorId, start: f64, to: NodeId) -> Option<f64> {
    let flash = costs.whole_swapping(tensor)?;
    Some(costs.start(to) - start - (flash.out.0 + flash.back.0) as f64)
}

/// What a tensor promises before recomputing it was priced.
fn unpriced(bytes: Bytes, free: Option<f64>) -> [f64; 3] {
    [f64::INFINITY, bytes.as_f64(), free.unwrap_or(f64::MIN)]
}

impl Rankings {
    const fn scored(&self) -> u64 {
        self.hidden.scored() + self.stalling.scored()
    }

    /// Which tensors give `wanted` bytes, and how. What the keys call the beginning is `passed` by now.
    fn choose(
        &mut self,
        costs: &mut RestoreCosts,
        wanted: Bytes,
        absence: impl Fn(TensorId) -> Option<Absence>,
        passed: f64,
        snapshot: &Snapshot<'_>,
    ) -> Vec<(TensorId, Technique)> {
        costs.begin_choice();
        let (samples, ratio) = (snapshot.samples, costs.ratio(snapshot.samples));
        let mut chosen = Vec::new();
        let mut freed = Bytes::ZERO;
        // Rounding a share down takes less than a nanosecond from each of three times.
        let free = |whole: f64| at_most((whole - passed) * ratio) + 2.0;
        while freed < wanted {
            let bound =
                |&[whole]: &[f64; 1]| Some(free(whole)).filter(|&free| free >= 0.0).unwrap_or(f64::NEG_INFINITY);
            let hidden = self.hidden.take_best(bound, |tensor| {
                let Some(absence) = absence(tensor) else { return Scored::Never };
                let whole = whole_free_time(costs, tensor, costs.start(absence.from) - passed, absence.to);
                match absence.free_time(costs, samples).zip(whole) {
                    Some((free, whole)) if free >= 0 => Scored::At(free as f64, [whole]),
                    _ => Scored::NotNow,
                }
            });
            let Some(absence) = hidden.and_then(&absence) else { break };
            self.stalling.put(absence.tensor, None);
            costs.give_up(absence.tensor, Technique::Swap);
            freed += absence.bytes;
            chosen.push((absence.tensor, Technique::Swap));
        }
        while freed < wanted {
            let bound = |&[recomputed, bytes, whole]: &[f64; 3]| {
                let stall = -free(whole);
                let swapped = if stall > 0.0 { bytes / stall } else { f64::INFINITY };
                at_most(recomputed.max(swapped))
            };
            let stalling = self.stalling.take_best(bound, |tensor| {
                let Some(absence) = absence(tensor) else { return Scored::Never };
                if absence.free_time(costs, samples).is_some_and(|free| free >= 0) {
                    return Scored::NotNow;
                }
                let (_, stall, recompute) = absence.cheaper(costs, snapshot);
                let whole = whole_free_time(costs, tensor, costs.start(absence.from) - passed, absence.to);
                let [_, bytes, free] = unpriced(absence.bytes, whole);
                Scored::At(worth(bytes, stall), [worth(bytes, recompute), bytes, free])
            });
            let Some(absence) = stalling.and_then(&absence) else { break };
            let (technique, ..) = absence.cheaper(costs, snapshot);
            costs.give_up(absence.tensor, technique);
            freed += absence.bytes;
            chosen.push((absence.tensor, technique));
        }
        chosen
    }
}

impl Policy for Capuchin {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let mut costs = RestoreCosts::new(setting, Layouts::Overlooked);
        self.planned = vec![None; setting.graph.tensors.len()];
        let saved = setting.graph.saved();
        let bytes = |tensor: TensorId| Bytes(setting.graph.tensor(tensor).bytes.at(setting.batch));
        let whole: Bytes = saved.iter().map(|&tensor| bytes(tensor)).sum();
        let absences = absences(setting.graph);
        let absence = |tensor: TensorId| {
            absences[tensor as usize].map(|(from, to)| Absence { tensor, bytes: bytes(tensor), from, to })
        };
        let mut rankings = Rankings::default();
        for Absence { tensor, bytes, from, to } in saved.iter().filter_map(|&tensor| absence(tensor)) {
            let free = whole_free_time(&costs, tensor, costs.start(from), to);
            rankings.hidden.put(tensor, free.map(|free| [free]));
            rankings.stalling.put(tensor, Some(unpriced(bytes, free)));
        }
        let held = saved_alone(setting, &saved);
        let snapshot = Snapshot { graph: setting.graph, held: &held, at: NodeId::MAX, samples: setting.batch };
        let wanted = whole.saturating_sub(setting.activation_budget.unwrap_or(Bytes::MAX));
        for (tensor, technique) in rankings.choose(&mut costs, wanted, absence, 0.0, &snapshot) {
            self.planned[tensor as usize] = Some(technique);
        }
        (self.costs, self.weighed) = (Some(costs), rankings.scored());
        Ok(Schedule::plain(setting.batch))
    }

    fn begin_iteration(&mut self, _plan: &mut IterationPlan) -> Result<(), PolicyError> {
        self.begun = self.begun.saturating_add(1);
        Ok(())
    }

    fn end_iteration(&mut self, _seen: &IterationSummary) -> Result<Operations, PolicyError> {
        let operators = self.costs.as_ref().map_or(0, |costs| costs.visited);
        Ok(Operations { scores: self.weighed + self.rankings.scored(), operators })
    }

    fn hold(&mut self, tensor: TensorId, _memory: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        if self.is_measured() {
            return Ok(Holding::Keep);
        }
        Ok(match self.planned.get(tensor as usize).copied().flatten() {
            Some(Technique::Recompute) => Holding::Rematerialise,
            Some(Technique::Swap) => Holding::Swap,
            _ => Holding::Keep,
        })
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        if self.is_measured() {
            return Ok(longest_unused(want.bytes(), memory));
        }
        let Some(costs) = &mut self.costs else { return Ok(Vec::new()) };
        let (held, at, samples) = (availability(memory), memory.at, memory.micro_batch);
        let snapshot = Snapshot { graph: memory.graph, held: &held, at, samples };
        let stale = costs.take_in(memory);
        let free = |tensor: TensorId, to: NodeId| whole_free_time(costs, tensor, 0.0, to);
        let Rankings { hidden, stalling } = &mut self.rankings;
        hidden.refresh(memory, &stale, |tensor, state| free(tensor, state.next_use).map(|free| [free]));
        stalling.refresh(memory, &stale, |tensor, state| Some(unpriced(state.bytes, free(tensor, state.next_use))));
        let passed = costs.start(at);
        let absence = |tensor: TensorId| {
            let state = &memory.tensors[tensor as usize];
            Some(Absence { tensor, bytes: state.bytes, from: at, to: state.next_use })
        };
        let chosen = self.rankings.choose(costs, want.bytes(), absence, passed, &snapshot);
        Ok(chosen.into_iter().map(|(tensor, technique)| technique.relief(tensor)).collect())
    }
}
