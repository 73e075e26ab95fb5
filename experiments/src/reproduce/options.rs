//! What `reproduce` is asked for.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::error::ReproduceError;
use crate::progress::word;
use crate::shard::Shard;

/// What `reproduce` is asked for.
#[derive(Clone, Debug, Default, Args)]
#[command(
    after_help = "Examples:\n  haversack reproduce sage/table1 --out out\n  haversack reproduce sage --seed 1 --jobs 2\n  haversack reproduce --out part1 --shard 1/4    # haversack merge part1 part2 part3 part4 --out whole"
)]
pub struct ReproduceOptions {
    /// `all`, a paper, `comparison`, or the beginning of an id such as sage/table1 [default: all]
    #[arg(value_name = "SELECTOR")]
    pub selectors: Vec<String>,
    /// The folder to write to
    #[arg(long, value_name = "DIR", default_value = "out")]
    pub out: PathBuf,
    /// Leaves alone what an earlier run into the same folder has finished with the same seed and calibrations
    #[arg(long)]
    pub resume: bool,
    /// Runs only every N-th artefact from the I-th on, for `haversack merge`
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// A trace of apps or memory for the artefacts that take one; none does yet
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Deletes what the folder lists of another command, seed, --full or --shard, and artefacts that were made otherwise
    #[arg(long)]
    pub overwrite: bool,
    /// The seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Artefacts that run at once [default: one a processor]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Runs every seed and network of the accuracy artefacts
    #[arg(long)]
    pub full: bool,
}

impl ReproduceOptions {
    /// Refuses what no artefact would look at.
    pub(super) fn check(&self) -> Result<(), ReproduceError> {
        let unused = |path: &PathBuf| {
            let path = path.display();
            let why = "no artefact takes a trace of one's own yet, so that it would change nothing";
            Err(ReproduceError::Input(format!("--trace {path}: {why}; `haversack simulate --trace` runs with one")))
        };
        self.trace.as_ref().map_or(Ok(()), unused)
    }

    /// The command that goes on where this one was stopped.
    pub(super) fn to_go_on(&self) -> String {
        let mut command = "haversack reproduce".to_owned();
        self.selectors.iter().for_each(|selector| command += &format!(" {selector}"));
        command += &format!(" --out {}", word(&self.out));
        if self.seed > 0 {
            command += &format!(" --seed {}", self.seed);
        }
        if self.full {
            command += " --full";
        }
        let shard = self.shard.map_or_else(String::new, |shard| format!(" --shard {shard}"));
        command + &shard + " --resume"
    }
}
