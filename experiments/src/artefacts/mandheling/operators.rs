//! Single operators of the DSP and of the CPU.

use haversack_devices::{
    ClusterClass, CoreSelection, Device, Flops, Frequency, OperatorKind, Precision, ProcessorKind, Product,
    ProductRole, Stack, Traffic, Work,
};
use haversack_training::{Machine, Trains};
use haversack_workloads::counts::count;
use haversack_workloads::{Network as Layers, Op, models};

use super::setting::{XIAOMI_10, XIAOMI_11_PRO};
use crate::artefacts::prelude::*;
use crate::papers::reference::{Reference, Role};

pub(crate) const MIB: f64 = 1024.0 * 1024.0;

/// The time of an operator that reads a map of eight-bit integers and writes it in another order; on the CPU by two big
/// cores, which Mandheling uses.
pub(crate) fn irregular(device: &Device, stack: &Stack, map: Bytes, on_dsp: bool) -> Option<Nanos> {
    let work = Work {
        traffic: Traffic { dram: map * 2, shared: Bytes::ZERO },
        working_set: map * 2,
        parallelism: map.as_f64(),
        ..Work::empty(OperatorKind::Layout, Precision::Int8)
    };
    if on_dsp {
        return Some(device.offloader(stack).ok()?.cost(&work).alone());
    }
    let cores = CoreSelection::Some { class: ClusterClass::Big, count: 2 };
    let cpu = device.processor(ProcessorKind::Cpu, stack, cores, Frequency::Highest).ok()?;
    Some(cpu.cost(&work).alone())
}

/// Table 3: operators that are slow on the DSP.
pub(super) fn table3(context: &Context<'_>) -> Result<Outcome> {
    let (device, stack) = (context.device(XIAOMI_10)?, context.stack("mandheling")?);
    let map = Bytes((context.reading_number("map")? * MIB) as u64);
    swept(context, "time_ms", |_, ids| {
        let processor = &ids[0];
        let time = irregular(&device, &stack, map, processor == "dsp");
        Ok(Some(time.with_context(|| format!("the Xiaomi 10 has no {processor}"))?.seconds() * 1e3))
    })
}

/// The time of a crossing between the CPU and the DSP with `bytes` to copy, on the two big cores that Mandheling uses.
pub(crate) fn crossing(device: &Device, stack: &Stack, bytes: Bytes) -> Option<Nanos> {
    let cores = CoreSelection::Some { class: ClusterClass::Big, count: 2 };
    let machine =
        Machine::new(device.clone(), stack.clone(), Trains::CpuAndDsp, Some(cores), Frequency::Highest).ok()?;
    Some(machine.crossing(bytes))
}

/// Section 3.3: a crossing between the CPU and the DSP.
pub(super) fn section3_3(context: &Context<'_>) -> Result<Outcome> {
    let (device, stack) = (context.device(XIAOMI_10)?, context.stack("mandheling")?);
    let bytes = Bytes((context.reading_number("map")? * MIB) as u64);
    let millis = |bytes| crossing(&device, &stack, bytes).map(|time| time.seconds() * 1e3);
    let (all, call) = millis(bytes).zip(millis(Bytes::ZERO)).context("no DSP to cross to")?;
    let mut outcome = Outcome::of("part,time_ms");
    let row = "mandheling/section3.3/xiaomi-10/cpu-dsp-switch/latency";
    outcome.number(row, all);
    outcome.remark(row, format!("{call:.2} ms of it are the call, the rest is the copy of {bytes}"));
    outcome.row(("call", call))?;
    outcome.row(("copy", all - call))?;
    Ok(outcome)
}

/// A batch of VGG-16 under the engine in a row.
pub(crate) fn preparing(engine: &str, batch: u64) -> Scenario {
    Scenario { policy: format!("{engine}-fp32"), batch, ..Scenario::new(XIAOMI_11_PRO, "vgg16-cifar") }
}

/// The time that the engine spends on preparing the batch's graph, summed over its operators.
pub(crate) fn preparation(plan: &Plan, machine: &Machine) -> Nanos {
    let scenario = plan.scenario();
    let launch = |id| machine.cost(&plan.graph, id, scenario.batch, scenario.precision).launch;
    (0..plan.graph.nodes.len()).map(launch).sum()
}

/// Section 3.6: the time that engines spend on preparing a graph for every batch.
pub(super) fn section3_6(context: &Context<'_>) -> Result<Outcome> {
    let batch = context.reading_number("batch")? as u64;
    swept(context, "operators,preparation_ms", |_, ids| {
        let plan = context.plan(&preparing(&ids[0], batch))?;
        let operators = plan.graph.nodes.iter().filter(|node| node.work.launches > 0).count() as u64;
        Ok((operators, preparation(&plan, plan.machine()).seconds() * 1e3))
    })
}

fn convolutions(layers: &Layers) -> usize {
    layers.nodes.iter().filter(|node| matches!(node.op, Op::Convolution { .. })).count()
}

/// Table 6: the operations and the convolutions of the six networks.
pub(super) fn table6(context: &Context<'_>) -> Result<Outcome> {
    swept(context, "convolutions,forward_gflop,training_gflop,flops", |scenario, _| {
        let layers = models::build(&scenario.model, scenario.input.as_ref().map(|input| input.0.as_slice()))?;
        let counts = count(&layers, 1);
        let gigaflops = [counts.forward_flops, counts.training_flops].map(|flops| flops as f64 * 1e-9);
        Ok((convolutions(&layers) as f64, gigaflops, counts.training_flops as f64))
    })
}

const CHANNELS: u64 = 64;
const TAPS: [u64; 2] = [3, 3];

