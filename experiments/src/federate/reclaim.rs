//! Training with less memory than it needs: the slow-down while the kernel reclaims, and when the process is killed.
//!
//! A phone in use runs a few iterations of the federation's training without a budget, with its memory set so that a
//! given fraction of what training needs is missing. The slow-down is that of the iterations after the first, including
//! apps ended by the low-memory killer and the time at which it ends the process. The apps are those of the median
//! phone of the memory class; between the simulated fractions the slow-down is interpolated linearly, and a plan larger
//! than the memory left is slowed down by the fraction it lacks. Without any app, the same simulation decides which
//! phones can take part.

use std::sync::Arc;

use haversack_devices::ensure;
use haversack_devices::units::{Bytes, Nanos};
use haversack_federation::population::DeviceKind;
use haversack_training::phone::{AppChange, Phone};
use haversack_training::{AtRest, RunError, watch};

use super::iteration::{Cost, nothing_short, scenario};
use super::specification::Specification;
use crate::run::{Plan, PlanError};
use crate::scenario::{Key, Scenario};
use crate::{Cache, CommandError, Result, interrupt};

/// Simulated fractions of missing memory. Between the last that survives and the first that is killed, one
/// more is simulated.
const MISSING: [f64; 7] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7];
/// Iterations per simulation: the second and the third count.
const ITERATIONS: u32 = 3;

/// The pace of training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pace {
    /// An iteration takes `time` times as long and `energy` times the energy.
    Slower { time: f64, energy: f64 },
    /// The system ends the process for good after `after_s` seconds.
    Killed { after_s: f64 },
}

impl Pace {
    /// The pace without missing memory.
    const FULL: Self = Self::Slower { time: 1.0, energy: 1.0 };
}

/// Training on phones of one kind, with apps running and memory missing.
pub(super) struct Trial<'a> {
    scenario: Scenario,
    /// An iteration with enough memory.
    whole: &'a Cost,
    apps: &'a [AppChange],
    /// The cache key of its results.
    key: String,
    cache: &'a Cache,
}

impl<'a> Trial<'a> {
    /// # Errors
    /// A scenario that is wrong, or a run that fails for another reason than memory.
    pub(super) fn new(
        asked: &Specification,
        kind: &DeviceKind,
        whole: &'a Cost,
        apps: &'a [AppChange],
        cache: &'a Cache,
    ) -> Result<Self> {
        let trained = nothing_short(asked, kind, whole, cache)?;
        let (system, trainer_adj, iterations) = (Some(asked.system.clone()), asked.trainer_adj, Some(ITERATIONS));
        let scenario = Scenario { system, trainer_adj, iterations, ..scenario(&trained, kind, None) };
        let others = if apps.is_empty() { "no app" } else { "apps" };
        let key = format!("{others}, {:?}, {}", asked.traces, scenario.fingerprint(Key::ALL));
        Ok(Self { scenario, whole, apps, key, cache })
    }

    /// The pace of an iteration that lacks the fraction `missing` of the memory it needs.
    ///
    /// # Errors
    /// A scenario that is wrong, or a run that fails for another reason.
    pub(super) fn pace(&self, missing: f64) -> Result<Pace> {
        let Self { scenario, whole, apps, key, cache } = self;
        ensure!(!interrupt::came(), CommandError::Interrupted);
        let pace = cache.get(format!("iteration under reclaim, {missing} missing, {key}"), || {
            let mut plan = Plan::new(scenario, cache)?;
            let left = Bytes((whole.peak.as_f64() * (1.0 - missing)) as u64);
            let phone = plan.resolved.phone.as_deref();
            let phone = phone.ok_or_else(|| CommandError::failed("no phone is in use"))?;
            plan.resolved.phone = Some(Arc::new(leaving(phone, apps, left).map_err(CommandError::failed)?));
            run(&plan, whole)
        });
        pace.map(|pace| *pace)
    }
}

/// The pace as a function of the missing fraction.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Curve {
    /// Ascending by the fraction; only the last one may be killed.
    points: Vec<(f64, Pace)>,
}

impl Curve {
    /// Simulates `trial`, up to the fraction `most` or until the process is killed.
    ///
    /// # Errors
    /// As [`Trial::pace`].
    pub(super) fn simulate(trial: &Trial<'_>, most: f64) -> Result<Self> {
        let mut points = Vec::new();
        for (place, share) in MISSING.into_iter().enumerate() {
            if place > 0 && MISSING[place - 1] >= most {
                break;
            }
            points.push((share, trial.pace(share)?));
            if matches!(points[place].1, Pace::Killed { .. }) {
                let before = share - 0.5 * MISSING[0];
                points.push((before, trial.pace(before)?));
            }
            if points.iter().any(|(_, pace)| matches!(pace, Pace::Killed { .. })) {
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                let lives = points.iter().take_while(|(_, pace)| !matches!(pace, Pace::Killed { .. })).count();
                points.truncate(lives + 1);
                break;
            }
        }
        Ok(Self { points })
    }

