//! Descriptions of devices.
//!
//! Also of software stacks and operating systems.

use std::collections::BTreeMap;

use haversack_devices::{CoreSelection, Device, Frequency, Precision, Visit, load, load_stack, load_system};
use serde_json::{Value, json};

use super::Shown;
use super::calibrated::{Belief, processors};
use crate::Result;
use crate::checked::checked;
use crate::output::join;

/// The device `id`, or the one in a file.
pub(super) fn show(id: &str) -> Result<Shown> {
    let device = load(id)?;
    let belief = Belief::of(&device, |artefact| artefact.devices, |fit| Some(fit.device.as_str()))?;
    let constants = &device.constants;
    // The stacks with kernels for one of the device's processors, and those among them with rows of
    // papers on this device.
    let (mut stacks, mut compared) = (Vec::new(), Vec::new());
    for listing in haversack_devices::list_stacks()? {
        let on = processors(load_stack(listing.id)?.processors_of(&device));
        if !on.is_empty() {
            stacks.push(json!({ "id": listing.id, "processors": on }));
            compared.extend(Some(listing.id).filter(|stack| checked(id, stack)));
        }
    }
    let cores = device.cpu().and_then(|cpu| cpu.choose(CoreSelection::All, Frequency::Highest).ok());
    let peaks = constants.gpu.as_ref().map(|gpu| {
        let [fp16, int8] = [Precision::Fp16, Precision::Int8].map(|precision| gpu.general_peak(precision).0);
        json!({ "fp16": fp16, "int8": int8, "tensor": gpu.tensor_peak(Precision::Fp16).map(|peak| peak.0) })
    });
    // Every constant by its name, in base units.
    let mut values: BTreeMap<String, f64> = BTreeMap::new();
    constants.clone().visit("", &mut |name, constant| {
        values.insert(name.to_owned(), constant.entry(name, "").value * constant.unit().scale);
    });
    let mut more = json!({
        "technology": constants.dram.technology, "checked": compared, "c": values,
        "peak": cores.map(|cores| cores.peak(Precision::Fp32).0), "peaks": peaks,
        "version": constants.dsp.as_ref().map(|dsp| dsp.version.to_string()),
    });
    join(&mut more, belief.figures());
    Ok(Shown::new(include_str!("../../texts/show-device.txt"), json(&device, stacks, &belief), more))
}

fn json(device: &Device, stacks: Vec<Value>, belief: &Belief) -> Value {
    let constants = &device.constants;
    let clusters = constants.cpu.iter().map(|cluster| {
        json!({
            "kind": "CPU", "class": cluster.class.word(), "name": cluster.core, "cores": cluster.cores.value.0,
            "frequency_lowest_hz": cluster.frequency_lowest.value.0, "frequency_hz": cluster.frequency.value.0,
            "fp32_flops": cluster.fp32_rate.value.0 * cluster.frequency.value.0 * cluster.cores.value.0,
        })
    });
    let gpu = constants.gpu.iter().map(|gpu| {
        let (clock, peak) = (gpu.clock.value.0, gpu.general_peak(Precision::Fp32).0);
        json!({ "kind": "GPU", "name": gpu.name, "units": gpu.units.value.0, "frequency_hz": clock, "fp32_flops": peak })
    });
    let dsp = constants.dsp.iter().map(|dsp| {
        let (clock, peak) = (dsp.clock.value.0, dsp.int8_peak().0);
        json!({ "kind": "DSP", "name": dsp.name, "frequency_hz": clock, "int8_ops": peak })
    });
    let processors: Vec<Value> = clusters.chain(gpu).chain(dsp).collect();
    let mut value = json!({
        "device": device.id, "name": constants.name, "soc": constants.soc, "remark": constants.remark,
        "form": constants.form.map(|form| form.to_string()),
        "file": device.file, "bases": device.bases, "digest": device.digest,
        "ram_bytes": device.ram().0, "battery_j": constants.battery.as_ref().map(|battery| battery.value.0),
        "default_stack": constants.default_stack, "stacks": stacks, "processors": processors,
        "dram_bytes_per_s": constants.dram.peak.value.0, "flash": constants.storage.as_ref().map(|flash| &flash.class),
        "thermal": constants.thermal.is_some(),
    });
    join(&mut value, belief.json());
    value
}

/// The software stack `id`, or the one in a file.
pub(super) fn stack(id: &str) -> Result<Shown> {
    let stack = load_stack(id)?;
    let belief = Belief::of(&stack, |artefact| artefact.stacks, |fit| Some(fit.stack.as_str()))?;
    let constants = &stack.constants;
    let (graph, allocator) = (constants.graph.to_string(), constants.allocator.to_string());
    let (mut own, mut runs) = (Vec::new(), Vec::new());
    for device in devices()? {
        if stack.processors_of(&device).contains(&true) {
            runs.push(device.id.clone());
        }
        if device.constants.default_stack == stack.id {
            own.push(device.id);
        }
    }
    let on = processors([stack.cpu().is_some(), stack.gpu().is_some(), stack.dsp().is_some()]);
    let mut json = json!({
        "stack": stack.id, "name": constants.name, "remark": constants.remark, "file": stack.file,
        "bases": stack.bases, "digest": stack.digest, "processors": on, "graph": graph, "allocator": allocator,
        "devices": runs, "default_of": own,
    });
    join(&mut json, belief.json());
    let polling = constants.housekeeping.as_ref().map(|kept| format!("{:.0}", kept.polling.value.0 * 100.0));
    let mut more = json!({ "polling": polling, "compresses": constants.codec.is_some() });
    join(&mut more, belief.figures());
    Ok(Shown::new(include_str!("../../texts/show-stack.txt"), json, more))
}

/// The operating system `id`, or the one in a file.
pub(super) fn system(id: &str) -> Result<Shown> {
    let system = load_system(id)?;
    let belief = Belief::of(&system, |artefact| artefact.systems, |fit| fit.system.as_deref())?;
    let constants = &system.constants;
    let reclaim = &constants.reclaim;
    let mut json = json!({
        "system": system.id, "name": constants.name, "remark": constants.remark, "file": system.file,
        "bases": system.bases, "digest": system.digest, "lists": reclaim.lists.to_string(),
        "zram": constants.zram.is_some(), "swap": constants.swap.is_some(),
    });
    join(&mut json, belief.json());
    let mut more = json!({
        "swappiness": reclaim.swappiness.value.0.to_string(),
        "algorithm": constants.zram.as_ref().map(|zram| zram.algorithm.to_string()),
        "ratio": format!("{:.1}", system.app_pages().mean_ratio().0),
    });
    join(&mut more, belief.figures());
    Ok(Shown::new(include_str!("../../texts/show-system.txt"), json, more))
}

fn devices() -> Result<Vec<Device>> {
    haversack_devices::list()?.iter().map(|listing| Ok(load(listing.id)?)).collect()
}
