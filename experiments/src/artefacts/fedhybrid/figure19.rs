//! Figure 19: the memory budget predictor on phones in use.

pub(crate) mod traces;
pub(crate) mod training;

use haversack_policies::budget::{BudgetRule, Sample, SwapKind};
use haversack_policies::fedhybrid::predictor::{Parameters, Predictor};
use haversack_training::{AtRest, watch};

use super::setting::{MOBILENET, PICTURES, S22, on_phone, scenario};
use crate::artefacts::prelude::*;
use traces::{LENGTH, ROUNDS, Trace, traces, with_starts};
use training::{RULES, train};

/// Training begins after this time, in which the predictor observes the phone; earlier budgets are not used.
const WATCHED: Nanos = Nanos(120 * 1_000_000_000);
/// Iterations of an epoch, which is the predictor's default history.
const EPOCH: u64 = 10;
/// Traces of figure 19b.
const TRACES: usize = 30;

/// Available memory, and the prediction.
#[derive(Clone, Copy, Debug)]
struct WatchedSecond {
    time: Nanos,
    available: Bytes,
    predicted: Bytes,
}

/// The predictions for each second of `trace`, without training.
fn follow(context: &Context<'_>, trace: &Trace) -> Result<Vec<WatchedSecond>> {
    let scenario = scenario(context, S22, MOBILENET.0, PICTURES, "fedhybrid")?;
    let plan = context.plan(&trace.on(on_phone(context, scenario, None)?))?;
    let phone = plan.resolved.phone.as_deref().context("the run is not on a phone in use")?;
    let swap = if phone.memory.zram > Bytes::ZERO { SwapKind::Zram } else { SwapKind::Flash };
    let mut predictor = Predictor::new(Parameters::for_epoch(plan.unbounded_time() * EPOCH));
    let mut points = Vec::new();
    for sample in watch(AtRest::of(phone)?, phone, LENGTH)? {
        let (time, available) = (sample.time, sample.available);
        let (watermark_high, adjustments) = (sample.watermark_high, sample.adjustments.as_slice());
        predictor.observe(&Sample { time, available, watermark_high, swap, adjustments })?;
        let predicted = predictor.prediction().unwrap_or(available);
        points.push(WatchedSecond { time, available, predicted });
    }
    Ok(points)
}

/// The largest less the smallest, in MB.
fn spread(values: impl Iterator<Item = Bytes> + Clone) -> Option<f64> {
    Some((values.clone().max()? - values.min()?).megabytes())
}

/// The available memory of one trace's phone, and the predictions.
struct Followed<'a> {
    trace: &'a Trace,
    points: Vec<WatchedSecond>,
    /// The difference between the largest and the smallest value after training could begin, in MB: of available
    /// memory, and of the predicted budget; the means over all starts that are run.
    spreads: [f64; 2],
}

impl<'a> Followed<'a> {
    fn new(context: &Context<'_>, trace: &'a Trace) -> Result<Self> {
        let starts = trace.starts(context.full);
        let followed: Vec<Vec<WatchedSecond>> =
            starts.iter().map(|start| follow(context, start)).collect::<Result<_>>()?;
        let spread_of = |of: fn(&WatchedSecond) -> Bytes| {
            let training = |points: &Vec<WatchedSecond>| {
                spread(points.iter().filter(|point| point.time >= WATCHED).map(of)).unwrap_or_default()
            };
            mean(&followed.iter().map(training).collect::<Vec<_>>()).unwrap_or_default()
        };
        let spreads = [spread_of(|point| point.available), spread_of(|point| point.predicted)];
        Ok(Self { trace, points: followed.into_iter().next().unwrap_or_default(), spreads })
    }
}

