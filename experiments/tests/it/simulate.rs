//! `haversack simulate`, from outside.

use std::fs;
use std::process::{Output, Stdio};

use crate::support::{call, call_in, command, draws, json, keys, refusal, stderr, stdout};
use serde_json::Value;
use tempfile::tempdir;

const PHONE: &str = "simulate --device galaxy-s10 --model mobilenetv2 --batch 8 --policy";

fn sage(flags: &str) -> Value {
    json(&call(&format!("{PHONE} sage --format json{flags}")))
}

#[test]
fn json_has_the_keys_that_scripts_rely_on() {
    let found = sage("");
    let figures = [
        "iteration_time_s",
        "forward_s",
        "backward_s",
        "update_s",
        "samples_per_s",
        "peak_memory_bytes",
        "peak_growth_bytes",
        "reserved_bytes",
        "exceeds_ram",
        "saved_peak_bytes",
        "staging_bytes",
        "fragmentation_bytes",
        "mean_iteration_s",
        "iteration_spread",
        "iterations_s",
        "trace_held_s",
        "trace_assumed_share",
        "uninterruptible_s",
        "runnable_s",
        "system_used_bytes",
        "evicted_bytes",
        "flash_read_bytes",
        "flash_written_bytes",
        "kills",
        "apps_killed",
        "energy_j",
        "mean_power_w",
        "process_bytes",
        "busy_cores",
        "kernel_share",
        "minor_faults",
        "recompute_share",
        "fidelity",
        "gradients_given_up",
        "least_bits",
        "batch_statistics",
        "lower_bound_s",
        "optimality_gap",
        "micro_batches",
        "breakdown",
        "bound_by",
        "status",
        "scenario",
        "longest",
    ];
    assert_eq!(keys(&found), figures);
    let scenario = &found["scenario"];
    assert_eq!((&scenario["stack"], &scenario["graph"]), (&"sage-opencl".into(), &"sr".into()));
    assert_eq!((&scenario["input"], &scenario["allocator"]), (&"3x224x224".into(), &"exact".into()));
}

#[test]
fn the_breakdown_sums_to_the_iteration() {
    for flags in ["", " --memory-budget 30%", " --memory-budget 30% --iterations 3"] {
        let found = sage(flags);
        let parts = found["breakdown"].as_object().unwrap().values().map(|part| part.as_f64().unwrap());
        let (sum, whole) = (parts.sum::<f64>(), found["iteration_time_s"].as_f64().unwrap());
        assert!((sum - whole).abs() < 1e-9, "{flags}: {sum} against {whole}");
        let phases: f64 =
            ["forward_s", "backward_s", "update_s"].map(|phase| found[phase].as_f64().unwrap()).iter().sum();
        assert!((phases - whole).abs() < 1e-9, "{flags}: {phases} against {whole}");
        // Samples a second are the batch over the iteration.
        assert!((found["samples_per_s"].as_f64().unwrap() * whole - 8.0).abs() < 1e-9);
        let samples: u64 = found["micro_batches"].as_array().unwrap().iter().map(|part| part.as_u64().unwrap()).sum();
        assert_eq!(samples, 8);
    }
}

#[test]
fn the_whole_of_what_original_needs_is_enough_and_less_is_not() {
    let whole = json(&call(&format!("{PHONE} original --memory-budget 100% --format json")));
    assert_eq!(whole["scenario"]["memory_budget_bytes"], whole["reserved_bytes"]);
    let message = refusal(&call(&format!("{PHONE} original --memory-budget 99%")), 3);
    // The least budget is the memory that original reserves; the program prints it in a form that it can parse.
    let bytes = whole["reserved_bytes"].as_u64().unwrap();
    let least = haversack::scenario::size_text(haversack_devices::units::Bytes(bytes));
    assert!(message.contains("the least memory budget that works is") && message.contains(&least), "{message}");
    // Original keeps all saved tensors, so any smaller budget fails.
    json(&call(&format!("{PHONE} original --activation-budget 100% --format json")));
    let message = refusal(&call(&format!("{PHONE} original --activation-budget 90%")), 3);
    assert!(message.contains("the least activation budget that works is"), "{message}");
}

