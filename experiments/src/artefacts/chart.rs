//! Charts of an artefact's items and measured values, each with the paper's own.

use std::hash::Hash;

use haversack_reports::{Axis, BarSeries, Bars, Lines, Look, Series};
use indexmap::IndexMap;

/// The name of a series, and its value of an item.
pub(super) type Quantity<T, V = f64> = (&'static str, fn(&T) -> V);

/// Lines with a series for each name, in the order of first appearance; a series with an item without a point is marked
/// as not going lower.
pub(super) fn curves<'t, T: 't, N: Into<String> + Eq + Hash>(
    items: impl IntoIterator<Item = &'t T>,
    name: impl Fn(&'t T) -> N,
    point: impl Fn(&'t T) -> Option<(f64, f64)>,
) -> Lines {
    let mut curves: IndexMap<N, (Vec<_>, bool)> = IndexMap::new();
    for item in items {
        let ((points, ends), point) = (curves.entry(name(item)).or_default(), point(item));
        points.extend(point);
        *ends |= point.is_none();
    }
    let one = |lines: Lines, (name, (points, ends))| {
        let series = Series::new(name, points);
        lines.series(if ends { series.ends_low() } else { series })
    };
    curves.into_iter().fold(Lines::new(), one)
}

/// An axis; a quantity without a unit has an empty one.
pub(super) fn axis(label: &str, unit: &str) -> Axis {
    if unit.is_empty() { Axis::new(label) } else { Axis::new(label).unit(unit) }
}

/// An axis that begins at zero.
pub(super) fn from_zero(label: &str, unit: &str) -> Axis {
    axis(label, unit).from_zero()
}

/// The axis of accuracies that begin with a guess, from 0 to 100.
pub(super) fn test_accuracy() -> Axis {
    axis("test accuracy", "%").range(0.0, 100.0)
}

/// The axis of final accuracies, of which `least` is the lowest: 20 points or more, so that a difference of a few looks small.
pub(super) fn final_accuracy(least: f64) -> Axis {
    axis("test accuracy", "%").range((least / 10.0).floor().clamp(0.0, 8.0) * 10.0, 100.0)
}

/// The label of simulated bars where the paper compares no methods: its own bars are labelled `paper`.
const SIMULATED: &str = "simulated";

/// Adds to `bars` the simulated values under `name`, and the paper's, hatched, where it has any.
pub(super) fn beside<S: Into<Option<f64>>, P: Into<Option<f64>>>(
    bars: Bars,
    name: &str,
    simulated: impl IntoIterator<Item = S>,
    paper: impl IntoIterator<Item = P>,
) -> Bars {
    let papers = BarSeries::new(if name == SIMULATED { "paper" } else { name }, paper).look(Look::Hatched);
    let bars = bars.series(BarSeries::new(name, simulated));
    if papers.values.iter().any(Option::is_some) { bars.series(papers) } else { bars }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name, a place and a value.
    type NamedValue = (&'static str, f64, Option<f64>);
    const ITEMS: [NamedValue; 4] =
        [("a", 1.0, Some(2.0)), ("b", 1.0, Some(3.0)), ("a", 2.0, Some(4.0)), ("b", 2.0, None)];

    #[test]
    fn items_of_one_name_are_a_series_and_one_without_a_point_ends_it() {
        let lines = curves(&ITEMS, |item| item.0, |item| Some((item.1, item.2?)));
        let found: Vec<_> =
            lines.series.iter().map(|one| (one.name.as_str(), one.points.clone(), one.ends_low)).collect();
        assert_eq!(found, [("a", vec![(1.0, 2.0), (2.0, 4.0)], false), ("b", vec![(1.0, 3.0)], true)]);
    }

    #[test]
    fn the_papers_bars_are_hatched_where_there_are_any() {
        let bars = beside(Bars::new(["a", "b"]), "m", [Some(1.0), Some(4.0)], [Some(2.0), None]);
        let bars = beside(bars, "n", [Some(3.0), None], [None::<f64>; 2]);
        let series: Vec<_> = bars.series.iter().map(|one| (one.name.as_str(), one.values.clone(), one.look)).collect();
        assert_eq!(series[0], ("m", vec![Some(1.0), Some(4.0)], Look::Solid));
        assert_eq!(series[1], ("m", vec![Some(2.0), None], Look::Hatched));
        assert_eq!(series[2], ("n", vec![Some(3.0), None], Look::Solid));
        assert_eq!(series.len(), 3);
        let names = beside(Bars::new(["a"]), SIMULATED, [1.0], [2.0]);
        assert_eq!(names.series[1].name, "paper");
    }
}
