//! Losses in a run's gradients, and mechanisms of several papers in one run.

use Phase::{Backward, Forward};
use haversack_devices::units::{Bytes, Nanos};
use haversack_policies::quantised::{Control, Copies, Packing, Quantisation, Reach, Rounding};
use haversack_policies::{Holding, MemoryView, Policy, PolicyError, Relief, Schedule, Setting, Want, registry};
use haversack_training::{Budgets, FidelityClass, Job, Record, SpanKind, simulate, with_setting};
use haversack_workloads::autograd::Optimiser;
use haversack_workloads::lowering::{Gradients, Variant, lower};
use haversack_workloads::training_graph::{Need, Saved};
use haversack_workloads::{Phase, Role, TensorId, TrainingGraph, models};

use crate::common::{job, machine, on};
use crate::support::{BATCH, MB, check_sums, graph, near, node, phone_cpu, tensor};

fn built(id: &str, set: &[(&str, &str)]) -> Box<dyn Policy> {
    let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    registry::build(id, &set).unwrap()
}

fn lowered(model: &str, gradients: Gradients) -> TrainingGraph {
    lower(&models::build(model, None).unwrap(), Variant::Reduced, Optimiser::Sgd, gradients).unwrap()
}

#[test]
fn statistics_of_the_whole_mini_batch_take_a_pass_of_sages_graph() {
    let graph = lowered("resnet18-cifar", Gradients::Kept);
    let run = |statistics| {
        simulate(&machine(), &job(&graph, 32), built("sga", &[("batch_norm", statistics)]).as_mut()).unwrap()
    };
    let (part, whole) = (run("part"), run("whole"));
    let classes = [&part, &whole].map(|record| record.fidelity.class());
    assert_eq!(classes, [FidelityClass::BatchStatistics; 2]);
    assert!(whole.fidelity.losses() < part.fidelity.losses());
    // Forward once more, up to the last normalisation: all but a few of its nodes.
    let longer = whole.iteration - part.iteration;
    let ratio = longer.seconds() / part.forward.seconds();
    assert!(ratio > 0.9 && ratio < 1.0, "{ratio}");
    // In one part, and without normalisations, every gradient is the mini-batch's.
    let class = |graph: &TrainingGraph, id| {
        simulate(&machine(), &Job::plain(graph, 32), built(id, &[]).as_mut()).unwrap().fidelity.class()
    };
    assert_eq!(class(&graph, "original"), FidelityClass::Exact);
    assert_eq!(class(&lowered("lenet5", Gradients::Kept), "sga"), FidelityClass::Exact);
}

#[test]
fn streamed_gradients_are_applied_once_a_mini_batch() {
    let graph = lowered("lenet5", Gradients::Streamed);
    let ran = |id: &str| {
        let record = simulate(&machine(), &job(&graph, 32), built(id, &[]).as_mut()).unwrap();
        let spans = &record.timeline.as_ref().unwrap().spans;
        let is_update = |id: u32| {
            let outputs = &graph.nodes[id as usize].outputs;
            outputs.iter().any(|&id| matches!(graph.tensor(id).role, Role::Parameter { .. }))
        };
        let updates = spans.iter().filter(|span| span.kind == SpanKind::Scheduled && is_update(span.node)).count();
        (record, updates)
    };
    let weights = graph.tensors.iter().filter(|tensor| tensor.role == Role::ParameterGradient).count();
    let ((whole, once), (halves, twice)) = (ran("original"), ran("sga"));
    assert_eq!((halves.micro_batches.len(), once, twice), (2, weights, weights));
    // With several parts all gradients stay in memory from the first part on; with one part, one at a time.
    let gradients = graph.bytes_of(|role| role == Role::ParameterGradient).fixed;
    let saved_half = whole.peak_growth.0 / 2;
    assert!(halves.peak_growth.0 >= saved_half + gradients / 2, "{} {gradients}", halves.peak_growth);
}

/// Stores tensors as scripted, quantised by its rules.
struct Told(Quantisation, Vec<(TensorId, Holding)>);

impl Policy for Told {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        Ok(Schedule { quantisation: Some(self.0), ..Schedule::plain(setting.batch) })
    }

    fn hold(&mut self, tensor: TensorId, _: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        let told = self.1.iter().find(|(other, _)| *other == tensor);
        Ok(told.map_or(Holding::Keep, |(_, holding)| *holding))
    }
}

const RULES: Quantisation = Quantisation {
    reach: Reach::Everything,
    copies: Copies::PerTensor,
    redraw_masks: true,
    writes_signs: true,
    control: Control::Fused,
    packing: Packing::Gpu,
    rounding: Rounding::Nearest,
    arena: None,
};

/// The same, with scripted reliefs for the first shortage.
struct Relieving(Told, Vec<Relief>);

impl Policy for Relieving {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        self.0.prepare(setting)
    }

    fn relieve(&mut self, _: Want, _: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        Ok(std::mem::take(&mut self.1))
    }
}

/// `make` makes x from the samples, `relu` y from x, `next` z from y; backward reads z, and the signs of y.
fn three() -> TrainingGraph {
    let mut gated = node("gated", Backward, &[4, 2], &[5], 1_000);
    gated.saved.push(Saved { tensor: 2, need: Need::Signs, by_module: true });
    graph(
        vec![
            tensor("input", 8, Role::Input),
            tensor("x", 8 * MB, Role::Activation),
            tensor("y", 8 * MB, Role::Activation),
            tensor("z", 8 * MB, Role::Activation),
            tensor("g", 800, Role::Gradient),
            tensor("h", 800, Role::Gradient),
        ],
        vec![
            node("make", Forward, &[0], &[1], 1_000),
            node("relu", Forward, &[1], &[2], 1_000),
            node("next", Forward, &[2], &[3], 1_000),
            node("first", Backward, &[3], &[4], 1_000),
            gated,
        ],
    )
}

