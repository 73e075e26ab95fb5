//! Carat's words for the importance of a process, and the `oom_score_adj` each stands for.
//!
//! Words: `CaratApplication.importanceToString` and `Constants.java` of carat-android, in every spelling that clients
//! have sent. Values: the least of the word's range in `ProcessList.java` (AOSP); a service is taken as a young one.

use crate::row::{Confidence, OomAdj};

/// What a word stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Priority {
    /// A process.
    Process(OomAdj, Confidence),
    /// Something that happened to a package.
    PackageEvent,
    /// An importance that the client had no word for, or a word that nobody knows.
    Unknown,
}

const PRIORITIES: [(&str, Priority); 13] = [
    ("Background process", Priority::Process(OomAdj::CACHED_APP_MIN, Confidence::Inferred)),
    ("Service", Priority::Process(OomAdj::SERVICE, Confidence::Inferred)),
    ("Foreground app", Priority::Process(OomAdj::FOREGROUND_APP, Confidence::Inferred)),
    ("Visible task", Priority::Process(OomAdj::VISIBLE_APP, Confidence::Inferred)),
    ("Perceptible task", Priority::Process(OomAdj::PERCEPTIBLE_APP, Confidence::Inferred)),
    ("Foreground service", Priority::Process(OomAdj::PERCEPTIBLE_RECENT_FOREGROUND_APP, Confidence::Inferred)),
    ("Not running", Priority::Process(OomAdj::CACHED_APP_MAX, Confidence::Inferred)),
    ("Unknown", Priority::Unknown),
    ("uninstalled", Priority::PackageEvent),
    ("disabled", Priority::PackageEvent),
    ("installed", Priority::PackageEvent),
    ("replaced", Priority::PackageEvent),
    // Only ever shown to the user, but nothing forbids a client to send it.
    ("Suggestion", Priority::PackageEvent),
];

/// What `word` stands for, whatever its case.
pub(super) fn priority(word: &str) -> Priority {
    // The words come first in the spelling of the data, and most often the first ones.
    let exact = PRIORITIES.iter().find(|(known, _)| *known == word);
    let found = exact.or_else(|| PRIORITIES.iter().find(|(known, _)| known.eq_ignore_ascii_case(word.trim())));
    found.map_or(Priority::Unknown, |(_, priority)| *priority)
}

/// All words.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    PRIORITIES.iter().map(|(word, _)| *word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_match_whatever_their_case() {
        for word in ["Not running", "Not Running", " not running"] {
            assert_eq!(priority(word), Priority::Process(OomAdj(999), Confidence::Inferred), "{word}");
        }
        assert_eq!(priority("foreground APP"), Priority::Process(OomAdj(0), Confidence::Inferred));
        assert_eq!(priority("Uninstalled"), Priority::PackageEvent);
        // The official tool compares with these two, which no client sends.
        assert_eq!(priority("foreground"), Priority::Unknown);
        assert_eq!(priority("visible"), Priority::Unknown);
    }

    #[test]
    fn values_are_androids() {
        let table = include_str!("../../../fixtures/android_oom_adj.csv");
        let mut seen = 0;
        for row in table.lines().skip(1) {
            let fields: Vec<&str> = row.split(',').collect();
            let [_, adj, word] = fields[..] else { panic!("{row}") };
            let word = word.trim_end_matches(" (empty)");
            // Android's 1001 for Unknown is no value that a process can have; it is taken as cached.
            if !word.is_empty() && word != "Unknown" {
                assert_eq!(priority(word), Priority::Process(OomAdj(adj.parse().unwrap()), Confidence::Inferred));
                seen += 1;
            }
        }
        assert_eq!(seen, 7);
    }
}
