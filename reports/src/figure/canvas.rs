//! A sheet to draw on: plotters' SVG backend with quarter-pixel coordinates, and the few shapes that figures need.

use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Polygon, Rectangle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontDesc, FontFamily, FontStyle, FontTransform, RGBColor, ShapeStyle};

use super::FigureError;
use super::style::{INK, Look, Style, WHITE, mix};
use super::text::{FAMILY, Face, PLOTTERS_SIZE, ready};

/// plotters' coordinates are integers: drawing four times as large keeps curves smooth.
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

/// Which point of a text its position gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

type Drawn = Result<(), FigureError>;

/// The sheet.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

impl<'a> Canvas<'a> {
    /// A white sheet of `width` × `height` pixels, written to `svg`.
    pub(super) fn new(svg: &'a mut String, width: u32, height: u32) -> Result<Self, FigureError> {
        ready()?;
        let size = (width * FINE as u32, height * FINE as u32);
        let canvas = Self { area: SVGBackend::with_string(svg, size).into_drawing_area() };
        canvas.area.fill(&WHITE).map_err(failed)?;
        Ok(canvas)
    }

    /// Ends the document.
    pub(super) fn finish(self) -> Drawn {
        self.area.present().map_err(failed)
    }

    pub(super) fn line(&self, points: &[(f64, f64)], pen: Pen) -> Drawn {
        let Some(dash) = pen.dash else {
            return self.polyline(points, pen);
        };
        for piece in dashes(points, dash) {
            self.polyline(&piece, pen)?;
        }
        Ok(())
    }

    fn polyline(&self, points: &[(f64, f64)], pen: Pen) -> Drawn {
        let mut path: Vec<(i32, i32)> = points.iter().map(|p| at(*p)).collect();
        path.dedup();
        if path.len() < 2 {
            return Ok(());
        }
        let style = ShapeStyle::from(pen.colour).stroke_width((pen.width * FINE).round().max(1.0) as u32);
        self.area.draw(&PathElement::new(path, style)).map_err(failed)
    }

    pub(super) fn fill(&self, rect: Rect, colour: RGBColor) -> Drawn {
        let ends = [at((rect.left, rect.top)), at((rect.right(), rect.bottom()))];
        self.area.draw(&Rectangle::new(ends, ShapeStyle::from(colour).filled())).map_err(failed)
    }

    pub(super) fn outline(&self, rect: Rect, pen: Pen) -> Drawn {
        let (l, t, r, b) = (rect.left, rect.top, rect.right(), rect.bottom());
        self.line(&[(l, t), (r, t), (r, b), (l, b), (l, t), (r, t)], pen)
    }

    pub(super) fn polygon(&self, points: &[(f64, f64)], colour: RGBColor) -> Drawn {
        let path: Vec<(i32, i32)> = points.iter().map(|p| at(*p)).collect();
        self.area.draw(&Polygon::new(path, ShapeStyle::from(colour).filled())).map_err(failed)
    }

    /// A bar or a swatch in the series' look.
    pub(super) fn bar(&self, rect: Rect, colour: RGBColor, look: Look) -> Drawn {
        let inset = Rect {
            left: rect.left + 0.75,
            top: rect.top + 0.75,
            width: (rect.width - 1.5).max(0.5),
            height: (rect.height - 1.5).max(0.0),
        };
        match look {
            Look::Solid => self.fill(rect, colour),
            Look::Hatched => {
                self.fill(rect, mix(colour, WHITE, 0.78))?;
                self.hatch(inset, Pen::new(colour, 1.0))?;
                self.outline(inset, Pen::new(colour, 1.25))
            }
            Look::Outlined => {
                self.fill(rect, WHITE)?;
                self.outline(inset, Pen::new(colour, 1.5))
            }
        }
    }

    /// Strokes from bottom left to top right, cut at the rectangle.
    fn hatch(&self, rect: Rect, pen: Pen) -> Drawn {
        const STEP: f64 = 5.0;
        // Strokes keep to one lattice over the sheet, so that neighbouring bars agree: x + y = k · STEP.
        let (low, high) = (rect.left + rect.top, rect.right() + rect.bottom());
        let mut sum = (low / STEP).ceil() * STEP;
        while sum < high {
            let top = (sum - rect.right()).max(rect.top);
            let bottom = (sum - rect.left).min(rect.bottom());
            if bottom > top {
                self.line(&[(sum - bottom, bottom), (sum - top, top)], pen)?;
            }
            sum += STEP;
        }
        Ok(())
    }

