//! How a run ended, whatever became of it: a row of a sweep, or a candidate of `advise`.

use haversack_devices::units::Bytes;
use haversack_policies::PolicyError;
use haversack_training::RunError;
use serde::{Deserialize, Serialize};

use super::{LeastBudget, Plan, PlanError, Results};
use crate::cache::Cache;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
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
    /// Its word in results.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// What became of a run.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Outcome {
    /// Whether there are figures, and if not why.
    pub status: Status,
    /// The figures; of a run that missed its time budget too.
    pub results: Option<Results>,
    /// The least memory budget that works, if its own does not.
    pub least_memory: Option<Bytes>,
    /// Why it is not `ok`.
    pub reason: Option<String>,
    /// Of what is infeasible, the least budget that works, in words.
    pub advice: Option<String>,
}

impl Outcome {
    /// Runs `plan`; whatever goes wrong is in the outcome.
    pub fn of(plan: &Plan, cache: &Cache) -> Self {
        let record = match plan.run_within_device() {
            Ok(record) => record,
            Err(error) if error.is_infeasible() => return Self::infeasible(&plan.explain_failure(error, cache)),
            Err(error) => {
                let status = match error {
                    RunError::Policy(PolicyError::NoDsp(_)) => Status::Unsupported,
                    RunError::Killed { .. } => Status::Killed,
                    _ => Status::Error,
                };
                return Self::without_results(status, error.to_string());
            }
        };
        let (took, results) = (record.iteration, Some(Results::new(plan, &record)));
        match plan.budgets.time.filter(|budget| took > *budget) {
            None => Self { status: Status::Ok, results, least_memory: None, reason: None, advice: None },
            Some(budget) => {
                let reason = format!("{took} is more than the time budget of {budget}");
                Self { results, ..Self::without_results(Status::Infeasible, reason) }
            }
        }
    }

    /// A run that cannot be: its scenario is wrong, or what its budgets are percentages of cannot be had.
    pub fn refused(error: &PlanError) -> Self {
        let status = if matches!(error, PlanError::Scenario(_)) { Status::Unsupported } else { Status::Error };
        Self::without_results(status, error.to_string())
    }

    fn infeasible(error: &PlanError) -> Self {
        let PlanError::Infeasible { cause, advice, least, .. } = error else { return Self::refused(error) };
        let least_memory = match least {
            Some(LeastBudget::Memory(bytes)) => Some(*bytes),
            _ => None,
        };
        let reason = format!("{cause}; {advice}");
        Self { least_memory, advice: Some(advice.clone()), ..Self::without_results(Status::Infeasible, reason) }
    }

    const fn without_results(status: Status, reason: String) -> Self {
        Self { status, results: None, least_memory: None, reason: Some(reason), advice: None }
    }
}
