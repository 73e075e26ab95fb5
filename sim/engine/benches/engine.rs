//! The event queue compared with a plain loop, cancellation, and shared bandwidth.
//!
//! `examples/ratio.rs` compares the loops by interleaved CPU time; these benchmarks are for profiling.

#[path = "loops/draw.rs"]
mod draw;
#[path = "loops/link.rs"]
mod link;
#[path = "loops/ours.rs"]
mod ours;
#[path = "loops/plain.rs"]
mod plain;

use divan::Bencher;
use divan::counter::ItemsCount;

const EVENTS: u64 = 1_000_000;

fn main() {
    divan::main();
}

fn each_event(bencher: Bencher<'_, '_>, run: impl Fn() -> u64 + Sync) {
    bencher.counter(ItemsCount::new(EVENTS)).bench(run);
}

#[divan::bench(sample_count = 20)]
fn mm1_plain(bencher: Bencher<'_, '_>) {
    each_event(bencher, || plain::mm1(EVENTS));
}

#[divan::bench(sample_count = 20)]
fn mm1_ours(bencher: Bencher<'_, '_>) {
    each_event(bencher, || ours::mm1(EVENTS));
}

/// The hold model on a bare heap.
#[divan::bench(args = [1_000, 100_000, 1_000_000], sample_count = 5)]
fn hold_plain(bencher: Bencher<'_, '_>, pending: u32) {
    each_event(bencher, || plain::entities(pending, EVENTS));
}

/// The hold model on the event queue.
#[divan::bench(args = [1_000, 100_000, 1_000_000], sample_count = 5)]
fn hold_ours(bencher: Bencher<'_, '_>, pending: u32) {
    each_event(bencher, || ours::entities(pending, EVENTS));
}

/// Schedules and cancels one event, with `pending` others in the queue.
#[divan::bench(args = [0, 1_000], sample_count = 20)]
fn schedule_and_cancel(bencher: Bencher<'_, '_>, pending: u64) {
    each_event(bencher, || ours::cancels(pending, EVENTS).0);
}

/// Inserts, predicts and collects one flow, with `in_flight` flows in flight.
#[divan::bench(args = [1, 100], sample_count = 20)]
fn shared_bandwidth(bencher: Bencher<'_, '_>, in_flight: usize) {
    each_event(bencher, || link::completions(in_flight, EVENTS));
}

/// The same with a random cap for each flow, so that the level keeps crossing caps.
#[divan::bench(args = [1, 100], sample_count = 20)]
fn shared_bandwidth_capped(bencher: Bencher<'_, '_>, in_flight: usize) {
    each_event(bencher, || link::capped_completions(in_flight, EVENTS));
}
