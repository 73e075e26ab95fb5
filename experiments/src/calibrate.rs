//! `haversack calibrate fit`: fits a device's constants to observations, and shows every residual. `haversack calibrate
//! probe`: makes a device file from measurements on a phone.
//!
//! Built-in calibrations are never written: copy the constants that you trust, with their source. `--store` writes
//! results: leave-one-out errors ([`left_out`]).

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

/// The word for every device that can be calibrated.
const ALL: &str = "all";

/// A command of `calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateOptions {
    #[command(subcommand)]
    command: CalibrateCommand,
}

#[derive(Debug, Subcommand)]
enum CalibrateCommand {
    /// Fit a device's constants to observations, and show every residual
    Fit(FitOptions),
    /// Make a device file from the output of probes on a phone, a board or a computer
    Probe(ProbeOptions),
}

/// The options of `calibrate fit`.
#[derive(Clone, Debug, Args)]
#[command(after_help = include_str!("../help/calibrate-fit.txt"))]
struct FitOptions {
    /// Device of `list devices` with observations, or `all`
    #[arg(value_name = "DEVICE")]
    device: String,
    /// Software stack [default: the device's own; for `all`, every stack]
    #[arg(long, value_name = "ID")]
    stack: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Also fit without each row, and show its error with the constants fitted to the others
    #[arg(long)]
    leave_one_out: bool,
    /// Write the leave-one-out errors to FILE, keeping those of other devices in it
    #[arg(long, value_name = "FILE", requires = "leave_one_out")]
    store: Option<PathBuf>,
    /// Seed of the search's starting points
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

/// Fits and prints, or makes a device file.
///
/// # Errors
/// An unknown device or stack, or one without observations; a `--store` file of another format, before anything is
/// fitted; a file that does not come from a probe.
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
            // Stored after each fit, so that results that took long are not lost if a later one fails.
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

/// The errors stored at `path`, without those to be `replaced`.
fn stored_in(path: &Path, replaced: &[Calibration]) -> Result<LeftOut> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(CommandError::input(format!("--store {}: {} is not a folder", path.display(), folder.display())));
    }
    LeftOut::read(path, replaced)
}

/// The declared calibrations of `device`, or of `all`: under `stack`, or by default under the device's own stack, or
/// under every stack for `all`. There is one for each kind of observations, and at least one.
///
/// # Errors
/// An unknown device or stack, or one without observations; the message lists those that have some.
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

/// Fits the constants that `calibration` declares, and again without each row if `leaves_out`; `after_step` is called
/// after each start of the search and after each row.
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
