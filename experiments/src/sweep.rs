//! `haversack sweep`: the product of many scenarios as one table, and its Pareto fronts.
//!
//! Finished runs are written to `rows.part` as they come, so that a killed sweep can be resumed; the table is made from
//! that file at the end, sorted by the run's number. The results do not depend on threads, shards or interruptions.

mod class;
mod found;
mod specification;
mod summary;
mod table;
mod users;

pub use found::Row;
pub use specification::Specification;
pub(crate) use users::{drawn, matching};

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::path::Path;

use clap::Args;
use found::Found;
use haversack_devices::ensure;
use haversack_devices::registry::digest;
use haversack_reports::{CsvFile, ParquetFile};
use polars::prelude::DataFrame;
use serde_json::{Map, Value, json};

use crate::output::print;
use crate::progress::word;
use crate::run::{Brought, Status};
use crate::scenario::{Key, PhoneApps, trace_file, workload};
use crate::source::Source;
use crate::work::{
    Identity, Job, Log, MergeOptions, OutputFolder, Part, RECORD, Shard, Steps, Whose, WorkOptions, pool, shards_of,
    work_on,
};
use crate::{Cache, CommandError, Result, interrupt};

/// The table of a sweep, in its folder.
pub const RESULTS: &str = "results.parquet";
/// The same table for programs that do not read Parquet.
const CSV: &str = "results.csv";
/// The log of finished runs.
const LOG: &str = "rows.part";
const FILES: &[&str] = &[RESULTS, CSV, LOG, "pareto*"];
/// The page of a sweep that has one.
pub(crate) const PAGE: &str = "index.html";
const FILES_WITH_PAGE: &[&str] = &[RESULTS, CSV, LOG, "pareto*", PAGE];

/// The options of `sweep`.
#[derive(Clone, Debug, Args)]
#[command(after_help = after_help())]
pub struct SweepOptions {
    /// Sweep specification
    #[arg(value_name = "SPEC.toml")]
    pub specification: Source,
    /// Output folder and execution
    #[command(flatten)]
    pub work: WorkOptions,
    /// Run only the I-th of N equal shards, for `haversack merge`
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Count the runs and the files without running or writing
    #[arg(long)]
    pub dry_run: bool,
}

/// An example, and the kinds of values of a specification.
fn after_help() -> String {
    let keys = Key::ALL.map(Key::name).join(", ");
    include_str!("../help/sweep.txt").replace("{keys}", &keys)
}

/// As [`sweep`], and prints the summary.
///
/// # Errors
/// As [`sweep`]; a standard output that cannot be written.
pub fn run(options: &SweepOptions) -> Result<()> {
    print(&sweep(options)?)
}

/// Runs the sweep and writes its folder; returns the summary as text.
///
/// # Errors
/// A specification that is wrong, before anything is written; a folder that cannot be written; Ctrl-C.
pub fn sweep(options: &SweepOptions) -> Result<String> {
    sweep_into(Specification::of(&options.specification)?, options, None)
}

/// As [`sweep`], with policies from a program, which the specification may name.
///
/// # Errors
/// As [`sweep`], a name that a policy has already, and a run in which such a policy fails: the sweep ends with it.
pub fn sweep_with(options: &SweepOptions, brought: Vec<Brought>) -> Result<String> {
    sweep_into(Specification::of(&options.specification)?.with(brought)?, options, None)
}

/// The printed text, and the names of the files that were written for it.
pub(crate) type Told = (String, Vec<String>);
/// Draws the rows into the folder.
pub(crate) type Tell = fn(&[Row], &OutputFolder) -> Result<Told>;

/// As [`sweep`]; `tell` decides what is drawn and printed.
///
/// # Errors
/// As [`sweep`], and what `tell` fails with.
pub(crate) fn sweep_into(specification: Specification, options: &SweepOptions, tell: Option<Tell>) -> Result<String> {
    let cache = Cache::new();
    pool(options.work.jobs)?.install(|| {
        let (identity, unsupported) = identity(&specification, options.shard, &cache)?;
        if options.dry_run {
            return Ok(summary::dry_run(options, &specification, unsupported));
        }
        let runs = options.shard.map_or(0..specification.runs(), |shard| shard.of(specification.runs()));
        let sweep = Sweep { specification, cache, identity, runs, is_whole: options.shard.is_none(), tell };
        let whose = Whose { owner: sweep.identity.owner(), of: sweep.identity.to_line() };
        Ok(work_on(&sweep, &whose, &options.work, options.to_go_on())?.unwrap_or_default())
    })
}

