//! Memory against time and against energy, with the fronts of each policy and of all.

use haversack_reports::pareto::{BOTH_MINIMISED, front};

use super::runs::{Engines, Found, POLICIES, Point, points};
use crate::artefacts::prelude::*;

/// A phone each; the id is the phone's.
pub(super) static GALAXY_S22: Artefact =
    on("galaxy-s22", &["galaxy-s22"], "memory against time and energy, four papers' policies on the Galaxy S22");
pub(super) static XIAOMI_10: Artefact = on("xiaomi-10", &["xiaomi-10"], "the same on the Xiaomi 10");

const fn on(phone: &'static str, devices: &'static [&'static str], about: &'static str) -> Artefact {
    let stacks = &["mandheling", "mnn-2", "sage-opencl"];
    Artefact { devices, stacks, ..Artefact::new("comparison", phone, about, run) }
}

/// What memory is set against: for people, the unit, and its value.
type Cost = (&'static str, &'static str, fn(&Found) -> f64);
const COSTS: [Cost; 2] = [
    ("time of an iteration", "s", |found| found.time.seconds()),
    ("energy of an iteration", "J", |found| found.energy.0),
];

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let points = points(context)?;
    let mut outcome = Outcome::of("engines,policy,stack,budget_percent,memory_gb,time_s,energy_j,on_fronts");
    for point in &points {
        let engines = if point.engines == Engines::One { "one" } else { "own" };
        let found = point.found.map(|found| [found.memory, found.time.seconds(), found.energy.0]);
        let numbers = found.map_or([None; 3], |numbers| numbers.map(Some));
        let fronts = COSTS
            .into_iter()
            .zip(["time", "energy"])
            .filter(|(cost, _)| best(&points, point.engines, *cost).iter().any(|other| std::ptr::eq(*other, point)));
        let fronts: Vec<&str> = fronts.map(|(_, name)| name).collect();
        let place = (engines, point.policy.0, point.stack.as_str(), point.percent);
        outcome.row((place, numbers, fronts.join(" and ")))?;
    }
    draw(&mut outcome, &points);
    offer(&mut outcome, &points);
    Ok(outcome)
}

/// The points of the front over all policies, from the least memory on.
fn best(points: &[Point], engines: Engines, (.., cost): Cost) -> Vec<&Point> {
    let own: Vec<(&Point, Found)> = points
        .iter()
        .filter(|point| point.engines == engines)
        .filter_map(|point| Some((point, point.found?)))
        .collect();
    let coordinates: Vec<(f64, f64)> = own.iter().map(|(_, found)| (found.memory, cost(found))).collect();
    front(&coordinates, BOTH_MINIMISED).into_iter().map(|index| own[index].0).collect()
}

fn draw(outcome: &mut Outcome, points: &[Point]) {
    for (name, unit, cost) in COSTS {
        for (engines, title) in Engines::BOTH {
            let mut clouds = Front::new().overall();
            for (policy, label) in POLICIES {
                let own = points.iter().filter(|point| point.engines == engines && point.policy.0 == policy);
                let cloud: Vec<_> =
                    own.filter_map(|point| point.found).map(|found| (found.memory, cost(&found))).collect();
                clouds = clouds.cloud(label, cloud);
            }
            let memory = axis("memory that the framework holds", "GB").log();
            outcome.panel(title, clouds, memory, axis(name, unit).log());
        }
    }
}

/// The policies of a front, each once where it is there several times in a row.
fn names(front: &[&Point]) -> String {
    let mut names: Vec<&str> = front.iter().map(|point| point.policy.1).collect();
    names.dedup();
    names.join(", ")
}

/// The fronts in the summary, and what the notes quote.
fn offer(outcome: &mut Outcome, points: &[Point]) {
    for (engines, title) in Engines::BOTH {
        let [time, energy] = COSTS.map(|cost| names(&best(points, engines, cost)));
        outcome
            .summary
            .push(format!("{title}: from the least memory on, the front of time is {time}; of energy {energy}"));
    }
    let absent: Vec<String> = points
        .iter()
        .filter(|point| point.found.is_none())
        .map(|point| format!("{} at {} % under {}", point.policy.1, point.percent.unwrap_or_default(), point.stack))
        .collect();
    if !absent.is_empty() {
        outcome.words("points without a plan", absent.join(", "));
    }
}
