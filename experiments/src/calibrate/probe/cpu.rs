//! What the CPU probe measured, as constants of clusters, caches, memory and flash.

use haversack_devices::device::ClusterConstants;
use haversack_devices::{ClusterClass, Device, InstructionSet};

use super::format::Probed;
use super::instruction_set;
use super::writer::{DeviceFile, How, Section, cluster_of};

/// Where the constants come from.
const SOURCE: &str = "probe.c";

/// Takes all that `probed` holds into `file`.
pub(super) fn take(file: &mut DeviceFile, probed: &Probed, base: &Device, said: &mut Vec<String>) {
    let measured = How::measured(SOURCE);
    let machine = |key: &str| probed.text(&format!("machine.{key}")).to_owned();
    file.top.text("soc", &format!("{}, {} {}", machine("architecture"), machine("system"), machine("release")));
    match instruction_set(&machine("architecture")) {
        Some(InstructionSet::X86) => file.top.text("instruction_set", "x86-64"),
        Some(InstructionSet::Arm64) => file.top.text("instruction_set", "arm64"),
        None => said
            .push(format!("the instruction set of {} is not known; that of the base stays", machine("architecture"))),
    }
    match probed.number("machine.memory_bytes") {
        Some(bytes) => {
            let how = How::said(SOURCE).noting("what the kernel manages; what firmware keeps is not part of it");
            file.top.set("ram", (bytes / MEBI, "MiB"), &how);
        }
        None => said.push(format!("ram stays the base's: {}", probed.reason("machine.memory_bytes"))),
    }
    let of_core = order(probed);
    for (rank, &place) in of_core.iter().enumerate() {
        let class = class_of(rank, of_core.len());
        let Some(template) = template(base, class) else { continue };
        let mut section = cluster_of(base, template);
        section.text("class", class.word());
        section
            .text("core", &format!("{}, cores from {}", machine("architecture"), whole(probed, place, "first_core")));
        cluster(&mut section, probed, place, (&base.id, said));
        file.clusters.push(section);
    }
    caches(file, probed, &of_core);
    if let Some(rate) = probed.number("all_cores.copy_bytes_per_s") {
        let dram = file.section_or_new("[dram]");
        dram.text("technology", "as probed");
        dram.set("peak", (rate / 1e9, "GB/s"), &measured.noting("what all cores copied, not the interface's own peak"));
        dram.set("achievable", (1.0, "fraction"), &measured.noting("of what all cores copied"));
    }
    storage(file, probed, said);
    zram(probed, said);
}

const MEBI: f64 = 1_048_576.0;

fn whole(probed: &Probed, place: usize, key: &str) -> usize {
    probed.number(&format!("clusters.{place}.{key}")).unwrap_or_default() as usize
}

/// The clusters of the probe, the fastest core first.
fn order(probed: &Probed) -> Vec<usize> {
    let peak = |place: &usize| probed.number(&format!("clusters.{place}.fp32_peak_flops_per_s")).unwrap_or_default();
    let mut places: Vec<usize> = (0..probed.tables("clusters")).collect();
    places.sort_by(|a, b| peak(b).total_cmp(&peak(a)));
    places
}

/// The first is big, the last of several little, what is between middle.
const fn class_of(rank: usize, clusters: usize) -> ClusterClass {
    if rank == 0 {
        ClusterClass::Big
    } else if rank + 1 == clusters {
        ClusterClass::Little
    } else {
        ClusterClass::Middle
    }
}

/// The cluster of `base` that is most like one of `class`.
fn template(base: &Device, class: ClusterClass) -> Option<&ClusterConstants> {
    let clusters = &base.constants.cpu;
    clusters.iter().find(|cluster| cluster.class == class).or_else(|| clusters.last())
}