pub(super) fn budgets(context: &Context<'_>) -> Result<Outcome> {
    let traces = traces(context, TRACES, LENGTH)?;
    let mut followed: Vec<Followed<'_>> =
        traces.par_iter().map(|trace| Followed::new(context, trace)).collect::<Result<_, _>>()?;
    let mean = |of: usize| followed.iter().map(|one| one.spreads[of]).sum::<f64>() / followed.len() as f64;
    let means = [mean(0), mean(1)];
    let mut outcome = Outcome::of("user,time_s,available_mb,predicted_mb");
    for (method, mean) in ["actual", "predicted"].into_iter().zip(means) {
        let id = format!("fedhybrid/figure19a/s22-example-trace/{method}/available-memory-spread");
        outcome.remark(
            &id,
            format!(
                "the mean of {} traces, over the {:.0} s after the predictor has watched for {:.0}",
                traces.len(),
                (LENGTH - WATCHED).seconds(),
                WATCHED.seconds()
            ),
        );
        outcome.number(id, mean);
    }
    for one in &followed {
        for point in &one.points {
            let memory = [point.available, point.predicted].map(Bytes::megabytes);
            outcome.row((one.trace.user.as_str(), point.time.seconds(), memory))?;
        }
    }
    // Sorted by the spread of available memory; the example is the trace with the spread nearest to the mean.
    followed.sort_by(|a, b| a.spreads[0].total_cmp(&b.spreads[0]));
    let distance = |one: &Followed<'_>| (one.spreads[0] - means[0]).abs();
    if let Some(example) = followed.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))) {
        outcome.words("user of the example", &example.trace.user);
        draw(&mut outcome, example, &followed);
    }
    Ok(outcome)
}

fn draw(outcome: &mut Outcome, example: &Followed<'_>, all: &[Followed<'_>]) {
    let curve = |of: fn(&WatchedSecond) -> Bytes| -> Vec<(f64, f64)> {
        example.points.iter().map(|point| (point.time.seconds(), of(point).as_f64() / 1e9)).collect()
    };
    let names = ["available memory", "predicted budget"];
    let followed = [curve(|point| point.available), curve(|point| point.predicted)];
    let both = || followed.iter().flatten().map(|point| point.1);
    let begins = [both().fold(f64::INFINITY, f64::min), both().fold(0.0, f64::max)].map(|y| (WATCHED.seconds(), y));
    let (mut lines, mut spreads) = (Lines::new(), Lines::new());
    for (of, (name, points)) in names.into_iter().zip(followed).enumerate() {
        lines = lines.series(Series::new(name, points).stroke(Stroke::Step).unmarked());
        let points: Vec<_> = (1..).zip(all).map(|(place, one)| (f64::from(place), one.spreads[of])).collect();
        spreads = spreads.series(Series::new(name, points));
    }
    let lines = lines.series(Series::new("training could begin", begins).unmarked());
    outcome.panel("one phone", lines, axis("time", "s").range(0.0, LENGTH.seconds()), axis("memory", "GB"));
    let traces = Axis::new("traces, by how far available memory moves").range(0.0, all.len() as f64);
    outcome.panel("all thirty", spreads, traces, from_zero("largest less smallest", "MB"));
}

/// The rounds of one trace under each rule.
type OfTrace = Vec<Option<Record>>;

pub(super) fn rules(context: &Context<'_>) -> Result<Outcome> {
    let traces = with_starts(traces(context, TRACES, ROUNDS)?, context.full);
    let under_all = |trace| RULES.iter().map(|(rule, _)| train(context, trace, &[("budget", rule)])).collect();
    let found: Vec<OfTrace> = traces.par_iter().map(under_all).collect::<Result<_>>()?;
    let mut outcome = Outcome::of(
        "user,rule,mean_iteration_s,ratio,first_budget_mb,planning_s,budgets_decided,page_faults,trainer_killed,apps_killed",
    );
    for (trace, of_trace) in traces.iter().zip(&found) {
        for (rule, (name, _)) in RULES.iter().enumerate() {
            let record = of_trace[rule].as_ref();
            let budget = record.and_then(|record| record.planned.first()).map(|budget| budget.megabytes());
            let counts = [training::budgets, training::faults, training::kills, training::apps_killed];
            let planning = record.map(training::planning);
            let time = [record.map(training::round), ratio(of_trace, rule), budget, planning];
            outcome.row((trace.user.as_str(), *name, time, counts.map(|count| record.map(count))))?;
        }
    }
    let rows = [(1, "initial-memory-as-budget"), (2, "new-budget-every-round")];
    let mut papers = [None; RULES.len()];
    for (rule, method) in rows {
        let id = format!("fedhybrid/figure19b/s22-30-traces/{method}/latency-ratio");
        papers[rule] = context.paper(&id)?;
        let ratios: Vec<f64> = found.iter().filter_map(|of_trace| ratio(of_trace, rule)).collect();
        let mean = mean_ratio(&found, rule);
        outcome.answer(&id, mean.map_or(Answer::Never, Answer::Number));
        let largest = ratios.iter().copied().max_by(f64::total_cmp).map(|most| format!("{most:.2} at most"));
        let above = ratios.iter().filter(|ratio| **ratio > 1.0).count();
        let never = found.len() - ratios.len();
        let ended = (!ratios.is_empty()).then(|| format!("above one on {above} of {} traces", ratios.len()));
        let endless = (never > 0).then(|| format!("no ratio on {never}, where training never ends"));
        outcome.remark(&id, [ended, largest, endless].into_iter().flatten().collect::<Vec<_>>().join("; "));
    }
    draw_rules(&mut outcome, &found, papers);
    offer(&mut outcome, &found, papers);
    Ok(outcome)
}

