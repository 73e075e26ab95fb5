//! The command line: the commands, and the modules that run them.
//!
//! Also `haversack completions` and `haversack man`: shell completions and manual pages, generated from the
//! command line itself.

use std::error::Error as _;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Error, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use clap_mangen::Man;
use haversack_devices::ensure;
use haversack_devices::text::nearest;
use haversack_reports::{create_folder, write_atomically};

use crate::artefacts::ARTEFACTS;
use crate::limits::flag_beyond;
use crate::output::{check_apart, note, plain, print, say};
use crate::{
    CommandError, Result, advise, calibrate, compare, federate, interrupt, list, model_command, quickstart,
    replay_command, reproduce, sensitivity, show, simulate, sweep, trace_command, train, tune, validate, work,
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
    /// Compare all policies for ResNet-50 on one phone, within seconds, and write a page
    Quickstart(quickstart::QuickstartOptions),
    /// Reproduce the papers' figures and tables, and compare each number with the paper's
    Reproduce(reproduce::ReproduceOptions),
    /// Simulate one training run: time, memory, energy, and where the time goes
    Simulate(simulate::SimulateOptions),
    /// Try every policy on a device and a network: rank those that fit, and explain why the others do not
    Advise(advise::AdviseOptions),
    /// Search the policy parameters with the fastest iteration
    Tune(tune::TuneOptions),
    /// Move each constant of a run, one at a time, and rank the constants by their effect on the figures
    Sensitivity(sensitivity::SensitivityOptions),
    /// Simulate measurements from real machines, and report the errors
    Validate(validate::ValidateOptions),
    /// Run a grid of scenarios into one table, with Pareto fronts
    Sweep(sweep::SweepOptions),
    /// Train networks for real under each policy: accuracy against simulated time, memory and energy
    Train(train::TrainOptions),
    /// Train one network on a population of phones: who takes part, how long rounds take, what is learned
    Federate(federate::FederateOptions),
    /// Merge shards; the result is identical to an unsharded run
    Merge(work::MergeOptions),
    /// Compare two sweeps or reproductions, largest change first
    Compare(compare::CompareOptions),
    /// Count a network's weights, operations, and bytes saved for backward
    Model(model_command::ModelOptions),
    /// Replay a recorded operator log under dynamic tensor rematerialisation
    Replay(replay_command::ReplayOptions),
    /// Fit a device's constants to observations, and show every residual
    Calibrate(calibrate::CalibrateOptions),
    /// Import, summarise and generate recordings of apps and memory
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Trace(trace_command::TraceOptions),
    /// List the names that scenarios can use
    List(list::ListOptions),
    /// Describe a device, a stack, a network, a policy or a system, and how well its numbers are supported
    Show(show::ShowOptions),
    /// Print BibTeX entries for haversack and the papers that it implements
    #[command(after_help = "Example:\n  haversack cite > haversack.bib")]
    Cite,
    /// Print shell completions
    Completions(CompletionsOptions),
    /// Print the manual page, or write the pages of all commands
    Man(ManOptions),
}

/// Runs a command line, whose first word is the name of the program; returns the exit code.
pub fn main(words: impl IntoIterator<Item = OsString>) -> u8 {
    let words: Vec<OsString> = words.into_iter().collect();
    match parsed(&words).map(|arguments| run(&arguments)) {
        Ok(Ok(()) | Err(CommandError::OutputClosed)) => 0,
        Ok(Err(error)) => {
            say("error", &error);
            error.exit_code()
        }
        Err(error) => {
            // Without characters that a terminal would obey: errors quote words.
            let line: Vec<String> = words.iter().map(|word| plain(&word.to_string_lossy()).into_owned()).collect();
            let error = parsed(&line).err().unwrap_or(error);
            let error = gone(&error, line.get(1..).unwrap_or_default()).unwrap_or_else(|| plainly(error));
            // A closed stream is not an error.
            let _ = error.print();
            if error.use_stderr() { 2 } else { 0 }
        }
    }
}

/// # Errors
/// An invalid command line, or a number beyond its limit.
fn parsed(words: &[impl AsRef<OsStr>]) -> Result<Arguments, Error> {
    let matches = Arguments::command().try_get_matches_from(words.iter().map(AsRef::as_ref))?;
    let refuse = |message| Err(Arguments::command().error(ErrorKind::ValueValidation, message));
    flag_beyond(&matches).map_or(Ok(()), refuse)?;
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut Arguments::command()))
}

