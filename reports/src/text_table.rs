//! Rows of text in columns, for a terminal.

use std::fmt;

/// A column of a [`TextTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Column {
    is_right: bool,
    width: usize,
    gap: usize,
    is_fitted: bool,
}

impl Column {
    /// Text: `width` characters wide, left-aligned.
    pub const fn left(width: usize) -> Self {
        Self { is_right: false, width, gap: 0, is_fitted: false }
    }

    /// Numbers: `width` characters wide, right-aligned.
    pub const fn right(width: usize) -> Self {
        Self { is_right: true, ..Self::left(width) }
    }

    /// The same, `gap` blanks after the previous column.
    pub const fn after(self, gap: usize) -> Self {
        Self { gap, ..self }
    }

    /// The same, as wide as its longest cell if that is wider than `width`; without this, a longer cell
    /// shifts the rest of its row.
    pub const fn fitted(self) -> Self {
        Self { is_fitted: true, ..self }
    }
}

/// A table in text: every row has at most one cell for each column, and may end with a remark beyond them.
///
/// ```
/// use haversack_reports::text_table::{Column, TextTable};
///
/// let mut table = TextTable::new([Column::left(0).fitted(), Column::right(8).after(2)]);
/// table.row(["constant", "fitted"]).row(["gpu.launch", "25.0"]);
/// assert_eq!(table.to_string(), "constant      fitted\ngpu.launch      25.0\n");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct TextTable {
    columns: Vec<Column>,
    indent: usize,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), ..Self::default() }
    }

    /// The same with `blanks` before every row.
    pub fn indented(self, blanks: usize) -> Self {
        Self { indent: blanks, ..self }
    }

    /// Adds a row: a cell for each column from the first on; further cells are appended unaligned.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) -> &mut Self {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        self
    }

    /// The width of the column at index `place`.
    fn width(&self, place: usize, column: &Column) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(place)).filter(|_| column.is_fitted);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(column.width)
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> =
            self.columns.iter().enumerate().map(|(place, column)| self.width(place, column)).collect();
        for row in &self.rows {
            let mut line = " ".repeat(self.indent);
            for (place, cell) in row.iter().enumerate() {
                let (Some(column), Some(&width)) = (self.columns.get(place), widths.get(place)) else {
                    line.push_str(cell);
                    continue;
                };
                line.push_str(&" ".repeat(column.gap));
                line += &if column.is_right { format!("{cell:>width$}") } else { format!("{cell:width$}") };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
