//! Plays a user's sessions: which app is in front when, and what stays behind it.

use haversack_devices::stream::Stream;
use haversack_devices::units::Nanos;
use rand::RngExt;

use super::alive::{AppEvent, AppId, AppSet, LAUNCHER};
use super::model::UsageModel;
use super::session::{Session, seconds};
use super::user::User;
use crate::row::{Confidence, OomAdj};

/// An app that a user may open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) app: AppId,
    /// How likely, against the others.
    pub(super) weight: f64,
    /// The share of visits after which it stays perceptible.
    pub(super) perceptible: f64,
}

/// A user's phone, session by session.
pub(super) struct Player<'a> {
    model: &'a UsageModel,
    random: Stream,
    set: AppSet,
}

impl<'a> Player<'a> {
    /// The phone of `user`, on which the launcher and the likeliest candidates have been running, one more than the
    /// user keeps behind the one in front; their launches go to `out`.
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

    /// What happens in `session`, in order of time, from the likeliest of `candidates` down. Without candidates,
    /// nothing.
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

    /// The next app: another one than `front`, by liking from those still there or from all.
    fn choose(&mut self, candidates: &[Candidate], front: Option<Candidate>) -> Option<Candidate> {
        let others = |candidate: &&Candidate| Some(candidate.app) != front.map(|front| front.app);
        let among_alive = self.random.random::<f64>() < self.model.apps.revisit.value.0;
        let draw = self.random.random::<f64>();
        let alive = |candidate: &&Candidate| others(candidate) && self.set.is_alive(candidate.app);
        let still_there = among_alive.then(|| pick(candidates.iter().filter(alive), draw)).flatten();
        still_there.or_else(|| pick(candidates.iter().filter(others), draw))
    }

    /// Leaves `background` apps behind the one in front: ends the least recent, or starts the likeliest.
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
