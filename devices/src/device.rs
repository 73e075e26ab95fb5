//! A device: the constants of its calibration.
//!
//! [`crate::processor`], [`crate::storage`] and [`crate::thermal`] build the models that turn work into time from it;
//! `device.gpu()`, for example, is defined next to the GPU model.

mod schema;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::calibration::{BuiltIn, CORES, Contradiction, DEVICES, FLASH, against, is_path, zero_divisor};
use crate::text::{aside, nearest};
use crate::{Bytes, Calibrated, Constant, Count, FlopsPerCycle, FlopsPerSecond, Kind, Precision, Schema, Visit};

pub use schema::*;

/// A device: the constants of its calibration, and the file that they come from.
pub type Device = Calibrated<DeviceConstants>;

impl Device {
    /// Memory of the device.
    pub fn ram(&self) -> Bytes {
        self.constants.ram.value
    }

    /// Memory available to a run that has the device to itself: all of RAM except, on a board, whose processors share
    /// one memory, the operating system's part, and on a phone the carve-outs.
    pub fn available(&self) -> Bytes {
        let system = self.constants.system_memory.as_ref().map_or(Bytes::ZERO, |system| system.value);
        self.ram().saturating_sub(system).saturating_sub(self.carve_outs().unwrap_or_default())
    }

    /// Memory that firmware keeps from a phone's kernel, if it is known.
    pub fn carve_outs(&self) -> Option<Bytes> {
        self.constants.carve_outs.as_ref().map(|kept| kept.value)
    }

    /// Width and height of the display in pixels, if they are known.
    pub fn display(&self) -> Option<[Count; 2]> {
        let memory = self.constants.memory.as_ref()?;
        Some([memory.display_width.value, memory.display_height.value])
    }
}

/// The section of the flash: all devices of one storage class share its constants.
const STORAGE: &str = "storage";
/// More cores than any device has; a larger number is a typing error.
const MOST_CORES: f64 = 1024.0;

/// Divisors other than rates.
const DIVISORS: &[&str] = &[
    "cpu.cores",
    "cache.l3_ports",
    "gpu.units",
    "gpu.threads",
    "dsp.vector",
    "dsp.threads",
    "dsp.contexts",
    "dsp.l2_line",
    "dram.achievable",
];

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

    fn settle(&mut self) -> Option<Contradiction> {
        for cluster in &mut self.cpu {
            let pipes = cluster.pipes.as_ref().map_or(f64::NAN, |pipes| pipes.value.0);
            cluster.fp32_rate.known(2.0 * pipes * cluster.vector.value.as_f64() / 4.0);
            let fp32 = cluster.fp32_rate.value.0;
            if fp32.is_nan() {
                let core = &cluster.core;
                return against(
                    "cpu",
                    format!("{core} has neither pipes nor the fp32_rate that would follow from them"),
                );
            }
            cluster.fp16_rate.known(2.0 * fp32);
            cluster.int8_rate.known(4.0 * fp32);
        }
        let of_gpu = || self.gpu.as_mut().and_then(GpuConstants::settle).and_then(|message| against("gpu", message));
        let of_dsp = self.dsp.as_mut().and_then(DspConstants::settle).and_then(|message| against("dsp", message));
        of_dsp.or_else(of_gpu)
    }

    fn follow(&mut self, name: &str, ratio: f64) {
        let of_pipes = |place: &usize| name == format!("cpu.{place}.pipes");
        if let Some(of) = (0..self.cpu.len()).find(of_pipes).map(|place| &mut self.cpu[place]) {
            [&mut of.fp32_rate, &mut of.fp16_rate, &mut of.int8_rate]
                .into_iter()
                .for_each(|rate| rate.value.0 *= ratio);
        }
        let Some(gpu) = &mut self.gpu else { return };
        if name == "gpu.fp32_rate" {
            [&mut gpu.fp16_rate, &mut gpu.int8_rate].into_iter().for_each(|rate| rate.value.0 *= ratio);
        } else if name == "gpu.clock" {
            gpu.l2_bandwidth.iter_mut().for_each(|bandwidth| bandwidth.value.0 *= ratio);
        }
    }

    fn contradiction(&self) -> Option<Contradiction> {
        if self.cpu.is_empty() && self.gpu.is_none() {
            return against("", "a device needs a [[cpu]] cluster or a [gpu]");
        }
        if let Some(zero) = zero_divisor(self, DIVISORS) {
            return Some(zero);
        }
        if self.cpu.iter().any(|cluster| cluster.cores.value.0 > MOST_CORES) {
            return against("cpu", format!("a cluster has at most {MOST_CORES} cores"));
        }
        let of_curves = || self.dvfs.iter().find_map(|curve| Some(("dvfs".into(), curve_contradiction(curve, self)?)));
        limits_contradiction(self).or_else(of_curves)
    }
}

/// Tolerance for rounding in data sheets; a peak further than this from the product of its parts belongs to another
/// GPU.
const ROUNDED: f64 = 0.01;

