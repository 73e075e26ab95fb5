//! The table of a sweep as data frames: from rows, or from a shard's file, a lot of runs at a time.

use std::fs::File;
use std::path::Path;

use haversack_memory::phone::Counters;
use haversack_reports::FileError;
use haversack_reports::frame::FrameError;
use polars::prelude::{
    Column, DataFrame, DataType, Float64Type, IntoColumn, IntoSeries, ListBuilderTrait, ListPrimitiveChunkedBuilder,
    NamedFrom, ParquetReader, PolarsResult, SerReader, Series, UInt64Type,
};

use super::{Row, Specification};
use crate::cache::Cache;
use crate::error::CommandError;
use crate::run::{PhoneResults, Results};
use crate::scenario::{Cell, Key};

/// The number of the run.
const RUN: &str = "run";

/// A figure of a run, and how it is read.
enum Figure {
    Real(fn(&Results) -> f64),
    Share(fn(&Results) -> Option<f64>),
    Whole(fn(&Results) -> u64),
}

/// The figures, in the order of the columns.
const FIGURES: [(&str, Figure); 23] = [
    ("iteration_time_s", Figure::Real(|r| r.iteration_time_s)),
    ("forward_s", Figure::Real(|r| r.forward_s)),
    ("backward_s", Figure::Real(|r| r.backward_s)),
    ("update_s", Figure::Real(|r| r.update_s)),
    ("samples_per_s", Figure::Real(|r| r.samples_per_s)),
    ("peak_memory_bytes", Figure::Whole(|r| r.peak_memory_bytes)),
    ("peak_growth_bytes", Figure::Whole(|r| r.peak_growth_bytes)),
    ("reserved_bytes", Figure::Whole(|r| r.reserved_bytes)),
    ("saved_peak_bytes", Figure::Whole(|r| r.saved_peak_bytes)),
    ("staging_bytes", Figure::Whole(|r| r.staging_bytes)),
    ("fragmentation_bytes", Figure::Whole(|r| r.fragmentation_bytes)),
    ("mean_iteration_s", Figure::Real(|r| r.mean_iteration_s)),
    ("trace_held_s", Figure::Real(|r| r.trace_held_s)),
    ("trace_assumed_share", Figure::Share(|r| r.trace_assumed_share)),
    ("uninterruptible_s", Figure::Real(|r| r.uninterruptible_s)),
    ("runnable_s", Figure::Real(|r| r.runnable_s)),
    ("system_used_bytes", Figure::Whole(|r| r.system_used_bytes)),
    ("evicted_bytes", Figure::Whole(|r| r.evicted_bytes)),
    ("flash_read_bytes", Figure::Whole(|r| r.flash_read_bytes)),
    ("kills", Figure::Whole(|r| r.kills)),
    ("apps_killed", Figure::Whole(|r| r.apps_killed)),
    ("energy_j", Figure::Real(|r| r.energy_j)),
    ("recompute_share", Figure::Real(|r| r.recompute_share)),
];

/// Reads a figure of a phone in use.
type OfPhone = fn(&PhoneResults) -> f64;

/// Figures of a phone in use, which the table has where the sweep names a system, apps or a trace.
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

/// The columns of phones in use: the figures, every counter of the kernel, the reasons of kills and the planned budgets.
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
    let mut lists = ListPrimitiveChunkedBuilder::<UInt64Type>::new(
        "planned_budgets_bytes".into(),
        rows.len(),
        rows.len(),
        DataType::UInt64,
    );
    phones().for_each(|phone| lists.append_opt_slice(phone.map(|phone| phone.planned_budgets_bytes.as_slice())));
    columns.push(lists.finish().into_series().into_column());
    columns
}

