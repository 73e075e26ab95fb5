//! How the roles of each paper came out: medians of errors, and bounds that hold.

use serde::Serialize;
use statrs::statistics::{Data, OrderStatistics};

use super::cells::{ComparedCell, Verdict};
use super::reference::{Claim, Reference, Role};
use super::selection::COMPARISON;

/// A row of this metric takes no part in medians.
const ACCURACY: &str = "accuracy";

/// One role of one paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tally {
    /// The paper.
    pub paper: &'static str,
    /// The role.
    pub role: Role,
    /// Rows of it.
    pub rows: usize,
    /// Those with an answer.
    pub answered: usize,
    /// Median of the absolute errors of the numeric rows; one without an answer counts as 1.
    pub median_error: Option<f64>,
    /// Numeric rows that have a null baseline.
    pub null_rows: usize,
    /// Median of the absolute errors of the null baseline.
    pub median_null: Option<f64>,
    /// Median of our errors on the same rows.
    pub median_beside_null: Option<f64>,
    /// Bounds, ranges, orders and *never* rows that hold ...
    pub held: usize,
    /// ... of this many.
    pub bounds: usize,
}

/// Every role that has rows, paper by paper.
pub fn tallies(cells: &[ComparedCell]) -> Vec<Tally> {
    let papers = Reference::papers().chain([COMPARISON]);
    let groups = papers.flat_map(|paper| Role::ALL.map(|role| (paper, role)));
    let tally = |(paper, role)| {
        let of_role: Vec<&ComparedCell> =
            cells.iter().filter(|cell| cell.paper == paper && cell.role == role).collect();
        (!of_role.is_empty()).then(|| tally(paper, role, &of_role))
    };
    groups.filter_map(tally).collect()
}

fn tally(paper: &'static str, role: Role, cells: &[&ComparedCell]) -> Tally {
    let numeric: Vec<(&ComparedCell, f64)> = cells.iter().filter_map(|cell| Some((*cell, numeric(cell)?))).collect();
    let null = |(cell, paper): &(&ComparedCell, f64)| Some((relative(cell.null?, *paper), distance(cell)));
    let (nulls, beside): (Vec<f64>, Vec<f64>) = numeric.iter().filter_map(null).unzip();
    let bounds = || cells.iter().filter(|cell| cell.is_bound() && cell.verdict != Verdict::Input);
    Tally {
        paper,
        role,
        rows: cells.len(),
        answered: cells.iter().filter(|cell| cell.answered()).count(),
        median_error: median(numeric.iter().map(|(cell, _)| distance(cell)).collect()),
        null_rows: nulls.len(),
        median_null: median(nulls),
        median_beside_null: median(beside),
        held: bounds().filter(|cell| cell.verdict == Verdict::Holds).count(),
        bounds: bounds().count(),
    }
}

/// The paper's number, where the row counts for medians.
fn numeric(cell: &ComparedCell) -> Option<f64> {
    let counts = cell.metric != ACCURACY && cell.verdict != Verdict::Input;
    let Claim::Value(paper) = cell.claim else { return None };
    paper.filter(|_| counts)
}

/// The absolute error; 1 where there is no answer, or the answer is *never*.
pub(super) fn distance(cell: &ComparedCell) -> f64 {
    cell.error.map_or(1.0, f64::abs)
}

fn relative(value: f64, paper: f64) -> f64 {
    if paper == 0.0 { value.abs() } else { ((value - paper) / paper).abs() }
}

/// The middle value, or the mean of the two in the middle; `None` of none.
pub fn median(values: Vec<f64>) -> Option<f64> {
    (!values.is_empty()).then(|| OrderStatistics::median(&mut Data::new(values)))
}

/// The lowest and the highest of `values`; `None` of none.
pub fn range(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().fold(None, |range, value| {
        let (lo, hi) = range.unwrap_or((value, value));
        Some((value.min(lo), value.max(hi)))
    })
}

/// The mean of `values`; `None` of none.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::answer::Answer;
    use crate::reproduce::reference::example;

    fn cell(metric: &str, claim: Claim, role: Role, answer: Answer) -> ComparedCell {
        ComparedCell::new(&example(metric, claim, role), answer).unwrap()
    }

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_two() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        // (1 + 2) / 2 = 1.5.
        assert_eq!(median(vec![9.0, 1.0, 0.5, 2.0]), Some(1.5));
    }

    #[test]
    fn a_mean_and_a_range_are_of_something() {
        // (1 + 2 + 6) / 3 = 3.
        assert_eq!((mean(&[1.0, 2.0, 6.0]), mean(&[])), (Some(3.0), None));
        assert_eq!((range([2.0, 1.0, 6.0]), range([])), (Some((1.0, 6.0)), None));
    }

    #[test]
    fn medians_run_over_numeric_rows_and_no_answer_counts_as_one() {
        let value = |metric, answer| cell(metric, Claim::Value(Some(100.0)), Role::Check, answer);
        let mut cells = vec![
            value("time", Answer::Number(110.0)),
            value("time", Answer::Number(80.0)),
            value("time", Answer::NotModelled("not yet".into())),
            value("accuracy", Answer::Number(50.0)),
            value("rounds", Answer::Input(100.0)),
            cell("time", Claim::Min(5.0), Role::Check, Answer::Number(6.0)),
            cell("order", Claim::Order(String::new()), Role::Check, Answer::NotModelled("not yet".into())),
            cell("time", Claim::Value(None), Role::Withheld, Answer::Number(3.0)),
        ];
        cells[1].null = Some(95.0);
        let tallies = tallies(&cells);
        // Errors 0.1, 0.2 and 1 (no answer): the median is 0.2. The accuracy and the input stay out of it.
        // The null baseline is off by 5 / 100 on the one row where ours is off by 20 / 100.
        let check = Tally {
            paper: "sage",
            role: Role::Check,
            rows: 7,
            answered: 5,
            median_error: Some(0.2),
            null_rows: 1,
            median_null: Some(0.05),
            median_beside_null: Some(0.2),
            held: 1,
            bounds: 2,
        };
        assert_eq!(tallies[0], check);
        assert_eq!((tallies[1].role, tallies[1].median_error, tallies[1].rows), (Role::Withheld, None, 1));
        assert_eq!(tallies.len(), 2);
    }
}
