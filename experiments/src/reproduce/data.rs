//! The data behind a figure, row by row: what fills the cells of a row.

use haversack_reports::Cell;

/// What fills cells of a row of data: a value, a list of values, or several of either in a tuple.
pub trait Cells: Sized {
    /// Adds the cells to `row`.
    fn fill(self, row: &mut Vec<Cell>);

    /// Them alone, as a row.
    fn row(self) -> Vec<Cell> {
        let mut row = Vec::new();
        self.fill(&mut row);
        row
    }
}

impl<T: Into<Cell>> Cells for Option<T> {
    fn fill(self, row: &mut Vec<Cell>) {
        row.push(self.into());
    }
}

impl<T: Into<Cell>, const N: usize> Cells for [T; N] {
    fn fill(self, row: &mut Vec<Cell>) {
        row.extend(self.map(Into::into));
    }
}

impl<T: Into<Cell>> Cells for Vec<T> {
    fn fill(self, row: &mut Vec<Cell>) {
        row.extend(self.into_iter().map(Into::into));
    }
}

macro_rules! values {
    ($($kind:ty)*) => {$(
        impl Cells for $kind {
            fn fill(self, row: &mut Vec<Cell>) {
                row.push(self.into());
            }
        }
    )*};
}

values!(&str String f64 u64 bool);

macro_rules! tuples {
    ($(($($kind:ident $place:tt)*))*) => {$(
        impl<$($kind: Cells),*> Cells for ($($kind,)*) {
            fn fill(self, row: &mut Vec<Cell>) {
                $(self.$place.fill(row);)*
            }
        }
    )*};
}

tuples!(
    (A 0 B 1)
    (A 0 B 1 C 2)
    (A 0 B 1 C 2 D 3)
    (A 0 B 1 C 2 D 3 E 4)
    (A 0 B 1 C 2 D 3 E 4 F 5)
    (A 0 B 1 C 2 D 3 E 4 F 5 G 6)
    (A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7)
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_filled_from_values_lists_and_tuples() {
        let mut row = Vec::new();
        ("a", [1.5, 2.5], (Some(3_u64), None::<f64>), true).fill(&mut row);
        assert_eq!(row, ["a".into(), 1.5.into(), 2.5.into(), 3_u64.into(), Cell::Empty, true.into()]);
    }
}
