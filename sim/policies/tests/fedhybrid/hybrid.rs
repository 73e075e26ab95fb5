//! `fedhybrid`: equations 5 and 6 by hand, algorithm 1 against a search through everything.

use std::collections::{HashMap, HashSet};

use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::work::OperatorKind;
use haversack_policies::fedhybrid::mps::Terms;
use haversack_policies::fedhybrid::{FedHybrid, Parameters};
use haversack_policies::policy::Compression;
use haversack_policies::regain::{Layouts, Moment, Regaining, Technique, position, presence};
use haversack_policies::{Policy, PolicyError, Relief, Setting, registry};
use haversack_workloads::{NodeId, TensorId};
use proptest::prelude::*;

use crate::drawn;
use crate::scene::{Scene, scenes};

use Relief::{Compress, Rematerialise, Swap};

fn relieve(parameters: Parameters, scene: &Scene, shortfall: u64) -> Vec<Relief> {
    let mut policy = FedHybrid::new(parameters);
    policy.prepare(&scene.setting()).unwrap();
    policy.relieve(Bytes(shortfall), &scene.view())
}

/// RC_compute of a tensor where memory stands.
fn recomputation(scene: &Scene, layouts: Layouts, tensor: TensorId) -> u64 {
    let mut regaining = Regaining::new(&scene.setting(), layouts);
    let view = scene.view();
    let presence = presence(&view);
    let moment = Moment { graph: &scene.graph, presence: &presence, at: position(&view), samples: 1 };
    let wanted = scene.states[tensor as usize].next_use;
    let way = regaining.way_from(wanted, 1);
    (regaining.recomputation(tensor, wanted, &moment) + way).0
}

const COUNTED: Layouts = Layouts::Counted { times: 1 };

#[test]
fn memory_reduced_per_second() {
    // Equation 5: 100 B × 8 ns / (2 ns + 3 ns) = 160 B.
    let terms = Terms { saved: Bytes(100), lifetime: Nanos(8), purge: Nanos(2), regain: Nanos(3) };
    assert_eq!((terms.reward(), terms.mps()), (800.0, 160.0));
    // What costs nothing has no bound; what saves nothing, for however little, has no worth.
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
    // Overlooked: the tensor's own operator, 4, and the convolution, 10; the 3 on the way between them does not count.
    assert_eq!(recomputation(&scene, Layouts::Overlooked, 3), 14);
    // With the convolution's result in memory only the transformations are left: 3 + 4.
    scene.stand_at(4);
    assert_eq!(recomputation(&scene, COUNTED, 3), 7);
    // While the product runs 2 is in memory as well. Nothing reads it later, so it will be gone when 3 is wanted.
    scene.stand_at(3);
    scene.states[2].resident = true;
    assert_eq!(recomputation(&scene, COUNTED, 3), 7);
    // Nor will the convolution's result be there where backward reads it before 3.
    scene.graph.nodes[4].inputs = vec![1];
    scene.graph.nodes[6].inputs = vec![4];
    scene.stand_at(4);
    assert_eq!(recomputation(&scene, COUNTED, 3), 17);
}

#[test]
fn a_recomputation_counts_the_layout_transformations_up_to_the_taker() {
    // The convolution's result is read next by a transformation (node 5, 1 ns) whose result only node 7 takes.
    let mut scene = transformed();
    scene.graph.nodes[5].inputs = vec![1];
    scene.graph.nodes[5].work.kind = OperatorKind::Layout;
    let made = scene.graph.nodes[5].outputs[0];
    scene.graph.nodes.push(scene.graph.nodes[5].clone());
    scene.graph.nodes[6].inputs = vec![made];
    scene.graph.nodes[6].work.kind = OperatorKind::ElementWise;
    scene.times.extend([Nanos(50)]);
    scene.times[5] = Nanos(6);
    scene.stand_at(4);
    // 10 + ψ × 6; the 50 of the operator that takes it are nobody's cost.
    assert_eq!(recomputation(&scene, COUNTED, 1), 16);
    assert_eq!(recomputation(&scene, Layouts::Counted { times: 2 }, 1), 22);
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
    // 9 + 7, then 9 + 7 + 5: the samples are always there.
    scene.lose(2);
    assert_eq!(recomputation(&scene, COUNTED, 3), 16);
    scene.lose(1);
    assert_eq!(recomputation(&scene, COUNTED, 3), 21);
}

fn codec(bytes: u64, compress: u64, decompress: u64) -> Option<Compression> {
    Some(Compression { bytes: Bytes(bytes), compress: Nanos(compress), decompress: Nanos(decompress) })
}

