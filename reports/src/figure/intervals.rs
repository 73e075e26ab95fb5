//! Measured values with their intervals over categories, in groups.

use super::axis::Frame;
use super::canvas::{Canvas, HPos, Pen};
use super::legend::Entry;
use super::plot::{Numbers, Plot};
use super::style::{INK, Look, MUTED, Styles};
use super::text::Face;

/// A mark with its interval for each value of a category, side by side; each category looks as the series of its name.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Intervals {
    categories: Vec<String>,
    slots: Vec<Slot>,
}

/// The content of a category.
#[derive(Clone, Debug)]
enum Slot {
    /// The least, the value and the most, each time that it was measured.
    Values(Vec<[f64; 3]>),
    /// Why there is none.
    None(String),
    /// The heading of the categories that follow.
    Group(String),
}

impl Intervals {
    /// No category yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn slot(mut self, category: String, slot: Slot) -> Self {
        self.categories.push(category);
        self.slots.push(slot);
        self
    }

    /// With a heading, under which the next categories are.
    pub fn group(self, heading: impl Into<String>) -> Self {
        self.slot(String::new(), Slot::Group(heading.into()))
    }

    /// With a category and its values, each the least, the value and the most; where there are none, `reason` says why.
    pub fn category(self, name: impl Into<String>, values: Vec<[f64; 3]>, reason: &str) -> Self {
        let slot = if values.is_empty() { Slot::None(reason.to_owned()) } else { Slot::Values(values) };
        self.slot(name.into(), slot)
    }
}

impl Plot for Intervals {
    fn numbers(&self) -> Vec<Numbers<'_>> {
        let numbers = |(name, slot): (_, &Slot)| match slot {
            Slot::Values(values) => Some((name, values.iter().flatten().map(|value| (None, *value)).collect())),
            _ => None,
        };
        self.categories.iter().map(String::as_str).zip(&self.slots).filter_map(numbers).collect()
    }

    fn categories(&self) -> Option<&[String]> {
        Some(&self.categories)
    }

    fn draw(&self, canvas: &Canvas, frame: &Frame<'_>, styles: &Styles<'_>) {
        let rect = &frame.rect;
        let width = rect.width / self.slots.len().max(1) as f64;
        if frame.y.holds(0.0) {
            canvas.line(&[(rect.left, frame.y_at(0.0)), (rect.right(), frame.y_at(0.0))], Pen::new(INK, 1.0));
        }
        for (place, (name, slot)) in self.categories.iter().zip(&self.slots).enumerate() {
            let left = rect.left + width * place as f64;
            let middle = left + width / 2.0;
            match slot {
                Slot::Group(heading) => {
                    canvas.line(&[(left, rect.top), (left, rect.bottom())], Pen::new(MUTED, 0.75));
                    canvas.upright((middle, rect.bottom() - 5.0), heading, Face::VALUE, INK, HPos::Left);
                }
                Slot::None(reason) => {
                    canvas.upright((middle, rect.bottom() - 5.0), reason, Face::VALUE, MUTED, HPos::Left);
                }
                Slot::Values(values) => canvas.named("series", name, || {
                    let style = styles.of(name);
                    for (number, &[least, value, most]) in values.iter().enumerate() {
                        let x = left + width * (number as f64 + 0.5) / values.len() as f64;
                        let words = format!("{} ({least:.1} to {most:.1})", frame.value_in_words("", name, value));
                        canvas.valued(&words, || {
                            canvas.line(&[(x, frame.y_at(least)), (x, frame.y_at(most))], Pen::new(style.colour, 1.75));
                            canvas.marker((x, frame.y_at(value)), 4.0, style, Look::Solid);
                        });
                    }
                }),
            }
        }
    }

    fn keys(&self, _styles: &Styles<'_>) -> Vec<Entry> {
        Vec::new()
    }
}
