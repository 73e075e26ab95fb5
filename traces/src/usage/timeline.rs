//! The input of a phone simulation for one user: the apps that start, come to the front, leave it and end
//! within a window.

use std::sync::Arc;

use haversack_devices::Nanos;
use indexmap::IndexSet;

use super::alive::{AliveApp, AppEvent, AppEventKind, AppId, AppSet, LAUNCHER, apply};
use super::generate::{Candidate, Player};
use super::generate::{UserEvents, days_until};
use super::model::UsageModel;
use super::session::User;
use super::session::{Session, SessionStream};
use crate::words::WORDS;
use crate::{AppRow, Confidence, OomAdj, Source, UtcOffset, UtcTime};

/// A stretch of a user's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// When it begins.
    pub start: UtcTime,
    /// How long it is.
    pub length: Nanos,
    /// The offset of the user's clock from UTC: days begin at its midnight.
    pub offset: UtcOffset,
}

/// The apps of one user within a window of time.
///
/// The number of apps alive is that of the usage model (for imported rows, of the trace). A simulation of memory may
/// end one earlier, and then treats the app's next [`AppEventKind::ToForeground`] as a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct AppTimeline {
    /// The user.
    pub user: String,
    /// The beginning of the window; times of events count from here.
    pub start: UtcTime,
    /// The length of the window.
    pub length: Nanos,
    /// The packages by [`AppId`].
    pub packages: Vec<Arc<str>>,
    /// The apps that are alive at the beginning, before any event.
    pub initial: Vec<AliveApp>,
    /// The events, in order of time; those at the same time in order of cause.
    pub events: Vec<AppEvent>,
}

impl AppTimeline {
    /// The window of `length` that begins `from` after the beginning of the synthetic user `name`.
    pub fn generated(model: &UsageModel, seed: u64, name: &str, from: Nanos, length: Nanos) -> Self {
        let end = Nanos(from.0.saturating_add(length.0));
        let events = UserEvents::new(model, seed, name, days_until(end));
        let packages = events.packages.iter().map(|&package| Arc::from(package)).collect();
        let start = UtcTime(i64::try_from(from.0).unwrap_or(i64::MAX));
        let window = Self::empty(name, start, length, packages);
        window.filled(from, events.map(|(_, event)| event))
    }

    /// A `window` from the rows of `user` among `rows`, in any order.
    ///
    /// - *Changes* (`generated`, `perfetto`, `lmkd-kill`) are used unchanged; a kill, and 999 of a generated
    ///   user, end a process.
    /// - *LSApp* records when an app is opened and closed: as many apps stay in the background as the usage model keeps
    ///   for the user `user`.
    /// - *Samples* (`carat-…`, `tsinghua`) do not record when anything happened: see "Between samples" in
    ///   [`crate::usage`]. All events are assumed. `opened` decides whether a user opens a package; [`seems_opened`] if
    ///   nothing is known.
    ///
    /// If there are samples, other rows are ignored: the whole timeline is interpolated. Without rows the
    /// timeline is empty.
    pub fn from_rows<'r>(
        model: &UsageModel,
        seed: u64,
        rows: impl IntoIterator<Item = AppRow<'r>>,
        user: &str,
        window: Window,
        opened: impl Fn(&str) -> bool,
    ) -> Self {
        let Window { start, length, .. } = window;
        let mut rows: Vec<AppRow<'r>> = rows.into_iter().filter(|row| row.user == user).collect();
        rows.sort_by_key(|row| row.time);
        if rows.iter().any(|row| is_sampled(row.source)) {
            rows.retain(|row| is_sampled(row.source));
            return interpolate(model, seed, &rows, user, window, opened);
        }
        let first = rows.first().map_or(start, |row| row.time).min(start);
        let mut names = Names::new(&model.launcher.package);
        let keep = User::new(model, seed, user).background + 1;
        let mut events = Vec::new();
        let mut set = AppSet::new(None, Confidence::Assumed);
        for row in &rows {
            let (app, time) = (names.id(row.package), since(first, row.time));
            if row.source == Source::Lsapp {
                show_or_leave(&mut set, time, app, row.adj, keep, &mut events);
            } else {
                change(&mut set, time, app, row, &mut events);
            }
        }
        let window = Self::empty(user, start, length, names.packages());
        window.filled(since(first, start), events.into_iter())
    }

    pub(super) fn empty(user: &str, start: UtcTime, length: Nanos, packages: Vec<Arc<str>>) -> Self {
        Self { user: user.to_owned(), start, length, packages, initial: Vec::new(), events: Vec::new() }
    }

    /// Adds the apps that `events`, whose times count from another beginning, leave alive at `from`, and the
    /// events from there on.
    pub(super) fn filled(mut self, from: Nanos, events: impl Iterator<Item = AppEvent>) -> Self {
        for event in events {
            if event.time < from {
                apply(&mut self.initial, &event);
            } else if event.time.saturating_sub(from) < self.length {
                self.events.push(AppEvent { time: event.time.saturating_sub(from), ..event });
            } else {
                break;
            }
        }
        self
    }

    /// The package of an app.
    pub fn package(&self, app: AppId) -> &str {
        self.packages.get(app.0 as usize).map_or("", |package| package)
    }

    /// The apps that are alive at `time`, after the events at that time, in order of launch.
    pub fn alive_at(&self, time: Nanos) -> Vec<AliveApp> {
        let mut alive = self.initial.clone();
        self.events.iter().take_while(|event| event.time <= time).for_each(|event| apply(&mut alive, event));
        alive
    }

    /// Calls `see` with the beginning of every interval without changes, and the apps that are alive in it.
    pub fn stretches(&self, mut see: impl FnMut(Nanos, &[AliveApp])) {
        let mut alive = self.initial.clone();
        let mut time = Nanos::ZERO;
        for event in &self.events {
            if event.time > time {
                see(time, &alive);
                time = event.time;
            }
            apply(&mut alive, event);
        }
        see(time, &alive);
    }
}

