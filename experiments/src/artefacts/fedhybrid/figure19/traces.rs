//! Phones in use: what the apps of synthetic users, or of a trace's, do while the phone trains.

use std::path::PathBuf;

use haversack_traces::usage::{Population, Session, UsageModel};

use super::super::real_users;
use crate::artefacts::prelude::*;
use crate::scenario::{PhoneApps, TraceFrom};

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * SECOND;
/// A run: the two minutes in which a rule for the budget watches the phone, and five iterations of which each may take
/// several times as long as it does undisturbed.
pub(crate) const LENGTH: Nanos = Nanos(300 * SECOND);
/// A run of five rounds of ten iterations.
pub(crate) const ROUNDS: Nanos = Nanos(600 * SECOND);
/// When training is looked at: in the evening phones are in use.
const EVENING: std::ops::Range<u64> = 18 * HOUR..23 * HOUR;
/// Users and days among which such sessions are looked for.
const USERS: usize = 1000;
const DAYS: u64 = 7;

/// A stretch of a user's evening.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    /// Whose.
    pub(crate) user: String,
    /// What the apps do in it.
    pub(crate) apps: PhoneApps,
}

impl Trace {
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

/// The users of the trace, at most `count`, each from its first evening on; or else synthetic ones, for `length`.
///
/// # Errors
/// A trace without evenings; too few synthetic users.
pub(crate) fn traces(context: &Context<'_>, count: usize, length: Nanos) -> Result<Vec<Trace>> {
    let Some(path) = context.trace else { return synthetic(context.seed, count, length) };
    let users = real_users::with_evening(path, count)?;
    let apps = |user: &str| PhoneApps::Table(PathBuf::from(format!("{}#{user}", path.display())));
    Ok(users.into_iter().map(|user| Trace { apps: apps(&user), user }).collect())
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
    ensure!(found.len() == count, "{} of {USERS} users have such a session, of {count} asked for", found.len());
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn one_app_is_in_front_from_the_beginning_to_the_end() {
        for trace in synthetic(0, 3, LENGTH).unwrap() {
            let scenario = Scenario { apps: Some(trace.apps), ..Scenario::new("galaxy-s22", "lenet5") };
            let phone = scenario.resolve().unwrap().phone.unwrap();
            let apps = &phone.apps;
            assert!(apps.is_sorted_by_key(|change| change.at) && apps.iter().all(|change| change.at < LENGTH));
            let mut scores = HashMap::new();
            // Changes of one moment belong together: an app leaves the front when another comes.
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
            // Three to five behind the one in front, one fewer or more in a session, and the launcher.
            assert!((3..=8).contains(&scores.len()), "{}: {scores:?}", trace.user);
        }
    }
}
