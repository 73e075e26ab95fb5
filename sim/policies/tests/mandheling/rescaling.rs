//! How scale factors change, and how often they are taken anew.

use haversack_policies::mandheling::rescaling::{LONGEST_INTERVAL, Rescaler};
use haversack_policies::mandheling::scales::ScaleProcess;
use proptest::prelude::*;

/// The batches of `0..batches` in which a factor is taken anew that changes every `interval` batches.
fn turns(mut rescaler: Rescaler, interval: u64, batches: u64) -> Vec<u64> {
    let (mut held, mut turns) = (0, Vec::new());
    for batch in 0..batches {
        if rescaler.due(batch) {
            let scale = batch / interval;
            rescaler.observe(batch, scale != held);
            held = scale;
            turns.push(batch);
        }
    }
    turns
}

#[test]
fn a_factor_is_taken_anew_twice_between_its_changes() {
    // Eight batches without a change: every 8 / 2 = 4. The next eight end with batch 36 and saw the change at 20:
    // 29 / 2 = 14. With a gap of 14 the history of 8 × 14 batches holds 5 or 6 changes: every 9 to 11. From then on
    // 80 batches hold 4: every 10.
    let turns = turns(Rescaler::new(8, 0, 1), 20, 2_000);
    assert_eq!(turns[..8], [0, 1, 2, 3, 4, 5, 6, 7]);
    let late: Vec<u64> = turns.iter().copied().filter(|&turn| turn >= 1_000).collect();
    assert!(late.windows(2).all(|two| two[1] - two[0] == 10), "{late:?}");
}

#[test]
fn each_history_decides_about_the_next() {
    let mut rescaler = Rescaler::new(4, 0, 1);
    for batch in 0..3 {
        assert!(rescaler.due(batch));
        rescaler.observe(batch, batch == 1);
        assert_eq!(rescaler.period(), 1);
    }
    // Four batches with one change, every 4 batches: every second is enough.
    rescaler.observe(3, false);
    assert_eq!(rescaler.period(), 2);
    assert!(!rescaler.due(3) && rescaler.due(4));
    for batch in [4, 6, 8] {
        rescaler.observe(batch, false);
        assert_eq!(rescaler.period(), 2);
        assert!(!rescaler.due(batch + 1) && rescaler.due(batch + 2));
    }
    // Seven batches since the first history ended, without a change: 7 / 2.
    rescaler.observe(10, false);
    assert_eq!(rescaler.period(), 3);
    // Turns are the multiples of 3, and the second of three factors has every first batch after those.
    assert!(!rescaler.due(11) && rescaler.due(12));
    let mut second = Rescaler::new(4, 1, 3);
    for batch in [5, 6, 7, 10] {
        second.observe(batch, false);
    }
    // 1 + 1 + 1 + 3 batches, half of that.
    assert_eq!(second.period(), 3);
    assert!(!second.due(12) && second.due(13));
}

#[test]
fn a_factor_that_never_changes_is_looked_at_now_and_then() {
    let turns = turns(Rescaler::new(8, 0, 1), u64::MAX, 3_000);
    let gaps: Vec<u64> = turns.windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(gaps.iter().max(), Some(&(LONGEST_INTERVAL / 2)));
    assert_eq!(gaps.last(), Some(&(LONGEST_INTERVAL / 2)));
}

#[test]
fn one_that_always_changes_is_taken_anew_in_every_batch() {
    assert_eq!(turns(Rescaler::new(8, 0, 1), 1, 500).len(), 500);
}

proptest! {
    #![proptest_config(super::cases(50))]

    /// Factors that never change, all with the longest period: each batch has as many turns as any other, give or take one.
    #[test]
    fn turns_are_spread_evenly(factors in 1_u64..200, history in 4_u64..20) {
        let mut each = vec![0_u64; 300];
        for place in 0..factors {
            for turn in turns(Rescaler::new(history, place, factors), u64::MAX, 2_000) {
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
    // Halfway between thresholds, of standard deviation 0.3 to 0.4, the middle value has erf(0.5 / (0.4 √2)) = 79% or
    // more, and each neighbour half of the rest: 89%.
    let least = seen.iter().map(|seen| seen.two_values).min_by(f64::total_cmp).unwrap();
    assert!(least > 0.87, "{least}");
}

#[test]
fn the_interval_is_rices() {
    // At d widths from the level a threshold is crossed once in π / arccos ρ × exp(d² / 2) batches. Over a level drawn
    // uniformly, the thresholds at whole numbers are crossed width × √(2π) × arccos ρ / π times a batch; over widths of
    // 0.3 to 0.4 bits and memories m of 25 to 300 batches with a uniform logarithm, where arccos exp(−1/m) ≈ √(2/m):
    // E √(2/m) = √2 × 2 (1/√25 − 1/√300) / ln 12 = 0.1619, so 0.35 × 2.507 × 0.1619 / π = 0.0452.
    const BATCHES: u64 = 20_000;
    let layers = 300;
    let changes: u64 = (0..layers).map(|layer| watch(&format!("rice{layer}"), 1_000, BATCHES).changes).sum();
    let rate = changes as f64 / (layers * BATCHES) as f64;
    assert!((rate / 0.0452 - 1.0).abs() < 0.06, "{rate}");
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
