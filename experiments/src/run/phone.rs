//! What the kernel of a phone in use saw of a run, as its JSON and a sweep's table name it.

use haversack_training::{PhoneReport, Record, Stalls};
use serde::{Deserialize, Serialize};

/// What was seen in all iterations together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[must_use]
pub struct PhoneResults {
    /// Time in which somebody stalled for want of memory (`/proc/pressure/memory`).
    pub psi_some_s: f64,
    /// Time in which somebody stalled and nobody worked.
    pub psi_full_s: f64,
    /// The mean of what could not be had: `MemTotal` less `MemAvailable`.
    pub unavailable_bytes: u64,
    /// Counters of `/proc/vmstat` by name, in pages of 4 KiB.
    pub vmstat: Vec<(String, u64)>,
    /// Stalls of the process that trains.
    pub trainer_stalls: StallResults,
    /// Stalls of the system's own processes.
    pub system_stalls: StallResults,
    /// Stalls of apps.
    pub app_stalls: StallResults,
    /// Apps that came to the front, until their pages were in.
    pub launches: StallResults,
    /// Every time that the process that trains was ended.
    pub killed: Vec<KillResults>,
    /// The memory budgets that were planned, in their order.
    pub planned_budgets_bytes: Vec<u64>,
}

/// How often somebody waited, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StallResults {
    /// How often.
    pub count: u64,
    /// All together.
    pub total_s: f64,
    /// The longest.
    pub longest_s: f64,
}

impl From<Stalls> for StallResults {
    fn from(stalls: Stalls) -> Self {
        Self { count: stalls.count, total_s: stalls.total.seconds(), longest_s: stalls.longest.seconds() }
    }
}

impl StallResults {
    /// The mean; zero of none.
    pub fn mean_s(&self) -> f64 {
        self.total_s / self.count.max(1) as f64
    }
}

/// A kill of the process that trains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KillResults {
    /// When, from the start of the run.
    pub at_s: f64,
    /// The iteration under way, from one.
    pub iteration: u64,
    /// Why, in the words of the low-memory killer.
    pub reason: String,
    /// The score of what was ended, and the least that might be.
    pub adj: i32,
    /// See `adj`.
    pub min_adj: i32,
    /// The work that was lost.
    pub lost_s: f64,
}

impl PhoneResults {
    /// Of `record`; `None` if it is of no phone in use.
    pub fn of(record: &Record) -> Option<Self> {
        let PhoneReport { run, kills, .. } = record.phone.as_ref()?;
        let kill = |kill: &haversack_training::TrainerKill| KillResults {
            at_s: kill.kill.at.seconds(),
            iteration: u64::from(kill.iteration) + 1,
            reason: kill.kill.reason.name().to_owned(),
            adj: kill.kill.adj,
            min_adj: kill.kill.min_adj,
            lost_s: kill.lost.seconds(),
        };
        Some(Self {
            psi_some_s: run.pressure.some.seconds(),
            psi_full_s: run.pressure.full.seconds(),
            unavailable_bytes: run.unavailable_mean.0,
            vmstat: run.counters.each().map(|(name, count)| (name.to_owned(), count)).collect(),
            trainer_stalls: run.trainer.into(),
            system_stalls: run.system.into(),
            app_stalls: run.apps.into(),
            launches: run.launches.into(),
            killed: kills.iter().map(kill).collect(),
            planned_budgets_bytes: record.planned.iter().map(|budget| budget.0).collect(),
        })
    }
}
