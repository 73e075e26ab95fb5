//! The calibrations that ship: all load, peaks follow from their parts, constants can be listed and overridden.

use std::collections::BTreeMap;

use crate::common;
use haversack_devices::units::{Bytes, FlopsPerSecond, Fraction, Hertz, Joules, Nanos, Watts};
use haversack_devices::{
    ClusterClass, CoreSelection, Frequency, Kind, OperatorKind, Precision, fitted_constants, list, list_stacks,
    list_systems, load, load_stack, load_system, stacks_that_fit,
};

const DEVICES: [&str; 25] = [
    "galaxy-note20",
    "galaxy-s10",
    "galaxy-s22",
    "galaxy-s23-ultra",
    "honor-v30-pro",
    "infinite-cores",
    "iqoo-neo3",
    "jetson-agx-orin",
    "jetson-agx-orin-64gb",
    "jetson-agx-xavier",
    "jetson-orin-nano",
    "oneplus-10-pro",
    "pixel-6",
    "realme-gt-neo2",
    "redmagic-7",
    "redmi-note10",
    "redmi-note9-pro",
    "rtx-3090",
    "rtx-4090",
    "server-core",
    "single-core",
    "snapdragon-765g",
    "snapdragon-855-plus",
    "xiaomi-10",
    "xiaomi-11-pro",
];

#[test]
fn every_shipped_calibration_loads_and_names_a_stack_that_fits_it() {
    let listed: Vec<&str> = list().unwrap().iter().map(|listing| listing.id).collect();
    for id in DEVICES {
        assert!(listed.contains(&id), "{id} is not listed");
    }
    for id in listed {
        let device = load(id).unwrap();
        let stack = load_stack(&device.constants.default_stack).unwrap();
        assert!(stack.runs_on(&device), "{id} under {}", stack.id);
        assert!(stacks_that_fit(&device).contains(&stack.id.as_str()), "{id}");
        let gpu = device.constants.gpu.as_ref();
        assert!(gpu.is_none_or(|gpu| gpu.vendor.is_some()), "nobody made the GPU of {id}");
        assert_eq!(device.cpu().is_some(), device.constants.instruction_set.is_some(), "{id}");
        assert_eq!(device.digest.len(), 16);
        assert!(device.constants.form.is_some(), "{id} belongs to no group of devices");
    }
    let stacks: Vec<&str> = list_stacks().unwrap().iter().map(|listing| listing.id).collect();
    for id in ["mandheling", "mnn", "ncnn", "pytorch-cpu", "pytorch-cuda", "sage-opencl", "tflite"] {
        assert!(stacks.contains(&id), "{id} is not listed");
    }
    let systems: Vec<&str> = list_systems().unwrap().iter().map(|listing| listing.id).collect();
    for id in ["android", "android-mglru", "android-testbed"] {
        assert!(systems.contains(&id), "{id} is not listed");
    }
}

#[test]
fn every_source_is_explained() {
    let readme = include_str!("../../calibrations/README.md");
    let devices = list().unwrap().into_iter().map(|listing| load(listing.id).unwrap().entries());
    let stacks = list_stacks().unwrap().into_iter().map(|listing| load_stack(listing.id).unwrap().entries());
    let mut checked = 0;
    let systems = list_systems().unwrap().into_iter().map(|listing| load_system(listing.id).unwrap().entries());
    for entry in devices.chain(stacks).chain(systems).flatten() {
        assert!(readme.contains(&format!("`{}`", entry.source)), "{} of {}: {}", entry.name, entry.file, entry.source);
        checked += 1;
    }
    assert!(checked > 1000, "{checked}");
}

#[test]
fn gpu_peaks_are_those_of_the_data_sheets() {
    // GFLOP/s of the general units in FP32 and in FP16, and of the tensor cores in FP16; 0 means unknown.
    for (id, fp32, fp16, tensor) in [
        ("rtx-3090", 35_580.0, 35_580.0, 142_000.0),
        ("rtx-4090", 82_580.0, 82_580.0, 330_300.0),
        ("jetson-agx-xavier", 1410.0, 2820.0, 0.0),
        ("jetson-tx2", 666.0, 1332.0, 0.0),
        ("jetson-agx-orin-64gb", 5300.0, 0.0, 42_500.0),
        ("galaxy-s10", 404.0, 808.0, 0.0),
        ("pixel-6", 1085.0, 0.0, 0.0),
    ] {
        let gpu = load(id).unwrap().constants.gpu.unwrap();
        let [general, half] = [Precision::Fp32, Precision::Fp16].map(|format| gpu.general_peak(format).0 * 1e-9);
        let tensors = gpu.tensor_peak(Precision::Fp16).map_or(0.0, |peak| peak.0 * 1e-9);
        for (ours, sheet) in [(general, fp32), (half, fp16), (tensors, tensor)] {
            assert!(sheet == 0.0 || (ours / sheet - 1.0).abs() < 0.01, "{id}: {ours} for {sheet}");
        }
    }
}

