//! The shards of a reproduction, put together to the bytes of one run.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::folder::{self};
use super::task::tasks;
use super::whole::{self};
use super::{
    Artefact, Finished, Folder, MadeWith, ReproduceOptions, Selection, Sources, Stored, Task, Whole, print, record,
};
use crate::papers::left_out::Errors;
use crate::papers::{Readings, Reference};
use crate::work::{MergeOptions, OutputFolder, RECORD, WorkOptions};
use crate::{CommandError, Result};

/// Merges the folders of all shards of one reproduction, to the same bytes as one run, and prints the report.
///
/// # Errors
/// A folder that holds no reproduction, shards of different ones, artefacts that are missing or there twice; all before
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
    let mut owned = OutputFolder::claim(out, &record::owner(&options), *overwrite)?;
    let written = found.iter().flat_map(|(_, finished)| folder::names(finished.paper, finished.artefact));
    owned.begin(&whole::names(written), record::selection(&selection.selectors))?;
    for (from, finished) in &found {
        opened.copy_artefact(from, finished.paper, finished.artefact)?;
    }
    let finished: Vec<Finished<'_>> = found.into_iter().map(|(_, finished)| finished).collect();
    print(&Whole { sources, selection: &selection, finished: &finished }.write(&opened, &owned, &[])?)
}

/// What all folders were asked for.
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

/// What a folder's record says that was asked for.
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

/// The artefact, and the one folder that holds it.
fn find<'r, 'f>(sources: Sources<'r>, task: &Task<'r>, folders: &'f [PathBuf]) -> Result<(&'f Path, Finished<'r>)> {
    let Sources { options, reference, readings, .. } = sources;
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
    let finished = fits.then(|| stored.finished(task, reference, readings)).flatten();
    let other = || {
        let folder = folder.display();
        CommandError::Input(format!("{place} of {folder} was made by another version or with other calibrations"))
    };
    Ok((folder, finished.ok_or_else(other)?))
}
