//! What is to run of a reproduction, and what its folder holds already.

use std::path::Path;

use super::task::tasks;
use super::{Finished, MadeWith, ReproduceOptions, Selection, Sources, Stored, Task, folder};
use crate::{CommandError, Result};

/// An artefact of the folder.
pub(super) struct Part<'r> {
    /// Whether this run was asked for it.
    pub(super) is_asked: bool,
    pub(super) work: Work<'r>,
}

impl Part<'_> {
    /// Its paper, and its own name.
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

/// What is left to do of an artefact.
pub(super) enum Work<'r> {
    /// All of it.
    Run(Task<'r>),
    /// Nothing: it was finished before.
    Kept(Finished<'r>),
}

/// The artefacts of a folder, in the order of the reference, those without rows last.
pub(super) struct Holdings<'r> {
    pub(super) parts: Vec<Part<'r>>,
    /// Whether the folder keeps rows that this run was not asked for.
    pub(super) keeps_more: bool,
}

impl<'r> Holdings<'r> {
    /// What `asked` and the folder `root` come to together, of which the record names the artefacts `recorded`.
    ///
    /// # Errors
    /// Artefacts in the folder that were made with something else and are not asked for, unless they may be overwritten.
    pub(super) fn new(sources: Sources<'r>, asked: &Selection<'r>, root: &Path, recorded: &[String]) -> Result<Self> {
        let Sources { options, artefacts, reference, readings, .. } = sources;
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
                    let kept = is_done.then(|| stored.finished(&task, reference, readings)).flatten();
                    Some((true, kept.map_or(Work::Run(task), Work::Kept)))
                }
                (Some(task), None) => Some((true, Work::Run(task))),
                (None, Some(stored)) => {
                    let mut task = any;
                    task.selected.fill(false);
                    task.select(&stored.selected);
                    let kept = fits.then(|| stored.finished(&task, reference, readings)).flatten();
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
            "{root} holds {others} of another version or with other calibrations; expected another folder, all of them at once, \
             or --overwrite, which deletes those that are not asked for"
        )))
    }
}

/// The artefacts of the shard, if only one is asked for: by turns, as costly ones stand together.
fn in_turn<'r>(options: &ReproduceOptions, tasks: Vec<Task<'r>>) -> Vec<Task<'r>> {
    let is_turn = |place: usize| options.shard.is_none_or(|shard| shard.is_turn(place));
    tasks.into_iter().enumerate().filter(|(place, _)| is_turn(*place)).map(|(_, task)| task).collect()
}

/// The first of the names, and how many more there are.
fn few(names: &[String]) -> String {
    let first = names.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > 3 { format!("{first} and {} more artefacts", names.len() - 3) } else { first }
}