fn told(rules: Quantisation, holds: &[(TensorId, Holding)]) -> Record {
    let record = simulate(&phone_cpu(), &job(&three(), BATCH), &mut Told(rules, holds.to_vec())).unwrap();
    check_sums(&record, "");
    record
}

#[test]
fn signs_do_not_serve_an_operator_that_runs_again() {
    // z is made again from y, of which only signs are stored: so y is made again from x, and x from the samples.
    let record = told(RULES, &[(2, Holding::Quantise(4)), (3, Holding::Rematerialise)]);
    assert_eq!(record.recomputed, 3);
    near(record.breakdown.recompute, 3 * 1_020_000, "three operators and their launches");
    // If y is whole, z is made from it; signs are exact for their readers, and the four bits are not read.
    let record = told(RULES, &[(3, Holding::Rematerialise)]);
    assert_eq!((record.recomputed, record.fidelity.class()), (1, FidelityClass::Exact));
    let signs = told(RULES, &[(2, Holding::Quantise(4))]).fidelity;
    assert_eq!((signs.class(), signs.least_bits), (FidelityClass::Exact, 32));
    let packed = told(RULES, &[(3, Holding::Quantise(4))]).fidelity;
    assert_eq!((packed.class(), packed.least_bits), (FidelityClass::Stored, 4));
    // 1% of the range, and nothing of it on flash, which is written once.
    let compressed = told(RULES, &[(3, Holding::Compress)]);
    assert_eq!((compressed.fidelity.least_bits, compressed.flash_written), (5, Bytes::ZERO));
    let swapped = told(RULES, &[(3, Holding::Swap)]);
    assert_eq!((swapped.fidelity.class(), swapped.flash_written), (FidelityClass::Exact, Bytes(8 * MB)));
}

#[test]
fn a_relief_quantises_what_is_whole_and_a_profile_has_its_price() {
    // `make` makes x, which backward reads, `second` y from it, `third` z from y.
    let map = |name| tensor(name, 8 * MB, Role::Activation);
    let graph = graph(
        vec![tensor("input", 8, Role::Input), map("x"), map("y"), map("z"), tensor("g", 800, Role::Gradient)],
        vec![
            node("make", Forward, &[0], &[1], 1_000),
            node("second", Forward, &[1], &[2], 1_000),
            node("third", Forward, &[2], &[3], 1_000),
            node("first", Backward, &[1], &[4], 1_000),
        ],
    );
    let mut told = Told(RULES, Vec::new());
    // z does not fit next to x and y, so x gives way: 8 MB become 1 MB of codes, and a scale and minimum for 256
    // values.
    let budgets = Budgets { memory: Some(Bytes(20 * MB)), ..Budgets::default() };
    let run = |told: &mut Told| simulate(&phone_cpu(), &Job { budgets: budgets.clone(), ..job(&graph, BATCH) }, told);
    assert!(run(&mut told).unwrap_err().is_infeasible());
    let mut quantising = Relieving(told, vec![Relief::Quantise(1, 4)]);
    let record = simulate(&phone_cpu(), &Job { budgets, ..job(&graph, BATCH) }, &mut quantising).unwrap();
    check_sums(&record, "");
    assert_eq!((record.fidelity.least_bits, record.peak_memory <= Bytes(20 * MB)), (4, true));
    let price = with_setting(&phone_cpu(), &job(&graph, BATCH), |setting| {
        let profile = setting.restore.unwrap();
        assert_eq!(profile.times_at(BATCH), setting.times());
        assert!(profile.times_at(BATCH / 2)[0] < setting.times()[0]);
        profile.packing(2 * MB, 4)
    });
    near(price.out, 20_000 + 90_000, "8 MB read and 1 MB written at 100 GB/s, and a launch");
    near(record.breakdown.packing, 2 * 110_000, "there and back");
}

#[test]
fn packing_signs_has_a_price_unless_operators_write_them() {
    let holds = [(2, Holding::Quantise(4))];
    let (own, framework) = (told(RULES, &holds), told(Quantisation { writes_signs: false, ..RULES }, &holds));
    assert_eq!(own.breakdown.packing, Nanos::ZERO);
    // 8 MB are read, and a bit of each four bytes written, at 100 GB/s of DRAM; a launch takes 20 µs.
    near(framework.breakdown.packing, 20_000 + 82_500, "packing");
    assert_eq!(own.peak_saved, framework.peak_saved);
}

#[test]
fn eight_bits_and_given_up_gradients_name_their_classes() {
    let graph = haversack_testing::eager("resnet18-cifar");
    let machine = on("jetson-agx-xavier", "pytorch-cuda");
    let of = |id: &str, set: &[(&str, &str)]| {
        let record = simulate(&machine, &Job::plain(&graph, 8), built(id, set).as_mut()).unwrap();
        (record.fidelity.class(), record.fidelity.least_bits, record.fidelity.gradients_given_up > 0)
    };
    assert_eq!(of("fixed8", &[]), (FidelityClass::Integer, 8, false));
    assert_eq!(of("actnn", &[]), (FidelityClass::Stored, 2, false));
    assert_eq!(of("daf", &[("bits", "32"), ("trained_share", "50")]), (FidelityClass::WeightsSkipped, 32, true));
}
