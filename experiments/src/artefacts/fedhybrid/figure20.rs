//! Figure 20: time under a memory budget, and what new plans cost.

pub(super) mod regeneration;

use haversack_reports::pareto::{BOTH_MINIMISED, front};

use super::figure19::traces::{LENGTH, Trace, synthetic};
use super::figure19::training;
use super::setting::{MOBILENET, PICTURES, S22, on_phone, scenario};
use crate::artefacts::prelude::*;

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
struct BudgetedRun {
    policy: (&'static str, &'static str),
    percent: Option<f64>,
    alone: Option<Seen>,
    in_use: Option<Seen>,
}

/// What training came to.
struct Seen {
    /// Bytes that the framework holds.
    memory: f64,
    /// Seconds of an iteration.
    seconds: f64,
    /// Page faults for which flash was read, and kills of the trainer; on a phone in use.
    faults: Option<[f64; 2]>,
}

impl Seen {
    /// The means of runs from several starts; `None` if none ends.
    fn mean_of(records: &[Record]) -> Option<Self> {
        let mean_of = |of: &dyn Fn(&Record) -> f64| mean(&records.iter().map(of).collect::<Vec<_>>());
        let in_use = records.first()?.phone.is_some();
        let faults = [training::faults, training::kills].map(|of| mean_of(&of).unwrap_or_default());
        Some(Self {
            memory: mean_of(&|record| record.reserved.as_f64())?,
            seconds: mean_of(&seconds)?,
            faults: in_use.then_some(faults),
        })
    }

    /// Memory held in GB, and seconds of an iteration.
    fn place(&self) -> (f64, f64) {
        (self.memory / 1e9, self.seconds)
    }
}

/// An iteration: on a phone in use the mean of all, since apps change between them; else the last, since a policy may
/// spend the first on finding its micro-batch.
fn seconds(record: &Record) -> f64 {
    if record.phone.is_some() { training::round(record) } else { record.iteration.seconds() }
}

pub(super) fn budgets(context: &Context<'_>) -> Result<Outcome> {
    let percents = context.reading_numbers("energy-budgets")?;
    let found = synthetic(context.seed, 1, LENGTH)?;
    let trace = found.first().context("there is no trace")?;
    let starts = trace.starts(context.full);
    let budgets = || percents.iter().copied().map(Some);
    let wanted = POLICIES.into_iter().flat_map(|policy| budgets().map(move |percent| (policy, percent)));
    let wanted: Vec<_> = wanted.chain([(ORIGINAL, None)]).collect();
    let rounds = context.reading_number("round")? as u32;
    let run = |(policy, percent): ((&'static str, _), Option<f64>)| {
        let mut scenario = scenario(context, S22, MOBILENET.0, PICTURES, policy.0)?;
        scenario.memory_budget = percent.map(Budget::Percent);
        let alone: Vec<Record> = context.run_if_it_ends(&scenario)?.into_iter().collect();
        scenario.iterations = Some(rounds);
        let beside =
            |start: &Trace| context.run_if_it_ends(&on_phone(context, scenario.clone(), Some(start.apps.clone()))?);
        let in_use: Vec<Option<Record>> = starts.par_iter().map(beside).collect::<Result<_>>()?;
        let in_use: Vec<Record> = in_use.into_iter().flatten().collect();
        Ok(BudgetedRun { policy, percent, alone: Seen::mean_of(&alone), in_use: Seen::mean_of(&in_use) })
    };
    let points: Vec<BudgetedRun> = wanted.into_par_iter().map(run).collect::<Result<_>>()?;
    let mut outcome = Outcome::default();
    outcome.words("user of the trace", &trace.user);
    offer(&mut outcome, &points);
    show(context, data(&points)?, outcome)
}

fn data(points: &[BudgetedRun]) -> Result<Records> {
    let mut records = Records::of("phone,policy,name,budget_percent,memory_mb,time_s,page_faults,killed,memory_gb");
    for point in points {
        for (phone, record) in [("to itself", &point.alone), ("in use", &point.in_use)] {
            let record = record.as_ref();
            let found = [record.map(|seen| seen.memory * 1e-6), record.map(|seen| seen.seconds)];
            let faults = record.and_then(|seen| seen.faults);
            let seen = [faults.map(|[faults, _]| faults), faults.map(|[_, kills]| kills)];
            let memory = record.map(|seen| seen.place().0);
            records.row((phone, point.policy.0, point.policy.1, point.percent, found, seen, memory))?;
        }
    }
    Ok(records)
}

/// What the notes quote.
fn offer(outcome: &mut Outcome, points: &[BudgetedRun]) {
    let places: Vec<(&str, (f64, f64))> =
        points.iter().filter_map(|point| Some((point.policy.1, point.in_use.as_ref()?.place()))).collect();
    let coordinates: Vec<(f64, f64)> = places.iter().map(|(_, place)| *place).collect();
    let mut best: Vec<&str> = front(&coordinates, BOTH_MINIMISED).into_iter().map(|index| places[index].0).collect();
    best.dedup();
    let never = |of: fn(&BudgetedRun) -> &Option<Seen>| {
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
