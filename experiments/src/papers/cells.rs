//! `cells.csv`: simulated results compared with the papers' numbers, and the verdict on each.
//!
//! The rules of the verdicts are defined only here. Numbers are rounded to six significant digits first, so that errors
//! and verdicts can be recomputed from the file.

use anyhow::{Result, bail, ensure};
use haversack_reports::page::CellRow;
use haversack_reports::table::{Cell as TableCell, Table, WidthError, shortest};
use serde::Serialize;

use super::{Claim, ReferenceRow, Role, Status};

/// The columns of `cells.csv`.
pub const COLUMNS: [&str; 9] = ["id", "simulated", "unit", "paper", "role", "error", "verdict", "null", "reason"];

/// A `value` row is `ok` up to this relative error.
pub(crate) const OK: f64 = 0.15;
/// An accuracy on a stand-in is `ok` if its difference from the baseline's is at most this many points from
/// the paper's difference.
const POINTS: f64 = 1.0;
/// An upper bound, and either end of the paper's range, may be missed by this factor.
const WIDENED: f64 = 1.1;
/// An upper bound on a factor (unit `x`) may be undershot by at most this factor.
const SHORT: f64 = 1.5;
/// The unit of factors.
const TIMES: &str = "x";
/// The unit of temperatures.
const CELSIUS: &str = "C";
/// A bound missed by more than this factor gets a remark.
const FAR: f64 = 2.0;

/// The outcome of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Verdict {
    /// A value within 15%; an accuracy on a stand-in, whose difference from the baseline is within a
    /// point of the paper's.
    Ok,
    /// A value further off.
    Off,
    /// A bound, range, order or *never* that is true.
    Holds,
    /// One that is false.
    Fails,
    /// The paper's value is withheld.
    Predicted,
    /// A declared input.
    Input,
    /// No answer.
    NotModelled,
}

impl Verdict {
    fn holds(yes: bool) -> Self {
        if yes { Self::Holds } else { Self::Fails }
    }
}

/// One row of `cells.csv`.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct ComparedCell {
    /// The reference id.
    pub id: String,
    /// The paper.
    pub paper: &'static str,
    /// The artefact.
    pub artefact: String,
    /// The quantity.
    pub metric: String,
    /// The permitted uses of the row.
    pub status: Status,
    /// Whether it contradicts other rows of the paper, so that it counts neither for nor against the model.
    pub contradicted: bool,
    /// The paper's claim.
    pub claim: Claim,
    /// The simulated answer, rounded; `None` if there is none.
    pub answer: Option<Answer>,
    /// The unit of both.
    pub unit: String,
    /// Signed relative error; absolute where the paper's value is 0.
    pub error: Option<f64>,
    /// For an accuracy on a stand-in, by how many points its difference from the baseline's exceeds the paper's, which
    /// decides the verdict; `None` for other rows.
    pub points: Option<f64>,
    /// The outcome.
    pub verdict: Verdict,
    /// The prediction of the null baseline.
    pub null: Option<f64>,
    /// The reason why it has no answer, or a remark.
    pub reason: String,
}

impl ComparedCell {
    /// Compares the answer with the row, in the row's own unit, without a null baseline.
    ///
    /// # Errors
    /// An answer of the wrong kind for the row.
    pub fn new(row: &ReferenceRow, answer: Answer) -> anyhow::Result<Self> {
        let answer = checked(row, answer)?;
        if let Answer::NotModelled(reason) = answer {
            return Ok(Self::not_modelled(row, reason));
        }
        let (error, verdict) = (error(row, &answer), verdict(row, &answer));
        Ok(Self { answer: Some(answer), error, verdict, ..Self::not_modelled(row, "") })
    }

    /// A row without an answer.
    pub fn not_modelled(row: &ReferenceRow, reason: impl Into<String>) -> Self {
        Self {
            id: row.id.clone(),
            paper: row.paper,
            artefact: row.artefact.clone(),
            metric: row.metric.clone(),
            status: row.status,
            contradicted: row.contradicted,
            claim: row.claim.clone(),
            answer: None,
            unit: row.unit.clone(),
            error: None,
            points: None,
            verdict: Verdict::NotModelled,
            null: None,
            reason: reason.into(),
        }
    }

    /// The role of the row in the reference.
    pub const fn role(&self) -> Role {
        self.status.role()
    }

