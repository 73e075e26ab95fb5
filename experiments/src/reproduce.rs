//! `reproduce`: simulates the papers' artefacts and compares each number with the paper's own.
//!
//! [`run`] selects rows of the [reference](crate::papers::reference), runs the [`Artefact`]s that answer them, judges
//! the answers ([`crate::papers::cells`]) and writes figures, `cells.csv`, `index.html` and `run.json`. The caller
//! passes the artefacts in: no code here depends on a paper.

mod artefact;
mod content;
mod folder;
mod kept;
mod outcome;
mod page;
mod record;
mod selection;
mod stored;
mod task;
mod whole;

use std::ops::Range;

use serde_json::{Map, Value};

pub use artefact::{Artefact, ArtefactError, Context, Lacking, Run};
pub use kept::Kept;
pub use outcome::{Cells, Outcome};
pub use selection::{ReproduceOptions, Selection};
pub use whole::merge;

use content::{Content, Sources};
use folder::Folder;
use kept::KEPT;
use record::Calibrations;
use stored::{Holdings, MadeWith, Part, Stored, Work};
use task::{Finished, Task, TaskSetting, tasks};
use whole::Whole;

use crate::papers::left_out::Errors;
use crate::papers::{Readings, Reference};
use crate::work::{Job, Log, OutputFolder, Steps, go_on, pool};
use crate::{Cache, CommandError, Result, output};

/// The table of a reproduction's rows, in its folder.
pub const CELLS: &str = "cells.csv";

/// The result of a reproduction, in addition to its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reproduction {
    /// The report for a terminal.
    pub report: String,
    /// `paper/artefact: why`, one for each failure; empty if everything succeeded.
    pub failures: Vec<String>,
}

impl Reproduction {
    /// The failures as an error, if there were any; all other files were written.
    pub fn failure(&self) -> Option<CommandError> {
        let failures = self.failures.join("\n  ");
        let says = format!("the rest was written, but this went wrong:\n  {failures}");
        (!self.failures.is_empty()).then_some(CommandError::Failed(says))
    }
}

/// Reproduces the artefacts that the options select, shows the leave-one-out errors of fitted rows, and
/// prints the report.
///
/// # Errors
/// As [`reproduce`]; failed artefacts.
pub fn run(options: &ReproduceOptions, artefacts: &[Artefact], left_out: &Errors) -> Result<()> {
    print(&reproduce(options, artefacts, left_out)?)
}

/// Prints the report; failed artefacts are an error.
fn print(reproduction: &Reproduction) -> Result<()> {
    let printed = output::print(&reproduction.report);
    match (printed, reproduction.failure()) {
        // A closed stdout is not a failure, and must not hide one.
        (Ok(()) | Err(CommandError::OutputClosed), Some(failure)) => Err(failure),
        (printed, _) => printed,
    }
}

/// Reproduces the artefacts that the options select, and writes all files.
///
/// # Errors
/// An unknown selector, a folder that cannot be used or that contains artefacts made with other calibrations, before
/// anything is written; a file that cannot be written; Ctrl-C. A failed artefact is not an error: its rows have no
/// answer, and it is listed among the failures.
pub fn reproduce(options: &ReproduceOptions, artefacts: &[Artefact], left_out: &Errors) -> Result<Reproduction> {
    let reference = Reference::load().map_err(CommandError::failed)?;
    let readings = Readings::load(&reference).map_err(CommandError::failed)?;
    let sources = Sources { options, artefacts, left_out, reference: &reference, readings: &readings };
    let asked = Selection::new(&reference, artefacts, &options.selectors).map_err(CommandError::input)?;
    let chosen = tasks(&reference, &asked, artefacts);
    options.check(artefacts, chosen.iter().filter_map(|task| task.model))?;
    let papers: Vec<&str> = chosen.iter().map(|task| task.paper).collect();
    let out = &options.work.out;
    let opened = Folder::open(out, &papers).map_err(CommandError::input)?;
    let files = whole::names(chosen.iter().flat_map(|task| folder::names(task.paper, task.artefact)));
    let files = [files, vec![KEPT.to_owned()]].concat();
    let owned = OutputFolder::claim(out, &record::owner(options), options.work.overwrite, &files)?;
    let resume = owned.goes_on(&options.work)?;
    let Holdings { parts, keeps_more } = Holdings::new(sources, &asked, out, &owned.recorded("artefacts"))?;
    // Kept artefacts were selected in an earlier run; the record and the page list their selectors first.
    let mut selection = asked;
    if keeps_more {
        let mut selectors = owned.recorded(record::SELECTION);
        selectors
            .extend(selection.selectors.iter().filter(|asked| !selectors.contains(asked)).cloned().collect::<Vec<_>>());
        selection.selectors = selectors;
    }
    let log = kept::open(out, resume)?;
    let job = Reproducing {
        sources,
        selection: &selection,
        parts,
        opened: &opened,
        cache: Cache::new(),
        kept: Kept::of(&log),
    };
    pool(options.work.jobs)?.install(|| go_on(&job, owned, &log, options.to_go_on()))
}

