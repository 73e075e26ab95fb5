//! What can be wrong with a log, a heuristic's name or a replay's settings.

use std::io;

use haversack_devices::text::{alternatives, question};
use thiserror::Error;

/// A log that cannot be replayed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Read {
        /// The log.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file, a log, has no lines.
    #[error("{0}: the log is empty; expected one JSON instruction per line")]
    Empty(String),
    /// Nothing in the log marks where recording began.
    #[error(r#"{0}: no line starts the log; expected {{"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}}"#)]
    NoStart(String),
    /// The log has no baseline to compare with.
    #[error("{0}: no operator after START takes time; expected at least one CALL or MUTATE with a positive TIME")]
    NothingToReplay(String),
    /// One line is wrong.
    #[error("{file}:{line}: {fault}")]
    Line {
        /// The log.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        fault: LineFault,
    },
}

/// What is wrong with one line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LineFault {
    /// The line is not text; its first offending byte, counted from 1.
    #[error("not UTF-8 from byte {0} of the line; expected a JSON object")]
    NotUtf8(usize),
    /// The line is not a JSON object; the parser's reason, with its column.
    #[error("expected a JSON object: {0}")]
    Json(String),
    /// `INSTRUCTION` is none of the known ones.
    #[error("field INSTRUCTION: unknown instruction '{found}'{}", question(*nearest))]
    UnknownInstruction {
        /// The word found.
        found: String,
        /// The valid word nearest to it, where one is near.
        nearest: Option<&'static str>,
    },
    /// A field is absent.
    #[error("{instruction}: field {field} is missing; expected {expected}")]
    MissingField {
        /// The instruction, or `line` where that is what is missing.
        instruction: String,
        /// The field.
        field: &'static str,
        /// What it should hold.
        expected: &'static str,
    },
    /// A field holds something else than it should.
    #[error("field {field}: expected {expected}, found {found}")]
    Value {
        /// The field.
        field: &'static str,
        /// What it should hold.
        expected: &'static str,
        /// What it holds.
        found: String,
    },
    /// The line that must come next is another one, or the log ends.
    #[error("expected {} {expected} line for '{name}', found {found}", if *expected == "ALIAS" { "an" } else { "a" })]
    Sequence {
        /// `MEMORY` or `ALIAS`.
        expected: &'static str,
        /// The tensor that it should describe.
        name: String,
        /// What is there.
        found: String,
    },
    /// A line that only follows another one, `MEMORY` or `ALIAS`, stands alone.
    #[error("{0} line without a CALL or CONSTANT before it")]
    Stray(&'static str),
    /// A tensor is used that no line made.
    #[error("field {field}: unknown tensor '{name}'{}; expected the name of a CONSTANT, a RESULT or a DST", hint(nearest.as_deref()))]
    UnknownName {
        /// The field.
        field: &'static str,
        /// The name found.
        name: String,
        /// The known name nearest to it, where one is near.
        nearest: Option<String>,
    },
    /// An index points past the arguments.
    #[error("field {field}: index {index} is out of range; expected {expected}{arguments}, the number of arguments")]
    Index {
        /// The field.
        field: &'static str,
        /// The index found.
        index: u64,
        /// The start of the sentence that says what is valid.
        expected: &'static str,
        /// The number of arguments.
        arguments: usize,
    },
    /// An operator makes nothing, as the field says.
    #[error("field {0}: the operator has no output; expected at least one")]
    NoOutput(&'static str),
    /// The sum of a field over the log is past what is counted exactly.
    #[error("field {field}: the log's total passes {limit}, the most that is counted exactly")]
    TooLarge {
        /// The field.
        field: &'static str,
        /// The most.
        limit: u64,
    },
}

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

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default()
}
