//! Synthetic users as rows.
//!
//! Simulates a user's sessions: the app in front at each time, and those that stay in the background.

use haversack_devices::{Nanos, Stream};
use rand::RngExt;

use super::alive::{AppEvent, AppEventKind, AppId, AppSet, LAUNCHER};
use super::model::UsageModel;
use super::session::{Session, SessionStream, User, seconds};
use crate::{AppRow, Confidence, OomAdj, Source, UtcTime};

/// Synthetic users over some days. All data of a user follow from the seed and the user's name.
#[must_use]
pub struct Population<'a> {
    model: &'a UsageModel,
    seed: u64,
    days: u64,
    names: Vec<String>,
}

impl<'a> Population<'a> {
    /// `users` users, named `synthetic-0000000` upwards, over `days` days from 1970 on: a synthetic user
    /// has no calendar.
    pub fn new(model: &'a UsageModel, users: usize, days: u64, seed: u64) -> Self {
        let names = (0..users).map(|index| format!("synthetic-{index:07}")).collect();
        Self { model, seed, days, names }
    }

    /// The users' names, in their order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The random choices made once for a user.
    pub fn user(&self, name: &str) -> User {
        User::new(self.model, self.seed, name)
    }

    /// The sessions of a user, without their apps.
    pub fn sessions(&self, name: &str) -> SessionStream<'a> {
        SessionStream::new(self.model, self.seed, &self.user(name), self.days)
    }

    /// The rows of one user, sorted by time; users may be generated in any order, on any thread.
    ///
    /// A row is a change: the first rows of a user give the apps that run at the beginning; 999 means that a process
    /// ended. Within a session, from the first app at adj 0 until none is, exactly one app is in front.
    pub fn rows_of<'s>(&'s self, name: &'s str) -> impl Iterator<Item = AppRow<'s>> + use<'s, 'a> {
        let model = self.model;
        let events = UserEvents::new(model, self.seed, name, self.days);
        events.map(move |(package, event)| AppRow {
            user: name,
            time: UtcTime(i64::try_from(event.time.0).unwrap_or(i64::MAX)),
            package,
            adj: event.kind.adj().unwrap_or(OomAdj::CACHED_APP_MAX),
            source: Source::Generated,
            confidence: Confidence::Assumed,
        })
    }
}

/// The events of a synthetic user, session by session, each with its package.
pub(super) struct UserEvents<'a> {
    player: Player<'a>,
    sessions: SessionStream<'a>,
    candidates: Vec<Candidate>,
    /// The packages by their ids.
    pub(super) packages: Vec<&'a str>,
    events: std::vec::IntoIter<AppEvent>,
}

impl<'a> UserEvents<'a> {
    pub(super) fn new(model: &'a UsageModel, seed: u64, name: &str, days: u64) -> Self {
        let user = User::new(model, seed, name);
        let mut packages = vec![model.launcher.package.as_str()];
        let mut candidates = Vec::with_capacity(user.apps.len());
        for app in &user.apps {
            // The catalogue outlives the user.
            if let Some(known) = model.catalogue.iter().find(|known| known.package == app.package) {
                let id = AppId(packages.len() as u32);
                packages.push(&known.package);
                candidates.push(Candidate { app: id, weight: app.weight, perceptible: app.perceptible });
            }
        }
        let mut events = Vec::new();
        let player = Player::new(model, seed, &user, &candidates, &mut events);
        let sessions = SessionStream::new(model, seed, &user, days);
        Self { player, sessions, candidates, packages, events: events.into_iter() }
    }

    fn next_event(&mut self) -> Option<AppEvent> {
        loop {
            if let Some(event) = self.events.next() {
                return Some(event);
            }
            let session: Session = self.sessions.next()?;
            let mut events = std::mem::take(&mut self.events).collect::<Vec<_>>();
            self.player.play(&session, &self.candidates, &mut events);
            self.events = events.into_iter();
        }
    }
}

impl<'a> Iterator for UserEvents<'a> {
    type Item = (&'a str, AppEvent);

    fn next(&mut self) -> Option<Self::Item> {
        let event = self.next_event()?;
        let package = self.packages.get(event.app.0 as usize).copied()?;
        Some((package, event))
    }
}

/// The number of days from 0 to `time`, rounded up.
pub(super) fn days_until(time: Nanos) -> u64 {
    time.0.div_ceil(86_400 * 1_000_000_000)
}

impl AppEvent {
    /// Whether the event brings its app in front.
    pub fn is_to_front(&self) -> bool {
        matches!(self.kind, AppEventKind::ToForeground | AppEventKind::Launch(OomAdj::FOREGROUND_APP))
    }
}

/// An app that a user may open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) app: AppId,
    /// Its relative probability.
    pub(super) weight: f64,
    /// The fraction of visits after which it stays perceptible.
    pub(super) perceptible: f64,
}