#[test]
fn a_percentage_is_of_the_own_stack_and_format_unless_it_is_to_be_of_the_same_bytes_for_every_policy() {
    let own = |flags: &str| {
        let line = "simulate --device galaxy-s10 --model lenet5 --batch 8 --format json --memory-budget 300%";
        json(&call(&format!("{line} {flags}")))["scenario"].clone()
    };
    let scenario = |flags: &str| own(&format!("{flags} --budget-reference stack-default"));
    let device = scenario("--policy original");
    let reference = device["reference_bytes"].as_u64().unwrap();
    // Three times as much; the whole need has no other reference.
    assert_eq!(device["memory_budget_bytes"].as_u64(), Some(3 * reference));
    let words = (&device["activation_reference_bytes"], &device["budget_reference"]);
    assert_eq!(words, (&Value::Null, &Value::from("stack-default")));
    for other in ["--policy mnn-fp32", "--policy sage --precision fp16", "--policy daf --stack pytorch-cpu"] {
        assert_eq!(scenario(other)["reference_bytes"].as_u64(), Some(reference), "{other}");
    }
    // With half precision the need is smaller, and on MNN's own stack it differs.
    let halves = own("--policy sage --precision fp16");
    assert_eq!(halves.get("budget_reference"), None);
    assert!(halves["reference_bytes"].as_u64() < Some(reference));
    assert_ne!(own("--policy mnn-fp32")["reference_bytes"].as_u64(), Some(reference));
    // The reference may exceed the memory that a GPU addresses, half of the Xiaomi's 8 GiB.
    let line = "simulate --device xiaomi-11-pro --model resnet50 --batch 64 --policy sage --memory-budget 60%";
    let large = json(&call(&format!("{line} --format json")))["scenario"].clone();
    assert!(large["reference_bytes"].as_u64() > Some(4 << 30), "{large}");
}

#[test]
fn all_that_original_needs_is_enough_for_it_on_every_stack() {
    let mut run = 0;
    for device in ["xiaomi-10", "galaxy-s22", "jetson-tx2", "rtx-3090", "server-core"] {
        for stack in haversack_devices::list_stacks().unwrap() {
            for model in ["lenet5", "mobilenetv2"] {
                let line = format!("simulate --device {device} --stack {} --model {model} --batch 8", stack.id);
                if !call(&line).status.success() {
                    continue;
                }
                let within = call(&format!("{line} --memory-budget 100% --iterations 3"));
                assert!(within.status.success(), "{line}: {}", stderr(&within));
                run += 1;
            }
        }
    }
    assert!(run > 20, "{run}");
}

#[test]
fn what_is_short_is_what_the_least_budget_has_more() {
    let line = "simulate --device galaxy-s10 --model resnet18-cifar --batch 32 --policy sage --memory-budget 20MB";
    let message = refusal(&call(line), 3);
    let (missing, least) = message.split_once(" short: the least memory budget that works is ").unwrap();
    let number = |text: &str| text.trim().split(' ').next().unwrap().parse::<f64>().unwrap();
    let missing = number(missing.rsplit("it is ").next().unwrap());
    assert!((number(least) - missing - 20.0).abs() < 0.2, "{message}");
}

