//! Table 2: who packs and who unpacks.

use haversack_training::AllocatorKind;

use super::setting::{BOARD, IMPORTANCE, RESNET_CIFAR, store};
use crate::artefacts::prelude::*;

/// The configurations as the reference names them, and as the policy does.
const CONFIGURATIONS: [(&str, &str); 4] = [
    ("cpu-only", "cpu"),
    ("gpu-only", "gpu"),
    ("cpu-gpu-no-unified-layout", "shared"),
    ("cpu-gpu-unified-layout", "unified"),
];
const MIB: f64 = 1024.0 * 1024.0;

/// The parts of an iteration as the table has them: what packing, unpacking and waiting for them add, and the rest.
pub(crate) fn parts(record: &Record) -> (Nanos, Nanos) {
    let packing = record.breakdown.packing + record.breakdown.paging;
    (record.iteration.saturating_sub(packing), packing)
}

/// The scenario of the configuration that the reference calls `id`; `reading` gives the numbers of readings.
///
/// # Errors
/// No such configuration, or no such reading.
pub(crate) fn packed(reading: impl Fn(&str) -> Result<f64>, id: &str) -> Result<Scenario> {
    let found = CONFIGURATIONS.iter().find(|(known, _)| *known == id);
    let (_, packing) = found.with_context(|| format!("no configuration of table 2 is called `{id}`"))?;
    let mut scenario = Scenario::new(BOARD, RESNET_CIFAR.model);
    scenario.allocator = Some(AllocatorKind::Caching);
    scenario.batch = reading("resnet-batch")? as u64;
    scenario.activation_budget = Some(Budget::Bytes(Bytes((reading("activation-memory")? * MIB) as u64)));
    let least = reading("least-bits")?.to_string();
    Ok(under(&scenario, "daf", &[("packing", packing), ("least_bits", &least), IMPORTANCE]))
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let budget = context.reading_number("activation-memory")?;
    outcome.answer("daf/table2/resnet18-cifar10/activation/memory", Answer::Input(budget));
    let records = records(context, "store_mib,overhead_mib,time_ms,overhead_ms", |_, ids| {
        let record = context.run(&packed(|reading| context.reading_number(reading), &ids[0])?)?;
        let times: [Nanos; 2] = parts(&record).into();
        Ok((
            [store(&record), record.peak_staging].map(|bytes| bytes.as_f64() / MIB),
            times.map(|time| time.seconds() * 1e3),
        ))
    })?;
    show(context, records, outcome)
}