/// Whether `folder` contains an unfinished sweep.
pub fn is_unfinished(folder: &Path) -> bool {
    folder.join(LOG).exists()
}

impl SweepOptions {
    /// The command that resumes this one.
    fn to_go_on(&self) -> String {
        let shard = self.shard.map_or_else(String::new, |shard| format!(" --shard {shard}"));
        self.specification.to_go_on("sweep", &self.work.out, &shard)
    }
}

/// The runs of a specification, or those of a shard.
struct Sweep {
    specification: Specification,
    cache: Cache,
    identity: Identity,
    runs: Range<u64>,
    is_whole: bool,
    tell: Option<Tell>,
}

impl Job for Sweep {
    type Out = ();
    type Report = String;
    const NAME: &'static str = "sweep";
    const THINGS: &'static str = "runs";
    const LOG: &'static str = LOG;
    const FILES: &'static [&'static str] = FILES;

    fn files(&self) -> &'static [&'static str] {
        if self.tell.is_some() { FILES_WITH_PAGE } else { FILES }
    }

    fn parts(&self) -> Range<u64> {
        self.runs.clone()
    }

    fn is_finished(&self, folder: &OutputFolder, _log: &Log) -> Result<bool> {
        let is_there = |name| folder.path(name).is_file();
        Ok(!is_there(LOG) && is_there(RESULTS) && is_there(CSV) && self.identity.is_of(&folder.path(RECORD)))
    }

    fn run(&self, part: u64, steps: &Steps<'_>) -> Result<()> {
        let row = Row::run(part, &self.specification, &self.cache);
        if row.status == Status::Error && self.specification.brought(part).is_some() {
            return Err(CommandError::failed(row.reason.unwrap_or_default()));
        }
        steps.keep(&row)?;
        steps.step();
        Ok(())
    }

    fn finish(&self, folder: OutputFolder, log: &Log, _outs: Vec<()>) -> Result<String> {
        let mut writer = Writer::new(folder, &self.identity);
        for group in groups(self.runs.clone()) {
            writer.push(&table::table(&log.rows(group)?, self.specification.is_on_phones())?)?;
        }
        ensure!(!interrupt::came(), CommandError::Interrupted);
        let told = self.tell.map(|tell| tell(&log.rows(self.runs.clone())?, &writer.folder)).transpose()?;
        writer.finish(self.is_whole, told)
    }
}

/// Runs per row group of the file, which are written together.
const GROUP: u64 = 1 << 12;

/// The runs in groups of [`GROUP`]; without runs there is one group, which makes an empty table.
fn groups(runs: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let Range { start, end } = runs;
    let number = (end - start).div_ceil(GROUP).max(1);
    (0..number).map(move |group| start + group * GROUP..end.min(start + (group + 1) * GROUP))
}

/// Writes the files of a sweep's folder from its tables, one after the other.
struct Writer<'i> {
    folder: OutputFolder,
    identity: &'i Identity,
    found: Found,
    files: Option<(ParquetFile, CsvFile)>,
}

impl<'i> Writer<'i> {
    fn new(folder: OutputFolder, identity: &'i Identity) -> Self {
        Self { folder, identity, found: Found::default(), files: None }
    }

