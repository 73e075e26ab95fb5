//! `haversack train`: networks trained for real under each policy, on simulated devices.
//!
//! A specification names scenarios as a sweep's does, and beside them the data, how long and how fast to learn, and the
//! seeds. Each scenario with each seed is a course; after every epoch its state goes into `checkpoint`, so
//! that a training that was cut off goes on with the same bytes. Scenarios with one seed have the same initial weights
//! and see the same mini-batches.

mod augment;
mod checkpoint;
mod coded;
mod course;
mod curves;
mod factors;
mod fit;
mod pace;
mod row;
mod schedule;
mod specification;
mod stand_in;
mod table;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use clap::Args;
use haversack_workloads::data::{DataSet, LoadOptions, load};
use rayon::prelude::*;
use serde_json::Map;

use crate::cache::Cache;
use crate::error::CommandError;
use crate::interrupt;
use crate::output::{note, print};
use crate::output_folder::OutputFolder;
use crate::progress::{Amount, Progress, Stopped};
use crate::source::Source;
use checkpoint::Checkpoint;
use course::{Course, Subject};
pub(crate) use course::{mini_batch, program};
pub use factors::{Factors, Made};
pub(crate) use fit::shape as input_of;
pub use row::Row;
use specification::Specification;
pub use stand_in::StandIn;
pub(crate) use stand_in::apart;

/// The table of a training, in its folder.
pub const EPOCHS: &str = "epochs.parquet";

/// What `train` is asked for.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  haversack train glyphs.toml --out glyphs\n\nwith glyphs.toml as\n  \
    data = \"glyphs\"\n  device = \"jetson-agx-xavier\"\n  model = \"lenet5\"\n  batch = 64\n  policy = [\"original\", \"daf\"]\n  \
    optimizer = \"momentum\"\n  epochs = 8\n  learning_rate = 0.03\n  schedule = \"cosine warm-up=1\"\n  seeds = [0, 1, 2]\n\n\
    data is glyphs (images) or phrases (tokens), which are made by code, or the path of CIFAR-10 or CIFAR-100 in binary, of IDX \
    files (MNIST, FEMNIST) or of .csv or .tsv tables with the columns text and label. schedule is constant, cosine or \
    step at=6,8 by=0.1, each with warm-up=EPOCHS or without. augment is shift=PIXELS, flip or both. Every other key is a scenario's; one with a list is trained with \
    each of its values, all with the same seeds.")]
