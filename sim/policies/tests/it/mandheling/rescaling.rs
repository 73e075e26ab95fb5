//! Changes of scale factors, and how often the factors are recomputed.

use haversack_devices::Constant;
use haversack_devices::stack::FactorConstants;
use haversack_devices::units::Factor;
use haversack_policies::mandheling::factors::{LONGEST_INTERVAL, Rescaler, ScaleProcess};
use haversack_testing::GraphBuilder;
use haversack_workloads::Role;
use proptest::prelude::*;

use super::factors_that_scatter;

/// The batches of `0..batches` in which a factor with scale `scale` is recomputed.
fn turns(mut rescaler: Rescaler, scale: impl Fn(u64) -> u64, batches: u64) -> Vec<u64> {
    let (mut held, mut turns) = (0, Vec::new());
    for batch in 0..batches {
        if rescaler.due(batch) {
            rescaler.observe(batch, scale(batch) != held);
            held = scale(batch);
            turns.push(batch);
        }
    }
    turns
}

/// The period after `checks` checks `gap` batches apart, of which `changes` see a change.
fn period(checks: u64, gap: u64, changes: u64) -> u64 {
    let mut rescaler = Rescaler::new(checks, 0, 1);
    for check in 0..checks {
        rescaler.observe(check * gap, check < changes);
    }
    rescaler.period()
}

#[test]
fn half_the_interval_of_a_random_factor() {
    // Jumps every f = 20 batches at random. Every batch: (1 − exp(−2/20)) / 2 = 4.76% of checks see one; every 10
    // batches, 31.6%; every 40, 49.08%. The first check counts as one batch after none.
    for (gap, changes) in [(1, 4_760), (10, 31_610), (40, 49_090)] {
        let found = period(100_000, gap, changes);
        assert!(found == 9 || found == 10, "{found}");
    }
    // A check of 8 sees a change, each batch: −2 / ln(1 − 2/8) = 6.95.
    assert_eq!(period(8, 1, 1), 3);
    // None counts as half: −2 / ln(1 − 1/8) = 14.98. Half of them or more counts as 3.5: −2 / ln(1 − 7/8) = 0.96.
    assert_eq!(period(8, 1, 0), 7);
    assert_eq!((period(8, 1, 4), period(8, 1, 8)), (1, 1));
    // A gap of 15 (but for the first) that was too long: 0.96 × (7 × 15 + 1) / 8 = 12.7.
    assert_eq!(period(8, 15, 8), 6);
}

#[test]
fn each_history_decides_about_the_next() {
    let mut rescaler = Rescaler::new(4, 0, 1);
    for batch in 0..4 {
        assert!(rescaler.due(batch));
        assert_eq!(rescaler.period(), 1);
        rescaler.observe(batch, false);
    }
    // −2 / ln(1 − 2 × 0.5/4) = 6.95 batches, half of that. Turns are the multiples of it.
    for batch in [6, 9, 12] {
        assert_eq!(rescaler.period(), 3);
        assert!(!rescaler.due(batch - 1) && rescaler.due(batch));
        rescaler.observe(batch, false);
    }
    // Four with gaps of 3: three times as many, 20.86.
    rescaler.observe(15, false);
    assert_eq!(rescaler.period(), 10);
    assert!(!rescaler.due(19) && rescaler.due(20));
    // The second of three factors has its turns a third of a period later.
    let mut second = Rescaler::new(4, 1, 3);
    for batch in 0..4 {
        second.observe(batch, false);
    }
    assert_eq!(second.period(), 3);
    assert!(!second.due(3) && second.due(4));
    second.observe(4, false);
    assert!(!second.due(6) && second.due(7));
}

#[test]
fn a_factor_that_never_changes_is_looked_at_now_and_then() {
    let turns = turns(Rescaler::new(8, 0, 1), |_| 0, 3_000);
    let gaps: Vec<u64> = turns.windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(gaps.iter().max(), Some(&(LONGEST_INTERVAL / 2)));
    assert_eq!(gaps.last(), Some(&(LONGEST_INTERVAL / 2)));
}

#[test]
fn one_that_always_changes_is_taken_anew_in_every_batch() {
    assert_eq!(turns(Rescaler::new(8, 0, 1), |batch| batch + 1, 500).len(), 500);
}

