//! `haversack trace stats`: what a table of traces holds, in bounded memory.

use std::collections::BTreeMap;
use std::path::Path;

use haversack_devices::units::Nanos;
use haversack_traces::import::{Coverage, Gaps, Order, Tracker};
use haversack_traces::row::{AppRow, CounterRow, UtcTime};
use haversack_traces::state::Availability;
use haversack_traces::usage::{SessionReader, UsageModel, is_sampled};
use serde_json::{Value, json};

use super::options::StatsOptions;
use super::sessions::Sessions;
use super::stats_text;
use crate::error::CommandError;
use crate::output::{Format, print, print_json, warn};
use crate::trace_table::{Holds, Reader};

/// Prints the statistics of a table.
///
/// # Errors
/// A file that cannot be read, or is no table of traces.
pub(super) fn stats(asked: &StatsOptions) -> Result<(), CommandError> {
    let (path, pause) = (asked.file.as_path(), asked.pause()?);
    let reader = Reader::open(path)?;
    let stats = match reader.holds {
        Holds::Apps => of_apps(&reader, pause)?,
        Holds::Counters => of_counters(&reader)?,
    };
    match asked.format {
        Format::Text => print(&stats_text::text(path, &stats)),
        Format::Json => print_json(&stats.to_json(path)),
    }
}

/// What a table holds.
pub(super) struct Stats {
    pub(super) rows: u64,
    pub(super) samples: u64,
    pub(super) reversals: u64,
    pub(super) users: Vec<Coverage>,
    pub(super) gaps: Gaps,
    pub(super) of: Of,
}

/// What either table holds beside.
pub(super) enum Of {
    Apps(Box<AppStats>),
    Counters(BTreeMap<String, Spread>, Option<Availability>),
}

/// What a table of apps holds.
#[derive(Default)]
pub(super) struct AppStats {
    pub(super) sources: BTreeMap<&'static str, u64>,
    pub(super) confidences: BTreeMap<&'static str, u64>,
    /// Rows by `oom_score_adj`.
    pub(super) adjs: BTreeMap<i16, u64>,
    /// Processes of a sample, of the sources that have samples.
    pub(super) processes: Distribution,
    /// Of these, those in front.
    pub(super) in_front: Distribution,
    /// And those that run for nobody who would notice.
    pub(super) background: Distribution,
    /// Sessions; `None` if the table has no events.
    pub(super) sessions: Option<Sessions>,
}

/// How often each of some small whole numbers came.
#[derive(Clone, Debug, Default)]
pub(super) struct Distribution(BTreeMap<u64, u64>);

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

    /// The least number that at least this share of all is not above; nothing of nothing.
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
pub(super) struct Spread {
    pub(super) count: u64,
    pub(super) sum: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Spread {
    pub(super) fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }
}

/// Samples in order: what the tables have in common.
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
    /// Takes note of a row; says whether a sample begins with it.
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

    fn finish(self, of: Of) -> Stats {
        let Self { rows, samples, reversals, users, gaps, .. } = self;
        Stats { rows, samples, reversals, users: users.coverage(), gaps, of }
    }
}

/// The processes of the present sample: all, in front, behind.
#[derive(Default)]
struct Present {
    all: u64,
    in_front: u64,
    background: u64,
}

impl Present {
    fn close(self, stats: &mut AppStats) {
        if self.all > 0 {
            stats.processes.add(self.all);
            stats.in_front.add(self.in_front);
            stats.background.add(self.background);
        }
    }
}

fn of_apps(reader: &Reader, pause: Nanos) -> Result<Stats, CommandError> {
    let (mut samples, mut stats, mut present) = (Samples::default(), AppStats::default(), Present::default());
    let mut sessions: Option<SessionReader> = None;
    let mut see = |row: AppRow<'_>| {
        if samples.see(row.user, row.time) {
            std::mem::take(&mut present).close(&mut stats);
        }
        *stats.sources.entry(row.source.word()).or_default() += 1;
        *stats.confidences.entry(row.confidence.word()).or_default() += 1;
        *stats.adjs.entry(row.adj.0).or_default() += 1;
        if is_sampled(row.source) {
            present.all += 1;
            present.in_front += u64::from(row.adj.is_foreground());
            present.background += u64::from(row.adj.is_background());
        } else {
            sessions.get_or_insert_default().push(&row);
        }
    };
    for group in reader.groups() {
        reader.apps(&group?, &mut see)?;
    }
    present.close(&mut stats);
    if let Some(sessions) = sessions {
        let sessions = Sessions::new(sessions.finish(), pause);
        if sessions.is_interrupted() {
            warn(&"the rows of some users are not in one piece, which cuts their sessions");
        }
        stats.sessions = Some(sessions);
    }
    Ok(samples.finish(Of::Apps(Box::new(stats))))
}

fn of_counters(reader: &Reader) -> Result<Stats, CommandError> {
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
            "file": path.display().to_string(),
            "rows": self.rows,
            "samples": self.samples,
            "time_reversals": self.reversals,
            "gaps": self.gaps,
            "users": self.users,
        });
        let more = match &self.of {
            Of::Apps(apps) => json!({
                "sources": apps.sources,
                "confidence": apps.confidences,
                "priorities": apps.adjs.iter().map(|(adj, rows)| json!({ "adj": adj, "rows": rows })).collect::<Vec<_>>(),
                "processes_a_sample": apps.processes.to_json(),
                "in_front_a_sample": apps.in_front.to_json(),
                "background_a_sample": apps.background.to_json(),
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
        if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
            value.extend(more);
        }
        value
    }
}
