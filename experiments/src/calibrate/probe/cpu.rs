//! Constants that combine several keys of the CPU probe: clusters, rates per cycle, bandwidths by level.

use haversack_devices::{ClusterClass, Device, Kind};
use toml::Value;

use super::device_file::How;
use super::reader::{Copied, Probed, fastest};
use super::{Taken, guessed, instruction_set, measured};

/// The source of the constants.
const SOURCE: &str = "probe.c";
const KERNEL: How<'static> = How { kind: Kind::Datasheet, source: SOURCE, note: "as the kernel says" };

/// Copies all measurements of `probed` into the file.
pub(super) fn take(taken: &mut Taken<'_>, probed: &Probed) {
    let machine = |key: &str| probed.text(&format!("machine.{key}"));
    let architecture = machine("architecture");
    taken.file.put("soc", format!("{architecture}, {} {}", machine("system"), machine("release")));
    match instruction_set(architecture) {
        Some(set) => taken.file.put("instruction_set", set.to_string()),
        None => {
            taken.said.push(format!("the instruction set of {architecture} is not known; that of the base stays"));
        }
    }
    let places = clusters(taken, probed);
    for section in ["cache", "dram"] {
        taken.file.0.entry(section).or_insert_with(|| Value::Table(toml::Table::new()));
    }
    taken.constants(probed, SOURCE, &places);
    for (rank, &place) in places.iter().enumerate() {
        cluster(taken, probed, place, rank);
    }
    if let Some(bytes) = places.iter().find_map(|place| probed.number(&format!("clusters.{place}.l3_bytes"))) {
        taken.file.set("cache.l3", bytes, "KiB", KERNEL);
    }
    taken.file.put("dram.technology", "as probed");
    taken.file.set("dram.achievable", 1.0, "fraction", measured(SOURCE, "of what all cores copied"));
    let flash = ["sequential_read", "sequential_write", "random_read", "random_write", "latency_read", "latency_write"];
    if flash.iter().all(|key| taken.file.measured(&format!("storage.{key}")).is_some()) {
        // The base's data-sheet rates do not apply to the measured storage.
        taken.file.drop("storage.datasheet_read");
        taken.file.drop("storage.datasheet_write");
    }
    zram(probed, taken);
}

/// Adds clusters to the file, each made from the most similar one of the base; returns the indices of the probe's
/// clusters, the fastest core first.
fn clusters(taken: &mut Taken<'_>, probed: &Probed) -> Vec<usize> {
    let peak = |place: &usize| probed.number(&format!("clusters.{place}.fp32_peak_flops_per_s")).unwrap_or_default();
    let mut places: Vec<usize> = (0..probed.tables("clusters")).collect();
    places.sort_by(|a, b| peak(b).total_cmp(&peak(a)));
    let Some(Value::Array(templates)) = taken.file.0.get("cpu").cloned() else { return places };
    let mut made = Vec::new();
    for (rank, place) in places.iter().enumerate() {
        let class = class_of(rank, places.len());
        let Some(mut cluster) = templates.get(template(taken.base, class)).cloned() else { return places };
        let first = probed.number(&format!("clusters.{place}.first_core")).unwrap_or_default();
        if let Some(cluster) = cluster.as_table_mut() {
            cluster.insert("class".to_owned(), class.word().into());
            let core = format!("{}, cores from {first}", probed.text("machine.architecture"));
            cluster.insert("core".to_owned(), core.into());
        }
        made.push(cluster);
    }
    taken.file.0.insert("cpu".to_owned(), Value::Array(made));
    places
}

/// The first is big, the last of several is little, those between are middle.
const fn class_of(rank: usize, clusters: usize) -> ClusterClass {
    if rank == 0 {
        ClusterClass::Big
    } else if rank + 1 == clusters {
        ClusterClass::Little
    } else {
        ClusterClass::Middle
    }
}

/// The index of the cluster of `base` that is most similar to `class`.
fn template(base: &Device, class: ClusterClass) -> usize {
    let clusters = &base.constants.cpu;
    clusters.iter().position(|cluster| cluster.class == class).unwrap_or(clusters.len().saturating_sub(1))
}

