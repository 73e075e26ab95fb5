//! Decisions of `daf` and `elastictrainer` under budgets, against brute force and on real networks.

use crate::setting::setting;
use haversack_devices::units::{Bytes, Nanos};
use haversack_policies::ElementBytes;
use haversack_policies::daf::{BITS, Daf, Parameters};
use haversack_policies::elastictrainer::ElasticTrainer;
use haversack_policies::importance::{Metric, Worth, of_saved, skippable};
use haversack_policies::quantised::{ArenaPlan, Control, Packing, Quantisation, Quantised};
use haversack_policies::{
    Holding, IterationPlan, MemoryView, Policy, PolicyError, Relief, Setting, TensorState, Want, registry,
};
use haversack_testing::{GraphBuilder, eager};
use haversack_workloads::training_graph::{LayerKind, Need};
use haversack_workloads::{Phase, Role, TensorId, TrainingGraph};
use proptest::prelude::*;

/// Pages of a byte, so that sizes are exact.
const EXACT: ArenaPlan = ArenaPlan { page: Bytes(1), step: Bytes(1_000) };

/// Parameters that are not set have their defaults.
fn parameters(metric: Metric) -> Parameters {
    Parameters {
        bits: None,
        kind_bits: [None; 7],
        least_bits: 0,
        trained_share: None,
        metric,
        packing: Packing::Profiled,
        control: Control::Fused,
        arena: EXACT,
    }
}

/// Saved tensors with a number of values, each read by the gradient of a weight with a number of values, and by nothing
/// else if it can be given up.
fn weights(of: &[(u64, u64, bool)]) -> (TrainingGraph, Vec<TensorId>) {
    let mut builder = GraphBuilder::default();
    let saved: Vec<TensorId> = of.iter().map(|&(values, ..)| builder.tensor(Role::Activation, 4 * values)).collect();
    for &tensor in &saved {
        builder.node(Phase::Forward, &[], &[tensor]);
    }
    for (&(_, weights, alone), &tensor) in of.iter().zip(&saved) {
        let gradient = builder.fixed(Role::ParameterGradient, 4 * weights);
        let mut outputs = vec![gradient];
        if !alone {
            outputs.push(builder.tensor(Role::Gradient, 4));
        }
        builder.backward(&[(tensor, Need::Values, true)], &outputs);
    }
    (builder.graph, saved)
}

fn bits_of(holding: Holding) -> u8 {
    match holding {
        Holding::Keep => 32,
        Holding::Skip => 0,
        Holding::Quantise(bits) => bits,
        Holding::Rematerialise | Holding::Compress | Holding::Swap => panic!("daf quantises or gives up"),
    }
}

/// The bits of `saved` under a budget.
fn bits(
    graph: &TrainingGraph,
    saved: &[TensorId],
    parameters: Parameters,
    budget: Option<u64>,
) -> Result<Vec<u8>, PolicyError> {
    let mut daf = Daf::new(parameters);
    let setting = Setting { activation_budget: budget.map(Bytes), ..setting(graph, 1, &[]) };
    daf.prepare(&setting)?;
    daf.begin_iteration(&mut IterationPlan::new(1)).unwrap();
    Ok(saved.iter().map(|&tensor| bits_of(hold(&mut daf, tensor))).collect())
}

fn rules(parameters: Parameters) -> Quantisation {
    let (graph, _) = weights(&[(1, 1, true)]);
    let schedule = Daf::new(parameters).prepare(&setting(&graph, 1, &[])).unwrap();
    schedule.quantisation.unwrap()
}

fn stored(graph: &TrainingGraph) -> Quantised {
    Quantised::new(graph, &rules(parameters(Metric::Depth)), ElementBytes { value: 4, mask: 1 })
}

