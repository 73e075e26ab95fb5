//! `haversack trace stats`: a summary of a table of traces, in bounded memory.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use haversack_devices::{Fraction, Nanos};
use haversack_traces::import::{Coverage, Gaps, Order, Tracker};
use haversack_traces::state::Availability;
use haversack_traces::usage::{Session, SessionReader, SessionStatistics, UserSessions, is_sampled};
use haversack_traces::{AppRow, CounterRow, UsageModel, UtcTime};
use serde_json::{Value, json};

use super::options::{self, StatsOptions};
use crate::output::{join, warn};
use crate::texts::text;
use crate::trace_table::{Holds, Reader};
use crate::{CommandError, Result};

/// Prints the statistics of a table.
///
/// # Errors
/// A file that cannot be read, or does not contain a table of traces.
pub(super) fn stats(asked: &StatsOptions) -> Result<()> {
    let (path, pause) = (asked.file.as_path(), options::seconds("--pause", asked.pause, 0.0..=86_400.0)?);
    let reader = Reader::open(path)?;
    let stats = match reader.holds {
        Holds::Apps => of_apps(&reader, pause)?,
        Holds::Counters => of_counters(&reader)?,
    };
    let answer = stats.to_json(path);
    asked.format.print(|| text(include_str!("../../texts/trace-stats.txt"), &answer), || answer.clone())
}

/// The statistics of a table.
struct Stats {
    samples: Samples,
    users: Vec<Coverage>,
    of: Of,
}

/// The statistics that depend on the kind of table.
enum Of {
    Apps(Box<AppStats>),
    Counters(BTreeMap<String, Spread>, Option<Availability>),
}

/// The statistics of a table of apps.
#[derive(Default)]
struct AppStats {
    sources: BTreeMap<&'static str, u64>,
    confidences: BTreeMap<&'static str, u64>,
    /// Rows by `oom_score_adj`.
    adjs: BTreeMap<i16, u64>,
    /// Processes per sample, for sources with samples: all, those in the foreground, and those in the background.
    of_sample: [Distribution; 3],
    /// Sessions; `None` if the table has no events.
    sessions: Option<Sessions>,
}

/// The frequencies of small whole numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Distribution(BTreeMap<u64, u64>);

impl FromIterator<u64> for Distribution {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Self {
        let mut all = Self::default();
        numbers.into_iter().for_each(|number| all.add(number));
        all
    }
}

impl Distribution {
    pub(super) fn add(&mut self, number: u64) {
        *self.0.entry(number).or_default() += 1;
    }

    pub(super) fn count(&self) -> u64 {
        self.0.values().sum()
    }

    pub(super) fn mean(&self) -> f64 {
        let sum: f64 = self.0.iter().map(|(number, count)| *number as f64 * *count as f64).sum();
        sum / self.count().max(1) as f64
    }

    /// The smallest number for which at least this fraction of all are not larger; `None` if there are none.
    pub(super) fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = (share * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        self.0.iter().find_map(|(number, count)| {
            seen += count;
            (seen >= wanted).then_some(*number)
        })
    }

    pub(super) fn to_json(&self) -> Value {
        let at = |share: f64| self.quantile(share);
        json!({
            "count": self.count(), "mean": self.mean(), "min": at(0.0), "p25": at(0.25), "median": at(0.5), "p75": at(0.75),
            "p90": at(0.9), "max": at(1.0),
        })
    }
}

/// The values of a counter.
#[derive(Clone, Copy, Debug)]
struct Spread {
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
}

impl Spread {
    pub(super) fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }
}

/// Samples in order: statistics that both kinds of tables have.
#[derive(Default)]
struct Samples {
    rows: u64,
    samples: u64,
    reversals: u64,
    users: Tracker,
    gaps: Gaps,
    /// The user and the time of the row before.
    recent: Option<(String, UtcTime)>,
}

impl Samples {
    /// Counts a row; returns whether a sample begins with it.
    fn see(&mut self, user: &str, time: UtcTime) -> bool {
        self.rows += 1;
        if self.recent.as_ref().is_some_and(|(recent, at)| *at == time && recent == user) {
            return false;
        }
        match &mut self.recent {
            Some((recent, at)) if recent == user => *at = time,
            recent => *recent = Some((user.to_owned(), time)),
        }
        match self.users.see(user, time, 0) {
            Order::Later { gap } => self.gaps.add(gap),
            Order::Earlier { .. } => self.reversals += 1,
            _ => {}
        }
        self.samples += 1;
        true
    }

    fn finish(mut self, of: Of) -> Stats {
        Stats { users: std::mem::take(&mut self.users).coverage(), samples: self, of }
    }
}

