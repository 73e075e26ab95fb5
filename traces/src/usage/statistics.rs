//! Statistics of sessions: how long users look at their phones, and how many apps are in the background.

use std::collections::HashMap;

use haversack_devices::{Count, Fraction, Nanos};

use super::session::Session;
use super::timeline::{is_sampled, since};
use crate::{AppRow, OomAdj, Source, UtcTime};

/// A session without a row for this long is assumed to have ended with its last row.
const SILENCE: Nanos = Nanos(3600 * 1_000_000_000);

/// The sessions of one user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserSessions {
    /// The user.
    pub user: String,
    /// The sessions, in order of time; `start` counts from the user's first row.
    pub sessions: Vec<Session>,
    /// The time from the first row to the last.
    pub covered: Nanos,
}

impl UserSessions {
    /// The mean length; zero without sessions.
    pub fn mean(&self) -> Nanos {
        Nanos::from_seconds(self.mean_s())
    }

    /// The standard deviation of the lengths, over all sessions; zero with fewer than two.
    pub fn deviation(&self) -> Nanos {
        let mean = self.mean_s();
        let squares: f64 = self.sessions.iter().map(|session| (session.length.seconds() - mean).powi(2)).sum();
        Nanos::from_seconds((squares / self.sessions.len().max(1) as f64).sqrt())
    }

    /// The mean number of sessions a day.
    pub fn per_day(&self) -> Count {
        let days = self.covered.seconds() / 86_400.0;
        Count(if days > 0.0 { self.sessions.len() as f64 / days } else { 0.0 })
    }

    /// The mean number of apps in the background.
    pub fn background(&self) -> Count {
        let sum: usize = self.sessions.iter().map(|session| session.background).sum();
        Count(sum as f64 / self.sessions.len().max(1) as f64)
    }

    fn mean_s(&self) -> f64 {
        let sum: f64 = self.sessions.iter().map(|session| session.length.seconds()).sum();
        sum / self.sessions.len().max(1) as f64
    }
}

/// The sessions of some users.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionStatistics {
    /// The users, in the order of their rows.
    pub users: Vec<UserSessions>,
    /// Rows that are sparse samples and contain no information on sessions.
    pub sampled_rows: u64,
    /// Sessions without a recorded end, which were ended with their last row.
    pub cut: u64,
}

impl SessionStatistics {
    /// The number of sessions.
    pub fn count(&self) -> usize {
        self.users.iter().map(|user| user.sessions.len()).sum()
    }

    /// The fraction of users with sessions whose mean session is within `tolerance` (relative) of `mean`.
    pub fn users_near(&self, mean: Nanos, tolerance: Fraction) -> Fraction {
        let near = |user: &&UserSessions| (user.mean_s() - mean.seconds()).abs() <= tolerance.0 * mean.seconds();
        let with = || self.users.iter().filter(|user| !user.sessions.is_empty());
        share(with().filter(near).count(), with().count())
    }

    /// The share of all sessions that last from `low` to `high`, both included.
    pub fn sessions_within(&self, low: Nanos, high: Nanos) -> Fraction {
        let all = || self.users.iter().flat_map(|user| &user.sessions);
        share(all().filter(|session| (low..=high).contains(&session.length)).count(), all().count())
    }
}

fn share(some: usize, all: usize) -> Fraction {
    Fraction(some as f64 / all.max(1) as f64)
}

/// The sessions in `rows`, as found by [`SessionReader`].
pub fn sessions<'r>(rows: impl IntoIterator<Item = AppRow<'r>>) -> SessionStatistics {
    let mut reader = SessionReader::default();
    rows.into_iter().for_each(|row| reader.push(&row));
    reader.finish()
}

/// Finds sessions in rows that are sorted by user, then time, as the generator writes them; keeps no row.
///
/// A session lasts from the first process at adj 0 until no process is. `background` is the number of other apps that
/// were alive when the last app left the front: those with the adj of a perceptible app or above, except the launcher
/// (600), services (500, 800) and ended ones (999). LSApp does not record processes in the background; its apps count
/// as alive once seen.
#[derive(Default)]
pub struct SessionReader {
    statistics: SessionStatistics,
    phone: Option<Phone>,
}

