//! What `reproduce` is asked for.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

/// What `reproduce` is asked for.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Examples:\n  haversack reproduce sage/table1 --out out\n  haversack reproduce sage --seed 1 --jobs 2"
)]
pub struct ReproduceOptions {
    /// `all`, a paper, `comparison`, or the beginning of an id such as sage/table1 [default: all]
    #[arg(value_name = "SELECTOR")]
    pub selectors: Vec<String>,
    /// The folder to write to
    #[arg(long, value_name = "DIR", default_value = "out")]
    pub out: PathBuf,
    /// Deletes what the folder lists of another command, seed or --full
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