    /// Appends a table, whose runs come after those before.
    fn push(&mut self, table: &DataFrame) -> Result<()> {
        // A table without runs lacks the columns of a scenario.
        self.found.see(table).unwrap_or_default();
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

    /// Draws the fronts of a whole sweep, and writes the record and the tables; returns the summary as text.
    fn finish(self, is_whole: bool, told: Option<Told>) -> Result<String> {
        let fronts = if is_whole && told.is_none() { summary::draw(&self.found)? } else { Vec::new() };
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
        let text = match told {
            Some((text, written)) => {
                outputs.extend(written);
                text
            }
            None => summary::text(&self.found, &files),
        };
        self.folder.record(self.identity.record(), &outputs)?;
        Ok(text)
    }
}

/// Merges the folders of all shards of one sweep; the result is identical to an unsharded run.
///
/// # Errors
/// A folder that does not contain a finished sweep, shards of different sweeps, missing or duplicate runs; all before
/// anything is written. A folder that cannot be written.
pub fn merge(options: &MergeOptions) -> Result<()> {
    let (identity, shards) = shards_of(&options.shards, "run", " of the sweep")?;
    check(&shards)?;
    let folder = OutputFolder::claim(&options.out, &identity.owner(), options.overwrite, FILES)?;
    let mut writer = Writer::new(folder, &identity);
    for group in groups(0..identity.runs()) {
        writer.push(&gather(&shards, &group)?)?;
    }
    print(&writer.finish(true, None)?)
}

/// Checks that the tables of the shards contain their runs, with the same columns.
fn check(shards: &[Part<'_>]) -> Result<()> {
    let mut columns = None;
    for Part { runs, folder, .. } in shards {
        let path = folder.join(RESULTS);
        let (number, names) = table::shape(&path).map_err(CommandError::input)?;
        if number as u64 != runs.end - runs.start {
            let (path, runs) = (path.display(), runs.end - runs.start);
            return Err(CommandError::input(format!("{path}: the table has {number} rows; expected {runs}")));
        }
        ensure!(columns.get_or_insert_with(|| names.clone()) == &names, other_columns(folder));
    }
    Ok(())
}

/// The rows of `runs`, from all shards that have some of them.
fn gather(shards: &[Part<'_>], runs: &Range<u64>) -> Result<DataFrame> {
    let mut gathered = DataFrame::default();
    for Part { runs: own, folder, .. } in shards {
        let (start, end) = (own.start.max(runs.start), own.end.min(runs.end));
        if start >= end {
            continue;
        }
        let slice = ((start - own.start) as usize, (end - start) as usize);
        let part = table::read(&folder.join(RESULTS), slice).map_err(CommandError::input)?;
        if gathered.width() == 0 {
            gathered = part;
        } else {
            gathered.vstack_mut(&part).map_err(|_| other_columns(folder))?;
        }
    }
    gathered.rechunk_mut();
    Ok(gathered)
}

fn other_columns(folder: &Path) -> CommandError {
    CommandError::input(format!("{}: the table has other columns", folder.join(RESULTS).display()))
}

/// Checks every combination of the specification; returns the identity with all files that they read, and the number of
/// runs whose values are known not to fit together.
fn identity(specification: &Specification, shard: Option<Shard>, cache: &Cache) -> Result<(Identity, u64)> {
    let mut calibrations = BTreeMap::new();
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let unsupported = specification.validate(cache, |resolved| {
        let (device, stack) = (&resolved.device, &resolved.stack);
        calibrations.insert(device.id.clone(), device.digest.clone());
        calibrations.insert(stack.id.clone(), stack.digest.clone());
        let scenario = &resolved.scenario;
        let model = Path::new(&scenario.model);
        let trace = scenario.trace.as_deref().map(|named| trace_file(named).0);
        let apps = match &scenario.apps {
            Some(PhoneApps::Table(named)) => Some(trace_file(named).0),
            _ => None,
        };
        let read = [workload::is_file(&scenario.model).then_some(model), trace.as_deref(), apps.as_deref()];
        for path in read.into_iter().flatten() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Entry::Vacant(entry) = files.entry(name) {
                let bytes =
                    std::fs::read(path).map_err(|error| CommandError::input(format!("{}: {error}", path.display())))?;
                entry.insert(digest(&String::from_utf8_lossy(&bytes)));
            }
        }
        Ok(())
    })?;
    let whole: Map<String, Value> = serde_json::from_value(json!({
        "command": "sweep", "version": env!("CARGO_PKG_VERSION"), "specification": specification.to_json(),
        "runs": specification.runs(), "calibrations": calibrations, "files": files,
    }))
    .unwrap_or_default();
    Ok((Identity::of(whole, shard), unsupported))
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
