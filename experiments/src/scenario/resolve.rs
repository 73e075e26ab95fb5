//! Resolves a scenario: fills in defaults and looks up names.

use std::collections::BTreeMap;
use std::sync::Arc;

use haversack_devices::{
    Celsius, CoreSelection, Device, Fold, Frequency, Int8Kernels, MemoryFormat, Precision, Processor, ProcessorError,
    ProcessorKind, SelectionError, Stack, StackGraph, System, ensure, stacks_that_fit,
};
use haversack_policies::mandheling::ALGORITHM;
use haversack_policies::plan::PLANNED;
use haversack_policies::{Engine, EngineProcessor, Entry, PolicyError, registry};
use haversack_training::{Machine, MachineError, Phone, Trains};
use haversack_workloads::express::Version;
use haversack_workloads::prepared::Folds;
use haversack_workloads::{Attention, Gradients, Network, Variant, WorkloadError, mixed};

use super::apps::{self, InUse};
use super::error::{Fault, Mistakes, Origin, Result};
use super::key::{DEFAULT_ITERATIONS, ITERATIONS_OF_LEARNERS, Key};
use super::surroundings::Covered;
use super::user_trace::Available;
use super::{Budget, Scenario, Step, workload};
use crate::Cache;

/// The graph that an iteration executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GraphKind {
    /// The graph of an eager framework.
    Eager {
        /// Bytes of one element of a dropout mask.
        dropout_mask_bytes: u64,
    },
    /// Sage's, of computable operations.
    Computable(Variant),
    /// MNN's expressions, of one of its versions.
    Expressions(Version),
    /// The eager one, rewritten for integer training by an algorithm.
    Integer(&'static str),
}

/// The system of a phone if its apps are given but not its system.
const SYSTEM_OF_APPS: &str = "android";

/// A scenario with all defaults filled in, and everything that its names refer to.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The scenario, without open defaults.
    pub scenario: Scenario,
    /// The device that trains, with its constants.
    pub device: Arc<Device>,
    /// The software that it runs.
    pub stack: Arc<Stack>,
    /// The processor that trains, under the stack.
    pub machine: Arc<Machine>,
    /// The network that is trained.
    pub network: Arc<Network>,
    /// The graph that is executed.
    pub graph: GraphKind,
    /// The phone in use; `None` if the device does nothing else.
    pub phone: Option<Arc<Phone>>,
    /// Memory budgets over the run; empty without a trace of them.
    pub trace: Arc<Vec<Step>>,
    /// The part of a user's trace that the run can use; `None` without one.
    pub covered: Option<Covered>,
    /// The memory that a phone in use leaves, from a recording.
    pub(crate) recorded: Option<Arc<Available>>,
    /// Caveats for the user, one sentence each.
    pub notes: Vec<String>,
}

impl Resolved {
    /// The operators that the stack folds into products when it prepares the network for inference;
    /// `None` if it does not.
    pub fn prepares(&self) -> Option<Folds> {
        let folds = self.stack.constants.folds.as_ref().filter(|_| self.scenario.inference)?;
        let [batch_norm, activation] = [Fold::BatchNorm, Fold::Activation].map(|fold| folds.contains(&fold));
        Some(Folds { batch_norm, activation })
    }

    /// The implementation of attention: the one that is given, or the stack's own.
    pub fn attention(&self) -> Attention {
        self.scenario.attention.unwrap_or(self.stack.constants.attention)
    }

    /// The same run on a phone in use with other constants of its system; `None` if it is not on such a phone, or if
    /// the system does not run on the device.
    pub(crate) fn under_system(&self, system: &System) -> Option<Self> {
        let now = self.phone.as_deref()?;
        let in_use = InUse { apps: now.apps.clone(), recorded: self.recorded.clone(), phase: now.phase };
        let phone = apps::phone(&self.device, system, self.machine.cores(), &in_use, Some(now.trainer.adj)).ok()?;
        Some(Self { phone: Some(Arc::new(phone)), ..self.clone() })
    }
}

