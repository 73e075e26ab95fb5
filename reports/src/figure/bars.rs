//! Grouped bars: categories × series, the paper's values as marks on the simulated ones.

use plotters::style::RGBColor;

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
/// A bar on a logarithmic axis would have no base, so each value is drawn as a marker instead. Hatched bars that follow a
/// series of another look are diamonds on its bars.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Bars {
    /// The categories, left to right.
    pub categories: Vec<String>,
    /// The series, left to right in each group.
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

    /// Whether the values of a series are marks on the bars of the one before it: the paper's on the simulated ones.
    fn is_mark(&self, series: usize) -> bool {
        let look = |place: usize| self.series.get(place).map(|one| one.look);
        look(series) == Some(Look::Hatched) && series.checked_sub(1).is_some_and(|before| look(before) != look(series))
    }

    /// The value of a series in a category, if it has one.
    fn value(&self, series: usize, category: usize) -> Option<f64> {
        self.series.get(series)?.values.get(category).copied().flatten()
    }

    /// A bar's value as text, and that of the mark on it in brackets.
    fn label(&self, series: usize, category: usize) -> Vec<String> {
        let own = self.value(series, category).map_or_else(|| "n/a".to_owned(), number);
        let mark = self.value(series + 1, category).filter(|_| self.is_mark(series + 1));
        [Some(own), mark.map(|mark| format!("({})", number(mark)))].into_iter().flatten().collect()
    }

    /// The positions of the bars of a group, as left edges in units of a bar's width, and the group's whole width.
    fn offsets(&self) -> (Vec<f64>, f64) {
        let mut edges: Vec<f64> = Vec::new();
        for place in 0..self.series.len() {
            edges.push(edges.last().map_or(0.0, |edge| if self.is_mark(place) { *edge } else { edge + 1.16 }));
        }
        (edges.clone(), edges.last().map_or(1.0, |edge| edge + 1.0))
    }

    /// The width of a bar in a frame of this width.
    fn bar_width(&self, frame: f64) -> f64 {
        (frame / self.categories.len().max(1) as f64 * SHARE / self.offsets().1).min(WIDEST_BAR)
    }

    /// The width of the widest label in this layout.
    fn widest_value(&self, layout: Layout) -> f64 {
        let bars = (0..self.series.len()).filter(|place| !self.is_mark(*place));
        let labels = bars.flat_map(|bar| (0..self.categories.len()).map(move |category| self.label(bar, category)));
        Face::VALUE.widest(&labels.flat_map(|label| layout.lines(&label)).collect::<Vec<_>>())
    }

    /// The sample of a series in the legend.
    fn key(&self, series: usize, colour: RGBColor, look: Look) -> Key {
        if self.is_mark(series) && look == Look::Hatched {
            return Key::Series { style: Style { colour, shape: Shape::Diamond }, look, line: false, marker: true };
        }
        Key::Swatch { colour, look }
    }

    /// The first layout in which the values fit above a bar of this width.
    fn layout(&self, bar: f64) -> Layout {
        let width = if self.offsets().1 == 1.0 { bar / SHARE } else { bar * 1.08 };
        let fits = |layout: &Layout| self.widest_value(*layout) + 4.0 <= width;
        [Layout::OneLine, Layout::TwoLines].into_iter().find(fits).unwrap_or(Layout::Upright)
    }
}

/// How the values above bars are written: on one line, with the mark's value below the bar's, or upright.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    OneLine,
    TwoLines,
    Upright,
}

impl Layout {
    fn lines(self, label: &[String]) -> Vec<String> {
        if self == Self::TwoLines { label.to_vec() } else { vec![label.join(" ")] }
    }
}

/// The height of a line of values.
const LINE: f64 = 12.0;

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
/// The least width of a bar: without values, and with them.
const LEAST_BAR: [f64; 2] = [8.0, 12.0];
/// The greatest width, so that a single bar is not a wall.
const WIDEST_BAR: f64 = 56.0;

/// The width at which every category's longest word fits under its slot.
pub(super) fn width_for_names(categories: &[String]) -> f64 {
    let word = categories.iter().map(|c| Face::TICK.widest_word(c)).fold(0.0, f64::max);
    (word + 6.5).min(90.0) * categories.len() as f64
}

