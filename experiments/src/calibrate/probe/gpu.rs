//! What the OpenCL or the CUDA probe measured of a GPU and no key of it says alone.

use haversack_devices::Kind;

use super::device_file::How;
use super::reader::{Probed, fastest};
use super::{Taken, guessed, measured};
use crate::error::CommandError;

/// Takes all that `probed` holds into the file.
///
/// # Errors
/// A base without a GPU, of which nobody knows what a probe cannot see.
pub(super) fn take(taken: &mut Taken<'_>, probed: &Probed) -> Result<(), CommandError> {
    let source = if probed.name == "cuda" { "probe.cu" } else { "probe_opencl.c" };
    let Some(base) = &taken.base.constants.gpu else {
        return Err(CommandError::input(format!(
            "{}: --base {} has no [gpu] to take from what a probe cannot see; name a device with one, such as galaxy-s22",
            probed.file, taken.base.id
        )));
    };
    if probed.text("gpu.type") != "gpu" {
        taken.said.push(format!("{} is no GPU: its figures stand in [gpu] all the same", probed.text("gpu.name")));
    }
    taken.file.put("gpu.name", probed.text("gpu.name"));
    match vendor(probed.text("gpu.vendor")) {
        Some(vendor) => taken.file.put("gpu.vendor", vendor),
        None => taken.file.drop("gpu.vendor"),
    }
    taken.constants(probed, source, &[0]);
    let of = |key: &str| probed.number(&format!("gpu.{key}"));
    let clock = of("clock_hz").unwrap_or(base.clock.value.0);
    if let Some((peak, units)) = of("fp32_peak_flops_per_s").zip(of("units")) {
        let how = measured(source, "the peak over units and clock");
        taken.file.set("gpu.fp32_rate", peak / units / clock, "FLOP/cycle", how);
        let ratio = guessed(&taken.base.id, "not probed: as many times fp32 as there");
        for (name, unit, there) in
            [("gpu.fp16_peak", "GFLOP/s", &base.fp16_peak), ("gpu.int8_peak", "GOP/s", &base.int8_peak)]
        {
            taken.file.set(name, peak * there.value.0 / base.fp32_peak.value.0, unit, ratio);
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

/// The vendor that calibrations know, if it is one.
fn vendor(said: &str) -> Option<&'static str> {
    let said = said.to_lowercase();
    let known = [("nvidia", "nvidia"), ("qualcomm", "qualcomm"), ("adreno", "qualcomm"), ("arm", "arm")];
    known.iter().find(|(word, _)| said.starts_with(word)).map(|(_, vendor)| *vendor)
}
