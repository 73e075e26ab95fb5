//! The statistics of dynamic quantisation on GPUs: their cost relative to an operation, by DAF's method, the original
//! one and CUB, and the performance of block-level atomics.

use std::collections::BTreeSet;

use haversack_devices::{Device, Frequency, KernelTime, Precision, ProgramCounts, Stack};
use haversack_gpu::baseline::{cub, framework, map_counts};
use haversack_gpu::profile::{CONTROL, Profiler, Setting, block_against_passes, over_units};
use haversack_gpu::{Plan, Strategy};
use haversack_kernels::reduce::Statistic;
use haversack_training::{Machine, Trains};
use haversack_workloads::autograd::differentiate;
use haversack_workloads::{EagerRules, Need, Network, Phase, TrainingGraph, ValueId, Window};

use super::setting::{BOARD, NETWORKS, scenario};
use crate::artefacts::prelude::*;

/// An operation of section 4.3.1, by the tensor that it makes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// Its name in the paper.
    pub(super) name: &'static str,
    /// The name with the tensor's shape.
    pub(super) title: &'static str,
    /// Elements of the tensor.
    pub(super) elements: u64,
}

/// Both operations, with the shapes that the reading `reduction-tensors` declares.
pub(super) const OPERATIONS: [Operation; 2] = [
    Operation { name: "conv2d", title: "conv2d [1, 256, 14, 14]", elements: 256 * 14 * 14 },
    Operation { name: "attention", title: "attention [1, 512, 768]", elements: 512 * 768 },
];

/// A profiler of the device's GPU under the device's default stack.
///
/// # Errors
/// A device without a GPU; a stack that the artefact does not name, or that has no kernels for a GPU.
pub(super) fn profiler(context: &Context<'_>, device: &Device) -> Result<Profiler> {
    let stack = stack(context, device)?.gpu().cloned();
    let Some(profiler) = Profiler::of(device) else { bail!("{} has no modelled GPU", device.id) };
    ensure!(stack.is_some(), "the stack of {} has no kernels for a GPU", device.id);
    Ok(Profiler { stack, ..profiler })
}

/// The device's default stack.
///
/// # Errors
/// A stack that the artefact does not name.
pub(super) fn stack(context: &Context<'_>, device: &Device) -> Result<Stack> {
    context.stack(&device.constants.default_stack)
}

/// Microseconds, unrounded: an epilogue takes less than one.
pub(super) fn micros(time: &KernelTime) -> f64 {
    (time.overhead + time.launch + time.busy).0 * 1e6
}

/// The two operations of [`OPERATIONS`], each a network of one product and a loss.
fn networks() -> Result<[Network; 2]> {
    let mut convolution = Network::new("conv2d");
    let image = convolution.input(&[256, 14, 14]);
    let made = convolution.convolution("conv2d", image, 256, Window::square(3, 1, 1), 1, false)?;
    with_loss(&mut convolution, made)?;
    let mut attention = Network::new("attention");
    let tokens = attention.input(&[512, 768]);
    let made = attention.linear("attention", tokens, 768, true)?;
    with_loss(&mut attention, made)?;
    Ok([convolution, attention])
}

/// A network needs a loss to be differentiated.
fn with_loss(network: &mut Network, made: ValueId) -> Result<()> {
    let scores = network.flatten("flatten", made)?;
    let target = network.target(1);
    network.cross_entropy("loss", scores, target)?;
    Ok(())
}

/// Microseconds of the product in forward, for one sample.
fn forward(machine: &Machine, network: &Network) -> Result<f64> {
    let graph = differentiate(network, EagerRules { dropout_mask_bytes: 1, ..EagerRules::default() })?;
    let product = graph.nodes.iter().position(|node| node.phase == Phase::Forward && node.work.kind.is_dense_product());
    let Some(id) = product else { bail!("{} has no product", network.name) };
    Ok(machine.cost(&graph, id, 1, Precision::Fp32).alone().seconds() * 1e6)
}

