//! The table of a sweep as data frames: from rows, or from a shard's file, one group of runs at a time.

use std::fs::File;
use std::path::Path;

use haversack_memory::phone::Counters;
use haversack_reports::{FileError, FrameError};
use polars::prelude::{
    Column, DataFrame, DataType, Float64Type, IntoColumn, IntoSeries, ListBuilderTrait, ListPrimitiveChunkedBuilder,
    ParquetReader, PolarsResult, SerReader, UInt64Type,
};
use serde_json::{Map, Value, json};

use super::Row;
use crate::Result;
use crate::rows::{Rows, column};
use crate::run::{PhoneResults, Results};
use crate::scenario::Cell;

/// Figures that come after the others, in this order.
const LAST: [&str; 5] = ["exceeds_ram", "micro_batches", "iterations_s", "breakdown", "bound_by"];

/// Reads a figure of a phone in use.
type OfPhone = fn(&PhoneResults) -> f64;

/// Figures of a phone in use, which are in the table if the sweep has a system, apps or a trace.
const OF_PHONE: [(&str, OfPhone); 9] = [
    ("psi_some_s", |p| p.psi_some_s),
    ("psi_full_s", |p| p.psi_full_s),
    ("unavailable_bytes", |p| p.unavailable_bytes as f64),
    ("trainer_stall_s", |p| p.trainer_stalls.total_s),
    ("system_stall_s", |p| p.system_stalls.total_s),
    ("app_stall_s", |p| p.app_stalls.total_s),
    ("app_stall_longest_s", |p| p.app_stalls.longest_s),
    ("app_launches", |p| p.launches.count as f64),
    ("app_launch_mean_s", |p| p.launches.mean_s()),
];

/// The columns of phones in use: the figures, every counter of the kernel, the reasons of kills and
/// the planned budgets.
fn of_phones(rows: &[Row]) -> Vec<Column> {
    let phones = || rows.iter().map(|row| row.results.as_ref().and_then(|results| results.phone.as_ref()));
    let figure = |(name, of): &(&str, OfPhone)| column(name, phones().map(|phone| phone.map(of)).collect::<Vec<_>>());
    let mut columns: Vec<Column> = OF_PHONE.iter().map(figure).collect();
    for (place, (name, _)) in Counters::default().each().enumerate() {
        let count = |phone: &PhoneResults| phone.vmstat.get(place).map(|(_, count)| *count);
        columns.push(column(name, phones().map(|phone| phone.and_then(count)).collect::<Vec<_>>()));
    }
    let reasons = |phone: &PhoneResults| {
        let reasons: Vec<&str> = phone.killed.iter().map(|kill| kill.reason.as_str()).collect();
        reasons.join(",")
    };
    columns.push(column("kill_reasons", phones().map(|phone| phone.map(reasons)).collect::<Vec<_>>()));
    let planned = |phone: &PhoneResults| json!(phone.planned_budgets_bytes);
    let planned: Vec<Option<Value>> = phones().map(|phone| phone.map(planned)).collect();
    columns.push(list("planned_budgets_bytes", planned.iter().map(Option::as_ref)));
    columns
}

/// The table of `rows`: the run's number, every key of the scenario, every figure, and the status; figures of phones in
/// use where there may be any.
pub(super) fn table(rows: &[Row], on_phones: bool) -> Result<DataFrame> {
    let frame = Rows::of(rows)
        .with("run", |row| row.run)
        .and(scenarios(rows))
        .and(figures(rows))
        .and(if on_phones { of_phones(rows) } else { Vec::new() })
        .with("status", |row| row.status.word())
        .with("least_memory_bytes", |row| row.least_memory_bytes)
        .with("reason", |row| row.reason.as_deref());
    Ok(frame.frame()?)
}

/// The columns of the figures that every run has, by the names of their JSON.
fn figures(rows: &[Row]) -> Vec<Column> {
    let found: Vec<Option<Map<String, Value>>> =
        rows.iter().map(|row| row.results.as_ref().map(|results| flat(results.to_json()))).collect();
    let names = flat(Results::zero().to_json()).into_iter();
    let mut names: Vec<(String, Value)> = names.filter(|(name, _)| name != "phone").collect();
    names.sort_by_key(|(name, _)| LAST.iter().position(|last| name.starts_with(last)).map_or(0, |place| place + 1));
    let figure = |(name, zero): (String, Value)| {
        let cells = || found.iter().map(|figures| figures.as_ref()?.get(&name));
        match zero {
            Value::Array(_) => list(&name, cells()),
            Value::Bool(_) => column(&name, cells().map(|cell| Some(cell?.to_string())).collect::<Vec<_>>()),
            Value::String(_) => column(&name, cells().map(|cell| Some(cell?.as_str()?.to_owned())).collect::<Vec<_>>()),
            Value::Null => column(&name, cells().map(|cell| cell?.as_f64()).collect::<Vec<_>>()),
            Value::Number(number) if number.is_f64() => {
                column(&name, cells().map(|cell| cell?.as_f64()).collect::<Vec<_>>())
            }
            _ => column(&name, cells().map(|cell| cell?.as_u64()).collect::<Vec<_>>()),
        }
    };
    names.into_iter().map(figure).collect()
}

