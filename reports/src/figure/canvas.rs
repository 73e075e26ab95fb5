//! A sheet to draw on: an SVG document with quarter-pixel coordinates, and the few shapes that figures need.
//!
//! Each element is one line of text, so that elements can be grouped: all that belong to a series, or a mark with its
//! value in words, which is shown when a reader points at it.

use std::cell::RefCell;

use plotters::style::RGBColor;
pub(super) use plotters::style::text_anchor::HPos;

use super::style::{INK, Look, Style, WALL, WHITE, mix};
use super::text::{FAMILY, Face};
use crate::table::escaped;

/// Coordinates are integers: drawing four times as large keeps curves smooth.
const FINE: f64 = 4.0;

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rect {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Rect {
    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }
    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// A line's colour, width and dashes (drawn, left out).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pen {
    pub(super) colour: RGBColor,
    pub(super) width: f64,
    pub(super) dash: Option<(f64, f64)>,
}

impl Pen {
    pub(super) fn new(colour: RGBColor, width: f64) -> Self {
        Self { colour, width, dash: None }
    }
    pub(super) fn dashed(self, drawn: f64, gap: f64) -> Self {
        Self { dash: Some((drawn, gap)), ..self }
    }
    /// The line of a limit.
    pub(super) fn wall() -> Self {
        Self::new(WALL, 2.25).dashed(9.0, 3.0)
    }
    /// The line of a series with this look.
    pub(super) fn series(colour: RGBColor, width: f64, look: Look) -> Self {
        let pen = Self::new(colour, width);
        match look {
            Look::Solid => pen,
            Look::Hatched => pen.dashed(6.0, 3.5),
            Look::Outlined => pen.dashed(2.0, 2.5),
        }
    }
}

/// The sheet.
pub(super) struct Canvas {
    width: u32,
    height: u32,
    /// The elements so far, each a line.
    body: RefCell<String>,
}

impl Canvas {
    /// A white sheet of `width` × `height` pixels.
    pub(super) fn new(width: u32, height: u32) -> Self {
        let canvas = Self { width, height, body: RefCell::default() };
        canvas.fill(Rect { left: 0.0, top: 0.0, width: width.into(), height: height.into() }, WHITE);
        canvas
    }

    /// The document with its size in pixels, a title for readers that cannot see it, and round line joins.
    pub(super) fn finish(self, title: &str) -> String {
        let Self { width, height, body } = self;
        let (fine_width, fine_height) = (width * FINE as u32, height * FINE as u32);
        let name = said(title);
        let body = joined(&body.into_inner());
        format!(
            "<svg role=\"img\" stroke-linejoin=\"round\" font-family=\"{FAMILY}\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {fine_width} {fine_height}\" xmlns=\"http://www.w3.org/2000/svg\">\n<title>{name}</title>\n{body}</svg>\n"
        )
    }

    /// Draws `draw` as a group with a class and a name.
    pub(super) fn named(&self, class: &str, name: &str, draw: impl FnOnce()) {
        self.group(&format!("<g class=\"{class}\" data-name=\"{}\">", said(name)), draw);
    }

    /// Draws `draw` as the mark of a value, with the value in words.
    pub(super) fn valued(&self, words: &str, draw: impl FnOnce()) {
        self.group(&format!("<g class=\"value\"><title>{}</title>", said(words)), draw);
    }

    fn group(&self, head: &str, draw: impl FnOnce()) {
        let begun = self.body.borrow().len();
        self.body.borrow_mut().extend([head, "\n"]);
        let filled = self.body.borrow().len();
        draw();
        let mut body = self.body.borrow_mut();
        if body.len() == filled {
            body.truncate(begun);
        } else {
            body.push_str("</g>\n");
        }
    }

    /// Appends an element.
    fn put(&self, element: &str) {
        self.body.borrow_mut().extend([element, "\n"]);
    }

    pub(super) fn line(&self, points: &[(f64, f64)], pen: Pen) {
        match pen.dash {
            Some((drawn, gap)) => dashes(points, drawn, gap).iter().for_each(|piece| self.polyline(piece, pen)),
            None => self.polyline(points, pen),
        }
    }

    fn polyline(&self, points: &[(f64, f64)], pen: Pen) {
        let mut path: Vec<(i32, i32)> = points.iter().map(|p| at(*p)).collect();
        path.dedup();
        if path.len() >= 2 {
            let (colour, width) = (hex(pen.colour), (pen.width * FINE).round().max(1.0));
            let points = listed(&path);
            self.put(&format!(
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" points=\"{points}\"/>"
            ));
        }
    }

