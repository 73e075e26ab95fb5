//! `haversack trace import`: reads the given files and those in folders into tables, and prints a report.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use haversack_devices::ensure;
use haversack_reports::Part;
use haversack_traces::import::{self, Findings, Kind, Options, Reason, Report};
use haversack_traces::{ImportError, Row};
use serde_json::{Value, json};

use super::options::ImportOptions;
use crate::output::{Format, check_apart, join, note, print, print_json};
use crate::progress::{Amount, Progress};
use crate::texts::text;
use crate::trace_table::{Apps, Counters, Table, check_beside, place_beside};
use crate::work::pool;
use crate::{CommandError, Result};

/// The paths of the tables.
struct Places {
    apps: Option<PathBuf>,
    counters: Option<PathBuf>,
}

impl Places {
    /// The tables of `kind`: its main one is at `out`, the other in the same folder.
    fn new(kind: Kind, out: &Path) -> Self {
        let beside = |what: &str| place_beside(out, what);
        let own = Some(out.to_path_buf());
        match kind {
            Kind::Perfetto => Self { apps: Some(beside("apps")), counters: own },
            kind if !kind.has_apps() => Self { apps: None, counters: own },
            Kind::Carat => Self { apps: own, counters: Some(beside("state")) },
            kind => Self { apps: own, counters: kind.has_counters().then(|| beside("memory")) },
        }
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.apps.iter().chain(&self.counters)
    }
}

/// Imports, writes the tables and prints the report.
///
/// # Errors
/// A file that cannot be read, or is an archive; a bad line if the import is strict; input that yields no row, and
/// a table that cannot be written. For a truncated compressed file, the error comes after the rows before the
/// break are written.
pub(super) fn import(asked: &ImportOptions) -> Result<()> {
    let reading = asked.reading()?;
    let inputs = Inputs::find(&asked.inputs)?;
    let places = Places::new(asked.kind, &asked.out);
    check_apart(places.all().map(|path| ("--out", Some(path.as_path()))), &inputs.files)?;
    places.all().try_for_each(|place| check_beside(&asked.out, place))?;
    let (report, tables) = pool(asked.jobs)?.install(|| read(reading, &inputs, &places))?;
    if inputs.left > 0 {
        note(&format!("{} files of the folders are not parts and were left alone", inputs.left));
    }
    match asked.format {
        Format::Text => print(&to_text(asked.kind, &report, &tables)?),
        Format::Json => print_json(&to_json(asked.kind, &report, &tables)?),
    }?;
    let damaged = report.findings.get(&Reason::DamagedFile).and_then(|found| found.first.first());
    damaged.map_or(Ok(()), |damage| Err(CommandError::input(damage)))
}

/// The error that the input yielded no row, with the first line that could not be read.
fn nothing(kind: Kind, report: &Report) -> CommandError {
    let bad = report.findings.iter().find(|(reason, _)| reason.is_bad()).and_then(|(_, found)| found.first.first());
    let bad = bad.map_or_else(String::new, |bad| format!(": {bad}"));
    CommandError::input(format!("no row came out of {} lines; is it --kind {}?{bad}", report.lines, kind.word()))
}

/// Reads all files into the tables; the report, and the rows of each table.
fn read(options: Options, inputs: &Inputs, places: &Places) -> Result<(Report, Vec<(PathBuf, u64)>)> {
    let mut apps = places.apps.as_deref().map(Table::<Apps>::create).transpose()?;
    let mut counters = places.counters.as_deref().map(Table::<Counters>::create).transpose()?;
    let bar = Progress::new(Amount::Bytes, inputs.bytes, 0);
    let mut sink = |row: Row<'_>| {
        match (row, &mut apps, &mut counters) {
            (Row::App(row), Some(apps), _) => apps.push(&row)?,
            (Row::Counter(row), _, Some(counters)) => counters.push(&row)?,
            // A kind without this table yields no such rows.
            _ => {}
        }
        Ok(())
    };
    let kind = options.kind;
    let mut import = import::Import::new(options, &mut sink);
    let open = |path: &PathBuf| (path.display().to_string(), File::open(path).map(|file| bar.reading(file)));
    import.read_all(inputs.files.iter().map(open)).map_err(from_import)?;
    let report = import.finish().map_err(from_import)?;
    bar.finish();
    ensure!(report.app_rows + report.counter_rows > 0, nothing(kind, &report));
    let finished = [apps.map(Table::finish).transpose()?, counters.map(Table::finish).transpose()?];
    let (files, rows): (Vec<Part>, Vec<u64>) = finished.into_iter().flatten().unzip();
    Part::take_names(files)?;
    Ok((report, places.all().cloned().zip(rows).collect()))
}

fn from_import(error: ImportError) -> CommandError {
    match error {
        ImportError::Sink(_) => CommandError::failed(error),
        error => CommandError::input(error),
    }
}

fn to_json(kind: Kind, report: &Report, tables: &[(PathBuf, u64)]) -> Result<Value> {
    let tables: Vec<Value> =
        tables.iter().map(|(path, rows)| json!({ "file": path.display().to_string(), "rows": rows })).collect();
    let mut value = json!({ "kind": kind.word(), "tables": tables });
    let report = serde_json::to_value(report).map_err(CommandError::failed)?;
    join(&mut value, report);
    Ok(value)
}

/// The report as people read it: the JSON with the findings in words.
fn to_text(kind: Kind, report: &Report, tables: &[(PathBuf, u64)]) -> Result<String> {
    let mut shown = to_json(kind, report, tables)?;
    let finding = |(reason, found): (&Reason, &Findings)| {
        let first: Vec<String> = found.first.iter().map(ToString::to_string).collect();
        json!({ "reason": reason.words(), "is_bad": reason.is_bad(), "count": found.count, "first": first })
    };
    shown["shown"] = report.findings.iter().map(finding).collect();
    Ok(text(include_str!("../../texts/trace-import.txt"), &shown))
}

/// The files to read, in order, and those in folders that are skipped.
#[derive(Debug, Default)]
struct Inputs {
    files: Vec<PathBuf>,
    left: usize,
    bytes: u64,
}

impl Inputs {
    /// Collects the files of all paths.
    fn find(paths: &[PathBuf]) -> Result<Self> {
        let mut inputs = Self::default();
        paths.iter().try_for_each(|path| inputs.take(path, true))?;
        if inputs.files.is_empty() {
            let folders = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
            return Err(CommandError::input(format!(
                "{folders}: expected files part-*, *.json, *.jsonl or *.gz, found none"
            )));
        }
        Ok(inputs)
    }

    /// Adds a file that is named or looks like a part, and the files of a folder.
    fn take(&mut self, path: &Path, is_named: bool) -> Result<()> {
        let failed = |error| CommandError::input(format!("{} cannot be read: {error}", path.display()));
        let found = fs::metadata(path).map_err(failed)?;
        if found.is_dir() {
            let entries = fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(failed)?;
            let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
            paths.sort();
            return paths.iter().try_for_each(|path| self.take(path, false));
        }
        if is_named || is_part(path) {
            self.bytes += found.len();
            self.files.push(path.to_path_buf());
        } else {
            self.left += 1;
        }
        Ok(())
    }
}

/// Whether a file of a folder looks like a part of a data set.
fn is_part(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let ending = path.extension().map(|ending| ending.to_string_lossy()).unwrap_or_default();
    name.starts_with("part-") || matches!(ending.as_ref(), "json" | "jsonl" | "gz")
}
