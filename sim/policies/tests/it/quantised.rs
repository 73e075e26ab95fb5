//! Sizes of quantised tensors, working memory, and importance, on small graphs.

use crate::setting::setting;
use haversack_devices::units::Bytes;
use haversack_policies::ElementBytes;
use haversack_policies::actnn::{ActNn, RULES};
use haversack_policies::fixed8::Fixed8;
use haversack_policies::importance::{Metric, Worth, gradients_in_order, of_gradients, of_saved, skippable};
use haversack_policies::quantised::{Control, Copies, Packing, Quantisation, Quantised, Reach, working_memory};
use haversack_policies::{Holding, MemoryView, Policy, registry};
use haversack_testing::GraphBuilder;
use haversack_workloads::training_graph::{Element, Need};
use haversack_workloads::{Extent, Phase, Role, TrainingGraph};

const SIZES: ElementBytes = ElementBytes { value: 4, mask: 1 };

/// Rules that reach everything and store it once.
const EVERYTHING: Quantisation = Quantisation {
    reach: Reach::Everything,
    copies: Copies::PerTensor,
    redraw_masks: true,
    writes_signs: true,
    control: Control::Fused,
    packing: Packing::Unified,
    rounding: haversack_policies::quantised::Rounding::Nearest,
    arena: None,
};

const SHARED: u32 = 1;
const MASK: u32 = 2;
const PLACES: u32 = 3;
const SHAPE: u32 = 4;
const ROWS: u32 = 5;
const SCORES: u32 = 6;
const FULL: u32 = 7;
const UNSAVED: u32 = 8;

/// A tensor of each need: `SHARED` has 1,000 values a sample, kept by two modules and by a ReLU that needs its signs.
fn every_need() -> TrainingGraph {
    let mut builder = GraphBuilder::default();
    builder.tensor(Role::Input, 40);
    for (bytes, element) in [
        (4_000, Element::Float),
        (100, Element::Whole),
        (8 * 50, Element::Whole),
        (280, Element::Float),
        (40, Element::Float),
        (4 * 300, Element::Float),
        (4 * 64, Element::FullFloat),
        (20, Element::Float),
    ] {
        let tensor = builder.tensor(Role::Activation, bytes);
        builder.graph.tensors[tensor as usize].element = element;
        builder.node(Phase::Forward, &[0], &[tensor]);
    }
    let module = |tensor, need| (tensor, need, true);
    for saved in [
        vec![module(FULL, Need::Values)],
        vec![(SCORES, Need::Values, false)],
        vec![module(SHAPE, Need::Shape), module(PLACES, Need::Indices)],
        vec![module(SHARED, Need::Values), module(ROWS, Need::Statistics)],
        vec![module(SHARED, Need::Values)],
        vec![module(SHARED, Need::Signs)],
        vec![module(MASK, Need::Mask)],
    ] {
        let gradient = builder.tensor(Role::Gradient, 4);
        builder.backward(&saved, &[gradient]);
    }
    builder.graph
}

#[test]
fn bytes_of_values_are_codes_and_a_scale_for_every_256() {
    let graph = every_need();
    let stored = Quantised::new(&graph, &EVERYTHING, SIZES);
    // 3 samples × 1,000 values: ⌈3,000 / 256⌉ = 12 groups of a scale and a minimum of two bytes: 48 B. Signs: 3,000
    // bits. 16 and 32 bits need no scale.
    // Words of four bytes: 93.75 of 32 codes, 187.5 of 16.
    for (bits, codes) in [(1, 376), (2, 752), (4, 1_500), (8, 3_000)] {
        assert_eq!(stored.bytes(SHARED, bits, 3), Bytes(codes + 48 + 375), "{bits} bits");
    }
    assert_eq!(stored.bytes(SHARED, 16, 3), Bytes(6_000 + 375));
    // If whole, signs are read from the values.
    assert_eq!(stored.bytes(SHARED, 32, 3), Bytes(12_000));
    // With 0 bits no values are left, and the signs stay.
    assert_eq!(stored.bytes(SHARED, 0, 3), Bytes(375));
    // 64 values: one group, part filled; 7 samples × 64 = 448 values: two.
    assert_eq!(stored.bytes(FULL, 2, 1), Bytes(16 + 4));
    assert_eq!(stored.bytes(FULL, 2, 7), Bytes(112 + 8));
    assert_eq!((stored.values(SHARED, 3), stored.packed_values(SHARED, 3)), (3_000, 3_000));
}

