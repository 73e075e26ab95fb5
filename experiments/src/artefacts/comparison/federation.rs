//! The same federation with each paper's memory policy on its phones: which phones' data are reached, and
//! how soon it learns.

use crate::artefacts::fedhybrid::federations::{Course, hold};
use crate::artefacts::prelude::*;
use crate::reproduce::Lacking;

/// The policies, and for people.
const POLICIES: [(&str, &str); 5] = [
    ("daf", "DAF"),
    ("sage", "Sage"),
    ("fedhybrid", "FedHybrid"),
    ("mandheling", "Mandheling"),
    ("original", "no policy"),
];
/// The stack and the cores of all policies but Mandheling, which names its own.
const MNN: &str = "stack = \"mnn-2\"\ncores = \"big:4\"";

/// A policy at a batch.
struct Point {
    policy: (&'static str, &'static str),
    batch: f64,
    /// The error is the reason if no phone can train.
    course: Result<Arc<Course>>,
}

fn points(context: &Context<'_>) -> Result<Vec<Point>> {
    let federation = context.reading_text("federation")?;
    let batches = context.reading_numbers("batches")?;
    let all: Vec<_> = POLICIES.iter().flat_map(|&policy| batches.iter().map(move |&batch| (policy, batch))).collect();
    let point = |&(policy, batch): &((&'static str, &'static str), f64)| {
        let engine = if policy.0 == "mandheling" { "" } else { MNN };
        let text = format!("{federation}\nbatch = {batch}\npolicy = \"{}\"\n{engine}", policy.0);
        match hold(context, &text, &context.seeds_of(&[0])) {
            // A federation without committed results does not mean that no phone can train.
            Err(error) if error.is::<Lacking>() => Err(error),
            found => Ok(Point { policy, batch, course: found.and_then(|mut found| found.pop().context("no seed")) }),
        }
    };
    all.par_iter().map(point).collect()
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let points = points(context)?;
    let courses = || points.iter().filter_map(|point| Some((point, point.course.as_ref().ok()?)));
    // The highest accuracy that all simulated federations reach.
    let target = courses().map(|(_, course)| course.best()).fold(100.0, f64::min);
    let mut outcome = Outcome::default();
    let mut records = Records::of(
        "kind,name,policy,batch,left_out_percent,round_s,best_accuracy,hours_to_target,killed_percent,hours,accuracy",
    );
    for (policy, name) in POLICIES {
        let of_policy = || courses().filter(|(point, _)| point.policy.0 == policy);
        for (point, course) in of_policy() {
            let found = [course.excluded(), course.round_s(), course.best()];
            let hours = course.time_to(target).map(|time| time / 3600.0);
            records.row((["whole", name, policy], point.batch, found, hours, course.killed(), [None::<f64>; 2]))?;
        }
        // For the largest batch.
        for (hours, accuracy) in of_policy().next_back().map(|(_, course)| course.curve()).unwrap_or_default() {
            records.row((["curve", name, policy], [None::<f64>; 6], [hours, accuracy]))?;
        }
    }
    let name = |point: &Point| format!("{} at batch {}", point.policy.1, point.batch);
    let none = points.iter().filter_map(|point| Some(format!("{} ({:#})", name(point), point.course.as_ref().err()?)));
    outcome.list("not federated", none);
    outcome.quantity("target", "%", [target]);
    show(context, records, outcome)
}
