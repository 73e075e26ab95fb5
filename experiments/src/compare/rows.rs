//! The rows of both results, matched by their identities, and the changes of each.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use haversack_reports::frame::{read_parquet, texts};
use polars::prelude::{DataFrame, IntoColumn, NamedFrom, Series};

use crate::{CommandError, Key, Result};

/// The column that identifies a cell.
const ID: &str = "id";
/// The columns of a cell that are compared.
const OF_CELLS: [&str; 2] = ["simulated", "verdict"];

/// A table whose columns are read on demand, so that only one at a time is text.
pub(super) struct Table {
    /// The kind of its rows.
    pub(super) kind: &'static str,
    frame: DataFrame,
}

impl Table {
    /// The runs of a sweep in the file at `path`.
    pub(super) fn of_runs(path: &Path) -> Result<Self> {
        Ok(Self { kind: "runs", frame: read_parquet(path).map_err(CommandError::input)? })
    }

    /// The cells in the CSV file at `path`.
    pub(super) fn of_cells(path: &Path) -> Result<Self> {
        let wrong = |why: String| CommandError::input(format!("{}: {why}", path.display()));
        let mut reader = csv::Reader::from_path(path).map_err(|error| wrong(error.to_string()))?;
        let header = reader.headers().map_err(|error| wrong(error.to_string()))?.clone();
        let place = |name: &str| header.iter().position(|found| found == name);
        if place(ID).is_none() || place(OF_CELLS[0]).is_none() {
            return Err(wrong(format!("expected the columns {ID} and {} of cells", OF_CELLS[0])));
        }
        let records: Vec<csv::StringRecord> =
            reader.records().collect::<Result<_, _>>().map_err(|error| wrong(error.to_string()))?;
        let column = |name: &'static str| {
            let place = place(name)?;
            let cell =
                |record: &csv::StringRecord| record.get(place).filter(|cell| !cell.is_empty()).map(str::to_owned);
            Some((name, records.iter().map(cell).collect()))
        };
        Self::cells([ID].iter().chain(&OF_CELLS).filter_map(|name| column(name)).collect())
    }

    fn cells(columns: Vec<(&str, Vec<Option<String>>)>) -> Result<Self> {
        let columns = columns.into_iter().map(|(name, cells)| Series::new(name.into(), cells).into_column()).collect();
        Ok(Self { kind: "cells", frame: DataFrame::new_infer_height(columns).map_err(CommandError::failed)? })
    }

    /// The identity of each row: the id of a cell, the values of `keys` of a run.
    fn ids(&self, keys: &[&str]) -> Result<Vec<String>> {
        if let Some(ids) = self.column(ID)? {
            return Ok(numbered(ids.into_iter().map(Option::unwrap_or_default).collect()));
        }
        let mut ids = vec![String::new(); self.frame.height()];
        for key in keys {
            for (id, cell) in ids.iter_mut().zip(self.column(key)?.unwrap_or_default()) {
                let Some(cell) = cell else { continue };
                let comma = if id.is_empty() { "" } else { ", " };
                id.push_str(&format!("{comma}{key} = {cell}"));
            }
        }
        ids.iter_mut().filter(|id| id.is_empty()).for_each(|id| id.push_str("the run"));
        Ok(numbered(ids))
    }

    /// The columns that are compared: the identity of a row and the number of a run are not results.
    fn names(&self) -> Vec<&str> {
        let names = self.frame.columns().iter().map(|column| column.name().as_str());
        names.filter(|name| Key::named(name).is_none() && ![ID, "run"].contains(name)).collect()
    }

    /// The cells of a column; `None` if the table has none of that name.
    fn column(&self, name: &str) -> Result<Option<Vec<Option<String>>>> {
        let column = self.frame.column(name).ok();
        Ok(column.map(texts).transpose()?.map(Iterator::collect))
    }
}

/// The keys whose values distinguish the runs of two tables.
fn telling_keys(before: &Table, after: &Table) -> Result<Vec<&'static str>> {
    let mut telling = Vec::new();
    for key in Key::ALL.map(Key::name) {
        let columns = [before.column(key)?, after.column(key)?];
        let mut cells = columns.iter().flatten().flatten();
        let first = cells.next();
        if cells.any(|cell| Some(cell) != first) {
            telling.push(key);
        }
    }
    Ok(telling)
}

/// Makes ids unique: the second of two equal ones becomes `… (2)`.
fn numbered(mut ids: Vec<String>) -> Vec<String> {
    let mut seen: HashMap<String, u64> = HashMap::new();
    for id in &mut ids {
        let times = seen.entry(id.clone()).or_default();
        *times += 1;
        if *times > 1 {
            id.push_str(&format!(" ({times})"));
        }
    }
    ids
}

/// A cell that changed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) column: String,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

impl Change {
    /// The relative change of a number; `None` if either side is not a number.
    fn distance(&self) -> Option<f64> {
        let numbers = |text: &Option<String>| -> Option<Vec<f64>> {
            text.as_deref()?.split("..").map(|number| number.parse::<f64>().ok()).collect()
        };
        let (before, after) = (numbers(&self.before)?, numbers(&self.after)?);
        let moved = |(before, after): (&f64, &f64)| {
            let difference = (after - before).abs();
            if *before == 0.0 { difference } else { difference / before.abs() }
        };
        (before.len() == after.len())
            .then(|| before.iter().zip(&after).map(moved).fold(0.0, f64::max))
            .filter(|distance| !distance.is_nan())
    }
}

