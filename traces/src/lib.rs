//! Traces of how people use their phones: importers of existing ones, a model of usage, and synthetic users.
//!
//! ```text
//! Carat, LSApp, /proc, lmkd, … ── import ──▶ rows ─┐
//! usage.toml ── usage::UsageModel ── Population ───┴─▶ usage::AppTimeline ── footprint ──▶ what apps hold of memory
//! ```
//!
//! - [`import`]: from files, line by line, to [rows](row); a line that cannot be read is counted and reported.
//! - [`usage`]: sessions, apps in front and in the background, of synthetic users and of imported rows.
//! - [`footprint`]: a table of the memory that apps use.
//! - [`state`]: battery, charging, network and clock as counters, and the times at which they make a phone available.
//! - [`row`]: the two tables, of apps and of counters. This crate does not know Parquet: its callers write the rows.
//!
//! ```
//! use haversack_traces::usage::{Population, UsageModel, sessions};
//!
//! let model = UsageModel::built_in()?;
//! // Two users for a day; the seed and a user's name decide everything about that user.
//! let population = Population::new(&model, 2, 1, 7);
//! let found = sessions(population.names().iter().flat_map(|name| population.rows_of(name)));
//! assert_eq!(found.users.len(), 2);
//! # Ok::<(), haversack_traces::usage::DataError>(())
//! ```

pub mod clock;
mod data;
pub mod footprint;
pub mod import;
pub mod row;
pub mod state;
pub mod usage;
mod words;

pub use clock::UtcOffset;
pub use footprint::FootprintTable;
pub use import::{CaratSemantics, ImportError};
pub use row::{AppRow, Confidence, CounterRow, INFERRED_AVAILABLE, OomAdj, Row, Source, UtcTime};
pub use usage::{AppTimeline, UsageModel};
