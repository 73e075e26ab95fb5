//! The policy's schedules for small graphs.

use std::ops::Range;

use haversack_devices::text::alternatives;
use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::work::{OperatorKind, Precision, Product, ProductRole};
use haversack_policies::entry::EngineProcessor;
use haversack_policies::mandheling::{ALGORITHM, Mandheling, Parameters, Rescaling};
use haversack_policies::policy::Offload;
use haversack_policies::setting::{DspProfile, Learned};
use haversack_policies::{IterationPlan, Policy, PolicyError, Setting, registry};
use haversack_workloads::{Extent, NodeId, Phase, Role, TensorId, TrainingGraph};

use super::factors_that_scatter;
use crate::setting::setting;
use haversack_testing::GraphBuilder;

/// A DSP with a time per sample for each node, and a nanosecond for every byte that crosses.
struct Dsp {
    times: Vec<Option<u64>>,
    /// With at least this number of samples, times are ten times as long.
    leaves_cache: u64,
    memory: u64,
}

impl DspProfile for Dsp {
    fn time(&self, node: NodeId, samples: u64) -> Option<Nanos> {
        let slower = if samples >= self.leaves_cache { 10 } else { 1 };
        self.times[node as usize].map(|time| Nanos(time * samples * slower))
    }

    fn crossing(&self, bytes: Bytes) -> Nanos {
        Nanos(bytes.0)
    }

    fn memory(&self) -> Bytes {
        Bytes(self.memory)
    }

    fn accumulation(&self, _node: NodeId) -> Nanos {
        Nanos(1)
    }
}

/// A chain of nodes, each of which makes a tensor of a number of bytes a sample; the first reads the samples.
fn chain(made: &[u64]) -> TrainingGraph {
    let mut builder = GraphBuilder::default();
    let mut last = builder.tensor(Role::Input, 4);
    for &bytes in made {
        let next = builder.tensor(Role::Activation, bytes);
        builder.node(Phase::Forward, &[last], &[next]);
        last = next;
    }
    for (place, node) in builder.graph.nodes.iter_mut().enumerate() {
        node.name = format!("node {place}");
    }
    builder.graph
}

/// Inserts before `place` a node that recomputes the scale of `tensor`, from sums that are four times as large.
fn rescale(graph: &mut TrainingGraph, place: usize, tensor: TensorId) {
    let mut node = graph.nodes[0].clone();
    let mut sums = graph.tensors[tensor as usize].clone();
    sums.bytes = sums.bytes * 4;
    (node.inputs, node.outputs) = (vec![tensor], vec![tensor, graph.tensors.len() as TensorId]);
    node.rescales = Some(tensor);
    graph.tensors.push(sums);
    graph.tensors[tensor as usize].name = format!("tensor {tensor}");
    graph.nodes.insert(place, node);
}

fn product() -> Option<Product> {
    let (role, one) = (ProductRole::WeightGradient, [1, 1]);
    Some(Product {
        role,
        inputs: 1,
        outputs: 1,
        input_size: one,
        output_size: one,
        taps: one,
        groups: 1,
        of_each_sample: false,
    })
}

fn prepared(graph: &TrainingGraph, cpu: &[u64], dsp: &Dsp, parameters: Parameters) -> Result<Offload, PolicyError> {
    let times: Vec<Nanos> = cpu.iter().copied().map(Nanos).collect();
    let factors = factors_that_scatter(0.05);
    let setting = Setting { dsp: Some(dsp), factors: Some(&factors), ..setting(graph, 4, &times) };
    Ok(Mandheling::new(parameters).prepare(&setting)?.offload.unwrap())
}

fn small(times: &[Option<u64>]) -> Dsp {
    Dsp { times: times.to_vec(), leaves_cache: u64::MAX, memory: 1_000 }
}

const PLAIN: Parameters = Parameters {
    coscheduling: true,
    rescaling: Rescaling::Dynamic,
    splitting: false,
    reuse: true,
    history: 16,
    warm_up: 1_000,
    seed: 0,
    relief: false,
};

#[test]
fn a_run_without_a_dsp_is_refused() {
    let graph = chain(&[1]);
    let error = Mandheling::new(PLAIN).prepare(&setting(&graph, 4, &[Nanos(1)])).unwrap_err();
    assert_eq!(error, PolicyError::NoDsp("mandheling"));
}

