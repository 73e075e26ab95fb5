//! Questions about one run: what bounds it, what it is compared with, which policy to use, which constants matter; and
//! that no flag is silently ignored.

use std::fs;

use haversack::cache::Cache;
use haversack::run::{Plan, Results};
use haversack::scenario::Scenario;
use haversack_policies::registry::POLICIES;
use rayon::prelude::*;
use serde_json::Value;
use tempfile::tempdir;

use crate::support::{call, call_in, json, refusal, stderr, stdout};

const LENET: &str = "simulate --device xiaomi-10 --model lenet5 --batch 4";

#[test]
fn what_bounds_a_run_are_shares_that_sum_to_one_for_every_policy() {
    let cache = Cache::new();
    let devices = ["xiaomi-10", "galaxy-s22", "jetson-agx-xavier"];
    let pairs: Vec<_> =
        devices.iter().flat_map(|device| POLICIES.iter().map(move |policy| (*device, policy.id))).collect();
    let ran = pairs.par_iter().filter(|(device, policy)| {
        let scenario = Scenario { policy: (*policy).to_owned(), batch: 8, ..Scenario::new(*device, "lenet5") };
        let Ok(plan) = Plan::new(&scenario, &cache) else { return false };
        let results = Results::new(&plan, &plan.run().unwrap());
        let sum: f64 = results.bound_by.iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{policy} on {device}: {:?}", results.bound_by);
        assert!(results.bound_by.iter().all(|share| *share >= 0.0), "{policy} on {device}: {:?}", results.bound_by);
        true
    });
    // The Xiaomi 10 supports all policies; the others lack a DSP or kernels for some of the five engines.
    assert!(ran.count() >= 2 * POLICIES.len(), "too few pairs ran");
}

#[test]
fn the_idealised_core_is_bound_by_arithmetic_alone() {
    // A launch takes no time there, and DRAM gives 4 PB/s.
    let found = json(&call("simulate --device single-core --model lenet5 --batch 8 --format json"));
    let share = |of: &str| found["bound_by"][of].as_f64().unwrap();
    assert!(share("arithmetic") + share("index-arithmetic") > 0.999, "{}", found["bound_by"]);
}

#[test]
fn the_operators_that_take_longest_are_listed_with_their_shares() {
    let found = json(&call(&format!("{LENET} --policy original --format json")));
    let longest = found["longest"].as_array().unwrap();
    assert_eq!(longest.len(), 10);
    let iteration = found["iteration_time_s"].as_f64().unwrap();
    let time = |operator: &Value| operator["time_s"].as_f64().unwrap();
    assert!(longest.windows(2).all(|pair| time(&pair[0]) >= time(&pair[1])));
    for operator in longest {
        assert!((operator["share"].as_f64().unwrap() * iteration - time(operator)).abs() < 1e-12, "{operator}");
        assert!(found["bound_by"].get(operator["bound_by"].as_str().unwrap()).is_some(), "{operator}");
        assert!(["forward", "backward", "update"].contains(&operator["phase"].as_str().unwrap()), "{operator}");
        // Without a budget there is one micro-batch, and nothing is recomputed.
        assert_eq!(operator["times"], 1, "{operator}");
    }
}

#[test]
fn a_run_is_compared_with_original_without_a_budget() {
    let baseline =
        json(&call(&format!("{LENET} --policy original --format json")))["iteration_time_s"].as_f64().unwrap();
    let own = json(&call(&format!("{LENET} --policy dgc --memory-budget 800KB --format json")));
    let times = own["iteration_time_s"].as_f64().unwrap() / baseline;
    let shown = stdout(&call(&format!("{LENET} --policy dgc --memory-budget 800KB")));
    let sentence = shown.lines().find(|line| line.starts_with("baseline (policy original, no budget): ")).unwrap();
    let said = sentence.split("this run takes ").nth(1).unwrap().strip_suffix(" times as long").unwrap();
    // To three significant digits.
    assert!((said.parse::<f64>().unwrap() / times - 1.0).abs() < 5e-3, "{sentence} against {times}");
    let walls = stdout(&call(&format!("{LENET} --policy dgc --budget-walls 1us=900MB,2us=1GB")));
    assert!(walls.contains("\n  budget falls to 900 MB at 1 µs\n  budget rises to 1 GB at 2 µs\n"), "{walls}");
    let changed = stdout(&call(&format!("{LENET} --device-set gpu.units=2 --device-set gpu.launch=1")));
    let heading = changed.lines().next().unwrap();
    assert!(heading.ends_with(" with gpu.launch = 1, gpu.units = 2 under sage-opencl"), "{heading}");
    let alone = stdout(&call(&format!("{LENET} --policy original")));
    assert!(alone.contains("baseline (policy original, no budget): this run\n"), "{alone}");
    let engine = stdout(&call(&format!("{LENET} --policy mandheling")));
    assert!(engine.contains("baseline (policy original, no budget, fp32): "), "{engine}");
}

