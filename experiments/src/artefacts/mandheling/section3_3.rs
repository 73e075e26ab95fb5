//! Section 3.3: a crossing between the CPU and the DSP.

use haversack_devices::{ClusterClass, CoreSelection, Device, Frequency, Stack};
use haversack_training::{Machine, Trains};

use super::setting::XIAOMI_10;
use super::table3::MIB;
use crate::artefacts::prelude::*;

/// Crossing between the CPU and the DSP with `bytes` to be copied, on the two big cores that Mandheling runs on.
pub(crate) fn crossing(device: &Device, stack: &Stack, bytes: Bytes) -> Option<Nanos> {
    let cores = CoreSelection::Some { class: ClusterClass::Big, count: 2 };
    let machine =
        Machine::new(device.clone(), stack.clone(), Trains::CpuAndDsp, Some(cores), Frequency::Highest).ok()?;
    Some(machine.crossing(bytes))
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
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
