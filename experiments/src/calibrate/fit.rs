//! The fit: the declared constants that bring the simulated times nearest to the observed ones.
//!
//! What is minimised is Σ |ln(simulated / observed)| + 0.1 Σ ln²(simulated / observed). The first sum makes a factor
//! too slow as bad as the same factor too fast and lets single rows miss; the second is small beside it and decides
//! where the first is flat. The method is Nelder and Mead's (The Computer Journal 7, 1965) on the logarithms of the
//! constants, started at their present values and at others drawn from a seeded stream.

use argmin::core::{CostFunction, Error, Executor};
use argmin::solver::neldermead::NelderMead;
use haversack_engine::Stream;
use rand::RngExt;

use super::declared::{Calibration, Constant, Files};
use super::observation::{self, Observation};
use crate::error::CommandError;

/// The weight of the squares.
const SQUARES: f64 = 0.1;
/// What a logarithm outside its bounds costs, by its distance: more than any row could win.
const OUTSIDE: f64 = 100.0;
/// Where the search starts beside the present values: the number of other points.
const OTHER_STARTS: u64 = 4;
/// How far from the present values the others lie at most, as a logarithm: a factor of 1.6.
const REACH: f64 = 0.5;
/// The first simplex has edges of this length: 10 % of a constant.
const EDGE: f64 = 0.1;
/// Simplices one after the other from one start: a new one frees a search whose simplex has collapsed.
const SIMPLICES: usize = 8;
/// Steps of one simplex at most.
const STEPS: u64 = 400;
/// The same where every row is simulated.
const FEW_STEPS: u64 = 25;
/// Simplices end where another improves the objective by less than this share.
const IMPROVEMENT: f64 = 1e-4;
/// A constant is moved by this factor, both ways, to see whether the rows would notice.
const PROBE: f64 = 1.25;

/// Calibration files, what was observed, and the constants that may move.
pub struct Problem {
    /// What was declared.
    pub calibration: Calibration,
    /// What was observed.
    pub observations: Vec<Observation>,
    files: Files,
}

impl Problem {
    /// The problem that `calibration` declares, at the constants of the files.
    ///
    /// # Errors
    /// A constant that neither file has, bounds that it cannot take, observations that cannot be simulated.
    pub fn new(calibration: &Calibration) -> Result<Self, CommandError> {
        let files = Files::load(calibration)?;
        let problem = Self { calibration: calibration.clone(), observations: observation::of(calibration)?, files };
        let bounds = |bound: fn(&Constant) -> f64| problem.calibration.constants.iter().map(bound).collect::<Vec<_>>();
        problem.with(&bounds(|constant| constant.lower))?;
        problem.with(&bounds(|constant| constant.upper))?;
        Ok(problem)
    }

    /// The values of the files and their units, in the order of the declaration.
    ///
    /// # Errors
    /// A constant that its file lacks.
    pub fn present(&self) -> Result<Vec<(f64, &'static str)>, CommandError> {
        let find = |constant: &Constant| {
            let found = self.files.entries(constant.of).into_iter().find(|entry| entry.name == constant.name);
            let found = found.ok_or_else(|| {
                let of = constant.of.name();
                CommandError::failed(format!("the {of} has no constant '{}'", constant.name))
            });
            found.map(|entry| (entry.value, entry.unit))
        };
        self.calibration.constants.iter().map(find).collect()
    }

    /// The files with `values` for the constants.
    fn with(&self, values: &[f64]) -> Result<Files, CommandError> {
        let mut files = self.files.clone();
        for (constant, &value) in self.calibration.constants.iter().zip(values) {
            files.set(constant, value)?;
        }
        Ok(files)
    }

    /// What is simulated for every row with `values` for the constants.
    ///
    /// # Errors
    /// A value that its constant cannot take.
    pub fn simulated(&self, values: &[f64]) -> Result<Vec<f64>, CommandError> {
        self.simulated_of(&self.observations, values)
    }

    /// The same of other `rows`.
    ///
    /// # Errors
    /// As [`Problem::simulated`].
    pub fn simulated_of(&self, rows: &[Observation], values: &[f64]) -> Result<Vec<f64>, CommandError> {
        let files = self.with(values)?;
        Ok(rows.iter().map(|row| row.simulated(&files)).collect())
    }

