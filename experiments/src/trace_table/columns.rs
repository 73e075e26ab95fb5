//! Rows as columns, a batch at a time: names are kept once a batch, rows refer to them.

use haversack_traces::row::{AppRow, Confidence, CounterRow, Source};
use indexmap::IndexSet;
use polars::prelude::{
    ChunkTake, Column, DataFrame, DataType, IdxCa, IdxSize, IntoColumn, NamedFrom, NewChunkedArray, PolarsResult,
    Schema, Series, StringChunked,
};

use super::{APP_COLUMNS, COUNTER_COLUMNS};

/// Rows of a batch, which become a row group of the file: few enough that one is read in milliseconds.
pub(super) const ROWS: usize = 1 << 16;
/// Bytes of names that end a batch early, so that a file of nothing but different names stays bounded too.
const NAME_BYTES: usize = 8 << 20;

/// Columns that are being filled.
pub trait Batch: Default {
    /// A row of the table.
    type Row<'r>;

    /// The columns and their types.
    fn schema() -> Schema;
    /// The user of a row.
    fn user<'a>(row: &'a Self::Row<'_>) -> &'a str;
    /// Appends a row.
    fn push(&mut self, row: &Self::Row<'_>);
    /// The number of rows.
    fn rows(&self) -> usize;
    /// Whether it is time to write the batch.
    fn is_full(&self) -> bool;
    /// The columns as a frame; the batch is empty afterwards.
    ///
    /// # Errors
    /// None on columns of one length, which these are.
    fn take(&mut self) -> PolarsResult<DataFrame>;
}

/// Names of a column, each kept once.
#[derive(Default)]
struct Names {
    names: IndexSet<Box<str>>,
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

    fn take(&mut self, column: &str) -> PolarsResult<Column> {
        self.bytes = 0;
        let names = std::mem::take(&mut self.names);
        column_of(column, names.iter().map(AsRef::as_ref), std::mem::take(&mut self.rows))
    }
}

/// A column of texts that are few: row by row the place of its own.
fn column_of<'n>(column: &str, names: impl Iterator<Item = &'n str>, rows: Vec<IdxSize>) -> PolarsResult<Column> {
    let names = StringChunked::from_iter_values(column.into(), names);
    Ok(names.take(&IdxCa::from_vec("".into(), rows))?.into_column())
}

/// Rows of apps.
#[derive(Default)]
pub struct Apps {
    users: Names,
    times: Vec<f64>,
    packages: Names,
    adjs: Vec<i32>,
    sources: Vec<IdxSize>,
    confidences: Vec<IdxSize>,
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
        self.adjs.push(i32::from(row.adj.0));
        let place = |place: Option<usize>| place.unwrap_or_default() as IdxSize;
        self.sources.push(place(Source::ALL.iter().position(|source| *source == row.source)));
        self.confidences.push(place(Confidence::ALL.iter().position(|confidence| *confidence == row.confidence)));
    }

    fn rows(&self) -> usize {
        self.times.len()
    }

    fn is_full(&self) -> bool {
        self.times.len() >= ROWS || self.users.bytes + self.packages.bytes >= NAME_BYTES
    }

    fn take(&mut self) -> PolarsResult<DataFrame> {
        let [user, time, package, adj, source, confidence] = APP_COLUMNS;
        DataFrame::new_infer_height(vec![
            self.users.take(user)?,
            Series::new(time.into(), std::mem::take(&mut self.times)).into_column(),
            self.packages.take(package)?,
            Series::new(adj.into(), std::mem::take(&mut self.adjs)).into_column(),
            column_of(source, Source::ALL.iter().map(|source| source.word()), std::mem::take(&mut self.sources))?,
            column_of(
                confidence,
                Confidence::ALL.iter().map(|confidence| confidence.word()),
                std::mem::take(&mut self.confidences),
            )?,
        ])
    }
}

/// Rows of counters.
#[derive(Default)]
pub struct Counters {
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

    fn rows(&self) -> usize {
        self.times.len()
    }

    fn is_full(&self) -> bool {
        self.times.len() >= ROWS || self.users.bytes + self.counters.bytes >= NAME_BYTES
    }

    fn take(&mut self) -> PolarsResult<DataFrame> {
        let [user, time, counter, value] = COUNTER_COLUMNS;
        DataFrame::new_infer_height(vec![
            self.users.take(user)?,
            Series::new(time.into(), std::mem::take(&mut self.times)).into_column(),
            self.counters.take(counter)?,
            Series::new(value.into(), std::mem::take(&mut self.values)).into_column(),
        ])
    }
}
