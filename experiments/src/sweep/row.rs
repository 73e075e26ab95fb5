//! One run of a sweep: how it ended, and its figures.

use serde::{Deserialize, Serialize};

use super::Specification;
use crate::cache::Cache;
use crate::run::{Outcome, Plan, Results, Status};
use crate::scenario::BudgetBytes;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[must_use]
pub struct Row {
    /// The number of the run, from zero.
    pub run: u64,
    /// Its budgets.
    pub budgets: BudgetBytes,
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
        let plan = specification.scenario(run).map_err(Into::into).and_then(|scenario| Plan::new(&scenario, cache));
        let budgets = plan.as_ref().map_or_else(|_| BudgetBytes::default(), Plan::budget_bytes);
        let outcome = plan.map_or_else(|error| Outcome::refused(&error), |plan| Outcome::of(&plan, cache));
        let Outcome { status, results, least_memory, reason, .. } = outcome;
        Self { run, budgets, status, results, least_memory_bytes: least_memory.map(|bytes| bytes.0), reason }
    }
}
