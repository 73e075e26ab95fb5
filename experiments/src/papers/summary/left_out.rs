//! Errors of rows that were left out of the fit, in the medians of the role *fit*.

use serde::Serialize;

use super::distance;
use crate::papers::left_out::{Errors, Known};
use crate::papers::{ComparedCell, Role};
use crate::quantities::median;

/// The errors of a role's numbers where each row to which constants were fitted stands with its error at the constants that
/// all other rows decide. Rows that no calibration has, such as those by which a constant was solved, stand as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WithLeftOut {
    /// Numbers with an answer that were left out.
    pub left_out_numbers: usize,
    /// Those that would be, if what is stored of them were not older than the constants: they stand as they are.
    pub stale_numbers: usize,
    /// The median of all numbers, where one without an answer counts as 1; `None` of none.
    pub median_error_left_out: Option<f64>,
    /// The median of those with an answer; `None` of none.
    pub median_of_answered_left_out: Option<f64>,
}

impl WithLeftOut {
    pub(crate) fn new(numbers: &[(&ComparedCell, f64)], left_out: &Errors) -> Self {
        let known = |known: fn(Known) -> bool| {
            let answered = numbers.iter().filter(|(cell, _)| cell.answered());
            answered.filter(|(cell, _)| left_out.of(&cell.id).is_some_and(known)).count()
        };
        let distance = |cell: &ComparedCell| left_out_error(cell, left_out).map_or_else(|| distance(cell), f64::abs);
        let answered = numbers.iter().filter(|(cell, _)| cell.answered());
        Self {
            left_out_numbers: known(|known| matches!(known, Known::LeftOut(_))),
            stale_numbers: known(|known| known == Known::Stale),
            median_error_left_out: median(numbers.iter().map(|(cell, _)| distance(cell)).collect()),
            median_of_answered_left_out: median(answered.map(|(cell, _)| distance(cell)).collect()),
        }
    }
}

/// The error of a cell that was left out of the fit; `None` where it has none: other roles than *fit*, cells without an
/// answer, rows that no calibration has, or what is older than the constants.
pub(crate) fn left_out_error(cell: &ComparedCell, left_out: &Errors) -> Option<f64> {
    match left_out.of(&cell.id) {
        Some(Known::LeftOut(error)) if cell.role() == Role::Fit && cell.answered() => Some(error),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::answer::Answer;
    use crate::papers::reference::{Claim, example};
    use crate::papers::summary::tallies;

    #[test]
    fn a_row_that_was_fitted_stands_with_its_error_if_it_is_left_out() {
        let value = |id: &str, role, answer| ComparedCell {
            id: id.to_owned(),
            ..ComparedCell::new(&example("time", Claim::Value(Some(100.0)), role), answer).unwrap()
        };
        let cells = [
            value("a", Role::Fit, Answer::Number(101.0)),
            value("b", Role::Fit, Answer::Number(98.0)),
            value("c", Role::Fit, Answer::Number(103.0)),
            value("d", Role::Fit, Answer::NotModelled("later".into())),
            // No row of role check is ever left out.
            value("a", Role::Check, Answer::Number(104.0)),
        ];
        // 0.01 as fitted, 0.3 left out; 0.02 as fitted, and what is stored is stale; 0.03 by no calibration.
        let known = [("a", Known::LeftOut(-0.3)), ("b", Known::Stale), ("d", Known::LeftOut(0.1))];
        let tallies = tallies(&cells, &Errors::of_rows(known));
        let with = WithLeftOut {
            left_out_numbers: 1,
            stale_numbers: 1,
            // 0.3, 0.02, 0.03 and 1 for the row without an answer: the middle of 0.03 and 0.3; without it 0.03.
            median_error_left_out: Some((0.03 + 0.3) / 2.0),
            median_of_answered_left_out: Some(0.03),
        };
        assert_eq!((tallies[0].left_out, tallies[1].left_out), (Some(with), None));
        // As fitted: 0.01, 0.02, 0.03, and 1.
        assert_eq!((tallies[0].errors.median_of_answered, tallies[0].errors.median_error), (Some(0.02), Some(0.025)));
        let figures = tallies[0].figures();
        assert_eq!(figures[4..7], ["3.0% (3 of 4)", "16.5%", "2.0% (1 left out, 1 stale)"]);
        assert_eq!(tallies[1].figures()[4..7], ["4.0% (1 of 1)", "4.0%", "–"]);
        assert_eq!(left_out_error(&cells[0], &Errors::of_rows(known)), Some(-0.3));
        assert_eq!(left_out_error(&cells[4], &Errors::of_rows(known)), None);
    }
}