#[test]
fn a_budget_beside_a_trace_is_the_smaller_of_both_and_said_to_be() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("t.csv"), "time_s,budget_bytes\n0,5MB\n0.001,2MB\n").unwrap();
    let found = |budget: &str| {
        let line = "simulate --device galaxy-s10 --model lenet5 --batch 8 --policy sage --trace t.csv --format json";
        call_in(folder.path(), &format!("{line}{budget}").split(' ').collect::<Vec<_>>())
    };
    let (alone, less, more) = (found(""), found(" --memory-budget 3MB"), found(" --memory-budget 9MB"));
    let budget = |output: &Output| json(output)["scenario"]["memory_budget_bytes"].as_u64();
    assert_eq!((budget(&alone), budget(&less), budget(&more)), (Some(5_000_000), Some(3_000_000), Some(5_000_000)));
    assert_eq!(json(&more)["iteration_time_s"], json(&alone)["iteration_time_s"]);
    assert!(stderr(&less).contains("the smaller of --memory-budget and the budget of the trace"), "{}", stderr(&less));
    assert!(stderr(&alone).is_empty());
}

#[test]
fn a_run_that_is_killed_every_time_is_an_answer_without_figures() {
    let folder = tempdir().unwrap();
    let text = "device = \"galaxy-s22\"\nstack = \"mnn-2\"\ncores = \"big:4\"\nmodel = \"mobilenetv2\"\nbatch = 256\n\
        system = \"android-testbed\"\ntrainer_adj = 900\niterations = 1\n";
    fs::write(folder.path().join("s.toml"), text).unwrap();
    let run = |line: &str| call_in(folder.path(), &line.split(' ').collect::<Vec<_>>());
    let found = json(&run("simulate s.toml --format json"));
    assert_eq!(keys(&found), ["status", "reason", "scenario"]);
    assert_eq!((&found["status"], &found["scenario"]["batch"]), (&"killed".into(), &256.into()));
    let reason = found["reason"].as_str().unwrap();
    assert!(reason.contains("killed by the low-memory killer") && stdout(&run("simulate s.toml")).contains(reason));
    let swept = stdout(&run("sweep s.toml --out o"));
    assert!(swept.starts_with("1 run: 1 killed"), "{swept}");
}

#[test]
fn the_least_budget_that_is_named_works() {
    let message = refusal(&call(&format!("{PHONE} sage --memory-budget 1KB")), 3);
    let least = message.split("--memory-budget ").nth(1).unwrap().split(')').next().unwrap();
    let found = sage(&format!(" --memory-budget {least} --least-memory"));
    assert!(found["peak_memory_bytes"].as_u64() <= found["scenario"]["memory_budget_bytes"].as_u64());
    assert_eq!(found["least_memory_bytes"], found["scenario"]["memory_budget_bytes"]);
}

#[test]
fn the_least_budget_works_as_printed_and_so_does_any_more_but_not_a_hundredth_less() {
    let mut next = draws(1);
    for _ in 0..12 {
        let device = next(&["rtx-3090", "jetson-agx-orin", "galaxy-s10", "meizu-16t"]);
        let model = next(&["lenet5", "squeezenet1-1", "bert-small-s64"]);
        let policy = next(&["sage", "dgc", "dtr", "sgc", "daf", "melon", "capuchin"]);
        let batch = next(&["8", "32"]);
        let line =
            format!("simulate --device {device} --model {model} --policy {policy} --batch {batch} --format json");
        let least = json(&call(&format!("{line} --least-memory")))["least_memory_bytes"].as_u64().unwrap();
        let within = |bytes: u64| call(&format!("{line} --memory-budget {bytes}B"));
        for budget in [least, least.next_multiple_of(1000), least / 20 * 21, least / 10 * 12] {
            let found = within(budget);
            assert!(found.status.success(), "{line}, {least}: {budget}: {}", stderr(&found));
            assert!(json(&found)["reserved_bytes"].as_u64().unwrap() <= budget, "{line}: {budget}");
        }
        assert_eq!(within(least - least.div_ceil(100)).status.code(), Some(3), "{line}: {least}");
    }
}

