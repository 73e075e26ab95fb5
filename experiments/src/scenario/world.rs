//! The device, the stack and the system of a scenario: with the values that it overrides, those of a program that moves
//! a constant, and the phone of a trace; and checks for unknown names.

use std::fmt::Debug;
use std::sync::Arc;

use haversack_devices::calibration::{Calibrated, Schema, Settings, digest};
use haversack_devices::units::Bytes;
use haversack_devices::{CalibrationError, ConstantEntry, Device, Form, Stack, System, load_stack};
use haversack_policies::registry;
use haversack_workloads::models::{self, MODELS};
use serde::{Deserialize, Serialize};

use super::error::{Fault, Mistakes, Result, ScenarioError};
use super::user_trace::total_memory;
use super::{Key, Placed, Resolved, Scenario, apps, workload};
use crate::Cache;

/// The calibration that a constant belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Holder {
    /// The device's.
    Device,
    /// The software stack's.
    Stack,
    /// The operating system's.
    System,
}

/// The calibrations of a run.
#[derive(Clone, Debug)]
#[must_use]
pub struct World {
    /// The device that trains.
    pub device: Device,
    /// The software that it runs.
    pub stack: Stack,
    /// The operating system of a phone in use.
    pub system: Option<System>,
}

impl World {
    /// The calibrations of `resolved`.
    ///
    /// # Errors
    /// None that resolving has not reported already.
    pub fn of(resolved: &Resolved, cache: &Cache) -> Result<Self> {
        let system = resolved.scenario.load_system(cache)?;
        let (device, stack) = (resolved.device.as_ref().clone(), resolved.stack.as_ref().clone());
        Ok(Self { device, stack, system: system.map(Arc::unwrap_or_clone) })
    }

    /// Every constant, with the calibration it belongs to.
    pub fn entries(&self) -> Vec<(Holder, ConstantEntry)> {
        let of_system = self.system.as_ref().map(System::entries).unwrap_or_default();
        let held = |holder: Holder| move |entry: ConstantEntry| (holder, entry);
        let of_device = self.device.entries().into_iter().map(held(Holder::Device));
        let of_stack = self.stack.entries().into_iter().map(held(Holder::Stack));
        of_device.chain(of_stack).chain(of_system.into_iter().map(held(Holder::System))).collect()
    }

    /// The same with the constant `name` of `holder` at `value`, in the unit of its file.
    ///
    /// # Errors
    /// As [`set`](haversack_devices::Calibrated::set): an unknown name, a value out of range or
    /// inconsistent with another.
    pub fn with(&self, holder: Holder, name: &str, value: f64) -> Result<Self, CalibrationError> {
        let mut world = self.clone();
        world.set(holder, name, value)?;
        Ok(world)
    }

    /// Sets the constant `name` of `holder`, in the unit of its file; has no effect on a missing system.
    ///
    /// # Errors
    /// As [`World::with`].
    pub fn set(&mut self, holder: Holder, name: &str, value: f64) -> Result<(), CalibrationError> {
        match (holder, &mut self.system) {
            (Holder::Device, _) => self.device.set(name, value),
            (Holder::Stack, _) => self.stack.set(name, value),
            (Holder::System, Some(system)) => system.set(name, value),
            (Holder::System, None) => Ok(()),
        }
    }

    /// `scenario` with these calibrations: the device, the stack, and the system if it has one.
    pub fn scenario(self, scenario: &Scenario) -> Scenario {
        // The digest includes text values, such as the compressor, too.
        let name = digest(&format!("{self:?}"));
        let (device_set, system_set) = (Settings::new(), Settings::new());
        let (device, stack) = (self.device.id.clone(), Some(self.stack.id.clone()));
        let placed = Placed {
            device: Arc::new(self.device),
            stack: Arc::new(self.stack),
            system: self.system.map(Arc::new),
            name,
        };
        let placed = Some(Arc::new(placed));
        Scenario { device, stack, device_set, system_set, placed, ..scenario.clone() }
    }
}

/// The values of a constant moved by `share` of it, down and up, by at least one for counts. `None` if it is zero,
/// which cannot be scaled.
pub fn moved(entry: &ConstantEntry, share: f64) -> Option<[f64; 2]> {
    let value = entry.value;
    if value == 0.0 {
        return None;
    }
    let step = share * value.abs();
    let step = if matches!(entry.unit, "count" | "B") { step.round().max(1.0) } else { step };
    Some([value - step, value + step])
}

/// The device name that selects the device by the trace.
const OF_TRACE: &str = "trace";

/// The id of the phone with the least memory of at least `total`, or else with the most; the first of equals.
fn phone_with(total: Bytes) -> Result<String, Fault> {
    let load = |id: &str| Device::load(id).map_err(|error| Fault::Calibration(Box::new(error)));
    let listed = haversack_devices::list().map_err(|error| Fault::Calibration(Box::new(error)))?;
    let mut phones = Vec::new();
    for listing in listed {
        let device = load(listing.id)?;
        if device.constants.form == Some(Form::Phone) {
            phones.push((device.ram(), device.id));
        }
    }
    let fits = phones.iter().filter(|(ram, _)| *ram >= total).min_by_key(|(ram, _)| *ram);
    let largest = || phones.iter().rev().max_by_key(|(ram, _)| *ram);
    let found = fits.or_else(largest).map(|(_, id)| id.clone());
    found.ok_or_else(|| Fault::Refused("none of the devices is a phone".to_owned()))
}

