//! The errors of a set's rows: by quantity and role, row by row, and as a picture.

use haversack_reports::table::three_digits;
use haversack_reports::{Axis, Figure, Lines, Panel, Series, Stroke, Table, WidthError};
use indexmap::{IndexMap, IndexSet};
use serde_json::{Value, json};
use statrs::statistics::{Data, OrderStatistics, RankTieBreaker, Statistics};

use super::answer::Answer;
use crate::measured_set::{Row, Set};
use crate::papers::reference::Role;
use crate::quantities::{counted, mean, median, percent, range};
use crate::reproduce::Cells;
use crate::texts::{headed, text};

/// A set and the simulator's answers.
pub(super) struct Report {
    pub(super) set: Set,
    /// One per row.
    pub(super) answers: Vec<Answer>,
}

/// Rows of one quantity and one role.
struct Tally<'r> {
    quantity: String,
    role: Role,
    rows: usize,
    compared: Vec<Compared<'r>>,
}

/// A measured row with an answer.
struct Compared<'r> {
    row: &'r Row,
    measured: f64,
    simulated: f64,
}

impl<'r> Compared<'r> {
    /// `None` if it was not measured or has no answer.
    fn of(row: &'r Row, answer: &Answer) -> Option<Self> {
        Some(Self { row, measured: row.measured?, simulated: *answer.as_ref().ok()? })
    }

    /// (simulated − measured) / measured; the difference if the measured value is zero.
    fn error(&self) -> f64 {
        let difference = self.simulated - self.measured;
        if self.measured == 0.0 { difference } else { difference / self.measured }
    }

    /// Both values with their unit.
    fn words(&self) -> String {
        let Self { row, measured, simulated } = self;
        let words =
            format!("{}: {} for {} {}", row.id, three_digits(*simulated), three_digits(*measured), row.quantity.unit);
        words.trim_end().to_owned()
    }
}

/// The name of a row's quantity in tables: inference is a separate one.
fn quantity(row: &Row) -> String {
    let of_inference = row.scenario().is_some_and(|scenario| scenario.inference);
    format!("{}{}", row.quantity.name, if of_inference { " (inference)" } else { "" })
}

impl Tally<'_> {
    /// The mean and the median of the absolute errors, and the mean of the signed ones.
    fn errors(&self) -> [Option<f64>; 3] {
        let signed: Vec<f64> = self.compared.iter().map(Compared::error).collect();
        let sizes: Vec<f64> = signed.iter().map(|error| error.abs()).collect();
        [mean(&sizes), median(sizes), mean(&signed)]
    }

    fn farthest(&self) -> Option<&Compared<'_>> {
        self.compared.iter().max_by(|a, b| a.error().abs().total_cmp(&b.error().abs()))
    }

    /// The rank correlation of measured and simulated values (Spearman); `None` for fewer than three.
    fn rank(&self) -> Option<f64> {
        let of = |value: fn(&Compared<'_>) -> f64| ranks(self.compared.iter().map(value).collect());
        (self.compared.len() > 2).then(|| correlation(&of(|one| one.measured), &of(|one| one.simulated)))
    }

    fn json(&self) -> Value {
        let [mean_error, median_error, bias] = self.errors();
        json!({
            "what": self.quantity, "role": self.role.to_string(), "rows": self.rows, "compared": self.compared.len(),
            "mean_error": mean_error, "median_error": median_error, "bias": bias, "rank": self.rank(),
            "farthest": self.farthest().map(|one| one.row.id.as_str()),
        })
    }
}

/// The rank of each value; equal ones share their mean rank.
fn ranks(values: Vec<f64>) -> Vec<f64> {
    Data::new(values).ranks(RankTieBreaker::Average)
}

/// Pearson's correlation; zero if either series is constant.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let spread = a.std_dev() * b.std_dev();
    if spread > 0.0 { a.covariance(b) / spread } else { 0.0 }
}

impl Report {
    fn rows(&self) -> impl Iterator<Item = (&Row, &Answer)> {
        self.set.rows.iter().zip(&self.answers)
    }