#[test]
fn the_larger_of_the_two_says_how_a_tensor_goes() {
    // Memory stands at node 3; 3, 2 and 1 are read 1, 2 and 3 ns later.
    let mut scene = chain();
    // By recomputation 3: 30 × 1 / 9 = 3.3; 2: 20 × 2 / 7 = 5.7; 1: 10 × 3 / 5 = 6.
    assert_eq!(relieve(Parameters::default(), &scene, 1), [Rematerialise(1)]);
    // With 1 gone 2 costs 7 + 5: 40 / 12 = 3.33 and 3 costs 9: 30 / 9 = 3.33, so the lower of the two goes.
    assert_eq!(relieve(Parameters::default(), &scene, 11), [Rematerialise(1), Rematerialise(2)]);
    // A codec that leaves 4 of 10 bytes for 1 + 2 ns: 6 × 3 / 3 = 6, as good as recomputation, and compression has it.
    scene.prices.codec = vec![None, codec(4, 1, 2), None, None];
    assert_eq!(relieve(Parameters::default(), &scene, 6), [Compress(1)]);
    // It frees 6 bytes, not 10. With 1 to be decompressed 2 costs 7 + 2: 40 / 9 = 4.4.
    assert_eq!(relieve(Parameters::default(), &scene, 7), [Compress(1), Rematerialise(2)]);
    // A nanosecond more, 18 / 4 = 4.5, and recomputation has it.
    scene.prices.codec[1] = codec(4, 2, 2);
    assert_eq!(relieve(Parameters::default(), &scene, 6), [Rematerialise(1)]);
    // What does not get smaller is no compression.
    scene.prices.codec[1] = codec(10, 0, 0);
    assert_eq!(relieve(Parameters::default(), &scene, 6), [Rematerialise(1)]);
}

#[test]
fn what_stayed_compressed_since_an_earlier_relief_is_decompressed() {
    let mut scene = chain();
    scene.prices.codec = vec![None, codec(1, 0, 3), None, None];
    let mut policy = FedHybrid::new(Parameters::default());
    policy.prepare(&scene.setting()).unwrap();
    assert_eq!(policy.relieve(Bytes(1), &scene.view()), [Compress(1)]);
    scene.states[1].resident = false;
    scene.candidates.retain(|&tensor| tensor != 1);
    // 2 costs 7 + 3 and 3 costs 9: 20 × 2 / 10 = 4 against 30 × 1 / 9 = 3.3.
    assert_eq!(policy.relieve(Bytes(1), &scene.view()), [Rematerialise(2)]);
    // With 18 bytes 36 / 10 = 3.6 still; computing 1 again, 5 ns instead of 3, would make it 36 / 12 = 3.
    scene.states[2].bytes = Bytes(18);
    assert_eq!(policy.relieve(Bytes(1), &scene.view()), [Rematerialise(2)]);
    // With 16 bytes 32 / 10 = 3.2; without the 3 ns it would be 32 / 7 = 4.6.
    scene.states[2].bytes = Bytes(16);
    assert_eq!(policy.relieve(Bytes(1), &scene.view()), [Rematerialise(3)]);
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
    // Recomputation alone: 6, 5.7, 3.3. Compression alone: 1: 6 × 3 / 100, 2: 16 × 2 / 100, and 3 has no codec.
    assert_eq!(relieve(with(false, true, false), &scene, 1), [Rematerialise(1)]);
    assert_eq!(relieve(with(true, false, false), &scene, 1), [Compress(2)]);
    assert_eq!(relieve(with(true, false, false), &scene, 100), [Compress(2), Compress(1)]);
    // Flash that costs nothing beats all, and is off where nothing is said: all are without bound, the lowest id goes.
    assert_eq!(relieve(with(true, true, true), &scene, 1), [Swap(1)]);
    assert_eq!(relieve(Parameters::default(), &scene, 1), [Rematerialise(1)]);
    // Without a candidate it is at its end.
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
    let bare = drawn::setting(&scene.graph, 1, &scene.times);
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
    let regaining = Regaining::new(&Setting { batch: 2, ..scene.setting() }, COUNTED);
    let found = regaining.compression(3, 1).unwrap();
    assert_eq!((found.bytes, found.compress, found.decompress), (Bytes(4), Nanos(1), Nanos(2)));
    // Nodes 1 and 2 take 7 + 9.
    assert_eq!((regaining.between(1, 3, 2), regaining.between(1, 3, 1)), (Nanos(16), Nanos(8)));
    // To the end: 9 + 4 × 1.
    assert_eq!(regaining.between(2, NodeId::MAX, 2), Nanos(13));
}

#[test]
fn a_survey_takes_each_saved_tensor_for_itself() {
    let mut scene = chain();
    scene.prices.codec = vec![None, codec(4, 1, 2), None, None];
    scene.prices.flash = Some((2, 1));
    let found = FedHybrid::survey(&scene.setting(), COUNTED);
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

/// Algorithm 1 with nothing remembered: every tensor by every technique, for every victim.
struct Search<'a> {
    scene: &'a Scene,
    psi: Option<u64>,
    given: HashMap<TensorId, Technique>,
}

