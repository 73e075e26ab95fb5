//! `fedhybrid`: recomputation and compression by what each saves for its time (Tam et al., SenSys 2024, section 4.3).
//!
//! While memory is short (algorithm 1), the tensor with the largest MPS by any technique goes, by recomputation if its
//! MPS is larger than compression's, else by compression. FLT is the profiled time from the current node to the next
//! that reads the tensor. RC of a recomputation (equation 6) is the time of the tensor's operator and of everything
//! else that has to be computed for it because it is or will be gone, plus ψ times that of layout transformations:
//! those back to the operator whose result they transformed, and those on to the operator that reads the tensor.
//!
//! ```text
//! Profile (graph, times) ─┐
//! Room (budget) ──────────┴─► executor: algorithm 1 ─► Plan ─► carried out where memory is short
//!                                     │ chooser                     │ shorter than the plan: the chooser, as it runs short
//! ```
//!
//! A plan is made before an iteration if no existing plan fits its budget, by a server or on the device, and making it
//! costs time. A run takes its steps as it becomes short of memory, each at the step's operator or later; a step whose
//! tensor cannot go (any more) is skipped. When memory is shorter than planned, because a wall has fallen, an allocator
//! leaves gaps or a compressed tensor is larger than profiled, the chooser that makes plans decides directly.
//!
//! A technique that the run cannot offer (no codec, no flash) is not used; with no technique left, the policy refuses.

mod choice;
mod parameters;
pub mod plan;
pub mod predictor;
pub mod profile;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haversack_devices::units::{Bytes, Nanos};
use haversack_workloads::{TensorId, TrainingGraph};

use self::choice::Chooser;
pub use self::choice::{Surveyed, Terms, survey};
pub use self::parameters::{BudgetParameters, Parameters};
use self::plan::Plan;
pub use self::predictor::Rule;
use self::profile::Profile;
use crate::planning::{Operations, Planner, Planning, Room};
use crate::restore::Technique;
use crate::{MemoryView, Oracle, PlanAhead, Policy, PolicyError, Relief, Schedule, Setting, TensorSet, Want};

/// Hybrid tensor management.
#[derive(Clone, Debug)]
#[must_use]
pub struct FedHybrid {
    parameters: Parameters,
    in_force: Arc<Mutex<InForce>>,
    /// The plan's count of beginnings at the last look.
    begun: u64,
    /// The next step of the plan.
    next: usize,
    /// Decides in situations that the plan does not cover.
    online: Option<Chooser>,
    /// Tensors changed since the chooser last decided.
    news: TensorSet,
}

/// The plan in force, which the planner updates and the policy carries out.
#[derive(Debug, Default)]
struct InForce {
    /// `None` without a memory limit, before planning, or if no plan fits.
    plan: Option<Plan>,
    /// How many times it has begun: an iteration begins with its first step.
    begun: u64,
}

fn locked(in_force: &Mutex<InForce>) -> MutexGuard<'_, InForce> {
    in_force.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the plans, or has a server make them.
#[derive(Debug)]
struct Ahead {
    profile: Profile,
    planner: Planner,
    /// Earlier plans: a budget that comes back costs no new plan.
    made: HashMap<Room, Plan>,
    /// The room of the last plan.
    room: Room,
    in_force: Arc<Mutex<InForce>>,
}

impl PlanAhead for Ahead {
    fn plan_within(
        &mut self,
        graph: &TrainingGraph,
        room: Room,
        oracle: &dyn Oracle,
    ) -> Result<Option<Planning>, PolicyError> {
        let mut in_force = locked(&self.in_force);
        in_force.begun += 1;
        if std::mem::replace(&mut self.room, room) == room {
            return Ok(None);
        }
        in_force.plan = None;
        if room == Room::default() {
            return Ok(None);
        }
        let sends = self.planner == Planner::Server;
        let mut planning = Planning {
            planner: self.planner,
            room,
            operations: Operations::default(),
            sent: if sends { self.profile.bytes() } else { Bytes::ZERO },
            received: Bytes::ZERO,
            treatments: None,
        };
        if !self.made.contains_key(&room)
            && let Ok(plan) = self.profile.plan(graph, room, oracle)
        {
            planning.operations = plan.operations();
            self.made.insert(room, plan);
        }
        if let Some(plan) = self.made.get(&room) {
            if sends {
                planning.received = plan.bytes();
            }
            planning.treatments = Some(plan.treatments(graph));
            in_force.plan = Some(plan.clone());
        }
        Ok(Some(planning))
    }
}

impl FedHybrid {
    /// FedHybrid with `parameters`.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, in_force: Arc::default(), begun: 0, next: 0, online: None, news: TensorSet::new() }
    }

    /// The tensors that the plan gives up by now so that `wanted` becomes free.
    fn due(&mut self, wanted: Bytes, memory: &MemoryView<'_>) -> Vec<(TensorId, Technique)> {
        let in_force = locked(&self.in_force);
        if std::mem::replace(&mut self.begun, in_force.begun) != in_force.begun {
            self.next = 0;
        }
        let (Some(plan), Some(online)) = (&in_force.plan, &mut self.online) else { return Vec::new() };
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
        self.online = Some(profile.chooser.clone());
        self.in_force = Arc::default();
        (self.begun, self.next) = (0, 0);
        let planner = Ahead {
            profile,
            planner: self.parameters.planner,
            made: HashMap::new(),
            room: Room::default(),
            in_force: Arc::clone(&self.in_force),
        };
        let iteration = || setting.times().iter().copied().sum::<Nanos>();
        let budget_rule = self.parameters.budget.map(|parameters| parameters.start(iteration()));
        let round = self.parameters.budget.map(BudgetParameters::round);
        Ok(Schedule { planner: Some(Box::new(planner)), budget_rule, round, ..Schedule::plain(setting.batch) })
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
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
        Ok(chosen.into_iter().map(|(tensor, technique)| technique.relief(tensor)).collect())
    }
}
