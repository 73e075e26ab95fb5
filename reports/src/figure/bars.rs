//! Grouped bars: categories × series, the paper's values next to the simulated ones.

use super::FigureError;
use super::axis::{Fit, Frame};
use super::canvas::{Canvas, HPos, Pen, Rect};
use super::legend::{Entry, Key};
use super::plot::{Numbers, Plot, check_length};
use super::style::{INK, Look, MUTED, Shape, Style, Styles};
use super::text::Face;
use super::ticks::number;

/// Bars in groups, one group a category.
///
/// A bar on a logarithmic axis would have no base, so each value is drawn as a marker instead.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Bars {
    /// The categories, left to right.
    pub categories: Vec<String>,
    /// The series, left to right in each group; neighbours with the same name touch.
    pub series: Vec<BarSeries>,
    /// Whether each bar's value is written above it.
    pub values_shown: bool,
}

impl Bars {
    /// No series yet.
    pub fn new<S: Into<String>>(categories: impl IntoIterator<Item = S>) -> Self {
        Self { categories: categories.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// With one more series.
    pub fn series(mut self, series: BarSeries) -> Self {
        self.series.push(series);
        self
    }

    /// With the value above each bar.
    pub fn show_values(self) -> Self {
        Self { values_shown: true, ..self }
    }

    /// The positions of the bars of a group, as left edges in units of a bar's width, and the group's whole width.
    fn offsets(&self) -> (Vec<f64>, f64) {
        let mut edges = Vec::new();
        let mut x = 0.0;
        let mut last: Option<&str> = None;
        for series in &self.series {
            if last.is_some_and(|name| name != series.name) {
                x += 0.16;
            }
            edges.push(x);
            x += 1.0;
            last = Some(&series.name);
        }
        (edges, x.max(1.0))
    }

    /// The width of a bar in a frame of this width.
    fn bar_width(&self, frame: f64) -> f64 {
        (frame / self.categories.len().max(1) as f64 * SHARE / self.offsets().1).min(WIDEST_BAR)
    }

    fn widest_value(&self) -> f64 {
        Face::VALUE.widest(&self.values().map(number).collect::<Vec<_>>())
    }

    /// Whether the widest value fits horizontally above a bar of this width.
    fn values_lie(&self, bar: f64) -> bool {
        self.widest_value() + 4.0 <= if self.series.len() == 1 { bar / SHARE } else { bar * 1.08 }
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.series.iter().flat_map(|s| s.values.iter().flatten().copied())
    }
}

/// One series of bars.
#[derive(Clone, Debug)]
#[must_use]
pub struct BarSeries {
    /// The name; series with the same name share a colour.
    pub name: String,
    /// One value for each category; `None` if it is missing.
    pub values: Vec<Option<f64>>,
    /// Filled, hatched or outlined.
    pub look: Look,
}

impl BarSeries {
    /// Filled bars.
    pub fn new<V: Into<Option<f64>>>(name: impl Into<String>, values: impl IntoIterator<Item = V>) -> Self {
        Self { name: name.into(), values: values.into_iter().map(Into::into).collect(), look: Look::Solid }
    }

    /// In this look.
    pub fn look(self, look: Look) -> Self {
        Self { look, ..self }
    }
}

/// The share of a category's slot that its bars take.
pub(super) const SHARE: f64 = 0.8;
/// The least width of a bar.
const LEAST_BAR: f64 = 12.0;
/// The greatest width, so that a single bar is not a wall.
const WIDEST_BAR: f64 = 56.0;

/// The width at which every category's longest word fits under its slot.
pub(super) fn width_for_names(categories: &[String]) -> f64 {
    let word = categories.iter().map(|c| Face::TICK.widest_word(c)).fold(0.0, f64::max);
    (word + 10.0).min(90.0) * categories.len() as f64
}

impl Plot for Bars {
    fn numbers(&self) -> Vec<Numbers<'_>> {
        self.series.iter().map(|s| (s.name.as_str(), s.values.iter().flatten().map(|v| (None, *v)).collect())).collect()
    }

    fn fits(&self, width: f64, height: f64) -> (Fit, Fit) {
        let labels = if self.values_lie(self.bar_width(width)) { 16.0 } else { self.widest_value() + 8.0 };
        (Fit::Air, Fit::Zero(if self.values_shown { labels / (height - labels).max(labels) } else { 0.03 }))
    }

    fn categories(&self) -> Option<&[String]> {
        Some(&self.categories)
    }

    fn least_width(&self) -> f64 {
        let bars = self.offsets().1 * LEAST_BAR / SHARE * self.categories.len() as f64;
        bars.max(width_for_names(&self.categories))
    }

    fn check(&self, panel: &str) -> Result<(), FigureError> {
        self.series.iter().try_for_each(|s| check_length(panel, &s.name, s.values.len(), self.categories.len()))
    }

    fn draw(&self, canvas: &Canvas, frame: &Frame<'_>, styles: &Styles<'_>) {
        let slot = frame.rect.width / self.categories.len().max(1) as f64;
        let (edges, whole) = self.offsets();
        let bar = self.bar_width(frame.rect.width);
        let lying = self.values_lie(bar);
        for category in 0..self.categories.len() {
            let left = frame.rect.left + slot * (category as f64 + 0.5) - bar * whole / 2.0;
            for (series, edge) in self.series.iter().zip(&edges) {
                let left = left + bar * edge;
                let Some(value) = series.values.get(category).copied().flatten() else {
                    if self.values_shown {
                        let foot = (left + bar / 2.0, frame.rect.bottom() - 5.0);
                        canvas.upright(foot, "n/a", Face::VALUE, MUTED, HPos::Left);
                    }
                    continue;
                };
                let name = styles.words(&series.name, series.look);
                let words = frame.value_in_words(&name, &self.categories[category], value);
                let draw = || {
                    let tip = draw_bar(canvas, frame, left, bar, value, styles.of(&series.name), series.look);
                    if let Some(tip) = tip.filter(|_| self.values_shown) {
                        draw_value(canvas, left + bar / 2.0, tip, value, lying);
                    }
                };
                canvas.named("series", &series.name, || canvas.valued(&words, draw));
            }
        }
        if frame.y.holds(0.0) && frame.y.lo < 0.0 && !frame.y.log {
            let zero = frame.y_at(0.0);
            canvas.line(&[(frame.rect.left, zero), (frame.rect.right(), zero)], Pen::new(INK, 1.0));
        }
    }

    fn keys(&self, styles: &Styles<'_>) -> Vec<Entry> {
        // A name that has bars of several looks is shown filled here; the legend explains the looks separately.
        let look = |series: &BarSeries| {
            let is_alone = self.series.iter().filter(|s| s.name == series.name).all(|s| s.look == series.look);
            if is_alone { series.look } else { Look::Solid }
        };
        let key = |series: &BarSeries| Entry {
            key: Key::Swatch { colour: styles.of(&series.name).colour, look: look(series) },
            label: series.name.clone(),
        };
        self.series.iter().map(key).collect()
    }

    fn looks(&self) -> Vec<(Look, Key)> {
        self.series.iter().map(|s| (s.look, Key::Swatch { colour: MUTED, look: s.look })).collect()
    }
}

/// Draws one bar (or its marker) and returns the position of its tip, in pixels; `None` if it is outside the axis.
fn draw_bar(
    canvas: &Canvas,
    frame: &Frame<'_>,
    left: f64,
    width: f64,
    value: f64,
    style: Style,
    look: Look,
) -> Option<f64> {
    if frame.y.log {
        if !frame.y.holds(value) {
            return None;
        }
        let tip = frame.y_at(value);
        let marker = Style { shape: Shape::Circle, ..style };
        canvas.marker((left + width / 2.0, tip), (width / 3.0).clamp(3.0, 5.0), marker, look);
        return Some(tip - 5.0);
    }
    // A bar that extends beyond a given range is cut at the frame, and gets no value, which
    // would mark the wrong height.
    let (low, high) = (value.min(0.0).max(frame.y.lo), value.max(0.0).min(frame.y.hi));
    if low > high {
        return None;
    }
    let (top, foot) = (frame.y_at(high), frame.y_at(low));
    canvas.bar(Rect { left, top, width, height: (foot - top).max(1.0) }, style.colour, look);
    frame.y.holds(value).then_some(if value < 0.0 { -foot } else { top })
}

/// Writes a value above its bar, or below it if the value is negative.
fn draw_value(canvas: &Canvas, x: f64, tip: f64, value: f64, lying: bool) {
    let text = number(value);
    let (y, sign) = if tip < 0.0 { (-tip, 1.0) } else { (tip, -1.0) };
    if lying {
        return canvas.text((x, y + sign * 7.5), &text, Face::VALUE, INK, HPos::Center);
    }
    let anchor = if sign < 0.0 { HPos::Left } else { HPos::Right };
    canvas.upright((x, y + sign * 4.0), &text, Face::VALUE, INK, anchor);
}
