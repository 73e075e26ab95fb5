//! A finished artefact on the disc: `<paper>/<artefact>.json` beside its figure and its table.
//!
//! From it `cells.csv` and the page are made anew: when more artefacts are reproduced into the folder, when a run goes on
//! where one was stopped, and when shards are merged.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use haversack_devices::Digest;
use haversack_reports::page::Notes;
use serde::{Deserialize, Serialize};

use super::{Artefact, Calibrations, Finished, ReproduceOptions, Task};
use crate::papers::{Readings, Reference, cells, committed};
use crate::{CommandError, Result};

/// All that an artefact's answers depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MadeWith {
    version: String,
    seed: u64,
    full: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    learn: bool,
    /// The digest of the trace whose users are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    calibrations: BTreeMap<String, String>,
    reference: BTreeMap<String, String>,
    /// Measured values that were read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    measured: BTreeMap<String, String>,
}

impl MadeWith {
    /// What `artefact` is made with by this program; `None` is one that nobody has modelled.
    pub(super) fn now(options: &ReproduceOptions, artefact: Option<&Artefact>, reference: &Reference) -> Result<Self> {
        let calibrations = artefact.map_or_else(|| Ok(Calibrations::default()), |one| Calibrations::of(&[*one]))?;
        let trace = options.trace.as_deref().filter(|_| artefact.is_some_and(|artefact| artefact.takes_trace));
        let digests = reference.digests().iter().map(|(file, digest)| ((*file).to_owned(), digest.clone()));
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed: options.seed,
            full: options.full,
            learn: options.learns_one(),
            trace: trace.map(digest_of).transpose()?,
            calibrations: calibrations.digests,
            reference: digests.collect(),
            measured: calibrations.measured,
        })
    }
}

/// FNV-1a of a file, 64 bit, as 16 lower-case hex digits.
fn digest_of(path: &Path) -> Result<String> {
    let unread = |error| CommandError::Input(format!("{} cannot be read: {error}", path.display()));
    let mut file = File::open(path).map_err(unread)?;
    let (mut hash, mut block) = (Digest::default(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut block).map_err(unread)? {
            0 => return Ok(hash.to_string()),
            length => hash.update(block[..length].iter().copied()),
        }
    }
}

/// A finished artefact.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Stored {
    pub(super) made_with: MadeWith,
    figure_title: Option<String>,
    /// All rows of the artefact, as `cells.csv` has them.
    cells: String,
    /// The ids of those that were selected.
    pub(super) selected: Vec<String>,
    notes: Notes,
    summary: Vec<String>,
    pub(super) faults: Vec<String>,
}

/// The name of the file in a folder of results.
pub(super) fn name(paper: &str, artefact: &str) -> String {
    format!("{paper}/{artefact}.json")
}

impl Stored {
    pub(super) fn new(finished: &Finished<'_>, made_with: MadeWith) -> Result<Self> {
        Ok(Self {
            made_with,
            figure_title: finished.figure_title.clone(),
            cells: cells::table(&finished.cells).map_err(CommandError::failed)?.to_csv(),
            selected: finished.selected().map(|cell| cell.id.clone()).collect(),
            notes: finished.notes.clone(),
            summary: finished.summary.clone(),
            faults: finished.faults.clone(),
        })
    }

    /// The artefact in the folder `root`; `None` if it is not there, or not whole.
    pub(super) fn read(root: &Path, task: &Task<'_>) -> Option<Self> {
        let text = std::fs::read_to_string(root.join(name(task.paper, task.artefact))).ok()?;
        serde_json::from_str(&text).ok()
    }

    pub(super) fn to_text(&self) -> Result<String> {
        Ok(format!("{}\n", serde_json::to_string_pretty(self).map_err(CommandError::failed)?))
    }

    /// The artefact as if it had just run, with the rows of `task` selected; `None` if it has other rows.
    pub(super) fn finished<'r>(
        &self,
        task: &Task<'r>,
        reference: &Reference,
        readings: &Readings,
    ) -> Option<Finished<'r>> {
        let mut cells = committed::read(&name(task.paper, task.artefact), &self.cells, reference).ok()?;
        if !cells.iter().map(|cell| &cell.id).eq(task.rows.iter().map(|row| &row.id)) {
            return None;
        }
        for cell in &mut cells {
            if let Some(unit) = readings.unit(task.paper, task.artefact, &cell.metric) {
                cell.unit = unit;
            }
        }
        Some(Finished {
            paper: task.paper,
            artefact: task.artefact,
            about: task.model.map_or("", |model| model.about),
            devices: task.model.map_or(&[], |model| model.devices),
            figure_title: self.figure_title.clone(),
            cells,
            selected: task.selected.clone(),
            notes: self.notes.clone(),
            summary: self.summary.clone(),
            faults: self.faults.clone(),
        })
    }
}
