//! One run: from a scenario to a machine, a graph and budgets, and from there to a record.
//!
//! [`Plan::new`] computes everything that a run needs; [`Plan::run`] only simulates, so a plan can be run repeatedly
//! and on several threads.

mod budgets;
mod outcome;
mod results;

pub use budgets::{LeastBudget, References};
pub use outcome::{Outcome, PlanError, Status};
pub use results::{KillResults, PhoneResults, Results, StallResults, share};

use std::fmt;
use std::sync::Arc;

use haversack_devices::{Bytes, Celsius, Form, Nanos, Precision, System};
use haversack_policies::{self as policies, Policy, PolicyError, Recorder, original, registry};
use haversack_training::{
    AllocatorKind, Allowed, Budgets, Job, Machine, Observe, Record, RunError, least_time, simulate, with_setting,
};
use haversack_workloads::autograd::{differentiate, forward_alone};
use haversack_workloads::express::express;
use haversack_workloads::lowering::lower;
use haversack_workloads::{EagerRules, Network, TrainingGraph, WorkloadError, mixed};

use crate::scenario::{BudgetBytes, BudgetWalls, DEFAULT_ITERATIONS, Fault, GraphKind, Resolved};
use crate::{Cache, Key, Scenario};

/// A run that is ready to be simulated.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario, with its device, stack and machine.
    pub resolved: Resolved,
    /// The graph of an iteration.
    pub graph: Arc<TrainingGraph>,
    /// The budgets in bytes and nanoseconds.
    pub budgets: Budgets,
    /// The reference of budgets in percent.
    pub references: References,
    /// Optional recordings, in addition to the results.
    pub observe: Observe,
    /// A policy from a program that replaces the scenario's; `None` without one.
    pub brought: Option<Brought>,
}

impl Plan {
    /// Prepares the run of `scenario`, sharing values with other users of `cache`.
    ///
    /// # Errors
    /// [`PlanError`]: a scenario that is wrong, or a percentage of the need of `original` where
    /// `original` does not run.
    pub fn new(scenario: &Scenario, cache: &Cache) -> Result<Self, PlanError> {
        let resolved = scenario.resolve_in(cache)?;
        let graph = graph_of(&resolved, cache)?;
        let (budgets, references) = budgets::of(&resolved, cache)?;
        Ok(Self { resolved, graph, budgets, references, observe: Observe::default(), brought: None })
    }

    /// The scenario, with all defaults filled in.
    pub fn scenario(&self) -> &Scenario {
        &self.resolved.scenario
    }

    /// The processor that trains.
    pub fn machine(&self) -> &Machine {
        &self.resolved.machine
    }

    /// The budgets in bytes, as results show them.
    pub fn budget_bytes(&self) -> BudgetBytes {
        let (budgets, references) = (&self.budgets, &self.references);
        [budgets.memory, references.memory, budgets.activations, references.activations]
    }

    /// The same run under a policy from a program. The scenario's own policy, for which it was planned, has determined
    /// the graph and the processor: for `original`, those that the stack uses by default.
    #[must_use]
    pub fn under(mut self, policy: Brought) -> Self {
        self.resolved.scenario.policy.clone_from(&policy.name);
        self.brought = Some(policy);
        self
    }

    /// A new policy with the scenario's parameters, or the one from the program.
    ///
    /// # Errors
    /// None that resolving has not reported already.
    pub fn policy(&self) -> Result<Box<dyn Policy>, PolicyError> {
        if let Some(brought) = &self.brought {
            return Ok(brought.build());
        }
        let scenario = self.scenario();
        let set: Vec<_> = scenario.set.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        registry::build(&scenario.policy, &set)
    }

