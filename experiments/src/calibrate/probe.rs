//! `haversack calibrate probe`: makes a device file from the measurements of probes on a phone or
//! a board (`experiments/probes`).
//!
//! Constants that a probe cannot measure (power, heat, a DSP, CoreMark) are taken from another device, the base; in the
//! file they count as guesses, however well they are known for the base.

mod cpu;
mod device_file;
mod reader;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use haversack_devices::{Device, InstructionSet, Kind};
use haversack_reports::write_atomically;
use indexmap::IndexMap;
use serde_json::json;

use self::device_file::{DeviceFile, How};
use self::reader::{Probe, Probed, fastest};
use crate::output::{Format, check_apart, note, print, print_json};
use crate::{CommandError, Result};

/// The marker in the first line of device files written by this command, which it may replace.
const HEAD: &str = "written by haversack calibrate";

/// The options of `calibrate probe`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  haversack calibrate probe cpu.json gpu.json --as my-phone --base galaxy-s22")]
pub(super) struct ProbeOptions {
    /// Output of probes (`experiments/probes`): one of the CPU, one of the GPU, or both
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// Name of the new device
    #[arg(long = "as", id = "name", value_name = "NAME")]
    name: String,
    /// Most similar device, for constants that cannot be measured
    #[arg(long, value_name = "DEVICE")]
    base: Option<String>,
    /// Output file [default: NAME.toml]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace a file that this command did not write
    #[arg(long)]
    overwrite: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The device file, and remarks about it.
struct Taken<'a> {
    base: &'a Device,
    file: DeviceFile,
    said: Vec<String>,
}

impl Taken<'_> {
    /// Copies the keys that are constants; for a list of the probe, the file has its `places` in this order.
    fn constants(&mut self, probed: &Probed, source: &str, places: &[usize]) {
        let mut missing: IndexMap<String, Vec<String>> = IndexMap::new();
        for (rank, place) in places.iter().enumerate() {
            for key in probed.keys.iter().filter(|key| key.key.contains('*') || rank == 0) {
                let Some(kind) = key.kind else { continue };
                let [path, constant] =
                    [(&key.key, place), (&key.constant, &rank)].map(|(name, at)| name.replace('*', &at.to_string()));
                if self.file.place(&constant).is_none() {
                    let section = constant.split('.').next().unwrap_or_default();
                    let words = format!(
                        "the base has no [{section}]: what was measured of it is not taken; --base names a device with one"
                    );
                    if !self.said.contains(&words) {
                        self.said.push(words);
                    }
                } else if let Some(value) = probed.number(&path) {
                    self.file.set(&constant, value, &key.unit, How { kind, source, note: &key.note });
                } else {
                    missing.entry(probed.reason(&path).to_owned()).or_default().push(constant);
                }
            }
        }
        for (reason, constants) in missing {
            let stay = if constants.len() == 1 { "stays" } else { "stay" };
            self.said.push(format!("{} {stay} the base's: {reason}", constants.join(", ")));
        }
    }
}

const fn measured<'a>(source: &'a str, note: &'a str) -> How<'a> {
    How { kind: Kind::Measured, source, note }
}

const fn guessed<'a>(source: &'a str, note: &'a str) -> How<'a> {
    How { kind: Kind::Estimated, source, note }
}

/// Reads the probes' files, writes the device file and reports where its constants come from.
///
/// # Errors
/// Files that do not come from a probe or have missing or absurd numbers, two of the same processor, a base that lacks
/// a probed part, and an existing file that this command did not write.
pub(super) fn run(options: &ProbeOptions) -> Result<()> {
    let name = options.name.strip_suffix(".toml").unwrap_or(&options.name);
    let path = path_of(name, options.out.as_deref())?;
    check_apart(
        [("--out", Some(path.as_path()))],
        options.files.iter().chain(&options.base.as_ref().map(PathBuf::from)),
    )?;
    check_free(&path, options.overwrite)?;
    let probes = read_all(&options.files)?;
    let base = base_of(&probes, options.base.as_deref())?;
    let mut taken = Taken { base: &base, file: DeviceFile::over(&base)?, said: Vec::new() };
    taken.file.put("name", name);
    for probed in &probes {
        match probed.probe {
            Probe::Gpu => take_gpu(&mut taken, probed)?,
            Probe::Cpu | Probe::Any => cpu::take(&mut taken, probed),
        }
    }
    let files = options.files.iter().map(|file| file.file_name().unwrap_or(file.as_os_str()).to_string_lossy());
    let remarks = [
        format!("{name}: a device file {HEAD} probe {}.", files.collect::<Vec<_>>().join(" ")),
        format!("What no probe sees is taken from {} and counts as a guess.", base.id),
    ];
    let text = taken.file.text(&remarks);
    let made = Device::parse(name, &path.display().to_string(), &text)
        .map_err(|error| CommandError::failed(format!("what was measured makes no device: {error}")))?;
    write_atomically(&path, text.as_bytes())?;
    let constants = made.entries();
    let of = |kind: Kind| constants.iter().filter(|constant| constant.kind == kind).count();
    let (measured, said) = (of(Kind::Measured), of(Kind::Datasheet));
    let guessed = constants.len() - measured - said;
    if options.format == Format::Json {
        return print_json(&json!({
            "device": name, "file": path, "base": base.id, "measured": measured, "datasheet": said,
            "estimated": guessed, "notes": taken.said,
        }));
    }
    taken.said.iter().for_each(|line| note(line));
    let path = path.display();
    print(&format!(
        "{path}: {measured} constants measured, {said} said by the kernel or a driver, {guessed} guessed from {}\n\
         Next: haversack show device {path}\n",
        base.id
    ))
}

