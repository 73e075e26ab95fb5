//! `fedhybrid`: equations 5 and 6 by hand, and the decisions that follow from them.

use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::work::OperatorKind;
use haversack_policies::fedhybrid::{FedHybrid, Parameters, Terms, survey};
use haversack_policies::ranking::{Ranking, Scored};
use haversack_policies::restore::{Layouts, RestoreCosts, Snapshot, availability};
use haversack_policies::setting::Compression;
use haversack_policies::{Form, Policy, PolicyError, Relief, Setting, Storage, Want, registry};
use haversack_workloads::training_graph::Node;
use haversack_workloads::{NodeId, TensorId};

use super::scene::Scene;
use crate::setting::setting;

use Relief::{Compress, Rematerialise, Swap};

pub(crate) fn relieve(parameters: Parameters, scene: &Scene, shortfall: u64) -> Vec<Relief> {
    let mut policy = FedHybrid::new(parameters);
    policy.prepare(&scene.setting()).unwrap();
    policy.relieve(Want::Shortfall(Bytes(shortfall)), &scene.view()).unwrap()
}

/// RC_compute of a tensor at the current node.
fn recomputation(scene: &Scene, layouts: Layouts, tensor: TensorId) -> u64 {
    let mut costs = RestoreCosts::new(&scene.setting(), layouts);
    let view = scene.view();
    let held = availability(&view);
    let snapshot = Snapshot { graph: &scene.graph, held: &held, at: view.at, samples: 1 };
    let wanted = scene.states[tensor as usize].next_use;
    let path = costs.layout_path(wanted, 1);
    (costs.recomputation(tensor, wanted, &snapshot) + path).0
}

const COUNTED: Layouts = Layouts::Counted { times: 1 };

#[test]
fn memory_reduced_per_second() {
    // Equation 5: 100 B × 8 ns / (2 ns + 3 ns) = 160 B.
    let terms = Terms { saved: Bytes(100), lifetime: Nanos(8), purge: Nanos(2), regain: Nanos(3) };
    assert_eq!((terms.reward(), terms.mps()), (800.0, 160.0));
    // Without costs the MPS is infinite; without savings it is zero, however small the cost.
    assert_eq!(Terms { purge: Nanos(0), regain: Nanos(0), ..terms }.mps(), f64::INFINITY);
    assert_eq!(Terms { lifetime: Nanos(0), purge: Nanos(0), regain: Nanos(0), ..terms }.mps(), 0.0);
}

/// A convolution (10 ns) makes 1; layout transformations make 2 (3 ns) and 3 (4 ns) of it; a product (20 ns) reads 3.
/// Backward works on something else, then reads 3, then 1.
fn transformed() -> Scene {
    let forward: [(&[TensorId], u64, bool); 4] =
        [(&[0], 10, false), (&[1], 3, true), (&[2], 4, true), (&[3], 20, false)];
    Scene::new(&forward, &[&[4], &[3], &[1]], &[1, 8, 8, 8, 8])
}

#[test]
fn a_recomputation_counts_the_layout_transformations_on_the_way() {
    let mut scene = transformed();
    scene.lose(1);
    scene.lose(2);
    // Equation 6, the tensor attributed to the convolution: 10 + 1 × (3 + 4) and 10 + 2 × (3 + 4).
    assert_eq!(recomputation(&scene, COUNTED, 3), 17);
    assert_eq!(recomputation(&scene, Layouts::Counted { times: 2 }, 3), 24);
    // Overlooked: only the convolution, 10; neither of the transformations counts, including the one that made the
    // tensor.
    assert_eq!(recomputation(&scene, Layouts::Overlooked, 3), 10);
    // With the convolution's result in memory only the transformations are left: 3 + 4.
    scene.stand_at(4);
    assert_eq!(recomputation(&scene, COUNTED, 3), 7);
    // While the product runs 2 is in memory as well. It is not read later, so it will be gone when 3 is needed.
    scene.stand_at(3);
    scene.states[2].form = Form::Whole;
    assert_eq!(recomputation(&scene, COUNTED, 3), 7);
    // The convolution's result will be gone, too, since backward reads it before 3.
    scene.graph.nodes[4].inputs = vec![1];
    scene.graph.nodes[6].inputs = vec![4];
    scene.stand_at(4);
    assert_eq!(recomputation(&scene, COUNTED, 3), 17);
}