#[test]
fn crossings_take_what_the_neighbour_made() {
    // Batch 4. The DSP lacks node 1; 100 on it and 400 on the CPU for the others. Around node 1, 4 × 5 and 4 × 7 bytes
    // cross: 100 + 20 + 30 + 28 + 100 there and back against 830 on the CPU.
    let graph = chain(&[5, 7, 1]);
    let (cpu, dsp) = ([400, 30, 400], small(&[Some(25), None, Some(25)]));
    let offload = prepared(&graph, &cpu, &dsp, PLAIN).unwrap();
    assert_eq!(offload.on_dsp, [true, false, true]);
    assert_eq!(offload.begins, [true, false, true]);
    assert_eq!(offload.prepared_again, Some(vec![false, false]));
    // With 4 × 100 bytes before node 1 and 4 × 7 after it, one crossing is better: 430 + 28 + 100 = 558 against
    // 100 + 400 + 30 + 28 + 100 = 658.
    let dear = chain(&[100, 7, 1]);
    assert_eq!(prepared(&dear, &cpu, &dsp, PLAIN).unwrap().on_dsp, [false, false, true]);
    // Without the technique, every node that the DSP can run runs there.
    let apart = Parameters { coscheduling: false, ..PLAIN };
    assert_eq!(prepared(&dear, &cpu, &dsp, apart).unwrap().on_dsp, [true, false, true]);
    let mut moves = dear.clone();
    moves.nodes[2].work.kind = OperatorKind::Layout;
    assert_eq!(prepared(&moves, &cpu, &dsp, apart).unwrap().on_dsp, [true, false, false]);
}

#[test]
fn what_lies_with_both_processors_crosses_once() {
    // Nodes 1 and 2 both read node 0's output, and the DSP lacks node 1: 4 × 30 bytes cross before it, and need not
    // cross again for node 2. With the samples 16 + 40 + 120 + 30 + 40 = 246 against 330 on the CPU, where 4 bytes
    // cross for nothing.
    let mut graph = chain(&[30, 1, 1]);
    graph.nodes[2].inputs = vec![1];
    let dsp = small(&[Some(10), None, Some(10)]);
    assert_eq!(prepared(&graph, &[150, 30, 150], &dsp, PLAIN).unwrap().on_dsp, [true, false, true]);
    // With 4 × 60 bytes 366.
    graph.tensors[1].bytes = Extent::per_sample(60);
    assert_eq!(prepared(&graph, &[150, 30, 150], &dsp, PLAIN).unwrap().on_dsp, [false; 3]);
}

#[test]
fn what_launches_nothing_goes_along() {
    let mut graph = chain(&[1; 4]);
    graph.nodes[1].work.launches = 0;
    let dsp = small(&[Some(1), None, Some(1), None]);
    let offload = prepared(&graph, &[50, 0, 50, 1], &dsp, PLAIN).unwrap();
    assert_eq!(offload.on_dsp, [true, true, true, false]);
    assert_eq!(offload.begins, [true, false, false, false]);
}

#[test]
fn products_are_split_and_scheduled_by_what_the_parts_take() {
    // A sample takes 1, and 10 in a whole batch of 4: in parts of 2, 2 + 2 and a sum of 1, where the CPU takes 20.
    let mut graph = chain(&[1, 1]);
    graph.nodes[0].work.product = product();
    let dsp = Dsp { leaves_cache: 3, ..small(&[Some(1), Some(1)]) };
    let splitting = Parameters { splitting: true, ..PLAIN };
    let offload = prepared(&graph, &[20, 80], &dsp, splitting).unwrap();
    assert_eq!((offload.on_dsp, offload.split), (vec![true, true], vec![2, 0]));
    // Whole it takes 40 there, and 4 bytes cross.
    let offload = prepared(&graph, &[20, 80], &dsp, PLAIN).unwrap();
    assert_eq!((offload.on_dsp, offload.split), (vec![false, true], vec![0, 0]));
    // Nodes on the CPU are not split.
    let offload = prepared(&graph, &[1, 1], &dsp, splitting).unwrap();
    assert_eq!((offload.on_dsp, offload.split), (vec![false, false], vec![0, 0]));
}

