//! What phones of each memory class leave to training, at moments of some users' days.

use std::sync::Arc;

use haversack_devices::calibration::Settings;
use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::{Device, load_system};
use haversack_federation::draw::{Draws, Purpose};
use haversack_federation::population::MemoryClass;
use haversack_traces::footprint::FootprintTable;
use haversack_traces::row::UtcTime;
use haversack_traces::stream::stream;
use haversack_traces::usage::{AppTimeline, UsageModel};
use rand::RngExt;
use rayon::prelude::*;

use super::specification::Specification;
use crate::cache::Cache;
use crate::error::CommandError;
use crate::moment::{Moment, Watched};
use crate::progress::{Amount, Progress};
use crate::sweep::drawn;
use crate::trace_table::{Holds, Reader, UserApps};

/// How long a service watches memory before a moment, and how far apart moments of a round are.
pub(super) const WINDOW: Nanos = Nanos(600_000_000_000);
/// Users whose phones are watched; every phone of a population is like one of them.
const USERS: usize = 12;
/// Moments of each.
const MOMENTS: u32 = 8;
/// The days of a generated user that moments are drawn from.
const DAYS: u64 = 3;

/// Of each user whose phone was watched, moments in order of time.
type OfClass = Vec<Vec<Moment>>;

/// What phones leave, by memory class.
pub(super) struct Budgets {
    classes: Vec<Arc<OfClass>>,
    seed: u64,
}

/// The apps of a user.
enum User {
    Generated(String),
    Recorded(UserApps),
}

impl Budgets {
    /// Watches a phone of each class, like its first device with that memory, once for all federations that share `cache`.
    ///
    /// # Errors
    /// Traces that are no table of apps or too short, a system that nobody has, or one that does not go with a device.
    pub(super) fn watch(asked: &Specification, cache: &Cache) -> Result<Self, CommandError> {
        let users = users(asked)?;
        let bar = Progress::new(Amount::Number("phones watched"), (asked.setting.memory.len() * users.len()) as u64, 0);
        let system = load_system(&asked.system).map_err(|error| CommandError::input(error.to_string()))?;
        let of_class = |class: &MemoryClass| {
            let watched = Watched {
                device: device(class)?,
                system: system.clone(),
                model: UsageModel::built_in().map_err(CommandError::failed)?,
                footprints: FootprintTable::built_in().map_err(CommandError::failed)?,
            };
            let moments = users.par_iter().map(|user| {
                let moments = user.moments(&watched, asked.seed);
                bar.inc(1);
                moments
            });
            moments.collect::<Result<OfClass, CommandError>>()
        };
        let shared = |class: &MemoryClass| {
            let Specification { seed, system, traces, .. } = asked;
            let key =
                format!("phones watched {seed} {system} {traces:?} {:?} {}", class.devices.first(), class.size_gb);
            cache.get(key, || of_class(class))
        };
        let classes = asked.setting.memory.iter().map(shared).collect::<Result<_, CommandError>>()?;
        bar.finish();
        Ok(Self { classes, seed: asked.seed })
    }

    /// All moments of a memory class.
    pub(super) fn of_class(&self, class: u8) -> impl Iterator<Item = Moment> {
        self.classes[usize::from(class)].iter().flatten().copied()
    }

    /// Number `later` after the moment at which `phone`, of a memory class, begins its part of `round`.
    pub(super) fn moment(&self, class: u8, phone: u32, round: u32, later: u32) -> Moment {
        let moments = self.moments(class, phone);
        let first = Draws::new(self.seed, Purpose::Moment, phone).even(round) * moments.len() as f64;
        moments[(first as usize + later as usize) % moments.len()]
    }

    /// What a phone leaves as often as not, by prediction.
    pub(super) fn usual(&self, class: u8, phone: u32) -> Bytes {
        let mut predicted: Vec<Bytes> = self.moments(class, phone).iter().map(|moment| moment.predicted).collect();
        predicted.sort_unstable();
        predicted[predicted.len() / 2]
    }

    fn moments(&self, class: u8, phone: u32) -> &[Moment] {
        let users = &self.classes[usize::from(class)];
        let user = Draws::new(self.seed, Purpose::User, phone).even(0) * users.len() as f64;
        &users[(user as usize).min(users.len() - 1)]
    }
}

impl User {
    fn moments(&self, watched: &Watched, seed: u64) -> Result<Vec<Moment>, CommandError> {
        let (name, length) = match self {
            Self::Generated(name) => (name.as_str(), DAYS * 86_400_000_000_000),
            Self::Recorded(rows) => (rows.user.as_str(), u64::try_from(rows.last.0 - rows.first.0).unwrap_or(0)),
        };
        let mut random = stream(seed, name, "moments");
        let room = length.saturating_sub(WINDOW.0);
        let mut starts: Vec<u64> = (0..MOMENTS).map(|_| random.random_range(0..=room)).collect();
        starts.sort_unstable();
        let moment = |after: u64| watched.moment(&self.timeline(&watched.model, seed, after), WINDOW, seed);
        starts.into_iter().map(moment).collect()
    }

    fn timeline(&self, model: &UsageModel, seed: u64, after: u64) -> AppTimeline {
        match self {
            Self::Generated(name) => AppTimeline::generated(model, seed, name, Nanos(after), WINDOW),
            Self::Recorded(rows) => {
                let start = UtcTime(rows.first.0.saturating_add(i64::try_from(after).unwrap_or(i64::MAX)));
                rows.timeline(model, seed, start, WINDOW)
            }
        }
    }
}

/// The users that phones are like: of the traces, or generated.
fn users(asked: &Specification) -> Result<Vec<User>, CommandError> {
    let Some(path) = &asked.traces else {
        return Ok((1..=USERS).map(|number| User::Generated(format!("synthetic-{number:04}"))).collect());
    };
    let wrong = |message: String| CommandError::input(format!("`traces`: {}: {message}", path.display()));
    let reader = Reader::open(path)?;
    if reader.holds != Holds::Apps {
        return Err(wrong("holds counters; expected a table of apps".to_owned()));
    }
    let all = reader.users()?;
    let mut recorded = Vec::new();
    for name in drawn(all.iter().map(String::as_str).collect(), all.len(), asked.seed) {
        let rows = UserApps::read(&reader, path, name)?;
        if u64::try_from(rows.last.0 - rows.first.0).unwrap_or(0) > WINDOW.0 {
            recorded.push(User::Recorded(rows));
        }
        if recorded.len() == USERS {
            break;
        }
    }
    if recorded.is_empty() {
        return Err(wrong("no user's trace is longer than ten minutes".to_owned()));
    }
    Ok(recorded)
}

/// The first device of a class, with that class's memory.
fn device(class: &MemoryClass) -> Result<Device, CommandError> {
    let id = class.devices.first().ok_or_else(|| CommandError::failed("a memory class without a device"))?;
    Device::load_with(id, &memory(class)).map_err(|error| CommandError::input(error.to_string()))
}

/// What gives a device a class's memory.
pub(super) fn memory(class: &MemoryClass) -> Settings {
    Settings::from([("ram".to_owned(), format!("{} GiB", class.size_gb))])
}
