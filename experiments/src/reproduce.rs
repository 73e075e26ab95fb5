//! `reproduce`: the papers' artefacts, simulated, each number beside the paper's own.
//!
//! [`run`] selects rows of the [reference](crate::papers::reference), runs the [`Artefact`]s that answer them, judges the
//! answers ([`crate::papers::cells`]) and writes figures, `cells.csv`, `index.html` and `run.json`. The artefacts are handed in by the caller: nothing here
//! knows a paper.

mod artefact;
mod assemble;
mod content;
mod data;
mod error;
mod folder;
mod glance;
mod holdings;
mod kept;
mod merge;
mod options;
mod outcome;
mod overview;
mod page;
mod record;
mod report;
mod selection;
mod stored;
mod task;
mod whole;

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

pub use artefact::{Artefact, ArtefactError, Context, Run};
pub use data::Cells;
pub use error::ReproduceError;
pub use kept::Kept;
pub use merge::{is_reproduction, merge};
pub use options::ReproduceOptions;
pub use outcome::Outcome;
pub use selection::{Selection, UnknownSelector};

use folder::Folder;
use holdings::{Holdings, Part, Sources, Work};
use stored::{MadeWith, Stored};
use task::{Finished, TaskSetting, tasks};
use whole::Whole;

use crate::cache::Cache;
use crate::interrupt;
use crate::papers::left_out::Errors;
use crate::papers::readings::Readings;
use crate::papers::reference::Reference;
use crate::progress::{Amount, Progress, Stopped};
use crate::work::OutputFolder;

/// The table of a reproduction's rows, in its folder.
pub const CELLS: &str = "cells.csv";

/// What a reproduction came to, beside its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reproduction {
    /// The report for a terminal.
    pub report: String,
    /// `paper/artefact: why`, one for each thing that went wrong; empty where all is well.
    pub failures: Vec<String>,
}

/// Reproduces what the options select from these artefacts, beside the errors of rows that were left out of a fit, and prints
/// the report.
///
/// # Errors
/// [`ReproduceError`]; its exit code says whether the input was wrong or the run failed.
pub fn run(options: &ReproduceOptions, artefacts: &[Artefact], left_out: &Errors) -> Result<(), ReproduceError> {
    print(&reproduce(options, artefacts, left_out)?)
}

/// Prints the report; artefacts that failed are an error.
fn print(Reproduction { report, failures }: &Reproduction) -> Result<(), ReproduceError> {
    let mut out = io::stdout().lock();
    match out.write_all(report.as_bytes()).and_then(|()| out.flush()) {
        // A reader that has had enough is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(ReproduceError::Output(error)),
        _ if failures.is_empty() => Ok(()),
        _ => Err(ReproduceError::Artefacts { failures: failures.clone() }),
    }
}

/// Reproduces what the options select from these artefacts, and writes all files.
///
/// # Errors
/// An unknown selector, a folder that cannot be used or that holds artefacts of other calibrations, before anything is
/// written; a file that cannot be written; Ctrl-C. An artefact that fails is no error: its rows have no answer, and it is
/// among the failures.
pub fn reproduce(
    options: &ReproduceOptions,
    artefacts: &[Artefact],
    left_out: &Errors,
) -> Result<Reproduction, ReproduceError> {
    let reference = Reference::load()?;
    let readings = Readings::load(&reference)?;
    let sources = Sources { options, artefacts, left_out, reference: &reference, readings: &readings };
    let asked = Selection::new(&reference, artefacts, &options.selectors)?;
    let chosen = tasks(&reference, &asked, artefacts);
    options.check(artefacts, chosen.iter().filter_map(|task| task.model))?;
    let papers: Vec<&str> = chosen.iter().map(|task| task.paper).collect();
    let opened = Folder::open(&options.work.out, &papers).map_err(ReproduceError::Folder)?;
    let mut owned = OutputFolder::claim(&options.work.out, &record::owner(options), options.work.overwrite)?;
    let holdings = Holdings::new(sources, &asked, &options.work.out, &owned.recorded("artefacts"))?;
    // What is kept was asked for once, and stands in the record and on the page before what is asked for now.
    let mut selection = asked;
    if holdings.keeps_more {
        let mut selectors = owned.recorded(record::SELECTION);
        selectors
            .extend(selection.selectors.iter().filter(|asked| !selectors.contains(asked)).cloned().collect::<Vec<_>>());
        selection.selectors = selectors;
    }
    let written = holdings.parts.iter().flat_map(|part| folder::names(part.place()));
    let working = whole::names(written).into_iter().chain(options.full.then(|| kept::KEPT.to_owned()));
    owned.begin(&working.collect::<Vec<_>>(), record::selection(&selection.selectors))?;

    let (number, before) = holdings.asked();
    let done = AtomicUsize::new(before);
    let kept = holdings.parts.iter().enumerate().filter(|(_, part)| !part.is_asked);
    let kept: Vec<usize> = kept.map(|(place, _)| place).collect();
    let cache = Cache::new();
    let found = if options.full { Kept::open(&options.work.out, options.work.resume) } else { Kept::default() };
    let (reference, readings, cache) = (&reference, &readings, &cache);
    let setting = TaskSetting { options, reference, readings, cache, kept: &found, folder: &opened };
    let whole = finish(sources, &setting, holdings.parts, (number, &done)).and_then(|finished| {
        Whole { sources, selection: &selection, finished: &finished }.write(&opened, &owned, &kept)
    });
    whole.map_err(|error| {
        let (done, all) = (done.load(Ordering::Relaxed) as u64, number as u64);
        error.stopped(Stopped { done, all, things: "artefacts", command: options.to_go_on() })
    })
}

/// Runs what is to run, each artefact on the disc as soon as it is finished; `done` counts those of `number` that were
/// asked for.
fn finish<'r>(
    sources: Sources<'r>,
    setting: &TaskSetting<'_>,
    parts: Vec<Part<'r>>,
    (number, done): (usize, &AtomicUsize),
) -> Result<Vec<Finished<'r>>, ReproduceError> {
    let Sources { options, reference, .. } = sources;
    let threads =
        rayon::ThreadPoolBuilder::new().num_threads(options.work.jobs.map_or(0, NonZeroUsize::get)).build()?;
    let progress = Progress::new(Amount::Number("artefacts"), number as u64, done.load(Ordering::Relaxed) as u64);
    let perform = |part: Part<'r>| match part.work {
        Work::Kept(finished) => Ok(finished),
        Work::Run(_) if interrupt::came() => Err(ReproduceError::Interrupted),
        Work::Run(task) => {
            let finished = setting.perform(&task)?;
            let stored = Stored::new(&finished, MadeWith::now(options, task.model, reference)?)?;
            setting.folder.write(&stored::name(task.paper, task.artefact), &stored.to_text()?)?;
            done.fetch_add(1, Ordering::Relaxed);
            progress.inc(1);
            Ok(finished)
        }
    };
    threads.install(|| parts.into_par_iter().map(perform).collect())
}
