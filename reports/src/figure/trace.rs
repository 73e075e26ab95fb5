//! Memory over time under a budget that changes: the area in use, the wall above it, phases and events.

use super::FigureError;
use super::axis::{Fit, Frame, Span};
use super::canvas::{Canvas, HPos, Pen, Rect};
use super::legend::{Entry, Key};
use super::lines::steps;
use super::plot::{Numbers, Plot, not_finite};
use super::style::{INK, Look, MUTED, Styles, WHITE, mix};
use super::text::Face;

/// Memory in use over time as a filled area, with its limit and events.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Trace {
    /// The name of the area, for the legend.
    pub name: String,
    /// (time, memory): each value lasts until the next point.
    pub memory: Vec<(f64, f64)>,
    /// The name of the wall, for the legend.
    pub wall_name: String,
    /// (time, budget): each value lasts until the next point, the last until the memory ends.
    pub wall: Vec<(f64, f64)>,
    /// Bands of time that are named above the panel.
    pub phases: Vec<Phase>,
    /// Events that are named above the panel.
    pub events: Vec<Event>,
}

/// A stretch of time with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Its beginning.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// Its name; a number with an explanation in the legend if the band is too narrow.
    pub label: String,
}

/// A moment with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its time.
    pub at: f64,
    /// Its name.
    pub label: String,
}

const EVENT: Face = Face::VALUE;
const PHASE: Face = Face { size: 10.5, bold: false };
const BAND_AIR: f64 = 6.0;

impl Trace {
    /// Memory in use over time; each value lasts until the next point.
    pub fn new(name: impl Into<String>, memory: impl Into<Vec<(f64, f64)>>) -> Self {
        Self { name: name.into(), memory: memory.into(), ..Self::default() }
    }

    /// With a budget; each value lasts until the next point, the last until the end.
    pub fn wall(mut self, name: impl Into<String>, points: impl Into<Vec<(f64, f64)>>) -> Self {
        (self.wall_name, self.wall) = (name.into(), points.into());
        self
    }

    /// With one more phase.
    pub fn phase(mut self, from: f64, to: f64, label: impl Into<String>) -> Self {
        self.phases.push(Phase { from, to, label: label.into() });
        self
    }

    /// With one more event.
    pub fn event(mut self, at: f64, label: impl Into<String>) -> Self {
        self.events.push(Event { at, label: label.into() });
        self
    }

    /// The wall, continued to the end of the memory.
    fn held_wall(&self) -> Vec<(f64, f64)> {
        let mut wall = self.wall.clone();
        let end = self.memory.iter().map(|p| p.0).fold(f64::NEG_INFINITY, f64::max);
        if let Some(last) = wall.last().copied().filter(|p| p.0 < end) {
            wall.push((end, last.1));
        }
        steps(&wall)
    }

    /// The phases' labels as lines, or as a number if the label does not fit in the band.
    fn phase_lines(&self, x: Span, width: f64) -> Vec<Vec<String>> {
        let fitted = |(index, phase): (usize, &Phase)| {
            let (from, to) = (x.share(phase.from).clamp(0.0, 1.0), x.share(phase.to).clamp(0.0, 1.0));
            let room = (to - from) * width - BAND_AIR;
            let lines = PHASE.wrap(&phase.label, room);
            if PHASE.widest(&lines) <= room && lines.len() <= 3 { lines } else { vec![(index + 1).to_string()] }
        };
        self.phases.iter().enumerate().map(fitted).collect()
    }

    fn band_height(lines: &[Vec<String>]) -> f64 {
        let rows = lines.iter().map(Vec::len).max().unwrap_or(0);
        if rows == 0 { 0.0 } else { rows as f64 * PHASE.line() + 6.0 }
    }

    /// For each event its row above the frame, from 0, such that no leader crosses a label: a label is to the right of
    /// its leader, and in a row above every later event that it would reach.
    fn event_rows(&self, x: Span, width: f64) -> Vec<usize> {
        let place = |event: &Event| x.share(event.at) * width;
        let mut order: Vec<usize> = (0..self.events.len()).collect();
        let at = |i: usize| self.events.get(i).map_or(0.0, |e| e.at);
        order.sort_by(|a, b| at(*b).total_cmp(&at(*a)).then(b.cmp(a)));
        let mut rows = vec![0; self.events.len()];
        for (done, &index) in order.iter().enumerate() {
            let Some(event) = self.events.get(index) else { continue };
            let end = place(event) + 4.0 + EVENT.width(&event.label) + 8.0;
            let later = order.iter().take(done);
            let reached = later.filter(|j| self.events.get(**j).is_some_and(|e| place(e) < end));
            let row = reached.filter_map(|j| rows.get(*j).map(|r| r + 1)).max().unwrap_or(0);
            if let Some(slot) = rows.get_mut(index) {
                *slot = row;
            }
        }
        rows
    }

