//! What can be wrong with a calibration.

use thiserror::Error;

use crate::text::{TomlError, aside};

/// Why a calibration could not be loaded or overridden. All are the author's to mend; none is fatal to a program
/// that can name another calibration.
#[derive(Debug, Error)]
pub enum CalibrationError {
    /// The file is not exactly the schema, or contradicts itself; an override that would make it so has no line.
    #[error(transparent)]
    Toml(#[from] TomlError),
    /// No built-in calibration has this id.
    #[error("unknown {what} `{id}`{}; expected the path of a .toml file or one of {}", aside(nearest.as_deref()), valid.join(", "))]
    UnknownId {
        /// `device`, `software stack` or `operating system`.
        what: &'static str,
        /// The id that was asked for.
        id: String,
        /// The valid id most like it.
        nearest: Option<String>,
        /// All valid ids.
        valid: Vec<&'static str>,
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
    #[error("{file}: no constant is named `{name}`{}", aside(nearest.as_deref()))]
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
