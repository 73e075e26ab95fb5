//! `haversack compare`: what moved between two results, the farthest first.
//!
//! Cells of reproductions are matched by their ids, runs of sweeps by the keys of their scenarios. Beside them stand the
//! changes of what the results were made with, as their `run.json` has it.

mod record;
mod report;
mod rows;

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use crate::error::{CommandError, Result};
use crate::output::{Format, print, print_json};
use crate::reproduce::CELLS;
use crate::sweep::RESULTS;
use crate::work::RECORD;
use record::RecordChanges;
use rows::{RowChanges, Table};

/// What `compare` is asked for.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Examples:\n  haversack compare before after\n  haversack compare docs/results.csv out/cells.csv --common --fail-on-change"
)]
pub struct CompareOptions {
    /// A folder of `reproduce` or `sweep`, its run.json or its table (cells.csv, results.parquet)
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,
    /// Another of the same kind
    #[arg(value_name = "AFTER")]
    pub after: PathBuf,
    /// Ends with exit code 1 if anything moved: a row, or where neither has rows what they were made with. Accuracies count
    /// only if they come or go: what is learned hangs on the machine's instruction set
    #[arg(long)]
    pub fail_on_change: bool,
    /// Compares only rows that both have
    #[arg(long)]
    pub common: bool,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Prints what moved.
///
/// # Errors
/// Results that cannot be read or are of different kinds; rows that moved, if that was asked for.
pub fn run(options: &CompareOptions) -> Result<()> {
    let (before, after) = (Side::read(&options.before)?, Side::read(&options.after)?);
    let record = RecordChanges::new(before.record.as_ref(), after.record.as_ref());
    let rows = match (&before.table, &after.table) {
        (None, None) => None,
        (Some(a), Some(b)) if a.kind == b.kind => Some(RowChanges::new(a, b)?),
        (a, b) => {
            let what = |table: &Option<Table>| table.as_ref().map_or("no rows", |table| table.kind);
            let (one, other) = (options.before.display(), options.after.display());
            let message = format!("{one} has {} and {other} has {}; expected two of a kind", what(a), what(b));
            return Err(CommandError::input(message));
        }
    };
    match options.format {
        Format::Text => print(&report::text(&record, rows.as_ref(), options.common))?,
        Format::Json => print_json(&report::json(options, &record, rows.as_ref()))?,
    }
    let changes = rows.as_ref().map_or(record.number(), |rows| rows.number(options.common));
    if options.fail_on_change && changes > 0 {
        let what = if rows.is_some() { "rows moved" } else { "changes" };
        return Err(CommandError::failed(format!("{changes} {what}, and --fail-on-change was given")));
    }
    Ok(())
}

/// A result.
struct Side {
    /// Its `run.json`.
    record: Option<Value>,
    table: Option<Table>,
}

impl Side {
    /// Reads a folder, the record of one, or a table alone.
    fn read(path: &Path) -> Result<Self> {
        let wrong = |why: String| CommandError::input(format!("{}: {why}", path.display()));
        let expected = format!("a folder of `reproduce` or `sweep`, its {RECORD}, a cells file (.csv) or a {RESULTS}");
        let folder = if path.is_dir() {
            path
        } else if !path.is_file() {
            return Err(wrong(format!("no such file or folder; expected {expected}")));
        } else if path.extension().is_some_and(|extension| extension == "json") {
            path.parent().unwrap_or(path)
        } else if path.extension().is_some_and(|extension| extension == "parquet") {
            return Ok(Self { record: None, table: Some(Table::of_runs(path)?) });
        } else {
            return Ok(Self { record: None, table: Some(Table::of_cells(path)?) });
        };
        let named = if path.is_dir() { folder.join(RECORD) } else { path.to_path_buf() };
        let record = match std::fs::read_to_string(&named) {
            Ok(text) => Some(
                serde_json::from_str::<Value>(&text).map_err(|error| wrong(format!("{error}; expected {expected}")))?,
            ),
            Err(_) => None,
        };
        let [cells, results] = [CELLS, RESULTS].map(|name| folder.join(name));
        let table = match (cells.is_file(), results.is_file()) {
            (true, _) => Some(Table::of_cells(&cells)?),
            (_, true) => Some(Table::of_runs(&results)?),
            _ => None,
        };
        if record.is_none() && table.is_none() {
            return Err(wrong(format!("holds no results; expected {expected}")));
        }
        Ok(Self { record, table })
    }
}
