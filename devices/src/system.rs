//! Operating systems: how a kernel manages a phone's memory, what that costs, and whom its killer kills.
//!
//! A system is a property of the run, as a software stack is. What is here are numbers and the formulas that turn a
//! device's memory into reserves and sizes; pages move elsewhere.

mod files;
mod memory;
mod schema;
mod score;

pub use memory::{Killer, PageCosts, Resident, Watermarks};
pub use schema::*;
pub use score::{OomScore, ScoreConstant};

use crate::calibration::{self, CalibrationError, ConstantEntry, Location, consistent};

/// An operating system.
#[derive(Clone, Debug)]
pub struct System {
    /// The id, e.g. `android`; of a file, its stem.
    pub id: String,
    /// The file, as shown to people.
    pub file: String,
    /// FNV-1a of the calibration's text, 16 lower-case hex digits.
    pub digest: String,
    /// What the calibration holds.
    pub constants: SystemConstants,
}

impl System {
    /// Reads a calibration's text; `file` is how errors name it.
    ///
    /// # Errors
    /// Anything that is not exactly the schema, with its line and field.
    pub fn parse(id: &str, file: &str, text: &str) -> Result<Self, CalibrationError> {
        let constants = calibration::parse(file, text, |top| {
            let constants = <SystemConstants as calibration::Section>::from_place(top)?;
            consistent(contradiction(&constants), |field| top.locate(field))?;
            Ok(constants)
        })?;
        Ok(Self { id: id.to_owned(), file: file.to_owned(), digest: crate::registry::digest(text), constants })
    }

    /// Every constant, in the order of the schema.
    #[must_use]
    pub fn entries(&self) -> Vec<ConstantEntry> {
        calibration::entries(&self.constants, &self.file)
    }

    /// Overrides a constant by its dotted name (`zram.ratio`) or an ending of it that only one has; `value` is in the
    /// unit of the file.
    ///
    /// # Errors
    /// An unknown or ambiguous name; a value that is out of range or makes the system contradict itself, which is then
    /// left as it was.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), CalibrationError> {
        let mut constants = self.constants.clone();
        calibration::replace(&mut constants, &self.file, name, value)?;
        consistent(contradiction(&constants), |field| Location::of_override(&self.file, field))?;
        self.constants = constants;
        Ok(())
    }
}

/// The highest swappiness that a kernel takes.
const MOST_SWAPPINESS: f64 = 200.0;
/// The largest power of two that a kernel reads ahead from swap.
const MOST_PAGE_CLUSTER: f64 = 31.0;

/// What the schema cannot say: the section that is wrong, and why.
fn contradiction(constants: &SystemConstants) -> Option<(&'static str, String)> {
    let reclaim = &constants.reclaim;
    let (lowest, highest) = (reclaim.min_free_lowest.value, reclaim.min_free_highest.value);
    if lowest > highest {
        return Some(("reclaim", format!("min_free_lowest, {lowest}, is above min_free_highest, {highest}")));
    }
    if reclaim.swappiness.value.0 > MOST_SWAPPINESS {
        return Some(("reclaim", format!("swappiness is at most {MOST_SWAPPINESS}")));
    }
    if reclaim.page_cluster.value.0 > MOST_PAGE_CLUSTER {
        return Some(("reclaim", format!("page_cluster is at most {MOST_PAGE_CLUSTER}")));
    }
    if reclaim.lists == PageLists::Generations && reclaim.generations.as_ref().is_none_or(|most| most.value.0 < 2.0) {
        return Some(("reclaim", "lists of generations need `generations`, at least 2".to_owned()));
    }
    let killer = &constants.killer;
    for (name, span) in [
        ("psi_window", &killer.psi_window),
        ("poll_short", &killer.poll_short),
        ("poll_long", &killer.poll_long),
        ("thrashing_reset", &killer.thrashing_reset),
    ] {
        if span.value.0 == 0 {
            return Some(("killer", format!("{name} is nought: it would never end")));
        }
    }
    if constants.zram.as_ref().is_some_and(|zram| zram.size.is_none() && zram.share.is_none()) {
        return Some(("zram", "needs a `size` or a `share` of memory".to_owned()));
    }
    // A page that does not shrink is kept as it is.
    let zram = constants.zram.iter().map(|zram| ("zram", &zram.ratio));
    let mut ratios = zram.chain([("trainer", &constants.trainer.ratio)]);
    let (section, _) = ratios.find(|(_, ratio)| ratio.value.0 < 1.0)?;
    Some((section, "ratio is below one: compression never makes more of it".to_owned()))
}
