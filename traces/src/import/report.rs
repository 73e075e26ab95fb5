//! What an import has to say beside its rows: what was read, what was not, and what is odd about it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};
use strum::{IntoStaticStr, VariantArray};

use crate::words::WORDS;

/// Different names a [`Tally`] tells apart; more are counted together.
const TALLIED: usize = 64;

/// Why a line is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// Bad: the packing breaks off or is damaged; what came before is kept.
    DamagedFile,
    /// Bad: the last line of a damaged file.
    CutLine,
    /// Bad: longer than [`super::LONGEST_LINE`].
    LongLine,
    /// Bad: no UTF-8.
    NotText,
    /// Bad: no JSON.
    NotJson,
    /// Bad: not the columns of the kind.
    Columns,
    /// Bad: a field is missing, or is not what it has to be.
    Field,
    /// Bad: memory below zero; its counters are left out, the line's apps are not.
    NegativeMemory,
    /// Bad: memory that no client's reading explains; left out likewise.
    ImplausibleMemory,
    /// A priority that stands for no importance; the process counts as cached.
    UnknownPriority,
    /// A package was installed, removed or disabled: no process.
    PackageEvent,
    /// An event that tells nothing of where an app stands; left out.
    IdleEvent,
    /// The sample before, once more; left out.
    Duplicate,
    /// The time of the sample before with other content; kept.
    RepeatedTime,
    /// Earlier than what came before; kept.
    TimeReversal,
    /// A day or more since the sample before; kept.
    Gap,
    /// A sample of the years of usage intervals that looks like a process list; kept.
    MixedInterval,
    /// Memory that the client could not read: nothing but zeros; left out.
    NoMemory,
    /// An iPhone, whose fields have other meanings; left out.
    AppleDevice,
    /// A time zone that the tz database does not have.
    TimeZone,
}

impl Reason {
    /// Whether something of the line could not be imported.
    pub fn is_bad(self) -> bool {
        self <= Self::ImplausibleMemory
    }

    /// The reason in a few words.
    pub fn words(self) -> &'static str {
        WORDS.findings.get(<&str>::from(self)).map_or("", String::as_str)
    }
}

/// A line that is told of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Why.
    pub reason: Reason,
    /// The file.
    pub file: String,
    /// The line, from one.
    pub line: u64,
    /// The field; empty where it is the line as a whole.
    pub field: String,
    /// What was expected, what was found, and what may be meant.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

/// The lines told of for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: Vec<Finding>,
}

/// How often names came; of too many different ones, the later are counted together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Each name.
    pub names: BTreeMap<String, u64>,
    /// Names beyond those.
    pub others: u64,
}

impl Tally {
    pub(super) fn add(&mut self, name: &str) {
        if let Some(count) = self.names.get_mut(name) {
            *count += 1;
        } else if self.names.len() < TALLIED {
            self.names.insert(excerpt(name).to_owned(), 1);
        } else {
            self.others += 1;
        }
    }
}

/// Upper bounds of the bins of [`Gaps`], in seconds; the last bin has none.
pub(crate) const GAP_BOUNDS: [(&str, u64); 7] = [
    ("under 1 s", 1),
    ("under 1 min", 60),
    ("under 5 min", 300),
    ("under 1 h", 3600),
    ("under 6 h", 21_600),
    ("under 1 day", 86_400),
    ("under 7 days", 604_800),
];

/// The times between a user's samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// How many, by `GAP_BOUNDS`, and last those that are longer.
    pub bins: [u64; GAP_BOUNDS.len() + 1],
}

impl Gaps {
    /// Counts a gap of `nanos` nanoseconds.
    pub fn add(&mut self, nanos: u64) {
        let place = GAP_BOUNDS.iter().position(|(_, bound)| nanos < bound * 1_000_000_000);
        if let Some(bin) = self.bins.get_mut(place.unwrap_or(GAP_BOUNDS.len())) {
            *bin += 1;
        }
    }

    /// The bins with their names.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        GAP_BOUNDS.iter().map(|(name, _)| *name).chain(["7 days and more"]).zip(self.bins)
    }
}

impl Serialize for Gaps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.named())
    }
}

/// How much of a user there is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Coverage {
    /// The user.
    pub user: String,
    /// Samples, or events.
    pub samples: u64,
    /// Days of UTC with a sample; a day that the trace comes back to counts again.
    pub days: u64,
    /// The first time, in seconds since 1970.
    pub first_s: f64,
    /// The last time.
    pub last_s: f64,
    /// The longest time without a sample, in seconds.
    pub longest_gap_s: f64,
}

/// What an import has read.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Files.
    pub files: u64,
    /// Bytes of their lines, unpacked.
    pub bytes: u64,
    /// Lines, good and bad.
    pub lines: u64,
    /// Lines without anything in them.
    pub blank_lines: u64,
    /// Lines that are about something else, such as a log's lines that tell of no kill, and headers.
    pub other_lines: u64,
    /// Lines of which something could not be imported.
    pub bad_lines: u64,
    /// Samples of a phone's state; events, where the kind has events.
    pub samples: u64,
    /// Rows of apps.
    pub app_rows: u64,
    /// Rows of counters.
    pub counter_rows: u64,
    /// Processes of a sample that were another of the same package: their least `oom_score_adj` was kept.
    pub merged_processes: u64,
    /// Whatever is told of, by reason.
    pub findings: BTreeMap<Reason, Findings>,
    /// Priorities without an importance.
    pub unmapped_priorities: Tally,
    /// What the battery was doing, whatever the case of the word.
    pub battery: Tally,
    /// Carat's memory by the client that misread it.
    pub memory_clients: Tally,
    /// The times between a user's samples.
    pub gaps: Gaps,
    /// How much of every user there is, in the order that they came.
    pub users: Vec<Coverage>,
    /// Samples of users beyond those: imported, but not looked at for order and gaps.
    pub untracked_samples: u64,
    /// What the rows rest on.
    pub notes: Vec<String>,
}

/// The beginning of a text, short enough for a message.
pub(super) fn excerpt(text: &str) -> &str {
    text.char_indices().nth(80).map_or(text, |(end, _)| text.get(..end).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_words() {
        for reason in Reason::VARIANTS {
            assert!(!reason.words().is_empty(), "{reason:?}");
        }
        assert_eq!(WORDS.findings.len(), Reason::VARIANTS.len());
    }
}
