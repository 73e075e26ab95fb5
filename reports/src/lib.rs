//! The output of a run: figures, fronts, tables, and the HTML page.
//!
//! ```text
//! numbers and labels ── figure::Figure ──▶ SVG, PNG ──┐
//! cells ── table::Table ──▶ CSV ──────────────────────┼─▶ page::Page ──▶ index.html
//! points ── pareto::front ──▶ which of them to draw   │
//! rows ── text_table::TextTable ──▶ the terminal      └─▶ files::write_atomically
//! ```
//!
//! This crate handles numbers, labels and files, and does not depend on the simulator. Its output is deterministic: the
//! same input gives the same bytes, without date, host or path.
//!
//! - [`figure`]: a declarative description of a figure, rendered to SVG and PNG.
//! - [`pareto`]: fronts in two dimensions.
//! - [`table`]: typed cells to CSV.
//! - [`text_table`]: rows of words in columns, for a terminal.
//! - [`page`]: one self-contained `index.html` for a set of artefacts.
//! - [`frame`]: a polars data frame to Parquet and back.
//! - [`files`]: writes files atomically.
//!
//! ```
//! use haversack_reports::figure::{Axis, Figure, Lines, Panel, Series};
//!
//! let times = Lines::new().series(Series::new("sage", [(20.0, 3.1), (100.0, 1.2)]));
//! let panel = Panel::new(times).x(Axis::new("memory budget").unit("%")).y(Axis::new("time").unit("s"));
//! let rendered = Figure::new("Time over memory").panel(panel).render()?;
//! assert!(rendered.svg.starts_with("<svg"));
//! # Ok::<(), haversack_reports::FigureError>(())
//! ```

pub mod figure;
pub mod files;
pub mod frame;
pub mod page;
pub mod pareto;
pub mod table;
pub mod text_table;

pub use figure::{
    Axis, BarSeries, Bars, Chart, Figure, FigureError, Front, Lines, Look, Meanings, Panel, Rendered, Series, Stroke,
};
pub use files::{FileError, Part, create_folder, if_there, remove_parts, remove_stale_parts, write_atomically};
pub use frame::{CsvFile, FrameError, ParquetFile};
pub use pareto::{BOTH_MINIMISED, Sense, Senses};
pub use table::{Cell, Table, WidthError};
pub use text_table::{Column, TextTable};