impl Scenario {
    /// The device with the values of `device_set`.
    ///
    /// # Errors
    /// An unknown device, or a value that it cannot have.
    pub(super) fn load_device(&self, cache: &Cache) -> Result<Arc<Device>> {
        let Some(placed) = &self.placed else { return self.changed(cache, Key::Device, &self.device) };
        Ok(Arc::clone(&placed.device))
    }

    /// The stack `id`, which is the scenario's own or the default of its device or policy.
    ///
    /// # Errors
    /// An unknown stack.
    pub(super) fn load_stack(&self, cache: &Cache, id: &str) -> Result<Arc<Stack>> {
        match &self.placed {
            Some(placed) if self.stack.is_some() => Ok(Arc::clone(&placed.stack)),
            _ => cache.get(id.to_owned(), || load_stack(id)).map_err(|error| self.refused(Key::Stack, error)),
        }
    }

    /// The system with the values of `system_set`; `None` without one.
    ///
    /// # Errors
    /// An unknown system, or a value that it cannot have.
    pub(super) fn load_system(&self, cache: &Cache) -> Result<Option<Arc<System>>> {
        let placed = self.placed.as_ref().and_then(|placed| placed.system.as_ref());
        let load = |id: &String| match placed {
            Some(system) => Ok(Arc::clone(system)),
            None => self.changed(cache, Key::System, id),
        };
        self.system.as_ref().map(load).transpose()
    }

    /// The scenario on the phone with the least memory that the user's trace fits in, if the device is
    /// [`OF_TRACE`]; `None` otherwise.
    ///
    /// # Errors
    /// No trace, or one without the total memory of its phone.
    pub(super) fn on_phone_of_trace(&self, cache: &Cache) -> Result<Option<Self>> {
        if self.device != OF_TRACE {
            return Ok(None);
        }
        let refused = |message: String| self.error(Key::Device, Fault::Refused(message));
        let named = self.trace.as_ref().filter(|named| apps::is_table(named));
        let named =
            named.ok_or_else(|| refused("'trace' is the phone of a table of traces; name one (--trace)".to_owned()))?;
        let (path, user) = apps::split(named);
        let total = total_memory(&path, user.as_deref()).map_err(|error| refused(error.to_string()))?;
        let total = total.ok_or_else(|| refused(format!("{} does not say MemTotal of its phone", named.display())))?;
        let device =
            cache.get(("phone of", total), || phone_with(total)).map_err(|error| self.error(Key::Device, error))?;
        Ok(Some(Self { device: device.as_ref().clone(), ..self.clone() }))
    }

    /// The calibration `id` that `named` names, with the overriding values of `key`.
    fn changed<T>(&self, cache: &Cache, named: Key, id: &str) -> Result<Arc<Calibrated<T>>>
    where
        T: Schema + Debug + Send + Sync + 'static,
    {
        let (key, settings) = match named {
            Key::Device => (Key::DeviceSet, &self.device_set),
            _ => (Key::SystemSet, &self.system_set),
        };
        let plain = cache.get(id.to_owned(), || Calibrated::<T>::load(id));
        let plain = plain.map_err(|error| self.refused(named, error))?;
        if settings.is_empty() {
            return Ok(plain);
        }
        let changed = cache.get(format!("{id} with {settings:?}"), || Calibrated::<T>::load_with(id, settings));
        changed.map_err(|error| self.refused(key, error))
    }

    /// Adds a mistake for every unknown name.
    pub(crate) fn unknown_names(&self, cache: &Cache, mistakes: &mut Mistakes) {
        for key in [Key::Device, Key::Stack, Key::Model, Key::Policy, Key::System] {
            self.unknown_name(key, cache, mistakes);
        }
    }

    /// Adds a mistake if the name of `key` is unknown.
    pub(crate) fn unknown_name(&self, key: Key, cache: &Cache, mistakes: &mut Mistakes) {
        let is_named = |id: &str| workload::is_file(id) || MODELS.iter().any(|known| known.id == id);
        let found = match key {
            Key::Device | Key::DeviceSet if ["", OF_TRACE].contains(&self.device.as_str()) => Ok(()),
            Key::Device | Key::DeviceSet => self.load_device(cache).map(drop),
            Key::Stack => self.stack.iter().try_for_each(|id| self.load_stack(cache, id).map(drop)),
            Key::System | Key::SystemSet => self.load_system(cache).map(drop),
            Key::Policy => registry::find(&self.policy).map(drop).map_err(|error| self.error(key, error)),
            // Known models are checked by name only, because building them takes time.
            Key::Model if !self.model.is_empty() && !is_named(&self.model) => {
                models::build(&self.model, None).map(drop).map_err(|error| self.error(key, error))
            }
            _ => Ok(()),
        };
        mistakes.note(found);
    }

    fn refused(&self, key: Key, error: CalibrationError) -> ScenarioError {
        self.error(key, Fault::Calibration(Box::new(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_moves_by_its_share_and_a_count_by_at_least_one() {
        let entry = |value: f64, unit: &'static str| ConstantEntry {
            name: "x".to_owned(),
            value,
            unit,
            kind: haversack_devices::Kind::Measured,
            source: String::new(),
            file: String::new(),
        };
        assert_eq!(moved(&entry(50.0, "us"), 0.2), Some([40.0, 60.0]));
        // A tenth of four cores is less than a core.
        assert_eq!(moved(&entry(4.0, "count"), 0.1), Some([3.0, 5.0]));
        assert_eq!(moved(&entry(-10.0, "°C"), 0.2), Some([-12.0, -8.0]));
        assert_eq!(moved(&entry(0.0, "us"), 0.2), None);
    }
}
