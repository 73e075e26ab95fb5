//! FedHybrid's plan: made by hand, sent, cached, stale, refused, and carried out.

use haversack_devices::units::{Bytes, Nanos};
use haversack_policies::fedhybrid::plan::{Operations, Plan, Planner, Step, Treatments};
use haversack_policies::fedhybrid::profile::Profile;
use haversack_policies::fedhybrid::{FedHybrid, Parameters};
use haversack_policies::original::Original;
use haversack_policies::planning::Room;
use haversack_policies::restore::Technique;
use haversack_policies::setting::Compression;
use haversack_policies::{MemoryView, Policy, PolicyError, Relief, Schedule, Setting, Want};
use haversack_training::{Budgets, Job, Record, Tries, Wall, simulate, with_setting};
use haversack_workloads::TensorId;

use super::scene::Scene;
use crate::chains::{self, BATCH};
use crate::growth::scored;

fn room(memory: u64) -> Room {
    Room { memory: Some(Bytes(memory)), activations: None }
}

/// 0 (1 B) → 1 (5 ns, 10 B) → 2 (7 ns, 20 B) → 3 (9 ns, 30 B); backward reads 3, 2 and 1 and makes a byte each time.
fn three_operators() -> Scene {
    let forward: [(&[TensorId], u64, bool); 3] = [(&[0], 5, false), (&[1], 7, false), (&[2], 9, false)];
    Scene::new(&forward, &[&[3], &[2], &[1]], &[1, 10, 20, 30])
}

fn plan(scene: &Scene, memory: u64) -> Result<Plan, PolicyError> {
    let (machine, job) = (chains::phone(), Job::plain(&scene.graph, 1));
    let oracle = Tries::exact(&machine, &job);
    Profile::new(&scene.setting(), Parameters::default()).plan(&scene.graph, room(memory), &oracle)
}

#[test]
fn three_operators_by_hand() {
    let mut scene = three_operators();
    // 1 + 10 + 20 + 30, and a byte that backward makes, are 62.
    let enough = plan(&scene, 62).unwrap();
    assert_eq!(enough.steps(), []);
    // The six operators of the schedule; nothing is scored.
    assert_eq!(enough.operations(), Operations { scores: 0, operators: 6 });
    assert_eq!(enough.treatments(&scene.graph), Treatments { kept: 3, ..Treatments::default() });
    // Within 60 operator 2 lacks a byte for its 30: of 1 and 2 it reads 2, so that 1 goes.
    let short = plan(&scene, 60).unwrap();
    assert_eq!(short.steps(), [Step { before: 2, tensor: 1, technique: Technique::Recompute }]);
    // One score. Operator 0 is visited to find the best technique, once more for its terms, and runs again in addition
    // to the six.
    assert_eq!(short.operations(), Operations { scores: 1, operators: 2 + 7 });
    assert_eq!(short.treatments(&scene.graph), Treatments { kept: 2, recomputed: 1, ..Treatments::default() });
    // Away for 9 + 1 + 1 ns: 10 × 11 / 5 = 22. A codec that leaves 4 B in 1 + 2 ns reaches 6 × 11 / 3 = 22, and wins
    // the tie.
    let codec = |bytes| Some(Compression { bytes: Bytes(bytes), compress: Nanos(1), decompress: Nanos(2) });
    scene.prices.codec = vec![None, codec(4), None, None];
    let compressed = plan(&scene, 60).unwrap();
    assert_eq!(compressed.steps(), [Step { before: 2, tensor: 1, technique: Technique::Compress }]);
    // A worse ratio, as for another kind of operator: 5 × 11 / 3 = 18.
    scene.prices.codec = vec![None, codec(5), None, None];
    assert_eq!(plan(&scene, 60).unwrap().steps(), short.steps());
    // Operator 2 cannot run without 1 + 20 + 30 B.
    let error = plan(&scene, 50).unwrap_err();
    assert!(error.to_string().contains("1 B beyond a budget of 50 B"), "{error}");
}

