//! A run's plan, written to a file and carried out again.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use haversack_devices::units::{Bytes, Nanos};
use haversack_policies::{
    IterationPlan, Oracle, Plan, PlanAhead, Planned, Planning, Policy, PolicyError, Recorder, Room, Schedule, Setting,
    registry,
};
use haversack_testing::{eager, lowered};
use haversack_training::{Budgets, Job, Machine, Observe, Record, RunError, Wall, simulate};
use haversack_workloads::TrainingGraph;
use haversack_workloads::lowering::Variant;

use crate::common::{job, on, share};
use crate::support::phone_cpu;

/// Runs one iteration of `job` by `plan`.
fn try_plan(machine: &Machine, job: &Job<'_>, plan: Plan) -> Result<Record, RunError> {
    let job = Job { iterations: 1, observe: Observe::default(), ..job.clone() };
    simulate(machine, &job, &mut Planned::new(plan))
}

/// Runs `id` with `set` for `job`; returns everything recorded of the run, and the plan's text.
fn recorded(machine: &Machine, job: &Job<'_>, id: &str, set: &[(&str, &str)]) -> (String, String) {
    let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut policy = registry::build(id, &set).unwrap();
    let mut recorder = Recorder::new(policy.as_mut());
    let record = simulate(machine, job, &mut recorder).unwrap();
    (format!("{record:#?}"), recorder.into_plan().unwrap().to_text())
}

/// The same for the plan `text`.
fn again(machine: &Machine, job: &Job<'_>, text: &str) -> (String, String) {
    let mut planned = Planned::new(Plan::of_text(text).unwrap());
    let mut recorder = Recorder::new(&mut planned);
    let record = simulate(machine, job, &mut recorder).unwrap();
    (format!("{record:#?}"), recorder.into_plan().unwrap().to_text())
}

fn replays(machine: &Machine, job: &Job<'_>, id: &str, set: &[(&str, &str)]) -> String {
    let (run, text) = recorded(machine, job, id, set);
    let (second, written) = again(machine, job, &text);
    assert_eq!(written, text, "{id} {set:?}");
    assert_eq!(second, run, "{id} {set:?}");
    text
}

/// `iterations` of `batch` samples within a share of `original`'s peak memory, and of its saved tensors.
fn bounded<'g>(machine: &Machine, graph: &'g TrainingGraph, batch: u64, memory: u64, saved: u64) -> Job<'g> {
    let plain = recorded_peak(machine, &job(graph, batch));
    let of = |(bytes, percent): (Bytes, u64)| (percent < 100).then(|| share(bytes, percent));
    let budgets = Budgets { memory: of((plain.0, memory)), activations: of((plain.1, saved)), ..Budgets::default() };
    Job { budgets, iterations: 3, ..job(graph, batch) }
}

fn recorded_peak(machine: &Machine, job: &Job<'_>) -> (Bytes, Bytes) {
    let record = simulate(machine, job, registry::build("original", &[]).unwrap().as_mut()).unwrap();
    (record.peak_memory, record.peak_saved)
}

#[test]
fn what_sages_policies_did_is_done_again() {
    let (machine, graph) = (on("galaxy-s10", "sage-opencl"), lowered("resnet8-cifar", Variant::Reduced));
    let job = bounded(&machine, &graph, 16, 75, 100);
    for id in ["sgc", "sga", "dgc", "dga", "sage", "dtr"] {
        let job = if id == "sgc" { Job { budgets: Budgets::default(), ..job.clone() } } else { job.clone() };
        replays(&machine, &job, id, &[]);
    }
    replays(&machine, &job, "sga", &[("batch_norm", "whole")]);
    // A wall within forward, after which the policy decides again.
    let wall = Wall { at: Nanos(1_000_000), memory: share(job.budgets.memory.unwrap(), 95) };
    let walls = Job { budgets: Budgets { walls: vec![wall], ..job.budgets.clone() }, ..job.clone() };
    replays(&machine, &walls, "sage", &[("order", "half"), ("floor", "1")]);
}

#[test]
fn what_quantising_policies_did_is_done_again() {
    let (machine, graph) = (on("jetson-agx-xavier", "pytorch-cuda"), eager("resnet18-cifar"));
    let free = job(&graph, 8);
    for (id, set) in [
        ("original", &[][..]),
        ("fixed8", &[]),
        ("elastictrainer", &[]),
        ("actnn", &[]),
        ("gact", &[("level", "L2")]),
        ("daf", &[]),
        ("daf", &[("bits", "32"), ("trained_share", "50")]),
    ] {
        replays(&machine, &free, id, set);
    }
    // With a time budget, gradients are given up beforehand, and saved tensors read only by them stay to the end.
    let whole = simulate(&machine, &free, registry::build("original", &[]).unwrap().as_mut()).unwrap().iteration;
    let budgets = Budgets { time: Some(Nanos(whole.0 * 3 / 4)), ..Budgets::default() };
    for id in ["elastictrainer", "daf"] {
        replays(&machine, &Job { budgets: budgets.clone(), ..free.clone() }, id, &[]);
    }
    let in_small_steps = [("page_kib", "4"), ("step_mb", "1"), ("packing", "gpu")];
    // Bits are reduced during the iteration, and gradients given up.
    let saved = recorded_peak(&machine, &free).1;
    let wall = Wall { at: Nanos(4_000_000), memory: share(saved, 30) };
    let budgets = Budgets { activations: Some(share(saved, 60)), activation_walls: vec![wall], ..Budgets::default() };
    let text = replays(&machine, &Job { budgets, iterations: 3, ..free.clone() }, "daf", &in_small_steps);
    assert!(text.contains("\"requantise\""), "{text}");
}