/// The size of the map and the batch of a row: `conv-64x64-8x8`, `batch-32`.
pub(crate) fn setting(subject: &str, method: &str) -> Option<(u64, u64)> {
    let size = subject.rsplit('-').next()?.split('x').next()?.parse().ok()?;
    Some((size, method.strip_prefix("batch-")?.parse().ok()?))
}

/// The time of the gradient as a single operator.
pub(crate) fn called_alone(device: &Device, stack: &Stack, size: u64, batch: u64) -> Option<Nanos> {
    let offloader = device.offloader(stack).ok()?;
    let product = Product {
        role: ProductRole::WeightGradient,
        inputs: CHANNELS,
        outputs: CHANNELS,
        input_size: [size, size],
        output_size: [size, size],
        taps: TAPS,
        groups: 1,
        of_each_sample: false,
    };
    let weights = CHANNELS * CHANNELS * TAPS[0] * TAPS[1];
    let operands = Bytes(2 * batch * CHANNELS * size * size + weights);
    let work = Work {
        flops: Flops(2.0 * product.multiply_adds(batch)),
        traffic: Traffic { dram: operands, shared: Bytes::ZERO },
        working_set: operands,
        parallelism: weights as f64,
        samples: batch,
        product: Some(product),
        ..Work::empty(OperatorKind::Convolution, Precision::Int8)
    };
    Some(offloader.dsp.call() + offloader.cost(&work).alone())
}

/// The null baseline, a roofline with one efficiency: the convolution's multiply-adds divided by one rate, the median
/// over the table's `fit` rows.
fn null(reference: &Reference, row: &ReferenceRow) -> Option<f64> {
    // Channels and taps are the same in all rows, so the multiply-adds differ only by samples and pixels.
    let work = |row: &ReferenceRow| {
        let (size, batch) = setting(&row.subject, &row.method)?;
        Some((size * size * batch) as f64)
    };
    let known = reference.of(row.paper, &row.artefact).filter(|other| other.role() == Role::Fit);
    let rates = known.filter_map(|other| Some(work(other)? / other.number()?)).collect();
    Some(work(row)? / median(rates)?)
}

pub(super) fn table4(context: &Context<'_>) -> Result<Outcome> {
    let (device, stack) = (context.device(XIAOMI_10)?, context.stack("mandheling")?);
    let records = records(context, "simulated_ms,null_ms", |_, ids| {
        let [size, batch]: [u64; 2] = [ids[0].parse()?, ids[1].parse()?];
        let row = context.row(&format!("mandheling/table4/conv-64x64-{size}x{size}/batch-{batch}/latency"))?;
        let time = called_alone(&device, &stack, size, batch).context("the Xiaomi 10 has no DSP")?;
        Ok([Some(time.seconds() * 1e3), null(context.reference, row)])
    })?;
    let mut outcome = Outcome::default();
    outcome.nulls_of(&context.rows, |row| null(context.reference, row));
    show(context, records, outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn convolutions_are_those_of_the_networks_names() {
        // VGG-n counts its layers with weights, three of them linear in the original head: n − 3 convolutions. ResNet-n
        // counts one linear layer and leaves out the convolutions of three shortcuts: n − 1 + 3.
        for (model, expected) in
            [("vgg11-cifar", 8), ("vgg16-cifar", 13), ("vgg19", 16), ("resnet34-cifar", 36), ("resnet18", 20)]
        {
            assert_eq!(convolutions(&models::build(model, None).unwrap()), expected, "{model}");
        }
    }

    #[test]
    fn a_row_names_its_map_and_its_batch() {
        assert_eq!(setting("conv-64x64-16x16", "batch-32"), Some((16, 32)));
        assert_eq!(setting("conv-64x64-16x16", "32"), None);
        assert_eq!(setting("transpose", "batch-32"), None);
    }

    #[test]
    fn the_call_is_paid_once_and_the_rest_is_work_while_all_fits() {
        let device = haversack_devices::load("xiaomi-10").unwrap();
        let stack = haversack_devices::load_stack("mandheling").unwrap();
        let time = |batch| called_alone(&device, &stack, 8, batch).unwrap().seconds();
        // 8×8 at 16, 32 and 64: the filter takes 8 · 8 · 64 · 64 B = 256 KiB at most, all of the tightly coupled
        // memory, so that twice the batch costs twice the arithmetic: t(64) − t(32) = 2 (t(32) − t(16)).
        let (first, second) = (time(32) - time(16), time(64) - time(32));
        assert!((second / first - 2.0).abs() < 1e-3, "{first} {second}");
        // The time extrapolated to zero arithmetic is a call and an operator's overhead.
        let offloader = device.offloader(&stack).unwrap();
        let fixed = (offloader.dsp.call() + offloader.stack.operator_overhead.value).seconds();
        assert!((time(32) - 2.0 * first - fixed).abs() < 1e-6, "{fixed}");
    }

    #[test]
    fn one_rate_for_every_convolution() {
        let reference = Reference::load().unwrap();
        let null = |id: &str| null(&reference, reference.row(id)?);
        // Pixels of all samples a millisecond on the ten fit rows: 8×8 at 2, 8, 16 and 64 samples 203.2, 602.4, 994.2
        // and 2226.1; 16×16 at 2, 4 and 8 609.5, 1150.6 and 484.2; 32×32 at 2, 4 and 32 1211.8, 1638.4 and 481.0.
        // The middle two are 609.5 and 994.2, their mean is 801.8: 32 · 32 · 8 / 801.8 = 10.216 ms.
        for id in [
            "mandheling/table4/conv-64x64-32x32/batch-8/latency",
            "mandheling/table4/conv-64x64-16x16/batch-32/latency",
        ] {
            let value = null(id).unwrap();
            assert!((value - 10.216).abs() < 1e-3, "{id}: {value}");
        }
    }
}
