//! Colours, marker shapes and looks: how series are distinguished, with and without colour.
//!
//! Policies look the same in every figure: `marks.txt` has the colour and the mark of each. Other names get theirs in
//! the order in which they appear.

use std::sync::LazyLock;

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

/// The share of a policy's colour that each further setting of it keeps.
const SHADE: f64 = 0.72;

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

/// The styles of policies, by name in small letters and digits.
static POLICIES: LazyLock<Vec<(&str, Style)>> =
    LazyLock::new(|| include_str!("marks.txt").lines().flat_map(listed).collect());

/// The names in a line of the list with their style; of a comment none.
fn listed(line: &'static str) -> Vec<(&'static str, Style)> {
    let mut words = line.split_whitespace();
    let colour = words.next().and_then(|word| u32::from_str_radix(word.trim_start_matches('#'), 16).ok());
    let named = |word: &str| SHAPES.into_iter().find(|shape| format!("{shape:?}").eq_ignore_ascii_case(word));
    let shape = words.next().and_then(named);
    let Some((colour, shape)) = colour.zip(shape) else { return Vec::new() };
    let [_, red, green, blue] = colour.to_be_bytes();
    words.map(|name| (name, Style { colour: RGBColor(red, green, blue), shape })).collect()
}

/// The style of the policy called `name`.
fn policy(name: &str) -> Option<Style> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    POLICIES.iter().find(|(known, _)| *known == plain).map(|(_, style)| *style)
}

/// The policy of a name such as `DAF, batch 32` or `Sage (paper)`.
fn stem(name: &str) -> &str {
    name.split([',', '(']).next().unwrap_or(name).trim()
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
        if let Some(own) = policy(stem(name)) {
            // Several settings of one policy are shades of its colour.
            let settings = self.names.iter().filter(|other| stem(other).eq_ignore_ascii_case(stem(name)));
            let place = settings.take_while(|other| *other != name).count();
            return Style { colour: mix(own.colour, WHITE, 1.0 - SHADE.powi(place as i32)), ..own };
        }
        let policies: Vec<RGBColor> = self.names.iter().filter_map(|name| Some(policy(stem(name))?.colour)).collect();
        let mut others = self.names.iter().filter(|other| policy(stem(other)).is_none());
        let index = others.position(|other| other == name).unwrap_or(0);
        // Colours of policies in the figure come last.
        let (taken, mut palette): (Vec<RGBColor>, Vec<RGBColor>) =
            PALETTE.into_iter().partition(|colour| policies.contains(colour));
        palette.extend(taken);
        let base = palette.get(index % palette.len()).copied().unwrap_or(INK);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_looks_the_same_in_every_figure_and_like_no_other() {
        assert_eq!(POLICIES.iter().filter(|(name, _)| *name == "original").count(), 1);
        for (place, (name, style)) in POLICIES.iter().enumerate() {
            let alike = POLICIES[..place].iter().filter(|(_, other)| other == style);
            // `original` has two names, and so has `fixed8`.
            let aliases = usize::from(["nopolicy", "fixed8bits"].contains(name));
            assert_eq!(alike.count(), aliases, "{name}");
        }
        let meanings = Meanings::default();
        let mut styles = Styles::new(&meanings);
        for name in ["paper", "No policy", "Sage", "DAF, batch 8", "DAF, batch 16"] {
            styles.add(name);
        }
        assert_eq!(styles.of("Sage"), Style { colour: RGBColor(0, 0x72, 0xb2), shape: Shape::Circle });
        assert_eq!(styles.of("No policy").colour, RGBColor(0x55, 0x55, 0x55));
        // Blue, vermilion's own policy and grey are taken: another name has the next colour of the palette.
        assert_eq!(styles.of("paper").colour, RGBColor(0x00, 0x9e, 0x73));
        // Vermilion, and 0.72 of it in white: 255 − 0.72 · (255 − 0xd5) = 225, and so on.
        assert_eq!(styles.of("DAF, batch 8").colour, RGBColor(0xd5, 0x5e, 0));
        assert_eq!(styles.of("DAF, batch 16"), Style { colour: RGBColor(225, 139, 71), shape: Shape::Square });
    }
}
