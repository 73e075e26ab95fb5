//! `haversack sweep`: the product of many scenarios as one table, and its Pareto fronts.
//!
//! Finished runs go to `rows.part` as they come, so that a killed sweep can go on; the table is made from
//! it at the end, sorted by the run's number. Nothing in the results depends on threads, shards or interruptions.

mod class;
mod dry_run;
mod found;
mod front;
mod identity;
mod journal;
mod merge;
mod row;
mod span;
mod specification;
mod summary;
mod table;
mod users;

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use clap::Args;
use haversack_reports::frame::{CsvFile, ParquetFile};
use polars::prelude::DataFrame;
use rayon::ThreadPool;
use rayon::prelude::*;
use serde_json::Map;

pub(crate) use identity::Identity;
pub use merge::merge;
pub use row::Row;
pub use specification::Specification;
pub(crate) use users::{drawn, matching};

use crate::cache::Cache;
use crate::error::CommandError;
use crate::interrupt;
use crate::output::{note, print};
use crate::output_folder::{OutputFolder, RECORD};
use crate::progress::{Amount, Progress, Stopped, word};
pub use crate::shard::Shard;
use crate::source::Source;
use found::Found;
use journal::Journal;

/// The table of a sweep, in its folder.
pub const RESULTS: &str = "results.parquet";
/// The same table for programs that do not read Parquet.
const CSV: &str = "results.csv";

/// What `sweep` is asked for.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  haversack sweep budgets.toml --out budgets\n\nwith budgets.toml as\n  \
    device = [\"galaxy-s10\", \"rtx-3090\"]\n  model = [\"resnet50\"]\n  batch = [32]\n  \
    policy = [\"original\", \"dgc\", \"dga\", \"sage\"]\n  \
    memory_budget = { from = \"20%\", to = \"100%\", steps = 40 }\n  seed = [1]\n\n\
    Every key of a scenario may have one value, a list, or a span. Runs are numbered in the order device, stack, \
    model, input, batch, policy, set, precision, optimizer, graph, gradients, allocator, system, trainer_adj, apps, \
    cores, frequency, ambient_c, memory_budget, activation_budget, budget_walls, time_budget, trace, trace_from, \
    trace_window, footprints, usage, iterations, seed: \
    the first varies slowest.\n\n\
    policy = \"all\" stands for every policy, device = \"phones\", \"boards\" or \"gpus\" for every device of that form, alone \
    or in a list. What does not go together is a row of the status unsupported.\n\n\
    users = \"*\" beside a table of traces stands for each of its users, a pattern such as \"a*\" or a list of them for those \
    that match, and sample = 20 for so many of them, drawn by the first seed.")]
pub struct SweepOptions {
    /// The specification
    #[arg(value_name = "SPEC.toml")]
    pub specification: Source,
    /// The folder to write to
    #[arg(long, value_name = "DIR", default_value = "out")]
    pub out: PathBuf,
    /// Goes on where a killed sweep of the same specification ended
    #[arg(long)]
    pub resume: bool,
    /// Deletes what the folder lists of another command or specification
    #[arg(long)]
    pub overwrite: bool,
    /// Runs only the I-th of N equal parts, for `haversack merge`
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Counts what would be run and written, and does neither
    #[arg(long)]
    pub dry_run: bool,
    /// Runs at once [default: one a processor]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
}

/// What `merge` is asked for.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  haversack merge part1 part2 --out whole")]
pub struct MergeOptions {
    /// The folders of all shards of one sweep, reproduction or federation
    #[arg(value_name = "DIR", required = true)]
    pub shards: Vec<PathBuf>,
    /// The folder to write to
    #[arg(long, value_name = "DIR", default_value = "out")]
    pub out: PathBuf,
    /// Deletes what the folder lists of another command or specification
    #[arg(long)]
    pub overwrite: bool,
}

/// As [`sweep`], and prints what was found.
///
/// # Errors
/// As [`sweep`]; a standard output that cannot be written.
pub fn run(options: &SweepOptions) -> Result<(), CommandError> {
    print(&sweep(options)?)
}

/// Runs the sweep and writes its folder; what was found, as text.
///
/// # Errors
/// A specification that is wrong, before anything is written; a folder that cannot be written; Ctrl-C.
pub fn sweep(options: &SweepOptions) -> Result<String, CommandError> {
    let specification = Specification::of(&options.specification)?;
    let pool = pool(options.jobs)?;
    let cache = Cache::new();
    let (identity, unsupported) = pool.install(|| Identity::new(&specification, options.shard, &cache))?;
    if options.dry_run {
        return Ok(dry_run::text(options, &specification, unsupported));
    }
    let runs = options.shard.map_or(0..specification.runs(), |shard| shard.of(specification.runs()));
    let mut folder = OutputFolder::claim(&options.out, &identity.owner(), options.overwrite)?;
    let is_there = || [RESULTS, CSV].iter().all(|name| folder.path(name).is_file());
    if options.resume && Journal::is_finished(&options.out) && identity.is_of(&folder.path(RECORD))? && is_there() {
        note(&format!("{} holds the whole sweep already", options.out.display()));
        return Ok(String::new());
    }
    folder.begin(&[journal::NAME.to_owned()], Map::new())?;
    let journal = Mutex::new(Journal::open(&options.out, &identity, &runs, options.resume)?);
    let written = pool
        .install(|| simulate(&specification, &runs, &journal, &cache))
        .and_then(|()| write(folder, identity, &runs, &journal, (&specification, &cache)))
        .and_then(|writer| {
            if interrupt::came() {
                Err(CommandError::Interrupted)
            } else {
                writer.finish(options.shard.is_none(), &pool)
            }
        });
    let journal = journal.into_inner().unwrap_or_else(PoisonError::into_inner);
    match written {
        Ok(summary) => {
            journal.remove()?;
            Ok(summary)
        }
        Err(error) => {
            let (done, all) = (journal.done(), runs.end - runs.start);
            Err(error.stopped(Stopped { done, all, things: "runs", command: options.to_go_on() }))
        }
    }
}

