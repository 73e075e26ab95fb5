//! Memory, time and energy of the methods: figures 1a, 8, 9, 11 and 14, table 1 and the abstract.

use haversack_workloads::Role;

use super::accuracy::{self, KINDS};
use super::figure10::speedups;
use super::null::null;
use super::setting::{BOARD, METHODS, NETWORKS, ROBERTA, of_method, reported, scenario, store};
use crate::artefacts::learning::Training;
use crate::artefacts::prelude::*;
use crate::train::StandIn;

/// An iteration under `method`, DAF with the bits that were measured on what stands in for the network.
fn iteration(context: &Context<'_>, scenario: &Scenario, method: &str) -> Result<Record> {
    let kind = if scenario.input.is_none() { KINDS[0] } else { KINDS[1] };
    context.run(&of_method(context, kind, scenario, method)?)
}

/// Table 1: five methods on eight data sets.
pub(super) fn table1(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for network in NETWORKS {
        let plain = scenario(context, BOARD, network)?;
        let original = iteration(context, &plain, "original")?.reserved.megabytes();
        let daf = iteration(context, &plain, "daf")?;
        outcome.summary.push(format!(
            "table 1, {}: Original's footprint is {:.1} times DAF's store (the paper's way of counting) and {:.1} times DAF's whole footprint",
            network.name,
            original / reported(&daf).megabytes(),
            original / daf.reserved.megabytes(),
        ));
    }
    outcome.nulls_of(&context.rows, |row| null(context.reference, row));
    let records = records(context, "reported_mb,footprint_mb", |scenario, ids| {
        let record = iteration(context, scenario, &ids[1])?;
        Ok([reported(&record), record.reserved].map(Bytes::megabytes))
    })?;
    let mut outcome = show(context, records, outcome)?;
    let learned = accuracy::of_methods(context)?;
    accuracy::answer(context, &mut outcome, &learned);
    accuracy::bars(&mut outcome, &learned);
    accuracy::draw(outcome, &learned)
}

/// Figure 1a: what the memory of RoBERTa-base's training consists of.
pub(super) fn figure1a(context: &Context<'_>) -> Result<Outcome> {
    let plan = context.plan(&scenario(context, BOARD, ROBERTA)?)?;
    let record = plan.run()?;
    let (all, activations) = (record.reserved.megabytes(), record.peak_saved.megabytes());
    let weights = plan.graph.bytes_of(|role| matches!(role, Role::Parameter { .. } | Role::Buffer)).at(1) as f64 * 1e-6;
    let rest = (all - activations - weights).max(0.0);
    let mut records = Records::of("part,name,memory_mb,share");
    records.row(("activations", "activations", activations, activations / all * 100.0))?;
    records.row(("weights", "weights", weights, None::<f64>))?;
    records.row(("rest", "gradients, temporaries, fragments", rest, None::<f64>))?;
    show(context, records, Outcome::default())
}

/// Original's footprint over a method's memory: DAF's as the paper counts and like for like, and ActNN's.
fn reductions(context: &Context<'_>, scenario: &Scenario) -> Result<[f64; 3]> {
    let run = |method: &str| iteration(context, scenario, method);
    let (original, actnn, daf) = (run("original")?, run("actnn")?, run("daf")?);
    let over = |memory: Bytes| original.reserved.as_f64() / memory.as_f64().max(1.0);
    Ok([reported(&daf), daf.reserved, actnn.reserved].map(over))
}

/// The abstract: the largest reduction of memory and the largest speed-up.
pub(super) fn headlines(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let best = speedups(context)?.iter().map(|one| one.2).fold(0.0, f64::max);
    outcome.number("daf/abstract/all/daf/speedup", best);
    let header = "daf_store,daf_footprint,actnn_footprint";
    show(context, records(context, header, |scenario, _| reductions(context, scenario))?, outcome)
}

/// Figure 8: how much less memory DAF takes; stand-ins under Original, ActNN and DAF without a budget and with several for
/// activations.
pub(super) fn figure8(context: &Context<'_>) -> Result<Outcome> {
    let header = "daf_store,daf_footprint,actnn_footprint";
    let outcome = swept(context, header, |scenario, _| reductions(context, scenario))?;
    let budgets = context.reading_numbers("activation-budgets")?;
    let learned = accuracy::learned(context, |kind, stand_in| {
        let way = |name: String, scenario| (name, Training { stand_in: stand_in.clone(), scenario });
        let method = |(method, name): (&str, &str)| {
            Ok(way(name.to_owned(), of_method(context, kind, &stand_in.scenario, method)?))
        };
        let methods = [("original", "Original"), ("actnn", "ActNN"), ("daf", "DAF")];
        let mut ways = methods.into_iter().map(method).collect::<Result<Vec<_>>>()?;
        for &percent in budgets {
            let activation_budget = Some(Budget::Percent(percent));
            let scenario = Scenario { activation_budget, ..under(&stand_in.scenario, "daf", &[]) };
            ways.push(way(format!("DAF, {percent} % for activations"), scenario));
        }
        Ok(ways)
    })?;
    accuracy::draw(outcome, &learned)
}

