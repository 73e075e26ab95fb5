//! What a device is.
//!
//! What a software stack or an operating system is.

use haversack_devices::{
    Bytes, ClusterConstants, Device, DspConstants, GpuConstants, Precision, load, load_stack, load_system,
};
use haversack_reports::table::{shortest, three_digits};
use serde_json::{Value, json};

use super::calibrated::{Belief, heading, place, processors};
use super::{Shown, fact, table};
use crate::Result;
use crate::checked::checked;

/// The device `id`, or that of a file.
pub(super) fn show(id: &str) -> Result<Shown> {
    let device = load(id)?;
    let belief = Belief::of(&device, |artefact| artefact.devices, |fit| Some(fit.device.as_str()))?;
    let stacks = stacks(&device)?;
    let constants = &device.constants;
    let name = format!("{} ({})", constants.name, constants.soc);
    let mut text = heading(&device.id, &name, constants.remark.as_deref());
    text += &place(&device);
    text += &fact("memory", &format!("{}, {}", binary(device.ram()), constants.dram.technology));
    if let Some(battery) = &constants.battery {
        text += &fact("battery", &format!("{} Wh", three_digits(battery.value.0 / 3600.0)));
    }
    if let Some(form) = constants.form {
        text += &fact("form", &form.to_string());
    }
    text += &fact("default stack", &constants.default_stack);
    let runs: Vec<String> = stacks.iter().map(|(id, on)| format!("{id} ({})", on.join(", "))).collect();
    text += &fact("stacks that run", &runs.join(", "));
    let compared: Vec<&str> = stacks.iter().map(|(stack, _)| *stack).filter(|stack| checked(id, stack)).collect();
    if !compared.is_empty() {
        text += &fact("papers checked it on", &compared.join(", "));
    }
    text += &fact("heat", &heat(&device));
    text += &clusters(&device);
    text += &accelerators(&device);
    text += &storage(&device);
    text += &belief.text();
    Ok(Shown { text, json: json(&device, &stacks, &belief) })
}

/// The stacks with kernels for a processor that the device has, and those processors.
fn stacks(device: &Device) -> Result<Vec<(&'static str, Vec<&'static str>)>> {
    let mut found = Vec::new();
    for listing in haversack_devices::list_stacks()? {
        let on = processors(load_stack(listing.id)?.processors_of(device));
        if !on.is_empty() {
            found.push((listing.id, on));
        }
    }
    Ok(found)
}

/// A size in the units of memory chips.
fn binary(bytes: Bytes) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(shift, _)| bytes.0 >> shift > 0);
    unit.map_or_else(
        || format!("{} B", bytes.0),
        |(shift, unit)| format!("{} {unit}", three_digits(bytes.as_f64() / f64::from(1_u32 << shift))),
    )
}

fn heat(device: &Device) -> String {
    let Some(thermal) = &device.constants.thermal else { return "not modelled".to_owned() };
    let [trip, limit] = [thermal.trip.value.0, thermal.limit.value.0].map(shortest);
    format!("modelled: frequencies fall while the die is above {trip} °C, and it shuts down above {limit} °C")
}

/// A cell of the table of clusters.
type Cell = fn(&ClusterConstants) -> String;

