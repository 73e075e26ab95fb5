//! Pareto fronts in two dimensions.
//!
//! A point dominates another if it is at least as good on both axes and better on one. Points with a coordinate that
//! is not finite are ignored.

use std::cmp::Ordering;

/// Which way is better on an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sense {
    /// Smaller is better.
    #[default]
    Minimise,
    /// Larger is better.
    Maximise,
}

impl Sense {
    /// The coordinate turned so that smaller is better.
    fn cost(self, value: f64) -> f64 {
        match self {
            Self::Minimise => value,
            Self::Maximise => -value,
        }
    }
}

/// The senses of the horizontal and the vertical axis.
pub type Senses = [Sense; 2];

/// Both axes minimised: memory against time.
pub const BOTH_MINIMISED: Senses = [Sense::Minimise, Sense::Minimise];

/// Indices of the points that no other point dominates, from the best on the first axis to the worst.
///
/// Of equal points the earliest in `points` is kept, so that ties do not change the result. O(n log n).
///
/// ```
/// use haversack_reports::pareto::{BOTH_MINIMISED, front};
/// let points = [(1.0, 9.0), (2.0, 4.0), (3.0, 6.0), (4.0, 1.0)];
/// assert_eq!(front(&points, BOTH_MINIMISED), [0, 1, 3]);
/// ```
pub fn front(points: &[(f64, f64)], senses: Senses) -> Vec<usize> {
    let costs = |index: usize| points.get(index).map_or((f64::NAN, f64::NAN), |p| cost(*p, senses));
    let mut order: Vec<usize> =
        points.iter().enumerate().filter(|(_, p)| p.0.is_finite() && p.1.is_finite()).map(|(i, _)| i).collect();
    order.sort_by(|&a, &b| compare(costs(a), costs(b)).then(a.cmp(&b)));
    let mut best = f64::INFINITY;
    order.retain(|&index| {
        let second = costs(index).1;
        let kept = second < best;
        if kept {
            best = second;
        }
        kept
    });
    order
}

/// The same for points that also lose something, a number for each kind of loss: a point dominates only those that lose
/// as much or more of every kind. Of equal points the one that loses least is kept.
///
/// ```
/// use haversack_reports::pareto::{BOTH_MINIMISED, fair_front};
/// let points = [(1.0, 9.0), (2.0, 4.0), (1.0, 3.0)];
/// assert_eq!(fair_front(&points, &[[0], [0], [1]], BOTH_MINIMISED), [2, 0, 1]);
/// assert_eq!(fair_front(&points, &[[1], [0], [0]], BOTH_MINIMISED), [2]);
/// ```
pub fn fair_front<const N: usize>(points: &[(f64, f64)], losses: &[[u64; N]], senses: Senses) -> Vec<usize> {
    let mut kinds: Vec<&[u64; N]> = losses.iter().collect();
    kinds.sort_unstable();
    kinds.dedup();
    let all = || points.iter().zip(losses).enumerate();
    let mut found = Vec::new();
    for kind in kinds {
        let rivals = all().filter(|(_, (_, own))| own.iter().zip(kind).all(|(own, other)| own <= other));
        let mut rivals: Vec<(usize, (f64, f64), bool)> =
            rivals.map(|(index, (point, own))| (index, *point, own == kind)).collect();
        rivals.sort_by_key(|(_, _, is_own)| *is_own);
        let places: Vec<(f64, f64)> = rivals.iter().map(|(_, point, _)| *point).collect();
        let kept = front(&places, senses).into_iter().map(|place| rivals[place]);
        found.extend(kept.filter(|(_, _, is_own)| *is_own).map(|(index, point, _)| (index, cost(point, senses))));
    }
    found.sort_by(|a, b| compare(a.1, b.1).then(a.0.cmp(&b.0)));
    found.into_iter().map(|(index, _)| index).collect()
}

fn cost(point: (f64, f64), senses: Senses) -> (f64, f64) {
    let [first, second] = senses;
    (first.cost(point.0), second.cost(point.1))
}

/// Finite numbers by value, with −0 equal to 0, as for dominance.
fn compare(a: (f64, f64), b: (f64, f64)) -> Ordering {
    let axis = |x: f64, y: f64| x.partial_cmp(&y).unwrap_or(Ordering::Equal);
    axis(a.0, b.0).then(axis(a.1, b.1))
}
