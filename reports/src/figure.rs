//! A small declarative description of a figure, and its rendering to SVG and PNG.
//!
//! A [`Figure`] has a title and one or more [`Panel`]s in a grid, which share one legend. A panel has two axes and one
//! [`Chart`]: [`Lines`], [`Bars`], [`Stack`], [`Trace`], [`Front`] or [`Intervals`]. Layout, ticks, colours and markers
//! are chosen here, so that a name has the same colour in every panel and nothing is cut or covered. A panel without
//! data shows "no data"; a value that cannot be drawn is a [`FigureError`].
//!
//! ```
//! use haversack_reports::figure::{Axis, Figure, Lines, Panel, Series};
//! # fn main() -> Result<(), haversack_reports::FigureError> {
//! let lines = Lines::new().series(Series::new("sage", [(40.0, 1.9), (70.0, 1.4), (100.0, 1.2)]));
//! let panel = Panel::new(lines).x(Axis::new("memory budget").unit("%")).y(Axis::new("iteration time").unit("s"));
//! let rendered = Figure::new("Time under a memory budget").panel(panel).render()?;
//! assert!(rendered.svg.contains("iteration time (s)"));
//! # Ok(())
//! # }
//! ```

/// Methods that return the same with some fields set.
macro_rules! with {
    ($($(#[$doc:meta])* $name:ident($($given:ident: $type:ty),*) => $($field:ident: $value:expr),+;)*) => {$(
        $(#[$doc])*
        pub fn $name(self, $($given: $type),*) -> Self {
            Self { $($field: $value),+, ..self }
        }
    )*};
}

mod axis;
mod bars;
mod canvas;
mod front;
mod intervals;
mod layout;
mod legend;
mod lines;
mod plot;
mod stack;
mod style;
mod text;
mod ticks;
mod trace;

use std::path::Path;
use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use self::plot::Plot;
use crate::files::{FileError, write_atomically};

pub use axis::{Axis, Scale};
pub use bars::{BarSeries, Bars};
pub use front::{Cloud, Front};
pub use intervals::Intervals;
pub use lines::{Lines, Series, Stroke};
pub use stack::{Part, Stack};
pub use style::{Look, Meanings};
pub use ticks::number;
pub use trace::{Event, Phase, Trace};

/// The PNG has this many pixels for each of the SVG's, along each axis.
pub const PNG_SCALE: u32 = 3;

/// A figure: its contents, not its layout. The default one has the smallest possible boxes.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Figure {
    /// The title, above everything.
    pub title: String,
    /// One sentence below the title: setting, source.
    pub note: Option<String>,
    /// A few words in the upper right corner: how well the artefact was reproduced.
    pub corner: Option<String>,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
    /// Panels in a row. With `None`, as many as give a landscape sheet.
    pub columns: Option<usize>,
    /// Width and height in pixels of the box that data are drawn in, at most: it shrinks if the sheet would be larger than
    /// a slide with readable text. Bars widen it if they need to.
    pub panel_size: (u32, u32),
    /// One horizontal range for all panels.
    pub share_x: bool,
    /// One vertical range for all panels.
    pub share_y: bool,
    /// The meanings of the looks.
    pub meanings: Meanings,
    /// Names that get their colours first, so that a method looks the same in every figure of a report.
    pub order: Vec<String>,
}

impl Figure {
    /// A figure without panels.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), panel_size: (460, 300), ..Self::default() }
    }

    with! {
        /// With a sentence below the title.
        note(note: impl Into<String>) => note: Some(note.into());
        /// With this many panels in a row.
        columns(columns: usize) => columns: Some(columns);
        /// With data boxes of this size in pixels (at least 80 × 60, at most 4000 × 4000).
        panel_size(width: u32, height: u32) => panel_size: (width, height);
        /// With one vertical range for all panels.
        share_y() => share_y: true;
        /// With these meanings of the looks.
        meanings(meanings: Meanings) => meanings: meanings;
        /// With colours given to these names first.
        order(names: impl IntoIterator<Item = impl Into<String>>) => order: names.into_iter().map(Into::into).collect();
    }

    /// With one more panel.
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// Draws the figure. The same figure gives the same bytes.
    ///
    /// # Errors
    /// [`FigureError`] for a value that is not finite, or not positive on a logarithmic axis; for lists of unequal
    /// length; for an impossible range; and if the drawing libraries fail.
    pub fn render(&self) -> Result<Rendered, FigureError> {
        let svg = layout::draw(self)?;
        let png = png(&svg)?;
        Ok(Rendered { svg, png })
    }
}

