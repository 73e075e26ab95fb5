//! Lines and points over a numeric axis.

use super::axis::Frame;
use super::canvas::{Canvas, Pen};
use super::legend::{Entry, Key, draw_cap};
use super::plot::{Numbers, Plot};
use super::style::{Look, MUTED, Shape, Style, Styles};

/// Series of points over a numeric axis.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Lines {
    /// The series, the last on top.
    pub series: Vec<Series>,
}

impl Lines {
    /// No series yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more series.
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }
}

/// How the points of a series are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stroke {
    /// Straight from point to point, in the order given.
    #[default]
    Straight,
    /// Each value lasts until the next point.
    Step,
    /// Not at all.
    None,
}

/// One series.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Series {
    /// The name; series with the same name share colour and marker.
    pub name: String,
    /// Points in data units.
    pub points: Vec<(f64, f64)>,
    /// The text of each point, shown after its name when a reader points at it: one for each point, or none,
    /// which shows the coordinates.
    pub labels: Vec<String>,
    /// How they are joined.
    pub stroke: Stroke,
    /// Whether points have no markers: dense curves.
    pub unmarked: bool,
    /// Full line and filled markers, or dashed with open ones.
    pub look: Look,
    /// Whether the point with the least `x` is marked as the lowest possible one.
    pub ends_low: bool,
    /// Whether the area under it is filled: cumulative sums, the largest first, give a stack over time.
    pub filled: bool,
}

impl Series {
    /// A series of joined, marked points.
    pub fn new(name: impl Into<String>, points: impl Into<Vec<(f64, f64)>>) -> Self {
        Self { name: name.into(), points: points.into(), ..Self::default() }
    }

    with! {
        /// With the texts of the points.
        labels(labels: impl Into<Vec<String>>) => labels: labels.into();
        /// Joined in this way.
        stroke(stroke: Stroke) => stroke: stroke;
        /// Without markers.
        unmarked() => unmarked: true;
        /// In this look: the paper's values next to the simulated ones.
        look(look: Look) => look: look;
        /// Marked at its least `x`: it does not go lower.
        ends_low() => ends_low: true;
        /// Filled down to the axis.
        filled() => filled: true, unmarked: true;
    }

    fn path(&self) -> Vec<(f64, f64)> {
        if self.stroke == Stroke::Step { steps(&self.points) } else { self.points.clone() }
    }

    fn draw_marks(&self, canvas: &Canvas, frame: &Frame<'_>, styles: &Styles<'_>) {
        let (style, name) = (styles.of(&self.name), styles.words(&self.name, self.look));
        if self.ends_low {
            let lowest = self.points.iter().min_by(|a, b| a.0.total_cmp(&b.0)).filter(|p| frame.holds(**p));
            if let Some(point) = lowest {
                draw_cap(canvas, frame.x_at(point.0), frame.y_at(point.1), style.colour);
            }
        }
        let all = self.points.iter().enumerate();
        let marked = all.filter(|(_, point)| !self.unmarked && frame.holds(**point));
        for (place, &point) in marked {
            let words = match self.labels.get(place) {
                Some(label) => format!("{name}: {label}"),
                None => frame.point_in_words(&name, point.0, point.1),
            };
            canvas.valued(&words, || canvas.marker(frame.at(point), 4.0, style, self.look));
        }
    }

    fn key(&self, style: Style) -> Key {
        if self.filled {
            return Key::Swatch { colour: style.colour, look: self.look };
        }
        Key::Series { style, look: self.look, line: self.stroke != Stroke::None, marker: !self.unmarked }
    }
}

/// The corners of a line on which each value lasts until the next point.
pub(super) fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let corners = points.windows(2).flat_map(|w| match w {
        [a, b] => vec![*a, (b.0, a.1)],
        _ => Vec::new(),
    });
    corners.chain(points.last().copied()).collect()
}

impl Plot for Lines {
    fn numbers(&self) -> Vec<Numbers<'_>> {
        self.series.iter().map(|s| (s.name.as_str(), s.points.iter().map(|p| (Some(p.0), p.1)).collect())).collect()
    }

    fn draw(&self, canvas: &Canvas, frame: &Frame<'_>, styles: &Styles<'_>) {
        for series in self.series.iter().filter(|s| s.filled) {
            canvas.named("series", &series.name, || {
                canvas.polygon(&frame.area(&series.path()), styles.of(&series.name).colour);
            });
        }
        for series in self.series.iter().filter(|s| s.stroke != Stroke::None && !s.filled) {
            let pen = Pen::series(styles.of(&series.name).colour, 2.0, series.look);
            let pieces = frame.clip(&series.path());
            canvas.named("series", &series.name, || pieces.iter().for_each(|piece| canvas.line(piece, pen)));
        }
        for series in &self.series {
            canvas.named("series", &series.name, || series.draw_marks(canvas, frame, styles));
        }
    }

    fn keys(&self, styles: &Styles<'_>) -> Vec<Entry> {
        // The layout drops repeated names from the legend.
        let key = |series: &Series| Entry { key: series.key(styles.of(&series.name)), label: series.name.clone() };
        let mut keys: Vec<Entry> = self.series.iter().map(key).collect();
        if self.series.iter().any(|s| s.ends_low && !s.points.is_empty()) {
            keys.push(Entry { key: Key::Cap, label: "does not go lower".into() });
        }
        keys
    }

    fn looks(&self) -> Vec<(Look, Key)> {
        self.series.iter().map(|s| (s.look, s.key(Style { colour: MUTED, shape: Shape::Circle }))).collect()
    }
}