/// Figure 9: the reduction over batch sizes; stand-ins under Original and DAF with mini-batches of each size.
pub(super) fn figure9(context: &Context<'_>) -> Result<Outcome> {
    let outcome = swept(context, "batch,original_mb,store_mb,reduction", |scenario, ids| {
        let batch = if scenario.input.is_none() { "resnet-batch" } else { "roberta-batch" };
        let batch = context.reading_number(batch)? * ids[1].parse::<f64>()?;
        let scenario = Scenario { batch: batch as u64, ..scenario.clone() };
        let original = context.run(&scenario)?.reserved.megabytes();
        let held = store(&iteration(context, &scenario, "daf")?).megabytes();
        Ok([batch, original, held, original / held])
    })?;
    let batches = context.reading_numbers("figure9-batches")?;
    let mut learned = accuracy::learned(context, |kind, stand_in| {
        let own = stand_in.scenario.batch;
        let mut ways = Vec::new();
        for batch in batches.iter().map(|&batch| batch as u64) {
            let stand_in = if batch == own { stand_in.clone() } else { stand_in.clone().for_batch(batch) };
            for (method, name) in [("original", "Original"), ("daf", "DAF")] {
                let scenario = of_method(context, kind, &stand_in.scenario, method)?;
                ways.push((format!("{name}, batch {batch}"), Training { stand_in: stand_in.clone(), scenario }));
            }
        }
        Ok(ways)
    })?;
    // Of each size DAF is compared with Original.
    learned.iter_mut().for_each(|one| one.group = 2);
    accuracy::draw(outcome, &learned)
}

/// `scenario` under `method`; those that know a time budget get the declared one.
fn timed(context: &Context<'_>, kind: &str, scenario: &Scenario, method: &str) -> Result<Scenario> {
    let mut timed = of_method(context, kind, scenario, method)?;
    if matches!(method, "daf" | "elastictrainer") {
        let share = context.reading_number("time-budget")? / 100.0;
        let original = context.run(scenario)?.iteration;
        timed.time_budget = Some(Nanos((original.0 as f64 * share) as u64));
    }
    Ok(timed)
}

/// An iteration under `method` likewise.
fn timed_iteration(context: &Context<'_>, scenario: &Scenario, method: &str) -> Result<Record> {
    let kind = if scenario.input.is_none() { KINDS[0] } else { KINDS[1] };
    context.run(&timed(context, kind, scenario, method)?)
}

/// Figure 11: memory and time of all methods side by side, and where both go.
pub(super) fn figure11(context: &Context<'_>) -> Result<Outcome> {
    let header =
        "footprint_mb,allocated_mb,fragments_mb,iteration_ms,control_ms,packing_ms,training_ms,footprint,time_s";
    let outcome = swept(context, header, |scenario, ids| {
        let record = timed_iteration(context, scenario, &ids[1])?;
        let counted = reported(&record).as_f64();
        let Record { reserved, peak_memory, iteration, breakdown, .. } = record;
        let memory = [reserved.megabytes(), peak_memory.megabytes(), reserved.megabytes() - peak_memory.megabytes()];
        let training = iteration.saturating_sub(breakdown.control).saturating_sub(breakdown.packing);
        let times = [iteration, breakdown.control, breakdown.packing, training].map(milliseconds);
        Ok((memory, times, counted, iteration.seconds()))
    })?;
    let learned = accuracy::learned(context, |kind, stand_in: &StandIn| {
        let way = |(method, name): (&str, &str)| {
            let scenario = timed(context, kind, &stand_in.scenario, method)?;
            Ok((name.to_owned(), Training { stand_in: stand_in.clone(), scenario }))
        };
        METHODS.into_iter().map(way).collect()
    })?;
    accuracy::draw(outcome, &learned)
}

/// Figure 14: energy of an iteration under all methods.
pub(super) fn figure14(context: &Context<'_>) -> Result<Outcome> {
    swept(context, "energy_j,iteration_ms", |scenario, ids| {
        let record = timed_iteration(context, scenario, &ids[0])?;
        Ok([record.energy.0, record.iteration.seconds() * 1e3])
    })
}
