//! The outcome of a run, whether it succeeded or not: a row of a sweep, or a candidate of `advise`; and the
//! errors of planning.

use haversack_devices::Bytes;
use haversack_devices::text::aside;
use haversack_policies::PolicyError;
use haversack_training::{RunError, least_room};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{LeastBudget, Plan, Results};
use crate::Cache;
use crate::scenario::{ScenarioError, workload};

/// The way a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Status {
    /// With results.
    Ok,
    /// No plan fits its budgets.
    Infeasible,
    /// Its values do not fit together, such as a policy for DSPs and a device without one.
    Unsupported,
    /// The operating system ended it.
    Killed,
    /// It failed.
    Error,
}

impl Status {
    /// Its name in results.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Outcome {
    /// Whether there are results, and if not why.
    pub status: Status,
    /// The results, also of a run that exceeded its time budget.
    pub results: Option<Results>,
    /// The least memory budget that works, if its own does not.
    pub least_memory: Option<Bytes>,
    /// The reason, unless it is `ok`.
    pub reason: Option<String>,
    /// If it is infeasible, the least budget that works, in words.
    pub advice: Option<String>,
}

impl Outcome {
    /// Runs `plan`; errors become part of the outcome.
    pub fn of(plan: &Plan, cache: &Cache) -> Self {
        let record = match plan.run_within_device(cache) {
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

    /// A run that is not possible: its scenario is wrong, or the reference of its percentages cannot be computed.
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

/// The reason why a run is not possible.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A budget is a percentage of the need of `original`, which does not run here.
    #[error("a percentage is of what the policy original needs, but original does not run here: {0}")]
    Need(RunError),
    /// No plan fits the budgets.
    #[error("{what}: {cause}; {advice}")]
    Infeasible {
        /// The run that was tried.
        what: String,
        /// The reason why it failed.
        cause: Box<RunError>,
        /// The least budget that works, in words.
        advice: String,
        /// The least budget that works, if one does.
        least: Option<LeastBudget>,
    },
    /// The run failed for another reason.
    #[error("the run failed: {0}")]
    Run(RunError),
}

impl PlanError {
    /// Whether the input is wrong or no plan fits, as opposed to a failed run.
    pub const fn is_input(&self) -> bool {
        !matches!(self, Self::Run(error) if !matches!(error, RunError::Policy(_) | RunError::NoTime(_)))
    }
}

impl Plan {
    /// The error of a run that ended in `cause`: if memory was short, with the least budget that works.
    pub fn explain_failure(&self, cause: RunError, cache: &Cache) -> PlanError {
        if !cause.is_infeasible() {
            return PlanError::Run(cause);
        }
        let scenario = self.scenario();
        // A number without a unit is bytes; such a small one was probably meant as a percentage.
        let meant = |bytes: Bytes| if bytes.0 <= 100 { aside(Some(&format!("{}%", bytes.0))) } else { String::new() };
        let within = |bytes: Option<Bytes>, kind: &str| bytes.map(|bytes| format!("{bytes} of {kind}{}", meant(bytes)));
        let budgets = [within(self.budgets.memory, "memory"), within(self.budgets.activations, "activations")];
        let budgets: Vec<String> = budgets.into_iter().flatten().collect();
        let has_walls = !(self.budgets.walls.is_empty() && self.budgets.activation_walls.is_empty());
        let walls = match (self.budgets.traced.is_empty(), has_walls) {
            (false, _) => " and the walls of the trace",
            (true, true) => " and its walls",
            (true, false) => "",
        };
        let (policy, model, batch) = (&scenario.policy, workload::called(&scenario.model), scenario.batch);
        let device = &scenario.device;
        let addressed =
            self.machine().addressable().map(|bytes| (bytes, format!("that the GPU of {device} addresses")));
        let of_device = self.device_memory().map(|bytes| (bytes, format!("of {device}")));
        let limit = addressed.into_iter().chain(of_device).min();
        let advice = |least| match (least, &limit) {
            (LeastBudget::Memory(bytes), Some((most, whose))) if bytes > *most => format!(
                "the least memory that works is {bytes}, more than the {most} {whose}: a smaller batch needs less, or a policy \
                 that saves memory"
            ),
            (least, _) => least.advice(&self.budgets),
        };
        let device_is_short = limit.as_ref().filter(|(memory, _)| match &cause {
            RunError::OutOfMemory { budget, .. } => budget == memory,
            _ => budgets.is_empty() && self.budgets.time.is_none(),
        });
        if let (Some((memory, whose)), "") = (device_is_short, walls) {
            let what = format!("{policy} cannot train {model} at batch {batch} within the {memory} {whose}");
            return self.infeasible(what, cause, cache, advice);
        }
        let budgets = if budgets.is_empty() { "its budget".to_owned() } else { budgets.join(" and ") };
        let what = format!("{policy} cannot train {model} at batch {batch} within {budgets}{walls}");
        // Only time was short: more memory would not help.
        let short_of_time = self.budgets.time.is_some() && budgets == "its budget";
        if let (true, RunError::Policy(PolicyError::Budget { least, .. })) = (short_of_time, &cause) {
            let advice = format!("the least time budget that works is {least}");
            return PlanError::Infeasible { what, cause: Box::new(cause), advice, least: None };
        }
        self.infeasible(what, cause, cache, advice)
    }

    /// The error that no plan fits, with the advice on the least budget that works.
    fn infeasible(
        &self,
        what: String,
        cause: RunError,
        cache: &Cache,
        advice: impl Fn(LeastBudget) -> String,
    ) -> PlanError {
        let least = self.least_budget(cache);
        let mut advice = match &least {
            Ok(least) => advice(*least),
            Err(error) => format!("no budget works: {error}"),
        };
        let floor = least_room(self.machine(), &self.job());
        if self.budgets.memory.is_some_and(|budget| budget < floor) {
            advice += &format!("; no plan fits in less than {floor}, whatever decides it");
        }
        PlanError::Infeasible { what, cause: Box::new(cause), advice, least: least.ok() }
    }
}
