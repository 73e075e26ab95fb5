//! A device: what its calibration holds, and the processors built from it.
//!
//! The mechanisms that turn work into time are in [`crate::processor`].

mod schema;

pub use schema::*;

use crate::calibration::{self, CalibrationError, ConstantEntry, Kind, Location, consistent};
use crate::processor::{Cluster, Cpu, Dram, Dsp, Gpu};
use crate::storage::Flash;
use crate::thermal::Thermal;
use crate::units::{Bytes, Count};

/// A device, ready to be asked for its processors.
#[derive(Clone, Debug)]
pub struct Device {
    /// The id, e.g. `galaxy-s10`; of a file, its stem.
    pub id: String,
    /// The file, as shown to people.
    pub file: String,
    /// FNV-1a of the calibration's text, 16 lower-case hex digits.
    pub digest: String,
    /// What the calibration holds.
    pub constants: DeviceConstants,
}

impl Device {
    /// Reads a calibration's text; `file` is how errors name it.
    ///
    /// # Errors
    /// Anything that is not exactly the schema, with its line and field.
    pub fn parse(id: &str, file: &str, text: &str) -> Result<Self, CalibrationError> {
        let constants = calibration::parse(file, text, |top| {
            let constants = <DeviceConstants as calibration::Section>::from_place(top)?;
            consistent(contradiction(&constants), |field| top.locate(field))?;
            Ok(constants)
        })?;
        Ok(Self { id: id.to_owned(), file: file.to_owned(), digest: crate::registry::digest(text), constants })
    }

    /// The GPU model, where the device has one.
    #[must_use]
    pub fn gpu(&self) -> Option<Gpu> {
        let gpu = self.constants.gpu.as_ref()?;
        Some(Gpu::new(gpu, self.dram()))
    }

    /// The DSP model, where the device has one.
    #[must_use]
    pub fn dsp(&self) -> Option<Dsp> {
        self.constants.dsp.as_ref().map(Dsp::new)
    }

    /// The CPU model, where the device's host is modelled.
    #[must_use]
    pub fn cpu(&self) -> Option<Cpu> {
        if self.constants.cpu.is_empty() {
            return None;
        }
        let clusters = self.constants.cpu.iter().map(|cluster| {
            let curve = self.constants.dvfs.iter().find(|curve| curve.core == cluster.core);
            Cluster::new(cluster, curve, &self.constants.power)
        });
        let l3 = self.constants.cache.as_ref().and_then(|cache| cache.l3.as_ref());
        Some(Cpu::new(clusters, l3.map_or(Bytes::ZERO, |l3| l3.value), self.dram()))
    }

    /// The flash storage, where the device has one that is modelled.
    #[must_use]
    pub fn flash(&self) -> Option<Flash> {
        self.constants.storage.as_ref().map(Flash::new)
    }

    /// Pixels of the display, across and down, where they are known.
    #[must_use]
    pub fn display(&self) -> Option<[Count; 2]> {
        let memory = self.constants.memory.as_ref()?;
        Some([memory.display_width.value, memory.display_height.value])
    }

    /// How the device heats up, where that is known.
    #[must_use]
    pub fn thermal(&self) -> Option<Thermal> {
        self.constants.thermal.as_ref().map(Thermal::new)
    }

    /// The DRAM that all processors share.
    #[must_use]
    pub fn dram(&self) -> Dram {
        Dram::new(&self.constants.dram)
    }

    /// Memory of the device.
    #[must_use]
    pub fn ram(&self) -> Bytes {
        self.constants.ram.value
    }

    /// Every single constant, in the order of the schema; curves are not listed.
    #[must_use]
    pub fn entries(&self) -> Vec<ConstantEntry> {
        calibration::entries(&self.constants, &self.file)
    }

    /// Overrides a constant by its dotted name (`gpu.launch`, `cpu.0.power`) or an ending of it that only one has;
    /// `value` is in the unit of the file. Models already taken from the device keep the old value.
    ///
    /// # Errors
    /// An unknown or ambiguous name; a value that is out of range or makes the device contradict itself, which is
    /// then left as it was.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), CalibrationError> {
        let mut constants = self.constants.clone();
        calibration::replace(&mut constants, &self.file, name, value)?;
        consistent(contradiction(&constants), |field| Location::of_override(&self.file, field))?;
        self.constants = constants;
        Ok(())
    }
}

/// More cores than any device has; a typing error beyond it.
const MOST_CORES: f64 = 1024.0;

/// What the schema cannot say: the section that is wrong, and why.
fn contradiction(constants: &DeviceConstants) -> Option<(&'static str, String)> {
    if constants.cpu.is_empty() && constants.gpu.is_none() {
        return Some(("", "a device needs a [[cpu]] cluster or a [gpu]".to_owned()));
    }
    if let Some((section, rate)) =
        rates(constants).into_iter().find(|&(.., value)| value <= 0.0).map(|(s, r, _)| (s, r))
    {
        return Some((section, format!("{rate} is nought: no work would ever end")));
    }
    if constants.cpu.iter().any(|cluster| cluster.cores.value.0 > MOST_CORES) {
        return Some(("cpu", format!("a cluster has at most {MOST_CORES} cores")));
    }
    if let Some(upside_down) = limits_contradiction(constants) {
        return Some(upside_down);
    }
    constants.dvfs.iter().find_map(|curve| Some(("dvfs", curve_contradiction(curve, constants)?)))
}