#[test]
fn without_a_budget_every_tensor_has_two_bits_or_those_that_are_set() {
    let (graph, saved) = weights(&[(1_000, 3, true), (2_000, 5, false), (500, 1, true)]);
    assert_eq!(bits(&graph, &saved, parameters(Metric::Values), None).unwrap(), [2, 2, 2]);
    for set in &BITS[..6] {
        let parameters = Parameters { bits: Some(*set), ..parameters(Metric::Values) };
        assert_eq!(bits(&graph, &saved, parameters, None).unwrap(), [*set; 3]);
    }
    // Everything fits the budget whole and stays whole: 3,500 values of four bytes.
    assert_eq!(bits(&graph, &saved, parameters(Metric::Values), Some(14_000)).unwrap(), [32; 3]);
    assert_eq!(bits(&graph, &saved, parameters(Metric::Values), Some(13_999)).unwrap().iter().max(), Some(&32));
    // A time budget that everything fits has no effect on memory.
    let mut daf = Daf::new(parameters(Metric::Depth));
    let times = vec![Nanos(1); graph.nodes.len()];
    let setting = Setting { time_budget: Some(Nanos(1_000)), ..setting(&graph, 1, &times) };
    daf.prepare(&setting).unwrap();
    assert!(saved.iter().all(|&tensor| bits_of(hold(&mut daf, tensor)) == 32));
}

#[test]
fn what_is_worth_least_for_its_size_gives_first() {
    // Values worth 40, 4,000 and 9 in 4,000, 40,000 and 400 B: 0.01, 0.1 and 0.0225 a byte.
    let (graph, saved) = weights(&[(1_000, 40, true), (10_000, 4_000, true), (100, 9, true)]);
    let at = |budget| bits(&graph, &saved, parameters(Metric::Values), Some(budget)).unwrap();
    // 44,400 B whole. One byte less: the first to 16 bits, 2,000 B, worth 0.02 a byte.
    assert_eq!(at(44_399), [16, 32, 32]);
    assert_eq!(at(42_400), [16, 32, 32]);
    // The first again, to 8 bits: 1,000 + 4 groups × 4 = 1,016 B, 0.039 a byte; then the third, 400 to 200 B.
    assert_eq!(at(42_399), [8, 32, 32]);
    assert_eq!(at(41_416), [8, 32, 32]);
    assert_eq!(at(41_415), [8, 32, 16]);
}

#[test]
fn by_their_own_values_large_maps_keep_as_many_bits_as_small_ones() {
    // A small map before a layer of 4,000 weights, a large one before a layer of ten.
    let (graph, saved) = weights(&[(256, 4_000, false), (2_560, 10, false)]);
    let at = |metric, budget| bits(&graph, &saved, parameters(metric), Some(budget)).unwrap();
    // 11,264 B whole; each byte is worth one. Among equals the one with the smaller total worth gives first, 512 B;
    // then the other, whose bytes are then worth less, 5,120 B; then the first again.
    assert_eq!(at(Metric::Stored, 11_263), [16, 32]);
    assert_eq!(at(Metric::Stored, 10_751), [16, 16]);
    assert_eq!(at(Metric::Stored, 5_631), [8, 16]);
    // By the weights that read them only the large map gives way.
    assert_eq!(at(Metric::Values, 11_263), [32, 16]);
    assert_eq!(at(Metric::Values, 6_143), [32, 8]);
}

