//! Memory against time and against energy, with the fronts of each policy and of all.

use haversack_reports::pareto::{BOTH_MINIMISED, front};

use super::runs::{Engines, POLICIES, PolicyPoint, points};
use crate::artefacts::mandheling::setting::{BatchCost, BatchQuantity, QUANTITIES};
use crate::artefacts::prelude::*;

/// What memory is set against.
const COSTS: [BatchQuantity; 2] = QUANTITIES;

/// Gigabytes that the framework holds, and the cost.
fn place(batch: BatchCost, memory: Bytes, cost: BatchQuantity) -> (f64, f64) {
    (memory.as_f64() / 1e9, (cost.of)(batch))
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let points = points(context)?;
    let mut outcome = Outcome::of("engines,policy,stack,budget_percent,memory_gb,time_s,energy_j,on_fronts");
    for point in &points {
        let engines = if point.engines == Engines::One { "one" } else { "own" };
        let memory = point.found.map(|(_, memory)| memory.as_f64() / 1e9);
        let costs = COSTS.map(|cost| point.found.map(|(batch, _)| (cost.of)(batch)));
        let is_best = |cost| best(&points, point.engines, cost).iter().any(|other| std::ptr::eq(*other, point));
        let fronts: Vec<&str> = COSTS.into_iter().filter(|cost| is_best(*cost)).map(|cost| cost.name).collect();
        let case = (engines, point.policy.0, point.stack.as_str(), point.percent);
        outcome.row((case, memory, costs, fronts.join(" and ")))?;
    }
    draw(&mut outcome, &points);
    offer(&mut outcome, &points);
    Ok(outcome)
}

/// The points of the front over all policies, from the least memory on.
fn best(points: &[PolicyPoint], engines: Engines, cost: BatchQuantity) -> Vec<&PolicyPoint> {
    let own = points.iter().filter(|point| point.engines == engines);
    let (own, places): (Vec<&PolicyPoint>, Vec<(f64, f64)>) =
        own.filter_map(|point| point.found.map(|(batch, memory)| (point, place(batch, memory, cost)))).unzip();
    front(&places, BOTH_MINIMISED).into_iter().map(|index| own[index]).collect()
}

fn draw(outcome: &mut Outcome, points: &[PolicyPoint]) {
    for cost in COSTS {
        for (engines, title) in Engines::BOTH {
            let mut clouds = Front::new().overall();
            for (policy, label) in POLICIES {
                let own = points.iter().filter(|point| point.engines == engines && point.policy.0 == policy);
                let places = own.filter_map(|point| point.found.map(|(batch, memory)| place(batch, memory, cost)));
                clouds = clouds.cloud(label, places.collect::<Vec<_>>());
            }
            let memory = axis("memory that the framework holds", "GB").log();
            outcome.panel(title, clouds, memory, axis(&format!("{} of an iteration", cost.name), cost.unit).log());
        }
    }
}

/// The policies of a front, each once where it is there several times in a row.
fn names(front: &[&PolicyPoint]) -> String {
    let mut names: Vec<&str> = front.iter().map(|point| point.policy.1).collect();
    names.dedup();
    names.join(", ")
}

/// The fronts in the summary, and what the notes quote.
fn offer(outcome: &mut Outcome, points: &[PolicyPoint]) {
    for (engines, title) in Engines::BOTH {
        let [time, energy] = COSTS.map(|cost| names(&best(points, engines, cost)));
        outcome
            .summary
            .push(format!("{title}: from the least memory on, the front of time is {time}; of energy {energy}"));
    }
    let absent = points.iter().filter(|point| point.found.is_none());
    let name = |point: &PolicyPoint| {
        format!("{} at {} % under {}", point.policy.1, point.percent.unwrap_or_default(), point.stack)
    };
    outcome.list("points without a plan", absent.map(name));
}