#[test]
fn rescaling_cuts_a_subgraph_where_it_always_runs() {
    let mut graph = chain(&[1, 1]);
    rescale(&mut graph, 1, 1);
    graph.nodes[1].work.precision = Some(Precision::Int32);
    let dsp = small(&[Some(1), None, Some(1)]);
    let offload = prepared(&graph, &[100, 10, 100], &dsp, PLAIN).unwrap();
    assert_eq!((offload.on_dsp, offload.begins), (vec![true, false, true], vec![true, false, true]));
    let adaptive = Parameters { rescaling: Rescaling::Adaptive, ..PLAIN };
    let offload = prepared(&graph, &[100, 10, 100], &dsp, adaptive).unwrap();
    assert_eq!((offload.on_dsp, offload.begins), (vec![true, false, true], vec![true, false, false]));
    // Every batch, sums of 16 bytes cross and 4 of the tensor come back, all for the node before: 4 + 20 + 4 on the
    // DSP against 13 + 4 + 4 with the first on the CPU. Once in two batches or less, at most 4 + 10 + 4.
    let cpu = [13, 10, 13];
    let at_first = Parameters { warm_up: 0, ..adaptive };
    assert_eq!(prepared(&graph, &cpu, &dsp, at_first).unwrap().on_dsp, [false, false, true]);
    assert_eq!(prepared(&graph, &cpu, &dsp, adaptive).unwrap().on_dsp, [true, false, true]);
    // As an operator of the row: 4 + 16 + 10 + 4 + 4 = 38 with the first on the DSP (26 if only 4 bytes crossed),
    // 13 + 10 + 4 + 4 = 31 without.
    assert_eq!(prepared(&graph, &cpu, &dsp, PLAIN).unwrap().on_dsp, [false, false, true]);
}

#[test]
fn subgraphs_are_cut_to_the_dsps_memory() {
    // Buffers at batch 4: node 0 reads 16 bytes and makes 40, the others make 40 each. With 100 bytes, nodes 0 and 1
    // take 96, node 2 alone takes 80, and so does node 3, since 2 and 3 together take 120.
    let graph = chain(&[10; 4]);
    let mut dsp = small(&[Some(1); 4]);
    dsp.memory = 100;
    let offload = prepared(&graph, &[100; 4], &dsp, PLAIN).unwrap();
    assert_eq!(offload.begins, [true, false, true, true]);
    // 96, 80 and 80 do not fit together, nor any two.
    assert_eq!(offload.prepared_again, Some(vec![true; 3]));
    let without = Parameters { reuse: false, ..PLAIN };
    assert_eq!(prepared(&graph, &[100; 4], &dsp, without).unwrap().prepared_again, None);
    // A byte less than node 1 needs for its inputs and outputs.
    dsp.memory = 79;
    let error = prepared(&graph, &[100; 4], &dsp, PLAIN).unwrap_err();
    assert_eq!(error.to_string(), "mandheling: the buffers of node 1 take 80 B on the DSP; expected at most 79 B");
}

/// The share of `iterations` in which each of 60 tensors is rescaled, if their factors scatter by `scatter` bits, and
/// the counts of each iteration.
fn shares(parameters: Parameters, scatter: f64, iterations: u64) -> (f64, Vec<u64>) {
    let mut graph = chain(&[1; 60]);
    for tensor in 1..=60 {
        rescale(&mut graph, 2 * tensor as usize - 1, tensor);
    }
    let dsp = small(&[Some(1); 120]);
    let times = [Nanos(1); 120];
    let mut policy = Mandheling::new(parameters);
    let factors = factors_that_scatter(scatter);
    policy.prepare(&Setting { dsp: Some(&dsp), factors: Some(&factors), ..setting(&graph, 4, &times) }).unwrap();
    let counts: Vec<u64> = (0..iterations)
        .map(|_| {
            let mut plan = IterationPlan::new(4);
            policy.begin_iteration(&mut plan).unwrap();
            // The plan applies to every micro-batch of the iteration.
            assert_eq!(plan.micro_batch, 4);
            (1..=60).filter(|&tensor| plan.rescales(tensor)).count() as u64
        })
        .collect();
    (counts.iter().sum::<u64>() as f64 / (60 * iterations) as f64, counts)
}

