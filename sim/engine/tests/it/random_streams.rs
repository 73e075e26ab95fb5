//! Named random streams: fixed numbers, and independence of everything but the names.

use std::collections::HashSet;

use haversack_engine::Stream;
use rand::{Rng, RngExt};

fn first(seed: u64, component: &str, purpose: &str) -> [u64; 3] {
    let mut stream = Stream::new(seed, component, purpose);
    [stream.next_u64(), stream.next_u64(), stream.next_u64()]
}

#[test]
fn the_first_numbers_are_fixed() {
    // Computed independently, by a ChaCha8 in another language, from the documented key.
    assert_eq!(
        first(42, "background", "arrival"),
        [0x03ef_271b_9c3e_dadc, 0x5243_f820_d20b_4b3a, 0x257a_9599_cdfe_e43d]
    );
    assert_eq!(first(0, "", ""), [0x3193_404a_8151_7463, 0xd5e6_65ad_e2cc_75aa, 0x88ed_2e2a_b1ec_2846]);
}

#[test]
fn every_part_of_the_name_counts() {
    let names = [
        (1, "ab", "c"),
        (1, "a", "bc"),
        (1, "abc", ""),
        (1, "", "abc"),
        (1, "c", "ab"),
        (2, "ab", "c"),
        (1, "ab", "C"),
    ];
    let firsts: HashSet<_> = names.iter().map(|&(seed, component, purpose)| first(seed, component, purpose)).collect();
    assert_eq!(firsts.len(), names.len());
}

#[test]
fn drawing_from_one_stream_leaves_another_alone() {
    let undisturbed = first(7, "gpu", "jitter");
    let mut gpu = Stream::new(7, "gpu", "jitter");
    let mut dsp = Stream::new(7, "dsp", "jitter");
    let mixed = std::array::from_fn(|_| {
        let _: u64 = dsp.random();
        gpu.next_u64()
    });
    assert_eq!(undisturbed, mixed);
}

#[test]
fn streams_of_close_names_are_uncorrelated() {
    // The correlation of 10⁵ independent pairs has a standard error of 1/√10⁵ = 0.00316; three are 0.0095.
    let mut left = Stream::new(3, "device 1", "noise");
    let mut right = Stream::new(3, "device 2", "noise");
    let n = 100_000;
    let products: f64 = (0..n).map(|_| (left.random::<f64>() - 0.5) * (right.random::<f64>() - 0.5)).sum();
    // The variance of a uniform number is 1/12.
    let correlation = products / f64::from(n) * 12.0;
    assert!(correlation.abs() < 0.0095, "{correlation}");
}
