//! A device: what its calibration holds.
//!
//! The models that turn work into time are built from it in [`crate::processor`], [`crate::storage`] and
//! [`crate::thermal`]: `device.gpu()` stands beside the GPU's mechanisms.

mod schema;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::calibration::{
    BuiltIn, CORES, Calibrated, Contradiction, DEVICES, FLASH, Kind, Schema, Visit, against, is_path, zero_divisor,
};
use crate::text::{aside, nearest};
use crate::units::{Bytes, Count};

pub use schema::*;

/// A device: what its calibration holds, and the file that this is from.
pub type Device = Calibrated<DeviceConstants>;

impl Device {
    /// Memory of the device.
    pub fn ram(&self) -> Bytes {
        self.constants.ram.value
    }

    /// Memory that a run may have where it has the device for itself: all but what the system of a board holds, whose
    /// processors share one memory.
    pub fn available(&self) -> Bytes {
        let system = self.constants.system_memory.as_ref().map_or(Bytes::ZERO, |system| system.value);
        self.ram().saturating_sub(system)
    }

    /// Memory that the kernel of a phone never gets, if it is known.
    pub fn carve_outs(&self) -> Option<Bytes> {
        self.constants.carve_outs.as_ref().map(|kept| kept.value)
    }

    /// Pixels of the display, across and down, if they are known.
    pub fn display(&self) -> Option<[Count; 2]> {
        let memory = self.constants.memory.as_ref()?;
        Some([memory.display_width.value, memory.display_height.value])
    }
}

/// The flash: all devices with one class have the same constants of it.
const STORAGE: &str = "storage";
/// More cores than any device has; a typing error beyond it.
const MOST_CORES: f64 = 1024.0;

/// What work is divided by beside the rates.
const DIVISORS: &[&str] = &[
    "cpu.cores",
    "gpu.units",
    "gpu.threads",
    "dsp.vector",
    "dsp.threads",
    "dsp.contexts",
    "dsp.l2_line",
    "dram.achievable",
];
/// Rates that nothing is divided by.
const IDLE_RATES: &[&str] = &["gpu.fp32_rate", "dsp.int8_peak", "dsp.fp32_peak"];

impl Schema for DeviceConstants {
    const WHAT: &'static str = "device";
    const BUILT_IN: &'static [BuiltIn] = DEVICES;
    const PARTS: &'static [(&'static str, &'static [BuiltIn])] = &[("cpu", CORES), (STORAGE, FLASH)];

    fn line(&self) -> String {
        format!("{} ({})", self.name, self.soc)
    }

    fn beside(&mut self, file: &str) {
        if let Some(folder) = Path::new(file).parent().filter(|_| is_path(&self.default_stack)) {
            self.default_stack = folder.join(&self.default_stack).display().to_string();
        }
    }

    fn section(name: &str) -> bool {
        name == STORAGE
    }

    fn take_section(&mut self, _name: &str, word: &str) -> Result<(), String> {
        let mut classes: BTreeMap<String, StorageConstants> = BTreeMap::new();
        for &BuiltIn { id, .. } in Self::BUILT_IN {
            let known = Device::load(id).map_err(|error| error.to_string())?;
            classes.extend(known.constants.storage.map(|storage| (storage.class.clone(), storage)));
        }
        let valid = || classes.keys().map(String::as_str);
        let found = classes.get(word).cloned().ok_or_else(|| {
            let near = aside(nearest(word, valid()));
            format!(
                "expected a class of flash, one of {}, found '{word}'{near}",
                valid().collect::<Vec<_>>().join(", ")
            )
        });
        self.storage = Some(found?);
        Ok(())
    }

    fn follow(&mut self, name: &str, ratio: f64) {
        if let Some(gpu) = &mut self.gpu {
            gpu.follow(name, ratio);
        }
    }

    fn contradiction(&self) -> Option<Contradiction> {
        if self.cpu.is_empty() && self.gpu.is_none() {
            return against("", "a device needs a [[cpu]] cluster or a [gpu]");
        }
        if let Some(zero) = zero_divisor(self, DIVISORS, IDLE_RATES) {
            return Some(zero);
        }
        if self.cpu.iter().any(|cluster| cluster.cores.value.0 > MOST_CORES) {
            return against("cpu", format!("a cluster has at most {MOST_CORES} cores"));
        }
        let of_curves = || self.dvfs.iter().find_map(|curve| Some(("dvfs".into(), curve_contradiction(curve, self)?)));
        limits_contradiction(self).or_else(of_curves)
    }
}

/// A data sheet rounds; what is further from the product of its parts than this share is another GPU's.
const ROUNDED: f64 = 0.01;