/// The least worth per byte of the dearest step, over all choices of bits that fit the budget.
fn cheapest_dearest_step(graph: &TrainingGraph, saved: &[TensorId], worth: &[f64], budget: u64) -> Option<f64> {
    let stored = stored(graph);
    let can_go = skippable(graph);
    let mut best: Option<f64> = None;
    let mut places = vec![0_usize; saved.len()];
    loop {
        let bytes: u64 = saved.iter().zip(&places).map(|(&t, &place)| stored.bytes(t, BITS[place], 1).0).sum();
        let allowed = saved.iter().zip(&places).all(|(&tensor, &place)| BITS[place] > 0 || can_go[tensor as usize]);
        if bytes <= budget && allowed {
            let dearest = |(&tensor, &place): (&TensorId, &usize)| match place {
                0 => f64::NEG_INFINITY,
                _ => worth[tensor as usize] / stored.bytes(tensor, BITS[place - 1], 1).as_f64(),
            };
            let dearest = saved.iter().zip(&places).map(dearest).fold(f64::NEG_INFINITY, f64::max);
            best = Some(best.map_or(dearest, |best| best.min(dearest)));
        }
        let Some(next) = places.iter().position(|&place| place + 1 < BITS.len()) else { return best };
        places[next] += 1;
        places[..next].fill(0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// A tensor that shrinks is worth more a byte, so that all steps have one order by worth and the greedy choice is a
    /// prefix of it: every choice that fits contains steps at least as dear as its dearest.
    #[test]
    fn no_choice_that_fits_takes_only_cheaper_steps(
        of in prop::collection::vec((1_u64..5_000, 1_u64..5_000, any::<bool>()), 1..4),
        percent in 0_u64..110,
    ) {
        let (graph, saved) = weights(&of);
        let worth = of_saved(&graph, Worth::Prior(Metric::Values));
        let whole: u64 = of.iter().map(|(values, ..)| 4 * values).sum();
        let budget = whole * percent / 100;
        let brute = cheapest_dearest_step(&graph, &saved, &worth, budget);
        match bits(&graph, &saved, parameters(Metric::Values), Some(budget)) {
            Ok(found) => {
                let stored = stored(&graph);
                let bytes: u64 = saved.iter().zip(&found).map(|(&t, &b)| stored.bytes(t, b, 1).0).sum();
                prop_assert!(bytes <= budget, "{bytes} of {budget}");
                let dearest = saved.iter().zip(&found).map(|(&tensor, &bits)| {
                    let before = BITS.iter().position(|&b| b == bits).unwrap().checked_sub(1);
                    before.map_or(f64::NEG_INFINITY, |before| {
                        worth[tensor as usize] / stored.bytes(tensor, BITS[before], 1).as_f64()
                    })
                });
                prop_assert_eq!(Some(dearest.fold(f64::NEG_INFINITY, f64::max)), brute);
                // Only existing bit widths, and zero only for tensors that no input gradient reads.
                prop_assert!(found.iter().zip(&of).all(|(bits, (.., alone))| BITS.contains(bits) && (*alone || *bits > 0)));
            }
            Err(error) => {
                prop_assert!(brute.is_none(), "{error} although {brute:?} fits");
                prop_assert!(matches!(error, PolicyError::Budget { policy: "daf", .. }), "{error}");
            }
        }
    }

    /// The order of the steps does not depend on the budget, so a larger one takes fewer of the same steps.
    #[test]
    fn a_larger_budget_leaves_no_tensor_fewer_bits(
        of in prop::collection::vec((1_u64..50_000, 1_u64..5_000, any::<bool>()), 1..12),
        budgets in (0_u64..100, 0_u64..100),
    ) {
        let (graph, saved) = weights(&of);
        let whole: u64 = of.iter().map(|(values, ..)| 4 * values).sum();
        let (small, large) = (budgets.0.min(budgets.1), budgets.0.max(budgets.1));
        let at = |percent: u64| bits(&graph, &saved, parameters(Metric::Depth), Some(whole * percent / 100));
        if let Ok(less) = at(small) {
            let more = at(large).unwrap();
            prop_assert!(less.iter().zip(&more).all(|(less, more)| less <= more), "{less:?} {more:?}");
        }
    }
}

/// The number of bytes in an error message, which is exact below 10,000.
fn least_of(error: &PolicyError) -> u64 {
    let PolicyError::Budget { least, .. } = error else { panic!("{error}") };
    least.strip_suffix(" B").unwrap_or_else(|| panic!("{least}")).parse().unwrap()
}

#[test]
fn a_budget_below_the_least_is_an_error_that_names_it() {
    let of = [(1_000, 40, false), (10_000, 4_000, false), (100, 8, true)];
    let (graph, saved) = weights(&of);
    // One bit for the two that an input gradient reads: 32 words + 4 × 4 and 313 words + 40 × 4; the third can go.
    let least = 128 + 16 + 1_252 + 160;
    for budget in [0, 1, least - 1] {
        let error = bits(&graph, &saved, parameters(Metric::Values), Some(budget)).unwrap_err();
        assert_eq!(least_of(&error), least, "{budget}");
        assert_eq!(error.to_string(), format!("daf: no plan takes less than {least} B; the budget is {budget} B"));
    }
    assert_eq!(bits(&graph, &saved, parameters(Metric::Values), Some(least)).unwrap(), [1, 1, 0]);
    // At least the bits that are set: 8 bits take 1,016 + 10,160 + 104 B, 100 values being one group.
    for (least_bits, least) in [(8, 1_016 + 10_160 + 104), (4, 516 + 5_160 + 56), (1, 144 + 1_412 + 20)] {
        let limited = || Parameters { least_bits, ..parameters(Metric::Values) };
        let error = bits(&graph, &saved, limited(), Some(least - 1)).unwrap_err();
        assert!(matches!(error, PolicyError::Budget { .. }), "{error}");
        assert_eq!(bits(&graph, &saved, limited(), Some(least)).unwrap(), [least_bits; 3]);
    }
}

#[test]
fn the_least_budget_counts_whole_pages() {
    let of = [(1_000, 40, false), (10_000, 4_000, false), (100, 8, false)];
    let (graph, saved) = weights(&of);
    let paged =
        || Parameters { arena: ArenaPlan { page: Bytes(1024), step: Bytes(4096) }, ..parameters(Metric::Values) };
    // 141, 1,410 and 17 B lie in 1, 2 and 1 pages of 1,024 B.
    let error = bits(&graph, &saved, paged(), Some(4 * 1024 - 1)).unwrap_err();
    assert_eq!(least_of(&error), 4 * 1024);
    // 1,016 B of eight bits fit one page as well, and are worth more a byte than the others' last steps.
    assert_eq!(bits(&graph, &saved, paged(), Some(4 * 1024)).unwrap(), [8, 1, 1]);
}

#[test]
fn what_is_out_of_reach_takes_its_share_of_the_budget() {
    let (mut graph, saved) = weights(&[(1_000, 40, true), (1_000, 400, true)]);
    // 500 B of statistics stay whole in addition.
    let mut builder = GraphBuilder { graph: std::mem::take(&mut graph) };
    let rows = builder.tensor(Role::Activation, 500);
    let gradient = builder.tensor(Role::Gradient, 4);
    builder.backward(&[(rows, Need::Statistics, true)], &[gradient]);
    let graph = builder.graph;
    assert_eq!(bits(&graph, &saved, parameters(Metric::Values), Some(8_500)).unwrap(), [32, 32]);
    assert_eq!(bits(&graph, &saved, parameters(Metric::Values), Some(8_499)).unwrap(), [16, 32]);
    assert_eq!(bits(&graph, &saved, parameters(Metric::Values), Some(500)).unwrap(), [0, 0]);
    assert!(bits(&graph, &saved, parameters(Metric::Values), Some(499)).is_err());
    let mut daf = Daf::new(parameters(Metric::Depth));
    daf.prepare(&Setting { activation_budget: Some(Bytes(500)), ..setting(&graph, 1, &[]) }).unwrap();
    assert_eq!(hold(&mut daf, rows), Holding::Keep);
}

/// The decision of `daf` how to hold a tensor, which depends on nothing else.
fn hold(daf: &mut Daf, tensor: TensorId) -> Holding {
    let nothing = TrainingGraph { name: String::new(), tensors: Vec::new(), nodes: Vec::new() };
    daf.hold(tensor, &MemoryView::empty(&nothing)).unwrap()
}

/// The answer of `daf` to a shortfall.
fn relieve(daf: &mut Daf, graph: &TrainingGraph, shortfall: u64) -> Vec<Relief> {
    let tensors = vec![TensorState::default(); graph.tensors.len()];
    let view = MemoryView { tensors: &tensors, budget: Bytes::ZERO, ..MemoryView::empty(graph) };
    daf.relieve(Want::Shortfall(Bytes(shortfall)), &view).unwrap()
}

#[test]
fn a_shortfall_takes_bits_in_the_same_order() {
    let (graph, saved) = weights(&[(1_000, 40, true), (10_000, 4_000, false), (100, 8, true)]);
    let [first, second, third] = saved[..] else { panic!("three tensors") };
    let mut daf = Daf::new(Parameters { bits: Some(8), ..parameters(Metric::Values) });
    daf.prepare(&setting(&graph, 1, &[])).unwrap();
    assert_eq!(relieve(&mut daf, &graph, 0), []);
    // 1,016, 10,160 and 104 B of 8 bits: worth 0.039, 0.39 and 0.077 a byte. The first falls to 516, 268 and 144 B,
    // worth 0.078, 0.15 and 0.28; the third to 56 B, 0.143. 501 B: the first gives 500, the third 48.
    assert_eq!(relieve(&mut daf, &graph, 501), [Relief::Requantise(first, 4), Relief::Requantise(third, 4)]);
    // The first at 0.078 gives 248 B.
    assert_eq!(relieve(&mut daf, &graph, 248), [Relief::Requantise(first, 2)]);
    assert_eq!(hold(&mut daf, first), Holding::Quantise(2));
    assert_eq!(hold(&mut daf, second), Holding::Quantise(8));
    // All that is left: only the second cannot go.
    let last = relieve(&mut daf, &graph, 1_000_000);
    assert!(last.contains(&Relief::Skip(first)) && last.contains(&Relief::Skip(third)));
    assert!(!last.contains(&Relief::Skip(second)) && last.contains(&Relief::Requantise(second, 1)));
    assert_eq!([first, second, third].map(|t| bits_of(hold(&mut daf, t))), [0, 1, 0]);
    assert_eq!(relieve(&mut daf, &graph, 1), []);
    // The next iteration starts from the same bits.
    daf.begin_iteration(&mut IterationPlan::new(1)).unwrap();
    assert_eq!(hold(&mut daf, first), Holding::Quantise(8));
}

#[test]
fn what_was_measured_takes_the_place_of_the_prior() {
    // Equal sizes, worth 100 and 130 by their weights: the first gives.
    let (graph, saved) = weights(&[(1_000, 100, true), (1_000, 130, true)]);
    let mut daf = Daf::new(parameters(Metric::Depth));
    daf.prepare(&Setting { activation_budget: Some(Bytes(6_000)), ..setting(&graph, 1, &[]) }).unwrap();
    let mut after = |first: f64, second: f64| {
        let mut importance = vec![0.0; graph.tensors.len()];
        (importance[saved[0] as usize], importance[saved[1] as usize]) = (first, second);
        let mut iteration = IterationPlan::new(1);
        iteration.importance = importance;
        daf.begin_iteration(&mut iteration).unwrap();
        [bits_of(hold(&mut daf, saved[0])), bits_of(hold(&mut daf, saved[1]))]
    };
    assert_eq!(after(129.0, 130.0), [16, 32]);
    assert_eq!(after(131.0, 130.0), [32, 16]);
}

#[test]
fn pages_larger_than_the_default_step_are_fine_with_larger_steps() {
    let set = |page: &str, step: &str| {
        let set = [("page_kib".to_owned(), page.to_owned()), ("step_mb".to_owned(), step.to_owned())];
        let mut policy = registry::build("daf", &set).unwrap();
        let (graph, _) = weights(&[(1_000, 1, true)]);
        policy.prepare(&setting(&graph, 1, &[])).map(|schedule| schedule.quantisation.unwrap().arena.unwrap())
    };
    // 200,000 KiB are 204.8 MB.
    assert_eq!(set("200000", "1000"), Ok(ArenaPlan { page: Bytes(204_800_000), step: Bytes(1_000_000_000) }));
}

#[test]
fn parameters_of_daf_are_checked() {
    let build = |key: &str, value: &str| registry::build("daf", &[(key.to_owned(), value.to_owned())]);
    for (key, good, bad) in [
        ("bits", &["1", "2", "4", "8", "16", "32"][..], &["0", "3", "33", "", "-1", "two", "256"][..]),
        ("least_bits", &["0", "1", "2", "4", "8"], &["16", "32", "3", "many"]),
        ("importance", &["depth", "values", "uniform"], &["random", ""]),
        ("packing", &["profiled", "unified", "shared", "cpu", "gpu"], &["dsp", "GPU"]),
        ("control", &["fused", "own-kernels"], &["own"]),
        ("step_mb", &["1", "100", "400"], &["0", "-1", "1.5", "10000000"]),
        ("page_kib", &["1", "16", "4096"], &["0", "16k"]),
    ] {
        for value in good {
            assert!(build(key, value).is_ok(), "{key} {value}");
        }
        for value in bad {
            let error = build(key, value).err().expect("a refusal");
            let named = matches!(&error, PolicyError::BadValue { policy: "daf", parameter, .. } if *parameter == key);
            assert!(named, "{key} {value}: {error}");
        }
    }
    assert!(
        matches!(build("bit", "2").err(), Some(PolicyError::UnknownParameter { nearest: Some(n), .. }) if n == "bits")
    );
}

/// A microsecond for each thousand operations plus one for the launch: times of an artificial device.
fn times(graph: &TrainingGraph) -> Vec<Nanos> {
    graph.nodes.iter().map(|node| Nanos(1_000 * (1 + node.work.flops.at(1) / 1_000))).collect()
}

fn time_of(graph: &TrainingGraph, phase: Phase) -> u64 {
    graph.nodes.iter().zip(times(graph)).filter(|(node, _)| node.phase == phase).map(|(_, time)| time.0).sum()
}

fn total(graph: &TrainingGraph) -> u64 {
    times(graph).iter().map(|time| time.0).sum()
}

fn with_time(graph: &TrainingGraph, policy: &mut dyn Policy, budget: u64) -> Result<TrainingGraph, PolicyError> {
    let times = times(graph);
    let setting = Setting { time_budget: Some(Nanos(budget)), ..setting(graph, 1, &times) };
    Ok(policy.prepare(&setting)?.graph.unwrap_or_else(|| graph.clone()))
}

const NETWORKS: [&str; 4] = ["lenet5", "resnet18-cifar", "albert-base", "roberta-base-lora"];

fn trained(graph: &TrainingGraph) -> usize {
    graph.nodes.iter().filter(|node| node.phase == Phase::Update).count()
}

/// Both policies that choose by time.
fn by_time(id: &str, metric: Metric) -> Box<dyn Policy> {
    match id {
        "daf" => Box::new(Daf::new(parameters(metric))),
        _ => Box::new(ElasticTrainer::new(metric)),
    }
}

fn what_is_left_fits(id: &str) {
    for model in NETWORKS {
        let graph = eager(model);
        let whole = total(&graph);
        for metric in [Metric::Depth, Metric::Values, Metric::Uniform] {
            let mut last = usize::MAX;
            for percent in [100, 95, 90, 80, 70, 60, 50, 45] {
                let budget = (whole * percent / 100).max(time_of(&graph, Phase::Forward));
                let place = format!("{id} {model} {metric:?} {percent} %");
                let mut policy = by_time(id, metric);
                let left = with_time(&graph, policy.as_mut(), budget).unwrap_or_else(|e| panic!("{place}: {e}"));
                assert!(total(&left) <= budget, "{place}: {} of {budget}", total(&left));
                assert!(trained(&left) < trained(&graph) || percent == 100, "{place}");
                assert_eq!(time_of(&left, Phase::Forward), time_of(&graph, Phase::Forward), "{place}");
                // With the full time, everything is trained.
                if percent == 100 {
                    assert_eq!(left.nodes.len(), graph.nodes.len(), "{place}");
                }
                if id == "daf" {
                    // Tensors are given up one after the other in an order that does not depend on the budget.
                    assert!(trained(&left) <= last, "{place}");
                    last = trained(&left);
                }
            }
        }
    }
}

#[test]
fn what_daf_leaves_fits_into_the_time_budget() {
    what_is_left_fits("daf");
}

#[test]
fn what_elastictrainer_leaves_fits_into_the_time_budget() {
    what_is_left_fits("elastictrainer");
}

fn least_time_is_that_of_forward(id: &str) {
    for model in NETWORKS {
        let graph = eager(model);
        let forward = time_of(&graph, Phase::Forward);
        let error = with_time(&graph, by_time(id, Metric::Depth).as_mut(), forward - 1_000).unwrap_err();
        let PolicyError::Budget { policy, least, budget } = &error else { panic!("{error}") };
        assert_eq!((*policy, least.as_str()), (id, format!("{:.6} s", forward as f64 * 1e-9).as_str()), "{model}");
        assert_eq!(budget, &format!("{:.6} s", (forward - 1_000) as f64 * 1e-9));
        // With only forward's time nothing is trained.
        let left = with_time(&graph, by_time(id, Metric::Depth).as_mut(), forward).unwrap();
        assert_eq!((trained(&left), total(&left)), (0, forward), "{id} {model}");
    }
}

#[test]
fn less_time_than_forward_is_an_error_of_daf_that_names_it() {
    least_time_is_that_of_forward("daf");
}

#[test]
fn less_time_than_forward_is_an_error_of_elastictrainer_that_names_it() {
    least_time_is_that_of_forward("elastictrainer");
}

#[test]
fn elastictrainer_without_a_budget_changes_nothing() {
    let graph = eager("lenet5");
    let times = times(&graph);
    let schedule = ElasticTrainer::new(Metric::Depth).prepare(&setting(&graph, 4, &times)).unwrap();
    assert!(schedule.graph.is_none() && schedule.quantisation.is_none() && schedule.precision.is_none());
    assert_eq!(schedule.micro_batch, 4);
}

#[test]
fn elastictrainer_trains_what_is_worth_most_for_its_time() {
    // Forward of 10; backward: fc's weight 4 (40 values), the way to conv2 5, conv2's weight 6 (60 values), the way to
    // conv1 7, conv1's weight 3 (300 values); updates of 1.
    let mut builder = GraphBuilder::default();
    let x = builder.tensor(Role::Activation, 4);
    builder.node(Phase::Forward, &[], &[x]);
    let gradients = [40, 60, 300].map(|values| builder.fixed(Role::ParameterGradient, 4 * values));
    let ways = [4; 3].map(|bytes| builder.tensor(Role::Gradient, bytes));
    builder.node(Phase::Backward, &[], &[ways[0]]);
    for (place, gradient) in gradients.into_iter().enumerate() {
        builder.node(Phase::Backward, &[ways[place], x], &[gradient]);
        if let Some(&next) = ways.get(place + 1) {
            builder.node(Phase::Backward, &[ways[place]], &[next]);
        }
    }
    for gradient in gradients {
        builder.node(Phase::Update, &[gradient], &[]);
    }
    let graph = builder.graph;
    let times: Vec<Nanos> = [10, 0, 4, 5, 6, 7, 3, 1, 1, 1].map(Nanos).to_vec();
    let at = |budget: u64| -> Vec<usize> {
        let setting = Setting { time_budget: Some(Nanos(budget)), ..setting(&graph, 1, &times) };
        let schedule = ElasticTrainer::new(Metric::Values).prepare(&setting).unwrap();
        let left = schedule.graph.unwrap();
        let updates = left.nodes.iter().filter(|node| node.phase == Phase::Update);
        updates.map(|node| gradients.iter().position(|g| node.inputs.contains(g)).unwrap()).collect()
    };
    // All: 10 + 5 × fc, 5 + 7 × conv2, 7 + 4 × conv1 = 38.
    assert_eq!(at(38), [0, 1, 2]);
    // 37: at full depth 15 are left, for conv1 (4) and one of fc (5, 8 a unit) and conv2 (7, 8.6 a unit): conv2; 4 are
    // left.
    assert_eq!(at(37), [1, 2]);
    // 26 is the way down and conv1's weight, 300 values; anything shallower is worth 100 at most.
    assert_eq!(at(26), [2]);
    // 25: not so deep. fc and conv2 would be 10 + 5 + 5 + 7 = 27; only conv2 is 22.
    assert_eq!(at(25), [1]);
    // 21: only fc; 14: nothing.
    assert_eq!(at(21), [0]);
    assert_eq!(at(14), Vec::<usize>::new());
}

#[test]
fn a_time_budget_and_a_memory_budget_hold_together() {
    let graph = eager("resnet18-cifar");
    let times = times(&graph);
    let whole: u64 = graph.saved().iter().map(|&tensor| graph.tensor(tensor).bytes.at(4)).sum();
    let budget = Nanos(total(&graph) * 8 / 10);
    let mut daf = Daf::new(parameters(Metric::Depth));
    let setting =
        Setting { time_budget: Some(budget), activation_budget: Some(Bytes(whole / 10)), ..setting(&graph, 4, &times) };
    let schedule = daf.prepare(&setting).unwrap();
    let left = schedule.graph.unwrap();
    assert!(total(&left) <= budget.0);
    // Bits are chosen for tensors that the shorter backward still reads.
    let stored = stored(&left);
    let held: u64 = left
        .saved()
        .iter()
        .map(|&t| match hold(&mut daf, t) {
            Holding::Keep => left.tensor(t).bytes.at(4),
            holding => stored.bytes(t, bits_of(holding), 4).0,
        })
        .sum();
    assert!(held <= whole / 10 && held > whole / 20, "{held} of {}", whole / 10);
}

#[test]
fn a_tensor_has_the_bits_of_the_kind_that_asks_for_most() {
    // Of three tensors a convolution reads the first, a norm the second and both the third; of a fourth only signs are
    // read.
    let mut builder = GraphBuilder::default();
    let saved: Vec<TensorId> = (0..4).map(|_| builder.tensor(Role::Activation, 4_000)).collect();
    for &tensor in &saved {
        builder.node(Phase::Forward, &[], &[tensor]);
    }
    let reads = [(0, LayerKind::Convolution), (1, LayerKind::Norm), (2, LayerKind::Convolution), (2, LayerKind::Norm)];
    for (place, layer) in reads {
        let gradient = builder.fixed(Role::ParameterGradient, 4);
        builder.backward(&[(saved[place], Need::Values, true)], &[gradient]);
        builder.graph.nodes.last_mut().unwrap().layer = layer;
    }
    let gradient = builder.fixed(Role::ParameterGradient, 4);
    builder.backward(&[(saved[3], Need::Signs, true)], &[gradient]);
    let set = |values: &[(&str, &str)]| {
        let values: Vec<_> = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut daf = registry::build("daf", &values).unwrap();
        daf.prepare(&setting(&builder.graph, 1, &[])).unwrap();
        let view = MemoryView::empty(&builder.graph);
        saved.iter().map(|&tensor| bits_of(daf.hold(tensor, &view).unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(set(&[("convolution_bits", "8")]), [8, 2, 8, 2]);
    assert_eq!(set(&[("convolution_bits", "1"), ("norm_bits", "4"), ("bits", "8")]), [1, 4, 4, 8]);
}
