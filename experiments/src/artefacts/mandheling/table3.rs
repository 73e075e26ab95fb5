//! Table 3: operators that do not suit the DSP.

use haversack_devices::processor::ProcessorKind;
use haversack_devices::work::{OperatorKind, Precision, Traffic, Work};
use haversack_devices::{ClusterClass, CoreSelection, Device, Frequency, Stack};

use super::setting::XIAOMI_10;
use crate::artefacts::prelude::*;
use crate::artefacts::sweep::swept;

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

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let (device, stack) = (context.device(XIAOMI_10)?, context.stack("mandheling")?);
    let map = Bytes((context.reading_number("map")? * MIB) as u64);
    swept(context, "time_ms", |_, ids| {
        let processor = &ids[0];
        let time = irregular(&device, &stack, map, processor == "dsp");
        Ok(Some(time.with_context(|| format!("the Xiaomi 10 has no {processor}"))?.seconds() * 1e3))
    })
}
