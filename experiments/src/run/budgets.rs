//! Budgets in bytes: resolves percentages, and combines a budget with a trace of budgets.
//!
//! Also finds the least budget with which a plan works.

use haversack_devices::{Bytes, Nanos};
use haversack_training::{Budgets, Job, Observe, RunError, Wall, least_memory, least_that_works, simulate};

use super::{Plan, PlanError};
use crate::scenario::{BudgetReference, Resolved, Step, size_text};
use crate::{Budget, Cache, Key, Scenario};

/// The reference of budgets in percent; `None` if none is given in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// The memory that `original` needs.
    pub memory: Option<Bytes>,
    /// The memory of all saved tensors of `original` at the end of forward.
    pub activations: Option<Bytes>,
}

/// The budgets of the run, and the reference of those in percent.
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
        // A budget from the start must be set directly: a wall takes effect only after an operator.
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

/// The needs of `original`, computed if a budget is a percentage of them.
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

    /// The `original` run is computed once per cache.
    fn once(&self, what: &str, ask: impl Fn(&Plan) -> Result<Bytes, PlanError>) -> Result<Bytes, PlanError> {
        let key = format!("{what} {}", self.original.fingerprint(Key::ALL));
        Ok(*self.cache.get(key, || ask(&Plan::new(&self.original, self.cache)?))?)
    }
}

/// The scenario that percentages refer to: `original` without budgets, on an idle device.
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

/// The keys that do not affect the least budget.
const INDIFFERENT: [Key; 6] =
    [Key::MemoryBudget, Key::BudgetWalls, Key::Trace, Key::TraceFrom, Key::TraceWindow, Key::Seed];

/// The least budget that works, of the kind that is too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeastBudget {
    /// A memory budget of the framework.
    Memory(Bytes),
    /// A budget of saved tensors; no memory budget would help.
    Activations(Bytes),
}

impl LeastBudget {
    /// The bytes.
    pub const fn bytes(self) -> Bytes {
        match self {
            Self::Memory(bytes) | Self::Activations(bytes) => bytes,
        }
    }

    /// A sentence for the user: the least budget, and, unless there are walls, how far `budgets` are below it.
    pub fn advice(self, budgets: &Budgets) -> String {
        let (kind, flag, given) = match self {
            Self::Memory(_) => ("memory", "memory-budget", budgets.memory),
            Self::Activations(_) => ("activation", "activation-budget", budgets.activations),
        };
        let bytes = self.bytes();
        let missing = given.map(|given| bytes.saturating_sub(given)).filter(|missing| *missing > Bytes::ZERO);
        let short = missing.map(|missing| format!("it is {missing} short: ")).unwrap_or_default();
        format!("{short}the least {kind} budget that works is {bytes} (--{flag} {})", size_text(bytes))
    }
}

impl Plan {
    /// The least memory budget that works, to a thousandth, or to a hundredth where an allocator's memory has gaps,
    /// regardless of the plan's own; walls are ignored.
    ///
    /// # Errors
    /// The error of a run without a memory budget.
    pub fn least_memory(&self) -> Result<Bytes, RunError> {
        least_memory(&self.machine().without_limit(), &self.job_without_walls(), || self.policy())
    }

    /// The least budget that works, of the kind that is too small. It is searched once per configuration.
    ///
    /// # Errors
    /// The error of a run without any budget.
    pub fn least_budget(&self, cache: &Cache) -> Result<LeastBudget, RunError> {
        let decisive = Key::ALL.into_iter().filter(|key| !INDIFFERENT.contains(key));
        let key = self.scenario().fingerprint(decisive);
        let Ok(found) = cache.get(key, || Ok::<_, std::convert::Infallible>(self.search()));
        (*found).clone()
    }

    fn search(&self) -> Result<LeastBudget, RunError> {
        match self.least_memory() {
            Ok(bytes) => Ok(LeastBudget::Memory(bytes)),
            Err(error) if error.is_infeasible() && self.budgets.activations.is_some() => {
                self.least_activations().map(LeastBudget::Activations)
            }
            Err(error) => Err(error),
        }
    }

    fn job_without_walls(&self) -> Job<'_> {
        let mut job = self.job();
        job.budgets.walls.clear();
        job.budgets.activation_walls.clear();
        job.budgets.traced.clear();
        job
    }

    /// The least activation budget that works without a memory budget.
    fn least_activations(&self) -> Result<Bytes, RunError> {
        let mut job = Job { observe: Observe::default(), ..self.job_without_walls() };
        job.budgets.memory = None;
        let iterations = job.iterations;
        let mut attempt = |activations: Option<Bytes>, iterations: u32| {
            (job.budgets.activations, job.iterations) = (activations, iterations);
            simulate(self.machine(), &job, self.policy()?.as_mut()).map(drop)
        };
        attempt(None, 1)?;
        let whole = self.saved_bytes().max(Bytes(1));
        least_that_works(whole, iterations, |budget, iterations| attempt(Some(budget), iterations))
    }
}