fn clusters(device: &Device) -> String {
    let Some(cpu) = device.cpu() else { return String::new() };
    let dram = device.constants.dram.peak.value.0 * 1e-9;
    let columns: [(&str, Cell); 11] = [
        ("class", |of| of.class.to_string()),
        ("core", |of| of.core.clone()),
        ("cores", |of| shortest(of.cores.value.0)),
        ("lowest, MHz", |of| three_digits(of.frequency_lowest.value.0 * 1e-6)),
        ("highest, MHz", |of| three_digits(of.frequency.value.0 * 1e-6)),
        ("FP32, GFLOP/s", |of| three_digits(of.fp32_rate.value.0 * of.frequency.value.0 * 1e-9)),
        ("INT8, GOP/s", |of| three_digits(of.int8_rate.value.0 * of.frequency.value.0 * 1e-9)),
        ("L1, KiB", |of| shortest(of.l1.value.as_f64() / 1024.0)),
        ("L2, KiB", |of| shortest(of.l2.value.as_f64() / 1024.0)),
        ("DRAM, GB/s", |of| three_digits(of.dram_bandwidth.value.0 * 1e-9)),
        ("power, W", |of| three_digits(of.power.value.0)),
    ];
    let row = |cluster| columns.iter().map(|(_, cell)| cell(cluster)).collect();
    let rows = device.constants.cpu.iter().map(row).collect();
    let cache = device.constants.cache.as_ref().and_then(|cache| cache.l3.as_ref());
    let cache = cache.map_or_else(String::new, |l3| format!(", L3 of {}", binary(l3.value)));
    let cores = cpu.choose(haversack_devices::CoreSelection::All, haversack_devices::Frequency::Highest);
    let peak = cores.map_or_else(
        |_| String::new(),
        |cores| format!(", {} GFLOP/s in FP32 of all cores", three_digits(cores.peak(Precision::Fp32).0 * 1e-9)),
    );
    let title = format!("\nCPU: DRAM of {} GB/s{cache}{peak}; below, of one core\n", three_digits(dram));
    title + &table(&columns.map(|(name, _)| name), |place| place > 1, rows)
}

fn accelerators(device: &Device) -> String {
    let mut text = String::new();
    if let Some(gpu) = &device.constants.gpu {
        text += &format!("\nGPU: {}\n", gpu.name);
        text += &table(&[], |place| place == 1, gpu_rows(gpu));
    }
    if let Some(dsp) = &device.constants.dsp {
        text += &format!("\nDSP: {}, {}\n", dsp.name, dsp.version);
        text += &table(&[], |place| place == 1, dsp_rows(dsp));
    }
    text
}

/// A name, a number and its unit.
fn figure(name: &str, number: f64, unit: &str) -> Vec<String> {
    vec![name.to_owned(), three_digits(number), unit.to_owned()]
}

fn gpu_rows(gpu: &GpuConstants) -> Vec<Vec<String>> {
    let mut rows = vec![
        figure("units", gpu.units.value.0, ""),
        figure("clock", gpu.clock.value.0 * 1e-6, "MHz"),
        figure("FP32 peak", gpu.general_peak(Precision::Fp32).0 * 1e-9, "GFLOP/s"),
        figure("FP16 peak", gpu.general_peak(Precision::Fp16).0 * 1e-9, "GFLOP/s"),
        figure("INT8 peak", gpu.general_peak(Precision::Int8).0 * 1e-9, "GOP/s"),
        figure("launch of a kernel", gpu.launch.value.seconds() * 1e6, "µs"),
        figure("power under load", gpu.power.value.0, "W"),
    ];
    let tensor =
        gpu.tensor_peak(Precision::Fp16).map(|peak| figure("FP16 peak, tensor cores", peak.0 * 1e-9, "GFLOP/s"));
    let l2 = gpu.l2.as_ref().map(|l2| figure("L2 cache", l2.value.as_f64() / 1024.0, "KiB"));
    let share = gpu.memory_share.as_ref().map(|share| figure("memory that it can address", share.value.0 * 1e2, "%"));
    rows.extend([tensor, l2, share].into_iter().flatten());
    rows
}

fn dsp_rows(dsp: &DspConstants) -> Vec<Vec<String>> {
    vec![
        figure("vector contexts", dsp.contexts.value.0, ""),
        figure("clock", dsp.clock.value.0 * 1e-6, "MHz"),
        figure("INT8 peak", dsp.int8_peak().0 * 1e-9, "GOP/s"),
        figure("tightly coupled memory", dsp.vtcm.value.as_f64() / 1024.0, "KiB"),
        figure("L2 cache", dsp.l2.value.as_f64() / 1024.0, "KiB"),
        figure("memory that a process maps", dsp.memory.value.as_f64() / f64::from(1_u32 << 20), "MiB"),
        figure("call by FastRPC", dsp.fastrpc.value.seconds() * 1e6, "µs"),
        figure("power under load", dsp.power.value.0, "W"),
    ]
}