impl Plot for Bars {
    fn numbers(&self) -> Vec<Numbers<'_>> {
        self.series.iter().map(|s| (s.name.as_str(), s.values.iter().flatten().map(|v| (None, *v)).collect())).collect()
    }

    fn fits(&self, width: f64, height: f64) -> (Fit, Fit) {
        let layout = self.layout(self.bar_width(width));
        let labels = match layout {
            Layout::OneLine => 16.0,
            Layout::TwoLines => 16.0 + LINE,
            Layout::Upright => self.widest_value(layout) + 14.0,
        };
        (Fit::Air, Fit::Zero(if self.values_shown { labels / (height - labels).max(height / 5.0) } else { 0.03 }))
    }

    fn categories(&self) -> Option<&[String]> {
        Some(&self.categories)
    }

    fn least_width(&self) -> f64 {
        let bars = self.offsets().1 * LEAST_BAR[usize::from(self.values_shown)] / SHARE * self.categories.len() as f64;
        bars.max(width_for_names(&self.categories))
    }

    fn check(&self, panel: &str) -> Result<(), FigureError> {
        self.series.iter().try_for_each(|s| check_length(panel, &s.name, s.values.len(), self.categories.len()))
    }

    fn draw(&self, canvas: &Canvas, frame: &Frame<'_>, styles: &Styles<'_>) {
        let slot = frame.rect.width / self.categories.len().max(1) as f64;
        let (edges, whole) = self.offsets();
        let bar = self.bar_width(frame.rect.width);
        let layout = self.layout(bar);
        for category in 0..self.categories.len() {
            let left = frame.rect.left + slot * (category as f64 + 0.5) - bar * whole / 2.0;
            for (place, edge) in edges.iter().enumerate().filter(|(place, _)| !self.is_mark(*place)) {
                let left = left + bar * edge;
                let mut own = vec![place];
                if self.is_mark(place + 1) {
                    // Where both are marks, the simulated one is on top.
                    own.insert(usize::from(!frame.y.log), place + 1);
                }
                let mut tips = Vec::new();
                for at in own {
                    let (series, Some(value)) = (&self.series[at], self.value(at, category)) else { continue };
                    let words = styles.words(&series.name, series.look);
                    let words = frame.value_in_words(&words, &self.categories[category], value);
                    let shape = if self.is_mark(at) { Shape::Diamond } else { Shape::Circle };
                    let style = Style { shape, ..styles.of(&series.name) };
                    let draw = || tips.extend(draw_bar(canvas, frame, (left, bar), value, style, series.look));
                    canvas.named("series", &series.name, || canvas.valued(&words, draw));
                }
                if self.values_shown {
                    let tip = tips.into_iter().min_by(f64::total_cmp);
                    let label = layout.lines(&self.label(place, category));
                    let middle = left + bar / 2.0;
                    canvas.named("series", &self.series[place].name, || match tip {
                        Some(tip) => draw_value(canvas, middle, tip, &label, layout),
                        None => {
                            let label = label.join(" ");
                            canvas.upright((middle, frame.rect.bottom() - 5.0), &label, Face::VALUE, MUTED, HPos::Left);
                        }
                    });
                }
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
        let key = |(place, series): (usize, &BarSeries)| Entry {
            key: self.key(place, styles.of(&series.name).colour, look(series)),
            label: series.name.clone(),
        };
        self.series.iter().enumerate().map(key).collect()
    }

    fn looks(&self) -> Vec<(Look, Key)> {
        self.series.iter().enumerate().map(|(place, s)| (s.look, self.key(place, MUTED, s.look))).collect()
    }
}

/// Draws one bar (or its marker, a diamond on the bar or instead of it) over `span`, its left edge and its width.
/// Returns the position of its tip, in pixels, negative below zero; `None` if it is outside the axis.
fn draw_bar(canvas: &Canvas, frame: &Frame<'_>, span: (f64, f64), value: f64, style: Style, look: Look) -> Option<f64> {
    let (left, width) = span;
    let is_mark = style.shape == Shape::Diamond;
    if frame.y.log || is_mark {
        if !frame.y.holds(value) {
            return None;
        }
        let (y, radius) = (frame.y_at(value), (width / 3.0).clamp(3.0, 5.0) + if is_mark { 2.0 } else { 0.0 });
        canvas.marker((left + width / 2.0, y), radius, style, look);
        return Some(if value < 0.0 { -y - radius } else { y - radius });
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

/// Writes the lines of a value above its bar, or below it if the tip is negative.
fn draw_value(canvas: &Canvas, x: f64, tip: f64, lines: &[String], layout: Layout) {
    let (y, sign) = if tip < 0.0 { (-tip, 1.0) } else { (tip, -1.0) };
    if layout == Layout::Upright {
        let anchor = if sign < 0.0 { HPos::Left } else { HPos::Right };
        return canvas.upright((x, y + sign * 4.0), &lines.join(" "), Face::VALUE, INK, anchor);
    }
    let first = if sign < 0.0 { y - 7.5 - LINE * (lines.len() as f64 - 1.0) } else { y + 7.5 };
    for (row, line) in lines.iter().enumerate() {
        canvas.text((x, first + LINE * row as f64), line, Face::VALUE, INK, HPos::Center);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_on_two_lines_before_they_are_turned() {
        let series = |name: &str, look| BarSeries::new(name, [0.0287, 0.0409]).look(look);
        let bars = Bars::new(["a", "b"]).series(series("ours", Look::Solid)).series(series("paper", Look::Hatched));
        assert_eq!(bars.label(0, 0), ["0.0287", "(0.0287)"]);
        let widest = [Layout::OneLine, Layout::TwoLines].map(|layout| bars.widest_value(layout));
        assert!(widest[0] > 1.5 * widest[1]);
        let at = |width: f64| bars.layout((width + 4.1) * SHARE);
        assert!(at(widest[0]) == Layout::OneLine && at(widest[1]) == Layout::TwoLines);
        assert!(at(widest[1] - 1.0) == Layout::Upright);
    }
}
