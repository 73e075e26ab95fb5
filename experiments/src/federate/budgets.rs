//! The memory that phones of each memory class leave to training, at moments of some users' days and in
//! the minutes after.

use std::sync::Arc;

use haversack_devices::calibration::Settings;
use haversack_devices::stream::Stream;
use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::{Device, ensure, load_system};
use haversack_federation::draw::{Draws, Purpose};
use haversack_federation::population::MemoryClass;
use haversack_traces::footprint::FootprintTable;
use haversack_traces::row::UtcTime;
use haversack_traces::usage::{AppTimeline, UsageModel};
use haversack_training::phone::AppChange;
use rand::RngExt;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::specification::Specification;
use crate::moment::{Moment, Watched};
use crate::progress::{Amount, Progress};
use crate::scenario::app_changes;
use crate::sweep::drawn;
use crate::trace_table::{Holds, Reader, UserApps};
use crate::{Cache, CommandError, Result, interrupt, quantities};

/// The time for which the memory service observes a phone before a moment.
const WINDOW: Nanos = Nanos(600_000_000_000);
/// The interval between later samples of memory, and their number.
const MINUTE: Nanos = Nanos(60_000_000_000);
const MINUTES: usize = 10;
/// The time for which a phone is simulated.
const WATCHED: Nanos = Nanos(WINDOW.0 + MINUTE.0 * MINUTES as u64);
/// Users whose phones are simulated; every phone of a population behaves like one of them.
const USERS: usize = 12;
/// Moments per user.
const MOMENTS: u32 = 8;
/// The days of a generated user that moments are drawn from.
const DAYS: u64 = 3;

/// The memory that a phone reports before a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Report {
    /// The prediction of the memory service (FedHybrid, section 4.4.2).
    #[default]
    Predicted,
    /// `MemAvailable` at the time of the report.
    Available,
}

/// A moment and the minutes after it.
#[derive(Clone, Debug)]
struct Stretch {
    at: Moment,
    /// `MemAvailable` in the minutes after.
    left: [Bytes; MINUTES],
    /// App changes from the moment on.
    apps: Vec<AppChange>,
}

impl Stretch {
    fn report(&self, report: Report) -> Bytes {
        match report {
            Report::Predicted => self.at.predicted,
            Report::Available => self.at.available,
        }
    }
}

/// The memory left by phones with one size of memory.
struct OfClass {
    /// At rest, without any app.
    at_rest: Bytes,
    /// [`MOMENTS`] per user in order of time, one user after the other.
    stretches: Vec<Stretch>,
}

impl OfClass {
    fn usual(&self, report: Report) -> Vec<usize> {
        let users = (0..self.stretches.len()).step_by(MOMENTS as usize);
        let usual = users.map(|user| {
            let mut moments: Vec<usize> = (user..user + MOMENTS as usize).collect();
            moments.sort_by_key(|&moment| self.stretches[moment].report(report));
            moments[moments.len() / 2]
        });
        usual.collect()
    }
}

/// The memory that phones leave, by memory class.
pub(super) struct Budgets {
    classes: Vec<Arc<OfClass>>,
    /// By class and user, the number of the moment with the user's median report.
    usual: Vec<Vec<usize>>,
    report: Report,
    seed: u64,
    /// For each user whose trace is too short for a round, the reason why phones like it are left out.
    ends_early: Arc<Vec<String>>,
}

/// The apps of a user.
enum User {
    Generated(String),
    Recorded(UserApps),
}

