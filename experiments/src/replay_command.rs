//! `haversack replay`: a recorded operator log with less memory than it had.

use std::path::PathBuf;
use std::time::Instant;

use haversack_policies::{PolicyError, registry};
use haversack_replay::{DEFAULT_OVERHEAD_LIMIT, Heuristic, Log, Outcome, replay};
use serde_json::json;

use crate::error::CommandError;
use crate::output::{Format, print, print_json};

/// The policy whose rules logs are replayed by.
const POLICY: &str = "dtr";

/// What `replay` is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The log.
    pub log: PathBuf,
    /// The policy.
    pub policy: String,
    /// Its heuristic.
    pub heuristic: String,
    /// Memory, as a share of the log's own peak.
    pub memory_ratio: f64,
    /// The most time, as a multiple of the log's own.
    pub overhead_limit: Option<f64>,
    /// Whether to print how fast it was.
    pub timing: bool,
    /// How to print.
    pub format: Format,
}

/// Replays the log and prints how it went. Running out of memory or time is an answer, not an error.
///
/// # Errors
/// A log that cannot be read or is none, a policy that replays none, settings that no replay can have.
pub fn run(options: &Options) -> Result<(), CommandError> {
    if options.policy != POLICY {
        registry::find(&options.policy).map_err(|error| match error {
            PolicyError::Unknown { found, .. } => PolicyError::Unknown { found, nearest: Some(POLICY.to_owned()) },
            other => other,
        })?;
        return Err(CommandError::input(format!("--policy: only {POLICY} replays logs, not {}", options.policy)));
    }
    let heuristic: Heuristic = options.heuristic.parse()?;
    let limit = options.overhead_limit.unwrap_or(DEFAULT_OVERHEAD_LIMIT);
    let log = Log::read(&options.log)?;
    let start = Instant::now();
    let outcome = replay(&log, heuristic, options.memory_ratio, limit)?;
    let speed = options.timing.then(|| outcome.operators as f64 / start.elapsed().as_secs_f64().max(1e-9));
    match options.format {
        Format::Json => {
            let mut answer = json!({
                "status": outcome.status.as_str(),
                "slowdown": outcome.slowdown,
                "clock_final": outcome.clock_final,
                "evictions": outcome.evictions,
                "evict_hash": format!("{:016x}", outcome.evict_hash),
            });
            if let (Some(speed), Some(map)) = (speed, answer.as_object_mut()) {
                map.insert("operators_per_s".to_owned(), json!(speed));
            }
            print_json(&answer)
        }
        Format::Text => print(&text(&outcome, &log, heuristic, speed)),
    }
}

fn text(outcome: &Outcome, log: &Log, heuristic: Heuristic, speed: Option<f64>) -> String {
    let speed = speed.map_or_else(String::new, |speed| format!("speed        {speed:.0} operators/s\n"));
    format!(
        "{} under dtr with the heuristic {heuristic}\n\n\
         status       {}\n\
         slowdown     {:.4}\n\
         clock        {} ns ({} without a budget)\n\
         memory       {} of a budget of {} ({} without one)\n\
         evictions    {} (digest {:016x})\n\
         recomputed   {} of {} operators\n{speed}",
        log.name(),
        outcome.status,
        outcome.slowdown,
        outcome.clock_final,
        outcome.baseline_compute,
        outcome.peak_memory,
        outcome.budget,
        outcome.baseline_memory,
        outcome.evictions,
        outcome.evict_hash,
        outcome.rematerialised_operators,
        outcome.operators,
    )
}