/// The constants of a cluster that combine several keys.
fn cluster(taken: &mut Taken<'_>, probed: &Probed, place: usize, rank: usize) {
    let table = format!("clusters.{place}");
    let of = |key: &str| probed.number(&format!("{table}.{key}"));
    let Some(clock) = of("frequency_measured_hz") else { return };
    frequencies(taken, probed, &table, rank);
    let at = template(taken.base, class_of(rank, probed.tables("clusters")));
    let Some(base) = taken.base.constants.cpu.get(at) else { return };
    let name = |key: &str| format!("cpu.{rank}.{key}");
    let Some(peak) = of("fp32_peak_flops_per_s").map(|rate| rate / clock) else { return };
    let file = &mut taken.file;
    file.set(&name("fp32_rate"), peak, "FLOP/cycle", measured(SOURCE, "independent multiply-adds in registers"));
    // The base's ratios between number formats, for formats that the probe does not measure.
    let ratio = guessed(&taken.base.id, "not probed: as many times fp32 as there");
    let fp32 = base.fp32_rate.value.0;
    file.set(&name("fp16_rate"), peak * base.fp16_rate.value.0 / fp32, "FLOP/cycle", ratio);
    file.set(&name("int8_rate"), peak * base.int8_rate.value.0 / fp32, "OP/cycle", ratio);
    if let Some(rate) = of("int8_gemm_ops_per_s") {
        let is_dot = probed.text(&format!("{table}.int8_kernel")) == "dot-product";
        let key = if is_dot { "int8_rate" } else { "int8_widening_rate" };
        file.set(&name(key), rate / clock, "OP/cycle", measured(SOURCE, "tiles of products in the first cache"));
    }
    let copies = probed.copies(&table);
    let [l1, l2, l3] = ["l1_bytes", "l2_bytes", "l3_bytes"].map(of);
    let of_level = |before: Option<f64>, size: Option<f64>| level(&copies, before?, size?);
    let levels = [("l1_rate", of_level(Some(0.0), l1)), ("l2_rate", of_level(l1, l2)), ("l3_rate", of_level(l2, l3))];
    for (key, rate) in levels {
        if let Some(rate) = rate {
            let how = measured(SOURCE, "copied, read and written bytes together");
            file.set(&name(key), rate / clock, "B/cycle", how);
        }
    }
    if let Some(largest) = copies.last() {
        let how = measured(SOURCE, "copied, the largest set that was probed");
        file.set(&name("dram_bandwidth"), largest.rate, "GB/s", how);
    }
}

/// The copy rate of a cache of `size` bytes: from working sets larger than the level before and well within its own.
fn level(copies: &[Copied], before: f64, size: f64) -> Option<f64> {
    let above = if before > 0.0 { 1.9 * before } else { 0.0 };
    fastest(copies, above, (size * 0.6).max(above))
}

/// The frequencies reported by the kernel, or as measured; adds a remark if the cores ran far below them.
fn frequencies(taken: &mut Taken<'_>, probed: &Probed, table: &str, rank: usize) {
    let of = |key: &str| probed.number(&format!("{table}.{key}"));
    let Some(clock) = of("frequency_measured_hz") else { return };
    let known = of("frequency_hz");
    let highest = known.unwrap_or(clock);
    if clock < (0.6 * highest).max(3e8) {
        let first = of("first_core").unwrap_or_default();
        let of_what = known.map_or_else(String::new, |known| format!(" of the kernel's {:.0} MHz", known / 1e6));
        taken.said.push(format!(
            "the cores from {first} ran at {:.0} MHz{of_what}: if other programs ran or they were hot, run the probe again",
            clock / 1e6
        ));
    }
    let how = if known.is_some() { KERNEL } else { measured(SOURCE, "additions that wait for each other") };
    taken.file.set(&format!("cpu.{rank}.frequency"), highest, "MHz", how);
    let lowest = of("frequency_lowest_hz").filter(|&lowest| lowest <= highest);
    let unknown = How { kind: Kind::Estimated, source: SOURCE, note: "not known: taken to be the highest" };
    let how = if lowest.is_some() { KERNEL } else { unknown };
    taken.file.set(&format!("cpu.{rank}.frequency_lowest"), lowest.unwrap_or(highest), "MHz", how);
}

/// ZRAM belongs to an operating system, not to a device: reported in a remark, for the author of a system's file.
fn zram(probed: &Probed, taken: &mut Taken<'_>) {
    let algorithm = probed.text("zram.algorithm");
    if algorithm.is_empty() {
        return;
    }
    let page = |key: &str| probed.number(&format!("zram.{key}")).map(|seconds| format!("{:.1} us", seconds * 1e6));
    let times = page("write_page_s").zip(page("read_page_s"));
    let times =
        times.map_or_else(String::new, |(write, read)| format!(", a page is written in {write} and read in {read}"));
    taken.said.push(format!("ZRAM by {algorithm}{times}: part of an operating system's file, not of this one"));
}