    /// What is minimised.
    ///
    /// # Errors
    /// As [`Problem::simulated`].
    pub fn objective(&self, values: &[f64]) -> Result<f64, CommandError> {
        let simulated = self.simulated(values)?;
        let logarithms = simulated.iter().zip(&self.observations).map(|(seconds, row)| (seconds / row.observed).ln());
        Ok(logarithms.map(|log| log.abs() + SQUARES * log * log).sum())
    }

    /// The values between their bounds whose logarithms are nearest to `point`, and how far away they are.
    fn within(&self, point: &[f64]) -> (Vec<f64>, f64) {
        let mut distance = 0.0;
        let values = self.calibration.constants.iter().zip(point).map(|(constant, &log)| {
            let inside = log.clamp(constant.lower.ln(), constant.upper.ln());
            distance += (log - inside).abs();
            // The logarithm of a bound need not lead back to it.
            inside.exp().clamp(constant.lower, constant.upper)
        });
        (values.collect(), distance)
    }

    /// The best values that the search finds; the present ones where it finds none better.
    ///
    /// # Errors
    /// As [`Problem::present`].
    pub fn fit(&self, seed: u64, mut after_start: impl FnMut()) -> Result<Vec<f64>, CommandError> {
        let present: Vec<f64> = self.present()?.into_iter().map(|(value, _)| value).collect();
        let mut best = (self.objective(&present)?, present.clone());
        let others = if self.calibration.simulated { 0 } else { OTHER_STARTS };
        for start in 0..=others {
            let mut stream = Stream::new(seed, "calibrate", &format!("start {start}"));
            let reach = if start == 0 { 0.0 } else { REACH };
            let point = present.iter().map(|value| value.ln() + reach * (2.0 * stream.random::<f64>() - 1.0));
            let (objective, found) = self.descend(point.collect())?;
            let (values, _) = self.within(&found);
            if objective < best.0 {
                best = (objective, values);
            }
            after_start();
        }
        Ok(best.1)
    }

    /// One simplex after the other, each around the best point of the one before.
    fn descend(&self, mut point: Vec<f64>) -> Result<(f64, Vec<f64>), CommandError> {
        let mut lowest = f64::INFINITY;
        let (simplices, steps) = if self.calibration.simulated { (2, FEW_STEPS) } else { (SIMPLICES, STEPS) };
        for _ in 0..simplices {
            let corners = (0..point.len()).map(|axis| {
                let mut corner = point.clone();
                corner[axis] += EDGE;
                corner
            });
            let simplex: Vec<Vec<f64>> = std::iter::once(point.clone()).chain(corners).collect();
            let solver = NelderMead::new(simplex).with_sd_tolerance(1e-9).map_err(CommandError::failed)?;
            let executor = Executor::new(Search(self), solver).configure(|state| state.max_iters(steps)).timer(false);
            let state = executor.run().map_err(CommandError::failed)?.state;
            let (Some(found), objective) = (state.best_param, state.best_cost) else { break };
            point = found;
            if objective > lowest * (1.0 - IMPROVEMENT) {
                return Ok((objective.min(lowest), point));
            }
            lowest = objective;
        }
        Ok((lowest, point))
    }

    /// By which share the objective rises at least when constant `index` of `values` moves by `PROBE` either way and
    /// all others stay; where that is next to nothing, the rows do not identify the constant.
    ///
    /// # Errors
    /// As [`Problem::simulated`].
    pub fn rise(&self, values: &[f64], index: usize) -> Result<f64, CommandError> {
        let here = self.objective(values)?;
        let mut least = f64::INFINITY;
        for factor in [PROBE, 1.0 / PROBE] {
            let mut moved = values.to_vec();
            moved[index] *= factor;
            let constant = &self.calibration.constants[index];
            if (constant.lower..=constant.upper).contains(&moved[index]) {
                least = least.min(self.objective(&moved)? / here - 1.0);
            }
        }
        Ok(least)
    }
}

/// The problem as the solver sees it: logarithms, and a slope back to the bounds.
struct Search<'a>(&'a Problem);

impl CostFunction for Search<'_> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, point: &Self::Param) -> Result<f64, Error> {
        let (values, distance) = self.0.within(point);
        // Both bounds were accepted, so what lies between them is too; the solver takes no refusal for an answer.
        Ok(self.0.objective(&values).unwrap_or(f64::MAX) + OUTSIDE * distance)
    }
}
