//! The device and the system of a scenario, with the values that it puts in the place of their own; and the phone of a
//! trace.

use std::fmt::Debug;
use std::sync::Arc;

use haversack_devices::calibration::{Calibrated, Schema, Settings};
use haversack_devices::units::Bytes;
use haversack_devices::{Device, Form, System};

use super::error::{Fault, ScenarioError};
use super::user_trace::total_memory;
use super::{Key, Scenario, budget_trace};
use crate::cache::Cache;

/// The word for a device that the trace decides.
pub(super) const OF_TRACE: &str = "trace";

/// The id of the phone with the least memory of at least `total`, or with the most; of equals the first.
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
    found.ok_or_else(|| Fault::Refused("there is no phone among the devices".to_owned()))
}

impl Scenario {
    /// The device with the values of `device_set`.
    ///
    /// # Errors
    /// A device that there is not, or a value that it cannot have.
    pub(super) fn load_device(&self, cache: &Cache) -> Result<Arc<Device>, ScenarioError> {
        self.changed(cache, (Key::Device, &self.device), (Key::DeviceSet, &self.device_set))
    }

    /// The system with the values of `system_set`; `None` without one.
    ///
    /// # Errors
    /// A system that there is not, or a value that it cannot have.
    pub(super) fn load_system(&self, cache: &Cache) -> Result<Option<Arc<System>>, ScenarioError> {
        let load = |id| self.changed(cache, (Key::System, id), (Key::SystemSet, &self.system_set));
        self.system.as_ref().map(load).transpose()
    }

    /// The scenario on the phone with the least memory that the user's trace fits in, where the device is to be
    /// [`OF_TRACE`]; `None` where it is another.
    ///
    /// # Errors
    /// No trace, or one that says nothing of the memory of its phone.
    pub(super) fn on_phone_of_trace(&self, cache: &Cache) -> Result<Option<Self>, ScenarioError> {
        if self.device != OF_TRACE {
            return Ok(None);
        }
        let refused = |message: String| self.error(Key::Device, Fault::Refused(message));
        let named = self.trace.as_ref().filter(|named| budget_trace::is_table(named));
        let named =
            named.ok_or_else(|| refused("'trace' is the phone of a table of traces; name one (--trace)".to_owned()))?;
        let (path, user) = budget_trace::split(named);
        let total = total_memory(&path, user.as_deref()).map_err(|error| refused(error.to_string()))?;
        let total = total.ok_or_else(|| refused(format!("{} does not say MemTotal of its phone", named.display())))?;
        let device =
            cache.get(("phone of", total), || phone_with(total)).map_err(|error| self.error(Key::Device, error))?;
        Ok(Some(Self { device: device.as_ref().clone(), ..self.clone() }))
    }

    fn changed<T>(
        &self,
        cache: &Cache,
        (named, id): (Key, &String),
        (changed, settings): (Key, &Settings),
    ) -> Result<Arc<Calibrated<T>>, ScenarioError>
    where
        T: Schema + Debug + Send + Sync + 'static,
    {
        let refused = |key: Key| move |error| self.error(key, Fault::Calibration(Box::new(error)));
        let plain = cache.get(id.clone(), || Calibrated::<T>::load(id)).map_err(refused(named))?;
        if settings.is_empty() {
            return Ok(plain);
        }
        let key = format!("{id} with {settings:?}");
        cache.get(key, || Calibrated::<T>::load_with(id, settings)).map_err(refused(changed))
    }
}
