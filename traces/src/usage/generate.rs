//! Synthetic users as rows.

use haversack_devices::units::Nanos;

use super::alive::{AppEvent, AppEventKind, AppId};
use super::model::UsageModel;
use super::play::{Candidate, Player};
use super::session::{Session, SessionStream};
use super::user::User;
use crate::row::{AppRow, Confidence, OomAdj, Source, UtcTime};

/// Synthetic users over some days. Everything of a user follows from the seed and the user's name.
#[must_use]
pub struct Population<'a> {
    model: &'a UsageModel,
    seed: u64,
    days: u64,
    names: Vec<String>,
}

impl<'a> Population<'a> {
    /// `users` users, named `synthetic-0000000` upwards, over `days` days from 1970 on: a synthetic user knows no
    /// calendar.
    pub fn new(model: &'a UsageModel, users: usize, days: u64, seed: u64) -> Self {
        let names = (0..users).map(|index| format!("synthetic-{index:07}")).collect();
        Self { model, seed, days, names }
    }

    /// The users' names, in their order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// What is drawn of a user once.
    pub fn user(&self, name: &str) -> User {
        User::new(self.model, self.seed, name)
    }

    /// The sessions of a user, without their apps.
    pub fn sessions(&self, name: &str) -> SessionStream<'a> {
        SessionStream::new(self.model, self.seed, &self.user(name), self.days)
    }

    /// The rows of all users, sorted by user, then time.
    pub fn rows(&self) -> impl Iterator<Item = AppRow<'_>> {
        self.names.iter().flat_map(|name| self.rows_of(name))
    }

    /// The rows of one user, sorted by time; users may be generated in any order, on any thread.
    ///
    /// A row is a change: the first of a user say what runs at the beginning; 999 says that a process ended. Within a
    /// session, from the first app at adj 0 until none is, exactly one app is in front.
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

/// The days that reach to `time`.
pub(super) fn days_until(time: Nanos) -> u64 {
    time.0.div_ceil(86_400 * 1_000_000_000)
}

impl AppEvent {
    /// Whether the event brings its app in front.
    pub fn is_to_front(&self) -> bool {
        matches!(self.kind, AppEventKind::ToForeground | AppEventKind::Launch(OomAdj::FOREGROUND_APP))
    }
}
