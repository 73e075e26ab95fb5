//! The device and the system of a scenario, with the values that it puts in the place of their own.

use std::fmt::Debug;
use std::sync::Arc;

use haversack_devices::calibration::{Calibrated, Schema, Settings};
use haversack_devices::{Device, System};

use super::error::{Fault, ScenarioError};
use super::{Key, Scenario};
use crate::cache::Cache;

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