/// Whether rows of `source` are sparse samples, which do not record when anything happened.
pub fn is_sampled(source: Source) -> bool {
    matches!(source, Source::CaratProcessList | Source::CaratUsageInterval | Source::Tsinghua)
}

/// Whether a user opens a package, judging by its name: Android's own providers, services and shells are excluded. A
/// table of Play categories is more reliable.
pub fn seems_opened(package: &str) -> bool {
    package.contains('.') && package != "android" && !WORDS.not_opened.iter().any(|part| package.contains(part))
}

/// The time from `beginning` to `time`; zero if it is earlier.
pub(super) fn since(beginning: UtcTime, time: UtcTime) -> Nanos {
    Nanos(u64::try_from(time.0.saturating_sub(beginning.0)).unwrap_or(0))
}

/// LSApp: an app in front, or one that left it.
fn show_or_leave(set: &mut AppSet, time: Nanos, app: AppId, adj: OomAdj, keep: usize, out: &mut Vec<AppEvent>) {
    if adj.is_foreground() {
        set.show(time, app, false, out);
        set.trim(time, keep, out);
    } else if set.front() == Some(app) {
        set.leave(time, false, out);
    }
}

/// A row that is a change.
fn change(set: &mut AppSet, time: Nanos, app: AppId, row: &AppRow<'_>, out: &mut Vec<AppEvent>) {
    let ends = row.source == Source::LmkdKill || (row.source == Source::Generated && row.adj >= OomAdj::CACHED_APP_MAX);
    let kind = match (set.adj(app), ends) {
        (None, true) => return,
        (Some(_), true) => AppEventKind::Exit,
        (Some(adj), _) if adj == row.adj => return,
        (Some(_), _) if row.adj.is_foreground() => AppEventKind::ToForeground,
        (Some(_), _) => AppEventKind::ToBackground(row.adj),
        (None, _) => AppEventKind::Launch(row.adj),
    };
    set.record(AppEvent { time, app, kind, confidence: row.confidence }, out);
}

/// Packages by number, in order of appearance.
struct Names(IndexSet<Arc<str>>);

impl Names {
    /// With the launcher, which is [`LAUNCHER`].
    fn new(launcher: &str) -> Self {
        Self(IndexSet::from([Arc::from(launcher)]))
    }

