//! `haversack federate`: phones of a population train one network together, round after round.
//!
//! The device simulator says what an iteration takes on each device within each budget; the memory model and users' apps say
//! what budgets phones leave; the phones of a round learn for real on a stand-in, or nobody learns.

mod budgets;
mod checkpoint;
#[cfg(test)]
mod checks;
mod costs;
mod curves;
mod iteration;
mod learner;
mod on_device;
mod plans;
mod reclaim;
mod rounds;
mod specification;
mod table;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use haversack_federation::population::DeviceKind;
use haversack_reports::frame::{FrameError, write_parquet};
use serde_json::Map;

use crate::cache::Cache;
use crate::error::CommandError;
use crate::output::{note, print};
use crate::output_folder::OutputFolder;
use crate::progress::{Amount, Progress, Stopped, word};
use budgets::Budgets;
use checkpoint::Checkpoint;
use costs::Costs;
use learner::Learner;
use rounds::{Held, Phones, hold};
use specification::Specification;

const ROUNDS: &str = "rounds.parquet";
const CLIENTS: &str = "clients.parquet";
const EXCLUSIONS: &str = "exclusions.parquet";

/// What `federate` is asked for.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  haversack federate phones.toml --out phones\n\nwith phones.toml as\n  \
    population = 2000\n  selector = \"fedhybrid\"\n  cohort = 20\n  rounds = 50\n  network = \"mobilenetv2\"\n  \
    policy = \"fedhybrid\"\n  batch = 32\n  stand_in = \"lenet5\"\n  alpha = 0.1\n\n\
    network is what phones spend time and memory on, stand_in (logistic, mlp, lenet5, bag-of-tokens or transformer1) what learns; \
    without one nobody learns (mode = \"timing\"). selector is random, oort-paper, oort-fedscale, heterofl or fedhybrid; aggregator \
    fedavg, fedprox or fedyogi. Others: memory_mix (shares by GB, such as { 4 = 0.5, 8 = 0.5 }), split (even or natural), over_commit, \
    deadline_s, oracle, local_epochs, learning_rate, samples (of a phone) or total_samples and size_alpha, set, stack, precision, \
    budget (predicted or available), plans (server, each or phone), clusters, data, target_accuracy, evaluate_every, traces (a table of apps), \
    system, seed.")]
pub struct FederateOptions {
    /// The specification
    #[arg(value_name = "SPEC.toml")]
    specification: PathBuf,
    /// The folder to write to
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    /// Goes on where a federation of the same specification was cut off
    #[arg(long)]
    resume: bool,
    /// Deletes what the folder lists of another command or specification
    #[arg(long)]
    overwrite: bool,
    /// Threads [default: one a processor]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// The seed, in place of the specification's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// Holds the rounds, writes the folder and prints what came of them.
///
/// # Errors
/// A specification, data or traces that are wrong, before anything is written; a checkpoint of something else; a loss that is no
/// number any more; Ctrl-C. What had been learned by then is in the checkpoint.
pub fn run(options: &FederateOptions) -> Result<(), CommandError> {
    let specification = Specification::read(&options.specification, options.seed)?;
    let builder = rayon::ThreadPoolBuilder::new().num_threads(options.jobs.map_or(0, NonZeroUsize::get));
    let pool = builder.build().map_err(|error| CommandError::failed(format!("cannot start the threads: {error}")))?;
    pool.install(|| federate(options, &specification))
}

fn federate(options: &FederateOptions, asked: &Specification) -> Result<(), CommandError> {
    let phones = Phones::draw(asked)?;
    let record = asked.record();
    let mut folder = OutputFolder::claim(&options.out, &record, options.overwrite)?;
    let checkpoint = Checkpoint::open(&options.out, &record, options.resume)?;
    let before = checkpoint.rounds();
    let cache = Cache::new();
    let budgets = Budgets::watch(asked, &cache)?;
    let costs = Costs::new(asked, &phones, &budgets, &cache)?;
    let mut learner = Learner::of(asked, &phones, checkpoint)?;
    folder.begin(&learner.iter().map(|_| checkpoint::NAME.to_owned()).collect::<Vec<_>>(), Map::new())?;
    let progress = Progress::new(Amount::Number("rounds"), u64::from(asked.rounds), before);
    let mut done = 0;
    let held = hold(asked, &phones, &costs, learner.as_mut(), &mut || {
        done += 1;
        if done > before {
            progress.inc(1);
        }
    });
    drop(progress);
    let held = held.map_err(|error| {
        let (all, command) = (u64::from(asked.rounds), options.to_go_on());
        error.stopped(Stopped { done, all, things: "rounds", command })
    })?;
    let mut outputs = write(&folder, asked, &phones.kinds, &held)?;
    outputs.extend(learner.iter().map(|_| checkpoint::NAME.to_owned()));
    folder.record(record, &outputs)?;
    if held.rounds.iter().all(|round| round.completed == 0) {
        note(&"no phone has completed a round: see the outcomes in clients.parquet");
    }
    print(&format!(
        "{}{}\n",
        table::text(&held.rounds, &held.exclusions, asked.rules.cohort),
        word(&folder.path(ROUNDS))
    ))
}

/// Writes the tables and the figure; the names of all files.
fn write(
    folder: &OutputFolder,
    asked: &Specification,
    kinds: &[DeviceKind],
    held: &Held,
) -> Result<Vec<String>, CommandError> {
    let clients = table::clients(&held.clients, kinds, &asked.setting.memory);
    let frames =
        [(ROUNDS, table::rounds(&held.rounds)), (CLIENTS, clients), (EXCLUSIONS, table::exclusions(&held.exclusions))];
    let mut outputs = Vec::new();
    for (name, frame) in frames {
        write_parquet(&folder.path(name), &frame.map_err(FrameError::Encode)?)?;
        outputs.push(name.to_owned());
    }
    curves::figure(asked, &held.rounds).render()?.write(&folder.path(curves::NAME))?;
    outputs.extend(["svg", "png"].map(|ending| format!("{}.{ending}", curves::NAME)));
    Ok(outputs)
}

impl FederateOptions {
    /// The command that goes on where this one was stopped.
    fn to_go_on(&self) -> String {
        let seed = self.seed.map_or_else(String::new, |seed| format!(" --seed {seed}"));
        format!("haversack federate {} --out {}{seed} --resume", word(&self.specification), word(&self.out))
    }
}
