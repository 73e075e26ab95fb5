//! What can be wrong with a log, a heuristic's name or a replay's settings.

use haversack_devices::text::{alternatives, question};
use thiserror::Error;

/// A log that cannot be replayed, in words: the file, where there is one the line and the field, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct LogError(pub(crate) String);

/// Settings that no replay can have.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The ratio is zero, negative or not finite.
    #[error("memory ratio {0}: expected a positive number, such as 0.5")]
    MemoryRatio(f64),
    /// The limit leaves no time for the log itself.
    #[error("overhead limit {0}: expected a number of at least 1, such as 4.0")]
    OverheadLimit(f64),
    /// No heuristic has this name.
    #[error("unknown heuristic '{found}'; expected {}{}", alternatives(valid.iter().copied()), question(*nearest))]
    UnknownHeuristic {
        /// The name found.
        found: String,
        /// The valid name nearest to it, where one is near.
        nearest: Option<&'static str>,
        /// All valid names.
        valid: Vec<&'static str>,
    },
}
