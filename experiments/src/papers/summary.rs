//! The results of each paper by role: medians of errors, and the number of true bounds.

use std::fmt;

use serde::Serialize;

use super::left_out::{Errors as LeftOutErrors, Known};
use super::{COMPARISON, Claim, ComparedCell, Reference, Role, Status, Verdict};
use crate::quantities::{counted, median};

/// Rows of these metrics are left out of medians: counts, and results that only training produces, would hide or
/// dominate the errors of times, memory and energy.
pub(crate) const NOT_IN_MEDIANS: [&str; 6] =
    ["accuracy", "accuracy-gain", "accuracy-drop", "rounds", "flops", "convolutions"];

/// The totals over all rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Total {
    /// Rows.
    pub rows: usize,
    /// Numbers within 15%, and claims that are true.
    pub matched: usize,
    /// Numbers that are off, and claims that are false.
    pub missed: usize,
    /// Rows that match but were in view when a choice was made, and so do not count as matches.
    pub in_view: usize,
    /// Rows that contradict others of their paper.
    pub contradicted: usize,
    /// Numbers whose paper value is withheld.
    pub predicted: usize,
    /// Rows without an answer.
    pub not_modelled: usize,
    /// Rows that are inputs.
    pub inputs: usize,
}

impl Total {
    /// The totals over these rows.
    pub fn of<'c>(cells: impl IntoIterator<Item = &'c ComparedCell>) -> Self {
        let mut total = Self::default();
        for cell in cells {
            total.rows += 1;
            let judged = !matches!(cell.verdict, Verdict::Predicted | Verdict::NotModelled | Verdict::Input);
            *match cell.verdict {
                _ if judged && cell.contradicted => &mut total.contradicted,
                _ if judged && !cell.counts() => &mut total.in_view,
                Verdict::Ok | Verdict::Holds => &mut total.matched,
                Verdict::Off | Verdict::Fails => &mut total.missed,
                Verdict::Predicted => &mut total.predicted,
                Verdict::NotModelled => &mut total.not_modelled,
                Verdict::Input => &mut total.inputs,
            } += 1;
        }
        total
    }

    /// Rows that count neither as a match nor as a miss, except those without an answer, in words for one and for many.
    const fn unjudged(&self) -> [(usize, &'static str, &'static str); 4] {
        [
            (self.in_view, "matches in view of a choice", "match in view of a choice"),
            (self.contradicted, "contradicts others of its paper", "contradict others of their paper"),
            (self.predicted, "is predicted", "are predicted"),
            (self.inputs, "was put in", "were put in"),
        ]
    }
}

impl fmt::Display for Total {
    /// In a sentence, such as "5 rows: 2 match, 1 misses, 1 is predicted, 1 is not modelled".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let judged = [(self.matched, "matches", "match"), (self.missed, "misses", "miss")];
        let [in_view, contradicted, predicted, inputs] = self.unjudged();
        let not_modelled = (self.not_modelled, "is not modelled", "are not modelled");
        let parts = judged.into_iter().chain([in_view, contradicted, predicted, not_modelled, inputs]);
        let parts = parts.filter(|(count, ..)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, one, many)| counted(count, one, many)).collect();
        let rows = counted(self.rows, "row", "rows");
        if parts.is_empty() { f.write_str(&rows) } else { write!(f, "{rows}: {}", parts.join(", ")) }
    }
}

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
    /// Rows that were in view when a choice was made: of these, only misses count in the fields below.
    pub in_view: usize,
    /// Rows that contradict others of their paper, and do not count in the fields below.
    pub contradicted: usize,
    /// The errors of its numbers, with the constants of the files.
    #[serde(flatten)]
    pub errors: Errors,
    /// The errors with fitted rows left out of their fit; only for the role *fit*.
    #[serde(flatten)]
    pub left_out: Option<WithLeftOut>,
    /// The errors of the null baseline, and ours on the same rows; `None` if no row has one.
    #[serde(flatten)]
    pub null: Option<BesideNull>,
    /// Bounds, ranges, orders and *never* rows that are true ...
    pub held: usize,
    /// ... of this many.
    pub bounds: usize,
}