/// A row with a change.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moved {
    pub(super) id: String,
    /// The largest relative change of a number; infinite if one appeared or disappeared, or if no changed
    /// value is a number.
    pub(super) distance: f64,
    /// The changes, the largest first.
    pub(super) changes: Vec<Change>,
}

impl Moved {
    fn new(id: String, mut changes: Vec<Change>) -> Self {
        let far = |change: &Change| change.distance().unwrap_or(f64::NEG_INFINITY);
        changes.sort_by(|a, b| far(b).total_cmp(&far(a)));
        let came_or_went = changes.iter().any(|change| change.before.is_none() != change.after.is_none());
        let farthest = changes.first().and_then(Change::distance).filter(|_| !came_or_went);
        Self { id, distance: farthest.unwrap_or(f64::INFINITY), changes }
    }
}

/// The differences between two tables.
pub(super) struct RowChanges {
    pub(super) kind: &'static str,
    /// Rows that both have.
    pub(super) both: usize,
    /// The changed rows, the largest change first.
    pub(super) moved: Vec<Moved>,
    pub(super) only_before: Vec<String>,
    pub(super) only_after: Vec<String>,
    /// Columns that only one of them has.
    pub(super) columns: Vec<String>,
}

impl RowChanges {
    pub(super) fn new(before: &Table, after: &Table) -> Result<Self> {
        let keys = telling_keys(before, after)?;
        let (old_ids, new_ids) = (before.ids(&keys)?, after.ids(&keys)?);
        let places: HashMap<&str, usize> = new_ids.iter().enumerate().map(|(row, id)| (id.as_str(), row)).collect();
        let pairs: Vec<(usize, usize)> =
            old_ids.iter().enumerate().filter_map(|(row, id)| Some((row, *places.get(id.as_str())?))).collect();
        let mut changes: Vec<Vec<Change>> = vec![Vec::new(); pairs.len()];
        let mut columns: Vec<String> =
            after.names().into_iter().filter(|name| !before.names().contains(name)).map(str::to_owned).collect();
        for name in before.names() {
            let (Some(old), Some(new)) = (before.column(name)?, after.column(name)?) else {
                columns.push(name.to_owned());
                continue;
            };
            for ((a, b), changes) in pairs.iter().zip(&mut changes) {
                let (before, after) = (old.get(*a).cloned().flatten(), new.get(*b).cloned().flatten());
                if before != after {
                    changes.push(Change { column: name.to_owned(), before, after });
                }
            }
        }
        let changed = pairs.iter().zip(changes).filter(|(_, changes)| !changes.is_empty());
        let mut moved: Vec<Moved> =
            changed.map(|((row, _), changes)| Moved::new(old_ids[*row].clone(), changes)).collect();
        moved.sort_by(|a, b| b.distance.total_cmp(&a.distance));
        let only = |these: &[String], those: &[String]| {
            let known: HashSet<&String> = those.iter().collect();
            these.iter().filter(|id| !known.contains(id)).cloned().collect::<Vec<_>>()
        };
        let (only_before, only_after) = (only(&old_ids, &new_ids), only(&new_ids, &old_ids));
        Ok(Self { kind: before.kind, both: pairs.len(), moved, only_before, only_after, columns })
    }

    /// The number of rows that changed, appeared or disappeared; with `common`, only of those that changed.
    pub(super) fn number(&self, common: bool) -> usize {
        let one_sided = if common { 0 } else { self.only_before.len() + self.only_after.len() };
        self.moved.len() + one_sided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(rows: &[(&str, &str, &str)]) -> Table {
        let text = |cell: &str| (!cell.is_empty()).then(|| cell.to_owned());
        let columns = vec![
            (ID, rows.iter().map(|row| text(row.0)).collect()),
            ("simulated", rows.iter().map(|row| text(row.1)).collect()),
            ("verdict", rows.iter().map(|row| text(row.2)).collect()),
        ];
        Table::cells(columns).unwrap()
    }

    #[test]
    fn the_farthest_comes_first_and_rows_are_matched_by_id() {
        let before = cells(&[
            ("a", "100", "ok"),
            ("b", "2..8", "holds"),
            ("c", "5", "ok"),
            ("d", "", "not-modelled"),
            ("e", "true", "holds"),
            ("gone", "1", "ok"),
        ]);
        let after = cells(&[
            ("e", "false", "fails"),
            ("d", "7", "ok"),
            ("c", "5", "ok"),
            ("b", "2..10", "holds"),
            ("a", "110", "off"),
            ("new", "1", "ok"),
        ]);
        let changes = RowChanges::new(&before, &after).unwrap();
        let far: Vec<(&str, f64)> = changes.moved.iter().map(|moved| (moved.id.as_str(), moved.distance)).collect();
        // d appeared and e is not a number; (10 − 8) / 8 = 0.25; (110 − 100) / 100 = 0.1; c is unchanged.
        assert_eq!(far, [("d", f64::INFINITY), ("e", f64::INFINITY), ("b", 0.25), ("a", 0.1)]);
        assert_eq!((changes.both, changes.only_before.len(), changes.only_after.len()), (5, 1, 1));
        assert_eq!((changes.number(false), changes.number(true)), (6, 4));
        let columns: Vec<&str> = changes.moved[3].changes.iter().map(|change| change.column.as_str()).collect();
        assert_eq!(columns, ["simulated", "verdict"]);
    }

    #[test]
    fn ids_that_are_there_twice_are_told_apart() {
        let ids = ["a", "b", "a", "a"].map(str::to_owned).to_vec();
        assert_eq!(numbered(ids), ["a", "b", "a (2)", "a (3)"]);
    }
}