/// A user's phone, session by session.
pub(super) struct Player<'a> {
    model: &'a UsageModel,
    random: Stream,
    set: AppSet,
}

impl<'a> Player<'a> {
    /// The phone of `user`, on which the launcher and the likeliest candidates are already running, one more than the
    /// user keeps in the background; their launches go to `out`.
    pub(super) fn new(
        model: &'a UsageModel,
        seed: u64,
        user: &User,
        candidates: &[Candidate],
        out: &mut Vec<AppEvent>,
    ) -> Self {
        let mut set = AppSet::new(Some(LAUNCHER), Confidence::Assumed);
        set.start(Nanos::ZERO, LAUNCHER, out);
        for candidate in candidates.iter().take(user.background + 1) {
            set.start(Nanos::ZERO, candidate.app, out);
        }
        Self { model, random: Stream::of_user(seed, &user.name, "visits"), set }
    }

    /// The events of `session`, in order of time; apps are chosen from `candidates`, the likeliest first. Without
    /// candidates there are none.
    pub(super) fn play(&mut self, session: &Session, candidates: &[Candidate], out: &mut Vec<AppEvent>) {
        let apps = &self.model.apps;
        let (mut time, end) = (session.start, session.end());
        let (shortest, home) = (self.model.sessions.shortest.value, apps.home_time.value);
        self.set.demote(time, OomAdj::PERCEPTIBLE_APP, out);
        let mut front = None;
        while let Some(next) = self.choose(candidates, front) {
            let perceptible = front.is_some_and(|front: Candidate| self.random.random::<f64>() < front.perceptible);
            let by_home = self.random.random::<f64>() < apps.home.value.0;
            if by_home && time + home + shortest <= end {
                self.set.show(time, LAUNCHER, perceptible, out);
                time += home;
            }
            self.set.show(time, next.app, perceptible, out);
            self.settle(time, session.background, candidates, out);
            front = Some(next);
            let visit = -(1.0 - self.random.random::<f64>()).ln() * apps.visit.value.seconds();
            time += seconds(visit.max(shortest.seconds()).round() as u64);
            if time + shortest > end {
                break;
            }
        }
        let perceptible = front.is_some_and(|front: Candidate| self.random.random::<f64>() < front.perceptible);
        self.set.leave(end, perceptible, out);
    }

    /// The next app other than `front`, in proportion to the weights, from those still alive or from all.
    fn choose(&mut self, candidates: &[Candidate], front: Option<Candidate>) -> Option<Candidate> {
        let others = |candidate: &&Candidate| Some(candidate.app) != front.map(|front| front.app);
        let among_alive = self.random.random::<f64>() < self.model.apps.revisit.value.0;
        let draw = self.random.random::<f64>();
        let alive = |candidate: &&Candidate| others(candidate) && self.set.is_alive(candidate.app);
        let still_there = among_alive.then(|| pick(candidates.iter().filter(alive), draw)).flatten();
        still_there.or_else(|| pick(candidates.iter().filter(others), draw))
    }

    /// Leaves `background` apps in the background: ends the least recent, or starts the likeliest.
    fn settle(&mut self, time: Nanos, background: usize, candidates: &[Candidate], out: &mut Vec<AppEvent>) {
        self.set.trim(time, background + 1, out);
        for candidate in candidates {
            if self.set.apps() > background {
                break;
            }
            if !self.set.is_alive(candidate.app) {
                self.set.start(time, candidate.app, out);
            }
        }
    }
}

/// One of `candidates` in proportion to their weights; `draw` is uniform in [0, 1).
fn pick<'c>(candidates: impl Iterator<Item = &'c Candidate> + Clone, draw: f64) -> Option<Candidate> {
    let total: f64 = candidates.clone().map(|candidate| candidate.weight).sum();
    let mut left = draw * total;
    let mut last = None;
    for candidate in candidates {
        last = Some(*candidate);
        left -= candidate.weight;
        if left < 0.0 {
            break;
        }
    }
    last
}
