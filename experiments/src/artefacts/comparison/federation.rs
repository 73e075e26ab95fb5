//! The same federation with each paper's memory policy on its phones: whose data are reached, and how soon it learns.

use super::fronts::POLICIES;
use crate::artefacts::fedhybrid::federations::{Course, hold};
use crate::artefacts::prelude::*;
use crate::reproduce::Lacking;

/// The stack and the cores of all policies but Mandheling, which names its own.
const MNN: &str = "stack = \"mnn-2\"\ncores = \"big:4\"";

/// A policy at a batch.
struct Point {
    policy: (&'static str, &'static str),
    batch: f64,
    /// In words why no phone can train, where none can.
    course: Result<Arc<Course>>,
}

impl Point {
    /// Percent of the data that are never reached, and hours to the accuracy `target`, in percent.
    fn place(&self, target: f64) -> Option<(f64, f64)> {
        let course = self.course.as_ref().ok()?;
        Some((course.excluded(), course.time_to(target)? / 3600.0))
    }
}

fn points(context: &Context<'_>) -> Result<Vec<Point>> {
    let federation = context.reading_text("federation")?;
    let batches = context.reading_numbers("batches")?;
    let all: Vec<_> = POLICIES.iter().flat_map(|&policy| batches.iter().map(move |&batch| (policy, batch))).collect();
    let point = |&(policy, batch): &((&'static str, &'static str), f64)| {
        let engine = if policy.0 == "mandheling" { "" } else { MNN };
        let text = format!("{federation}\nbatch = {batch}\npolicy = \"{}\"\n{engine}", policy.0);
        match hold(context, &text, &context.seeds_of(&[0])) {
            // What nobody has held is no phone that cannot train.
            Err(error) if error.is::<Lacking>() => Err(error),
            found => Ok(Point { policy, batch, course: found.and_then(|mut found| found.pop().context("no seed")) }),
        }
    };
    all.par_iter().map(point).collect()
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let points = points(context)?;
    let courses = || points.iter().filter_map(|point| Some((point, point.course.as_ref().ok()?)));
    // What all reach that are held.
    let target = courses().map(|(_, course)| course.best()).fold(100.0, f64::min);
    let mut outcome = Outcome::of("policy,batch,left_out_percent,round_s,best_accuracy,hours_to_target,killed_percent");
    for (point, course) in courses() {
        let hours = course.time_to(target).map(|time| time / 3600.0);
        let found = [course.excluded(), course.round_s(), course.best()];
        outcome.row((point.policy.0, point.batch, found, hours, course.killed()))?;
    }
    let mut front = Front::new().overall();
    for (policy, label) in POLICIES {
        let own = points.iter().filter(|point| point.policy.0 == policy);
        front = front.cloud(label, own.filter_map(|point| point.place(target)).collect::<Vec<_>>());
    }
    let name = |point: &Point| format!("{} at batch {}", point.policy.1, point.batch);
    let none = points.iter().filter_map(|point| Some(format!("{} ({:#})", name(point), point.course.as_ref().err()?)));
    outcome.list("held by nobody", none);
    outcome.quantity("target", "%", [target]);
    let left_out = Axis::new("phones whose data are never reached").unit("%").from_zero();
    outcome.panel("three batches", front, left_out, from_zero("time to accuracy", "h"));
    let mut curves = Lines::new();
    for (policy, label) in POLICIES {
        let last = courses().rfind(|(point, _)| point.policy.0 == policy);
        curves = curves.series(Series::new(label, last.map(|(_, course)| course.curve()).unwrap_or_default()));
    }
    outcome.panel("the largest batch", curves, from_zero("simulated time", "h"), test_accuracy());
    Ok(outcome)
}