    /// Whether its verdict counts: a row that was in view when a choice was made counts only if it misses, and a row
    /// that contradicts other numbers of its paper never counts.
    pub(crate) fn counts(&self) -> bool {
        let matches = matches!(self.verdict, Verdict::Ok | Verdict::Holds);
        !(self.contradicted || self.status == Status::InView && matches)
    }

    /// Adds a remark to the row.
    pub(crate) fn remark(&mut self, remark: &str) {
        let between = if self.reason.is_empty() { "" } else { "; " };
        self.reason += &format!("{between}{remark}");
    }

    /// The simulated value as `cells.csv` shows it.
    pub fn simulated(&self) -> String {
        match self.answer {
            Some(Answer::Number(value) | Answer::Input(value)) => shortest(value),
            Some(Answer::Range(lo, hi)) => format!("{}..{}", shortest(lo), shortest(hi)),
            Some(Answer::Never) => "never".to_owned(),
            Some(Answer::Order(holds)) => holds.to_string(),
            Some(Answer::NotModelled(_)) | None => String::new(),
        }
    }

    /// The paper's value as `cells.csv` shows it.
    pub fn paper_value(&self) -> String {
        match &self.claim {
            Claim::Value(value) => value.map(shortest).unwrap_or_default(),
            Claim::Never => "never".to_owned(),
            Claim::Min(value) | Claim::Max(value) => shortest(*value),
            Claim::Range { lo, hi } => format!("{}..{}", shortest(*lo), shortest(*hi)),
            Claim::Order(words) => words.clone(),
        }
    }

    /// Whether there is an answer.
    pub const fn answered(&self) -> bool {
        self.answer.is_some()
    }

    /// By how much a bound, or an end of a range, differs from the simulated value, in words, if by more than
    /// [`FAR`]; `None` otherwise.
    pub(crate) fn far_from_its_bound(&self) -> Option<String> {
        let away = |value: f64, bound: f64| {
            let ratio = value / bound;
            let far = ratio.is_finite() && ratio > 0.0 && !(1.0 / FAR..=FAR).contains(&ratio);
            far.then(|| if ratio > 1.0 { format!("{ratio:.1} times") } else { format!("1/{:.1} of", 1.0 / ratio) })
        };
        match (&self.claim, &self.answer) {
            (Claim::Min(bound) | Claim::Max(bound), Some(Answer::Number(value))) => {
                away(*value, *bound).map(|away| format!("{away} the paper's bound"))
            }
            (Claim::Range { lo, hi }, Some(Answer::Range(from, to))) => {
                let zero = zero(&self.unit, *lo);
                let ends = [(from, lo, "lower"), (to, hi, "upper")];
                let ends = ends.into_iter().filter_map(|(value, end, name)| {
                    away(value - zero, end - zero).map(|away| format!("{away} the paper's {name} end"))
                });
                Some(ends.collect::<Vec<_>>().join(", ")).filter(|words| !words.is_empty())
            }
            _ => None,
        }
    }

    /// The row as the page shows it.
    pub fn page_row(&self) -> CellRow {
        CellRow {
            id: self.id.clone(),
            simulated: self.simulated(),
            unit: self.unit.clone(),
            paper: self.paper_value(),
            role: self.role().to_string(),
            error: self.error,
            left_out: None,
            verdict: self.verdict.to_string(),
            null: self.null.map(shortest).unwrap_or_default(),
            reason: self.reason.clone(),
        }
    }
}

/// An accuracy from another artefact, used as an input: the baseline on the same stand-in.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// Its row.
    pub row: ReferenceRow,
    /// The stand-in's, in percent.
    pub simulated: f64,
}

/// A table whose accuracies are judged relative to a row of another: paper, table, the other table, and the
/// method of its row.
const BESIDE: [[&str; 4]; 1] = [["fedhybrid", "table4", "table3", "random+fedprox"]];

/// Whether a row's accuracy is judged relative to that of `other`.
fn is_beside(row: &ReferenceRow, other: &ReferenceRow) -> bool {
    let named = [row.paper, &row.artefact, &other.artefact, &other.method];
    let same = row.artefact == other.artefact || BESIDE.contains(&named);
    (row.paper, &row.subject) == (other.paper, &other.subject) && same
}