#[test]
fn a_time_budget_that_is_missed_is_a_failure_with_its_numbers() {
    let missed = call(&format!("{PHONE} sage --time-budget 1ms --format json"));
    let message = refusal(&missed, 3);
    assert!(message.contains("more than the time budget of 1000.0 µs"), "{message}");
    assert!(serde_json::from_str::<Value>(&stdout(&missed)).unwrap()["iteration_time_s"].as_f64().unwrap() > 1e-3);
    assert_eq!(sage(" --time-budget 1000s")["scenario"]["time_budget"], "1000s");
}

#[test]
fn text_is_for_people() {
    let shown = stdout(&call(&format!("{PHONE} sage --memory-budget 30% --explain --least-memory")));
    let words = [
        "samples/s",
        "30% of the ",
        " that original needs (fp32, stack sage-opencl)",
        "micro-batches",
        " J\n",
        "where the time went",
        "#####",
        "at the peak",
        "least memory budget",
        "what bounds it",
        "the operators that take longest",
    ];
    for word in words {
        assert!(shown.contains(word), "no '{word}' in\n{shown}");
    }
    assert!(shown.lines().all(|line| line == line.trim_end()), "trailing spaces");
}

#[test]
fn no_plan_fits_a_network_that_is_larger_than_the_device() {
    let line = "simulate --device galaxy-s10 --model vgg16 --batch 256 --policy original";
    let message = refusal(&call(line), 3);
    assert!(
        message.contains("original cannot train vgg16 at batch 256 within the 8322.5 MB of galaxy-s10"),
        "{message}"
    );
    assert!(message.contains("the least memory that works is"), "{message}");
    assert_eq!(refusal(&call(&format!("{line} --format json")), 3), message);
    // A policy that can use less has the device's memory as its budget.
    let found = json(&call("simulate --device galaxy-s10 --model vgg16 --batch 256 --policy sage --format json"));
    assert!(found["peak_memory_bytes"].as_u64().is_some_and(|bytes| bytes <= (8 << 30) - (255 << 20)), "{found}");
    // A caching allocator whose reserved memory exceeds the device's returns cached segments.
    let cached = "simulate --device rtx-3090 --model squeezenet1-1 --batch 1280 --policy sgc --format json";
    let found = json(&call(cached));
    assert!(found["reserved_bytes"].as_u64().is_some_and(|bytes| bytes <= 24 << 30), "{found}");
    // The need is determined within the device's limit.
    let beyond = "simulate --device rtx-3090 --model vgg16 --batch 4096 --policy original";
    let message = refusal(&call(beyond), 3);
    assert!(message.contains("the least memory that works is"), "{message}");
    assert_eq!(refusal(&call(&format!("{beyond} --least-memory")), 3), message);
    let needed = json(&call("simulate --device galaxy-s10 --model vgg16 --batch 8 --least-memory --format json"));
    assert!(needed["least_memory_bytes"].as_u64().is_some());
    // A driver that limits the memory of its GPU is named, and no budget beyond that is advised.
    let addressed = "simulate --device redmi-note9-pro --model vgg16 --batch 64 --policy original";
    let whose = "the 4295.0 MB that the GPU of redmi-note9-pro addresses";
    let message = refusal(&call(addressed), 3);
    assert!(message.contains(&format!("at batch 64 within {whose}: out of memory")), "{message}");
    let least = "the least memory that works is";
    assert!(message.contains(least) && message.contains(&format!(", more than {whose}")), "{message}");
    let message = refusal(&call(&format!("{addressed} --memory-budget 2GiB")), 3);
    assert!(message.contains("within 2147.5 MB of memory") && message.contains(least), "{message}");
    assert!(!message.contains("--memory-budget"), "{message}");
}

