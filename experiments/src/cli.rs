//! The command line: what can be asked for, and which module answers.
//!
//! `haversack completions` and `haversack man`: what a shell completes, and the manual's pages, from the command line itself.

use std::error::Error as _;
use std::ffi::OsString;
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
use crate::output::{check_apart, note, print, say};
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
    /// Compares all policies for ResNet-50 on one phone, within seconds, and writes a page
    Quickstart(quickstart::QuickstartOptions),
    /// Reproduces the papers' figures and tables, each number beside the paper's own
    Reproduce(reproduce::ReproduceOptions),
    /// Simulates one training run: time, memory, energy, and where the time went
    Simulate(simulate::SimulateOptions),
    /// Tries every policy on a device and a network: which fit, ranked, and why the others do not
    Advise(advise::AdviseOptions),
    /// Looks for the parameters of a policy with which an iteration is fastest
    Tune(tune::TuneOptions),
    /// Moves each constant that a run uses, one at a time, and sorts them by how far its figures move
    Sensitivity(sensitivity::SensitivityOptions),
    /// Runs what was measured on real machines, and says how far off each number is
    Validate(validate::ValidateOptions),
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
    /// Prints BibTeX entries of haversack and of the papers that it implements
    #[command(after_help = "Example:\n  haversack cite > haversack.bib")]
    Cite,
    /// Prints what completes this program's commands and flags in a shell
    Completions(CompletionsOptions),
    /// Prints this program's page of the manual, or writes the pages of all commands
    Man(ManOptions),
}

/// Runs a command line, whose first word is the name of the program; the exit code.
pub fn main(words: impl IntoIterator<Item = OsString>) -> u8 {
    let words: Vec<OsString> = words.into_iter().collect();
    match parsed(&words).map(|arguments| run(&arguments)) {
        Ok(Ok(()) | Err(CommandError::OutputClosed)) => 0,
        Ok(Err(error)) => {
            say("error", &error);
            error.exit_code()
        }
        Err(error) => {
            let line: Vec<String> = words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
            let error = gone(&error, &line).unwrap_or_else(|| plainly(error));
            // A stream that is closed is not an error.
            let _ = error.print();
            if error.use_stderr() { 2 } else { 0 }
        }
    }
}

/// # Errors
/// What is no command line, and a number beyond its limit.
fn parsed(words: &[OsString]) -> Result<Arguments, Error> {
    let matches = Arguments::command().try_get_matches_from(words)?;
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

/// What is known of rows that were left out of a fit.
fn left_out() -> Result<crate::papers::left_out::Errors> {
    calibrate::left_out::errors().map_err(CommandError::failed)
}

/// The shards say what they are of.
fn merge(options: &work::MergeOptions) -> Result<()> {
    check_apart([("--out", Some(options.out.as_path()))], &options.shards)?;
    match options.shards.first().and_then(|folder| work::command_of(folder)).as_deref() {
        Some("reproduce") => reproduce::merge(options, &ARTEFACTS, &left_out()?),
        Some("federate") => federate::merge(options),
        _ => sweep::merge(options),
    }
}

/// Words that are gone => what to use instead. The last word is the one that is no longer known; where it is in
/// capitals, it stands for any word that is no flag. The words before it are the beginning of the command line.
const GONE: &str = include_str!("../texts/gone.txt");

/// The error that says so, where `error` is about something that is gone.
fn gone(error: &Error, line: &[String]) -> Option<Error> {
    let unknown = unknown(error)?;
    let (words, instead) = pairs(GONE).find(|(words, _)| is_meant(words, unknown, line))?;
    Some(Error::raw(ErrorKind::InvalidSubcommand, format!("`haversack {words}` is gone: use `{instead}`\n")))
}

/// What the command line says that is not known.
fn unknown(error: &Error) -> Option<&str> {
    let Some(ContextValue::String(text)) = error.get(kinds(error)?.0) else { return None };
    Some(text)
}

/// Whether these words are about what is `unknown` in the command line.
fn is_meant(words: &str, unknown: &str, line: &[String]) -> bool {
    let (before, last) = words.rsplit_once(' ').unwrap_or(("", words));
    let is_any = last.chars().all(char::is_uppercase) && !unknown.starts_with('-');
    // A word alone is the command.
    let begins = if before.is_empty() { words } else { before };
    (last == unknown || is_any) && begins.split_whitespace().zip(line).all(|(word, found)| word == found)
}

/// What stands on the lines of a table, before and behind its arrows.
fn pairs(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    table.lines().filter_map(|line| line.split_once(" => "))
}

/// What Rust says of a number that is none => what was expected.
const NUMBERS: &str = include_str!("../texts/numbers.txt");

/// Where an error about an unknown word has it, and what is suggested in its place.
fn kinds(error: &Error) -> Option<(ContextKind, ContextKind)> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => Some((ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand)),
        ErrorKind::UnknownArgument => Some((ContextKind::InvalidArg, ContextKind::SuggestedArg)),
        ErrorKind::InvalidValue => Some((ContextKind::InvalidValue, ContextKind::SuggestedValue)),
        _ => None,
    }
}

/// The error in plain words.
fn plainly(mut error: Error) -> Error {
    if error.kind() == ErrorKind::ValueValidation {
        return value(error);
    }
    if let Some((found, suggested)) = kinds(&error) {
        keep_likely(&mut error, found, suggested);
    }
    if error.kind() == ErrorKind::UnknownArgument {
        // That a flag could be passed as a value: nobody names a file so.
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

/// Takes away what is suggested in the place of what was found, unless it is near.
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

/// For which shell completions are printed.
#[derive(Clone, Copy, Debug, Args)]
#[command(after_help = include_str!("../help/completions.txt"))]
pub struct CompletionsOptions {
    /// The shell that completes
    shell: Shell,
}

/// Where the pages of the manual go.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  haversack man | man -l -\n  haversack man --out ~/.local/share/man/man1")]
pub struct ManOptions {
    /// Writes a page for every command into this folder [default: prints the page of `haversack`]
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

/// What a page begins with that lies in a folder.
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