/// Whether a row's accuracy is judged relative to a row of another table that is not among `rows`.
pub(crate) fn misses_its_baseline(row: &ReferenceRow, rows: &[&ReferenceRow]) -> bool {
    let beside = BESIDE.iter().any(|[paper, table, ..]| (row.paper, row.artefact.as_str()) == (*paper, *table));
    beside
        && row.metric == "accuracy"
        && !rows.iter().any(|other| row.artefact != other.artefact && is_beside(row, other))
}

/// Judges accuracies that were measured on a stand-in: where a row of the same subject was an input (the baseline on
/// the same stand-in; also `elsewhere`, in another artefact), the others are `ok` if their difference from it lies
/// within [`POINTS`] of the paper's difference. Among several baselines, the one whose method has the same ending as
/// the row's (`+yogi`) is used, or else the first.
pub(crate) fn judge_differences(rows: &[&ReferenceRow], elsewhere: &[Baseline], cells: &mut [ComparedCell]) {
    let is_accuracy = |row: &ReferenceRow| row.metric == "accuracy" && row.unit == "percent";
    let own =
        rows.iter().zip(&*cells).filter(|(row, _)| is_accuracy(row)).filter_map(|(row, cell)| match cell.answer {
            Some(Answer::Input(value)) => Some((*row, value)),
            _ => None,
        });
    let inputs: Vec<(&ReferenceRow, f64)> =
        own.chain(elsewhere.iter().map(|baseline| (&baseline.row, baseline.simulated))).collect();
    for (row, cell) in rows.iter().zip(cells).filter(|(row, _)| is_accuracy(row)) {
        let beside = || inputs.iter().filter(|(other, _)| is_beside(row, other));
        let alike = beside().find(|(other, _)| ending(&other.method) == ending(&row.method));
        let Some((baseline, input)) = alike.or_else(|| beside().next()) else { continue };
        let judged = matches!(cell.verdict, Verdict::Ok | Verdict::Off);
        if let (true, Some(Answer::Number(simulated)), Some(paper), Some(paper_input)) =
            (judged, &cell.answer, row.number(), baseline.number())
        {
            let miss = rounded((simulated - input) - (paper - paper_input));
            cell.points = Some(miss);
            cell.verdict = if miss.abs() <= POINTS { Verdict::Ok } else { Verdict::Off };
        }
    }
}

/// The ending of a combined method: `yogi` for `oort+yogi`.
fn ending(method: &str) -> Option<&str> {
    method.rsplit_once('+').map(|(_, ending)| ending)
}

/// The cells as a table with [`COLUMNS`].
///
/// # Errors
/// Only for a row of the wrong width, a bug in this module.
pub fn table(cells: &[ComparedCell]) -> Result<Table, WidthError> {
    let mut table = Table::new(COLUMNS);
    for cell in cells {
        let row = cell.page_row();
        let error = TableCell::from(row.error);
        let text = [row.id, row.simulated, row.unit, row.paper, row.role].map(TableCell::from);
        let rest = [row.verdict, row.null, row.reason].map(TableCell::from);
        table.push(text.into_iter().chain([error]).chain(rest))?;
    }
    Ok(table)
}

/// The origin from which the ends of a range are widened: the zero of degrees Celsius is arbitrary, so for temperatures
/// only the rise counts.
fn zero(unit: &str, lo: f64) -> f64 {
    if unit == CELSIUS { lo } else { 0.0 }
}

fn error(row: &ReferenceRow, answer: &Answer) -> Option<f64> {
    let (Answer::Number(simulated) | Answer::Input(simulated)) = *answer else { return None };
    let paper = row.number()?;
    let error = if paper == 0.0 { simulated.abs() } else { (simulated - paper) / paper };
    Some(rounded(error))
}

fn verdict(row: &ReferenceRow, answer: &Answer) -> Verdict {
    match (&row.claim, answer) {
        (_, Answer::NotModelled(_)) => Verdict::NotModelled,
        (_, Answer::Input(_)) => Verdict::Input,
        _ if row.status == Status::PutIn => Verdict::Input,
        _ if row.status == Status::Withheld => Verdict::Predicted,
        (Claim::Value(_), Answer::Number(_)) => {
            let close = error(row, answer).is_some_and(|error| error.abs() <= OK);
            if close { Verdict::Ok } else { Verdict::Off }
        }
        (Claim::Value(_), _) => Verdict::Off,
        (Claim::Never, answer) => Verdict::holds(*answer == Answer::Never),
        (Claim::Min(bound), Answer::Number(value)) => Verdict::holds(value >= bound),
        (Claim::Max(bound), Answer::Number(value)) => {
            let reached = row.unit != TIMES || *value >= bound / SHORT;
            Verdict::holds(*value <= bound * WIDENED && reached)
        }
        (Claim::Range { lo, hi }, Answer::Range(from, to)) => {
            let [lo, hi, from, to] = [lo, hi, from, to].map(|end| end - zero(&row.unit, *lo));
            Verdict::holds(from >= lo / WIDENED && to <= hi * WIDENED)
        }
        (Claim::Order(_), answer) => Verdict::holds(*answer == Answer::Order(true)),
        (Claim::Min(_) | Claim::Max(_) | Claim::Range { .. }, _) => Verdict::Fails,
    }
}

