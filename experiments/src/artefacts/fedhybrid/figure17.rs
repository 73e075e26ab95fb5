//! Figure 17: FedHybrid without one of its designs.

use super::federations::{Wanted, duration, hold_all, over_time, stand_ins};
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
    outcome.words("stand-in", stand_ins(context, TASKS.map(|task| task.0), &found)?);
    for ((id_of_task, row, task), federations) in TASKS.iter().zip(found.chunks(DESIGNS.len())) {
        let whole = &federations[0];
        for (federation, (_, design, name)) in federations[1..].iter().zip(&DESIGNS[1..]) {
            let id = format!("fedhybrid/figure17/{design}/{row}/slowdown");
            outcome.answer(&id, federation.slowdown(whole).map_or(Answer::Never, Answer::Number));
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
        over_time(context, &mut outcome, id_of_task, task, DESIGNS.iter().map(|(.., name)| *name).zip(federations))?;
    }
    Ok(outcome)
}
