//! Errors of a scenario, with their position.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::sync::Arc;

use haversack_devices::text::on_lines;
use haversack_devices::{CalibrationError, SelectionError};
use haversack_policies::PolicyError;
use haversack_training::MachineError;
use haversack_workloads::WorkloadError;
use thiserror::Error;

/// The source of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A program.
    #[default]
    Program,
    /// A flag of the command line.
    Flag,
    /// A line of a file.
    File {
        /// The file, as the user gave it.
        file: Arc<str>,
        /// The line, from one; zero for the file as a whole.
        line: usize,
    },
}

/// The kind of error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Fault {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Read(io::Error),
    /// The file is not TOML.
    #[error("not valid TOML: {0}")]
    Syntax(String),
    /// No key has this name.
    #[error("unknown key{hint}; valid keys are {valid}")]
    UnknownKey {
        /// A suggestion, or empty.
        hint: String,
        /// All valid keys.
        valid: String,
    },
    /// A required key is missing.
    #[error("missing; expected {0}")]
    Missing(&'static str),
    /// A value that the key cannot have.
    #[error("expected {expected}, found {found}{hint}")]
    Value {
        /// The values it may have.
        expected: String,
        /// The value it has.
        found: String,
        /// A suggestion, or empty.
        hint: String,
    },
    /// A value that is not possible, with the reason.
    #[error("{0}")]
    Refused(String),
    /// A malformed quantity.
    #[error(transparent)]
    Quantity(#[from] super::QuantityError),
    /// A device or stack that cannot be loaded.
    #[error(transparent)]
    Calibration(#[from] Box<CalibrationError>),
    /// A model that cannot be built.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// An invalid policy.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Cores or a frequency that the device does not have.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// A device and a stack that do not fit together.
    #[error("{error}{hint}")]
    Machine {
        /// The reason.
        error: Box<MachineError>,
        /// A suggestion, or empty.
        hint: String,
    },
}

impl From<Infallible> for Fault {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl Fault {
    /// A value that should have been another.
    pub(crate) fn value(expected: impl Into<String>, found: impl fmt::Display) -> Self {
        Self::hinted(expected, found, String::new())
    }

    /// The same with a suggestion.
    pub(crate) fn hinted(expected: impl Into<String>, found: impl fmt::Display, hint: String) -> Self {
        Self::Value { expected: expected.into(), found: found.to_string(), hint }
    }
}

/// An error in a scenario: the position, the field, and the kind of error.
#[derive(Debug, Error)]
#[error("{}{fault}{}", place(origin, field), on_lines(others))]
pub struct ScenarioError {
    /// The source of the value.
    pub origin: Origin,
    /// The key; empty for the file as a whole.
    pub field: String,
    /// The kind of error.
    pub fault: Box<Fault>,
    /// Further errors, in the order of the lines.
    pub others: Vec<ScenarioError>,
}

/// The result of reading a scenario.
pub(crate) type Result<T, E = ScenarioError> = std::result::Result<T, E>;

impl ScenarioError {
    /// An error of the field `field` of `origin`.
    pub fn new(origin: Origin, field: impl Into<String>, fault: impl Into<Fault>) -> Self {
        Self { origin, field: field.into(), fault: Box::new(fault.into()), others: Vec::new() }
    }

    /// The key that the error is about, or that was mistyped.
    fn meant(&self) -> Option<String> {
        match &*self.fault {
            Fault::Missing(_) => None,
            Fault::UnknownKey { hint, .. } => hint.split('\'').nth(1).map(str::to_owned),
            _ => Some(self.field.clone()),
        }
    }
}

/// The most mistakes that are collected.
const MOST_MISTAKES: usize = 100;

/// Mistakes as they are found, so that all are reported together.
#[derive(Debug, Default)]
pub(crate) struct Mistakes(Vec<ScenarioError>);

impl Mistakes {
    /// Adds a mistake and its `others`.
    pub(crate) fn add(&mut self, mut error: ScenarioError) {
        let others = std::mem::take(&mut error.others);
        // The same error from two readers of a value is reported once.
        for error in std::iter::once(error).chain(others) {
            if self.is_full() {
                return;
            }
            let text = error.to_string();
            if self.0.iter().all(|known| known.to_string() != text) {
                self.0.push(error);
            }
        }
    }

    /// The value; or `None` after adding the mistake.
    pub(crate) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    /// Whether a mistake at the position of `error` is known.
    pub(crate) fn is_known(&self, error: &ScenarioError) -> bool {
        self.0.iter().any(|known| known.origin == error.origin && known.field == error.field)
    }

    /// Whether it is full.
    pub(crate) const fn is_full(&self) -> bool {
        self.0.len() >= MOST_MISTAKES
    }

    /// Whether it is empty.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all mistakes as one error, those of a file in the order of its lines.
    ///
    /// # Errors
    /// Any mistake.
    pub(crate) fn finish(mut self) -> Result<()> {
        let told: Vec<String> = self.0.iter().filter_map(ScenarioError::meant).collect();
        // A missing key is not reported if the same key was given with a wrong value or misspelt.
        let goes_without_saying =
            |error: &ScenarioError| matches!(*error.fault, Fault::Missing(_)) && told.contains(&error.field);
        self.0.retain(|error| !goes_without_saying(error));
        self.0.sort_by_key(|error| match error.origin {
            Origin::File { line, .. } => line,
            Origin::Program | Origin::Flag => usize::MAX,
        });
        let mut errors = self.0.into_iter();
        let Some(first) = errors.next() else { return Ok(()) };
        Err(ScenarioError { others: errors.collect(), ..first })
    }
}

/// `file:line: field: `, `--flag: ` or `field: `.
fn place(origin: &Origin, field: &str) -> String {
    let field_after = |place: String| if field.is_empty() { place } else { format!("{place}{field}: ") };
    match origin {
        Origin::Program => field_after(String::new()),
        Origin::Flag => format!("--{}: ", field.replace('_', "-")),
        Origin::File { file, line: 0 } => field_after(format!("{file}: ")),
        Origin::File { file, line } => field_after(format!("{file}:{line}: ")),
    }
}
