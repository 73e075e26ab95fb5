//! The source of a specification: a file named on the command line, or text made by a program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::progress::word;
use crate::{CommandError, Result};

/// The source of a specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// TOML text made by a program, and its name in errors.
    Text {
        /// The name before the line number in errors.
        name: String,
        /// The text.
        text: String,
    },
    /// Text that comes with a command of its own.
    Own {
        /// The command.
        command: &'static str,
        /// The text.
        text: &'static str,
    },
}

impl From<OsString> for Source {
    fn from(path: OsString) -> Self {
        Self::File(path.into())
    }
}

impl Source {
    /// The name for errors, and the text.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(crate) fn read(&self) -> Result<(String, String)> {
        match self {
            Self::Text { name, text } => Ok((name.clone(), text.clone())),
            Self::Own { command, text } => Ok((format!("{command}.toml"), (*text).to_owned())),
            Self::File(path) => {
                let file = path.display().to_string();
                let text = std::fs::read_to_string(path)
                    .map_err(|error| CommandError::input(format!("{file}: cannot be read: {error}")))?;
                Ok((file, text))
            }
        }
    }

    /// How to resume after `command` was stopped: the same command line, or the program's call.
    pub(crate) fn to_go_on(&self, command: &str, out: &Path, flags: &str) -> String {
        match self {
            Self::File(path) => format!("haversack {command} {} --out {}{flags} --resume", word(path), word(out)),
            Self::Own { command, .. } => format!("haversack {command} --out {} --resume", word(out)),
            Self::Text { .. } => format!("{command}(…, out=\"{}\", resume=True)", out.display()),
        }
    }
}
