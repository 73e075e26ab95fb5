//! State that policies keep between calls changes no answer: each policy is compared with a copy without that state,
//! which scores everything.

use haversack_policies::capuchin::Capuchin;
use haversack_policies::dtr::Dtr;
use haversack_policies::fedhybrid::{self, FedHybrid};
use haversack_policies::melon::{self, Melon};
use haversack_policies::planning::Operations;
use haversack_policies::sage::{Dynamic, Order};
use haversack_policies::{
    Holding, IterationPlan, IterationSummary, MemoryView, Policy, PolicyError, Relief, Schedule, Setting, TensorSet,
    Want,
};
use haversack_replay::Heuristic;
use haversack_training::{Record, RunError};
use haversack_workloads::TensorId;

use crate::chains::{self, Pressure};
use crate::setting::MELON;

/// Makes the same calls to a copy of the policy to which everything is new.
struct Checked<P> {
    policy: P,
    questions: u64,
}

impl<P: Policy + Clone> Policy for Checked<P> {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        self.policy.prepare(setting)
    }

    fn begin_iteration(&mut self, plan: &mut IterationPlan) -> Result<(), PolicyError> {
        self.policy.begin_iteration(plan)
    }

    fn hold(&mut self, tensor: TensorId, memory: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        self.policy.hold(tensor, memory)
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        self.questions += 1;
        let all: TensorSet = (0..memory.tensors.len() as TensorId).collect();
        let searched = self.policy.clone().relieve(want, &MemoryView { changed: &all, ..*memory });
        let kept = self.policy.relieve(want, memory);
        assert_eq!(kept, searched, "question {} at node {}", self.questions, memory.at);
        kept
    }

    fn end_iteration(&mut self, seen: &IterationSummary) -> Result<Operations, PolicyError> {
        self.policy.end_iteration(seen)
    }
}

/// Two iterations of networks with shortcuts of several lengths, within less and less memory.
fn in_lock_step<P: Policy + Clone>(policy: impl Fn() -> P) -> u64 {
    let machine = chains::phone();
    let mut questions = 0;
    for (shortcut, pressure) in
        [(0, Pressure::Sudden(60)), (4, Pressure::Planned(50)), (7, Pressure::Sudden(35)), (3, Pressure::Sudden(25))]
    {
        let graph = chains::network(300, shortcut);
        let mut checked = Checked { policy: policy(), questions: 0 };
        match chains::run(&machine, &graph, pressure, 2, &mut checked) {
            Ok(Record { .. }) | Err(RunError::OutOfMemory { .. } | RunError::Thrashing { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        questions += checked.questions;
    }
    questions
}

#[test]
fn checkpointing_keeps_its_ranking() {
    for order in [Order::CheckpointingOnly, Order::CheckpointingFirst, Order::Half, Order::Alternate] {
        assert!(in_lock_step(|| Dynamic::new(order, None)) > 10, "{order:?}");
    }
}

#[test]
fn dtr_keeps_its_ranking() {
    for heuristic in Heuristic::ALL {
        assert!(in_lock_step(|| Dtr::new(heuristic)) > 100, "{heuristic}");
    }
}

#[test]
fn melon_keeps_its_ranking() {
    for computing_budget in [Some(100), Some(70), None] {
        let parameters = melon::Parameters { computing_budget, ..MELON };
        assert!(in_lock_step(|| Melon::new(parameters)) > 100, "{computing_budget:?}");
    }
}

#[test]
fn capuchin_keeps_its_rankings() {
    assert!(in_lock_step(Capuchin::default) > 100);
}

#[test]
fn fedhybrid_keeps_its_ranking() {
    let default = fedhybrid::Parameters::default();
    for (compression, recomputation, swapping, layout) in [
        (true, true, false, true),
        (false, true, false, true),
        (true, true, true, false),
        (true, false, true, true),
        (false, true, true, false),
    ] {
        let parameters = fedhybrid::Parameters { compression, recomputation, swapping, layout, ..default };
        assert!(in_lock_step(|| FedHybrid::new(parameters)) > 100, "{parameters:?}");
    }
}
