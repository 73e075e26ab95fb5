//! What can be wrong with a data set on the disc, or its name.

use std::fmt::{self, Display};
use std::path::Path;

use haversack_devices::text::question;
use thiserror::Error;

use super::files::KINDS;

/// Why there is no data set, in words: a file or folder that cannot be read, or holds something else than it should; a name that is
/// neither that of a set that is made by code nor anything on the disc.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct DataError(String);

/// Where in a file something is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// A byte, counted from 0; of a compressed file, of what is in it.
    Byte(usize),
    /// A line, counted from 1.
    Line(u64),
}

impl Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Byte(byte) => write!(f, "byte {byte}"),
            Self::Line(line) => write!(f, "line {line}"),
        }
    }
}

impl DataError {
    pub(super) fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self(format!("cannot read {}: {source}", path.display()))
    }

    pub(super) fn wrong(path: &Path, place: Place, found: impl Display, expected: impl Display) -> Self {
        Self(format!("{}, {place}: found {found}; expected {expected}", path.display()))
    }

    /// A file or folder of no known kind.
    pub(super) fn unrecognised(path: &Path, found: impl Display) -> Self {
        Self(format!("{}: found {found}; expected {KINDS}", path.display()))
    }

    pub(super) fn unknown(name: &str, nearest: Option<&str>) -> Self {
        let guess = question(nearest);
        Self(format!("unknown data set '{name}'{guess}; expected glyphs, phrases, or the path of {KINDS}"))
    }
}