    pub(super) fn fill(&self, rect: Rect, colour: RGBColor) {
        let [(x, y), (right, bottom)] = [(rect.left, rect.top), (rect.right(), rect.bottom())].map(at);
        let (width, height, colour) = (right - x, bottom - y, hex(colour));
        self.put(&format!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\"/>"));
    }

    pub(super) fn outline(&self, rect: Rect, pen: Pen) {
        let (l, t, r, b) = (rect.left, rect.top, rect.right(), rect.bottom());
        // The last stroke closes the corner.
        self.line(&[(l, t), (r, t), (r, b), (l, b), (l, t), (r, t)], pen);
    }

    pub(super) fn polygon(&self, points: &[(f64, f64)], colour: RGBColor) {
        let path: Vec<(i32, i32)> = points.iter().map(|p| at(*p)).collect();
        if path.is_empty() {
            return;
        }
        self.put(&format!("<polygon fill=\"{}\" points=\"{}\"/>", hex(colour), listed(&path)));
    }

    /// A bar or a swatch in the series' look.
    pub(super) fn bar(&self, rect: Rect, colour: RGBColor, look: Look) {
        let inset = Rect {
            left: rect.left + 0.75,
            top: rect.top + 0.75,
            width: (rect.width - 1.5).max(0.5),
            height: (rect.height - 1.5).max(0.0),
        };
        match look {
            Look::Solid => self.fill(rect, colour),
            Look::Hatched => {
                self.fill(rect, mix(colour, WHITE, 0.78));
                self.hatch(inset, Pen::new(colour, 1.0));
                self.outline(inset, Pen::new(colour, 1.25));
            }
            Look::Outlined => {
                self.fill(rect, WHITE);
                self.outline(inset, Pen::new(colour, 1.5));
            }
        }
    }

    /// Strokes from bottom left to top right, cut at the rectangle.
    fn hatch(&self, rect: Rect, pen: Pen) {
        const STEP: f64 = 5.0;
        // Strokes lie on one lattice over the sheet, so that neighbouring bars line up: x + y = k · STEP.
        let (low, high) = (rect.left + rect.top, rect.right() + rect.bottom());
        let mut sum = (low / STEP).ceil() * STEP;
        while sum < high {
            let top = (sum - rect.right()).max(rect.top);
            let bottom = (sum - rect.left).min(rect.bottom());
            if bottom > top {
                self.line(&[(sum - bottom, bottom), (sum - top, top)], pen);
            }
            sum += STEP;
        }
    }

    /// A series' marker: filled for [`Look::Solid`], else open.
    pub(super) fn marker(&self, centre: (f64, f64), radius: f64, style: Style, look: Look) {
        let open = look != Look::Solid;
        let corners: Vec<(f64, f64)> =
            style.shape.corners().iter().map(|(x, y)| (centre.0 + x * radius, centre.1 + y * radius)).collect();
        if corners.is_empty() {
            let disc = |r: f64, colour: RGBColor| {
                let ((x, y), r, colour) = (at(centre), (r * FINE).round().max(1.0), hex(colour));
                self.put(&format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" fill=\"{colour}\"/>"));
            };
            disc(radius + if open { 0.6 } else { 0.8 }, if open { style.colour } else { WHITE });
            return disc(radius - if open { 0.8 } else { 0.0 }, if open { WHITE } else { style.colour });
        }
        let mut closed = corners.clone();
        closed.extend(corners.iter().take(2));
        if open {
            self.polygon(&corners, WHITE);
            self.line(&closed, Pen::new(style.colour, 1.4));
        } else {
            self.line(&closed, Pen::new(WHITE, 1.6));
            self.polygon(&corners, style.colour);
        }
    }

    /// One line of text, centred vertically on `position`.
    pub(super) fn text(&self, position: (f64, f64), text: &str, face: Face, colour: RGBColor, anchor: HPos) {
        self.write(position, text, face, colour, anchor, false);
    }

    /// One line of text that reads upwards, centred horizontally on `position`.
    pub(super) fn upright(&self, position: (f64, f64), text: &str, face: Face, colour: RGBColor, anchor: HPos) {
        self.write(position, text, face, colour, anchor, true);
    }

    /// Lines of text below one another, the first centred on `position`.
    pub(super) fn lines(&self, position: (f64, f64), lines: &[String], face: Face, anchor: HPos) {
        for (index, line) in lines.iter().enumerate() {
            self.text((position.0, position.1 + face.line() * index as f64), line, face, INK, anchor);
        }
    }

    fn write(&self, place: (f64, f64), text: &str, face: Face, colour: RGBColor, anchor: HPos, is_upright: bool) {
        if text.is_empty() {
            return;
        }
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let text = escaped(&text).replace("&#39;", "&apos;");
        let ((x, y), size, colour) = (at(place), face.size * FINE, hex(colour));
        let anchor = match anchor {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        let bold = if face.bold { " font-weight=\"bold\"" } else { "" };
        let turn = if is_upright { format!(" transform=\"rotate(270, {x}, {y})\"") } else { String::new() };
        self.put(&format!(
            "<text x=\"{x}\" y=\"{y}\" dy=\"0.5ex\" text-anchor=\"{anchor}\" font-size=\"{size}\" fill=\"{colour}\"{bold}{turn}>{text}</text>"
        ));
    }
}

