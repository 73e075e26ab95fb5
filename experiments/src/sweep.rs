//! `haversack sweep`: the product of many scenarios as one table, and its Pareto fronts.
//!
//! Finished runs go to `rows.part` as they come, so that a killed sweep can go on; the table is made from
//! it at the end, sorted by the run's number. Nothing in the results depends on threads, shards or interruptions.

mod front;
mod identity;
mod journal;
mod merge;
mod row;
mod shard;
mod span;
mod specification;
mod table;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;

use haversack_reports::files::create_folder;
use haversack_reports::frame::write_parquet;
use haversack_reports::write_atomically;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::ThreadPool;
use rayon::prelude::*;

pub use merge::merge;
pub use row::{Row, Status};
pub use shard::Shard;
pub use specification::Specification;

use crate::cache::Cache;
use crate::error::CommandError;
use crate::output::note;
use identity::Identity;
use journal::Journal;
use table::Table;

/// The table of a sweep, in its folder.
const RESULTS: &str = "results.parquet";
/// What the table is of.
const RECORD: &str = "run.json";

/// What `sweep` is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The specification's file.
    pub specification: PathBuf,
    /// The folder to write to.
    pub out: PathBuf,
    /// Whether to go on where another sweep ended.
    pub resume: bool,
    /// Which part to run; all of it where `None`.
    pub shard: Option<Shard>,
    /// Runs at once; as many as the machine has processors where `None`.
    pub jobs: Option<NonZeroUsize>,
}

/// Runs the sweep and writes its folder.
///
/// # Errors
/// A specification that is wrong, before anything is written; a folder that cannot be written.
pub fn run(options: &Options) -> Result<(), CommandError> {
    let specification = Specification::read(&options.specification)?;
    let pool = pool(options.jobs)?;
    let cache = Cache::new();
    let configurations = pool.install(|| specification.validate(&cache))?;
    let identity = Identity::new(&specification, &configurations, options.shard)?;
    drop(configurations);
    let runs = options.shard.map_or(0..specification.runs(), |shard| shard.of(specification.runs()));
    let (results, record) = (options.out.join(RESULTS), options.out.join(RECORD));
    if options.resume && Journal::is_finished(&options.out) && identity.is_of(&record)? && results.is_file() {
        note(&format!("{} holds the whole sweep already", options.out.display()));
        return Ok(());
    }
    // A folder that cannot be had was named wrongly; one that fills up later was not.
    create_folder(&options.out).map_err(CommandError::input)?;
    let journal = Journal::open(&options.out, &identity, options.resume)?;
    let pending: Vec<u64> = runs.clone().filter(|run| !journal.holds(*run)).collect();
    let bar = progress(runs.end - runs.start, (runs.end - runs.start) - pending.len() as u64);
    let journal = Mutex::new(journal);
    pool.install(|| {
        pending.par_iter().try_for_each(|&run| {
            let row = Row::run(run, &specification, &cache);
            bar.inc(1);
            journal.lock().unwrap_or_else(PoisonError::into_inner).append(row)
        })
    })?;
    bar.finish_and_clear();
    let journal = journal.into_inner().unwrap_or_else(PoisonError::into_inner);
    let table = Table::new(&journal.rows(), &specification, &cache)?;
    let fronts = if options.shard.is_none() { front::draw(&table, &pool)? } else { Vec::new() };
    for (name, front) in &fronts {
        front.write(&options.out.join(name))?;
    }
    write_atomically(&record, identity.to_json().as_bytes())?;
    write_parquet(&results, &table.to_frame()?)?;
    journal.remove()
}

/// Threads for `jobs` runs at once.
fn pool(jobs: Option<NonZeroUsize>) -> Result<ThreadPool, CommandError> {
    let builder = rayon::ThreadPoolBuilder::new().num_threads(jobs.map_or(0, NonZeroUsize::get));
    builder.build().map_err(|error| CommandError::failed(format!("cannot start the threads: {error}")))
}

/// A bar on a terminal, nothing elsewhere.
fn progress(runs: u64, done: u64) -> ProgressBar {
    let bar = ProgressBar::new(runs).with_position(done);
    match ProgressStyle::with_template("{bar:40} {pos} of {len} runs, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
