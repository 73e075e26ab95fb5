//! `haversack train`: trains networks for real under each policy, on simulated devices.
//!
//! A specification has the scenario keys of a sweep, and in addition the data, the duration and rate of learning, and
//! the seeds. Each scenario with each seed is a course; after every epoch its state is written to the log `checkpoint`,
//! so that an interrupted training resumes with identical results. Scenarios with the same seed have the same initial
//! weights and see the same mini-batches.

mod course;
mod pace;
mod saved;
mod specification;
mod stand_in;
mod table;

use std::ops::Range;

use clap::Args;
use haversack_devices::ensure;
use haversack_workloads::data::{DataSet, LoadOptions, load};
use serde_json::{Map, Value};

use crate::output::print;
use crate::source::Source;
use crate::work::{Identity, Job, Log, OutputFolder, Steps, Whose, WorkOptions, pool, work_on};
use crate::{Cache, CommandError, Result, interrupt};
use course::{Course, Subject};
pub(crate) use course::{mini_batch, program, shape as input_of};
use pace::{Augment, Pace, WrongPace};
use saved::{Coded, Held, Saved, Shown, Values};
pub use saved::{Factors, Made, Row};
use specification::Specification;
pub use stand_in::StandIn;
pub(crate) use stand_in::{apart, chance, learned};

/// The table of a training, in its folder.
pub const EPOCHS: &str = "epochs.parquet";
/// The log of courses, which is kept in the folder.
const LOG: &str = "checkpoint";

/// The options of `train`.
#[derive(Clone, Debug, Args)]
#[command(after_help = include_str!("../help/train.txt"))]
pub struct TrainOptions {
    /// Training specification
    #[arg(value_name = "SPEC.toml")]
    pub specification: Source,
    /// Output folder and execution
    #[command(flatten)]
    pub work: WorkOptions,
    /// Random seed; replaces all seeds of the specification
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// As [`train`], and prints the results.
///
/// # Errors
/// As [`train`]; a standard output that cannot be written.
pub fn run(options: &TrainOptions) -> Result<()> {
    let Trained { report, failure } = train(options)?;
    print(&report)?;
    failure.map_or(Ok(()), Err)
}

/// The result of a training, in addition to its files.
#[derive(Debug)]
pub struct Trained {
    /// The results as text; empty if there are none.
    pub report: String,
    /// The reason why some courses failed: a NaN loss, or a budget that a scenario does not fit.
    pub failure: Option<CommandError>,
}

/// Trains and writes the folder.
///
/// # Errors
/// A specification or data that are wrong, before anything is written; a checkpoint of another specification; Ctrl-C.
/// Epochs learned until then are in the checkpoint.
pub fn train(options: &TrainOptions) -> Result<Trained> {
    let (file, text) = options.specification.read()?;
    let specification = Specification::parse(&file, &text, options.seed)?;
    pool(options.work.jobs)?.install(|| {
        let training = Training::new(&specification)?;
        let identity = Identity::of(training.record.clone(), None);
        let whose = Whose { owner: identity.owner(), of: identity.to_line() };
        let trained = work_on(&training, &whose, &options.work, options.to_go_on())?;
        Ok(trained.unwrap_or_else(|| Trained { report: String::new(), failure: None }))
    })
}

/// Every scenario with every seed, one course each.
struct Training<'a> {
    specification: &'a Specification,
    data: DataSet,
    subjects: Vec<Subject>,
    record: Map<String, Value>,
}

impl<'a> Training<'a> {
    /// Prepares the training of `specification`.
    ///
    /// # Errors
    /// Data or scenarios that cannot be loaded, or that do not fit together.
    fn new(specification: &'a Specification) -> Result<Self> {
        let cache = Cache::new();
        let scenarios = specification.scenarios()?.into_iter();
        let share = specification.validation_share;
        let data = load(&specification.data, &LoadOptions { validation_share: share, ..LoadOptions::default() })
            .map_err(|error| CommandError::input(format!("`data`: {error}")))?;
        let augment = specification.augment.as_ref();
        augment.map_or(Ok(()), |augment| augment.check(&data.form)).map_err(CommandError::input)?;
        let subjects: Vec<Subject> = scenarios
            .map(|(label, scenario)| Subject::new(label, scenario, &data, &cache))
            .collect::<Result<_, _>>()?;
        let record = specification.record(&data, &subjects);
        Ok(Self { specification, data, subjects, record })
    }

