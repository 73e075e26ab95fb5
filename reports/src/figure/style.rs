//! Colours, marker shapes and looks: how series are distinguished, with and without colour.

use plotters::style::RGBColor;

/// How a series is drawn: simulated values, or those that they are compared with.
///
/// Series with the same name share a colour and a marker, whatever their look, so that the paper's value and the
/// simulated one are recognised as the same quantity. The legend explains each look once ([`Meanings`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    /// Filled bars; full lines and filled markers.
    #[default]
    Solid,
    /// Hatched bars; dashed lines and open markers.
    Hatched,
    /// Outlined bars; dotted lines and open markers.
    Outlined,
}

/// The meanings of the looks, for the legend; shown only if a figure uses more than one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meanings {
    /// Meaning of [`Look::Solid`].
    pub solid: String,
    /// Meaning of [`Look::Hatched`].
    pub hatched: String,
    /// Meaning of [`Look::Outlined`].
    pub outlined: String,
}

impl Default for Meanings {
    fn default() -> Self {
        Self { solid: "simulated".into(), hatched: "paper".into(), outlined: "null baseline".into() }
    }
}

impl Meanings {
    pub(super) fn of(&self, look: Look) -> &str {
        match look {
            Look::Solid => &self.solid,
            Look::Hatched => &self.hatched,
            Look::Outlined => &self.outlined,
        }
    }
}

pub(super) const WHITE: RGBColor = RGBColor(255, 255, 255);
pub(super) const INK: RGBColor = RGBColor(0x22, 0x26, 0x2b);
pub(super) const MUTED: RGBColor = RGBColor(0x5c, 0x63, 0x6b);
pub(super) const FAINT: RGBColor = RGBColor(0xe3, 0xe6, 0xe9);
pub(super) const WALL: RGBColor = RGBColor(0xb4, 0x1f, 0x1f);

/// Okabe and Ito's colours for every kind of colour vision, with the yellow darkened to be visible on white.
const PALETTE: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x55, 0x55, 0x55),
    RGBColor(0xb5, 0xa8, 0x00),
];

/// A marker. There are seven, coprime to the eight colours, so that 56 pairs come before one repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Circle,
    Square,
    Up,
    Diamond,
    Down,
    Pentagon,
    Star,
}

const SHAPES: [Shape; 7] =
    [Shape::Circle, Shape::Square, Shape::Up, Shape::Diamond, Shape::Down, Shape::Pentagon, Shape::Star];

impl Shape {
    /// The corners of the marker about the origin for radius 1; empty for the circle.
    pub(super) fn corners(self) -> Vec<(f64, f64)> {
        let ring = |count: usize, turn: f64, radius: &dyn Fn(usize) -> f64| {
            (0..count)
                .map(|i| {
                    let angle = turn + std::f64::consts::TAU * i as f64 / count as f64;
                    (radius(i) * angle.sin(), -radius(i) * angle.cos())
                })
                .collect()
        };
        let half = std::f64::consts::PI;
        match self {
            Self::Circle => Vec::new(),
            Self::Square => ring(4, half / 4.0, &|_| 1.22),
            Self::Up => ring(3, 0.0, &|_| 1.3),
            Self::Diamond => ring(4, 0.0, &|_| 1.3),
            Self::Down => ring(3, half, &|_| 1.3),
            Self::Pentagon => ring(5, 0.0, &|_| 1.18),
            Self::Star => ring(10, 0.0, &|i| if i % 2 == 0 { 1.5 } else { 0.68 }),
        }
    }
}

/// The colour and marker of one name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Style {
    pub(super) colour: RGBColor,
    pub(super) shape: Shape,
}

/// Names in their order of first appearance, each with its style.
#[derive(Clone, Debug)]
pub(super) struct Styles<'m> {
    names: Vec<String>,
    meanings: &'m Meanings,
}

impl<'m> Styles<'m> {
    /// No names yet.
    pub(super) const fn new(meanings: &'m Meanings) -> Self {
        Self { names: Vec::new(), meanings }
    }

    /// A series in words, with the meaning of its look if it was not simulated.
    pub(super) fn words(&self, name: &str, look: Look) -> String {
        let meaning = self.meanings.of(look);
        if look == Look::Solid || name == meaning { name.to_owned() } else { format!("{name} ({meaning})") }
    }

    pub(super) fn add(&mut self, name: &str) {
        if !self.names.iter().any(|n| n == name) {
            self.names.push(name.to_owned());
        }
    }

    pub(super) fn of(&self, name: &str) -> Style {
        let index = self.names.iter().position(|n| n == name).unwrap_or(0);
        let base = PALETTE.get(index % PALETTE.len()).copied().unwrap_or(INK);
        let shape = SHAPES.get(index % SHAPES.len()).copied().unwrap_or(Shape::Circle);
        // Each further round of the palette is darker, then lighter.
        let colour = match index / PALETTE.len() {
            0 => base,
            1 => mix(base, RGBColor(0, 0, 0), 0.45),
            _ => mix(base, WHITE, 0.55),
        };
        Style { colour, shape }
    }
}

/// `colour` with `share` of `other` mixed in.
pub(super) fn mix(colour: RGBColor, other: RGBColor, share: f64) -> RGBColor {
    let channel = |a: u8, b: u8| (f64::from(a) * (1.0 - share) + f64::from(b) * share).round() as u8;
    RGBColor(channel(colour.0, other.0), channel(colour.1, other.1), channel(colour.2, other.2))
}
