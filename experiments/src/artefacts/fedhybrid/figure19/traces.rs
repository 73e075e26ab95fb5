//! Phones in use: the apps of synthetic users, or of a trace's users, while the phone trains.

use std::path::PathBuf;

use haversack_traces::usage::{Population, Session, UsageModel};

use super::super::setting::STARTS;
use super::super::users;
use crate::artefacts::prelude::*;
use crate::scenario::{PhoneApps, TraceFrom};

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * SECOND;
/// The length of a run: two minutes in which a rule for the budget observes the phone, and five iterations, each of
/// which may take several times its undisturbed time.
pub(crate) const LENGTH: Nanos = Nanos(300 * SECOND);
/// A run of five rounds of ten iterations.
pub(crate) const ROUNDS: Nanos = Nanos(600 * SECOND);
/// The hours of training: phones are in use in the evening.
const EVENING: std::ops::Range<u64> = 18 * HOUR..23 * HOUR;
/// Users and days that are searched for such sessions.
const USERS: usize = 1000;
const DAYS: u64 = 7;

/// An interval of a user's evening.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    /// The user.
    pub(crate) user: String,
    /// Its apps.
    pub(crate) apps: PhoneApps,
}

impl Trace {
    /// The same interval from one of [`STARTS`] moments of a second; a table's users have one start.
    fn begun_at(&self, place: u64) -> Self {
        let PhoneApps::Synthetic { user, from, length } = &self.apps else { return self.clone() };
        let from = *from + Nanos(SECOND / STARTS * (place % STARTS));
        Self { user: user.clone(), apps: PhoneApps::Synthetic { user: user.clone(), from, length: *length } }
    }

    /// From all starts if `full`, otherwise unchanged.
    pub(crate) fn starts(&self, full: bool) -> Vec<Self> {
        (0..if full { STARTS } else { 1 }).map(|place| self.begun_at(place)).collect()
    }

    /// `scenario` with these apps; those of a table begin in the evening.
    pub(crate) fn on(&self, scenario: Scenario) -> Scenario {
        let of_table = matches!(self.apps, PhoneApps::Table(_));
        let trace_from = of_table.then_some(TraceFrom::Evening);
        Scenario { apps: Some(self.apps.clone()), trace_from, ..scenario }
    }
}

/// Whether a session of an evening lasts for a run of `length`.
fn lasts(session: &Session, length: Nanos) -> bool {
    EVENING.contains(&(session.start.0 % (24 * HOUR))) && session.length >= length
}

/// The users of the trace, at most `count`, each from its first evening on; without a trace synthetic
/// ones, for `length`.
///
/// # Errors
/// A trace without evenings; too few synthetic users.
pub(crate) fn traces(context: &Context<'_>, count: usize, length: Nanos) -> Result<Vec<Trace>> {
    let Some(path) = context.trace else { return synthetic(context.seed, count, length) };
    let users = users::with_evening(path, count)?;
    let apps = |user: &str| PhoneApps::Table(PathBuf::from(format!("{}#{user}", path.display())));
    Ok(users.into_iter().map(|user| Trace { apps: apps(&user), user }).collect())
}

/// `traces`, each with another start than the one before if `full`.
pub(crate) fn with_starts(traces: Vec<Trace>, full: bool) -> Vec<Trace> {
    (0..).zip(traces).map(|(place, trace)| if full { trace.begun_at(place) } else { trace }).collect()
}

/// The first session of each of the first `count` users that have one: it begins in the evening and lasts for `length`.
///
/// # Errors
/// Fewer such users.
pub(crate) fn synthetic(seed: u64, count: usize, length: Nanos) -> Result<Vec<Trace>> {
    let model = UsageModel::built_in()?;
    let users = Population::new(&model, USERS, DAYS, seed);
    let trace = |user: &String| {
        let from = users.sessions(user).find(|session| lasts(session, length))?.start;
        let apps = PhoneApps::Synthetic { user: user.clone(), from, length };
        Some(Trace { user: user.clone(), apps })
    };
    let found: Vec<Trace> = users.names().iter().filter_map(trace).take(count).collect();
    ensure!(found.len() == count, "{} of {USERS} users have such a session; {count} are needed", found.len());
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::cache::Cache;

    #[test]
    fn starts_lie_within_a_second_and_the_apps_are_the_same() {
        let trace = synthetic(0, 1, LENGTH).unwrap().remove(0);
        let from = |trace: &Trace| match trace.apps {
            PhoneApps::Synthetic { from, .. } => from,
            _ => panic!("a synthetic user's apps"),
        };
        let starts = trace.starts(true);
        // A sixteenth of a second is 62.5 ms.
        let after: Vec<u64> = starts.iter().map(|start| (from(start) - from(&trace)).0).collect();
        assert_eq!((after.len(), after[0], after[1], after[15]), (16, 0, 62_500_000, 937_500_000));
        assert!(starts.iter().all(|start| start.user == trace.user));
        assert_eq!(trace.starts(false).iter().map(from).collect::<Vec<_>>(), [from(&trace)]);
        let table = Trace { apps: PhoneApps::Table("users.parquet".into()), ..trace.clone() };
        assert_eq!(table.begun_at(3).apps, table.apps);
        let [plain, full] = [false, true].map(|full| with_starts(vec![trace.clone(); 18], full));
        assert!(plain.iter().all(|one| one.apps == trace.apps));
        assert_eq!((from(&full[1]), &full[16].apps), (from(&starts[1]), &trace.apps));
    }

    #[test]
    fn one_app_is_in_front_from_the_beginning_to_the_end() {
        for trace in synthetic(0, 3, LENGTH).unwrap() {
            let scenario = Scenario { apps: Some(trace.apps), ..Scenario::new("galaxy-s22", "lenet5") };
            let phone = scenario.resolve_in(&Cache::new()).unwrap().phone.unwrap();
            let apps = &phone.apps;
            assert!(apps.is_sorted_by_key(|change| change.at) && apps.iter().all(|change| change.at < LENGTH));
            let mut scores = HashMap::new();
            // Changes at the same moment belong together: an app leaves the foreground when another comes.
            for moment in apps.chunk_by(|a, b| a.at == b.at) {
                for change in moment {
                    match change.state {
                        Some(state) => drop(scores.insert(change.app.clone(), state.adj)),
                        None => drop(scores.remove(&change.app)),
                    }
                }
                let in_front = scores.values().filter(|adj| **adj <= 0).count();
                assert_eq!(in_front, 1, "{} at {}", trace.user, moment[0].at);
            }
            // Three to five apps in the background, one fewer or more during a session, and the launcher.
            assert!((3..=8).contains(&scores.len()), "{}: {scores:?}", trace.user);
        }
    }
}
