//! Work that is done in parts.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use haversack_devices::ensure;
use rayon::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::folder::{OutputFolder, WorkOptions};
use super::log::Log;
use crate::output::note;
use crate::progress::{Amount, Progress, Stopped};
use crate::{CommandError, Result, interrupt};

/// Long work in parts, each of one or several steps.
pub(crate) trait Job: Sync {
    /// The result of a part, in addition to its row in the log.
    type Out: Send;
    /// The result of all parts, in addition to the files.
    type Report;
    /// The work's name in messages: "sweep".
    const NAME: &'static str;
    /// The name of the counted steps, in the plural: "runs".
    const THINGS: &'static str;
    /// The name of the log in the folder.
    const LOG: &'static str;
    /// All files that may be written: see [`OutputFolder::claim`].
    const FILES: &'static [&'static str];
    /// Whether parts run one after the other, each on all threads, and call [`Steps::begin`] once
    /// their input is checked.
    const IN_TURN: bool = false;

    /// The files that this work may write.
    fn files(&self) -> &'static [&'static str] {
        Self::FILES
    }

    /// The files that an interrupted run may leave behind.
    fn working(&self) -> Vec<String> {
        vec![Self::LOG.to_owned()]
    }

    /// Keys of the record from the beginning on, in addition to its owner.
    fn more(&self) -> Map<String, Value> {
        Map::new()
    }

    /// The keys of the parts, in their order.
    fn parts(&self) -> Range<u64>;

    /// The number of steps of a part.
    fn steps(&self, _part: u64) -> u64 {
        1
    }

    /// The name of a part in messages, if some take much longer than others.
    fn name(&self, _part: u64) -> Option<String> {
        None
    }

    /// The number of steps of a part that are in the log.
    ///
    /// # Errors
    /// A log that cannot be read.
    fn before(&self, part: u64, log: &Log) -> Result<u64> {
        Ok(u64::from(log.holds(part)))
    }

    /// Whether a part with `before` steps in the log is complete.
    fn is_done(&self, part: u64, before: u64) -> bool {
        before >= self.steps(part)
    }

    /// Whether the folder contains all results of this work.
    ///
    /// # Errors
    /// A log or a record that cannot be read.
    fn is_finished(&self, _folder: &OutputFolder, _log: &Log) -> Result<bool> {
        Ok(false)
    }

    /// Whether the rows in the log already led to results.
    fn has_results(&self, _folder: &OutputFolder) -> bool {
        false
    }

    /// Runs a part from its state in the log.
    ///
    /// # Errors
    /// An error that stops all work.
    fn run(&self, part: u64, steps: &Steps<'_>) -> Result<Self::Out>;

    /// Writes the files from all rows and from the results of the parts that were run, in their order.
    ///
    /// # Errors
    /// A file that cannot be written or read.
    fn finish(&self, folder: OutputFolder, log: &Log, outs: Vec<Self::Out>) -> Result<Self::Report>;
}

/// The identity of a folder, and everything that the rows of its log depend on.
pub(crate) struct Whose {
    /// The command and its specification: see [`OutputFolder::claim`].
    pub(crate) owner: Map<String, Value>,
    /// The dependencies of the log's rows; a log with other dependencies is not used.
    pub(crate) of: String,
}

/// Does the work of `job`, or resumes it; `None` if the folder already contains all of it. `command` resumes
/// it if it is stopped.
///
/// # Errors
/// A folder that belongs to another owner, a log with other dependencies; errors of parts; Ctrl-C. Work done until
/// then is in the log.
pub(crate) fn work_on<J: Job>(
    job: &J,
    whose: &Whose,
    options: &WorkOptions,
    command: String,
) -> Result<Option<J::Report>> {
    let folder = OutputFolder::claim(&options.out, &whose.owner, options.overwrite, job.files())?;
    let resume = folder.goes_on(options)?;
    let path = folder.path(J::LOG);
    let out = options.out.display();
    if path.is_file() && !resume && !job.has_results(&folder) {
        note(&format!("{out} has an unfinished {}, which starts over; --resume continues it", J::NAME));
    }
    let log = Log::open(path, &whose.of, resume)?;
    if resume && job.is_finished(&folder, &log)? {
        note(&format!("{out} holds the whole {} already", J::NAME));
        return Ok(None);
    }
    go_on(job, folder, &log, command).map(Some)
}

