//! The surroundings of a run: budgets over time, and the phone that it shares with apps.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haversack_devices::{Bytes, Device, Nanos};
use haversack_traces::usage::DataError;
use haversack_traces::{AppTimeline, FootprintTable, UsageModel};
use haversack_training::phone::AppChange;
use haversack_training::{Machine, Phone};

use super::apps::{self, Event, InUse, app_changes, events};
use super::error::{Fault, Origin, Result, ScenarioError};
use super::key::Key;
use super::trace_from::{DAY, TraceFrom};
use super::user_trace::{Available, OfUser, Reading, UserTrace, UserTraceError};
use super::{Budget, PhoneApps, QuantityError, Scenario, Step};
use crate::Cache;

/// The surroundings that a scenario defines.
#[derive(Default)]
pub(super) struct Surroundings {
    /// Memory budgets over the run.
    pub(super) budgets: Arc<Vec<Step>>,
    /// The changes of apps; `None` if the scenario does not define them.
    pub(super) apps: Option<Vec<AppChange>>,
    /// The memory that a phone in use leaves, from a recording.
    pub(super) recorded: Option<Arc<Available>>,
    /// The part of a user's trace that exists.
    pub(super) covered: Option<Covered>,
}

/// The part of a user's trace that a run can use.
#[derive(Clone, Debug, PartialEq)]
pub struct Covered {
    /// The user.
    pub user: String,
    /// The length from the start of the run on; after that the last values continue to apply.
    pub length: Nanos,
    /// Events of apps, and whether each is assumed; in order of time.
    pub(crate) events: Arc<Vec<Event>>,
    /// Whether the available memory was inferred.
    pub(crate) is_inferred: bool,
}

impl Covered {
    fn of(trace: &UserTrace) -> Self {
        let (events, is_inferred) = match &trace.holds {
            OfUser::Apps { events, .. } => (Arc::clone(events), false),
            OfUser::Available(available) => (Arc::default(), available.is_inferred),
        };
        Self { user: trace.user.clone(), length: trace.length, events, is_inferred }
    }

    /// The time between the end of the trace and the end of a run that took `ended`.
    pub fn held(&self, ended: Nanos) -> Nanos {
        ended.saturating_sub(self.length)
    }

    /// The fraction of app events until `ended` that are assumed; 1 if the available memory was inferred;
    /// `None` without events.
    pub fn assumed_share(&self, ended: Nanos) -> Option<f64> {
        if self.is_inferred {
            return Some(1.0);
        }
        let seen = &self.events[..self.events.partition_point(|event| event.at <= ended)];
        let assumed = seen.iter().filter(|event| event.is_assumed).count();
        (!seen.is_empty()).then(|| assumed as f64 / seen.len() as f64)
    }
}

impl Scenario {
    /// Reads the trace and the apps: memory budgets over the run, the changes of apps on the phone, or the memory
    /// of other processes.
    pub(super) fn read_surroundings(&self, cache: &Cache, notes: &mut Vec<String>) -> Result<Surroundings> {
        self.check_traced()?;
        let traced = self.read_trace(cache, notes)?;
        let refused = |key: Key, message: &str| Err(self.error(key, Fault::Refused(message.to_owned())));
        let names_apps = self.apps.as_ref().is_some_and(|apps| *apps != PhoneApps::None);
        if self.apps.is_some() && traced.apps.is_some() {
            return refused(Key::Apps, "the trace says what apps do already; leave one of the two out");
        }
        if names_apps && traced.covered.is_some() {
            return refused(Key::Apps, "the trace counts the memory of apps already; leave one of the two out");
        }
        if !self.budget_walls.memory.is_empty() && !traced.budgets.is_empty() {
            return refused(
                Key::BudgetWalls,
                "the trace has memory budgets over time already; leave one of the two out",
            );
        }
        if traced.apps.is_some() || !names_apps {
            return Ok(traced);
        }
        let named = self.named_apps(cache, notes)?;
        Ok(Surroundings { budgets: traced.budgets, ..named })
    }

    fn read_trace(&self, cache: &Cache, notes: &mut Vec<String>) -> Result<Surroundings> {
        let Some(named) = &self.trace else { return Ok(Surroundings::default()) };
        if !apps::is_table(named) {
            let origin = self.origins.get(&Key::Trace).cloned().unwrap_or_default();
            let budgets = cache.get(named.display().to_string(), || read_budgets(named, &origin))?;
            return Ok(Surroundings { budgets, ..Surroundings::default() });
        }
        self.read_table(Key::Trace, named, cache, notes)
    }

