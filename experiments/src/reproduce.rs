//! `reproduce`: the papers' artefacts, simulated, each number beside the paper's own.
//!
//! [`run`] selects rows of the [`mod@reference`], runs the [`Artefact`]s that answer them, judges the answers ([`cells`])
//! and writes figures, `cells.csv`, `index.html` and `run.json`. The artefacts are handed in by the caller: nothing here
//! knows a paper.

mod answer;
mod artefact;
mod assemble;
pub mod cells;
pub mod committed;
mod content;
mod data;
mod error;
mod folder;
mod frame;
mod notes;
mod options;
mod outcome;
mod page;
pub mod predicate;
mod quantity;
pub mod readings;
mod record;
pub mod reference;
mod report;
mod selection;
pub mod summary;
mod task;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::num::NonZeroUsize;

use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;

pub use answer::{Answer, AnswerError};
pub use artefact::{Artefact, ArtefactError, Context, Run};
pub use data::Cells;
pub use error::ReproduceError;
pub use frame::FigureFrame;
pub use notes::{Note, NoteKind};
pub use options::ReproduceOptions;
pub use outcome::Outcome;
pub use quantity::Quantities;
pub(crate) use report::counted;
pub use selection::{Selection, UnknownSelector};
pub use summary::{mean, median, range};

use content::Content;
use folder::Folder;
use readings::Readings;
use record::Calibrations;
use reference::Reference;
use task::{Finished, TaskSetting, tasks};

use crate::cache::Cache;
use crate::output_folder::OutputFolder;

/// What a reproduction came to, beside its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reproduction {
    /// The report for a terminal.
    pub report: String,
    /// `paper/artefact: why`, one for each thing that went wrong; empty where all is well.
    pub failures: Vec<String>,
}

/// Reproduces what the options select from these artefacts, and prints the report.
///
/// # Errors
/// [`ReproduceError`]; its exit code says whether the input was wrong or the run failed.
pub fn run(options: &ReproduceOptions, artefacts: &[Artefact]) -> Result<(), ReproduceError> {
    let Reproduction { report, failures } = reproduce(options, artefacts)?;
    let mut out = io::stdout().lock();
    match out.write_all(report.as_bytes()).and_then(|()| out.flush()) {
        // A reader that has had enough is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(ReproduceError::Output(error)),
        _ if failures.is_empty() => Ok(()),
        _ => Err(ReproduceError::Artefacts { failures }),
    }
}

/// Reproduces what the options select from these artefacts, and writes all files.
///
/// # Errors
/// An unknown selector or a folder that cannot be used, before anything is written; a file that cannot be written.
/// An artefact that fails is no error: its rows have no answer, and it is among the failures.
pub fn reproduce(options: &ReproduceOptions, artefacts: &[Artefact]) -> Result<Reproduction, ReproduceError> {
    let reference = Reference::load()?;
    let readings = Readings::load(&reference)?;
    let selection = Selection::new(&reference, artefacts, &options.selectors)?;
    let tasks = tasks(&reference, &selection, artefacts);
    let modelled: Vec<Artefact> = tasks.iter().filter_map(|task| task.model).copied().collect();
    let calibrations = Calibrations::of(&modelled)?;
    let papers: Vec<&str> = tasks.iter().map(|task| task.paper).collect();
    let folder = Folder::open(&options.out, &papers).map_err(ReproduceError::Folder)?;
    let owner = record::owner(options);
    let mut owned = OutputFolder::claim(&options.out, &owner, options.overwrite)?;
    owned.begin("cells.csv")?;

    let cache = Cache::new();
    let setting = TaskSetting { options, reference: &reference, readings: &readings, cache: &cache, folder: &folder };
    let threads = rayon::ThreadPoolBuilder::new().num_threads(options.jobs.map_or(0, NonZeroUsize::get)).build()?;
    let bar = progress(tasks.len());
    let finished: Vec<Finished<'_>> = threads.install(|| {
        let performed = tasks.par_iter().map(|task| setting.perform(task).inspect(|_| bar.inc(1)));
        performed.collect::<Result<_, ReproduceError>>()
    })?;
    bar.finish_and_clear();

    let content = Content::new(options, &selection, &finished, &calibrations, (&reference, &readings), artefacts);
    folder.write("cells.csv", &cells::table(&content.cells)?.to_csv())?;
    folder.write("index.html", &page::page(&content).render()?)?;
    let names =
        finished.iter().flat_map(|f| ["csv", "svg", "png"].map(|kind| format!("{}/{}.{kind}", f.paper, f.artefact)));
    let written = ["cells.csv", "index.html"].map(str::to_owned).into_iter().chain(names);
    // What earlier selections left here stays, and stays listed.
    let outputs: BTreeSet<String> = written.chain(owned.listed().iter().cloned()).collect();
    let outputs: Vec<String> = outputs.into_iter().filter(|name| owned.path(name).is_file()).collect();
    owned.record(record::record(&content)?, &outputs)?;
    let faults = |f: &Finished<'_>| {
        let place = format!("{}/{}", f.paper, f.artefact);
        f.faults.iter().map(move |why| format!("{place}: {why}")).collect::<Vec<_>>()
    };
    Ok(Reproduction {
        report: report::text(&content.tallies, &content.cells, &finished, &content.remarks),
        failures: finished.iter().flat_map(faults).collect(),
    })
}

/// A bar on a terminal, nothing elsewhere.
fn progress(tasks: usize) -> ProgressBar {
    let bar = ProgressBar::new(u64::try_from(tasks).unwrap_or(u64::MAX));
    let style = ProgressStyle::with_template("{bar:40} {pos} of {len} artefacts");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}