pub(super) fn figure2a(context: &Context<'_>) -> Result<Outcome> {
    let device = context.device(BOARD)?;
    let profiler = profiler(context, &device)?;
    let machine = Machine::new(device.clone(), stack(context, &device)?, Trains::Either, None, Frequency::Highest)?;
    let mut records = Records::of("operation,title,part,time_us,over_operation,control_over_operation");
    for (operation, network) in OPERATIONS.iter().zip(networks()?) {
        let alone = forward(&machine, &network)?;
        let mut parts = vec![("the operation", alone)];
        for statistic in CONTROL {
            let counts = framework(&[statistic], operation.elements, &profiler.machine)?;
            parts.push((statistic.name(), micros(&profiler.time_of(&counts))));
        }
        let kernels = vec![map_counts(operation.elements, &profiler.machine)?];
        parts.push(("quantising", micros(&profiler.time_of(&ProgramCounts { kernels, memsets: 0, operators: 1 }))));
        let control: f64 = parts.iter().skip(1).map(|(_, time)| time).sum();
        for (part, time) in parts {
            records.row((operation.name, operation.title, part, [time, time / alone, control / alone]))?;
        }
    }
    show(context, records, Outcome::default())
}

const SPEED_UP: &str = "daf/figure12/conv2d-[1,256,14,14];-attention-[1,512,768]/daf/reduction-speedup";
/// The platforms, and whether CUB runs on them.
const PLATFORMS: [(&str, bool); 4] =
    [("jetson-agx-orin", true), ("jetson-agx-xavier", true), ("iqoo-neo3", false), ("redmagic-7", false)];
/// The GPUs whose number of units is varied: the two of section 3.2.2.
const SCALED: [&str; 2] = ["jetson-agx-xavier", "rtx-3090"];
/// Units, from those of the Xavier to those of the RTX 3090.
const UNITS: std::ops::RangeInclusive<u32> = 8..=82;
/// Threads of a block.
const BLOCKS: [u32; 2] = [128, 256];

/// The times of one operation on one platform, in microseconds.
struct Measured {
    fused: f64,
    framework: f64,
    cub: Option<f64>,
    /// The percentage of launches and framework overhead in the baselines' times.
    overheads: Vec<f64>,
}

impl Measured {
    fn over_framework(&self) -> f64 {
        self.framework / self.fused
    }

    fn over_cub(&self) -> Option<f64> {
        Some(self.cub? / self.fused)
    }
}

pub(super) fn figure12(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of("what,device,units,operation,method,plan,launches,framework_us,launch_us,busy_us");
    let mut records = Records::of("panel,title,x,series,over_framework,over_cub,ratio");
    let mut all = Vec::new();
    for operation in OPERATIONS {
        for (id, has_cub) in PLATFORMS {
            let at = measure(context, &mut outcome, operation, id, has_cub)?;
            let over = [Some(at.over_framework()), at.over_cub(), None];
            records.row((["bars", operation.title, &spelled(id), ""], over))?;
            all.push(at);
        }
    }
    let mut crossings = Vec::new();
    for id in SCALED {
        crossings.extend(scaled(context, &mut outcome, &mut records, id)?);
    }
    outcome.range(SPEED_UP, speed_ups_of(&all));
    outcome.quantity("share of launches and overhead", "%", all.iter().flat_map(|at| at.overheads.clone()));
    outcome.quantity("time of the epilogue", "µs", all.iter().map(|at| at.fused));
    outcome.summary.push(format!("figure 12: geometric mean of all speed-ups {:.1}", geometric_mean(&all)));
    outcome.summary.extend(crossings);
    show(context, records, outcome)
}

/// The microseconds of the framework, of launches and of work.
fn times(time: &KernelTime) -> [f64; 3] {
    [time.overhead, time.launch, time.busy].map(|time| time.0 * 1e6)
}

fn measure(
    context: &Context<'_>,
    outcome: &mut Outcome,
    operation: Operation,
    id: &str,
    has_cub: bool,
) -> Result<Measured> {
    let profiler = profiler(context, &context.device(id)?)?;
    let name = spelled(id);
    let place = ("reduction", name.as_str(), None::<u64>, operation.name);
    let best = profiler.fastest(&CONTROL, operation.elements, profiler.epilogue())?;
    let launches = best.counts.launches() + best.counts.memsets;
    outcome.row((place, "DAF", described(&best.plan), u64::from(launches), times(&best.time)))?;
    let framework = profiler.time_of(&framework(&CONTROL, operation.elements, &profiler.machine)?);
    let cub = has_cub.then(|| cub(&CONTROL, operation.elements, &profiler.machine)).transpose()?;
    let cub = cub.map(|counts| profiler.time_of(&counts));
    for (method, time) in [("framework", Some(&framework)), ("CUB", cub.as_ref())] {
        let Some(time) = time else { continue };
        let launches = (time.launch.0 / profiler.gpu.launch().seconds()).round() as u64;
        outcome.row((place, method, "", launches, times(time)))?;
    }
    let overhead = |time: &KernelTime| (time.overhead + time.launch).0 / micros(time) * 1e8;
    let overheads = [&framework].into_iter().chain(&cub).map(overhead).collect();
    let [fused, framework] = [&best.time, &framework].map(micros);
    Ok(Measured { fused, framework, cub: cub.as_ref().map(micros), overheads })
}