    /// The number format of the arithmetic: the scenario's, or one that the policy sets.
    pub fn arithmetic(&self) -> Precision {
        let schedule = with_setting(self.machine(), &self.job(), |setting| {
            self.policy().and_then(|mut policy| policy.prepare(setting))
        });
        schedule.ok().and_then(|schedule| schedule.precision).unwrap_or(self.scenario().precision)
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
            iterations: scenario.iterations.unwrap_or(DEFAULT_ITERATIONS),
            ambient: scenario.ambient_c.map(Celsius),
            phone: self.resolved.phone.as_deref(),
            observe: self.observe,
            measured: &[],
            factors: &[],
        }
    }

    /// Simulates the run.
    ///
    /// # Errors
    /// [`RunError`], from the executor.
    pub fn run(&self) -> Result<Record, RunError> {
        self.run_on(self.machine())
    }

    /// The memory that the device's system leaves, if the run has the device to itself and respects the limit; `None`
    /// on a phone in use, where the system's model divides the memory.
    pub fn device_memory(&self) -> Option<Bytes> {
        (self.resolved.phone.is_none() && !self.scenario().ignore_ram).then(|| self.left())
    }

    /// The memory that the device's system and the process itself leave for tensors.
    fn left(&self) -> Bytes {
        self.resolved.device.available().saturating_sub(self.resolved.stack.process())
    }

    /// The memory of `record` from the point of view of the device's system. A board's GPU shares the system's memory:
    /// the system ends the process before the framework can release its cached blocks.
    pub fn footprint(&self, record: &Record) -> Bytes {
        let shares = self.resolved.device.constants.form == Some(Form::Board);
        if shares { record.reserved } else { record.peak_memory }
    }

    /// Whether a run with `taken` memory uses more than the device has, which is possible only if the run has
    /// the device to itself.
    pub fn exceeds_ram(&self, taken: Bytes) -> bool {
        self.resolved.phone.is_none() && taken > self.left()
    }

    /// Simulates the run within the device's own memory: if it needs more, that memory becomes its budget, which
    /// the policy may respect. An allocator may fragment more with more memory: if only a smaller budget works, the
    /// run uses that one.
    ///
    /// # Errors
    /// [`RunError`], from the executor; memory is reported as short if no plan fits the device.
    pub fn run_within_device(&self, cache: &Cache) -> Result<Record, RunError> {
        self.within_device(cache, |job| simulate(self.machine(), job, self.policy()?.as_mut()))
    }

    /// The same, with the policy's actions as a plan that can be repeated.
    ///
    /// # Errors
    /// As [`Plan::run_within_device`], and a policy whose actions cannot be expressed as a plan.
    pub fn run_recorded(&self, cache: &Cache) -> Result<(Record, policies::Plan), RunError> {
        let mut recorded = None;
        let record = self.within_device(cache, |job| {
            let mut policy = self.policy()?;
            let mut recorder = Recorder::new(policy.as_mut());
            let record = simulate(self.machine(), job, &mut recorder)?;
            recorded = Some(recorder.into_plan()?);
            Ok(record)
        })?;
        let scenario = self.scenario();
        let (entry, set) = registry::origin(registry::find(&scenario.policy)?, &scenario.set)?;
        let mut plan = recorded.ok_or_else(|| PolicyError::Plan("nothing ran".to_owned()))?;
        (plan.policy, plan.set) = (entry.id.to_owned(), set);
        Ok((record, plan))
    }

    fn within_device(
        &self,
        cache: &Cache,
        mut run: impl FnMut(&Job<'_>) -> Result<Record, RunError>,
    ) -> Result<Record, RunError> {
        let mut job = self.job();
        let mut ran = run(&job);
        let holds_more = |memory: &Bytes| ran.as_ref().is_ok_and(|record| record.reserved > *memory);
        if let Some(memory) = self.device_memory().filter(holds_more) {
            job.budgets.bound(memory);
            ran = run(&job);
        }
        let is_constant = job.budgets.walls.is_empty() && job.budgets.traced.is_empty();
        let budget = job.budgets.memory.filter(|_| is_constant);
        let (Some(budget), Some(_)) = (budget, ran.as_ref().err().filter(|error| error.is_infeasible())) else {
            return ran;
        };
        match self.least_budget(cache) {
            Ok(LeastBudget::Memory(least)) if least < budget => {
                job.budgets.memory = Some(least);
                run(&job)
            }
            _ => ran,
        }
    }

    /// The same run on another machine.
    ///
    /// # Errors
    /// As [`Plan::run`].
    pub fn run_on(&self, machine: &Machine) -> Result<Record, RunError> {
        simulate(machine, &self.job(), self.policy()?.as_mut())
    }

    /// The same run on a phone in use with other constants of its system; `None` if it is not on such a phone, if the
    /// system does not run on the device, or if the run fails.
    pub(crate) fn run_under(&self, system: &System) -> Option<Record> {
        let resolved = self.resolved.under_system(system)?;
        Self { resolved, ..self.clone() }.run().ok()
    }

    /// A lower bound on the time of plans that are as faithful as the run of `record`, within its memory; `None` if
    /// no bound is known.
    pub fn least_time(&self, record: &Record) -> Option<Nanos> {
        let mut job = self.job();
        if let Some(memory) = self.device_memory().filter(|memory| record.peak_memory <= *memory) {
            job.budgets.bound(memory);
        }
        least_time(self.machine(), &job, Allowed::like(record)?)
    }

    /// The time of an iteration of the policy's own graph without memory limits, from the costs of its operators.
    pub fn unbounded_time(&self) -> Nanos {
        let scenario = self.scenario();
        self.machine().unbounded_time(&self.graph, scenario.batch, scenario.precision)
    }

    /// The bytes of all tensors that forward saves for backward.
    pub fn saved_bytes(&self) -> Bytes {
        let batch = self.scenario().batch;
        Bytes(self.graph.saved().iter().map(|&tensor| self.graph.tensor(tensor).bytes.at(batch)).sum())
    }

    /// Whether this run is its own baseline.
    pub fn is_baseline(&self) -> bool {
        let budgets = &self.budgets;
        let bounded = budgets.memory.is_some() || budgets.activations.is_some();
        let has_walls =
            [&budgets.walls, &budgets.activation_walls, &budgets.traced].iter().any(|walls| !walls.is_empty());
        self.scenario().policy == original::ID && !bounded && !has_walls
    }

    /// The scenario of the baseline: the same device, stack, cores, apps and graph under `original`, without budgets;
    /// in fp32 if an engine sets integer arithmetic.
    pub fn baseline(&self) -> Scenario {
        let own = self.scenario();
        let chosen = own.precision != Precision::Int8 || own.origins.contains_key(&Key::Precision);
        Scenario {
            policy: original::ID.to_owned(),
            set: Default::default(),
            precision: if chosen { own.precision } else { Precision::default() },
            memory_budget: None,
            activation_budget: None,
            budget_walls: BudgetWalls::default(),
            time_budget: None,
            // A trace of budgets is dropped; one of apps is kept.
            trace: own.trace.clone().filter(|_| self.resolved.trace.is_empty()),
            // Iterations depend on earlier ones on a phone in use and on a device that heats up, under any policy.
            iterations: if self.resolved.phone.is_some() || self.machine().governed { own.iterations } else { Some(1) },
            ..own.clone()
        }
    }
}