/// The absolute relative errors of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Errors {
    /// Rows whose paper gives a number, other than inputs, counts and results that only training produces.
    pub numbers: usize,
    /// Numbers with an answer.
    pub answered_numbers: usize,
    /// The median of all, with 1 for those without an answer; `None` if there are none.
    pub median_error: Option<f64>,
    /// The median of those with an answer; `None` if there are none.
    pub median_of_answered: Option<f64>,
}

/// Our errors and those of the null baseline, on the same rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BesideNull {
    /// Numbers that have a null baseline.
    pub null_rows: usize,
    /// The median of the baseline's errors.
    pub median_null: f64,
    /// The median of our errors.
    pub median_beside_null: f64,
}

/// Every role that has rows, paper by paper.
pub fn tallies(cells: &[ComparedCell], left_out: &LeftOutErrors) -> Vec<Tally> {
    let papers = Reference::papers().chain([COMPARISON]);
    let groups = papers.flat_map(|paper| Role::ALL.map(|role| (paper, role)));
    let tally = |(paper, role)| {
        let of_role: Vec<&ComparedCell> =
            cells.iter().filter(|cell| cell.paper == paper && cell.role() == role).collect();
        (!of_role.is_empty()).then(|| tally(paper, role, &of_role, left_out))
    };
    groups.filter_map(tally).collect()
}

fn tally(paper: &'static str, role: Role, cells: &[&ComparedCell], left_out: &LeftOutErrors) -> Tally {
    let numbers: Vec<(&ComparedCell, f64)> = cells.iter().filter_map(|cell| Some((*cell, numeric(cell)?))).collect();
    let null = |(cell, paper): &(&ComparedCell, f64)| Some((relative(cell.null?, *paper), distance(cell)));
    let (nulls, beside): (Vec<f64>, Vec<f64>) = numbers.iter().filter_map(null).unzip();
    let null_rows = nulls.len();
    let answered: Vec<f64> =
        numbers.iter().filter(|(cell, _)| cell.answered()).map(|(cell, _)| distance(cell)).collect();
    // Bounds, ranges, orders and *never* claims.
    let bounds = || {
        let counted = cells.iter().filter(|cell| cell.verdict != Verdict::Input && cell.counts());
        counted.filter(|cell| !matches!(cell.claim, Claim::Value(_)))
    };
    Tally {
        paper,
        role,
        rows: cells.len(),
        answered: cells.iter().filter(|cell| cell.answered()).count(),
        in_view: cells.iter().filter(|cell| cell.status == Status::InView).count(),
        contradicted: cells.iter().filter(|cell| cell.contradicted).count(),
        errors: Errors {
            numbers: numbers.len(),
            answered_numbers: answered.len(),
            median_error: median(numbers.iter().map(|(cell, _)| distance(cell)).collect()),
            median_of_answered: median(answered),
        },
        left_out: (role == Role::Fit).then(|| WithLeftOut::new(&numbers, left_out)),
        null: median(nulls).zip(median(beside)).map(|(null, ours)| BesideNull {
            null_rows,
            median_null: null,
            median_beside_null: ours,
        }),
        held: bounds().filter(|cell| cell.verdict == Verdict::Holds).count(),
        bounds: bounds().count(),
    }
}

/// The columns of [`Tally::figures`], on a terminal and elsewhere.
pub const COLUMNS: [&str; 9] = [
    "paper",
    "role",
    "rows",
    "answered",
    "median error of numbers",
    "unanswered as 100%",
    "all as fitted",
    "null baseline on the same rows",
    "claims that hold",
];