/// A colour in SVG's notation.
fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// The points of a path.
fn listed(path: &[(i32, i32)]) -> String {
    path.iter().map(|(x, y)| format!("{x},{y}")).collect::<Vec<_>>().join(" ")
}

/// Text between tags: XML allows no control characters, escaped or not.
fn said(words: &str) -> String {
    escaped(&words.chars().filter(|c| !c.is_control()).collect::<String>())
}

fn at(position: (f64, f64)) -> (i32, i32) {
    ((position.0 * FINE).round() as i32, (position.1 * FINE).round() as i32)
}

/// Cuts a path into the drawn pieces of a dash pattern, which continues around corners.
fn dashes(points: &[(f64, f64)], drawn: f64, gap: f64) -> Vec<Vec<(f64, f64)>> {
    let mut pieces = Vec::new();
    let mut piece: Vec<(f64, f64)> = points.first().copied().into_iter().collect();
    let (mut on, mut left) = (true, drawn);
    for pair in points.windows(2) {
        let [from, to] = pair else { continue };
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let mut done = 0.0;
        while length - done > left {
            done += left;
            let share = done / length;
            let here = (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share);
            if on {
                piece.push(here);
                pieces.push(std::mem::take(&mut piece));
            } else {
                piece = vec![here];
            }
            on = !on;
            left = if on { drawn } else { gap };
        }
        left -= length - done;
        if on {
            piece.push(*to);
        }
    }
    if on && piece.len() > 1 {
        pieces.push(piece);
    }
    pieces
}

// Makes plotters' elements smaller: SVG's defaults are left out, and neighbouring lines of one pen become a path.

/// The body with each run of lines in one pen as one path.
fn joined(body: &str) -> String {
    let lines: Vec<&str> = body.lines().collect();
    let same = |a: &&str, b: &&str| polyline(a).zip(polyline(b)).is_some_and(|(a, b)| a.0 == b.0);
    let mut joined = String::with_capacity(body.len());
    for run in lines.chunk_by(same) {
        match polyline(run[0]) {
            Some((pen, _)) if run.len() > 1 => {
                let points: Vec<&str> = run.iter().filter_map(|line| Some(polyline(line)?.1)).collect();
                joined.extend(["<path ", pen, " d=\"M", &points.join("M"), "\"/>\n"]);
            }
            _ => joined.extend([run[0], "\n"]),
        }
    }
    joined
}

/// The pen and the points of a line; `None` for other elements.
fn polyline(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("<polyline ")?.strip_suffix("\"/>")?.split_once(" points=\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_line_and_says_only_what_it_must() {
        let canvas = Canvas { width: 8, height: 8, body: RefCell::default() };
        canvas.text((0.25, 0.5), "it's < words", Face::TITLE, INK, HPos::Left);
        canvas.upright((0.25, 0.5), "up", Face::KEY, INK, HPos::Center);
        let expected = "<text x=\"1\" y=\"2\" dy=\"0.5ex\" text-anchor=\"start\" font-size=\"60\" fill=\"#22262B\" font-weight=\"bold\">it&apos;s &lt; words</text>\n<text x=\"1\" y=\"2\" dy=\"0.5ex\" text-anchor=\"middle\" font-size=\"46\" fill=\"#22262B\" transform=\"rotate(270, 1, 2)\">up</text>\n";
        assert_eq!(canvas.body.into_inner(), expected);
    }

    #[test]
    fn lines_of_one_pen_that_follow_each_other_are_one_path() {
        let line = |pen: &str, points: &str| format!("<polyline {pen} points=\"{points}\"/>\n");
        let body = [line("a", "1,2 3,4"), line("a", "5,6 7,8"), line("b", "1,1 2,2"), "<g>\n".into()].concat();
        assert_eq!(joined(&body), "<path a d=\"M1,2 3,4M5,6 7,8\"/>\n<polyline b points=\"1,1 2,2\"/>\n<g>\n");
    }
}
