//! The result of a fit, as text and as JSON.

use std::fmt::Write as _;

use haversack_reports::{Column, TextTable};
use serde::Serialize;
use serde_json::{Value, json};
use statrs::statistics::{Data, OrderStatistics};

use crate::quantities::counted;
use crate::scenario::Holder;

/// A constant before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fitted {
    /// Its dotted name.
    pub name: String,
    /// The calibration it belongs to.
    pub of: Holder,
    /// The unit of the file, for all values here.
    pub unit: &'static str,
    /// The value of the file.
    pub before: f64,
    /// The best fit, or the prior if the rows do not identify the constant.
    pub after: f64,
    /// The smallest permitted value.
    pub lower: f64,
    /// The largest permitted value.
    pub upper: f64,
    /// The prior.
    pub prior: f64,
    /// The least fraction by which the objective rises when the constant moves by a quarter; infinite, which becomes
    /// null in JSON, if both moves leave the bounds.
    pub rise: f64,
    /// Whether the rows identify it.
    #[serde(rename = "identified")]
    pub is_identified: bool,
}

/// A row before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// The row.
    pub id: String,
    /// The unit of the values.
    pub unit: &'static str,
    /// The observed value.
    pub observed: f64,
    /// The simulated value with the constants of the files.
    pub before: f64,
    /// The simulated value with the fitted constants.
    pub after: f64,
    /// The simulated value with the constants fitted to all other rows; `None` if this was not requested.
    pub left_out: Option<f64>,
}

impl Residual {
    /// (simulated − observed) / observed with the fitted constants.
    pub fn error(&self) -> f64 {
        self.after / self.observed - 1.0
    }

    /// The same with the constants of the files.
    pub fn error_before(&self) -> f64 {
        self.before / self.observed - 1.0
    }

    /// The same with the constants fitted to all other rows.
    pub fn error_left_out(&self) -> Option<f64> {
        Some(self.left_out? / self.observed - 1.0)
    }

    /// The row as JSON.
    fn json(&self) -> Value {
        json!({
            "id": self.id,
            "unit": self.unit,
            "observed": self.observed,
            "before": self.before,
            "after": self.after,
            "error_before": self.error_before(),
            "error_after": self.error(),
            "left_out": self.left_out,
            "error_left_out": self.error_left_out(),
        })
    }
}

/// The median and the largest of the absolute errors.
pub fn spread(errors: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut errors: Vec<f64> = errors.map(f64::abs).collect();
    let worst = errors.iter().copied().max_by(f64::total_cmp).unwrap_or(0.0);
    let median = if errors.is_empty() { 0.0 } else { Data::new(errors.as_mut_slice()).median() };
    (median, worst)
}

/// The result of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The device.
    pub device: String,
    /// The stack.
    pub stack: String,
    /// The operating system, if some constants belong to it.
    pub system: Option<String>,
    /// A description of the rows.
    pub about: String,
    /// The objective with the constants of the files, and with the fitted ones.
    pub objective: [f64; 2],
    /// The constants.
    pub constants: Vec<Fitted>,
    /// The rows.
    pub rows: Vec<Residual>,
    /// Rows that were not used for fitting, if the observations have some.
    pub checks: Vec<Residual>,
}

impl Report {
    /// The median and the largest absolute error with the fitted constants.
    pub fn errors(&self) -> (f64, f64) {
        spread(self.rows.iter().map(Residual::error))
    }

    /// The same with the constants of the files.
    pub fn errors_before(&self) -> (f64, f64) {
        spread(self.rows.iter().map(Residual::error_before))
    }

    /// The same for leave-one-out errors; `None` if these were not requested.
    pub fn errors_left_out(&self) -> Option<(f64, f64)> {
        let errors: Option<Vec<f64>> = self.rows.iter().map(Residual::error_left_out).collect();
        Some(spread(errors?.into_iter()))
    }

