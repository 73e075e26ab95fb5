//! Figure 11: memory and time of all methods side by side.

use haversack_training::{Breakdown, Record};

use super::accuracy::{self, Learned};
use super::setting::{BOARD, DafNetwork, METHODS, RESNET_CIFAR, ROBERTA, of_method, scenario};
use crate::artefacts::learning::Training;
use crate::artefacts::prelude::*;

/// One iteration of every method; those that know a time budget get the declared one.
pub(super) fn iterations(context: &Context<'_>, network: DafNetwork) -> Result<Vec<(&'static str, Record)>> {
    let plain = scenario(context, BOARD, network)?;
    let original = context.run(&plain)?.iteration;
    let share = context.reading_number("time-budget")? / 100.0;
    let mut found = Vec::new();
    for (method, _) in METHODS {
        let mut scenario = of_method(context, network.kind(), &plain, method)?;
        if matches!(method, "daf" | "elastictrainer") {
            scenario.time_budget = Some(Nanos((original.0 as f64 * share) as u64));
        }
        found.push((method, context.run(&scenario)?));
    }
    Ok(found)
}

/// Stand-ins under every method; those that know a time budget get the declared one.
fn learned(context: &Context<'_>) -> Result<Vec<Learned>> {
    let share = context.reading_number("time-budget")? / 100.0;
    accuracy::learned(context, |kind, stand_in| {
        let original = context.run(&stand_in.scenario)?.iteration;
        let way = |(method, name): (&str, &str)| {
            let mut scenario = of_method(context, kind, &stand_in.scenario, method)?;
            if matches!(method, "daf" | "elastictrainer") {
                scenario.time_budget = Some(Nanos((original.0 as f64 * share) as u64));
            }
            Ok((name.to_owned(), Training { stand_in: stand_in.clone(), scenario }))
        };
        METHODS.into_iter().map(way).collect()
    })
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome =
        Outcome::of("network,method,footprint_mb,allocated_mb,fragments_mb,iteration_ms,control_ms,packing_ms");
    let found = [RESNET_CIFAR, ROBERTA]
        .into_iter()
        .map(|network| Ok((network, iterations(context, network)?)))
        .collect::<Result<Vec<_>>>()?;
    for (network, records) in &found {
        let mut front = Front::new();
        for ((method, record), (_, name)) in records.iter().zip(METHODS) {
            let memory = [record.reserved.megabytes(), record.peak_memory.megabytes(), fragments(record)];
            let Breakdown { control, packing, .. } = record.breakdown;
            let times = [record.iteration, control, packing].map(milliseconds);
            outcome.row((network.name, *method, memory, times))?;
            front = front.cloud(name, vec![(times[0], memory[0])]);
        }
        outcome.panel(network.name, front, from_zero("time of an iteration", "ms"), from_zero("footprint", "MB"));
    }
    if let Some((_, records)) = found.first() {
        losses(&mut outcome, records);
    }
    accuracy::draw(context, &mut outcome, &learned(context)?)?;
    compare(&mut outcome, &found);
    context.judge(&mut outcome, "daf/figure11/all/daf/memory-and-time")?;
    Ok(outcome)
}

/// What is reserved beyond what is allocated, in megabytes.
fn fragments(record: &Record) -> f64 {
    record.reserved.megabytes() - record.peak_memory.megabytes()
}

/// What the predicate compares, network by network: each method's footprint and time, and their extremes.
fn compare(outcome: &mut Outcome, found: &[(DafNetwork, Vec<(&'static str, Record)>)]) {
    let footprint = |(_, record): &(&str, Record)| record.reserved.as_f64();
    let time = |(_, record): &(&str, Record)| record.iteration.seconds();
    for (place, (method, _)) in METHODS.into_iter().enumerate() {
        outcome.quantity(&format!("footprint of {method}"), "", found.iter().map(|(_, of)| footprint(&of[place])));
        outcome.quantity(&format!("time of {method}"), "", found.iter().map(|(_, of)| time(&of[place])));
    }
    let others = |of: &[(&str, Record)]| {
        of.iter().filter(|(method, _)| *method != "daf").map(footprint).fold(f64::INFINITY, f64::min)
    };
    outcome.quantity("least footprint of the others", "", found.iter().map(|(_, of)| others(of)));
    let longest = |of: &[(&str, Record)]| of.iter().map(time).fold(0.0, f64::max);
    outcome.quantity("longest time", "", found.iter().map(|(_, of)| longest(of)));
}

/// Where memory goes, and where time does: the graph's own, statistics, packing.
fn losses(outcome: &mut Outcome, found: &[(&'static str, Record)]) {
    let names = || METHODS.map(|(_, name)| name);
    type Part = fn(&(&'static str, Record)) -> f64;
    let parts: [(_, Part); 2] = [
        ("allocated", |(_, record)| record.peak_memory.megabytes()),
        ("fragments and caches", |(_, record)| fragments(record)),
    ];
    let memory = stacks(names(), found, parts);
    outcome.panel("ResNet-18: where memory goes", memory, Axis::default(), axis("footprint", "MB"));
    let parts: [(_, Part); 3] = [
        ("training", |(_, Record { iteration, breakdown: Breakdown { control, packing, .. }, .. })| {
            milliseconds(iteration.saturating_sub(*control).saturating_sub(*packing))
        }),
        ("statistics", |(_, record)| milliseconds(record.breakdown.control)),
        ("packing", |(_, record)| milliseconds(record.breakdown.packing)),
    ];
    outcome.panel(
        "ResNet-18: where time goes",
        stacks(names(), found, parts),
        Axis::default(),
        axis("iteration", "ms"),
    );
}