    /// The number of the scenario of a course, and its seed.
    fn course(&self, part: u64) -> (usize, u64) {
        let seeds = &self.specification.seeds;
        (part as usize / seeds.len(), seeds[part as usize % seeds.len()])
    }

    /// Writes the table and the curves; returns the names of all files of the folder.
    fn write(&self, folder: &OutputFolder, rows: &[Row]) -> Result<Vec<String>> {
        table::write(&folder.path(EPOCHS), rows, &self.subjects)?;
        let mut outputs = vec![EPOCHS.to_owned(), LOG.to_owned()];
        for (name, figure) in table::figures(rows, self.specification, &self.subjects) {
            figure.render()?.write(&folder.path(name))?;
            outputs.extend([format!("{name}.svg"), format!("{name}.png")]);
        }
        Ok(outputs)
    }
}

impl Job for Training<'_> {
    /// The error of this course, if it failed.
    type Out = Option<CommandError>;
    type Report = Trained;
    const NAME: &'static str = "training";
    const THINGS: &'static str = "epochs";
    const LOG: &'static str = LOG;
    const FILES: &'static [&'static str] = &[EPOCHS, LOG, "learning*", "pareto*"];

    fn parts(&self) -> Range<u64> {
        0..(self.subjects.len() * self.specification.seeds.len()) as u64
    }

    fn steps(&self, _part: u64) -> u64 {
        u64::from(self.specification.pace.epochs)
    }

    fn before(&self, part: u64, log: &Log) -> Result<u64> {
        Ok(log.get::<Shown>(part)?.map_or(0, |shown| u64::from(shown.epoch)))
    }

    fn has_results(&self, folder: &OutputFolder) -> bool {
        folder.path(EPOCHS).is_file()
    }

    fn is_finished(&self, folder: &OutputFolder, log: &Log) -> Result<bool> {
        for part in self.parts() {
            if self.before(part, log)? < self.steps(part) {
                return Ok(false);
            }
        }
        Ok(folder.holds(EPOCHS))
    }

    /// Runs a course from its checkpoint to the end.
    fn run(&self, part: u64, steps: &Steps<'_>) -> Result<Option<CommandError>> {
        let (run, seed) = self.course(part);
        let Specification { pace, augment, .. } = &self.specification;
        let mut course = Course::new(&self.subjects[run], pace, augment.as_ref(), &self.data, seed)?;
        if let Some(saved) = steps.last::<Saved>()? {
            course.restore(saved)?;
        }
        while !course.is_finished() {
            ensure!(!interrupt::came(), CommandError::Interrupted);
            match course.epoch(run as u64) {
                Err(error @ (CommandError::NoPlan(_) | CommandError::Failed(_))) => return Ok(Some(error)),
                ended => ended?,
            }
            steps.keep(&course.saved())?;
            steps.step();
        }
        Ok(None)
    }

    fn finish(&self, folder: OutputFolder, log: &Log, outs: Vec<Option<CommandError>>) -> Result<Trained> {
        let failures: Vec<CommandError> = outs.into_iter().flatten().collect();
        log.tidy()?;
        let mut report = String::new();
        if (failures.len() as u64) < self.parts().end {
            let rows: Vec<Row> = log.rows::<Shown>(..)?.into_iter().flat_map(|shown| shown.rows).collect();
            let outputs = self.write(&folder, &rows)?;
            folder.record(self.record.clone(), &outputs)?;
            report = table::text(&rows, &self.subjects, &folder.path(EPOCHS));
        }
        Ok(Trained { report, failure: all_of(failures) })
    }
}

/// The failure of the training: the first of several errors, with the number of the others.
fn all_of(failures: Vec<CommandError>) -> Option<CommandError> {
    let others = failures.len().saturating_sub(1);
    let first = failures.into_iter().next()?;
    if others == 0 {
        return Some(first);
    }
    let says = format!("{first}; trainings with other scenarios or seeds that did not end either: {others}");
    Some(if first.exit_code() == 3 { CommandError::NoPlan(says) } else { CommandError::failed(says) })
}

impl TrainOptions {
    /// The command that resumes this one.
    fn to_go_on(&self) -> String {
        let seed = self.seed.map_or_else(String::new, |seed| format!(" --seed {seed}"));
        self.specification.to_go_on("train", &self.work.out, &seed)
    }
}
