//! The apps that are alive, and how readily each is killed: the part of Android's rules that the usage model needs.

use haversack_devices::Nanos;

use crate::{Confidence, OomAdj};

/// An app of a timeline: the position of its package in [`super::AppTimeline::packages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppId(pub u32);

/// The launcher is the first app of every phone that the usage model simulates.
pub(super) const LAUNCHER: AppId = AppId(0);

/// An app that has a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AliveApp {
    /// The app.
    pub app: AppId,
    /// How readily it is killed.
    pub adj: OomAdj,
}

/// The kinds of events of an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppEventKind {
    /// Its process starts: in front if the adj is that of the foreground, else in the background, for a message
    /// or to synchronise.
    Launch(OomAdj),
    /// The user returns to it.
    ToForeground,
    /// It leaves the front, or its adj changes in the background.
    ToBackground(OomAdj),
    /// Its process ends.
    Exit,
}

impl AppEventKind {
    /// The app's adj after the event; `None` after its end.
    pub fn adj(self) -> Option<OomAdj> {
        match self {
            Self::Launch(adj) | Self::ToBackground(adj) => Some(adj),
            Self::ToForeground => Some(OomAdj::FOREGROUND_APP),
            Self::Exit => None,
        }
    }
}

/// An event of an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppEvent {
    /// The time, since the beginning of the timeline.
    pub time: Nanos,
    /// The app.
    pub app: AppId,
    /// The kind of event.
    pub kind: AppEventKind,
    /// [`Confidence::Assumed`] if the usage model made the event.
    pub confidence: Confidence,
}

/// Applies an event to the apps that are alive; they stay in the order of their launches.
pub(super) fn apply(alive: &mut Vec<AliveApp>, event: &AppEvent) {
    let found = alive.iter().position(|other| other.app == event.app);
    match (event.kind.adj(), found.and_then(|index| alive.get_mut(index))) {
        (Some(adj), Some(app)) => app.adj = adj,
        (Some(adj), None) => alive.push(AliveApp { app: event.app, adj }),
        (None, Some(_)) => alive.retain(|other| other.app != event.app),
        (None, None) => {}
    }
}

/// The apps that are alive, with the changes that a user causes by looking at one after the other.
///
/// The app that leaves the front becomes the previous app (700) and the one before it cached (900), except that a
/// launcher is at home (600), and an app that is heard or that navigates stays perceptible (200). Android keeps the app
/// in front at 0 under a dark screen; here it leaves the front, so that events show the end of a session.
#[derive(Debug)]
pub(super) struct AppSet {
    launcher: Option<AppId>,
    /// The most recent last.
    alive: Vec<AliveApp>,
    confidence: Confidence,
}

impl AppSet {
    pub(super) fn new(launcher: Option<AppId>, confidence: Confidence) -> Self {
        Self { launcher, alive: Vec::new(), confidence }
    }

    pub(super) fn is_alive(&self, app: AppId) -> bool {
        self.adj(app).is_some()
    }

    /// The app in front.
    pub(super) fn front(&self) -> Option<AppId> {
        self.alive.iter().find(|app| app.adj.is_foreground()).map(|app| app.app)
    }

    /// Apps that are alive, the launcher not counted.
    pub(super) fn apps(&self) -> usize {
        self.alive.iter().filter(|app| Some(app.app) != self.launcher).count()
    }

    /// The adj of an app that is alive.
    pub(super) fn adj(&self, app: AppId) -> Option<OomAdj> {
        self.alive.iter().find(|other| other.app == app).map(|other| other.adj)
    }

    /// Applies `event` and appends it to `out`.
    pub(super) fn record(&mut self, event: AppEvent, out: &mut Vec<AppEvent>) {
        apply(&mut self.alive, &event);
        out.push(event);
    }

    fn change(&mut self, time: Nanos, app: AppId, kind: AppEventKind, out: &mut Vec<AppEvent>) {
        self.record(AppEvent { time, app, kind, confidence: self.confidence }, out);
    }

    /// Starts `app` in the background, as the least recent.
    pub(super) fn start(&mut self, time: Nanos, app: AppId, out: &mut Vec<AppEvent>) {
        let adj = if Some(app) == self.launcher { OomAdj::HOME_APP } else { OomAdj::CACHED_APP_MIN };
        self.change(time, app, AppEventKind::Launch(adj), out);
        // The user has not looked at it: the least recent.
        self.alive.rotate_right(1);
    }

    /// Moves the app in front to the background.
    pub(super) fn leave(&mut self, time: Nanos, perceptible: bool, out: &mut Vec<AppEvent>) {
        let Some(front) = self.front() else { return };
        if Some(front) == self.launcher {
            return self.change(time, front, AppEventKind::ToBackground(OomAdj::HOME_APP), out);
        }
        if perceptible {
            return self.change(time, front, AppEventKind::ToBackground(OomAdj::PERCEPTIBLE_APP), out);
        }
        self.demote(time, OomAdj::PREVIOUS_APP, out);
        self.change(time, front, AppEventKind::ToBackground(OomAdj::PREVIOUS_APP), out);
    }

    /// Brings `app` to the front, launching it if it is not alive.
    pub(super) fn show(&mut self, time: Nanos, app: AppId, perceptible: bool, out: &mut Vec<AppEvent>) {
        if self.front() == Some(app) {
            return;
        }
        self.leave(time, perceptible, out);
        let kind =
            if self.is_alive(app) { AppEventKind::ToForeground } else { AppEventKind::Launch(OomAdj::FOREGROUND_APP) };
        self.change(time, app, kind, out);
        if let Some(index) = self.alive.iter().position(|other| other.app == app) {
            let shown = self.alive.remove(index);
            self.alive.push(shown);
        }
    }

    /// Makes every app at `adj` a cached one.
    pub(super) fn demote(&mut self, time: Nanos, adj: OomAdj, out: &mut Vec<AppEvent>) {
        let apps: Vec<_> = self.alive.iter().filter(|app| app.adj == adj).map(|app| app.app).collect();
        for app in apps {
            self.change(time, app, AppEventKind::ToBackground(OomAdj::CACHED_APP_MIN), out);
        }
    }

    /// Ends the least recent apps until `most` are left in addition to the launcher: cached ones first, then
    /// perceptible ones, never the one in front.
    pub(super) fn trim(&mut self, time: Nanos, most: usize, out: &mut Vec<AppEvent>) {
        while self.apps() > most {
            let mut victims =
                self.alive.iter().filter(|app| Some(app.app) != self.launcher && !app.adj.is_foreground());
            let silent = victims.clone().find(|app| app.adj.is_background());
            let Some(victim) = silent.or_else(|| victims.next()).map(|app| app.app) else { return };
            self.change(time, victim, AppEventKind::Exit, out);
        }
    }
}
