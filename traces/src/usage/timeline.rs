//! What a phone simulation needs of a user: which apps start, come in front, leave it and end within a window.

use std::collections::HashMap;
use std::sync::Arc;

use haversack_devices::units::Nanos;

use super::alive::{AliveApp, AppEvent, AppEventKind, AppId, AppSet, apply};
use super::generate::{LAUNCHER, UserEvents, days_until};
use super::interpolate::interpolate;
use super::model::UsageModel;
use super::user::User;
use crate::row::{AppRow, Confidence, OomAdj, Source, UtcTime};

/// The apps of one user within a window of time.
///
/// The number of apps alive is the usage model's (for imported rows, the trace's): who simulates memory may end one
/// earlier, and then takes the app's next [`AppEventKind::ToForeground`] for a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppTimeline {
    /// Whose phone.
    pub user: String,
    /// The beginning of the window; times of events count from here.
    pub start: UtcTime,
    /// The length of the window.
    pub length: Nanos,
    /// The packages by [`AppId`].
    pub packages: Vec<Arc<str>>,
    /// What is alive at the beginning, before any event.
    pub initial: Vec<AliveApp>,
    /// What happens, in order of time; events at the same time in order of cause.
    pub events: Vec<AppEvent>,
}

impl AppTimeline {
    /// The window of `length` that begins `from` after the beginning of the synthetic user `name`.
    #[must_use]
    pub fn generated(model: &UsageModel, seed: u64, name: &str, from: Nanos, length: Nanos) -> Self {
        let end = Nanos(from.0.saturating_add(length.0));
        let events = UserEvents::new(model, seed, name, days_until(end));
        let packages = events.packages().iter().map(|&package| Arc::from(package)).collect();
        let start = UtcTime(i64::try_from(from.0).unwrap_or(i64::MAX));
        let window = Self::empty(name, start, length, packages);
        window.filled(from, events.map(|(_, event)| event))
    }

    /// The window of `length` that begins at `start`, from the rows of `user` among `rows`, in whatever order they
    /// come.
    ///
    /// - *Changes* (`generated`, `perfetto`, `lmkd-kill`) are taken as they are; a kill, and 999 of a generated user,
    ///   end a process.
    /// - *LSApp* knows when an app is opened and closed: apps behind the one in front are kept as the usage model keeps
    ///   them, as many as the user `user` would.
    /// - *Samples* (`carat-…`, `tsinghua`) do not say when anything happened: see "Between samples" in
    ///   [`crate::usage`]. All events are assumed. `opened` says whether a package is something that a user opens;
    ///   [`seems_opened`] where nothing is known.
    ///
    /// Where there are samples, other rows are left aside: the whole timeline is an interpolated one. Without rows the
    /// timeline is empty.
    #[must_use]
    pub fn from_rows<'r>(
        model: &UsageModel,
        seed: u64,
        rows: impl IntoIterator<Item = AppRow<'r>>,
        user: &str,
        (start, length): (UtcTime, Nanos),
        opened: impl Fn(&str) -> bool,
    ) -> Self {
        let mut rows: Vec<AppRow<'r>> = rows.into_iter().filter(|row| row.user == user).collect();
        rows.sort_by_key(|row| row.time);
        if rows.iter().any(|row| is_sampled(row.source)) {
            rows.retain(|row| is_sampled(row.source));
            return interpolate(model, seed, &rows, (user, start, length), opened);
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
        let window = Self::empty(user, start, length, names.packages);
        window.filled(since(first, start), events.into_iter())
    }

    pub(super) fn empty(user: &str, start: UtcTime, length: Nanos, packages: Vec<Arc<str>>) -> Self {
        Self { user: user.to_owned(), start, length, packages, initial: Vec::new(), events: Vec::new() }
    }

    /// With what `events`, whose times count from another beginning, leave alive at `from`, and do from there on.
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
    #[must_use]
    pub fn package(&self, app: AppId) -> &str {
        self.packages.get(app.0 as usize).map_or("", |package| package)
    }

    /// What is alive at `time`, after the events then, in order of launch.
    #[must_use]
    pub fn alive_at(&self, time: Nanos) -> Vec<AliveApp> {
        let mut alive = self.initial.clone();
        self.events.iter().take_while(|event| event.time <= time).for_each(|event| apply(&mut alive, event));
        alive
    }

    /// Calls `see` with the beginning of every stretch in which nothing changes, and what is alive in it.
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

/// Whether rows of `source` are sparse samples, which do not say when anything happened.
#[must_use]
pub fn is_sampled(source: Source) -> bool {
    matches!(source, Source::CaratProcessList | Source::CaratUsageInterval | Source::Tsinghua)
}

/// Whether a package is something that a user opens, as far as its name tells: Android's own providers, services and
/// shells are not. A table of Play categories knows better.
#[must_use]
pub fn seems_opened(package: &str) -> bool {
    const PARTS: [&str; 12] = [
        "android.process",
        "provider",
        "systemui",
        "inputmethod",
        "service",
        "com.google.process",
        "com.google.android.gms",
        "com.google.android.gsf",
        "launcher",
        "com.qualcomm",
        "com.android.phone",
        "com.android.nfc",
    ];
    package.contains('.') && package != "android" && !PARTS.iter().any(|part| package.contains(part))
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

/// Packages and their ids, the launcher's the first.
pub(super) struct Names {
    pub(super) packages: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, AppId>,
}

impl Names {
    pub(super) fn new(launcher: &str) -> Self {
        let mut names = Self { packages: Vec::new(), ids: HashMap::new() };
        let first = names.id(launcher);
        debug_assert_eq!(first, LAUNCHER);
        names
    }

    pub(super) fn id(&mut self, package: &str) -> AppId {
        if let Some(&id) = self.ids.get(package) {
            return id;
        }
        let (id, package) = (AppId(self.packages.len() as u32), Arc::<str>::from(package));
        self.packages.push(Arc::clone(&package));
        self.ids.insert(package, id);
        id
    }
}