#[test]
fn a_recomputation_counts_the_layout_transformations_up_to_the_taker() {
    // The convolution's result is read next by node 5, a transformation of 6 ns; its output by node 6, another of 2 ns,
    // and by node 8; node 6's output by node 7, which uses it.
    let forward: [(&[TensorId], u64, bool); 1] = [(&[0], 10, false)];
    let mut scene = Scene::new(&forward, &[&[0], &[0], &[0], &[0], &[1], &[6], &[7], &[6, 8]], &[1, 8]);
    for (node, time, kind) in [(5, 6, OperatorKind::Layout), (6, 2, OperatorKind::Layout), (7, 50, OperatorKind::Gemm)]
    {
        scene.graph.nodes[node].work.kind = kind;
        scene.times[node] = Nanos(time);
    }
    scene.stand_at(4);
    // 10 + ψ × (6 + 2); the 50 of the operator that uses it do not count.
    assert_eq!(recomputation(&scene, COUNTED, 1), 18);
    assert_eq!(recomputation(&scene, Layouts::Counted { times: 2 }, 1), 26);
    assert_eq!(recomputation(&scene, Layouts::Overlooked, 1), 10);
}

/// 0 → 1 (5 ns) → 2 (7 ns) → 3 (9 ns), which backward reads from the last.
fn chain() -> Scene {
    let forward: [(&[TensorId], u64, bool); 3] = [(&[0], 5, false), (&[1], 7, false), (&[2], 9, false)];
    Scene::new(&forward, &[&[0], &[3], &[2], &[1]], &[1, 10, 20, 30])
}

#[test]
fn what_is_gone_too_is_computed_first() {
    let mut scene = chain();
    assert_eq!(recomputation(&scene, COUNTED, 3), 9);
    // 9 + 7, then 9 + 7 + 5: the samples are always available.
    scene.lose(2);
    assert_eq!(recomputation(&scene, COUNTED, 3), 16);
    scene.lose(1);
    assert_eq!(recomputation(&scene, COUNTED, 3), 21);
}

#[test]
fn what_is_written_in_place_is_computed_by_all_who_wrote_it() {
    // 2 (7 ns) is rewritten in place by node 2 (9 ns) instead of making 3.
    let mut scene = chain();
    scene.graph.nodes[2].outputs = vec![2];
    assert_eq!(recomputation(&scene, COUNTED, 2), 16);
    // Before node 2 has run only node 1 wrote it.
    scene.stand_at(2);
    assert_eq!(recomputation(&scene, COUNTED, 2), 7);
}

#[test]
fn an_operator_that_makes_two_is_run_once() {
    // Node 1 (7 ns) makes 1 and 2 from the samples, node 2 (9 ns) makes 3 from both; node 0's 5 ns do not count.
    let mut scene = chain();
    scene.graph.nodes[0].outputs = vec![];
    scene.graph.nodes[1] = Node { inputs: vec![0], outputs: vec![1, 2], ..scene.graph.nodes[1].clone() };
    scene.graph.nodes[2].inputs = vec![1, 2];
    scene.lose(1);
    scene.lose(2);
    assert_eq!(recomputation(&scene, COUNTED, 3), 16);
}

#[test]
fn the_way_to_its_taker_makes_a_tensor_dearer() {
    // The current node is 4; 1 (8 ns) is read by node 5, a transformation of 4 ns, and 2 (10 ns) by node 6. By
    // equation 6: 10 × 1 / (8 + 4) = 0.83 against 10 × 5 / 50 = 1; overlooked: 10 / 8 = 1.25.
    let forward: [(&[TensorId], u64, bool); 4] =
        [(&[0], 8, false), (&[0], 50, false), (&[0], 1, false), (&[0], 1, false)];
    let mut scene = Scene::new(&forward, &[&[0], &[1], &[2]], &[1, 10, 10, 1, 1]);
    scene.times[5] = Nanos(4);
    scene.graph.nodes[5].work.kind = OperatorKind::Layout;
    assert_eq!(relieve(Parameters::default(), &scene, 1), [Rematerialise(2)]);
    assert_eq!(relieve(Parameters { layout: false, ..Parameters::default() }, &scene, 1), [Rematerialise(1)]);
}

fn codec(bytes: u64, compress: u64, decompress: u64) -> Option<Compression> {
    Some(Compression { bytes: Bytes(bytes), compress: Nanos(compress), decompress: Nanos(decompress) })
}

