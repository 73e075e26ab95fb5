//! DAF's methods: their memory and time, and their accuracies on stand-ins for the paper's networks and data sets.

use haversack_workloads::Role;

use super::setting::{
    BOARD, DafNetwork, GPT2, KINDS, METHODS, NETWORKS, PLATFORMS, RESNET_CIFAR, ROBERTA, declare_attention, of_method,
    reported, scenario, store,
};
use crate::artefacts::learning::{
    Compared, Training, answer_accuracy, compare, fronts, learn, stand_in_words, stand_ins, title, with_seeds,
};
use crate::artefacts::prelude::*;
use crate::papers::reference::{Reference, Role as RowRole};
use crate::train::StandIn;

/// The kind of the network's stand-in.
fn kind(scenario: &Scenario) -> &'static str {
    KINDS[usize::from(scenario.input.is_some())]
}

/// An iteration under `method`, for DAF with the bits that were measured on the network's stand-in.
fn iteration(context: &Context<'_>, scenario: &Scenario, method: &str) -> Result<Record> {
    context.run(&of_method(context, kind(scenario), scenario, method)?)
}

/// A way to train `stand_in`, by name.
fn way(name: impl Into<String>, stand_in: &StandIn, scenario: Scenario) -> (String, Training) {
    (name.into(), Training { stand_in: stand_in.clone(), scenario })
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
    let learned = of_methods(context)?;
    answer(context, &mut outcome, &learned);
    bars(&mut outcome, &learned);
    draw(outcome, &learned, 0)
}

/// Figure 1a: the parts of RoBERTa-base's training memory.
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

/// Original's footprint relative to a method's memory: for DAF as the paper counts it and by equal
/// definitions, and for ActNN.
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

/// Figure 8: the memory reduction of DAF; stand-ins under Original, ActNN and DAF, without a budget and with
/// several activation budgets.
pub(super) fn figure8(context: &Context<'_>) -> Result<Outcome> {
    let header = "daf_store,daf_footprint,actnn_footprint";
    let outcome = swept(context, header, |scenario, _| reductions(context, scenario))?;
    let budgets = context.reading_numbers("activation-budgets")?;
    let learned = learned(context, |kind, stand_in| {
        let method = |(method, name)| Ok(way(name, stand_in, of_method(context, kind, &stand_in.scenario, method)?));
        let methods = [("original", "Original"), ("actnn", "ActNN"), ("daf", "DAF")];
        let mut ways = methods.into_iter().map(method).collect::<Result<Vec<_>>>()?;
        for &percent in budgets {
            let activation_budget = Some(Budget::Percent(percent));
            let scenario = Scenario { activation_budget, ..under(&stand_in.scenario, "daf", &[]) };
            ways.push(way(format!("DAF, {percent} % for activations"), stand_in, scenario));
        }
        Ok(ways)
    })?;
    draw(outcome, &learned, 2)
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
    let mut learned = learned(context, |kind, stand_in| {
        let own = stand_in.scenario.batch;
        let mut ways = Vec::new();
        for batch in batches.iter().map(|&batch| batch as u64) {
            let stand_in = if batch == own { stand_in.clone() } else { stand_in.clone().for_batch(batch) };
            for (method, name) in [("original", "Original"), ("daf", "DAF")] {
                let scenario = of_method(context, kind, &stand_in.scenario, method)?;
                ways.push(way(format!("{name}, batch {batch}"), &stand_in, scenario));
            }
        }
        Ok(ways)
    })?;
    // For each size, DAF is compared with Original.
    learned.iter_mut().for_each(|one| one.group = 2);
    draw(outcome, &learned, 1)
}

/// `scenario` under `method`; methods with a time budget get the declared one.
fn timed(context: &Context<'_>, kind: &str, scenario: &Scenario, method: &str) -> Result<Scenario> {
    let mut timed = of_method(context, kind, scenario, method)?;
    if matches!(method, "daf" | "elastictrainer") {
        let share = context.reading_number("time-budget")? / 100.0;
        let original = context.run(scenario)?.iteration;
        timed.time_budget = Some(Nanos((original.0 as f64 * share) as u64));
    }
    Ok(timed)
}

/// An iteration of that scenario.
fn timed_iteration(context: &Context<'_>, scenario: &Scenario, method: &str) -> Result<Record> {
    context.run(&timed(context, kind(scenario), scenario, method)?)
}

/// Figure 11: memory and time of all methods, and their breakdowns.
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
    let learned = learned(context, |kind, stand_in: &StandIn| {
        let of = |(method, name)| Ok(way(name, stand_in, timed(context, kind, &stand_in.scenario, method)?));
        METHODS.into_iter().map(of).collect()
    })?;
    draw(outcome, &learned, 2)
}

