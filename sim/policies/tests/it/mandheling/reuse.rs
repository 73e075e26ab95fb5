//! Which subgraphs stay prepared, against all choices and against a cache.

use haversack_devices::units::Bytes;
use haversack_policies::mandheling::subgraphs::{ReusePlan, plan, runs};
use proptest::prelude::*;

fn bytes(sizes: &[u64]) -> Vec<Bytes> {
    sizes.iter().copied().map(Bytes).collect()
}

fn again(sizes: &[u64], memory: u64) -> Vec<bool> {
    plan(&bytes(sizes), Bytes(memory)).unwrap().prepared_again
}

#[test]
fn a_subgraph_is_a_run_that_the_cpu_does_not_interrupt() {
    let (on, off) = (true, false);
    assert_eq!(runs(&[on, on, off, on, off, off, on], &[false; 7]), [0..2, 3..4, 6..7]);
    // The third is a rescaling that rarely runs.
    let absent = [false, false, true, false, false, false, false];
    assert_eq!(runs(&[on, on, off, on, off, off, on], &absent), [0..4, 6..7]);
    // At an end of a run it does not belong to the run.
    assert_eq!(runs(&[off, on, off, off, on], &[true, false, true, false, false]), [1..2, 4..5]);
    assert_eq!(runs(&[off, off], &[false; 2]), []);
}

#[test]
fn what_fits_stays() {
    assert_eq!(again(&[3, 4, 5], 12), [false; 3]);
    assert_eq!(again(&[], 0), [false; 0]);
}

#[test]
fn what_stays_fits_together_with_the_largest_that_does_not() {
    // 4 of 5 equal ones fit: three stay, next to the one that comes and goes.
    assert_eq!(again(&[2; 5], 8).iter().filter(|&&again| again).count(), 2);
    // Releasing only one never helps: it does not fit next to all others. Without both 3s, 5 + 1 + 1 stay next to a 3.
    assert_eq!(again(&[5, 3, 1, 1, 3], 10), [false, true, false, false, true]);
    // Both 1s go, and 4 + 3 stay next to one of them; without the 3 and a 1, as few preparations, only 4 + 1 would.
    assert_eq!(again(&[4, 1, 3, 1], 8), [false, true, false, true]);
    // The 6 needs all the room at its turn, so nothing stays.
    assert_eq!(again(&[6, 4, 1], 6), [true; 3]);
}

#[test]
fn one_that_does_not_fit_alone_is_named() {
    let error = plan(&bytes(&[3, 9, 4]), Bytes(8)).unwrap_err();
    assert_eq!(error.to_string(), "subgraph 1 takes 9 B; expected at most 8 B");
}

/// The fewest preparations over all sets that stay.
fn exhaustive(sizes: &[u64], memory: u64) -> usize {
    let fits = |stays: u32| {
        let sum = |stays: u32| (0..sizes.len()).filter(|i| stays >> i & 1 == 1).map(|i| sizes[i]).sum::<u64>();
        (0..sizes.len()).all(|i| sum(stays | 1 << i) <= memory)
    };
    let sets = (0..1_u32 << sizes.len()).filter(|&stays| fits(stays));
    sets.map(|stays| sizes.len() - stays.count_ones() as usize).min().unwrap()
}

/// Preparations of the last of many iterations with a cache that releases the least recently used.
fn least_recently_used(sizes: &[u64], memory: u64) -> usize {
    let (mut there, mut preparations) = (Vec::<usize>::new(), 0);
    for _ in 0..20 {
        preparations = 0;
        for (place, size) in sizes.iter().enumerate() {
            if let Some(found) = there.iter().position(|&other| other == place) {
                there.remove(found);
            } else {
                preparations += 1;
                while there.iter().map(|&other| sizes[other]).sum::<u64>() + size > memory {
                    there.remove(0);
                }
            }
            there.push(place);
        }
    }
    preparations
}

#[test]
fn a_cache_that_releases_the_least_recently_used_keeps_nothing() {
    // It always releases the one that is needed next.
    assert_eq!(least_recently_used(&[2; 5], 8), 5);
    assert_eq!(least_recently_used(&[5, 3, 1, 1, 3], 10), 5);
}

proptest! {
    #![proptest_config(super::cases(500))]

    #[test]
    fn no_set_that_stays_saves_more(sizes in prop::collection::vec(1_u64..30, 0..=10), share in 0_u64..=100) {
        let (largest, all) = (sizes.iter().copied().max().unwrap_or(0), sizes.iter().sum::<u64>());
        let memory = largest + (all - largest) * share / 100;
        let ReusePlan { prepared_again, kept } = plan(&bytes(&sizes), Bytes(memory)).unwrap();
        let count = prepared_again.iter().filter(|&&again| again).count();
        prop_assert_eq!(count, exhaustive(&sizes, memory));
        prop_assert!(count <= least_recently_used(&sizes, memory));
        let stays = sizes.iter().zip(&prepared_again).filter(|(_, again)| !**again).map(|(&size, _)| size).sum();
        prop_assert_eq!(kept, Bytes(stays));
        for (&size, _) in sizes.iter().zip(&prepared_again).filter(|(_, again)| **again) {
            prop_assert!(kept.0 + size <= memory);
        }
    }
}