#[test]
fn every_module_stores_its_own_copy() {
    let graph = every_need();
    let per_module = Quantisation { copies: Copies::PerModule, ..EVERYTHING };
    let stored = Quantised::new(&graph, &per_module, SIZES);
    // Two copies of 188 words + 48 B; the ReLU keeps its own 375 B.
    assert_eq!(stored.bytes(SHARED, 2, 3), Bytes(2 * (752 + 48) + 375));
    assert_eq!((stored.values(SHARED, 3), stored.packed_values(SHARED, 3)), (3_000, 6_000));
    // One keeper, one copy.
    assert_eq!(stored.bytes(FULL, 2, 1), Bytes(16 + 4));
}

#[test]
fn masks_are_a_bit_positions_a_byte_and_shapes_nothing() {
    let graph = every_need();
    let kept = Quantised::new(&graph, &Quantisation { redraw_masks: false, ..EVERYTHING }, SIZES);
    let redrawn = Quantised::new(&graph, &EVERYTHING, SIZES);
    // 3 × 100 elements of a byte: 300 bits = 37.5, 38 B; of four bytes, 75 elements: 75 bits = 10 B.
    assert_eq!(kept.bytes(MASK, 2, 3), Bytes(38));
    assert_eq!(redrawn.bytes(MASK, 2, 3), Bytes::ZERO);
    let wide = ElementBytes { mask: 4, ..SIZES };
    let wide = Quantised::new(&graph, &Quantisation { redraw_masks: false, ..EVERYTHING }, wide);
    assert_eq!(wide.bytes(MASK, 2, 3), Bytes(10));
    for bits in [0, 1, 8, 16] {
        // 3 × 50 positions of eight bytes each become a byte, however many bits a value has.
        assert_eq!(kept.bytes(PLACES, bits, 3), Bytes(150), "{bits}");
        assert_eq!(kept.bytes(SHAPE, bits, 3), Bytes::ZERO, "{bits}");
        assert!(kept.reaches(SHAPE));
    }
    // If whole they have the size in the framework.
    let whole = [MASK, PLACES, SHAPE].map(|tensor| redrawn.bytes(tensor, 32, 3));
    assert_eq!(whole, [Bytes(300), Bytes(1_200), Bytes(840)]);
}

#[test]
fn statistics_stay_whole_and_functional_code_is_out_of_a_modules_reach() {
    let graph = every_need();
    let everything = Quantised::new(&graph, &EVERYTHING, SIZES);
    let modules = Quantised::new(&graph, &RULES, SIZES);
    for (tensor, by_everything, by_modules) in [
        (SHARED, true, true),
        (MASK, true, true),
        (PLACES, true, true),
        (SHAPE, true, true),
        (ROWS, false, false),
        (SCORES, true, false),
        (FULL, true, true),
        (UNSAVED, false, false),
        (0, false, false),
        (1_000, false, false),
    ] {
        assert_eq!(everything.reaches(tensor), by_everything, "{tensor}");
        assert_eq!(modules.reaches(tensor), by_modules, "{tensor}");
        if !by_modules {
            assert_eq!((modules.bytes(tensor, 2, 3), modules.values(tensor, 3)), (Bytes::ZERO, 0), "{tensor}");
        }
    }
    // 300 values of two bits: 18.75, 19 words of four bytes, two groups.
    assert_eq!(everything.bytes(SCORES, 2, 1), Bytes(76 + 8));
}

#[test]
fn values_in_half_precision_are_as_many() {
    let mut graph = every_need();
    for tensor in &mut graph.tensors {
        if tensor.element == Element::Float {
            tensor.bytes = tensor.bytes.times(1, 2);
        }
    }
    let stored = Quantised::new(&graph, &EVERYTHING, ElementBytes { value: 2, ..SIZES });
    // The same 1,000 values and signs a sample; tensors that stay in fp32 still have four bytes.
    assert_eq!(stored.bytes(SHARED, 2, 3), Bytes(752 + 48 + 375));
    assert_eq!(stored.bytes(FULL, 2, 1), Bytes(16 + 4));
}

#[test]
fn a_statistic_among_the_needs_keeps_the_whole_tensor() {
    for order in [[Need::Statistics, Need::Values], [Need::Values, Need::Statistics]] {
        let mut builder = GraphBuilder::default();
        let x = builder.tensor(Role::Activation, 400);
        builder.node(Phase::Forward, &[], &[x]);
        for need in order {
            let gradient = builder.tensor(Role::Gradient, 4);
            builder.backward(&[(x, need, true)], &[gradient]);
        }
        assert!(!Quantised::new(&builder.graph, &EVERYTHING, SIZES).reaches(x), "{order:?}");
    }
}

