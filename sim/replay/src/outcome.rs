//! What a replay answers: how it ended, and what it counted on the way.

use haversack_devices::units::{Bytes, Nanos};
use strum::{Display, IntoStaticStr};

/// How a replay ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Display, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Status {
    /// The whole log ran.
    #[default]
    Ok,
    /// An operator did not fit although nothing was left to evict.
    #[strum(serialize = "OOM")]
    Oom,
    /// Recomputing took more than the overhead limit allows.
    Thrash,
}

impl Status {
    /// The word that the reference prints: `ok`, `OOM` or `thrash`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What a replay did, up to its end or to the operator at which it stopped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// `clock_final` over the baseline's compute time; a partial figure unless the status is ok.
    pub slowdown: f64,
    /// The clock at the end, in nanoseconds; it starts at 1.
    pub clock_final: u64,
    /// Storages evicted, the eager ones included.
    pub evictions: u64,
    /// Storages evicted by the heuristic, because an operator did not fit.
    pub heuristic_evictions: u64,
    /// Scores computed while looking for victims.
    pub heuristic_evaluations: u64,
    /// FNV-1a-like digest over (root tensor, clock) of every eviction, in order.
    pub evict_hash: u64,
    /// Operators executed, constants and rematerialisations included.
    pub operators: u64,
    /// Operators executed again.
    pub rematerialised_operators: u64,
    /// Time in operators executed for the first time.
    pub model_compute: Nanos,
    /// Time in operators executed again.
    pub rematerialised_compute: Nanos,
    /// The most memory held at once.
    pub peak_memory: Bytes,
    /// The memory that the run was given.
    pub budget: Bytes,
    /// Time of every operator once.
    pub baseline_compute: Nanos,
    /// Peak memory of plain reference counting without a budget.
    pub baseline_memory: Bytes,
}