/// Runs the command.
///
/// # Errors
/// [`CommandError`], whose exit code is the program's.
fn run(arguments: &Arguments) -> Result<()> {
    use Command::{Federate, Quickstart, Reproduce, Sweep, Train};
    let long = matches!(arguments.command, Quickstart(_) | Reproduce(_) | Sweep(_) | Train(_) | Federate(_));
    interrupt::watch(long).map_err(CommandError::failed)?;
    match &arguments.command {
        Command::Quickstart(options) => quickstart::run(options),
        Command::Reproduce(options) => reproduce::run(options, &ARTEFACTS, &left_out()?),
        Command::Simulate(options) => simulate::run(options),
        Command::Advise(options) => advise::run(options),
        Command::Tune(options) => tune::run(options),
        Command::Sensitivity(options) => sensitivity::run(options),
        Command::Validate(options) => validate::run(options),
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
        Command::Cite => print(&include_str!("../texts/cite.bib").replace("{version}", env!("CARGO_PKG_VERSION"))),
        Command::Completions(options) => completions(*options, Arguments::command()),
        Command::Man(options) => man(options, Arguments::command()),
    }
}

/// The leave-one-out errors of fitted rows.
fn left_out() -> Result<crate::papers::left_out::Errors> {
    calibrate::left_out::errors().map_err(CommandError::failed)
}

/// The record of the first shard names the command.
fn merge(options: &work::MergeOptions) -> Result<()> {
    check_apart([("--out", Some(options.out.as_path()))], &options.shards)?;
    match options.shards.first().and_then(|folder| work::command_of(folder)).as_deref() {
        Some("reproduce") => reproduce::merge(options, &ARTEFACTS, &left_out()?),
        Some("federate") => federate::merge(options),
        _ => sweep::merge(options),
    }
}

/// Removed words => what to use instead. The last word is the unknown one; in capitals, it matches any word that is not
/// a flag. The words before it are the beginning of the command line.
const GONE: &str = include_str!("../texts/gone.txt");

/// The error with the replacement, if `error` is about something that was removed.
fn gone(error: &Error, line: &[String]) -> Option<Error> {
    let unknown = unknown(error)?;
    let (words, instead) = pairs(GONE).find(|(words, _)| is_meant(words, unknown, line))?;
    Some(Error::raw(ErrorKind::InvalidSubcommand, format!("`haversack {words}` is gone: use `{instead}`\n")))
}

/// The unknown word of the command line.
fn unknown(error: &Error) -> Option<&str> {
    let Some(ContextValue::String(text)) = error.get(kinds(error)?.0) else { return None };
    Some(text)
}

/// Whether these words match the `unknown` word in the command line.
fn is_meant(words: &str, unknown: &str, line: &[String]) -> bool {
    let (before, last) = words.rsplit_once(' ').unwrap_or(("", words));
    let is_any = last.chars().all(char::is_uppercase) && !unknown.starts_with('-');
    // A single word is the command.
    let begins = if before.is_empty() { words } else { before };
    (last == unknown || is_any) && begins.split_whitespace().zip(line).all(|(word, found)| word == found)
}

/// The pairs on the lines of a table, before and after its arrows.
fn pairs(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    table.lines().filter_map(|line| line.split_once(" => "))
}

/// Rust's message about an invalid number => what was expected.
const NUMBERS: &str = include_str!("../texts/numbers.txt");

/// The kinds of context with the unknown word of an error, and with its suggestion.
fn kinds(error: &Error) -> Option<(ContextKind, ContextKind)> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => Some((ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand)),
        ErrorKind::UnknownArgument => Some((ContextKind::InvalidArg, ContextKind::SuggestedArg)),
        ErrorKind::InvalidValue => Some((ContextKind::InvalidValue, ContextKind::SuggestedValue)),
        _ => None,
    }
}

/// The error, worded for users.
fn plainly(mut error: Error) -> Error {
    if error.kind() == ErrorKind::ValueValidation {
        return value(error);
    }
    if let Some((found, suggested)) = kinds(&error) {
        keep_likely(&mut error, found, suggested);
    }
    if error.kind() == ErrorKind::UnknownArgument {
        // Removes the hint to pass a flag as a value: such values are not used here.
        error.remove(ContextKind::Suggested);
    }
    error
}

/// A value that its flag cannot have.
fn value(error: Error) -> Error {
    let said = error.source().map(ToString::to_string).unwrap_or_default();
    let Some((_, expected)) = pairs(NUMBERS).find(|(known, _)| *known == said) else { return error };
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let (argument, found) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
    let percent = found.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    let hint = match percent {
        Some(percent) if expected.contains("0.5") => format!("; did you mean '{}'?", percent / 100.0),
        _ => String::new(),
    };
    let message =
        format!("invalid value '{found}' for '{argument}': {expected}{hint}\n\nFor more information, try '--help'.\n");
    Error::raw(ErrorKind::ValueValidation, message)
}

