//! `haversack compare`: the differences between two results, largest change first.
//!
//! Cells of reproductions are matched by their ids, runs of sweeps by the keys of their scenarios. Also lists changes
//! of the inputs of the results, from their `run.json`.
//!
//! Compared inputs: version, seed, digests and fitted constants.

mod report;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::Args;
use haversack_devices::ensure;
use rows::{RowChanges, Table};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::output::Format;
use crate::reproduce::CELLS;
use crate::sweep::RESULTS;
use crate::work::RECORD;
use crate::{CommandError, Result};

/// The options of `compare`.
#[derive(Clone, Debug, Args)]
#[command(after_help = include_str!("../help/compare.txt"))]
pub struct CompareOptions {
    /// Folder of `reproduce` or `sweep`, its run.json or its table (cells.csv, results.parquet)
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,
    /// Another result of the same kind
    #[arg(value_name = "AFTER")]
    pub after: PathBuf,
    /// Exit with code 1 if anything changed: a row, or, if neither has rows, the inputs
    #[arg(long)]
    pub fail_on_change: bool,
    /// Compare only rows that both have
    #[arg(long)]
    pub common: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Prints the differences.
///
/// # Errors
/// Results that cannot be read or are of different kinds; changed rows, with `--fail-on-change`.
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
    let text = || report::text(options, &record, rows.as_ref());
    options.format.print(text, || report::json(options, &record, rows.as_ref()))?;
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
    /// Reads a folder, a record, or only a table.
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
        ensure!(record.is_some() || table.is_some(), wrong(format!("holds no results; expected {expected}")));
        Ok(Self { record, table })
    }
}

/// Keys of a record with a single value.
const PLAIN: [&str; 6] = ["command", "version", "seed", "full", "shard", "selection"];
/// The key with the specification of a sweep, by key.
const SPECIFICATION: &str = "specification";
/// Keys with files and their digests.
const DIGESTS: [&str; 3] = ["calibrations", "reference", "files"];
/// Constants that were fitted.
const CONSTANTS: &str = "fitted_constants";

/// A value before and after; null if it is missing.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Pair {
    before: Value,
    after: Value,
}

/// The differences of two records; empty if one is missing.
#[derive(Default)]
struct RecordChanges {
    /// By key.
    plain: Vec<(String, Pair)>,
    /// By key.
    specification: Vec<(String, Pair)>,
    /// By file.
    digests: Vec<(String, Pair)>,
    /// By file and name.
    constants: Vec<(String, Pair)>,
}

impl RecordChanges {
    fn new(before: Option<&Value>, after: Option<&Value>) -> Self {
        let (Some(before), Some(after)) = (before, after) else { return Self::default() };
        let of = |key: &str| [before, after].map(|record| record.get(key).cloned().unwrap_or_default());
        let plain = PLAIN.iter().map(|key| ((*key).to_owned(), of(key)));
        let maps = |keys: &[&str]| keys.iter().flat_map(|key| pairs(of(key).map(|value| map(&value)))).collect();
        Self {
            plain: changed(plain),
            specification: changed::<Vec<_>>(maps(&[SPECIFICATION])),
            digests: changed::<Vec<_>>(maps(&DIGESTS)),
            constants: changed(pairs(of(CONSTANTS).map(|list| constants(&list)))),
        }
    }

    /// The number of differences.
    fn number(&self) -> usize {
        self.plain.len() + self.specification.len() + self.digests.len() + self.constants.len()
    }

    fn to_json(&self) -> Value {
        let named = |changes: &[(String, Pair)]| -> Map<String, Value> {
            changes.iter().map(|(name, pair)| (name.clone(), json!(pair))).collect()
        };
        let mut all = named(&self.plain);
        all.insert(SPECIFICATION.to_owned(), Value::Object(named(&self.specification)));
        all.insert("digests".to_owned(), Value::Object(named(&self.digests)));
        all.insert(CONSTANTS.to_owned(), Value::Object(named(&self.constants)));
        Value::Object(all)
    }
}

fn map(value: &Value) -> BTreeMap<String, Value> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Fitted constants by file and name.
fn constants(list: &Value) -> BTreeMap<String, Value> {
    let text = |constant: &Value, key: &str| constant.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let named = |constant: &Value| {
        let name = format!("{} {} ({})", text(constant, "file"), text(constant, "name"), text(constant, "unit"));
        (name, constant.get("value").cloned().unwrap_or_default())
    };
    list.as_array().into_iter().flatten().map(named).collect()
}

/// Every name of either with both values.
fn pairs([before, after]: [BTreeMap<String, Value>; 2]) -> Vec<(String, [Value; 2])> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let get = |map: &BTreeMap<String, Value>, name: &String| map.get(name).cloned().unwrap_or_default();
    names.into_iter().map(|name| (name.clone(), [get(&before, name), get(&after, name)])).collect()
}

/// The pairs whose values differ.
fn changed<I: IntoIterator<Item = (String, [Value; 2])>>(pairs: I) -> Vec<(String, Pair)> {
    let differ = pairs.into_iter().filter(|(_, [before, after])| before != after);
    differ.map(|(name, [before, after])| (name, Pair { before, after })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_and_what_is_the_same_is_not() {
        let record = |version: &str, digest: &str, value: f64| {
            json!({
                "command": "reproduce", "version": version, "seed": 1,
                "calibrations": { "a.toml": "1", "b.toml": digest },
                "fitted_constants": [{ "name": "gpu.launch", "value": value, "unit": "us", "file": "a.toml" }],
            })
        };
        let (one, other) = (record("0.1", "2", 10.0), record("0.2", "3", 12.5));
        let changes = RecordChanges::new(Some(&one), Some(&other));
        let pair = |name: &str, before, after| (name.to_owned(), Pair { before, after });
        assert_eq!(changes.plain, [pair("version", json!("0.1"), json!("0.2"))]);
        assert_eq!(changes.digests, [pair("b.toml", json!("2"), json!("3"))]);
        assert_eq!(changes.constants, [pair("a.toml gpu.launch (us)", json!(10.0), json!(12.5))]);
        assert_eq!((changes.number(), RecordChanges::new(Some(&one), Some(&one)).number()), (3, 0));
        assert_eq!(RecordChanges::new(Some(&one), None).number(), 0, "beside nothing nothing has changed");
    }
}