#[test]
fn the_larger_of_the_two_says_how_a_tensor_goes() {
    // The current node is 3; 3, 2 and 1 are read 1, 2 and 3 ns later.
    let mut scene = chain();
    // By recomputation 3: 30 × 1 / 9 = 3.3; 2: 20 × 2 / 7 = 5.7; 1: 10 × 3 / 5 = 6.
    assert_eq!(relieve(Parameters::default(), &scene, 1), [Rematerialise(1)]);
    // With 1 gone 2 costs 7 + 5: 40 / 12 = 3.33 and 3 costs 9: 30 / 9 = 3.33, so the lower of the two goes.
    assert_eq!(relieve(Parameters::default(), &scene, 11), [Rematerialise(1), Rematerialise(2)]);
    // A codec that leaves 4 of 10 bytes for 1 + 2 ns: 6 × 3 / 3 = 6, as good as recomputation, and compression wins the
    // tie.
    scene.prices.codec = vec![None, codec(4, 1, 2), None, None];
    assert_eq!(relieve(Parameters::default(), &scene, 6), [Compress(1)]);
    // It frees 6 bytes, not 10. With 1 to be decompressed 2 costs 7 + 2: 40 / 9 = 4.4.
    assert_eq!(relieve(Parameters::default(), &scene, 7), [Compress(1), Rematerialise(2)]);
    // With a nanosecond more, 18 / 4 = 4.5, recomputation wins.
    scene.prices.codec[1] = codec(4, 2, 2);
    assert_eq!(relieve(Parameters::default(), &scene, 6), [Rematerialise(1)]);
    // A tensor that does not get smaller is not compressed.
    scene.prices.codec[1] = codec(10, 0, 0);
    assert_eq!(relieve(Parameters::default(), &scene, 6), [Rematerialise(1)]);
}

#[test]
fn what_stayed_compressed_since_an_earlier_relief_is_decompressed() {
    let mut scene = chain();
    scene.prices.codec = vec![None, codec(1, 0, 3), None, None];
    let mut policy = FedHybrid::new(Parameters::default());
    policy.prepare(&scene.setting()).unwrap();
    assert_eq!(policy.relieve(Want::Shortfall(Bytes(1)), &scene.view()).unwrap(), [Compress(1)]);
    scene.states[1].form = Form::Stored(Storage::Compressed);
    scene.candidates.remove(1);
    // 2 costs 7 + 3 and 3 costs 9: 20 × 2 / 10 = 4 against 30 × 1 / 9 = 3.3.
    assert_eq!(policy.relieve(Want::Shortfall(Bytes(1)), &scene.view()).unwrap(), [Rematerialise(2)]);
    // With 18 bytes 36 / 10 = 3.6 still; computing 1 again, 5 ns instead of 3, would make it 36 / 12 = 3.
    scene.states[2].bytes = Bytes(18);
    assert_eq!(policy.relieve(Want::Shortfall(Bytes(1)), &scene.view()).unwrap(), [Rematerialise(2)]);
    // With 16 bytes 32 / 10 = 3.2; without the 3 ns it would be 32 / 7 = 4.6.
    scene.states[2].bytes = Bytes(16);
    assert_eq!(policy.relieve(Want::Shortfall(Bytes(1)), &scene.view()).unwrap(), [Rematerialise(3)]);
    // Once it is dropped it is computed again, regardless of how it left before: 5 + 7 for 18 bytes, 3, against 3.33.
    scene.states[2].bytes = Bytes(18);
    scene.lose(1);
    assert_eq!(policy.relieve(Want::Shortfall(Bytes(1)), &scene.view()).unwrap(), [Rematerialise(3)]);
}

#[test]
fn of_equals_the_lowest_id_goes() {
    let mut ranking = Ranking::default();
    for (score, tensor) in [(1.0, 3), (2.0, 4), (1.0, 1), (f64::INFINITY, 7), (1.0, 2)] {
        ranking.put(tensor, Some([score]));
    }
    // The score of 4 has fallen to 1 by its turn.
    let score = |tensor| if tensor == 7 { f64::INFINITY } else { 1.0 };
    let take = || ranking.take_best(|&[score]| score, |tensor| Scored::At(score(tensor), [score(tensor)]));
    let taken: Vec<TensorId> = std::iter::from_fn(take).collect();
    assert_eq!(taken, [7, 1, 2, 3, 4]);
}

