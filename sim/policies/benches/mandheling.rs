//! Deciding which operators run on the DSP, for rows of operators.
#![allow(missing_docs)]

use divan::Bencher;
use divan::counter::ItemsCount;
use haversack_devices::units::{Bytes, Nanos};
use haversack_policies::mandheling::placement::assign;
use haversack_policies::mandheling::subgraphs::plan;

fn main() {
    divan::main();
}

/// A number below `below`, from a fixed sequence.
fn drawn(place: u64, below: u64) -> u64 {
    (place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 33) % below
}

/// Items are operators; a tenth of them the DSP cannot run.
#[divan::bench(args = [100, 1_000, 10_000])]
fn coschedule(bencher: Bencher<'_, '_>, operators: u64) {
    let cpu: Vec<Nanos> = (0..operators).map(|place| Nanos(drawn(place, 40_000_000))).collect();
    let dsp: Vec<Option<Nanos>> =
        (operators..2 * operators).map(|place| (place % 10 > 0).then(|| Nanos(drawn(place, 10_000_000)))).collect();
    let switch: Vec<Nanos> = (2 * operators..3 * operators).map(|place| Nanos(drawn(place, 25_000_000))).collect();
    bencher.counter(ItemsCount::new(operators)).bench_local(|| assign(&cpu, &dsp, &switch));
}

/// Items are subgraphs, of which about half fit.
#[divan::bench(args = [10, 100])]
fn reuse(bencher: Bencher<'_, '_>, subgraphs: u64) {
    let bytes: Vec<Bytes> = (0..subgraphs).map(|place| Bytes(1 + drawn(place, 40_000_000))).collect();
    let memory = Bytes(40_000_000 + 10_000_000 * subgraphs);
    bencher.counter(ItemsCount::new(subgraphs)).bench_local(|| plan(&bytes, memory));
}