#[test]
fn a_boards_system_holds_part_of_the_memory_that_its_processors_share() {
    for (id, gib) in [("jetson-agx-xavier", 16), ("jetson-agx-orin", 32)] {
        let device = load(id).unwrap();
        let system = device.constants.system_memory.as_ref().unwrap().value;
        // 1.3 GiB.
        assert_eq!(system.0, (1.3 * f64::from(1 << 30)) as u64, "{id}");
        assert_eq!(device.available().0, (gib << 30) - system.0, "{id}");
    }
    // A card's is its own.
    let card = load("rtx-3090").unwrap();
    assert_eq!(card.available(), card.ram());
    let mut device = load("jetson-agx-orin").unwrap();
    let message = device.set("system_memory", 40.0).unwrap_err().to_string();
    assert!(message.contains("system_memory, 40960 MiB, leaves nothing of the 32768 MiB of ram"), "{message}");
}

#[test]
fn cpu_peaks_are_those_of_the_specifications() {
    // GFLOP/s summed over clusters, e.g. Snapdragon 888: 2.84 × 32 + 3 × 2.42 × 16 + 4 × 1.8 × 8 = 264.6.
    for (id, gflops) in [
        ("jetson-agx-xavier", 289.3),
        ("jetson-agx-orin", 281.6),
        ("jetson-agx-orin-64gb", 422.4),
        ("jetson-orin-nano", 144.0),
        ("snapdragon-855-plus", 220.6),
        ("snapdragon-765g", 160.4),
        ("iqoo-neo3", 219.2),
        ("realme-gt-neo2", 224.8),
        ("xiaomi-11-pro", 264.7),
        ("galaxy-s22", 273.6),
        ("galaxy-s23-ultra", 334.7),
        ("redmi-note9-pro", 157.1),
        ("redmi-note10", 152.5),
        ("galaxy-s10", 230.4),
        ("honor-v30-pro", 229.4),
        ("pixel-6", 308.8),
        ("server-core", 256.0),
    ] {
        let cpu = load(id).unwrap().cpu().unwrap();
        let cores = cpu.choose("all".parse().unwrap(), Frequency::Highest).unwrap();
        let FlopsPerSecond(peak) = cores.peak(Precision::Fp32);
        assert!((peak / 1e9 / gflops - 1.0).abs() < 0.02, "{id}: {peak}");
    }
}

#[test]
fn cores_of_one_type_have_one_rate_a_precision() {
    let mut seen = BTreeMap::new();
    for id in DEVICES {
        for cluster in load(id).unwrap().constants.cpu {
            // `Cortex-A77 prime` and `Cortex-A76 (Kryo 460 Gold)` are a Cortex-A77 and a Cortex-A76.
            let core = if cluster.core.starts_with("Cortex-") { cluster.core.split(' ').next() } else { None };
            let core = core.unwrap_or(&cluster.core).to_owned();
            let widening = cluster.int8_widening_rate.map(|rate| rate.value);
            let rates = [cluster.fp32_rate, cluster.fp16_rate, cluster.int8_rate].map(|rate| rate.value);
            let (first, of) = seen.entry(core.clone()).or_insert((id, (rates, widening)));
            assert_eq!(*of, (rates, widening), "{core} of {id} and of {first}");
        }
    }
    assert!(seen.len() > 10, "{}", seen.len());
}

#[test]
fn ends_of_every_cluster_are_operating_points_of_its_curve() {
    for id in DEVICES {
        let constants = load(id).unwrap().constants;
        for curve in &constants.dvfs {
            let cluster = constants.cpu.iter().find(|cluster| cluster.core == curve.core).unwrap();
            let is_point = |end: Hertz| curve.frequency.values.iter().any(|point| (point.0 / end.0 - 1.0).abs() < 5e-4);
            assert!(is_point(cluster.frequency_lowest.value), "{id}: {}", curve.core);
            // A curve of a neighbouring chip may end before.
            let borrowed = curve.frequency.kind == Kind::Estimated;
            assert!(borrowed || is_point(cluster.frequency.value), "{id}: {}", curve.core);
        }
    }
}

