//! The rows that every importer and the generator yield: two tables, independent of file formats.
//!
//! - apps: `user, time_s, package, adj, source, confidence`, one row per process that was seen, or that changed;
//! - counters: `user, time_s, counter, value`, memory in bytes, everything else in the unit of its name.
//!
//! Rows borrow their names, so that a row costs no allocation.

use std::fmt;

use strum::{EnumString, IntoStaticStr, VariantArray};

/// A point of time: nanoseconds since 1970-01-01 00:00:00 UTC.
///
/// Traces without a clock (a boot-relative Perfetto trace, a synthetic user) count from their own beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[must_use]
pub struct UtcTime(pub i64);

impl UtcTime {
    /// The point `seconds` after 1970; saturates far beyond any trace.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// The point nearest to `seconds` after 1970; saturates, and not-a-number is 1970.
    pub fn nearest(seconds: f64) -> Self {
        // Whole seconds stay exact: a float has 53 bits, nanoseconds since 1970 need 61.
        let whole = seconds.floor();
        let part = ((seconds - whole) * 1e9).round();
        Self(Self::from_seconds(whole as i64).0.saturating_add(part as i64))
    }

    /// Seconds since 1970, as in the column `time_s`.
    pub fn seconds(self) -> f64 {
        // Divided, not multiplied: whole seconds stay whole.
        self.0 as f64 / 1e9
    }
}

impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        chrono::DateTime::from_timestamp_nanos(self.0).format("%Y-%m-%d %H:%M:%S UTC").fmt(f)
    }
}

/// Available memory, inferred from other counters where `MemAvailable` was not recorded.
pub const INFERRED_AVAILABLE: &str = "MemAvailable (inferred)";

/// How readily the low-memory killer takes a process: Android's `oom_score_adj`, −1000 (never) to 1000 (first).
///
/// The constants are those of `ProcessList.java` (AOSP).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OomAdj(pub i16);

impl OomAdj {
    /// The app that the user is looking at.
    pub const FOREGROUND_APP: Self = Self(0);
    /// Not visible, but the user would notice: music, navigation.
    pub const PERCEPTIBLE_APP: Self = Self(200);
    /// A started service.
    pub const SERVICE: Self = Self(500);
    /// The launcher.
    pub(crate) const HOME_APP: Self = Self(600);
    /// The app that was in front before this one.
    pub const PREVIOUS_APP: Self = Self(700);
    /// A service that has been running for long.
    pub(crate) const SERVICE_B: Self = Self(800);
    /// The least of the cached processes, which are kept only to start faster.
    pub const CACHED_APP_MIN: Self = Self(900);
    /// The most of the cached processes.
    pub(crate) const CACHED_APP_MAX: Self = Self(999);
    /// The lowest value.
    pub const LEAST: Self = Self(-1000);
    /// The highest value.
    pub(crate) const GREATEST: Self = Self(1000);

    /// The value, if it is one of Android's.
    pub fn new(value: i64) -> Option<Self> {
        let adj = Self(i16::try_from(value).ok()?);
        (Self::LEAST..=Self::GREATEST).contains(&adj).then_some(adj)
    }

    /// Whether the user is looking at the process.
    pub fn is_foreground(self) -> bool {
        self == Self::FOREGROUND_APP
    }

    /// Whether the process runs without the user noticing: a service, or cached.
    pub fn is_background(self) -> bool {
        self > Self::PERCEPTIBLE_APP
    }
}

impl fmt::Display for OomAdj {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The origin of a row of apps, which determines how its time and `adj` are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[non_exhaustive]
pub enum Source {
    /// Carat before June 2017: what ran when the sample was taken.
    CaratProcessList,
    /// Carat since June 2017: what came to the front since the user's sample before; `adj` is the least of that
    /// interval, not the state at its end.
    CaratUsageInterval,
    /// LSApp: an app came to the front, or left it, at that second.
    Lsapp,
    /// Tsinghua: the app moved bytes over the network; not necessarily in front.
    Tsinghua,
    /// Perfetto: the kernel's `oom_score_adj` changed.
    Perfetto,
    /// lmkd: the process was killed then, at that `oom_score_adj`.
    LmkdKill,
    /// The generator; the row belongs to no trace.
    Generated,
}

impl Source {
    /// All sources.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The word in the column `source`.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// The reliability of a row's `adj`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Confidence {
    /// The file contains the value itself.
    Recorded,
    /// The value follows from a word that corresponds to a narrow range.
    Inferred,
    /// The file lacks the value; it is a convention.
    Assumed,
}

impl Confidence {
    /// All confidences, the best first.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The word in the column `confidence`.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// A process of a user at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppRow<'a> {
    /// The user.
    pub user: &'a str,
    /// The time.
    pub time: UtcTime,
    /// The package, or the app's name if the trace has no packages.
    pub package: &'a str,
    /// How readily it is killed.
    pub adj: OomAdj,
    /// The origin of the row.
    pub source: Source,
    /// The reliability of `adj`.
    pub confidence: Confidence,
}

/// The value of a counter of a user's phone at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterRow<'a> {
    /// The user.
    pub user: &'a str,
    /// The time.
    pub time: UtcTime,
    /// The counter, by its name in `/proc/meminfo` or `/proc/vmstat` if it is one of theirs; a counter of one process
    /// is `package/counter`.
    pub counter: &'a str,
    /// Bytes for sizes of memory, otherwise the unit of the counter (pages, events, microseconds).
    pub value: f64,
}

/// A row of either table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Row<'a> {
    /// Of the table of apps.
    App(AppRow<'a>),
    /// Of the table of counters.
    Counter(CounterRow<'a>),
}
