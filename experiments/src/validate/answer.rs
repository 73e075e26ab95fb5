//! Simulates the rows of a set: each scenario runs once, for all rows that need its figures.

use indexmap::IndexMap;
use rayon::prelude::*;
use serde_json::{Map, Value};

use super::memory;
use crate::measured_set::{LARGEST_BATCH, Row, Set, Subject};
use crate::progress::{Amount, Progress};
use crate::run::{Outcome, PlanError, Status};
use crate::scenario::ScenarioError;
use crate::{Cache, CommandError, Key, Plan, Scenario};

/// A row's number in its unit, or the reason why it has none.
pub(super) type Answer = Result<f64, String>;

/// The answers to the rows of `set`, in their order.
///
/// # Errors
/// A network that does not load. Everything else that keeps a row from an answer becomes its reason.
pub(super) fn answers(set: &Set, cache: &Cache) -> Result<Vec<Answer>, CommandError> {
    let mut runs: IndexMap<String, &Row> = IndexMap::new();
    let run_of = |row: &Row| match &row.subject {
        Subject::Training { scenario, batches } => format!("{} {batches:?}", scenario.fingerprint(Key::ALL)),
        Subject::Storage(transfers) => format!("{transfers:?}"),
        Subject::Stall(window) => format!("{window:?}"),
    };
    for row in &set.rows {
        runs.entry(run_of(row)).or_insert(row);
    }
    let bar = Progress::new(Amount::Number("scenarios"), runs.len() as u64, 0);
    let run = |row: &&Row| {
        let found = match &row.subject {
            Subject::Training { scenario, batches } if batches.is_empty() => figures(scenario, cache),
            Subject::Training { scenario, batches } => largest(scenario, batches, cache),
            Subject::Storage(transfers) => Ok(memory::transfers(transfers)),
            Subject::Stall(window) => Ok(memory::window(window)),
        };
        bar.inc(1);
        found
    };
    let rows: Vec<&Row> = runs.values().copied().collect();
    let found: Vec<Found> = rows.par_iter().map(run).collect::<Result<_, _>>()?;
    bar.finish();
    let found: IndexMap<String, Found> = runs.into_keys().zip(found).collect();
    let answer = |row: &Row| {
        let figures = found[&run_of(row)].as_ref().map_err(Clone::clone)?;
        let name = &row.quantity.name;
        let value = figures.get(name).and_then(Value::as_f64);
        value.map(|value| value / row.quantity.size).ok_or_else(|| format!("the simulator gives no {name} of it"))
    };
    Ok(set.rows.iter().map(answer).collect())
}

/// The figures of a run by name, or the reason why there are none.
pub(super) type Found = Result<Map<String, Value>, String>;

/// The figures of `scenario`.
fn figures(scenario: &Scenario, cache: &Cache) -> Result<Found, CommandError> {
    let plan = match planned(scenario, cache)? {
        Ok(plan) => plan,
        Err(reason) => return Ok(Err(reason)),
    };
    let outcome = Outcome::of(&plan, cache);
    let reason = || outcome.reason.clone().unwrap_or_else(|| outcome.status.word().to_owned());
    Ok(outcome.results.as_ref().map(crate::run::Results::to_json).ok_or_else(reason))
}

/// The plan of `scenario`, or the reason why there is none.
fn planned(scenario: &Scenario, cache: &Cache) -> Result<Result<Plan, String>, CommandError> {
    match Plan::new(scenario, cache) {
        Ok(plan) => Ok(Ok(plan)),
        Err(PlanError::Scenario(error)) if error.field == Key::Model.name() => Err(CommandError::Scenario(error)),
        Err(PlanError::Scenario(error)) => Ok(Err(words(&error))),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// The error in a scenario, without the position.
fn words(error: &ScenarioError) -> String {
    format!("`{}`: {}", error.field, error.fault)
}

/// The largest of `batches` that fits the device; zero if none does.
fn largest(scenario: &Scenario, batches: &[u64], cache: &Cache) -> Result<Found, CommandError> {
    let mut batches = batches.to_vec();
    batches.sort_unstable();
    let mut holds = 0;
    for batch in batches {
        // The run succeeds whether it fits or not, and reports which.
        let scenario = Scenario { batch, ignore_ram: true, ..scenario.clone() };
        let plan = match planned(&scenario, cache)? {
            Ok(plan) => plan,
            Err(reason) => return Ok(Err(reason)),
        };
        let outcome = Outcome::of(&plan, cache);
        match outcome.status {
            Status::Ok if outcome.results.as_ref().is_some_and(|results| results.exceeds_ram) => break,
            Status::Ok => holds = batch,
            Status::Infeasible | Status::Killed => break,
            Status::Unsupported | Status::Error => return Ok(Err(outcome.reason.unwrap_or_default())),
        }
    }
    Ok(Ok(Map::from_iter([(LARGEST_BATCH.to_owned(), Value::from(holds))])))
}