proptest! {
    #![proptest_config(super::cases(50))]

    /// Factors that never change, all with the longest period: the numbers of turns in batches differ by at most one.
    #[test]
    fn turns_are_spread_evenly(factors in 1_u64..200, history in 4_u64..20) {
        let mut each = vec![0_u64; 300];
        for place in 0..factors {
            for turn in turns(Rescaler::new(history, place, factors), |_| 0, 2_000) {
                if turn >= 1_700 {
                    each[turn as usize - 1_700] += 1;
                }
            }
        }
        let (least, most) = (each.iter().min().unwrap(), each.iter().max().unwrap());
        prop_assert!(most - least <= 1, "{least} to {most} for {factors} factors");
    }
}

/// Factors of a tensor with this name and role under these constants.
fn drawn(name: &str, role: Role, seed: u64, constants: &FactorConstants) -> Vec<u32> {
    let mut builder = GraphBuilder::default();
    let tensor = builder.tensor(role, 4);
    builder.graph.tensors[tensor as usize].name = name.to_owned();
    let mut process = ScaleProcess::of(builder.graph.tensor(tensor), seed, constants);
    (0..2_000).map(|_| process.next_batch()).collect()
}

/// The share of batches whose factor differs from that `apart` batches earlier.
fn changed(factors: &[u32], apart: usize) -> f64 {
    let pairs = factors.iter().zip(&factors[apart..]);
    pairs.filter(|(before, after)| before != after).count() as f64 / (factors.len() - apart) as f64
}

#[test]
fn factors_change_as_far_as_mini_batches_scatter() {
    // Two batches whose logarithms differ by D, anywhere between integers, have different factors with probability
    // min(1, |D|). D has the deviation √2 × 0.2, so that |D| is 0.2 × 2 / √π = 22.6% on average, and hardly ever above
    // 1.
    let constants = factors_that_scatter(0.2);
    let layers: Vec<_> = (0..400).map(|layer| drawn(&format!("{layer}"), Role::Activation, 7, &constants)).collect();
    let mean = |apart| layers.iter().map(|factors| changed(factors, apart)).sum::<f64>() / 400.0;
    // Batches scatter independently: the share of changes is the same between any two batches. Levels are drawn: shares
    // of layers scatter by 0.18, and their mean by a hundredth.
    for apart in [1, 2, 30] {
        assert!((mean(apart) - 0.226).abs() < 0.027, "{} at {apart}", mean(apart));
    }
    // A level at an integer changes in half of the batches; halfway between, at 2.5 deviations, in 2.5%.
    let mut shares: Vec<f64> = layers.iter().map(|factors| changed(factors, 1)).collect();
    shares.sort_by(f64::total_cmp);
    assert!((0.01..0.04).contains(&shares[0]) && (0.47..0.54).contains(&shares[399]), "{shares:?}");
    // Hardly any takes a third value.
    let values = |factors: &[u32]| factors.iter().max().unwrap() - factors.iter().min().unwrap();
    assert!(layers.iter().all(|factors| values(factors) <= 2));
}

#[test]
fn each_kind_of_tensor_scatters_by_its_own_constant() {
    let mut constants = factors_that_scatter(0.0);
    constants.weight_gradient = Some(Constant { value: Factor(1.0), ..constants.output.clone() });
    let of = |role| changed(&drawn("conv1", role, 7, &constants), 1);
    assert_eq!((of(Role::Activation), of(Role::Gradient)), (0.0, 0.0));
    // E min(1, |D|) with D of deviation √2 is 0.73, and with several integers in reach the level matters little.
    assert!((0.65..0.8).contains(&of(Role::ParameterGradient)), "{}", of(Role::ParameterGradient));
}

#[test]
fn a_tensors_draw_is_its_own() {
    let draw = |seed, name: &str| drawn(name, Role::Gradient, seed, &factors_that_scatter(0.5));
    assert_eq!(draw(1, "conv1"), draw(1, "conv1"));
    assert_ne!(draw(1, "conv1"), draw(2, "conv1"));
    assert_ne!(draw(1, "conv1"), draw(1, "conv2"));
}
