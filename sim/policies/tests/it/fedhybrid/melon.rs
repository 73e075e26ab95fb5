//! `melon`: its rule against an exhaustive search, and the micro-batch if that is not enough.

use std::collections::HashSet;

use haversack_devices::units::Bytes;
use haversack_devices::work::OperatorKind;
use haversack_policies::melon::pool::{Life, Packing, pack};
use haversack_policies::melon::{Melon, Parameters};
use haversack_policies::planning::Planner;
use haversack_policies::policy::ComputingBudget;
use haversack_policies::{IterationPlan, IterationSummary, MemoryView, Policy, Relief, Want, registry};
use haversack_training::PlanReport;
use haversack_workloads::{Extent, NodeId, Phase, TensorId};
use proptest::prelude::*;

use super::scene::{Scene, scenes};
use crate::chains::{self, Pressure};
use crate::setting::MELON;

use Relief::{Rematerialise, ShrinkMicroBatch};

fn relieve(parameters: Parameters, scene: &Scene, view: &MemoryView<'_>, shortfall: u64) -> Vec<Relief> {
    let mut policy = Melon::new(parameters);
    policy.prepare(&scene.setting()).unwrap();
    policy.relieve(Want::Shortfall(Bytes(shortfall)), view).unwrap()
}

/// 0 → 1 (5 ns, 10 B) → 2 (8 ns, 20 B) → 3 (10 ns, 30 B); backward reads 3, 2, 1, 2.
fn chain() -> Scene {
    let forward: [(&[TensorId], u64, bool); 3] = [(&[0], 5, false), (&[1], 8, false), (&[2], 10, false)];
    Scene::new(&forward, &[&[0], &[3], &[2], &[1], &[2]], &[1, 10, 20, 30])
}

#[test]
fn size_times_remaining_life_over_cost() {
    let scene = chain();
    let melon = |shortfall| relieve(MELON, &scene, &scene.view(), shortfall);
    // From node 3 on 3 lives to node 4, 1 to 6, and 2 to 7, although it is read at 5 before: 30 × 1 / 10 = 3,
    // 10 × 3 / 5 = 6, 20 × 4 / 8 = 10.
    assert_eq!(melon(1), [Rematerialise(2)]);
    assert_eq!(melon(20), [Rematerialise(2)]);
    // Then 3 costs 18: 30 / 18 = 1.7 against 6 for 1, which itself does not need 2.
    assert_eq!(melon(21), [Rematerialise(2), Rematerialise(1)]);
    assert_eq!(melon(1_000), [Rematerialise(2), Rematerialise(1), Rematerialise(3)]);
}

#[test]
fn what_exceeds_the_computing_budget_goes_but_for_what_is_read_next() {
    let forward: [(&[TensorId], u64, bool); 3] = [(&[0], 5, false), (&[1], 8, false), (&[2], 10, false)];
    let mut scene = Scene::new(&forward, &[&[3], &[2], &[1], &[2, 3]], &[1, 10, 20, 30]);
    // After an operator no tensor is in use, including inputs of the next one.
    scene.candidates.insert(3);
    let mut policy = Melon::new(Parameters { computing_budget: Some(63), ..MELON });
    assert_eq!(policy.prepare(&scene.setting()).unwrap().computing_budget, Some(ComputingBudget::Percent(63)));
    // Node 3 is next and reads tensor 3, as the last one does: of the others 2 is worth most, then 1; then nothing more
    // can go.
    assert_eq!(policy.relieve(Want::OverPlan(Bytes(1)), &scene.view()).unwrap(), [Rematerialise(2)]);
    assert_eq!(
        policy.relieve(Want::OverPlan(Bytes(1_000)), &scene.view()).unwrap(),
        [Rematerialise(2), Rematerialise(1)]
    );
    // At a hundred percent plan and device agree, and the policy is not called after an operator.
    let told = |computing_budget| {
        let mut policy = Melon::new(Parameters { computing_budget, ..MELON });
        policy.prepare(&scene.setting()).unwrap().computing_budget
    };
    assert_eq!(told(Some(100)), None);
    // By default the memory that operators leave: the largest outputs of an operator are 30 B a sample. All three live
    // at the same time, plus a byte of backward's.
    let working = Extent::per_sample(30);
    let own = ComputingBudget::Pool { working, pool: Bytes(61), live: Bytes(61) };
    assert_eq!(told(None), Some(own));
    assert_eq!(own.of(Bytes(100), 1), Bytes(70));
    // 61 in 122 of the rest if the pool has as many gaps as tensors, and less if parts have more samples.
    let gaps = ComputingBudget::Pool { working, pool: Bytes(122), live: Bytes(61) };
    assert_eq!(
        (gaps.of(Bytes(100), 1), gaps.of(Bytes(100), 2), gaps.of(Bytes(100), 4)),
        (Bytes(35), Bytes(20), Bytes(0))
    );
    let refused = |value: &str| registry::build("melon", &[("computing_budget".to_owned(), value.to_owned())]).is_err();
    assert!(refused("0") && refused("101") && !refused("63"));
}

#[test]
fn a_pool_places_the_longest_lives_first_and_has_gaps() {
    let life = |from, to, bytes| Life { from, to, bytes: Bytes(bytes) };
    // 0 to 5 at 0..2; 4 to 8 above it at 2..3; 6 to 9 overlaps only the second: of its 3 B two fit below, so it lies at
    // 3..6. At most 1 + 3 B live at a time.
    let lives = [life(0, 5, 2), life(4, 8, 1), life(6, 9, 3)];
    assert_eq!(pack(lives.to_vec()), Packing { pool: Bytes(6), live: Bytes(4) });
    // With a byte less the third fits below: 2 + 1 B at a time, in 3.
    let lives = [life(0, 5, 2), life(4, 8, 1), life(6, 9, 2)];
    assert_eq!(pack(lives.to_vec()), Packing { pool: Bytes(3), live: Bytes(3) });
    assert_eq!(pack(Vec::new()), Packing::default());
}

