//! The interface of all kinds of chart; the layout uses nothing else of them.

use super::FigureError;
use super::axis::{Axis, Fit, Frame, Scale, Span};
use super::canvas::Canvas;
use super::legend::{Entry, Key};
use super::style::{Look, Styles};

/// The numbers of one series: its name and its points, whose `x` is absent over categories.
pub(super) type Numbers<'a> = (&'a str, Vec<(Option<f64>, f64)>);

/// The two ends of the data along an axis.
pub(super) type Extent = Option<(f64, f64)>;

pub(super) trait Plot {
    /// Names of the series that take a style, in order.
    fn names(&self) -> Vec<&str> {
        self.numbers().into_iter().map(|(name, _)| name).collect()
    }
    /// All values that are placed by the axes.
    fn numbers(&self) -> Vec<Numbers<'_>>;
    /// How the spans follow from the data, in a frame of this width and height.
    fn fits(&self, _width: f64, _height: f64) -> (Fit, Fit) {
        (Fit::Air, Fit::Round(0.0))
    }
    fn draw(&self, canvas: &Canvas, frame: &Frame<'_>, styles: &Styles<'_>);
    /// The chart's entries in the legend.
    fn keys(&self, styles: &Styles<'_>) -> Vec<Entry>;
    /// The looks that occur, each with a sample for the legend.
    fn looks(&self) -> Vec<(Look, Key)> {
        Vec::new()
    }
    fn categories(&self) -> Option<&[String]> {
        None
    }
    /// Whether it has clouds with fronts, which readers of a page can filter.
    fn is_front(&self) -> bool {
        false
    }
    /// The width that the bars need.
    fn least_width(&self) -> f64 {
        0.0
    }
    /// Room above the frame and to its right, for labels that belong to the data.
    fn margins(&self, _x: Option<Span>, _width: f64) -> (f64, f64) {
        (0.0, 0.0)
    }
    /// Labels that did not fit in the panel, for the legend.
    fn numbered(&self, _x: Option<Span>, _width: f64) -> Vec<Entry> {
        Vec::new()
    }
    fn x_extent(&self) -> Extent {
        extent(self.numbers().iter().flat_map(|(_, points)| points.iter().filter_map(|p| p.0)))
    }
    fn y_extent(&self) -> Extent {
        extent(self.numbers().iter().flat_map(|(_, points)| points.iter().map(|p| p.1)))
    }
    /// Checks that only this kind of chart has.
    fn check(&self, _panel: &str) -> Result<(), FigureError> {
        Ok(())
    }
}

/// The error that a value is infinite or NaN.
pub(super) fn not_finite(panel: &str, series: &str, index: usize, value: f64) -> FigureError {
    FigureError(format!("{panel}: series `{series}`, value {index}: {value} is not a finite number"))
}

/// The error that a value is not positive, as a logarithmic axis or a stack needs.
pub(super) fn not_positive(panel: &str, series: &str, index: usize, value: f64, needed_by: &str) -> FigureError {
    FigureError(format!("{panel}: series `{series}`, value {index}: {value} is not positive, as {needed_by} needs"))
}

/// Refuses values that the axes cannot show.
pub(super) fn check(plot: &dyn Plot, panel: &str, x: &Axis, y: &Axis) -> Result<(), FigureError> {
    for (series, points) in plot.numbers() {
        for (index, point) in points.iter().enumerate() {
            for (value, axis) in [(point.0, x), (Some(point.1), y)] {
                let Some(value) = value else { continue };
                if !value.is_finite() {
                    return Err(not_finite(panel, series, index, value));
                }
                if axis.scale == Scale::Log && value <= 0.0 {
                    return Err(not_positive(panel, series, index, value, "a logarithmic axis"));
                }
            }
        }
    }
    plot.check(panel)
}

/// Refuses a series without one value for each category.
pub(super) fn check_length(panel: &str, series: &str, found: usize, expected: usize) -> Result<(), FigureError> {
    if found == expected {
        return Ok(());
    }
    Err(FigureError(format!("{panel}: series `{series}` has {found} values for {expected} categories")))
}

pub(super) fn extent(values: impl Iterator<Item = f64>) -> Extent {
    values.fold(None, |ends, v| match ends {
        None => Some((v, v)),
        Some((lo, hi)) => Some((f64::min(lo, v), f64::max(hi, v))),
    })
}

/// The extent of both.
pub(super) fn join(a: Extent, b: Extent) -> Extent {
    extent(a.into_iter().chain(b).flat_map(|(lo, hi)| [lo, hi]))
}