/// The figures, with the contents of nested objects under dotted names.
fn flat(figures: Map<String, Value>) -> Map<String, Value> {
    let mut flat = Map::new();
    for (name, value) in figures {
        match value {
            Value::Object(parts) if name != "phone" => {
                flat.extend(parts.into_iter().map(|(part, value)| (format!("{name}_{part}"), value)));
            }
            value => {
                flat.insert(name, value);
            }
        }
    }
    flat
}

/// A column of lists of numbers.
fn list<'v>(name: &str, cells: impl Iterator<Item = Option<&'v Value>>) -> Column {
    let lists: Vec<Option<&Vec<Value>>> = cells.map(|cell| cell?.as_array()).collect();
    let numbers = lists.iter().flatten().map(|list| list.len()).sum();
    // Seconds, joules and shares are decimal numbers, as opposed to bytes and counts.
    let is_part = ["breakdown", "bound_by"].iter().any(|whole| name.starts_with(whole));
    if is_part || ["_s", "_j", "_share"].iter().any(|unit| name.ends_with(unit)) {
        let (rows, kind) = (lists.len(), DataType::Float64);
        let mut column = ListPrimitiveChunkedBuilder::<Float64Type>::new(name.into(), rows, numbers, kind);
        lists.iter().for_each(|list| column.append_opt_slice(numbers_of(*list, Value::as_f64).as_deref()));
        column.finish().into_series().into_column()
    } else {
        let (rows, kind) = (lists.len(), DataType::UInt64);
        let mut column = ListPrimitiveChunkedBuilder::<UInt64Type>::new(name.into(), rows, numbers, kind);
        lists.iter().for_each(|list| column.append_opt_slice(numbers_of(*list, Value::as_u64).as_deref()));
        column.finish().into_series().into_column()
    }
}

fn numbers_of<T>(list: Option<&Vec<Value>>, number: fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    Some(list?.iter().filter_map(number).collect())
}

/// The columns of the scenarios' keys, with all defaults filled in.
fn scenarios(rows: &[Row]) -> Vec<Column> {
    let names = rows.first().map_or(&[][..], |row| &row.scenario);
    let cells = |place: usize| rows.iter().filter_map(move |row| Some(row.scenario.get(place)?.1.clone()));
    names.iter().enumerate().map(|(place, (name, _))| of_cells(name, cells(place).collect())).collect()
}

/// A key's column; its cells have one type.
fn of_cells(name: &str, cells: Vec<Cell>) -> Column {
    match cells.first() {
        Some(Cell::Whole(_)) => column(name, cells.iter().map(Cell::whole).collect::<Vec<_>>()),
        Some(Cell::Signed(_)) => column(name, cells.iter().map(Cell::signed).collect::<Vec<_>>()),
        Some(Cell::Real(_)) => column(name, cells.iter().map(Cell::real).collect::<Vec<_>>()),
        _ => column(name, cells.into_iter().map(Cell::into_text).collect::<Vec<_>>()),
    }
}

/// The rows `slice` of the file at `path`, given by the index of the first and their number.
pub(super) fn read(path: &Path, slice: (usize, usize)) -> Result<DataFrame, FrameError> {
    let frame = open(path)?.with_slice(Some(slice)).set_rechunk(true).finish();
    frame.map_err(|reason| FrameError::Decode { path: path.to_path_buf(), reason })
}

/// The number of rows in the file at `path`, and the names of its columns.
pub(super) fn shape(path: &Path) -> Result<(usize, Vec<String>), FrameError> {
    let mut reader = open(path)?;
    let mut read = || -> PolarsResult<(usize, Vec<String>)> {
        let names = reader.schema()?.iter_names().map(ToString::to_string).collect();
        Ok((reader.num_rows()?, names))
    };
    read().map_err(|reason| FrameError::Decode { path: path.to_path_buf(), reason })
}

fn open(path: &Path) -> Result<ParquetReader<File>, FrameError> {
    let file = File::open(path);
    file.map(ParquetReader::new).map_err(|source| FileError { action: "read", path: path.to_path_buf(), source }.into())
}
