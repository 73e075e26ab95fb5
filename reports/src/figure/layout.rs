//! The layout: panels in a grid whose margins follow from their labels, the title above, the legend below. Sizes follow
//! from contents, so nothing is cut.

use super::axis::{Axis, Frame};
use super::canvas::{Canvas, HPos, Pen, Rect};
use super::legend::{Entry, Legend};
use super::plot::{Plot, check, join};
use super::style::{FAINT, INK, Look, MUTED, Styles};
use super::text::Face;
use super::ticks::Tick;
use super::{Figure, FigureError, Panel};

const EDGE: f64 = 16.0;
/// Room right of a panel: half a tick label must fit.
const RIGHT: f64 = 24.0;
const TICK: f64 = 5.0;
/// A slide on which tick labels are a fortieth of the height; boxes shrink until the sheet fits.
const SLIDE: (f64, f64) = (782.0, 440.0);
/// ... but no smaller than this.
const LEAST_BOX: (f64, f64) = (150.0, 120.0);
/// Between the title and the text in the corner.
const BESIDE_TITLE: f64 = 18.0;
/// A title wraps only if it is wider than this.
const LEAST_TITLE: f64 = 180.0;
const LARGEST: f64 = 16_000.0;

/// Names under the slots of a categorical axis.
enum Names {
    Lying(Vec<Vec<String>>),
    Upright(Vec<String>),
}

/// A panel with its spans, ticks and the room for its labels around the frame.
struct Cell<'a> {
    plot: &'a dyn Plot,
    /// Where data are drawn; its position on the sheet follows from the whole grid.
    frame: Frame<'a>,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    names: Option<Names>,
    title: Vec<String>,
    x_title: Vec<String>,
    y_title: Vec<String>,
    header: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// The rows and columns, in pixels.
#[derive(Default)]
struct Grid {
    /// For each column: room left of the frame, the frame, room right of it.
    columns: Vec<(f64, f64, f64)>,
    /// For each row: room above the frame, room below it.
    rows: Vec<(f64, f64)>,
    height: f64,
}

impl Grid {
    fn width(&self) -> f64 {
        self.columns.iter().map(|c| c.0 + c.1 + c.2).sum()
    }

    fn tall(&self) -> f64 {
        self.rows.iter().map(|r| r.0 + self.height + r.1).sum()
    }

    fn frame(&self, row: usize, column: usize) -> Rect {
        let before: f64 = self.columns.iter().take(column).map(|c| c.0 + c.1 + c.2).sum();
        let above: f64 = self.rows.iter().take(row).map(|r| r.0 + self.height + r.1).sum();
        let (left, width, _) = self.columns.get(column).copied().unwrap_or_default();
        let top = self.rows.get(row).map_or(0.0, |r| r.0);
        Rect { left: before + left, top: above + top, width, height: self.height }
    }
}

/// Draws the figure as an SVG document.
pub(super) fn draw(figure: &Figure) -> Result<String, FigureError> {
    super::text::ready()?;
    for (index, panel) in figure.panels.iter().enumerate() {
        let name = panel.title.clone().unwrap_or_else(|| format!("panel {}", index + 1));
        check(panel.chart.plot(), &name, &panel.x, &panel.y)?;
    }
    let styles = styles(figure);
    let columns = columns(figure);
    let corner = figure.corner.as_deref().unwrap_or_default();
    let beside_title = if corner.is_empty() { 0.0 } else { Face::NOTE.width(corner) + BESIDE_TITLE };
    let laid = |size: (f64, f64)| -> Result<_, FigureError> {
        let (cells, grid) = cells(figure, columns, size)?;
        let inner = grid.width().max(360.0);
        let legend = Legend::new(entries(figure, &cells, &grid, columns, &styles), inner);
        let room = (inner - beside_title).max(LEAST_TITLE);
        let title = if figure.title.is_empty() { Vec::new() } else { Face::TITLE.wrap(&figure.title, room) };
        let note = figure.note.as_deref().map(|n| Face::NOTE.wrap(n, inner)).unwrap_or_default();
        let head = title.len() as f64 * Face::TITLE.line() + note.len() as f64 * Face::NOTE.line();
        let top = EDGE + if head > 0.0 { head + 10.0 } else { 0.0 };
        let tall = grid.tall() + if legend.height == 0.0 { 0.0 } else { legend.height + 10.0 };
        let sheet = (EDGE + inner.max(Face::TITLE.widest(&title) + beside_title) + 8.0, top + tall + EDGE);
        Ok((cells, grid, legend, title, note, top, sheet))
    };
    let mut wanted = (f64::from(figure.panel_size.0.clamp(80, 4000)), f64::from(figure.panel_size.1.clamp(60, 4000)));
    let low = LEAST_BOX.1.min(wanted.1);
    let (narrowest, _) = laid((LEAST_BOX.0.min(wanted.0), low))?.6;
    let (_, lowest) = laid((wanted.0, low))?.6;
    let scale = (narrowest / SLIDE.0).max(lowest / SLIDE.1).max(1.0);
    let (cells, grid, legend, title, note, top, (width, height)) = loop {
        let sheet = laid(wanted)?;
        let smaller = shrunk(wanted, sheet.6, scale);
        if smaller == wanted {
            break sheet;
        }
        wanted = smaller;
    };
    let (width, height) = size(width, height)?;

    let canvas = Canvas::new(width, height);
    canvas.lines((EDGE, EDGE + Face::TITLE.line() / 2.0), &title, Face::TITLE, HPos::Left);
    let upper_right = (f64::from(width) - EDGE, EDGE + Face::TITLE.line() / 2.0);
    canvas.text(upper_right, corner, Face::NOTE, MUTED, HPos::Right);
    let under = EDGE + Face::TITLE.line() * title.len() as f64 + Face::NOTE.line() / 2.0 + 1.0;
    for (index, line) in note.iter().enumerate() {
        canvas.text((EDGE, under + Face::NOTE.line() * index as f64), line, Face::NOTE, MUTED, HPos::Left);
    }
    for (index, cell) in cells.iter().enumerate() {
        let frame = grid.frame(index / columns, index % columns);
        let rect = Rect { left: frame.left + EDGE, top: frame.top + top, ..frame };
        let name = cell.title.join(" ");
        let class = if cell.plot.is_front() { "panel front" } else { "panel" };
        canvas.named(class, &name, || draw_cell(&canvas, cell, rect, &styles));
    }
    legend.draw(&canvas, EDGE, top + grid.tall() + 10.0);
    Ok(canvas.finish(&figure.title))
}