    /// The rows by quantity, in the order of the rows, and by role.
    fn tallies(&self) -> Vec<Tally<'_>> {
        let names: IndexSet<String> = self.set.rows.iter().map(quantity).collect();
        let tally = |name: &String, role: Role| {
            let own = || self.rows().filter(|(row, _)| row.role == role && quantity(row) == *name);
            let compared = own().filter_map(|(row, answer)| Compared::of(row, answer));
            Tally { quantity: name.clone(), role, rows: own().count(), compared: compared.collect() }
        };
        let all = names.iter().flat_map(|name| Role::ALL.map(|role| tally(name, role)));
        all.filter(|tally| tally.rows > 0).collect()
    }

    /// The report as text: one line per quantity and role, and the rows without an answer.
    pub(super) fn text(&self) -> String {
        let farthest = |tally: &Tally<'_>| match tally.farthest() {
            Some(farthest) => farthest.words(),
            None if tally.role == Role::Withheld => "predicted".to_owned(),
            None => String::new(),
        };
        let mut answer = self.json();
        answer["farthest"] = self.tallies().iter().map(farthest).collect();
        text(include_str!("../../texts/validate.txt"), &answer) + &self.unanswered()
    }

    /// The reasons of rows without an answer, without duplicates.
    fn unanswered(&self) -> String {
        let mut reasons: IndexMap<&str, Vec<&str>> = IndexMap::new();
        for (row, answer) in self.rows() {
            if let Err(reason) = answer {
                reasons.entry(reason).or_default().push(&row.id);
            }
        }
        let line = |(reason, ids): (&str, Vec<&str>)| {
            let more = if ids.len() > 1 { format!(" and {} more", ids.len() - 1) } else { String::new() };
            format!("  no answer to {}{more}: {reason}\n", ids[0])
        };
        reasons.into_iter().map(line).collect()
    }

    /// The report as JSON.
    pub(super) fn json(&self) -> Value {
        let mut about = about(&self.set);
        let row = |(row, answer): (&Row, &Answer)| {
            json!({
                "id": row.id, "what": row.quantity.name, "unit": row.quantity.unit, "measured": row.measured,
                "simulated": answer.as_ref().ok(), "error": error(row, answer), "role": row.role.to_string(),
                "reason": answer.as_ref().err(), "note": row.note,
            })
        };
        about["rows"] = self.rows().map(row).collect();
        about["quantities"] = self.tallies().iter().map(Tally::json).collect();
        about
    }

    /// Simulated against measured values, one panel per quantity; `None` if nothing was compared.
    pub(super) fn picture(&self) -> Option<Figure> {
        let panels = self.panels();
        let title = format!("{}: {}", self.set.title, finding(std::slice::from_ref(self)));
        let figure = Figure::new(title).note(format!("measured: {}", self.set.source));
        (!panels.is_empty()).then(|| panels.into_iter().fold(figure, Figure::panel))
    }

    /// A panel for each quantity with a compared row.
    fn panels(&self) -> Vec<Panel> {
        let tallies: Vec<Tally<'_>> = self.tallies().into_iter().filter(|tally| !tally.compared.is_empty()).collect();
        let mut names: Vec<&str> = tallies.iter().map(|tally| tally.quantity.as_str()).collect();
        names.dedup();
        names.iter().map(|name| panel(tallies.iter().filter(|tally| tally.quantity == *name))).collect()
    }

    /// The panel of the first quantity, with the set's name; `None` if nothing was compared.
    pub(super) fn glance(&self) -> Option<Panel> {
        let panel = self.panels().into_iter().next()?;
        let title = format!("{}, {}", self.set.name, panel.title.as_deref().unwrap_or_default());
        Some(panel.title(title).apart())
    }
}

/// "half of 12 fit rows are within 5%, half of 20 check rows are within 9%".
pub(super) fn finding(reports: &[Report]) -> String {
    let tallies: Vec<Tally<'_>> = reports.iter().flat_map(Report::tallies).collect();
    let of = |role: Role| {
        let own = tallies.iter().filter(|tally| tally.role == role).flat_map(|tally| &tally.compared);
        let errors: Vec<f64> = own.map(|one| one.error().abs()).collect();
        let rows = counted(errors.len(), &format!("{role} row"), &format!("{role} rows"));
        Some(format!("half of {rows} are within {}", percent(median(errors)?)))
    };
    Role::ALL.into_iter().filter_map(of).collect::<Vec<_>>().join(", ")
}

