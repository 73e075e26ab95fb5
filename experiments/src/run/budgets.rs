//! Budgets in bytes: what a percentage is of, and what is short where a budget stands beside a trace of budgets.

use haversack_devices::units::{Bytes, Nanos};
use haversack_training::{Budgets, Wall};

use super::{Plan, PlanError};
use crate::cache::Cache;
use crate::scenario::{Budget, BudgetReference, Key, Resolved, Scenario, Step};

/// What budgets in percent are of; `None` if none is given in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// All that `original` needs.
    pub memory: Option<Bytes>,
    /// What the saved tensors take that `original` keeps, all of them, at the end of forward.
    pub activations: Option<Bytes>,
}

/// The budgets of the run, and what those in percent are of.
pub(super) fn of(resolved: &Resolved, cache: &Cache) -> Result<(Budgets, References), PlanError> {
    let scenario = &resolved.scenario;
    let mut needs = Needs { original: original(resolved), cache, found: References::default() };
    let given = scenario.memory_budget.map(|budget| needs.memory(budget)).transpose()?;
    let activations = scenario.activation_budget.map(|budget| needs.activations(budget)).transpose()?;
    let mut memory = given;
    let (mut walls, mut traced) = (Vec::new(), Vec::new());
    for step in resolved.trace.iter() {
        let needed = needs.memory(step.budget)?;
        let wall = given.map_or(needed, |given| given.min(needed));
        // What holds from the start is the budget itself: a wall takes hold only after an operator.
        if step.at == Nanos::ZERO {
            memory = Some(wall);
        }
        traced.push(Wall { at: step.at, memory: wall });
    }
    for step in &scenario.budget_walls.memory {
        walls.push(Wall { at: step.at, memory: needs.memory(step.budget)? });
    }
    let mut of_activations = |step: &Step| Ok(Wall { at: step.at, memory: needs.activations(step.budget)? });
    let walls_of_activations = scenario.budget_walls.activations.iter();
    let activation_walls = walls_of_activations.map(&mut of_activations).collect::<Result<_, PlanError>>()?;
    let budgets = Budgets { memory, activations, time: scenario.time_budget, walls, activation_walls, traced };
    Ok((budgets, needs.found))
}

/// What `original` needs, found out where a budget is a percentage of it.
struct Needs<'a> {
    original: Scenario,
    cache: &'a Cache,
    found: References,
}

impl Needs<'_> {
    fn memory(&mut self, budget: Budget) -> Result<Bytes, PlanError> {
        if let Budget::Percent(_) = budget
            && self.found.memory.is_none()
        {
            let needed = |plan: &Plan| plan.run_on(&plan.machine().without_limit()).map(|record| record.reserved);
            self.found.memory = Some(self.once("memory", |plan| needed(plan).map_err(PlanError::Need))?);
        }
        Ok(budget.of(self.found.memory.unwrap_or_default()))
    }

    fn activations(&mut self, budget: Budget) -> Result<Bytes, PlanError> {
        if let Budget::Percent(_) = budget
            && self.found.activations.is_none()
        {
            self.found.activations = Some(self.once("activations", |plan| Ok(plan.saved_bytes()))?);
        }
        Ok(budget.of(self.found.activations.unwrap_or_default()))
    }

    /// Of all who share the cache, the first asks the run of `original`.
    fn once(&self, what: &str, ask: impl Fn(&Plan) -> Result<Bytes, PlanError>) -> Result<Bytes, PlanError> {
        let key = format!("{what} {}", self.original.fingerprint(Key::ALL));
        Ok(*self.cache.get(key, || ask(&Plan::new(&self.original, self.cache)?))?)
    }
}

/// The scenario of which percentages are: that of `original` without budgets, on an idle device.
fn original(resolved: &Resolved) -> Scenario {
    let asked = &resolved.scenario;
    let bare = Scenario::new(&asked.device, &asked.model);
    let same = Scenario { input: asked.input.clone(), batch: asked.batch, optimizer: asked.optimizer, ..bare };
    let (placed, origins) = (asked.placed.clone(), asked.origins.clone());
    let same = Scenario { classes: asked.classes, iterations: Some(1), placed, origins, ..same };
    match asked.budget_reference {
        BudgetReference::StackDefault => same,
        BudgetReference::Own => Scenario {
            stack: asked.stack.clone(),
            precision: asked.precision,
            graph: asked.graph,
            gradients: asked.gradients,
            allocator: asked.allocator,
            memory_format: asked.memory_format,
            attention: asked.attention,
            inference: asked.inference,
            cores: asked.cores,
            frequency: asked.frequency,
            ..same
        },
    }
}
