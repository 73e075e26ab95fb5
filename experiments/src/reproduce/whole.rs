//! All artefacts of a folder, and the files about them together: `cells.csv`, `index.html`, `run.json`; also merges the
//! folders of shards.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{
    Artefact, CELLS, Calibrations, Content, Finished, Folder, KEPT, MadeWith, ReproduceOptions, Reproduction,
    Selection, Sources, Stored, Task, folder, page, print, record, tasks,
};
use crate::papers::left_out::Errors;
use crate::papers::{Readings, Reference, cells};
use crate::work::{MergeOptions, OutputFolder, RECORD, WorkOptions};
use crate::{CommandError, Result};

const PAGE: &str = "index.html";

/// The files of a folder with these artefacts' files, by name.
pub(super) fn names(of_artefacts: impl Iterator<Item = String>) -> Vec<String> {
    let names: BTreeSet<String> = [CELLS, PAGE].map(str::to_owned).into_iter().chain(of_artefacts).collect();
    names.into_iter().collect()
}

/// All artefacts of a folder.
pub(super) struct Whole<'a> {
    pub(super) sources: Sources<'a>,
    /// The selection of this run and of earlier ones.
    pub(super) selection: &'a Selection<'a>,
    pub(super) finished: &'a [Finished<'a>],
}

impl Whole<'_> {
    /// Writes the files, and deletes those listed in the record that no artefact has any more; the report covers all
    /// artefacts except those that are only `kept` and were not selected.
    pub(super) fn write(&self, folder: &Folder, owned: &OutputFolder, kept: &[usize]) -> Result<Reproduction> {
        let calibrations = &self.calibrations()?;
        let content = Content::new(self.sources, calibrations, self.selection, self.finished);
        folder.write(CELLS, &cells::table(&content.cells).map_err(CommandError::failed)?.to_csv())?;
        folder.write(PAGE, &page::page(&content, folder)?.render().map_err(CommandError::failed)?)?;
        let written = names(self.finished.iter().flat_map(|f| folder::names(f.paper, f.artefact)));
        // After a failure, findings that took long to compute stay until the failed artefacts are run again.
        let has_failed = self.finished.iter().any(|finished| !finished.faults.is_empty());
        let written = written.into_iter().chain((has_failed && self.sources.options.full).then(|| KEPT.to_owned()));
        let outputs: Vec<String> = written.filter(|name| owned.path(name).is_file()).collect();
        owned.record(record::record(&content).map_err(CommandError::failed)?, &outputs)?;
        if kept.is_empty() {
            return Ok(reproduction(&content, self.finished));
        }
        let asked = self.finished.iter().enumerate().filter(|(place, _)| !kept.contains(place));
        let asked: Vec<Finished<'_>> = asked.map(|(_, finished)| finished.clone()).collect();
        let mut reproduction = reproduction(&Content::new(self.sources, calibrations, self.selection, &asked), &asked);
        let (all, out) = (self.finished.len(), self.sources.options.work.out.display());
        reproduction.report += &format!("\n{out} holds {all} artefacts; its {CELLS} and {PAGE} are of all of them\n");
        Ok(reproduction)
    }

    fn calibrations(&self) -> Result<Calibrations> {
        let model = |finished: &Finished<'_>| {
            let mut known = self.sources.artefacts.iter();
            known.find(|model| model.paper == finished.paper && model.id == finished.artefact).copied()
        };
        Calibrations::of(&self.finished.iter().filter_map(model).collect::<Vec<Artefact>>())
    }
}

fn reproduction(content: &Content<'_>, finished: &[Finished<'_>]) -> Reproduction {
    let faults = |f: &Finished<'_>| {
        let place = format!("{}/{}", f.paper, f.artefact);
        f.faults.iter().map(move |why| format!("{place}: {why}")).collect::<Vec<_>>()
    };
    Reproduction {
        report: record::text(&content.tallies, &content.cells, finished, &content.remarks, content.sources.reference),
        failures: finished.iter().flat_map(faults).collect(),
    }
}

