//! What a run is compared with: the policy `original` in the same scenario, without budgets.

use haversack_devices::units::Nanos;
use haversack_devices::work::Precision;
use haversack_policies::original;

use super::{Plan, PlanError};
use crate::cache::Cache;
use crate::scenario::{BudgetWalls, Key, Scenario};

impl Plan {
    /// Whether this run is its own baseline.
    pub fn is_baseline(&self) -> bool {
        let budgets = &self.budgets;
        let bounded = budgets.memory.is_some() || budgets.activations.is_some();
        let has_walls =
            [&budgets.walls, &budgets.activation_walls, &budgets.traced].iter().any(|walls| !walls.is_empty());
        self.scenario().policy == original::ENTRY.id && !bounded && !has_walls
    }

    /// The scenario of the baseline: the same device, stack, cores, apps and graph under `original`, without budgets; in
    /// fp32 where an engine brings its integers along.
    pub fn baseline(&self) -> Scenario {
        let own = self.scenario();
        let chosen = own.precision != Precision::Int8 || own.origins.contains_key(&Key::Precision);
        Scenario {
            policy: original::ENTRY.id.to_owned(),
            set: Default::default(),
            precision: if chosen { own.precision } else { Precision::default() },
            memory_budget: None,
            activation_budget: None,
            budget_walls: BudgetWalls::default(),
            time_budget: None,
            // A trace of budgets goes; one of apps stays.
            trace: own.trace.clone().filter(|_| self.resolved.trace.is_empty()),
            iterations: if self.has_memory() { own.iterations } else { 1 },
            ..own.clone()
        }
    }

    /// Whether an iteration depends on those before it, whatever the policy: on a phone in use, or in its own heat.
    fn has_memory(&self) -> bool {
        self.resolved.phone.is_some() || self.machine().governed
    }

    /// How long an iteration of the baseline takes.
    ///
    /// # Errors
    /// Why `original` does not run here.
    pub fn baseline_time(&self, cache: &Cache) -> Result<Nanos, PlanError> {
        let plan = Self::new(&self.baseline(), cache)?;
        plan.run().map(|record| record.iteration).map_err(PlanError::Run)
    }
}
