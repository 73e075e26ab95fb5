//! What can be done with any calibration once it is read: list its constants, override one, check it as a whole.

use super::error::nearest;
use super::{CalibrationError, ConstantEntry, Field, Location};

/// Every constant of a calibration, in the order of its schema.
pub(crate) fn entries(table: &impl Field, file: &str) -> Vec<ConstantEntry> {
    let mut entries = Vec::new();
    table.visit("", &mut |name, constant| {
        entries.push(ConstantEntry {
            name: name.to_owned(),
            value: constant.value_in_unit(),
            unit: constant.unit().symbol,
            kind: constant.kind(),
            source: constant.source().to_owned(),
            file: file.to_owned(),
        });
    });
    entries
}

/// Overrides the constant called `name`, or ending in `.name` where only one does.
pub(crate) fn replace(table: &mut impl Field, file: &str, name: &str, value: f64) -> Result<(), CalibrationError> {
    let full = full_name(table, file, name)?;
    let mut outcome = Ok(());
    table.visit_mut("", &mut |candidate, constant| {
        if candidate == full {
            outcome = constant.replace(value);
        }
    });
    outcome.map_err(|expected| CalibrationError::OutOfRange {
        at: Location::of_override(file, &full),
        found: value,
        expected,
    })
}

/// The full name of the constant called `name`, or ending in `.name` where only one does.
fn full_name(table: &impl Field, file: &str, name: &str) -> Result<String, CalibrationError> {
    let names: Vec<String> = entries(table, file).into_iter().map(|entry| entry.name).collect();
    if names.iter().any(|full| full == name) {
        return Ok(name.to_owned());
    }
    let ending = format!(".{name}");
    let mut fits: Vec<String> = names.iter().filter(|full| full.ends_with(&ending)).cloned().collect();
    match fits.len() {
        0 => Err(CalibrationError::UnknownConstant {
            file: file.to_owned(),
            name: name.to_owned(),
            nearest: nearest(name, names.iter().map(String::as_str)),
        }),
        1 => Ok(fits.swap_remove(0)),
        _ => {
            Err(CalibrationError::AmbiguousConstant { file: file.to_owned(), name: name.to_owned(), candidates: fits })
        }
    }
}

/// Turns what is wrong with a whole calibration, if anything, into an error at the section it names.
pub(crate) fn consistent(
    contradiction: Option<(&'static str, String)>,
    locate: impl FnOnce(&str) -> Box<Location>,
) -> Result<(), CalibrationError> {
    match contradiction {
        None => Ok(()),
        Some((section, message)) => Err(CalibrationError::Inconsistent { at: locate(section), message }),
    }
}
