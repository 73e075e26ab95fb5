//! The built-in calibrations, listed by the build script from `calibrations/`: adding a file adds a device.

use std::path::Path;

use crate::calibration::{CalibrationError, nearest};
use crate::device::Device;
use crate::stack::Stack;
use crate::system::System;

/// A calibration embedded in the program.
struct Embedded {
    id: &'static str,
    file: &'static str,
    text: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/calibrations.rs"));

/// One line about a built-in calibration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The id.
    pub id: &'static str,
    /// What it is.
    pub line: String,
}

/// FNV-1a, 64 bit, of `text`, as 16 lower-case hex digits.
#[must_use]
pub fn digest(text: &str) -> String {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}

/// The device called `id`, or the one that the TOML file at the path `id` describes.
///
/// # Errors
/// An unknown id, with the nearest valid one; a file that cannot be read or is not a calibration.
pub fn load(id: &str) -> Result<Device, CalibrationError> {
    let (id, file, text) = resolve("device", DEVICES, id)?;
    Device::parse(&id, &file, &text)
}

/// The software stack called `id`, or the one that the TOML file at the path `id` describes.
///
/// # Errors
/// As [`load`].
pub fn load_stack(id: &str) -> Result<Stack, CalibrationError> {
    let (id, file, text) = resolve("software stack", STACKS, id)?;
    Stack::parse(&id, &file, &text)
}

/// The operating system called `id`, or the one that the TOML file at the path `id` describes.
///
/// # Errors
/// As [`load`].
pub fn load_system(id: &str) -> Result<System, CalibrationError> {
    let (id, file, text) = resolve("operating system", SYSTEMS, id)?;
    System::parse(&id, &file, &text)
}

/// Every built-in device, by id.
///
/// # Errors
/// A built-in calibration that does not load.
pub fn list() -> Result<Vec<Listing>, CalibrationError> {
    let line = |embedded: &Embedded| {
        let device = Device::parse(embedded.id, embedded.file, embedded.text)?;
        let constants = device.constants;
        Ok(Listing { id: embedded.id, line: format!("{} ({})", constants.name, constants.soc) })
    };
    DEVICES.iter().map(line).collect()
}

/// Every built-in software stack, by id.
///
/// # Errors
/// A built-in calibration that does not load.
pub fn list_stacks() -> Result<Vec<Listing>, CalibrationError> {
    let line = |embedded: &Embedded| {
        let stack = Stack::parse(embedded.id, embedded.file, embedded.text)?;
        Ok(Listing { id: embedded.id, line: stack.constants.name })
    };
    STACKS.iter().map(line).collect()
}

/// Every built-in operating system, by id.
///
/// # Errors
/// A built-in calibration that does not load.
pub fn list_systems() -> Result<Vec<Listing>, CalibrationError> {
    let line = |embedded: &Embedded| {
        let system = System::parse(embedded.id, embedded.file, embedded.text)?;
        Ok(Listing { id: embedded.id, line: system.constants.name })
    };
    SYSTEMS.iter().map(line).collect()
}

fn resolve(what: &'static str, embedded: &[Embedded], id: &str) -> Result<(String, String, String), CalibrationError> {
    if let Some(found) = embedded.iter().find(|embedded| embedded.id == id) {
        return Ok((found.id.to_owned(), found.file.to_owned(), found.text.to_owned()));
    }
    let path = Path::new(id);
    let is_path = path.extension().is_some_and(|extension| extension == "toml");
    if !is_path && path.components().count() < 2 {
        return Err(CalibrationError::UnknownId {
            what,
            id: id.to_owned(),
            nearest: nearest(id, embedded.iter().map(|embedded| embedded.id)),
            valid: embedded.iter().map(|embedded| embedded.id.to_owned()).collect(),
        });
    }
    let text =
        std::fs::read_to_string(path).map_err(|source| CalibrationError::Read { path: id.to_owned(), source })?;
    let stem = path.file_stem().map_or(id.into(), |stem| stem.to_string_lossy());
    Ok((stem.into_owned(), id.to_owned(), text))
}
