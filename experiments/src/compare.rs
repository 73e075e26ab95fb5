//! `haversack compare`: what moved between two results, the farthest first.
//!
//! Cells of reproductions are matched by their ids, runs of sweeps by the keys of their scenarios. Beside them stand the
//! changes of what the results were made with, as their `run.json` has it.

mod record;
mod report;
mod rows;
mod side;

use std::path::PathBuf;

use clap::Args;

use crate::error::CommandError;
use crate::output::{Format, print, print_json};
use record::RecordChanges;
use rows::RowChanges;
use side::Side;

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
pub fn run(options: &CompareOptions) -> Result<(), CommandError> {
    let (before, after) = (Side::read(&options.before)?, Side::read(&options.after)?);
    let record = RecordChanges::new(before.record.as_ref(), after.record.as_ref());
    let rows = match (&before.table, &after.table) {
        (None, None) => None,
        (Some(a), Some(b)) if a.kind() == b.kind() => Some(RowChanges::new(a, b)?),
        (a, b) => {
            let what = |table: &Option<rows::Table>| table.as_ref().map_or("no rows", |table| table.kind());
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
