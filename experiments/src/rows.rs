//! Rows of one type as a data frame, built one column at a time.

use haversack_reports::FrameError;
use polars::prelude::{Column, DataFrame, IntoColumn, NamedFrom, Series};

/// Rows, and the columns that were made from them.
pub(crate) struct Rows<'r, R> {
    rows: &'r [R],
    columns: Vec<Column>,
}

impl<'r, R> Rows<'r, R> {
    /// No columns yet.
    pub(crate) fn of(rows: &'r [R]) -> Self {
        Self { rows, columns: Vec::new() }
    }

    /// Adds a column with the `value` of each row.
    pub(crate) fn with<T, Of: ?Sized>(mut self, name: &str, value: impl Fn(&'r R) -> T) -> Self
    where
        Series: NamedFrom<Vec<T>, Of>,
    {
        self.columns.push(column(name, self.rows.iter().map(value).collect::<Vec<T>>()));
        self
    }

    /// Adds other columns of these rows.
    pub(crate) fn and(mut self, columns: impl IntoIterator<Item = Column>) -> Self {
        self.columns.extend(columns);
        self
    }

    /// All columns in their order.
    ///
    /// # Errors
    /// Two columns with the same name.
    pub(crate) fn frame(self) -> Result<DataFrame, FrameError> {
        DataFrame::new_infer_height(self.columns).map_err(FrameError::Encode)
    }
}

/// Adds a column for each of some fields, named after the field.
macro_rules! with_fields {
    ($rows:expr; $($field:ident),+) => { $rows$(.with(stringify!($field), |row| row.$field))+ };
}
pub(crate) use with_fields;

/// A column of `values`.
pub(crate) fn column<T, Of: ?Sized>(name: &str, values: T) -> Column
where
    Series: NamedFrom<T, Of>,
{
    Series::new(name.into(), values).into_column()
}
