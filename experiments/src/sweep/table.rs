//! The table of a sweep: typed columns, from rows or from a shard's file, to a data frame.

use haversack_reports::frame::{FrameError, read_parquet};
use polars::prelude::{
    Column, DataFrame, DataType, IntoColumn, IntoSeries, ListBuilderTrait, ListPrimitiveChunkedBuilder, NamedFrom,
    PolarsError, Series, UInt64Type,
};
use std::path::Path;

use super::{Row, Specification, Status};
use crate::cache::Cache;
use crate::error::CommandError;
use crate::run::Results;
use crate::scenario::Cell;

/// The values of a column, one a run.
#[derive(Clone, Debug, PartialEq)]
enum Values {
    Text(Vec<Option<String>>),
    Whole(Vec<Option<u64>>),
    Real(Vec<Option<f64>>),
    Wholes(Vec<Option<Vec<u64>>>),
}

/// A table whose rows are sorted by the run's number.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Table {
    columns: Vec<(String, Values)>,
}

/// The number of the run.
pub(super) const RUN: &str = "run";

impl Table {
    /// The table of `rows`: the run's number, every key of the scenario, every figure, and how the run ended.
    pub(super) fn new(rows: &[&Row], specification: &Specification, cache: &Cache) -> Result<Self, CommandError> {
        let mut table = Self::default();
        table.push(RUN, Values::Whole(rows.iter().map(|row| Some(row.run)).collect()));
        table.push_scenarios(rows, specification, cache)?;
        let real = |figure: fn(&Results) -> f64| {
            Values::Real(rows.iter().map(|row| row.results.as_ref().map(figure)).collect())
        };
        let whole = |figure: fn(&Results) -> u64| {
            Values::Whole(rows.iter().map(|row| row.results.as_ref().map(figure)).collect())
        };
        table.push("iteration_time_s", real(|r| r.iteration_time_s));
        table.push("forward_s", real(|r| r.forward_s));
        table.push("backward_s", real(|r| r.backward_s));
        table.push("update_s", real(|r| r.update_s));
        table.push("samples_per_s", real(|r| r.samples_per_s));
        table.push("peak_memory_bytes", whole(|r| r.peak_memory_bytes));
        table.push("peak_growth_bytes", whole(|r| r.peak_growth_bytes));
        table.push("reserved_bytes", whole(|r| r.reserved_bytes));
        table.push("saved_peak_bytes", whole(|r| r.saved_peak_bytes));
        table.push("staging_bytes", whole(|r| r.staging_bytes));
        table.push("fragmentation_bytes", whole(|r| r.fragmentation_bytes));
        table.push("mean_iteration_s", real(|r| r.mean_iteration_s));
        table.push("uninterruptible_s", real(|r| r.uninterruptible_s));
        table.push("runnable_s", real(|r| r.runnable_s));
        table.push("system_used_bytes", whole(|r| r.system_used_bytes));
        table.push("evicted_bytes", whole(|r| r.evicted_bytes));
        table.push("flash_read_bytes", whole(|r| r.flash_read_bytes));
        table.push("kills", whole(|r| r.kills));
        table.push("apps_killed", whole(|r| r.apps_killed));
        table.push("energy_j", real(|r| r.energy_j));
        table.push("recompute_share", real(|r| r.recompute_share));
        let parts = rows.iter().map(|row| row.results.as_ref().map(|results| results.micro_batches.clone()));
        table.push("micro_batches", Values::Wholes(parts.collect()));
        for (place, part) in Results::parts().into_iter().enumerate() {
            let share = |row: &&Row| row.results.as_ref().and_then(|results| results.breakdown.get(place).copied());
            table.push(&format!("breakdown_{part}"), Values::Real(rows.iter().map(share).collect()));
        }
        table.push("status", Values::Text(rows.iter().map(|row| Some(row.status.word().to_owned())).collect()));
        table.push("least_memory_bytes", Values::Whole(rows.iter().map(|row| row.least_memory_bytes).collect()));
        table.push("reason", Values::Text(rows.iter().map(|row| row.reason.clone()).collect()));
        Ok(table)
    }

    fn push(&mut self, name: &str, values: Values) {
        self.columns.push((name.to_owned(), values));
    }

    fn push_scenarios(
        &mut self,
        rows: &[&Row],
        specification: &Specification,
        cache: &Cache,
    ) -> Result<(), CommandError> {
        let first = self.columns.len();
        for row in rows {
            let scenario = specification.scenario(row.run)?.resolve_in(cache)?.scenario;
            let bytes = |bytes: Option<u64>| bytes.map(haversack_devices::units::Bytes);
            let cells = scenario.cells(bytes(row.memory_budget_bytes), bytes(row.activation_budget_bytes));
            for (place, (name, cell)) in cells.into_iter().enumerate() {
                if self.columns.len() <= first + place {
                    self.push(&name, empty(&cell));
                }
                if let Some((_, values)) = self.columns.get_mut(first + place) {
                    append(values, cell);
                }
            }
        }
        Ok(())
    }

