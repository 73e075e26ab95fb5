//! What can be wrong with a TOML file, and where.

use std::fmt;

use thiserror::Error;

use super::aside;

/// Where in a file something was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file, as shown to people.
    pub file: String,
    /// The line, from one; zero for a value that a program gave.
    pub line: usize,
    /// The dotted name of the field (`gpu.launch`, `cpu.1.core`); empty at the top of the file.
    pub field: String,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.field.is_empty() {
            write!(f, ": `{}`", self.field)?;
        }
        Ok(())
    }
}

/// Why a TOML file was refused: the first mistake, and all others, a line each.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{at}: {problem}{}", on_lines(others))]
pub struct TomlError {
    /// Where.
    pub at: Box<Location>,
    /// What is wrong there.
    pub problem: TomlProblem,
    /// What else is wrong, in the order of the file.
    pub others: Vec<TomlError>,
}

/// Each of `errors` on a line of its own, after a line.
fn on_lines(errors: &[TomlError]) -> String {
    errors.iter().map(|error| format!("\n{error}")).collect()
}

impl TomlError {
    /// That there is a problem at a place.
    pub(crate) fn new(at: Location, problem: TomlProblem) -> Self {
        Self { at: Box::new(at), problem, others: Vec::new() }
    }

    /// The first of `errors`, with the others after it.
    pub(super) fn of(errors: impl IntoIterator<Item = Self>) -> Self {
        let mut errors = errors.into_iter();
        let nothing = || Self::of_program("", "", String::new());
        let first = errors.next().unwrap_or_else(nothing);
        Self { others: errors.collect(), ..first }
    }

    /// Refuses a value that a program gave to `field`, which therefore has no line.
    pub(crate) fn of_program(file: &str, field: &str, message: String) -> Self {
        let at = Location { file: file.to_owned(), line: 0, field: field.to_owned() };
        Self::new(at, TomlProblem::Refused(message))
    }
}

/// What can be wrong at a place of a TOML file.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum TomlProblem {
    /// Not TOML, in the parser's words.
    #[error("not valid TOML: {0}")]
    Syntax(String),
    /// A key that no field has.
    #[error("unknown key{}; valid keys: {}", aside(nearest.as_deref()), valid.join(", "))]
    UnknownKey {
        /// The valid key most like it.
        nearest: Option<String>,
        /// All valid keys.
        valid: &'static [&'static str],
    },
    /// A required key that is not there, and what it holds; the line is that of its table.
    #[error("missing key; expected {0}")]
    MissingKey(String),
    /// A value of another type.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// What the field holds.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A word that is not among the choices.
    #[error("unknown value `{found}`{}; expected one of {}", aside(nearest.as_deref()), expected.join(", "))]
    UnknownChoice {
        /// The word that stands there.
        found: String,
        /// The valid word most like it.
        nearest: Option<String>,
        /// The valid words.
        expected: &'static [&'static str],
    },
    /// Whatever the type that reads the value finds wrong with it, in its own words.
    #[error("{0}")]
    Refused(String),
}