impl GpuConstants {
    /// Operations per second of all units together, each doing `rate` operations per cycle.
    pub fn peak(&self, rate: &Constant<FlopsPerCycle>) -> FlopsPerSecond {
        FlopsPerSecond(self.units.value.0 * self.clock.value.0 * rate.value.0)
    }

    /// Peak of the general units in `precision`; each has as many integer lanes as floating-point ones.
    pub fn general_peak(&self, precision: Precision) -> FlopsPerSecond {
        self.peak(match precision {
            Precision::Fp32 | Precision::Int32 | Precision::Int16 => &self.fp32_rate,
            Precision::Fp16 => &self.fp16_rate,
            Precision::Int8 => &self.int8_rate,
        })
    }

    /// Peak of the tensor cores, if there are any for `precision`.
    pub fn tensor_peak(&self, precision: Precision) -> Option<FlopsPerSecond> {
        let rate = match precision {
            Precision::Fp32 | Precision::Int32 | Precision::Int16 => &None,
            Precision::Fp16 => &self.fp16_tensor_rate,
            Precision::Int8 => &self.int8_tensor_rate,
        };
        rate.as_ref().map(|rate| self.peak(rate))
    }

    /// Computes missing rates from their peaks, where given. Returns the first peak that contradicts units, clock and
    /// rate, with the arithmetic.
    fn settle(&mut self) -> Option<String> {
        let [units, clock, fp32] = [self.units.value.0, self.clock.value.0, self.fp32_rate.value.0];
        let general = [
            (["fp32_peak", "fp32_rate"], &mut self.fp32_rate, self.fp32_peak.take(), 1.0),
            (["fp16_peak", "fp16_rate"], &mut self.fp16_rate, self.fp16_peak.take(), 2.0),
            (["int8_peak", "int8_rate"], &mut self.int8_rate, self.int8_peak.take(), 4.0),
        ];
        let tensor = [
            (["fp16_tensor_peak", "fp16_tensor_rate"], &mut self.fp16_tensor_rate, self.fp16_tensor_peak.take()),
            (
                ["fp16_tensor_peak_fp32_sums", "fp16_tensor_rate_fp32_sums"],
                &mut self.fp16_tensor_rate_fp32_sums,
                self.fp16_tensor_peak_fp32_sums.take(),
            ),
            (["int8_tensor_peak", "int8_tensor_rate"], &mut self.int8_tensor_rate, self.int8_tensor_peak.take()),
        ];
        let of_tensor = tensor.into_iter().filter_map(|(names, rate, peak)| {
            Some((names, peak.is_some().then(|| rate.get_or_insert_with(Constant::unknown))?, peak, 0.0))
        });
        general.into_iter().chain(of_tensor).find_map(|([name, of_rate], rate, peak, times)| {
            let peak = peak.map(|peak| peak.value.0);
            rate.known(peak.map_or(times * fp32, |peak| peak / (units * clock)));
            let (rate, peak) = (rate.value.0, peak?);
            let product = units * clock * rate;
            let is_rounded = product == 0.0 || (peak / product - 1.0).abs() <= ROUNDED;
            let [clock, peak, product] = [clock * 1e-6, peak * 1e-9, product * 1e-9];
            (!is_rounded).then(|| {
                format!(
                    "{name}, {peak:.1} GFLOP/s, is not units × clock × {of_rate}: {units} × {clock} MHz × {rate} \
                     FLOP/cycle = {product:.1} GFLOP/s"
                )
            })
        })
    }
}

impl DspConstants {
    /// Bytes per second through its vector units.
    pub fn vector_rate(&self) -> FlopsPerSecond {
        FlopsPerSecond(self.contexts.value.0 * self.vector.value.as_f64() * self.clock.value.0)
    }

    /// Operations per second on eight-bit integers: four for each byte of a vector, since each of the two instructions
    /// of a packet that may multiply sums the products of four bytes (`vrmpy`).
    pub fn int8_peak(&self) -> FlopsPerSecond {
        FlopsPerSecond(4.0 * self.vector_rate().0)
    }

    /// Returns a peak that contradicts structure and clock, with the arithmetic.
    fn settle(&mut self) -> Option<String> {
        let [said, product] = [self.int8_peak.take()?.value.0, self.int8_peak().0].map(|peak| peak * 1e-9);
        ((said / product - 1.0).abs() > ROUNDED).then(|| {
            let [contexts, vector, clock] = [self.contexts.value.0, self.vector.value.as_f64(), self.clock.value.0 * 1e-6];
            format!(
                "int8_peak, {said:.1} GOP/s, is not contexts × vector × clock × 4: {contexts} × {vector} B × {clock} MHz × 4 = \
                 {product:.1} GOP/s"
            )
        })
    }
}

/// Limits that are above the values that bound them.
fn limits_contradiction(constants: &DeviceConstants) -> Option<Contradiction> {
    if let Some(storage) = &constants.storage {
        let [slots, reserved] = [storage.queue_depth.value.0.floor(), storage.reserved_slots.value.0.floor()];
        if reserved >= slots {
            return against("storage", format!("reserved_slots, {reserved}, leaves none of the queue's {slots} slots"));
        }
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
