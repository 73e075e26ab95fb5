//! Table 3: operators that do not suit the DSP.

use haversack_devices::processor::ProcessorKind;
use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::work::{OperatorKind, Precision, Traffic, Work};
use haversack_devices::{ClusterClass, CoreSelection, Device, Frequency, Stack};

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
        let (dsp, on_dsp) = device.offloader(stack).ok()?;
        return Some(dsp.cost(&work, &on_dsp).alone());
    }
    let cores = CoreSelection::Some { class: ClusterClass::Big, count: 2 };
    let cpu = device.processor(ProcessorKind::Cpu, stack, cores, Frequency::Highest).ok()?;
    Some(cpu.cost(&work).alone())
}
