//! What apps do to a phone's memory: a user's timeline by a table of footprints.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use haversack_devices::units::Nanos;
use haversack_traces::footprint::FootprintTable;
use haversack_traces::row::Confidence;
use haversack_traces::usage::{AppEvent, AppTimeline, UsageModel, holdings};
use haversack_training::phone::{AppChange, AppState};

use super::quantity::{QuantityError, parse_time, time_text};

/// Whether `named`, with or without a user, is a table of traces.
pub(super) fn is_table(named: &Path) -> bool {
    split(named).0.extension().is_some_and(|extension| extension == "parquet")
}

/// A path as a scenario names it, `FILE` or `FILE#USER`, in its parts. A file whose own name has the sign keeps it.
pub(crate) fn split(named: &Path) -> (PathBuf, Option<String>) {
    let text = named.to_string_lossy();
    match text.rsplit_once('#') {
        Some((file, user)) if !named.exists() && !user.is_empty() => (PathBuf::from(file), Some(user.to_owned())),
        _ => (named.to_path_buf(), None),
    }
}

/// Where the apps of a phone come from.
#[derive(Clone, Debug, PartialEq)]
pub enum PhoneApps {
    /// There are none.
    None,
    /// A table of traces, `FILE` or `FILE#USER`.
    Table(PathBuf),
    /// A stretch of a synthetic user's days under the scenario's seed.
    Synthetic {
        /// The user's name, such as `synthetic-0001`.
        user: String,
        /// The beginning, after the user's first midnight.
        from: Nanos,
        /// How long it is.
        length: Nanos,
    },
}

const NONE: &str = "none";
const APPS: &str = "none, a .parquet file of `trace import` or `trace generate`, or USER@START+LENGTH, such as \
                    synthetic-0001@68400s+10min";

impl FromStr for PhoneApps {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let wrong = || QuantityError::new(APPS, text);
        if text == NONE {
            return Ok(Self::None);
        }
        if is_table(Path::new(text)) {
            return Ok(Self::Table(text.into()));
        }
        let (user, stretch) = text.rsplit_once('@').filter(|(user, _)| !user.is_empty()).ok_or_else(wrong)?;
        let (from, length) = stretch.split_once('+').ok_or_else(wrong)?;
        let from = if from == MIDNIGHT { Nanos::ZERO } else { parse_time(from)? };
        Ok(Self::Synthetic { user: user.to_owned(), from, length: parse_time(length)? })
    }
}

/// The first midnight, which is no time above zero.
const MIDNIGHT: &str = "0s";

impl fmt::Display for PhoneApps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str(NONE),
            Self::Table(path) => write!(f, "{}", path.display()),
            Self::Synthetic { user, from, length } => {
                let from = if *from == Nanos::ZERO { MIDNIGHT.to_owned() } else { time_text(*from) };
                write!(f, "{user}@{from}+{}", time_text(*length))
            }
        }
    }
}

/// What the apps of `timeline` do to memory by `table`; packages have the categories that `model` knows.
pub fn app_changes(timeline: &AppTimeline, table: &FootprintTable, model: &UsageModel, seed: u64) -> Vec<AppChange> {
    let changes = holdings(timeline, table, |package| model.category(package), seed);
    let changed = changes.into_iter().map(|change| AppChange {
        at: change.time,
        app: timeline.package(change.app).to_owned(),
        state: change.held.map(|held| AppState {
            adj: i32::from(held.adj.0),
            anonymous: held.anonymous,
            file: held.file,
            touched: held.touched,
        }),
    });
    changed.collect()
}

/// Something that an app does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// When, from the start of the timeline.
    pub(crate) at: Nanos,
    /// Whether the trace does not tell, and it is assumed.
    pub(crate) is_assumed: bool,
}

/// What the apps of `timeline` do, in order of time.
pub(crate) fn events(timeline: &AppTimeline) -> Arc<Vec<Event>> {
    let event = |event: &AppEvent| Event { at: event.time, is_assumed: event.confidence == Confidence::Assumed };
    Arc::new(timeline.events.iter().map(event).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apps_print_as_they_are_read() {
        for text in ["none", "users.parquet#me", "synthetic-0001@19001ms+600s", "a@b@0s+1ns"] {
            assert_eq!(text.parse::<PhoneApps>().unwrap().to_string(), text);
        }
        // 19 h are 68,400 s; 10 min are 600 s.
        let evening =
            PhoneApps::Synthetic { user: "u".into(), from: Nanos(68_400_000_000_000), length: Nanos(600_000_000_000) };
        assert_eq!("u@68400s+10min".parse(), Ok(evening));
        assert!(
            ["", "users.csv", "@1s+1s", "u@1s", "u@+1s", "u@1s+0s"]
                .iter()
                .all(|text| text.parse::<PhoneApps>().is_err())
        );
    }
}