#[test]
fn a_plan_is_made_anew_when_the_budget_moves_and_once_for_each_budget() {
    let scene = three_operators();
    let (machine, job) = (chains::phone(), Job::plain(&scene.graph, 1));
    let oracle = Tries::exact(&machine, &job);
    let planner = |parameters| FedHybrid::new(parameters).prepare(&scene.setting()).unwrap().planner.unwrap();
    let mut server = planner(Parameters::default());
    let mut plan_within = |room| server.plan_within(&scene.graph, room, &oracle).unwrap();
    let first = plan_within(room(60)).unwrap();
    assert_eq!((first.planner, first.room), (Planner::Server, room(60)));
    assert!(first.operations.operators > 0 && first.sent > Bytes::ZERO);
    assert_eq!(first.received, plan(&scene, 60).unwrap().bytes());
    // It stays in force until the budget changes; a budget that comes back is in the server's table, but is sent again.
    assert_eq!(plan_within(room(60)), None);
    let second = plan_within(room(55)).unwrap();
    assert!(second.operations.operators > 0);
    let again = plan_within(room(60)).unwrap();
    assert_eq!(again.operations, Operations::default());
    assert_eq!((again.sent, again.received), (first.sent, first.received));
    // An infeasible budget has no plan, and unbounded memory needs none.
    assert_eq!(plan_within(room(50)).unwrap().treatments, None);
    assert_eq!(plan_within(Room::default()), None);
    // If the device plans, nothing is sent.
    let mut own = planner(Parameters { planner: Planner::Phone, ..Parameters::default() });
    let made = own.plan_within(&scene.graph, room(60), &oracle).unwrap().unwrap();
    assert_eq!((made.operations, made.sent, made.received), (first.operations, Bytes::ZERO, Bytes::ZERO));
}

/// FedHybrid without a plan.
struct Online(FedHybrid);

impl Policy for Online {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        Ok(Schedule { planner: None, ..self.0.prepare(setting)? })
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        self.0.relieve(want, memory)
    }
}

/// The results of a run.
fn outcome(record: &Record) -> (Vec<Nanos>, u64, Bytes, Nanos) {
    (record.iterations.clone(), record.recomputed, record.peak_memory, record.breakdown.compression)
}

#[test]
fn a_run_by_a_plan_is_the_run_that_deciding_as_memory_runs_short_is() {
    let machine = chains::phone();
    for (operators, shortcut) in [(60, 0), (120, 5), (300, 7)] {
        let graph = chains::network(operators, shortcut);
        let whole = simulate(&machine, &Job::plain(&graph, BATCH), &mut Original).unwrap().peak_memory;
        for percent in [90, 60, 40, 25] {
            let memory = Bytes(whole.0 / 100 * percent);
            let budgets = Budgets { memory: Some(memory), ..Budgets::default() };
            let job = Job { budgets, iterations: 2, ..Job::plain(&graph, BATCH) };
            let Ok(online) = simulate(&machine, &job, &mut Online(FedHybrid::new(Parameters::default()))) else {
                continue;
            };
            let oracle = Tries::exact(&machine, &job);
            let made = with_setting(&machine, &job, |setting| {
                Profile::new(setting, Parameters::default()).plan(&graph, room(memory.0), &oracle).unwrap()
            });
            let own = simulate(&machine, &job, &mut FedHybrid::new(Parameters::default())).unwrap();
            assert_eq!(own.plans.len(), 1);
            assert_eq!(Some(made.treatments(&graph)), own.plans[0].planning.treatments);
            assert_eq!(outcome(&own), outcome(&online), "{operators} operators, {percent} %");
        }
    }
}