fn storage(device: &Device) -> String {
    let Some(storage) = &device.constants.storage else { return format!("\n{}", fact("flash", "not modelled")) };
    let rows = vec![
        figure("sequential reads", storage.sequential_read.value.0 * 1e-6, "MB/s"),
        figure("sequential writes", storage.sequential_write.value.0 * 1e-6, "MB/s"),
        figure("sustained writes", storage.sustained_write.value.0 * 1e-6, "MB/s"),
        figure("random reads of 4 KiB", storage.random_read.value.0 * 1e-6, "MB/s"),
        figure("random writes of 4 KiB", storage.random_write.value.0 * 1e-6, "MB/s"),
    ];
    format!("\nflash: {}\n{}", storage.class, table(&[], |place| place == 1, rows))
}

fn json(device: &Device, stacks: &[(&'static str, Vec<&'static str>)], belief: &Belief) -> Value {
    let constants = &device.constants;
    let stacks: Vec<Value> = stacks.iter().map(|(id, on)| json!({ "id": id, "processors": on })).collect();
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
    crate::output::join(&mut value, belief.json());
    value
}

/// The software stack `id`, or that of a file.
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
    let mut text = heading(&stack.id, &constants.name, constants.remark.as_deref());
    text += &place(&stack);
    text += &fact("kernels for", &on.join(", "));
    text += &fact("graph", &graph);
    text += &fact("allocator", &allocator);
    if let Some(housekeeping) = &constants.housekeeping {
        let polling = housekeeping.polling.value.0 * 100.0;
        text +=
            &fact("page tables", &format!("kept by the host's thread, which polls for {polling:.0} % of its waiting"));
    }
    text += &fact("compression", if constants.codec.is_some() { "policies can compress" } else { "none" });
    text += &fact("devices that run it", &or_none(&runs));
    text += &fact("default of", &or_none(&own));
    text += &belief.text();
    let mut json = json!({
        "stack": stack.id, "name": constants.name, "remark": constants.remark, "file": stack.file,
        "bases": stack.bases, "digest": stack.digest, "processors": on, "graph": graph, "allocator": allocator,
        "devices": runs, "default_of": own,
    });
    crate::output::join(&mut json, belief.json());
    Ok(Shown { text, json })
}

/// The operating system `id`, or that of a file.
pub(super) fn system(id: &str) -> Result<Shown> {
    let system = load_system(id)?;
    let belief = Belief::of(&system, |artefact| artefact.systems, |fit| fit.system.as_deref())?;
    let constants = &system.constants;
    let mut text = heading(&system.id, &constants.name, constants.remark.as_deref());
    text += &place(&system);
    let reclaim = &constants.reclaim;
    text += &fact("page lists", &format!("{}, swappiness {}", reclaim.lists, reclaim.swappiness.value.0));
    let zram = constants.zram.as_ref().map_or_else(
        || "none".to_owned(),
        |zram| format!("{}, apps' memory to 1 / {:.1}", zram.algorithm, system.app_pages().mean_ratio().0),
    );
    text += &fact("compressed memory", &zram);
    text += &fact("swap on flash", if constants.swap.is_some() { "a partition" } else { "none" });
    text += &belief.text();
    let mut json = json!({
        "system": system.id, "name": constants.name, "remark": constants.remark, "file": system.file,
        "bases": system.bases, "digest": system.digest, "lists": reclaim.lists.to_string(),
        "zram": constants.zram.is_some(), "swap": constants.swap.is_some(),
    });
    crate::output::join(&mut json, belief.json());
    Ok(Shown { text, json })
}

fn devices() -> Result<Vec<Device>> {
    haversack_devices::list()?.iter().map(|listing| Ok(load(listing.id)?)).collect()
}

fn or_none(ids: &[String]) -> String {
    if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
}
