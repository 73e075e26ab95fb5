//! What devices, software stacks and operating systems have in common: constants, how each is known, and which rows of
//! the papers rest on them.

use std::collections::BTreeMap;

use haversack_devices::{Calibrated, ConstantEntry, Kind, Schema};
use haversack_reports::table::shortest;
use serde_json::{Value, json};

use super::{fact, paragraph, table};
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

    pub(super) fn text(&self) -> String {
        let counted = |kind: Kind| format!("{} {}", self.kinds.get(&kind).unwrap_or(&0), word(kind));
        let kinds = [Kind::Measured, Kind::Fitted, Kind::Datasheet, Kind::Estimated].map(counted);
        let mut text = format!("\n{}", fact("constants", &format!("{}: {}", self.entries.len(), kinds.join(", "))));
        text += &self.believed();
        for kind in [Kind::Fitted, Kind::Estimated] {
            let of_kind = self.entries.iter().filter(|entry| entry.kind == kind);
            let row = |entry: &ConstantEntry| {
                vec![entry.name.clone(), plain(entry.value), entry.unit.to_owned(), entry.source.clone()]
            };
            let mut rows: Vec<Vec<String>> = of_kind.map(row).collect();
            rows.sort();
            if !rows.is_empty() {
                text += &format!(
                    "\n{}\n{}",
                    word(kind),
                    table(&["constant", "value", "unit", "source"], |at| at == 1, rows)
                );
            }
        }
        text
    }

    /// Which rows of the papers rest on the calibration, and how they came out.
    fn believed(&self) -> String {
        let mut text = String::new();
        if !self.observed.is_empty() {
            text += &fact("fits that rest on it", &self.observed.join("; "));
        }
        if self.rows.is_empty() {
            return text + &fact("rows of the papers", "none: no row of a paper has ever checked it");
        }
        text += "\nrows of the papers that rest on it\n";
        text + &table(&COLUMNS, |at| at > 1, self.rows.iter().map(|tally| tally.figures().to_vec()).collect())
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

/// A number as somebody wrote it into the file, before it was converted there and back.
fn plain(value: f64) -> String {
    shortest(format!("{value:.9e}").parse().unwrap_or(value))
}

/// How a constant is known, as people say it.
const fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Datasheet => "from data sheets",
        Kind::Measured => "measured",
        Kind::Fitted => "fitted",
        Kind::Estimated => "estimated",
    }
}

/// Where a calibration stands, and what it overrides.
pub(super) fn place<T>(calibrated: &Calibrated<T>) -> String {
    let base = if calibrated.bases.is_empty() {
        String::new()
    } else {
        format!(", over {}", calibrated.bases.join(", over "))
    };
    fact("file", &format!("{}{base}", calibrated.file))
}

/// A calibration's name and its remark.
pub(super) fn heading(id: &str, name: &str, remark: Option<&str>) -> String {
    let remark = remark.map_or_else(String::new, |remark| paragraph(remark, 0));
    format!("{id}: {name}\n{remark}\n")
}

/// The processors for which `stack` has kernels and that `has` says there are.
pub(super) fn processors(runs: [bool; 3]) -> Vec<&'static str> {
    let named = ["CPU", "GPU", "DSP"].into_iter().zip(runs);
    named.filter(|(_, runs)| *runs).map(|(name, _)| name).collect()
}
