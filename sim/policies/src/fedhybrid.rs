//! `fedhybrid`: recomputation and compression by what each saves for its time (Tam et al., SenSys 2024, section 4.3).
//!
//! While memory is short (algorithm 1), the tensor with the largest MPS by any technique goes; by recomputation where
//! that has the larger MPS of the two, else by compression. FLT runs from the node under way to the next that reads
//! the tensor, at the times that were profiled. RC of a recomputation (equation 6) is the time of the tensor's
//! operator and of all that has to be computed for it again because it is gone too or will be by then, and ψ times that of layout
//! transformations: those that lead back to the operator whose result they transformed, and those that lead on to the
//! operator that takes the tensor.
//!
//! ```text
//! Profile (graph, times) ─┐
//! Room (budget) ──────────┴─► planner: algorithm 1 ─► Plan ─► carried out where memory is short
//!                                     │ chooser                     │ shorter than the plan: the chooser, as it runs short
//! ```
//!
//! A plan is made before an iteration whose budget no plan in force is for, by a server or on the device, and has a
//! price. A run takes its steps as it becomes short of memory, each at the operator before which it stands or later; a
//! step whose tensor cannot go (any more) is left out. Where reality is shorter than the plan, since a wall has fallen, an
//! allocator leaves gaps or a compressed tensor is larger than profiled, the chooser that makes plans decides by itself.
//!
//! A technique that the run cannot offer (no codec, no flash) is not used; where none is left, the policy refuses.

pub mod cache;
mod choice;
pub mod digest;
pub mod mps;
mod parameters;
pub mod plan;
mod planner;
pub mod predictor;
pub mod profile;
mod rule;
mod survey;

use haversack_devices::units::{Bytes, Nanos};
use haversack_workloads::{TensorId, TrainingGraph};

use self::cache::PlanCache;
use self::choice::Chooser;
pub use self::parameters::{BudgetParameters, ENTRY, Parameters};
use self::plan::{Operations, Plan, PlanError, Planner};
use self::profile::Profile;
pub use self::rule::Rule;
pub use self::survey::Surveyed;
use crate::error::PolicyError;
use crate::policy::{Planning, Policy, Relief, Room, Schedule, Want};
use crate::restore::Technique;
use crate::setting::Setting;
use crate::view::{MemoryView, TensorSet};

/// Hybrid tensor management.
#[derive(Clone, Debug)]
#[must_use]
pub struct FedHybrid {
    parameters: Parameters,
    profile: Option<Profile>,
    cache: PlanCache,
    /// The plan in force; `None` where memory is not bounded, nobody has planned, or no plan fits.
    plan: Option<Plan>,
    /// What the last plan was asked for.
    room: Room,
    /// The next of its steps.
    next: usize,
    /// Decides what no plan has foreseen.
    online: Option<Chooser>,
    /// What has changed since that was last asked.
    news: TensorSet,
}

impl FedHybrid {
    /// With `parameters`.
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            profile: None,
            cache: PlanCache::default(),
            plan: None,
            room: Room::default(),
            next: 0,
            online: None,
            news: TensorSet::new(),
        }
    }

    /// The number of scores that were worked out as memory ran short.
    pub fn scored(&self) -> u64 {
        self.online.as_ref().map_or(0, |online| online.operations().scores)
    }

    /// The plan in force.
    pub const fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// A plan that came from elsewhere is in force from now on, for the budget that it is for; to be called once the
    /// policy was prepared.
    ///
    /// # Errors
    /// A plan for another graph or profile, or before the policy was prepared.
    pub fn carry_out(&mut self, plan: Plan) -> Result<(), PlanError> {
        let unprepared = || PlanError::Unreadable { reason: "the policy is not prepared for any graph yet".to_owned() };
        plan.check(self.profile.as_ref().ok_or_else(unprepared)?)?;
        (self.room, self.next, self.plan) = (plan.room(), 0, Some(plan));
        Ok(())
    }

    /// What the plan gives up by now so that `wanted` becomes free.
    fn due(&mut self, wanted: Bytes, memory: &MemoryView<'_>) -> Vec<(TensorId, Technique)> {
        let (Some(plan), Some(online)) = (&self.plan, &mut self.online) else { return Vec::new() };
        let mut due = Vec::new();
        let mut freed = Bytes::ZERO;
        while freed < wanted {
            let Some(step) = plan.steps().get(self.next).filter(|step| step.before <= memory.at) else { break };
            self.next += 1;
            if memory.candidates.contains(step.tensor) && due.iter().all(|&(tensor, _)| tensor != step.tensor) {
                let bytes = memory.tensors[step.tensor as usize].bytes;
                freed += online.freed(step.tensor, bytes, step.technique, memory.micro_batch);
                online.note(step.tensor, step.technique);
                due.push((step.tensor, step.technique));
            }
        }
        due
    }
}

impl Policy for FedHybrid {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let profile = Profile::new(setting, self.parameters);
        if !self.parameters.allowed().any(|technique| profile.offers(technique)) {
            let expected = "on, since nothing else is on that the run offers: no codec, no flash".to_owned();
            let (policy, found) = ("fedhybrid", "off".to_owned());
            return Err(PolicyError::BadValue { policy, parameter: "recomputation", found, expected });
        }
        self.online = Some(profile.chooser());
        self.profile = Some(profile);
        (self.plan, self.room, self.next) = (None, Room::default(), 0);
        let iteration = || setting.times().iter().copied().sum::<Nanos>();
        let budget_rule = self.parameters.budget.map(|parameters| parameters.start(iteration()));
        let round = self.parameters.budget.map(BudgetParameters::round);
        Ok(Schedule { budget_rule, round, ..Schedule::plain(setting.batch) })
    }

    fn plan_within(&mut self, graph: &TrainingGraph, room: Room) -> Option<Planning> {
        self.next = 0;
        let profile = self.profile.as_ref()?;
        if std::mem::replace(&mut self.room, room) == room {
            return None;
        }
        self.plan = None;
        if room == Room::default() {
            return None;
        }
        let planner = self.parameters.planner;
        let found = self.cache.get_or_make(graph, profile, room).ok();
        let sent = if planner == Planner::Server { profile.bytes() } else { Bytes::ZERO };
        let mut planning = Planning {
            planner,
            room,
            operations: Operations::default(),
            sent,
            received: Bytes::ZERO,
            treatments: None,
        };
        if let Some((plan, known)) = found {
            if planner == Planner::Server {
                planning.received = plan.bytes();
            }
            if !known {
                planning.operations = plan.operations();
            }
            planning.treatments = Some(plan.treatments(graph));
            self.plan = Some(plan);
        }
        Some(planning)
    }

    fn gives_way(&self) -> bool {
        true
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Vec<Relief> {
        for tensor in memory.changed.iter() {
            self.news.insert(tensor);
        }
        let mut chosen = self.due(want.bytes(), memory);
        if chosen.is_empty()
            && let Some(online) = &mut self.online
        {
            chosen = online.choose(want.bytes(), &MemoryView { changed: &self.news, ..*memory });
            self.news.clear();
        }
        chosen.into_iter().map(|(tensor, technique)| technique.relief(tensor)).collect()
    }
}
