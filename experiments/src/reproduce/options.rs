//! What `reproduce` is asked for.

use std::path::PathBuf;

use clap::Args;

use super::Artefact;
use crate::progress::word;
use crate::trace_table::{Holds, Reader};
use crate::work::{Shard, WorkOptions};
use crate::{CommandError, Result};

/// What `reproduce` is asked for.
#[derive(Clone, Debug, Default, Args)]
#[command(after_help = include_str!("../../help/reproduce.txt"))]
pub struct ReproduceOptions {
    /// `all`, a paper, `comparison`, or the beginning of an id such as sage/table1 [default: all]
    #[arg(value_name = "SELECTOR")]
    pub selectors: Vec<String>,
    /// Where it goes, and how it is done
    #[command(flatten)]
    pub work: WorkOptions,
    /// Runs only every N-th artefact from the I-th on, for `haversack merge`
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// A table of `trace import` or `trace generate`: artefacts of users and their apps show its users; their results are
    /// not the paper's setting, and say so
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// The seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Trains the networks that accuracies are of again, with one seed; otherwise what was committed is drawn
    #[arg(long)]
    pub learn: bool,
    /// Runs everything with every seed, trains again what was committed, and writes it as PAPER/ARTEFACT.toml
    #[arg(long)]
    pub full: bool,
}

impl ReproduceOptions {
    /// Refuses a trace that none of the `chosen` artefacts would look at, and one that there is not.
    pub(super) fn check<'a>(&self, all: &[Artefact], chosen: impl Iterator<Item = &'a Artefact>) -> Result<()> {
        let Some(trace) = &self.trace else { return Ok(()) };
        let refused = |why: String| Err(CommandError::Input(format!("--trace {}: {why}", trace.display())));
        let takes = |artefact: &&Artefact| artefact.takes_trace;
        if chosen.filter(takes).count() == 0 {
            let places: Vec<String> = all.iter().filter(takes).map(|artefact| artefact.place()).collect();
            return refused(format!(
                "no artefact that was selected takes a trace; those that do are {}",
                places.join(", ")
            ));
        }
        match Reader::open(trace) {
            Err(error) => refused(error.to_string()),
            Ok(reader) if reader.holds != Holds::Apps => {
                refused("expected a table of apps, found one of counters".to_owned())
            }
            Ok(_) => Ok(()),
        }
    }

    /// Whether networks are trained with one seed.
    pub(super) const fn learns_one(&self) -> bool {
        self.learn && !self.full
    }

    /// The command that goes on where this one was stopped.
    pub(super) fn to_go_on(&self) -> String {
        let mut command = "haversack reproduce".to_owned();
        self.selectors.iter().for_each(|selector| command += &format!(" {selector}"));
        command += &format!(" --out {}", word(&self.work.out));
        if self.seed > 0 {
            command += &format!(" --seed {}", self.seed);
        }
        for (is_set, flag) in [(self.learn, " --learn"), (self.full, " --full")] {
            command += if is_set { flag } else { "" };
        }
        if let Some(trace) = &self.trace {
            command += &format!(" --trace {}", word(trace));
        }
        let shard = self.shard.map_or_else(String::new, |shard| format!(" --shard {shard}"));
        command + &shard + " --resume"
    }
}
