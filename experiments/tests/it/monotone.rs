//! More of a machine never makes a step longer, and no step draws less power than the idle machine.

use haversack_devices::{list, load};
use serde_json::Value;

use crate::support::{call, json};

/// Suffixes of the names of a machine's resources: units, clocks, rates, bandwidths, caches, memory, flash.
const MORE: [&str; 23] = [
    "ram",
    ".units",
    ".clock",
    ".fp32_rate",
    ".fp16_rate",
    ".int8_rate",
    ".int8_widening_rate",
    ".fp16_tensor_rate",
    ".pipes",
    ".l1",
    ".l2",
    ".l3",
    ".l3_ports",
    ".l1_rate",
    ".l2_rate",
    ".l3_rate",
    ".dram_bandwidth",
    ".l2_bandwidth",
    "dram.peak",
    "dram.achievable",
    ".frequency",
    ".sequential_read",
    ".sequential_write",
];

/// A sum that is split over more units needs one more kernel to finish, which a host that is the
/// bottleneck has to launch.
const ROOM: f64 = 1.01;

#[test]
fn more_of_anything_makes_no_step_longer() {
    let mut slower = Vec::new();
    for device in list().unwrap() {
        let line = format!("sensitivity --device {} --model mobilenetv2 --batch 8 --by 50% --format json", device.id);
        let answer = json(&call(&line));
        let time = |results: &Value| results["iteration_time_s"].as_f64().unwrap();
        let base = time(&answer["base"]);
        for moved in answer["constants"].as_array().unwrap() {
            let key = moved["key"].as_str().unwrap();
            let is_of_device = moved["file"].as_str().unwrap().contains(device.id);
            let of_more = is_of_device && MORE.iter().any(|ending| key.ends_with(ending));
            let [down, up] = ["down", "up"].map(|side| &moved[side]["results"]);
            // A share beyond one is invalid; more of a GPU is always valid.
            let can_be = !key.starts_with("gpu.") || up.is_object();
            assert!(!of_more || can_be, "{} {key}: {moved}", device.id);
            for results in [down, up].into_iter().filter(|results| results.is_object()) {
                assert!(results["energy_j"].as_f64() >= Some(0.0), "{} {key}: {results}", device.id);
            }
            let is_slower =
                (up.is_object() && time(up) > base * ROOM) || (down.is_object() && time(down) * ROOM < base);
            if of_more && is_slower {
                slower.push(format!("{} {key}: {down} {base} {up}", device.id));
            }
        }
    }
    assert!(slower.is_empty(), "{slower:#?}");
}

#[test]
fn a_gpu_of_twice_the_units_or_clock_is_faster() {
    for id in ["rtx-3090", "jetson-agx-xavier", "galaxy-s22"] {
        let gpu = load(id).unwrap().constants.gpu.unwrap();
        let time = |set: &str| {
            let line = format!("simulate --device {id} --model resnet50 --batch 32 --ignore-ram --format json{set}");
            json(&call(&line))["iteration_time_s"].as_f64().unwrap()
        };
        let base = time("");
        let units = time(&format!(" --device-set gpu.units={}", 2.0 * gpu.units.value.0));
        let clock = time(&format!(" --device-set gpu.clock={}MHz", 2e-6 * gpu.clock.value.0));
        assert!(units < 0.85 * base && clock < 0.85 * base, "{id}: {base} s, {units} s, {clock} s");
    }
}
