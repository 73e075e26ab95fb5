//! The legend: one for all panels, in rows below them.

use plotters::style::RGBColor;

use super::canvas::{Canvas, HPos, Pen, Rect};
use super::style::{INK, Look, Style};
use super::text::Face;

/// The sample of a legend entry.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Key {
    /// A series of a line chart.
    Series { style: Style, look: Look, line: bool, marker: bool },
    /// A bar or an area.
    Swatch { colour: RGBColor, look: Look },
    /// A line without markers.
    Stroke(Pen),
    /// The lower end of a curve.
    Cap,
    /// A small faint point: dominated.
    Speck,
    /// No sample: the label explains itself.
    Blank,
}

/// An entry of the legend.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: Key,
    pub(super) label: String,
}

const FACE: Face = Face::KEY;
const SAMPLE: f64 = 26.0;
const GAP: f64 = 7.0;
const BETWEEN: f64 = 20.0;
const ROW: f64 = 20.0;
/// Labels wrap only if they are wider than this.
const LEAST_LABEL: f64 = 190.0;

/// A legend laid out in rows.
pub(super) struct Legend {
    placed: Vec<(f64, f64, Entry, Vec<String>)>,
    pub(super) height: f64,
}

impl Legend {
    /// In rows of at most `width`, each centred.
    pub(super) fn new(entries: Vec<Entry>, width: f64) -> Self {
        let mut placed = Vec::new();
        let mut y = 0.0;
        let mut row: Vec<(f64, Entry, Vec<String>)> = Vec::new();
        let (mut x, mut tall) = (0.0, ROW);
        let mut close = |row: &mut Vec<(f64, Entry, Vec<String>)>, end: f64, tall: f64| {
            let shift = ((width - (end - BETWEEN)) / 2.0).max(0.0);
            placed.extend(row.drain(..).map(|(x, entry, lines)| (x + shift, y, entry, lines)));
            y += tall;
        };
        for entry in entries {
            let sample = sample_width(&entry.key);
            let lines = FACE.wrap(&entry.label, (width - sample).max(LEAST_LABEL));
            let needed = sample + FACE.widest(&lines);
            if x > 0.0 && x + needed > width {
                close(&mut row, x, tall);
                (x, tall) = (0.0, ROW);
            }
            tall = tall.max(ROW + FACE.line() * (lines.len() as f64 - 1.0));
            row.push((x, entry, lines));
            x += needed + BETWEEN;
        }
        if !row.is_empty() {
            close(&mut row, x, tall);
        }
        Self { placed, height: y }
    }

    pub(super) fn draw(&self, canvas: &Canvas, left: f64, top: f64) {
        for (x, y, entry, lines) in &self.placed {
            let (x, y) = (left + x, top + y + ROW / 2.0);
            draw_key(canvas, &entry.key, x, y);
            canvas.lines((x + sample_width(&entry.key), y), lines, FACE, HPos::Left);
        }
    }
}

fn sample_width(key: &Key) -> f64 {
    if *key == Key::Blank { 0.0 } else { SAMPLE + GAP }
}

fn draw_key(canvas: &Canvas, key: &Key, x: f64, y: f64) {
    let across = [(x, y), (x + SAMPLE, y)];
    let middle = (x + SAMPLE / 2.0, y);
    match key {
        Key::Series { style, look, line, marker } => {
            if *line {
                canvas.line(&across, Pen::series(style.colour, 2.0, *look));
            }
            if *marker {
                canvas.marker(middle, 4.0, *style, *look);
            }
        }
        Key::Swatch { colour, look } => {
            canvas.bar(Rect { left: x + 3.0, top: y - 6.0, width: SAMPLE - 6.0, height: 12.0 }, *colour, *look);
        }
        Key::Stroke(pen) => canvas.line(&across, *pen),
        Key::Cap => draw_cap(canvas, x + SAMPLE - 4.0, y, INK),
        Key::Speck => canvas.polygon(&speck(middle), INK),
        Key::Blank => {}
    }
}

/// The mark of a curve that ends here although the axis continues: a stub to the left, and a wall.
pub(super) fn draw_cap(canvas: &Canvas, x: f64, y: f64, colour: RGBColor) {
    canvas.line(&[(x, y), (x - 11.0, y)], Pen::new(colour, 1.5));
    canvas.line(&[(x - 11.0, y - 7.0), (x - 11.0, y + 7.0)], Pen::new(colour, 2.5));
}

/// A small square about a point.
pub(super) fn speck(centre: (f64, f64)) -> [(f64, f64); 4] {
    const R: f64 = 1.75;
    let (x, y) = centre;
    [(x - R, y - R), (x + R, y - R), (x + R, y + R), (x - R, y + R)]
}