/// Does the remaining work of `job` in its folder and its log.
///
/// # Errors
/// As [`work_on`], except for the folder and the log.
pub(crate) fn go_on<J: Job>(job: &J, folder: OutputFolder, log: &Log, command: String) -> Result<J::Report> {
    let (mut before, mut parts) = (0, Vec::new());
    for part in job.parts() {
        let done = job.before(part, log)?;
        before += done;
        if !job.is_done(part, done) {
            parts.push((part, done));
        }
    }
    let folder = Mutex::new(folder);
    let begin = || {
        folder.lock().unwrap_or_else(PoisonError::into_inner).begin(&job.working(), job.more())?;
        log.begin()
    };
    if !J::IN_TURN {
        begin()?;
    }
    let all = job.parts().map(|part| job.steps(part)).sum();
    let is_uneven = job.parts().next().and_then(|part| job.name(part)).is_some();
    let amount = if is_uneven { Amount::Uneven(J::THINGS) } else { Amount::Number(J::THINGS) };
    let progress = Progress::new(amount, all, before);
    let tally = Tally { progress, things: J::THINGS, all, done: AtomicU64::new(before), command };
    let run = |(part, before): (u64, u64)| {
        ensure!(!interrupt::came(), CommandError::Interrupted);
        let _running = job.name(part).map(|name| tally.progress.runs(name));
        job.run(part, &Steps { part, begin: &begin, log, tally: &tally, before, taken: AtomicU64::new(0) })
    };
    // One after the other, or in parallel on all threads, until one fails.
    let outs: Result<Vec<J::Out>> =
        if J::IN_TURN { parts.into_iter().map(run).collect() } else { parts.into_par_iter().map(run).collect() };
    let report = outs.and_then(|outs| {
        tally.progress.finish();
        job.finish(folder.into_inner().unwrap_or_else(PoisonError::into_inner), log, outs)
    });
    report.map_err(|error| error.stopped(tally.so_far()))
}

/// The steps of a part.
pub(crate) struct Steps<'a> {
    part: u64,
    begin: &'a (dyn Fn() -> Result<()> + Sync),
    log: &'a Log,
    tally: &'a Tally,
    /// Steps done by earlier processes, and those that this process has taken.
    before: u64,
    taken: AtomicU64,
}

impl Steps<'_> {
    /// Marks the input of the part as valid and begins writing: for parts that run one after the other.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub(crate) fn begin(&self) -> Result<()> {
        (self.begin)()
    }

    /// The last row of the part.
    ///
    /// # Errors
    /// A log that cannot be read.
    pub(crate) fn last<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        self.log.get(self.part)
    }

    /// Stores `row`, from which the part can be resumed.
    ///
    /// # Errors
    /// A log that cannot be written.
    pub(crate) fn keep(&self, row: &impl Serialize) -> Result<()> {
        self.log.append(self.part, row)
    }

    /// Counts one step; a step that an earlier process has done is not counted again.
    pub(crate) fn step(&self) {
        if self.taken.fetch_add(1, Ordering::Relaxed) >= self.before {
            self.tally.done.fetch_add(1, Ordering::Relaxed);
            self.tally.progress.inc(1);
        }
    }
}

/// The progress of the work, and how to resume it.
pub(crate) struct Tally {
    progress: Progress,
    things: &'static str,
    all: u64,
    done: AtomicU64,
    command: String,
}

impl Tally {
    /// The message if it ends here.
    pub(crate) fn so_far(&self) -> Stopped {
        let done = self.done.load(Ordering::Relaxed);
        Stopped { done, all: self.all, things: self.things, command: self.command.clone() }
    }
}