    /// The report as JSON.
    pub fn json(&self) -> Value {
        let (rows, checks) = (self.rows.iter().map(Residual::json), self.checks.iter().map(Residual::json));
        let ((median_before, worst_before), (median, worst)) = (self.errors_before(), self.errors());
        json!({
            "device": self.device,
            "stack": self.stack,
            "system": self.system,
            "observations": self.about,
            "objective": { "before": self.objective[0], "after": self.objective[1] },
            "median_error": { "before": median_before, "after": median },
            "worst_error": { "before": worst_before, "after": worst },
            "median_error_left_out": self.errors_left_out().map(|(median, _)| median),
            "constants": self.constants,
            "rows": rows.collect::<Vec<_>>(),
            "checks": checks.collect::<Vec<_>>(),
        })
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let (rows, constants) = (self.rows.len(), self.constants.len());
        let system = self.system.as_ref().map_or_else(String::new, |system| format!(" and {system}"));
        let constants = counted(constants, "constant", "constants");
        let mut text = format!("{} under {}{system}: {constants}, {rows} rows\n", self.device, self.stack);
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{}\n", self.about);
        let [number, share] = [12, 8].map(|width| Column::right(width).after(2));
        let name = Column::left(8).fitted();
        let mut table = TextTable::new([name, number, number, Column::left(10).after(2), Column::right(18)]);
        table.row(["constant", "before", "fitted", "unit", "bounds"]);
        for constant in &self.constants {
            let Fitted { lower, upper, .. } = constant;
            let remark = if constant.is_identified { "" } else { "  not decided by the rows: its prior" };
            let [before, after] = [constant.before, constant.after].map(significant);
            let (name, unit) = (constant.name.clone(), constant.unit.to_owned());
            table.row([name, before, after, unit, format!("{lower} to {upper}"), remark.to_owned()]);
        }
        let _ = writeln!(text, "{table}");
        let mut table = TextTable::new([name, number, number, share, share, share]);
        let is_left_out = self.errors_left_out().is_some();
        table.row(["row", "observed", "fitted", "before", "error", if is_left_out { "left out" } else { "" }]);
        let checks = self.checks.iter().map(|row| Residual { id: format!("check: {}", row.id), ..row.clone() });
        for row in self.rows.iter().cloned().chain(checks) {
            let [observed, after] =
                [row.observed, row.after].map(|value| format!("{} {}", significant(value), row.unit));
            let left_out = row.error_left_out().map(percent).unwrap_or_default();
            table.row([row.id.clone(), observed, after, percent(row.error_before()), percent(row.error()), left_out]);
        }
        text += &table.to_string();
        let ((median_before, worst_before), (median, worst)) = (self.errors_before(), self.errors());
        let _ = writeln!(
            text,
            "\nmedian error {:.1} % (before {:.1} %), worst {:.1} % (before {:.1} %), objective {:.4} (before {:.4})",
            median * 1e2,
            median_before * 1e2,
            worst * 1e2,
            worst_before * 1e2,
            self.objective[1],
            self.objective[0],
        );
        if let Some((median, worst)) = self.errors_left_out() {
            let _ = writeln!(text, "each row left out: median error {:.1} %, worst {:.1} %", median * 1e2, worst * 1e2);
        }
        if !self.checks.is_empty() {
            let (median, worst) = spread(self.checks.iter().map(Residual::error));
            let mean = self.checks.iter().map(|row| row.error().abs()).sum::<f64>() / self.checks.len() as f64;
            let [median, mean, worst] = [median, mean, worst].map(|error| error * 1e2);
            let count = counted(self.checks.len(), "row", "rows");
            let _ = writeln!(
                text,
                "{count} that nothing was fitted to: median error {median:.1} %, mean {mean:.1} %, worst {worst:.1} %"
            );
        }
        text
    }
}

fn percent(share: f64) -> String {
    format!("{:+.1} %", share * 1e2)
}

/// Four significant digits.
fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = (3.0 - value.abs().log10().floor()).clamp(0.0, 12.0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_with_four_digits() {
        let shown = [0.001_234_56, 0.8, 17.456, 174.0, 12345.6].map(significant);
        assert_eq!(shown, ["0.001235", "0.8000", "17.46", "174.0", "12346"]);
    }

    #[test]
    fn the_median_of_an_even_number_of_errors_lies_between_two() {
        // |errors| sorted: 0.1, 0.2, 0.4, 0.5; (0.2 + 0.4) / 2 = 0.3.
        let (median, worst) = spread([-0.5, 0.1, 0.4, -0.2].into_iter());
        assert!((median - 0.3).abs() < 1e-12);
        assert_eq!(worst, 0.5);
    }
}