impl Budgets {
    /// Simulates the memory of one phone per class, like its first device with that memory, once for all federations
    /// that share `cache`.
    ///
    /// # Errors
    /// Traces that are not a table of apps or are too short, an unknown system, or one that does not fit a device.
    pub(super) fn watch(asked: &Specification, cache: &Cache) -> Result<Self> {
        let key = format!("users of phones {} {:?}", asked.seed, asked.traces);
        let users = cache.get(key, || users(asked))?;
        let Users { watched: users, ends_early } = users.as_ref();
        let bar = Progress::new(Amount::Number("phones watched"), (asked.setting.memory.len() * users.len()) as u64, 0);
        let system = load_system(&asked.system).map_err(|error| CommandError::input(error.to_string()))?;
        let of_class = |class: &MemoryClass| -> Result<OfClass> {
            let model = UsageModel::built_in().map_err(CommandError::failed)?;
            let footprints = FootprintTable::built_in().map_err(CommandError::failed)?;
            let watched = Watched::new(device(class)?, system.clone(), model, footprints)?;
            let stretches = users.par_iter().map(|user| {
                let stretches = user.stretches(&watched, asked.seed);
                bar.inc(1);
                stretches
            });
            let stretches: Vec<Vec<Stretch>> = stretches.collect::<Result<_>>()?;
            Ok(OfClass { at_rest: watched.at_rest(), stretches: stretches.into_iter().flatten().collect() })
        };
        let shared = |class: &MemoryClass| {
            let Specification { seed, system, traces, .. } = asked;
            let key =
                format!("phones watched {seed} {system} {traces:?} {:?} {}", class.devices.first(), class.size_gb);
            cache.get(key, || of_class(class))
        };
        let classes = asked.setting.memory.iter().map(shared).collect::<Result<Vec<Arc<OfClass>>>>()?;
        bar.finish();
        let usual = classes.iter().map(|class| class.usual(asked.report)).collect();
        Ok(Self { classes, usual, report: asked.report, seed: asked.seed, ends_early: Arc::clone(ends_early) })
    }

    /// The memory that a class's phones leave at rest, when no app has been opened.
    pub(super) fn at_rest(&self, class: u8) -> Bytes {
        self.class(class).at_rest
    }

    /// The reports of a class's phones at all moments, by number.
    pub(super) fn reports(&self, class: u8) -> impl Iterator<Item = Bytes> {
        self.class(class).stretches.iter().map(|stretch| stretch.report(self.report))
    }

    /// The app changes on the median phone of a class, by the memory left.
    pub(super) fn apps(&self, class: u8) -> &[AppChange] {
        let mut stretches: Vec<&Stretch> = self.class(class).stretches.iter().collect();
        stretches.sort_by_key(|stretch| stretch.at.available);
        stretches.get(stretches.len() / 2).map_or(&[], |stretch| &stretch.apps)
    }

    /// The least memory that phones of a class leave at any minute.
    pub(super) fn least(&self, class: u8) -> Bytes {
        self.class(class).stretches.iter().flat_map(|stretch| stretch.left).min().unwrap_or_default()
    }

    /// The number of the moment at which `phone`, of a memory class, begins its part of `round`.
    pub(super) fn moment(&self, class: u8, phone: u32, round: u32) -> usize {
        let first = Draws::new(self.seed, Purpose::Moment, phone).even(round) * f64::from(MOMENTS);
        self.user(class, phone) + (first as usize).min(MOMENTS as usize - 1)
    }

    /// The number of the moment with a phone's median report.
    pub(super) fn usual(&self, class: u8, phone: u32) -> usize {
        self.usual[usize::from(class)][self.user(class, phone) / MOMENTS as usize]
    }

    /// The report of a class's phone at a moment.
    pub(super) fn report(&self, class: u8, moment: usize) -> Bytes {
        self.class(class).stretches[moment].report(self.report)
    }

    /// The memory left from that moment on, minute by minute; after its last minute, the minutes of the user's
    /// next moment follow.
    pub(super) fn left(&self, class: u8, moment: usize) -> impl Iterator<Item = Bytes> {
        let stretches = &self.class(class).stretches;
        let (user, first) = (moment - moment % MOMENTS as usize, moment % MOMENTS as usize);
        let next = (first..).map(move |later| user + later % MOMENTS as usize);
        next.flat_map(|moment| stretches[moment].left)
    }

    fn class(&self, class: u8) -> &OfClass {
        &self.classes[usize::from(class)]
    }

    /// The reason why a phone is left out, if its user's trace is too short; `None` for all others.
    pub(super) fn ends_early(&self, phone: u32) -> Option<&str> {
        let watched = self.classes.first().map_or(0, |class| class.stretches.len() / MOMENTS as usize);
        let place = self.draw(phone, watched).checked_sub(watched)?;
        self.ends_early.get(place).map(String::as_str)
    }

    /// The first moment of the phone's user; if that user's trace is too short, of another one.
    fn user(&self, class: u8, phone: u32) -> usize {
        let watched = self.class(class).stretches.len() / MOMENTS as usize;
        self.draw(phone, watched) % watched * MOMENTS as usize
    }

    /// The number of a phone's user; the `watched` users come first, those with short traces after them.
    fn draw(&self, phone: u32, watched: usize) -> usize {
        let users = watched + self.ends_early.len();
        let user = Draws::new(self.seed, Purpose::User, phone).even(0) * users as f64;
        (user as usize).min(users - 1)
    }
}