fn of_apps(reader: &Reader, pause: Nanos) -> Result<Stats> {
    let (mut samples, mut stats) = (Samples::default(), AppStats::default());
    // Counts of the present sample, as in [`AppStats::of_sample`].
    let mut present = [0; 3];
    let close = |present: &mut [u64; 3], stats: &mut AppStats| {
        let present = std::mem::take(present);
        if present[0] > 0 {
            stats.of_sample.iter_mut().zip(present).for_each(|(distribution, number)| distribution.add(number));
        }
    };
    let mut sessions: Option<SessionReader> = None;
    let mut see = |row: AppRow<'_>| {
        if samples.see(row.user, row.time) {
            close(&mut present, &mut stats);
        }
        *stats.sources.entry(row.source.word()).or_default() += 1;
        *stats.confidences.entry(row.confidence.word()).or_default() += 1;
        *stats.adjs.entry(row.adj.0).or_default() += 1;
        if is_sampled(row.source) {
            let seen = [true, row.adj.is_foreground(), row.adj.is_background()];
            present.iter_mut().zip(seen).for_each(|(number, seen)| *number += u64::from(seen));
        } else {
            sessions.get_or_insert_default().push(&row);
        }
    };
    for group in reader.groups() {
        reader.apps(&group?, &mut see)?;
    }
    close(&mut present, &mut stats);
    if let Some(sessions) = sessions {
        let sessions = Sessions::new(sessions.finish(), pause);
        let mut names = HashSet::new();
        if sessions.statistics.users.iter().any(|user| !names.insert(&user.user)) {
            warn(&"the rows of some users are not in one piece, which cuts their sessions");
        }
        stats.sessions = Some(sessions);
    }
    Ok(samples.finish(Of::Apps(Box::new(stats))))
}

fn of_counters(reader: &Reader) -> Result<Stats> {
    let (mut samples, mut counters) = (Samples::default(), BTreeMap::<String, Spread>::new());
    let model = UsageModel::built_in().map_err(CommandError::failed)?;
    let mut availability = Availability::new(model.interpolation.horizon.value);
    let mut see = |row: CounterRow<'_>| {
        samples.see(row.user, row.time);
        availability.see(&row);
        match counters.get_mut(row.counter) {
            Some(spread) => {
                spread.count += 1;
                spread.sum += row.value;
                spread.min = spread.min.min(row.value);
                spread.max = spread.max.max(row.value);
            }
            None => {
                let spread = Spread { count: 1, sum: row.value, min: row.value, max: row.value };
                counters.insert(row.counter.to_owned(), spread);
            }
        }
    };
    for group in reader.groups() {
        reader.counters(&group?, &mut see)?;
    }
    availability.finish();
    let known = Some(availability).filter(|availability| availability.covered > Nanos::ZERO);
    Ok(samples.finish(Of::Counters(counters, known)))
}

impl Stats {
    fn to_json(&self, path: &Path) -> Value {
        let mut value = json!({
            "file": path.display().to_string(), "rows": self.samples.rows, "samples": self.samples.samples,
            "time_reversals": self.samples.reversals, "gaps": self.samples.gaps, "users": self.users,
        });
        let more = match &self.of {
            Of::Apps(apps) => json!({
                "sources": apps.sources,
                "confidence": apps.confidences,
                "priorities": apps.adjs.iter().map(|(adj, rows)| json!({ "adj": adj, "rows": rows })).collect::<Vec<_>>(),
                "processes_a_sample": apps.of_sample[0].to_json(),
                "in_front_a_sample": apps.of_sample[1].to_json(),
                "background_a_sample": apps.of_sample[2].to_json(),
                "sessions": apps.sessions.as_ref().map(Sessions::to_json),
            }),
            Of::Counters(counters, availability) => {
                let counters = counters.iter().map(|(name, spread)| {
                    let Spread { count, min, max, .. } = *spread;
                    json!({ "counter": name, "rows": count, "min": min, "mean": spread.mean(), "max": max })
                });
                let availability = availability.as_ref().map(|known| {
                    json!({
                        "covered_s": known.covered.seconds(),
                        "available_s": known.available.seconds(),
                        "available_share": known.available.seconds() / known.covered.seconds(),
                        "stretches": known.stretches,
                    })
                });
                json!({ "counters": counters.collect::<Vec<_>>(), "availability": availability })
            }
        };
        join(&mut value, more);
        value
    }
}

