//! Synthetic users as the public Carat data would show them: JSON lines with a process list now and then.

use haversack_devices::units::Nanos;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, weighted::WeightedIndex};
use serde::Serialize;

use super::alive::{AliveApp, AppEvent, apply};
use super::generate::UserEvents;
use super::model::UsageModel;
use super::session::{MOST_DAYS, seconds};
use super::user::normal;
use crate::row::{OomAdj, UtcTime};
use crate::stream::stream;

/// The priorities of the public data, in the order of `carat.priorities`.
pub const PRIORITIES: [&str; 5] =
    ["Background process", "Service", "Foreground app", "Visible task", "Perceptible task"];
const BACKGROUND: usize = 0;
const FOREGROUND: usize = 2;
const PERCEPTIBLE: usize = 4;

/// The day on which exported users begin, 2016-01-01 UTC: Carat then still recorded lists of processes.
pub const BEGINNING: UtcTime = UtcTime::from_seconds(1_451_606_400);

/// A line of the public data.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CaratSample {
    /// The user.
    pub uuid: String,
    /// Seconds since 1970, UTC.
    pub timestamp: i64,
    /// Per cent.
    pub battery_level: u8,
    /// `charging` or `discharging`.
    pub battery_status: &'static str,
    /// Always UTC.
    pub time_zone: &'static str,
    /// Always unknown.
    pub mobile_country_code: &'static str,
    /// What ran.
    pub apps: Vec<CaratProcess>,
}

/// A process of a sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CaratProcess {
    /// Its package.
    pub process_name: String,
    /// One of [`PRIORITIES`].
    pub priority: &'static str,
}

impl CaratSample {
    /// The line, without its end.
    ///
    /// # Errors
    /// None that a sample can cause.
    pub fn line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

/// The samples of one user, in order of time.
///
/// A day has as many samples as the user's rate says, at hours drawn from the profile. The user's own apps are in a
/// sample with the priority of their adj at that second; the rest of the list is filled with services named
/// `com.example.service…`, so that the number of processes and the shares of priorities are the published ones.
#[must_use]
pub struct CaratSamples<'a> {
    model: &'a UsageModel,
    random: ChaCha8Rng,
    uuid: String,
    events: std::iter::Peekable<UserEvents<'a>>,
    packages: Vec<&'a str>,
    alive: Vec<AliveApp>,
    times: std::vec::IntoIter<u64>,
    battery: u8,
    charging: bool,
}

impl<'a> CaratSamples<'a> {
    /// The samples of the synthetic user `name` over `days` days.
    pub fn new(model: &'a UsageModel, seed: u64, name: &str, days: u64) -> Self {
        let mut random = stream(seed, name, "carat");
        let carat = &model.carat;
        let (least, most) = (carat.samples_least.value.0, carat.samples_most.value.0);
        let a_day = (least + random.random::<f64>() * (most - least)).round() as u64;
        let hour = WeightedIndex::new(&model.day.profile.values).ok();
        let mut second = |day: u64| {
            let hour = hour.as_ref().map_or(12, |hour| hour.sample(&mut random)) as u64;
            day * 86_400 + hour * 3600 + random.random_range(0..3600)
        };
        let mut times: Vec<u64> =
            (0..days.min(MOST_DAYS)).flat_map(|day| vec![day; a_day as usize]).map(&mut second).collect();
        times.sort_unstable();
        times.dedup();
        let events = UserEvents::new(model, seed, name, days);
        let uuid = (0..4).map(|_| format!("{:016x}", random.random::<u64>())).collect();
        let packages = events.packages().to_vec();
        let (events, times) = (events.peekable(), times.into_iter());
        Self { model, random, uuid, events, packages, alive: Vec::new(), times, battery: 80, charging: false }
    }

    /// The apps that are alive at `time`.
    fn advance(&mut self, time: Nanos) {
        while let Some((_, event)) = self.events.next_if(|(_, event): &(&str, AppEvent)| event.time <= time) {
            apply(&mut self.alive, &event);
        }
    }

    fn processes(&mut self) -> Vec<CaratProcess> {
        let carat = &self.model.carat;
        let drawn = carat.processes.value.0 + carat.processes_spread.value.0 * normal(&mut self.random);
        let number = (drawn.clamp(0.0, carat.processes_most.value.0).round() as usize).max(self.alive.len());
        let priority = WeightedIndex::new(&carat.priorities.values).ok();
        let mut slots: Vec<usize> =
            (0..number).map(|_| priority.as_ref().map_or(0, |of| of.sample(&mut self.random))).collect();
        let mut processes = Vec::with_capacity(number);
        for app in &self.alive {
            let wanted = match app.adj {
                adj if adj.is_foreground() => FOREGROUND,
                OomAdj::PERCEPTIBLE_APP => PERCEPTIBLE,
                _ => BACKGROUND,
            };
            // A place of that priority keeps the shares; where there is none left, any place must do.
            let place = slots.iter().position(|&slot| slot == wanted).unwrap_or(0);
            slots.swap_remove(place);
            let package = self.packages.get(app.app.0 as usize).copied().unwrap_or("");
            processes.push(process(package.to_owned(), wanted));
        }
        let services = slots.iter().enumerate().map(|(n, &slot)| process(format!("com.example.service{n:03}"), slot));
        processes.extend(services);
        processes
    }

    fn charge(&mut self) {
        let step = self.random.random_range(1..=5);
        self.charging = if self.battery < 20 { true } else { self.charging && self.battery < 95 };
        self.battery =
            if self.charging { (self.battery + 4 * step).min(100) } else { self.battery.saturating_sub(step) };
    }
}

fn process(process_name: String, priority: usize) -> CaratProcess {
    CaratProcess { process_name, priority: PRIORITIES.get(priority).copied().unwrap_or("Unknown") }
}

impl Iterator for CaratSamples<'_> {
    type Item = CaratSample;

    fn next(&mut self) -> Option<CaratSample> {
        let second = self.times.next()?;
        self.advance(seconds(second));
        self.charge();
        Some(CaratSample {
            uuid: self.uuid.clone(),
            timestamp: BEGINNING.whole_seconds() + i64::try_from(second).unwrap_or(i64::MAX / 2),
            battery_level: self.battery,
            battery_status: if self.charging { "charging" } else { "discharging" },
            time_zone: "UTC",
            mobile_country_code: "UNKNOWN",
            apps: self.processes(),
        })
    }
}
