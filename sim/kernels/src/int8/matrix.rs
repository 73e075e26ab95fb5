//! Views of i8 matrices.

use crate::KernelError;

/// A matrix of i8 in row-major order, or the transpose of one: nothing is moved.
///
/// With activations x \[batch, inputs\], weights w \[inputs, outputs\] and the output's error e \[batch, outputs\],
/// training (figure 2 of the paper) multiplies
/// - forward: `x` by `w`, \[batch, outputs\];
/// - input gradient: `e` by `w.transposed()`, \[batch, inputs\];
/// - weight gradient: `x.transposed()` by `e`, \[inputs, outputs\].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Matrix<'a> {
    values: &'a [i8],
    rows: usize,
    columns: usize,
    is_transposed: bool,
}

impl<'a> Matrix<'a> {
    /// `rows` of `columns` values each, one row after the other.
    ///
    /// # Errors
    /// [`KernelError::Length`] for more or fewer values.
    pub fn new(values: &'a [i8], rows: usize, columns: usize) -> Result<Self, KernelError> {
        KernelError::expect_length("the matrix", values.len(), rows.saturating_mul(columns))?;
        Ok(Self { values, rows, columns, is_transposed: false })
    }

    /// The same values with rows and columns exchanged.
    pub const fn transposed(self) -> Self {
        Self { rows: self.columns, columns: self.rows, is_transposed: !self.is_transposed, ..self }
    }

    /// Rows.
    pub const fn rows(self) -> usize {
        self.rows
    }

    /// Columns.
    pub const fn columns(self) -> usize {
        self.columns
    }

    /// The lines of this matrix as the left one of a product: its rows.
    pub(super) const fn by_rows(self) -> Lines<'a> {
        let Self { values, rows, columns, is_transposed } = self;
        let order = if is_transposed { Order::Across { lines: rows } } else { Order::Along };
        Lines { values, count: rows, depth: columns, order }
    }

    /// The lines of this matrix as the right one of a product: its columns.
    pub(super) const fn by_columns(self) -> Lines<'a> {
        self.transposed().by_rows()
    }
}

/// The lines that a product adds up along: the rows of the left matrix, the columns of the right one.
#[derive(Clone, Copy)]
pub(super) struct Lines<'a> {
    pub(super) values: &'a [i8],
    /// Lines.
    pub(super) count: usize,
    /// Values of each.
    pub(super) depth: usize,
    pub(super) order: Order,
}

/// How lines lie in memory.
#[derive(Clone, Copy)]
pub(super) enum Order {
    /// One line after the other.
    Along,
    /// The first values of all lines, then the second ones.
    Across {
        /// The distance between the values of a line.
        lines: usize,
    },
}
