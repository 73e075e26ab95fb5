//! `haversack federate`: phones of a population train one network together, round after round.
//!
//! The device simulator says what an iteration takes on each device within each budget; the memory model and users' apps say
//! what budgets phones leave; the phones of a round learn for real on a stand-in, or nobody learns.

mod budgets;
mod checkpoint;
mod costs;
mod curves;
mod learner;
mod specification;
mod table;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use haversack_federation::availability::Availability;
use haversack_federation::federation::{Federation, Learn, TimingOnly};
use haversack_federation::population::{DeviceKind, Population, Sizes};
use haversack_federation::rows::{ClientRow, ExclusionRow, RoundRow};
use haversack_reports::frame::{FrameError, write_parquet};
use serde_json::Map;

use crate::error::CommandError;
use crate::interrupt;
use crate::output::{note, print};
use crate::output_folder::OutputFolder;
use crate::progress::{Amount, Progress, Stopped, word};
use budgets::Budgets;
use checkpoint::Checkpoint;
use costs::Costs;
use learner::Learner;
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
    deadline_s, oracle, local_epochs, learning_rate, samples (of a phone), data, target_accuracy, evaluate_every, traces (a table of apps), \
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

/// What a federation has yielded.
#[derive(Default)]
struct Yielded {
    rounds: Vec<RoundRow>,
    clients: Vec<ClientRow>,
    exclusions: Vec<ExclusionRow>,
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
    let kinds: Vec<DeviceKind> = (0..)
        .zip(&asked.setting.memory)
        .flat_map(|(memory, class)| class.devices.iter().map(move |id| DeviceKind { id: id.clone(), memory }))
        .collect();
    let sizes = Sizes::Same(asked.samples);
    let population =
        Population::draw(asked.seed, asked.phones, &asked.setting, &kinds, sizes).map_err(CommandError::input)?;
    let record = asked.record();
    let mut folder = OutputFolder::claim(&options.out, &record, options.overwrite)?;
    let checkpoint = Checkpoint::open(&options.out, &record, options.resume)?;
    let budgets = Budgets::watch(asked)?;
    let costs = Costs::new(asked, population.phones(), &kinds, &budgets)?;
    let before = checkpoint.rounds();
    let mut learner = match &asked.learning {
        Some(learning) => Some(Learner::new(learning, population.phones(), (asked.seed, asked.rounds), checkpoint)?),
        None => None,
    };
    folder.begin(&learner.iter().map(|_| checkpoint::NAME.to_owned()).collect::<Vec<_>>(), Map::new())?;
    let sessions = asked.setting.sessions.clone();
    let availability = Availability::new(asked.seed, population.len(), sessions.ready, sessions.between);
    let mut federation =
        Federation::new(asked.seed, asked.rules, &population, availability, &costs).map_err(CommandError::input)?;
    let progress = Progress::new(Amount::Number("rounds"), u64::from(asked.rounds), before);
    let mut yielded = Yielded::default();
    let mut timing = TimingOnly;
    for number in 1..=asked.rounds {
        if interrupt::came() {
            learner.as_mut().map_or(Ok(()), Learner::keep)?;
            let (done, all) = (yielded.rounds.len() as u64, u64::from(asked.rounds));
            let command = options.to_go_on();
            return Err(CommandError::Interrupted.stopped(Stopped { done, all, things: "rounds", command }));
        }
        let learn: &mut dyn Learn = match &mut learner {
            Some(learner) => learner,
            None => &mut timing,
        };
        let round = federation.round(learn).map_err(CommandError::failed)?;
        let reached = reached(asked, round.row.accuracy);
        yielded.rounds.push(round.row);
        yielded.clients.extend(round.clients);
        yielded.exclusions.extend(round.exclusions);
        if u64::from(number) > before {
            progress.inc(1);
        }
        if reached {
            break;
        }
    }
    drop(progress);
    learner.as_mut().map_or(Ok(()), Learner::keep)?;
    let mut outputs = write(&folder, asked, &kinds, &yielded)?;
    outputs.extend(learner.iter().map(|_| checkpoint::NAME.to_owned()));
    folder.record(record, &outputs)?;
    if yielded.rounds.iter().all(|round| round.completed == 0) {
        note(&"no phone has completed a round: see the outcomes in clients.parquet");
    }
    print(&format!(
        "{}{}\n",
        table::text(&yielded.rounds, &yielded.exclusions, asked.rules.cohort),
        word(&folder.path(ROUNDS))
    ))
}

/// Whether the accuracy that is wanted is there.
fn reached(asked: &Specification, accuracy: Option<f64>) -> bool {
    let target = asked.learning.as_ref().and_then(|learning| learning.target);
    target.zip(accuracy).is_some_and(|(target, accuracy)| accuracy >= target)
}

/// Writes the tables and the figure; the names of all files.
fn write(
    folder: &OutputFolder,
    asked: &Specification,
    kinds: &[DeviceKind],
    yielded: &Yielded,
) -> Result<Vec<String>, CommandError> {
    let clients = table::clients(&yielded.clients, kinds, &asked.setting.memory);
    let frames = [
        (ROUNDS, table::rounds(&yielded.rounds)),
        (CLIENTS, clients),
        (EXCLUSIONS, table::exclusions(&yielded.exclusions)),
    ];
    let mut outputs = Vec::new();
    for (name, frame) in frames {
        write_parquet(&folder.path(name), &frame.map_err(FrameError::Encode)?)?;
        outputs.push(name.to_owned());
    }
    curves::figure(asked, &yielded.rounds).render()?.write(&folder.path(curves::NAME))?;
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
