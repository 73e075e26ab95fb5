//! Table 3: operators that do not suit the DSP.

use haversack_devices::processor::ProcessorKind;
use haversack_devices::work::{OperatorKind, Precision, Traffic, Work};
use haversack_devices::{ClusterClass, CoreSelection, Device, Frequency, Stack};

use super::setting::XIAOMI_10;
use crate::artefacts::prelude::*;

pub(crate) const MIB: f64 = 1024.0 * 1024.0;

/// The operators as the reference names them, and for people.
const OPERATORS: [(&str, &str); 3] =
    [("transpose", "transpose"), ("weight-rotate", "rotate weights"), ("slice", "slice")];
/// The processors as the reference names them, for people, and whether it is the DSP.
const PROCESSORS: [(&str, &str, bool); 2] = [("cpu", "CPU", false), ("dsp", "DSP", true)];

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
    let mut outcome = Outcome::of("operator,processor,time_ms");
    let mut grid = Grid::default();
    for (processor, name, on_dsp) in PROCESSORS {
        let time = irregular(&device, &stack, map, on_dsp);
        let milliseconds = time.with_context(|| format!("the Xiaomi 10 has no {name}"))?.seconds() * 1e3;
        for (operator, operator_name) in OPERATORS {
            let row = format!("mandheling/table3/{operator}/{processor}/latency");
            grid.answer(context, &mut outcome, &row, [operator_name, name, "latency"], milliseconds)?;
            outcome.row((operator, processor, milliseconds))?;
        }
    }
    outcome.bars("", grid.bars("latency"), from_zero("latency", "ms"));
    Ok(outcome)
}
