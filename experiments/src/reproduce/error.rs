//! Why a reproduction was not made, or not whole.

use std::io;
use std::path::PathBuf;

use haversack_devices::CalibrationError;
use haversack_reports::FileError;
use haversack_reports::page::PageError;
use haversack_reports::table::WidthError;
use haversack_traces::usage::DataError;

use super::selection::UnknownSelector;
use crate::error::CommandError;
use crate::interrupt;
use crate::papers::readings::ReadingsError;
use crate::papers::reference::ReferenceError;
use crate::progress::Stopped;
use crate::work::FolderError;

/// Why a reproduction was not made, or not whole.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// A selector that selects nothing. Nothing was written.
    #[error(transparent)]
    Selector(#[from] UnknownSelector),
    /// The folder cannot be used. Nothing was written.
    #[error(transparent)]
    Folder(FileError),
    /// The folder is somebody else's. Nothing was written.
    #[error(transparent)]
    Owner(#[from] FolderError),
    /// The input is wrong, in words. Nothing was written.
    #[error("{0}")]
    Input(String),
    /// The folder holds artefacts that were made with something else. Nothing was written.
    #[error(
        "{} holds {} of another version or with other calibrations; expected another folder, all of them at once, or \
         --overwrite, which deletes those that are not asked for", folder.display(), few(others)
    )]
    Others {
        /// The folder.
        folder: PathBuf,
        /// `paper/artefact` of each.
        others: Vec<String>,
    },
    /// Ctrl-C came.
    #[error("stopped by Ctrl-C")]
    Interrupted,
    /// Ctrl-C came; what is finished is kept.
    #[error(transparent)]
    Stopped(Stopped),
    /// It failed on the way; what is finished is kept.
    #[error("{error}; {stopped}")]
    Cut {
        /// Why.
        error: Box<ReproduceError>,
        /// How far it came.
        stopped: Stopped,
    },
    /// The page's figure of all numbers could not be drawn: a mistake of this crate.
    #[error("the figure of all numbers cannot be drawn: {0}")]
    Overview(#[from] haversack_reports::FigureError),
    /// A file could not be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The embedded reference is wrong.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// The embedded readings are wrong.
    #[error(transparent)]
    Readings(#[from] ReadingsError),
    /// A calibration that an artefact names is wrong.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// The built-in model of users or table of footprints is wrong.
    #[error(transparent)]
    Users(#[from] DataError),
    /// The page could not be rendered.
    #[error(transparent)]
    Page(#[from] PageError),
    /// A table of another width than its header.
    #[error(transparent)]
    Table(#[from] WidthError),
    /// `run.json` could not be encoded.
    #[error("cannot encode run.json: {0}")]
    Record(#[from] serde_json::Error),
    /// The threads could not be started.
    #[error("cannot start the threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// The report could not be printed; everything else was done.
    #[error("cannot write to the standard output: {0}")]
    Output(io::Error),
    /// Artefacts that failed; everything else was written.
    #[error("the rest was written, but this went wrong:\n  {}", failures.join("\n  "))]
    Artefacts {
        /// `paper/artefact: why`, one for each thing that went wrong.
        failures: Vec<String>,
    },
}

impl From<ReproduceError> for CommandError {
    fn from(error: ReproduceError) -> Self {
        match error {
            ReproduceError::Interrupted => Self::Interrupted,
            ReproduceError::Stopped(stopped) => Self::Stopped(stopped),
            ReproduceError::Owner(error) => Self::Folder(error),
            ReproduceError::File(error) => Self::File(error),
            error if error.exit_code() == 2 => Self::input(error),
            error => Self::failed(error),
        }
    }
}

/// The first of the names, and how many more there are.
fn few(names: &[String]) -> String {
    let first = names.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > 3 { format!("{first} and {} more artefacts", names.len() - 3) } else { first }
}

impl ReproduceError {
    /// The same of work that goes on where it was stopped; what never began to run stays as it is.
    pub(super) fn stopped(self, stopped: Stopped) -> Self {
        match self {
            Self::Interrupted => Self::Stopped(stopped),
            error => Self::Cut { error: Box::new(error), stopped },
        }
    }

    /// 2 where the input is wrong, 130 where Ctrl-C came, 1 where the run failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Owner(error) if error.is_disc_full() => 1,
            Self::Selector(_) | Self::Folder(_) | Self::Owner(_) | Self::Input(_) | Self::Others { .. } => 2,
            Self::Interrupted | Self::Stopped(_) => interrupt::EXIT_CODE,
            _ => 1,
        }
    }
}
