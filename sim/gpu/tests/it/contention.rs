//! Atomics: the rounds in lock step with a slow twin, and their expectation against means over many orders.

use haversack_devices::AtomicCounts;
use haversack_gpu::counts::{counts_of, expected, harmonic};
use haversack_gpu::{Plan, Strategy as Meeting, Update};
use haversack_kernels::reduce::Statistic;
use proptest::prelude::*;

use crate::common::{both, machine, shuffled};
use crate::simt::atomic::{Operation, contend};
use crate::simt::reduction::run;

/// The slow twin: every contender remembers the value that it loaded, and all that are not done attempt in turn.
fn slowly(start: f32, operation: Operation, update: Update, values: &[f32]) -> (f32, AtomicCounts) {
    let mut cell = start;
    let mut loaded: Vec<Option<f32>> = vec![Some(start); values.len()];
    let mut counts = AtomicCounts { issued: values.len() as f64, ..AtomicCounts::default() };
    while loaded.iter().any(Option::is_some) {
        let mut failed = false;
        let mut changed = false;
        for (value, loaded) in values.iter().zip(&mut loaded) {
            let Some(assumed) = *loaded else { continue };
            let wanted = operation.apply(assumed, *value);
            if update == Update::Tested && wanted.to_bits() == assumed.to_bits() {
                *loaded = None;
                continue;
            }
            counts.attempts += 1.0;
            if assumed.to_bits() == cell.to_bits() {
                changed |= wanted.to_bits() != cell.to_bits();
                counts.changes += f64::from(u8::from(wanted.to_bits() != cell.to_bits()));
                cell = wanted;
                *loaded = None;
            } else {
                counts.retries += 1.0;
                *loaded = Some(cell);
                failed = true;
            }
        }
        counts.refetches += f64::from(u8::from(if update == Update::Tested { changed } else { failed }));
    }
    (cell, counts)
}

proptest! {
    #[test]
    fn rounds_are_those_of_the_slow_twin(
        values in proptest::collection::vec(prop_oneof![9 => (-20_i8..20).prop_map(f32::from), 1 => Just(f32::NAN)], 0..60),
        which in 0_usize..5,
    ) {
        let (operation, update, start) = [
            (Operation::Minimum, Update::Unconditional, f32::INFINITY),
            (Operation::Minimum, Update::Tested, f32::INFINITY),
            (Operation::Maximum, Update::Unconditional, 3.0),
            (Operation::Maximum, Update::Tested, f32::NEG_INFINITY),
            (Operation::Add, Update::Unconditional, 0.0),
        ][which];
        // A sum of NaN compares as itself forever in bits, which the twin does too; leave it to the extrema.
        let values: Vec<f32> = values.into_iter().filter(|x| operation != Operation::Add || !x.is_nan()).collect();
        let mut cell = start;
        let counts = contend(&mut cell, operation, update, &values, &mut Vec::new());
        let (slow_cell, slow) = slowly(start, operation, update, &values);
        prop_assert_eq!(cell.to_bits(), slow_cell.to_bits());
        prop_assert_eq!(counts, slow);
    }
}

fn minimum_of(values: &[f32], update: Update) -> AtomicCounts {
    contend(&mut f32::INFINITY.clone(), Operation::Minimum, update, values, &mut Vec::new())
}

#[test]
fn four_contenders_by_hand() {
    // Unconditional: 5 wins, three fail; 3 wins, two fail; 4 swaps 3 for itself, 1 wins. 4 + 3 + 2 attempts.
    let counts = minimum_of(&[5.0, 3.0, 4.0, 1.0], Update::Unconditional);
    let hand = AtomicCounts { issued: 4.0, attempts: 9.0, retries: 5.0, changes: 3.0, refetches: 2.0 };
    assert_eq!(counts, hand);
    // Tested: the same, but 4 sees 3 and leaves: 4 + 3 + 1 attempts. Each change was a trip.
    let counts = minimum_of(&[5.0, 3.0, 4.0, 1.0], Update::Tested);
    assert_eq!(counts, AtomicCounts { attempts: 8.0, refetches: 3.0, ..hand });
    // Native: one attempt each.
    let counts = minimum_of(&[5.0, 3.0, 4.0, 1.0], Update::Native);
    assert_eq!(counts, AtomicCounts { attempts: 4.0, retries: 0.0, refetches: 0.0, ..hand });
}

/// The atomics of a minimum with one element per thread, and one resident thread per unit.
fn by_threads(data: &[f32], units: u32, update: Update) -> AtomicCounts {
    let plan = Plan::new(Meeting::Atomic, 1).with_update(update);
    run(&plan, &[Statistic::Minimum], data, &machine(units, 1)).unwrap().counts.kernels[0].atomics[0]
}

#[test]
fn without_contenders_every_swap_succeeds() {
    let data = shuffled(1000);
    let alone = by_threads(&data, 1, Update::Unconditional);
    assert_eq!((alone.attempts, alone.retries, alone.refetches), (1000.0, 0.0, 0.0));
    // With a test, only threads that change the cell attempt at all.
    let tested = by_threads(&data, 1, Update::Tested);
    assert_eq!((tested.attempts, tested.changes), (alone.changes, alone.changes));
}

