//! Stacked bars: the parts of a whole.

use plotters::style::RGBColor;

use super::FigureError;
use super::axis::{Fit, Frame};
use super::bars::{SHARE, width_for_names};
use super::canvas::{Canvas, HPos, Rect};
use super::legend::{Entry, Key};
use super::plot::{Extent, Numbers, Plot, check_length, extent, not_positive};
use super::style::{INK, Look, Styles, WHITE};
use super::text::Face;
use super::ticks::number;

/// One bar a category, made of parts that are not negative.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Stack {
    /// The categories, left to right.
    pub categories: Vec<String>,
    /// The parts, the first at the foot.
    pub parts: Vec<Part>,
    /// Whether the whole is written above each bar.
    pub totals_shown: bool,
    /// Whether each part's share of its bar is written inside it, where there is room.
    pub shares_shown: bool,
}

/// One part of every bar.
#[derive(Clone, Debug)]
pub struct Part {
    /// The name.
    pub name: String,
    /// One value for each category.
    pub values: Vec<f64>,
}

impl Stack {
    /// No parts yet.
    pub fn new<S: Into<String>>(categories: impl IntoIterator<Item = S>) -> Self {
        Self { categories: categories.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// With one more part, on top of the others.
    pub fn part(mut self, name: impl Into<String>, values: impl Into<Vec<f64>>) -> Self {
        self.parts.push(Part { name: name.into(), values: values.into() });
        self
    }

    with! {
        /// With the whole above each bar.
        show_totals() => totals_shown: true;
        /// With each part's share inside it, in per cent.
        show_shares() => shares_shown: true;
    }

    fn total(&self, category: usize) -> f64 {
        self.parts.iter().filter_map(|p| p.values.get(category)).sum()
    }
}

impl Plot for Stack {
    fn numbers(&self) -> Vec<Numbers<'_>> {
        self.parts.iter().map(|p| (p.name.as_str(), p.values.iter().map(|v| (None, *v)).collect())).collect()
    }

    fn fits(&self, _width: f64, height: f64) -> (Fit, Fit) {
        (Fit::Air, Fit::Zero(if self.totals_shown { 18.0 / height } else { 0.03 }))
    }

    fn y_extent(&self) -> Extent {
        if self.parts.is_empty() { None } else { extent((0..self.categories.len()).map(|c| self.total(c))) }
    }

    fn categories(&self) -> Option<&[String]> {
        Some(&self.categories)
    }

    fn least_width(&self) -> f64 {
        (22.0 * self.categories.len() as f64).max(width_for_names(&self.categories))
    }

    fn check(&self, panel: &str) -> Result<(), FigureError> {
        for part in &self.parts {
            check_length(panel, &part.name, part.values.len(), self.categories.len())?;
            if let Some((index, value)) = part.values.iter().copied().enumerate().find(|(_, v)| *v < 0.0) {
                return Err(not_positive(panel, &part.name, index, value, "a stack"));
            }
        }
        Ok(())
    }

    fn draw(&self, canvas: &Canvas, frame: &Frame<'_>, styles: &Styles<'_>) {
        let slot = frame.rect.width / self.categories.len().max(1) as f64;
        let width = (slot * SHARE * 0.85).min(64.0);
        for category in 0..self.categories.len() {
            let centre = frame.rect.left + slot * (category as f64 + 0.5);
            let total = self.total(category);
            let mut below = 0.0;
            for part in &self.parts {
                let value = part.values.get(category).copied().unwrap_or(0.0);
                let (low, high) = (f64::max(below, frame.y.lo), f64::min(below + value, frame.y.hi));
                below += value;
                if value <= 0.0 || low >= high {
                    continue;
                }
                let (top, foot) = (frame.y_at(high), frame.y_at(low));
                let rect = Rect { left: centre - width / 2.0, top, width, height: foot - top };
                let colour = styles.of(&part.name).colour;
                let share = format!("{:.0}%", 100.0 * value / total);
                let draw = || {
                    canvas.bar(rect, colour, Look::Solid);
                    // A hairline separates the parts without colour.
                    if low > 0.0 && rect.height > 3.0 {
                        canvas.fill(Rect { top: foot - 1.0, height: 1.0, ..rect }, WHITE);
                    }
                    if self.shares_shown && rect.height >= 15.0 && width >= Face::VALUE.width(&share) + 4.0 {
                        let ink = if is_light(colour) { INK } else { WHITE };
                        canvas.text((centre, (top + foot) / 2.0), &share, Face::VALUE, ink, HPos::Center);
                    }
                };
                let words = frame.value_in_words(&part.name, &self.categories[category], value);
                canvas.named("series", &part.name, || canvas.valued(&format!("{words} ({share})"), draw));
            }
            if self.totals_shown && total > 0.0 && frame.y.holds(total) {
                let place = (centre, frame.y_at(total) - 7.5);
                canvas.text(place, &number(total), Face::VALUE, INK, HPos::Center);
            }
        }
    }

    fn keys(&self, styles: &Styles<'_>) -> Vec<Entry> {
        let key = |name: &str| Key::Swatch { colour: styles.of(name).colour, look: Look::Solid };
        self.parts.iter().map(|p| Entry { key: key(&p.name), label: p.name.clone() }).collect()
    }
}

/// Whether dark text reads better than white on this colour.
fn is_light(colour: RGBColor) -> bool {
    0.299 * f64::from(colour.0) + 0.587 * f64::from(colour.1) + 0.114 * f64::from(colour.2) > 120.0
}
