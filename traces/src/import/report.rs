//! The report of an import: what was read, what was left out, and oddities.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};
use strum::{IntoStaticStr, VariantArray};

use crate::words::WORDS;

/// The number of different names that a [`Tally`] distinguishes; others are counted together.
const TALLIED: usize = 64;

/// The reason for a finding.
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
    /// Bad: not UTF-8.
    NotText,
    /// Bad: not JSON.
    NotJson,
    /// Bad: not the columns of the kind.
    Columns,
    /// Bad: a field is missing, or has a wrong value.
    Field,
    /// Bad: memory below zero; its counters are left out, the line's apps are not.
    NegativeMemory,
    /// Bad: memory that no client's reading explains; also left out.
    ImplausibleMemory,
    /// A priority that corresponds to no importance; the process counts as cached.
    UnknownPriority,
    /// A package was installed, removed or disabled: no process.
    PackageEvent,
    /// An event that does not show the state of an app; left out.
    IdleEvent,
    /// A repetition of the previous sample; left out.
    Duplicate,
    /// The same time as the previous sample, with other content; kept.
    RepeatedTime,
    /// Earlier than the previous sample; kept.
    TimeReversal,
    /// A day or more after the previous sample; kept.
    Gap,
    /// A sample of the years of usage intervals that looks like a process list; kept.
    MixedInterval,
    /// Memory that the client could not read: only zeros; left out.
    NoMemory,
    /// An iPhone, whose fields have other meanings; left out.
    AppleDevice,
    /// A time zone that is not in the tz database.
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

/// A line with a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The reason.
    pub reason: Reason,
    /// The file.
    pub file: String,
    /// The line, from one.
    pub line: u64,
    /// The field; empty if it is the whole line.
    pub field: String,
    /// The expected and the found value, and a suggestion.
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

/// The findings for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Their number.
    pub count: u64,
    /// The first of them.
    pub first: Vec<Finding>,
}

/// The counts of names; the later of too many different ones are counted together.
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
    /// The number of gaps per bin of `GAP_BOUNDS`, and last of the longer ones.
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

/// The extent of a user's data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Coverage {
    /// The user.
    pub user: String,
    /// Samples, or events.
    pub samples: u64,
    /// Days of UTC with a sample; a day to which the trace returns is counted again.
    pub days: u64,
    /// The first time, in seconds since 1970.
    pub first_s: f64,
    /// The last time.
    pub last_s: f64,
    /// The longest time without a sample, in seconds.
    pub longest_gap_s: f64,
}

/// The results of an import.
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
    /// Lines about something else, such as a log's lines without a kill, and headers.
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
    /// All findings, by reason.
    pub findings: BTreeMap<Reason, Findings>,
    /// Priorities without an importance.
    pub unmapped_priorities: Tally,
    /// The state of the battery; words are compared without case.
    pub battery: Tally,
    /// Carat's memory by the client that misread it.
    pub memory_clients: Tally,
    /// The times between a user's samples.
    pub gaps: Gaps,
    /// The extent of each user's data, in order of appearance.
    pub users: Vec<Coverage>,
    /// Samples of users beyond those: imported, but not checked for order and gaps.
    pub untracked_samples: u64,
    /// Assumptions behind the rows.
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
