//! One run of a sweep: how it ended, and its figures.

use serde::{Deserialize, Serialize};

use super::Specification;
use crate::cache::Cache;
use crate::run::{Outcome, Plan, Results, Status};
use crate::scenario::{BudgetBytes, Cell};

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[must_use]
pub struct Row {
    /// The number of the run, from zero.
    pub run: u64,
    /// The keys of its scenario, nothing left open; of what does not go together, what was asked.
    pub scenario: Vec<(String, Cell)>,
    /// Whether there are figures, and if not why.
    pub status: Status,
    /// The figures; of a run that missed its time budget too.
    pub results: Option<Results>,
    /// The least memory budget that works, if this one does not.
    pub least_memory_bytes: Option<u64>,
    /// Why it is not `ok`.
    pub reason: Option<String>,
}

impl Row {
    /// Runs the run numbered `run`; whatever goes wrong is in the row.
    pub fn run(run: u64, specification: &Specification, cache: &Cache) -> Self {
        let asked = match specification.scenario(run) {
            Ok(asked) => asked,
            Err(error) => return Self::ended(run, Vec::new(), Outcome::refused(&error.into())),
        };
        match Plan::new(&asked, cache) {
            Ok(plan) => Self::ended(run, plan.scenario().cells(plan.budget_bytes()), Outcome::of(&plan, cache)),
            Err(error) => {
                let scenario = asked.resolve_in(cache).map_or(asked, |resolved| resolved.scenario);
                Self::ended(run, scenario.cells(BudgetBytes::default()), Outcome::refused(&error))
            }
        }
    }

    fn ended(run: u64, cells: Vec<(&str, Cell)>, outcome: Outcome) -> Self {
        let scenario = cells.into_iter().map(|(name, cell)| (name.to_owned(), cell)).collect();
        let Outcome { status, results, least_memory, reason, .. } = outcome;
        Self { run, scenario, status, results, least_memory_bytes: least_memory.map(|bytes| bytes.0), reason }
    }
}