#[test]
fn a_card_draws_no_more_than_its_board_and_memory_is_held_in_that() {
    for line in ["--model resnet50 --batch 64", "--model squeezenet1-1 --batch 512"] {
        let line = format!("simulate --device rtx-3090 {line} --format json");
        let found = json(&call(&line));
        let power = found["mean_power_w"].as_f64().unwrap();
        assert!(power > 300.0 && power <= 350.0, "{line}: {power} W");
        let dearer = json(&call(&format!("{line} --device-set dram.energy=900")));
        assert_eq!(found["energy_j"], dearer["energy_j"], "{line}");
    }
}

#[test]
fn a_device_out_of_all_proportion_is_refused() {
    let with = |set: &str| refusal(&call(&format!("simulate --device rtx-3090 --model lenet5 {set}")), 2);
    let clock = with("--device-set gpu.clock=1e15");
    assert!(clock.contains("`gpu.clock`: 1000000000000000 is out of range; expected 0, or a number from 0.001 to 1e6"));
    // Each could be valid on its own, but not all together.
    let slow =
        with("--batch 4096 --device-set gpu.clock=0.001 --device-set gpu.fp32_rate=0.001 --device-set gpu.units=1");
    assert!(slow.contains("an iteration takes") && slow.contains("out of all proportion"), "{slow}");
}

#[test]
fn a_stack_on_the_wrong_processor_is_refused_with_those_that_fit() {
    let on = |device: &str, stack: &str| {
        refusal(&call(&format!("simulate --device {device} --model lenet5 --stack {stack}")), 2)
    };
    let phone = on("galaxy-s10", "pytorch-cuda");
    let wrong = "error: --stack: the software stack pytorch-cuda runs on GPUs of NVIDIA; galaxy-s10 has one of Arm";
    assert!(phone.starts_with(wrong), "{phone}");
    assert!(phone.contains("the stacks that run on galaxy-s10 are ") && phone.contains("sage-opencl"), "{phone}");
    assert!(!phone.rsplit(" are ").next().unwrap().contains("pytorch-cuda"), "{phone}");
    let card = on("rtx-3090", "mnn");
    assert!(card.contains("runs on GPUs of Arm and GPUs of Qualcomm"), "{card}");
    assert!(card.ends_with("are ncnn, pytorch-cuda-1.6, pytorch-cuda, sage-opencl\n"), "{card}");
    // The instruction set of its cores is that of phones.
    assert!(on("server-core", "mandheling").contains("runs on arm64 cores; server-core has x86-64 cores"));
}

#[test]
fn explain_lists_the_largest_tensors() {
    let peak = &sage(" --explain")["peak"];
    let largest = peak["largest"].as_array().unwrap();
    assert_eq!(largest.len(), 10);
    assert!(largest.windows(2).all(|pair| pair[0]["bytes"].as_u64() >= pair[1]["bytes"].as_u64()));
    assert!(peak["node"].as_str().is_some_and(|node| !node.is_empty()));
}

#[test]
fn a_scenario_file_is_overruled_by_flags() {
    let folder = tempdir().unwrap();
    let file = "device = \"galaxy-s10\"\nmodel = \"lenet5\"\nbatch = 4\npolicy = \"sage\"\nset.sage.order = \"half\"\nmemory_budget = 3_000_000\n";
    fs::write(folder.path().join("s.toml"), file).unwrap();
    let found =
        json(&call_in(folder.path(), &["simulate", "s.toml", "--batch", "16", "--set", "mtp=2", "--format", "json"]));
    let scenario = &found["scenario"];
    assert_eq!((&scenario["batch"], &scenario["memory_budget_bytes"]), (&16.into(), &3_000_000.into()));
    assert_eq!(scenario["set"], serde_json::json!({"mtp": "2", "order": "half"}));
}

