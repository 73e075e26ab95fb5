//! `calibrate all --table`: what the constants of the files come to. How far the rows of each file of observations are
//! away, by role; the networks that are worst; the medians of the papers; the calibrations, with rows left out; and every
//! constant that was fitted.

mod constants;
mod text;
mod truth;

use serde::Serialize;
use serde_json::{Value, json};

use super::declared::Calibration;
use super::left_out::{LeftOut, Row, Stored, errors};
use super::report::spread;
use crate::error::CommandError;
use crate::reproduce::committed;
use crate::reproduce::left_out::{Errors, Known};
use crate::reproduce::reference::Reference;
use crate::reproduce::summary::{Tally, tallies};

use constants::FittedConstant;
use truth::{Group, TruthRow};

/// Networks that are listed as the worst.
const WORST: usize = 10;

/// What the constants of the files come to.
#[derive(Clone, Debug, Serialize)]
pub struct Accounts {
    /// The rows of files that are no paper's, by file, setting and role.
    groups: Vec<Group>,
    /// The worst row of each of the networks that are farthest away.
    worst: Vec<TruthRow>,
    /// The papers, by role, of the results that came with this version.
    papers: Vec<Tally>,
    /// The calibrations, of what is stored of them.
    calibrations: Vec<StoredFit>,
    /// The constants that were fitted.
    constants: Vec<FittedConstant>,
}

/// What is stored of a calibration.
#[derive(Clone, Debug, Serialize)]
struct StoredFit {
    title: String,
    rows: usize,
    /// The median absolute error at the constants of the files.
    median_error: f64,
    /// The same of rows that were left out.
    median_error_left_out: f64,
    worst_error_left_out: f64,
    /// Whether that is of today's constants and rows.
    is_current: bool,
}

impl StoredFit {
    fn new(stored: &Stored, errors: &Errors) -> Self {
        let (median_error, _) = spread(stored.rows.iter().map(|row| row.shipped / row.observed - 1.0));
        let (median_error_left_out, worst_error_left_out) = spread(stored.rows.iter().map(Row::error));
        Self {
            title: stored.title(),
            rows: stored.rows.len(),
            median_error,
            median_error_left_out,
            worst_error_left_out,
            is_current: !stored.rows.iter().any(|row| errors.of(&row.id) == Some(Known::Stale)),
        }
    }
}

impl Accounts {
    /// Simulates the rows of all `calibrations` that are no paper's, at the constants of the files; `after_step` is called
    /// after each calibration.
    ///
    /// # Errors
    /// Observations that cannot be simulated, embedded data that is wrong.
    pub fn of(calibrations: &[Calibration], after_step: impl Fn()) -> Result<Self, CommandError> {
        let errors = errors().map_err(CommandError::failed)?;
        let reference = Reference::load().map_err(CommandError::failed)?;
        let of_paper = |file: &str| reference.digests().iter().any(|(of, _)| *of == file);
        let mut rows = Vec::new();
        for calibration in calibrations {
            if !of_paper(calibration.observations.file()) {
                rows.extend(truth::rows(calibration, &errors)?);
            }
            after_step();
        }
        let cells = committed::cells(&reference).map_err(CommandError::failed)?;
        let stored = LeftOut::committed().map_err(CommandError::failed)?;
        Ok(Self {
            groups: truth::groups(&rows),
            worst: truth::worst(&rows, WORST),
            papers: tallies(&cells, &errors),
            calibrations: stored.calibrations.iter().map(|fit| StoredFit::new(fit, &errors)).collect(),
            constants: constants::fitted()?,
        })
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!(self)
    }
}
