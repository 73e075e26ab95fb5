//! `haversack simulate`: one run, for people or for programs.

mod text;

use std::path::PathBuf;

use haversack_devices::units::{Bytes, Nanos};
use haversack_reports::write_atomically;
use haversack_training::{Observe, PeakReport, Record};
use serde_json::{Map, Value, json};

use crate::cache::Cache;
use crate::error::CommandError;
use crate::output::{Format, note, print, print_json, warn};
use crate::run::{Plan, PlanError, Results};
use crate::scenario::Scenario;

/// What `simulate` is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The scenario.
    pub scenario: Scenario,
    /// How to print.
    pub format: Format,
    /// Where every operator is written to.
    pub timeline: Option<PathBuf>,
    /// Whether to list what is resident at the peak.
    pub explain: bool,
    /// Whether to look for the smallest memory budget.
    pub least_memory: bool,
}

/// A run that was simulated, with all that is printed about it.
struct Simulated<'a> {
    plan: &'a Plan,
    record: &'a Record,
    results: Results,
    unbounded: Nanos,
    least_memory: Option<Bytes>,
}

/// Simulates the scenario and prints the result.
///
/// # Errors
/// A scenario that is wrong; budgets that no plan meets, with the least that works; a time budget that is missed,
/// after the result is printed; files that cannot be written.
pub fn run(options: &Options) -> Result<(), CommandError> {
    let cache = Cache::new();
    let mut plan = Plan::new(&options.scenario, &cache)?;
    for sentence in &plan.resolved.notes {
        note(sentence);
    }
    plan.observe = Observe { timeline: options.timeline.is_some(), peak: options.explain };
    let record = plan.run().map_err(|error| plan.explain_failure(error, &cache))?;
    let least_memory = if options.least_memory { Some(plan.least_memory().map_err(PlanError::Run)?) } else { None };
    if let (Some(path), Some(timeline)) = (&options.timeline, &record.timeline) {
        write_atomically(path, timeline.to_chrome_json(&plan.graph).to_string().as_bytes())?;
    }
    let simulated = Simulated {
        plan: &plan,
        record: &record,
        results: Results::new(&record),
        unbounded: plan.unbounded_time(),
        least_memory,
    };
    match options.format {
        Format::Json => {
            print_json(&Value::Object(simulated.to_json()))?;
            if let Some(warning) = simulated.warning() {
                warn(&warning);
            }
        }
        Format::Text => print(&simulated.to_text())?,
    }
    match plan.budgets.time {
        Some(budget) if record.iteration > budget => {
            let took = record.iteration;
            Err(CommandError::failed(format!("the iteration takes {took}, more than the time budget of {budget}")))
        }
        _ => Ok(()),
    }
}

impl Simulated<'_> {
    /// What the device has to say about the run.
    fn warning(&self) -> Option<String> {
        let (reserved, ram) = (self.record.reserved, self.plan.resolved.device.ram());
        let device = &self.plan.scenario().device;
        (reserved > ram).then(|| format!("{device} has {ram} of memory and could not hold the {reserved} of this run"))
    }

    fn to_json(&self) -> Map<String, Value> {
        let mut map = self.results.to_json();
        let budgets = &self.plan.budgets;
        let cells = self.plan.scenario().cells(budgets.memory, budgets.activations);
        let scenario: Map<String, Value> = cells.into_iter().map(|(name, cell)| (name, cell.to_json())).collect();
        map.insert("scenario".to_owned(), Value::Object(scenario));
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