#[test]
fn the_timeline_is_a_trace_that_ends_with_the_iteration() {
    let folder = tempdir().unwrap();
    let line = format!("{PHONE} dgc --memory-budget 40% --timeline t.json --format json");
    let found = json(&call_in(folder.path(), &line.split(' ').collect::<Vec<_>>()));
    let trace: Value = serde_json::from_str(&fs::read_to_string(folder.path().join("t.json")).unwrap()).unwrap();
    let ends = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    let last = ends.map(|event| event["ts"].as_f64().unwrap() + event["dur"].as_f64().unwrap()).fold(0.0, f64::max);
    // The trace is in microseconds.
    assert!((last * 1e-6 - found["iteration_time_s"].as_f64().unwrap()).abs() < 1e-9);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a part of a file was left behind");

    let message = refusal(&call(&format!("{PHONE} sage --timeline /nowhere/t.json")), 2);
    assert!(message.contains("'/nowhere/t.json' for '--timeline <FILE>': /nowhere is not a folder"), "{message}");
}

#[test]
fn a_trace_of_budgets_moves_walls() {
    let folder = tempdir().unwrap();
    let free = sage("");
    let (time, peak) = (free["iteration_time_s"].as_f64().unwrap(), free["peak_memory_bytes"].as_u64().unwrap());
    let half = peak / 2;
    fs::write(folder.path().join("walls.csv"), format!("time_s,budget_bytes\n0,{peak}\n{},{half}B\n", time / 4.0))
        .unwrap();
    let line = format!("{PHONE} sage --trace walls.csv --format json");
    let found = json(&call_in(folder.path(), &line.split(' ').collect::<Vec<_>>()));
    // The wall's value at the start is the budget; the wall splits what was a single micro-batch.
    assert_eq!(found["scenario"]["memory_budget_bytes"].as_u64(), Some(peak));
    assert!(found["micro_batches"].as_array().unwrap().len() > free["micro_batches"].as_array().unwrap().len());

    fs::write(folder.path().join("app.parquet"), [0_u8, 159, 146, 150]).unwrap();
    fs::write(folder.path().join("app.csv"), "user,time_s\n").unwrap();
    let wrong = [
        ("app.csv", "time_s,budget_bytes"),
        ("app.parquet", "not a readable Parquet file"),
        ("none.csv", "cannot be read"),
        ("none.parquet", "cannot read"),
    ];
    for (file, says) in wrong {
        let line = format!("{PHONE} sage --trace {file}");
        let message = refusal(&call_in(folder.path(), &line.split(' ').collect::<Vec<_>>()), 2);
        assert!(
            message.starts_with("error: --trace: ") && message.contains(says) && message.contains(file),
            "{message}"
        );
    }
}

#[test]
fn graphs_are_of_stacks_that_run_them() {
    let eager = "simulate --device rtx-3090 --model lenet5 --batch 8";
    let message = refusal(&call(&format!("{eager} --graph sr")), 2);
    assert!(message.starts_with("error: --graph: the stack pytorch-cuda"), "{message}");
    assert!(refusal(&call(&format!("{eager} --gradients streamed")), 2).contains("--gradients"));
    let found = json(&call(&format!("{eager} --format json")));
    assert_eq!((&found["scenario"]["graph"], &found["scenario"]["allocator"]), (&Value::Null, &"caching".into()));
    assert_eq!(json(&call(&format!("{PHONE} original --format json")))["scenario"]["graph"], "sr");
}

#[test]
fn cores_train_on_the_cpu() {
    let line = "simulate --device galaxy-s10 --model lenet5 --batch 8 --stack pytorch-cpu --format json";
    let time = |cores: &str| json(&call(&format!("{line}{cores}")))["iteration_time_s"].as_f64().unwrap();
    assert!(time(" --cores big:1") > time(" --cores big:4"));
    let message = refusal(&call("simulate --device galaxy-s10 --model lenet5 --cores big:4"), 2);
    assert!(message.starts_with("error: --cores: ") && message.contains("pytorch-cpu"), "{message}");
    assert!(refusal(&call(&format!("{line} --cores bigg:4")), 2).contains("did you mean `big`"));
}

