//! `capuchin`: swapping where it hides behind computation, else the technique that stalls less (Peng et al., ASPLOS
//! 2020).
//!
//! A saved tensor's free time is the time from its last use in forward to its first in backward, less the time of
//! writing and reading it. Before the first iteration, while saved tensors exceed their limit, the one with the most
//! free time is selected for swapping, as long as any has free time left. Then follow those whose transfer would stall
//! backward, by memory saved per second: of recomputation if the stall would be longer, otherwise of the stall. If
//! memory still runs short, the same rule decides among the tensors in memory at that time.
//!
//! The first iteration is measured (section 4.2): it has no plan, and when memory runs short, the least recently used
//! tensor is swapped, with waiting. The second iteration follows the plan made from it, which costs the phone time.
//!
//! A phone has no host memory: tensors go to flash (FedHybrid, section 3). Each is weighed as if flash served only that
//! tensor, as in Capuchin; the waiting of transfers for one another shows only in the run. A device without flash only
//! recomputes.

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
    /// The number of tensors weighed for the plan.
    weighed: u64,
    /// Iterations that have begun; zero outside of a run.
    begun: u32,
}

impl Capuchin {
    /// Whether the current iteration is measured, and flash is available for swapping in it.
    fn is_measured(&self) -> bool {
        self.begun == 1 && self.costs.as_ref().is_some_and(|costs| costs.offers(Technique::Swap))
    }
}

/// Swaps the least recently used tensors until `wanted` is free.
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

/// The interval in which a tensor that could be given up is out of memory.
#[derive(Clone, Copy)]
struct Absence {
    tensor: TensorId,
    bytes: Bytes,
    /// The node at which it would leave.
    from: NodeId,
    /// The node that needs it again.
    to: NodeId,
}

impl Absence {
    /// Its free time in nanoseconds; negative if its transfer would stall, `None` without flash.
    fn free_time(self, costs: &RestoreCosts, samples: u64) -> Option<i128> {
        let flash = costs.swapping(self.tensor, samples)?;
        let absent = costs.between(self.from, self.to, samples);
        Some(i128::from(absent.0) - i128::from(flash.out.0) - i128::from(flash.back.0))
    }

    /// The technique that stalls less, its stall, and the stall of recomputing.
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

/// Tensors by the value of their absence.
#[derive(Clone, Debug, Default)]
struct Rankings {
    /// By free time with the whole mini-batch, measured from the beginning of the iteration.
    hidden: Ranking<1>,
    /// By bytes over the time of recomputing, by bytes, and by the same free time.
    stalling: Ranking<3>,
}

/// The free time, with the whole mini-batch, of a tensor that is away from `start` to node `to`; `None` without flash.
fn whole_free_time(costs: &RestoreCosts, tensor: TensorId, start: f64, to: NodeId) -> Option<f64> {
    let flash = costs.swapping[tensor as usize]?;
    Some(costs.start(to) - start - (flash.out.0 + flash.back.0) as f64)
}

/// Bounds on a tensor's keys before its recomputation is priced.
fn unpriced(bytes: Bytes, free: Option<f64>) -> [f64; 3] {
    [f64::INFINITY, bytes.as_f64(), free.unwrap_or(f64::MIN)]
}

impl Rankings {
    const fn scored(&self) -> u64 {
        self.hidden.scored() + self.stalling.scored()
    }

    /// Chooses tensors that free `wanted` bytes, and how. `passed` is the time since the beginning, to which the keys
    /// refer.
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