/// Seconds between two samples of the memory left.
pub(super) const LOOK_S: f64 = (MINUTE.0 / 1_000_000_000) as f64;

impl User {
    fn stretches(&self, watched: &Watched, seed: u64) -> Result<Vec<Stretch>> {
        let (name, length) = match self {
            Self::Generated(name) => (name.as_str(), DAYS * 86_400_000_000_000),
            Self::Recorded(rows) => (rows.user.as_str(), u64::try_from(rows.last.0 - rows.first.0).unwrap_or(0)),
        };
        let mut random = Stream::of_user(seed, name, "moments");
        let room = length.saturating_sub(WATCHED.0);
        let mut starts: Vec<u64> = (0..MOMENTS).map(|_| random.random_range(0..=room)).collect();
        starts.sort_unstable();
        let stretch = |after: u64| {
            ensure!(!interrupt::came(), CommandError::Interrupted);
            let [timeline, from_then_on] =
                [0, WINDOW.0].map(|later| self.timeline(&watched.model, seed, after + later, Nanos(WATCHED.0 - later)));
            let (at, then) = watched.moment_and_after(&timeline, WINDOW, WATCHED, seed)?;
            let minute = |number: usize| {
                let second = number * (MINUTE.0 / 1_000_000_000) as usize;
                then.get(second).or(then.last()).copied().unwrap_or(at.available)
            };
            let apps = app_changes(&from_then_on, &watched.footprints, &watched.model, seed);
            Ok(Stretch { at, left: std::array::from_fn(minute), apps })
        };
        starts.into_iter().map(stretch).collect()
    }

    fn timeline(&self, model: &UsageModel, seed: u64, after: u64, length: Nanos) -> AppTimeline {
        match self {
            Self::Generated(name) => AppTimeline::generated(model, seed, name, Nanos(after), length),
            Self::Recorded(rows) => {
                let start = UtcTime(rows.first.0.saturating_add(i64::try_from(after).unwrap_or(i64::MAX)));
                rows.timeline(model, seed, start, length)
            }
        }
    }
}

/// The users that phones behave like.
struct Users {
    watched: Vec<User>,
    /// For each user whose trace is too short, the reason why phones like it are left out.
    ends_early: Arc<Vec<String>>,
}

/// Users of the traces, drawn until there are enough, or generated ones.
fn users(asked: &Specification) -> Result<Users> {
    let Some(path) = &asked.traces else {
        let watched = (1..=USERS).map(|number| User::Generated(format!("synthetic-{number:04}"))).collect();
        return Ok(Users { watched, ends_early: Arc::default() });
    };
    let wrong = |message: String| CommandError::input(format!("`traces`: {}: {message}", path.display()));
    let reader = Reader::open(path)?;
    if reader.holds != Holds::Apps {
        return Err(wrong("holds counters; expected a table of apps".to_owned()));
    }
    let all = reader.users()?;
    let (mut watched, mut ends_early) = (Vec::new(), Vec::new());
    for name in drawn(all.iter().map(String::as_str).collect(), all.len(), asked.seed) {
        let rows = UserApps::read(&reader, path, name)?;
        let length = Nanos(u64::try_from(rows.last.0 - rows.first.0).unwrap_or(0));
        if length > WATCHED {
            watched.push(User::Recorded(rows));
        } else {
            let [length, needed] = [length, WATCHED].map(quantities::time);
            ends_early
                .push(format!("the trace of its user, {name}, ends after {length}; memory is watched for {needed}"));
        }
        if watched.len() == USERS {
            break;
        }
    }
    if watched.is_empty() {
        return Err(wrong("no user's trace is longer than twenty minutes".to_owned()));
    }
    Ok(Users { watched, ends_early: Arc::new(ends_early) })
}

/// The first device of a class, with that class's memory.
fn device(class: &MemoryClass) -> Result<Device> {
    let id = class.devices.first().ok_or_else(|| CommandError::failed("a memory class without a device"))?;
    Device::load_with(id, &memory(class)).map_err(|error| CommandError::input(error.to_string()))
}

/// The settings that give a device the memory of a class.
pub(super) fn memory(class: &MemoryClass) -> Settings {
    Settings::from([("ram".to_owned(), format!("{} GiB", class.size_gb))])
}
