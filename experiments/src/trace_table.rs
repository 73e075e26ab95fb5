//! Tables of traces as Parquet files: the activity of apps, and the values of counters, read and
//! written batch by batch.
//!
//! Apps have the columns `user, time_s, package, adj, source, confidence`; counters have `user, time_s, counter,
//! value`. Times are seconds since 1970, UTC; memory is in bytes. Rows are sorted by user, and the metadata of each row
//! group gives its first and last user, so that one user is found without reading the others.

mod columns;
mod read;
mod user;
mod write;

pub(crate) use columns::{Apps, Batch, Counters};
pub use read::{Holds, Reader};
pub(crate) use user::{UserApps, check_beside, nobody, place_beside};
pub(crate) use write::Table;

use std::fmt::Display;

use haversack_reports::{FileError, FrameError};
use thiserror::Error;

/// The columns of the table of apps.
const APP_COLUMNS: [&str; 6] = ["user", "time_s", "package", "adj", "source", "confidence"];
/// The columns of the table of counters.
const COUNTER_COLUMNS: [&str; 4] = ["user", "time_s", "counter", "value"];

/// The column by which rows are sorted.
const USER: &str = "user";

/// Why a table of traces was not read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TableError {
    /// The named file is wrong, with what was expected.
    #[error("{0}")]
    Input(String),
    /// A file could not be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Rows could not be stored as Parquet.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

impl TableError {
    /// An error of the input.
    pub(crate) fn input(message: impl Display) -> Self {
        Self::Input(message.to_string())
    }
}
