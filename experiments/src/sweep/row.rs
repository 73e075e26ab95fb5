//! One run of a sweep: how it ended, and its figures.

use haversack_policies::PolicyError;
use haversack_training::RunError;
use serde::{Deserialize, Serialize};

use super::Specification;
use crate::cache::Cache;
use crate::run::{LeastBudget, Plan, PlanError, Results};
use crate::scenario::BudgetBytes;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// With results.
    Ok,
    /// No plan fits its budgets.
    Infeasible,
    /// Its values do not go together, such as a policy for DSPs and a device without one.
    Unsupported,
    /// The operating system ended it.
    Killed,
    /// It failed.
    Error,
}

impl Status {
    /// All ways in which a run ends.
    pub const ALL: [Self; 5] = [Self::Ok, Self::Infeasible, Self::Unsupported, Self::Killed, Self::Error];

    /// Its word in the table.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Infeasible => "infeasible",
            Self::Unsupported => "unsupported",
            Self::Killed => "killed",
            Self::Error => "error",
        }
    }
}

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
        let mut row = Self {
            run,
            budgets: BudgetBytes::default(),
            status: Status::Error,
            results: None,
            least_memory_bytes: None,
            reason: None,
        };
        let plan = specification.scenario(run).map_err(Into::into).and_then(|scenario| Plan::new(&scenario, cache));
        match plan {
            Ok(plan) => row.simulate(&plan, cache),
            Err(error) => {
                if matches!(error, PlanError::Scenario(_)) {
                    row.status = Status::Unsupported;
                }
                row.reason = Some(error.to_string());
            }
        }
        row
    }

    fn simulate(&mut self, plan: &Plan, cache: &Cache) {
        self.budgets = plan.budget_bytes();
        match plan.run() {
            Ok(record) => {
                self.results = Some(Results::new(&record));
                self.status = Status::Ok;
                if let Some(budget) = plan.budgets.time.filter(|budget| record.iteration > *budget) {
                    self.status = Status::Infeasible;
                    self.reason = Some(format!("{} is more than the time budget of {budget}", record.iteration));
                }
            }
            Err(error) if error.is_infeasible() => {
                self.status = Status::Infeasible;
                let least = plan.least_budget(cache);
                if let Ok(LeastBudget::Memory(bytes)) = least {
                    self.least_memory_bytes = Some(bytes.0);
                }
                let advice = least.map_or_else(|error| format!("no budget works: {error}"), LeastBudget::advice);
                self.reason = Some(format!("{error}; {advice}"));
            }
            Err(error) => {
                self.status = match error {
                    RunError::Policy(PolicyError::NoDsp { .. }) => Status::Unsupported,
                    RunError::Killed { .. } => Status::Killed,
                    _ => Status::Error,
                };
                self.reason = Some(error.to_string());
            }
        }
    }
}