impl Tally {
    /// The tally as text, one cell for each of [`COLUMNS`]: for the role *fit*, the medians with rows left out of the
    /// fit, followed by the medians of all rows as fitted, with the number of rows that were left out.
    pub fn figures(&self) -> [String; 9] {
        let Errors { numbers, answered_numbers, .. } = self.errors;
        let dash = || "–".to_owned();
        let (median_error, median_of_answered) =
            self.left_out.map_or((self.errors.median_error, self.errors.median_of_answered), |with| {
                (with.median_error_left_out, with.median_of_answered_left_out)
            });
        let answered = |median| format!("{} ({answered_numbers} of {numbers})", percent(median));
        let as_fitted = |(with, median): (WithLeftOut, f64)| {
            let WithLeftOut { left_out_numbers, stale_numbers, .. } = with;
            let stale = if stale_numbers == 0 { String::new() } else { format!(", {stale_numbers} stale") };
            format!("{} ({left_out_numbers} left out{stale})", percent(median))
        };
        let null = |null: BesideNull| {
            let BesideNull { null_rows, median_null, median_beside_null } = null;
            format!("{}, ours {} ({null_rows})", percent(median_null), percent(median_beside_null))
        };
        [
            self.paper.to_owned(),
            self.role.to_string(),
            self.rows.to_string(),
            self.answered.to_string(),
            median_of_answered.map_or_else(dash, answered),
            median_error.map_or_else(dash, percent),
            self.left_out.zip(self.errors.median_of_answered).map_or_else(dash, as_fitted),
            self.null.map_or_else(dash, null),
            if self.bounds == 0 { dash() } else { format!("{} of {}", self.held, self.bounds) },
        ]
    }

    /// Sentences on facts that the figures do not show: that the null baseline is nearer, or that rows do not count.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        let Self { paper, role, .. } = self;
        let said = |count: usize, how: &str| {
            (count > 0).then(|| format!("{paper}, {role}: {} {how}.", counted(count, "row", "rows")))
        };
        let in_view = said(self.in_view, "in view when a choice was made; only misses among them count");
        let contradicted = said(self.contradicted, "at odds with others of the paper, which count nowhere");
        [self.null_that_wins(), in_view, contradicted].into_iter().flatten()
    }

    /// The sentence that the null baseline is nearer; `None` if it is not.
    fn null_that_wins(&self) -> Option<String> {
        let BesideNull { null_rows, median_null, median_beside_null } = self.null?;
        (median_null < median_beside_null).then(|| {
            let rows = counted(null_rows, "row", "rows");
            let (null, ours) = (percent(median_null), percent(median_beside_null));
            format!(
                "{}, {}: on {rows} the null baseline is nearer than this model ({null} off, ours {ours}).",
                self.paper, self.role
            )
        })
    }
}

fn percent(fraction: f64) -> String {
    format!("{:.1}%", fraction * 100.0)
}

/// The paper's number, if the row counts for medians.
fn numeric(cell: &ComparedCell) -> Option<f64> {
    let counts = !NOT_IN_MEDIANS.contains(&cell.metric.as_str()) && cell.verdict != Verdict::Input && cell.counts();
    let Claim::Value(paper) = cell.claim else { return None };
    paper.filter(|_| counts)
}

/// The absolute error; 1 without an answer, or for the answer *never*.
pub(crate) fn distance(cell: &ComparedCell) -> f64 {
    cell.error.map_or(1.0, f64::abs)
}

fn relative(value: f64, paper: f64) -> f64 {
    if paper == 0.0 { value.abs() } else { ((value - paper) / paper).abs() }
}

/// The errors of a role's numbers, where each row that constants were fitted to has its leave-one-out error: the error
/// with the constants fitted to all other rows. Rows that belong to no calibration, such as those from which a constant
/// was solved, keep their errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WithLeftOut {
    /// Numbers with an answer and a leave-one-out error.
    pub left_out_numbers: usize,
    /// Numbers whose stored leave-one-out error is older than the constants: they keep their errors.
    pub stale_numbers: usize,
    /// The median of all numbers, with 1 for those without an answer; `None` if there are none.
    pub median_error_left_out: Option<f64>,
    /// The median of those with an answer; `None` if there are none.
    pub median_of_answered_left_out: Option<f64>,
}