    /// Reads one user's part of the table that `key` names.
    fn read_table(&self, key: Key, named: &Path, cache: &Cache, notes: &mut Vec<String>) -> Result<Surroundings> {
        let (path, user) = apps::split(named);
        let from = self.trace_from.clone().unwrap_or(TraceFrom::After(Nanos::ZERO));
        let window = self.trace_window.unwrap_or(DAY);
        let models = self.models(cache)?;
        let (model, footprints) = models.as_ref();
        let reading = Reading { from: &from, window, seed: self.seed, footprints, model };
        let place = (named.display().to_string(), format!("{from} {window} {:?}", self.models_named()), self.seed);
        let read = cache.get(place, || UserTrace::read(&path, user.as_deref(), reading));
        let read = read.map_err(|error| match error {
            UserTraceError::Table(error) => self.error(key, Fault::Refused(error.to_string())),
            UserTraceError::From(why) => self.error(Key::TraceFrom, Fault::Refused(why)),
        })?;
        notes.push(format!("the trace is of {} and covers {} from {}", read.user, read.length, read.begins));
        let (covered, none) = (Some(Covered::of(&read)), Surroundings::default());
        Ok(match &read.holds {
            OfUser::Apps { changes, .. } => Surroundings { apps: Some(changes.clone()), covered, ..none },
            // Other processes on the phone have the rest of the memory.
            OfUser::Available(available) if self.system.is_some() => {
                Surroundings { recorded: Some(Arc::clone(available)), covered, ..none }
            }
            OfUser::Available(available) => {
                let step = |&(at, bytes): &(Nanos, Bytes)| Step { at, budget: Budget::Bytes(bytes) };
                Surroundings { budgets: Arc::new(available.steps.iter().map(step).collect()), covered, ..none }
            }
        })
    }

    /// The names of the usage model and of the table of footprints.
    fn models_named(&self) -> (Option<String>, Option<String>) {
        (self.usage.clone(), self.footprints.clone())
    }

    /// The usage model, and the memory footprints of apps.
    fn models(&self, cache: &Cache) -> Result<Arc<(UsageModel, FootprintTable)>> {
        cache.get(self.models_named(), || {
            let wrong = |key: Key| move |error: DataError| self.error(key, Fault::Refused(error.to_string()));
            let usage = self.usage.as_deref();
            let model = usage.map_or_else(UsageModel::built_in, UsageModel::load).map_err(wrong(Key::Usage))?;
            let footprints = self.footprints.as_deref();
            let footprints = footprints.map_or_else(FootprintTable::built_in, FootprintTable::load);
            Ok((model, footprints.map_err(wrong(Key::Footprints))?))
        })
    }

    /// Refuses keys about a user's trace if none is given.
    fn check_traced(&self) -> Result<()> {
        let is_table = |named: &PathBuf| apps::is_table(named);
        let has_table = self.trace.as_ref().is_some_and(is_table) || matches!(self.apps, Some(PhoneApps::Table(_)));
        let has_apps = has_table || matches!(self.apps, Some(PhoneApps::Synthetic { .. }));
        for (key, given, has, what) in [
            (Key::TraceFrom, self.trace_from.is_some(), has_table, "a trace of a user"),
            (Key::TraceWindow, self.trace_window.is_some(), has_table, "a trace of a user"),
            (Key::Footprints, self.footprints.is_some(), has_apps, "a trace of apps, or apps,"),
            (Key::Usage, self.usage.is_some(), has_apps, "a trace of apps, or apps,"),
        ] {
            if given && !has {
                let message = format!("it does nothing here; name {what} too (--trace FILE.parquet, --apps)");
                return Err(self.error(key, Fault::Refused(message)));
            }
        }
        Ok(())
    }

    /// The changes of the apps that are named in addition to the trace.
    fn named_apps(&self, cache: &Cache, notes: &mut Vec<String>) -> Result<Surroundings> {
        let refused = |message: String| self.error(Key::Apps, Fault::Refused(message));
        match &self.apps {
            None | Some(PhoneApps::None) => Ok(Surroundings::default()),
            Some(PhoneApps::Table(named)) => match self.read_table(Key::Apps, named, cache, notes)? {
                found if found.apps.is_some() => Ok(found),
                _ => Err(refused(format!("{} says nothing of apps", named.display()))),
            },
            Some(PhoneApps::Synthetic { user, from, length }) => {
                let models = self.models(cache)?;
                let (model, table) = models.as_ref();
                let made = cache.get((user.clone(), self.models_named(), self.seed, *from, *length), || {
                    let timeline = AppTimeline::generated(model, self.seed, user, *from, *length);
                    Ok::<_, ScenarioError>((app_changes(&timeline, table, model, self.seed), events(&timeline)))
                });
                let (changes, events) = made?.as_ref().clone();
                let covered = Some(Covered { user: user.clone(), length: *length, events, is_inferred: false });
                Ok(Surroundings { apps: Some(changes), covered, ..Surroundings::default() })
            }
        }
    }