    /// The table in the file at `path`.
    pub(super) fn read(path: &Path) -> Result<Self, CommandError> {
        let frame = read_parquet(path)?;
        let columns: Result<Vec<_>, PolarsError> =
            frame.columns().iter().map(|column| Ok((column.name().to_string(), values(column)?))).collect();
        let columns = columns.map_err(|reason| FrameError::Decode { path: path.to_path_buf(), reason })?;
        Ok(Self { columns })
    }

    /// Appends the rows of `other`; false where its columns are others.
    pub(super) fn extend(&mut self, other: Self) -> bool {
        let names = |table: &Self| table.columns.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        if names(self) != names(&other) {
            return false;
        }
        self.columns.iter_mut().zip(other.columns).all(|((_, own), (_, more))| match (own, more) {
            (Values::Text(own), Values::Text(more)) => extend(own, more),
            (Values::Whole(own), Values::Whole(more)) => extend(own, more),
            (Values::Real(own), Values::Real(more)) => extend(own, more),
            (Values::Wholes(own), Values::Wholes(more)) => extend(own, more),
            _ => false,
        })
    }

    /// The whole numbers of the column `name`; none where there is no such column.
    pub(super) fn wholes(&self, name: &str) -> &[Option<u64>] {
        match self.column(name) {
            Some(Values::Whole(values)) => values,
            _ => &[],
        }
    }

    /// The numbers of the column `name`; none where there is no such column.
    pub(super) fn reals(&self, name: &str) -> &[Option<f64>] {
        match self.column(name) {
            Some(Values::Real(values)) => values,
            _ => &[],
        }
    }

    /// The texts of the column `name`; none where there is no such column.
    pub(super) fn texts(&self, name: &str) -> &[Option<String>] {
        match self.column(name) {
            Some(Values::Text(values)) => values,
            _ => &[],
        }
    }

    fn column(&self, name: &str) -> Option<&Values> {
        self.columns.iter().find(|(found, _)| found == name).map(|(_, values)| values)
    }

    /// The table as a data frame.
    pub(super) fn to_frame(&self) -> Result<DataFrame, CommandError> {
        let columns: Vec<Column> = self.columns.iter().map(|(name, values)| column(name, values)).collect();
        DataFrame::new_infer_height(columns).map_err(|error| CommandError::Frame(FrameError::Encode(error)))
    }
}

impl Status {
    /// Whether `word` is this status.
    pub(super) fn is(self, word: Option<&str>) -> bool {
        word == Some(self.word())
    }
}

fn extend<T>(own: &mut Vec<T>, more: Vec<T>) -> bool {
    own.extend(more);
    true
}

/// A column without values for cells like `cell`.
fn empty(cell: &Cell) -> Values {
    match cell {
        Cell::Text(_) | Cell::Settings(_) => Values::Text(Vec::new()),
        Cell::Whole(_) => Values::Whole(Vec::new()),
        Cell::Real(_) => Values::Real(Vec::new()),
    }
}

fn append(values: &mut Values, cell: Cell) {
    match (values, cell) {
        (Values::Text(values), Cell::Text(text)) => values.push(text),
        (Values::Text(values), Cell::Settings(settings)) => {
            let settings: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            values.push((!settings.is_empty()).then(|| settings.join(",")));
        }
        (Values::Whole(values), Cell::Whole(number)) => values.push(number),
        (Values::Real(values), Cell::Real(number)) => values.push(number),
        // A key has cells of one kind.
        (Values::Text(values), _) => values.push(None),
        (Values::Whole(values), _) => values.push(None),
        (Values::Real(values), _) => values.push(None),
        (Values::Wholes(values), _) => values.push(None),
    }
}

fn column(name: &str, values: &Values) -> Column {
    match values {
        Values::Text(values) => Series::new(name.into(), values).into_column(),
        Values::Whole(values) => Series::new(name.into(), values).into_column(),
        Values::Real(values) => Series::new(name.into(), values).into_column(),
        Values::Wholes(values) => {
            let inner = values.iter().flatten().map(Vec::len).sum();
            let mut builder =
                ListPrimitiveChunkedBuilder::<UInt64Type>::new(name.into(), values.len(), inner, DataType::UInt64);
            for value in values {
                builder.append_opt_slice(value.as_deref());
            }
            builder.finish().into_series().into_column()
        }
    }
}

fn values(column: &Column) -> Result<Values, PolarsError> {
    Ok(match column.dtype() {
        DataType::UInt64 => Values::Whole(column.u64()?.iter().collect()),
        DataType::Float64 => Values::Real(column.f64()?.iter().collect()),
        DataType::List(_) => {
            let lists = column.list()?;
            let wholes = |list: Series| Ok::<_, PolarsError>(list.u64()?.iter().flatten().collect());
            let lists = (0..column.len()).map(|row| lists.get_as_series(row).map(wholes).transpose());
            Values::Wholes(lists.collect::<Result<_, _>>()?)
        }
        _ => Values::Text(column.str()?.iter().map(|text| text.map(str::to_owned)).collect()),
    })
}
