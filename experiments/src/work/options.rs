//! The flags of long work.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use rayon::ThreadPool;

use crate::{CommandError, Result};

/// Where long work goes, and how it is done.
#[derive(Clone, Debug, Default, Args)]
pub struct WorkOptions {
    /// The folder to write to
    #[arg(long, value_name = "DIR", default_value = "out")]
    pub out: PathBuf,
    /// Goes on where the same command was stopped or killed, and keeps what it has finished
    #[arg(long)]
    pub resume: bool,
    /// Deletes what the folder lists of another command or specification
    #[arg(long)]
    pub overwrite: bool,
    /// Parts that run at once [default: one a processor]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
}

impl WorkOptions {
    /// As many threads as parts run at once.
    ///
    /// # Errors
    /// Threads that cannot be started.
    pub(crate) fn pool(&self) -> Result<ThreadPool> {
        let builder = rayon::ThreadPoolBuilder::new().num_threads(self.jobs.map_or(0, NonZeroUsize::get));
        builder.build().map_err(|error| CommandError::failed(format!("cannot start the threads: {error}")))
    }
}

/// What `merge` is asked for.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  haversack merge part1 part2 --out whole")]
pub struct MergeOptions {
    /// The folders of all shards of one sweep, reproduction or federation
    #[arg(value_name = "DIR", required = true)]
    pub shards: Vec<PathBuf>,
    /// The folder to write to
    #[arg(long, value_name = "DIR", default_value = "out")]
    pub out: PathBuf,
    /// Deletes what the folder lists of another command or specification
    #[arg(long)]
    pub overwrite: bool,
}
