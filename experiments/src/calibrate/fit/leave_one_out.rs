//! Fits with one row left out each: Gauss-Newton steps, starting from the fit to all rows.
//!
//! Leaving out one row of many changes the constants little, so all these fits start with the same slopes, which are
//! computed once: the derivative of the logarithm of each row by the logarithm of each constant. After each step
//! Broyden's update (Mathematics of Computation 19, 1965) corrects the slopes by the effect of the step, so that a step
//! costs one simulation of the rows and no slope is computed again.

use super::{Constant, Fit, Problem};
use crate::Result;

/// The change of a constant's logarithm to compute a slope: 5 %, which is more than the rounding of times.
const MOVE: f64 = 0.05;
/// The most steps.
const STEPS: usize = 8;
/// The most halvings of a step that does not improve the objective.
const HALVINGS: usize = 4;
/// The search ends when a step improves the objective by less than this fraction.
const IMPROVEMENT: f64 = 1e-3;

/// The logarithms of the moving constants, and the error of each row with them, as a logarithm.
#[derive(Clone)]
struct Point {
    logs: Vec<f64>,
    residuals: Vec<f64>,
}

impl Point {
    /// The objective: the squared residuals of all rows except one.
    fn objective(&self, left_out: usize) -> f64 {
        let others = self.residuals.iter().enumerate().filter(|(row, _)| *row != left_out);
        others.map(|(_, residual)| residual.powi(2)).sum()
    }
}

impl Problem {
    /// The simulated value of every row with the constants fitted to all other rows. Constants at their priors stay
    /// there, and so do operating points: they are far apart, and a single row rarely moves them.
    ///
    /// # Errors
    /// As [`Problem::present`].
    pub fn left_out(&self, fit: &Fit, mut after_row: impl FnMut()) -> Result<Vec<f64>> {
        let mut fit = fit.clone();
        fit.free.retain(|&at| self.points[at].is_none());
        let fit = &fit;
        let logs = fit.free.iter().map(|&at| fit.values[at].ln()).collect();
        let here = self.point(fit, logs)?;
        let slopes = self.slopes(fit, &here)?;
        let mut simulated = Vec::new();
        for (row, observation) in self.observations.iter().enumerate() {
            let point = self.without_row(fit, &here, slopes.clone(), row)?;
            simulated.push(point.residuals[row].exp() * observation.observed);
            after_row();
        }
        Ok(simulated)
    }

    /// The best point for all rows except one, found by steps from `here`.
    fn without_row(&self, fit: &Fit, here: &Point, mut slopes: Vec<Vec<f64>>, left_out: usize) -> Result<Point> {
        let mut best = here.clone();
        for _ in 0..STEPS {
            let before = best.objective(left_out);
            let mut share = 1.0;
            for _ in 0..=HALVINGS {
                let logs = self.step(fit, &best, &slopes, left_out, share);
                let moved = difference(&logs, &best.logs);
                if moved.iter().all(|by| *by == 0.0) {
                    break;
                }
                let found = self.point(fit, logs)?;
                mend(&mut slopes, &moved, &difference(&found.residuals, &best.residuals));
                if found.objective(left_out) < before {
                    best = found;
                    break;
                }
                share /= 2.0;
            }
            if best.objective(left_out) > before * (1.0 - IMPROVEMENT) {
                break;
            }
        }
        Ok(best)
    }

    fn point(&self, fit: &Fit, logs: Vec<f64>) -> Result<Point> {
        let mut values = fit.values.clone();
        for (&at, log) in fit.free.iter().zip(&logs) {
            let Constant { lower, upper, .. } = self.calibration.constants[at];
            // The exponential of a bound's logarithm may differ from the bound by rounding.
            values[at] = log.exp().clamp(lower, upper);
        }
        let simulated = self.simulated(&values)?;
        let residuals = simulated.iter().zip(&self.observations).map(|(value, row)| (value / row.observed).ln());
        Ok(Point { logs, residuals: residuals.collect() })
    }

    /// The derivative of each row's residual by the logarithm of each constant: a list of rows per constant.
    fn slopes(&self, fit: &Fit, here: &Point) -> Result<Vec<Vec<f64>>> {
        let mut slopes = Vec::new();
        for (axis, bounds) in self.bounds(fit).into_iter().enumerate() {
            let mut logs = here.logs.clone();
            let inwards = if logs[axis] + MOVE <= bounds[1] { MOVE } else { -MOVE };
            logs[axis] += inwards;
            let there = self.point(fit, logs)?;
            let moved = difference(&there.residuals, &here.residuals);
            slopes.push(moved.into_iter().map(|by| by / inwards).collect());
        }
        Ok(slopes)
    }

    /// The logarithms of the bounds of the moving constants.
    fn bounds(&self, fit: &Fit) -> Vec<[f64; 2]> {
        let bounds = |&at: &usize| {
            let Constant { lower, upper, .. } = self.calibration.constants[at];
            [lower.ln(), upper.ln()]
        };
        fit.free.iter().map(bounds).collect()
    }

