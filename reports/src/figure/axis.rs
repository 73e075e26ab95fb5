//! Axes: their quantity, their span, and the position of a value on the sheet.

use super::FigureError;
use super::canvas::Rect;
use super::ticks::{self, Tick};

/// The scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps for equal differences.
    #[default]
    Linear,
    /// Equal steps for equal ratios; the axis' title states it.
    Log,
}

/// An axis: its quantity, unit, scale and range.
///
/// ```
/// use haversack_reports::figure::Axis;
/// let axis = Axis::new("iteration time").unit("ms").log();
/// assert_eq!(axis.title(), "iteration time (ms, log scale)");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Axis {
    /// The quantity.
    pub label: String,
    /// Its unit, if it has one.
    pub unit: Option<String>,
    /// Linear or logarithmic.
    pub scale: Scale,
    /// The ends of the axis; from the data if `None`. Points outside are not drawn.
    pub range: Option<(f64, f64)>,
    /// The positions of labelled ticks; chosen automatically if `None`.
    pub ticks: Option<Vec<f64>>,
    /// Whether a linear axis from the data begins at zero whatever the data.
    pub from_zero: bool,
}

impl Axis {
    /// An axis for this quantity, linear, with its range from the data.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    with! {
        /// With a unit.
        unit(unit: impl Into<String>) => unit: Some(unit.into());
        /// Logarithmic.
        log() => scale: Scale::Log;
        /// From `lo` to `hi`, whatever the data.
        range(lo: f64, hi: f64) => range: Some((lo, hi));
        /// With labelled ticks at these values and nowhere else: batch sizes, budgets.
        ticks_at(values: impl Into<Vec<f64>>) => ticks: Some(values.into());
        /// Beginning at zero.
        from_zero() => from_zero: true;
    }

    /// The title as drawn: quantity, unit, and the scale if it is not linear.
    pub fn title(&self) -> String {
        let log = (self.scale == Scale::Log).then_some("log scale");
        let notes: Vec<&str> = self.unit.as_deref().into_iter().chain(log).collect();
        if notes.is_empty() { self.label.clone() } else { format!("{} ({})", self.label, notes.join(", ")) }
    }

    /// A value with its unit, or with its quantity if it has no unit.
    fn in_words(&self, value: f64) -> String {
        let number = ticks::number(value);
        match &self.unit {
            Some(unit) => format!("{number} {unit}"),
            None if self.label.is_empty() => number,
            None => format!("{} {number}", self.label),
        }
    }

    /// The span to draw for data between `extent`'s ends.
    pub(super) fn span(&self, extent: Option<(f64, f64)>, fit: Fit) -> Result<Span, FigureError> {
        let log = self.scale == Scale::Log;
        let span = match self.range {
            Some((lo, hi)) => Span { lo, hi, log },
            None => {
                let (lo, hi) = extent.unwrap_or(if log { (1.0, 10.0) } else { (0.0, 1.0) });
                if log { logarithmic(lo, hi, fit) } else { linear(lo, hi, fit, self.from_zero) }
            }
        };
        let length = span.hi - span.lo;
        let sound = length.is_finite() && span.lo < span.hi && (!log || span.lo > 0.0);
        // Beyond this, only rounding errors would distinguish the ticks.
        let fine = length > 1e-12 * span.lo.abs().max(span.hi.abs()) && length > f64::MIN_POSITIVE * 1e20;
        let Span { lo, hi, .. } = span;
        let bad = || FigureError(format!("axis `{}` cannot run from {lo:?} to {hi:?}", self.label));
        if sound && fine { Ok(span) } else { Err(bad()) }
    }

    /// Ticks along `pixels`, thinned until labels do not touch; `along` gives the width of a label.
    pub(super) fn ticks_for(&self, span: Span, pixels: f64, along: impl Fn(&str) -> f64, target: usize) -> Vec<Tick> {
        let fits = |ticks: &[Tick]| {
            let places: Vec<(f64, f64)> = ticks
                .iter()
                .filter(|t| !t.is_minor())
                .map(|t| (span.share(t.value) * pixels, along(&t.label) / 2.0))
                .collect();
            places.windows(2).all(|w| matches!(w, [a, b] if b.0 - a.0 >= a.1 + b.1 + 6.0))
        };
        if let Some(values) = &self.ticks {
            let mut ticks = ticks::at_values(span, values);
            ticks.sort_by(|a, b| a.value.total_cmp(&b.value));
            let mut end = f64::NEG_INFINITY;
            for tick in &mut ticks {
                let (centre, half) = (span.share(tick.value) * pixels, along(&tick.label) / 2.0);
                if centre - half < end + 6.0 {
                    tick.label.clear();
                } else {
                    end = centre + half;
                }
            }
            return ticks;
        }
        let mut best = Vec::new();
        for count in (1..=target.max(1)).rev() {
            best = ticks::ticks(span, count);
            if fits(&best) {
                break;
            }
        }
        best
    }
}

/// How a span follows from the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fit {
    /// The data with a small margin: horizontal axes.
    Air,
    /// As `Air`, but without a margin: time.
    Exact,
    /// Out to round numbers, from zero if zero is near, with this share of the height kept free above.
    Round(f64),
    /// As `Round`, always from zero: bars.
    Zero(f64),
}