#[test]
fn copies_of_a_fitted_constant_move_with_it() {
    let base = load("xiaomi-11-pro").unwrap().constants;
    let mut copies = 0;
    for id in DEVICES.into_iter().filter(|id| *id != "xiaomi-11-pro") {
        let constants = load(id).unwrap().constants;
        for cluster in constants.cpu.iter().filter(|cluster| cluster.frequency_lowest.source == "mandheling-table7") {
            let same = base.cpu.iter().find(|of_base| of_base.class == cluster.class).unwrap();
            let fitted = same.frequency_lowest.value;
            // The nearest operating point, where these are known.
            let curve = constants.dvfs.iter().find(|curve| curve.core == cluster.core);
            let apart = |point: &Hertz| (point.0 - fitted.0).abs();
            let points = curve.into_iter().flat_map(|curve| curve.frequency.values.iter().copied());
            let nearest = points.min_by(|a, b| apart(a).total_cmp(&apart(b))).unwrap_or(fitted);
            assert_eq!(cluster.frequency_lowest.value, nearest, "{id}: {}", cluster.core);
            copies += 1;
        }
        let widening =
            constants.cpu.iter().filter_map(|cluster| Some((cluster.class, cluster.int8_widening_rate.clone()?)));
        for (class, rate) in widening.filter(|(_, rate)| rate.source == "mandheling-table7") {
            // Larger cores are as the middle ones.
            let class = class.max(ClusterClass::Middle);
            let same = base.cpu.iter().find(|of_base| of_base.class == class).unwrap();
            assert_eq!(Some(rate.value), same.int8_widening_rate.as_ref().map(|rate| rate.value), "{id}");
            copies += 1;
        }
        let (power, of_base) = (&constants.power, &base.power);
        let awake = power.awake.clone().filter(|awake| awake.source == "mandheling-table7");
        if let Some(awake) = awake {
            assert_eq!(awake.value, of_base.awake.clone().unwrap().value, "{id}");
        }
        if power.vector_factor.source == "mandheling-table7" {
            assert_eq!(power.vector_factor.value, of_base.vector_factor.value, "{id}");
        }
    }
    assert!(copies > 40, "{copies}");
    let products = |id: &str| {
        let efficiency = load_stack(id).unwrap().constants.cpu.unwrap().efficiency;
        [efficiency.of(OperatorKind::Convolution), efficiency.of(OperatorKind::Gemm)]
    };
    for id in ["mnn", "tflite"] {
        assert_eq!(products(id), [products("ncnn")[0]; 2], "{id}");
    }
}

#[test]
fn the_highest_frequency_can_be_fixed_and_the_lowest_draws_less() {
    for id in DEVICES {
        let device = load(id).unwrap();
        let Some(cpu) = device.cpu() else { continue };
        let choose = |frequency| cpu.choose(CoreSelection::All, frequency).unwrap();
        let highest = choose(Frequency::Highest);
        let fixed = choose(Frequency::Fixed(highest.cores()[0].frequency));
        assert_eq!(fixed.peak(Precision::Fp32), highest.peak(Precision::Fp32), "{id}");
        let lowest = choose(Frequency::Lowest);
        for (low, high) in lowest.cores().iter().zip(highest.cores()) {
            assert!(low.frequency.0 <= high.frequency.0 && low.power.0 <= high.power.0, "{id}: {low:?}");
        }
        // A governor that wants nothing leaves every cluster at its floor.
        assert_eq!(highest.following(Fraction(0.0)).peak(Precision::Fp32), lowest.peak(Precision::Fp32), "{id}");
    }
}

