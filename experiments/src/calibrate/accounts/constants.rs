//! Every constant that was fitted, in whichever file it stands.

use haversack_devices::{ConstantEntry, Kind, list, list_stacks, list_systems, load, load_stack, load_system};
use haversack_traces::footprint::FootprintTable;
use haversack_traces::usage::UsageModel;
use serde::Serialize;

use crate::calibrate::declared::{self, Calibration, Files};
use crate::error::CommandError;

/// A constant whose value came from rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct FittedConstant {
    pub(super) file: String,
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) unit: String,
    /// The rows.
    pub(super) source: String,
    /// What was believed before any row; `None` of one that no calibration declares: it was fitted by hand.
    pub(super) prior: Option<f64>,
}

/// All of them, by file and as they stand there, each once.
pub(super) fn fitted() -> Result<Vec<FittedConstant>, CommandError> {
    let mut entries: Vec<ConstantEntry> = Vec::new();
    for listing in list()? {
        entries.extend(load(listing.id)?.entries());
    }
    for listing in list_stacks()? {
        entries.extend(load_stack(listing.id)?.entries());
    }
    for listing in list_systems()? {
        entries.extend(load_system(listing.id)?.entries());
    }
    entries.extend(UsageModel::built_in().map_err(CommandError::failed)?.entries());
    entries.extend(FootprintTable::built_in().map_err(CommandError::failed)?.entries());
    entries.retain(|entry| entry.kind == Kind::Fitted);
    let declared = declared::all()?;
    let mut found: Vec<FittedConstant> = Vec::new();
    for entry in entries {
        // A file that builds on another has its constants, too.
        if found.iter().any(|other| (&other.file, &other.name) == (&entry.file, &entry.name)) {
            continue;
        }
        let prior = prior(&entry, &declared)?;
        let ConstantEntry { name, value, unit, file, source, .. } = entry;
        found.push(FittedConstant { file, name, value, unit: unit.to_owned(), source, prior });
    }
    found.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(found)
}

/// The prior that a calibration declares of a constant.
fn prior(entry: &ConstantEntry, declared: &[Calibration]) -> Result<Option<f64>, CommandError> {
    for calibration in declared.iter().filter(|known| known.observations.sources().contains(&entry.source.as_str())) {
        for constant in calibration.constants.iter().filter(|constant| constant.name == entry.name) {
            let entries = Files::load(calibration)?.entries(constant.of);
            if entries.iter().any(|own| (&own.name, &own.file) == (&entry.name, &entry.file)) {
                return Ok(Some(constant.prior.value));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_stands_once_with_its_prior_or_without_one() {
        let fitted = fitted().unwrap();
        let of = |file: &str, name: &str| {
            let is = |constant: &&FittedConstant| constant.file.ends_with(file) && constant.name == name;
            fitted.iter().filter(is).collect::<Vec<_>>()
        };
        let [declared] = of("stacks/pytorch-cpu.toml", "cpu.efficiency.gemm")[..] else { panic!("{fitted:?}") };
        assert_eq!((declared.prior, declared.source.as_str()), (Some(0.8), "pytorch-timings"));
        let [by_hand] = of("stacks/pytorch-cuda.toml", "housekeeping.table_move")[..] else { panic!("{fitted:?}") };
        assert_eq!((by_hand.prior, by_hand.source.as_str()), (None, "daf-table3"));
    }
}
