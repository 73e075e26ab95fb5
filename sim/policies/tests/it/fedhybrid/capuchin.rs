//! `capuchin`: swapped and recomputed tensors, by hand.

use haversack_devices::units::{Bytes, Nanos};
use haversack_policies::capuchin::Capuchin;
use haversack_policies::{Holding, IterationPlan, IterationSummary, Policy, Relief, Setting, Want};
use haversack_workloads::TensorId;

use super::scene::Scene;
use crate::setting::setting;

use Holding::{Keep, Rematerialise, Swap};

/// 0 → 1 (5 ns, 10 B) → 2 (40 ns, 10 B) → 3 (10 ns, 10 B) → 4 (9 ns, 10 B), a loss of 1 ns, then backward reads 4, 3, 2
/// and 1, each for 10 ns. A byte takes flash 1 ns each way.
fn chain() -> Scene {
    let forward: [(&[TensorId], u64, bool); 5] =
        [(&[0], 5, false), (&[1], 40, false), (&[2], 10, false), (&[3], 9, false), (&[4], 1, false)];
    let mut scene = Scene::new(&forward, &[&[4], &[3], &[2], &[1]], &[1, 10, 10, 10, 10, 1]);
    scene.times[5..].fill(Nanos(10));
    scene.prices.flash = Some((1, 1));
    scene
}

fn holdings(scene: &Scene, budget: Option<u64>) -> Vec<Holding> {
    let mut policy = Capuchin::default();
    policy.prepare(&Setting { activation_budget: budget.map(Bytes), ..scene.setting() }).unwrap();
    (1..=4).map(|tensor| policy.hold(tensor, &scene.view()).unwrap()).collect()
}

/// Free times, at 20 ns there and back: 1 is away from node 2 to node 8, 10 + 9 + 1 + 3 × 10 − 20 = 30; 2 from 3 to 7,
/// 9 + 1 + 2 × 10 − 20 = 10; 3 from 4 to 6, 1 + 10 − 20 = −9; 4 from 5 to 5, −20.
#[test]
fn the_most_free_time_is_swapped_first() {
    let scene = chain();
    assert_eq!(holdings(&scene, None), [Keep; 4]);
    assert_eq!(holdings(&scene, Some(40)), [Keep; 4]);
    assert_eq!(holdings(&scene, Some(39)), [Swap, Keep, Keep, Keep]);
    assert_eq!(holdings(&scene, Some(30)), [Swap, Keep, Keep, Keep]);
    assert_eq!(holdings(&scene, Some(29)), [Swap, Swap, Keep, Keep]);
}

#[test]
fn free_time_decides_and_not_the_order_of_production() {
    // Read in the order of production: 1 is away 10 + 9 + 1 + 10 = 30 ns, 2 9 + 1 + 20 = 30, 3 1 + 30 = 31.
    let mut scene = chain();
    for (node, tensor) in [(6, 1), (7, 2), (8, 3)] {
        scene.graph.nodes[node].inputs = vec![tensor];
    }
    assert_eq!(holdings(&scene, Some(39)), [Keep, Keep, Swap, Keep]);
    assert_eq!(holdings(&scene, Some(29)), [Swap, Keep, Swap, Keep]);
}

#[test]
fn what_would_stall_longer_than_computing_again_is_computed_again() {
    let scene = chain();
    // 3 stalls 9 ns, or is computed again in 10 plus 10 to read 2 from flash: swapped. 4 stalls 20 ns, or is computed
    // again in 9. By memory saved per second both have 10 B / 9 ns, and 3 is the lower.
    assert_eq!(holdings(&scene, Some(19)), [Swap, Swap, Swap, Keep]);
    // Then 4 costs 9 + 10 to read 3 from flash, still less than 20.
    assert_eq!(holdings(&scene, Some(9)), [Swap, Swap, Swap, Rematerialise]);
    // At 10 ns 4 would cost 20: as long as the stall, and so swapped.
    let mut slower = scene.clone();
    slower.times[3] = Nanos(10);
    assert_eq!(holdings(&slower, Some(9)), [Swap, Swap, Swap, Swap]);
    // At 8 ns 4 goes before 3.
    let mut faster = scene;
    faster.times[3] = Nanos(8);
    assert_eq!(holdings(&faster, Some(19)), [Swap, Swap, Keep, Rematerialise]);
}

