//! Table 2: who packs and who unpacks.

use haversack_devices::units::{Bytes, Nanos};
use haversack_reports::figure::{Axis, BarSeries, Bars, Figure, Look, Panel};
use haversack_reports::table::Table;
use haversack_training::{AllocatorKind, Record};

use super::setting::{BOARD, Network, run as simulate, store, under};
use crate::reproduce::{Answer, ArtefactError, Context, Outcome};
use crate::scenario::{Budget, Scenario};

/// The configurations as the reference names them, for people, and as the policy does.
const CONFIGURATIONS: [(&str, &str, &str); 4] = [
    ("cpu-only", "only CPU", "cpu"),
    ("gpu-only", "only GPU", "gpu"),
    ("cpu-gpu-no-unified-layout", "CPU + GPU", "shared"),
    ("cpu-gpu-unified-layout", "CPU + GPU, unified layout", "unified"),
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
pub(crate) fn packed(
    reading: impl Fn(&str) -> Result<f64, ArtefactError>,
    id: &str,
) -> Result<Scenario, ArtefactError> {
    let found = CONFIGURATIONS.iter().find(|(known, ..)| *known == id);
    let (_, _, packing) = found.ok_or_else(|| anyhow::anyhow!("no configuration of table 2 is called `{id}`"))?;
    let mut scenario = Scenario::new(BOARD, Network::ResNetCifar.model());
    scenario.allocator = Some(AllocatorKind::Caching);
    scenario.batch = reading("resnet-batch")? as u64;
    scenario.activation_budget = Some(Budget::Bytes(Bytes((reading("activation-memory")? * MIB) as u64)));
    let least = reading("least-bits")?.to_string();
    Ok(under(&scenario, "daf", &[("packing", packing), ("least_bits", &least)]))
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    let mut table = Table::new(["configuration", "store_mib", "overhead_mib", "time_ms", "overhead_ms"]);
    let (mut own, mut paper) = (vec![Vec::new(); 3], vec![Vec::new(); 3]);
    for (id, name, _) in CONFIGURATIONS {
        let record = simulate(context, &packed(|reading| context.reading_number(reading), id)?)?;
        let (time, overhead) = parts(&record);
        let (time, overhead) = (time.seconds() * 1e3, overhead.seconds() * 1e3);
        let staging = record.peak_staging.as_f64() / MIB;
        let held = store(&record).as_f64() / MIB;
        table.push([name.into(), held.into(), staging.into(), time.into(), overhead.into()])?;
        let rows = [("memory-overhead", staging), ("time", time), ("time-overhead", overhead)];
        for (place, (metric, value)) in rows.into_iter().enumerate() {
            let row = format!("daf/table2/resnet18-cifar10/{id}/{metric}");
            own[place].push(value);
            paper[place].push(context.row(&row)?.number());
            outcome.number(row, value);
        }
    }
    let budget = context.reading_number("activation-memory")?;
    outcome.answer("daf/table2/resnet18-cifar10/activation/memory", Answer::Input(budget));
    let mut figure = Figure::new("DAF, table 2: packing and unpacking, ResNet-18 on the Jetson AGX Xavier")
        .columns(1)
        .panel_size(760, 190);
    let names = CONFIGURATIONS.map(|(_, name, _)| name);
    for (place, (label, unit)) in
        [("memory overhead", "MiB"), ("time of the rest", "ms"), ("time overhead", "ms")].into_iter().enumerate()
    {
        let bars = Bars::new(names)
            .series(BarSeries::new("simulated", own[place].clone()))
            .series(BarSeries::new("paper", paper[place].clone()).look(Look::Hatched))
            .show_values();
        figure = figure.panel(Panel::new(bars).title(label).y(Axis::new(label).unit(unit)));
    }
    outcome.figure = Some(figure);
    outcome.table = Some(table);
    let notes = &mut outcome.notes;
    notes.calibrated.push("The share of DRAM bandwidth that the GPU's packing kernels reach, on the fit rows of the time overhead; the rate of convolutions, on the rows of the iteration's time. Both by `haversack calibrate jetson-agx-xavier`.".into());
    notes.predicted.push("Every other row.".into());
    notes.left_out.push("What the unified layout saves in the kernels that read: the model has convolutions bound by arithmetic, which hides their reading of unpacked maps; normalisations and ReLUs alone get faster.".into());
    notes.misses.push("The iteration under the unified layout: the paper's is 41 ms shorter, the model's by what normalisations save.".into());
    Ok(outcome)
}