/// An artefact's answer to a row of the reference.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// One number, in the row's unit or the unit that a reading declares.
    Number(f64),
    /// The lowest and the highest of a set.
    Range(f64, f64),
    /// The target is never reached.
    Never,
    /// Whether the row's predicate is true.
    Order(bool),
    /// A number that was an input, not predicted.
    Input(f64),
    /// No answer, and the reason.
    NotModelled(String),
}

/// `value` to six significant digits; whole numbers are kept, so that counts stay counts.
pub(crate) fn rounded(value: f64) -> f64 {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return value + 0.0; // −0 becomes 0.
    }
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// The answer, rounded.
///
/// # Errors
/// An answer of the wrong kind for the row, which is a bug in the artefact: a kind other than the row's, an infinite or
/// NaN number, a range whose low end is above its high end.
pub(crate) fn checked(row: &ReferenceRow, answer: Answer) -> Result<Answer> {
    let id = &row.id;
    let finite = |value: f64| {
        ensure!(value.is_finite(), "{id}: {value} is not a finite number");
        Ok(rounded(value))
    };
    let one_number = matches!(row.claim, Claim::Value(_) | Claim::Never | Claim::Min(_) | Claim::Max(_));
    let found = match answer {
        Answer::Number(value) if one_number => return Ok(Answer::Number(finite(value)?)),
        Answer::Input(value) if one_number => return Ok(Answer::Input(finite(value)?)),
        Answer::Range(lo, hi) if matches!(row.claim, Claim::Range { .. }) => {
            let (lo, hi) = (finite(lo)?, finite(hi)?);
            ensure!(lo <= hi, "{id}: the range runs from {lo} down to {hi}");
            return Ok(Answer::Range(lo, hi));
        }
        Answer::Order(holds) if matches!(row.claim, Claim::Order(_)) => return Ok(Answer::Order(holds)),
        Answer::Never if one_number => return Ok(Answer::Never),
        Answer::NotModelled(reason) => return Ok(Answer::NotModelled(reason)),
        Answer::Number(_) | Answer::Input(_) => "one number",
        Answer::Range(..) => "a range",
        Answer::Order(_) => "true or false",
        Answer::Never => "never",
    };
    bail!("{id}: the row is {}, the answer is {found}", kind(&row.claim))
}

