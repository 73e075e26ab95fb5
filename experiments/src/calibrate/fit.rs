//! The fit: finds the declared constants with which the simulated values are nearest to the observed ones.
//!
//! The objective is Σ ln²(simulated / observed): being slow by a factor is as bad as being fast by the same factor,
//! and, unlike a sum of absolute errors, it does not favour meeting single rows exactly. The method is Nelder and
//! Mead's (The Computer Journal 7, 1965) on the logarithms of the constants, started at their present values and at
//! others drawn from a seeded stream. A constant that ends at a bound, or whose change by a quarter hardly affects the
//! objective, is not identified: it is reset to its prior, and the others are fitted again. Operating points take only
//! a few values: between simplices, each moves to a neighbouring value while that is better.

mod leave_one_out;

use argmin::core::{CostFunction, Error, Executor};
use argmin::solver::neldermead::NelderMead;
use haversack_devices::ConstantEntry;
use haversack_engine::Stream;
use rand::RngExt;
use rayon::prelude::*;

use super::observation::{self, Calibration, Constant, Observation};
use crate::scenario::{Holder, World};
use crate::{CommandError, Result};

/// The cost per unit by which a logarithm is outside its bounds: more than any row could gain.
const OUTSIDE: f64 = 100.0;
/// The number of starting points in addition to the present values.
const OTHER_STARTS: u64 = 4;
/// The largest distance of the others from the present values, as a logarithm: a factor of 1.6.
const REACH: f64 = 0.5;
/// The first simplex has edges of this length: 10 % of a constant.
const EDGE: f64 = 0.1;
/// Simplices run one after the other from one start: a new one continues a search whose simplex has collapsed.
const SIMPLICES: usize = 8;
/// The most steps of one simplex.
const STEPS: u64 = 400;
/// The same if every row is simulated.
const FEW_STEPS: u64 = 25;
/// The search ends when a new simplex improves the objective by less than this fraction.
const IMPROVEMENT: f64 = 1e-4;
/// A constant is multiplied and divided by this factor to test whether it affects the rows.
const PROBE: f64 = 1.25;
/// If the objective rises by less than this, the constant is not identified.
const WEAK: f64 = 0.02;
/// A constant counts as at a bound within this distance, as a logarithm.
const AT_BOUND: f64 = 1e-3;

/// The result of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The values, in the order of the declaration.
    pub values: Vec<f64>,
    /// The indices of the identified constants; all others are at their priors.
    pub free: Vec<usize>,
}

/// Calibration files, observations, and the constants that may move.
pub struct Problem {
    /// The declaration.
    pub calibration: Calibration,
    /// The observations.
    pub observations: Vec<Observation>,
    /// The number of starting points in addition to the present values.
    pub other_starts: u64,
    files: World,
    /// For constants that can take only a few values, by index, these values.
    points: Vec<Option<Vec<f64>>>,
}

impl Problem {
    /// The problem that `calibration` declares, with the constants of the files.
    ///
    /// # Errors
    /// A constant that no file has, bounds that it cannot take, observations that cannot be simulated.
    pub fn new(calibration: &Calibration) -> Result<Self> {
        let files = calibration.world()?;
        let points: Vec<_> = calibration.constants.iter().map(|constant| points_of(&files, constant)).collect();
        if let Some(at) = points.iter().position(|points| points.as_ref().is_some_and(Vec::is_empty)) {
            let name = &calibration.constants[at].name;
            return Err(CommandError::failed(format!("{name}: no operating point lies between its bounds")));
        }
        let observations = observation::of(calibration)?;
        let other_starts = if calibration.simulated { 0 } else { OTHER_STARTS };
        let problem = Self { calibration: calibration.clone(), observations, other_starts, files, points };
        let bounds = |bound: fn(&Constant) -> f64| problem.calibration.constants.iter().map(bound).collect::<Vec<_>>();
        problem.with(&bounds(|constant| constant.lower)).map(drop)?;
        problem.with(&bounds(|constant| constant.upper)).map(drop)?;
        Ok(problem)
    }

    /// The values of the files and their units, in the order of the declaration.
    ///
    /// # Errors
    /// A constant that its file lacks.
    pub fn present(&self) -> Result<Vec<(f64, &'static str)>> {
        let find = |constant: &Constant| {
            let missing = || CommandError::failed(format!("the {} has no constant '{}'", constant.of, constant.name));
            entry(&self.files, constant).map(|entry| (entry.value, entry.unit)).ok_or_else(missing)
        };
        self.calibration.constants.iter().map(find).collect()
    }

    /// The files with `values` for the constants.
    fn with(&self, values: &[f64]) -> Result<World> {
        let mut files = self.files.clone();
        for (constant, &value) in self.calibration.constants.iter().zip(values) {
            files.set(constant.of, &constant.name, value)?;
        }
        Ok(files)
    }