    /// The point after a `share` of the step that would be best for all rows except one if the slopes were constant. A
    /// constant that would leave its bounds stays at one, and the step is recomputed for the others.
    fn step(&self, fit: &Fit, from: &Point, slopes: &[Vec<f64>], left_out: usize, share: f64) -> Vec<f64> {
        let bounds = self.bounds(fit);
        let is_row = |row: usize| row != left_out && from.residuals[row].is_finite();
        let rows: Vec<usize> = (0..from.residuals.len()).filter(|row| is_row(*row)).collect();
        let mut moving: Vec<usize> = (0..slopes.len()).collect();
        let mut logs = from.logs.clone();
        loop {
            // The change of constants that ended at a bound is already part of the residuals.
            let fixed = difference(&logs, &from.logs);
            let residual = |row: usize| {
                let by =
                    (0..slopes.len()).filter(|axis| !moving.contains(axis)).map(|axis| slopes[axis][row] * fixed[axis]);
                from.residuals[row] + by.sum::<f64>()
            };
            let product = |a: usize, b: usize| rows.iter().map(|&row| slopes[a][row] * slopes[b][row]).sum::<f64>();
            let matrix = moving.iter().map(|&a| moving.iter().map(|&b| product(a, b)).collect()).collect();
            let right = moving.iter().map(|&a| -rows.iter().map(|&row| slopes[a][row] * residual(row)).sum::<f64>());
            let Some(step) = solved(matrix, right.collect()) else { return logs };
            let target = |(&axis, by): (&usize, &f64)| (axis, from.logs[axis] + share * by);
            let outside = |&(axis, to): &(usize, f64)| to < bounds[axis][0] || to > bounds[axis][1];
            let Some((axis, to)) = moving.iter().zip(&step).map(target).find(outside) else {
                for (axis, to) in moving.iter().zip(&step).map(target) {
                    logs[axis] = to;
                }
                return logs;
            };
            logs[axis] = to.clamp(bounds[axis][0], bounds[axis][1]);
            moving.retain(|other| *other != axis);
        }
    }
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// Corrects slopes so that they predict the effect `did` of the step `moved`.
fn mend(slopes: &mut [Vec<f64>], moved: &[f64], did: &[f64]) {
    let length: f64 = moved.iter().map(|by| by * by).sum();
    for (row, did) in did.iter().enumerate().filter(|(_, did)| did.is_finite()) {
        let said: f64 = slopes.iter().zip(moved).map(|(of_rows, by)| of_rows[row] * by).sum();
        for (of_rows, by) in slopes.iter_mut().zip(moved) {
            of_rows[row] += (did - said) * by / length;
        }
    }
}

/// The solution of a symmetric system by Gaussian elimination; `None` if there is none.
fn solved(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let number = right.len();
    for column in 0..number {
        let largest = (column..number).max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        matrix.swap(column, largest);
        right.swap(column, largest);
        let ((above, below), (right_above, right_below)) =
            (matrix.split_at_mut(column + 1), right.split_at_mut(column + 1));
        let (pivot, right_pivot) = (&above[column], right_above[column]);
        if pivot[column].abs() < f64::MIN_POSITIVE {
            return None;
        }
        for (row, value) in below.iter_mut().zip(right_below) {
            let factor = row[column] / pivot[column];
            for (cell, of_pivot) in row.iter_mut().zip(pivot) {
                *cell -= factor * of_pivot;
            }
            *value -= factor * right_pivot;
        }
    }
    let mut solution = vec![0.0; number];
    for row in (0..number).rev() {
        let known: f64 = (row + 1..number).map(|column| matrix[row][column] * solution[column]).sum();
        solution[row] = (right[row] - known) / matrix[row][row];
    }
    solution.iter().all(|value| value.is_finite()).then_some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_solved_and_one_without_a_solution_is_not() {
        // 2x + y = 5 and x + 3y = 10: x = 1, y = 3. The second system has two dependent rows.
        let found = solved(vec![vec![2.0, 1.0], vec![1.0, 3.0]], vec![5.0, 10.0]).unwrap();
        assert!((found[0] - 1.0).abs() < 1e-12 && (found[1] - 3.0).abs() < 1e-12, "{found:?}");
        assert_eq!(solved(vec![vec![1.0, 1.0], vec![1.0, 1.0]], vec![1.0, 1.0]), None);
        assert_eq!(solved(Vec::new(), Vec::new()), Some(Vec::new()));
    }

    #[test]
    fn mended_slopes_say_what_the_step_did() {
        // One row, slopes 1 and 1; a step of (2, 0) had the effect 4 where they predict 2: the first becomes 2.
        let mut slopes = vec![vec![1.0], vec![1.0]];
        mend(&mut slopes, &[2.0, 0.0], &[4.0]);
        assert_eq!(slopes, [vec![2.0], vec![1.0]]);
    }
}
