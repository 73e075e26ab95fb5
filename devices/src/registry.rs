//! The built-in calibrations by id: adding a file to `calibrations/` adds a device, a stack or a system.

pub use crate::calibration::{Listing, digest};

use crate::{CalibrationError, Device, Stack, System};

/// The device called `id`, or the one in the TOML file at the path `id`.
///
/// # Errors
/// An unknown id, with the nearest valid one; a file that cannot be read or is not a calibration.
pub fn load(id: &str) -> Result<Device, CalibrationError> {
    Device::load(id)
}

/// The software stack called `id`, or the one in the TOML file at the path `id`.
///
/// # Errors
/// As [`load`].
pub fn load_stack(id: &str) -> Result<Stack, CalibrationError> {
    Stack::load(id)
}

/// The operating system called `id`, or the one in the TOML file at the path `id`.
///
/// # Errors
/// As [`load`].
pub fn load_system(id: &str) -> Result<System, CalibrationError> {
    System::load(id)
}

/// Every built-in device, by id.
///
/// # Errors
/// A built-in calibration that does not load.
pub fn list() -> Result<Vec<Listing>, CalibrationError> {
    Device::list()
}

/// Every built-in software stack, by id.
///
/// # Errors
/// A built-in calibration that does not load.
pub fn list_stacks() -> Result<Vec<Listing>, CalibrationError> {
    Stack::list()
}

/// The ids of the built-in software stacks that run on `device`.
pub fn stacks_that_fit(device: &Device) -> Vec<&'static str> {
    let all = Stack::list().unwrap_or_default().into_iter().map(|listing| listing.id);
    all.filter(|id| Stack::load(id).is_ok_and(|stack| stack.runs_on(device))).collect()
}

/// Every built-in operating system, by id.
///
/// # Errors
/// A built-in calibration that does not load.
pub fn list_systems() -> Result<Vec<Listing>, CalibrationError> {
    System::list()
}
