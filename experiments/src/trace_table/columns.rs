//! Rows as columns, in batches: each name is stored once per batch, and rows refer to it.

use foldhash::fast::FixedState;
use haversack_traces::{AppRow, Confidence, CounterRow, Source};
use indexmap::IndexSet;
use polars::prelude::{
    ChunkTake, Column, DataFrame, DataType, IdxCa, IdxSize, IntoColumn, NamedFrom, NewChunkedArray, PolarsResult,
    Schema, Series, StringChunked,
};

use super::{APP_COLUMNS, COUNTER_COLUMNS};

/// Rows per row group of the file: few enough that one is read in milliseconds.
pub(super) const ROWS: usize = 1 << 16;
/// Rows per batch, of 20 bytes each: some 1.1 GB of Carat's JSON.
const BATCH_ROWS: usize = 1 << 24;
/// Bytes of names that end a batch early, so that memory is bounded even if every name differs.
const NAME_BYTES: usize = 64 << 20;

/// Columns that are being filled.
pub(crate) trait Batch: Default + Send + Sync {
    /// A row of the table.
    type Row<'r>;

    /// The columns and their types.
    fn schema() -> Schema;
    /// The user of a row.
    fn user<'a>(row: &'a Self::Row<'_>) -> &'a str;
    /// Appends a row.
    fn push(&mut self, row: &Self::Row<'_>);
    /// The users, and the other names.
    fn names(&self) -> [&Names; 2];
    /// The rows at these places as a frame.
    ///
    /// # Errors
    /// None on columns of one length, which these are.
    fn frame(&self, rows: &[IdxSize]) -> PolarsResult<DataFrame>;

    /// The number of rows.
    fn rows(&self) -> usize {
        self.names()[0].rows.len()
    }

    /// Whether the batch should be written.
    fn is_full(&self) -> bool {
        self.rows() >= BATCH_ROWS || self.names().iter().map(|names| names.bytes).sum::<usize>() >= NAME_BYTES
    }

    /// The user of the row at a position; empty if there is none.
    fn user_at(&self, row: Option<&IdxSize>) -> &str {
        self.names()[0].at(row).unwrap_or_default()
    }

    /// The places of all rows by their users' names; the rows of each stay in their order.
    fn by_user(&self) -> Vec<IdxSize> {
        self.names()[0].sorted()
    }
}

/// Names of a column, each stored once.
#[derive(Default)]
pub(crate) struct Names {
    names: IndexSet<Box<str>, FixedState>,
    bytes: usize,
    /// The place of every row's name.
    rows: Vec<IdxSize>,
}

impl Names {
    fn push(&mut self, name: &str) {
        // Rows of one user, or one counter, come together.
        if let Some(&last) = self.rows.last()
            && self.names.get_index(last as usize).is_some_and(|recent| **recent == *name)
        {
            self.rows.push(last);
            return;
        }
        let place = self.names.get_index_of(name).unwrap_or_else(|| {
            self.bytes += name.len();
            self.names.insert_full(name.into()).0
        });
        self.rows.push(place as IdxSize);
    }

    /// The name of the row at a place.
    fn at(&self, row: Option<&IdxSize>) -> Option<&str> {
        let name = self.rows.get(*row? as usize)?;
        self.names.get_index(*name as usize).map(AsRef::as_ref)
    }

    /// The places of all rows by their names; those of one name stay in their order.
    fn sorted(&self) -> Vec<IdxSize> {
        let mut names: Vec<usize> = (0..self.names.len()).collect();
        names.sort_unstable_by_key(|&name| &self.names[name]);
        let mut ranks = vec![0; names.len()];
        (0..).zip(names).for_each(|(rank, name)| ranks[name] = rank);
        let mut order: Vec<IdxSize> = (0..self.rows.len() as IdxSize).collect();
        order.sort_by_key(|&row| -> IdxSize { ranks[self.rows[row as usize] as usize] });
        order
    }