/// The graph that `resolved` executes.
fn graph_of(resolved: &Resolved, cache: &Cache) -> Result<Arc<TrainingGraph>, PlanError> {
    let scenario = &resolved.scenario;
    let Scenario { model, input, classes, optimizer, gradients, precision, inference, .. } = scenario;
    let (kind, folds, saves_results) = (resolved.graph, resolved.prepares(), resolved.stack.constants.saves_results);
    let of_model = format!("graph of {model} {input:?} {classes:?}, {kind:?} {folds:?}, inference {inference}");
    let of_stack = format!("{:?} {saves_results}", eager_rules(resolved, 0));
    let key = format!("{of_model}, {optimizer:?} {gradients:?} {precision:?} {of_stack}");
    let graph = cache.get(key, || build(&resolved.network, resolved));
    let graph = graph.map_err(|error| scenario.error(Key::Model, error))?;
    if counts_overflow(&graph, scenario.batch) {
        let message = format!("{} samples of {} are more than can be counted", scenario.batch, scenario.model);
        return Err(scenario.error(Key::Batch, Fault::Refused(message)).into());
    }
    Ok(graph)
}

/// The differences between the run's stack and others that run networks eagerly.
fn eager_rules(resolved: &Resolved, dropout_mask_bytes: u64) -> EagerRules {
    let copies = resolved.stack.gpu().and_then(|gpu| gpu.library.as_ref()?.adam_copies.as_ref());
    EagerRules {
        dropout_mask_bytes,
        optimiser: resolved.scenario.optimizer,
        adam_copies: copies.map_or(0.0, |copies| copies.value.0),
        attention: resolved.attention(),
        folds: resolved.prepares().unwrap_or_default(),
    }
}

fn build(network: &Network, resolved: &Resolved) -> Result<TrainingGraph, WorkloadError> {
    let scenario = &resolved.scenario;
    let graph = match resolved.graph {
        GraphKind::Computable(variant) => lower(network, variant, scenario.optimizer, scenario.gradients)?,
        GraphKind::Integer(id) => return mixed::rewrite(network, mixed::algorithm(id)?, scenario.optimizer),
        GraphKind::Expressions(version) => express(network, scenario.optimizer, version)?,
        GraphKind::Eager { dropout_mask_bytes } => {
            let (folds, rules) = (resolved.prepares(), eager_rules(resolved, dropout_mask_bytes));
            match (scenario.inference, folds) {
                (false, _) if resolved.stack.constants.saves_results => {
                    differentiate(&network.saving_results(), rules)?
                }
                (false, _) => differentiate(network, rules)?,
                (true, None) => forward_alone(network, rules),
                (true, Some(_)) => return Ok(forward_alone(network, rules).stored_at(scenario.precision)),
            }
        }
    };
    Ok(graph.at_precision(scenario.precision))
}

/// Whether any sum over the graph could overflow an integer.
fn counts_overflow(graph: &TrainingGraph, batch: u64) -> bool {
    let of = |extent: haversack_workloads::Extent| {
        u128::from(extent.fixed) + u128::from(extent.per_sample) * u128::from(batch)
    };
    let tensors: u128 = graph.tensors.iter().map(|tensor| of(tensor.bytes)).sum();
    let work = graph.nodes.iter().map(|node| {
        let work = &node.work;
        of(work.flops).max(of(work.dram)).max(of(work.index_translations))
    });
    // Leaves room for work that is counted several times, such as recomputation.
    tensors.max(work.sum()) > u128::from(u64::MAX >> 8)
}

/// A policy from a program.
#[derive(Clone)]
pub struct Brought {
    /// Its name in results.
    pub(crate) name: String,
    build: Arc<dyn Fn() -> Box<dyn Policy> + Send + Sync>,
}

impl Brought {
    /// A policy made by `build`, with this name. `build` is called once for each run, one run after the other: finding
    /// the least budget that works takes many runs.
    pub fn new(name: impl Into<String>, build: impl Fn() -> Box<dyn Policy> + Send + Sync + 'static) -> Self {
        Self { name: name.into(), build: Arc::new(build) }
    }

    fn build(&self) -> Box<dyn Policy> {
        (self.build)()
    }
}

impl fmt::Debug for Brought {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Brought").field("name", &self.name).finish_non_exhaustive()
    }
}