/// Colours go first to the names in the figure's order, then to the others as they appear.
fn styles(figure: &Figure) -> Styles<'_> {
    let mut styles = Styles::new(&figure.meanings);
    figure.order.iter().for_each(|name| styles.add(name));
    for panel in &figure.panels {
        panel.chart.plot().names().into_iter().for_each(|name| styles.add(name));
    }
    styles
}

fn columns(figure: &Figure) -> usize {
    let count = figure.panels.len().max(1);
    // A box with its labels is about 5 : 4, and a slide 16 : 9: √(16/9 · 4/5 · count).
    let wide = if count <= 3 { count } else { (1.4 * count as f64).sqrt().round() as usize };
    figure.columns.unwrap_or(wide).clamp(1, count)
}

/// Boxes a little smaller than `wanted` along each axis along which the sheet is larger than a slide, `scale` times as large.
fn shrunk(wanted: (f64, f64), sheet: (f64, f64), scale: f64) -> (f64, f64) {
    let less = |own: f64, least: f64, over: bool| if over { (own * 0.93).max(own.min(least)) } else { own };
    let over = (sheet.0 > SLIDE.0 * scale, sheet.1 > SLIDE.1 * scale);
    (less(wanted.0, LEAST_BOX.0, over.0), less(wanted.1, LEAST_BOX.1, over.1))
}

fn size(width: f64, height: f64) -> Result<(u32, u32), FigureError> {
    let (width, height) = (width.ceil(), height.ceil());
    if width <= LARGEST && height <= LARGEST {
        Ok((width as u32, height as u32))
    } else {
        Err(FigureError(format!(
            "the figure would be {} × {} pixels; at most 16000 × 16000 can be drawn",
            width as u64, height as u64
        )))
    }
}