#[test]
fn units_are_converted_on_load() {
    let device = common::device();
    let constants = &device.constants;
    let gpu = constants.gpu.as_ref().unwrap();
    // 4 GiB = 4 × 2^30 B; 10 us; 500 MHz; 1000 mW; 32 KiB; 2 units × 800 FLOP × 1 GHz; 100 pJ over 1 GB = 0.1 J.
    assert_eq!(device.ram(), Bytes(4_294_967_296));
    assert_eq!(gpu.launch.value, Nanos(10_000));
    assert_eq!(constants.cpu[1].frequency_lowest.value, Hertz(500e6));
    assert_eq!(constants.cpu[0].power.value, Watts(1.0));
    assert_eq!(constants.cpu[0].l1.value, Bytes(32_768));
    assert_eq!(gpu.tensor_peak(Precision::Fp16).unwrap(), FlopsPerSecond(1.6e12));
    let Joules(moved) = constants.dram.energy.value * Bytes(1_000_000_000);
    assert!((moved - 0.1).abs() < 1e-12);
    // 50 % is 0.5; a battery of 13.16 Wh is 13.16 × 3600 = 47,376 J.
    assert_eq!(common::stack().gpu().unwrap().efficiency.of(OperatorKind::Convolution).0, 0.5);
    let battery = load("galaxy-s10").unwrap().constants.battery.unwrap();
    assert!((battery.value.0 - 47_376.0).abs() < 1e-6);
}

#[test]
fn constants_are_overridden_in_the_unit_of_the_file() {
    let mut device = common::device();
    // An ending will do where only one constant has it; the models are built from the new value.
    device.set("gpu.launch", 20.0).unwrap();
    assert_eq!(device.constants.gpu.as_ref().unwrap().launch.value, Nanos(20_000));
    device.set("cpu.1.cores", 3.0).unwrap();
    let cpu = device.cpu().unwrap();
    assert_eq!(cpu.choose("little:3".parse().unwrap(), Frequency::Highest).unwrap().cores().len(), 3);
    assert!(device.set("rest_of_soc", 3.0).is_ok());

    let mut sage = load_stack("sage-opencl").unwrap();
    sage.set("efficiency.convolution", 0.12).unwrap();
    assert_eq!(sage.gpu().unwrap().efficiency.of(OperatorKind::Convolution).0, 0.12);

    let mut stack = common::stack();
    let message = stack.set("efficiency.convolution", 0.2).unwrap_err().to_string();
    assert!(message.contains("gpu.efficiency.convolution, cpu.efficiency.convolution"), "{message}");
    let message = stack.set("gpu.efficiency.convolutoin", 0.2).unwrap_err().to_string();
    assert!(message.contains("did you mean `gpu.efficiency.convolution`"), "{message}");
    // This efficiency is written in per cent: 1.2 is 0.012, and 120 too much.
    stack.set("gpu.efficiency.convolution", 1.2).unwrap();
    assert!((stack.gpu().unwrap().efficiency.convolution.value.0 - 0.012).abs() < 1e-12);
    let message = stack.set("gpu.efficiency.convolution", 120.0).unwrap_err().to_string();
    assert!(message.contains("120 is out of range") && message.contains("0 to 100"), "{message}");
    let message = stack.set("gpu.efficiency.reduction", 1.2).unwrap_err().to_string();
    assert!(message.contains("1.2 is out of range") && message.contains("0 to 1"), "{message}");

    // Nought would make time infinite; the old value stays.
    let message = stack.set("gpu.efficiency.gemm", 0.0).unwrap_err().to_string();
    assert!(message.starts_with("stack.toml: `gpu`: the efficiency of gemm is zero"), "{message}");
    assert_eq!(stack.gpu().unwrap().efficiency.gemm.value.0, 0.5);
    assert!(device.set("dram.peak", 0.0).is_err());
    assert!(device.set("cpu.0.cores", 1e18).is_err());
    assert_eq!(device.constants.cpu[0].cores.value.0, 2.0);
}

#[test]
fn fitted_constants_are_listed_with_name_value_unit_and_file() {
    let text = common::device_text();
    let old = "launch = { value = 10, unit = \"us\", kind = \"estimated\"";
    let text = text.replacen(old, "launch = { value = 10, unit = \"us\", kind = \"fitted\"", 1);
    let device = haversack_devices::Device::parse("round", "round.toml", &text).unwrap();
    let fitted = fitted_constants(&device, &common::stack());
    assert_eq!(fitted.len(), 1);
    let launch = &fitted[0];
    assert_eq!((launch.name.as_str(), launch.unit, launch.file.as_str()), ("gpu.launch", "us", "round.toml"));
    assert!((launch.value - 10.0).abs() < 1e-9);
}

#[test]
fn a_digest_is_fnv_1a() {
    // The published test vectors of 64-bit FNV-1a.
    assert_eq!(haversack_devices::registry::digest(""), "cbf29ce484222325");
    assert_eq!(haversack_devices::registry::digest("a"), "af63dc4c8601ec8c");
    assert_eq!(haversack_devices::registry::digest("foobar"), "85944171f73967e8");
}
