//! Figures, Pareto fronts, tables and the HTML page of a run.
//!
//! This crate knows numbers, labels and files, and nothing of the simulator. Everything it writes is
//! deterministic: the same input gives the same bytes, with no date, host or path in them.
//!
//! - [`figure`]: a declarative description of a figure, rendered to SVG and PNG.
//! - [`pareto`]: fronts and hypervolumes in two dimensions.
//! - [`table`]: typed cells to CSV and HTML.
//! - [`page`]: one self-contained `index.html` for a set of artefacts.
//! - [`frame`]: a polars data frame to Parquet and back.
//! - [`files`]: the one way to write a file, atomically.

pub mod figure;
pub mod files;
pub mod frame;
pub mod page;
pub mod pareto;
pub mod table;

pub use figure::{Figure, FigureError, Panel, Rendered};
pub use files::{FileError, write_atomically};
