//! `gact`: bits of every tensor, and their mean.

use haversack_devices::units::Bytes;
use haversack_policies::ElementBytes;
use haversack_policies::gact::{Gact, Level, Parameters, RULES, adapted};
use haversack_policies::importance::Metric;
use haversack_policies::quantised::Quantised;
use haversack_policies::{Holding, IterationPlan, MemoryView, Policy, registry};
use haversack_workloads::training_graph::Need;
use haversack_workloads::{Phase, Role, TensorId, TrainingGraph};
use proptest::prelude::*;

use crate::chains::{self, Pressure};
use crate::setting::setting;

/// The default parameters.
const DEFAULTS: Parameters = Parameters { level: Level::Fixed, bits: 4, metric: Metric::Depth };
use haversack_testing::GraphBuilder;

/// Saved tensors with a number of values, each read by the gradient of a weight with a number of values.
fn weights(of: &[(u64, u64)]) -> (TrainingGraph, Vec<TensorId>) {
    let mut builder = GraphBuilder::default();
    let saved: Vec<TensorId> = of.iter().map(|&(values, _)| builder.tensor(Role::Activation, 4 * values)).collect();
    for &tensor in &saved {
        builder.node(Phase::Forward, &[], &[tensor]);
    }
    for (&(_, weights), &tensor) in of.iter().zip(&saved) {
        let gradient = builder.fixed(Role::ParameterGradient, 4 * weights);
        builder.backward(&[(tensor, Need::Values, false)], &[gradient]);
    }
    (builder.graph, saved)
}

fn prepared(parameters: Parameters, graph: &TrainingGraph) -> Gact {
    let mut policy = Gact::new(parameters);
    assert_eq!(policy.prepare(&setting(graph, 1, &[])).unwrap().quantisation, Some(RULES));
    policy
}

/// The decision of `policy` how to hold a tensor, which depends on nothing else.
fn hold(policy: &mut Gact, tensor: TensorId) -> Holding {
    let nothing = TrainingGraph { name: String::new(), tensors: Vec::new(), nodes: Vec::new() };
    policy.hold(tensor, &MemoryView::empty(&nothing)).unwrap()
}

fn bits(policy: &mut Gact, saved: &[TensorId]) -> Vec<Holding> {
    saved.iter().map(|&tensor| hold(policy, tensor)).collect()
}

use Holding::Quantise;

#[test]
fn level_one_gives_four_bits_to_all_that_is_saved() {
    // Tensors saved by functional code are reached too.
    let (graph, saved) = weights(&[(1000, 1), (10, 9)]);
    let mut policy = prepared(DEFAULTS, &graph);
    assert_eq!(bits(&mut policy, &saved), [Quantise(4), Quantise(4)]);
    // A gradient is not saved.
    assert_eq!(hold(&mut policy, saved[1] + 1), Holding::Keep);
    let mut eight = prepared(Parameters { bits: 8, ..DEFAULTS }, &graph);
    assert_eq!(bits(&mut eight, &saved), [Quantise(8), Quantise(8)]);
    // 1000 values: 500 B of codes and 4 groups of a scale and a minimum.
    let stored = Quantised::new(&graph, &RULES, ElementBytes { value: 4, mask: 1 });
    assert!(stored.bytes(saved[0], 4, 1) > Bytes(500) && stored.bytes(saved[0], 4, 1) < Bytes(540));
}

#[test]
fn level_two_moves_bits_to_where_they_matter() {
    // 100 values each, mean 4: 1600 bits to 800 in all, and steps of 8 → 4 (400) or 4 → 2 (200) each. From 8 to 4 adds
    // s (1 / 225 − 1 / 65025) / 4 = s 0.001107 a bit, from 4 to 2 s (1 / 9 − 1 / 225) / 2 = s 0.0533. With a
    // sensitivity of 1000 and 1: the second to 4 (400 saved) and to 2 (200), 0.0533 against 1.107, and then the first
    // has to give 4: (4, 2), a mean of 3.
    assert_eq!(adapted(&[1000.0, 1.0], &[100, 100], 4), [4, 2]);
    // Of 100 and 300 values, 3200 bits to 1600: the second to 4 (1200), to 2 (600): 1400, a mean of 3.5, first at 8.
    assert_eq!(adapted(&[1000.0, 1.0], &[100, 300], 4), [8, 2]);
    // With equal sensitivities, both go to 4 before either goes further.
    assert_eq!(adapted(&[1.0, 1.0], &[100, 100], 4), [4, 4]);
    // After both are at 4 the budget is met. Before that the first's 4 → 2, 0.0533, goes with the second's 8 → 4: of a
    // sensitivity of 30, 0.0332, which goes first, or of 60, 0.0664, which goes after it.
    assert_eq!(adapted(&[1.0, 30.0], &[100, 100], 4), [4, 4]);
    assert_eq!(adapted(&[1.0, 60.0], &[100, 100], 4), [2, 4]);
    // A tensor without values is ignored, and 8 and 2 are the limits.
    assert_eq!(adapted(&[0.0, 1.0], &[0, 100], 4), [8, 4]);
    assert_eq!(adapted(&[3.0, 1.0], &[100, 100], 8), [8, 8]);
    assert_eq!(adapted(&[3.0, 1.0], &[100, 100], 2), [2, 2]);
}

