//! Single operators and what is beside them: tables 3 and 6, sections 3.3 and 3.6.

use haversack_devices::{
    ClusterClass, CoreSelection, Device, Frequency, OperatorKind, Precision, ProcessorKind, Stack, Traffic, Work,
};
use haversack_training::{Machine, Trains};
use haversack_workloads::counts::count;
use haversack_workloads::{Network as Layers, Op, models};

use super::setting::{XIAOMI_10, XIAOMI_11_PRO};
use crate::artefacts::prelude::*;

pub(crate) const MIB: f64 = 1024.0 * 1024.0;

/// The time of an operator that reads a map of eight-bit integers and writes it in another order; on the CPU by two big
/// cores, which is what Mandheling runs on.
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

/// Table 3: operators that do not suit the DSP.
pub(super) fn table3(context: &Context<'_>) -> Result<Outcome> {
    let (device, stack) = (context.device(XIAOMI_10)?, context.stack("mandheling")?);
    let map = Bytes((context.reading_number("map")? * MIB) as u64);
    swept(context, "time_ms", |_, ids| {
        let processor = &ids[0];
        let time = irregular(&device, &stack, map, processor == "dsp");
        Ok(Some(time.with_context(|| format!("the Xiaomi 10 has no {processor}"))?.seconds() * 1e3))
    })
}

/// Crossing between the CPU and the DSP with `bytes` to be copied, on the two big cores that Mandheling runs on.
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

/// A batch of VGG-16 under the engine of a row.
pub(crate) fn preparing(engine: &str, batch: u64) -> Scenario {
    Scenario { policy: format!("{engine}-fp32"), batch, ..Scenario::new(XIAOMI_11_PRO, "vgg16-cifar") }
}

/// What the engine spends on preparing the batch's graph, operator by operator.
pub(crate) fn preparation(plan: &Plan, machine: &Machine) -> Nanos {
    let scenario = plan.scenario();
    let launch = |id| machine.cost(&plan.graph, id, scenario.batch, scenario.precision).launch;
    (0..plan.graph.nodes.len()).map(launch).sum()
}

/// Section 3.6: what engines spend on preparing a graph for every batch.
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
}