#[test]
fn where_reality_is_shorter_than_the_plan_the_rest_is_decided_as_memory_runs_short() {
    let (machine, graph) = (chains::phone(), chains::network(200, 4));
    let whole = simulate(&machine, &Job::plain(&graph, BATCH), &mut Original).unwrap();
    let share = |percent: u64| Bytes(whole.peak_memory.0 / 100 * percent);
    // A wall falls in the middle of forward, below the planned memory.
    let walls = vec![Wall { at: Nanos(whole.forward.0 / 2), memory: share(45) }];
    let budgets = Budgets { memory: Some(share(80)), walls, ..Budgets::default() };
    let job = Job { budgets, ..Job::plain(&graph, BATCH) };
    let mut policy = FedHybrid::new(Parameters::default());
    let walled = simulate(&machine, &job, &mut policy).unwrap();
    assert!(scored(&policy) > 0, "the chooser decides what the plan has not foreseen");
    let calm = Job { budgets: Budgets { memory: Some(share(80)), ..Budgets::default() }, ..Job::plain(&graph, BATCH) };
    let mut policy = FedHybrid::new(Parameters::default());
    let planned = simulate(&machine, &calm, &mut policy).unwrap();
    assert_eq!(scored(&policy), 0, "the plan is enough");
    assert!(planned.recomputed > 0 && walled.recomputed > planned.recomputed);
}

#[test]
fn the_price_of_a_plan_grows_with_the_graph() {
    let machine = chains::phone();
    let price = |operators: usize| {
        let graph = chains::network(operators, 4);
        let whole = simulate(&machine, &Job::plain(&graph, BATCH), &mut Original).unwrap().peak_memory;
        let job = Job::plain(&graph, BATCH);
        let oracle = Tries::exact(&machine, &job);
        let made = with_setting(&machine, &job, |setting| {
            Profile::new(setting, Parameters::default()).plan(&graph, room(whole.0 / 2), &oracle).unwrap()
        });
        (made.operations().operators, made.operations().scores, made.bytes())
    };
    let (few, many) = (price(100), price(400));
    assert!(many.0 > 2 * few.0 && many.1 > 2 * few.1 && many.2 > few.2, "{few:?} {many:?}");
}

#[test]
fn a_run_waits_for_every_plan_but_the_first() {
    let (machine, graph) = (chains::phone(), chains::network(200, 4));
    let whole = simulate(&machine, &Job::plain(&graph, BATCH), &mut Original).unwrap();
    let share = |percent: u64| Bytes(whole.peak_memory.0 / 100 * percent);
    // The budget falls while the first iteration runs.
    let traced = vec![Wall { at: Nanos(whole.iteration.0 / 2), memory: share(50) }];
    let budgets = Budgets { memory: Some(share(80)), traced, ..Budgets::default() };
    let job = Job { budgets, iterations: 2, ..Job::plain(&graph, BATCH) };
    let run = |planner| {
        let mut policy = FedHybrid::new(Parameters { planner, ..Parameters::default() });
        simulate(&machine, &job, &mut policy).unwrap()
    };
    let (server, phone) = (run(Planner::Server), run(Planner::Phone));
    for record in [&server, &phone] {
        let [first, second] = record.plans.as_slice() else { panic!("{:?}", record.plans) };
        assert_eq!((first.iteration, second.iteration), (0, 1));
        assert_eq!((first.planning.room, second.planning.room), (room(share(80).0), room(share(50).0)));
        let time = machine.planning_time(&second.planning).unwrap();
        assert!(time > Nanos::ZERO);
        assert_eq!((second.time, record.breakdown.planning), (Some(time), time));
    }
    // Everything else is the same with both planners.
    let alone = |record: &Record| record.iteration - record.breakdown.planning;
    assert_eq!(alone(&server), alone(&phone));
    assert_eq!(server.plans[1].planning.operations, phone.plans[1].planning.operations);
    // A little core has 6,750 millionths of a CoreMark iteration of overhead for each operation.
    let operations = phone.plans[1].planning.operations;
    assert_eq!(machine.making_time(Planner::Phone, operations), phone.plans[1].time);
    assert!(machine.making_time(Planner::Server, operations) < phone.plans[1].time);
    let work = |stack: &str| haversack_devices::load_stack(stack).unwrap().constants.planning.is_some();
    assert!(work("mnn-2") && !work("mnn"));
}
