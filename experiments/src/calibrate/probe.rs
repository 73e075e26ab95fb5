//! `haversack calibrate --from`: a device file of what probes measured on a phone or a board (`experiments/probes`).
//!
//! What a probe cannot see (power, heat, a DSP, CoreMark) is taken from a base, another device; in the file it counts as
//! a guess, however well it is known of that device.

mod cpu;
mod format;
mod gpu;
mod place;
pub(super) mod writer;

use std::fs;
use std::path::{Path, PathBuf};

use haversack_devices::{Device, InstructionSet};
use haversack_reports::write_atomically;
use serde_json::json;

use self::format::{Probe, Probed};
use self::writer::{DeviceFile, Tally};
use crate::error::CommandError;
use crate::output::{Format, note, print, print_json};

/// What a device file begins with that this command may replace.
const HEAD: &str = "written by haversack calibrate";

/// What becomes a device file, and where.
pub(super) struct Asked<'a> {
    pub(super) from: &'a [PathBuf],
    pub(super) name: &'a str,
    pub(super) base: Option<&'a str>,
    pub(super) out: Option<&'a Path>,
    pub(super) overwrite: bool,
    pub(super) format: Format,
}

/// Reads the probes' files, writes the device file and says what it rests on.
///
/// # Errors
/// Files that are not a probe's or hold a missing or absurd number, two of the same processor, a base that lacks what was
/// probed, and a file that something else wrote.
pub(super) fn run(asked: &Asked<'_>) -> Result<(), CommandError> {
    let path = path_of(asked.name, asked.out)?;
    check_free(&path, asked.overwrite)?;
    let probes = read_all(asked.from)?;
    let base = base_of(&probes, asked.base)?;
    let mut file = DeviceFile::over(&base);
    file.top.text("name", asked.name);
    file.top.drop("carve_outs");
    let mut said = Vec::new();
    for probed in &probes {
        match probed.probe {
            Probe::Cpu => cpu::take(&mut file, probed, &base, &mut said),
            Probe::Gpu => gpu::take(&mut file, probed, &base, &mut said)?,
        }
    }
    if !probes.iter().any(|probed| probed.probe == Probe::Cpu) {
        file.clusters = base.constants.cpu.iter().map(|cluster| writer::cluster_of(&base, cluster)).collect();
    }
    let names: Vec<String> = asked.from.iter().map(|from| file_name(from)).collect();
    let remarks = [
        format!("{}: a device file {HEAD} --from {}.", asked.name, names.join(" ")),
        format!("What no probe sees is taken from {} and counts as a guess.", base.id),
    ];
    write(&path, &file.text(&remarks))?;
    report(asked, &path, &base, file.tally(), &said)
}

fn report(asked: &Asked<'_>, path: &Path, base: &Device, tally: Tally, said: &[String]) -> Result<(), CommandError> {
    let Tally { measured, said: datasheet, guessed } = tally;
    if asked.format == Format::Json {
        return print_json(&json!({
            "device": asked.name, "file": path, "base": base.id, "measured": measured, "datasheet": datasheet,
            "estimated": guessed, "notes": said,
        }));
    }
    said.iter().for_each(|line| note(line));
    let path = path.display();
    print(&format!(
        "{path}: {measured} constants measured, {datasheet} said by the kernel or a driver, {guessed} guessed from {}\n\
         Next: haversack show device {path}\n",
        base.id
    ))
}

/// Where the file of `name` goes.
///
/// # Errors
/// A name that is none, or a built-in device's.
pub(super) fn path_of(name: &str, out: Option<&Path>) -> Result<PathBuf, CommandError> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(is_plain) {
        let message = format!("--as '{name}': expected letters, digits, '-' and '_', as in my-phone");
        return Err(CommandError::input(message));
    }
    if haversack_devices::list()?.iter().any(|listing| listing.id == name) {
        return Err(CommandError::input(format!("--as {name}: a built-in device has that name; choose another")));
    }
    let path = out.map_or_else(|| PathBuf::from(format!("{name}.toml")), Path::to_path_buf);
    if path.extension().is_none_or(|extension| extension != "toml") {
        return Err(CommandError::input(format!("--out {}: expected a name that ends in .toml", path.display())));
    }
    Ok(path)
}

/// Checks that `path` is free, or holds what this command wrote.
///
/// # Errors
/// It holds something else, and is not to be overwritten.
pub(super) fn check_free(path: &Path, overwrite: bool) -> Result<(), CommandError> {
    if overwrite || !path.exists() {
        return Ok(());
    }
    let text = fs::read_to_string(path).unwrap_or_default();
    if text.lines().next().is_some_and(|first| first.starts_with('#') && first.contains(HEAD)) {
        return Ok(());
    }
    Err(CommandError::input(format!(
        "{}: is there already and was not written by this command; name another by --out, or take --overwrite",
        path.display()
    )))
}

/// Checks that `text` is a device, and writes it.
///
/// # Errors
/// Constants that contradict each other, and a file that cannot be written.
pub(super) fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Device::parse(&stem, &path.display().to_string(), text)
        .map_err(|error| CommandError::failed(format!("what was measured makes no device: {error}")))?;
    Ok(write_atomically(path, text.as_bytes())?)
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// All files, of different processors.
fn read_all(from: &[PathBuf]) -> Result<Vec<Probed>, CommandError> {
    let mut probes: Vec<Probed> = Vec::new();
    for path in from {
        let shown = path.display().to_string();
        let text = fs::read_to_string(path)
            .map_err(|error| CommandError::input(format!("--from {shown}: {error}; expected the JSON of a probe")))?;
        let probed = format::read(&shown, &text).map_err(CommandError::input)?;
        if let Some(other) = probes.iter().find(|other| other.probe == probed.probe) {
            let message = format!("--from: {} and {shown} are of the same processor; expected one of each", other.file);
            return Err(CommandError::input(message));
        }
        probes.push(probed);
    }
    Ok(probes)
}

/// The base that was asked for, or one that fits what was probed.
fn base_of(probes: &[Probed], asked: Option<&str>) -> Result<Device, CommandError> {
    if let Some(id) = asked {
        return haversack_devices::load(id).map_err(|error| CommandError::input(format!("--base: {error}")));
    }
    let architecture = probes.iter().find(|probed| probed.probe == Probe::Cpu);
    let architecture = architecture.map(|probed| probed.text("machine.architecture"));
    let has_gpu = probes.iter().any(|probed| probed.probe == Probe::Gpu);
    let id = match (architecture.and_then(instruction_set), has_gpu) {
        (Some(InstructionSet::X86), false) => "server-core",
        _ if probes.iter().any(|probed| probed.name == "cuda") => "rtx-3090",
        _ => "galaxy-s22",
    };
    note(&format!("what no probe sees is taken from {id}; --base DEVICE names another"));
    Ok(haversack_devices::load(id)?)
}

/// The instructions of what `uname -m` calls an architecture.
fn instruction_set(architecture: &str) -> Option<InstructionSet> {
    match architecture {
        "x86_64" | "amd64" => Some(InstructionSet::X86),
        "aarch64" | "arm64" | "armv8l" => Some(InstructionSet::Arm64),
        _ => None,
    }
}
