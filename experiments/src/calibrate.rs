//! `haversack calibrate`: fits a device's constants to what was observed on it, and shows every residual.
//!
//! Built-in calibrations are never written: whoever calibrates copies the constants that they believe, with their source. What
//! `--store` writes are results: the errors of rows that were left out ([`left_out`]). Of a phone that was probed a new file is
//! made: `probe`.

pub mod declared;
mod fedhybrid;
pub mod fit;
mod gpu_steps;
pub mod left_out;
mod mandheling;
pub mod observation;
mod paper;
mod phone_inference;
mod probe;
pub mod report;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use declared::Calibration;
use fit::Problem;
use left_out::{LeftOut, LeftOutError, Stored};
use observation::Observation;
use report::{Fitted, Report, Residual};

use crate::error::CommandError;
use crate::output::{Format, note, print, print_json};
use haversack_devices::text::alternatives;

/// What stands for every device that can be calibrated.
const ALL: &str = "all";

/// What `calibrate` is asked for.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Examples:\n  haversack calibrate server-core\n  haversack calibrate galaxy-s10 --stack sage-opencl --format json\n  haversack calibrate server-core --leave-one-out\n  haversack calibrate all --leave-one-out --store experiments/left-out.toml\n  haversack calibrate --from cpu.json gpu.json --as my-phone --base galaxy-s22"
)]
pub struct CalibrateOptions {
    /// A device of `list devices` that something was observed of, or `all`
    #[arg(value_name = "DEVICE", required_unless_present = "from")]
    pub device: Option<String>,
    /// Make a device file of what probes printed (`experiments/probes`): one of the CPU, one of the GPU, or both
    #[arg(long, value_name = "JSON", num_args = 1.., requires = "name", conflicts_with_all = ["device", "stack", "leave_one_out", "networks"])]
    pub from: Vec<PathBuf>,
    /// The new device's name
    #[arg(long = "as", id = "name", value_name = "NAME")]
    pub name: Option<String>,
    /// With --from: the device that is most like it, for what cannot be measured
    #[arg(long, value_name = "DEVICE")]
    pub base: Option<String>,
    /// With --from: the file to write [default: NAME.toml]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// With --from: replaces a file that this command did not write
    #[arg(long)]
    pub overwrite: bool,
    /// The software stack [default: the device's own; of `all`, every one]
    #[arg(long, value_name = "ID")]
    pub stack: Option<String>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Also fit without each row, and show what the others say of it
    #[arg(long)]
    pub leave_one_out: bool,
    /// Write the errors of rows that were left out into FILE, beside those of other devices there
    #[arg(long, value_name = "FILE", requires = "leave_one_out")]
    pub store: Option<PathBuf>,
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
/// A device or a stack that is unknown or has no observations; a file to store in that is none, before anything is fitted.
pub fn run(options: &CalibrateOptions) -> Result<(), CommandError> {
    let writes = probe::Asked {
        from: &options.from,
        name: options.name.as_deref().map_or("", |name| name.strip_suffix(".toml").unwrap_or(name)),
        base: options.base.as_deref(),
        out: options.out.as_deref(),
        overwrite: options.overwrite,
        format: options.format,
    };
    let Some(device) = options.device.as_deref() else { return probe::run(&writes) };
    if options.name.is_some() || options.base.is_some() || options.out.is_some() || options.overwrite {
        let message = format!(
            "--as, --base, --out and --overwrite are for --from, which writes a file; {device} is a device that there is"
        );
        return Err(CommandError::input(message));
    }
    let calibrations = asked(options, device)?;
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
            let found = Stored::new(calibration, &report, options.seed).map_err(CommandError::failed)?;
            stored.put(found).and_then(|()| stored.write(path)).map_err(CommandError::failed)?;
        }
        reports.push(report);
    }
    bar.finish_and_clear();
    match (options.format, reports.as_slice()) {
        (Format::Json, [report]) if device != ALL => print_json(&report.json()),
        (Format::Json, reports) => print_json(&reports.iter().map(Report::json).collect::<Vec<_>>().into()),
        (Format::Text, reports) => {
            let texts: Vec<String> = reports.iter().map(Report::text).collect();
            print(&texts.join("\n"))
        }
    }
}

/// The calibrations that are asked for; of `all`, those whose networks are there.
fn asked(options: &CalibrateOptions, device: &str) -> Result<Vec<Calibration>, CommandError> {
    let mut calibrations = match options.stack.as_deref() {
        None if device == ALL => declared::all()?,
        Some(stack) if device == ALL => under(stack)?,
        stack => find(device, stack)?,
    };
    if device == ALL && options.networks.is_none() {
        calibrations.retain(|calibration| {
            let is_skipped = calibration.observations.needs_networks();
            if is_skipped {
                let title = calibration.title();
                note(&format!("{title} is skipped: name the folder of its networks' ONNX files by --networks DIR"));
            }
            !is_skipped
        });
    }
    calibrations.iter_mut().for_each(|calibration| calibration.networks.clone_from(&options.networks));
    Ok(calibrations)
}

/// What is stored at `path` already beside what is to be `replaced`.
fn stored_in(path: &Path, replaced: &[Calibration]) -> Result<LeftOut, CommandError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(CommandError::input(format!("--store {}: {} is no folder", path.display(), folder.display())));
    }
    LeftOut::read(path, replaced).map_err(|error| match error {
        LeftOutError::File(error) => CommandError::input(format!("--store: {error}")),
        error => CommandError::input(error),
    })
}

/// The declared calibrations of `device` under `stack`, or under the device's own stack: one for each kind of
/// observations, at least one.
///
/// # Errors
/// A device or a stack that is unknown, or that no observations exist for; the message lists those that have some.
pub fn find(device: &str, stack: Option<&str>) -> Result<Vec<Calibration>, CommandError> {
    let declared = declared::all()?;
    let have = have(&declared);
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

/// The declared calibrations under `stack`, at least one.
fn under(stack: &str) -> Result<Vec<Calibration>, CommandError> {
    let declared = declared::all()?;
    let have = have(&declared);
    let stack = haversack_devices::load_stack(stack)?.id;
    let found: Vec<_> = declared.into_iter().filter(|known| known.stack == stack).collect();
    if found.is_empty() {
        return Err(CommandError::input(format!("nothing was observed under {stack}; {have}")));
    }
    Ok(found)
}

/// What can be calibrated, for an error.
fn have(declared: &[Calibration]) -> String {
    let mut names: Vec<String> =
        declared.iter().map(|known| format!("{} under {}", known.device, known.stack)).collect();
    names.dedup();
    format!("only {} can be calibrated", alternatives(names.iter().map(String::as_str)))
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
