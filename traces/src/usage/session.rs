//! The times of a user's sessions, and the apps that the user looks at.
//!
//! Also a synthetic user: the random choices made once.

use std::collections::VecDeque;

use haversack_devices::{Nanos, Stream};
use rand::RngExt;
use rand_distr::weighted::WeightedIndex;
use rand_distr::{Distribution, Normal, Poisson, StandardNormal};

use super::model::{CatalogueApp, UsageModel};

const DAY_S: u64 = 86_400;
/// Users are simulated for at most a hundred years, so that times stay far below the limit of nanoseconds.
pub(super) const MOST_DAYS: u64 = 36_525;

/// One continuous use of the phone, in whole seconds since the user's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// The time at which the first app comes to the front.
    pub start: Nanos,
    /// The time until the screen goes dark.
    pub length: Nanos,
    /// The number of apps in the background.
    pub background: usize,
}

impl Session {
    /// When the screen goes dark.
    pub fn end(&self) -> Nanos {
        self.start + self.length
    }
}

/// The sessions of a user, in order of time, without overlaps.
///
/// A day has a Poisson number of sessions that begin at hours drawn from the profile; a session that would begin before
/// the end of the previous one, plus a pause, is delayed. Weekdays and weekends do not differ.
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
    /// The sessions that begin within the first `days` days, which are limited to a hundred years.
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

    /// Draws the beginnings of the next day's sessions; one that the shift moves past midnight wraps to the
    /// other end of the day.
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

/// The random choices for a user, made before any event.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct User {
    /// The name, which together with the seed determines everything.
    pub name: String,
    /// Whether the user's mean session is that of most users.
    pub regular: bool,
    /// The mean of the user's sessions.
    pub mean_session: Nanos,
    /// The mean number of sessions a day.
    pub sessions_a_day: f64,
    /// The delay of the user's day against the profile, in seconds; negative if it is earlier.
    pub shift_s: f64,
    /// The usual number of apps in the background.
    pub background: usize,
    /// The apps that the user has installed, the likeliest first; weights are relative to the user's other apps.
    pub apps: Vec<CatalogueApp>,
}

impl User {
    /// The user `name` under `seed`; independent of all other users.
    pub fn new(model: &UsageModel, seed: u64, name: &str) -> Self {
        let sessions = &model.sessions;
        let mut random = Stream::of_user(seed, name, "habits");
        let regular = random.random::<f64>() < sessions.regular_share.value.0;
        let (median, spread) = if regular {
            (sessions.regular_mean.value, sessions.regular_spread.value.0)
        } else {
            (sessions.other_mean.value, sessions.other_spread.value.0)
        };
        let mut lognormal = |median: f64, spread: f64| median * (spread * normal(&mut random)).exp();
        let mean_session = Nanos::from_seconds(lognormal(median.seconds(), spread));
        let drawn = lognormal(sessions.per_day.value.0, sessions.per_day_spread.value.0);
        let most = sessions.daily_use.value.seconds() / mean_session.seconds();
        let shift_s = model.day.shift.value.seconds() * normal(&mut random);
        let background = 3 + WeightedIndex::new(&model.apps.background.values).map_or(0, |of| of.sample(&mut random));
        let apps = installed(model, seed, name);
        Self {
            name: name.to_owned(),
            regular,
            mean_session,
            sessions_a_day: drawn.min(most),
            shift_s,
            background,
            apps,
        }
    }
}

/// A standard normal number.
pub(super) fn normal<R: rand::Rng + ?Sized>(random: &mut R) -> f64 {
    StandardNormal.sample(random)
}

/// The apps of a user: drawn without replacement, in proportion to weight and taste.
fn installed(model: &UsageModel, seed: u64, name: &str) -> Vec<CatalogueApp> {
    let mut random = Stream::of_user(seed, name, "apps");
    let apps = &model.apps;
    // Validated: at least one, and at most the whole catalogue.
    let (least, most) = (apps.installed_least.value.0 as usize, apps.installed_most.value.0 as usize);
    let number = random.random_range(least..=most.max(least));
    let taste = Normal::new(0.0, apps.taste.value.0).ok();
    // The n smallest of exponential variates with rates w are a draw without replacement in proportion to w.
    let mut drawn: Vec<_> = model
        .catalogue
        .iter()
        .map(|app| {
            let liking = taste.map_or(0.0, |taste| taste.sample(&mut random)).exp();
            let weight = app.weight * liking;
            let arrival = -(1.0 - random.random::<f64>()).ln() / weight;
            (arrival, CatalogueApp { weight, ..app.clone() })
        })
        .collect();
    drawn.sort_by(|a, b| a.0.total_cmp(&b.0));
    drawn.truncate(number);
    let mut apps: Vec<_> = drawn.into_iter().map(|(_, app)| app).collect();
    apps.sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.package.cmp(&b.package)));
    apps
}