/// The path of the file for `name`.
///
/// # Errors
/// An invalid name, or that of a built-in device.
fn path_of(name: &str, out: Option<&Path>) -> Result<PathBuf> {
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

/// Checks that `path` is free, or was written by this command.
///
/// # Errors
/// Another file is there, and may not be overwritten.
fn check_free(path: &Path, overwrite: bool) -> Result<()> {
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

/// Reads all files, which must be of different processors.
fn read_all(from: &[PathBuf]) -> Result<Vec<Probed>> {
    let mut probes: Vec<Probed> = Vec::new();
    for path in from {
        let shown = path.display().to_string();
        let text = fs::read_to_string(path)
            .map_err(|error| CommandError::input(format!("{shown}: {error}; expected the JSON of a probe")))?;
        let probed = reader::read(&shown, &text)?;
        if let Some(other) = probes.iter().find(|other| other.probe == probed.probe) {
            let message = format!("{} and {shown} are of the same processor; expected one of each", other.file);
            return Err(CommandError::input(message));
        }
        probes.push(probed);
    }
    Ok(probes)
}

/// The given base, or one that fits the probed parts.
fn base_of(probes: &[Probed], asked: Option<&str>) -> Result<Device> {
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

/// The instruction set of an architecture, as named by `uname -m`.
fn instruction_set(architecture: &str) -> Option<InstructionSet> {
    match architecture {
        "x86_64" | "amd64" => Some(InstructionSet::X86),
        "aarch64" | "arm64" | "armv8l" => Some(InstructionSet::Arm64),
        _ => None,
    }
}

/// Copies all measurements of a GPU from `probed`, of the OpenCL or the CUDA probe, into the file.
///
/// # Errors
/// A base without a GPU, which lacks the constants that a probe cannot measure.
fn take_gpu(taken: &mut Taken<'_>, probed: &Probed) -> Result<()> {
    let source = if probed.name == "cuda" { "probe.cu" } else { "probe_opencl.c" };
    let Some(base) = &taken.base.constants.gpu else {
        return Err(CommandError::input(format!(
            "{}: --base {} has no [gpu] to take from what a probe cannot see; name a device with one, such as galaxy-s22",
            probed.file, taken.base.id
        )));
    };
    if probed.text("gpu.type") != "gpu" {
        taken.said.push(format!("{} is not a GPU; [gpu] has its figures anyway", probed.text("gpu.name")));
    }
    taken.file.put("gpu.name", probed.text("gpu.name"));
    match vendor(probed.text("gpu.vendor")) {
        Some(vendor) => taken.file.put("gpu.vendor", vendor),
        None => taken.file.drop("gpu.vendor"),
    }
    taken.constants(probed, source, &[0]);
    let of = |key: &str| probed.number(&format!("gpu.{key}"));
    let clock = of("clock_hz").unwrap_or(base.clock.value.0);
    let units = of("units").unwrap_or(base.units.value.0);
    if let Some(peak) = of("fp32_peak_flops_per_s") {
        let how = measured(source, "the peak over units and clock");
        taken.file.set("gpu.fp32_rate", peak / units / clock, "FLOP/cycle", how);
        let ratio = guessed(&taken.base.id, "not probed: as many times fp32 as there");
        for (name, unit, there) in
            [("gpu.fp16_rate", "FLOP/cycle", &base.fp16_rate), ("gpu.int8_rate", "OP/cycle", &base.int8_rate)]
        {
            let times = there.value.0 / base.fp32_rate.value.0;
            taken.file.set(name, peak / units / clock * times, unit, ratio);
        }
    }
    let copies = probed.copies("gpu");
    if let Some(rate) = of("l2_bytes").and_then(|bytes| fastest(&copies, bytes / 16.0, bytes * 0.6)) {
        taken.file.set("gpu.l2_bandwidth", rate, "GB/s", measured(source, "copied within the cache"));
    }
    let of_cpu = taken.file.measured("dram.peak");
    if let Some(largest) = copies.last().filter(|largest| of_cpu.is_none_or(|known| largest.rate > known)) {
        let how = measured(source, "what the GPU copied, not the interface's own peak");
        taken.file.put("dram.technology", "as probed");
        taken.file.set("dram.peak", largest.rate, "GB/s", how);
        taken.file.set("dram.achievable", 1.0, "fraction", measured(source, "of what was copied"));
    }
    if let Some(bytes) = of("memory_bytes").filter(|_| probed.name == "cuda") {
        taken.file.set("ram", bytes, "MiB", How { kind: Kind::Datasheet, source, note: "of the card" });
    }
    Ok(())
}

/// The vendor, if calibrations know it.
fn vendor(said: &str) -> Option<&'static str> {
    let said = said.to_lowercase();
    let known = [("nvidia", "nvidia"), ("qualcomm", "qualcomm"), ("adreno", "qualcomm"), ("arm", "arm")];
    known.iter().find(|(word, _)| said.starts_with(word)).map(|(_, vendor)| *vendor)
}
