//! Accuracy where time is short: every method learns for as long as Original takes, and is looked at when DAF is there.

use super::accuracy::learned;
use crate::artefacts::learning::{Compared, Taught, Training, stand_in_words};
use crate::artefacts::prelude::*;

/// The methods, and for people; those with a time budget have it. DAF keeps everything whole: memory is not short.
const WAYS: [(&str, &str); 4] =
    [("original", "Original"), ("fixed8", "Fixed 8 Bits"), ("elastictrainer", "ElasticTrainer"), ("daf", DAF)];
const DAF: &str = "DAF";

/// What DAF may lose until it is there, in points.
const DROP: f64 = 1.0;

/// Accuracies by time: one course for each seed.
type Course = Vec<(f64, f64)>;

/// Every stand-in learned by every method for as long as Original takes.
pub(super) fn of_methods(context: &Context<'_>) -> Result<Vec<Compared>> {
    let share = context.reading_number("time-budget")? / 100.0;
    learned(context, |_, stand_in| {
        let original = context.run(&stand_in.scenario)?.iteration;
        let way = |(method, name): (&str, &str)| {
            let mut scenario = under(&stand_in.scenario, method, if method == "daf" { &[("bits", "32")] } else { &[] });
            if matches!(method, "daf" | "elastictrainer") {
                scenario.time_budget = Some(Nanos((original.0 as f64 * share) as u64));
            }
            let ratio = original.seconds() / context.run(&scenario)?.iteration.seconds();
            // As many epochs, `ratio` times as fast as Original's, as fit into Original's time: as fast, as many.
            let epochs = (f64::from(stand_in.epochs()) * ratio + 1e-6).floor().max(1.0);
            Ok((name.to_owned(), Training { stand_in: stand_in.clone().for_epochs(epochs as u32), scenario }))
        };
        WAYS.into_iter().map(way).collect()
    })
}

/// When each seed of DAF is first within a point of what Original has in the end, with its accuracy then; `None` if never.
fn arrivals(one: &Compared) -> Vec<Option<(f64, f64)>> {
    let (Some(original), Some(daf)) = (one.first(), one.way(DAF)) else { return Vec::new() };
    let arrives = |(course, end): (Course, f64)| course.into_iter().find(|(_, accuracy)| *accuracy >= end - DROP);
    daf.courses().into_iter().zip(original.accuracies(Part::Test)).map(arrives).collect()
}

/// The accuracy of a course at a time; `None` before its first epoch has ended.
fn at(course: &Course, time: f64) -> Option<f64> {
    course.iter().rfind(|(ended, _)| *ended <= time).map(|(_, accuracy)| *accuracy)
}

/// Offers what the predicate compares, stand-in by stand-in: in what share of the seeds DAF is above another method at the
/// time that DAF needs. A seed in which DAF never is there, or the other diverges, speaks for nobody.
pub(super) fn compare(outcome: &mut Outcome, row: &str, found: &[Compared]) {
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
pub(super) fn draw(outcome: &mut Outcome, found: &[Compared]) {
    for one in found {
        let series = |(name, taught): &(String, Result<Taught>)| {
            let taught = taught.as_ref().ok()?;
            Some(Series::new(name.as_str(), taught.curve()))
        };
        let series: Vec<Series> = one.ways.iter().filter_map(series).collect();
        if !series.is_empty() {
            let lines = series.into_iter().fold(Lines::new(), Lines::series);
            outcome.panel(&one.title, lines, from_zero("simulated time", "s"), test_accuracy());
        }
    }
}