#[test]
fn scale_factors_are_seldom_taken_anew_once_they_have_settled() {
    let adaptive = Parameters { rescaling: Rescaling::Adaptive, ..PLAIN };
    // Scattered by 0.05 bits, four factors of five lie more than two standard deviations from an integer, change in
    // less than 5% of batches, and are checked at the longest interval. Staggered: 60 factors every 30 batches or more
    // often, so no batch is without any.
    let (share, counts) = shares(adaptive, 0.05, 200);
    assert!((1.0 / 30.0..1.0 / 5.0).contains(&share), "{share}");
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
    // By 1 bit, all change in more than half of the batches, and are recomputed in each.
    assert!(shares(adaptive, 1.0, 200).0 > 0.9);
    assert_eq!(shares(Parameters { warm_up: 0, ..adaptive }, 0.05, 16), (1.0, vec![60; 16]));
    assert_eq!(shares(PLAIN, 0.05, 20), (1.0, vec![60; 20]));
    assert_ne!(shares(Parameters { seed: 1, ..adaptive }, 0.05, 50), shares(adaptive, 0.05, 50));
}

#[test]
fn how_factors_change_must_be_known_where_they_are_drawn() {
    let (graph, dsp) = (chain(&[1]), small(&[Some(1)]));
    let adaptive = Parameters { rescaling: Rescaling::Adaptive, ..PLAIN };
    let setting = || Setting { dsp: Some(&dsp), ..setting(&graph, 4, &[Nanos(1)]) };
    let error = Mandheling::new(adaptive).prepare(&setting()).unwrap_err();
    assert_eq!(error, PolicyError::NoFactors("mandheling"));
    assert!(Mandheling::new(adaptive).prepare(&Setting { tells_factors: true, ..setting() }).is_ok());
    assert!(Mandheling::new(PLAIN).prepare(&setting()).is_ok());
}