impl SessionReader {
    /// Reads the next row.
    pub fn push(&mut self, row: &AppRow<'_>) {
        if is_sampled(row.source) {
            self.statistics.sampled_rows += 1;
            return;
        }
        if self.phone.as_ref().is_none_or(|phone| phone.user != row.user) {
            if let Some(done) = self.phone.take() {
                done.finish(&mut self.statistics);
            }
            self.phone = Some(Phone::new(row));
        }
        if let Some(phone) = &mut self.phone {
            phone.see(row, &mut self.statistics);
        }
    }

    /// The statistics; a session that is still open ends with its last row.
    pub fn finish(mut self) -> SessionStatistics {
        if let Some(done) = self.phone.take() {
            done.finish(&mut self.statistics);
        }
        self.statistics
    }
}

/// The apps on a user's phone, as known from the rows.
struct Phone {
    user: String,
    first: UtcTime,
    /// The time of the rows that are being read; states within this time do not count.
    now: UtcTime,
    adj: HashMap<String, OomAdj>,
    /// The beginning of the session, and the number of background apps when an app was last seen in front.
    open: Option<(UtcTime, usize)>,
    sessions: Vec<Session>,
}

impl Phone {
    fn new(row: &AppRow<'_>) -> Self {
        Self {
            user: row.user.to_owned(),
            first: row.time,
            now: row.time,
            adj: HashMap::new(),
            open: None,
            sessions: Vec::new(),
        }
    }

    fn see(&mut self, row: &AppRow<'_>, statistics: &mut SessionStatistics) {
        if row.time > self.now {
            self.settle(self.now);
            if self.open.is_some() && since(self.now, row.time) > SILENCE {
                statistics.cut += 1;
                self.adj.retain(|_, adj| !adj.is_foreground());
                self.settle(self.now);
            }
            self.now = row.time;
        }
        let ended = row.source == Source::LmkdKill || row.adj >= OomAdj::CACHED_APP_MAX;
        if row.source == Source::Lsapp && row.adj.is_foreground() {
            // The app that was in front is not any more.
            self.adj.values_mut().filter(|adj| adj.is_foreground()).for_each(|adj| *adj = OomAdj::PREVIOUS_APP);
        }
        match self.adj.get_mut(row.package) {
            Some(_) if ended => drop(self.adj.remove(row.package)),
            Some(adj) => *adj = row.adj,
            None if ended => {}
            None => drop(self.adj.insert(row.package.to_owned(), row.adj)),
        }
    }

    /// Takes the state after the rows of `time` into account.
    fn settle(&mut self, time: UtcTime) {
        let in_front = self.adj.values().any(|adj| adj.is_foreground());
        match (in_front, self.open) {
            (true, open) => {
                let behind = |adj: &OomAdj| {
                    *adj >= OomAdj::PERCEPTIBLE_APP
                        && ![OomAdj::HOME_APP, OomAdj::SERVICE, OomAdj::SERVICE_B].contains(adj)
                };
                let behind = self.adj.values().filter(|adj| behind(adj)).count();
                self.open = Some((open.map_or(time, |(start, _)| start), behind));
            }
            (false, Some((start, background))) => {
                let session = Session { start: since(self.first, start), length: since(start, time), background };
                self.sessions.push(session);
                self.open = None;
            }
            (false, None) => {}
        }
    }

    fn finish(mut self, statistics: &mut SessionStatistics) {
        self.settle(self.now);
        if self.open.is_some() {
            statistics.cut += 1;
            self.adj.clear();
            self.settle(self.now);
        }
        let covered = since(self.first, self.now);
        statistics.users.push(UserSessions { user: self.user, sessions: self.sessions, covered });
    }
}
