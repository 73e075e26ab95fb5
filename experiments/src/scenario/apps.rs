//! The effect of apps on a phone's memory: a user's timeline, with a table of footprints.
//!
//! Also the phone around a run: an operating system's constants on a device, with its apps.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use haversack_devices::{
    Bytes, CoreSelection, CpuCores, Device, Fraction, Frequency, Nanos, ScalarSpeed, Stream, System, ensure,
};
use haversack_memory::phone::{Backing, Settings};
use haversack_traces::usage::{AppEvent, holdings};
use haversack_traces::{AppTimeline, Confidence, FootprintTable, UsageModel};
use haversack_training::phone::{AppChange, AppState, HeldByOthers, OtherMemory, Phone, SystemMemory, Trainer};
use rand::RngExt;

use super::quantity::{QuantityError, parse_time, time_text};
use super::trace_from::DAY;
use super::user_trace::Available;

/// Whether `named`, with or without a user, is a table of traces.
pub(super) fn is_table(named: &Path) -> bool {
    split(named).0.extension().is_some_and(|extension| extension == "parquet")
}

/// Splits a path as a scenario names it, `FILE` or `FILE#USER`. A file whose own name contains the sign is not split.
pub(crate) fn split(named: &Path) -> (PathBuf, Option<String>) {
    let text = named.to_string_lossy();
    match text.rsplit_once('#') {
        Some((file, user)) if !named.exists() && !user.is_empty() => (PathBuf::from(file), Some(user.to_owned())),
        _ => (named.to_path_buf(), None),
    }
}

/// The source of a phone's apps.
#[derive(Clone, Debug, PartialEq)]
pub enum PhoneApps {
    /// No apps.
    None,
    /// A table of traces, `FILE` or `FILE#USER`.
    Table(PathBuf),
    /// An interval of a synthetic user's days, generated with the scenario's seed.
    Synthetic {
        /// The user's name, such as `synthetic-0001`.
        user: String,
        /// The beginning, after the user's first midnight.
        from: Nanos,
        /// Its length.
        length: Nanos,
    },
}

const NONE: &str = "none";
const APPS: &str = "none, a .parquet file of `trace import` or `trace generate`, or USER@START+LENGTH, such as \
                    synthetic-0001@68400s+10min";

impl FromStr for PhoneApps {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let wrong = || QuantityError::new(APPS, text);
        if text == NONE {
            return Ok(Self::None);
        }
        if is_table(Path::new(text)) {
            return Ok(Self::Table(text.into()));
        }
        let (user, stretch) = text.rsplit_once('@').filter(|(user, _)| !user.is_empty()).ok_or_else(wrong)?;
        let (from, length) = stretch.split_once('+').ok_or_else(wrong)?;
        let from = if from == MIDNIGHT { Nanos::ZERO } else { parse_time(from)? };
        let length = parse_time(length)?;
        let limit = || QuantityError {
            hint: format!("; it begins within ten years and lasts at most {} days", MOST_DAYS),
            ..wrong()
        };
        ensure!(from.0 <= 10 * MOST_DAYS * DAY.0 && length.0 <= MOST_DAYS * DAY.0, limit());
        Ok(Self::Synthetic { user: user.to_owned(), from, length })
    }
}

/// The longest interval of a user's days.
const MOST_DAYS: u64 = 366;

/// The first midnight, which is not a positive time.
const MIDNIGHT: &str = "0s";

impl fmt::Display for PhoneApps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str(NONE),
            Self::Table(path) => write!(f, "{}", path.display()),
            Self::Synthetic { user, from, length } => {
                let from = if *from == Nanos::ZERO { MIDNIGHT.to_owned() } else { time_text(*from) };
                write!(f, "{user}@{from}+{}", time_text(*length))
            }
        }
    }
}

/// The memory changes caused by the apps of `timeline`, with the footprints of `table`; `model` gives the
/// category of each package.
pub fn app_changes(timeline: &AppTimeline, table: &FootprintTable, model: &UsageModel, seed: u64) -> Vec<AppChange> {
    let changes = holdings(timeline, table, |package| model.category(package), seed);
    let changed = changes.into_iter().map(|change| AppChange {
        at: change.time,
        app: timeline.package(change.app).to_owned(),
        state: change.held.map(|held| AppState {
            adj: i32::from(held.adj.0),
            anonymous: held.anonymous,
            file: held.file,
            touched: held.touched,
        }),
    });
    changed.collect()
}

/// An event of an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// The time since the start of the timeline.
    pub(crate) at: Nanos,
    /// Whether it is assumed, because the trace does not contain it.
    pub(crate) is_assumed: bool,
}

/// The events of the apps of `timeline`, in order of time.
pub(crate) fn events(timeline: &AppTimeline) -> Arc<Vec<Event>> {
    let event = |event: &AppEvent| Event { at: event.time, is_assumed: event.confidence == Confidence::Assumed };
    Arc::new(timeline.events.iter().map(event).collect())
}

/// The other users of a phone's memory during the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct InUse {
    /// The changes of apps.
    pub(crate) apps: Vec<AppChange>,
    /// The memory left to the trainer in a recording; `None` without one.
    pub(crate) recorded: Option<Arc<Available>>,
    /// The start of the run within the one-second period in which hot pages are touched.
    pub(crate) phase: Nanos,
}

