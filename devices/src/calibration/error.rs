//! What can be wrong with a calibration. Every variant about a file names the file, the line and
//! the field, what was expected and, where there is one, the nearest valid name.

use thiserror::Error;

/// Where in a calibration something was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file, as shown to people.
    pub file: String,
    /// The line, from one; nought for a value that a program gave.
    pub line: usize,
    /// The dotted name of the field; empty at the top of the file.
    pub field: String,
}

impl Location {
    /// The field of a calibration that a program, not a file, gave a value.
    pub(crate) fn of_override(file: &str, field: &str) -> Box<Self> {
        Box::new(Self { file: file.to_owned(), line: 0, field: field.to_owned() })
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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

/// Why a calibration could not be loaded or overridden. All are the author's to mend; none is fatal to a program
/// that can name another calibration.
#[derive(Debug, Error)]
pub enum CalibrationError {
    /// Not TOML.
    #[error("{at}: not valid TOML: {message}")]
    Syntax {
        /// Where.
        at: Box<Location>,
        /// The parser's words.
        message: String,
    },
    /// A key that no field has.
    #[error("{at}: unknown key{}; valid keys: {}", hint(nearest.as_deref()), valid.join(", "))]
    UnknownKey {
        /// Where.
        at: Box<Location>,
        /// The valid key most like it.
        nearest: Option<String>,
        /// All valid keys.
        valid: Vec<String>,
    },
    /// A required key is not there.
    #[error("{at}: missing key; expected {expected}")]
    MissingKey {
        /// Where the key belongs; the line is that of its table.
        at: Box<Location>,
        /// What the field holds.
        expected: String,
    },
    /// A value of another type.
    #[error("{at}: expected {expected}, found {found}")]
    WrongType {
        /// Where.
        at: Box<Location>,
        /// What the field holds.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A unit that does not measure what the field holds.
    #[error("{at}: wrong unit `{found}`{}; expected one of {}", hint(nearest.as_deref()), expected.join(", "))]
    WrongUnit {
        /// Where.
        at: Box<Location>,
        /// The unit that stands there.
        found: String,
        /// The valid unit most like it.
        nearest: Option<String>,
        /// The units that the field accepts.
        expected: Vec<String>,
    },
    /// A word that is not among the choices.
    #[error("{at}: unknown value `{found}`{}; expected one of {}", hint(nearest.as_deref()), expected.join(", "))]
    UnknownChoice {
        /// Where.
        at: Box<Location>,
        /// The word that stands there.
        found: String,
        /// The valid word most like it.
        nearest: Option<String>,
        /// The valid words.
        expected: Vec<String>,
    },
    /// A number outside what the field can mean.
    #[error("{at}: {found} is out of range; expected {expected}")]
    OutOfRange {
        /// Where.
        at: Box<Location>,
        /// The number, in the unit of the file.
        found: f64,
        /// The valid range.
        expected: String,
    },
    /// Fields that contradict each other.
    #[error("{at}: {message}")]
    Inconsistent {
        /// Where.
        at: Box<Location>,
        /// The contradiction.
        message: String,
    },
    /// No built-in calibration has this id.
    #[error("unknown {what} `{id}`{}; expected the path of a .toml file or one of {}", hint(nearest.as_deref()), valid.join(", "))]
    UnknownId {
        /// `device` or `software stack`.
        what: &'static str,
        /// The id that was asked for.
        id: String,
        /// The valid id most like it.
        nearest: Option<String>,
        /// All valid ids.
        valid: Vec<String>,
    },
    /// A file that could not be read.
    #[error("cannot read the calibration {path}: {source}")]
    Read {
        /// The path.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// An override of a constant that does not exist.
    #[error("{file}: no constant is named `{name}`{}", hint(nearest.as_deref()))]
    UnknownConstant {
        /// The calibration.
        file: String,
        /// The name that was asked for.
        name: String,
        /// The valid name most like it.
        nearest: Option<String>,
    },
    /// A shortened name that fits more than one constant.
    #[error("{file}: `{name}` could be any of {}", candidates.join(", "))]
    AmbiguousConstant {
        /// The calibration.
        file: String,
        /// The name that was asked for.
        name: String,
        /// The constants that it fits.
        candidates: Vec<String>,
    },
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// The valid name most like `name`, where one is close enough to be meant.
pub(crate) fn nearest<'a>(name: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let name = name.to_lowercase();
    valid
        .into_iter()
        .map(|candidate| {
            let distance = strsim::osa_distance(&name, &candidate.to_lowercase());
            (distance, candidate)
        })
        .min_by_key(|&(distance, candidate)| (distance, candidate.len()))
        .filter(|&(distance, candidate)| distance <= 2.max(candidate.chars().count().max(name.chars().count()) / 2))
        .map(|(_, candidate)| candidate.to_owned())
}