/// Whether `folder` holds a sweep that ended early.
pub fn is_unfinished(folder: &Path) -> bool {
    !Journal::is_finished(folder)
}

impl SweepOptions {
    /// The command that goes on where this one was stopped.
    fn to_go_on(&self) -> String {
        let shard = self.shard.map_or_else(String::new, |shard| format!(" --shard {shard}"));
        self.specification.to_go_on("sweep", &self.out, &shard)
    }
}

/// Runs what the journal of `runs` does not hold yet.
fn simulate(
    specification: &Specification,
    runs: &Range<u64>,
    journal: &Mutex<Journal>,
    cache: &Cache,
) -> Result<(), CommandError> {
    let lock = || journal.lock().unwrap_or_else(PoisonError::into_inner);
    let pending: Vec<u64> = {
        let journal = lock();
        runs.clone().filter(|run| !journal.holds(*run)).collect()
    };
    let all = runs.end - runs.start;
    let progress = Progress::new(Amount::Number("runs"), all, all - pending.len() as u64);
    pending.par_iter().try_for_each(|&run| {
        if interrupt::came() {
            return Err(CommandError::Interrupted);
        }
        let row = Row::run(run, specification, cache);
        lock().append(&row)?;
        progress.inc(1);
        Ok(())
    })
}

/// Writes the tables of `runs` from the journal, which holds all of them.
fn write(
    folder: OutputFolder,
    identity: Identity,
    runs: &Range<u64>,
    journal: &Mutex<Journal>,
    (specification, cache): (&Specification, &Cache),
) -> Result<Writer, CommandError> {
    let journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
    let mut writer = Writer::new(folder, identity);
    for group in groups(runs.clone()) {
        writer.push(&table::table(&journal.rows(group)?, specification, cache)?)?;
    }
    Ok(writer)
}

/// Runs that are written at once, each lot a row group of the file.
const GROUP: u64 = 1 << 12;

/// The runs in lots of [`GROUP`]; no runs are one lot, which makes an empty table.
fn groups(runs: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let Range { start, end } = runs;
    let number = (end - start).div_ceil(GROUP).max(1);
    (0..number).map(move |group| start + group * GROUP..end.min(start + (group + 1) * GROUP))
}

/// The files of a sweep's folder, made from its tables one after the other.
struct Writer {
    folder: OutputFolder,
    identity: Identity,
    found: Found,
    files: Option<(ParquetFile, CsvFile)>,
}

impl Writer {
    fn new(folder: OutputFolder, identity: Identity) -> Self {
        Self { folder, identity, found: Found::default(), files: None }
    }

    /// Appends a table, whose runs come after those before.
    fn push(&mut self, table: &DataFrame) -> Result<(), CommandError> {
        self.found.see(table);
        let (mut parquet, mut csv) = match self.files.take() {
            Some(files) => files,
            None => (
                ParquetFile::create(&self.folder.path(RESULTS), table.schema())?,
                CsvFile::create(&self.folder.path(CSV), table)?,
            ),
        };
        parquet.write(table)?;
        csv.write(table)?;
        self.files = Some((parquet, csv));
        Ok(())
    }

    /// Draws the fronts of a whole sweep, and writes the record and the tables; what was found, as text.
    fn finish(self, is_whole: bool, pool: &ThreadPool) -> Result<String, CommandError> {
        let fronts = if is_whole { front::draw(&self.found, pool)? } else { Vec::new() };
        if let Some((parquet, csv)) = self.files {
            parquet.finish()?;
            csv.finish()?;
        }
        let mut outputs = vec![RESULTS.to_owned(), CSV.to_owned()];
        let mut files = format!("{}, {CSV}, {RECORD}", word(&self.folder.path(RESULTS)));
        for (name, front) in &fronts {
            front.write(&self.folder.path(name))?;
            outputs.extend([format!("{name}.svg"), format!("{name}.png")]);
        }
        match fronts.as_slice() {
            [] => {}
            [(name, _)] => files += &format!(", {name}.{{svg,png}}"),
            several => files += &format!(" and {} pictures of fronts, pareto-*.{{svg,png}}", several.len()),
        }
        self.folder.record(self.identity.record(), &outputs)?;
        Ok(summary::text(&self.found, &files))
    }
}

/// Threads for `jobs` runs at once.
fn pool(jobs: Option<NonZeroUsize>) -> Result<ThreadPool, CommandError> {
    let builder = rayon::ThreadPoolBuilder::new().num_threads(jobs.map_or(0, NonZeroUsize::get));
    builder.build().map_err(|error| CommandError::failed(format!("cannot start the threads: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_cover_every_run_once() {
        // 3 × 4096 + 5 runs from 7 on: three whole groups, and one of five.
        let all: Vec<Range<u64>> = groups(7..7 + 3 * GROUP + 5).collect();
        assert_eq!((all.len(), all[0].clone()), (4, 7..7 + GROUP));
        assert_eq!(all[3], 7 + 3 * GROUP..7 + 3 * GROUP + 5);
        assert_eq!(groups(4..4).collect::<Vec<_>>(), vec![4..4]);
    }
}
