//! A column of a table in memory: its cells, their order, and how a terminal shows them.

use std::cmp::Ordering;

use haversack_devices::units::Bytes;
use haversack_reports::frame::texts;
use haversack_reports::table::three_digits;
use polars::prelude::{Column, DataType};
use serde_json::{Value, json};

use crate::error::CommandError;

/// The cells of a column, from the first row to the last.
pub(super) enum Cells {
    Texts(Vec<Option<String>>),
    Wholes(Vec<Option<u64>>),
    Signed(Vec<Option<i64>>),
    Reals(Vec<Option<f64>>),
    /// Lists of numbers, as JSON.
    Lists(Vec<Option<String>>),
}

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell<'c> {
    Missing,
    Text(&'c str),
    Whole(u64),
    Signed(i64),
    Real(f64),
    List(&'c str),
}

impl Cells {
    /// The cells of a column of a file.
    pub(super) fn of(column: &Column) -> Result<Self, CommandError> {
        let wrong = |error| CommandError::input(format!("column {}: {error}", column.name()));
        Ok(match column.dtype() {
            DataType::UInt64 => Self::Wholes(column.u64().map_err(wrong)?.iter().collect()),
            DataType::Int64 => Self::Signed(column.i64().map_err(wrong)?.iter().collect()),
            DataType::Float64 => Self::Reals(column.f64().map_err(wrong)?.iter().collect()),
            DataType::List(_) => Self::Lists(texts(column)?.collect()),
            _ => Self::Texts(texts(column)?.collect()),
        })
    }

    /// The cell of a row.
    pub(super) fn get(&self, row: usize) -> Cell<'_> {
        let cell = match self {
            Self::Texts(cells) => cells.get(row).and_then(Option::as_deref).map(Cell::Text),
            Self::Lists(cells) => cells.get(row).and_then(Option::as_deref).map(Cell::List),
            Self::Wholes(cells) => cells.get(row).copied().flatten().map(Cell::Whole),
            Self::Signed(cells) => cells.get(row).copied().flatten().map(Cell::Signed),
            Self::Reals(cells) => cells.get(row).copied().flatten().map(Cell::Real),
        };
        cell.unwrap_or(Cell::Missing)
    }

    pub(super) const fn is_numbers(&self) -> bool {
        matches!(self, Self::Wholes(_) | Self::Signed(_) | Self::Reals(_))
    }
}

impl<'c> Cell<'c> {
    /// The number, if it is one.
    pub(super) fn number(self) -> Option<f64> {
        match self {
            Self::Whole(number) => Some(number as f64),
            Self::Signed(number) => Some(number as f64),
            Self::Real(number) => Some(number),
            Self::Missing | Self::Text(_) | Self::List(_) => None,
        }
    }

    /// The text, if it is one.
    pub(super) const fn words(self) -> Option<&'c str> {
        match self {
            Self::Text(text) | Self::List(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn to_json(self) -> Value {
        match self {
            Self::Missing => Value::Null,
            Self::Text(text) => json!(text),
            Self::Whole(number) => json!(number),
            Self::Signed(number) => json!(number),
            Self::Real(number) => json!(number),
            Self::List(text) => serde_json::from_str(text).unwrap_or_default(),
        }
    }
}

/// How two rows follow each other by this column; what is missing comes last either way.
pub(super) fn order(cells: &Cells, row: usize, other: usize, is_falling: bool) -> Ordering {
    let (a, b) = (cells.get(row), cells.get(other));
    let turned = |order: Ordering| if is_falling { order.reverse() } else { order };
    let by_cell = match (a, b) {
        (Cell::Missing, Cell::Missing) => Ordering::Equal,
        (Cell::Missing, _) => Ordering::Greater,
        (_, Cell::Missing) => Ordering::Less,
        (Cell::Whole(a), Cell::Whole(b)) => turned(a.cmp(&b)),
        _ => match (a.number(), b.number()) {
            (Some(a), Some(b)) => turned(a.total_cmp(&b)),
            _ => turned(a.words().cmp(&b.words())),
        },
    };
    by_cell.then(row.cmp(&other))
}

/// Whether a column of this name holds bytes, which a terminal shows as megabytes.
fn is_bytes(name: &str) -> bool {
    name.ends_with("_bytes")
}

/// What stands above a column: its name, with the unit if it is not in the name.
pub(super) fn heading(name: &str) -> String {
    if is_bytes(name) { format!("{name} (MB)") } else { name.to_owned() }
}

/// A cell for people.
pub(super) fn text(name: &str, cell: Cell<'_>) -> String {
    match cell {
        Cell::Missing => "–".to_owned(),
        Cell::Text(text) | Cell::List(text) => text.to_owned(),
        Cell::Whole(bytes) if is_bytes(name) => three_digits(Bytes(bytes).megabytes()),
        Cell::Whole(number) => number.to_string(),
        Cell::Signed(number) => number.to_string(),
        Cell::Real(number) => three_digits(number),
    }
}
