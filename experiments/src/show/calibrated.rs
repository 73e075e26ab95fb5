//! Shared by devices, software stacks and operating systems: constants, how each is known, and which rows of the
//! papers depend on them.

use std::collections::BTreeMap;

use haversack_devices::{Calibrated, ConstantEntry, Kind, Schema};
use serde_json::{Value, json};

use crate::calibrate::{left_out, observation};
use crate::papers::catalogue::{Entry, entries};
use crate::papers::summary::{COLUMNS, Tally, tallies};
use crate::papers::{ComparedCell, Reference, committed};
use crate::{CommandError, Result};

/// The evidence for the numbers of a calibration.
pub(super) struct Belief {
    entries: Vec<ConstantEntry>,
    kinds: BTreeMap<Kind, usize>,
    rows: Vec<Tally>,
    /// The observations that constants were fitted to with this calibration, by `haversack calibrate`.
    observed: Vec<String>,
}

impl Belief {
    /// The evidence for `calibrated`, which is among the names that `loads` gives of an artefact and `fitted` of a fit.
    pub(super) fn of<T: Schema>(
        calibrated: &Calibrated<T>,
        loads: fn(&Entry) -> &[&str],
        fitted: fn(&observation::Calibration) -> Option<&str>,
    ) -> Result<Self> {
        let entries = calibrated.entries();
        let mut kinds = BTreeMap::new();
        for entry in &entries {
            *kinds.entry(entry.kind).or_default() += 1;
        }
        // A user's own file is never one of the shipped ones, even if its name is the same.
        let is_shipped = calibrated.bases.is_empty() && calibrated.file.starts_with("devices/calibrations/");
        let (mut rows, mut observed) = (Vec::new(), Vec::new());
        if is_shipped {
            let id = calibrated.id.as_str();
            let left_out = left_out::errors().map_err(CommandError::failed)?;
            rows = tallies(&cells(|artefact| loads(artefact).contains(&id))?, &left_out);
            let declared = observation::all()?;
            observed =
                declared.into_iter().filter(|known| fitted(known) == Some(id)).map(|known| known.about).collect();
        }
        Ok(Self { entries, kinds, rows, observed })
    }

    /// Further values that the template `belief.txt` reads.
    pub(super) fn figures(&self) -> Value {
        let figures: Vec<_> = self.rows.iter().map(Tally::figures).collect();
        json!({ "columns": COLUMNS, "figures": figures })
    }

    pub(super) fn json(&self) -> Value {
        let kinds: BTreeMap<String, usize> =
            self.kinds.iter().map(|(kind, count)| (kind.to_string(), *count)).collect();
        json!({ "kinds": kinds, "fits": self.observed, "rows": self.rows, "constants": self.entries })
    }
}

/// The results that ship with this version, of the artefacts for which `rest` is true.
fn cells(rest: impl Fn(&Entry) -> bool) -> Result<Vec<ComparedCell>> {
    let reference = Reference::load().map_err(CommandError::failed)?;
    let cells = committed::cells(&reference).map_err(CommandError::failed)?;
    let rests = |cell: &ComparedCell| {
        let mut known = entries().iter();
        known.any(|artefact| {
            !artefact.of_many && artefact.paper == cell.paper && artefact.id == cell.artefact && rest(artefact)
        })
    };
    Ok(cells.into_iter().filter(rests).collect())
}

/// The names of the processors for which `runs` is true.
pub(super) fn processors(runs: [bool; 3]) -> Vec<&'static str> {
    let named = ["CPU", "GPU", "DSP"].into_iter().zip(runs);
    named.filter(|(_, runs)| *runs).map(|(name, _)| name).collect()
}