/// Figure 14: energy of an iteration under all methods.
pub(super) fn figure14(context: &Context<'_>) -> Result<Outcome> {
    swept(context, "energy_j,iteration_ms", |scenario, ids| {
        let record = timed_iteration(context, scenario, &ids[0])?;
        Ok([record.energy.0, record.iteration.seconds() * 1e3])
    })
}

/// The method that every ratio is relative to.
const ORIGINAL: &str = "original";

/// The subject's own *Original* row times one ratio per method: the median over the method's `fit` rows.
///
/// `None` for Original rows and for accuracies.
pub(super) fn null(reference: &Reference, row: &ReferenceRow) -> Option<f64> {
    if row.method == ORIGINAL || row.metric != "memory" {
        return None;
    }
    let rows = || reference.of(row.paper, &row.artefact).filter(|other| other.metric == row.metric);
    let original = |subject: &str| {
        let same = |other: &&ReferenceRow| other.subject == subject && other.method == ORIGINAL;
        rows().find(same).and_then(ReferenceRow::number)
    };
    let ratios = rows().filter(|other| other.role() == RowRole::Fit && other.method == row.method);
    let ratios = ratios.filter_map(|other| Some(other.number()? / original(&other.subject)?)).collect();
    Some(original(&row.subject)? * median(ratios)?)
}

/// The row about accuracy.
const AT_EQUAL_TIME: &str = "daf/figure10/all/daf>elastictrainer,fixed8/accuracy-at-equal-time";

/// The networks of the figure.
const SHOWN: [DafNetwork; 3] = [RESNET_CIFAR, ROBERTA, GPT2];

/// The speed-up of DAF over Original: the platform, the network's name, and the ratio.
pub(super) type Speedup = (&'static str, &'static str, f64);

/// Every network and platform.
pub(super) fn speedups(context: &Context<'_>) -> Result<Vec<Speedup>> {
    let share = context.reading_number("kept-importance")?.to_string();
    let batches = context.reading_numbers("figure10-batches")?;
    let mut found = Vec::new();
    for (network, &batch) in SHOWN.into_iter().zip(batches) {
        for &device in PLATFORMS {
            let mut scenario = Scenario { batch: batch as u64, ..Scenario::new(device, network.model) };
            declare_attention(context, network, &mut scenario)?;
            let original = context.run(&scenario)?.iteration.seconds();
            let daf = under(&scenario, "daf", &[("bits", "32"), ("trained_share", &share)]);
            found.push((device, network.name, original / context.run(&daf)?.iteration.seconds()));
        }
    }
    Ok(found)
}

pub(super) fn figure10(context: &Context<'_>) -> Result<Outcome> {
    let mut records = Records::of("device,network,speedup");
    speedups(context)?.into_iter().try_for_each(|found| records.row(found))?;
    let mut outcome = Outcome::default();
    let learned = at_equal_time(context)?;
    compare_at_equal_time(&mut outcome, AT_EQUAL_TIME, &learned);
    let mut outcome = show(context, records, outcome)?;
    draw_over_time(&mut outcome, &learned);
    draw(outcome, &learned, 0)
}

pub(super) fn figure1b(context: &Context<'_>) -> Result<Outcome> {
    let found = of_methods(context)?;
    let mut records = Records::of("network,method,relative_time,relative_memory,points_lost,drawn_time");
    for one in &found {
        for (name, taught) in &one.ways {
            let (Ok(taught), Some(original)) = (taught, one.first()) else { continue };
            let (time, memory) = (taught.time_s() / original.time_s(), taught.memory_mb / original.memory_mb);
            let lost = mean(&original.accuracies(Part::Test)).zip(mean(&taught.accuracies(Part::Test)));
            let lost = lost.map(|(all, own)| all - own);
            let drawn = taught.at_chance().is_none().then_some(time);
            records.row(([one.title.as_str(), name.as_str()], [time, memory], lost, drawn))?;
        }
    }
    draw(show(context, records, Outcome::default())?, &found, 2)
}

/// The networks that the stand-ins of each kind replace.
const STAND_FOR: [&str; 2] = ["ResNet-18", "RoBERTa-base and GPT-2 medium"];