#[test]
fn working_memory_counts_what_is_whole_at_once() {
    let mut builder = GraphBuilder::default();
    // In blocks of 512 bytes, in which allocators count; the last byte of each is theirs.
    let blocks = |count: u64| count * 512 - 1;
    let input = builder.tensor(Role::Input, blocks(10));
    let weight = builder.fixed(Role::Parameter { trainable: true }, blocks(100));
    let [a, b, c] = [40, 20, 8].map(|count| builder.tensor(Role::Activation, blocks(count)));
    let d = builder.tensor(Role::Gradient, blocks(8));
    let of_weight = builder.fixed(Role::ParameterGradient, blocks(4));
    builder.node(Phase::Forward, &[input, weight], &[a]);
    builder.node(Phase::Forward, &[a], &[b]);
    builder.node(Phase::Forward, &[b], &[c]);
    builder.backward(&[(c, Need::Values, true)], &[d]);
    builder.node(Phase::Backward, &[d, a], &[of_weight]);
    builder.node(Phase::Update, &[weight, of_weight], &[weight]);
    let working = |graph: &TrainingGraph, samples| working_memory(graph, samples).0 / 512;
    // In addition to the weight's 100, for one sample: the first node uses the samples and a, 50; the second a and b,
    // 60; the third b and c, 28; then c and d, 16; d, a and the weight's gradient, 52. The samples stay in memory to
    // the end of their part, regardless of their readers: 10 more for every node but the first.
    assert_eq!(working(&builder.graph, 1), 100 + 60 + 10);
    // For three, all but the weight and its gradient three times.
    assert_eq!(working(&builder.graph, 3), 100 + 3 * (60 + 10));
    // With a large weight the last backward node is the peak: d and a, 48 a sample, plus 4,000 of gradient.
    builder.graph.tensors[of_weight as usize].bytes = Extent::fixed(blocks(4_000));
    assert_eq!(working(&builder.graph, 1), 100 + 8 + 40 + 4_000 + 10);
}

/// conv1 – ReLU (a) – conv2 (b) – normalisation – fc (c), with the gradients that backward makes of them.
struct Three {
    graph: TrainingGraph,
    saved: [u32; 3],
    gradients: [u32; 4],
}

fn three_layers() -> Three {
    let mut builder = GraphBuilder::default();
    let input = builder.tensor(Role::Input, 4);
    let saved = [4_000, 4_000, 400].map(|bytes| builder.tensor(Role::Activation, bytes));
    let [a, b, c] = saved;
    let gradients = [40, 8, 20, 10].map(|values| builder.fixed(Role::ParameterGradient, 4 * values));
    let [of_fc, of_norm, of_conv2, of_conv1] = gradients;
    let [g3, g2, g1, g0, g] = [4; 5].map(|bytes| builder.tensor(Role::Gradient, bytes));
    builder.node(Phase::Forward, &[input], &[a]);
    builder.node(Phase::Forward, &[a], &[b]);
    builder.node(Phase::Forward, &[b], &[c]);
    builder.node(Phase::Backward, &[], &[g3]);
    builder.backward(&[(c, Need::Values, true)], &[of_fc]);
    builder.node(Phase::Backward, &[g3], &[g2]);
    builder.backward(&[(b, Need::Values, true)], &[g1, of_norm]);
    builder.backward(&[(a, Need::Values, true)], &[of_conv2]);
    builder.node(Phase::Backward, &[g1], &[g0]);
    builder.backward(&[(a, Need::Signs, true)], &[g]);
    builder.node(Phase::Backward, &[g, input], &[of_conv1]);
    Three { graph: builder.graph, saved, gradients }
}

#[test]
fn a_gradient_is_worth_its_values_and_its_depth() {
    let Three { graph, gradients, .. } = three_layers();
    let written: Vec<u32> = gradients_in_order(&graph).into_iter().map(|(_, gradient)| gradient).collect();
    assert_eq!(written, gradients);
    let worth = |metric| gradients.map(|gradient| of_gradients(&graph, Worth::Prior(metric))[gradient as usize]);
    assert_eq!(worth(Metric::Values), [40.0, 8.0, 20.0, 10.0]);
    // Four layers: 40 × 4/4, 8 × 3/4, 20 × 2/4, 10 × 1/4.
    assert_eq!(worth(Metric::Depth), [40.0, 6.0, 10.0, 2.5]);
    assert_eq!(worth(Metric::Uniform), [1.0; 4]);
    // Only gradients of weights have importance.
    let sum: f64 = of_gradients(&graph, Worth::Prior(Metric::Values)).iter().sum();
    assert!((sum - 78.0).abs() < 1e-9);
}

