//! One run: from a scenario to a machine, a graph and budgets, and from there to a record.
//!
//! Everything a run needs is worked out in [`Plan::new`]; [`Plan::run`] only simulates, so a plan is run
//! as often and on as many threads as one likes.

mod error;
mod least;
mod results;

use std::sync::Arc;

use haversack_devices::System;
use haversack_devices::units::{Bytes, Celsius, Nanos};
use haversack_devices::work::Precision;
use haversack_policies::{Policy, PolicyError, registry};
use haversack_training::{AllocatorKind, Budgets, Job, Machine, Observe, Record, RunError, Wall, simulate};
use haversack_workloads::autograd::{EagerRules, Optimiser, differentiate};
use haversack_workloads::express::express;
use haversack_workloads::lowering::{Gradients, lower};
use haversack_workloads::{Network, TrainingGraph, WorkloadError, mixed};

pub use error::PlanError;
pub use least::LeastBudget;
pub use results::Results;

use crate::cache::Cache;
use crate::scenario::{Budget, BudgetWalls, Fault, GraphKind, InputShape, Key, Resolved, Scenario, Step};

/// The keys that decide what `original` needs; nothing else does.
const NEED: [Key; 9] = [
    Key::Device,
    Key::Stack,
    Key::Model,
    Key::Input,
    Key::Batch,
    Key::Precision,
    Key::Optimizer,
    Key::Gradients,
    Key::Allocator,
];

/// By what graphs are shared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct GraphKey {
    model: String,
    input: Option<InputShape>,
    kind: GraphKind,
    optimiser: Optimiser,
    gradients: Gradients,
    precision: Precision,
}

/// A run that is ready to be simulated.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario, with its device, stack and machine.
    pub resolved: Resolved,
    /// The graph of an iteration.
    pub graph: Arc<TrainingGraph>,
    /// The budgets in bytes and nanoseconds.
    pub budgets: Budgets,
    /// What to record beside the results.
    pub observe: Observe,
}

impl Plan {
    /// Works out everything that the run of `scenario` needs, sharing what it can with other users of `cache`.
    ///
    /// # Errors
    /// [`PlanError`]: a scenario that is wrong, or a percentage of what `original` needs where `original` does not run.
    pub fn new(scenario: &Scenario, cache: &Cache) -> Result<Self, PlanError> {
        let resolved = scenario.resolve_in(cache)?;
        let graph = graph_of(&resolved, cache)?;
        let budgets = budgets_of(&resolved, cache)?;
        Ok(Self { resolved, graph, budgets, observe: Observe::default() })
    }

    /// The scenario, nothing left open.
    pub fn scenario(&self) -> &Scenario {
        &self.resolved.scenario
    }

    /// The processor that trains.
    pub fn machine(&self) -> &Machine {
        &self.resolved.machine
    }

    /// A fresh policy with the scenario's parameters.
    ///
    /// # Errors
    /// None that resolving has not found already.
    pub fn policy(&self) -> Result<Box<dyn Policy>, PolicyError> {
        let scenario = self.scenario();
        let set: Vec<_> = scenario.set.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        registry::build(&scenario.policy, &set)
    }

    /// The job that is simulated.
    pub fn job(&self) -> Job<'_> {
        let scenario = self.scenario();
        Job {
            graph: &self.graph,
            batch: scenario.batch,
            precision: scenario.precision,
            budgets: self.budgets.clone(),
            allocator: scenario.allocator.unwrap_or(AllocatorKind::Exact),
            iterations: scenario.iterations,
            ambient: scenario.ambient_c.map(Celsius),
            phone: self.resolved.phone.as_deref(),
            observe: self.observe,
        }
    }

    /// Simulates the run.
    ///
    /// # Errors
    /// [`RunError`], as the executor has it.
    pub fn run(&self) -> Result<Record, RunError> {
        self.run_on(self.machine())
    }

    /// The same run on another machine.
    ///
    /// # Errors
    /// As [`Plan::run`].
    pub fn run_on(&self, machine: &Machine) -> Result<Record, RunError> {
        simulate(machine, &self.job(), self.policy()?.as_mut())
    }

    /// The same run on a phone in use under other constants of its system; `None` if it is on none, if the system does
    /// not run on the device, or if the run fails.
    pub(crate) fn run_under(&self, system: &System) -> Option<Record> {
        let resolved = self.resolved.under_system(system)?;
        Self { resolved, ..self.clone() }.run().ok()
    }

    /// The time of an iteration in which nothing is short.
    pub fn unbounded_time(&self) -> Nanos {
        let scenario = self.scenario();
        self.machine().unbounded_time(&self.graph, scenario.batch, scenario.precision)
    }
}

/// The graph that `resolved` executes.
fn graph_of(resolved: &Resolved, cache: &Cache) -> Result<Arc<TrainingGraph>, PlanError> {
    let scenario = &resolved.scenario;
    let key = GraphKey {
        model: scenario.model.clone(),
        input: scenario.input.clone(),
        kind: resolved.graph,
        optimiser: scenario.optimizer,
        gradients: scenario.gradients,
        precision: scenario.precision,
    };
    let graph = cache.get(key, || build(&resolved.network, resolved));
    let graph = graph.map_err(|error| scenario.error(Key::Model, error))?;
    if counts_overflow(&graph, scenario.batch) {
        let message = format!("{} samples of {} are more than can be counted", scenario.batch, scenario.model);
        return Err(scenario.error(Key::Batch, Fault::Refused(message)).into());
    }
    Ok(graph)
}

