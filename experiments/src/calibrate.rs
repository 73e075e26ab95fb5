//! `haversack calibrate`: fits a device's constants to what was observed on it, and shows every residual.
//!
//! Calibration files are never written: whoever calibrates copies the constants that they believe, with their source.

pub mod declared;
mod fedhybrid;
pub mod fit;
mod gpu_steps;
mod mandheling;
pub mod observation;
mod paper;
mod phone_inference;
pub mod report;

use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;

use declared::Calibration;
use fit::Problem;
use observation::Observation;
use report::{Fitted, Report, Residual};

use crate::error::CommandError;
use crate::output::{Format, print, print_json};
use haversack_devices::text::alternatives;

/// What `calibrate` is asked for.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Examples:\n  haversack calibrate server-core\n  haversack calibrate galaxy-s10 --stack sage-opencl --format json\n  haversack calibrate server-core --leave-one-out"
)]
pub struct CalibrateOptions {
    /// A device of `list devices` that something was observed of
    #[arg(value_name = "DEVICE")]
    pub device: String,
    /// The software stack [default: the device's own]
    #[arg(long, value_name = "ID")]
    pub stack: Option<String>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Also fit without each row, and show what the others say of it
    #[arg(long)]
    pub leave_one_out: bool,
    /// The folder of the networks' ONNX files, for devices that were observed on networks that do not come along
    #[arg(long, value_name = "DIR")]
    pub networks: Option<PathBuf>,
    /// The seed of the search's starts
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

/// Fits and prints.
///
/// # Errors
/// A device or a stack that is unknown or has no observations.
pub fn run(options: &CalibrateOptions) -> Result<(), CommandError> {
    let mut calibrations = find(&options.device, options.stack.as_deref())?;
    calibrations.iter_mut().for_each(|calibration| calibration.networks.clone_from(&options.networks));
    let bar = ProgressBar::no_length();
    bar.set_message("fitting");
    let reports = calibrations.iter().map(|one| calibrate(one, options.seed, options.leave_one_out, || bar.inc(1)));
    let reports = reports.collect::<Result<Vec<_>, _>>()?;
    bar.finish_and_clear();
    match (options.format, reports.as_slice()) {
        (Format::Json, [report]) => print_json(&report.json()),
        (Format::Json, reports) => print_json(&reports.iter().map(Report::json).collect::<Vec<_>>().into()),
        (Format::Text, reports) => {
            let texts: Vec<String> = reports.iter().map(Report::text).collect();
            print(&texts.join("\n"))
        }
    }
}

/// The declared calibrations of `device` under `stack`, or under the device's own stack: one for each kind of
/// observations, at least one.
///
/// # Errors
/// A device or a stack that is unknown, or that no observations exist for; the message lists those that have some.
pub fn find(device: &str, stack: Option<&str>) -> Result<Vec<Calibration>, CommandError> {
    let declared = declared::all()?;
    let mut names: Vec<String> =
        declared.iter().map(|known| format!("{} under {}", known.device, known.stack)).collect();
    names.dedup();
    let have = format!("only {} can be calibrated", alternatives(names.iter().map(String::as_str)));
    let unknown = |error| CommandError::input(format!("{error}; {have}"));
    let loaded = haversack_devices::load(device).map_err(unknown)?;
    let stack = match stack {
        Some(stack) => haversack_devices::load_stack(stack).map_err(unknown)?.id,
        None => loaded.constants.default_stack,
    };
    let is_of = |known: &Calibration| known.device == device || known.others.iter().any(|other| other == device);
    let found: Vec<_> = declared.into_iter().filter(|known| known.stack == stack && is_of(known)).collect();
    if found.is_empty() {
        return Err(CommandError::input(format!("nothing was observed of {device} under {stack}; {have}")));
    }
    Ok(found)
}

/// Fits the constants that `calibration` declares, and again without each row if `leaves_out`; `after_step` is called after
/// each of the search's starts and each row.
///
/// # Errors
/// Embedded data that is wrong.
pub fn calibrate(
    calibration: &Calibration,
    seed: u64,
    leaves_out: bool,
    after_step: impl Fn(),
) -> Result<Report, CommandError> {
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
            bounds: [constant.lower, constant.upper],
            prior: constant.prior.value,
            is_identified: fit.free.contains(&index),
            rise: problem.rise(&fit.values, index)?,
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
    let both = |rows: &[Observation]| -> Result<Vec<Residual>, CommandError> {
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