proptest! {
    #![proptest_config(super::cases(200))]

    /// A pool is never smaller than its live tensors, and never larger than all tensors next to each other.
    #[test]
    fn a_pool_holds_what_lives_in_it(drawn in prop::collection::vec((0..40_u32, 0..20_u32, 1..100_u64), 0..30)) {
        let lives: Vec<Life> =
            drawn.iter().map(|&(from, length, bytes)| Life { from, to: from + length, bytes: Bytes(bytes) }).collect();
        let all: u64 = drawn.iter().map(|&(.., bytes)| bytes).sum();
        let live = (0..60).map(|at| lives.iter().filter(move |life| life.from <= at && at <= life.to));
        let live = live.map(|alive| alive.map(|life| life.bytes.0).sum::<u64>()).max().unwrap_or(0);
        let found = pack(lives.clone());
        prop_assert_eq!(found.live, Bytes(live));
        prop_assert!(found.pool.0 >= live && found.pool.0 <= all);
    }
}

#[test]
fn the_micro_batch_gives_way_where_nothing_is_left() {
    let mut scene = chain();
    scene.candidates.clear();
    let view = |phase| MemoryView {
        micro_batch: 32,
        needed: Extent { fixed: 100, per_sample: 50 },
        budget: Bytes(450),
        phase,
        ..scene.view()
    };
    let melon = |micro_batching, phase| {
        let parameters = Parameters { micro_batching, ..MELON };
        relieve(parameters, &scene, &view(phase), 20)
    };
    // (450 − 100) / 50 = 7 samples.
    assert_eq!(melon(true, Phase::Backward), [ShrinkMicroBatch(7)]);
    assert_eq!(melon(false, Phase::Backward), []);
    assert_eq!(melon(true, Phase::Update), []);
    // The next iteration begins with it; the last part only has the remaining samples.
    let mut policy = Melon::new(MELON);
    let begins = |policy: &mut Melon| {
        let mut plan = IterationPlan::new(32);
        policy.begin_iteration(&mut plan).unwrap();
        plan.micro_batch
    };
    assert_eq!(begins(&mut policy), 32);
    policy.end_iteration(&IterationSummary { micro_batches: vec![7, 7, 2], ..IterationSummary::default() }).unwrap();
    assert_eq!(begins(&mut policy), 7);
}

/// The rule without any memory between victims, in integers.
fn search(scene: &Scene, shortfall: u64) -> Vec<Relief> {
    fn needs(scene: &Scene, given: &[TensorId], tensor: TensorId, nodes: &mut HashSet<NodeId>) {
        let writer = scene.producers[tensor as usize];
        if nodes.insert(writer) {
            for &input in &scene.graph.nodes[writer as usize].inputs {
                if given.contains(&input) || !scene.states[input as usize].form.is_whole() {
                    needs(scene, given, input, nodes);
                }
            }
        }
    }
    let mut left: Vec<TensorId> = scene.candidates.iter().collect();
    left.sort_unstable();
    let (mut given, mut freed) = (Vec::new(), 0);
    while freed < shortfall && !left.is_empty() {
        let score = |&tensor: &TensorId| {
            let uses = (0..).zip(&scene.graph.nodes).filter(|(_, node)| node.uses().any(|used| used == tensor));
            let last: NodeId = uses.map(|(id, _)| id).last().unwrap();
            let mut nodes = HashSet::new();
            needs(scene, &given, tensor, &mut nodes);
            let counts = |node: &NodeId| scene.graph.nodes[*node as usize].work.kind != OperatorKind::Layout;
            let cost: u64 = nodes.iter().filter(|node| counts(node)).map(|node| scene.times[*node as usize].0).sum();
            (scene.bytes(tensor) * u64::from(last - scene.at), cost)
        };
        // a / b > c / d where a d > c b; the first of equals stays.
        let better = |a: (u64, u64), b: (u64, u64)| a.0 * b.1 > b.0 * a.1;
        let victim = left.iter().copied().reduce(|a, b| if better(score(&b), score(&a)) { b } else { a }).unwrap();
        left.retain(|&tensor| tensor != victim);
        freed += scene.bytes(victim);
        given.push(victim);
    }
    given.into_iter().map(Rematerialise).collect()
}

proptest! {
    #![proptest_config(super::cases(400))]

    #[test]
    fn the_choice_is_that_of_a_search_through_everything(scene in scenes(), shortfall in 1..200_u64) {
        let off = Parameters { micro_batching: false, ..MELON };
        prop_assert_eq!(relieve(off, &scene, &scene.view(), shortfall), search(&scene, shortfall));
    }
}

#[test]
fn the_first_iteration_within_a_budget_pays_for_the_plan() {
    let (machine, graph) = (chains::phone(), chains::network(200, 4));
    let record = chains::run(&machine, &graph, Pressure::Planned(50), 3, &mut Melon::new(MELON)).unwrap();
    let [PlanReport { iteration: 0, planning, time: Some(time) }] = record.plans.as_slice() else {
        panic!("{:?}", record.plans)
    };
    assert_eq!((planning.planner, planning.sent), (Planner::Phone, Bytes::ZERO));
    assert_eq!(Some(*time), machine.making_time(Planner::Phone, planning.operations));
    // All candidates are weighed for each tensor dropped: many more than there are operators.
    assert!(planning.operations.scores > 200, "{planning:?}");
    let [first, second, third] = record.iterations.as_slice() else { panic!("{:?}", record.iterations) };
    assert_eq!((*first, second), (*third + *time, third));
}
