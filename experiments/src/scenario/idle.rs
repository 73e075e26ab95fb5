//! What would do nothing where it stands: refused, or said to be so.

use std::collections::BTreeMap;

use haversack_devices::units::Celsius;
use haversack_devices::{Device, Frequency};
use haversack_policies::entry::Entry;
use haversack_training::Machine;

use super::error::{Fault, ScenarioError};
use super::key::Key;
use super::{Budget, Scenario, Step};

impl Scenario {
    /// Refuses surroundings of a device without a model of heat, and those that it does not start in.
    pub(super) fn check_ambient(&self, device: &Device) -> Result<(), ScenarioError> {
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

    /// Refuses cores and frequencies that a GPU has no use for, or that the CPU beside it has not got.
    pub(super) fn check_cores(&self, machine: &Machine) -> Result<(), ScenarioError> {
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

    /// Refuses parameters that decide something on a phone in use alone; this run is on none.
    pub(super) fn check_idle(&self, policy: &Entry, set: &BTreeMap<String, String>) -> Result<(), ScenarioError> {
        let idle =
            policy.parameters.iter().find(|parameter| parameter.is_of_a_phone() && set.contains_key(parameter.name()));
        let Some(idle) = idle else { return Ok(()) };
        let message = format!(
            "{}.{} does nothing on a device that nobody else uses; name a system (`list systems`), apps or a trace of apps \
             too",
            policy.id,
            idle.name()
        );
        Err(self.error(Key::Set, Fault::Refused(message)))
    }

    /// Whether a budget, a wall or a step of the trace is a percentage.
    fn is_percentage_given(&self, trace: &[Step]) -> bool {
        let walls = self.budget_walls.memory.iter().chain(&self.budget_walls.activations).chain(trace);
        let budgets = self.memory_budget.iter().chain(&self.activation_budget).copied();
        budgets.chain(walls.map(|step| step.budget)).any(|budget| matches!(budget, Budget::Percent(_)))
    }

    /// What the user may not expect of budgets: two at once, and a reference that nothing refers to.
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

    /// What the user may not expect of frequencies and heat on `machine`.
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
        notes
    }
}
