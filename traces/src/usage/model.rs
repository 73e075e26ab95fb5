//! The numbers of the usage model, as read from `usage.toml`.

use haversack_devices::calibration::{entries, section};
use haversack_devices::{Constant, ConstantEntry, Count, Factor, Fraction, Nanos, TomlDocument, Visit};
use serde::Deserialize;

use crate::data::{self, DataError, Weights};

/// The built-in file.
const BUILT_IN: (&str, &str) = ("usage.toml", include_str!("../../usage.toml"));

/// The priorities of the public data, in the order of `carat.priorities`.
const PRIORITIES: [&str; 5] = ["Background process", "Service", "Foreground app", "Visible task", "Perceptible task"];

section! {
    /// How people use their phones.
    ///
    /// A user is *regular* or not, which determines the distribution of the user's mean session; sessions of one user
    /// are lognormal. Two numbers follow from no single observation, the share of regular users and the spread within a
    /// user; they are fitted to two published statistics of sessions.
    pub struct UsageModel {
        /// Lengths and numbers of sessions.
        pub sessions: Sessions,
        /// When sessions happen.
        pub day: Day,
        /// Which apps they show, and which stay behind them.
        pub apps: Apps,
        /// Assumptions about the time between sparse samples.
        pub interpolation: Interpolation,
        /// The properties of a Carat sample.
        pub carat: Carat,
        /// The app that is always alive.
        pub launcher: Launcher,
        /// The apps that users may have.
        #[serde(rename = "app")]
        pub catalogue: Vec<CatalogueApp>,
        #[serde(skip)]
        file: String,
    }
}

section! {
    /// Lengths and numbers of sessions: from the first app in front to the screen going dark.
    pub struct Sessions {
        /// The probability that a user is regular.
        pub regular_share: Constant<Fraction>,
        /// Median of the mean sessions of regular users.
        pub regular_mean: Constant<Nanos>,
        /// Standard deviation of the logarithm of their means.
        pub regular_spread: Constant<Factor>,
        /// Median of the mean sessions of the others.
        pub other_mean: Constant<Nanos>,
        /// Standard deviation of the logarithm of their means.
        pub other_spread: Constant<Factor>,
        /// Standard deviation of the logarithm of the sessions of one user.
        pub spread: Constant<Factor>,
        /// The shortest length of a session.
        pub shortest: Constant<Nanos>,
        /// The least time between two sessions.
        pub pause: Constant<Nanos>,
        /// Median over users of the mean number of sessions a day.
        pub per_day: Constant<Count>,
        /// Standard deviation of its logarithm.
        pub per_day_spread: Constant<Factor>,
        /// The longest total of a user's sessions on a mean day.
        pub daily_use: Constant<Nanos>,
    }
}

section! {
    /// When sessions happen.
    pub struct Day {
        /// The weight of each hour, 24 of them.
        pub profile: Weights,
        /// Standard deviation of the shift of a user's day against the profile.
        pub shift: Constant<Nanos>,
    }
}

section! {
    /// Which apps sessions show, and which stay behind them.
    pub struct Apps {
        /// Weights of 3, 4, 5 … as a user's usual number of apps in the background.
        pub background: Weights,
        /// The share of sessions with one app fewer than usual, and the share with one more.
        pub wander: Constant<Fraction>,
        /// The fewest apps that a user has.
        pub installed_least: Constant<Count>,
        /// The most.
        pub installed_most: Constant<Count>,
        /// Standard deviation of the logarithm of a user's liking for an app, on top of its weight.
        pub taste: Constant<Factor>,
        /// The mean time of an app in front.
        pub visit: Constant<Nanos>,
        /// The fraction of switches that choose only from the apps still alive; the others choose from all.
        pub revisit: Constant<Fraction>,
        /// The share of switches by way of the launcher.
        pub home: Constant<Fraction>,
        /// How long the launcher is then in front.
        pub home_time: Constant<Nanos>,
    }
}

section! {
    /// Assumptions about the time between sparse samples.
    pub struct Interpolation {
        /// The time after a sample for which its apps are assumed to be in use.
        pub horizon: Constant<Nanos>,
        /// The weight of an app that was in front in the sample, relative to one in the background.
        pub foreground_weight: Constant<Factor>,
    }
}

