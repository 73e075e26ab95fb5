//! One user's part of a table of traces, for a run: the apps of the phone, or the memory that it leaves.

use std::path::Path;
use std::sync::Arc;

use haversack_devices::{Bytes, Nanos, ensure};
use haversack_traces::{FootprintTable, INFERRED_AVAILABLE, UsageModel, UtcOffset, UtcTime};
use haversack_training::phone::AppChange;

use super::apps::{Event, app_changes, events};
use super::trace_from::{Span, TraceFrom, beginning, between, draw};
use crate::trace_table::{Holds, Reader, TableError, UserApps, nobody, place_beside};

/// The counter of the memory that a phone leaves.
const AVAILABLE: &str = "MemAvailable";
/// The counter of its total memory.
const TOTAL: &str = "MemTotal";

/// The part of a table about one user.
#[derive(Clone, Debug)]
pub(crate) enum OfUser {
    /// The activity of apps on the phone.
    Apps {
        /// Changes of its memory.
        changes: Vec<AppChange>,
        /// The times of events.
        events: Arc<Vec<Event>>,
    },
    /// The available memory.
    Available(Arc<Available>),
}

/// The memory that a phone left.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Available {
    /// The memory available without swapping (`MemAvailable`), from each time on.
    pub(crate) steps: Vec<(Nanos, Bytes)>,
    /// The total memory that the phone's kernel managed (`MemTotal`), if it was recorded.
    pub(crate) total: Option<Bytes>,
    /// Whether the available memory was not recorded but inferred from other counters.
    pub(crate) is_inferred: bool,
}

/// A user's part of a table.
#[derive(Clone, Debug)]
pub(crate) struct UserTrace {
    /// The user.
    pub(crate) user: String,
    /// The contents.
    pub(crate) holds: OfUser,
    /// The start of the used part, by the user's clock.
    pub(crate) begins: String,
    /// The length from there to the last row, or to the end of the used part.
    pub(crate) length: Nanos,
}

/// The settings for reading a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    /// The start of a run, and the length of the trace it uses.
    pub(crate) from: &'a TraceFrom,
    pub(crate) window: Nanos,
    pub(crate) seed: u64,
    /// The footprints of apps, and the usage model.
    pub(crate) footprints: &'a FootprintTable,
    pub(crate) model: &'a UsageModel,
}

/// The reason why a trace cannot be read.
pub(crate) enum UserTraceError {
    /// The table, or its user.
    Table(TableError),
    /// The beginning of the run.
    From(String),
}

impl<E: Into<TableError>> From<E> for UserTraceError {
    fn from(error: E) -> Self {
        Self::Table(error.into())
    }
}

impl UserTrace {
    /// Reads the part of the user `wanted`, or of the first user, from the table at `path`; times count from
    /// the start of the run.
    ///
    /// # Errors
    /// A file that does not contain a table of traces, an unknown user, counters without `MemAvailable`, a start
    /// outside the trace.
    pub(crate) fn read(path: &Path, wanted: Option<&str>, reading: Reading<'_>) -> Result<Self, UserTraceError> {
        let reader = Reader::open(path)?;
        match reader.holds {
            Holds::Apps => Self::apps(&reader, path, wanted, reading),
            Holds::Counters => Self::available(&reader, path, wanted, reading),
        }
    }

    fn apps(reader: &Reader, path: &Path, wanted: Option<&str>, reading: Reading<'_>) -> Result<Self, UserTraceError> {
        let Reading { from, window, seed, footprints, model } = reading;
        let user = chosen(reader, path, wanted)?;
        let of_user = UserApps::read(reader, path, &user)?;
        let (start, length) = beginning(&of_user, from, window, seed, model).map_err(UserTraceError::From)?;
        let begins = of_user.offset.local(start);
        let timeline = of_user.timeline(model, seed, start, window);
        let holds =
            OfUser::Apps { changes: app_changes(&timeline, footprints, model, seed), events: events(&timeline) };
        Ok(Self { user, holds, begins, length })
    }

    fn available(
        reader: &Reader,
        path: &Path,
        wanted: Option<&str>,
        Reading { from, window, seed, .. }: Reading<'_>,
    ) -> Result<Self, UserTraceError> {
        let user = chosen(reader, path, wanted)?;
        let mut rows: Vec<(UtcTime, f64)> = Vec::new();
        let mut inferred: Vec<(UtcTime, f64)> = Vec::new();
        let (mut total, mut others) = (None, false);
        for group in reader.groups_of(&user) {
            reader.counters(&group?, |row| match row.counter {
                AVAILABLE => rows.push((row.time, row.value)),
                INFERRED_AVAILABLE => inferred.push((row.time, row.value)),
                TOTAL => total = Some(bytes(row.value)),
                _ => others = true,
            })?;
        }
        let is_inferred = rows.is_empty();
        if is_inferred {
            rows = inferred;
        }
        if rows.is_empty() && (others || total.is_some()) {
            let path = path.display();
            return Err(TableError::input(format!("{path}: {user} has no counter {AVAILABLE}")).into());
        }
        ensure!(!rows.is_empty(), nobody(reader, path, &user).into());
        rows.sort_by_key(|(time, _)| *time);
        let span = span(&user, rows.iter().map(|(time, _)| *time));
        let start = span.start(from, window, draw(seed, &user), || None).map_err(UserTraceError::From)?;
        let (length, begins) = (span.left(start, window), span.offset.local(start));
        // The value at the start is the last one measured before it.
        let first = rows.partition_point(|(time, _)| *time <= start).saturating_sub(1);
        let steps = rows[first..].iter().map(|&(time, value)| (between(start, time), bytes(value)));
        let available = Available { steps: steps.take_while(|(at, _)| *at <= window).collect(), total, is_inferred };
        Ok(Self { user, holds: OfUser::Available(Arc::new(available)), begins, length })
    }
}

/// The total memory that the kernel of a phone managed (`MemTotal`), from the table of counters at `path` or the one
/// next to a table of apps there; `None` if it was not recorded.
///
/// # Errors
/// A file that does not contain a table of traces.
pub(crate) fn total_memory(path: &Path, wanted: Option<&str>) -> Result<Option<Bytes>, TableError> {
    let reader = Reader::open(path)?;
    if reader.holds == Holds::Apps {
        let beside = place_beside(path, "memory");
        return if beside.is_file() { total_memory(&beside, wanted) } else { Ok(None) };
    }
    let user = chosen(&reader, path, wanted)?;
    let mut total = None;
    for group in reader.groups_of(&user) {
        reader.counters(&group?, |row| {
            total = Some(row).filter(|row| row.counter == TOTAL).map(|row| bytes(row.value)).or(total)
        })?;
    }
    Ok(total)
}

/// The user `wanted`, or the first; an error names the nearest.
fn chosen(reader: &Reader, path: &Path, wanted: Option<&str>) -> Result<String, TableError> {
    match wanted {
        Some(wanted) => Ok(wanted.to_owned()),
        None => reader.first_user()?.ok_or_else(|| TableError::input(format!("{}: it has no rows", path.display()))),
    }
}

/// From the first of some times to the last.
fn span(user: &str, times: impl Iterator<Item = UtcTime> + Clone) -> Span<'_> {
    let first = times.clone().min().unwrap_or_default();
    Span { user, first, last: times.max().unwrap_or(first), offset: UtcOffset::default() }
}

fn bytes(value: f64) -> Bytes {
    // A float cast saturates.
    Bytes(value.max(0.0) as u64)
}
