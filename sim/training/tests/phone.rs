//! Training on a phone in use: what its memory takes of the time, worked out by hand, and what a kill leaves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod support;

use common::job;
use haversack_devices::units::{Bytes, Nanos};
use haversack_training::phone::Phone;
use haversack_training::{Job, Record, RunError, ThreadStates, simulate};
use haversack_workloads::TrainingGraph;
use support::phones::{FIRST, ITERATION, PAGE, PEAK, app, layer, ms, phone};
use support::{BATCH, Script, check_sums, near, phone_cpu, with_storage};

fn on<'a>(phone: &'a Phone, graph: &'a TrainingGraph, iterations: u32) -> Job<'a> {
    Job { phone: Some(phone), iterations, ..job(graph, BATCH) }
}

/// What holds of every run on a phone.
fn check(record: &Record, place: &str) {
    check_sums(record, place);
    let phone = record.phone.as_ref().unwrap();
    assert_eq!(phone.iteration.time, record.iteration, "{place}: the last iteration");
    assert_eq!(phone.run.time, record.iterations.iter().copied().sum(), "{place}: all iterations");
    for span in [phone.iteration, phone.run] {
        let ThreadStates { running, sleeping, runnable } = span.states;
        assert_eq!(running + sleeping + runnable, span.time, "{place}: states");
        assert!(span.used_mean <= span.used_peak && span.used_peak <= phone.managed, "{place}: used");
    }
    if phone.kills.iter().all(|kill| kill.iteration as usize + 1 < record.iterations.len()) {
        assert_eq!(phone.iteration.states.sleeping, record.breakdown.refault, "{place}: asleep");
        assert_eq!(phone.iteration.states.runnable, record.breakdown.runnable, "{place}: runnable");
    }
}

fn run(phone: &Phone, graph: &TrainingGraph, iterations: u32) -> Result<Record, RunError> {
    simulate(&phone_cpu(), &on(phone, graph, iterations), &mut Script::default())
}

#[test]
fn with_memory_to_spare_only_the_first_touches_cost() {
    let (phone, graph) = (phone(64, 0), layer());
    let without = simulate(&phone_cpu(), &job(&graph, BATCH), &mut Script::default()).unwrap();
    near(without.iteration, ITERATION.0, "without");
    assert_eq!(without.peak_memory, Bytes(PEAK));
    let first = run(&phone, &graph, 1).unwrap();
    check(&first, "first");
    // Every page that tensors ever had at a time is touched for the first time once: 6,400 of them.
    let touches = FIRST * (PEAK / PAGE);
    assert_eq!(first.iteration, without.iteration + touches);
    assert_eq!(first.breakdown.reclaim, touches);
    assert_eq!(first.phone.unwrap().iteration.counters.pgfault, PEAK / PAGE);
    for iterations in [2, 3] {
        let later = run(&phone, &graph, iterations).unwrap();
        check(&later, "later");
        assert_eq!((later.iteration, later.breakdown), (without.iteration, without.breakdown.clone()));
        // What tensors give back stays with the process: as much is in use at all times.
        let seen = later.phone.unwrap();
        assert_eq!((seen.iteration.used_mean, seen.iteration.used_peak), (Bytes(PEAK), Bytes(PEAK)));
        assert_eq!((seen.iteration.counters.pgfault, seen.run.counters.pgfault), (0, PEAK / PAGE));
        assert_eq!((seen.managed, seen.apps_killed, seen.kills.len()), (phone.memory.ram, 0, 0));
    }
}

/// A phone whose flash works on everything at once and whose driver takes no time but for a page's: a page is read in
/// 1 + 100 µs, whatever else there is.
fn with_even_flash(ram: u64) -> Phone {
    let machine = with_storage(&[
        ("storage.sequential_write", 1e6),
        ("storage.sequential_read", 1e6),
        ("storage.random_write", 1e6),
        ("storage.random_read", 1e6),
        ("storage.datasheet_read", 1e6),
        ("storage.datasheet_write", 1e6),
        ("storage.latency_read", 100.0),
    ]);
    Phone { flash: machine.device.flash().unwrap(), ..phone(ram, 64) }
}

#[test]
fn what_is_evicted_is_read_again_page_by_page() {
    let graph = layer();
    for ram in [27, 24, 20, 16] {
        let phone = with_even_flash(ram);
        for iterations in [1, 2, 4] {
            let place = format!("{ram} MiB, {iterations}");
            let record = run(&phone, &graph, iterations).unwrap();
            check(&record, &place);
            let seen = record.phone.as_ref().unwrap().iteration;
            println!("{place} it {} {:?} evicted {} refaults {} read {} {:?} {:?}", record.iteration, seen.states, seen.evicted(), seen.refaults(), seen.read_from_flash(), seen.used_mean, seen.counters);
        }
    }
}
