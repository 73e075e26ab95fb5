//! Figure 20: time under a memory budget, and what new plans cost.

mod regeneration;

use haversack_reports::pareto::{BOTH_MINIMISED, front};
use haversack_training::Record;
use rayon::prelude::*;

use super::figure19::traces::{Trace, traces};
use super::setting::{MOBILENET, PICTURES, S22, on_phone, on_s22, on_testbed, scenario};
use crate::artefacts::prelude::*;

pub(super) static FIGURE20A: Artefact =
    Artefact { users: true, ..on_testbed("figure20a", "time over the memory budget, six policies", budgets) };
pub(super) static FIGURE20C: Artefact = Artefact {
    devices: &[S22, regeneration::SERVER],
    ..on_s22("figure20c", "what new plans cost", regeneration::regeneration)
};

/// The policies as they are called, and for people.
pub(super) const POLICIES: [(&str, &str); 6] = [
    ("fedhybrid", "FedHybrid"),
    ("melon", "Melon"),
    ("capuchin", "Capuchin"),
    ("gact", "GACT"),
    ("sage", "Sage"),
    ("daf", "DAF"),
];
/// Training with all the memory that it wants.
const ORIGINAL: (&str, &str) = ("original", "no policy");

/// A policy at a budget, with the phone to itself and beside apps; `None` if training never ends.
struct Point {
    policy: (&'static str, &'static str),
    percent: Option<f64>,
    alone: Option<Record>,
    in_use: Option<Record>,
}

impl Point {
    /// Memory held in GB, and seconds of an iteration.
    fn place(record: &Record) -> (f64, f64) {
        (record.reserved.as_f64() / 1e9, seconds(record))
    }
}

/// An iteration: on a phone in use the mean of all, since apps change between them; else the last, since a policy may
/// spend the first on finding its micro-batch.
fn seconds(record: &Record) -> f64 {
    if record.phone.is_none() {
        return record.iteration.seconds();
    }
    record.iterations.iter().copied().sum::<Nanos>().seconds() / record.iterations.len().max(1) as f64
}

fn point(
    context: &Context<'_>,
    trace: &Trace,
    policy: (&'static str, &'static str),
    percent: Option<f64>,
) -> Result<Point, ArtefactError> {
    let mut scenario = scenario(context, S22, MOBILENET.0, PICTURES, policy.0)?;
    scenario.memory_budget = percent.map(Budget::Percent);
    let alone = context.run_if_it_ends(&scenario)?;
    scenario.iterations = context.reading_number("round")? as u32;
    let in_use = context.run_if_it_ends(&on_phone(context, scenario, Some(trace.apps.clone()))?)?;
    Ok(Point { policy, percent, alone, in_use })
}

fn budgets(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let percents = context.reading_numbers("energy-budgets")?;
    let found = traces(context.seed, 1)?;
    let trace = found.first().ok_or_else(|| anyhow::anyhow!("there is no trace"))?;
    let budgets = || percents.iter().copied().map(Some);
    let wanted = POLICIES.into_iter().flat_map(|policy| budgets().map(move |percent| (policy, percent)));
    let wanted: Vec<_> = wanted.chain([(ORIGINAL, None)]).collect();
    let points: Vec<Point> = wanted
        .into_par_iter()
        .map(|(policy, percent)| point(context, trace, policy, percent))
        .collect::<Result<_, _>>()?;
    let mut outcome = Outcome { table: Some(table(&points)?), ..Outcome::default() };
    outcome.figure = Some(figure(trace, &points));
    offer(&mut outcome, &points);
    Ok(outcome)
}

fn table(points: &[Point]) -> Result<Table, ArtefactError> {
    let mut table = Table::new(["phone", "policy", "budget_percent", "memory_mb", "time_s", "page_faults", "killed"]);
    for point in points {
        let percent = || point.percent.into();
        for (phone, record) in [("to itself", &point.alone), ("in use", &point.in_use)] {
            let memory = record.as_ref().map(|record| record.reserved.megabytes());
            let seen = record.as_ref().and_then(|record| record.phone.as_ref());
            let faults = seen.map(|phone| phone.run.counters.pgmajfault as f64);
            let kills = seen.map(|phone| phone.kills.len() as f64);
            let numbers = [memory.into(), record.as_ref().map(seconds).into(), faults.into(), kills.into()];
            table.push([phone.into(), point.policy.0.into(), percent()].into_iter().chain(numbers))?;
        }
    }
    Ok(table)
}

fn figure(trace: &Trace, points: &[Point]) -> Figure {
    let of = |policy: &'static str| points.iter().filter(move |point| point.policy.0 == policy);
    let (mut lines, mut clouds) = (Lines::new(), Front::new().overall());
    let mut percents: Vec<f64> = points.iter().filter_map(|point| point.percent).collect();
    percents.dedup();
    percents.truncate(of(POLICIES[0].0).count());
    for (policy, name) in POLICIES {
        let curve: Vec<_> =
            of(policy).filter_map(|point| Some((point.percent?, seconds(point.alone.as_ref()?)))).collect();
        let ends = curve.len() < percents.len();
        let series = Series::new(name, curve);
        lines = lines.series(if ends { series.ends_low() } else { series });
    }
    for (policy, name) in POLICIES.into_iter().chain([ORIGINAL]) {
        let cloud: Vec<_> = of(policy).filter_map(|point| point.in_use.as_ref()).map(Point::place).collect();
        if !cloud.is_empty() {
            clouds = clouds.cloud(name, cloud);
        }
    }
    Figure::new("FedHybrid, figure 20a: time within a memory budget, MobileNetV2 at batch 32 on the Galaxy S22")
        .note(format!(
            "All policies under MNN on the same four cores. Right: the same runs beside the apps of user {}, the mean of the iterations of figure 19; no paper has this comparison.",
            trace.user
        ))
        .columns(2)
        .order(POLICIES.map(|(_, name)| name))
        .panel_size(470, 350)
        .panel(
            Panel::new(lines)
                .title("the phone to itself")
                .x(Axis::new("memory budget, of what training needs").unit("%").ticks_at(percents))
                .y(Axis::new("time of an iteration").unit("s")),
        )
        .panel(
            Panel::new(clouds)
                .title("the phone in use")
                .x(Axis::new("memory that the framework holds").unit("GB"))
                .y(Axis::new("time of an iteration").unit("s").log()),
        )
}

/// What the notes quote.
fn offer(outcome: &mut Outcome, points: &[Point]) {
    let places: Vec<(&str, (f64, f64))> =
        points.iter().filter_map(|point| Some((point.policy.1, Point::place(point.in_use.as_ref()?)))).collect();
    let coordinates: Vec<(f64, f64)> = places.iter().map(|(_, place)| *place).collect();
    let mut best: Vec<&str> = front(&coordinates, BOTH_MINIMISED).into_iter().map(|index| places[index].0).collect();
    best.dedup();
    let never = |of: fn(&Point) -> &Option<Record>| {
        let absent = points.iter().filter(|point| of(point).is_none());
        let names: Vec<String> = absent
            .map(|point| point.percent.map_or(point.policy.1.to_owned(), |p| format!("{} at {p} %", point.policy.1)))
            .collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    outcome.words("front of the phone in use", best.join(", "));
    outcome.words("points that do not exist on the phone to itself", never(|point| &point.alone));
    outcome.words("points that do not exist on the phone in use", never(|point| &point.in_use));
}
