//! What an artefact found: answers to its rows, a figure, its data, and quantities for predicates and notes.

use haversack_reports::{Axis, Bars, Cell, Chart, Panel, Table, WidthError};

use crate::papers::cells::Baseline;
use crate::papers::notes::Quantities;
use crate::papers::{Answer, ReferenceRow, Role};
use crate::quantities::{median, range};

/// What an artefact found.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Outcome {
    /// Answers by reference id; a row without one is `not-modelled`.
    pub answers: Vec<(String, Answer)>,
    /// What the null baseline gives, by reference id.
    pub nulls: Vec<(String, f64)>,
    /// What there is to say about an answer, by reference id.
    pub remarks: Vec<(String, String)>,
    /// Accuracies on a stand-in that rows of another artefact were answered with, beside which its own are judged.
    pub baselines: Vec<Baseline>,
    /// The panels of its figure, around which stands what the readings declare; none where it has no picture.
    pub panels: Vec<Panel>,
    /// The plotted data; the artefact's cells if it has none.
    pub table: Option<Table>,
    /// What predicates compare and notes quote.
    pub quantities: Quantities,
    /// Further lines for the report, e.g. a median of its own.
    pub summary: Vec<String>,
}

impl Outcome {
    /// Nothing yet, with data under this header: the columns' names with commas between them.
    pub fn of(header: &str) -> Self {
        Self { table: Some(Table::new(header.split(','))), ..Self::default() }
    }

    /// Adds a row to the data.
    ///
    /// # Errors
    /// [`WidthError`] where it has not one cell for each column.
    pub fn row(&mut self, cells: impl Cells) -> Result<(), WidthError> {
        self.table.get_or_insert_default().push(cells.row())
    }

    /// Adds columns to the data under this header: rows so far have nothing there.
    pub fn widen(&mut self, header: &str) {
        self.table.get_or_insert_default().widen(header.split(','));
    }

    /// Adds a row to the data that has nothing in the first columns.
    ///
    /// # Errors
    /// [`WidthError`] where it has more cells than there are columns.
    pub fn row_at_the_end(&mut self, cells: impl Cells) -> Result<(), WidthError> {
        self.table.get_or_insert_default().push_at_the_end(cells.row())
    }

    /// Adds a panel with two axes; a title that is empty is none.
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

    /// Says why a row has no answer.
    pub fn not_modelled(&mut self, id: impl Into<String>, reason: impl Into<String>) {
        self.answer(id, Answer::NotModelled(reason.into()));
    }

    /// Says what the baseline of its accuracies is: a row of another artefact, and what it was answered with.
    pub fn baseline(&mut self, row: &ReferenceRow, simulated: f64) {
        self.baselines.push(Baseline { row: row.clone(), simulated });
    }

    /// What the null baseline gives for a row.
    pub fn null(&mut self, id: impl Into<String>, value: f64) {
        self.nulls.push((id.into(), value));
    }

    /// Says something about a row's answer.
    pub fn remark(&mut self, id: impl Into<String>, words: impl Into<String>) {
        self.remarks.push((id.into(), words.into()));
    }

    /// Answers a row with a number, or says why it has none.
    pub fn number_or(&mut self, id: impl Into<String>, value: Result<f64, String>) {
        self.answer(id, value.map_or_else(Answer::NotModelled, Answer::Number));
    }

    /// Offers a quantity for predicates and notes: its values, in `unit`, or in none.
    pub fn quantity(&mut self, name: &str, unit: &str, values: impl IntoIterator<Item = f64>) {
        self.quantities.offer(name, unit, values.into_iter().collect());
    }

    /// Offers words for notes.
    pub fn words(&mut self, name: &str, words: impl Into<String>) {
        self.quantities.offer_words(name, words.into());
    }

    /// Offers words for notes, with commas between them; none where there are no words.
    pub fn list(&mut self, name: &str, words: impl IntoIterator<Item = String>) {
        let words: Vec<String> = words.into_iter().collect();
        if !words.is_empty() {
            self.words(name, words.join(", "));
        }
    }

    /// What the null baseline gives for each row that has one.
    pub fn nulls_of(&mut self, rows: &[&ReferenceRow], null: impl Fn(&ReferenceRow) -> Option<f64>) {
        self.nulls.extend(rows.iter().filter_map(|row| Some((row.id.clone(), null(row)?))));
    }

    /// Says in the summary how far off the `check` rows whose metric begins with `metric` are, beside the null
    /// baseline.
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