/// The time of block atomics relative to a second launch, for varied numbers of units: a panel, and
/// the crossover points.
fn scaled(context: &Context<'_>, outcome: &mut Outcome, records: &mut Records, id: &str) -> Result<Vec<String>> {
    let (device, name) = (context.device(id)?, &*spelled(id));
    let units: Vec<u32> = UNITS.collect();
    let title = format!("block atomics, {name}");
    let mut draw = |series: &str, (units, ratio): (f64, f64)| {
        records.row((["units", &title], units, series, [None, None, Some(ratio)]))
    };
    let mut crossings = Vec::new();
    for operation in OPERATIONS {
        for threads in BLOCKS {
            let plans = block_against_passes(threads);
            let swept = over_units(&device, &units, &plans, &[Statistic::Minimum], operation.elements)?;
            let mut points = Vec::new();
            for at in &swept {
                for (method, timed) in ["block atomics", "second launch"].into_iter().zip(&at.timed) {
                    let place = ("units", name, Some(u64::from(at.units)), operation.name);
                    let launches = u64::from(timed.counts.launches() + timed.counts.memsets);
                    outcome.row((place, method, described(&timed.plan), launches, times(&timed.time)))?;
                }
                if let [block, passes] = at.timed.as_slice() {
                    points.push((f64::from(at.units), block.time.busy.0 / passes.time.busy.0));
                }
            }
            let series = format!("{}, {threads} threads", operation.name);
            crossings.push(crossing(name, &series, &points));
            points.into_iter().try_for_each(|point| draw(&series, point))?;
        }
    }
    [UNITS.start(), UNITS.end()].into_iter().try_for_each(|units| draw("equal", (f64::from(*units), 1.0)))?;
    Ok(crossings)
}

fn described(plan: &Plan) -> String {
    format!("{}, {} threads", plan.strategy.name(), plan.threads)
}

/// The largest number of units at which block atomics win.
fn crossing(device: &str, series: &str, points: &[(f64, f64)]) -> String {
    let last = points.iter().rfind(|(_, ratio)| *ratio < 1.0);
    let found = match last {
        None => "lose on any number of units".to_owned(),
        Some((units, _)) if *units == f64::from(*UNITS.end()) => format!("still win on {units} units"),
        Some((units, _)) => format!("win up to {units} units"),
    };
    format!("figure 12, block atomics against a second launch, {device}, {series}: they {found}")
}

/// Every speed-up.
fn speed_ups_of(measured: &[Measured]) -> impl Iterator<Item = f64> {
    measured.iter().flat_map(|at| std::iter::once(at.over_framework()).chain(at.over_cub()))
}

fn geometric_mean(measured: &[Measured]) -> f64 {
    let logarithms: Vec<f64> = speed_ups_of(measured).map(f64::ln).collect();
    mean(&logarithms).unwrap_or_default().exp()
}

/// The paper's phones.
const PHONES: [&str; 2] = ["iqoo-neo3", "redmagic-7"];
/// The GPU that contends.
const SERVER: &str = "rtx-3090";

pub(super) fn section3_2(context: &Context<'_>) -> Result<Outcome> {
    let mut records = Records::of("claim,device,statistic,elements,threads,quantity,value");
    share_of_cases(context, &mut records)?;
    for operation in OPERATIONS {
        for id in [BOARD, SERVER] {
            over_passes(context, &mut records, id, operation)?;
        }
    }
    show(context, records, Outcome::default())
}

/// The distinct sizes, in elements, of the tensors whose values are saved.
fn sizes(graph: &TrainingGraph, batch: u64) -> BTreeSet<u64> {
    let backward = || graph.nodes.iter().filter(|node| node.phase == Phase::Backward);
    let valued = |id: &u32| backward().any(|node| node.inputs.contains(id) && node.need_of(*id) == Need::Values);
    let elements = |id: u32| graph.tensor(id).bytes.at(batch) / size_of::<f32>() as u64;
    graph.saved().into_iter().filter(valued).map(elements).collect()
}

