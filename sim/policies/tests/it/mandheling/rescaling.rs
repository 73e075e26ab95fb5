//! How scale factors change, and how often they are taken anew.

use haversack_policies::mandheling::rescaling::{LONGEST_INTERVAL, Rescaler};
use haversack_policies::mandheling::scales::ScaleProcess;
use proptest::prelude::*;

/// The batches of `0..batches` in which a factor is taken anew whose scale `scale` gives.
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

/// After so many checks `gap` batches apart of which so many see a change, the period.
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

    /// Factors that never change, all with the longest period: each batch has as many turns as any other, give or take one.
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

/// What a layer's factor did in so many batches after the first `skipped`.
struct Seen {
    changes: u64,
    /// Jumps by more than one.
    leaps: u64,
    /// The share of batches that the two most frequent values take.
    two_values: f64,
}

fn watch(layer: &str, skipped: usize, batches: u64) -> Seen {
    let mut process = ScaleProcess::new(7, layer);
    let mut last = (0..skipped).map(|_| process.next_batch()).last().unwrap_or_default();
    let mut counts = [0_u64; 64];
    let (mut changes, mut leaps) = (0, 0);
    for _ in 0..batches {
        let scale = process.next_batch();
        changes += u64::from(scale != last);
        leaps += u64::from(scale.abs_diff(last) > 1);
        counts[scale as usize] += 1;
        last = scale;
    }
    counts.sort_unstable();
    Seen { changes, leaps, two_values: (counts[63] + counts[62]) as f64 / batches as f64 }
}

#[test]
fn factors_jump_between_neighbours_every_ten_to_sixty_batches() {
    // 40,000 batches have hundreds of changes, so that a mean is known to a few percent.
    const BATCHES: u64 = 40_000;
    let seen: Vec<Seen> = (0..150).map(|layer| watch(&format!("layer{layer}"), 1_000, BATCHES)).collect();
    let mut intervals: Vec<f64> = seen.iter().map(|seen| BATCHES as f64 / seen.changes as f64).collect();
    intervals.sort_by(f64::total_cmp);
    // Figure 4(b): per 10–60 batches; layers reach near both ends.
    assert!(intervals[0] > 10.0 && intervals[149] < 60.0, "{} to {}", intervals[0], intervals[149]);
    assert!(intervals[0] < 14.0 && intervals[149] > 40.0, "{} to {}", intervals[0], intervals[149]);
    let (changes, leaps) = seen.iter().fold((0, 0), |sum, seen| (sum.0 + seen.changes, sum.1 + seen.leaps));
    assert!(leaps * 1_000 < changes, "{leaps} of {changes}");
    // Halfway between thresholds and of standard deviation 0.45, the middle value has erf(0.5 / (0.45 √2)) = 73%, and
    // each neighbour half of the rest: 87%.
    let least = seen.iter().map(|seen| seen.two_values).min_by(f64::total_cmp).unwrap();
    assert!(least > 0.85, "{least}");
}

#[test]
fn the_interval_is_rices() {
    // At d standard deviations from the level a threshold is crossed once in π / arccos r × exp(d² / 2) batches, where
    // neighbouring batches correlate by r = 2ρ / (1 + ρ²) = 1 / cosh(1/m), so that arccos r ≈ 1/m. Over levels drawn
    // uniformly, whole numbers are crossed width × √(2π) × arccos r / π times a batch; over widths of 0.35 to 0.45 and
    // memories of 3.8 to 13.5 with a uniform logarithm, E 1/m = (1/3.8 − 1/13.5) / ln(13.5/3.8) = 0.1492, so
    // 0.4 × 2.507 × 0.1492 / π = 0.0476.
    const BATCHES: u64 = 20_000;
    let layers = 300;
    let changes: u64 = (0..layers).map(|layer| watch(&format!("rice{layer}"), 1_000, BATCHES).changes).sum();
    let rate = changes as f64 / (layers * BATCHES) as f64;
    assert!((rate / 0.0476 - 1.0).abs() < 0.06, "{rate}");
}

#[test]
fn factors_fall_and_change_more_often_at_first() {
    let layers = || (0..100).map(|layer| format!("layer{layer}"));
    let early: u64 = layers().map(|layer| watch(&layer, 0, 150).changes).sum();
    let late: u64 = layers().map(|layer| watch(&layer, 2_000, 150).changes).sum();
    assert!(early * 2 > late * 3, "{early} and {late}");
    // Three bits above its level at first: the mean over layers falls by three.
    let mean = |skipped: usize| {
        let sum: u32 = layers()
            .map(|layer| {
                let mut process = ScaleProcess::new(7, &layer);
                (0..=skipped).map(|_| process.next_batch()).last().unwrap()
            })
            .sum();
        f64::from(sum) / 100.0
    };
    let fallen = mean(0) - mean(1_500);
    assert!((2.6..3.4).contains(&fallen), "{fallen}");
}

#[test]
fn a_layers_draw_is_its_own() {
    let draw = |seed, layer: &str| {
        let mut process = ScaleProcess::new(seed, layer);
        (0..500).map(|_| process.next_batch()).collect::<Vec<_>>()
    };
    assert_eq!(draw(1, "conv1"), draw(1, "conv1"));
    assert_ne!(draw(1, "conv1"), draw(2, "conv1"));
    assert_ne!(draw(1, "conv1"), draw(1, "conv2"));
}