impl GpuConstants {
    /// A peak is what units do in a cycle, times their number and their clock; the clock is that of the cache, too.
    fn follow(&mut self, name: &str, ratio: f64) {
        let general = [Some(&mut self.fp32_peak), Some(&mut self.fp16_peak), Some(&mut self.int8_peak)];
        let tensor =
            [self.fp16_tensor_peak.as_mut(), self.fp16_tensor_peak_fp32_sums.as_mut(), self.int8_tensor_peak.as_mut()];
        let moved = match name {
            "gpu.units" | "gpu.clock" => general.into_iter().chain(tensor).collect(),
            "gpu.fp32_rate" => general.into_iter().collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        for peak in moved.into_iter().flatten() {
            peak.value.0 *= ratio;
        }
        if let (Some(bandwidth), "gpu.clock") = (&mut self.l2_bandwidth, name) {
            bandwidth.value.0 *= ratio;
        }
        if name == "gpu.fp32_peak" {
            self.fp32_rate.value.0 *= ratio;
        }
    }

    /// A peak that units, clock and rate do not give, with the arithmetic.
    fn contradiction(&self) -> Option<String> {
        let [units, clock, rate] = [self.units.value.0, self.clock.value.0, self.fp32_rate.value.0];
        let (peak, product) = (self.fp32_peak.value.0, units * clock * rate);
        let is_rounded = rate == 0.0 || (peak / product - 1.0).abs() <= ROUNDED;
        (!is_rounded).then(|| {
            let [clock, peak, product] = [clock * 1e-6, peak * 1e-9, product * 1e-9];
            format!(
                "fp32_peak, {peak:.1} GFLOP/s, is not units × clock × fp32_rate: {units} × {clock} MHz × {rate} FLOP/cycle = \
                 {product:.1} GFLOP/s"
            )
        })
    }
}

/// Limits that stand above what they limit.
fn limits_contradiction(constants: &DeviceConstants) -> Option<Contradiction> {
    if let Some(storage) = &constants.storage {
        let [slots, reserved] = [storage.queue_depth.value.0.floor(), storage.reserved_slots.value.0.floor()];
        if reserved >= slots {
            return against("storage", format!("reserved_slots, {reserved}, leaves none of the queue's {slots} slots"));
        }
    }
    if let Some(message) = constants.gpu.as_ref().and_then(GpuConstants::contradiction) {
        return against("gpu", message);
    }
    for cluster in &constants.cpu {
        let [lowest, highest] = [&cluster.frequency_lowest, &cluster.frequency].map(|point| point.value.0 * 1e-6);
        if lowest > highest {
            let core = &cluster.core;
            return against("cpu", format!("frequency_lowest of {core}, {lowest} MHz, is above its {highest} MHz"));
        }
    }
    if let Some(system) = constants.system_memory.as_ref().filter(|system| system.value >= constants.ram.value) {
        let [system, ram] = [system.value, constants.ram.value].map(|bytes| bytes.as_f64() / f64::from(1 << 20));
        return against("", format!("system_memory, {system} MiB, leaves nothing of the {ram} MiB of ram"));
    }
    let thermal = constants.thermal.as_ref()?;
    let (trip, limit) = (thermal.trip.value.0, thermal.limit.value.0);
    (trip >= limit)
        .then(|| ("thermal".into(), format!("the governor's trip, {trip} °C, is not below the limit, {limit} °C")))
}

fn curve_contradiction(curve: &DvfsCurve, constants: &DeviceConstants) -> Option<String> {
    let (points, powers) = (&curve.frequency.values, &curve.power.values);
    if points.len() != powers.len() || points.is_empty() {
        let (points, powers) = (points.len(), powers.len());
        return Some(format!("the curve of {} has {points} frequencies and {powers} powers", curve.core));
    }
    if points.iter().zip(points.iter().skip(1)).any(|(low, high)| low.0 >= high.0) {
        return Some(format!("the frequencies of {} do not rise", curve.core));
    }
    if points.iter().any(|point| point.0 <= 0.0) {
        return Some(format!("{} has an operating point at zero", curve.core));
    }
    if [curve.frequency.kind, curve.power.kind].contains(&Kind::Fitted) {
        return Some("a curve cannot be fitted: fitted constants are counted one by one".to_owned());
    }
    let cores = || constants.cpu.iter().map(|cluster| cluster.core.as_str());
    if cores().any(|core| core == curve.core) {
        return None;
    }
    let hint = aside(nearest(&curve.core, cores()));
    Some(format!("no [[cpu]] cluster has the core `{}`{hint}", curve.core))
}

// Generations of Hexagon, Qualcomm's DSP.

/// A version of Hexagon's instruction set, such as `V66`; later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct HexagonVersion(pub u16);

impl Visit for HexagonVersion {}

impl fmt::Display for HexagonVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "V{}", self.0)
    }
}

impl FromStr for HexagonVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix('V').and_then(|number| number.parse().ok());
        number.map(Self).ok_or_else(|| format!("found `{text}`; expected a version of Hexagon such as V66"))
    }
}

impl TryFrom<String> for HexagonVersion {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}