/// Limits that stand above what they limit.
fn limits_contradiction(constants: &DeviceConstants) -> Option<(&'static str, String)> {
    if let Some(storage) = &constants.storage {
        let [slots, reserved] = [storage.queue_depth.value.0.floor(), storage.reserved_slots.value.0.floor()];
        if reserved >= slots {
            return Some(("storage", format!("reserved_slots, {reserved}, leaves none of the queue's {slots} slots")));
        }
    }
    for cluster in &constants.cpu {
        let [lowest, highest] = [&cluster.frequency_lowest, &cluster.frequency].map(|point| point.value.0 * 1e-6);
        if lowest > highest {
            let core = &cluster.core;
            return Some(("cpu", format!("frequency_lowest of {core}, {lowest} MHz, is above its {highest} MHz")));
        }
    }
    let thermal = constants.thermal.as_ref()?;
    let (trip, limit) = (thermal.trip.value.0, thermal.limit.value.0);
    (trip >= limit).then(|| ("thermal", format!("the governor's trip, {trip} °C, is not below the limit, {limit} °C")))
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
        return Some(format!("{} has an operating point at nought", curve.core));
    }
    if [curve.frequency.kind, curve.power.kind].contains(&Kind::Fitted) {
        return Some("a curve cannot be fitted: fitted constants are counted one by one".to_owned());
    }
    let mut cores = constants.cpu.iter().map(|cluster| cluster.core.as_str());
    if cores.clone().any(|core| core == curve.core) {
        return None;
    }
    let hint = calibration::nearest(&curve.core, &mut cores);
    let hint = hint.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"));
    Some(format!("no [[cpu]] cluster has the core `{}`{hint}", curve.core))
}

/// Every rate that work is divided by: section, name, value.
fn rates(constants: &DeviceConstants) -> Vec<(&'static str, &'static str, f64)> {
    let mut rates =
        vec![("dram", "peak", constants.dram.peak.value.0), ("dram", "achievable", constants.dram.achievable.value.0)];
    for cluster in &constants.cpu {
        rates.extend([
            ("cpu", "cores", cluster.cores.value.0.floor()),
            ("cpu", "frequency", cluster.frequency.value.0),
            ("cpu", "frequency_lowest", cluster.frequency_lowest.value.0),
            ("cpu", "fp32_rate", cluster.fp32_rate.value.0),
            ("cpu", "fp16_rate", cluster.fp16_rate.value.0),
            ("cpu", "int8_rate", cluster.int8_rate.value.0),
            ("cpu", "l1_rate", cluster.l1_rate.value.0),
            ("cpu", "l2_rate", cluster.l2_rate.value.0),
            ("cpu", "l3_rate", cluster.l3_rate.value.0),
            ("cpu", "dram_bandwidth", cluster.dram_bandwidth.value.0),
        ]);
        rates.extend(cluster.int8_widening_rate.iter().map(|rate| ("cpu", "int8_widening_rate", rate.value.0)));
    }
    if let Some(dsp) = &constants.dsp {
        rates.extend([
            ("dsp", "vector", dsp.vector.value.as_f64()),
            ("dsp", "contexts", dsp.contexts.value.0),
            ("dsp", "clock", dsp.clock.value.0),
            ("dsp", "product_rate", dsp.product_rate.value.0),
            ("dsp", "l2_bandwidth", dsp.l2_bandwidth.value.0),
            ("dsp", "dram_bandwidth", dsp.dram_bandwidth.value.0),
            ("dsp", "irregular_bandwidth", dsp.irregular_bandwidth.value.0),
        ]);
    }
    if let Some(storage) = &constants.storage {
        rates.extend([
            ("storage", "sequential_read", storage.sequential_read.value.0),
            ("storage", "sequential_write", storage.sequential_write.value.0),
            ("storage", "sustained_write", storage.sustained_write.value.0),
            ("storage", "random_read", storage.random_read.value.0),
            ("storage", "random_write", storage.random_write.value.0),
        ]);
        let datasheet = [("datasheet_read", &storage.datasheet_read), ("datasheet_write", &storage.datasheet_write)];
        rates.extend(datasheet.into_iter().filter_map(|(name, rate)| Some(("storage", name, rate.as_ref()?.value.0))));
    }
    if let Some(thermal) = &constants.thermal {
        rates.extend([
            ("thermal", "die_capacity", thermal.die_capacity.value.0),
            ("thermal", "chassis_capacity", thermal.chassis_capacity.value.0),
            ("thermal", "battery_capacity", thermal.battery_capacity.value.0),
            ("thermal", "die_resistance", thermal.die_resistance.value.0),
            ("thermal", "chassis_resistance", thermal.chassis_resistance.value.0),
            ("thermal", "battery_resistance", thermal.battery_resistance.value.0),
        ]);
    }
    if let Some(gpu) = &constants.gpu {
        rates.extend([
            ("gpu", "units", gpu.units.value.0),
            ("gpu", "clock", gpu.clock.value.0),
            ("gpu", "threads", gpu.threads.value.0),
            ("gpu", "shared_rate", gpu.shared_rate.value.0),
            ("gpu", "fp32_peak", gpu.fp32_peak.value.0),
            ("gpu", "fp16_peak", gpu.fp16_peak.value.0),
            ("gpu", "int8_peak", gpu.int8_peak.value.0),
        ]);
        let tensor = [("fp16_tensor_peak", &gpu.fp16_tensor_peak), ("int8_tensor_peak", &gpu.int8_tensor_peak)];
        let tensor = tensor.into_iter().filter_map(|(name, peak)| Some(("gpu", name, peak.as_ref()?.value.0)));
        rates.extend(tensor);
        rates.extend(gpu.l2_bandwidth.iter().map(|rate| ("gpu", "l2_bandwidth", rate.value.0)));
    }
    rates
}
