//! One user's part of a table of traces, for a run: the apps of the phone, or the memory that it leaves.

use std::path::Path;
use std::sync::Arc;

use haversack_devices::units::{Bytes, Nanos};
use haversack_traces::footprint::FootprintTable;
use haversack_traces::row::{AppRow, Confidence, OomAdj, Source, UtcTime};
use haversack_traces::usage::{AppTimeline, UsageModel, seems_opened};
use haversack_training::phone::AppChange;

use super::apps::{Event, app_changes, events};
use crate::trace_table::{Holds, Reader, TableError};
use haversack_devices::text::hint;

/// What of a trace a run can use: a day of it.
const LENGTH: Nanos = Nanos(86_400_000_000_000);
/// The counter whose values are what a phone leaves.
const AVAILABLE: &str = "MemAvailable";
/// The counter whose values are all that it has.
const TOTAL: &str = "MemTotal";

/// What a table says of one user.
#[derive(Clone, Debug)]
pub(crate) enum OfUser {
    /// What the apps of the phone do.
    Apps {
        /// To its memory.
        changes: Vec<AppChange>,
        /// And when.
        events: Arc<Vec<Event>>,
    },
    /// What could be had of memory.
    Available(Arc<Available>),
}

/// What a phone left of its memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Available {
    /// What could be had without swapping (`MemAvailable`), from a time on.
    pub(crate) steps: Vec<(Nanos, Bytes)>,
    /// All that the phone's kernel managed (`MemTotal`), where the recording says so.
    pub(crate) total: Option<Bytes>,
}

/// A user's part of a table.
#[derive(Clone, Debug)]
pub(crate) struct UserTrace {
    /// The user.
    pub(crate) user: String,
    /// What it says.
    pub(crate) holds: OfUser,
    /// From its first row to its last, or to the end of what a run can use.
    pub(crate) length: Nanos,
}

/// A row of apps that owns its names.
struct Owned {
    time: UtcTime,
    package: String,
    adj: OomAdj,
    source: Source,
    confidence: Confidence,
}

impl UserTrace {
    /// Of the user `wanted` in the table at `path`, or of its first; times count from the user's first row.
    ///
    /// # Errors
    /// A file that is no table of traces, a user that it does not have, counters without `MemAvailable`.
    pub(crate) fn read(path: &Path, wanted: Option<&str>, seed: u64) -> Result<Self, TableError> {
        let reader = Reader::open(path)?;
        match reader.holds {
            Holds::Apps => Self::apps(&reader, path, wanted, seed),
            Holds::Counters => Self::available(&reader, path, wanted),
        }
    }

    fn apps(reader: &Reader, path: &Path, wanted: Option<&str>, seed: u64) -> Result<Self, TableError> {
        let mut chosen = Chosen::new(wanted);
        let mut rows: Vec<Owned> = Vec::new();
        for group in reader.groups() {
            reader.apps(&group?, |row| {
                if chosen.is(row.user) {
                    let AppRow { time, adj, source, confidence, .. } = row;
                    rows.push(Owned { time, package: row.package.to_owned(), adj, source, confidence });
                }
            })?;
        }
        let user = chosen.found(path)?;
        let (start, length) = span(rows.iter().map(|row| row.time));
        let model = UsageModel::built_in().map_err(TableError::input)?;
        let table = FootprintTable::built_in().map_err(TableError::input)?;
        let borrowed = rows.iter().map(|row| AppRow {
            user: &user,
            time: row.time,
            package: &row.package,
            adj: row.adj,
            source: row.source,
            confidence: row.confidence,
        });
        let timeline = AppTimeline::from_rows(&model, seed, borrowed, &user, (start, LENGTH), seems_opened);
        let holds = OfUser::Apps { changes: app_changes(&timeline, &table, &model, seed), events: events(&timeline) };
        Ok(Self { user, holds, length: length.min(LENGTH) })
    }

    fn available(reader: &Reader, path: &Path, wanted: Option<&str>) -> Result<Self, TableError> {
        let mut chosen = Chosen::new(wanted);
        let mut rows: Vec<(UtcTime, f64)> = Vec::new();
        let mut total = None;
        for group in reader.groups() {
            reader.counters(&group?, |row| {
                if [AVAILABLE, TOTAL].contains(&row.counter) && chosen.is(row.user) {
                    match row.counter {
                        AVAILABLE => rows.push((row.time, row.value)),
                        _ => total = Some(bytes(row.value)),
                    }
                }
            })?;
        }
        if rows.is_empty() && total.is_some() {
            return Err(TableError::input(format!("{}: there is no counter {AVAILABLE}", path.display())));
        }
        let user = chosen.found(path).map_err(|error| match wanted {
            Some(_) => error,
            None => TableError::input(format!("{}: there is no counter {AVAILABLE}", path.display())),
        })?;
        rows.sort_by_key(|(time, _)| *time);
        let (start, length) = span(rows.iter().map(|(time, _)| *time));
        let steps = rows.iter().map(|&(time, value)| (since(start, time), bytes(value)));
        let available = Available { steps: steps.take_while(|(at, _)| *at < LENGTH).collect(), total };
        Ok(Self { user, holds: OfUser::Available(Arc::new(available)), length: length.min(LENGTH) })
    }
}

/// The user that rows are taken of.
struct Chosen<'a> {
    wanted: Option<&'a str>,
    user: Option<String>,
    others: Vec<String>,
}

impl<'a> Chosen<'a> {
    const fn new(wanted: Option<&'a str>) -> Self {
        Self { wanted, user: None, others: Vec::new() }
    }

    fn is(&mut self, user: &str) -> bool {
        let wanted = self.wanted.is_none_or(|wanted| wanted == user);
        match &self.user {
            Some(found) => found == user,
            None if wanted => {
                self.user = Some(user.to_owned());
                true
            }
            None => {
                if self.others.last().is_none_or(|last| last != user) {
                    self.others.push(user.to_owned());
                }
                false
            }
        }
    }

    fn found(self, path: &Path) -> Result<String, TableError> {
        self.user.ok_or_else(|| {
            let wanted = self.wanted.unwrap_or_default();
            let near = hint(wanted, self.others.iter().map(String::as_str));
            TableError::input(format!("{}: expected rows of the user '{wanted}', found none{near}", path.display()))
        })
    }
}

/// The first of some times, and how long after it the last is.
fn span(times: impl Iterator<Item = UtcTime> + Clone) -> (UtcTime, Nanos) {
    let start = times.clone().min().unwrap_or_default();
    (start, since(start, times.max().unwrap_or(start)))
}

fn bytes(value: f64) -> Bytes {
    // A float cast saturates.
    Bytes(value.max(0.0) as u64)
}

fn since(start: UtcTime, time: UtcTime) -> Nanos {
    Nanos(u64::try_from(time.0.saturating_sub(start.0)).unwrap_or(0))
}
