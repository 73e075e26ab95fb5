//! `haversack calibrate fit`: fits a device's constants to what was observed on it, and shows every residual.
//! `haversack calibrate probe`: makes a device file of what was measured on a phone.
//!
//! Built-in calibrations are never written: copy the constants that you believe, with their source. `--store` writes
//! results: the errors of rows that were left out ([`left_out`]).

pub mod fit;
pub mod left_out;
pub mod observation;
mod papers;
mod probe;
pub mod report;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use fit::Problem;
use haversack_devices::text::alternatives;
use indicatif::{ProgressBar, ProgressStyle};
use left_out::{LeftOut, Stored};
use observation::{Calibration, Observation};
use probe::ProbeOptions;
use report::{Fitted, Report, Residual};

use crate::output::{Format, print, print_json};
use crate::{CommandError, Result};

/// What stands for every device that can be calibrated.
const ALL: &str = "all";

/// A command of `calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateOptions {
    #[command(subcommand)]
    command: CalibrateCommand,
}

#[derive(Debug, Subcommand)]
enum CalibrateCommand {
    /// Fit a device's constants to what was observed on it, and show every residual
    Fit(FitOptions),
    /// Make a device file of what probes printed on a phone, a board or a computer
    Probe(ProbeOptions),
}

/// What is fitted.
#[derive(Clone, Debug, Args)]
#[command(after_help = include_str!("../help/calibrate-fit.txt"))]
struct FitOptions {
    /// A device of `list devices` that something was observed of, or `all`
    #[arg(value_name = "DEVICE")]
    device: String,
    /// The software stack [default: the device's own; of `all`, every one]
    #[arg(long, value_name = "ID")]
    stack: Option<String>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Also fit without each row, and show what the others say of it
    #[arg(long)]
    leave_one_out: bool,
    /// Write the errors of rows that were left out into FILE, beside those of other devices there
    #[arg(long, value_name = "FILE", requires = "leave_one_out")]
    store: Option<PathBuf>,
    /// The seed of the search's starts
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

/// Fits and prints, or makes a device file.
///
/// # Errors
/// A device or a stack that is unknown or has no observations; a file to store in that is none, before anything is fitted;
/// a probe's file that is none.
pub fn run(options: &CalibrateOptions) -> Result<()> {
    match &options.command {
        CalibrateCommand::Fit(options) => run_fit(options),
        CalibrateCommand::Probe(options) => probe::run(options),
    }
}

fn run_fit(options: &FitOptions) -> Result<()> {
    let calibrations = find(&options.device, options.stack.as_deref())?;
    if let Some(path) = &options.store {
        stored_in(path, &calibrations)?;
    }
    let bar = ProgressBar::no_length();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}, step {pos}, {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    let mut reports = Vec::new();
    for (place, calibration) in calibrations.iter().enumerate() {
        bar.set_message(format!("fitting {} of {}: {}", place + 1, calibrations.len(), calibration.title()));
        let report = calibrate(calibration, options.seed, options.leave_one_out, || bar.inc(1))?;
        if let Some(path) = &options.store {
            // One after the other, so that what took long is there whatever comes next.
            let mut stored = stored_in(path, std::slice::from_ref(calibration))?;
            stored.put(Stored::new(calibration, &report, options.seed)?)?;
            stored.write(path)?;
        }
        reports.push(report);
    }
    bar.finish_and_clear();
    match (options.format, reports.as_slice()) {
        (Format::Json, [report]) if options.device != ALL => print_json(&report.json()),
        (Format::Json, reports) => print_json(&reports.iter().map(Report::json).collect::<Vec<_>>().into()),
        (Format::Text, reports) => {
            let texts: Vec<String> = reports.iter().map(Report::text).collect();
            print(&texts.join("\n"))
        }
    }
}

/// What is stored at `path` already beside what is to be `replaced`.
fn stored_in(path: &Path, replaced: &[Calibration]) -> Result<LeftOut> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(CommandError::input(format!("--store {}: {} is no folder", path.display(), folder.display())));
    }
    LeftOut::read(path, replaced)
}

