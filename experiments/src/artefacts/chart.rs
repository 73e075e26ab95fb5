//! Charts of items and of values that an artefact has measured, each beside the paper's own.

use std::hash::Hash;

use haversack_reports::{Axis, BarSeries, Bars, Lines, Look, Series};
use indexmap::{IndexMap, IndexSet};

/// The name of a series, and its value of an item.
pub(super) type Quantity<T, V = f64> = (&'static str, fn(&T) -> V);

/// Lines with a series for each name, in the order in which names come; where an item has no point, its series is
/// marked as going no lower.
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

/// The axis of accuracies, all of it, so that a few points look like a few points.
pub(super) fn test_accuracy() -> Axis {
    axis("test accuracy", "%").range(0.0, 100.0)
}

/// The method whose bars are the simulation's beside a paper that compares none: its own bars are called `paper`.
const SIMULATED: &str = "simulated";

/// Values by subject, method and metric, all as people call them, each beside the paper's own.
#[derive(Clone, Debug, Default)]
pub(super) struct Grid {
    places: Vec<GridValue>,
}

#[derive(Clone, Debug)]
struct GridValue {
    subject: String,
    method: String,
    metric: String,
    simulated: Option<f64>,
    paper: Option<f64>,
}

impl Grid {
    /// Keeps a value and the paper's at `[subject, method, metric]`.
    pub(super) fn put(&mut self, [subject, method, metric]: [&str; 3], simulated: Option<f64>, paper: Option<f64>) {
        let [subject, method, metric] = [subject, method, metric].map(str::to_owned);
        self.places.push(GridValue { subject, method, metric, simulated, paper });
    }

    /// The bars of one metric: a group for each subject, and in it for each method what is simulated and the paper's.
    pub(super) fn bars(&self, metric: &str) -> Bars {
        let of_metric = || self.places.iter().filter(|place| place.metric == metric);
        let subjects: IndexSet<&str> = of_metric().map(|place| place.subject.as_str()).collect();
        let methods: IndexSet<&str> = of_metric().map(|place| place.method.as_str()).collect();
        let column = |method: &str, value: fn(&GridValue) -> Option<f64>| {
            let at = |subject: &&str| of_metric().find(|place| place.subject == **subject && place.method == method);
            subjects.iter().map(|subject| at(subject).and_then(value)).collect::<Vec<_>>()
        };
        methods.into_iter().fold(Bars::new(subjects.iter().copied()), |bars, method| {
            beside(bars, method, column(method, |place| place.simulated), column(method, |place| place.paper))
        })
    }
}

/// `bars` with what is simulated under `name` and, hatched, the paper's where it has any.
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
    fn bars_are_grouped_by_subject_with_the_papers_beside() {
        let mut grid = Grid::default();
        grid.put(["a", "m", "time"], Some(1.0), Some(2.0));
        grid.put(["a", "n", "time"], Some(3.0), None);
        grid.put(["b", "m", "time"], Some(4.0), None);
        grid.put(["a", "m", "memory"], Some(9.0), None);
        let bars = grid.bars("time");
        assert_eq!(bars.categories, ["a", "b"]);
        let series: Vec<_> = bars.series.iter().map(|one| (one.name.as_str(), one.values.clone(), one.look)).collect();
        // Of b under n there is nothing, nor of the paper but one value, so that n has no bars of the paper's.
        assert_eq!(series[0], ("m", vec![Some(1.0), Some(4.0)], Look::Solid));
        assert_eq!(series[1], ("m", vec![Some(2.0), None], Look::Hatched));
        assert_eq!(series[2], ("n", vec![Some(3.0), None], Look::Solid));
        assert_eq!(series.len(), 3);
        let names = beside(Bars::new(["a"]), SIMULATED, [1.0], [2.0]);
        assert_eq!(names.series[1].name, "paper");
    }
}