section! {
    /// The properties of a Carat sample.
    pub struct Carat {
        /// Mean and median of the number of processes.
        pub processes: Constant<Count>,
        /// Its standard deviation.
        pub processes_spread: Constant<Count>,
        /// The most processes.
        pub processes_most: Constant<Count>,
        /// Weights of the five priorities of processes.
        pub priorities: Weights,
        /// The fewest samples that a user gives a day.
        pub samples_least: Constant<Count>,
        /// The most.
        pub samples_most: Constant<Count>,
    }
}

/// The app that is always alive.
#[derive(Clone, Debug, Deserialize)]
pub struct Launcher {
    /// Its package.
    pub package: String,
    /// Its Play category.
    pub category: String,
}

/// An app that users may have.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CatalogueApp {
    /// Its package.
    pub package: String,
    /// Its Play category.
    pub category: String,
    /// Its relative probability of being installed and opened.
    #[serde(deserialize_with = "positive")]
    pub weight: f64,
    /// The fraction of visits after which it stays perceptible: music, navigation.
    #[serde(default, deserialize_with = "share")]
    pub perceptible: f64,
}

impl Visit for Launcher {}

impl Visit for CatalogueApp {}

fn positive<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(from)?;
    let expected = || serde::de::Error::custom(format!("{value}: expected a finite number above zero"));
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(expected()) }
}

fn share<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    data::number(from, 1.0, "")
}

impl UsageModel {
    /// The built-in model.
    ///
    /// # Errors
    /// None unless the file was edited: a test reads it.
    pub fn built_in() -> Result<Self, DataError> {
        Self::parse(BUILT_IN.0, BUILT_IN.1)
    }

    /// The model in the file at `path`.
    ///
    /// # Errors
    /// As [`UsageModel::parse`], and a file that cannot be read.
    pub fn load(path: &str) -> Result<Self, DataError> {
        Self::parse(path, &data::read(path)?)
    }

    /// The model in `text`, the contents of `file`.
    ///
    /// # Errors
    /// Text that is not TOML, an unknown or missing key, another unit, a number that the field cannot have, a day
    /// without 24 hours, priorities that are not five, an app named twice, fewer apps than a user must have: with file,
    /// line and field, the expected value and the nearest valid name.
    pub fn parse(file: &str, text: &str) -> Result<Self, DataError> {
        let document = TomlDocument::parse(file, text)?;
        let model = Self { file: file.to_owned(), ..document.read()? };
        let wrong = |field: &str, message: String| Err(document.refuse(field, message).into());
        let (hours, priorities) = (model.day.profile.values.len(), model.carat.priorities.values.len());
        if hours != 24 {
            return wrong("day.profile", format!("expected 24 weights, found {hours}"));
        }
        if priorities != PRIORITIES.len() {
            let names = PRIORITIES.join("`, `");
            return wrong("carat.priorities", format!("expected 5 weights (`{names}`), found {priorities}"));
        }
        let (least, most) = (model.apps.installed_least.value.0, model.apps.installed_most.value.0);
        if !(1.0..=most).contains(&least) || most > model.catalogue.len() as f64 {
            let message = "expected 1 <= `installed_least` <= `installed_most` <= the number of apps";
            return wrong("apps", format!("{message}, found {least}, {most} and {}", model.catalogue.len()));
        }
        if model.carat.samples_least.value.0 > model.carat.samples_most.value.0 {
            return wrong("carat", "expected `samples_least` not above `samples_most`".to_owned());
        }
        for (index, app) in model.catalogue.iter().enumerate() {
            if model.catalogue.iter().skip(index + 1).any(|other| other.package == app.package) {
                return wrong(&format!("app.{index}"), format!("`{}` is there twice", app.package));
            }
        }
        for ConstantEntry { name, value, .. } in model.entries() {
            let is_divisor = matches!(name.as_str(), "sessions.regular_mean" | "sessions.other_mean" | "apps.visit");
            if is_divisor && value <= 0.0 {
                return wrong(&name, "expected more than zero".to_owned());
            }
        }
        Ok(model)
    }

    /// The Play category of a package of the catalogue.
    pub fn category(&self, package: &str) -> Option<&str> {
        let app = self.catalogue.iter().find(|app| app.package == package).map(|app| app.category.as_str());
        app.or_else(|| (self.launcher.package == package).then_some(self.launcher.category.as_str()))
    }

    /// Every constant with its dotted name, for listings and records of runs.
    pub fn entries(&self) -> Vec<ConstantEntry> {
        entries(self, &self.file)
    }
}