impl Scenario {
    /// Fills in defaults and looks up every name, sharing loaded files with other users of `cache`.
    ///
    /// # Errors
    /// An unknown name, values that do not fit together, a file that cannot be read.
    pub fn resolve_in(&self, cache: &Cache) -> Result<Resolved> {
        if let Some(scenario) = self.on_phone_of_trace(cache)? {
            return scenario.resolve_in(cache);
        }
        let error = match self.resolved_in(cache) {
            Ok(resolved) => return Ok(resolved),
            Err(error) => error,
        };
        // One wrong name must not hide the others.
        let mut mistakes = Mistakes::default();
        mistakes.add(error);
        self.unknown_names(cache, &mut mistakes);
        mistakes.finish()?;
        self.resolved_in(cache)
    }

    fn resolved_in(&self, cache: &Cache) -> Result<Resolved> {
        self.complete(Origin::Program)?;
        let mut scenario = self.clone();
        let device = self.load_device(cache)?;
        let policy = registry::find(&self.policy).map_err(|error| self.error(Key::Policy, error))?;
        let (decided, of_decided) = self.decided_by(policy)?;
        let engine = decided.engine;
        let own_stack = || engine.map_or(device.constants.default_stack.clone(), |engine| engine.stack.to_owned());
        let stack_id = self.stack.clone().unwrap_or_else(own_stack);
        let stack = self.load_stack(cache, &stack_id)?;
        scenario.stack = Some(stack_id);
        let reading = self.reading();
        let key = (self.model.clone(), reading.clone(), self.classes);
        let network = cache.get(key, || workload::network(&self.model, &reading, self.classes));
        let network = network.map_err(|error| {
            let key = if matches!(error, WorkloadError::Input { .. }) { Key::Input } else { Key::Model };
            self.error(key, error)
        })?;
        scenario.input = self.input.clone().or_else(|| workload::own_input(&self.model));
        scenario.set = self.parameters(policy)?;
        let algorithm = self.algorithm(decided, of_decided.as_ref().unwrap_or(&scenario.set))?;
        if algorithm.is_some() {
            scenario.precision = Precision::Int8;
        }
        let graph = self.graph_kind(&stack, algorithm)?;
        scenario.graph = match graph {
            GraphKind::Computable(variant) => Some(variant),
            GraphKind::Eager { .. } | GraphKind::Expressions(_) | GraphKind::Integer(_) => None,
        };
        let learns = engine.is_some_and(|engine| engine.keeps_learning);
        let own_iterations = if learns { ITERATIONS_OF_LEARNERS } else { DEFAULT_ITERATIONS };
        scenario.iterations = Some(self.iterations.unwrap_or(own_iterations));
        scenario.allocator = Some(self.allocator.unwrap_or(stack.constants.allocator));
        if scenario.cores.is_none() {
            scenario.cores = self.own_cores(engine, &device)?;
        }
        let machine = self.machine(cache, &device, &stack, engine, scenario.cores)?;
        self.check_library(&machine)?;
        self.check_inference(graph, &stack)?;
        self.check_ambient(&device)?;
        self.check_cores(&machine)?;
        let mut notes = network.notes().to_vec();
        notes.extend(self.notes_on(&machine));
        let around = self.read_surroundings(cache, &mut notes)?;
        let trace = around.budgets;
        notes.extend(self.notes_on_budgets(&trace));
        if around.apps.is_some() && scenario.system.is_none() {
            scenario.system = Some(SYSTEM_OF_APPS.to_owned());
        }
        if scenario.system.is_none() && !self.system_set.is_empty() {
            let message =
                "these are constants of an operating system, and none is given; name a system (`list systems`) too";
            return Err(self.error(Key::SystemSet, Fault::Refused(message.to_owned())));
        }
        let in_use =
            InUse { apps: around.apps.unwrap_or_default(), recorded: around.recorded, phase: apps::phase(self.seed) };
        let phone = scenario.phone(cache, &device, &machine, &in_use)?;
        if phone.is_none() {
            self.check_idle(policy, &scenario.set)?;
        } else if self.ignore_ram {
            let message = "a phone in use shares out what memory it has; leave it out, or give it more by device_set";
            return Err(self.error(Key::IgnoreRam, Fault::Refused(message.to_owned())));
        }
        let (covered, recorded) = (around.covered, in_use.recorded);
        Ok(Resolved { scenario, device, stack, machine, network, graph, phone, trace, covered, recorded, notes })
    }

