//! What the OpenCL or the CUDA probe measured, as constants of a GPU.

use haversack_devices::Device;

use super::format::Probed;
use super::writer::{DeviceFile, How, Section};
use crate::error::CommandError;

/// Takes all that `probed` holds into `file`.
///
/// # Errors
/// A base without a GPU, of which nobody knows what a probe cannot see.
pub(super) fn take(
    file: &mut DeviceFile,
    probed: &Probed,
    base: &Device,
    said: &mut Vec<String>,
) -> Result<(), CommandError> {
    let source = if probed.name == "cuda" { "probe.cu" } else { "probe_opencl.c" };
    let Some(section) = file.section("[gpu]") else {
        return Err(CommandError::input(format!(
            "{}: --base {} has no [gpu] to take from what a probe cannot see; name a device with one, such as galaxy-s22",
            probed.file, base.id
        )));
    };
    if probed.text("gpu.type") != "gpu" {
        said.push(format!("{} is no GPU: its figures stand in [gpu] all the same", probed.text("gpu.name")));
    }
    section.text("name", probed.text("gpu.name"));
    let vendor = vendor(probed.text("gpu.vendor"));
    if let Some(vendor) = vendor {
        section.text("vendor", vendor);
    } else {
        section.forget("vendor");
    }
    rates(section, probed, source, &base.id);
    waits(section, probed, source, said);
    let largest =
        probed.tables("gpu.bandwidth").checked_sub(1).map(|row| format!("gpu.bandwidth.{row}.copy_bytes_per_s"));
    if let Some(rate) = largest.and_then(|path| probed.number(&path)) {
        let known = file.section("[dram]").filter(|dram| dram.is_measured("peak")).and_then(|dram| dram.value("peak"));
        if known.is_none_or(|known| rate / 1e9 > known) {
            let how = How::measured(source).noting("what the GPU copied, not the interface's own peak");
            let dram = file.section_or_new("[dram]");
            dram.text("technology", "as probed");
            dram.set("peak", (rate / 1e9, "GB/s"), &how);
            dram.set("achievable", (1.0, "fraction"), &How::measured(source).noting("of what was copied"));
        }
    }
    if let Some(bytes) = probed.number("gpu.memory_bytes").filter(|_| probed.name == "cuda") {
        file.top.set("ram", (bytes / 1_048_576.0, "MiB"), &How::said(source).noting("of the card"));
    }
    Ok(())
}

/// The vendor that calibrations know, if it is one.
fn vendor(said: &str) -> Option<&'static str> {
    let said = said.to_lowercase();
    let known = [("nvidia", "nvidia"), ("qualcomm", "qualcomm"), ("adreno", "qualcomm"), ("arm", "arm")];
    known.iter().find(|(word, _)| said.starts_with(word)).map(|(_, vendor)| *vendor)
}

fn rates(section: &mut Section, probed: &Probed, source: &str, base: &str) {
    let (measured, driver) = (How::measured(source), How::said(source).noting("as the driver says"));
    let of = |key: &str| probed.number(&format!("gpu.{key}"));
    let units = of("units").unwrap_or(1.0);
    section.set("units", (units, "count"), &driver);
    if let Some(clock) = of("clock_hz") {
        section.set("clock", (clock / 1e6, "MHz"), &driver);
    }
    let clock = section.value("clock").unwrap_or(1.0) * 1e6;
    let Some(peak) = of("fp32_peak_flops_per_s") else { return };
    let ratio = How::guessed(base).noting("not probed: as many times fp32 as there");
    let before = section.value_in("fp32_peak", &[("GFLOP/s", 1.0), ("TFLOP/s", 1e3)]).unwrap_or(1.0);
    for (key, unit) in [("fp16_peak", "GFLOP/s"), ("int8_peak", "GOP/s")] {
        let scales = [("GFLOP/s", 1.0), ("TFLOP/s", 1e3), ("GOP/s", 1.0), ("TOP/s", 1e3)];
        if let Some(there) = section.value_in(key, &scales) {
            section.set(key, (peak / 1e9 * there / before, unit), &ratio);
        }
    }
    section.set("fp32_peak", (peak / 1e9, "GFLOP/s"), &measured.noting("independent multiply-adds in registers"));
    section.set("fp32_rate", (peak / units / clock, "FLOP/cycle"), &measured.noting("the peak over units and clock"));
    if let Some(bytes) = of("shared_bytes") {
        section.set("shared", (bytes / 1024.0, "KiB"), &driver);
    }
    if let Some(bytes) = of("l2_bytes") {
        section.set("l2", (bytes / 1024.0, "KiB"), &driver);
        if let Some(rate) = probed.copied("gpu", bytes / 16.0, bytes * 0.6) {
            section.set("l2_bandwidth", (rate / 1e9, "GB/s"), &measured.noting("copied within the cache"));
        }
    }
}

fn waits(section: &mut Section, probed: &Probed, source: &str, said: &mut Vec<String>) {
    let measured = How::measured(source);
    let constants = [
        ("launch", "launch_s", 1e6, "us"),
        ("round_trip", "round_trip_s", 1e6, "us"),
        ("barrier", "barrier_s", 1e9, "ns"),
        ("atomic_interval", "atomic_interval_s", 1e9, "ns"),
        ("atomic_latency", "atomic_latency_s", 1e9, "ns"),
    ];
    for (key, from, scale, unit) in constants {
        match probed.number(&format!("gpu.{from}")) {
            Some(value) => section.set(key, (value * scale, unit), &measured),
            None => said.push(format!("gpu.{key} stays the base's: {}", probed.reason(&format!("gpu.{from}")))),
        }
    }
}