    /// A series' marker: filled for [`Look::Solid`], else open.
    pub(super) fn marker(&self, centre: (f64, f64), radius: f64, style: Style, look: Look) -> Drawn {
        let open = look != Look::Solid;
        let corners: Vec<(f64, f64)> =
            style.shape.corners().iter().map(|(x, y)| (centre.0 + x * radius, centre.1 + y * radius)).collect();
        if corners.is_empty() {
            let disc = |r: f64, colour: RGBColor| {
                let circle =
                    Circle::new(at(centre), (r * FINE).round().max(1.0) as i32, ShapeStyle::from(colour).filled());
                self.area.draw(&circle).map_err(failed)
            };
            // A white rim keeps markers apart where they touch.
            disc(radius + if open { 0.6 } else { 0.8 }, if open { style.colour } else { WHITE })?;
            return disc(radius - if open { 0.8 } else { 0.0 }, if open { WHITE } else { style.colour });
        }
        let mut closed = corners.clone();
        closed.extend(corners.iter().take(2));
        if open {
            self.polygon(&corners, WHITE)?;
            self.line(&closed, Pen::new(style.colour, 1.4))
        } else {
            self.line(&closed, Pen::new(WHITE, 1.6))?;
            self.polygon(&corners, style.colour)
        }
    }

    /// One line of text, centred vertically on `position`.
    pub(super) fn text(&self, position: (f64, f64), text: &str, face: Face, colour: RGBColor, anchor: Anchor) -> Drawn {
        self.write(position, text, face, colour, anchor, FontTransform::None)
    }

    /// One line of text that reads upwards, centred horizontally on `position`.
    pub(super) fn upright(
        &self,
        position: (f64, f64),
        text: &str,
        face: Face,
        colour: RGBColor,
        anchor: Anchor,
    ) -> Drawn {
        self.write(position, text, face, colour, anchor, FontTransform::Rotate270)
    }

    /// Lines of text below one another, the first centred on `position`.
    pub(super) fn lines(&self, position: (f64, f64), lines: &[String], face: Face, anchor: Anchor) -> Drawn {
        for (index, line) in lines.iter().enumerate() {
            self.text((position.0, position.1 + face.line() * index as f64), line, face, INK, anchor)?;
        }
        Ok(())
    }

    fn write(
        &self,
        position: (f64, f64),
        text: &str,
        face: Face,
        colour: RGBColor,
        anchor: Anchor,
        transform: FontTransform,
    ) -> Drawn {
        if text.is_empty() {
            return Ok(());
        }
        // XML holds no control characters, escaped or not.
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let style = if face.bold { FontStyle::Bold } else { FontStyle::Normal };
        let h_pos = match anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let font = FontDesc::new(FontFamily::Name(FAMILY), face.size * FINE * PLOTTERS_SIZE, style);
        let style = font.transform(transform).color(&colour).pos(Pos::new(h_pos, VPos::Center));
        self.area.draw_text(&text, &style, at(position)).map_err(failed)
    }
}

/// The document with its size in pixels, a title for readers that cannot see it, and round joints.
pub(super) fn finished(svg: &str, width: u32, height: u32, title: &str) -> String {
    let (fine_width, fine_height) = (width * FINE as u32, height * FINE as u32);
    let from = format!("<svg width=\"{fine_width}\" height=\"{fine_height}\"");
    let to = format!("<svg role=\"img\" stroke-linejoin=\"round\" width=\"{width}\" height=\"{height}\"");
    let sized = svg.replacen(&from, &to, 1);
    let mut name = String::new();
    for c in title.chars().filter(|c| !c.is_control()) {
        match c {
            '<' => name.push_str("&lt;"),
            '>' => name.push_str("&gt;"),
            '&' => name.push_str("&amp;"),
            other => name.push(other),
        }
    }
    sized.replacen(">\n", &format!(">\n<title>{name}</title>\n"), 1)
}

fn at((x, y): (f64, f64)) -> (i32, i32) {
    ((x * FINE).round() as i32, (y * FINE).round() as i32)
}

fn failed<E: std::error::Error + Send + Sync>(error: plotters::drawing::DrawingAreaErrorKind<E>) -> FigureError {
    FigureError::Drawing(error.to_string())
}

/// Cuts a path into the drawn pieces of a dash pattern, which runs on around corners.
fn dashes(points: &[(f64, f64)], (drawn, gap): (f64, f64)) -> Vec<Vec<(f64, f64)>> {
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
