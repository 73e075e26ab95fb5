//! Benchmarks of single events: one key changes, then the maximum is picked.

use std::hint::black_box;

use crate::measure::{Random, race};
use crate::orders::{Activation, Order, Ours, Quotients, TwoMaps, TwoTrees, activations};

const EVENTS: usize = 20_000;

/// Follows a script of new importances and picks the maximum after each.
pub(crate) fn follow<T: Order>(order: &mut T, script: &[(u32, Activation)]) -> usize {
    for &(id, activation) in script {
        order.set(id, activation);
        black_box(order.max());
    }
    script.len()
}

/// Any activation's importance changes.
pub(crate) fn any() {
    println!("\nPer event: one importance changes (in both orders), one maximum is picked; ns (x of two BTreeMaps)");
    println!(
        "{:>7} {:>9} | {:>16} {:>16} {:>11} {:>12} {:>12} | sort / store",
        "n", "new key", "page table", "2 red-black", "2 BTreeMaps", "linear scan", "full re-sort"
    );
    for n in [1_000, 10_000, 100_000] {
        any_row(n, "random", |random, _| random.unit());
        any_row(n, "within 1%", |random, importance| importance * (0.99 + 0.02 * random.unit()));
    }
}

fn any_row(n: usize, kind: &str, next: impl Fn(&mut Random, f64) -> f64) {
    let all = activations(n);
    let mut random = Random(3);
    let mut now = all.clone();
    let script: Vec<_> = (0..EVENTS)
        .map(|_| {
            let id = random.below(n);
            now[id].importance = next(&mut random, now[id].importance);
            (id as u32, now[id])
        })
        .collect();
    let (mut ours, mut trees, mut maps) = (Ours::filled(&all), TwoTrees::filled(&all), TwoMaps::filled(&all));
    let (mut scanned, mut sorted) = (Quotients::of(&all), Quotients::of(&all));
    let scans = &script[..(2_000_000 / n).min(EVENTS)];
    let sorts = &script[..(200_000 / n).max(2)];
    let [store, trees, maps, scan, sort] = race(
        15,
        [
            Box::new(|| follow(&mut ours, &script)),
            Box::new(|| follow(&mut trees, &script)),
            Box::new(|| follow(&mut maps, &script)),
            Box::new(|| {
                for &(id, activation) in scans {
                    scanned.set(id, activation);
                    black_box(scanned.scan());
                }
                scans.len()
            }),
            Box::new(|| {
                for &(id, activation) in sorts {
                    sorted.set(id, activation);
                    black_box(sorted.sort());
                }
                sorts.len()
            }),
        ],
    );
    let beside = |time: f64| format!("{time:8.0} ({:4.2}x)", time / maps);
    println!(
        "{n:>7} {kind:>9} | {:>16} {:>16} {maps:>11.0} {scan:>12.0} {sort:>12.0} | {:.0}x",
        beside(store),
        beside(trees),
        sort / store
    );
}

/// The worst case for a tournament: the importance of the current maximum changes.
pub(crate) fn maximum() {
    println!("\nPer event: the maximum itself gets a new importance, the next is picked; ns (x of two BTreeMaps)");
    println!("{:>7} | {:>16} {:>16} {:>11}", "n", "page table", "2 red-black", "2 BTreeMaps");
    for n in [1_000, 10_000, 100_000] {
        let all = activations(n);
        let mut random = Random(5);
        let script: Vec<f64> = (0..EVENTS).map(|_| random.unit()).collect();
        let (mut ours, mut trees, mut maps) = (Ours::filled(&all), TwoTrees::filled(&all), TwoMaps::filled(&all));
        let [store, trees, maps] = race(
            15,
            [
                Box::new(|| follow_maximum(&mut ours, &all, &script)),
                Box::new(|| follow_maximum(&mut trees, &all, &script)),
                Box::new(|| follow_maximum(&mut maps, &all, &script)),
            ],
        );
        let beside = |time: f64| format!("{time:8.0} ({:4.2}x)", time / maps);
        println!("{n:>7} | {:>16} {:>16} {maps:>11.0}", beside(store), beside(trees));
    }
}

fn follow_maximum<T: Order>(order: &mut T, all: &[Activation], script: &[f64]) -> usize {
    for &importance in script {
        let id = order.max();
        order.set(id, Activation { importance, ..all[id as usize] });
    }
    script.len()
}