fn set(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn parameters_reach_the_policy() {
    let mut graph = chain(&[1, 1]);
    rescale(&mut graph, 1, 1);
    graph.nodes[2].work.product = product();
    let dsp = Dsp { leaves_cache: 3, ..small(&[Some(1), None, Some(1)]) };
    let times = [Nanos(500); 3];
    let offload = |pairs: &[(&str, &str)]| {
        let mut policy = registry::build("mandheling", &set(pairs)).unwrap();
        let factors = factors_that_scatter(0.05);
        let setting = Setting { dsp: Some(&dsp), factors: Some(&factors), ..setting(&graph, 4, &times) };
        policy.prepare(&setting).unwrap().offload.unwrap()
    };
    let (on, off) = (true, false);
    let default = offload(&[]);
    assert_eq!((&default.split[..], &default.begins[..]), (&[0, 0, 2][..], &[on, off, off][..]));
    assert_eq!(default.prepared_again, Some(vec![false]));
    assert_eq!(offload(&[("coscheduling", "on"), ("rescaling", "adaptive"), ("algorithm", "octo")]), default);
    assert_eq!(offload(&[("splitting", "off")]).split, [0; 3]);
    assert_eq!(offload(&[("reuse", "off")]).prepared_again, None);
    assert_eq!(offload(&[("rescaling", "dynamic")]).begins, [on, off, on]);
    for (key, value) in [("splitting", "yes"), ("history", "3"), ("seed", "-1"), ("algorithm", "nity"), ("warm_up", "")]
    {
        let error = registry::build("mandheling", &set(&[(key, value)])).err().unwrap();
        assert!(matches!(error, PolicyError::BadValue { policy: "mandheling", .. }), "{error}");
    }
    let error = registry::build("mnn-int8", &set(&[("algorithm", "nity")])).err().unwrap();
    assert!(error.to_string().ends_with("did you mean 'niti'?"), "{error}");
    assert!(registry::build("mandheling", &set(&[("seed", "0"), ("warm_up", "0"), ("history", "4")])).is_ok());
}

#[test]
fn algorithms_are_those_that_graphs_are_rewritten_for() {
    let known = haversack_workloads::mixed::algorithms().unwrap().iter().map(|algorithm| algorithm.id.as_str());
    for id in ["mnn-int8", "mandheling"] {
        let entry = registry::find(id).unwrap();
        let parameter = entry.parameters.iter().find(|parameter| parameter.name == "algorithm").unwrap();
        assert_eq!(parameter.values(), alternatives(known.clone()));
        assert_eq!(parameter.default_text().as_deref(), Some(ALGORITHM));
    }
}

#[test]
fn engines_say_what_they_stand_for() {
    // Section 4.1: baselines on four big cores, Mandheling's CPU work on two.
    let of = |id: &str| registry::find(id).unwrap().engine;
    let processor = |id: &str| of(id).map(|engine| (engine.stack, engine.processor, engine.cores, engine.eight_bit));
    assert_eq!(processor("tflite-fp32"), Some(("tflite", EngineProcessor::Cpu, Some("big:4"), false)));
    assert_eq!(processor("mnn-fp32"), Some(("mnn", EngineProcessor::Cpu, Some("big:4"), false)));
    assert_eq!(processor("mnn-int8"), Some(("mnn", EngineProcessor::Cpu, Some("big:4"), true)));
    assert_eq!(processor("mnn-fp32-gpu"), Some(("mnn", EngineProcessor::Gpu, None, false)));
    assert_eq!(processor("mandheling"), Some(("mandheling", EngineProcessor::CpuAndDsp, Some("big:2"), true)));
    assert_eq!(of("original"), None);
}

/// The tensors that are rescaled in each of `batches`, each of which gets the factors of the previous one: that of
/// tensor 1 never changes, that of tensor 2 always does, that of tensor 3 does in every seventh batch.
fn taken(policy: &mut Mandheling, batches: Range<u64>) -> Vec<Vec<TensorId>> {
    let told = |batch: u64| {
        let factor = |changes: u64| batch.checked_sub(1).map(|last| (last / changes % 2) as u32);
        vec![None, factor(1_000), factor(1), factor(7)]
    };
    let of = |batch: u64| {
        let mut plan = IterationPlan::new(4);
        plan.factors = told(batch);
        policy.begin_iteration(&mut plan).unwrap();
        (1..=3).filter(|&tensor| plan.rescales(tensor)).collect()
    };
    batches.map(of).collect()
}

#[test]
fn a_run_goes_on_with_what_the_one_before_has_seen_of_the_data() {
    let mut graph = chain(&[1; 3]);
    (1..=3).for_each(|tensor| rescale(&mut graph, 2 * tensor as usize - 1, tensor));
    let (dsp, times) = (small(&[Some(1); 6]), [Nanos(1); 6]);
    let prepared = |before: Learned, rescaling: Rescaling| {
        let mut policy = Mandheling::new(Parameters { rescaling, ..PLAIN });
        let learned = Some(&before);
        policy
            .prepare(&Setting { dsp: Some(&dsp), learned, tells_factors: true, ..setting(&graph, 4, &times) })
            .unwrap();
        policy
    };
    let begun = || prepared(Learned::Null, Rescaling::Adaptive);
    let all = taken(&mut begun(), 0..60);
    // The first sixteen batches have no history. After that, constant factors are left alone, and ever-changing ones
    // are not.
    assert!(all[..16].iter().all(|taken| *taken == [1, 2, 3]), "{all:?}");
    assert!(all[16..].iter().filter(|taken| taken.contains(&1)).count() < 6, "{all:?}");
    assert!(all[16..].iter().all(|taken| taken.contains(&2)), "{all:?}");
    for cut in [7, 23, 40] {
        let mut first = begun();
        let before = taken(&mut first, 0..cut);
        let mut second = prepared(first.learned(), Rescaling::Adaptive);
        assert_eq!([before, taken(&mut second, cut..60)].concat(), all, "cut at {cut}");
    }
    // State learned on another graph, with one factor fewer, is not used for this one.
    let mut other = begun().learned();
    other[1].as_array_mut().unwrap().pop();
    assert_eq!(taken(&mut prepared(other, Rescaling::Adaptive), 0..60), all);
    // Nothing is learned without decisions, or without data.
    assert!(prepared(Learned::Null, Rescaling::Dynamic).learned().is_null());
    let mut drawn = Mandheling::new(Parameters { rescaling: Rescaling::Adaptive, ..PLAIN });
    let factors = factors_that_scatter(0.05);
    drawn.prepare(&Setting { dsp: Some(&dsp), factors: Some(&factors), ..setting(&graph, 4, &times) }).unwrap();
    assert!(drawn.learned().is_null());
}