/// The table of `rows`: the run's number, every key of the scenario, every figure, and how the run ended.
pub(super) fn table(rows: &[Row], specification: &Specification, cache: &Cache) -> Result<DataFrame, CommandError> {
    let results = || rows.iter().map(|row| row.results.as_ref());
    let mut columns = vec![column(RUN, rows.iter().map(|row| Some(row.run)).collect::<Vec<_>>())];
    columns.extend(scenarios(rows, specification, cache)?);
    for (name, figure) in &FIGURES {
        columns.push(match figure {
            Figure::Real(of) => column(name, results().map(|results| results.map(of)).collect::<Vec<_>>()),
            Figure::Share(of) => column(name, results().map(|results| results.and_then(of)).collect::<Vec<_>>()),
            Figure::Whole(of) => column(name, results().map(|results| results.map(of)).collect::<Vec<_>>()),
        });
    }
    let exceeds = |results: &Results| if results.exceeds_ram { "true" } else { "false" };
    columns.push(column("exceeds_ram", results().map(|results| results.map(exceeds)).collect::<Vec<_>>()));
    let parts: usize = results().flatten().map(|results| results.micro_batches.len()).sum();
    let mut lists =
        ListPrimitiveChunkedBuilder::<UInt64Type>::new("micro_batches".into(), rows.len(), parts, DataType::UInt64);
    results().for_each(|results| lists.append_opt_slice(results.map(|results| results.micro_batches.as_slice())));
    columns.push(lists.finish().into_series().into_column());
    let iterations: usize = results().flatten().map(|results| results.iterations_s.len()).sum();
    let mut lists = ListPrimitiveChunkedBuilder::<Float64Type>::new(
        "iterations_s".into(),
        rows.len(),
        iterations,
        DataType::Float64,
    );
    results().for_each(|results| lists.append_opt_slice(results.map(|results| results.iterations_s.as_slice())));
    columns.push(lists.finish().into_series().into_column());
    for (place, part) in Results::parts().into_iter().enumerate() {
        let share = |results: &Results| results.breakdown.get(place).copied();
        columns.push(column(
            &format!("breakdown_{part}"),
            results().map(|results| results.and_then(share)).collect::<Vec<_>>(),
        ));
    }
    for (place, bound) in Results::bounds().into_iter().enumerate() {
        let share = |results: &Results| results.bound_by.get(place).copied();
        let shares = results().map(|results| results.and_then(share)).collect::<Vec<_>>();
        columns.push(column(&format!("bound_by_{bound}"), shares));
    }
    let of_phone = [Key::System, Key::Apps, Key::Trace];
    if specification.axes().iter().any(|(key, _)| of_phone.contains(key)) {
        columns.extend(of_phones(rows));
    }
    columns.push(column("status", rows.iter().map(|row| Some(row.status.word())).collect::<Vec<_>>()));
    columns.push(column("least_memory_bytes", rows.iter().map(|row| row.least_memory_bytes).collect::<Vec<_>>()));
    columns.push(column("reason", rows.iter().map(|row| row.reason.as_deref()).collect::<Vec<_>>()));
    DataFrame::new_infer_height(columns).map_err(|error| CommandError::Frame(FrameError::Encode(error)))
}

/// The columns of the scenarios' keys, nothing left open.
fn scenarios(rows: &[Row], specification: &Specification, cache: &Cache) -> Result<Vec<Column>, CommandError> {
    let mut columns: Vec<(&str, Vec<Cell>)> = Vec::new();
    for row in rows {
        let asked = specification.scenario(row.run)?;
        // Of what does not go together the table has what was asked.
        let scenario = asked.resolve_in(cache).map_or(asked, |resolved| resolved.scenario);
        let cells = scenario.cells(row.budgets);
        if columns.is_empty() {
            columns = cells.iter().map(|(name, _)| (*name, Vec::with_capacity(rows.len()))).collect();
        }
        columns.iter_mut().zip(cells).for_each(|((_, column), (_, cell))| column.push(cell));
    }
    Ok(columns.into_iter().map(|(name, cells)| of_cells(name, cells)).collect())
}

/// A key's column; its cells are of one kind.
fn of_cells(name: &str, cells: Vec<Cell>) -> Column {
    match cells.first() {
        Some(Cell::Whole(_)) => column(name, cells.iter().map(Cell::whole).collect::<Vec<_>>()),
        Some(Cell::Signed(_)) => column(name, cells.iter().map(Cell::signed).collect::<Vec<_>>()),
        Some(Cell::Real(_)) => column(name, cells.iter().map(Cell::real).collect::<Vec<_>>()),
        _ => column(name, cells.into_iter().map(Cell::into_text).collect::<Vec<_>>()),
    }
}

fn column<T, Of: ?Sized>(name: &str, values: T) -> Column
where
    Series: NamedFrom<T, Of>,
{
    Series::new(name.into(), values).into_column()
}

/// The rows `slice` of the file at `path`, given by the first one's place and their number.
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
