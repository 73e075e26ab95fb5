//! From a probe to a device file that simulates, and errors for JSON that no probe would print.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::support::{call_in, json, refusal, stdout};

/// The probes' folder.
fn probes() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("probes")
}

/// A probe in C, compiled and run in `folder`; `None`, with a message, without a compiler or such a processor.
fn probed(folder: &Path, source: &str, link: &[&str], arguments: &[&str]) -> Option<Value> {
    if Command::new("cc").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        eprintln!("skipped: there is no cc to compile {source} with");
        return None;
    }
    let program = folder.join("probe");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror"]).arg(probes().join(source)).arg("-o").arg(&program).args(link);
    let compiled = compiler.output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(&program).args(arguments).current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    if ran.status.code() == Some(3) {
        eprintln!("skipped: {said}");
        return None;
    }
    assert!(ran.status.success(), "{said}");
    Some(serde_json::from_slice(&ran.stdout).unwrap())
}

/// The output of `calibrate probe` for `probe`, and the folder that it wrote to.
fn calibrated(probe: &Value, more: &[&str]) -> (TempDir, std::process::Output) {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("probe.json"), format!("{probe:#}")).unwrap();
    let arguments = ["calibrate", "probe", "probe.json", "--as", "my-phone", "--format", "json"];
    let output = call_in(folder.path(), &[&arguments[..], more].concat());
    (folder, output)
}