fn cluster(section: &mut Section, probed: &Probed, place: usize, (base, said): (&str, &mut Vec<String>)) {
    let (measured, kernel) = (How::measured(SOURCE), How::said(SOURCE).noting("as the kernel says"));
    let path = format!("clusters.{place}");
    let of = |key: &str| probed.number(&format!("{path}.{key}"));
    let Some(clock) = of("frequency_measured_hz") else { return };
    section.set("cores", (whole(probed, place, "cores") as f64, "count"), &kernel);
    let highest = of("frequency_hz").unwrap_or(clock);
    if clock < (0.6 * highest).max(3e8) {
        let (of_them, known) = (whole(probed, place, "first_core"), of("frequency_hz"));
        let of_what = known.map_or_else(String::new, |known| format!(" of the kernel's {:.0} MHz", known / 1e6));
        said.push(format!(
            "the cores from {of_them} ran at {:.0} MHz{of_what}: if other programs ran or they were hot, run the probe again",
            clock / 1e6
        ));
    }
    match of("frequency_hz") {
        Some(highest) => section.set("frequency", (highest / 1e6, "MHz"), &kernel),
        None => section.set("frequency", (clock / 1e6, "MHz"), &measured.noting("additions that wait for each other")),
    }
    match of("frequency_lowest_hz").filter(|&lowest| lowest <= highest) {
        Some(lowest) => section.set("frequency_lowest", (lowest / 1e6, "MHz"), &kernel),
        None => {
            let how = How::guessed(SOURCE).noting("not known: taken to be the highest");
            section.set("frequency_lowest", (highest / 1e6, "MHz"), &how);
        }
    }
    if let Some(bytes) = of("vector_bytes") {
        section.set("vector", (bytes, "B"), &measured.noting("the widest of the probe's kernels that runs"));
    }
    // The base's ratios between number formats: what the probe does not multiply.
    let per_cycle = |rate: f64| rate / clock;
    let [fp32, fp16, int8] = ["fp32_rate", "fp16_rate", "int8_rate"].map(|key| section.value(key).unwrap_or(1.0));
    let Some(peak) = of("fp32_peak_flops_per_s").map(per_cycle) else { return };
    section.set("fp32_rate", (peak, "FLOP/cycle"), &measured.noting("independent multiply-adds in registers"));
    let ratio = How::guessed(base).noting("not probed: as many times fp32 as there");
    section.set("fp16_rate", (peak * fp16 / fp32, "FLOP/cycle"), &ratio);
    section.set("int8_rate", (peak * int8 / fp32, "OP/cycle"), &ratio);
    if let Some(rate) = of("int8_gemm_ops_per_s").map(per_cycle) {
        let how = measured.noting("tiles of products in the first cache");
        let is_dot = probed.text(&format!("{path}.int8_kernel")) == "dot-product";
        section.set(if is_dot { "int8_rate" } else { "int8_widening_rate" }, (rate, "OP/cycle"), &how);
    }
    let [l1, l2, l3] = ["l1_bytes", "l2_bytes", "l3_bytes"].map(of);
    for (key, bytes) in [("l1", l1), ("l2", l2)] {
        match bytes {
            Some(bytes) => section.set(key, (bytes / 1024.0, "KiB"), &kernel),
            None => said.push(format!("{key} stays the base's: {}", probed.reason(&format!("{path}.{key}_bytes")))),
        }
    }
    // Of each level the sets that are above the level before and well within its own.
    let levels = [("l1_rate", Some(0.0), l1), ("l2_rate", l1, l2), ("l3_rate", l2, l3)];
    for (key, before, size) in levels {
        let copied = before.zip(size).and_then(|(before, size)| {
            let above = if before > 0.0 { 1.9 * before } else { 0.0 };
            probed.copied(&path, above, (size * 0.6).max(above))
        });
        if let Some(rate) = copied {
            section.set(key, (per_cycle(rate), "B/cycle"), &measured.noting("copied, read and written bytes together"));
        }
    }
    let rows = probed.tables(&format!("{path}.bandwidth"));
    let largest = rows.checked_sub(1).map(|row| format!("{path}.bandwidth.{row}"));
    if let Some(rate) = largest.and_then(|row| probed.number(&format!("{row}.copy_bytes_per_s"))) {
        section.set(
            "dram_bandwidth",
            (rate / 1e9, "GB/s"),
            &measured.noting("copied, the largest set that was probed"),
        );
    }
}

fn caches(file: &mut DeviceFile, probed: &Probed, of_core: &[usize]) {
    let shared = of_core.iter().find_map(|place| probed.number(&format!("clusters.{place}.l3_bytes")));
    if let Some(bytes) = shared {
        let how = How::said(SOURCE).noting("as the kernel says");
        file.section_or_new("[cache]").set("l3", (bytes / 1024.0, "KiB"), &how);
    }
}

fn storage(file: &mut DeviceFile, probed: &Probed, said: &mut Vec<String>) {
    let rates = [
        ("sequential_read", "sequential_read_bytes_per_s"),
        ("sequential_write", "sequential_write_bytes_per_s"),
        ("random_read", "random_read_bytes_per_s"),
        ("random_write", "random_write_bytes_per_s"),
    ];
    let waits = [("latency_read", "latency_read_s"), ("latency_write", "latency_write_s")];
    let Some(section) = file.section("[storage]") else {
        said.push(
            "the base has no [storage]: what was measured of the flash is not taken; --base names a device with one"
                .into(),
        );
        return;
    };
    let measured = How::measured(SOURCE);
    let mut missing = None;
    for (key, from, scale, unit) in rates
        .map(|(key, from)| (key, from, 1e-6, "MB/s"))
        .into_iter()
        .chain(waits.map(|(key, from)| (key, from, 1e6, "us")))
    {
        match probed.number(&format!("storage.{from}")) {
            Some(value) => section.set(key, (value * scale, unit), &measured),
            None => missing = Some(probed.reason(&format!("storage.{from}")).to_owned()),
        }
    }
    match missing {
        Some(reason) => said.push(format!("some constants of the flash stay the base's: {reason}")),
        None => {
            // The base's class says nothing of this part any more.
            section.drop("datasheet_read");
            section.drop("datasheet_write");
        }
    }
}

/// ZRAM belongs to an operating system, not to a device: said, so that whoever writes a system's file has it.
fn zram(probed: &Probed, said: &mut Vec<String>) {
    let algorithm = probed.text("zram.algorithm");
    if algorithm.is_empty() {
        return;
    }
    let page = |key: &str| probed.number(&format!("zram.{key}")).map(|seconds| format!("{:.1} us", seconds * 1e6));
    let times = page("write_page_s").zip(page("read_page_s"));
    let times =
        times.map_or_else(String::new, |(write, read)| format!(", a page is written in {write} and read in {read}"));
    said.push(format!("ZRAM by {algorithm}{times}: part of an operating system's file, not of this one"));
}