/// The panel of one quantity: a mark per row, and the line where both values are equal.
fn panel<'t>(tallies: impl Iterator<Item = &'t Tally<'t>>) -> Panel {
    let (mut lines, mut all, mut title, mut unit) = (Lines::new(), Vec::new(), "", "");
    for tally in tallies {
        // A logarithmic axis cannot show values at or below zero.
        let shown: Vec<&Compared<'_>> =
            tally.compared.iter().filter(|one| one.measured > 0.0 && one.simulated > 0.0).collect();
        let points: Vec<(f64, f64)> = shown.iter().map(|one| (one.measured, one.simulated)).collect();
        let labels: Vec<String> = shown.iter().map(|one| one.words()).collect();
        all.extend(points.iter().flat_map(|&(measured, simulated)| [measured, simulated]));
        lines = lines.series(Series::new(tally.role.to_string(), points).labels(labels).stroke(Stroke::None));
        (title, unit) = (&tally.quantity, shown.first().map_or(unit, |one| &one.row.quantity.unit));
    }
    if let Some((least, most)) = range(all) {
        lines = lines.series(Series::new("as measured", [(least, least), (most, most)]).unmarked());
    }
    let axis = |label: &str| if unit.is_empty() { Axis::new(label).log() } else { Axis::new(label).unit(unit).log() };
    Panel::new(lines).title(title).x(axis("measured")).y(axis("simulated"))
}

/// The error of a row; `None` if it was not measured or has no answer.
fn error(row: &Row, answer: &Answer) -> Option<f64> {
    Compared::of(row, answer).map(|one| one.error())
}

/// The rows of all sets, in their order.
///
/// # Errors
/// None: every row has a cell for each column.
pub(super) fn table(reports: &[Report]) -> Result<Table, WidthError> {
    let mut table = Table::new(["set", "id", "what", "unit", "measured", "simulated", "error", "role", "reason"]);
    for report in reports {
        for (row, answer) in report.rows() {
            let names = [&report.set.name, &row.id, &row.quantity.name, &row.quantity.unit].map(String::as_str);
            let numbers = [row.measured, answer.as_ref().ok().copied(), error(row, answer)];
            let reason = answer.as_ref().err().map(String::as_str);
            table.push((names, numbers, row.role.to_string(), reason).row())?;
        }
    }
    Ok(table)
}

/// The errors of the rows of all sets, by quantity and role.
///
/// # Errors
/// None: every row has a cell for each column.
pub(super) fn errors(reports: &[Report]) -> Result<Table, WidthError> {
    let mut table = Table::new(["set", "what", "role", "rows", "mean_error", "median_error", "bias", "rank"]);
    for report in reports {
        for tally in report.tallies() {
            let names = [&report.set.name, &tally.quantity].map(String::as_str);
            table.push((names, tally.role.to_string(), tally.rows as u64, tally.errors(), tally.rank()).row())?;
        }
    }
    Ok(table)
}

/// A description of a set.
pub(super) fn about(set: &Set) -> Value {
    let kind: &str = set.kind.into();
    json!({ "set": set.name, "kind": kind, "title": set.title, "source": set.source, "method": set.method })
}

/// The sets, one per line.
pub(super) fn list(sets: &[Set]) -> String {
    let mut table = headed("¦¦");
    for Set { name, title, rows, .. } in sets {
        let of = |role: Role| rows.iter().filter(|row| row.role == role).count();
        let roles = Role::ALL.map(|role| format!("{} {role}", of(role))).join(", ");
        table.row([name.clone(), title.clone(), format!("{} ({roles})", counted(rows.len(), "row", "rows"))]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_equal_values_are_shared_and_an_order_turned_round_is_minus_one() {
        assert_eq!(ranks(vec![3.0, 1.0, 3.0]), [2.5, 1.0, 2.5]);
        let (up, down) = (ranks(vec![1.0, 10.0, 100.0]), ranks(vec![3.0, 2.0, 1.0]));
        assert!((correlation(&up, &up) - 1.0).abs() + (correlation(&up, &down) + 1.0).abs() < 1e-12);
        assert_eq!(correlation(&up, &[1.0; 3]), 0.0);
    }
}
