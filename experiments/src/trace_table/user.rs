//! One user's rows of a table of apps, and the user's UTC offset from the table of states next to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haversack_devices::text::hint;
use haversack_devices::{Nanos, ensure};
use haversack_traces::state::UTC_OFFSET;
use haversack_traces::usage::{Window, seems_opened};
use haversack_traces::{AppRow, AppTimeline, CounterRow, UsageModel, UtcOffset, UtcTime};

use super::{Holds, Reader, TableError};

/// Suffixes of the tables with counters of the same users, in the folder of a table of apps.
const BESIDE: [&str; 2] = ["state", "memory"];

/// The rows of apps of one user, in order of time.
pub(crate) struct UserApps {
    /// The user.
    pub(crate) user: String,
    /// When the first row is, and the last.
    pub(crate) first: UtcTime,
    pub(crate) last: UtcTime,
    /// The user's UTC offset.
    pub(crate) offset: UtcOffset,
    packages: Vec<String>,
    rows: Vec<AppRow<'static>>,
}

impl UserApps {
    /// Reads the rows of `user` from the table that `reader` has opened at `path`.
    ///
    /// # Errors
    /// A row group that cannot be read; an unknown user, with the nearest name.
    pub(crate) fn read(reader: &Reader, path: &Path, user: &str) -> Result<Self, TableError> {
        let mut packages = Vec::new();
        let mut rows: Vec<AppRow<'static>> = Vec::new();
        for group in reader.groups_of(user) {
            reader.apps(&group?, |row| {
                packages.push(row.package.to_owned());
                let AppRow { time, adj, source, confidence, .. } = row;
                rows.push(AppRow { user: "", time, package: "", adj, source, confidence });
            })?;
        }
        ensure!(!rows.is_empty(), nobody(reader, path, user));
        let times = || rows.iter().map(|row| row.time);
        let first = times().min().unwrap_or_default();
        let (last, offset) = (times().max().unwrap_or(first), offset(path, user)?);
        Ok(Self { user: user.to_owned(), first, last, offset, packages, rows })
    }

    /// The activity of apps for `length` from `start` on.
    pub(crate) fn timeline(&self, model: &UsageModel, seed: u64, start: UtcTime, length: Nanos) -> AppTimeline {
        let rows = self.rows.iter().zip(&self.packages).map(|(row, package)| {
            let AppRow { time, adj, source, confidence, .. } = *row;
            AppRow { user: &self.user, time, package, adj, source, confidence }
        });
        let window = Window { start, length, offset: self.offset };
        AppTimeline::from_rows(model, seed, rows, &self.user, window, seems_opened)
    }

    /// The whole trace.
    pub(crate) fn whole(&self, model: &UsageModel, seed: u64) -> AppTimeline {
        let length = u64::try_from(self.last.0.saturating_sub(self.first.0)).unwrap_or(0);
        self.timeline(model, seed, self.first, Nanos(length.saturating_add(1_000_000_000)))
    }
}

/// The error that the table has no rows of `user`, with the nearest name.
pub(crate) fn nobody(reader: &Reader, path: &Path, user: &str) -> TableError {
    let users = match reader.users() {
        Ok(users) => users,
        Err(error) => return error,
    };
    let near = hint(user, users.iter().map(String::as_str));
    TableError::input(format!("{}: expected rows of the user '{user}', found none{near}", path.display()))
}

/// The most frequent UTC offset of `user`, by the counters in the tables next to the one at `path`; zero if
/// they do not give it.
pub(crate) fn offset(path: &Path, user: &str) -> Result<UtcOffset, TableError> {
    let mut seen: BTreeMap<i32, u64> = BTreeMap::new();
    beside(path, user, |row| {
        if row.counter == UTC_OFFSET {
            // A float cast saturates.
            *seen.entry(row.value as i32).or_default() += 1;
        }
    })?;
    let most = seen.into_iter().max_by_key(|&(offset, count)| (count, std::cmp::Reverse(offset)));
    Ok(most.map_or_else(UtcOffset::default, |(seconds, _)| UtcOffset { seconds }))
}

/// The path of the table `what` next to the one at `path`: `F-state.parquet` for `F.parquet`.
pub(crate) fn place_beside(path: &Path, what: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ending = path.extension().map_or_else(String::new, |ending| format!(".{}", ending.to_string_lossy()));
    path.with_file_name(format!("{stem}-{what}{ending}"))
}

/// Checks that an existing file at `place`, which the user did not name, belongs to the table at `out`.
pub(crate) fn check_beside(out: &Path, place: &Path) -> Result<(), TableError> {
    let (shown, out_shown) = (place.display(), out.display());
    let taken = || format!("--out: {shown}, next to {out_shown}, is there already; expected another name");
    ensure!(out.exists() || !place.exists(), TableError::Input(taken()));
    Ok(())
}

/// Passes the counters of `user` in the tables next to the one at `path`, if any exist, to `see`.
fn beside(path: &Path, user: &str, mut see: impl FnMut(CounterRow<'_>)) -> Result<(), TableError> {
    for place in BESIDE.map(|what| place_beside(path, what)).iter().filter(|place| place.is_file()) {
        let reader = Reader::open(place)?;
        if reader.holds != Holds::Counters {
            continue;
        }
        for group in reader.groups_of(user) {
            reader.counters(&group?, &mut see)?;
        }
    }
    Ok(())
}