#[test]
fn techniques_that_are_off_are_not_used() {
    let mut scene = chain();
    scene.prices.codec = vec![None, codec(4, 50, 50), codec(4, 50, 50), None];
    scene.prices.flash = Some((0, 0));
    let with = |compression, recomputation, swapping| Parameters {
        compression,
        recomputation,
        swapping,
        ..Parameters::default()
    };
    // Only recomputation: 6, 5.7, 3.3. Only compression: 1: 6 × 3 / 100, 2: 16 × 2 / 100, and 3 has no codec.
    assert_eq!(relieve(with(false, true, false), &scene, 1), [Rematerialise(1)]);
    assert_eq!(relieve(with(true, false, false), &scene, 1), [Compress(2)]);
    assert_eq!(relieve(with(true, false, false), &scene, 100), [Compress(2), Compress(1)]);
    // Flash that costs nothing beats all, and is off by default: all MPS are infinite, the lowest id goes.
    assert_eq!(relieve(with(true, true, true), &scene, 1), [Swap(1)]);
    assert_eq!(relieve(Parameters::default(), &scene, 1), [Rematerialise(1)]);
    // Without a candidate it can free nothing.
    scene.candidates.clear();
    assert_eq!(relieve(Parameters::default(), &scene, 1), []);
}

#[test]
fn where_nothing_is_left_to_use_it_refuses() {
    let scene = chain();
    let prepare = |set: &[(&str, &str)], setting: &Setting<'_>| {
        let set: Vec<_> = set.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        registry::build("fedhybrid", &set).and_then(|mut policy| policy.prepare(setting).map(|_| ()))
    };
    // A profile without codec and flash, and none at all.
    let error = prepare(&[("recomputation", "off")], &scene.setting()).unwrap_err();
    assert!(matches!(error, PolicyError::BadValue { policy: "fedhybrid", parameter: "recomputation", .. }), "{error}");
    assert!(error.to_string().contains("no codec, no flash"), "{error}");
    let bare = setting(&scene.graph, 1, &scene.times);
    assert!(prepare(&[("recomputation", "off"), ("swapping", "on")], &bare).is_err());
    assert_eq!(prepare(&[], &bare), Ok(()));
    let mut flash = chain();
    flash.prices.flash = Some((1, 1));
    assert!(prepare(&[("recomputation", "off")], &flash.setting()).is_err());
    assert_eq!(prepare(&[("recomputation", "off"), ("swapping", "on")], &flash.setting()), Ok(()));
    let error = prepare(&[("compresion", "off")], &bare).unwrap_err().to_string();
    assert!(error.contains("'compression'"), "{error}");
    let error = prepare(&[("swapping", "maybe")], &bare).unwrap_err().to_string();
    assert!(error.contains("expected on or off"), "{error}");
}

#[test]
fn smaller_parts_take_their_share() {
    // Half of a batch of 2: half of 9 ns, of 3 ns and of 8 bytes, rounded down.
    let mut scene = chain();
    scene.prices.codec = vec![None, None, None, codec(8, 3, 4)];
    let costs = RestoreCosts::new(&Setting { batch: 2, ..scene.setting() }, COUNTED);
    let found = costs.compression(3, 1).unwrap();
    assert_eq!((found.bytes, found.compress, found.decompress), (Bytes(4), Nanos(1), Nanos(2)));
    // Nodes 1 and 2 take 7 + 9.
    assert_eq!((costs.between(1, 3, 2), costs.between(1, 3, 1)), (Nanos(16), Nanos(8)));
    // To the end: 9 + 4 × 1.
    assert_eq!(costs.between(2, NodeId::MAX, 2), Nanos(13));
}

#[test]
fn a_survey_takes_each_saved_tensor_for_itself() {
    let mut scene = chain();
    scene.prices.codec = vec![None, codec(4, 1, 2), None, None];
    scene.prices.flash = Some((2, 1));
    let found = survey(&scene.setting(), COUNTED);
    assert_eq!(found.iter().map(|of| of.tensor).collect::<Vec<_>>(), [1, 2, 3]);
    // 1 is last used by node 1 and read next by node 6: nodes 2 to 5 take 9 + 1 + 1 + 1 = 12 ns.
    let recompute = Terms { saved: Bytes(10), lifetime: Nanos(12), purge: Nanos(0), regain: Nanos(5) };
    assert_eq!(found[0].recompute, recompute);
    let compressed = Terms { saved: Bytes(6), purge: Nanos(1), regain: Nanos(2), ..recompute };
    assert_eq!(found[0].compress, Some(compressed));
    assert_eq!(found[0].swap, Some(Terms { purge: Nanos(20), regain: Nanos(10), ..recompute }));
    // 2 counts its own 7 only, since 1 is kept; from node 3 to node 5.
    let terms = Terms { saved: Bytes(20), lifetime: Nanos(2), purge: Nanos(0), regain: Nanos(7) };
    assert_eq!((found[1].recompute, found[1].compress), (terms, None));
}