#[test]
fn lower_precision_is_smaller_and_surroundings_heat_the_device() {
    let run = |precision: &str| {
        json(&call(&format!("simulate --device rtx-3090 --model resnet18 --precision {precision} --format json")))
    };
    assert!(run("fp16")["peak_memory_bytes"].as_u64() < run("fp32")["peak_memory_bytes"].as_u64());
    // A byte for each value and no fp32 copy.
    assert!(
        2 * run("int8")["peak_memory_bytes"].as_u64().unwrap() < run("fp32")["peak_memory_bytes"].as_u64().unwrap()
    );
    assert!(refusal(&call(&format!("{PHONE} daf --precision int8")), 2).contains("stores fp32 tensors its own way"));
    let hot = "simulate --device rtx-3090 --model lenet5 --ambient-c 30";
    assert!(refusal(&call(hot), 2).contains("has no thermal model"));
    let message = refusal(&call(&format!("{PHONE} sage --ambient-c 90")), 2);
    assert!(message.contains("the device does not start at 90.0 °C: its limit is 85.0 °C"), "{message}");
}

#[test]
fn the_same_call_prints_the_same_bytes() {
    let line = format!("{PHONE} sage --memory-budget 30% --format json --seed 7");
    assert_eq!(call(&line).stdout, call(&line).stdout);
}

#[test]
fn a_closed_pipe_is_no_fault() {
    for line in ["list models", "simulate --device galaxy-s10 --model lenet5 --format json", "reproduce --help"] {
        let mut child = command(std::path::Path::new("."), &line.split(' ').collect::<Vec<_>>());
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{line}");
    }
}

#[test]
fn what_mandheling_cannot_run_on_is_refused_by_the_right_key() {
    let line = |rest: &str| refusal(&call(&format!("simulate --model vgg11-cifar --policy mandheling {rest}")), 2);
    assert!(line("--device galaxy-s10").starts_with("error: --policy: galaxy-s10 has no modelled DSP"));
    let message = line("--device xiaomi-10 --frequency 2.0GHz");
    assert!(message.starts_with("error: --frequency: Cortex-A77 prime has no operating point at 2GHz"), "{message}");
    assert!(message.contains("1977.6MHz and 2073.6MHz, of 844.8MHz to 2841.6MHz"), "{message}");
    assert!(line("--device xiaomi-10 --stack mnn").ends_with("the software stack mnn has no kernels for a DSP\n"));
    let message = refusal(&call("simulate --device xiaomi-10 --model bert-small --policy mandheling"), 2);
    assert!(message.starts_with("error: --model: NITI has no translation of embedding"), "{message}");
}

#[test]
fn a_trace_of_apps_puts_the_run_on_a_phone_in_use() {
    let folder = tempdir().unwrap();
    let run = |line: &str| call_in(folder.path(), &line.split(' ').collect::<Vec<_>>());
    run("trace generate --users 2 --days 1 --seed 1 --out users.parquet");
    let line = "simulate --device galaxy-s22 --stack mnn-2 --model lenet5 --cores big:4 --format json";
    let alone = json(&run(line));
    let on_phone = json(&run(&format!("{line} --trace users.parquet#synthetic-0000001")));
    assert_eq!((&alone["scenario"]["system"], &on_phone["scenario"]["system"]), (&Value::Null, &"android".into()));
    // Without a phone, system memory is not simulated; with one, the system and the apps use some of it.
    assert_eq!(alone["system_used_bytes"], 0);
    assert!(on_phone["system_used_bytes"].as_u64().unwrap() > 3_000_000_000);
    let nobody = refusal(&run(&format!("{line} --trace users.parquet#synthetic-0000003")), 2);
    assert!(nobody.contains("expected rows of the user 'synthetic-0000003'"), "{nobody}");
    // The memory that the phone leaves is the run's limit: 1 MB is less than LeNet-5 needs.
    fs::write(folder.path().join("meminfo"), "MemTotal: 8000000 kB\nMemAvailable: 1000 kB\n").unwrap();
    run("trace import --kind meminfo meminfo --out available.parquet");
    let short = run(&format!("{line} --trace available.parquet"));
    assert_eq!(short.status.code(), Some(3));
    let short = stderr(&short);
    assert!(short.contains("out of memory") && short.contains("1024.0 kB"), "{short}");
    let unknown = refusal(&run(&format!("{line} --system androit")), 2);
    assert!(unknown.contains("did you mean `android`?"), "{unknown}");
}