/// Every stand-in of the artefact, trained in the ways that `ways` gives.
pub(super) fn learned(
    context: &Context<'_>,
    ways: impl Fn(&str, &StandIn) -> Result<Vec<(String, Training)>>,
) -> Result<Vec<Compared>> {
    let (mut found, mut trainings) = (Vec::new(), Vec::new());
    for kind in KINDS {
        for stand_in in stand_ins(context, kind)? {
            let (names, mut own): (Vec<_>, Vec<_>) = ways(kind, &stand_in)?.into_iter().unzip();
            trainings.append(&mut own);
            found.push((kind, stand_in, names));
        }
    }
    ensure!(!found.is_empty(), "no stand-in is declared for the artefact");
    let mut taught = learn(context, &trainings)?.into_iter();
    let of = |(kind, stand_in, names): (_, _, Vec<String>)| {
        let ways: Vec<_> = names.into_iter().zip(taught.by_ref()).collect();
        let (group, stand_in) = (ways.len(), with_seeds(stand_in, ways.iter().map(|(_, taught)| taught)));
        let stands_for = STAND_FOR[usize::from(kind != KINDS[0])];
        let title = title(&stand_in.scenario.model, &stand_in.data, stands_for);
        Compared { kind, stand_in, title, ways, group }
    };
    Ok(found.into_iter().map(of).collect())
}

/// Every stand-in of the artefact under every method, in their order.
pub(super) fn of_methods(context: &Context<'_>) -> Result<Vec<Compared>> {
    learned(context, |kind, stand_in| {
        let of = |(method, name)| Ok(way(name, stand_in, of_method(context, kind, &stand_in.scenario, method)?));
        METHODS.into_iter().map(of).collect()
    })
}

/// Answers the accuracies of table 1: Original's is an input, and the others are judged relative to it.
pub(super) fn answer(context: &Context<'_>, outcome: &mut Outcome, found: &[Compared]) {
    for row in context.rows.iter().filter(|row| row.metric == "accuracy") {
        let kind = if row.subject.starts_with("resnet") { KINDS[0] } else { KINDS[1] };
        let place = METHODS.iter().position(|(method, _)| *method == row.method);
        let Some((one, place)) = found.iter().find(|one| one.kind == kind).zip(place) else { continue };
        let of = format!("stand-in {}", stand_in_words(&one.stand_in));
        let first = (METHODS[0].1, &one.ways[0].1);
        answer_accuracy(outcome, &row.id, &one.ways[place].1, &of, &first, place == 0);
    }
}

/// Draws accuracy against the first of the costs, memory and simulated time, with fronts, and names the stand-ins in the
/// figure.
pub(super) fn draw(mut outcome: Outcome, found: &[Compared], costs: usize) -> Result<Outcome> {
    let named: Vec<String> = found.iter().map(|one| stand_in_words(&one.stand_in)).collect();
    outcome.words("stand-ins", named.join("; "));
    compare(&mut outcome, found)?;
    fronts(&mut outcome, found, costs);
    Ok(outcome)
}

/// Draws the accuracies as bars, the mean over the seeds.
pub(super) fn bars(outcome: &mut Outcome, found: &[Compared]) {
    let series = |place: usize, name: &str| {
        let of = |one: &Compared| {
            one.ways.get(place)?.1.as_ref().ok().and_then(|taught| mean(&taught.accuracies(Part::Test)))
        };
        BarSeries::new(name, found.iter().map(of).collect::<Vec<_>>())
    };
    if found.iter().all(|one| one.first().is_none()) {
        return;
    }
    let bars = Bars::new(found.iter().filter_map(|one| one.title.split(" (").next()));
    let bars = METHODS.into_iter().enumerate().fold(bars, |bars, (place, (_, name))| bars.series(series(place, name)));
    outcome.bars("accuracy of stand-ins", bars, from_zero("test accuracy", "%"));
}

/// The methods with display names; those with a time budget use it. DAF keeps everything whole, because
/// memory is not short.
const WAYS: [(&str, &str); 4] =
    [("original", "Original"), ("fixed8", "Fixed 8 Bits"), ("elastictrainer", "ElasticTrainer"), ("daf", DAF)];
const DAF: &str = "DAF";

/// The gap to Original's accuracy at which DAF counts as having reached it, in points.
const DROP: f64 = 1.0;

/// Accuracies by time: one course for each seed.
type Course = Vec<(f64, f64)>;

/// Every stand-in trained with every method for the time that Original takes.
pub(super) fn at_equal_time(context: &Context<'_>) -> Result<Vec<Compared>> {
    let share = context.reading_number("time-budget")? / 100.0;
    learned(context, |_, stand_in| {
        let original = context.run(&stand_in.scenario)?.iteration;
        let of = |(method, name): (&str, &str)| {
            let mut scenario = under(&stand_in.scenario, method, if method == "daf" { &[("bits", "32")] } else { &[] });
            if matches!(method, "daf" | "elastictrainer") {
                scenario.time_budget = Some(Nanos((original.0 as f64 * share) as u64));
            }
            let ratio = original.seconds() / context.run(&scenario)?.iteration.seconds();
            // The number of epochs, each `ratio` times as fast as Original's, that fit into Original's time.
            let epochs = (f64::from(stand_in.epochs()) * ratio + 1e-6).floor().max(1.0);
            Ok(way(name, &stand_in.clone().for_epochs(epochs as u32), scenario))
        };
        WAYS.into_iter().map(of).collect()
    })
}