#[test]
fn bars_are_of_the_whole_and_rows_sorted() {
    let shown = stdout(&call(&format!("{LENET} --policy original")));
    let section = shown.split("where the time went\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let mut before = f64::INFINITY;
    for line in section.lines().filter(|line| !line.contains('<')) {
        let share: f64 = line.split('%').next().unwrap().split_whitespace().last().unwrap().parse().unwrap();
        // 40 characters are 100 %.
        let bar = line.chars().filter(|c| *c == '#').count();
        assert_eq!(bar, (0.4 * share).round() as usize, "{line}");
        assert!(share <= before, "{section}");
        before = share;
    }
}

/// Flags without effect, each with the key that is rejected and words of the message.
const IDLE: [(&str, &str, &str); 9] = [
    ("--policy mandheling --precision fp32", "precision", "trains in int8, not in fp32; leave the precision out"),
    ("--policy mnn-int8 --precision fp16", "precision", "trains in int8, not in fp16"),
    ("--policy mandheling --gradients streamed", "gradients", "keeps gradients until the update"),
    ("--policy fedhybrid --set budget=predicted", "set", "name a system"),
    ("--policy fedhybrid --set tp1=150", "set", "does nothing without budget=predicted"),
    ("--policy mnn-fp32-gpu --cores big:1", "cores", "trains on the GPU"),
    ("--policy mnn-fp32-gpu --frequency 1.81GHz", "frequency", "no operating point"),
    ("--policy mnn-fp32 --cores little:4 --frequency 1.2GHz", "frequency", "the nearest are"),
    ("--policy sage --trainer-adj 900", "trainer-adj", "the low-memory killer needs"),
];

#[test]
fn flags_that_would_do_nothing_are_refused() {
    for (flags, key, words) in IDLE {
        let message = refusal(&call(&format!("{LENET} {flags}")), 2);
        assert!(message.starts_with(&format!("error: --{key}: ")) && message.contains(words), "{flags}: {message}");
    }
    // A flag may state what a policy does anyway.
    json(&call(&format!("{LENET} --policy mandheling --precision int8 --format json")));
}

#[test]
fn flags_that_do_less_than_one_may_expect_are_noted() {
    for (flags, words) in [
        ("--policy mnn-fp32 --ambient-c 30", "only --frequency governor follows it"),
        ("--policy sage --budget-walls 1us=900MB,100s=1GB", "1 of 2 changes of the budget come after the iteration"),
        ("--policy sage --budget-walls 1us=900MB --least-memory", "whose budget does not change"),
        ("--policy sage --budget-reference own --memory-budget 900MB", "no budget is a percentage"),
        ("--policy mnn-fp32-gpu --frequency lowest", "the GPU that trains here keeps its own"),
    ] {
        let run = call(&format!("{LENET} {flags} --format json"));
        assert!(stderr(&run).contains(words), "{flags}: {}", stderr(&run));
        json(&run);
    }
}

const GPU: &str = "simulate --device rtx-3090 --model lenet5 --batch 512 --precision fp16 --format json";

#[test]
fn inference_takes_less_than_training_and_is_refused_where_a_stack_only_trains() {
    let time = |flags: &str| json(&call(&format!("{GPU}{flags}")));
    let (training, inference) = (time(""), time(" --inference"));
    assert!(inference["iteration_time_s"].as_f64() < training["iteration_time_s"].as_f64());
    assert_eq!((inference["backward_s"].as_f64(), inference["update_s"].as_f64()), (Some(0.0), Some(0.0)));
    assert_eq!(inference["iteration_time_s"], inference["forward_s"]);
    assert_eq!(inference["saved_peak_bytes"], 0);
    assert_eq!(time(" --inference=false"), training);
    let message = refusal(&call(&format!("{LENET} --inference")), 2);
    assert!(message.starts_with("error: --inference: ") && message.contains("pytorch-cpu"), "{message}");
}

#[test]
fn a_run_may_take_more_memory_than_the_device_has_where_that_is_asked_for() {
    let line = "simulate --device galaxy-s10 --model gpt2-medium-lora --batch 4 --policy original";
    refusal(&call(line), 3);
    let output = call(&format!("{line} --ignore-ram --format json"));
    assert!(stderr(&output).contains("more than the 8322.5 MB that galaxy-s10 leaves"), "{}", stderr(&output));
    let found = json(&output);
    assert!(found["exceeds_ram"] == true && found["peak_memory_bytes"].as_u64() > Some(8_589_934_592), "{found}");
    assert_eq!(found["scenario"]["ignore_ram"], "true");
    // A small run uses no more memory with or without the flag.
    let small = json(&call(&format!("{LENET} --ignore-ram --format json")));
    assert_eq!(small["exceeds_ram"], false);
    let message = refusal(&call(&format!("{LENET} --ignore-ram --system android")), 2);
    assert!(message.starts_with("error: --ignore-ram: "), "{message}");
}

#[test]
fn memory_formats_and_fused_attention_are_refused_where_no_library_has_them() {
    for (flags, key) in [("--memory-format channels-last", "memory-format"), ("--attention fused", "attention")] {
        let message = refusal(&call(&format!("{LENET} {flags}")), 2);
        assert!(message.starts_with(&format!("error: --{key}: ")) && message.contains("pytorch-cuda"), "{message}");
        json(&call(&format!("{GPU} {flags}")));
    }
    let message = refusal(&call(&format!("{GPU} --memory-format channel-last")), 2);
    assert!(message.contains("did you mean 'channels-last'") || message.contains("channels-last"), "{message}");
}

const ADVISE: &str = "advise --device xiaomi-10 --model lenet5 --batch 16";

#[test]
fn advice_ranks_those_that_fit_and_says_why_others_do_not() {
    let found = json(&call(&format!("{ADVISE} --memory-budget 40% --format json")));
    let candidates = found["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), POLICIES.len());
    let budget = |candidate: &Value| candidate["memory_budget_bytes"].as_u64().unwrap();
    let fitting: Vec<&Value> = candidates.iter().filter(|candidate| candidate["status"] == "ok").collect();
    assert!(fitting.len() > 1 && fitting.len() < POLICIES.len(), "{}", fitting.len());
    // Those that fit come first, in order of time, and each is within its budget.
    assert!(candidates[..fitting.len()].iter().all(|candidate| candidate["status"] == "ok"));
    let number = |candidate: &Value, key: &str| candidate[key].as_f64().unwrap();
    let ranked = |pair: &[&Value]| number(pair[0], "iteration_time_s") <= number(pair[1], "iteration_time_s");
    assert!(fitting.windows(2).all(ranked));
    // No policy is compared with one that gives up more of the gradients.
    let order = ["exact", "batch-statistics", "stored", "integer", "weights-skipped"];
    let class = |candidate: &Value| order.iter().position(|class| candidate["fidelity"] == *class).unwrap();
    let bits = |candidate: &Value| candidate["least_bits"].as_u64().unwrap();
    let beats = |a: &Value, b: &Value| {
        (class(a) == 0 || (class(a) <= class(b) && bits(a) >= bits(b)))
            && ["iteration_time_s", "peak_memory_bytes"].iter().all(|key| number(a, key) <= number(b, key))
            && ["iteration_time_s", "peak_memory_bytes"].iter().any(|key| number(a, key) < number(b, key))
    };
    for candidate in &fitting {
        assert!(number(candidate, "peak_memory_bytes") <= budget(candidate) as f64, "{candidate}");
        let is_beaten = fitting.iter().any(|other| beats(other, candidate));
        assert_eq!(candidate["pareto"], !is_beaten, "{candidate}");
    }
    // Each of the others has a reason, and the least budget in it is above the given one.
    for candidate in &candidates[fitting.len()..] {
        assert!(candidate["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{candidate}");
        if candidate["status"] == "infeasible" {
            assert!(candidate["least_memory_bytes"].as_u64().unwrap() > budget(candidate), "{candidate}");
        }
    }
    let of = |policy: &str| candidates.iter().find(|candidate| candidate["policy"] == policy).unwrap();
    assert_eq!(of("original")["status"], "infeasible");
    // The number format of a policy, whatever the scenario sets.
    let formats = ["original", "fixed8", "mandheling"].map(|policy| of(policy)["precision"].clone());
    assert_eq!(formats, ["fp32", "fp32", "int8"]);
}

#[test]
fn advice_for_people_has_the_same_and_is_drawn() {
    let folder = tempdir().unwrap();
    let line = format!("{ADVISE} --memory-budget 40% --by memory --plot fit.svg");
    let run = call_in(folder.path(), &line.split(' ').collect::<Vec<_>>());
    let shown = stdout(&run);
    for words in ["within a memory budget of 40% (", "these policies fit, by memory", "* no other", "these do not\n"] {
        assert!(shown.contains(words), "no '{words}' in\n{shown}");
    }
    let why = shown.lines().find(|line| line.starts_with("  original ")).unwrap();
    assert!(why.contains("the least memory budget that works is") && why.contains("--memory-budget"), "{why}");
    let least = shown.lines().skip_while(|line| !line.contains("policy")).nth(1).unwrap();
    assert!(least.starts_with("  * "), "the smallest is on the front: {least}");
    assert!(fs::read_to_string(folder.path().join("fit.svg")).unwrap().starts_with("<svg"));
}

#[test]
fn advice_that_no_policy_fits_is_code_3_and_its_table_is_printed() {
    let none = call(&format!("{ADVISE} --memory-budget 1KB"));
    let message = refusal(&none, 3);
    assert!(message.contains("no policy fits; the least memory budget with which one does is"), "{message}");
    assert!(stdout(&none).contains("these do not\n"), "{}", stdout(&none));
    let late = call(&format!("{ADVISE} --time-budget 1ns"));
    assert!(refusal(&late, 3).contains("no policy fits"));
    assert!(stdout(&late).contains("more than the time budget of 1 ns"), "{}", stdout(&late));
}

#[test]
fn advice_refuses_what_is_wrong_for_every_policy() {
    for (flags, words) in [
        ("advise --device xiaomi-1 --model lenet5", "did you mean `xiaomi-10`?"),
        ("advise --device xiaomi-10 --model lenet5 --policy sage", "--policy: every policy is tried"),
        ("advise --device xiaomi-10 --model lenet5 --set bits=2", "--set: every policy is tried"),
        ("advise --device xiaomi-10 --model lenet5 --plot a.pdf", "ends in .svg or .png"),
        ("advise --model lenet5", "device"),
    ] {
        assert!(refusal(&call(flags), 2).contains(words), "{flags}: {}", stderr(&call(flags)));
    }
    // A device without a DSP: the policies that need one are named, and the rest is advised.
    let shown = stdout(&call("advise --device server-core --model lenet5 --batch 4"));
    let section = shown.split("these do not run here at all").nth(1).unwrap();
    assert!(section.contains("mandheling  ") && section.contains("DSP"), "{shown}");
}

const SENSITIVITY: &str = "sensitivity --device single-core --model lenet5 --batch 8 --policy original";

#[test]
fn the_constants_that_matter_are_those_that_move_the_run() {
    let found = json(&call(&format!("{SENSITIVITY} --format json")));
    let constants = found["constants"].as_array().unwrap();
    let of = |key: &str| constants.iter().find(|constant| constant["key"] == key).unwrap();
    // Time there is only arithmetic, so 20% less of the peak takes 1 / 0.8 = 1.25 times as long, and 20% more 1 / 1.2.
    let base = found["base"]["iteration_time_s"].as_f64().unwrap();
    let peak = of("gpu.fp32_rate");
    let time = |side: &str| peak[side]["results"]["iteration_time_s"].as_f64().unwrap();
    assert!((time("down") / base - 1.25).abs() < 1e-3, "{peak}");
    assert!((time("up") / base - 1.0 / 1.2).abs() < 1e-3, "{peak}");
    assert!((peak["iteration_time_moves"].as_f64().unwrap() - 0.25).abs() < 1e-3, "{peak}");
    assert_eq!((&peak["kind"], &peak["unit"]), (&"estimated".into(), &"FLOP/cycle".into()));
    assert!(peak["file"].as_str().unwrap().ends_with("single-core.toml"), "{peak}");
    // Values with which the run fails come first: DRAM faster than the engine counts.
    let moves = |constant: &Value| constant["iteration_time_moves"].as_f64();
    let first = constants.iter().find(|constant| moves(constant).is_some()).unwrap();
    let of_peak = ["gpu.clock", "gpu.fp32_rate", "gpu.units"];
    assert!(of_peak.iter().any(|key| first["key"] == *key), "nothing matters more: {first}");
    let moves: Vec<f64> = constants.iter().map(|one| moves(one).unwrap_or(f64::INFINITY)).collect();
    assert!(moves.windows(2).all(|pair| pair[0] >= pair[1]), "{moves:?}");
    assert!(found["unmoved"].as_u64().unwrap() > 0);
    // The energy of DRAM's bytes is zero there, and a zero constant has no relative change.
    assert!(!constants.iter().any(|constant| constant["key"] == "dram.energy"));
}

#[test]
fn sensitivity_for_people_is_a_table_and_a_tornado() {
    let folder = tempdir().unwrap();
    let line = format!("{SENSITIVITY} --by 10% --top 3 --plot tornado.png");
    let shown = stdout(&call_in(folder.path(), &line.split(' ').collect::<Vec<_>>()));
    assert!(
        shown.contains("each constant alone 10% less and more") && shown.contains("constants move nothing"),
        "{shown}"
    );
    assert_eq!(shown.lines().filter(|line| line.ends_with(".toml")).count(), 3, "{shown}");
    let png = fs::read(folder.path().join("tornado.png")).unwrap();
    assert_eq!(png[..4], [0x89, b'P', b'N', b'G']);
    assert!(refusal(&call(&format!("{SENSITIVITY} --by 120%")), 2).contains("such as 20%"));
    assert!(refusal(&call(&format!("{SENSITIVITY} --memory-budget 1KB")), 3).contains("least memory budget"));
}
