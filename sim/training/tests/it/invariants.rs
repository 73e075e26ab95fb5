//! Invariants of every run, for all models, policies and budgets.

use haversack_devices::units::{Bytes, Nanos};
use haversack_testing::{eager, lowered};
use haversack_training::{Job, Record, RunError, SpanKind};
use haversack_workloads::lowering::Variant;
use haversack_workloads::{Phase, TrainingGraph};

use crate::common::{job, liveness_peak, run, share, within};

const POLICIES: [&str; 7] = ["original", "sgc", "sga", "dgc", "dga", "sage", "dtr"];

fn check(job: &Job<'_>, record: &Record, place: &str) {
    let graph = job.graph;
    // The breakdown and the phases are sums of the same nanoseconds.
    assert_eq!(record.breakdown.total(), record.iteration, "{place}: breakdown");
    assert_eq!(record.bound_by.total(), record.iteration, "{place}: what bounds it");
    assert_eq!(record.forward + record.backward + record.update, record.iteration, "{place}: phases");
    assert_eq!(record.micro_batches.iter().sum::<u64>(), job.batch, "{place}: samples");
    assert!(record.micro_batches.iter().all(|&part| part > 0), "{place}: {:?}", record.micro_batches);
    if let Some(budget) = job.budgets.memory {
        assert!(record.peak_memory <= budget, "{place}: {} of {budget}", record.peak_memory);
        assert!(record.reserved <= budget, "{place}: reserved {} of {budget}", record.reserved);
    }
    assert!(record.peak_growth < record.peak_memory, "{place}: growth");
    let spans = &record.timeline.as_ref().unwrap().spans;
    let operators = record.operators.iter();
    let of_operators =
        |span: &&haversack_training::Span| matches!(span.kind, SpanKind::Scheduled | SpanKind::Recomputed);
    let ran: Nanos = spans.iter().filter(of_operators).map(|span| span.duration).sum();
    assert_eq!(operators.map(|operator| operator.time).sum::<Nanos>(), ran, "{place}: operators");
    // One processor: spans follow each other without a gap, from the start to the end.
    let mut clock = Nanos::ZERO;
    for span in spans {
        assert_eq!(span.start, clock, "{place}: {}", graph.nodes[span.node as usize].name);
        clock += span.duration;
        assert!(span.memory <= record.peak_memory, "{place}: {}", graph.nodes[span.node as usize].name);
        // The tensors that a node reads and writes are in memory while it runs.
        let node = &graph.nodes[span.node as usize];
        let mut used: Vec<u32> = node.inputs.iter().chain(&node.outputs).copied().collect();
        used.sort_unstable();
        used.dedup();
        let own: u64 = used.iter().map(|&tensor| graph.tensor(tensor).bytes.at(span.micro_batch)).sum();
        let state = graph.bytes_of(|role| role.is_state()).at(1);
        assert!(span.memory.0 >= own.max(state), "{place}: {}", node.name);
    }
    assert_eq!(clock, record.iteration, "{place}: spans");
    assert_eq!(spans.iter().map(|span| span.memory).max(), Some(record.peak_memory), "{place}: peak");
    let recomputed: Vec<_> = spans.iter().filter(|span| span.kind == SpanKind::Recomputed).collect();
    assert_eq!(recomputed.len() as u64, record.recomputed, "{place}: recomputed");
    assert_eq!(
        recomputed.iter().map(|span| span.duration).sum::<Nanos>(),
        recompute_and_lost(record, &recomputed),
        "{place}"
    );
    // Every node runs as scheduled, once a part, update nodes once; restarted parts add runs.
    let mut runs = vec![0; graph.nodes.len()];
    for span in spans.iter().filter(|span| span.kind == SpanKind::Scheduled) {
        runs[span.node as usize] += 1;
    }
    for (node, runs) in graph.nodes.iter().zip(runs) {
        let parts = if node.phase == Phase::Update { 1 } else { record.micro_batches.len() };
        let restarted = record.breakdown.discarded > Nanos::ZERO && node.phase != Phase::Update;
        assert!(runs == parts || (restarted && runs > parts), "{place}: {} ran {runs} times", node.name);
    }
    assert!(recomputed.iter().all(|span| graph.nodes[span.node as usize].phase == Phase::Forward), "{place}");
}

