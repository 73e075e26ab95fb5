//! Replay of recorded operator logs under dynamic rematerialisation.
//!
//! A [`Log`] is what a deep-learning framework did, one operator a line, with the time each took
//! and the bytes it made. [`replay`] runs it again with less memory: it evicts tensors by a
//! [`Heuristic`] when an operator does not fit and recomputes them when they are needed. The rules
//! are those of the simulator published with *Dynamic Tensor Rematerialization* (Kirisame et al.,
//! ICLR 2021), version 2 with eager eviction, and are followed to the last eviction:
//! [`Outcome::evict_hash`] digests every victim and the clock at which it went.
//!
//! What is not modelled: alignment, fragmentation, and the time the policy itself takes.
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

mod classes;
mod error;
mod heuristic;
mod log;
mod outcome;
mod pool;
mod program;
mod region;
mod runtime;
mod spanset;

pub use error::{LogError, ReplayError};
pub use heuristic::{Candidate, Heuristic, largest, least_recent};
pub use log::Log;
pub use outcome::{Outcome, Status};
pub use runtime::{per_byte, per_byte_and_staleness};

/// The overhead limit where the user states none: a run may take four times the baseline.
pub const DEFAULT_OVERHEAD_LIMIT: f64 = 4.0;

/// Replays `log` within `memory_ratio` of its baseline peak.
///
/// The budget is the product rounded down. The run stops as [`Status::Thrash`] once
/// rematerialisation has taken more than `overhead_limit - 1` times the baseline's compute time.
///
/// # Errors
///
/// [`ReplayError`] where the ratio is not a positive, finite number or the limit is not a finite
/// number of at least 1.
pub fn replay(log: &Log, heuristic: Heuristic, memory_ratio: f64, overhead_limit: f64) -> Result<Outcome, ReplayError> {
    if !(memory_ratio.is_finite() && memory_ratio > 0.0) {
        return Err(ReplayError::MemoryRatio(memory_ratio));
    }
    if !(overhead_limit.is_finite() && overhead_limit >= 1.0) {
        return Err(ReplayError::OverheadLimit(overhead_limit));
    }
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