fn build(network: &Network, resolved: &Resolved) -> Result<TrainingGraph, WorkloadError> {
    let scenario = &resolved.scenario;
    let graph = match resolved.graph {
        GraphKind::Computable(variant) => lower(network, variant, scenario.optimizer, scenario.gradients)?,
        GraphKind::Integer(id) => return mixed::rewrite(network, mixed::algorithm(id)?, scenario.optimizer),
        GraphKind::Expressions => express(network, scenario.optimizer)?,
        GraphKind::Eager { dropout_mask_bytes } => {
            differentiate(network, EagerRules { dropout_mask_bytes, optimiser: scenario.optimizer })?
        }
    };
    Ok(graph.at_precision(scenario.precision))
}

/// Whether any sum over the graph could pass what an integer holds.
fn counts_overflow(graph: &TrainingGraph, batch: u64) -> bool {
    let of = |extent: haversack_workloads::Extent| {
        u128::from(extent.fixed) + u128::from(extent.per_sample) * u128::from(batch)
    };
    let tensors: u128 = graph.tensors.iter().map(|tensor| of(tensor.bytes)).sum();
    let work = graph.nodes.iter().map(|node| {
        let work = &node.work;
        of(work.flops).max(of(work.dram)).max(of(work.index_translations))
    });
    // Room for what is counted twice, such as recomputation.
    tensors.max(work.sum()) > u128::from(u64::MAX >> 8)
}

fn budgets_of(resolved: &Resolved, cache: &Cache) -> Result<Budgets, PlanError> {
    let scenario = &resolved.scenario;
    let bytes = |budget: Budget, need: &dyn Fn(&Resolved, &Cache) -> Result<Bytes, PlanError>| match budget {
        Budget::Bytes(bytes) => Ok(bytes),
        Budget::Percent(_) => Ok::<_, PlanError>(budget.of(need(resolved, cache)?)),
    };
    let mut memory = scenario.memory_budget.map(|budget| bytes(budget, &memory_need)).transpose()?;
    let activations = scenario.activation_budget.map(|budget| bytes(budget, &activation_need)).transpose()?;
    let mut walls = Vec::new();
    for step in resolved.trace.iter() {
        let wall = bytes(step.budget, &memory_need)?;
        // What holds from the start is the budget itself: a wall takes hold only after an operator.
        if step.at == Nanos::ZERO {
            memory = Some(wall);
        } else {
            walls.push(Wall { at: step.at, memory: wall });
        }
    }
    let given = &scenario.budget_walls;
    for step in &given.memory {
        walls.push(Wall { at: step.at, memory: bytes(step.budget, &memory_need)? });
    }
    let of_activations = |step: &Step| Ok(Wall { at: step.at, memory: bytes(step.budget, &activation_need)? });
    let activation_walls = given.activations.iter().map(of_activations).collect::<Result<_, PlanError>>()?;
    Ok(Budgets { memory, activations, time: scenario.time_budget, walls, activation_walls })
}

/// The scenario's configuration under the policy `original`, which needs what percentages are of.
fn original(resolved: &Resolved) -> Scenario {
    let mut scenario = resolved.scenario.clone();
    "original".clone_into(&mut scenario.policy);
    scenario.set.clear();
    scenario.graph = None;
    scenario.memory_budget = None;
    scenario.activation_budget = None;
    scenario.time_budget = None;
    scenario.budget_walls = BudgetWalls::default();
    scenario.trace = None;
    scenario.system = None;
    scenario.trainer_adj = None;
    scenario.apps = None;
    scenario.iterations = 1;
    scenario
}

/// All that `original` needs in this configuration.
fn memory_need(resolved: &Resolved, cache: &Cache) -> Result<Bytes, PlanError> {
    let key = format!("memory {}", resolved.scenario.fingerprint(NEED));
    let need = cache.get(key, || {
        let plan = Plan::new(&original(resolved), cache)?;
        plan.run().map(|record| record.reserved).map_err(PlanError::Need)
    })?;
    Ok(*need)
}

/// What the saved tensors take that `original` keeps, all of them, at the end of forward.
fn activation_need(resolved: &Resolved, cache: &Cache) -> Result<Bytes, PlanError> {
    let key = format!("activations {}", resolved.scenario.fingerprint(NEED));
    let need = cache.get(key, || Ok::<_, PlanError>(Plan::new(&original(resolved), cache)?.saved_bytes()))?;
    Ok(*need)
}

impl Plan {
    /// The bytes of all tensors that forward saves for backward.
    pub fn saved_bytes(&self) -> Bytes {
        let batch = self.scenario().batch;
        Bytes(self.graph.saved().iter().map(|&tensor| self.graph.tensor(tensor).bytes.at(batch)).sum())
    }
}
