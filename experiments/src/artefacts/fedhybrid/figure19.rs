//! Figure 19: the memory budget predictor on phones in use.

pub(crate) mod traces;
pub(crate) mod training;

use haversack_policies::budget::{BudgetRule, Sample, SwapKind};
use haversack_policies::fedhybrid::predictor::{Parameters, Predictor};
use haversack_training::watch;
use rayon::prelude::*;

use super::setting::{MOBILENET, PICTURES, S22, on_phone, on_testbed, scenario};
use crate::artefacts::prelude::*;
use traces::{LENGTH, Trace, traces};
use training::{RULES, Trained, train};

pub(super) static FIGURE19A: Artefact = Artefact {
    users: true,
    ..on_testbed("figure19a", "available memory and the predicted budget over a trace", budgets)
};
pub(super) static FIGURE19B: Artefact = Artefact {
    users: true,
    ..on_testbed("figure19b", "time and page faults under three rules for the budget, thirty traces", rules)
};

/// Training begins after this time, in which the predictor watches the phone; budgets before it are for nobody.
const WATCHED: Nanos = Nanos(120 * 1_000_000_000);
/// Iterations of an epoch, which is as far as the predictor looks back: its parameter's default.
const EPOCH: u64 = 10;
/// Traces of figure 19b.
const TRACES: usize = 30;

/// Available memory, and what the predictor makes of it.
#[derive(Clone, Copy, Debug)]
struct Point {
    time: Nanos,
    available: Bytes,
    predicted: Bytes,
}

/// What the predictor says each second of `trace`, while nobody trains.
fn follow(context: &Context<'_>, trace: &Trace) -> Result<Vec<Point>, ArtefactError> {
    let scenario = scenario(context, S22, MOBILENET.0, PICTURES, "fedhybrid")?;
    let plan = context.plan(&on_phone(context, scenario, Some(trace.apps.clone()))?)?;
    let phone = plan.resolved.phone.as_deref().ok_or_else(|| anyhow::anyhow!("the run is not on a phone in use"))?;
    let swap = if phone.memory.zram > Bytes::ZERO { SwapKind::Zram } else { SwapKind::Flash };
    let mut predictor = Predictor::new(Parameters::for_epoch(plan.unbounded_time() * EPOCH));
    let mut points = Vec::new();
    for sample in watch(phone, LENGTH)? {
        let (time, available) = (sample.time, sample.available);
        let (watermark_high, adjustments) = (sample.watermark_high, sample.adjustments.as_slice());
        predictor.observe(&Sample { time, available, watermark_high, swap, adjustments })?;
        let predicted = predictor.prediction().unwrap_or(available);
        points.push(Point { time, available, predicted });
    }
    Ok(points)
}

/// The largest less the smallest, in MB.
fn spread(values: impl Iterator<Item = Bytes> + Clone) -> Option<f64> {
    Some((values.clone().max()? - values.min()?).megabytes())
}

/// What the phone of one trace has, and what the predictor makes of it.
struct Followed<'a> {
    trace: &'a Trace,
    points: Vec<Point>,
    /// From the largest to the smallest once training could begin, in MB: of available memory, and of the predicted
    /// budget.
    spreads: [f64; 2],
}

impl<'a> Followed<'a> {
    fn new(context: &Context<'_>, trace: &'a Trace) -> Result<Self, ArtefactError> {
        let points = follow(context, trace)?;
        let training = || points.iter().filter(|point| point.time >= WATCHED);
        let spreads =
            [spread(training().map(|point| point.available)), spread(training().map(|point| point.predicted))];
        Ok(Self { trace, spreads: spreads.map(Option::unwrap_or_default), points })
    }
}

fn budgets(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let traces = traces(context.seed, TRACES)?;
    let mut followed: Vec<Followed<'_>> =
        traces.par_iter().map(|trace| Followed::new(context, trace)).collect::<Result<_, _>>()?;
    let mean = |of: usize| followed.iter().map(|one| one.spreads[of]).sum::<f64>() / TRACES as f64;
    let means = [mean(0), mean(1)];
    let mut outcome = Outcome::default();
    let mut words = Vec::new();
    for (method, mean) in ["actual", "predicted"].into_iter().zip(means) {
        let id = format!("fedhybrid/figure19a/s22-example-trace/{method}/available-memory-spread");
        let paper = context.row(&id)?.number().map_or_else(String::new, |mb| format!(" ({mb} in the paper)"));
        words.push(format!("{method} {mean:.0} MB{paper}"));
        outcome.remark(
            &id,
            format!(
                "the mean of {TRACES} traces, over the {:.0} s after the predictor has watched for {:.0}",
                (LENGTH - WATCHED).seconds(),
                WATCHED.seconds()
            ),
        );
        outcome.number(id, mean);
    }
    let mut table = Table::new(["user", "time_s", "available_mb", "predicted_mb"]);
    for one in &followed {
        for point in &one.points {
            table.push([
                one.trace.user.as_str().into(),
                point.time.seconds().into(),
                point.available.megabytes().into(),
                point.predicted.megabytes().into(),
            ])?;
        }
    }
    outcome.table = Some(table);
    // By how much available memory moves; the example is the trace in which it moves most nearly as in the mean.
    followed.sort_by(|a, b| a.spreads[0].total_cmp(&b.spreads[0]));
    let distance = |one: &Followed<'_>| (one.spreads[0] - means[0]).abs();
    let example = followed.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
    outcome.figure = example.map(|example| draw(example, &followed, &words));
    Ok(outcome)
}