/// One panel: two axes and a chart.
#[derive(Clone, Debug)]
#[must_use]
pub struct Panel {
    /// The title above the panel.
    pub title: Option<String>,
    /// The horizontal axis; if the chart has categories, only its title is used.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The chart.
    pub chart: Chart,
    /// Whether it has its own ranges although the other panels share one: it measures something else.
    pub apart: bool,
}

impl Panel {
    /// A panel for this chart, its axes unnamed.
    pub fn new(chart: impl Into<Chart>) -> Self {
        Self { title: None, x: Axis::default(), y: Axis::default(), chart: chart.into(), apart: false }
    }

    with! {
        /// With a title.
        title(title: impl Into<String>) => title: Some(title.into());
        /// With its own ranges.
        apart() => apart: true;
        /// With this horizontal axis.
        x(axis: Axis) => x: axis;
        /// With this vertical axis.
        y(axis: Axis) => y: axis;
    }
}

/// The contents of a panel.
#[derive(Clone, Debug)]
pub enum Chart {
    /// Lines and points over a numeric axis.
    Lines(Lines),
    /// Grouped bars over categories.
    Bars(Bars),
    /// Stacked bars over categories.
    Stack(Stack),
    /// Memory over time under a moving budget.
    Trace(Trace),
    /// Clouds of points with their Pareto fronts.
    Front(Front),
    /// Measured values with their intervals.
    Intervals(Intervals),
}

macro_rules! chart_from {
    ($($kind:ident),*) => {$(
        impl From<$kind> for Chart {
            fn from(chart: $kind) -> Self {
                Self::$kind(chart)
            }
        }
    )*};
}
chart_from!(Lines, Bars, Stack, Trace, Front, Intervals);

impl Chart {
    fn plot(&self) -> &dyn Plot {
        match self {
            Self::Lines(chart) => chart,
            Self::Bars(chart) => chart,
            Self::Stack(chart) => chart,
            Self::Trace(chart) => chart,
            Self::Front(chart) => chart,
            Self::Intervals(chart) => chart,
        }
    }
}

/// A drawn figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The SVG document.
    pub svg: String,
    /// The PNG, [`PNG_SCALE`] times as large.
    pub png: Vec<u8>,
}

impl Rendered {
    /// Writes `<stem>.svg` and `<stem>.png`, each atomically. The stem's own dots are kept.
    ///
    /// # Errors
    /// [`FileError`] with the path and the cause.
    pub fn write(&self, stem: &Path) -> Result<(), FileError> {
        for (extension, bytes) in [(".svg", self.svg.as_bytes()), (".png", &self.png)] {
            let mut name = stem.as_os_str().to_owned();
            name.push(extension);
            write_atomically(Path::new(&name), bytes)?;
        }
        Ok(())
    }
}

/// Why a figure could not be drawn, in words: the panel, the series and the value, or the step of drawing that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FigureError(String);

// SVG to PNG, with the font that the layout was measured with.

static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    Arc::new(fonts)
});

/// The picture of `svg`, [`PNG_SCALE`] times as large.
fn png(svg: &str) -> Result<Vec<u8>, FigureError> {
    let failed = |reason: String| FigureError(format!("drawing the PNG failed: {reason}"));
    let options = Options { fontdb: Arc::clone(&FONTS), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|e| failed(e.to_string()))?;
    let size = tree.size().to_int_size();
    let mut sheet = Pixmap::new(size.width() * PNG_SCALE, size.height() * PNG_SCALE)
        .ok_or_else(|| failed("the sheet is too large".into()))?;
    let scale = PNG_SCALE as f32;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut sheet.as_mut());
    sheet.encode_png().map_err(|e| failed(e.to_string()))
}
