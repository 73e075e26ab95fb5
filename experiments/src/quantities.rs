//! Quantities for people: three significant digits, in a unit that leaves few zeros; and statistics of several numbers.

use std::fmt::Display;

use haversack_devices::{Bytes, Nanos};
use haversack_reports::table::three_digits;
use statrs::statistics::{Data, OrderStatistics};

/// A unit, and its size in the base unit of the quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Unit {
    /// Its symbol.
    pub symbol: &'static str,
    /// In nanoseconds or bytes.
    pub size: f64,
}

const fn unit(symbol: &'static str, size: f64) -> Unit {
    Unit { symbol, size }
}

const TIMES: [Unit; 4] = [unit("ns", 1.0), unit("µs", 1e3), unit("ms", 1e6), unit("s", 1e9)];
const SIZES: [Unit; 5] = [unit("B", 1.0), unit("kB", 1e3), unit("MB", 1e6), unit("GB", 1e9), unit("TB", 1e12)];

impl Unit {
    /// The unit for a column of times of which `longest` is the longest.
    pub fn of_times(longest: Nanos) -> Self {
        Self::among(&TIMES, longest.0 as f64)
    }

    /// The largest unit of which there is at least one.
    fn among(units: &[Self], number: f64) -> Self {
        let fits = units.iter().rev().find(|unit| number >= unit.size);
        fits.or(units.first()).copied().unwrap_or(unit("", 1.0))
    }

    /// `number`, given in the base unit, in this unit, without the symbol.
    pub fn number(self, number: f64) -> String {
        three_digits(number / self.size)
    }

    fn with_symbol(self, number: f64) -> String {
        format!("{} {}", self.number(number), self.symbol)
    }
}

/// `315 ms`.
pub fn time(time: Nanos) -> String {
    Unit::of_times(time).with_symbol(time.0 as f64)
}

/// `1.03 GB`.
pub fn size(bytes: Bytes) -> String {
    Unit::among(&SIZES, bytes.as_f64()).with_symbol(bytes.as_f64())
}

/// A fraction as `12.3%`; fractions below a thousandth are shown as a bound.
pub fn percent(share: f64) -> String {
    if share > 0.0 && share < 1e-3 { "<0.1%".to_owned() } else { format!("{}%", three_digits(100.0 * share)) }
}

/// A count with its word.
pub(crate) fn counted<N: Display + PartialEq + From<u8>>(count: N, one: &str, many: &str) -> String {
    let is_one = count == N::from(1);
    format!("{count} {}", if is_one { one } else { many })
}

/// A line with the number of items of `all` that are not among the `shown`, between `before` and `after`;
/// empty if all are shown.
pub(crate) fn more(before: &str, all: usize, shown: usize, after: &str) -> String {
    if all > shown { format!("{before}and {} more{after}\n", all - shown) } else { String::new() }
}

/// The first `most` names, and how many of `all` are left out.
pub(crate) fn cut(names: &[String], most: usize, all: usize) -> String {
    let shown = names.iter().take(most).cloned().collect::<Vec<_>>().join(", ");
    if all > most { format!("{shown} and {} more", all - most) } else { shown }
}

/// The middle value, or the mean of the two in the middle; `None` without values.
pub fn median(values: Vec<f64>) -> Option<f64> {
    (!values.is_empty()).then(|| OrderStatistics::median(&mut Data::new(values)))
}

/// The lowest and the highest of `values`; `None` if there are none.
pub fn range(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().fold(None, |range, value| {
        let (lo, hi) = range.unwrap_or((value, value));
        Some((value.min(lo), value.max(hi)))
    })
}

/// The mean of `values`; `None` if there are none.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_two() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        // (1 + 2) / 2 = 1.5.
        assert_eq!(median(vec![9.0, 1.0, 0.5, 2.0]), Some(1.5));
    }

    #[test]
    fn a_mean_and_a_range_are_of_something() {
        // (1 + 2 + 6) / 3 = 3.
        assert_eq!((mean(&[1.0, 2.0, 6.0]), mean(&[])), (Some(3.0), None));
        assert_eq!((range([2.0, 1.0, 6.0]), range([])), (Some((1.0, 6.0)), None));
    }

    #[test]
    fn quantities_have_three_digits_and_the_largest_unit_that_they_reach() {
        assert_eq!(time(Nanos(315_432_000)), "315 ms");
        assert_eq!(time(Nanos(1_000_000_000)), "1 s");
        assert_eq!(time(Nanos(0)), "0 ns");
        assert_eq!(size(Bytes(1_034_000_000)), "1.03 GB");
        assert_eq!(size(Bytes(999_000)), "999 kB");
        // A column in milliseconds keeps its small ones: 1,230 ns are 0.00123 ms.
        assert_eq!(Unit::of_times(Nanos(2_000_000)).number(1230.0), "0.00123");
        assert_eq!([0.1234, 0.0, 0.0009, 1.0].map(percent), ["12.3%", "0%", "<0.1%", "100%"]);
    }
}
