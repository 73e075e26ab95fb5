//! `haversack trace`: recordings of apps and memory into Parquet tables, what the tables hold, and synthetic users.

mod columns;
mod generate;
mod import;
mod inputs;
mod of_user;
mod read;
mod report_text;
mod sessions;
mod stats;
mod stats_text;
mod table;

pub use generate::{Generation, generate};
pub use import::{Import, import};
pub(crate) use of_user::{OfUser, UserTrace};
pub use stats::stats;

use indicatif::{ProgressBar, ProgressStyle};

/// The columns of the table of apps.
const APP_COLUMNS: [&str; 6] = ["user", "time_s", "package", "adj", "source", "confidence"];
/// The columns of the table of counters.
const COUNTER_COLUMNS: [&str; 4] = ["user", "time_s", "counter", "value"];

/// A bar on a terminal, nothing elsewhere.
fn progress(length: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
