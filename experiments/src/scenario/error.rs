//! What can be wrong with a scenario, and where.

use std::fmt;
use std::io;
use std::sync::Arc;

use haversack_devices::CalibrationError;
use haversack_devices::processor::SelectionError;
use haversack_policies::PolicyError;
use haversack_training::MachineError;
use haversack_workloads::WorkloadError;
use thiserror::Error;

/// Who gave a value.
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

/// What is wrong.
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
        /// A guess at what was meant, or nothing.
        hint: String,
        /// All valid keys.
        valid: String,
    },
    /// A key that is needed is not there.
    #[error("missing; expected {0}")]
    Missing(&'static str),
    /// A value that the key cannot have.
    #[error("expected {expected}, found {found}{hint}")]
    Value {
        /// What it may be.
        expected: String,
        /// What it is.
        found: String,
        /// A guess at what was meant, or nothing.
        hint: String,
    },
    /// A value that cannot be had, in words.
    #[error("{0}")]
    Refused(String),
    /// A quantity that is none.
    #[error(transparent)]
    Quantity(#[from] super::QuantityError),
    /// A device or stack that cannot be loaded.
    #[error(transparent)]
    Calibration(#[from] Box<CalibrationError>),
    /// A model that cannot be built.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A policy that cannot be had.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Cores or a frequency that cannot be had.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// A device and a stack that do not go together.
    #[error("{error}{hint}")]
    Machine {
        /// Why not.
        error: Box<MachineError>,
        /// What to try, or nothing.
        hint: String,
    },
}

impl Fault {
    /// A value that should have been something else.
    pub(crate) fn value(expected: impl Into<String>, found: impl fmt::Display) -> Self {
        Self::Value { expected: expected.into(), found: found.to_string(), hint: String::new() }
    }
}

/// A scenario that cannot be run: the place, the field, and what is wrong with it.
#[derive(Debug, Error)]
#[error("{}{fault}", place(origin, field))]
pub struct ScenarioError {
    /// Who gave the value.
    pub origin: Origin,
    /// The key; empty for a file as a whole.
    pub field: String,
    /// What is wrong.
    pub fault: Box<Fault>,
}

impl ScenarioError {
    /// A fault of the field `field` of `origin`.
    pub fn new(origin: Origin, field: impl Into<String>, fault: impl Into<Fault>) -> Self {
        Self { origin, field: field.into(), fault: Box::new(fault.into()) }
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
