//! `capuchin`: swapping where it hides behind computation, else what stalls less (Peng et al., ASPLOS 2020).
//!
//! A saved tensor's free time is the time from its last use in forward to its first in backward, less what writing and
//! reading it take. Before the first iteration, as long as saved tensors take more than they may, the one with the
//! most free time is to be swapped while some have any. Then follow those whose transfer would stall backward, by
//! memory saved per second: of recomputing where the stall would be longer, of the stall where it would not. Where
//! memory runs short all the same, the same rule decides on what is in memory then.
//!
//! On a phone there is no host memory: tensors go to flash (FedHybrid, section 3). Each is weighed as if flash served
//! it alone, as Capuchin does; that transfers wait for one another is the run's to find out. A device without flash
//! only recomputes.

use std::cmp::Reverse;

use haversack_devices::units::{Bytes, Nanos};
use haversack_workloads::{NodeId, TensorId};

use crate::entry::Entry;
use crate::error::PolicyError;
use crate::falling::{Falling, worth};
use crate::policy::{Holding, Policy, Relief, Schedule, Want};
use crate::regain::{Layouts, Moment, Regaining, Technique, absence, presence, saved_alone};
use crate::setting::Setting;
use crate::view::MemoryView;

/// How scenarios name it, and what they can set.
pub static ENTRY: Entry = Entry {
    id: "capuchin",
    about: "swapping to flash where it hides behind computation, else what stalls less",
    citation: "Peng et al., ASPLOS 2020",
    stores_floats: false,
    engine: None,
    parameters: &[],
    build: |_| Ok(Box::new(Capuchin::default())),
};

/// Capuchin.
#[derive(Clone, Debug, Default)]
pub struct Capuchin {
    regaining: Option<Regaining>,
    planned: Vec<Option<Technique>>,
}

/// A tensor that could be given up.
#[derive(Clone, Copy)]
struct Away {
    tensor: TensorId,
    bytes: Bytes,
    /// The node at which it would leave.
    from: NodeId,
    /// The node that wants it back.
    to: NodeId,
}

impl Away {
    /// Its free time in nanoseconds; negative where its transfer would stall, nothing where there is no flash.
    fn free_time(self, regaining: &Regaining, samples: u64) -> Option<i128> {
        let flash = regaining.swapping(self.tensor, samples)?;
        let absent = regaining.between(self.from, self.to, samples);
        Some(i128::from(absent.0) - i128::from(flash.out.0) - i128::from(flash.back.0))
    }

    /// What stalls less, and how long.
    fn cheaper(self, regaining: &mut Regaining, moment: &Moment<'_>) -> (Technique, Nanos) {
        let recompute = regaining.recomputation(self.tensor, self.to, moment);
        let free = self.free_time(regaining, moment.samples);
        let stall = free.map(|free| Nanos(u64::try_from(-free).unwrap_or(0)));
        match stall {
            Some(stall) if stall <= recompute => (Technique::Swap, stall),
            _ => (Technique::Recompute, recompute),
        }
    }
}

/// Which of `tensors` give `wanted` bytes, and how.
fn choose(
    regaining: &mut Regaining,
    wanted: Bytes,
    tensors: &[Away],
    moment: &Moment<'_>,
) -> Vec<(TensorId, Technique)> {
    regaining.begin_choice();
    let mut chosen = Vec::new();
    let mut freed = Bytes::ZERO;
    let mut hidden: Vec<(Reverse<i128>, TensorId, Bytes)> = Vec::new();
    let mut stalling = vec![None; moment.graph.tensors.len()];
    for &away in tensors {
        match away.free_time(regaining, moment.samples) {
            Some(free) if free >= 0 => hidden.push((Reverse(free), away.tensor, away.bytes)),
            _ => stalling[away.tensor as usize] = Some(away),
        }
    }
    hidden.sort_unstable();
    for (_, tensor, bytes) in hidden {
        if freed >= wanted {
            return chosen;
        }
        regaining.give_up(tensor, Technique::Swap);
        freed += bytes;
        chosen.push((tensor, Technique::Swap));
    }
    let score = |regaining: &mut Regaining, away: Away| worth(away.bytes.as_f64(), away.cheaper(regaining, moment).1);
    let mut queue = Falling::new(stalling.iter().flatten().map(|&away| (score(regaining, away), away.tensor)));
    while freed < wanted {
        let now = |tensor: TensorId| stalling[tensor as usize].map_or(0.0, |away| score(regaining, away));
        let Some(tensor) = queue.pop(now) else { break };
        let Some(away) = stalling[tensor as usize] else { break };
        let (technique, _) = away.cheaper(regaining, moment);
        regaining.give_up(tensor, technique);
        freed += away.bytes;
        chosen.push((tensor, technique));
    }
    chosen
}

impl Policy for Capuchin {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let mut regaining = Regaining::new(setting, Layouts::Overlooked);
        self.planned = vec![None; setting.graph.tensors.len()];
        let saved = setting.graph.saved();
        let bytes = |tensor: TensorId| Bytes(setting.graph.tensor(tensor).bytes.at(setting.batch));
        let whole: Bytes = saved.iter().map(|&tensor| bytes(tensor)).sum();
        let away = |&tensor: &TensorId| {
            absence(setting, tensor).map(|(from, to)| Away { tensor, bytes: bytes(tensor), from, to })
        };
        let tensors: Vec<Away> = saved.iter().filter_map(away).collect();
        let presence = saved_alone(setting, &saved);
        let at = NodeId::MAX;
        let moment = Moment { graph: setting.graph, presence: &presence, at, samples: setting.batch };
        let wanted = whole.saturating_sub(setting.activation_budget.unwrap_or(Bytes::MAX));
        for (tensor, technique) in choose(&mut regaining, wanted, &tensors, &moment) {
            self.planned[tensor as usize] = Some(technique);
        }
        self.regaining = Some(regaining);
        Ok(Schedule::plain(setting.batch))
    }

    fn hold(&mut self, tensor: TensorId, _memory: &MemoryView<'_>) -> Holding {
        match self.planned.get(tensor as usize).copied().flatten() {
            Some(Technique::Recompute) => Holding::Rematerialise,
            Some(Technique::Swap) => Holding::Swap,
            _ => Holding::Keep,
        }
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Vec<Relief> {
        let Some(regaining) = &mut self.regaining else { return Vec::new() };
        let (presence, at) = (presence(memory), memory.at);
        let moment = Moment { graph: memory.graph, presence: &presence, at, samples: memory.micro_batch };
        let away = |tensor: TensorId| {
            let state = &memory.tensors[tensor as usize];
            Away { tensor, bytes: state.bytes, from: at, to: state.next_use }
        };
        let tensors: Vec<Away> = memory.candidates.iter().map(away).collect();
        let chosen = choose(regaining, want.bytes(), &tensors, &moment);
        chosen.into_iter().map(|(tensor, technique)| technique.relief(tensor)).collect()
    }
}
