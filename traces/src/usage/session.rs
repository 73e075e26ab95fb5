//! When a user's sessions are, and what the user looks at.

use std::collections::VecDeque;

use haversack_devices::stream::Stream;
use haversack_devices::units::Nanos;
use rand::RngExt;
use rand_distr::{Distribution, Poisson, weighted::WeightedIndex};

use super::model::UsageModel;
use super::user::{User, normal};

const DAY_S: u64 = 86_400;
/// No user is followed for longer than a hundred years, so that times stay far from what nanoseconds can hold.
pub(super) const MOST_DAYS: u64 = 36_525;

/// A stretch of looking at the phone, in whole seconds since the user's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// When the first app comes in front.
    pub start: Nanos,
    /// Until the screen goes dark.
    pub length: Nanos,
    /// The number of apps behind the one in front.
    pub background: usize,
}

impl Session {
    /// When the screen goes dark.
    pub fn end(&self) -> Nanos {
        self.start + self.length
    }
}

/// The sessions of a user, in order of time; none overlap.
///
/// A day has a Poisson number of sessions that begin at hours drawn from the profile; one that would begin before the
/// one before it is over, and a pause, waits. Weekdays and weekends are alike.
#[must_use]
pub struct SessionStream<'a> {
    model: &'a UsageModel,
    random: Stream,
    number: Option<Poisson<f64>>,
    hour: Option<WeightedIndex<f64>>,
    mean_s: f64,
    shift_s: f64,
    background: usize,
    day: u64,
    days: u64,
    free_s: u64,
    starts: VecDeque<u64>,
}

impl<'a> SessionStream<'a> {
    /// The sessions that begin within the first `days` days, of which there are at most a hundred years'.
    pub fn new(model: &'a UsageModel, seed: u64, user: &User, days: u64) -> Self {
        Self {
            model,
            random: Stream::of_user(seed, &user.name, "sessions"),
            number: Poisson::new(user.sessions_a_day).ok(),
            hour: WeightedIndex::new(&model.day.profile.values).ok(),
            mean_s: user.mean_session.seconds(),
            shift_s: user.shift_s,
            background: user.background,
            day: 0,
            days: days.min(MOST_DAYS),
            free_s: 0,
            starts: VecDeque::new(),
        }
    }

    /// Draws when the sessions of the next day begin; one that a shifted day pushes over midnight is at the other end.
    fn draw_day(&mut self) {
        let (Some(number), Some(hour)) = (&self.number, &self.hour) else { return };
        let count = number.sample(&mut self.random) as usize;
        let mut starts: Vec<u64> = (0..count)
            .map(|_| {
                let second =
                    (hour.sample(&mut self.random) as f64 + self.random.random::<f64>()) * 3600.0 + self.shift_s;
                second.rem_euclid(DAY_S as f64) as u64
            })
            .collect();
        starts.sort_unstable();
        self.starts = starts.into_iter().map(|second| self.day * DAY_S + second).collect();
    }

    fn length_s(&mut self) -> u64 {
        let spread = self.model.sessions.spread.value.0;
        let drawn = self.mean_s * (spread * normal(&mut self.random) - 0.5 * spread * spread).exp();
        drawn.max(self.model.sessions.shortest.value.seconds()).round().max(1.0) as u64
    }
}

impl Iterator for SessionStream<'_> {
    type Item = Session;

    fn next(&mut self) -> Option<Session> {
        let wanted = loop {
            if let Some(start) = self.starts.pop_front() {
                break start;
            }
            if self.day >= self.days {
                return None;
            }
            self.draw_day();
            self.day += 1;
        };
        let start = wanted.max(self.free_s);
        if start >= self.days * DAY_S {
            return None;
        }
        let length = self.length_s();
        self.free_s = start + length + self.model.sessions.pause.value.seconds().round().max(1.0) as u64;
        let (wander, draw) = (self.model.apps.wander.value.0, self.random.random::<f64>());
        let background = match draw {
            less if less < wander => self.background.saturating_sub(1),
            more if more < 2.0 * wander => self.background + 1,
            _ => self.background,
        };
        Some(Session { start: seconds(start), length: seconds(length), background })
    }
}

/// A number of whole seconds.
pub(super) fn seconds(count: u64) -> Nanos {
    Nanos(count.saturating_mul(1_000_000_000))
}