fn linear(mut lo: f64, mut hi: f64, fit: Fit, from_zero: bool) -> Span {
    let near_zero = matches!(fit, Fit::Round(_)) && lo > 0.0 && lo < 0.5 * hi;
    if from_zero || near_zero || matches!(fit, Fit::Zero(_)) {
        lo = lo.min(0.0);
        hi = hi.max(0.0);
    }
    if lo == hi {
        let air = if lo == 0.0 { 1.0 } else { lo.abs() * 0.1 };
        lo -= if lo == 0.0 { 0.0 } else { air };
        hi += air;
    }
    let length = hi - lo;
    match fit {
        Fit::Exact => {}
        Fit::Air => {
            let air = length * 0.04;
            lo -= if lo == 0.0 { 0.0 } else { air };
            hi += air;
        }
        Fit::Round(free) | Fit::Zero(free) => {
            if hi > 0.0 {
                hi += length * free;
            }
            if lo < 0.0 {
                lo -= length * free;
            }
            let step = ticks::step(hi - lo, 5);
            // A value on the last tick would sit on the edge: half a step is enough air.
            lo = (lo / step * 2.0).floor() * step / 2.0;
            hi = (hi / step * 2.0 + 1e-9).ceil() * step / 2.0;
        }
    }
    Span { lo, hi, log: false }
}

fn logarithmic(lo: f64, hi: f64, fit: Fit) -> Span {
    let (low, high) = (lo.log10(), hi.log10());
    let free = match fit {
        Fit::Round(free) | Fit::Zero(free) => free,
        Fit::Air | Fit::Exact => 0.0,
    };
    let air = ((high - low) * 0.05).max(0.05);
    Span { lo: 10f64.powf(low - air), hi: 10f64.powf(high + air + (high - low) * free), log: true }
}

/// The values that an axis shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) lo: f64,
    pub(super) hi: f64,
    pub(super) log: bool,
}

impl Span {
    /// The position of `value`, 0 at the low end and 1 at the high end.
    pub(super) fn share(self, value: f64) -> f64 {
        if self.log {
            (value.ln() - self.lo.ln()) / (self.hi.ln() - self.lo.ln())
        } else {
            (value - self.lo) / (self.hi - self.lo)
        }
    }

    pub(super) fn holds(self, value: f64) -> bool {
        let share = self.share(value);
        (-1e-9..=1.0 + 1e-9).contains(&share)
    }
}

/// The box that data are drawn in. Without an `x` span the horizontal axis has categories.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Frame<'a> {
    pub(super) rect: Rect,
    pub(super) x: Option<Span>,
    pub(super) y: Span,
    /// The horizontal and the vertical axis.
    pub(super) axes: (&'a Axis, &'a Axis),
}

impl Frame<'_> {
    /// A point in words: "sage: 1.2 GB, 34 ms".
    pub(super) fn point_in_words(&self, name: &str, x: f64, y: f64) -> String {
        format!("{name}: {}, {}", self.axes.0.in_words(x), self.axes.1.in_words(y))
    }

    /// A value of a category in words: "sage, ResNet-50: 34 ms".
    pub(super) fn value_in_words(&self, name: &str, category: &str, value: f64) -> String {
        let parts: Vec<&str> = [name, category].into_iter().filter(|part| !part.is_empty()).collect();
        format!("{}: {}", parts.join(", "), self.axes.1.in_words(value))
    }

    pub(super) fn x_at(&self, value: f64) -> f64 {
        self.rect.left + self.x.map_or(0.0, |span| span.share(value)) * self.rect.width
    }

    pub(super) fn y_at(&self, value: f64) -> f64 {
        self.rect.bottom() - self.y.share(value) * self.rect.height
    }

    pub(super) fn at(&self, point: (f64, f64)) -> (f64, f64) {
        (self.x_at(point.0), self.y_at(point.1))
    }

    pub(super) fn holds(&self, point: (f64, f64)) -> bool {
        self.x.is_none_or(|span| span.holds(point.0)) && self.y.holds(point.1)
    }

    /// The parts of a path (in data units) that lie in the frame, in pixels.
    pub(super) fn clip(&self, path: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
        let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
        for pair in path.windows(2) {
            let [from, to] = pair else { continue };
            let Some((a, b)) = self.clip_segment(self.at(*from), self.at(*to)) else { continue };
            match pieces.last_mut() {
                Some(piece) if piece.last() == Some(&a) => piece.push(b),
                _ => pieces.push(vec![a, b]),
            }
        }
        pieces
    }

    /// The area between a path (in data units) and the foot of the frame, in pixels; clamped to the frame.
    pub(super) fn area(&self, path: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let r = &self.rect;
        let inside = |point: &(f64, f64)| {
            let (x, y) = self.at(*point);
            (x.clamp(r.left, r.right()), y.clamp(r.top, r.bottom()))
        };
        let mut area: Vec<(f64, f64)> = path.iter().map(inside).collect();
        if let (Some(first), Some(last)) = (area.first().copied(), area.last().copied()) {
            area.extend([(last.0, r.bottom()), (first.0, r.bottom())]);
        }
        area
    }

    /// Liang and Barsky's clipping of one segment.
    fn clip_segment(&self, from: (f64, f64), to: (f64, f64)) -> Option<((f64, f64), (f64, f64))> {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let r = &self.rect;
        let edges = [
            (-dx, from.0 - r.left + 1e-6),
            (dx, r.right() - from.0 + 1e-6),
            (-dy, from.1 - r.top + 1e-6),
            (dy, r.bottom() - from.1 + 1e-6),
        ];
        let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
        for (towards, room) in edges {
            if towards == 0.0 {
                if room < 0.0 {
                    return None;
                }
            } else if towards < 0.0 {
                enter = enter.max(room / towards);
            } else {
                leave = leave.min(room / towards);
            }
        }
        let at = |t: f64| (from.0 + dx * t, from.1 + dy * t);
        let ends = (if enter == 0.0 { from } else { at(enter) }, if leave == 1.0 { to } else { at(leave) });
        (enter <= leave).then_some(ends)
    }
}
