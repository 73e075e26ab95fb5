//! The command line: what can be asked for, and which module answers.

mod gone;
mod plainly;

use clap::{CommandFactory, Parser, Subcommand};

use crate::artefacts::ARTEFACTS;
use crate::error::CommandError;
use crate::{
    advise, calibrate, compare, completions, federate, interrupt, list, model_command, replay_command, reproduce,
    sensitivity, show, simulate, sweep, trace_command, train, work,
};

/// The command line of `haversack`.
#[derive(Debug, Parser)]
#[command(
    name = "haversack",
    version,
    about = "Simulates the training of neural networks on phones, within memory and time budgets",
    after_help = "Example:\n  haversack simulate --device galaxy-s10 --model resnet50 --batch 32 --policy sage --memory-budget 30%",
    arg_required_else_help = true,
    subcommand_required = true
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Reproduces the papers' figures and tables, each number beside the paper's own
    Reproduce(reproduce::ReproduceOptions),
    /// Simulates one training run: time, memory, energy, and where the time went
    Simulate(simulate::SimulateOptions),
    /// Tries every policy on a device and a network: which fit, ranked, and why the others do not
    Advise(advise::AdviseOptions),
    /// Moves each constant that a run uses, one at a time, and sorts them by how far its figures move
    Sensitivity(sensitivity::SensitivityOptions),
    /// Runs a whole grid of scenarios into one table and Pareto fronts
    Sweep(sweep::SweepOptions),
    /// Trains networks for real under each policy: accuracy beside simulated time, memory and energy
    Train(train::TrainOptions),
    /// Trains one network on a population of phones together: who takes part, what rounds take, what is learned
    Federate(federate::FederateOptions),
    /// Puts the shards of a sweep or a reproduction together, to the same bytes as one run
    Merge(work::MergeOptions),
    /// Says what moved between two sweeps or reproductions, the farthest first
    Compare(compare::CompareOptions),
    /// Counts a network: weights, operations, and the bytes saved for backward
    Model(model_command::ModelOptions),
    /// Replays a recorded operator log under dynamic tensor rematerialisation
    Replay(replay_command::ReplayOptions),
    /// Fits a device's constants to what was observed on it, and shows every residual
    Calibrate(calibrate::CalibrateOptions),
    /// Imports, describes and generates recordings of apps and memory
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Trace(trace_command::TraceOptions),
    /// Lists what scenarios can name
    List(list::ListOptions),
    /// Says what a device, a stack, a network, a policy or a system is, and how far its numbers may be believed
    Show(show::ShowOptions),
    /// Prints what completes this program's commands and flags in a shell
    Completions(completions::CompletionsOptions),
    /// Prints this program's page of the manual, or writes the pages of all commands
    Man(completions::ManOptions),
}

/// The command line of this process. One that is wrong ends the process with exit code 2 and what was expected; one
/// that asks for help, with 0.
pub fn parse() -> Arguments {
    Arguments::try_parse().unwrap_or_else(|error| {
        let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
        gone::said(&error, &words.collect::<Vec<_>>()).unwrap_or_else(|| plainly::said(error)).exit()
    })
}

/// Runs the command.
///
/// # Errors
/// [`CommandError`], whose exit code is the program's.
pub fn run(arguments: &Arguments) -> Result<(), CommandError> {
    if let Command::Reproduce(_) | Command::Sweep(_) | Command::Train(_) | Command::Federate(_) = &arguments.command {
        interrupt::watch().map_err(CommandError::failed)?;
    }
    match &arguments.command {
        Command::Reproduce(options) => reproduce::run(options, &ARTEFACTS, &left_out()?),
        Command::Simulate(options) => simulate::run(options),
        Command::Advise(options) => advise::run(options),
        Command::Sensitivity(options) => sensitivity::run(options),
        Command::Sweep(options) => sweep::run(options),
        Command::Train(options) => train::run(options),
        Command::Federate(options) => federate::run(options),
        Command::Merge(options) => merge(options),
        Command::Compare(options) => compare::run(options),
        Command::Model(options) => model_command::run(options),
        Command::Replay(options) => replay_command::run(options),
        Command::Calibrate(options) => calibrate::run(options),
        Command::Trace(options) => trace_command::run(options),
        Command::List(options) => list::run(options),
        Command::Show(options) => show::run(options),
        Command::Completions(options) => completions::completions(*options, Arguments::command()),
        Command::Man(options) => completions::man(options, Arguments::command()),
    }
}

/// What is known of rows that were left out of a fit.
fn left_out() -> Result<crate::papers::left_out::Errors, CommandError> {
    calibrate::left_out::errors().map_err(CommandError::failed)
}

/// The shards say what they are of.
fn merge(options: &work::MergeOptions) -> Result<(), CommandError> {
    let first = options.shards.first();
    if first.is_some_and(|folder| reproduce::is_reproduction(folder)) {
        return reproduce::merge(options, &ARTEFACTS, &left_out()?);
    }
    if first.is_some_and(|folder| federate::is_federation(folder)) {
        return federate::merge(options);
    }
    sweep::merge(options)
}
