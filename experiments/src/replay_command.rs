//! `haversack replay`: replays a recorded operator log with less memory than it had.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use haversack_policies::{PolicyError, registry};
use haversack_replay::{DEFAULT_OVERHEAD_LIMIT, Heuristic, Log, Outcome, Status, replay};
use serde_json::{Value, json};

use crate::output::{Format, join};
use crate::texts::text;
use crate::{CommandError, Result};

/// The policy that replays logs.
const POLICY: &str = "dtr";

/// The options of `replay`.
#[derive(Clone, Debug, Args)]
#[command(after_help = include_str!("../help/replay.txt"))]
pub struct ReplayOptions {
    /// Recorded log, one JSON instruction per line
    #[arg(value_name = "LOG")]
    pub log: PathBuf,
    /// Policy; only dtr replays logs
    #[arg(long, value_name = "ID", default_value = "dtr")]
    pub policy: String,
    /// Eviction heuristic: dtr, dtr-eq, dtr-local, msps, lru or size
    #[arg(long, value_name = "NAME", default_value = "dtr")]
    pub heuristic: String,
    /// Memory limit, as a fraction of the log's peak
    #[arg(long, value_name = "R", allow_hyphen_values = true)]
    pub memory_ratio: f64,
    /// Stop once the log takes this many times its original time [default: 4.0]
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    pub overhead_limit: Option<f64>,
    /// Also print how many operators were replayed per second
    #[arg(long)]
    pub timing: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Replays the log and prints the outcome. Running out of memory or time is an outcome, not an error.
///
/// # Errors
/// A file that cannot be read or is not a log, a policy that cannot replay logs, settings that no replay can have.
pub fn run(options: &ReplayOptions) -> Result<()> {
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
    options.format.print(|| to_text(&outcome, &log, heuristic, speed), || to_json(&outcome, speed))
}

fn to_json(outcome: &Outcome, speed: Option<f64>) -> Value {
    let mut answer = json!({
        "status": outcome.status.as_str(),
        // A run that ended early for lack of memory has no time to compare.
        "slowdown": (outcome.status != Status::Oom).then_some(outcome.slowdown),
        "clock_final": outcome.clock_final, "evictions": outcome.evictions, "evict_hash": format!("{:016x}", outcome.evict_hash),
    });
    if let Some(speed) = speed {
        answer["operators_per_s"] = json!(speed);
    }
    answer
}

fn to_text(outcome: &Outcome, log: &Log, heuristic: Heuristic, speed: Option<f64>) -> String {
    let Outcome { baseline_compute, baseline_memory, peak_memory, budget, .. } = outcome;
    let mut answer = to_json(outcome, speed);
    let more = json!({
        "log": log.name(), "heuristic": heuristic.to_string(), "slowdown": Some(outcome.slowdown).filter(|slowdown| slowdown.is_normal()),
        "baseline_compute": baseline_compute.to_string(), "baseline_memory": baseline_memory.to_string(),
        "peak_memory": peak_memory.to_string(), "budget": budget.to_string(),
        "rematerialised_operators": outcome.rematerialised_operators, "operators": outcome.operators,
    });
    join(&mut answer, more);
    text(include_str!("../texts/replay.txt"), &answer)
}
