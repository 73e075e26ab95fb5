//! The errors of a command, and their exit codes.

use std::fmt::Display;
use std::io;

use haversack_devices::CalibrationError;
use haversack_policies::PolicyError;
use haversack_replay::{LogError, ReplayError};
use haversack_reports::{FigureError, FileError, FrameError};
use haversack_workloads::WorkloadError;
use thiserror::Error;

use crate::interrupt;
use crate::progress::Stopped;
use crate::run::PlanError;
use crate::scenario::ScenarioError;
use crate::trace_table::TableError;

/// The error that ends a command.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The input is wrong; the message states what was expected.
    #[error("{0}")]
    Input(String),
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The scenario is right, but no run of it can exist.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A device or a stack is wrong.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// A model is wrong.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A policy is wrong.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// An operator log is wrong.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The settings of a replay are wrong.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The input is right, but no plan fits memory or time.
    #[error("{0}")]
    NoPlan(String),
    /// The run failed, with the reason.
    #[error("{0}")]
    Failed(String),
    /// The program was interrupted by Ctrl-C.
    #[error("stopped by Ctrl-C")]
    Interrupted,
    /// The program was interrupted by Ctrl-C; finished work is kept.
    #[error(transparent)]
    Stopped(Stopped),
    /// A file could not be written or read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A table could not be written or read.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A figure could not be drawn.
    #[error(transparent)]
    Figure(#[from] FigureError),
    /// The standard output could not be written.
    #[error("cannot write to the standard output: {0}")]
    Output(io::Error),
    /// The reader of the standard output closed it; not an error.
    #[error("the standard output was closed")]
    OutputClosed,
}

/// The result of a command.
pub type Result<T, E = CommandError> = std::result::Result<T, E>;

impl From<TableError> for CommandError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Input(message) => Self::Input(message),
            TableError::File(error) => Self::File(error),
            TableError::Frame(error) => Self::Frame(error),
        }
    }
}

impl CommandError {
    /// An error of the input.
    pub fn input(message: impl Display) -> Self {
        Self::Input(message.to_string())
    }

    /// A failure of the run.
    pub fn failed(message: impl Display) -> Self {
        Self::Failed(message.to_string())
    }

    /// An error while writing to the standard output.
    pub fn output(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::OutputClosed } else { Self::Output(error) }
    }

    /// The same error for resumable work: adds how to resume after Ctrl-C or a failure.
    pub fn stopped(self, stopped: Stopped) -> Self {
        match self {
            Self::Interrupted => Self::Stopped(stopped),
            error if error.exit_code() == 1 => Self::Failed(format!("{error}; {stopped}")),
            error => error,
        }
    }

    /// The exit code: 130 after Ctrl-C, 1 if the run failed, 2 if the input is wrong, 3 if it is right and no plan fits
    /// memory or time, 0 if nothing failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::Interrupted | Self::Stopped(_) => interrupt::EXIT_CODE,
            Self::Plan(PlanError::Infeasible { .. }) | Self::NoPlan(_) => 3,
            Self::Plan(error) if !error.is_input() => 1,
            Self::Failed(_) | Self::File(_) | Self::Frame(_) | Self::Figure(_) | Self::Output(_) => 1,
            _ => 2,
        }
    }
}