    fn id(&mut self, package: &str) -> AppId {
        let known = self.0.get_index_of(package);
        AppId(known.unwrap_or_else(|| self.0.insert_full(Arc::from(package)).0) as u32)
    }

    fn packages(self) -> Vec<Arc<str>> {
        self.0.into_iter().collect()
    }
}

/// A sample: its time, since the midnight before the trace, and the apps that the next sessions show.
#[derive(Clone, Debug, PartialEq)]
struct Sample {
    time: Nanos,
    candidates: Vec<Candidate>,
}

/// The timeline of `user` over a window, from `rows` that are samples, sorted by time and not empty: "Between samples"
/// in [`crate::usage`].
fn interpolate(
    model: &UsageModel,
    seed: u64,
    rows: &[AppRow<'_>],
    user: &str,
    window: Window,
    opened: impl Fn(&str) -> bool,
) -> AppTimeline {
    let Window { start, length, offset } = window;
    let first = rows.first().map_or(start, |row| row.time);
    let midnight = offset.midnight(first);
    let mut names = Names::new(&model.launcher.package);
    let samples = samples(model, rows, midnight, &mut names, opened);
    let user_drawn = User::new(model, seed, user);
    // The user's days begin with the trace, whether the window begins before or after it.
    let (from, lead) = (since(midnight, start), since(start, midnight));
    let end = Nanos(from.0.saturating_add(length.saturating_sub(lead).0));
    let behind: &[Candidate] = samples.first().map_or(&[], |sample| &sample.candidates);
    let mut events = Vec::new();
    let mut player = Player::new(model, seed, &user_drawn, behind, &mut events);
    for session in SessionStream::new(model, seed, &user_drawn, days_until(end)) {
        if let Some(sample) = latest(&samples, &session, model.interpolation.horizon.value) {
            player.play(&session, &sample.candidates, &mut events);
        }
    }
    let events = events.into_iter().map(|event| AppEvent { time: event.time + lead, ..event });
    AppTimeline::empty(user, start, length, names.packages()).filled(from, events)
}

/// The sample that a session follows within `horizon`.
fn latest<'s>(samples: &'s [Sample], session: &Session, horizon: Nanos) -> Option<&'s Sample> {
    let after = samples.partition_point(|sample| sample.time <= session.start);
    let sample = after.checked_sub(1).and_then(|index| samples.get(index))?;
    (session.start.saturating_sub(sample.time) <= horizon).then_some(sample)
}

/// The samples of a user with the apps in each, the likeliest first.
fn samples(
    model: &UsageModel,
    rows: &[AppRow<'_>],
    midnight: UtcTime,
    names: &mut Names,
    opened: impl Fn(&str) -> bool,
) -> Vec<Sample> {
    rows.chunk_by(|a, b| a.time == b.time)
        .map(|rows| {
            let mut candidates: Vec<Candidate> = Vec::new();
            for row in rows.iter().filter(|row| opened(row.package)) {
                let Some(weight) = weight(model, row) else { continue };
                let app = names.id(row.package);
                let known = model.catalogue.iter().find(|known| known.package == row.package);
                let perceptible = known.map_or(0.0, |known| known.perceptible);
                match candidates.iter_mut().find(|candidate| candidate.app == app) {
                    Some(twice) => twice.weight = twice.weight.max(weight),
                    None => candidates.push(Candidate { app, weight, perceptible }),
                }
            }
            candidates.retain(|candidate| candidate.app != LAUNCHER);
            candidates.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.app.cmp(&b.app)));
            Sample { time: since(midnight, rows.first().map_or(midnight, |row| row.time)), candidates }
        })
        .collect()
}

/// The relative probability that the app of a row is opened; `None` if it is not the user's.
fn weight(model: &UsageModel, row: &AppRow<'_>) -> Option<f64> {
    let foreground = model.interpolation.foreground_weight.value.0;
    match row.adj {
        _ if row.source == Source::Tsinghua => Some(1.0),
        adj if adj < OomAdj::FOREGROUND_APP => None,
        adj if adj <= OomAdj::PERCEPTIBLE_APP => Some(foreground),
        adj if adj >= OomAdj::PREVIOUS_APP && adj < OomAdj::CACHED_APP_MAX => Some(1.0),
        _ => None,
    }
}
