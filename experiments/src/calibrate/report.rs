//! The result of a fit, as text and as JSON.

use serde::Serialize;
use serde_json::{Value, json};
use statrs::statistics::{Data, OrderStatistics};

use crate::output::join;
use crate::scenario::Holder;
use crate::texts::text;

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
            "id": self.id, "unit": self.unit, "observed": self.observed, "before": self.before, "after": self.after,
            "error_before": self.error_before(), "error_after": self.error(),
            "left_out": self.left_out, "error_left_out": self.error_left_out(),
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
            "device": self.device, "stack": self.stack, "system": self.system, "observations": self.about,
            "objective": { "before": self.objective[0], "after": self.objective[1] },
            "median_error": { "before": median_before, "after": median },
            "worst_error": { "before": worst_before, "after": worst },
            "median_error_left_out": self.errors_left_out().map(|(median, _)| median),
            "constants": self.constants, "rows": rows.collect::<Vec<_>>(), "checks": checks.collect::<Vec<_>>(),
        })
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let of_checks = (!self.checks.is_empty()).then(|| {
            let (median, worst) = spread(self.checks.iter().map(Residual::error));
            let mean = self.checks.iter().map(|row| row.error().abs()).sum::<f64>() / self.checks.len() as f64;
            [median, mean, worst]
        });
        let mut answer = self.json();
        join(&mut answer, json!({ "left_out": self.errors_left_out(), "of_checks": of_checks }));
        text(include_str!("../../texts/calibrate.txt"), &answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_of_errors_lies_between_two() {
        // |errors| sorted: 0.1, 0.2, 0.4, 0.5; (0.2 + 0.4) / 2 = 0.3.
        let (median, worst) = spread([-0.5, 0.1, 0.4, -0.2].into_iter());
        assert!((median - 0.3).abs() < 1e-12);
        assert_eq!(worst, 0.5);
    }
}