    /// The simulated value of every row, with `values` for the constants.
    ///
    /// # Errors
    /// A value that its constant cannot take.
    pub fn simulated(&self, values: &[f64]) -> Result<Vec<f64>> {
        self.simulated_of(&self.observations, values)
    }

    /// The same for other `rows`.
    ///
    /// # Errors
    /// As [`Problem::simulated`].
    pub fn simulated_of(&self, rows: &[Observation], values: &[f64]) -> Result<Vec<f64>> {
        let files = self.with(values)?;
        Ok(rows.par_iter().map(|row| row.simulated(&files)).collect())
    }

    /// The objective, which is minimised.
    ///
    /// # Errors
    /// As [`Problem::simulated`].
    pub fn objective(&self, values: &[f64]) -> Result<f64> {
        let rows = self.simulated(values)?.into_iter().zip(&self.observations);
        Ok(rows.map(|(simulated, row)| (simulated / row.observed).ln().powi(2)).sum())
    }

    /// The best values that the search finds, or the present ones if it finds none better; constants that are not
    /// identified are at their priors.
    ///
    /// # Errors
    /// As [`Problem::present`].
    pub fn fit(&self, seed: u64, mut after_start: impl FnMut()) -> Result<Fit> {
        let present = self.present()?.into_iter().enumerate();
        let mut values: Vec<f64> = present.map(|(at, (value, _))| self.allowed(at, value)).collect();
        let mut free: Vec<usize> = (0..values.len()).collect();
        loop {
            values = self.search(seed, &values, &free, &mut after_start)?;
            // One after the other: without the weakest constant, others may become identified.
            let mut weakest = None;
            for &constant in &free {
                let rise = if self.is_at_bound(&values, constant) { 0.0 } else { self.rise(&values, constant)? };
                if rise < weakest.map_or(WEAK, |(least, _)| least) {
                    weakest = Some((rise, constant));
                }
            }
            let Some((_, weakest)) = weakest else { return Ok(Fit { values, free }) };
            values[weakest] = self.allowed(weakest, self.calibration.constants[weakest].prior.value);
            free.retain(|&constant| constant != weakest);
        }
    }

    /// The value nearest to `value` that constant `at` can take.
    fn allowed(&self, at: usize, value: f64) -> f64 {
        let points = self.points[at].iter().flatten().copied();
        points.min_by(|a, b| (a / value).ln().abs().total_cmp(&(b / value).ln().abs())).unwrap_or(value)
    }

    fn is_at_bound(&self, values: &[f64], constant: usize) -> bool {
        let Constant { mut lower, mut upper, .. } = self.calibration.constants[constant];
        if let Some((&first, &last)) = self.points[constant].as_ref().and_then(|all| all.first().zip(all.last())) {
            (lower, upper) = (first, last);
        }
        let at = |bound: f64| (values[constant] / bound).ln().abs() < AT_BOUND;
        at(lower) || at(upper)
    }

    /// The best values from several starts; only the constants in `free` move.
    fn search(&self, seed: u64, from: &[f64], free: &[usize], mut after_start: impl FnMut()) -> Result<Vec<f64>> {
        let mut best = (self.objective(from)?, from.to_vec());
        for start in 0..=self.other_starts {
            let mut stream = Stream::new(seed, "calibrate", &format!("start {start}"));
            let reach = if start == 0 { 0.0 } else { REACH };
            let search = Search::new(self, from, free);
            let point = search.free.iter().map(|&at| from[at].ln() + reach * (2.0 * stream.random::<f64>() - 1.0));
            let point = point.collect();
            let (objective, values) = search.descend(point)?;
            if objective < best.0 {
                best = (objective, values);
            }
            after_start();
        }
        Ok(best.1)
    }

    /// The least fraction by which the objective rises when constant `index` of `values` moves by `PROBE` in either
    /// direction and all others stay; if it is close to zero, the rows do not identify the constant.
    ///
    /// # Errors
    /// As [`Problem::simulated`].
    pub fn rise(&self, values: &[f64], index: usize) -> Result<f64> {
        let here = self.objective(values)?;
        let mut least = f64::INFINITY;
        for factor in [PROBE, 1.0 / PROBE] {
            let mut moved = values.to_vec();
            moved[index] = self.allowed(index, values[index] * factor);
            let constant = &self.calibration.constants[index];
            if (constant.lower..=constant.upper).contains(&moved[index]) {
                least = least.min(self.objective(&moved)? / here - 1.0);
            }
        }
        Ok(least)
    }
}

/// A constant in its file.
fn entry(files: &World, constant: &Constant) -> Option<ConstantEntry> {
    let is_it = |(of, entry): &(Holder, ConstantEntry)| *of == constant.of && entry.name == constant.name;
    files.entries().into_iter().find(is_it).map(|(_, entry)| entry)
}

