//! Figure 17: FedHybrid without one of its designs.

use super::federations::{Wanted, curves_over_time, duration, hold_all, of_most, stand_in};
use crate::artefacts::prelude::*;

/// The tasks: of their readings, as rows call them, and for people.
const TASKS: [(&str, &str, &str); 2] =
    [("openimg-mobilenetv2", "task-1", "MobileNetV2 on OpenImage"), ("agnews-bert", "task-2", "BERT on AG News")];
/// The designs: of their readings, and as rows call what is left out; the first leaves nothing out.
const DESIGNS: [(&str, &str, &str); 5] = [
    ("fedhybrid", "", "FedHybrid"),
    ("without-selector", "without-selector", "without the selector"),
    ("without-optimiser", "without-graph-optimiser", "without the graph optimiser"),
    ("without-compression", "without-compression", "without compression"),
    ("without-predictor", "without-budget-predictor", "without the budget predictor"),
];

pub(super) fn without(context: &Context<'_>) -> Result<Outcome> {
    let wanted: Vec<Wanted> = TASKS
        .iter()
        .flat_map(|(task, ..)| DESIGNS.iter().map(move |(design, ..)| (*task, vec![*design, "fedprox"])))
        .collect();
    let found = hold_all(context, &wanted)?;
    let mut outcome = Outcome::of("task,design,time_h,accuracy_percent");
    outcome.words("stand-in", stand_in(context, TASKS[0].0)?);
    for ((_, row, task), federations) in TASKS.iter().zip(found.chunks(DESIGNS.len())) {
        let whole = &federations[0];
        for (federation, (_, design, name)) in federations[1..].iter().zip(&DESIGNS[1..]) {
            let targets: Vec<f64> =
                federation.best().into_iter().zip(whole.best()).map(|(own, whole)| own.min(whole)).collect();
            let (own, of_whole) = (federation.times_to(&targets), whole.times_to(&targets));
            let ratios: Vec<Option<f64>> =
                own.iter().zip(of_whole).map(|(own, whole)| Some((*own)? / whole?)).collect();
            let id = format!("fedhybrid/figure17/{design}/{row}/slowdown");
            outcome.answer(&id, of_most(&ratios).map_or(Answer::Never, Answer::Number));
            outcome.remark(
                &id,
                format!(
                    "{task} {name}: {:.1} %, {}. FedHybrid: {:.1} %, rounds of {}",
                    federation.accuracy(),
                    federation.words(),
                    whole.accuracy(),
                    duration(whole.round_s())
                ),
            );
        }
        for (federation, (.., name)) in federations.iter().zip(&DESIGNS) {
            for (time, accuracy) in federation.courses.first().map(|course| course.curve()).unwrap_or_default() {
                outcome.row((*task, *name, [Some(time), Some(accuracy)]))?;
            }
        }
        let named = DESIGNS.iter().map(|(.., name)| *name).zip(federations);
        outcome.panel(task, curves_over_time(named), axis("simulated time", "h"), test_accuracy());
    }
    Ok(outcome)
}