fn draw(example: &Followed<'_>, all: &[Followed<'_>], means: &[String]) -> Figure {
    let curve = |of: fn(&Point) -> Bytes| -> Vec<(f64, f64)> {
        example.points.iter().map(|point| (point.time.seconds(), of(point).as_f64() / 1e9)).collect()
    };
    let (available, predicted) = (curve(|point| point.available), curve(|point| point.predicted));
    let both = || available.iter().chain(&predicted).map(|point| point.1);
    let begins = [both().fold(f64::INFINITY, f64::min), both().fold(0.0, f64::max)].map(|y| (WATCHED.seconds(), y));
    let steps = |name, points: Vec<(f64, f64)>| Series::new(name, points).stroke(Stroke::Step).unmarked();
    let names = ["available memory", "predicted budget"];
    let lines = Lines::new()
        .series(steps(names[0], available.clone()))
        .series(steps(names[1], predicted.clone()))
        .series(Series::new("training could begin", begins).unmarked());
    let mut spreads = Lines::new();
    for (of, name) in names.into_iter().enumerate() {
        let points: Vec<_> = (1..).zip(all).map(|(place, one)| (f64::from(place), one.spreads[of])).collect();
        spreads = spreads.series(Series::new(name, points));
    }
    Figure::new("FedHybrid, figure 19a: available memory and the predicted budget, Galaxy S22")
        .note(format!(
            "Five minutes of the evenings of thirty users. From the largest to the smallest once training could begin, the mean of all: {}. On the left user {}, whose available memory moves most nearly so.",
            means.join(", "),
            example.trace.user
        ))
        .columns(2)
        .panel_size(560, 320)
        .panel(
            Panel::new(lines)
                .title("one phone")
                .x(Axis::new("time").unit("s").range(0.0, LENGTH.seconds()))
                .y(Axis::new("memory").unit("GB")),
        )
        .panel(
            Panel::new(spreads)
                .title("all thirty")
                .x(Axis::new("traces, by how far available memory moves").range(0.0, TRACES as f64))
                .y(Axis::new("largest less smallest").unit("MB").from_zero()),
        )
}

/// What the rounds of one trace came to under each rule.
type OfTrace = [Option<Trained>; RULES.len()];

fn under_all_rules(context: &Context<'_>, trace: &Trace) -> Result<OfTrace, ArtefactError> {
    let mut found = OfTrace::default();
    for ((rule, _), found) in RULES.iter().zip(&mut found) {
        *found = train(context, trace, &[("budget", rule)])?;
    }
    Ok(found)
}

