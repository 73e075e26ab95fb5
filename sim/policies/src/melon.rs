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
//! published entries, without a rule that would give it for another network. So it is a parameter, and by default plan
//! and device agree.

use haversack_devices::units::Bytes;
use haversack_workloads::TensorId;

use crate::entry::{Entry, Number, Numbers, Switch};
use crate::error::PolicyError;
use crate::falling::{Falling, worth};
use crate::policy::{IterationPlan, IterationSummary, Policy, Relief, Schedule, Want};
use crate::regain::{Layouts, Moment, Regaining, Technique, presence};
use crate::sage::{Dynamic, Order};
use crate::setting::Setting;
use crate::view::MemoryView;

/// How scenarios name it, and what they can set.
pub static ENTRY: Entry = Entry {
    id: "melon",
    about: "the largest size × remaining life / cost is computed again; then the micro-batch gives way",
    citation: "Wang et al., MobiSys 2022",
    stores_floats: false,
    engine: None,
    parameters: &[&MICRO_BATCHING, &COMPUTING_BUDGET],
    build: |settings| {
        let (micro_batching, computing_budget) = (settings.get(&MICRO_BATCHING)?, settings.get(&COMPUTING_BUDGET)?);
        Ok(Box::new(Melon::new(Parameters { micro_batching, computing_budget })))
    },
};

static MICRO_BATCHING: Switch =
    Switch::new("micro_batching", true, "{}: the micro-batch shrinks where nothing is left to drop");

static COMPUTING_BUDGET: Number = Number::new(
    "computing_budget",
    100,
    Numbers::Within(1..=100),
    "{least} to {default} (default): percent of what weights and state leave of the memory budget, kept to after \
            every operator",
);

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Whether the micro-batch shrinks where nothing is left to drop.
    pub micro_batching: bool,
    /// Percent of the memory beside weights and state that the planner is told of.
    pub computing_budget: u64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { micro_batching: MICRO_BATCHING.default, computing_budget: COMPUTING_BUDGET.default }
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

    /// Gives up tensors among `candidates` of at least `shortfall` bytes, where there are so many.
    fn drop_dearest(
        &mut self,
        shortfall: Bytes,
        memory: &MemoryView<'_>,
        candidates: impl Iterator<Item = TensorId>,
    ) -> Vec<Relief> {
        let Some(regaining) = &mut self.regaining else { return Vec::new() };
        let presence = presence(memory);
        let at = memory.at;
        let moment = Moment { graph: memory.graph, presence: &presence, at, samples: memory.micro_batch };
        regaining.begin_choice();
        let score = |regaining: &mut Regaining, tensor: u32| {
            let life = regaining.released(tensor).saturating_sub(at);
            let won = memory.tensors[tensor as usize].bytes.as_f64() * f64::from(life);
            worth(won, regaining.recomputation(tensor, at, &moment))
        };
        let mut queue = Falling::new(candidates.map(|tensor| (score(regaining, tensor), tensor)));
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
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        self.regaining = Some(Regaining::new(setting, Layouts::Overlooked));
        let computing_budget = Some(self.parameters.computing_budget).filter(|&percent| percent < 100);
        Ok(Schedule { computing_budget, ..self.accumulation.prepare(setting)? })
    }

    fn begin_iteration(&mut self, plan: &mut IterationPlan) {
        self.accumulation.begin_iteration(plan);
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Vec<Relief> {
        match want {
            Want::OverPlan(excess) => {
                // What the next operator reads stays.
                let unread = |tensor: &TensorId| memory.tensors[*tensor as usize].next_use != memory.at;
                self.drop_dearest(excess, memory, memory.candidates.iter().filter(unread))
            }
            Want::Shortfall(shortfall) => {
                let dropped = self.drop_dearest(shortfall, memory, memory.candidates.iter());
                if dropped.is_empty() && self.parameters.micro_batching {
                    self.accumulation.relieve(want, memory)
                } else {
                    dropped
                }
            }
        }
    }

    fn end_iteration(&mut self, seen: &IterationSummary) {
        self.accumulation.end_iteration(seen);
    }
}
