//! `melon`: its rule against a search through everything, and the micro-batch where that is not enough.

use std::collections::HashSet;

use haversack_devices::units::Bytes;
use haversack_devices::work::OperatorKind;
use haversack_policies::melon::{Melon, Parameters};
use haversack_policies::{IterationPlan, IterationSummary, MemoryView, Policy, Relief, Want, registry};
use haversack_workloads::{Extent, NodeId, Phase, TensorId};
use proptest::prelude::*;

use super::scene::{Scene, scenes};

use Relief::{Rematerialise, ShrinkMicroBatch};

fn relieve(parameters: Parameters, scene: &Scene, view: &MemoryView<'_>, shortfall: u64) -> Vec<Relief> {
    let mut policy = Melon::new(parameters);
    policy.prepare(&scene.setting()).unwrap();
    policy.relieve(Want::Shortfall(Bytes(shortfall)), view)
}

/// 0 → 1 (5 ns, 10 B) → 2 (8 ns, 20 B) → 3 (10 ns, 30 B); backward reads 3, 2, 1, 2.
fn chain() -> Scene {
    let forward: [(&[TensorId], u64, bool); 3] = [(&[0], 5, false), (&[1], 8, false), (&[2], 10, false)];
    Scene::new(&forward, &[&[0], &[3], &[2], &[1], &[2]], &[1, 10, 20, 30])
}

#[test]
fn size_times_remaining_life_over_cost() {
    let scene = chain();
    let melon = |shortfall| relieve(Parameters::default(), &scene, &scene.view(), shortfall);
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
    // After an operator nothing is in use, also not what the next one reads.
    scene.candidates.insert(3);
    let mut policy = Melon::new(Parameters { computing_budget: 63, ..Parameters::default() });
    assert_eq!(policy.prepare(&scene.setting()).unwrap().computing_budget, Some(63));
    // Node 3 is next and reads tensor 3, as the last one does: of the others 2 is worth most, then 1; then there is
    // nothing more.
    assert_eq!(policy.relieve(Want::OverPlan(Bytes(1)), &scene.view()), [Rematerialise(2)]);
    assert_eq!(policy.relieve(Want::OverPlan(Bytes(1_000)), &scene.view()), [Rematerialise(2), Rematerialise(1)]);
    // By default plan and device agree, and nothing is asked after an operator.
    assert_eq!(Melon::new(Parameters::default()).prepare(&scene.setting()).unwrap().computing_budget, None);
    let refused = |value: &str| registry::build("melon", &[("computing_budget".to_owned(), value.to_owned())]).is_err();
    assert!(refused("0") && refused("101") && !refused("63"));
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
        let parameters = Parameters { micro_batching, ..Parameters::default() };
        relieve(parameters, &scene, &view(phase), 20)
    };
    // (450 − 100) / 50 = 7 samples.
    assert_eq!(melon(true, Phase::Backward), [ShrinkMicroBatch(7)]);
    assert_eq!(melon(false, Phase::Backward), []);
    assert_eq!(melon(true, Phase::Update), []);
    // The next iteration begins with it; the last part is only what was left over.
    let mut policy = Melon::new(Parameters::default());
    let begins = |policy: &mut Melon| {
        let mut plan = IterationPlan::new(32);
        policy.begin_iteration(&mut plan);
        plan.micro_batch
    };
    assert_eq!(begins(&mut policy), 32);
    policy.end_iteration(&IterationSummary { micro_batches: vec![7, 7, 2], ..IterationSummary::default() });
    assert_eq!(begins(&mut policy), 7);
}

/// The rule with nothing remembered, in whole numbers.
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
        let off = Parameters { micro_batching: false, ..Parameters::default() };
        prop_assert_eq!(relieve(off, &scene, &scene.view(), shortfall), search(&scene, shortfall));
    }
}