pub struct TrainOptions {
    /// The specification
    #[arg(value_name = "SPEC.toml")]
    pub specification: Source,
    /// The folder to write to
    #[arg(long, value_name = "DIR", default_value = "out")]
    pub out: PathBuf,
    /// Goes on where a training of the same specification was cut off
    #[arg(long)]
    pub resume: bool,
    /// Deletes what the folder lists of another command or specification
    #[arg(long)]
    pub overwrite: bool,
    /// Threads [default: one a processor]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// The only seed, in place of those of the specification
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// As [`train`], and prints what was reached.
///
/// # Errors
/// As [`train`]; a standard output that cannot be written.
pub fn run(options: &TrainOptions) -> Result<(), CommandError> {
    let Trained { report, failure } = train(options)?;
    print(&report)?;
    failure.map_or(Ok(()), Err)
}

/// What a training came to, beside its files.
#[derive(Debug)]
pub struct Trained {
    /// What was reached, as text; empty where nothing was.
    pub report: String,
    /// Why some of it was not: a loss that is no number any more, or a budget that a scenario does not fit.
    pub failure: Option<CommandError>,
}

/// Trains and writes the folder.
///
/// # Errors
/// A specification or data that are wrong, before anything is written; a checkpoint of something else; Ctrl-C. What had been
/// learned by then is in the checkpoint.
pub fn train(options: &TrainOptions) -> Result<Trained, CommandError> {
    let (file, text) = options.specification.read()?;
    let specification = Specification::parse(&file, &text, options.seed)?;
    let builder = rayon::ThreadPoolBuilder::new().num_threads(options.jobs.map_or(0, NonZeroUsize::get));
    let pool = builder.build().map_err(|error| CommandError::failed(format!("cannot start the threads: {error}")))?;
    pool.install(|| learn_all(options, &specification))
}

/// Every scenario with every seed.
fn learn_all(options: &TrainOptions, specification: &Specification) -> Result<Trained, CommandError> {
    let cache = Cache::new();
    let share = specification.validation_share;
    let data = load(&specification.data, &LoadOptions { validation_share: share, ..LoadOptions::default() })
        .map_err(|error| CommandError::input(format!("`data`: {error}")))?;
    let augment = specification.augment.as_ref();
    augment.map_or(Ok(()), |augment| augment.check(&data.form)).map_err(CommandError::input)?;
    let subjects = subjects(specification, &data, &cache)?;
    let record = specification.record(&data, &subjects);
    let mut folder = OutputFolder::claim(&options.out, &specification::owner(&record), options.overwrite)?;
    let checkpoint = Checkpoint::open(&options.out, &record, options.resume)?;
    let epochs = u64::from(specification.pace.epochs);
    let all = epochs * (subjects.len() * specification.seeds.len()) as u64;
    if options.resume && checkpoint.epochs() == all && folder.holds(EPOCHS) {
        note(&format!("{} holds the whole training already", options.out.display()));
        return Ok(Trained { report: String::new(), failure: None });
    }
    folder.begin(&[checkpoint::NAME.to_owned()], Map::new())?;
    checkpoint.begin()?;
    let progress = Progress::new(Amount::Number("epochs"), all, checkpoint.epochs());
    let checkpoint = Mutex::new(checkpoint);
    let courses: Vec<(usize, u64)> =
        (0..subjects.len()).flat_map(|run| specification.seeds.iter().map(move |&seed| (run, seed))).collect();
    let ended: Result<Vec<Option<CommandError>>, CommandError> = courses
        .par_iter()
        .map(|&(run, seed)| {
            let course = Course::new(&subjects[run], &specification.pace, &data, seed)?;
            learn(course.augmented(augment), run as u64, &checkpoint, &progress)
        })
        .collect();
    let checkpoint = checkpoint.into_inner().unwrap_or_else(PoisonError::into_inner);
    let failures: Vec<CommandError> = match ended {
        Err(error @ CommandError::Interrupted) => {
            let (done, command) = (checkpoint.epochs(), options.to_go_on());
            return Err(error.stopped(Stopped { done, all, things: "epochs", command }));
        }
        ended => ended?.into_iter().flatten().collect(),
    };
    drop(progress);
    let rows = checkpoint.rows();
    let mut report = String::new();
    if failures.len() < courses.len() {
        let outputs = write(&folder, &rows, specification, &subjects)?;
        folder.record(record, &outputs)?;
        report = table::text(&rows, &subjects, &folder.path(EPOCHS));
    }
    Ok(Trained { report, failure: all_of(failures) })
}

/// What did not go well: of several errors the first, with the number of the others.
fn all_of(failures: Vec<CommandError>) -> Option<CommandError> {
    let others = failures.len().saturating_sub(1);
    let first = failures.into_iter().next()?;
    if others == 0 {
        return Some(first);
    }
    let says = format!("{first}; trainings with other scenarios or seeds that did not end either: {others}");
    Some(if first.exit_code() == 3 { CommandError::NoPlan(says) } else { CommandError::failed(says) })
}

/// Every scenario of the specification, ready to be trained.
fn subjects(specification: &Specification, data: &DataSet, cache: &Cache) -> Result<Vec<Subject>, CommandError> {
    specification.scenarios()?.into_iter().map(|(label, scenario)| Subject::new(label, scenario, data, cache)).collect()
}

/// Takes a course from where the checkpoint has it to its end; what went wrong with it alone, if anything did.
fn learn(
    mut course: Course<'_>,
    run: u64,
    checkpoint: &Mutex<Checkpoint>,
    progress: &Progress,
) -> Result<Option<CommandError>, CommandError> {
    let lock = || checkpoint.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (run, course.seed());
    if let Some(saved) = lock().saved(key) {
        course.restore(saved)?;
    }
    while !course.is_finished() {
        if interrupt::came() {
            return Err(CommandError::Interrupted);
        }
        match course.epoch(run) {
            Err(error @ (CommandError::NoPlan(_) | CommandError::Failed(_))) => return Ok(Some(error)),
            ended => ended?,
        }
        lock().save(key, course.saved())?;
        progress.inc(1);
    }
    Ok(None)
}

/// Writes the table and the curves; the names of all files of the folder.
fn write(
    folder: &OutputFolder,
    rows: &[Row],
    specification: &Specification,
    subjects: &[Subject],
) -> Result<Vec<String>, CommandError> {
    table::write(&folder.path(EPOCHS), rows, subjects)?;
    let mut outputs = vec![EPOCHS.to_owned(), checkpoint::NAME.to_owned()];
    for (name, figure) in curves::figures(rows, specification, subjects) {
        figure.render()?.write(&folder.path(name))?;
        outputs.extend([format!("{name}.svg"), format!("{name}.png")]);
    }
    Ok(outputs)
}

impl TrainOptions {
    /// The command that goes on where this one was stopped.
    fn to_go_on(&self) -> String {
        let seed = self.seed.map_or_else(String::new, |seed| format!(" --seed {seed}"));
        self.specification.to_go_on("train", &self.out, &seed)
    }
}
