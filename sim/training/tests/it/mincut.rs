//! `mincut` against the policies of papers and against the bound, within a class of fidelity.

use haversack_devices::units::{Bytes, Nanos};
use haversack_policies::{POLICIES, Policy, Room, WHOLE, registry};
use haversack_training::{
    Allowed, Budgets, FidelityClass, Job, Machine, Record, Tries, Wall, least_time, simulate, with_setting,
};
use haversack_workloads::autograd::{EagerRules, differentiate};
use haversack_workloads::{TrainingGraph, models};

use crate::common::{machine, on, policy, share};

const CLASSES: [FidelityClass; 3] = [FidelityClass::Exact, FidelityClass::BatchStatistics, FidelityClass::Stored];

fn eager(id: &str) -> TrainingGraph {
    differentiate(&models::build(id, None).unwrap(), EagerRules::default()).unwrap()
}

fn mincut(set: &[(&str, &str)]) -> Box<dyn Policy> {
    let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    registry::build("mincut", &set).unwrap()
}

fn needed(machine: &Machine, graph: &TrainingGraph, batch: u64) -> Bytes {
    simulate(machine, &Job::plain(graph, batch), policy("original").as_mut()).unwrap().peak_memory
}

/// Two iterations: some policies learn from the first.
fn within<'a>(graph: &'a TrainingGraph, batch: u64, memory: Bytes) -> Job<'a> {
    let budgets = Budgets { memory: Some(memory), ..Budgets::default() };
    Job { budgets, iterations: 2, ..Job::plain(graph, batch) }
}

fn ran(machine: &Machine, job: &Job<'_>, mut policy: Box<dyn Policy>) -> Option<Record> {
    simulate(machine, job, policy.as_mut()).ok()
}

#[test]
fn it_is_nowhere_slower_than_papers_policies_and_never_beats_the_bound() {
    let machines = [machine(), on("rtx-3090", "pytorch-cuda"), on("server-core", "pytorch-cpu")];
    let (mut faster, mut points, mut alone) = (0, 0, 0);
    for (name, batch) in [("resnet18-cifar", 64), ("mobilenetv2", 16)] {
        let graph = eager(name);
        for machine in &machines {
            let needed = needed(machine, &graph, batch);
            for percent in [90, 60, 40] {
                let job = within(&graph, batch, share(needed, percent));
                let papers = POLICIES.iter().filter(|entry| entry.id != "mincut");
                let papers: Vec<Record> = papers.filter_map(|entry| ran(machine, &job, policy(entry.id))).collect();
                for class in CLASSES {
                    let own = ran(machine, &job, mincut(&[("fidelity", class.word())]));
                    let is_like = |record: &&Record| {
                        record.fidelity.class() <= class
                            && (record.fidelity.least_bits >= 8 || class < FidelityClass::Stored)
                    };
                    let best = papers.iter().filter(is_like).map(|record| record.iteration).min();
                    let Some(own) = own else {
                        assert_eq!(best, None, "{name}, {percent}%, {class:?}");
                        continue;
                    };
                    assert!(own.fidelity.class() <= class, "{name}, {percent}%: {:?}", own.fidelity);
                    let least_bits = if class == FidelityClass::Stored { 8 } else { WHOLE };
                    let allowed = Allowed { parts: class > FidelityClass::Exact, least_bits, flash: true };
                    let bound = least_time(machine, &job, allowed).unwrap();
                    assert!(bound <= own.iteration, "{name}, {percent}%, {class:?}");
                    let Some(Nanos(best)) = best else {
                        alone += 1;
                        continue;
                    };
                    let own = own.iteration.0 as f64 / best as f64;
                    assert!(own <= 1.01, "{name}, {percent}%, {class:?}: {own:.3} of the best paper's time");
                    (points, faster) = (points + 1, faster + usize::from(own < 0.999));
                }
            }
        }
    }
    assert!(faster * 3 > points, "faster at {faster} of {points} points, alone at {alone}");
}

#[test]
fn what_is_set_is_kept_to() {
    let (machine, graph) = (on("server-core", "pytorch-cpu"), eager("resnet18-cifar"));
    let job = within(&graph, 32, share(needed(&machine, &graph, 32), 60));
    let run = |set: &[(&str, &str)]| ran(&machine, &job, mincut(set));
    let of = |record: &Option<Record>| record.as_ref().map_or(u64::MAX, |record| record.iteration.0);
    let exact = run(&[]);
    assert_eq!(of(&exact), of(&run(&[])), "deterministic");
    let classes = ["exact", "batch-statistics", "stored"].map(|word| of(&run(&[("fidelity", word)])));
    assert!(classes.is_sorted_by(|first, second| first >= second), "{classes:?}");
    let bits = ["16", "4"].map(|bits| run(&[("fidelity", "stored"), ("least_bits", bits)]).unwrap());
    assert!(bits[0].fidelity.least_bits >= 16 && bits[1].fidelity.least_bits >= 4);
    let kept = run(&[("flash", "off")]).unwrap();
    assert_eq!(kept.flash_written, Bytes::ZERO);
    assert!(of(&run(&[("tries", "13")])) >= of(&run(&[("tries", "200")])));
    let refused = |set: &[(&str, &str)]| {
        let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        registry::build("mincut", &set).err().unwrap().to_string()
    };
    assert!(refused(&[("least_bits", "4")]).contains("does nothing without fidelity=stored"));
    assert!(refused(&[("fidelity", "exct")]).contains("did you mean 'exact'"));
}

#[test]
fn a_budget_that_moves_is_planned_for_anew_and_planning_is_counted() {
    let (machine, graph) = (machine(), eager("resnet18-cifar"));
    let needed = needed(&machine, &graph, 16);
    let job = within(&graph, 16, share(needed, 80));
    let oracle = Tries::exact(&machine, &job);
    let room = |percent| Room { memory: Some(share(needed, percent)), activations: None };
    for planner in ["server", "phone"] {
        let mut policy = mincut(&[("planner", planner)]);
        let mut ahead = with_setting(&machine, &job, |setting| policy.prepare(setting)).unwrap().planner.unwrap();
        let mut plan_within = |percent| ahead.plan_within(&graph, room(percent), &oracle).unwrap();
        let plans = [80, 75].map(|percent| plan_within(percent).unwrap());
        for planning in plans {
            assert!(planning.operations.operators > graph.nodes.len() as u64 * 10, "its tries are counted");
            assert!(planning.treatments.unwrap().kept < graph.saved().len() as u64);
            // A profile is sent to the server, and the plan comes back.
            assert_eq!(planning.sent > Bytes::ZERO && planning.received > Bytes::ZERO, planner == "server");
        }
        assert_eq!(plan_within(75), None, "the plan in force holds");
    }
    // The number of tries is limited.
    let [few, more] = ["3", "13"].map(|tries| {
        let mut policy = mincut(&[("tries", tries)]);
        let mut ahead = with_setting(&machine, &job, |setting| policy.prepare(setting)).unwrap().planner.unwrap();
        ahead.plan_within(&graph, room(80), &oracle).unwrap().unwrap().operations.operators
    });
    assert!(few < more, "{few} operators in three tries, {more} in thirteen");
    // A wall that no plan has foreseen: the tensor that is cheapest to restore gives way.
    let mut walled = job.clone();
    let at = Nanos(ran(&machine, &job, mincut(&[])).unwrap().iteration.0 / 5);
    walled.budgets.walls = vec![Wall { at, memory: share(needed, 75) }];
    assert!(ran(&machine, &walled, mincut(&[])).is_some());
}