/// For each seed of DAF, the first time within a point of Original's final accuracy, and the accuracy
/// then; `None` if never.
fn arrivals(one: &Compared) -> Vec<Option<(f64, f64)>> {
    let (Some(original), Some(daf)) = (one.first(), one.way(DAF)) else { return Vec::new() };
    let arrives = |(course, end): (Course, f64)| course.into_iter().find(|(_, accuracy)| *accuracy >= end - DROP);
    daf.courses().into_iter().zip(original.accuracies(Part::Test)).map(arrives).collect()
}

/// The accuracy of a course at a time; `None` before its first epoch has ended.
fn at(course: &Course, time: f64) -> Option<f64> {
    course.iter().rfind(|(ended, _)| *ended <= time).map(|(_, accuracy)| *accuracy)
}

/// Offers the quantities of the predicate for each stand-in: the fraction of the seeds in which DAF is above
/// another method at the time when DAF reaches Original. Seeds in which DAF never does, or the other diverges, do
/// not count as above.
pub(super) fn compare_at_equal_time(outcome: &mut Outcome, row: &str, found: &[Compared]) {
    if let Some(why) = found.iter().find_map(Compared::failure) {
        return outcome.not_modelled(row, format!("its stand-in: {why}"));
    }
    let mut said = Vec::new();
    for other in ["ElasticTrainer", "Fixed 8 Bits"] {
        let mut shares = Vec::new();
        for one in found {
            let (arrivals, courses) = (arrivals(one), one.way(other).map(|way| way.courses()).unwrap_or_default());
            let above = arrivals.iter().zip(&courses).filter(|(arrival, course)| {
                arrival.is_some_and(|(time, accuracy)| at(course, time).is_none_or(|own| accuracy > own))
            });
            let above = above.count();
            shares.push(above as f64 / one.stand_in.seeds.len().max(1) as f64);
            let there: Vec<f64> = arrivals.iter().flatten().map(|(time, _)| *time).collect();
            let others: Vec<f64> =
                arrivals.iter().flatten().zip(&courses).filter_map(|((time, _), course)| at(course, *time)).collect();
            let seeds = one.stand_in.seeds.len();
            let when = mean(&there).map_or_else(
                || "DAF is never within a point of Original".to_owned(),
                |time| format!("DAF is within a point of Original after {time:.1} s in {} of them", there.len()),
            );
            let then = mean(&others).map_or_else(String::new, |mean| format!(", when {other} is at {mean:.1} %"));
            let of = stand_in_words(&one.stand_in);
            said.push(format!("{of}: DAF above {other} in {above} of {seeds} seeds; {when}{then}"));
        }
        outcome.quantity(&format!("share of seeds in which DAF is above {other}"), "", shares);
    }
    outcome.remark(row, said.join("; "));
}

/// Draws accuracy by simulated time.
pub(super) fn draw_over_time(outcome: &mut Outcome, found: &[Compared]) {
    for one in found.iter().filter(|one| one.ways.iter().any(|(_, taught)| taught.is_ok())) {
        let taught = one.ways.iter().filter_map(|(name, taught)| Some((name.as_str(), taught.as_ref().ok()?)));
        let lines = taught.map(|(name, taught)| Series::new(name, taught.curve())).fold(Lines::new(), Lines::series);
        outcome.panel(&one.title, lines, from_zero("simulated time", "s"), test_accuracy());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_has_one_ratio() {
        let reference = Reference::load().unwrap();
        let null = |id: &str| null(&reference, reference.row(id)?);
        // Fixed 8 Bits over Original on its fit rows: 670 / 1196 = 0.5602, 457 / 917 = 0.4984, 2390 / 3470 = 0.6888,
        // 5928 / 8385 = 0.7070; their median is (0.5602 + 0.6888) / 2 = 0.6245, and 3472 times that 2168.2.
        let fixed = null("daf/table1/roberta-base-mrpc/fixed8/memory").unwrap();
        assert!((fixed - 2168.2).abs() < 0.5, "{fixed}");
        assert_eq!(null("daf/table1/roberta-base-mrpc/original/memory"), None);
        assert_eq!(null("daf/table1/roberta-base-mrpc/fixed8/accuracy"), None);
    }
}