/// The artefacts of a folder: the selected ones and those kept from earlier runs.
struct Reproducing<'r> {
    sources: Sources<'r>,
    selection: &'r Selection<'r>,
    parts: Vec<Part<'r>>,
    opened: &'r Folder,
    cache: Cache,
    kept: Kept<'r>,
}

impl<'r> Job for Reproducing<'r> {
    type Out = Finished<'r>;
    type Report = Reproduction;
    const NAME: &'static str = "reproduction";
    const THINGS: &'static str = "artefacts";
    const LOG: &'static str = KEPT;
    /// Files of the artefacts are claimed one by one, in addition to these.
    const FILES: &'static [&'static str] = &[];

    fn working(&self) -> Vec<String> {
        let written = self.parts.iter().flat_map(|part| part.names());
        whole::names(written).into_iter().chain([KEPT.to_owned()]).collect()
    }

    fn more(&self) -> Map<String, Value> {
        record::selection(&self.selection.selectors)
    }

    fn parts(&self) -> Range<u64> {
        0..self.parts.len() as u64
    }

    fn name(&self, part: u64) -> Option<String> {
        Some(self.parts[part as usize].id().join("/"))
    }

    /// Kept artefacts that are not selected do not count.
    fn steps(&self, part: u64) -> u64 {
        u64::from(self.parts[part as usize].is_asked)
    }

    fn before(&self, part: u64, _log: &Log) -> Result<u64> {
        let Part { is_asked, work } = &self.parts[part as usize];
        Ok(u64::from(*is_asked && matches!(work, Work::Kept(_))))
    }

    /// All artefacts are in the folder's table and on its page.
    fn is_done(&self, _part: u64, _before: u64) -> bool {
        false
    }

    /// Runs an artefact, whose files are written as soon as it is finished.
    fn run(&self, part: u64, steps: &Steps<'_>) -> Result<Finished<'r>> {
        let Sources { options, reference, readings, .. } = self.sources;
        let task = match &self.parts[part as usize].work {
            Work::Kept(finished) => return Ok(finished.clone()),
            Work::Run(task) => task,
        };
        let setting =
            TaskSetting { options, reference, readings, cache: &self.cache, kept: &self.kept, folder: self.opened };
        let finished = setting.perform(task)?;
        let stored = Stored::new(&finished, MadeWith::now(options, task.model, reference)?)?;
        self.opened.write(&stored::name(task.paper, task.artefact), &stored.to_text()?)?;
        steps.step();
        Ok(finished)
    }

    fn finish(&self, owned: OutputFolder, _log: &Log, finished: Vec<Finished<'r>>) -> Result<Reproduction> {
        let parts = self.parts.iter().enumerate().filter(|(_, part)| !part.is_asked);
        let kept: Vec<usize> = parts.map(|(place, _)| place).collect();
        Whole { sources: self.sources, selection: self.selection, finished: &finished }.write(
            self.opened,
            &owned,
            &kept,
        )
    }
}
