//! What people ask of one run: what bounds it, and what it is compared with; and that no flag is ignored in silence.

use haversack::cache::Cache;
use haversack::run::{Plan, Results};
use haversack::scenario::Scenario;
use haversack_policies::registry::POLICIES;
use rayon::prelude::*;

use crate::support::{call, json, refusal, stderr, stdout};

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
        let results = Results::new(&plan.run().unwrap());
        let sum: f64 = results.bound_by.iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{policy} on {device}: {:?}", results.bound_by);
        assert!(results.bound_by.iter().all(|share| *share >= 0.0), "{policy} on {device}: {:?}", results.bound_by);
        true
    });
    // The Xiaomi 10 has what all policies need; the others lack a DSP or kernels for some of the five engines.
    assert!(ran.count() >= 2 * POLICIES.len(), "too few pairs ran");
}

#[test]
fn the_idealised_core_is_bound_by_arithmetic_alone() {
    // A launch takes no time there, and DRAM gives 4 PB/s.
    let found = json(&call("simulate --device single-core --model lenet5 --batch 8 --format json"));
    assert!(found["bound_by"]["arithmetic"].as_f64().unwrap() > 0.999, "{}", found["bound_by"]);
}

#[test]
fn the_operators_that_take_longest_are_listed_with_their_shares() {
    let found = json(&call(&format!("{LENET} --policy original --format json")));
    let longest = found["longest"].as_array().unwrap();
    assert_eq!(longest.len(), 10);
    let iteration = found["iteration_time_s"].as_f64().unwrap();
    let time = |operator: &serde_json::Value| operator["time_s"].as_f64().unwrap();
    assert!(longest.windows(2).all(|pair| time(&pair[0]) >= time(&pair[1])));
    for operator in longest {
        assert!((operator["share"].as_f64().unwrap() * iteration - time(operator)).abs() < 1e-12, "{operator}");
        assert!(found["bound_by"].get(operator["bound_by"].as_str().unwrap()).is_some(), "{operator}");
        assert!(["forward", "backward", "update"].contains(&operator["phase"].as_str().unwrap()), "{operator}");
        // Without a budget there is one micro-batch, and nothing is computed again.
        assert_eq!(operator["times"], 1, "{operator}");
    }
}

#[test]
fn a_run_is_compared_with_original_without_a_budget() {
    let baseline =
        json(&call(&format!("{LENET} --policy original --format json")))["iteration_time_s"].as_f64().unwrap();
    let own = json(&call(&format!("{LENET} --policy dgc --memory-budget 70% --format json")));
    let times = own["iteration_time_s"].as_f64().unwrap() / baseline;
    let shown = stdout(&call(&format!("{LENET} --policy dgc --memory-budget 70%")));
    let sentence = shown.lines().find(|line| line.starts_with("baseline (policy original, no budget): ")).unwrap();
    let said = sentence.split("this run takes ").nth(1).unwrap().strip_suffix(" times as long").unwrap();
    // To three significant digits.
    assert!((said.parse::<f64>().unwrap() / times - 1.0).abs() < 5e-3, "{sentence} against {times}");
    let walls = stdout(&call(&format!("{LENET} --policy dgc --budget-walls 1us=900MB,2us=1GB")));
    assert!(walls.contains("\n  budget falls to 900 MB at 1 µs\n  budget rises to 1 GB at 2 µs\n"), "{walls}");
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

/// Flags that would do nothing, each with the key that is refused and words of the refusal.
const IDLE: [(&str, &str, &str); 9] = [
    ("--policy mandheling --precision fp32", "precision", "trains in int8, not in fp32; leave the precision out"),
    ("--policy mnn-int8 --precision fp16", "precision", "trains in int8, not in fp16"),
    ("--policy mandheling --gradients streamed", "gradients", "keeps gradients until the update"),
    ("--policy fedhybrid --set budget=predicted", "set", "name a system"),
    ("--policy fedhybrid --set tp1=150", "set", "does nothing without budget=predicted"),
    ("--policy mnn-fp32-gpu --cores big:1", "cores", "trains on the GPU"),
    ("--policy mnn-fp32-gpu --frequency 1.81GHz", "frequency", "no operating point"),
    ("--policy mnn-fp32 --cores little:4 --frequency 1.2GHz", "frequency", "the nearest are"),
    ("--policy sage --trainer-adj 900", "trainer-adj", "no low-memory killer"),
];

#[test]
fn flags_that_would_do_nothing_are_refused() {
    for (flags, key, words) in IDLE {
        let message = refusal(&call(&format!("{LENET} {flags}")), 2);
        assert!(message.starts_with(&format!("error: --{key}: ")) && message.contains(words), "{flags}: {message}");
    }
    // What a policy does anyway may be said.
    json(&call(&format!("{LENET} --policy mandheling --precision int8 --format json")));
}

#[test]
fn flags_that_do_less_than_one_may_expect_are_noted() {
    for (flags, words) in [
        ("--policy mnn-fp32 --ambient-c 30", "only --frequency governor follows it"),
        ("--policy sage --budget-walls 1us=900MB,100s=1GB", "1 of 2 changes of the budget come after the iteration"),
        ("--policy sage --budget-walls 1us=900MB --least-memory", "whose budget does not change"),
        ("--policy mnn-fp32-gpu --frequency lowest", "the GPU that trains here keeps its own"),
    ] {
        let run = call(&format!("{LENET} {flags} --format json"));
        assert!(stderr(&run).contains(words), "{flags}: {}", stderr(&run));
        json(&run);
    }
}