#[test]
fn retries_grow_with_residency_and_with_a_falling_order() {
    let data = shuffled(4096);
    let retries = [1, 4, 16, 64, 256].map(|units| by_threads(&data, units, Update::Unconditional).retries);
    assert!(retries.windows(2).all(|pair| pair[0] < pair[1]), "{retries:?}");
    let mut falling = data;
    falling.sort_by(|a, b| b.total_cmp(a));
    falling.dedup();
    let worst = by_threads(&falling, 16, Update::Unconditional);
    // Every value is a new minimum and fails those behind it: 15 + 14 + ... + 0 = 120 a full wave of 16.
    let (k, waves) = (falling.len(), falling.len() / 16);
    let rest = falling.len() % 16;
    assert_eq!(worst.changes, k as f64);
    assert_eq!(worst.retries, (waves * 120 + rest * rest.saturating_sub(1) / 2) as f64);
    // In rising order there is one change.
    falling.reverse();
    assert_eq!(by_threads(&falling, 16, Update::Unconditional).changes, 1.0);
}

#[test]
fn a_contended_sum_fails_everyone_else() {
    // Waves of four: 3 + 2 + 1 failures each, and three rounds to wait for.
    let plan = Plan::new(Meeting::Atomic, 1);
    let counts =
        run(&plan, &[Statistic::SumOfSquares], &[1.0; 8], &machine(4, 1)).unwrap().counts.kernels[0].atomics[0];
    assert_eq!(counts, expected(Statistic::SumOfSquares, Update::Unconditional, 8, 4));
    assert_eq!((counts.retries, counts.refetches, counts.attempts), (12.0, 6.0, 20.0));
    // A machine that adds natively has no contention.
    let native = haversack_gpu::Machine { adds_natively: true, ..machine(4, 1) };
    let counts = run(&plan, &[Statistic::SumOfSquares], &[1.0; 8], &native).unwrap().counts.kernels[0].atomics[0];
    assert_eq!((counts.attempts, counts.retries), (8.0, 0.0));
}

#[test]
fn the_expectation_is_the_mean_over_orders() {
    // 400 orders: the mean of each count has a standard error below 1% of what is asserted with 4%.
    for (k, q) in [(1, 1), (7, 3), (100, 100), (1000, 1), (1000, 64), (500, 499), (1030, 1), (3000, 2)] {
        for update in [Update::Unconditional, Update::Tested] {
            let orders = 400_u64;
            let mut sum = AtomicCounts::default();
            for order in 0..orders {
                // A multiplicative shuffle of 0..p has too much pattern; draw keys and rank them instead.
                let data = keys(k, order);
                let mut cell = f32::INFINITY;
                for wave in data.chunks(q as usize) {
                    let counts = contend(&mut cell, Operation::Minimum, update, wave, &mut Vec::new());
                    sum = both(sum, counts);
                }
            }
            let foretold = expected(Statistic::Minimum, update, k, q);
            let near = |sum: f64, foretold: f64| {
                let mean = sum / orders as f64;
                assert!(
                    (mean - foretold).abs() <= 0.04 * foretold.max(1.0),
                    "{k} of {q} {update:?}: {mean} {foretold}"
                );
            };
            near(sum.attempts, foretold.attempts);
            near(sum.retries, foretold.retries);
            near(sum.changes, foretold.changes);
            near(sum.refetches, foretold.refetches);
        }
    }
}

/// Values in a random order.
fn keys(k: u64, order: u64) -> Vec<f32> {
    let mut state = order.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ z >> 31) >> 40) as f32
    };
    (0..k).map(|_| next()).collect()
}

#[test]
fn late_waves_are_summed_as_well_as_early_ones() {
    // 5000 waves of 4, of which 1024 are computed and the rest summed: compared with computing all by the same formula.
    let (k, q) = (20_000.0, 4.0);
    let (mut retries, mut refetches) = (0.0, 0.0);
    for wave in 0..5000 {
        let before = f64::from(wave) * q;
        let improvements = harmonic(before + q) - harmonic(before);
        retries += (before + q) * improvements - q;
        refetches += improvements - 1.0 / (before + q);
    }
    let foretold = expected(Statistic::Minimum, Update::Unconditional, k as u64, q as u64);
    assert!((foretold.retries - retries).abs() < 1e-3 * retries);
    assert!((foretold.refetches - refetches).abs() < 1e-3 * refetches);
    assert!((harmonic(15.0) + 1.0 / 16.0 - harmonic(16.0)).abs() < 1e-5);
}

#[test]
fn the_closed_form_of_a_whole_plan_is_the_mean_of_its_runs() {
    // 60 orders of 8192 elements on 4 units x 4 blocks; the counts scatter by about a third, their mean by 5%.
    let machine = machine(4, 4);
    for plan in [
        Plan::new(Meeting::Hybrid, 64),
        Plan::epilogue(Meeting::Hybrid, 32, 1).with_update(Update::Tested),
        Plan::new(Meeting::ThreadThenBlock, 64),
        Plan::epilogue(Meeting::ThreadThenBlock, 128, 2).with_update(Update::Tested),
        Plan::new(Meeting::Atomic, 64),
    ] {
        let (mut atomics, mut shared) = (AtomicCounts::default(), 0.0);
        for order in 0..60 {
            let counts = run(&plan, &[Statistic::Minimum], &keys(8192, order), &machine).unwrap().counts;
            atomics = both(atomics, counts.kernels[0].atomics[0]);
            shared += counts.kernels[0].shared_attempts;
        }
        let foretold = &counts_of(&plan, &[Statistic::Minimum], 8192, &machine).unwrap().kernels[0];
        let near = |sum: f64, foretold: f64| {
            let mean = sum / 60.0;
            assert!((mean - foretold).abs() <= 0.15 * foretold, "{plan:?}: {mean} against {foretold}");
        };
        near(atomics.attempts, foretold.atomics[0].attempts);
        near(atomics.changes, foretold.atomics[0].changes);
        near(atomics.refetches, foretold.atomics[0].refetches);
        near(shared, foretold.shared_attempts);
    }
}
