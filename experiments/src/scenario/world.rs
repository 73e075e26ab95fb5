//! The calibrations of a run as values, so that it can run again with a constant moved.

use std::convert::Infallible;
use std::sync::Arc;

use haversack_devices::calibration::{Settings, digest};
use haversack_devices::{CalibrationError, ConstantEntry, Device, Stack, System};

use super::{Resolved, Scenario, ScenarioError};
use crate::cache::Cache;

/// Which calibration holds a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// The device's.
    Device,
    /// The software stack's.
    Stack,
    /// The operating system's.
    System,
}

/// Where a run takes place: the calibrations that it is made of.
#[derive(Clone, Debug)]
#[must_use]
pub struct World {
    /// What trains.
    pub device: Device,
    /// The software that it runs.
    pub stack: Stack,
    /// The operating system of a phone in use.
    pub system: Option<System>,
}

impl World {
    /// Where `resolved` runs.
    ///
    /// # Errors
    /// None that resolving has not found already.
    pub fn of(resolved: &Resolved, cache: &Cache) -> Result<Self, ScenarioError> {
        let system = resolved.scenario.load_system(cache)?;
        let (device, stack) = (resolved.device.as_ref().clone(), resolved.stack.as_ref().clone());
        Ok(Self { device, stack, system: system.map(Arc::unwrap_or_clone) })
    }

    /// Every constant, with the calibration that holds it.
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
    /// As [`set`](haversack_devices::Calibrated::set): an unknown name, a value out of range or against another.
    pub fn with(&self, holder: Holder, name: &str, value: f64) -> Result<Self, CalibrationError> {
        let mut world = self.clone();
        match (holder, &mut world.system) {
            (Holder::Device, _) => world.device.set(name, value)?,
            (Holder::Stack, _) => world.stack.set(name, value)?,
            (Holder::System, Some(system)) => system.set(name, value)?,
            (Holder::System, None) => {}
        }
        Ok(world)
    }

    /// `scenario` in this world, whose calibrations `cache` keeps under names of their own.
    pub fn scenario(mut self, scenario: &Scenario, cache: &Cache) -> Scenario {
        let name = digest(&format!("{:?} {:?}", self.values(), self.curves()));
        let named = |id: &str| format!("{id} {name}");
        for (id, file) in [
            Some((&mut self.device.id, &mut self.device.file)),
            Some((&mut self.stack.id, &mut self.stack.file)),
            self.system.as_mut().map(|system| (&mut system.id, &mut system.file)),
        ]
        .into_iter()
        .flatten()
        {
            *id = named(id);
            file.clone_from(id);
        }
        let (device, stack) = (self.device.id.clone(), self.stack.id.clone());
        let system = self.system.as_ref().map(|system| system.id.clone());
        keep(cache, &device, self.device);
        keep(cache, &stack, self.stack);
        if let (Some(id), Some(system)) = (&system, self.system) {
            keep(cache, id, system);
        }
        let (device_set, system_set) = (Settings::new(), Settings::new());
        let system = system.or(scenario.system.clone());
        Scenario { device, stack: Some(stack), system, device_set, system_set, ..scenario.clone() }
    }

    fn values(&self) -> Vec<f64> {
        self.entries().iter().map(|(_, entry)| entry.value).collect()
    }

    /// The operating points, which are no single constants.
    fn curves(&self) -> Vec<f64> {
        let curves = self.device.constants.dvfs.iter();
        let numbers = curves.flat_map(|curve| {
            let frequencies = curve.frequency.values.iter().map(|point| point.0);
            frequencies.chain(curve.power.values.iter().map(|power| power.0))
        });
        numbers.collect()
    }
}

/// The values of a constant moved by `share` of it, down and up: by at least one where it is counted. `None` if it is
/// zero, of which there is no share.
pub fn moved(entry: &ConstantEntry, share: f64) -> Option<[f64; 2]> {
    let value = entry.value;
    if value == 0.0 {
        return None;
    }
    let step = share * value.abs();
    let step = if matches!(entry.unit, "count" | "B") { step.round().max(1.0) } else { step };
    Some([value - step, value + step])
}

/// Lets a scenario name what a program has changed by its id.
fn keep<V: Send + Sync + 'static>(cache: &Cache, id: &str, value: V) {
    let Ok(_) = cache.get(id.to_owned(), || Ok::<V, Infallible>(value));
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
