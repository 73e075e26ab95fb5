//! `haversack simulate`: one run, for people or for programs.

mod longest;
mod text;

use std::path::PathBuf;

use clap::Args;
use haversack_devices::units::{Bytes, Nanos};
use haversack_reports::write_atomically;
use haversack_training::{Observe, PeakReport, Record, RunError, Wall};
use serde_json::{Map, Value, json};

use crate::cache::Cache;
use crate::checked::doubt;
use crate::error::CommandError;
use crate::output::{Format, note, print, print_json, warn};
use crate::quantities;
use crate::run::{Plan, PlanError, Results};
use crate::scenario::ScenarioFlags;
use longest::Longest;

/// What `simulate` is asked for.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    haversack simulate --device galaxy-s10 --model resnet50 --batch 32 --policy sage --memory-budget 30%\n  \
    haversack simulate scenario.toml --memory-budget 1.2GB --format json --timeline run.json\n  \
    haversack simulate --device rtx-3090 --model bert-base --policy sage --set order=half --least-memory\n\n\
    A scenario file holds the same keys, as in\n  \
    device = \"galaxy-s10\"\n  model = \"resnet50\"\n  batch = 32\n  policy = \"sage\"\n  memory_budget = \"30%\"\n  set = { order = \"half\" }\n\
    Flags win over the file.")]
pub struct SimulateOptions {
    /// A scenario file; flags win over what it says
    #[arg(value_name = "SCENARIO.toml")]
    pub file: Option<PathBuf>,
    /// The keys that are given as flags.
    #[command(flatten)]
    pub scenario: ScenarioFlags,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Writes every operator and the memory to FILE, for chrome://tracing or Perfetto
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,
    /// Lists the ten largest tensors at the peak, and the operator there
    #[arg(long)]
    pub explain: bool,
    /// Also prints the smallest memory budget that works
    #[arg(long)]
    pub least_memory: bool,
}

/// A run that was simulated, with all that is printed about it.
struct Simulated<'a> {
    plan: &'a Plan,
    record: &'a Record,
    results: Results,
    longest: Vec<Longest>,
    least_memory: Option<Bytes>,
}

/// Simulates the scenario and prints the result.
///
/// # Errors
/// A scenario that is wrong; budgets, or a memory of the device, that no plan meets, with the least that works; a time budget that is missed,
/// after the result is printed; files that cannot be written.
pub fn run(options: &SimulateOptions) -> Result<(), CommandError> {
    let cache = Cache::new();
    let mut plan = Plan::new(&options.scenario.over(options.file.as_deref())?, &cache)?;
    for sentence in &plan.resolved.notes {
        note(sentence);
    }
    plan.observe =
        Observe { timeline: options.timeline.is_some(), peak: options.explain, operators: true, stored: false };
    // What is needed is asked without the limit of the device.
    let record = if options.least_memory { plan.run() } else { plan.run_within_device() };
    let record = match record {
        Ok(record) => record,
        Err(error @ RunError::Killed { .. }) => return answer_killed(&plan, &error, options.format),
        Err(error) => return Err(plan.explain_failure(error, &cache).into()),
    };
    let budgets = &plan.budgets;
    let changing = [&budgets.walls, &budgets.activation_walls, &budgets.traced];
    if options.least_memory && changing.iter().any(|walls| !walls.is_empty()) {
        note(&"the least memory budget is of a run whose budget does not change");
    }
    let least_memory = if options.least_memory { Some(plan.least_memory().map_err(PlanError::Run)?) } else { None };
    if let (Some(path), Some(timeline)) = (&options.timeline, &record.timeline) {
        write_atomically(path, timeline.to_chrome_json(&plan.graph).to_string().as_bytes())?;
    }
    late_walls(&plan, &record);
    short_trace(&plan, &record);
    let simulated = Simulated {
        plan: &plan,
        record: &record,
        results: Results::new(&plan, &record),
        longest: longest::of(&plan.graph, &record),
        least_memory,
    };
    match options.format {
        Format::Json => {
            print_json(&Value::Object(simulated.to_json()))?;
            if let Some(doubt) = doubt(&plan) {
                note(&doubt);
            }
        }
        Format::Text => {
            let baseline = if plan.is_baseline() { None } else { Some(plan.baseline_time(&cache)) };
            print(&simulated.to_text(baseline.as_ref()))?;
        }
    }
    match plan.budgets.time {
        Some(budget) if record.iteration > budget => {
            let took = record.iteration;
            Err(CommandError::NoPlan(format!("the iteration takes {took}, more than the time budget of {budget}")))
        }
        _ => Ok(()),
    }
}

/// A run that the low-memory killer ended every time: an answer too, without figures.
fn answer_killed(plan: &Plan, error: &RunError, format: Format) -> Result<(), CommandError> {
    match format {
        Format::Json => {
            print_json(&json!({"status": "killed", "reason": error.to_string(), "scenario": scenario_json(plan)}))
        }
        Format::Text => print(&format!("{error}\n")),
    }
}

fn scenario_json(plan: &Plan) -> Value {
    let cells = plan.scenario().cells(plan.budget_bytes());
    Value::Object(cells.into_iter().map(|(name, cell)| (name.to_owned(), cell.to_json())).collect())
}

/// Says of budgets that they never held, since the iteration or the run was over before.
fn late_walls(plan: &Plan, record: &Record) {
    let budgets = &plan.budgets;
    let walls = || budgets.walls.iter().chain(&budgets.activation_walls);
    // Of what was recorded nobody expects that a run sees all.
    let traced: &[Wall] = if plan.resolved.covered.is_some() { &[] } else { &budgets.traced };
    let late = walls().filter(|wall| wall.at >= record.iteration).count();
    let late_of_trace = traced.iter().filter(|wall| wall.at >= record.ended).count();
    for (late, all, what, ended) in
        [(late, walls().count(), "iteration", record.iteration), (late_of_trace, traced.len(), "run", record.ended)]
    {
        if late > 0 {
            let ended = quantities::time(ended);
            note(&format!(
                "{late} of {all} changes of the budget come after the {what} has ended, at {ended}, and never hold"
            ));
        }
    }
}

/// Warns of a trace that ended before the run did.
fn short_trace(plan: &Plan, record: &Record) {
    let Some(covered) = &plan.resolved.covered else { return };
    if covered.held(record.ended) > Nanos::ZERO {
        let (length, ended) = (quantities::time(covered.length), quantities::time(record.ended));
        warn(&format!("the trace covers {length} of a run of {ended}; after its end the last values are held"));
    }
}

impl Simulated<'_> {
    fn to_json(&self) -> Map<String, Value> {
        let mut map = self.results.to_json();
        map.insert("status".to_owned(), json!("ok"));
        map.insert("scenario".to_owned(), scenario_json(self.plan));
        map.insert("longest".to_owned(), self.longest.iter().map(Longest::to_json).collect());
        if let Some(bytes) = self.least_memory {
            map.insert("least_memory_bytes".to_owned(), json!(bytes.0));
        }
        if let Some(peak) = &self.record.peak {
            map.insert("peak".to_owned(), peak_json(peak));
        }
        map
    }
}

fn peak_json(peak: &PeakReport) -> Value {
    let largest = peak.largest.iter().map(|held| json!({"name": held.name, "bytes": held.bytes.0, "hold": held.hold}));
    json!({"node": peak.node, "micro_batch": peak.micro_batch, "largest": largest.collect::<Vec<_>>()})
}