/// Upper bounds of the bins of session lengths, in seconds.
const BOUNDS: [u64; 8] = [15, 30, 60, 120, 240, 480, 960, 1920];
/// Sessions that FedHybrid calls typical (section 3, figure 11), in seconds.
const TYPICAL: (u64, u64) = (126, 412);
/// The mean session of most of FedHybrid's users (section 3, figure 11), in seconds, and the relative
/// tolerance for a user's.
const USUAL_MEAN: (u64, Fraction) = (153, Fraction(0.1));

/// The sessions of a table.
pub(super) struct Sessions {
    pub(super) pause: Nanos,
    pub(super) statistics: SessionStatistics,
    /// The lengths in whole seconds.
    pub(super) lengths: Distribution,
    /// The number of background apps.
    pub(super) background: Distribution,
}

impl Sessions {
    /// The sessions of `statistics`, joined across pauses shorter than `pause`.
    pub(super) fn new(mut statistics: SessionStatistics, pause: Nanos) -> Self {
        let (mut lengths, mut background) = (Distribution::default(), Distribution::default());
        for user in &mut statistics.users {
            user.sessions = joined(&user.sessions, pause);
            for session in &user.sessions {
                lengths.add(session.length.seconds().round() as u64);
                background.add(session.background as u64);
            }
        }
        Self { pause, statistics, lengths, background }
    }

    /// The lengths in bins: the name of the bin, and the number of sessions.
    pub(super) fn bins(&self) -> Vec<(String, u64)> {
        let mut bins: Vec<(String, u64)> = BOUNDS.iter().map(|bound| (format!("under {bound} s"), 0)).collect();
        bins.push((format!("{} s and more", BOUNDS.last().copied().unwrap_or_default()), 0));
        for session in self.statistics.users.iter().flat_map(|user| &user.sessions) {
            let place = BOUNDS.iter().position(|bound| session.length < seconds(*bound)).unwrap_or(BOUNDS.len());
            if let Some((_, count)) = bins.get_mut(place) {
                *count += 1;
            }
        }
        bins
    }

    /// The mean length, in seconds.
    pub(super) fn mean_s(&self) -> f64 {
        let all = self.statistics.users.iter().flat_map(|user| &user.sessions);
        all.map(|session| session.length.seconds()).sum::<f64>() / self.statistics.count().max(1) as f64
    }

    pub(super) fn to_json(&self) -> Value {
        let mut lengths = self.lengths.to_json();
        lengths["mean"] = json!(self.mean_s());
        json!({
            "pause_s": self.pause.seconds(), "count": self.statistics.count(), "cut": self.statistics.cut, "length_s": lengths,
            "lengths": self.bins().into_iter().map(|(name, count)| (name, json!(count))).collect::<serde_json::Map<String, Value>>(),
            "share_of_sessions_from_126_to_412_s": self.statistics.sessions_within(seconds(TYPICAL.0), seconds(TYPICAL.1)).0,
            "share_of_users_with_mean_of_153_s_within_10_percent":
                self.statistics.users_near(seconds(USUAL_MEAN.0), USUAL_MEAN.1).0,
            "background": self.background.to_json(),
            "users": self.statistics.users.iter().map(user_json).collect::<Vec<_>>(),
        })
    }
}

fn user_json(user: &UserSessions) -> Value {
    json!({
        "user": user.user, "sessions": user.sessions.len(), "mean_s": user.mean().seconds(),
        "deviation_s": user.deviation().seconds(), "sessions_a_day": user.per_day().0, "background": user.background().0,
    })
}

const fn seconds(seconds: u64) -> Nanos {
    Nanos(seconds * 1_000_000_000)
}

/// The sessions, with those less than `pause` apart joined; a joined session has the background apps of its last part.
fn joined(sessions: &[Session], pause: Nanos) -> Vec<Session> {
    let mut joined: Vec<Session> = Vec::with_capacity(sessions.len());
    for session in sessions {
        match joined.last_mut() {
            Some(before) if session.start.saturating_sub(before.end()) < pause => {
                before.length = session.end().saturating_sub(before.start).max(before.length);
                before.background = session.background;
            }
            _ => joined.push(*session),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_pauses_do_not_end_a_session() {
        let session =
            |start, length, background| Session { start: seconds(start), length: seconds(length), background };
        let sessions = [session(0, 10, 3), session(15, 5, 4), session(30, 7, 1)];
        // From 10 to 15 are 5 s, from 20 to 30 are 10 s: under a pause of 10 s the first two are one of 20 s.
        assert_eq!(joined(&sessions, seconds(10)), [session(0, 20, 4), session(30, 7, 1)]);
        assert_eq!(joined(&sessions, seconds(11)), [session(0, 37, 1)]);
        assert_eq!(joined(&sessions, Nanos::ZERO), sessions);
    }
}