#[test]
fn a_run_far_below_its_peak_names_the_constant() {
    // 25 us for each launch; LeNet has many.
    let low = stdout(&call("simulate --device galaxy-s22 --model lenet5"));
    let line = |text: &str, head: &str| text.lines().find(|line| line.trim().starts_with(head)).map(str::to_owned);
    assert!(line(&low, "of the peak").unwrap().ends_with("GFLOP/s"), "{low}");
    assert!(line(&low, "above all by").unwrap().contains("gpu.launch = 25"), "{low}");
    let high = stdout(&call("simulate --device rtx-3090 --model resnet50 --precision fp16"));
    assert!(line(&high, "of the peak").is_some() && line(&high, "above all by").is_none(), "{high}");
}

#[test]
fn a_policy_that_goes_on_learning_runs_five_iterations() {
    for (policy, iterations) in [("mandheling", 5), ("mnn-int8", 2)] {
        let answer =
            json(&call(&format!("simulate --device xiaomi-10 --model lenet5 --policy {policy} --format json")));
        assert_eq!(answer["iterations_s"].as_array().unwrap().len(), iterations, "{policy}");
    }
    let asked =
        json(&call("simulate --device xiaomi-10 --model lenet5 --policy mandheling --iterations 3 --format json"));
    assert_eq!(asked["iterations_s"].as_array().unwrap().len(), 3);
}

#[test]
fn a_phone_in_use_is_drawn_over_time_and_so_is_one_whose_run_is_killed() {
    let folder = tempdir().unwrap();
    let run = |line: &str| call_in(folder.path(), &line.split(' ').collect::<Vec<_>>());
    let phone = "simulate --device galaxy-s22 --stack mnn-2 --cores big:4 --model mobilenetv2 --apps synthetic-0001@68640s+10min";
    let made = run(&format!("{phone} --system android-testbed --batch 24 --plot phone.svg --format json"));
    let found = json(&made);
    let samples = found["phone"]["samples"].as_array().unwrap();
    // Once a second, and where iterations begin and end; all memory that the kernel manages has an owner.
    let seconds: f64 = found["iterations_s"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).sum();
    assert!((1..6).contains(&(samples.len() - seconds as usize)), "{} samples in {seconds} s", samples.len());
    let owners = ["kernel_bytes", "trainer_bytes", "apps_bytes", "files_bytes", "zram_bytes", "free_bytes"];
    let sum = |sample: &Value| owners.iter().map(|owner| sample[*owner].as_u64().unwrap()).sum::<u64>();
    let managed = sum(&samples[0]);
    assert!(samples.iter().all(|sample| sum(sample) == managed), "{samples:?}");
    assert!(found["phone"]["events"].as_array().unwrap().iter().all(|event| event["at_s"].is_number()));
    let picture = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    for words in ["who holds memory", "the trainer stalls", "PSI some"] {
        assert!(picture("phone.svg").contains(words), "{words}");
    }
    let made = stdout(&run(&format!("{phone} --system android --batch 32 --plot killed.svg")));
    assert!(made.contains("killed by the low-memory killer"), "{made}");
    assert!(picture("killed.svg").contains("trainer killed"));
    let refused = refusal(&run("simulate --device galaxy-s22 --model lenet5 --batch 16 --plot none.svg"), 2);
    assert!(refused.contains("--plot draws a phone in use: --system android makes it one"), "{refused}");
}
