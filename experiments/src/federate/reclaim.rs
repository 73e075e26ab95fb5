//! Training with less memory than it takes: how much slower it is while the kernel reclaims, and when it is killed.
//!
//! For each memory class the phone in use runs a few iterations of what the federation trains, without a budget, while others
//! hold so much that a share of what training takes is missing. The slow-down is that of an iteration after the first; in
//! between it lies on straight lines. A plan that holds more than is left is slowed down as the share that it is short of says.

use std::sync::Arc;

use haversack_devices::units::{Bytes, Nanos};
use haversack_federation::population::DeviceKind;
use haversack_training::RunError;
use haversack_training::phone::{HeldByOthers, OtherMemory, Phone};

use super::iteration::{Cost, scenario};
use super::specification::Specification;
use crate::cache::Cache;
use crate::error::CommandError;
use crate::run::{Plan, PlanError};
use crate::scenario::{Key, Scenario};

/// Shares of what training takes that are missing.
const MISSING: [f64; 5] = [0.05, 0.1, 0.2, 0.35, 0.5];
/// Iterations of each: the second and the third count.
const ITERATIONS: u32 = 3;

/// How training goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pace {
    /// An iteration takes so many times as long, and so many times the energy.
    Slower { time: f64, energy: f64 },
    /// The system ends the process for good after so many seconds.
    Killed { after_s: f64 },
}

impl Pace {
    /// Nothing is missing.
    const FULL: Self = Self::Slower { time: 1.0, energy: 1.0 };
}

/// The pace by the share that is missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Curve {
    /// By the share, rising; of those that kill there is one, the last.
    points: Vec<(f64, Pace)>,
}

impl Curve {
    /// Of phones like `kind`, where `whole` is an iteration to which nothing is missing, up to the share `most` or to where the
    /// process is killed.
    ///
    /// # Errors
    /// A scenario that is wrong, or a run that fails for another reason.
    pub(super) fn simulate(
        asked: &Specification,
        kind: &DeviceKind,
        whole: &Cost,
        most: f64,
        cache: &Cache,
    ) -> Result<Self, CommandError> {
        let mut points = Vec::new();
        for (place, share) in MISSING.into_iter().enumerate() {
            if place > 0 && MISSING[place - 1] >= most {
                break;
            }
            let pace = pressed(asked, kind, whole, share, cache)?;
            points.push((share, pace));
            if matches!(pace, Pace::Killed { .. }) {
                break;
            }
        }
        Ok(Self { points })
    }

    /// The pace of a process that takes `peak` where `left` is there.
    pub(super) fn at(&self, peak: Bytes, left: Bytes) -> Pace {
        if left >= peak {
            return Pace::FULL;
        }
        let share = peak.saturating_sub(left).as_f64() / peak.as_f64();
        let above = self.points.iter().position(|&(known, _)| known >= share);
        let place = above.unwrap_or(self.points.len().saturating_sub(1));
        let Some(&(known, pace)) = self.points.get(place) else { return Pace::FULL };
        // Beyond the last point its line goes on.
        let Pace::Slower { time: high, energy: more } = pace else {
            return match place.checked_sub(1).map(|before| self.points[before]) {
                // Nearer to one that lives.
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

/// The pace of an iteration where the share `missing` of what it takes is missing.
fn pressed(
    asked: &Specification,
    kind: &DeviceKind,
    whole: &Cost,
    missing: f64,
    cache: &Cache,
) -> Result<Pace, CommandError> {
    let scenario =
        Scenario { system: Some(asked.system.clone()), iterations: ITERATIONS, ..scenario(asked, kind, None) };
    let key = format!("iteration under reclaim, {missing} missing, {}", scenario.fingerprint(Key::ALL));
    let pace = cache.get(key, || {
        let mut plan = Plan::new(&scenario, cache)?;
        let left = Bytes((whole.peak.as_f64() * (1.0 - missing)) as u64);
        plan.resolved.phone = plan.resolved.phone.map(|phone| Arc::new(leaving(&phone, left)));
        run(&plan, whole)
    })?;
    Ok(*pace)
}

/// `phone`, where others hold all but `left` from the start.
fn leaving(phone: &Phone, left: Bytes) -> Phone {
    let held = HeldByOthers { at: Nanos::ZERO, bytes: phone.memory.ram.saturating_sub(left) };
    let hot =
        phone.own.iter().map(|own| own.hot).fold(phone.others.hot, |most, hot| if hot.0 > most.0 { hot } else { most });
    Phone { others: OtherMemory { series: vec![held], hot }, cached: Vec::new(), ..phone.clone() }
}

fn run(plan: &Plan, whole: &Cost) -> Result<Pace, CommandError> {
    match plan.run() {
        Ok(record) => {
            let counted = record.iterations.get(1..).unwrap_or_default();
            let mean = counted.iter().map(|time| time.seconds()).sum::<f64>() / counted.len().max(1) as f64;
            let time = (mean / whole.seconds).max(1.0);
            Ok(Pace::Slower { time, energy: (record.energy.0 / whole.joules).max(1.0) })
        }
        Err(RunError::Killed { kill, .. }) => Ok(Pace::Killed { after_s: kill.at.seconds() }),
        // Not even the kernel's own killer finds memory.
        Err(RunError::Phone(_)) => Ok(Pace::Killed { after_s: 0.0 }),
        Err(error) => Err(PlanError::Run(error).into()),
    }
}
