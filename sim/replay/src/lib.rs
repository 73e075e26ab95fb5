//! Replay of recorded operator logs under dynamic rematerialisation.
//!
//! A [`Log`] records the work of a deep-learning framework, one operator per line, with the operator's time and its
//! output bytes. [`replay`] runs it again with less memory: it evicts tensors by a [`Heuristic`] when an operator does
//! not fit, and recomputes them when they are needed. The rules are those of the simulator published with *Dynamic
//! Tensor Rematerialization* (Kirisame et al., ICLR 2021), version 2 with eager eviction, and the replay agrees with it
//! in every eviction: [`Outcome::evict_hash`] is a digest of every victim and the clock of its eviction.
//!
//! Not modelled: alignment, fragmentation, and the time of the policy itself.
//!
//! ```
//! use haversack_replay::{replay, Heuristic, Log, Status};
//!
//! let log = Log::parse("tiny.log", r#"{"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}
//! {"INSTRUCTION":"CONSTANT","NAME":"w"}
//! {"INSTRUCTION":"MEMORY","NAME":"w","MEMORY":"100"}
//! {"INSTRUCTION":"CALL","NAME":"relu","ARGS":["w"],"RESULT":["y"],"TIME":"7"}
//! {"INSTRUCTION":"MEMORY","NAME":"y","MEMORY":"100"}
//! {"INSTRUCTION":"ALIAS","NAME":"y","ALIAS":"-1"}"#)?;
//! let outcome = replay(&log, Heuristic::Dtr, 1.0, 4.0)?;
//! assert_eq!(outcome.status, Status::Ok);
//! // The clock starts at 1, and the one operator takes 7 ns.
//! assert_eq!(outcome.clock_final, 8);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Errors in a log, a heuristic's name or a replay's settings.
//!
//! The result of a replay: how it ended, and its counters.

mod classes;
mod heuristic;
mod log;
mod program;
mod region;
mod runtime;
mod spanset;

pub use heuristic::{Candidate, Heuristic, largest, least_recent};
pub use log::Log;
pub use runtime::{per_byte, per_byte_and_staleness};

use haversack_devices::text::{alternatives, question};
use haversack_devices::{Bytes, Nanos, ensure};
use strum::{Display, IntoStaticStr};
use thiserror::Error;

/// The default overhead limit: a run may take four times the baseline.
pub const DEFAULT_OVERHEAD_LIMIT: f64 = 4.0;

/// Replays `log` within `memory_ratio` of its baseline peak.
///
/// The budget is the product rounded down. The run stops as [`Status::Thrash`] once
/// rematerialisation has taken more than `overhead_limit - 1` times the baseline's compute time.
///
/// # Errors
///
/// [`ReplayError`] if the ratio is not a positive, finite number or the limit is not a finite number of at least 1.
pub fn replay(log: &Log, heuristic: Heuristic, memory_ratio: f64, overhead_limit: f64) -> Result<Outcome, ReplayError> {
    ensure!(memory_ratio.is_finite() && memory_ratio > 0.0, ReplayError::MemoryRatio(memory_ratio));
    ensure!(overhead_limit.is_finite() && overhead_limit >= 1.0, ReplayError::OverheadLimit(overhead_limit));
    let program = &log.program;
    let limits = runtime::Limits::new(program, memory_ratio, overhead_limit);
    Ok(match heuristic {
        Heuristic::Dtr => runtime::run::<region::Neighbourhoods>(program, limits),
        Heuristic::DtrEq => runtime::run::<classes::Classes>(program, limits),
        Heuristic::DtrLocal => runtime::run::<heuristic::Local>(program, limits),
        Heuristic::Msps => runtime::run::<region::Ancestors>(program, limits),
        Heuristic::Lru => runtime::run::<heuristic::LeastRecent>(program, limits),
        Heuristic::Size => runtime::run::<heuristic::Largest>(program, limits),
    })
}

/// A log that cannot be replayed, in words: the file, the line and the field if there is one, and the expected content.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct LogError(pub(crate) String);

/// Invalid settings of a replay.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The ratio is zero, negative or not finite.
    #[error("memory ratio {0}: expected a positive number, such as 0.5")]
    MemoryRatio(f64),
    /// The limit is less than the time of the log itself.
    #[error("overhead limit {0}: expected a number of at least 1, such as 4.0")]
    OverheadLimit(f64),
    /// No heuristic has this name.
    #[error("unknown heuristic '{found}'; expected {}{}", alternatives(valid.iter().copied()), question(*nearest))]
    UnknownHeuristic {
        /// The name in question.
        found: String,
        /// The nearest valid name, if one is similar.
        nearest: Option<&'static str>,
        /// All valid names.
        valid: Vec<&'static str>,
    },
}

/// How a replay ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Display, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Status {
    /// The whole log ran.
    #[default]
    Ok,
    /// An operator did not fit, with nothing left to evict.
    #[strum(serialize = "OOM")]
    Oom,
    /// Recomputing took more than the overhead limit allows.
    Thrash,
}

impl Status {
    /// The word printed by the reference: `ok`, `OOM` or `thrash`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The result of a replay, up to its end or to the operator at which it stopped.
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
    /// The peak memory.
    pub peak_memory: Bytes,
    /// The memory budget of the run.
    pub budget: Bytes,
    /// The time of executing every operator once.
    pub baseline_compute: Nanos,
    /// Peak memory of plain reference counting without a budget.
    pub baseline_memory: Bytes,
}