const fn kind(claim: &Claim) -> &'static str {
    match claim {
        Claim::Value(_) | Claim::Never => "a value",
        Claim::Min(_) | Claim::Max(_) => "a bound",
        Claim::Range { .. } => "a range",
        Claim::Order(_) => "an order",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::reference::{Role, example};

    fn row(claim: Claim, role: Role) -> ReferenceRow {
        example("time", claim, role)
    }

    /// Simulated, error and verdict.
    fn judged(claim: Claim, answer: Answer) -> (String, Option<f64>, String) {
        let cell = ComparedCell::new(&row(claim, Role::Check), answer).unwrap();
        (cell.simulated(), cell.error, cell.verdict.to_string())
    }

    #[test]
    fn a_value_is_ok_within_fifteen_hundredths() {
        let judge = |simulated| judged(Claim::Value(Some(200.0)), Answer::Number(simulated));
        // (230 − 200) / 200 = 0.15, the largest that is ok; (170 − 200) / 200 = −0.15; (231 − 200) / 200 = 0.155.
        assert_eq!(judge(230.0), ("230".into(), Some(0.15), "ok".into()));
        assert_eq!(judge(170.0), ("170".into(), Some(-0.15), "ok".into()));
        assert_eq!(judge(231.0), ("231".into(), Some(0.155), "off".into()));
        // If the paper has a number, the answer *never* is off, without an error.
        assert_eq!(judged(Claim::Value(Some(200.0)), Answer::Never), ("never".into(), None, "off".into()));
    }

    #[test]
    fn beside_zero_the_error_is_absolute() {
        let judge = |simulated| judged(Claim::Value(Some(0.0)), Answer::Number(simulated));
        assert_eq!(judge(0.1), ("0.1".into(), Some(0.1), "ok".into()));
        assert_eq!(judge(0.2), ("0.2".into(), Some(0.2), "off".into()));
    }

    #[test]
    fn bounds_hold_up_to_a_tenth_beyond_an_upper_one() {
        // (9 − 8) / 8 = 0.125; (7 − 8) / 8 = −0.125.
        assert_eq!(judged(Claim::Min(8.0), Answer::Number(9.0)), ("9".into(), Some(0.125), "holds".into()));
        assert_eq!(judged(Claim::Min(8.0), Answer::Number(8.0)).2, "holds");
        assert_eq!(judged(Claim::Min(8.0), Answer::Number(7.0)), ("7".into(), Some(-0.125), "fails".into()));
        assert_eq!(judged(Claim::Max(8.0), Answer::Number(8.0)).2, "holds");
        // 8 · 1.1 = 8.8.
        assert_eq!(judged(Claim::Max(8.0), Answer::Number(8.7)).2, "holds");
        assert_eq!(judged(Claim::Max(8.0), Answer::Number(8.9)).2, "fails");
        assert_eq!(judged(Claim::Max(8.0), Answer::Number(1.0)).2, "holds");
        // A factor may fall short of its bound by at most a third: 9 / 1.5 = 6.
        let times = ReferenceRow { unit: "x".into(), ..row(Claim::Max(9.0), Role::Check) };
        let verdict = |value| ComparedCell::new(&times, Answer::Number(value)).unwrap().verdict;
        assert_eq!([6.0, 5.9].map(verdict), [Verdict::Holds, Verdict::Fails]);
        assert_eq!(judged(Claim::Max(8.0), Answer::Never).2, "fails");
    }

    #[test]
    fn a_range_lies_in_the_papers_widened_by_a_tenth() {
        let judge = |lo, hi| judged(Claim::Range { lo: 11.0, hi: 40.0 }, Answer::Range(lo, hi));
        assert_eq!(judge(11.0, 40.0), ("11..40".into(), None, "holds".into()));
        // 11 / 1.1 = 10 and 40 · 1.1 = 44 are the widest.
        assert_eq!(judge(10.01, 43.9).2, "holds");
        assert_eq!(judge(9.9, 40.0).2, "fails");
        assert_eq!(judge(11.0, 44.1).2, "fails");
        assert_eq!(judge(20.0, 21.0).2, "holds");
    }

    #[test]
    fn of_temperatures_the_rise_is_judged() {
        let row = ReferenceRow { unit: "C".into(), ..row(Claim::Range { lo: 29.0, hi: 69.0 }, Role::Check) };
        let judged = |from, to| ComparedCell::new(&row, Answer::Range(from, to)).unwrap();
        // A rise of 40 may be 44, which is 73 degrees, not 69 · 1.1 = 75.9.
        assert_eq!([72.9, 73.1].map(|to| judged(29.0, to).verdict), [Verdict::Holds, Verdict::Fails]);
        // 10 of 40 degrees; 39 degrees are more than half of 69.
        let away = judged(29.0, 39.0).far_from_its_bound();
        assert_eq!(away.as_deref(), Some("1/4.0 of the paper's upper end"));
    }

    #[test]
    fn a_bound_more_than_twice_away_says_so() {
        let far = |claim, answer| ComparedCell::new(&row(claim, Role::Check), answer).unwrap().far_from_its_bound();
        assert_eq!(far(Claim::Min(8.0), Answer::Number(16.0)), None);
        // 20 / 8 = 2.5; 8 / 2 = 4.
        assert_eq!(far(Claim::Min(8.0), Answer::Number(20.0)).as_deref(), Some("2.5 times the paper's bound"));
        assert_eq!(far(Claim::Max(8.0), Answer::Number(2.0)).as_deref(), Some("1/4.0 of the paper's bound"));
        let range = || Claim::Range { lo: 2.0, hi: 40.0 };
        assert_eq!(far(range(), Answer::Range(3.0, 30.0)), None);
        let both = "2.5 times the paper's lower end, 1/4.0 of the paper's upper end";
        assert_eq!(far(range(), Answer::Range(5.0, 10.0)).as_deref(), Some(both));
        assert_eq!(far(Claim::Value(Some(1.0)), Answer::Number(9.0)), None);
    }

    #[test]
    fn a_row_that_was_put_in_is_an_input_whatever_it_claims() {
        let put_in = |claim| ReferenceRow { status: Status::PutIn, ..row(claim, Role::Fit) };
        let verdict = |claim, answer| ComparedCell::new(&put_in(claim), answer).unwrap().verdict;
        assert_eq!(verdict(Claim::Value(Some(3.0)), Answer::Number(3.0)), Verdict::Input);
        assert_eq!(verdict(Claim::Range { lo: 1.0, hi: 2.0 }, Answer::Range(1.0, 2.0)), Verdict::Input);
        let absent = Answer::NotModelled("later".into());
        assert_eq!(verdict(Claim::Value(Some(3.0)), absent), Verdict::NotModelled);
    }

    #[test]
    fn orders_and_never_hold_or_fail_without_an_error() {
        assert_eq!(judged(Claim::Order("a > b".into()), Answer::Order(true)), ("true".into(), None, "holds".into()));
        assert_eq!(judged(Claim::Order(String::new()), Answer::Order(false)), ("false".into(), None, "fails".into()));
        assert_eq!(judged(Claim::Never, Answer::Never), ("never".into(), None, "holds".into()));
        assert_eq!(judged(Claim::Never, Answer::Number(3.0)), ("3".into(), None, "fails".into()));
    }

    #[test]
    fn an_accuracy_beside_one_that_was_put_in_is_judged_by_its_difference() {
        let row = |method: &str, paper| ReferenceRow {
            unit: "percent".into(),
            method: method.into(),
            ..example("accuracy", Claim::Value(Some(paper)), Role::Check)
        };
        let verdicts = |baseline: Answer, simulated: f64| {
            let rows = [row("original", 92.7), row("daf", 91.7)];
            let rows: Vec<&ReferenceRow> = rows.iter().collect();
            let answers = [baseline, Answer::Number(simulated)];
            let mut cells: Vec<ComparedCell> =
                rows.iter().zip(answers).map(|(row, answer)| ComparedCell::new(row, answer).unwrap()).collect();
            judge_differences(&rows, &[], &mut cells);
            cells[1].verdict
        };
        // The paper loses 92.7 − 91.7 = 1 point: a stand-in at 79.2 may lose from 0 to 2.
        assert_eq!(verdicts(Answer::Input(79.2), 79.2), Verdict::Ok);
        assert_eq!(verdicts(Answer::Input(79.2), 77.2), Verdict::Ok);
        assert_eq!(verdicts(Answer::Input(79.2), 77.1), Verdict::Off);
        assert_eq!(verdicts(Answer::Input(79.2), 79.3), Verdict::Off, "a tenth better than the original is 1.1 off");
        // Without an input: (79.2 − 91.7) / 91.7 = −0.136, within 15%.
        assert_eq!(verdicts(Answer::Number(92.7), 79.2), Verdict::Ok);
    }

    #[test]
    fn of_several_baselines_that_of_the_same_kind_counts_and_another_artefact_may_have_it() {
        let row = |method: &str, paper| ReferenceRow {
            unit: "percent".into(),
            method: method.into(),
            ..example("accuracy", Claim::Value(Some(paper)), Role::Check)
        };
        let rows =
            [row("random+prox", 50.0), row("random+yogi", 60.0), row("oort+yogi", 62.0), row("oort+melon", 51.0)];
        let rows: Vec<&ReferenceRow> = rows.iter().collect();
        let judged = |answers: [Answer; 4], elsewhere: &[Baseline]| {
            let mut cells: Vec<ComparedCell> =
                rows.iter().zip(answers).map(|(row, answer)| ComparedCell::new(row, answer).unwrap()).collect();
            judge_differences(&rows, elsewhere, &mut cells);
            [cells[2].points, cells[3].points]
        };
        let number = Answer::Number(80.0);
        // Two points above the second baseline, as in the paper; ten above the first, which a method with another
        // ending is compared with.
        let inputs = [Answer::Input(70.0), Answer::Input(78.0), number.clone(), number.clone()];
        assert_eq!(judged(inputs, &[]), [Some(0.0), Some(9.0)]);
        // The row of another artefact counts only if it is declared in `BESIDE`.
        let of = |artefact: &str| Baseline {
            row: ReferenceRow { artefact: artefact.into(), ..rows[0].clone() },
            simulated: 79.0,
        };
        let none = [number.clone(), number.clone(), number.clone(), number];
        assert_eq!(judged(none.clone(), &[of("table1")]), [Some(-11.0), Some(0.0)]);
        assert_eq!(judged(none, &[of("table9")]), [None, None]);
    }

    #[test]
    fn withheld_rows_are_predicted_and_inputs_are_inputs() {
        let withheld = ComparedCell::new(&row(Claim::Value(None), Role::Withheld), Answer::Number(3.5)).unwrap();
        let shown = (withheld.simulated(), withheld.paper_value(), withheld.error, withheld.verdict);
        assert_eq!(shown, ("3.5".into(), String::new(), None, Verdict::Predicted));
        // (140 − 140) / 140 = 0.
        assert_eq!(judged(Claim::Value(Some(140.0)), Answer::Input(140.0)), ("140".into(), Some(0.0), "input".into()));
        let absent = row(Claim::Value(None), Role::Withheld);
        let absent = ComparedCell::new(&absent, Answer::NotModelled("out of reach".into())).unwrap();
        assert_eq!((absent.simulated(), absent.verdict.to_string()), (String::new(), "not-modelled".to_owned()));
        assert_eq!((absent.reason.as_str(), absent.answered()), ("out of reach", false));
    }

    #[test]
    fn the_file_has_the_columns_and_quotes_what_needs_it() {
        let mut cell = ComparedCell::new(&row(Claim::Value(Some(3.0)), Role::Fit), Answer::Number(2.0 / 0.7)).unwrap();
        cell.id = "daf/figure9/resnet18,roberta-base/daf/memory-reduction".into();
        cell.null = Some(2.5);
        cell.reason = "say \"no\", twice".into();
        // 2 / 0.7 = 2.857142857…, six digits: 2.85714; (2.85714 − 3) / 3 = −0.04762.
        let expected = "id,simulated,unit,paper,role,error,verdict,null,reason\n\
            \"daf/figure9/resnet18,roberta-base/daf/memory-reduction\",2.85714,ms,3,fit,-0.04762,ok,2.5,\
            \"say \"\"no\"\", twice\"\n";
        assert_eq!(table(&[cell]).unwrap().to_csv(), expected);
    }

    #[test]
    fn numbers_keep_six_digits_and_counts_keep_all() {
        assert_eq!(rounded(1.234_567_8), 1.234_57);
        assert_eq!(rounded(-0.000_012_345_678), -0.000_012_345_7);
        assert_eq!(rounded(25_557_032.0), 25_557_032.0);
        assert_eq!(rounded(1_234_567.8), 1_234_570.0);
        assert!(rounded(-0.0).is_sign_positive());
        // Rounding twice is rounding once.
        assert_eq!(rounded(rounded(2.0 / 3.0)), rounded(2.0 / 3.0));
    }

    #[test]
    fn an_answer_of_another_kind_is_refused() {
        let refused = |claim, answer| checked(&row(claim, Role::Check), answer).unwrap_err().to_string();
        let value = || Claim::Value(Some(1.0));
        let range = || Claim::Range { lo: 1.0, hi: 2.0 };
        let order = || Claim::Order(String::new());
        assert_eq!(
            refused(value(), Answer::Order(true)),
            "sage/table1/net/method/time: the row is a value, the answer is true or false"
        );
        assert_eq!(
            refused(value(), Answer::Range(1.0, 2.0)),
            "sage/table1/net/method/time: the row is a value, the answer is a range"
        );
        assert_eq!(
            refused(range(), Answer::Number(1.0)),
            "sage/table1/net/method/time: the row is a range, the answer is one number"
        );
        assert_eq!(
            refused(order(), Answer::Never),
            "sage/table1/net/method/time: the row is an order, the answer is never"
        );
        assert_eq!(
            refused(value(), Answer::Number(f64::NAN)),
            "sage/table1/net/method/time: NaN is not a finite number"
        );
        assert_eq!(
            refused(range(), Answer::Range(2.0, 1.0)),
            "sage/table1/net/method/time: the range runs from 2 down to 1"
        );
        assert_eq!(checked(&row(order(), Role::Check), Answer::Order(false)).unwrap(), Answer::Order(false));
    }
}