    /// The phone in use under the operating system, if one is named.
    pub(super) fn phone(
        &self,
        cache: &Cache,
        device: &Device,
        machine: &Machine,
        in_use: &InUse,
    ) -> Result<Option<Arc<Phone>>> {
        let Some(system) = self.load_system(cache)? else {
            return match self.trainer_adj {
                Some(_) => {
                    let message = "the low-memory killer needs an operating system; name a system too";
                    Err(self.error(Key::TrainerAdj, Fault::Refused(message.to_owned())))
                }
                None => Ok(None),
            };
        };
        let phone = apps::phone(device, &system, machine.cores(), in_use, self.trainer_adj);
        phone.map(|phone| Some(Arc::new(phone))).map_err(|why| self.error(Key::System, Fault::Refused(why)))
    }
}

/// The header of a memory trace.
const HEADER: &str = "time_s,budget_bytes";

/// Reads the trace at `path`; `origin` is who named it.
///
/// # Errors
/// A file that cannot be read or is not a memory trace, with the line.
fn read_budgets(path: &Path, origin: &Origin) -> Result<Vec<Step>> {
    let refuse = |message: String| ScenarioError::new(origin.clone(), Key::Trace.name(), Fault::Refused(message));
    let bytes = std::fs::read(path).map_err(|error| refuse(format!("{} cannot be read: {error}", path.display())))?;
    let supported = || {
        let path = path.display();
        refuse(format!(
            "{path} is not a memory trace; expected a CSV file with the header {HEADER}, or a .parquet file of `trace import`"
        ))
    };
    let text = String::from_utf8(bytes).map_err(|_| supported())?;
    parse_budgets(&path.display().to_string(), &text)?.ok_or_else(supported)
}

/// The steps of a trace; `None` if the text is something else.
fn parse_budgets(file: &str, text: &str) -> Result<Option<Vec<Step>>> {
    // A line that begins with '#' is a comment.
    let is_row = |(_, line): &(usize, &str)| !line.is_empty() && !line.starts_with('#');
    let mut lines = (1..).zip(text.lines().map(str::trim)).filter(is_row);
    let header = lines.next().map(|(_, line)| line.trim_start_matches('\u{feff}').replace(' ', ""));
    if header.as_deref() != Some(HEADER) {
        return Ok(None);
    }
    let file: Arc<str> = file.into();
    let mut steps: Vec<Step> = Vec::new();
    for (line, row) in lines {
        let wrong = |field: &str, fault: Fault| {
            ScenarioError::new(Origin::File { file: Arc::clone(&file), line }, field, fault)
        };
        let Some((time, budget)) = row.split_once(',') else {
            return Err(wrong("", Fault::value(format!("two columns, {HEADER}"), format!("'{row}'"))));
        };
        let seconds = time.trim().parse::<f64>().ok().filter(|seconds| (0.0..1e9).contains(seconds));
        let at = seconds.map(Nanos::from_seconds).ok_or_else(|| {
            wrong("time_s", Fault::value("seconds from the start of the run", format!("'{}'", time.trim())))
        })?;
        if steps.last().is_some_and(|last| last.at >= at) {
            return Err(wrong("time_s", Fault::Refused("times must rise from row to row".to_owned())));
        }
        let budget = budget.trim().parse().map_err(|error: QuantityError| wrong("budget_bytes", error.into()))?;
        steps.push(Step { at, budget });
    }
    if steps.is_empty() {
        let fault = Fault::Refused(format!("the trace has no rows below its header {HEADER}"));
        return Err(ScenarioError::new(Origin::File { file, line: 0 }, "", fault));
    }
    Ok(Some(steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_steps_and_sizes_may_have_units() {
        let steps =
            parse_budgets("t.csv", "# a comment\ntime_s, budget_bytes\n0,1000\n\n0.5, 2MB\n1,30%\n").unwrap().unwrap();
        assert_eq!(steps.len(), 3);
        // Half a second is 5e8 ns, 2 MB are 2e6 B.
        assert_eq!(steps[1], Step { at: Nanos(500_000_000), budget: Budget::Bytes(Bytes(2_000_000)) });
        assert_eq!(steps[2].budget, Budget::Percent(30.0));
    }

    #[test]
    fn a_wrong_row_is_named() {
        let error = |text: &str| parse_budgets("t.csv", text).unwrap_err().to_string();
        assert!(error("time_s,budget_bytes\n0,1MB\n0,2MB\n").starts_with("t.csv:3: time_s: times must rise"));
        assert!(error("#\ntime_s,budget_bytes\n0,-1\n").starts_with("t.csv:3: budget_bytes: expected a size"));
        assert!(error("time_s,budget_bytes\n").contains("no rows"));
        assert!(parse_budgets("t.csv", "user,time_s\n").unwrap().is_none());
    }
}