    fn draw_phases(&self, canvas: &Canvas, frame: &Frame<'_>, x: Span, top: f64) {
        let lines = self.phase_lines(x, frame.rect.width);
        let height = Self::band_height(&lines);
        for (index, (phase, lines)) in self.phases.iter().zip(&lines).enumerate() {
            let clamp = |t: f64| frame.rect.left + x.share(t).clamp(0.0, 1.0) * frame.rect.width;
            let (left, right) = (clamp(phase.from), clamp(phase.to));
            if right <= left {
                continue;
            }
            let shade = if index % 2 == 0 { 0.90 } else { 0.96 };
            let band = Rect { left, top, width: right - left, height: frame.rect.bottom() - top };
            canvas.fill(band, mix(MUTED, WHITE, shade));
            let name = Rect { height, ..band };
            canvas.fill(name, mix(MUTED, WHITE, shade - 0.1));
            let first = top + height / 2.0 - PHASE.line() * (lines.len() as f64 - 1.0) / 2.0;
            canvas.lines(((left + right) / 2.0, first), lines, PHASE, HPos::Center);
        }
    }

    fn draw_area(&self, canvas: &Canvas, frame: &Frame<'_>, styles: &Styles<'_>) {
        let (colour, path) = (styles.of(&self.name).colour, steps(&self.memory));
        canvas.polygon(&frame.area(&path), mix(colour, WHITE, 0.62));
        for piece in frame.clip(&path) {
            canvas.line(&piece, Pen::new(colour, 1.5));
        }
    }
}

impl Plot for Trace {
    fn names(&self) -> Vec<&str> {
        vec![&self.name]
    }

    fn numbers(&self) -> Vec<Numbers<'_>> {
        let points = |list: &[(f64, f64)]| list.iter().map(|p| (Some(p.0), p.1)).collect();
        vec![(&self.name, points(&self.memory)), (&self.wall_name, points(&self.wall))]
    }

    fn fits(&self, _width: f64, _height: f64) -> (Fit, Fit) {
        (Fit::Exact, Fit::Zero(0.06))
    }

    fn check(&self, panel: &str) -> Result<(), FigureError> {
        let bounds = self.phases.iter().flat_map(|p| [(p.from, &p.label), (p.to, &p.label)]);
        let moments = bounds.chain(self.events.iter().map(|e| (e.at, &e.label)));
        for (index, (value, label)) in moments.enumerate() {
            if !value.is_finite() {
                return Err(not_finite(panel, label, index, value));
            }
        }
        Ok(())
    }

    fn margins(&self, x: Option<Span>, width: f64) -> (f64, f64) {
        let Some(x) = x else { return (0.0, 0.0) };
        let rows = self.event_rows(x, width).iter().max().map_or(0.0, |row| *row as f64 + 1.0);
        let events = if rows == 0.0 { 0.0 } else { rows * EVENT.line() + 6.0 };
        let bands = Self::band_height(&self.phase_lines(x, width));
        let overhang = |e: &Event| x.share(e.at) * width + 4.0 + EVENT.width(&e.label) - width;
        let shown = self.events.iter().filter(|e| x.holds(e.at));
        (events + bands, shown.map(overhang).fold(0.0, f64::max))
    }

    fn draw(&self, canvas: &Canvas, frame: &Frame<'_>, styles: &Styles<'_>) {
        let Some(x) = frame.x else { return };
        let top = frame.rect.top - self.margins(frame.x, frame.rect.width).0;
        self.draw_phases(canvas, frame, x, top);
        self.draw_area(canvas, frame, styles);
        for piece in frame.clip(&self.held_wall()) {
            canvas.line(&piece, Pen::wall());
        }
        for (event, row) in
            self.events.iter().zip(self.event_rows(x, frame.rect.width)).filter(|(event, _)| x.holds(event.at))
        {
            let at = frame.x_at(event.at);
            let y = frame.rect.top - 6.0 - EVENT.line() * (row as f64 + 0.5);
            canvas.line(&[(at, y - 5.0), (at, frame.rect.bottom())], Pen::new(INK, 1.0).dashed(2.0, 2.0));
            canvas.text((at + 4.0, y), &event.label, EVENT, INK, HPos::Left);
        }
    }

    fn keys(&self, styles: &Styles<'_>) -> Vec<Entry> {
        let colour = mix(styles.of(&self.name).colour, WHITE, 0.45);
        let mut keys = vec![Entry { key: Key::Swatch { colour, look: Look::Solid }, label: self.name.clone() }];
        if !self.wall.is_empty() {
            keys.push(Entry { key: Key::Stroke(Pen::wall()), label: self.wall_name.clone() });
        }
        keys
    }

    fn numbered(&self, x: Option<Span>, width: f64) -> Vec<Entry> {
        let Some(x) = x else { return Vec::new() };
        let lines = self.phase_lines(x, width);
        let numbered = |(index, (phase, lines)): (usize, (&Phase, &Vec<String>))| {
            let number = (index + 1).to_string();
            (*lines == [number.clone()] && phase.label != number)
                .then(|| Entry { key: Key::Blank, label: format!("{number} = {}", phase.label) })
        };
        self.phases.iter().zip(&lines).enumerate().filter_map(numbered).collect()
    }
}
