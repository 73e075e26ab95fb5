//! The results of an artefact: answers to its rows, a figure, its data, and quantities for predicates and notes.

use haversack_reports::{Axis, Bars, Cell, Chart, Panel, Table, WidthError};

use crate::papers::cells::Baseline;
use crate::papers::notes::Quantities;
use crate::papers::{Answer, ReferenceRow, Role};
use crate::quantities::{median, range};

/// The results of an artefact.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Outcome {
    /// Answers by reference id; a row without one is `not-modelled`.
    pub answers: Vec<(String, Answer)>,
    /// Predictions of the null baseline, by reference id.
    pub nulls: Vec<(String, f64)>,
    /// Remarks about answers, by reference id.
    pub remarks: Vec<(String, String)>,
    /// Answers to rows of another artefact about accuracies on a stand-in, with which its own are compared.
    pub baselines: Vec<Baseline>,
    /// The panels of its figure, whose frame the readings declare; empty without a picture.
    pub panels: Vec<Panel>,
    /// The plotted data; the artefact's cells if it has none.
    pub table: Option<Table>,
    /// Quantities that predicates compare and notes quote.
    pub quantities: Quantities,
    /// Further lines for the report, e.g. a separate median.
    pub summary: Vec<String>,
}

impl Outcome {
    /// An empty outcome, with data under this header: comma-separated column names.
    pub fn of(header: &str) -> Self {
        Self { table: Some(Table::new(header.split(','))), ..Self::default() }
    }

    /// Adds a row to the data.
    ///
    /// # Errors
    /// [`WidthError`] if it does not have exactly one cell per column.
    pub fn row(&mut self, cells: impl Cells) -> Result<(), WidthError> {
        self.table.get_or_insert_default().push(cells.row())
    }

    /// Adds columns to the data under this header; they are empty in existing rows.
    pub fn widen(&mut self, header: &str) {
        self.table.get_or_insert_default().widen(header.split(','));
    }

    /// Adds a row to the data whose first columns are empty.
    ///
    /// # Errors
    /// [`WidthError`] if it has more cells than there are columns.
    pub fn row_at_the_end(&mut self, cells: impl Cells) -> Result<(), WidthError> {
        self.table.get_or_insert_default().push_at_the_end(cells.row())
    }

    /// Adds a panel with two axes; an empty title is omitted.
    pub fn panel(&mut self, title: &str, chart: impl Into<Chart>, x: Axis, y: Axis) {
        let panel = Panel::new(chart).x(x).y(y);
        self.panels.push(if title.is_empty() { panel } else { panel.title(title) });
    }

    /// Adds a panel of bars with the value above each.
    pub fn bars(&mut self, title: &str, bars: Bars, y: Axis) {
        self.panel(title, bars.show_values(), Axis::default(), y);
    }

    /// Answers a row.
    pub fn answer(&mut self, id: impl Into<String>, answer: Answer) {
        self.answers.push((id.into(), answer));
    }

    /// Answers a row with a number.
    pub fn number(&mut self, id: impl Into<String>, value: f64) {
        self.answer(id, Answer::Number(value));
    }

    /// Answers a row with the lowest and the highest of `values`, if there are any.
    pub fn range(&mut self, id: impl Into<String>, values: impl IntoIterator<Item = f64>) {
        if let Some((lo, hi)) = range(values) {
            self.answer(id, Answer::Range(lo, hi));
        }
    }

    /// Records the reason why a row has no answer.
    pub fn not_modelled(&mut self, id: impl Into<String>, reason: impl Into<String>) {
        self.answer(id, Answer::NotModelled(reason.into()));
    }

    /// Records the baseline of its accuracies: a row of another artefact, and the answer to it.
    pub fn baseline(&mut self, row: &ReferenceRow, simulated: f64) {
        self.baselines.push(Baseline { row: row.clone(), simulated });
    }

    /// Records the prediction of the null baseline for a row.
    pub fn null(&mut self, id: impl Into<String>, value: f64) {
        self.nulls.push((id.into(), value));
    }

    /// Adds a remark to a row's answer.
    pub fn remark(&mut self, id: impl Into<String>, words: impl Into<String>) {
        self.remarks.push((id.into(), words.into()));
    }

    /// Offers a quantity for predicates and notes: its values, and their `unit`, which may be empty.
    pub fn quantity(&mut self, name: &str, unit: &str, values: impl IntoIterator<Item = f64>) {
        self.quantities.offer(name, unit, values.into_iter().collect());
    }

    /// Offers words for notes.
    pub fn words(&mut self, name: &str, words: impl Into<String>) {
        self.quantities.offer_words(name, words.into());
    }

    /// Offers a comma-separated list of words for notes; nothing if it is empty.
    pub fn list(&mut self, name: &str, words: impl IntoIterator<Item = String>) {
        let words: Vec<String> = words.into_iter().collect();
        if !words.is_empty() {
            self.words(name, words.join(", "));
        }
    }

    /// Records the prediction of the null baseline for each row that has one.
    pub fn nulls_of(&mut self, rows: &[&ReferenceRow], null: impl Fn(&ReferenceRow) -> Option<f64>) {
        self.nulls.extend(rows.iter().filter_map(|row| Some((row.id.clone(), null(row)?))));
    }

    /// Adds to the summary the errors of the `check` rows whose metric begins with `metric`, and those of
    /// the null baseline.
    pub fn compare_with_null(&mut self, rows: &[&ReferenceRow], metric: &str, words: &str) {
        let (mut own, mut null) = (Vec::new(), Vec::new());
        for row in rows.iter().filter(|row| row.role() == Role::Check && row.metric.starts_with(metric)) {
            let answer = self.answers.iter().find(|(id, _)| *id == row.id);
            let baseline = self.nulls.iter().find(|(id, _)| *id == row.id);
            if let (Some(paper), Some((_, Answer::Number(value))), Some((_, baseline))) =
                (row.number(), answer, baseline)
            {
                own.push((value / paper - 1.0).abs() * 100.0);
                null.push((baseline / paper - 1.0).abs() * 100.0);
            }
        }
        if let (Some(own), Some(null)) = (median(own), median(null)) {
            let line = format!("{words}, check rows: median error {own:.1} %, the null baseline {null:.1} %");
            self.summary.push(line);
        }
    }
}

/// Cells of a row of data: a value, a list of values, or several of either in a tuple.
pub trait Cells: Sized {
    /// Adds the cells to `row`.
    fn fill(self, row: &mut Vec<Cell>);

    /// Only these cells, as a row.
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