/// The fractions of cases in which threads-then-blocks beat the tree within the block.
fn share_of_cases(context: &Context<'_>, records: &mut Records) -> Result<()> {
    let mut all = BTreeSet::new();
    for network in NETWORKS {
        let plan = context.plan(&scenario(context, BOARD, network)?)?;
        all.extend(sizes(&plan.graph, plan.scenario().batch));
    }
    for phone in PHONES {
        let profiler = profiler(context, &context.device(phone)?)?;
        let Setting::Epilogue { outputs } = profiler.epilogue() else { continue };
        for statistic in CONTROL {
            for &elements in &all {
                let (ours, other) = (Strategy::ThreadThenBlock, Strategy::Hybrid);
                // The mean over the block sizes; every tensor has equally many.
                let won = profiler.share_won(ours, other, &[statistic], &[elements], &[outputs])?.0;
                let case = ("share", phone, statistic.name(), elements, None::<u64>);
                records.row((case, "share of block sizes with atomics fastest", won))?;
            }
        }
    }
    Ok(())
}

/// The times of block-level atomics relative to those of a second launch, for all block sizes.
fn over_passes(context: &Context<'_>, records: &mut Records, id: &str, operation: Operation) -> Result<()> {
    let device = context.device(id)?;
    let Some(profiler) = Profiler::of(&device) else { bail!("{id} has no modelled GPU") };
    let statistic = Statistic::Minimum;
    for &threads in &profiler.search.threads {
        let [block, passes] = block_against_passes(threads);
        let block = profiler.time(block, &[statistic], operation.elements)?.time;
        let passes = profiler.time(passes, &[statistic], operation.elements)?.time;
        let whole = block.total().seconds() / passes.total().seconds();
        let case = ("contention", id, statistic.name(), operation.elements, Some(u64::from(threads)));
        records.row((case, "time over that of a second launch", whole))?;
        records.row((case, "the same without launches", block.busy.0 / passes.busy.0))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use haversack_workloads::Network;
    use haversack_workloads::autograd::{EagerRules, differentiate};
    use haversack_workloads::operator::Unary;

    use super::*;
    use crate::quantities::range;

    #[test]
    fn speed_ups_are_over_both_baselines_where_there_are_two() {
        // 8 / 1, 2 / 1 and 8 / 2: from 2 to 8, and the cube root of 64 is 4.
        let measured = [
            Measured { fused: 1.0, framework: 8.0, cub: Some(2.0), overheads: Vec::new() },
            Measured { fused: 2.0, framework: 8.0, cub: None, overheads: Vec::new() },
        ];
        assert_eq!(range(speed_ups_of(&measured)), Some((2.0, 8.0)));
        assert!((geometric_mean(&measured) - 4.0).abs() < 1e-12);
    }

    #[test]
    fn the_last_win_is_the_crossing() {
        let found = |ratios: [f64; 3]| {
            let points: Vec<_> = [8.0, 40.0, 82.0].into_iter().zip(ratios).collect();
            crossing("a GPU", "a tensor", &points)
        };
        assert!(found([0.9, 0.8, 1.1]).ends_with("they win up to 40 units"));
        assert!(found([0.9, 1.1, 0.9]).ends_with("they still win on 82 units"));
        assert!(found([1.0, 1.1, 1.2]).ends_with("they lose on any number of units"));
    }

    #[test]
    fn sizes_are_of_tensors_whose_values_are_needed() {
        let mut network = Network::new("two layers");
        let x = network.input(&[7]);
        let hidden = network.linear("first", x, 5, false).unwrap();
        let hidden = network.unary("act", hidden, Unary::Relu);
        let scores = network.linear("second", hidden, 3, false).unwrap();
        let target = network.target(1);
        network.cross_entropy("loss", scores, target).unwrap();
        let graph = differentiate(&network, EagerRules::default()).unwrap();
        // Two samples: 2 x 5 activations for the second layer's weight, 2 x 3 log-probabilities for the loss. Samples
        // are not activations, and the loss' total weight is a statistic.
        assert_eq!(sizes(&graph, 2), BTreeSet::from([6, 10]));
    }
}
