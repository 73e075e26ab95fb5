//! The users of a table of traces, in the place of synthetic ones (`reproduce --trace`).

use std::path::Path;

use haversack_traces::usage::{AppTimeline, SessionReader, SessionStatistics, UsageModel};

use crate::artefacts::prelude::*;
use crate::scenario::{TraceFrom, beginning};
use crate::trace_table::{Reader, UserApps};

/// The sessions of all users.
///
/// # Errors
/// A file that is no table of apps; rows that say nothing of sessions.
pub(super) fn sessions(path: &Path) -> Result<SessionStatistics> {
    let reader = Reader::open(path)?;
    let mut sessions = SessionReader::default();
    for group in reader.groups() {
        reader.apps(&group?, |row| sessions.push(&row))?;
    }
    let found = sessions.finish();
    ensure!(found.count() > 0, "{}: its rows are samples, which say nothing of sessions", path.display());
    Ok(found)
}

/// The first users whose traces have an evening, at most `count`, at least one.
///
/// # Errors
/// A file that is no table of apps; nobody has an evening.
pub(super) fn with_evening(path: &Path, count: usize) -> Result<Vec<String>> {
    let (reader, model) = (Reader::open(path)?, UsageModel::built_in()?);
    let mut found = Vec::new();
    for user in reader.users()? {
        let apps = UserApps::read(&reader, path, &user)?;
        if beginning(&apps, &TraceFrom::Evening, Nanos(0), 0, &model).is_ok() {
            found.push(user);
        }
        if found.len() == count {
            break;
        }
    }
    ensure!(!found.is_empty(), "{}: nobody's trace has an evening", path.display());
    Ok(found)
}

/// What the apps of the first user with an evening do from then on.
///
/// # Errors
/// As [`with_evening`].
pub(super) fn first_evening(path: &Path, model: &UsageModel, seed: u64, length: Nanos) -> Result<AppTimeline> {
    let users = with_evening(path, 1)?;
    let user = users.first().context("nobody has an evening")?;
    let apps = UserApps::read(&Reader::open(path)?, path, user)?;
    let (start, _) = beginning(&apps, &TraceFrom::Evening, length, seed, model).map_err(anyhow::Error::msg)?;
    Ok(apps.timeline(model, seed, start, length))
}
