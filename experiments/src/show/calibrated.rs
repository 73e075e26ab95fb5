//! What devices, software stacks and operating systems have in common: constants, how each is known, and which rows of
//! the papers rest on them.

use std::collections::BTreeMap;

use haversack_devices::{Calibrated, ConstantEntry, Kind, Schema};
use serde_json::{Value, json};

use crate::calibrate::{left_out, observation};
use crate::papers::catalogue::{Entry, entries};
use crate::papers::summary::{COLUMNS, Tally, tallies};
use crate::papers::{ComparedCell, Reference, committed};
use crate::{CommandError, Result};

/// How far the numbers of a calibration may be believed.
pub(super) struct Belief {
    entries: Vec<ConstantEntry>,
    kinds: BTreeMap<Kind, usize>,
    rows: Vec<Tally>,
    /// What constants were fitted to with it, by `haversack calibrate`.
    observed: Vec<String>,
}

impl Belief {
    /// What is known of `calibrated`, which is one of those that `loads` names of an artefact and `fitted` of a fit.
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
        // A file beside the user is none of those that ship, whatever it is called.
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

    /// What the template `belief.txt` has beside the answer.
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

/// The results that came with this version, of the artefacts that `rest` says.
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

/// The processors for which `stack` has kernels and that `has` says there are.
pub(super) fn processors(runs: [bool; 3]) -> Vec<&'static str> {
    let named = ["CPU", "GPU", "DSP"].into_iter().zip(runs);
    named.filter(|(_, runs)| *runs).map(|(name, _)| name).collect()
}