#[test]
fn sensitivity_is_the_prior_until_it_is_measured() {
    let parameters = Parameters { level: Level::Adaptive, metric: Metric::Values, ..DEFAULTS };
    let (graph, saved) = weights(&[(100, 1000), (300, 1)]);
    let mut policy = prepared(parameters, &graph);
    assert_eq!(bits(&mut policy, &saved), [Quantise(8), Quantise(2)]);
    // Without a measurement nothing changes; then the second has become the sensitive one: the first gives 600 bits
    // down to 2, 1000 are left to give, and the second goes to 4.
    policy.begin_iteration(&mut IterationPlan::new(1)).unwrap();
    assert_eq!(bits(&mut policy, &saved), [Quantise(8), Quantise(2)]);
    let mut importance = vec![0.0; graph.tensors.len()];
    (importance[saved[0] as usize], importance[saved[1] as usize]) = (1.0, 1e6);
    let mut iteration = IterationPlan::new(1);
    iteration.importance = importance;
    policy.begin_iteration(&mut iteration).unwrap();
    assert_eq!(bits(&mut policy, &saved), [Quantise(2), Quantise(4)]);
}

#[test]
fn the_registry_knows_its_levels() {
    let set = |key: &str, value: &str| registry::build("gact", &[(key.to_owned(), value.to_owned())]).map(|_| ());
    assert_eq!((set("level", "L1"), set("level", "L2"), set("bits", "2")), (Ok(()), Ok(()), Ok(())));
    assert!(set("bits", "3").unwrap_err().to_string().contains("expected 2, 4 or 8"));
    assert!(set("level", "L3").unwrap_err().to_string().contains("L1 or L2"));
}

proptest! {
    #![proptest_config(super::cases(256))]

    #[test]
    fn the_mean_is_met_and_one_step_before_it_was_not(
        tensors in prop::collection::vec((0.001..1000.0_f64, 1..1000_u64), 1..12),
        mean in prop::sample::select(vec![2_u8, 4, 8]),
    ) {
        let (sensitivity, values): (Vec<f64>, Vec<u64>) = tensors.into_iter().unzip();
        let bits = adapted(&sensitivity, &values, mean);
        let sum = |bits: &[u8]| bits.iter().zip(&values).map(|(&bits, &values)| u64::from(bits) * values).sum::<u64>();
        let target = u64::from(mean) * values.iter().sum::<u64>();
        prop_assert!(bits.iter().all(|bits| [2, 4, 8].contains(bits)));
        prop_assert!(sum(&bits) <= target);
        // The last step was needed: one of them, undone, exceeds the mean.
        let undone = |place: usize| {
            let mut before = bits.clone();
            before[place] *= 2;
            (before[place] <= 8).then(|| sum(&before))
        };
        let needed = (0..bits.len()).filter_map(undone).any(|before| before > target);
        prop_assert!(needed || sum(&bits) == sum(&vec![8; bits.len()]));
        // Of two tensors of equal size the more sensitive never has fewer bits.
        for (a, b) in (0..bits.len()).flat_map(|a| (0..a).map(move |b| (a, b))).filter(|&(a, b)| values[a] == values[b]) {
            let (less, more) = if sensitivity[a] < sensitivity[b] { (a, b) } else { (b, a) };
            prop_assert!(bits[less] <= bits[more]);
        }
    }
}

#[test]
fn adapting_takes_three_passes_a_tensor_every_thousand_iterations() {
    let (graph, _) = weights(&[(64, 8), (32, 8)]);
    let rehearsals = |level| {
        let mut policy = prepared(Parameters { level, ..DEFAULTS }, &graph);
        let mut begin = || {
            let mut plan = IterationPlan::new(1);
            policy.begin_iteration(&mut plan).unwrap();
            plan.rehearsals
        };
        (0..=1000).map(|_| begin()).enumerate().filter(|(_, passes)| *passes > 0).collect::<Vec<_>>()
    };
    assert_eq!(rehearsals(Level::Fixed), []);
    assert_eq!(rehearsals(Level::Adaptive), [(0, 6), (1000, 6)]);
    // The first iteration is longer by a number of forward and backward passes; all passes have the same time.
    let (machine, graph) = (chains::phone(), chains::network(40, 4));
    let of = |level| {
        let mut policy = Gact::new(Parameters { level, ..DEFAULTS });
        let record = chains::run(&machine, &graph, Pressure::Planned(100), 2, &mut policy).unwrap();
        let mut plan = IterationPlan::new(1);
        let mut fresh = Gact::new(Parameters { level, ..DEFAULTS });
        fresh.prepare(&setting(&graph, 1, &[])).unwrap();
        fresh.begin_iteration(&mut plan).unwrap();
        (record, plan.rehearsals)
    };
    let (plain, _) = of(Level::Fixed);
    assert_eq!(plain.iterations[0], plain.iterations[1]);
    let (adapted, passes) = of(Level::Adaptive);
    assert!(passes >= 30, "{passes}");
    let pass = adapted.forward + adapted.backward;
    assert_eq!(adapted.iterations[0], adapted.iterations[1] + pass * passes);
}
