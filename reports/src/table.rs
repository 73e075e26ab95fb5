//! Rows of typed cells, as CSV for programs; the [page](crate::page) shows them to readers.
//!
//! CSV follows RFC 4180 in its quoting; lines, including the last, end with LF (not CR LF). Numbers are written in the
//! shortest form that reads back to the same value, so that nothing is lost and equal data give equal bytes.

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing.
    Empty,
    /// Words.
    Text(String),
    /// A number.
    Number(f64),
    /// A count.
    Count(u64),
    /// True or false.
    Flag(bool),
}

macro_rules! cell_from {
    ($($value:ty => $kind:ident),*) => {$(
        impl From<$value> for Cell {
            fn from(value: $value) -> Self {
                Self::$kind(value.into())
            }
        }
    )*};
}
cell_from!(&str => Text, String => Text, f64 => Number, u64 => Count, bool => Flag);

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Empty, Into::into)
    }
}

impl Cell {
    /// The cell in CSV's notation, before quoting.
    pub fn exact(&self) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Text(text) => text.clone(),
            Self::Number(value) => shortest(*value),
            Self::Count(value) => value.to_string(),
            Self::Flag(value) => value.to_string(),
        }
    }
}

/// A row with more or fewer cells than the table has columns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row {row} has {found} cells for {expected} columns")]
pub struct WidthError {
    /// The row's index, from 0.
    pub row: usize,
    /// Cells it has.
    pub found: usize,
    /// Columns of the table.
    pub expected: usize,
}

/// A table: named columns, and rows of one cell for each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// [`WidthError`] if the row does not have one cell for each column.
    pub fn push(&mut self, row: impl IntoIterator<Item = Cell>) -> Result<(), WidthError> {
        let row: Vec<Cell> = row.into_iter().collect();
        if row.len() != self.columns.len() {
            return Err(WidthError { row: self.rows.len(), found: row.len(), expected: self.columns.len() });
        }
        self.rows.push(row);
        Ok(())
    }

    /// Adds columns, which are empty in the rows so far.
    pub fn widen<S: Into<String>>(&mut self, columns: impl IntoIterator<Item = S>) {
        self.columns.extend(columns.into_iter().map(Into::into));
        let width = self.columns.len();
        self.rows.iter_mut().for_each(|row| row.resize(width, Cell::Empty));
    }

    /// Adds a row whose first columns are empty.
    ///
    /// # Errors
    /// [`WidthError`] if the row has more cells than there are columns.
    pub fn push_at_the_end(&mut self, row: Vec<Cell>) -> Result<(), WidthError> {
        let empty = self.columns.len().saturating_sub(row.len());
        self.push(std::iter::repeat_n(Cell::Empty, empty).chain(row))
    }

    /// The table as CSV: a line of names, then one line a row.
    ///
    /// ```
    /// use haversack_reports::table::Table;
    /// # fn main() -> Result<(), haversack_reports::table::WidthError> {
    /// let mut table = Table::new(["id", "simulated"]);
    /// table.push(["a, b".into(), 0.1.into()])?;
    /// assert_eq!(table.to_csv(), "id,simulated\n\"a, b\",0.1\n");
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_csv(&self) -> String {
        let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::Any(b'\n')).from_writer(Vec::new());
        let rows = self.rows.iter().map(|row| row.iter().map(Cell::exact).collect());
        for record in std::iter::once(self.columns.clone()).chain(rows) {
            // Writing to a vector cannot fail, and all rows have the same length.
            let _ = writer.write_record(&record);
        }
        String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
    }
}

/// The shortest decimal that reads back to `value`; also `NaN`, `inf` and `-inf`.
pub fn shortest(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-5..1e16).contains(&magnitude) && value.is_finite() {
        format!("{value:e}")
    } else {
        value.to_string()
    }
}

/// `text` made safe between HTML tags and in quoted attributes.
pub fn escaped(text: &str) -> String {
    let entities = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;"), ('\'', "&#39;")];
    entities.into_iter().fold(text.to_owned(), |safe, (sign, entity)| safe.replace(sign, entity))
}

/// A number to three significant digits, whole ones whole.
pub fn three_digits(value: f64) -> String {
    if value.fract() == 0.0 || value.abs() >= 1000.0 {
        return format!("{value:.0}");
    }
    let before_the_point = value.abs().log10().floor().clamp(-6.0, 2.0);
    let text = format!("{value:.*}", (2.0 - before_the_point) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Table, three_digits};

    #[test]
    fn a_wider_table_has_nothing_where_it_was_narrower() {
        let mut table = Table::new(["a"]);
        table.push([1_u64.into()]).unwrap();
        table.widen(["b", "c"]);
        table.push_at_the_end(vec![2_u64.into(), 3_u64.into()]).unwrap();
        assert_eq!(table.to_csv(), "a,b,c\n1,,\n,2,3\n");
        assert_eq!(table.push_at_the_end(vec![Cell::Empty; 4]).unwrap_err().found, 4);
    }

    #[test]
    fn a_number_has_three_digits() {
        let cases = [
            (0.0, "0"),
            (12.0, "12"),
            (1234.5, "1234"),
            (100.4, "100"),
            (123.4, "123"),
            (12.345, "12.3"),
            (1.5, "1.5"),
        ];
        for (value, text) in cases.into_iter().chain([(0.123_45, "0.123"), (-0.04567, "-0.0457"), (99.99, "100")]) {
            assert_eq!(three_digits(value), text);
        }
    }
}
