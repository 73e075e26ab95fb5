//! Table 2: who packs and who unpacks.

use haversack_training::{AllocatorKind, Record};

use super::setting::{BOARD, IMPORTANCE, RESNET_CIFAR, store};
use crate::artefacts::prelude::*;

/// The configurations as the reference names them, for people, and as the policy does.
const CONFIGURATIONS: [(&str, &str, &str); 4] = [
    ("cpu-only", "only CPU", "cpu"),
    ("gpu-only", "only GPU", "gpu"),
    ("cpu-gpu-no-unified-layout", "CPU + GPU", "shared"),
    ("cpu-gpu-unified-layout", "CPU + GPU, unified layout", "unified"),
];
/// The quantities: as the reference names them, for people, and their unit.
const METRICS: [(&str, &str, &str); 3] = [
    ("memory-overhead", "memory overhead", "MiB"),
    ("time", "time of the rest", "ms"),
    ("time-overhead", "time overhead", "ms"),
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
    let found = CONFIGURATIONS.iter().find(|(known, ..)| *known == id);
    let (_, _, packing) = found.with_context(|| format!("no configuration of table 2 is called `{id}`"))?;
    let mut scenario = Scenario::new(BOARD, RESNET_CIFAR.model);
    scenario.allocator = Some(AllocatorKind::Caching);
    scenario.batch = reading("resnet-batch")? as u64;
    scenario.activation_budget = Some(Budget::Bytes(Bytes((reading("activation-memory")? * MIB) as u64)));
    let least = reading("least-bits")?.to_string();
    Ok(under(&scenario, "daf", &[("packing", packing), ("least_bits", &least), IMPORTANCE]))
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of("configuration,store_mib,overhead_mib,time_ms,overhead_ms");
    let mut grid = Grid::default();
    for (id, name, _) in CONFIGURATIONS {
        let record = context.run(&packed(|reading| context.reading_number(reading), id)?)?;
        let (time, overhead) = parts(&record);
        let values = [record.peak_staging.as_f64() / MIB, time.seconds() * 1e3, overhead.seconds() * 1e3];
        outcome.row((name, store(&record).as_f64() / MIB, values))?;
        for ((metric, label, _), value) in METRICS.into_iter().zip(values) {
            let row = format!("daf/table2/resnet18-cifar10/{id}/{metric}");
            grid.answer(context, &mut outcome, &row, [name, SIMULATED, label], value)?;
        }
    }
    let budget = context.reading_number("activation-memory")?;
    outcome.answer("daf/table2/resnet18-cifar10/activation/memory", Answer::Input(budget));
    for (_, label, unit) in METRICS {
        outcome.bars(label, grid.bars(label), axis(label, unit));
    }
    Ok(outcome)
}