    /// The column of the rows at these places.
    fn column(&self, column: &str, rows: &[IdxSize]) -> PolarsResult<Column> {
        // Only the names that occur become part of the column.
        let mut places = vec![IdxSize::MAX; self.names.len()];
        let mut names: Vec<&str> = Vec::new();
        let of = |&row: &IdxSize| {
            let name = self.rows[row as usize] as usize;
            if places[name] == IdxSize::MAX {
                places[name] = names.len() as IdxSize;
                names.push(&self.names[name]);
            }
            places[name]
        };
        let rows = rows.iter().map(of).collect();
        column_of(column, names.into_iter(), rows)
    }
}

/// A column of the values at these places.
fn gathered<V: Copy, T>(values: &[V], rows: &[IdxSize]) -> Vec<T>
where
    T: From<V>,
{
    rows.iter().map(|&row| T::from(values[row as usize])).collect()
}

/// A column of few distinct texts: each row has the index of its text.
fn column_of<'n>(column: &str, names: impl Iterator<Item = &'n str>, rows: Vec<IdxSize>) -> PolarsResult<Column> {
    let names = StringChunked::from_iter_values(column.into(), names);
    Ok(names.take(&IdxCa::from_vec("".into(), rows))?.into_column())
}

/// Rows of apps.
#[derive(Default)]
pub(crate) struct Apps {
    users: Names,
    times: Vec<f64>,
    packages: Names,
    adjs: Vec<i16>,
    sources: Vec<u8>,
    confidences: Vec<u8>,
}

impl Batch for Apps {
    type Row<'r> = AppRow<'r>;

    fn schema() -> Schema {
        use DataType::{Float64, Int32, String};
        let types = [String, Float64, String, Int32, String, String];
        APP_COLUMNS.into_iter().map(Into::into).zip(types).collect()
    }

    fn user<'a>(row: &'a AppRow<'_>) -> &'a str {
        row.user
    }

    fn push(&mut self, row: &AppRow<'_>) {
        self.users.push(row.user);
        self.times.push(row.time.seconds());
        self.packages.push(row.package);
        self.adjs.push(row.adj.0);
        let place = |place: Option<usize>| place.unwrap_or_default() as u8;
        self.sources.push(place(Source::ALL.iter().position(|source| *source == row.source)));
        self.confidences.push(place(Confidence::ALL.iter().position(|confidence| *confidence == row.confidence)));
    }

    fn names(&self) -> [&Names; 2] {
        [&self.users, &self.packages]
    }

    fn frame(&self, rows: &[IdxSize]) -> PolarsResult<DataFrame> {
        let [user, time, package, adj, source, confidence] = APP_COLUMNS;
        let sources = Source::ALL.iter().map(|source| source.word());
        let confidences = Confidence::ALL.iter().map(|confidence| confidence.word());
        DataFrame::new_infer_height(vec![
            self.users.column(user, rows)?,
            Series::new(time.into(), gathered::<_, f64>(&self.times, rows)).into_column(),
            self.packages.column(package, rows)?,
            Series::new(adj.into(), gathered::<_, i32>(&self.adjs, rows)).into_column(),
            column_of(source, sources, gathered(&self.sources, rows))?,
            column_of(confidence, confidences, gathered(&self.confidences, rows))?,
        ])
    }
}

/// Rows of counters.
#[derive(Default)]
pub(crate) struct Counters {
    users: Names,
    times: Vec<f64>,
    counters: Names,
    values: Vec<f64>,
}

impl Batch for Counters {
    type Row<'r> = CounterRow<'r>;

    fn schema() -> Schema {
        let types = [DataType::String, DataType::Float64, DataType::String, DataType::Float64];
        COUNTER_COLUMNS.into_iter().map(Into::into).zip(types).collect()
    }

    fn user<'a>(row: &'a CounterRow<'_>) -> &'a str {
        row.user
    }

    fn push(&mut self, row: &CounterRow<'_>) {
        self.users.push(row.user);
        self.times.push(row.time.seconds());
        self.counters.push(row.counter);
        self.values.push(row.value);
    }

    fn names(&self) -> [&Names; 2] {
        [&self.users, &self.counters]
    }

    fn frame(&self, rows: &[IdxSize]) -> PolarsResult<DataFrame> {
        let [user, time, counter, value] = COUNTER_COLUMNS;
        DataFrame::new_infer_height(vec![
            self.users.column(user, rows)?,
            Series::new(time.into(), gathered::<_, f64>(&self.times, rows)).into_column(),
            self.counters.column(counter, rows)?,
            Series::new(value.into(), gathered::<_, f64>(&self.values, rows)).into_column(),
        ])
    }
}