/// The values that a constant can take between its bounds, ascending, if there are only a few: a governor's floor is
/// one of its cluster's operating points. `None` for a continuous constant.
fn points_of(files: &World, constant: &Constant) -> Option<Vec<f64>> {
    let place = constant.name.strip_prefix("cpu.")?.strip_suffix(".frequency_lowest")?;
    let constants = &files.device.constants;
    let cluster = constants.cpu.get(place.parse::<usize>().ok()?).filter(|_| constant.of == Holder::Device)?;
    let curve = constants.dvfs.iter().find(|curve| curve.core == cluster.core)?;
    let scale = entry(files, constant)?.value / cluster.frequency_lowest.value.0;
    let points = curve.frequency.values.iter().map(|point| point.0 * scale);
    Some(points.filter(|point| (constant.lower..=constant.upper).contains(point)).collect())
}

/// The problem for the solver: the logarithms of the moving constants, and a penalty outside the bounds.
#[derive(Clone)]
struct Search<'a> {
    problem: &'a Problem,
    /// The values of all constants; those that do not move keep these values.
    base: Vec<f64>,
    /// The constants that the simplex moves.
    free: Vec<usize>,
    /// The moving constants that take only a few values.
    stepped: Vec<usize>,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem, base: &[f64], moving: &[usize]) -> Self {
        let (stepped, free) = moving.iter().copied().partition(|&at| problem.points[at].is_some());
        Self { problem, base: base.to_vec(), free, stepped }
    }

    /// Runs simplices one after the other, each around the best point of the last; returns the
    /// objective and all values.
    fn descend(mut self, mut point: Vec<f64>) -> Result<(f64, Vec<f64>)> {
        let mut lowest = f64::INFINITY;
        let is_simulated = self.problem.calibration.simulated;
        let (simplices, steps) = if is_simulated { (2, FEW_STEPS) } else { (SIMPLICES, STEPS) };
        self.step(&point)?;
        for _ in 0..if self.free.is_empty() { 0 } else { simplices } {
            let corners = (0..point.len()).map(|axis| {
                let mut corner = point.clone();
                corner[axis] += EDGE;
                corner
            });
            let simplex: Vec<Vec<f64>> = std::iter::once(point.clone()).chain(corners).collect();
            let solver = NelderMead::new(simplex).with_sd_tolerance(1e-9).map_err(CommandError::failed)?;
            let executor = Executor::new(self.clone(), solver).configure(|state| state.max_iters(steps)).timer(false);
            let state = executor.run().map_err(CommandError::failed)?.state;
            let (Some(found), objective) = (state.best_param, state.best_cost) else { break };
            point = found;
            let ends = !self.step(&point)? && objective > lowest * (1.0 - IMPROVEMENT);
            lowest = objective.min(lowest);
            if ends {
                break;
            }
        }
        let values = self.within(&point).0;
        Ok((self.problem.objective(&values)?, values))
    }

    /// Moves every constant that takes only a few values to a neighbouring value while that is better; returns
    /// whether any moved.
    fn step(&mut self, point: &[f64]) -> Result<bool> {
        let mut values = self.within(point).0;
        let mut lowest = self.problem.objective(&values)?;
        let mut has_moved = false;
        for &at in &self.stepped {
            let points = self.problem.points[at].as_deref().unwrap_or_default();
            let mut here = points.iter().position(|point| *point == values[at]).unwrap_or(0);
            for onward in [|at: usize| at.checked_add(1), |at: usize| at.checked_sub(1)] {
                while let Some((next, &there)) = onward(here).and_then(|next| Some((next, points.get(next)?))) {
                    let mut moved = values.clone();
                    moved[at] = there;
                    let objective = self.problem.objective(&moved)?;
                    if objective >= lowest {
                        break;
                    }
                    (values, lowest, here, has_moved) = (moved, objective, next, true);
                }
            }
        }
        self.base = values;
        Ok(has_moved)
    }

    /// The values within bounds whose logarithms are nearest to `point`, and their distance from it.
    fn within(&self, point: &[f64]) -> (Vec<f64>, f64) {
        let (mut values, mut distance) = (self.base.clone(), 0.0);
        for (&at, &log) in self.free.iter().zip(point) {
            let Constant { lower, upper, .. } = self.problem.calibration.constants[at];
            let inside = log.clamp(lower.ln(), upper.ln());
            distance += (log - inside).abs();
            // The exponential of a bound's logarithm may differ from the bound by rounding.
            values[at] = inside.exp().clamp(lower, upper);
        }
        (values, distance)
    }
}

impl CostFunction for Search<'_> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, point: &Self::Param) -> Result<f64, Error> {
        let (values, distance) = self.within(point);
        // Both bounds were accepted, so every value between them is, too; the solver does not handle errors.
        Ok(self.problem.objective(&values).unwrap_or(f64::MAX) + OUTSIDE * distance)
    }
}