/// Merges the folders of all shards of one reproduction, and prints the report; the result is identical
/// to an unsharded run.
///
/// # Errors
/// A folder that does not contain a reproduction, shards of different ones, missing or duplicate artefacts; all before
/// anything is written. A folder that cannot be written.
pub fn merge(
    MergeOptions { shards: folders, out, overwrite }: &MergeOptions,
    artefacts: &[Artefact],
    left_out: &Errors,
) -> Result<()> {
    let work = WorkOptions { out: out.clone(), overwrite: *overwrite, ..WorkOptions::default() };
    let options = ReproduceOptions { work, ..common(folders)? };
    let reference = Reference::load().map_err(CommandError::failed)?;
    let readings = Readings::load(&reference).map_err(CommandError::failed)?;
    let sources = Sources { options: &options, artefacts, left_out, reference: &reference, readings: &readings };
    let selection = Selection::new(&reference, artefacts, &options.selectors).map_err(CommandError::input)?;
    let mut found = Vec::new();
    for task in tasks(&reference, &selection, artefacts) {
        found.push(find(sources, &task, folders)?);
    }
    let papers: Vec<&str> = found.iter().map(|(_, finished)| finished.paper).collect();
    let opened = Folder::open(out, &papers).map_err(CommandError::input)?;
    let written = names(found.iter().flat_map(|(_, finished)| folder::names(finished.paper, finished.artefact)));
    let mut owned = OutputFolder::claim(out, &record::owner(&options), *overwrite, &written)?;
    owned.begin(&written, record::selection(&selection.selectors))?;
    for (from, finished) in &found {
        opened.copy_artefact(from, finished.paper, finished.artefact)?;
    }
    let finished: Vec<Finished<'_>> = found.into_iter().map(|(_, finished)| finished).collect();
    print(&Whole { sources, selection: &selection, finished: &finished }.write(&opened, &owned, &[])?)
}

/// The options that all folders were made with.
fn common(folders: &[PathBuf]) -> Result<ReproduceOptions> {
    let mut common: Option<(ReproduceOptions, &Path)> = None;
    for folder in folders {
        let options = asked(folder)?;
        match &common {
            Some((first, other))
                if (&first.selectors, first.seed, first.full, first.learn, &first.trace)
                    != (&options.selectors, options.seed, options.full, options.learn, &options.trace) =>
            {
                let (other, folder) = (other.display(), folder.display());
                return Err(CommandError::Input(format!("{other} and {folder} are of different reproductions")));
            }
            Some(_) => {}
            None => common = Some((options, folder)),
        }
    }
    let nothing = || CommandError::Input("there is nothing to merge; expected the folders of all shards".to_owned());
    common.map(|(options, _)| options).ok_or_else(nothing)
}

/// The options that a folder was made with, from its record.
fn asked(folder: &Path) -> Result<ReproduceOptions> {
    let path = folder.join(RECORD);
    let wrong = |why: &str| CommandError::Input(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(&format!("cannot be read: {error}")))?;
    let record: Value = serde_json::from_str(&text).map_err(|error| wrong(&error.to_string()))?;
    if record.get("command").and_then(Value::as_str) != Some(record::COMMAND) {
        return Err(wrong("not the record of a reproduction"));
    }
    let selectors = record.get(record::SELECTION).and_then(Value::as_array).into_iter().flatten();
    Ok(ReproduceOptions {
        selectors: selectors.filter_map(Value::as_str).map(str::to_owned).collect(),
        seed: record.get("seed").and_then(Value::as_u64).unwrap_or_default(),
        full: record.get("full").and_then(Value::as_bool).unwrap_or_default(),
        learn: record.get("learn").and_then(Value::as_bool).unwrap_or_default(),
        trace: record.get("trace").and_then(Value::as_str).map(PathBuf::from),
        ..ReproduceOptions::default()
    })
}

/// The artefact, and the only folder that contains it.
fn find<'r, 'f>(sources: Sources<'r>, task: &Task<'r>, folders: &'f [PathBuf]) -> Result<(&'f Path, Finished<'r>)> {
    let Sources { options, reference, .. } = sources;
    let place = format!("{}/{}", task.paper, task.artefact);
    let mut holders = folders.iter().filter_map(|folder| Some((folder, Stored::read(folder, task)?)));
    let Some((folder, stored)) = holders.next() else {
        let message = format!("{place} is in none of the folders; expected every shard of the reproduction");
        return Err(CommandError::Input(message));
    };
    if holders.next().is_some() {
        return Err(CommandError::Input(format!("{place} of {} is in another folder too", folder.display())));
    }
    let fits = stored.made_with == MadeWith::now(options, task.model, reference)?;
    let finished = fits.then(|| stored.finished(task, reference)).flatten();
    let other = || {
        let folder = folder.display();
        CommandError::Input(format!("{place} of {folder} was made by another build or with other calibrations"))
    };
    Ok((folder, finished.ok_or_else(other)?))
}