#[test]
fn exactly_hidden_is_hidden() {
    // 4 + 4 ns a byte and 10 bytes: 80 ns. 1 is away 10 + 9 + 1 + 30 = 50 ns; with 30 more in the loss it is hidden.
    let mut scene = chain();
    scene.prices.flash = Some((4, 4));
    assert_eq!(holdings(&scene, Some(39)), [Rematerialise, Keep, Keep, Keep]);
    scene.times[4] = Nanos(31);
    assert_eq!(holdings(&scene, Some(39)), [Swap, Keep, Keep, Keep]);
    scene.times[4] = Nanos(30);
    // It stalls 1 ns, computing it takes 5; no other has 10 B / 1 ns.
    assert_eq!(holdings(&scene, Some(39)), [Swap, Keep, Keep, Keep]);
}

#[test]
fn without_flash_it_only_recomputes() {
    let mut scene = chain();
    scene.prices.flash = None;
    // 10 B for 5, 40, 10 and 9 ns.
    assert_eq!(holdings(&scene, Some(39)), [Rematerialise, Keep, Keep, Keep]);
    // With 1 gone 2 costs 45.
    assert_eq!(holdings(&scene, Some(29)), [Rematerialise, Keep, Keep, Rematerialise]);
    // With 4 gone the others keep their prices: 3 at 10.
    assert_eq!(holdings(&scene, Some(19)), [Rematerialise, Keep, Rematerialise, Rematerialise]);
    let mut policy = Capuchin::default();
    let bare = setting(&scene.graph, 1, &scene.times);
    policy.prepare(&Setting { activation_budget: Some(Bytes(0)), ..bare }).unwrap();
    assert_eq!(policy.hold(2, &scene.view()).unwrap(), Rematerialise);
}

#[test]
fn memory_that_runs_short_all_the_same_is_freed_by_the_same_rule() {
    let scene = chain();
    let mut policy = Capuchin::default();
    policy.prepare(&scene.setting()).unwrap();
    // From node 5 on: 1 is free 3 × 10 − 20 = 10 ns, 2 is free 0, 3 stalls 10; 4 is in use.
    assert_eq!(policy.relieve(Want::Shortfall(Bytes(10)), &scene.view()).unwrap(), [Relief::Swap(1)]);
    assert_eq!(policy.relieve(Want::Shortfall(Bytes(11)), &scene.view()).unwrap(), [Relief::Swap(1), Relief::Swap(2)]);
    // 3 costs 10 ns and 10 to read 2, more than the stall.
    assert_eq!(
        policy.relieve(Want::Shortfall(Bytes(30)), &scene.view()).unwrap(),
        [Relief::Swap(1), Relief::Swap(2), Relief::Swap(3)]
    );
    let mut scene = scene;
    scene.candidates = [3].into_iter().collect();
    // As the only one dropped it costs 10, as long as it stalls; at 9 it is computed again.
    assert_eq!(policy.relieve(Want::Shortfall(Bytes(1)), &scene.view()).unwrap(), [Relief::Swap(3)]);
    scene.times[2] = Nanos(9);
    policy.prepare(&scene.setting()).unwrap();
    assert_eq!(policy.relieve(Want::Shortfall(Bytes(1)), &scene.view()).unwrap(), [Relief::Rematerialise(3)]);
    scene.candidates.clear();
    assert_eq!(policy.relieve(Want::Shortfall(Bytes(1)), &scene.view()).unwrap(), []);
}

#[test]
fn the_first_iteration_is_measured_and_the_second_planned() {
    let scene = chain();
    let mut policy = Capuchin::default();
    policy.prepare(&Setting { activation_budget: Some(Bytes(9)), ..scene.setting() }).unwrap();
    assert_eq!(policy.hold(4, &scene.view()).unwrap(), Rematerialise);
    policy.begin_iteration(&mut IterationPlan::new(1)).unwrap();
    // Everything is kept, and the least recently used tensors go to flash: the first two that were made.
    assert_eq!(policy.hold(4, &scene.view()).unwrap(), Keep);
    let gone = policy.relieve(Want::Shortfall(Bytes(11)), &scene.view()).unwrap();
    assert_eq!(gone, [Relief::Swap(1), Relief::Swap(2)]);
    policy.begin_iteration(&mut IterationPlan::new(1)).unwrap();
    assert_eq!(policy.hold(4, &scene.view()).unwrap(), Rematerialise);
    assert!(policy.end_iteration(&IterationSummary::default()).unwrap().scores > 0);
}
