//! Charts of items that an artefact has measured: which names a series, and which are its values.

use std::hash::Hash;

use haversack_reports::{Axis, BarSeries, Bars, Lines, Series};
use indexmap::IndexMap;

/// The name of a series, and its value of an item.
pub(super) type Quantity<T, V = f64> = (&'static str, fn(&T) -> V);

/// Bars with a group for each of `names`, which are the items', and in it a bar for each series.
pub(super) fn columns<T, V: Into<Option<f64>>, const N: usize>(
    names: impl IntoIterator<Item = impl Into<String>>,
    items: &[T],
    series: [Quantity<T, V>; N],
) -> Bars {
    let one = |bars: Bars, (name, value): Quantity<T, V>| {
        bars.series(BarSeries::new(name, items.iter().map(value).collect::<Vec<_>>()))
    };
    series.into_iter().fold(Bars::new(names), one)
}

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
    fn columns_have_a_value_of_each_item() {
        let bars = columns(
            ["w", "x", "y", "z"],
            &ITEMS,
            [("place", |item: &NamedValue| Some(item.1)), ("value", |item| item.2)],
        );
        assert_eq!(bars.series[1].values, [Some(2.0), Some(3.0), Some(4.0), None]);
        assert_eq!((axis("time", "s").title(), axis("ratio", "").title()), ("time (s)".to_owned(), "ratio".to_owned()));
        assert!(from_zero("time", "s").from_zero);
    }
}
