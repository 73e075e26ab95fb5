//! One of the two results: its record and its rows, as far as they are there.

use std::path::Path;

use haversack_reports::frame::read_parquet;
use serde_json::Value;

use super::rows::Table;
use crate::error::CommandError;
use crate::reproduce::CELLS;
use crate::sweep::RESULTS;
use crate::work::RECORD;

/// A result.
pub(super) struct Side {
    /// Its `run.json`.
    pub(super) record: Option<Value>,
    pub(super) table: Option<Table>,
}

impl Side {
    /// Reads a folder, the record of one, or a table alone.
    pub(super) fn read(path: &Path) -> Result<Self, CommandError> {
        let wrong = |why: String| CommandError::input(format!("{}: {why}", path.display()));
        let expected = format!("a folder of `reproduce` or `sweep`, its {RECORD}, a cells file (.csv) or a {RESULTS}");
        let folder = if path.is_dir() {
            path
        } else if !path.is_file() {
            return Err(wrong(format!("no such file or folder; expected {expected}")));
        } else if path.extension().is_some_and(|extension| extension == "json") {
            path.parent().unwrap_or(path)
        } else if path.extension().is_some_and(|extension| extension == "parquet") {
            return Ok(Self { record: None, table: Some(runs(path)?) });
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
            (_, true) => Some(runs(&results)?),
            _ => None,
        };
        if record.is_none() && table.is_none() {
            return Err(wrong(format!("holds no results; expected {expected}")));
        }
        Ok(Self { record, table })
    }
}

fn runs(path: &Path) -> Result<Table, CommandError> {
    Ok(Table::Runs(read_parquet(path).map_err(CommandError::input)?))
}