impl InUse {
    /// The memory of other processes, on a phone whose kernel manages `managed`; the fraction `hot` of their memory
    /// beyond the system at rest is in constant use.
    fn others(&self, device: &Device, managed: Bytes, hot: Fraction) -> Result<OtherMemory, String> {
        let Some(recorded) = &self.recorded else { return Ok(OtherMemory::default()) };
        let total = recorded.total.unwrap_or(managed);
        let held = |&(at, available): &(_, Bytes)| HeldByOthers { at, bytes: total.saturating_sub(available) };
        let series: Vec<HeldByOthers> = recorded.steps.iter().map(held).collect();
        match series.iter().map(|held| held.bytes).max().filter(|most| *most >= managed) {
            Some(most) => Err(format!(
                "others use up to {most} of {total} in the recording, all of the {managed} of {}; choose a device \
                 with more memory",
                device.id
            )),
            None => Ok(OtherMemory { series, hot }),
        }
    }
}

/// The start of a run within the one-second period in which hot pages are touched, drawn by `seed`.
pub(super) fn phase(seed: u64) -> Nanos {
    Nanos(Stream::of_user(seed, "phone", "phase").random_range(0..1_000_000_000))
}

/// A `device` in use under `system` with `apps` running and without training.
///
/// # Errors
/// As [`phone`].
pub(crate) fn phone_in_use(device: &Device, system: &System, apps: Vec<AppChange>) -> Result<Phone, String> {
    phone(device, system, None, &InUse { apps, ..InUse::default() }, None)
}

/// A `device` under `system`, training on `cores`, with other users of its memory in `in_use`; the training process has
/// the score `adj`, or the system's score of a perceptible process.
///
/// # Errors
/// A message for the user: the missing part of the device.
pub(crate) fn phone(
    device: &Device,
    system: &System,
    cores: Option<&CpuCores>,
    in_use: &InUse,
    adj: Option<i32>,
) -> Result<Phone, String> {
    let id = &device.id;
    let flash = device.flash().ok_or_else(|| format!("{id} has no [storage]; the system {} swaps to it", system.id))?;
    let cpu = device.cpu().ok_or_else(|| format!("{id} has no [[cpu]], which the system {} runs on", system.id))?;
    let choose = |cores: CoreSelection| cpu.choose(cores, Frequency::Highest).map_err(|error| error.to_string());
    let all = choose(CoreSelection::All)?;
    // kswapd runs on a core that does not train, if the device has one.
    let kswapd_shares = cores.is_some_and(|cores| cores.cores().len() == all.cores().len());
    let speed = |cores: &CpuCores| {
        ScalarSpeed::of(cores).ok_or_else(|| format!("the CoreMark of {id}'s cores is not known; expected `coremark`"))
    };
    let training = speed(cores.unwrap_or(&all))?;
    let constants = &system.constants;
    let waiting = system.page_costs(speed(&all)?.at(constants.clocks.waiting.value));
    let app_pages = system.app_pages();
    let resident = system.resident(device);
    let (anonymous, number) = resident.cached;
    let adj_of_cached = constants.scores.cached.value.0;
    let cached = AppState { adj: adj_of_cached, anonymous, file: Bytes::ZERO, touched: Fraction(1.0) };
    // Apps and recordings already include background apps.
    let is_idle = in_use.apps.is_empty() && in_use.recorded.is_none();
    let part = |bytes, backing, hot| SystemMemory { bytes, backing, hot };
    let trainer = &constants.trainer;
    let memory = Settings::of(system, device);
    let others = in_use.others(device, memory.ram, resident.hot)?;
    Ok(Phone {
        memory,
        training: system.page_costs(training),
        front: waiting,
        cores: all.cores().len() as u32,
        kswapd: waiting,
        kswapd_shares,
        driver: system.driver(training),
        faulting: system.driver(training.at(constants.clocks.waiting.value)),
        flash,
        background: system.background(1),
        foreground: system.foreground().into_iter().collect(),
        own: vec![
            // First in the list, so that it is evicted first.
            part(resident.cache, Backing::File, Fraction(0.0)),
            part(resident.kernel, Backing::Pinned, Fraction(0.0)),
            part(resident.file, Backing::Code, resident.hot),
            part(resident.anonymous, Backing::Anonymous(app_pages), resident.hot),
        ],
        trainer: Trainer {
            adj: adj.unwrap_or(constants.scores.perceptible.value.0),
            pages: system.trainer_pages(),
            start: trainer.start.value,
        },
        app_pages,
        apps: in_use.apps.clone(),
        cached: if is_idle { vec![cached; number as usize] } else { Vec::new() },
        others,
        phase: in_use.phase,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apps_print_as_they_are_read() {
        for text in ["none", "users.parquet#me", "synthetic-0001@19001ms+600s", "a@b@0s+1ns"] {
            assert_eq!(text.parse::<PhoneApps>().unwrap().to_string(), text);
        }
        // 19 h are 68,400 s; 10 min are 600 s.
        let evening =
            PhoneApps::Synthetic { user: "u".into(), from: Nanos(68_400_000_000_000), length: Nanos(600_000_000_000) };
        assert_eq!("u@68400s+10min".parse(), Ok(evening));
        assert!(
            ["", "users.csv", "@1s+1s", "u@1s", "u@+1s", "u@1s+0s"]
                .iter()
                .all(|text| text.parse::<PhoneApps>().is_err())
        );
    }
}