    /// The policy's parameters by their own names, once the policy has accepted them.
    fn parameters(&self, entry: &Entry) -> Result<BTreeMap<String, String>> {
        let mut parameters = BTreeMap::new();
        for (name, value) in &self.set {
            let own = match name.split_once('.') {
                None => name,
                Some((policy, own)) if policy == entry.id => own,
                Some((policy, _)) => {
                    let known = registry::find(policy).map_err(|error| self.error(Key::Set, error))?;
                    let message = format!("{name} is a parameter of '{}', but the policy is '{}'", known.id, entry.id);
                    return Err(self.error(Key::Set, Fault::Refused(message)));
                }
            };
            parameters.insert(own.to_owned(), value.clone());
        }
        let pairs: Vec<_> = parameters.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        registry::build(entry.id, &pairs).map_err(|error: PolicyError| self.error(Key::Set, error))?;
        Ok(parameters)
    }

    /// The policy that determines engine and number format, with its parameters; for `planned`, the policy
    /// that made the plan.
    fn decided_by(&self, policy: &'static Entry) -> Result<(&'static Entry, Option<BTreeMap<String, String>>)> {
        if policy.id != PLANNED {
            return Ok((policy, None));
        }
        let origin = registry::origin(policy, &self.parameters(policy)?);
        origin.map(|(entry, set)| (entry, Some(set))).map_err(|error| self.error(Key::Set, error))
    }

