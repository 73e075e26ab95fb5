//! Budgets in bytes: what a percentage is of, and what is short where a budget stands beside a trace of budgets.
//!
//! The least budget with which a plan works.

use haversack_devices::{Bytes, Nanos};
use haversack_training::{Budgets, Job, Observe, RunError, Wall, least_memory, least_that_works, simulate};

use super::{Plan, PlanError};
use crate::scenario::{BudgetReference, Resolved, Step, size_text};
use crate::{Budget, Cache, Key, Scenario};

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

/// The keys that do not decide the least budget.
const INDIFFERENT: [Key; 6] =
    [Key::MemoryBudget, Key::BudgetWalls, Key::Trace, Key::TraceFrom, Key::TraceWindow, Key::Seed];

/// The least budget that works, of the kind that is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeastBudget {
    /// Of all that the framework holds.
    Memory(Bytes),
    /// Of saved tensors alone: no memory budget would help.
    Activations(Bytes),
}

impl LeastBudget {
    /// The bytes.
    pub const fn bytes(self) -> Bytes {
        match self {
            Self::Memory(bytes) | Self::Activations(bytes) => bytes,
        }
    }

    /// The sentence that tells the user, and how far below it `budgets` are where no wall is.
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
    /// The least memory budget that works, to a thousandth, whatever the plan's own; walls are left out.
    ///
    /// # Errors
    /// What a run without a memory budget yields.
    pub fn least_memory(&self) -> Result<Bytes, RunError> {
        least_memory(&self.machine().without_limit(), &self.job_without_walls(), || self.policy())
    }

    /// The least budget that works, of whichever kind is short. It is searched once a configuration.
    ///
    /// # Errors
    /// What a run without any budget yields.
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

    /// The least activation budget that works where memory is not bounded.
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
