//! Why a reproduction was not made, or not whole.

use std::io;

use haversack_devices::CalibrationError;
use haversack_reports::FileError;
use haversack_reports::page::PageError;
use haversack_reports::table::WidthError;
use haversack_traces::usage::DataError;

use super::readings::ReadingsError;
use super::reference::ReferenceError;
use super::selection::UnknownSelector;
use crate::output_folder::FolderError;

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

impl ReproduceError {
    /// 2 where the input is wrong, 1 where the run failed.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Selector(_) | Self::Folder(_) | Self::Owner(_) => 2,
            _ => 1,
        }
    }
}