/// If nothing was discarded the breakdown gives recomputation exactly; otherwise only the spans do.
fn recompute_and_lost(record: &Record, spans: &[&haversack_training::Span]) -> Nanos {
    if record.breakdown.discarded == Nanos::ZERO {
        record.breakdown.recompute
    } else {
        spans.iter().map(|span| span.duration).sum()
    }
}

fn every_policy_and_budget(graph: &TrainingGraph, batch: u64, place: &str, policies: &[&str]) {
    let (peak, before) = liveness_peak(graph, batch);
    let all = run(&job(graph, batch), "original").unwrap();
    // Nothing is dropped or late: the peak is that of the liveness of the graph.
    assert_eq!(all.peak_memory, Bytes(peak), "{place}");
    assert_eq!(all.peak_growth, Bytes(peak - before), "{place}");
    for id in policies {
        let mut worked = 0;
        for percent in [0, 100, 80, 55, 40, 25] {
            let job =
                if percent == 0 { job(graph, batch) } else { within(graph, batch, share(all.peak_memory, percent)) };
            let place = format!("{place} {id} {percent} %");
            match run(&job, id) {
                Ok(record) => {
                    worked += 1;
                    check(&job, &record, &place);
                    let again = run(&job, id).unwrap();
                    assert_eq!(format!("{record:?}"), format!("{again:?}"), "{place}: the same run twice");
                    if percent == 0 || percent == 100 {
                        assert!(record.breakdown.discarded == Nanos::ZERO, "{place}");
                        assert!(*id == "sgc" || record.recomputed == 0, "{place}");
                    }
                }
                Err(RunError::OutOfMemory { shortfall, budget, .. }) => {
                    // The second of `sga`'s parts finds the weights' gradients in memory, which the first did not.
                    assert!(shortfall > Bytes::ZERO && (percent < 100 || *id == "sga"), "{place}: {shortfall}");
                    assert_eq!(Some(budget), job.budgets.memory, "{place}");
                    assert!(shortfall <= all.peak_memory, "{place}: {shortfall}");
                }
                Err(error) => assert!(error.is_infeasible(), "{place}: {error}"),
            }
        }
        // Without a budget every policy works, and with all of the memory every policy but `sga`.
        let least = if *id == "sga" { 1 } else { 2 };
        assert!(worked >= least, "{place} {id}: {worked} budgets work");
    }
}

#[test]
fn lenet5() {
    every_policy_and_budget(&eager("lenet5"), 32, "lenet5 eager", &POLICIES);
    for variant in Variant::ALL {
        every_policy_and_budget(&lowered("lenet5", variant), 32, &format!("lenet5 {}", variant.id()), &POLICIES);
    }
}

#[test]
fn resnet18_cifar() {
    every_policy_and_budget(&eager("resnet18-cifar"), 16, "resnet18-cifar eager", &POLICIES);
    every_policy_and_budget(&lowered("resnet18-cifar", Variant::Reduced), 16, "resnet18-cifar sr", &POLICIES);
}

#[test]
fn mobilenetv2() {
    every_policy_and_budget(&eager("mobilenetv2"), 8, "mobilenetv2 eager", &POLICIES);
    every_policy_and_budget(&lowered("mobilenetv2", Variant::Original), 8, "mobilenetv2 original", &POLICIES[..6]);
    every_policy_and_budget(&lowered("mobilenetv2", Variant::Reduced), 8, "mobilenetv2 sr", &POLICIES);
}

#[test]
fn resnet50() {
    every_policy_and_budget(&lowered("resnet50", Variant::Reduced), 32, "resnet50 sr", &POLICIES);
}

#[test]
fn bert_small_s64() {
    every_policy_and_budget(&eager("bert-small-s64"), 16, "bert-small-s64 eager", &POLICIES);
    every_policy_and_budget(&lowered("bert-small-s64", Variant::Fused), 16, "bert-small-s64 of", &POLICIES);
}
