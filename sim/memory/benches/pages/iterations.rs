//! Table 3 of the paper, a sort compared with red-black trees, as a function of the number of
//! changed keys and of activations.

use std::hint::black_box;

use haversack_memory::pages::order_cost::{self, OrderCost, OrderWorkload};

use crate::events::follow;
use crate::measure::{Method, Random, race};
use crate::orders::{Activation, OneTree, Order, Ours, Quotients, TwoMaps, TwoTrees, activations, quickselect};

/// The paper's ratio.
const PAPER: f64 = 3.5;

/// The point where a falling or rising row of (x, ratio) crosses the paper's ratio, interpolated
/// linearly between logarithms.
fn crossing(row: &[(f64, f64)]) -> Option<f64> {
    row.windows(2).find_map(|pair| {
        let [(x0, r0), (x1, r1)] = [pair[0], pair[1]];
        let crosses = (r0 - PAPER) * (r1 - PAPER) <= 0.0 && r0 != r1;
        crosses.then(|| x0 * (x1 / x0).powf((PAPER / r0).ln() / (r1 / r0).ln()))
    })
}

/// Some of the keys change, then victims are picked until a tenth of all bytes is free. For the next iteration they
/// return: either they leave the order and are inserted again, or the victims are only read by walking along the order.
pub(crate) fn shares() {
    println!("\nPer iteration: a share of the importances changes, then victims are picked for a tenth of the bytes");
    println!("us of one full sort, and how many times as fast the others are (r.b.: red-black trees)");
    println!(
        "{:>7} {:>6} | {:>8} | {:>12} {:>12} {:>12} | {:>12} {:>12} | {:>11}",
        "n", "share", "sort, us", "evicted: 2rb", "1 r.b.", "page table", "walked: 2rb", "1 r.b.", "quickselect"
    );
    for n in [60, 80, 100, 1_000, 10_000] {
        let rows = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0].map(|share| (share, shares_row(n, share)));
        let methods = ["2 r.b., evicted", "1 r.b., evicted", "page table", "2 r.b., walked", "1 r.b., walked"];
        let found: Vec<String> = (0..methods.len())
            .filter_map(|method| {
                let share = crossing(&rows.map(|(share, ratios)| (share, ratios[method])))?;
                Some(format!("{} at {:.1}%", methods[method], share * 100.0))
            })
            .collect();
        println!("        {PAPER}x: {}", if found.is_empty() { "nowhere".to_owned() } else { found.join(", ") });
    }
}

/// The sort's time over that of: two red-black trees and one, then the page table, with victims evicted; two trees and
/// one, with victims only read; and a quickselect.
fn shares_row(n: usize, share: f64) -> [f64; 6] {
    let all = activations(n);
    let goal = all.iter().map(|a| a.size).sum::<u64>() / 10;
    let script = changes(&all, share);
    let (mut ours, mut trees, mut tree) = (Ours::filled(&all), TwoTrees::filled(&all), OneTree::filled(&all));
    let (mut trees_walked, mut tree_walked) = (TwoTrees::filled(&all), OneTree::filled(&all));
    let mut sorted = Quotients::of(&all);
    let mut now: [Vec<Activation>; 7] = std::array::from_fn(|_| all.clone());
    let [now_sort, now_trees, now_tree, now_ours, now_trees_walked, now_tree_walked, now_quick] = &mut now;
    let mut packed = Vec::new();
    let [sort, others @ ..] = race(
        15,
        [
            Box::new(|| {
                each(&script, now_sort, |changes, now| {
                    changes.iter().for_each(|&(id, activation)| sorted.set(id, activation));
                    take(sorted.sort().iter().copied(), now, goal);
                })
            }) as Method<'_>,
            Box::new(|| each(&script, now_trees, |changes, now| evict(&mut trees, changes, now, goal))),
            Box::new(|| each(&script, now_tree, |changes, now| evict(&mut tree, changes, now, goal))),
            Box::new(|| each(&script, now_ours, |changes, now| evict(&mut ours, changes, now, goal))),
            Box::new(|| {
                each(&script, now_trees_walked, |changes, now| {
                    changes.iter().for_each(|&(id, activation)| trees_walked.set(id, activation));
                    take(trees_walked.descending(), now, goal);
                })
            }),
            Box::new(|| {
                each(&script, now_tree_walked, |changes, now| {
                    changes.iter().for_each(|&(id, activation)| tree_walked.set(id, activation));
                    take(tree_walked.descending(), now, goal);
                })
            }),
            Box::new(|| each(&script, now_quick, |_, now| quickselect(now, goal, &mut packed))),
        ],
    );
    let ratios = others.map(|time| sort / time);
    let [trees, tree, store, trees_walked, tree_walked, quick] = ratios.map(|ratio| format!("{ratio:.2}x"));
    println!(
        "{n:>7} {:>5.0}% | {:>8.2} | {trees:>12} {tree:>12} {store:>12} | {trees_walked:>12} {tree_walked:>12} | {quick:>11}",
        share * 100.0,
        sort / 1e3
    );
    ratios
}

/// Runs the iterations of a script, with the activations as each leaves them.
fn each(
    script: &[Vec<(u32, Activation)>],
    now: &mut [Activation],
    mut iteration: impl FnMut(&[(u32, Activation)], &[Activation]),
) -> usize {
    for changes in script {
        changes.iter().for_each(|&(id, activation)| now[id as usize] = activation);
        iteration(changes, now);
    }
    script.len()
}

