//! Figures 11 and 14: memory, time and energy of all methods side by side.

use haversack_devices::units::Nanos;
use haversack_reports::figure::{Axis, BarSeries, Bars, Figure, Front, Panel, Stack};
use haversack_reports::table::Table;
use haversack_training::Record;

use super::setting::{BOARD, METHODS, Network, of_method, run as simulate, scenario};
use crate::reproduce::{Answer, ArtefactError, Context, Outcome};

/// One iteration of every method; those that know a time budget get the declared one.
fn iterations(context: &Context<'_>, network: Network) -> Result<Vec<(&'static str, Record)>, ArtefactError> {
    let plain = scenario(context, BOARD, network)?;
    let original = simulate(context, &plain)?.iteration;
    let share = context.reading_number("time-budget")? / 100.0;
    let mut found = Vec::new();
    for (method, _) in METHODS {
        let mut scenario = of_method(context, &plain, method)?;
        if matches!(method, "daf" | "elastictrainer") {
            scenario.time_budget = Some(Nanos((original.0 as f64 * share) as u64));
        }
        found.push((method, simulate(context, &scenario)?));
    }
    Ok(found)
}

fn of<'a>(found: &'a [(&'static str, Record)], method: &str) -> Result<&'a Record, ArtefactError> {
    let record = found.iter().find(|(name, _)| *name == method).map(|(_, record)| record);
    record.ok_or_else(|| anyhow::anyhow!("{method} was not run"))
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let row = "daf/figure11/all/daf/memory-and-time";
    let comparable = 1.0 + context.predicate(row)?.tolerance;
    let mut outcome = Outcome::default();
    let mut table = Table::new([
        "network",
        "method",
        "footprint_mb",
        "allocated_mb",
        "fragments_mb",
        "iteration_ms",
        "control_ms",
        "packing_ms",
    ]);
    let mut figure = Figure::new("DAF, figure 11: footprint and time of an iteration, Jetson AGX Xavier")
        .columns(2)
        .panel_size(430, 330);
    let mut holds = true;
    let mut losses: Option<Vec<(&'static str, Record)>> = None;
    for network in [Network::ResNetCifar, Network::Roberta] {
        let found = iterations(context, network)?;
        let mut front = Front::new();
        for ((method, record), (_, name)) in found.iter().zip(METHODS) {
            let milliseconds = record.iteration.seconds() * 1e3;
            let footprint = record.reserved.megabytes();
            let fragments = footprint - record.peak_memory.megabytes();
            table.push([
                network.name().into(),
                (*method).into(),
                footprint.into(),
                record.peak_memory.megabytes().into(),
                fragments.into(),
                milliseconds.into(),
                (record.breakdown.control.seconds() * 1e3).into(),
                (record.breakdown.packing.seconds() * 1e3).into(),
            ])?;
            front = front.cloud(name, vec![(milliseconds, footprint)]);
        }
        let (daf, elastic, actnn) = (of(&found, "daf")?, of(&found, "elastictrainer")?, of(&found, "actnn")?);
        let others = || found.iter().filter(|(method, _)| *method != "daf").map(|(_, record)| record);
        holds &= others().all(|other| daf.reserved < other.reserved);
        holds &= daf.iteration.seconds() <= comparable * elastic.iteration.seconds();
        holds &= found.iter().all(|(_, other)| other.iteration <= actnn.iteration) && actnn.reserved > daf.reserved;
        figure = figure.panel(
            Panel::new(front)
                .title(network.name())
                .x(Axis::new("time of an iteration").unit("ms").from_zero())
                .y(Axis::new("footprint").unit("MB").from_zero()),
        );
        losses.get_or_insert(found);
    }
    if let Some(found) = losses {
        figure = figure.panel(losses_in_memory(&found)).panel(losses_in_time(&found));
    }
    outcome.answer(row, Answer::Order(holds));
    outcome.figure = Some(figure);
    outcome.table = Some(table);
    let notes = &mut outcome.notes;
    notes.predicted.push("All points. The lower panels show ActNN's two losses on ResNet-18, fragments in memory and statistics in time, and that DAF has neither.".into());
    notes.left_out.push(super::table1::ACCURACY.to_owned());
    notes.misses.push("On ResNet-18 Fixed 8 Bits has the smaller footprint: DAF's store is 52 MB, but the maps that kernels work on and the workspace of convolutions are whole, while integer kernels here need neither. The paper counts DAF's store alone.".into());
    Ok(outcome)
}

/// Allocated bytes, and what is reserved beyond them.
fn losses_in_memory(found: &[(&'static str, Record)]) -> Panel {
    let megabytes = |of: fn(&Record) -> f64| found.iter().map(|(_, record)| of(record)).collect::<Vec<_>>();
    let stack = Stack::new(METHODS.map(|(_, name)| name))
        .part("allocated", megabytes(|record| record.peak_memory.megabytes()))
        .part("fragments and caches", megabytes(|record| record.reserved.megabytes() - record.peak_memory.megabytes()));
    Panel::new(stack).title("ResNet-18: where memory goes").y(Axis::new("footprint").unit("MB"))
}

/// The graph's own time, statistics, packing.
fn losses_in_time(found: &[(&'static str, Record)]) -> Panel {
    let milliseconds =
        |of: fn(&Record) -> Nanos| found.iter().map(|(_, record)| of(record).seconds() * 1e3).collect::<Vec<_>>();
    let stack = Stack::new(METHODS.map(|(_, name)| name))
        .part(
            "training",
            milliseconds(|record| {
                record.iteration.saturating_sub(record.breakdown.control).saturating_sub(record.breakdown.packing)
            }),
        )
        .part("statistics", milliseconds(|record| record.breakdown.control))
        .part("packing", milliseconds(|record| record.breakdown.packing));
    Panel::new(stack).title("ResNet-18: where time goes").y(Axis::new("iteration").unit("ms"))
}

pub(super) fn energy(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let row = "daf/figure14/resnet18/original,actnn->-daf/energy";
    let comparable = 1.0 + context.predicate(row)?.tolerance;
    let found = iterations(context, Network::ResNetCifar)?;
    let joules = |method: &str| -> Result<f64, ArtefactError> { Ok(of(&found, method)?.energy.0) };
    let daf = joules("daf")?;
    let holds = joules("original")? > daf
        && joules("actnn")? > daf
        && daf <= comparable * joules("fixed8")?
        && daf <= comparable * joules("elastictrainer")?;
    let mut outcome = Outcome::default();
    outcome.answer(row, Answer::Order(holds));
    let mut table = Table::new(["method", "energy_j", "iteration_ms"]);
    for (method, record) in &found {
        table.push([(*method).into(), record.energy.0.into(), (record.iteration.seconds() * 1e3).into()])?;
    }
    let bars = Bars::new(METHODS.map(|(_, name)| name))
        .series(BarSeries::new("energy", found.iter().map(|(_, record)| record.energy.0).collect::<Vec<_>>()))
        .show_values();
    outcome.figure = Some(
        Figure::new("DAF, figure 14: energy of an iteration of ResNet-18, Jetson AGX Xavier")
            .panel_size(700, 320)
            .panel(Panel::new(bars).y(Axis::new("energy").unit("J").from_zero())),
    );
    outcome.table = Some(table);
    outcome.notes.predicted.push("All bars. Energy of an iteration, not to an accuracy.".into());
    outcome.notes.misses.push("Fixed 8 Bits takes less than half of DAF's energy: forward and backward run at the rate of integer units here, and the paper has both alike. If an implementation computes gradients in fp32, as cuDNN would have it, Fixed 8 Bits takes longer than the original for lack of Winograd's algorithm; the truth may lie between.".into());
    outcome.notes.left_out.push("The number of iterations that each method takes to an accuracy.".into());
    Ok(outcome)
}
