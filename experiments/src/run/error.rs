//! Why a right scenario has no run.

use haversack_devices::text::aside;
use haversack_devices::units::Bytes;
use haversack_policies::PolicyError;
use haversack_training::RunError;
use thiserror::Error;

use super::{LeastBudget, Plan};
use crate::cache::Cache;
use crate::scenario::{ScenarioError, workload};

/// Why there is no run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A budget is a percentage of what cannot be had.
    #[error("a percentage is of what the policy original needs, but original does not run here: {0}")]
    Need(RunError),
    /// No plan fits the budgets.
    #[error("{what}: {cause}; {advice}")]
    Infeasible {
        /// What was tried.
        what: String,
        /// Why it did not work.
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
    /// Whether the input is wrong or no plan fits, as opposed to a run that failed.
    pub const fn is_input(&self) -> bool {
        !matches!(self, Self::Run(error) if !matches!(error, RunError::Policy(_)))
    }
}

impl Plan {
    /// What to tell about a run that ended in `cause`: where memory was short, the least budget that works.
    pub fn explain_failure(&self, cause: RunError, cache: &Cache) -> PlanError {
        if !cause.is_infeasible() {
            return PlanError::Run(cause);
        }
        let scenario = self.scenario();
        // A number without a unit is bytes, and who writes so few of them has forgotten a sign.
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
        let device_is_short = self.device_memory().filter(|memory| match &cause {
            RunError::OutOfMemory { budget, .. } => budget == memory,
            _ => budgets.is_empty() && self.budgets.time.is_none(),
        });
        if let (Some(memory), "") = (device_is_short, walls) {
            let what =
                format!("{policy} cannot train {model} at batch {batch} within the {memory} of {}", scenario.device);
            return self.infeasible(what, cause, cache, |least| match least {
                LeastBudget::Memory(bytes) if bytes > memory => format!(
                    "the least memory that works is {bytes}: a smaller batch needs less, or a policy that saves memory"
                ),
                least => least.advice(&self.budgets),
            });
        }
        let budgets = if budgets.is_empty() { "its budget".to_owned() } else { budgets.join(" and ") };
        let what = format!("{policy} cannot train {model} at batch {batch} within {budgets}{walls}");
        // Only time was short: more memory would not help.
        let short_of_time = self.budgets.time.is_some() && budgets == "its budget";
        if let (true, RunError::Policy(PolicyError::Budget { least, .. })) = (short_of_time, &cause) {
            let advice = format!("the least time budget that works is {least}");
            return PlanError::Infeasible { what, cause: Box::new(cause), advice, least: None };
        }
        self.infeasible(what, cause, cache, |least| least.advice(&self.budgets))
    }

    /// That nothing fits, and what `advice` says of the least budget that works.
    fn infeasible(
        &self,
        what: String,
        cause: RunError,
        cache: &Cache,
        advice: impl Fn(LeastBudget) -> String,
    ) -> PlanError {
        let least = self.least_budget(cache);
        let advice = match &least {
            Ok(least) => advice(*least),
            Err(error) => format!("no budget works: {error}"),
        };
        PlanError::Infeasible { what, cause: Box::new(cause), advice, least: least.ok() }
    }
}