/// Reads victims from an order.
fn take(order: impl Iterator<Item = u32>, now: &[Activation], goal: u64) {
    let mut freed = 0;
    for id in order {
        freed += now[black_box(id) as usize].size;
        if freed >= goal {
            break;
        }
    }
}

fn evict<T: Order>(order: &mut T, changes: &[(u32, Activation)], now: &[Activation], goal: u64) {
    changes.iter().for_each(|&(id, activation)| order.set(id, activation));
    let (mut freed, mut victims) = (0, Vec::new());
    while freed < goal {
        let id = order.max();
        freed += now[id as usize].size;
        order.remove(id);
        victims.push(id);
    }
    for id in victims {
        order.set(id, now[id as usize]);
    }
}

/// The changes of each iteration. If the share is less than one key, one key changes every few iterations.
fn changes(all: &[Activation], share: f64) -> Vec<Vec<(u32, Activation)>> {
    let mut random = Random(11);
    let mut now = all.to_vec();
    let mut due = 0.0;
    (0..(400_000 / all.len()).clamp(20, 2_000))
        .map(|_| {
            due += share * all.len() as f64;
            let count = due as usize;
            due -= count as f64;
            (0..count)
                .map(|_| {
                    let id = random.below(all.len());
                    now[id].importance = random.unit();
                    (id as u32, now[id])
                })
                .collect()
        })
        .collect()
}

/// Each of n arrivals changes one key by up to a tenth; then either all are sorted again or two orders are updated.
pub(crate) fn arrivals() {
    println!("\nPer iteration of n arrivals: at each, one importance changes by up to 10% and the maximum is picked");
    println!(
        "us of a full sort at each, and how many times as fast the others are; last, a sort of the list as it was"
    );
    println!(
        "{:>5} | {:>8} | {:>11} {:>11} {:>11} | {:>9}",
        "n", "sort, us", "2 red-black", "2 BTreeMaps", "page table", "kept list"
    );
    let rows = [10, 20, 30, 40, 50, 60, 70, 80, 100, 150, 223, 300].map(|n| (n as f64, arrivals_row(n)));
    for (name, method) in [("re-sorted from the order of ids", 0), ("the list as it was sorted again", 1)] {
        match crossing(&rows.map(|(n, ratios)| (n, ratios[method]))) {
            Some(n) => println!("      {PAPER} against two red-black trees, {name}, at n = {n:.0}"),
            None => println!("      {PAPER} against two red-black trees, {name}, at none of these n"),
        }
    }
}

/// The time of a sort, from the order of ids and of the kept list, over that of two red-black trees.
fn arrivals_row(n: usize) -> [f64; 2] {
    const ITERATIONS: usize = 200;
    let all = activations(n);
    let mut random = Random(13);
    let script: Vec<_> = (0..ITERATIONS * n)
        .map(|arrival| {
            let activation = all[arrival % n];
            let importance = activation.importance * (0.9 + 0.2 * random.unit());
            ((arrival % n) as u32, Activation { importance, ..activation })
        })
        .collect();
    let (mut ours, mut trees, mut maps) = (Ours::filled(&all), TwoTrees::filled(&all), TwoMaps::filled(&all));
    let (mut sorted, mut kept) = (Quotients::of(&all), Quotients::of(&all));
    let [sort, trees, maps, store, kept] = race(
        15,
        [
            Box::new(|| {
                for &(id, activation) in &script {
                    sorted.set(id, activation);
                    black_box(sorted.sort());
                }
                ITERATIONS
            }),
            Box::new(|| follow(&mut trees, &script) / n),
            Box::new(|| follow(&mut maps, &script) / n),
            Box::new(|| follow(&mut ours, &script) / n),
            Box::new(|| {
                for &(id, activation) in &script {
                    kept.set(id, activation);
                    black_box(kept.sort_kept());
                }
                ITERATIONS
            }),
        ],
    );
    let ratios = [trees, maps, store].map(|time| format!("{:>10.2}x", sort / time)).join(" ");
    println!("{n:>5} | {:>8.1} | {ratios} | {:>8.2}x", sort / 1e3, sort / kept);
    [sort / trees, kept / trees]
}

/// The same, counted in operations.
pub(crate) fn counts() {
    println!("\nOperations of one iteration (pages::order_cost): a sort at each arrival over two red-black trees");
    println!(
        "{:>5} {:>6} | {:>11} {:>9} | {:>11} {:>9} | {:>11} {:>7}",
        "n", "freed", "sort: cmp", "moves", "trees: cmp", "moves", "cmp, ratio", "moves"
    );
    for n in [20, 40, 60, 80, 100, 223] {
        for freed in [0.0, 0.1, 0.5] {
            let OrderCost { sort, tree, .. } =
                order_cost::iteration(n, &OrderWorkload { freed, ..OrderWorkload::default() });
            println!(
                "{n:>5} {freed:>6} | {:>11} {:>9} | {:>11} {:>9} | {:>10.2}x {:>6.2}x",
                sort.comparisons,
                sort.moves,
                tree.comparisons,
                tree.moves,
                sort.comparisons as f64 / tree.comparisons as f64,
                sort.moves as f64 / tree.moves as f64
            );
        }
    }
}