#[test]
fn a_tensor_is_worth_the_gradients_that_its_values_enter() {
    let Three { graph, saved, .. } = three_layers();
    let worth = |metric| saved.map(|tensor| of_saved(&graph, Worth::Prior(metric))[tensor as usize]);
    // c enters only fc's weight; b, through the normalisation, its weights and all before: 8 + 20 + 10; of a only
    // conv2's weight reads values, since the signs for the ReLU are kept exactly.
    assert_eq!(worth(Metric::Values), [20.0, 38.0, 40.0]);
    assert_eq!(worth(Metric::Depth), [10.0, 6.0 + 10.0 + 2.5, 40.0]);
    assert_eq!(worth(Metric::Uniform), [1.0; 3]);
}

#[test]
fn a_tensor_that_an_input_gradient_reads_cannot_be_given_up() {
    let Three { graph, saved, .. } = three_layers();
    // b's normalisation passes its gradient on; a's ReLU needs signs, which stay.
    assert_eq!(saved.map(|tensor| skippable(&graph)[tensor as usize]), [true, false, true]);
    assert_eq!(skippable(&graph).iter().filter(|&&can| can).count(), 2);
}

#[test]
fn actnn_quantises_what_modules_keep() {
    let graph = every_need();
    let mut actnn = ActNn::new(2);
    let schedule = actnn.prepare(&setting(&graph, 3, &[])).unwrap();
    assert_eq!((schedule.quantisation, schedule.micro_batch), (Some(RULES), 3));
    assert!(schedule.graph.is_none() && schedule.precision.is_none());
    for (tensor, holding) in [
        (SHARED, Holding::Quantise(2)),
        (MASK, Holding::Quantise(2)),
        (PLACES, Holding::Quantise(2)),
        (ROWS, Holding::Keep),
        (SCORES, Holding::Keep),
    ] {
        assert_eq!(actnn.hold(tensor, &MemoryView::empty(&graph)).unwrap(), holding, "{tensor}");
    }
    let bits = |value: &str| registry::build("actnn", &[("bits".to_owned(), value.to_owned())]);
    assert!(["1", "2", "4", "8"].iter().all(|value| bits(value).is_ok()));
    assert!(["0", "3", "16", "32", "two", ""].iter().all(|value| bits(value).is_err()));
}

#[test]
fn fixed8_takes_a_quarter_of_what_modules_hold() {
    let mut graph = every_need();
    let weight = graph.tensors.len() as u32;
    let mut builder = GraphBuilder { graph };
    builder.fixed(Role::Parameter { trainable: true }, 400);
    builder.node(Phase::Update, &[weight], &[weight]);
    graph = builder.graph;
    graph.nodes[0].inputs.push(weight);
    for node in &mut graph.nodes {
        node.work.dram = Extent::fixed(7);
    }
    let schedule = Fixed8.prepare(&setting(&graph, 3, &[])).unwrap();
    // Kernels compute in the precision of the run.
    assert_eq!((schedule.precision, schedule.quantisation), (None, None));
    let eight = schedule.graph.unwrap();
    let bytes = |tensor: u32| eight.tensor(tensor).bytes.at(1);
    // A quarter of four bytes: 1,000 values, 70 of which only the shape is needed, 64 in full precision, 5 that are not
    // saved, 100 weights.
    for (tensor, expected) in [(SHARED, 1_000), (SHAPE, 70), (FULL, 64), (UNSAVED, 5), (weight, 100)] {
        assert_eq!(bytes(tensor), expected, "{tensor}");
    }
    // Masks, positions, statistics, tensors saved by functional code, samples and gradients stay as they are.
    let gradient = graph.nodes.iter().find(|node| node.phase == Phase::Backward).unwrap().outputs[0];
    for tensor in [MASK, PLACES, ROWS, SCORES, 0, gradient] {
        assert_eq!(bytes(tensor), graph.tensor(tensor).bytes.at(1), "{tensor}");
    }
    // The first node reads 40 B of samples and 100 B of weights and writes 1,000 B; updates move the same bytes as
    // before.
    assert_eq!(eight.nodes[0].work.dram.at(1), 40 + 100 + 1_000);
    assert_eq!(eight.nodes[eight.nodes.len() - 1].work.dram, Extent::fixed(7));
    assert_eq!(eight.nodes.len(), graph.nodes.len());
}
