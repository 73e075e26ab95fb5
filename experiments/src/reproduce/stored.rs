//! A finished artefact on disk: `<paper>/<artefact>.json`, next to its figure and its table.
//!
//! `cells.csv` and the page are regenerated from these files: when more artefacts are reproduced into the folder, when
//! a run is resumed, and when shards are merged.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use haversack_devices::Digest;
use haversack_reports::page::Notes;
use serde::{Deserialize, Serialize};

use super::task::tasks;
use super::{Artefact, Calibrations, Finished, ReproduceOptions, Selection, Sources, Task, folder};
use crate::papers::{Reference, cells, committed};
use crate::work::THIS_BUILD;
use crate::{CommandError, Result};

/// Everything that an artefact's answers depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MadeWith {
    version: String,
    /// Other builds may give other answers.
    #[serde(default)]
    build: String,
    seed: u64,
    full: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    learn: bool,
    /// The digest of the trace whose users are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    calibrations: BTreeMap<String, String>,
    reference: BTreeMap<String, String>,
    /// The measurements that were read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    measured: BTreeMap<String, String>,
}

impl MadeWith {
    /// The dependencies of `artefact` in this program; `None` is an artefact that is not modelled.
    pub(super) fn now(options: &ReproduceOptions, artefact: Option<&Artefact>, reference: &Reference) -> Result<Self> {
        let calibrations = artefact.map_or_else(|| Ok(Calibrations::default()), |one| Calibrations::of(&[*one]))?;
        let trace = options.trace.as_deref().filter(|_| artefact.is_some_and(|artefact| artefact.takes_trace));
        let digests = reference.digests().iter().map(|(file, digest)| ((*file).to_owned(), digest.clone()));
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: THIS_BUILD.to_owned(),
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
    /// The ids of the selected rows.
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

    /// Reads the artefact from the folder `root`; `None` if it is missing or incomplete.
    pub(super) fn read(root: &Path, task: &Task<'_>) -> Option<Self> {
        let text = std::fs::read_to_string(root.join(name(task.paper, task.artefact))).ok()?;
        serde_json::from_str(&text).ok()
    }

    pub(super) fn to_text(&self) -> Result<String> {
        Ok(format!("{}\n", serde_json::to_string_pretty(self).map_err(CommandError::failed)?))
    }

    /// The artefact as if it had just run, with the rows of `task` selected; `None` if its rows differ.
    pub(super) fn finished<'r>(&self, task: &Task<'r>, reference: &Reference) -> Option<Finished<'r>> {
        let cells = committed::read(&name(task.paper, task.artefact), &self.cells, reference).ok()?;
        if !cells.iter().map(|cell| &cell.id).eq(task.rows.iter().map(|row| &row.id)) {
            return None;
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

/// An artefact of the folder.
pub(super) struct Part<'r> {
    /// Whether this run selected it.
    pub(super) is_asked: bool,
    pub(super) work: Work<'r>,
}

impl Part<'_> {
    /// Its paper, and its id.
    pub(super) fn id(&self) -> [&str; 2] {
        match &self.work {
            Work::Run(task) => [task.paper, task.artefact],
            Work::Kept(finished) => [finished.paper, finished.artefact],
        }
    }

    /// The names of its files.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        let [paper, artefact] = self.id();
        folder::names(paper, artefact).into_iter()
    }
}

/// The remaining work on an artefact.
pub(super) enum Work<'r> {
    /// It has to be run.
    Run(Task<'r>),
    /// Nothing: it is finished.
    Kept(Finished<'r>),
}

/// The artefacts of a folder, in the order of the reference, those without rows last.
pub(super) struct Holdings<'r> {
    pub(super) parts: Vec<Part<'r>>,
    /// Whether the folder keeps rows that this run did not select.
    pub(super) keeps_more: bool,
}

impl<'r> Holdings<'r> {
    /// Combines the selection `asked` with the folder `root`, whose record lists the artefacts `recorded`.
    ///
    /// # Errors
    /// Artefacts in the folder that were made with other dependencies and are not selected, unless they
    /// may be overwritten.
    pub(super) fn new(sources: Sources<'r>, asked: &Selection<'r>, root: &Path, recorded: &[String]) -> Result<Self> {
        let Sources { options, artefacts, reference, .. } = sources;
        let mut asked = in_turn(options, tasks(reference, asked, artefacts));
        let mut holdings = Self { parts: Vec::new(), keeps_more: false };
        let mut others = Vec::new();
        for any in tasks(reference, &Selection::new(reference, artefacts, &[]).map_err(CommandError::input)?, artefacts)
        {
            let place = asked.iter().position(|task| (task.paper, task.artefact) == (any.paper, any.artefact));
            let task = place.map(|place| asked.remove(place));
            let stored = Stored::read(root, &any);
            let fits = match &stored {
                Some(stored) => stored.made_with == MadeWith::now(options, any.model, reference)?,
                None => false,
            };
            let work = match (task, stored) {
                (Some(mut task), Some(stored)) => {
                    holdings.keeps_more |= task.select(&stored.selected);
                    let is_done = options.work.resume && fits && stored.faults.is_empty();
                    let kept = is_done.then(|| stored.finished(&task, reference)).flatten();
                    Some((true, kept.map_or(Work::Run(task), Work::Kept)))
                }
                (Some(task), None) => Some((true, Work::Run(task))),
                (None, Some(stored)) => {
                    let mut task = any;
                    task.selected.fill(false);
                    task.select(&stored.selected);
                    let kept = fits.then(|| stored.finished(&task, reference)).flatten();
                    if kept.is_none() {
                        others.push(format!("{}/{}", task.paper, task.artefact));
                    }
                    holdings.keeps_more |= kept.is_some();
                    kept.map(|kept| (false, Work::Kept(kept)))
                }
                (None, None) => {
                    let place = format!("{}/{}", any.paper, any.artefact);
                    others.extend(recorded.contains(&place).then_some(place));
                    None
                }
            };
            holdings.parts.extend(work.map(|(is_asked, work)| Part { is_asked, work }));
        }
        if others.is_empty() || options.work.overwrite {
            return Ok(holdings);
        }
        let (root, others) = (root.display(), few(&others));
        Err(CommandError::Input(format!(
            "{root} has {others} of another build or with other calibrations; expected another folder, all of them at \
             once, or --overwrite, which deletes those that are not selected"
        )))
    }
}

/// The artefacts of the shard, if one is given. They are dealt out in turn, because costly ones are neighbours.
fn in_turn<'r>(options: &ReproduceOptions, tasks: Vec<Task<'r>>) -> Vec<Task<'r>> {
    let is_turn = |place: usize| options.shard.is_none_or(|shard| shard.is_turn(place));
    tasks.into_iter().enumerate().filter(|(place, _)| is_turn(*place)).map(|(_, task)| task).collect()
}

/// The first names, and the number of the others.
fn few(names: &[String]) -> String {
    let first = names.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > 3 { format!("{first} and {} more artefacts", names.len() - 3) } else { first }
}
