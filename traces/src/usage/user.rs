//! A synthetic user: what is drawn once.

use haversack_devices::stream::Stream;
use haversack_devices::units::Nanos;
use rand::RngExt;
use rand_distr::{Distribution, Normal, StandardNormal, weighted::WeightedIndex};

use super::model::UsageModel;

/// An app that a user has.
#[derive(Clone, Debug, PartialEq)]
pub struct InstalledApp {
    /// The app.
    pub package: String,
    /// How likely it is opened, against the user's other apps.
    pub weight: f64,
    /// The share of visits after which it stays perceptible.
    pub perceptible: f64,
}

/// What is drawn of a user before anything happens.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct User {
    /// The name, which with the seed decides everything.
    pub name: String,
    /// Whether the user's mean session is that of most users.
    pub regular: bool,
    /// The mean of the user's sessions.
    pub mean_session: Nanos,
    /// The mean number of sessions a day.
    pub sessions_a_day: f64,
    /// How much later than the profile the user's day is, in seconds; negative where it is earlier.
    pub shift_s: f64,
    /// The usual number of apps behind the one in front.
    pub background: usize,
    /// What the user has installed, the likeliest first.
    pub apps: Vec<InstalledApp>,
}

impl User {
    /// The user `name` under `seed`; depends on nobody else.
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
fn installed(model: &UsageModel, seed: u64, name: &str) -> Vec<InstalledApp> {
    let mut random = Stream::of_user(seed, name, "apps");
    let apps = &model.apps;
    // Validated: one to as many as there are.
    let (least, most) = (apps.installed_least.value.0 as usize, apps.installed_most.value.0 as usize);
    let number = random.random_range(least..=most.max(least));
    let taste = Normal::new(0.0, apps.taste.value.0).ok();
    // The n least of exponential variates with rates w are a draw without replacement in proportion to w.
    let mut drawn: Vec<_> = model
        .catalogue
        .iter()
        .map(|app| {
            let liking = taste.map_or(0.0, |taste| taste.sample(&mut random)).exp();
            let weight = app.weight * liking;
            let arrival = -(1.0 - random.random::<f64>()).ln() / weight;
            (arrival, InstalledApp { package: app.package.clone(), weight, perceptible: app.perceptible })
        })
        .collect();
    drawn.sort_by(|a, b| a.0.total_cmp(&b.0));
    drawn.truncate(number);
    let mut apps: Vec<_> = drawn.into_iter().map(|(_, app)| app).collect();
    apps.sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.package.cmp(&b.package)));
    apps
}