    /// The algorithm of integer training: of an engine that trains in integers, or for the precision `int8`.
    fn algorithm(&self, policy: &Entry, set: &BTreeMap<String, String>) -> Result<Option<&'static str>> {
        let asked = self.precision == Precision::Int8;
        let in_integers = policy.engine.is_some_and(|engine| engine.eight_bit);
        if asked && policy.engine.is_some() && !in_integers {
            let message =
                format!("the policy {} trains in fp32; mnn-int8 and mandheling train in integers", self.policy);
            return Err(self.error(Key::Precision, Fault::Refused(message)));
        }
        if !asked && !in_integers {
            return Ok(None);
        }
        if !asked && self.origins.contains_key(&Key::Precision) {
            let (policy, precision) = (&self.policy, self.precision);
            let message = format!(
                "the policy {policy} trains in int8, not in {precision}; leave the precision out, or choose another policy, \
                 such as sage"
            );
            return Err(self.error(Key::Precision, Fault::Refused(message)));
        }
        if policy.stores_floats {
            let message = format!("the policy {} stores fp32 tensors its own way; expected fp32 or fp16", self.policy);
            return Err(self.error(Key::Precision, Fault::Refused(message)));
        }
        let id = set.get("algorithm").map_or(ALGORITHM, String::as_str);
        let algorithm = mixed::algorithm(id).map_err(|error| self.error(Key::Set, error))?;
        Ok(Some(algorithm.id.as_str()))
    }

    /// The cores that an engine uses, or all of them if the device has fewer.
    fn own_cores(&self, engine: Option<Engine>, device: &Device) -> Result<Option<CoreSelection>> {
        let Some((cores, cpu)) = engine.and_then(|engine| engine.cores).zip(device.cpu()) else { return Ok(None) };
        let wanted: CoreSelection = cores.parse().map_err(|error| self.error(Key::Cores, error))?;
        Ok(Some(wanted.or_all_of_class(cpu.choose(wanted, self.frequency))))
    }

    fn graph_kind(&self, stack: &Stack, algorithm: Option<&'static str>) -> Result<GraphKind> {
        if let Some(algorithm) = algorithm {
            if self.graph.is_some() {
                let message = "integer training rewrites the graph of whole operators; leave it out".to_owned();
                return Err(self.error(Key::Graph, Fault::Refused(message)));
            }
            if self.gradients == Gradients::Streamed {
                let message = "integer training keeps gradients until the update; leave it out".to_owned();
                return Err(self.error(Key::Gradients, Fault::Refused(message)));
            }
            return Ok(GraphKind::Integer(algorithm));
        }
        let whole = GraphKind::Eager { dropout_mask_bytes: stack.constants.dropout_mask.value.0 };
        if self.inference && stack.constants.folds.is_some() && self.graph.is_none() {
            return Ok(whole);
        }
        match stack.constants.graph {
            StackGraph::Eager | StackGraph::Commands | StackGraph::Expressions => {}
            StackGraph::Inference => {
                let stack = &stack.id;
                let message = format!(
                    "the stack {stack} runs networks and trains none; ask for inference alone (--inference, without --graph), or \
                     choose a stack that trains, such as mnn or pytorch-cpu"
                );
                return Err(self.error(Key::Stack, Fault::Refused(message)));
            }
            StackGraph::Decomposed => return Ok(GraphKind::Computable(self.graph.unwrap_or(Variant::Direct))),
            StackGraph::Optimised => return Ok(GraphKind::Computable(self.graph.unwrap_or(Variant::Reduced))),
        }
        let eager = |what: &str| {
            Fault::Refused(format!(
                "the stack {} runs operators as they are, so {what}; leave it out, or choose the stack sage-opencl",
                stack.id
            ))
        };
        ensure!(self.graph.is_none(), self.error(Key::Graph, eager("it has no graph to optimise")));
        if self.gradients == Gradients::Streamed {
            return Err(self.error(Key::Gradients, eager("gradients are kept until the update")));
        }
        Ok(match stack.constants.graph {
            StackGraph::Commands => GraphKind::Expressions(Version::V1),
            StackGraph::Expressions => GraphKind::Expressions(Version::V2),
            _ => whole,
        })
    }

    /// Refuses a memory format unless the stack calls a library, and fused attention unless it has such kernels.
    fn check_library(&self, machine: &Machine) -> Result<()> {
        let on_library = matches!(&machine.processor, Processor::Gpu(_, on_gpu) if on_gpu.library.is_some());
        let fuses = machine.stack.constants.attention == Attention::Fused;
        let refused = [
            (Key::MemoryFormat, self.memory_format != MemoryFormat::default() && !on_library),
            (Key::Attention, self.attention == Some(Attention::Fused) && !(on_library && fuses)),
        ];
        let Some(&(key, _)) = refused.iter().find(|(_, refused)| *refused) else { return Ok(()) };
        let message = format!(
            "the stack {} has one way only on this {}; leave it out, or choose an NVIDIA GPU with the stack pytorch-cuda",
            machine.stack.id,
            machine.processor.kind()
        );
        Err(self.error(key, Fault::Refused(message)))
    }

    /// Refuses inference unless the graph consists of whole operators: an eager framework's, or a prepared one.
    fn check_inference(&self, graph: GraphKind, stack: &Stack) -> Result<()> {
        if !self.inference || matches!(graph, GraphKind::Eager { .. }) {
            return Ok(());
        }
        let message = format!(
            "the stack {} only trains so; choose one that runs networks in floating point, such as ncnn, mnn or pytorch-cpu",
            stack.id
        );
        Err(self.error(Key::Inference, Fault::Refused(message)))
    }

    fn machine(
        &self,
        cache: &Cache,
        device: &Device,
        stack: &Stack,
        engine: Option<Engine>,
        cores: Option<CoreSelection>,
    ) -> Result<Arc<Machine>> {
        let trains = engine.map_or(Trains::Either, |engine| match engine.processor {
            EngineProcessor::Cpu => Trains::Cpu,
            EngineProcessor::Gpu => Trains::Gpu,
            EngineProcessor::CpuAndDsp => Trains::CpuAndDsp,
        });
        let Self { frequency, memory_format, inference, .. } = *self;
        let of_run = format!("{trains:?} {cores:?} {frequency:?} {memory_format} {inference}");
        let placed = self.placed.as_ref().map(|placed| placed.name.clone());
        let key = format!("{} {} {placed:?} {of_run}", device.file, stack.file);
        let make = || {
            let machine = Machine::new(device.clone(), stack.clone(), trains, cores, frequency)?;
            let machine = machine.with_memory_format(memory_format);
            Ok(if inference { machine.prepared_before() } else { machine })
        };
        let made = cache.get(key, make);
        made.map_err(|error| {
            let MachineError::Processor(refused) = &error;
            let on_cpu_or_gpu = |kind: &ProcessorKind| *kind != ProcessorKind::Dsp;
            let no_kernels = matches!(refused, ProcessorError::NoKernels { kind, .. } if on_cpu_or_gpu(kind));
            let key = match refused {
                ProcessorError::Selection(SelectionError::NoOperatingPoint { .. }) => Key::Frequency,
                ProcessorError::Selection(_) => Key::Cores,
                ProcessorError::Absent { kind: ProcessorKind::Dsp, .. } => Key::Policy,
                _ if self.cores.is_some() && self.stack.is_none() => Key::Cores,
                _ => Key::Stack,
            };
            let wrong_stack = no_kernels || matches!(refused, ProcessorError::Misfit { .. });
            let hint = match stacks_that_fit(device) {
                fitting if wrong_stack && !fitting.is_empty() => {
                    format!("; the stacks that run on {} are {}", device.id, fitting.join(", "))
                }
                _ => String::new(),
            };
            self.error(key, Fault::Machine { error: Box::new(error), hint })
        })
    }

    /// Refuses an ambient temperature for a device without a thermal model, or one at which it does not start.
    pub(super) fn check_ambient(&self, device: &Device) -> Result<()> {
        let Some(ambient) = self.ambient_c else { return Ok(()) };
        let refused = |message: String| self.error(Key::AmbientC, Fault::Refused(message));
        let Some(thermal) = device.thermal() else {
            return Err(refused(format!(
                "{} has no thermal model, so it would change nothing; leave it out",
                device.id
            )));
        };
        thermal.start(Celsius(ambient)).map(|_| ()).map_err(|error| refused(error.to_string()))
    }

    /// Refuses cores and frequencies that do not affect a GPU, or that its CPU does not have.
    pub(super) fn check_cores(&self, machine: &Machine) -> Result<()> {
        if machine.cores().is_some() {
            return Ok(());
        }
        if self.cores.is_some() {
            let message = format!("the policy {} trains on the GPU; leave the cores out", self.policy);
            return Err(self.error(Key::Cores, Fault::Refused(message)));
        }
        match (self.frequency, machine.device.cpu()) {
            (Frequency::Fixed(point), Some(cpu)) => {
                cpu.check_point(point).map_err(|error| self.error(Key::Frequency, error))
            }
            _ => Ok(()),
        }
    }

    /// Refuses parameters that matter only on a phone in use; this run is not on one.
    pub(super) fn check_idle(&self, policy: &Entry, set: &BTreeMap<String, String>) -> Result<()> {
        let idle = policy.parameters.iter().find(|parameter| parameter.of_a_phone && set.contains_key(parameter.name));
        let Some(idle) = idle else { return Ok(()) };
        let message = format!(
            "{}.{} has no effect on a device without other processes; name a system (`list systems`), apps or a trace \
             of apps too",
            policy.id, idle.name
        );
        Err(self.error(Key::Set, Fault::Refused(message)))
    }

    /// Whether a budget, a wall or a step of the trace is a percentage.
    fn is_percentage_given(&self, trace: &[Step]) -> bool {
        let walls = self.budget_walls.memory.iter().chain(&self.budget_walls.activations).chain(trace);
        let budgets = self.memory_budget.iter().chain(&self.activation_budget).copied();
        budgets.chain(walls.map(|step| step.budget)).any(|budget| matches!(budget, Budget::Percent(_)))
    }

    /// Notes on budgets: two given together, and a reference that no budget refers to.
    pub(super) fn notes_on_budgets(&self, trace: &[Step]) -> Vec<String> {
        let mut notes = Vec::new();
        if self.memory_budget.is_some() && !trace.is_empty() {
            notes.push("the smaller of --memory-budget and the budget of the trace counts at every time".to_owned());
        }
        if self.origins.contains_key(&Key::BudgetReference) && !self.is_percentage_given(trace) {
            notes.push("no budget is a percentage, so that what percentages are of changes nothing".to_owned());
        }
        notes
    }

    /// Notes on frequencies and heat on `machine`.
    pub(super) fn notes_on(&self, machine: &Machine) -> Vec<String> {
        let mut notes = Vec::new();
        let on_gpu = machine.cores().is_none();
        if on_gpu && self.frequency != Frequency::Highest {
            notes.push("the frequency is the CPU's; the GPU that trains here keeps its own".to_owned());
        }
        if self.ambient_c.is_some() && !machine.governed {
            let why = if on_gpu { "no governor of a GPU is modelled" } else { "only --frequency governor follows it" };
            notes.push(format!("the heat slows nothing down here: {why}"));
        }
        let widens = machine.stack.cpu().is_some_and(|cpu| cpu.int8 == Int8Kernels::Widening);
        if widens && !on_gpu && self.precision == Precision::Int8 {
            let stack = &machine.stack.id;
            notes.push(format!("int8 is not faster than fp32 here: {stack} has no integer kernels with dot products"));
        }
        notes
    }
}