impl Search<'_> {
    fn layout(&self, node: NodeId) -> bool {
        self.scene.graph.nodes[node as usize].work.kind == OperatorKind::Layout
    }

    /// Nodes and fetched tensors that `tensor` needs, straight from the definition.
    fn needs(&self, tensor: TensorId, wanted: NodeId, nodes: &mut HashSet<NodeId>, fetched: &mut HashSet<TensorId>) {
        let writer = self.scene.producers[tensor as usize];
        if !nodes.insert(writer) {
            return;
        }
        for &input in &self.scene.graph.nodes[writer as usize].inputs {
            let later = || self.scene.graph.nodes[wanted as usize..].iter().any(|node| node.uses().any(|u| u == input));
            match self.given.get(&input) {
                _ if input == 0 => {}
                _ if !later() => self.needs(input, wanted, nodes, fetched),
                Some(Technique::Recompute) => self.needs(input, wanted, nodes, fetched),
                Some(_) => drop(fetched.insert(input)),
                None if !self.scene.states[input as usize].resident => self.needs(input, wanted, nodes, fetched),
                None => {}
            }
        }
    }

    fn recompute(&self, tensor: TensorId) -> u64 {
        let (mut nodes, mut fetched) = (HashSet::new(), HashSet::new());
        self.needs(tensor, self.scene.states[tensor as usize].next_use, &mut nodes, &mut fetched);
        let own = self.scene.producers[tensor as usize];
        let weight = |&node: &NodeId| match self.psi {
            Some(psi) if self.layout(node) => psi,
            None if self.layout(node) && node != own => 0,
            _ => 1,
        };
        let computed: u64 = nodes.iter().map(|node| weight(node) * self.scene.times[*node as usize].0).sum();
        let back = |tensor: &TensorId| match self.given[tensor] {
            Technique::Compress => self.scene.prices.codec[*tensor as usize].unwrap().decompress.0,
            _ => self.scene.prices.flash.unwrap().1 * self.scene.bytes(*tensor),
        };
        computed + fetched.iter().map(back).sum::<u64>() + self.way(self.scene.states[tensor as usize].next_use)
    }

    fn way(&self, reader: NodeId) -> u64 {
        let Some(psi) = self.psi.filter(|_| reader != NodeId::MAX && self.layout(reader)) else { return 0 };
        let made = self.scene.graph.nodes[reader as usize].outputs[0];
        let taker = (0..).zip(&self.scene.graph.nodes).find(|(id, node)| *id > reader && node.inputs.contains(&made));
        psi * self.scene.times[reader as usize].0 + taker.map_or(0, |(id, _)| self.way(id))
    }

    /// (saved, cost) by each technique that is possible.
    fn options(&self, tensor: TensorId, parameters: Parameters) -> Vec<(Technique, u64, u64)> {
        let bytes = self.scene.bytes(tensor);
        let mut options = Vec::new();
        let codec = self.scene.prices.codec[tensor as usize].filter(|codec| codec.bytes.0 < bytes);
        if let Some(codec) = codec.filter(|_| parameters.compression) {
            options.push((Technique::Compress, bytes - codec.bytes.0, codec.compress.0 + codec.decompress.0));
        }
        if parameters.recomputation {
            options.push((Technique::Recompute, bytes, self.recompute(tensor)));
        }
        if let Some((out, back)) = self.scene.prices.flash.filter(|_| parameters.swapping) {
            options.push((Technique::Swap, bytes, bytes * (out + back)));
        }
        options
    }

    fn run(&mut self, parameters: Parameters, shortfall: u64) -> Vec<Relief> {
        let mut left = self.scene.candidates.clone();
        left.sort_unstable();
        let (mut reliefs, mut freed) = (Vec::new(), 0);
        while freed < shortfall {
            let mut best: Option<(TensorId, Technique, u64, f64)> = None;
            for &tensor in &left {
                let lifetime = self.scene.between(self.scene.at, self.scene.states[tensor as usize].next_use);
                for (technique, saved, cost) in self.options(tensor, parameters) {
                    let mps = if saved * lifetime == 0 { 0.0 } else { (saved * lifetime) as f64 / cost as f64 };
                    if best.is_none_or(|(.., before)| mps > before) {
                        best = Some((tensor, technique, saved, mps));
                    }
                }
            }
            let Some((tensor, technique, saved, _)) = best else { break };
            left.retain(|&other| other != tensor);
            self.given.insert(tensor, technique);
            freed += saved;
            reliefs.push(technique.relief(tensor));
        }
        reliefs
    }
}

proptest! {
    #![proptest_config(crate::cases(400))]

    #[test]
    fn the_choice_is_that_of_a_search_through_everything(
        scene in scenes(),
        shortfall in 0..200_u64,
        compression: bool,
        swapping: bool,
        layout: bool,
        crossing: bool,
    ) {
        let parameters = Parameters { compression, recomputation: true, swapping, layout, crossing };
        let psi = layout.then_some(if crossing { 2 } else { 1 });
        let expected = Search { scene: &scene, psi, given: HashMap::new() }.run(parameters, shortfall);
        prop_assert_eq!(relieve(parameters, &scene, shortfall), expected);
    }
}