/// The figure's names once each, then the meanings of the looks if there is more than one.
fn entries(figure: &Figure, cells: &[Cell<'_>], grid: &Grid, columns: usize, styles: &Styles<'_>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut add = |entry: Entry| {
        if !entry.label.is_empty() && !entries.iter().any(|e| e.label == entry.label) {
            entries.push(entry);
        }
    };
    for cell in cells {
        cell.plot.keys(styles).into_iter().for_each(&mut add);
    }
    let looks: Vec<_> = cells.iter().flat_map(|c| c.plot.looks()).collect();
    let used: Vec<Look> = [Look::Solid, Look::Hatched, Look::Outlined]
        .into_iter()
        .filter(|look| looks.iter().any(|(used, _)| used == look))
        .collect();
    if used.len() > 1 {
        for look in used {
            if let Some((_, key)) = looks.iter().find(|(l, _)| *l == look) {
                add(Entry { key: key.clone(), label: figure.meanings.of(look).to_owned() });
            }
        }
    }
    for (index, cell) in cells.iter().enumerate() {
        let width = grid.frame(index / columns, index % columns).width;
        cell.plot.numbered(cell.frame.x, width).into_iter().for_each(&mut add);
    }
    entries
}

/// The cells whose boxes are of this size, wider where their bars need it.
fn cells(figure: &Figure, columns: usize, size: (f64, f64)) -> Result<(Vec<Cell<'_>>, Grid), FigureError> {
    let (base, height) = size;
    let plots: Vec<&dyn Plot> = figure.panels.iter().map(|p| p.chart.plot()).collect();
    let sharing = || figure.panels.iter().filter(|panel| !panel.apart).map(|panel| panel.chart.plot());
    let all_x = sharing().map(|p| p.x_extent()).fold(None, join);
    let all_y = sharing().map(|p| p.y_extent()).fold(None, join);
    let mut grid = Grid { height, ..Grid::default() };
    for column in 0..columns.min(plots.len().max(1)) {
        let width = plots.iter().skip(column).step_by(columns).map(|p| p.least_width()).fold(base, f64::max);
        grid.columns.push((0.0, width, RIGHT));
    }
    let mut cells = Vec::new();
    for (index, (panel, plot)) in figure.panels.iter().zip(plots).enumerate() {
        let width = grid.columns.get(index % columns).map_or(base, |c| c.1);
        let (x_fit, y_fit) = plot.fits(width, height);
        let x_extent = if figure.share_x && !panel.apart { all_x } else { plot.x_extent() };
        let y_extent = if figure.share_y && !panel.apart { all_y } else { plot.y_extent() };
        let x = if plot.categories().is_some() { None } else { Some(panel.x.span(x_extent, x_fit)?) };
        let y = panel.y.span(y_extent, y_fit)?;
        // An axis title that the neighbour has already is not repeated.
        let before = (index % columns > 0).then(|| figure.panels.get(index - 1)).flatten();
        let is_repeated = before.is_some_and(|p| p.y.title() == panel.y.title());
        let y_title = if is_repeated { Vec::new() } else { axis_title(&panel.y, height) };
        // Nor is one that the whole column shares: it is drawn only under the lowest panel.
        let mut column = figure.panels.iter().skip(index % columns).step_by(columns);
        let is_lowest = index + columns >= figure.panels.len();
        let is_below = !is_lowest && column.all(|p| p.x.title() == panel.x.title());
        let x_title = if is_below { Vec::new() } else { axis_title(&panel.x, width) };
        let frame = Frame { rect: Rect { left: 0.0, top: 0.0, width, height }, x, y, axes: (&panel.x, &panel.y) };
        cells.push(cell(panel, plot, frame, x_title, y_title));
    }
    for (index, cell) in cells.iter().enumerate() {
        if let Some(column) = grid.columns.get_mut(index % columns) {
            (column.0, column.2) = (column.0.max(cell.left), column.2.max(cell.right));
        }
        if index % columns == 0 {
            grid.rows.push((0.0, 0.0));
        }
        if let Some(row) = grid.rows.last_mut() {
            *row = (row.0.max(cell.top), row.1.max(cell.bottom));
        }
    }
    Ok((cells, grid))
}

/// An axis' title, broken to fit its length.
fn axis_title(axis: &Axis, length: f64) -> Vec<String> {
    let title = axis.title();
    if title.is_empty() { Vec::new() } else { Face::LABEL.wrap(&title, length) }
}

fn cell<'a>(
    panel: &'a Panel,
    plot: &'a dyn Plot,
    frame: Frame<'a>,
    x_title: Vec<String>,
    y_title: Vec<String>,
) -> Cell<'a> {
    let Frame { rect: Rect { width, height, .. }, x, y, .. } = frame;
    let y_ticks = panel.y.ticks_for(y, height, |_| Face::TICK.size, (height / 32.0) as usize);
    let x_ticks =
        x.map(|x| panel.x.ticks_for(x, width, |l| Face::TICK.width(l), (width / 46.0) as usize)).unwrap_or_default();
    let names = plot.categories().map(|names| names_under(names, width));
    let title = panel.title.as_deref().map(|t| Face::PANEL.wrap(t, width)).unwrap_or_default();
    let (header, overhang) = plot.margins(x, width);

    let rows = |lines: usize, face: Face| lines as f64 * face.line();
    let under = match &names {
        None => Face::TICK.line(),
        Some(Names::Lying(names)) => rows(names.iter().map(Vec::len).max().unwrap_or(1), Face::TICK),
        Some(Names::Upright(names)) => Face::TICK.widest(names) + 4.0,
    };
    let above = if title.is_empty() { 10.0 } else { rows(title.len(), Face::PANEL) + 14.0 };
    Cell {
        left: y_ticks.iter().map(|tick| Face::TICK.width(&tick.label)).fold(0.0, f64::max)
            + TICK
            + 5.0
            + rows(y_title.len(), Face::LABEL)
            + 4.0,
        right: RIGHT.max(overhang + 6.0),
        top: above + header,
        bottom: under + TICK + 4.0 + rows(x_title.len(), Face::LABEL) + 4.0,
        plot,
        frame,
        x_ticks,
        y_ticks,
        names,
        title,
        x_title,
        y_title,
        header,
    }
}

