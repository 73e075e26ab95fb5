//! From what was asked for to what will run: defaults are filled in, names are looked up.

use std::sync::Arc;

use haversack_devices::processor::ProcessorError;
use haversack_devices::work::Precision;
use haversack_devices::{Device, Frequency, Stack, load, load_stack};
use haversack_policies::{PolicyError, registry};
use haversack_training::{AllocatorKind, Machine, MachineError};
use haversack_workloads::lowering::{Gradients, Variant};
use haversack_workloads::{Network, WorkloadError};

use super::error::{Fault, Origin, ScenarioError};
use super::key::Key;
use super::{Scenario, Step, trace, workload};
use crate::cache::Cache;

/// Which graph an iteration executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GraphKind {
    /// The one of an eager framework.
    Eager {
        /// Bytes of one element of a dropout mask.
        dropout_mask_bytes: u64,
    },
    /// Sage's, of computable operations.
    Computable(Variant),
}

/// A scenario whose every default is filled in, with what its names stand for.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The scenario; nothing that has a default is left open.
    pub scenario: Scenario,
    /// Its device.
    pub device: Arc<Device>,
    /// Its stack.
    pub stack: Arc<Stack>,
    /// The processor that trains, under the stack.
    pub machine: Arc<Machine>,
    /// Its network.
    pub network: Arc<Network>,
    /// Which graph is executed.
    pub graph: GraphKind,
    /// The memory trace, where there is one.
    pub trace: Arc<Vec<Step>>,
    /// What the user may not expect, a sentence each.
    pub notes: Vec<String>,
}

/// Whether `stack` runs Sage's graph of computable operations: those whose id begins with `sage`.
#[must_use]
pub(crate) fn runs_computable_graph(stack: &Stack) -> bool {
    stack.id.starts_with("sage")
}

impl Scenario {
    /// Fills in what was left open and looks up every name.
    ///
    /// # Errors
    /// [`ScenarioError`]: a name that nothing has, values that do not go together, a file that cannot be read.
    pub fn resolve(&self) -> Result<Resolved, ScenarioError> {
        self.resolve_in(&Cache::new())
    }

    /// As [`Scenario::resolve`], sharing what is loaded with whoever else uses `cache`.
    ///
    /// # Errors
    /// As [`Scenario::resolve`].
    pub fn resolve_in(&self, cache: &Cache) -> Result<Resolved, ScenarioError> {
        self.complete(Origin::Program)?;
        let mut scenario = self.clone();
        let calibration = |key: Key| move |error| self.error(key, Fault::Calibration(Box::new(error)));
        let device = cache.devices.get(self.device.clone(), || load(&self.device)).map_err(calibration(Key::Device))?;
        let stack_id = self.stack.clone().unwrap_or_else(|| device.constants.default_stack.clone());
        let stack = cache.stacks.get(stack_id.clone(), || load_stack(&stack_id)).map_err(calibration(Key::Stack))?;
        scenario.stack = Some(stack_id);
        let key = (self.model.clone(), self.input.clone());
        let network = cache.networks.get(key, || workload::network(&self.model, self.input.as_ref()));
        let network = network.map_err(|error| {
            let key = if matches!(error, WorkloadError::Input { .. }) { Key::Input } else { Key::Model };
            self.error(key, error)
        })?;
        scenario.input = self.input.clone().or_else(|| workload::own_input(&self.model));
        scenario.set = self.parameters()?;
        self.check_availability()?;
        let graph = self.graph_kind(&stack)?;
        scenario.graph = match graph {
            GraphKind::Computable(variant) => Some(variant),
            GraphKind::Eager { .. } => None,
        };
        let own_allocator = if runs_computable_graph(&stack) { AllocatorKind::Exact } else { AllocatorKind::Caching };
        scenario.allocator = Some(self.allocator.unwrap_or(own_allocator));
        let machine = self.machine(cache, &device, &stack)?;
        let trace = match &self.trace {
            None => Arc::default(),
            Some(path) => {
                let origin = self.origins.get(&Key::Trace).cloned().unwrap_or_default();
                cache.traces.get(path.display().to_string(), || trace::read(path, &origin))?
            }
        };
        let notes = self.notes(&machine);
        Ok(Resolved { scenario, device, stack, machine, network, graph, trace, notes })
    }

    /// The policy's parameters by their own names, once the policy has accepted them.
    fn parameters(&self) -> Result<std::collections::BTreeMap<String, String>, ScenarioError> {
        let entry = registry::find(&self.policy).map_err(|error| self.error(Key::Policy, error))?;
        let mut parameters = std::collections::BTreeMap::new();
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

    fn check_availability(&self) -> Result<(), ScenarioError> {
        if self.precision == Precision::Int8 {
            let message = "int8 is not available yet; expected fp32 or fp16".to_owned();
            return Err(self.error(Key::Precision, Fault::Refused(message)));
        }
        if self.ambient_c.is_some() {
            let message =
                "no device has a thermal model yet, so the ambient temperature would change nothing; leave it out";
            return Err(self.error(Key::AmbientC, Fault::Refused(message.to_owned())));
        }
        Ok(())
    }

    fn graph_kind(&self, stack: &Stack) -> Result<GraphKind, ScenarioError> {
        if runs_computable_graph(stack) {
            let own = if self.policy == "original" { Variant::Original } else { Variant::Reduced };
            return Ok(GraphKind::Computable(self.graph.unwrap_or(own)));
        }
        let eager = |what: &str| {
            Fault::Refused(format!(
                "the stack {} runs operators eagerly, so {what}; leave it out, or choose the stack sage-opencl",
                stack.id
            ))
        };
        if self.graph.is_some() {
            return Err(self.error(Key::Graph, eager("there is no graph to optimise")));
        }
        if self.gradients == Gradients::Streamed {
            return Err(self.error(Key::Gradients, eager("gradients are kept until the update")));
        }
        Ok(GraphKind::Eager { dropout_mask_bytes: stack.constants.dropout_mask.value.0 })
    }

    fn machine(&self, cache: &Cache, device: &Device, stack: &Stack) -> Result<Arc<Machine>, ScenarioError> {
        let key = format!("{} {} {:?} {:?}", device.file, stack.file, self.cores, self.frequency);
        let made = cache.machines.get(key, || Machine::new(device.clone(), stack.clone(), self.cores, self.frequency));
        made.map_err(|error| {
            let no_kernels = matches!(error, MachineError::Processor(ProcessorError::NoKernels { .. }));
            let key = match error {
                MachineError::Processor(ProcessorError::Selection(_)) => Key::Cores,
                _ if self.cores.is_some() && self.stack.is_none() => Key::Cores,
                _ => Key::Stack,
            };
            let eager = "pytorch-cpu";
            let helps =
                no_kernels && device.cpu().is_some() && load_stack(eager).is_ok_and(|stack| stack.cpu().is_some());
            let hint = if helps { format!("; the stack {eager} has") } else { String::new() };
            self.error(key, Fault::Machine { error: Box::new(error), hint })
        })
    }

    fn notes(&self, machine: &Machine) -> Vec<String> {
        let mut notes = Vec::new();
        let on_gpu = matches!(machine.processor, haversack_devices::Processor::Gpu(..));
        if on_gpu && self.frequency != Frequency::Highest {
            notes.push("the frequency is the CPU's; the GPU that trains here keeps its own".to_owned());
        }
        if self.frequency == Frequency::Governor {
            notes.push("there is no thermal governor yet: governor means highest".to_owned());
        }
        notes
    }
}
