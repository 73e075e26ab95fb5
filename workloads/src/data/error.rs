//! What can be wrong with a data set on the disc, or its name.

use std::path::{Path, PathBuf};

use haversack_devices::text::question;
use thiserror::Error;

/// Why there is no data set.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file or folder that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that holds something else than it should.
    #[error("{}, {place}: found {found}; expected {expected}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The byte, counted from 0, or the line, counted from 1.
        place: Place,
        /// What is there.
        found: String,
        /// What should be.
        expected: String,
    },
    /// A file or folder of no known kind.
    #[error("{}: found {found}; expected {}", path.display(), super::files::KINDS)]
    Unrecognised {
        /// The file or folder.
        path: PathBuf,
        /// What it is.
        found: String,
    },
    /// Neither a set that is made by code nor anything on the disc.
    #[error("unknown data set '{name}'{}; expected glyphs, phrases, or the path of {}", question(nearest.as_deref()), super::files::KINDS)]
    Unknown {
        /// The name asked for.
        name: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
}

/// Where in a file something is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// A byte, counted from 0; of a compressed file, of what is in it.
    Byte(usize),
    /// A line, counted from 1.
    Line(u64),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Byte(byte) => write!(f, "byte {byte}"),
            Self::Line(line) => write!(f, "line {line}"),
        }
    }
}

impl DataError {
    pub(super) fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Read { path, source }
    }

    pub(super) fn wrong(path: &Path, place: Place, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Wrong { path: path.to_path_buf(), place, found: found.into(), expected: expected.into() }
    }
}