/// Checks that `my-phone.toml` in `folder` simulates on `processor`, and returns the constants that were measured.
fn simulated(folder: &Path, more: &[&str]) -> Vec<String> {
    let arguments = ["simulate", "--device", "my-phone.toml", "--model", "lenet5", "--batch", "8", "--format", "json"];
    let run = json(&call_in(folder, &[&arguments[..], more].concat()));
    assert!(run["iteration_time_s"].as_f64().unwrap() > 0.0);
    let nameless = refusal(&call_in(folder, &["simulate", "--device", "my-phone", "--model", "lenet5"]), 2);
    assert!(nameless.contains("unknown device `my-phone` (did you mean `my-phone.toml`?)"), "{nameless}");
    let shown = stdout(&call_in(folder, &["show", "device", "my-phone.toml"]));
    assert!(shown.contains("measured") && shown.contains("estimated"), "{shown}");
    let text = fs::read_to_string(folder.join("my-phone.toml")).unwrap();
    let lines = text.lines().filter(|line| line.contains("kind = \"measured\""));
    lines.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn the_cpu_probe_becomes_a_device_that_simulates() {
    let folder = tempdir().unwrap();
    let flags = ["-lpthread", "-lm"];
    let Some(probe) = probed(folder.path(), "probe.c", &flags, &["--quick", "--folder", ".", "--file-mb", "4"]) else {
        return;
    };
    // The temporary file of the flash measurement is gone.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let (out, output) = calibrated(&probe, &["--base", "galaxy-s22"]);
    let said = json(&output);
    assert!(said["measured"].as_u64().unwrap() >= 8 && said["estimated"].as_u64().unwrap() > 20, "{said}");
    let measured = simulated(out.path(), &["--stack", "pytorch-cpu", "--cores", "big:1"]);
    for key in ["fp32_rate", "l1_rate", "dram_bandwidth", "peak"] {
        assert!(measured.contains(&key.to_owned()), "{key} of {measured:?}");
    }
    // A constant that a probe does not measure is not marked as measured, however well it is known for the base.
    assert!(["power", "coremark", "trip", "energy"].iter().all(|key| !measured.contains(&(*key).to_owned())));
    // The command may overwrite a file that it wrote.
    let again = ["calibrate", "probe", "probe.json", "--as", "my-phone.toml", "--base", "galaxy-s22"];
    assert!(call_in(out.path(), &again).status.success());
    fs::write(out.path().join("my-phone.toml"), "name = \"mine\"\n").unwrap();
    let message = refusal(&call_in(out.path(), &again), 2);
    assert!(message.contains("my-phone.toml") && message.contains("--overwrite"), "{message}");
}

#[test]
fn the_opencl_probe_becomes_a_gpu_that_simulates() {
    let folder = tempdir().unwrap();
    let Some(probe) = probed(folder.path(), "probe_opencl.c", &["-ldl"], &["--quick"]) else { return };
    let (out, output) = calibrated(&probe, &["--base", "galaxy-s22"]);
    json(&output);
    let measured = simulated(out.path(), &["--stack", "sage-opencl"]);
    assert!(measured.contains(&"launch".to_owned()) && measured.contains(&"fp32_rate".to_owned()), "{measured:?}");
    // A base without a GPU has no values for what a probe cannot measure.
    let message = refusal(&calibrated(&probe, &["--base", "server-core"]).1, 2);
    assert!(message.contains("--base server-core has no [gpu]"), "{message}");
}

/// A valid probe of a GPU.
fn gpu() -> Value {
    json!({
        "format": "haversack-probe-1", "probe": "opencl", "quick": true,
        "gpu": {
            "name": "Adreno 730", "vendor": "QUALCOMM", "driver": "1", "version": "OpenCL 3.0", "type": "gpu", "units": 4,
            "clock_hz": 818e6, "shared_bytes": 32768, "l2_bytes": 131_072, "memory_bytes": 4e9, "launch_s": 2e-5,
            "round_trip_s": 1e-4,
            "bandwidth": [
                {"working_set_bytes": 32768, "read_bytes_per_s": 2e11, "copy_bytes_per_s": 1e11},
                {"working_set_bytes": 8_388_608, "read_bytes_per_s": 4e10, "copy_bytes_per_s": 3e10},
            ],
            "fp32_peak_flops_per_s": 1.6e12, "fp32_gemm_flops_per_s": 6e11, "fp32_convolution_flops_per_s": 4e11,
            "barrier_s": 1e-7, "atomic_interval_s": null, "atomic_latency_s": 1e-7,
        },
        "reasons": {"gpu.atomic_interval_s": "too fast"},
    })
}

#[test]
fn what_was_not_measured_stays_the_bases_and_says_why() {
    let (out, output) = calibrated(&gpu(), &["--base", "galaxy-s22"]);
    let said = json(&output);
    assert!(said["notes"].to_string().contains("gpu.atomic_interval stays the base's: too fast"), "{said}");
    let text = fs::read_to_string(out.path().join("my-phone.toml")).unwrap();
    let line = |key: &str| text.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(line("atomic_interval").contains("kind = \"estimated\", source = \"galaxy-s22\""), "{text}");
    // 2e-5 s are 20 us; 1.6e12 over 4 units at 818 MHz are 489 FLOP a cycle.
    assert!(line("launch = ").contains("value = 20,") || line("launch = ").contains("value = 20.0,"), "{text}");
    assert!(line("fp32_rate = { value = 489").contains("kind = \"measured\""), "{text}");
    assert!(line("vendor").contains("qualcomm"), "{text}");
}

/// A valid probe of one core of the CPU.
fn cpu(clock: f64, highest: Option<f64>) -> Value {
    json!({
        "format": "haversack-probe-1", "probe": "cpu", "quick": true,
        "machine": {"system": "Linux", "release": "6", "architecture": "aarch64", "kernels": "neon", "memory_bytes": 8e9},
        "clusters": [{
            "first_core": 0, "cores": 4, "frequency_hz": highest, "frequency_lowest_hz": null,
            "frequency_measured_hz": clock, "l1_bytes": 32768, "l2_bytes": 524_288, "l3_bytes": null, "vector_bytes": 16,
            "fp32_peak_flops_per_s": 1e10, "fp32_gemm_flops_per_s": 8e9, "fp32_convolution_flops_per_s": 6e9,
            "int8_kernel": "widening", "int8_gemm_ops_per_s": 1e10,
            "bandwidth": [
                {"working_set_bytes": 16384, "read_bytes_per_s": 2e10, "write_bytes_per_s": 2e10, "copy_bytes_per_s": 2e10},
                {"working_set_bytes": 134_217_728, "read_bytes_per_s": 5e9, "write_bytes_per_s": 5e9, "copy_bytes_per_s": 5e9},
            ],
        }],
        "all_cores": {
            "threads": 4, "read_bytes_per_s": 1e10, "copy_bytes_per_s": 1e10, "fp32_gemm_flops_per_s": 3e10,
            "int8_gemm_ops_per_s": 3e10, "barrier_s": 1e-6, "atomic_s": 1e-8, "thread_start_s": 1e-5,
        },
        "storage": {
            "past_page_cache": true, "file_bytes": null, "sequential_write_bytes_per_s": null,
            "sequential_read_bytes_per_s": null, "random_read_bytes_per_s": null, "latency_read_s": null,
            "random_write_bytes_per_s": null, "latency_write_s": null,
        },
        "zram": {"algorithm": null, "size_bytes": null, "ratio": null, "write_page_s": null, "read_page_s": null},
        "reasons": {},
    })
}

#[test]
fn cores_that_were_busy_while_they_were_probed_are_told() {
    let told = |clock, highest| {
        let (_, output) = calibrated(&cpu(clock, highest), &["--base", "galaxy-s22"]);
        json(&output)["notes"].to_string()
    };
    let slow = told(9e8, Some(2.8e9));
    assert!(slow.contains("the cores from 0 ran at 900 MHz of the kernel's 2800 MHz: if other programs ran"), "{slow}");
    assert!(told(6.9e7, None).contains("the cores from 0 ran at 69 MHz: if"));
    assert!(!told(2.7e9, Some(2.8e9)).contains("ran at"));
}

#[test]
fn wrong_numbers_of_a_probe_are_named_with_file_line_and_field() {
    let mistakes: [(&str, Value, &[&str]); 8] = [
        // 25 microseconds, as a person would write them.
        ("/gpu/launch_s", json!(25), &["`gpu.launch_s`: 25 is absurd", "1e-9 to 1e0", "microseconds?"]),
        ("/gpu/clock_hz", json!(818), &["`gpu.clock_hz`: 818 is absurd", "megahertz?"]),
        ("/gpu/units", json!(-4), &["`gpu.units`: -4 is absurd", "1e0 to 1.024e3"]),
        (
            "/gpu/bandwidth/1/copy_bytes_per_s",
            json!("fast"),
            &["`gpu.bandwidth.1.copy_bytes_per_s`: expected a number", "\"fast\""],
        ),
        ("/gpu/bandwidth", json!([]), &["`gpu.bandwidth`: expected a list of tables, at least one"]),
        ("/gpu/fp32_peak_flops_per_s", Value::Null, &["`gpu.fp32_peak_flops_per_s`: expected a number", "found null"]),
        ("/format", json!("haversack-probe-9"), &["`format`: unknown format", "\"haversack-probe-1\""]),
        ("/probe", json!("opencll"), &["`probe`: unknown probe", "did you mean `opencl`?"]),
    ];
    for (place, value, words) in mistakes {
        let mut probe = gpu();
        *probe.pointer_mut(place).unwrap() = value;
        let message = refusal(&calibrated(&probe, &[]).1, 2);
        assert!(message.contains("probe.json:") && words.iter().all(|word| message.contains(word)), "{message}");
    }
    let mut probe = gpu();
    let table = probe["gpu"].as_object_mut().unwrap();
    let rate = table.remove("fp32_gemm_flops_per_s").unwrap();
    table.insert("fp32_gemm_flop_per_s".to_owned(), rate);
    let message = refusal(&calibrated(&probe, &[]).1, 2);
    assert!(message.contains("unknown key (did you mean `fp32_gemm_flops_per_s`?)"), "{message}");
    assert!(message.contains("`gpu.fp32_gemm_flops_per_s`: missing"), "{message}");
    // The table `gpu` begins on line 5, behind the bracket, the format, the probe and its length.
    assert!(message.contains("probe.json:5: `gpu.fp32_gemm_flops_per_s`"), "{message}");
}

#[test]
fn files_and_names_that_are_wrong_are_refused() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("g.json"), gpu().to_string()).unwrap();
    fs::write(folder.path().join("cut.json"), &gpu().to_string()[..100]).unwrap();
    let mistakes = [
        ("probe no.json --as x", "no.json"),
        ("probe cut.json --as x", "cut.json:1: no JSON"),
        ("probe g.json g.json --as x", "of the same processor"),
        ("probe g.json --as galaxy-s22", "a built-in device has that name"),
        ("probe g.json --as a/b", "letters, digits"),
        ("probe g.json --as x --base galaxy-s23", "galaxy-s23"),
        ("probe g.json --as x --out x.json", ".toml"),
        ("probe g.json", "--as"),
        ("fit server-core --as x", "--as"),
    ];
    for (line, word) in mistakes {
        let arguments: Vec<&str> = ["calibrate"].into_iter().chain(line.split(' ')).collect();
        let message = refusal(&call_in(folder.path(), &arguments), 2);
        assert!(message.contains(word), "{line}: {message}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}