impl WithLeftOut {
    pub(crate) fn new(numbers: &[(&ComparedCell, f64)], left_out: &LeftOutErrors) -> Self {
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

/// The leave-one-out error of a cell; `None` if it has none: other roles than *fit*, cells without an answer, rows that
/// belong to no calibration, or errors older than the constants.
pub(crate) fn left_out_error(cell: &ComparedCell, left_out: &LeftOutErrors) -> Option<f64> {
    match left_out.of(&cell.id) {
        Some(Known::LeftOut(error)) if cell.role() == Role::Fit && cell.answered() => Some(error),
        _ => None,
    }
}

/// The numbers of verdicts, and the errors of rows with numbers.
pub(crate) struct Glance {
    total: Total,
    /// The absolute errors of the numbers that are judged, as fractions.
    errors: Vec<f64>,
}

impl Glance {
    /// The glance at these rows.
    pub(crate) fn of<'c>(cells: impl Iterator<Item = &'c ComparedCell> + Clone) -> Self {
        let is_judged = |cell: &&ComparedCell| {
            matches!(cell.claim, Claim::Value(_)) && matches!(cell.verdict, Verdict::Ok | Verdict::Off) && cell.counts()
        };
        // Accuracies are judged by points, not by their errors.
        let numbers = cells.clone().filter(is_judged).filter(|cell| cell.points.is_none());
        Self { total: Total::of(cells.clone()), errors: numbers.filter_map(|cell| cell.error.map(f64::abs)).collect() }
    }

    /// "3 of 4 rows match, median error 8%"; `None` if no row is judged.
    pub(crate) fn corner(&self) -> Option<String> {
        let Total { matched, missed, predicted, .. } = self.total;
        let judged = matched + missed;
        if judged == 0 {
            return (predicted > 0).then(|| "predicted".to_owned());
        }
        let rows = if judged == 1 { "row" } else { "rows" };
        let verb = if matched == 1 { "matches" } else { "match" };
        let error = median(self.errors.clone()).map(|error| format!(", median error {:.0}%", error * 100.0));
        Some(format!("{} of {judged} {rows} {verb}{}", matched, error.unwrap_or_default()))
    }

    /// The same as a sentence, with the rows that are not judged; empty if the paper has no row.
    pub(crate) fn sentence(&self) -> String {
        let Total { rows, matched, missed, not_modelled, .. } = self.total;
        let mut parts = Vec::new();
        let judged = matched + missed;
        if judged > 0 {
            let verb = if matched == 1 { "matches" } else { "match" };
            parts.push(format!(
                "{} of {} that can be judged {verb} the paper",
                matched,
                counted(judged, "row", "rows")
            ));
        }
        let largest = self.errors.iter().copied().max_by(f64::total_cmp);
        match (self.errors.len(), median(self.errors.clone()), largest) {
            (1, Some(error), _) => parts.push(format!("the number is {:.1}% off", error * 100.0)),
            (numbers, Some(median), Some(largest)) => parts.push(format!(
                "the median error of {numbers} numbers is {:.1}%, the largest {:.1}%",
                median * 100.0,
                largest * 100.0
            )),
            _ => {}
        }
        let not_modelled = (not_modelled, "has no answer", "have no answer");
        for (count, one, many) in self.total.unjudged().into_iter().chain([not_modelled]) {
            if count > 0 {
                parts.push(format!("{count} {}", if count == 1 { one } else { many }));
            }
        }
        if rows == 0 || parts.is_empty() { String::new() } else { format!("{}.", parts.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::Answer;
    use crate::papers::reference::{Claim, example};
    use crate::papers::summary::tallies;

    fn cell(metric: &str, claim: Claim, role: Role, answer: Answer) -> ComparedCell {
        ComparedCell::new(&example(metric, claim, role), answer).unwrap()
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
        let tallies = tallies(&cells, &LeftOutErrors::default());
        // Errors 0.1, 0.2 and 1 (no answer): the median is 0.2. The accuracy and the input are left out. The null
        // baseline is off by 5 / 100 on the one row where ours is off by 20 / 100.
        let check = Tally {
            paper: "sage",
            role: Role::Check,
            rows: 7,
            answered: 5,
            in_view: 0,
            contradicted: 0,
            // Of the two with an answer (0.1 + 0.2) / 2 = 0.15.
            errors: Errors {
                numbers: 3,
                answered_numbers: 2,
                median_error: Some(0.2),
                median_of_answered: Some(0.15000000000000002),
            },
            left_out: None,
            null: Some(BesideNull { null_rows: 1, median_null: 0.05, median_beside_null: 0.2 }),
            held: 1,
            bounds: 2,
        };
        assert_eq!(tallies[0], check);
        assert_eq!((tallies[1].role, tallies[1].errors.median_error, tallies[1].rows), (Role::Withheld, None, 1));
        assert_eq!(tallies.len(), 2);
        let figures = ["sage", "check", "7", "5", "15.0% (2 of 3)", "20.0%", "–", "5.0%, ours 20.0% (1)", "1 of 2"];
        assert_eq!(check.figures(), figures);
        let words = "sage, check: on 1 row the null baseline is nearer than this model (5.0% off, ours 20.0%).";
        assert_eq!(check.remarks().collect::<Vec<_>>(), [words]);
        assert_eq!(tallies[1].remarks().count(), 0);
        // 110 is within 15%, 6 is above 5; 80 and the accuracy of 50 are off.
        let total =
            Total { rows: 8, matched: 2, missed: 2, predicted: 1, not_modelled: 2, inputs: 1, ..Total::default() };
        assert_eq!(Total::of(&cells), total);
        let words = "8 rows: 2 match, 2 miss, 1 is predicted, 2 are not modelled, 1 was put in";
        assert_eq!(total.to_string(), words);
    }

    #[test]
    fn a_row_in_view_counts_where_it_misses_and_one_that_contradicts_nowhere() {
        let value = |answer| cell("time", Claim::Value(Some(100.0)), Role::Check, Answer::Number(answer));
        let bound = |answer| cell("time", Claim::Min(5.0), Role::Check, Answer::Number(answer));
        let mut cells = [value(120.0), value(110.0), value(150.0), value(190.0), bound(6.0), bound(4.0)];
        for place in [1, 2, 4, 5] {
            cells[place].status = Status::InView;
        }
        cells[3].contradicted = true;
        let check = &tallies(&cells, &LeftOutErrors::default())[0];
        // 0.2 and 0.5 count, 0.1 was in view, 0.9 contradicts; the true bound was in view.
        assert_eq!((check.rows, check.in_view, check.contradicted, check.errors.numbers), (6, 4, 1, 2));
        assert_eq!((check.errors.median_error, check.held, check.bounds), (Some(0.35), 0, 1));
        let words = [
            "sage, check: 4 rows in view when a choice was made; only misses among them count.",
            "sage, check: 1 row at odds with others of the paper, which count nowhere.",
        ];
        assert_eq!(check.remarks().collect::<Vec<_>>(), words);
        let total = Total::of(&cells).to_string();
        assert_eq!(total, "6 rows: 3 miss, 2 match in view of a choice, 1 contradicts others of its paper");
    }

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
            // Rows of role check are never left out.
            value("a", Role::Check, Answer::Number(104.0)),
        ];
        // 0.01 as fitted, 0.3 left out; 0.02 as fitted, with a stale stored error; 0.03 belongs to no calibration.
        let known = [("a", Known::LeftOut(-0.3)), ("b", Known::Stale), ("d", Known::LeftOut(0.1))];
        let tallies = tallies(&cells, &LeftOutErrors::of_rows(known));
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
        assert_eq!(left_out_error(&cells[0], &LeftOutErrors::of_rows(known)), Some(-0.3));
        assert_eq!(left_out_error(&cells[4], &LeftOutErrors::of_rows(known)), None);
    }

    #[test]
    fn what_is_judged_comes_first_and_what_is_not_is_said() {
        let cell = |claim, role, answer| ComparedCell::new(&example("time", claim, role), answer).unwrap();
        let value = |answer| cell(Claim::Value(Some(100.0)), Role::Check, Answer::Number(answer));
        let cells = [
            value(110.0),
            value(80.0),
            value(190.0),
            cell(Claim::Min(5.0), Role::Check, Answer::Number(6.0)),
            cell(Claim::Value(None), Role::Withheld, Answer::Number(3.0)),
        ];
        // Errors of 10, 20 and 90%: the median is 20%. 110 and the bound match.
        let glance = Glance::of(cells.iter());
        assert_eq!(glance.corner().unwrap(), "2 of 4 rows match, median error 20%");
        assert_eq!(
            glance.sentence(),
            "2 of 4 rows that can be judged match the paper; the median error of 3 numbers is 20.0%, the largest 90.0%; \
             1 is predicted."
        );
        assert_eq!(Glance::of(cells[4..].iter()).corner().as_deref(), Some("predicted"));
        assert_eq!((Glance::of([].iter()).corner(), Glance::of([].iter()).sentence().as_str()), (None, ""));
        let one = Glance::of(cells[..1].iter());
        assert_eq!(one.sentence(), "1 of 1 row that can be judged matches the paper; the number is 10.0% off.");
    }
}
