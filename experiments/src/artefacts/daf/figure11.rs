//! Figure 11: memory and time of all methods side by side.

use haversack_training::Record;

use super::setting::{BOARD, METHODS, Network, artefact, of_method, scenario};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact =
    artefact("figure11", "footprint and time of all methods, and where both go", run);

/// One iteration of every method; those that know a time budget get the declared one.
pub(super) fn iterations(
    context: &Context<'_>,
    network: Network,
) -> Result<Vec<(&'static str, Record)>, ArtefactError> {
    let plain = scenario(context, BOARD, network)?;
    let original = context.run(&plain)?.iteration;
    let share = context.reading_number("time-budget")? / 100.0;
    let mut found = Vec::new();
    for (method, _) in METHODS {
        let mut scenario = of_method(context, &plain, method)?;
        if matches!(method, "daf" | "elastictrainer") {
            scenario.time_budget = Some(Nanos((original.0 as f64 * share) as u64));
        }
        found.push((method, context.run(&scenario)?));
    }
    Ok(found)
}

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
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
    let mut all: Vec<(String, Vec<f64>)> = Vec::new();
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
        collect(&mut all, &found);
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
    for (name, values) in all {
        outcome.quantity(&name, "", values);
    }
    context.judge(&mut outcome, "daf/figure11/all/daf/memory-and-time")?;
    Ok(outcome.drawn(figure, table))
}

/// Adds what the predicate compares: each method's footprint and time, and their extremes over the other methods.
fn collect(all: &mut Vec<(String, Vec<f64>)>, found: &[(&'static str, Record)]) {
    let mut add = |name: String, value: f64| match all.iter_mut().find(|(known, _)| *known == name) {
        Some((_, values)) => values.push(value),
        None => all.push((name, vec![value])),
    };
    for (method, record) in found {
        add(format!("footprint of {method}"), record.reserved.as_f64());
        add(format!("time of {method}"), record.iteration.seconds());
    }
    let others = || found.iter().filter(|(method, _)| *method != "daf").map(|(_, record)| record);
    add(
        "least footprint of the others".to_owned(),
        others().map(|o| o.reserved.as_f64()).fold(f64::INFINITY, f64::min),
    );
    add("longest time".to_owned(), found.iter().map(|(_, record)| record.iteration.seconds()).fold(0.0, f64::max));
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