/// Names broken to fit their slots, or vertical if even a single word does not fit.
fn names_under(names: &[String], width: f64) -> Names {
    let slot = width / names.len().max(1) as f64 - 6.0;
    let lying: Vec<Vec<String>> = names.iter().map(|n| Face::TICK.wrap(n, slot)).collect();
    if lying.iter().all(|lines| Face::TICK.widest(lines) <= slot && lines.len() <= 4) {
        return Names::Lying(lying);
    }
    Names::Upright(names.iter().map(|n| Face::TICK.shorten(n, 180.0)).collect())
}

fn draw_cell(canvas: &Canvas, cell: &Cell<'_>, rect: Rect, styles: &Styles<'_>) {
    let frame = Frame { rect, ..cell.frame.clone() };
    let middle = rect.left + rect.width / 2.0;
    let first = rect.top - cell.header - 8.0 - Face::PANEL.line() * (cell.title.len() as f64 - 0.5);
    canvas.lines((middle, first), &cell.title, Face::PANEL, HPos::Center);
    let empty = cell.plot.numbers().iter().all(|(_, points)| points.is_empty());
    if empty {
        canvas.text((middle, rect.top + rect.height / 2.0), "no data", Face::LABEL, MUTED, HPos::Center);
    } else {
        draw_grid(canvas, cell, &frame);
        cell.plot.draw(canvas, &frame, styles);
    }
    draw_axes(canvas, cell, &frame);
}

/// Faint lines behind the data, at labelled ticks.
fn draw_grid(canvas: &Canvas, cell: &Cell<'_>, frame: &Frame<'_>) {
    let rect = &frame.rect;
    for tick in cell.y_ticks.iter().filter(|t| !t.is_minor()) {
        let y = frame.y_at(tick.value);
        canvas.line(&[(rect.left, y), (rect.right(), y)], Pen::new(FAINT, 1.0));
    }
    for tick in cell.x_ticks.iter().filter(|t| !t.is_minor()) {
        let x = frame.x_at(tick.value);
        canvas.line(&[(x, rect.top), (x, rect.bottom())], Pen::new(FAINT, 1.0));
    }
}

fn draw_axes(canvas: &Canvas, cell: &Cell<'_>, frame: &Frame<'_>) {
    let rect = &frame.rect;
    let pen = Pen::new(INK, 1.0);
    canvas.line(&[(rect.left, rect.top), (rect.left, rect.bottom()), (rect.right(), rect.bottom())], pen);
    let reach = |tick: &Tick| if tick.is_minor() { TICK * 0.6 } else { TICK };
    for tick in &cell.y_ticks {
        let y = frame.y_at(tick.value);
        canvas.line(&[(rect.left - reach(tick), y), (rect.left, y)], pen);
        canvas.text((rect.left - TICK - 3.0, y), &tick.label, Face::TICK, INK, HPos::Right);
    }
    let under = rect.bottom() + TICK + 3.0 + Face::TICK.line() / 2.0;
    for tick in &cell.x_ticks {
        let x = frame.x_at(tick.value);
        canvas.line(&[(x, rect.bottom()), (x, rect.bottom() + reach(tick))], pen);
        canvas.text((x, under), &tick.label, Face::TICK, INK, HPos::Center);
    }
    draw_names(canvas, cell, rect, under);
    let x_title = rect.bottom() + cell.bottom - 4.0 - Face::LABEL.line() * (cell.x_title.len() as f64 - 0.5);
    canvas.lines((rect.left + rect.width / 2.0, x_title), &cell.x_title, Face::LABEL, HPos::Center);
    for (index, line) in cell.y_title.iter().enumerate() {
        let x = rect.left - cell.left + 4.0 + Face::LABEL.line() * (index as f64 + 0.5);
        canvas.upright((x, rect.top + rect.height / 2.0), line, Face::LABEL, INK, HPos::Center);
    }
}

fn draw_names(canvas: &Canvas, cell: &Cell<'_>, rect: &Rect, under: f64) {
    let slots = |count: usize| (0..count).map(move |i| rect.left + rect.width * (i as f64 + 0.5) / count as f64);
    match &cell.names {
        None => {}
        Some(Names::Lying(names)) => slots(names.len())
            .zip(names)
            .for_each(|(x, lines)| canvas.lines((x, under), lines, Face::TICK, HPos::Center)),
        Some(Names::Upright(names)) => slots(names.len())
            .zip(names)
            .for_each(|(x, name)| canvas.upright((x, rect.bottom() + TICK + 4.0), name, Face::TICK, INK, HPos::Right)),
    }
}