/// The mean time of the traces that end under both rules, relative to that under the predictor.
fn mean_ratio(found: &[OfTrace], rule: usize) -> Option<f64> {
    let both = found.iter().filter_map(|of_trace| Some((of_trace[rule].as_ref()?, of_trace[0].as_ref()?)));
    let (mut times, mut predicted) = (0.0, 0.0);
    for (record, under_predictor) in both {
        times += training::time(record);
        predicted += training::time(under_predictor);
    }
    (predicted > 0.0).then(|| times / predicted)
}

/// The time of an iteration relative to that under the predictor.
fn ratio(of_trace: &OfTrace, rule: usize) -> Option<f64> {
    let round = |rule: usize| of_trace[rule].as_ref().map(training::round);
    Some(round(rule)? / round(0)?)
}

fn draw_rules(outcome: &mut Outcome, found: &[OfTrace], papers: [Option<f64>; RULES.len()]) {
    let quantities: [(Axis, Quantity<Record>); 2] = [
        (axis("time of a round", "s"), ("time", training::round)),
        (axis("page faults in five rounds", ""), ("page faults", training::faults)),
    ];
    for (axis, (title, value)) in quantities {
        let mut bars = Bars::new(["mean of the traces", "largest"]);
        for (rule, (_, name)) in RULES.iter().enumerate() {
            let values: Vec<f64> = found.iter().filter_map(|of_trace| of_trace[rule].as_ref().map(value)).collect();
            let largest = values.iter().copied().max_by(f64::total_cmp);
            bars = bars.series(BarSeries::new(*name, [mean(&values), largest]));
        }
        outcome.bars(title, bars, axis.from_zero());
    }
    let mut ratios = Lines::new();
    for (rule, (_, name)) in RULES.iter().enumerate().skip(1) {
        let mut sorted: Vec<f64> = found.iter().filter_map(|of_trace| ratio(of_trace, rule)).collect();
        sorted.sort_by(f64::total_cmp);
        let points: Vec<_> = sorted.iter().enumerate().map(|(index, ratio)| ((index + 1) as f64, *ratio)).collect();
        ratios = ratios.series(Series::new(*name, points));
        if let Some(paper) = papers[rule] {
            let largest = Series::new(*name, [(found.len() as f64, paper)]);
            ratios = ratios.series(largest.look(Look::Hatched));
        }
    }
    let traces = Axis::new("traces, by their ratio").range(1.0, found.len() as f64);
    outcome.panel("against the predictor", ratios, traces, axis("time of an iteration", "x"));
}

/// The quantities that the notes on the rules quote.
fn offer(outcome: &mut Outcome, found: &[OfTrace], papers: [Option<f64>; RULES.len()]) {
    let ended = |rule: usize| found.iter().filter_map(move |of_trace| of_trace[rule].as_ref());
    let never = (0..RULES.len())
        .map(|rule| (RULES[rule].1, found.len() - ended(rule).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{count} of {} traces under `{name}`", found.len()));
    let killed: f64 = found.iter().flatten().flatten().map(training::kills).sum();
    let apps: f64 = ended(0).map(training::apps_killed).sum();
    outcome.quantity("kills of the trainer", "", [killed]);
    outcome.list("rounds that never end", never);
    let mean = |rule: usize| mean_ratio(found, rule);
    if mean(1).zip(papers[1]).is_some_and(|(own, paper)| own < paper / 2.0) {
        outcome.quantity("apps killed under the predictor", "", [apps / ended(0).count().max(1) as f64]);
    }
    if mean(2).zip(papers[2]).is_some_and(|(own, paper)| own > paper) {
        outcome.quantity("a new budget costs more", "", mean(2));
    }
}