    /// The pace of a process that needs `peak` where `left` is available.
    pub(super) fn at(&self, peak: Bytes, left: Bytes) -> Pace {
        if left >= peak {
            return Pace::FULL;
        }
        let share = peak.saturating_sub(left).as_f64() / peak.as_f64();
        let above = self.points.iter().position(|&(known, _)| known >= share);
        let place = above.unwrap_or(self.points.len().saturating_sub(1));
        let Some(&(known, pace)) = self.points.get(place) else { return Pace::FULL };
        // The line is extrapolated beyond the last point.
        let Pace::Slower { time: high, energy: more } = pace else {
            return match place.checked_sub(1).map(|before| self.points[before]) {
                // Nearer to the point that survives.
                Some((lives, slower)) if share - lives < known - share => slower,
                None if share < known - share => Pace::FULL,
                _ => pace,
            };
        };
        let (from, low, less) = match place.checked_sub(1).map(|before| self.points[before]) {
            Some((from, Pace::Slower { time, energy })) => (from, time, energy),
            _ => (0.0, 1.0, 1.0),
        };
        let along = (share - from) / (known - from);
        let line = |low: f64, high: f64| (low + (high - low) * along).max(1.0);
        Pace::Slower { time: line(low, high), energy: line(less, more) }
    }
}

/// `phone` running `apps`, with its memory set so that `left` is available at the beginning.
fn leaving(phone: &Phone, apps: &[AppChange], left: Bytes) -> Result<Phone, RunError> {
    let mut phone = Phone { apps: apps.to_vec(), cached: Vec::new(), ..phone.clone() };
    let seen = watch(AtRest::of(&phone)?, &phone, Nanos(1))?;
    let found = seen.first().map_or(Bytes::ZERO, |seen| seen.available);
    let extent = phone.memory.extent.0;
    let ram = (phone.memory.ram + left).saturating_sub(found).0 / extent * extent;
    phone.memory.ram = Bytes(ram.max(phone.memory.watermarks.high.0 + 2 * extent));
    Ok(phone)
}

fn run(plan: &Plan, whole: &Cost) -> Result<Pace> {
    match plan.run() {
        Ok(record) => {
            let counted = record.iterations.get(1..).unwrap_or_default();
            let mean = counted.iter().map(|time| time.seconds()).sum::<f64>() / counted.len().max(1) as f64;
            let time = (mean / whole.seconds).max(1.0);
            Ok(Pace::Slower { time, energy: (record.energy.0 / whole.joules).max(1.0) })
        }
        Err(RunError::Killed { kill, .. }) => Ok(Pace::Killed { after_s: kill.at.seconds() }),
        // Even the kernel's out-of-memory killer found no memory.
        Err(RunError::Phone(_)) => Ok(Pace::Killed { after_s: 0.0 }),
        Err(error) => Err(PlanError::Run(error).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_lies_on_lines_until_the_process_is_killed() {
        let slower = |time| Pace::Slower { time, energy: 1.0 + time };
        let killed = Pace::Killed { after_s: 9.0 };
        let curve = Curve { points: vec![(0.1, slower(2.0)), (0.2, slower(5.0)), (0.4, killed)] };
        let at = |left| curve.at(Bytes(1000), Bytes(left));
        assert_eq!([at(1000), at(2000)], [Pace::FULL; 2]);
        // Half of the way to the first point: 1.5 times the time; its energy 2 lies between 1 and 3.
        assert_eq!(at(950), Pace::Slower { time: 1.5, energy: 2.0 });
        let Pace::Slower { time, .. } = at(850) else { panic!("it is not killed") };
        assert!((time - 3.5).abs() < 1e-9, "{time}");
        // Nearer to the point that survives, nearer to the one that is killed, and beyond it.
        assert_eq!([at(750), at(650), at(100)], [slower(5.0), killed, killed]);
        // Extrapolated beyond the last point: 1 more for each 0.05.
        let open = Curve { points: vec![(0.1, slower(2.0)), (0.2, slower(4.0))] };
        let Pace::Slower { time, .. } = open.at(Bytes(1000), Bytes(700)) else { panic!("it is not killed") };
        assert!((time - 6.0).abs() < 1e-9, "{time}");
        assert_eq!(Curve::default().at(Bytes(1000), Bytes(1)), Pace::FULL);
    }
}