/// The declared calibrations of `device`, or of `all`, under `stack`, or under the device's own stack, or under every one:
/// one for each kind of observations, at least one.
///
/// # Errors
/// A device or a stack that is unknown, or that no observations exist for; the message lists those that have some.
pub fn find(device: &str, stack: Option<&str>) -> Result<Vec<Calibration>> {
    let declared = observation::all()?;
    let mut names: Vec<String> =
        declared.iter().map(|known| format!("{} under {}", known.device, known.stack)).collect();
    names.dedup();
    let have = format!("only {} can be calibrated", alternatives(names.iter().map(String::as_str)));
    let unknown = |error| CommandError::input(format!("{error}; {have}"));
    let is_all = device == ALL;
    let own =
        if is_all { None } else { Some(haversack_devices::load(device).map_err(unknown)?.constants.default_stack) };
    let stack = match stack {
        Some(stack) if is_all => Some(haversack_devices::load_stack(stack)?.id),
        Some(stack) => Some(haversack_devices::load_stack(stack).map_err(unknown)?.id),
        None => own,
    };
    let is_of =
        |known: &Calibration| is_all || known.device == device || known.others.iter().any(|other| other == device);
    let is_under = |known: &Calibration| stack.as_ref().is_none_or(|stack| known.stack == *stack);
    let found: Vec<_> = declared.into_iter().filter(|known| is_of(known) && is_under(known)).collect();
    if found.is_empty() {
        let of = if is_all { String::new() } else { format!(" of {device}") };
        let stack = stack.unwrap_or_default();
        return Err(CommandError::input(format!("nothing was observed{of} under {stack}; {have}")));
    }
    Ok(found)
}

/// Fits the constants that `calibration` declares, and again without each row if `leaves_out`; `after_step` is called after
/// each of the search's starts and each row.
///
/// # Errors
/// Embedded data that is wrong.
pub fn calibrate(calibration: &Calibration, seed: u64, leaves_out: bool, after_step: impl Fn()) -> Result<Report> {
    let problem = Problem::new(calibration)?;
    let present = problem.present()?;
    let before: Vec<f64> = present.iter().map(|&(value, _)| value).collect();
    let fit = problem.fit(seed, &after_step)?;
    let mut constants = Vec::new();
    for (index, constant) in calibration.constants.iter().enumerate() {
        constants.push(Fitted {
            name: constant.name.clone(),
            of: constant.of,
            unit: present[index].1,
            before: before[index],
            after: fit.values[index],
            lower: constant.lower,
            upper: constant.upper,
            prior: constant.prior.value,
            rise: problem.rise(&fit.values, index)?,
            is_identified: fit.free.contains(&index),
        });
    }
    let left_out = if leaves_out { Some(problem.left_out(&fit, &after_step)?) } else { None };
    let residual = |(row, (before, after)): (&Observation, (f64, f64))| Residual {
        id: row.id.clone(),
        unit: row.unit,
        observed: row.observed,
        before,
        after,
        left_out: None,
    };
    let both = |rows: &[Observation]| -> Result<Vec<Residual>> {
        let simulated = problem.simulated_of(rows, &before)?.into_iter().zip(problem.simulated_of(rows, &fit.values)?);
        Ok(rows.iter().zip(simulated).map(residual).collect())
    };
    let mut rows = both(&problem.observations)?;
    for (row, left_out) in rows.iter_mut().zip(left_out.into_iter().flatten()) {
        row.left_out = Some(left_out);
    }
    let checks = both(&observation::checks(calibration)?)?;
    Ok(Report {
        device: calibration.device.clone(),
        stack: calibration.stack.clone(),
        system: calibration.system.clone(),
        about: calibration.about.clone(),
        objective: [problem.objective(&before)?, problem.objective(&fit.values)?],
        constants,
        rows,
        checks,
    })
}