/// Removes an unlikely suggestion.
fn keep_likely(error: &mut Error, found: ContextKind, suggested: ContextKind) {
    let texts = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    };
    let is_likely =
        texts(found).first().is_some_and(|found| nearest(found, texts(suggested).iter().map(String::as_str)).is_some());
    if !is_likely {
        error.remove(suggested);
    }
}

/// The options of `completions`.
#[derive(Clone, Copy, Debug, Args)]
#[command(after_help = include_str!("../help/completions.txt"))]
pub struct CompletionsOptions {
    /// Shell to complete for
    shell: Shell,
}

/// The options of `man`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  haversack man | man -l -\n  haversack man --out ~/.local/share/man/man1")]
pub struct ManOptions {
    /// Write a page for every command to this folder [default: print the page of `haversack`]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints the script that completes `program` in a shell.
///
/// # Errors
/// A standard output that cannot be written.
pub fn completions(options: CompletionsOptions, mut program: clap::Command) -> Result<()> {
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut program, name, &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Prints the page of `program`, or writes a page for it and for every command into a folder.
///
/// # Errors
/// A folder or a standard output that cannot be written.
pub fn man(options: &ManOptions, program: clap::Command) -> Result<()> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let Some(folder) = &options.out else {
        let (_, page) = render(program)?;
        return print(&String::from_utf8_lossy(&page));
    };
    create_folder(folder)?;
    let mut pages = Vec::new();
    render_all(&program, folder, &mut pages)?;
    for (path, _) in &pages {
        let is_ours = || fs::read(path).is_ok_and(|page| page.starts_with(MARK.as_bytes()));
        let taken = format!("{}: is there already and was not written by this command", path.display());
        ensure!(!path.exists() || is_ours(), CommandError::input(format!("{taken}; expected another folder")));
    }
    pages.iter().try_for_each(|(path, page)| write_atomically(path, page))?;
    note(&format!("{} pages in {}", pages.len(), folder.display()));
    Ok(())
}

/// The first line of a page in a folder.
const MARK: &str = ".\\\" written by haversack man\n";

/// The pages of `command` and of those under it, and where they go.
fn render_all(command: &clap::Command, folder: &Path, pages: &mut Vec<(PathBuf, Vec<u8>)>) -> Result<()> {
    let (name, page) = render(command.clone())?;
    pages.push((folder.join(name), [MARK.as_bytes(), &page].concat()));
    command.get_subcommands().try_for_each(|below| render_all(below, folder, pages))
}

/// A page's file name and its text.
fn render(command: clap::Command) -> Result<(String, Vec<u8>)> {
    let man = Man::new(command);
    let mut page = Vec::new();
    man.render(&mut page).map_err(CommandError::failed)?;
    Ok((man.get_filename(), page))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    fn meant(words: &str, unknown: &str, line: &str) -> bool {
        is_meant(words, unknown, &line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_last_word_is_the_unknown_one_and_the_others_begin_the_line() {
        assert!(meant("kernels", "kernels", "kernels min --compare"));
        assert!(meant("list kernels", "kernels", "list kernels"));
        assert!(!meant("list kernels", "kernels", "kernels") && !meant("kernels", "kernels", "list kernels"));
        assert!(meant("show --where", "--where", "show out --where a=b") && !meant("show --where", "--where", "list"));
        assert!(meant("calibrate DEVICE", "galaxy-s10", "calibrate galaxy-s10"));
        assert!(!meant("calibrate DEVICE", "--jobs", "calibrate --jobs") && !meant("calibrate DEVICE", "x", "list x"));
    }

    fn of(line: &str) -> String {
        let command = Command::new("t").subcommand(Command::new("calibrate")).arg(
            Arg::new("jobs").long("jobs").value_name("N").value_parser(clap::value_parser!(std::num::NonZeroUsize)),
        );
        let command =
            command.arg(Arg::new("ratio").long("ratio").value_name("R").value_parser(clap::value_parser!(f64)));
        plainly(command.try_get_matches_from(line.split(' ')).unwrap_err()).to_string()
    }

    #[test]
    fn a_number_that_is_none_says_what_was_expected() {
        let zero = of("t --jobs 0");
        assert!(zero.starts_with("error: invalid value '0' for '--jobs <N>': expected a whole number of at least 1\n"));
        assert!(of("t --jobs two").contains("expected a whole number\n"));
        assert!(of("t --ratio 50%").contains("expected a number such as 0.5; did you mean '0.5'?"));
    }

    #[test]
    fn only_what_is_near_is_suggested() {
        assert!(!of("t frobnicate").contains("calibrate"));
        assert!(of("t calibrat").contains("'calibrate'"));
        assert!(of("t --job 1").contains("'--jobs'") && !of("t --quick").contains("as a value"));
    }
}