#[test]
fn what_policies_for_phones_did_is_done_again() {
    let (machine, graph) = (phone_cpu(), eager("resnet8-cifar"));
    let job = bounded(&machine, &graph, 16, 75, 100);
    for id in ["capuchin", "melon", "fedhybrid"] {
        replays(&machine, &job, id, &[]);
    }
    replays(&machine, &job, "fedhybrid", &[("planner", "phone"), ("swapping", "on")]);
}

#[test]
fn a_plan_is_for_its_own_batch_network_and_machine() {
    let (machine, graph) = (on("galaxy-s10", "sage-opencl"), lowered("lenet5", Variant::Reduced));
    let (_, text) = recorded(&machine, &job(&graph, 8), "original", &[]);
    let plan = Plan::of_text(&text).unwrap();
    let refusal = |machine: &Machine, job: &Job<'_>| try_plan(machine, job, plan.clone()).unwrap_err().to_string();
    let of_batch = refusal(&machine, &job(&graph, 16));
    assert!(of_batch.ends_with("plan: is for a batch of 8; this run has one of 16"), "{of_batch}");
    let other = lowered("resnet18-cifar", Variant::Reduced);
    let of_network = refusal(&machine, &job(&other, 8));
    assert!(of_network.contains("is for another network: where it has "), "{of_network}");
    let of_machine = refusal(&on("pixel-6", "sage-opencl"), &job(&graph, 8));
    assert!(of_machine.contains("is for another machine: "), "{of_machine}");
    for (from, to, why) in [
        ("\"version\": 1", "\"version\": 2", "version is 2; expected 1"),
        ("\"batch\"", "\"bath\"", "unknown field `bath`"),
        ("\"iterations\"", "\"iteration\"", "unknown field `iteration`"),
    ] {
        let error = Plan::of_text(&text.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

/// Plans the largest micro-batch that fits, by trying.
#[derive(Debug)]
struct Largest {
    batch: u64,
    keeps: Plan,
    found: Arc<AtomicU64>,
}

impl PlanAhead for Largest {
    fn plan_within(
        &mut self,
        _: &TrainingGraph,
        room: Room,
        oracle: &dyn Oracle,
    ) -> Result<Option<Planning>, PolicyError> {
        let fits = |&samples: &u64| {
            let mut plan = self.keeps.clone();
            plan.iterations[0].micro_batch = samples;
            let tried = oracle.run(&mut Planned::new(plan), room, 1);
            tried.is_ok_and(|tried| tried.peak <= room.memory.unwrap() && tried.time > Nanos::ZERO)
        };
        self.found.store((1..=self.batch).rev().find(fits).unwrap(), Relaxed);
        Ok(None)
    }
}

struct Tries(Arc<AtomicU64>);

impl Policy for Tries {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let (batch, keeps, found) = (setting.batch, Plan::keeping_all(setting), Arc::clone(&self.0));
        Ok(Schedule { planner: Some(Box::new(Largest { batch, keeps, found })), ..Schedule::plain(setting.batch) })
    }

    fn begin_iteration(&mut self, plan: &mut IterationPlan) -> Result<(), PolicyError> {
        plan.micro_batch = self.0.load(Relaxed);
        Ok(())
    }
}

#[test]
fn a_planner_asks_the_executor_before_the_micro_batch_is_fixed() {
    let (machine, graph) = (phone_cpu(), eager("resnet8-cifar"));
    let job = Job { iterations: 1, ..bounded(&machine, &graph, 8, 75, 100) };
    let record = simulate(&machine, &job, &mut Tries(Arc::default())).unwrap();
    let first = record.micro_batches[0];
    assert!(first > 1 && first < 8 && record.peak_memory <= job.budgets.memory.unwrap(), "{first}");
    // One sample more does not fit.
    let mut more = haversack_training::with_setting(&machine, &job, Plan::keeping_all);
    more.iterations[0].micro_batch = first + 1;
    assert!(try_plan(&machine, &job, more).unwrap_err().is_infeasible());
}

#[test]
fn a_plan_by_hand_is_tried_on_the_executor() {
    let (machine, graph) = (phone_cpu(), eager("resnet18-cifar"));
    let job = job(&graph, 16);
    let keeps = haversack_training::with_setting(&machine, &job, Plan::keeping_all);
    let kept = try_plan(&machine, &job, keeps.clone()).unwrap();
    let mut halves = keeps;
    halves.iterations[0].micro_batch = 8;
    let halved = try_plan(&machine, &job, halves).unwrap();
    assert_eq!((kept.micro_batches, halved.micro_batches), (vec![16], vec![8, 8]));
    assert!(halved.peak_growth < kept.peak_growth && halved.iteration > kept.iteration);
}