fn rules(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let traces = traces(context.seed, TRACES)?;
    let found: Vec<OfTrace> =
        traces.par_iter().map(|trace| under_all_rules(context, trace)).collect::<Result<_, _>>()?;
    let mut outcome = Outcome::default();
    let mut table = Table::new([
        "user",
        "rule",
        "mean_round_s",
        "ratio",
        "first_budget_mb",
        "budgets_decided",
        "page_faults",
        "trainer_killed",
        "apps_killed",
    ]);
    for (trace, of_trace) in traces.iter().zip(&found) {
        for (rule, (name, _)) in RULES.iter().enumerate() {
            let trained = of_trace[rule].as_ref();
            let of = |value: fn(&Trained) -> f64| trained.map(value).into();
            let budget = trained.and_then(|trained| trained.budgets.first()).map(|budget| budget.megabytes());
            table.push([
                trace.user.as_str().into(),
                (*name).into(),
                of(Trained::mean),
                ratio(of_trace, rule).into(),
                budget.into(),
                of(|trained| trained.budgets.len() as f64),
                of(|trained| trained.faults as f64),
                of(|trained| trained.kills as f64),
                of(|trained| trained.apps_killed as f64),
            ])?;
        }
    }
    let rows = [(1, "initial-memory-as-budget"), (2, "new-budget-every-round")];
    let mut papers = [None; RULES.len()];
    for (rule, method) in rows {
        let id = format!("fedhybrid/figure19b/s22-30-traces/{method}/latency-ratio");
        papers[rule] = context.row(&id)?.number();
        let ratios: Vec<f64> = found.iter().filter_map(|of_trace| ratio(of_trace, rule)).collect();
        let largest = ratios.iter().copied().max_by(f64::total_cmp);
        outcome.answer(&id, largest.map_or(Answer::Never, Answer::Number));
        let above = ratios.iter().filter(|ratio| **ratio > 1.0).count();
        let never = found.len() - ratios.len();
        let ended =
            if ratios.is_empty() { String::new() } else { format!("above one on {above} of {} traces", ratios.len()) };
        let parts =
            [ended, if never > 0 { format!("no ratio on {never}, where training never ends") } else { String::new() }];
        outcome.remark(&id, parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; "));
    }
    outcome.table = Some(table);
    outcome.figure = Some(bars(&found, papers));
    offer(&mut outcome, &found, papers);
    Ok(outcome)
}

/// How many times as long as under the predictor a round takes.
fn ratio(of_trace: &OfTrace, rule: usize) -> Option<f64> {
    let predicted = of_trace[0].as_ref()?;
    Some(of_trace[rule].as_ref()?.mean() / predicted.mean())
}

fn bars(found: &[OfTrace], papers: [Option<f64>; RULES.len()]) -> Figure {
    let of = |rule: usize| found.iter().filter_map(move |of_trace| of_trace[rule].as_ref());
    let average = |rule: usize, value: fn(&Trained) -> f64| {
        let count = of(rule).count();
        (count > 0).then(|| of(rule).map(value).sum::<f64>() / count as f64)
    };
    let largest = |rule: usize, value: fn(&Trained) -> f64| of(rule).map(value).max_by(f64::total_cmp);
    let two = |value: fn(&Trained) -> f64| {
        let mut bars = Bars::new(["mean of the traces", "largest"]).show_values();
        for (rule, (_, name)) in RULES.iter().enumerate() {
            bars = bars.series(BarSeries::new(*name, [average(rule, value), largest(rule, value)]));
        }
        bars
    };
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
    Figure::new("FedHybrid, figure 19b: three rules for the budget on thirty phones in use, Galaxy S22")
        .note("Five rounds of MobileNetV2 at batch 32, one iteration each. Of the paper: the largest ratio, which is all that it prints.")
        .columns(3)
        .panel_size(340, 300)
        .order(RULES.map(|(_, name)| name))
        .panel(Panel::new(two(Trained::mean)).title("time").y(Axis::new("time of a round").unit("s").from_zero()))
        .panel(
            Panel::new(two(|trained| trained.faults as f64))
                .title("page faults")
                .y(Axis::new("page faults in five rounds").from_zero()),
        )
        .panel(
            Panel::new(ratios)
                .title("against the predictor")
                .x(Axis::new("traces, by their ratio").range(1.0, found.len() as f64))
                .y(Axis::new("time of a round").unit("x")),
        )
}

/// What the notes on the rules quote.
fn offer(outcome: &mut Outcome, found: &[OfTrace], papers: [Option<f64>; RULES.len()]) {
    let ended = |rule: usize| found.iter().filter_map(move |of_trace| of_trace[rule].as_ref());
    let never: Vec<String> = (0..RULES.len())
        .map(|rule| (RULES[rule].1, found.len() - ended(rule).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{count} of {} traces under `{name}`", found.len()))
        .collect();
    let killed: usize = found.iter().flatten().flatten().map(|trained| trained.kills).sum();
    let apps: u64 = ended(0).map(|trained| trained.apps_killed).sum();
    outcome.quantity("kills of the trainer", "", [killed as f64]);
    if !never.is_empty() {
        outcome.words("rounds that never end", never.join(", "));
    }
    let largest = |rule: usize| found.iter().filter_map(|of_trace| ratio(of_trace, rule)).max_by(f64::total_cmp);
    if largest(1).zip(papers[1]).is_some_and(|(own, paper)| own < paper / 2.0) {
        outcome.quantity("apps killed under the predictor", "", [apps as f64 / ended(0).count().max(1) as f64]);
    }
    if largest(2).zip(papers[2]).is_some_and(|(own, paper)| own > paper) {
        outcome.quantity("a new budget costs more", "", largest(2));
    }
}
