//! `melon`: recomputation by size, remaining life and cost, and micro-batches where that is not enough (Wang et al.,
//! MobiSys 2022, and the planner that its authors published).
//!
//! While memory is short, the allocated tensor with the largest size × (release point − current operator) / cost goes:
//! the release point is the last operator that uses it, life is counted in operators, and the cost is that of all that
//! has to be computed to get it back now, without layout transformations. Where nothing is left to drop, the
//! micro-batch shrinks to what fits.
//!
//! The authors' planner is told less memory than the device has, since its pool wastes some: 38% to 97% of the device
//! budget in their 42 hand-tuned entries, the larger the batch the less (median 66%), without a rule that would give
//! the share for another model. So it is a parameter, and by default plan and device agree. Below 100% memory is freed
//! down to the share each time it runs short; in between it may fill up.

use haversack_devices::units::Bytes;

use crate::falling::{Falling, worth};
use crate::policy::{IterationSummary, MemoryView, Policy, PolicyError, Relief, Schedule, Setting};
use crate::regain::{Layouts, Moment, Regaining, Technique, position, presence};
use crate::sage::{Dynamic, Order};

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Whether the micro-batch shrinks where nothing is left to drop.
    pub micro_batching: bool,
    /// Percent of the budget down to which memory is freed once it is short.
    pub computing_budget: u64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { micro_batching: true, computing_budget: 100 }
    }
}

/// Melon.
#[derive(Clone, Debug)]
pub struct Melon {
    parameters: Parameters,
    accumulation: Dynamic,
    regaining: Option<Regaining>,
}

impl Melon {
    /// With `parameters`.
    #[must_use]
    pub const fn new(parameters: Parameters) -> Self {
        let accumulation = Dynamic::new(Order::AccumulationOnly, None);
        Self { parameters, accumulation, regaining: None }
    }

    fn drop_dearest(&mut self, shortfall: Bytes, memory: &MemoryView<'_>) -> Vec<Relief> {
        let Some(regaining) = &mut self.regaining else { return Vec::new() };
        let presence = presence(memory);
        let at = position(memory);
        let moment = Moment { graph: memory.graph, presence: &presence, at, samples: memory.micro_batch };
        regaining.begin_choice();
        let score = |regaining: &mut Regaining, tensor: u32| {
            let life = regaining.released(tensor).saturating_sub(at);
            let won = memory.tensors[tensor as usize].bytes.as_f64() * f64::from(life);
            worth(won, regaining.recomputation(tensor, at, &moment))
        };
        let mut queue = Falling::new(memory.candidates.iter().map(|&tensor| (score(regaining, tensor), tensor)));
        let mut reliefs = Vec::new();
        let mut freed = Bytes::ZERO;
        while freed < shortfall {
            let Some(victim) = queue.pop(|tensor| score(regaining, tensor)) else { break };
            regaining.give_up(victim, Technique::Recompute);
            freed += memory.tensors[victim as usize].bytes;
            reliefs.push(Relief::Rematerialise(victim));
        }
        reliefs
    }
}

impl Policy for Melon {
    fn needs_times(&self) -> bool {
        true
    }

    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        self.regaining = Some(Regaining::new(setting, Layouts::Overlooked));
        self.accumulation.prepare(setting)
    }

    fn begin_iteration(&mut self) -> Option<u64> {
        self.accumulation.begin_iteration()
    }

    fn relieve(&mut self, shortfall: Bytes, memory: &MemoryView<'_>) -> Vec<Relief> {
        let kept_free = memory.budget.0 / 100 * (100 - self.parameters.computing_budget.min(100));
        let dropped = self.drop_dearest(shortfall + Bytes(kept_free), memory);
        if dropped.is_empty() && self.parameters.micro_batching {
            self.accumulation.relieve(shortfall, memory)
        } else {
            dropped
        }
    }

    fn end_iteration(&mut self, seen: &IterationSummary) {
        self.accumulation.end_iteration(seen);
    }
}
