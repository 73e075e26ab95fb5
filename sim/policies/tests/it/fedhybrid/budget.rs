//! The memory budget: weights and averages by hand, conditions for a new decision, and the two baselines.

use haversack_devices::units::{Bytes, Nanos};
use haversack_policies::budget::{BudgetRule, Round, Sample, SampleError, SwapKind};
use haversack_policies::fedhybrid::Rule;
use haversack_policies::fedhybrid::predictor::{Parameters, Predictor, Weight};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn parameters(window_s: u64) -> Parameters {
    Parameters::for_epoch(Nanos(window_s * SECOND))
}

/// Available memory at a time in seconds; no watermark.
fn sample(seconds: u64, available: u64, adjustments: &[i16]) -> Sample<'_> {
    Sample {
        time: Nanos(seconds * SECOND),
        available: Bytes(available),
        watermark_high: Bytes(0),
        swap: SwapKind::Flash,
        adjustments,
    }
}

fn fed(rule: &mut dyn BudgetRule, samples: &[(u64, u64, &[i16])]) {
    for &(seconds, available, adjustments) in samples {
        rule.observe(&sample(seconds, available, adjustments)).unwrap();
    }
}

#[test]
fn safe_memory_leaves_the_watermark_once_or_twice() {
    let of = |swap| Sample { watermark_high: Bytes(56), swap, ..sample(0, 1000, &[]) }.safe();
    // 1000 − 56 and 1000 − 2 × 56.
    assert_eq!((of(SwapKind::Flash), of(SwapKind::Zram)), (Bytes(944), Bytes(888)));
    let short = Sample { watermark_high: Bytes(600), swap: SwapKind::Zram, ..sample(0, 1000, &[]) };
    assert_eq!(short.safe(), Bytes(0));
}

#[test]
fn the_foreground_weighs_most_and_the_launcher_little() {
    let weight = |adjustments: &[i16]| Weight::of(adjustments).as_f64();
    // An app in front (0 counts as 1): 1000 / 1. Music behind it, perceptible at 200: 1000 / 200.
    assert_eq!(weight(&[0]), 1000.0);
    assert_eq!(weight(&[1]), 1000.0);
    assert_eq!(weight(&[200]), 5.0);
    assert_eq!(weight(&[0, 200]), 1005.0);
    // While the launcher (600) is in front, the previous app is at 700 and others are cached.
    assert!((weight(&[600, 700, 900]) - (1000.0 / 600.0 + 1000.0 / 700.0 + 1000.0 / 900.0)).abs() < 1e-5);
    assert_eq!(weight(&[1000]), 1.0);
    // Adjustments below 0 do not belong to apps.
    assert_eq!(weight(&[-1000, -800, -1]), 0.0);
}

#[test]
fn the_prediction_is_the_weighted_average_of_the_window() {
    let mut predictor = Predictor::new(parameters(3));
    // `None` before the first sample; during the first period its average so far.
    assert_eq!(predictor.prediction(), None);
    fed(&mut predictor, &[(0, 100, &[200]), (0, 300, &[200])]);
    assert_eq!(predictor.prediction(), Some(Bytes(200)));
    // Period 0: 200 with weight 5. Period 1: 800 with weight 20. Then (5 × 200 + 20 × 800) / 25 = 680.
    fed(&mut predictor, &[(1, 800, &[50])]);
    assert_eq!(predictor.prediction(), Some(Bytes(200)));
    fed(&mut predictor, &[(2, 500, &[200])]);
    assert_eq!(predictor.prediction(), Some(Bytes(680)));
    // (1000 + 16000 + 5 × 500) / 30 = 650. The next sample drops period 0: (16000 + 2500 + 20 × 100) / 45 = 455.6.
    fed(&mut predictor, &[(3, 100, &[50])]);
    assert_eq!(predictor.prediction(), Some(Bytes(650)));
    fed(&mut predictor, &[(4, 100, &[50])]);
    assert_eq!(predictor.prediction(), Some(Bytes(455)));
    // After a gap of a day no earlier data are left.
    fed(&mut predictor, &[(86_400, 70, &[0]), (86_401, 0, &[0])]);
    assert_eq!(predictor.prediction(), Some(Bytes(70)));
}

#[test]
fn a_launch_moves_the_prediction_less_than_the_app_that_follows() {
    // Nine seconds in an app with 1000 available, one second at the launcher with 200: the plain average is 920.
    // Weighted: (9 × 1000 × 1000 + 3.095 × 200) / 9003.095 = 999.7.
    let mut predictor = Predictor::new(parameters(10));
    for second in 0..=10 {
        let (available, adjustments): (u64, &[i16]) = if second == 4 { (200, &[600, 700]) } else { (1000, &[0]) };
        fed(&mut predictor, &[(second, available, adjustments)]);
    }
    assert_eq!(predictor.prediction(), Some(Bytes(999)));
}

#[test]
fn without_any_activity_periods_count_alike() {
    let mut predictor = Predictor::new(parameters(10));
    fed(&mut predictor, &[(0, 100, &[]), (1, 200, &[-800]), (2, 0, &[])]);
    assert_eq!(predictor.prediction(), Some(Bytes(150)));
    // Once one is known the others have weight zero.
    fed(&mut predictor, &[(3, 40, &[900]), (4, 0, &[])]);
    assert_eq!(predictor.prediction(), Some(Bytes(40)));
}

#[test]
fn the_window_slides_by_its_step() {
    let mut predictor = Predictor::new(Parameters { slide: Nanos(2 * SECOND), ..parameters(10) });
    let mut seen = Vec::new();
    for second in 0..6 {
        fed(&mut predictor, &[(second, 100 * second, &[0])]);
        seen.push(predictor.prediction().unwrap().0);
    }
    // Periods end when the next begins: predictions at periods 0, 2 (0, 100, 200 → 100) and 4 (→ 200).
    assert_eq!(seen, [0, 0, 0, 100, 100, 200]);
}

#[test]
fn a_sample_that_cannot_be_is_refused_and_left_out() {
    for rule in [Rule::Predicted, Rule::Initial, Rule::EveryRound] {
        let mut rule = rule.start(parameters(10));
        fed(rule.as_mut(), &[(5, 100, &[0])]);
        let reversed = SampleError::Reversed { found: Nanos(4 * SECOND), last: Nanos(5 * SECOND) };
        assert_eq!(rule.observe(&sample(4, 900, &[0])), Err(reversed));
        assert!(reversed.to_string().contains("expected times that do not fall"));
        assert_eq!(rule.observe(&sample(6, 900, &[0, 1001])), Err(SampleError::Adjustment(1001)));
        assert_eq!(rule.observe(&sample(6, 900, &[-1001])), Err(SampleError::Adjustment(-1001)));
        assert_eq!(rule.begin_round(), Some(Bytes(100)));
    }
}

fn round(page_faults: u64) -> Round {
    Round { page_faults, kills: 0 }
}

/// A predictor with 10 seconds of history, whose first plan is made.
fn planned() -> Predictor {
    let mut predictor = Predictor::new(parameters(10));
    for second in 0..=10 {
        fed(&mut predictor, &[(second, 100 * second, &[0])]);
    }
    // (0 + 100 + … + 900) / 10 = 450.
    assert_eq!(predictor.begin_round(), Some(Bytes(450)));
    assert_eq!(predictor.begin_round(), None);
    predictor
}

#[test]
fn faults_beyond_twice_the_average_want_a_new_plan() {
    let mut predictor = planned();
    // The first round has no earlier ones, so it never triggers a plan.
    for faults in [90, 110] {
        predictor.end_round(round(faults));
        assert_eq!(predictor.begin_round(), None);
    }
    // The average is 100: exactly 2 × 100 does not exceed it.
    predictor.end_round(round(200));
    assert_eq!(predictor.begin_round(), None);
    // (90 + 110 + 200) / 3 × 2 = 266.7.
    predictor.end_round(round(267));
    // W: 0.9 × 10 s = 9 s; (100 + … + 900) / 9 = 500.
    assert_eq!(predictor.begin_round(), Some(Bytes(500)));
    assert_eq!(predictor.window(), Nanos(9 * SECOND));
    assert_eq!(predictor.begin_round(), None);
}

#[test]
fn more_than_three_kills_want_a_new_plan() {
    let mut predictor = planned();
    predictor.end_round(Round { page_faults: 0, kills: 2 });
    predictor.end_round(Round { page_faults: 0, kills: 1 });
    assert_eq!(predictor.begin_round(), None);
    predictor.end_round(Round { page_faults: 0, kills: 1 });
    assert_eq!(predictor.begin_round(), Some(Bytes(500)));
    // A new plan counts from zero.
    predictor.end_round(Round { page_faults: 0, kills: 3 });
    assert_eq!(predictor.begin_round(), None);
    predictor.end_round(Round { page_faults: 0, kills: 1 });
    // 0.9 × 9 s = 8.1 s contains 9 points, 8 back from the newest: (100 + … + 900) / 9.
    assert_eq!(predictor.begin_round(), Some(Bytes(500)));
    assert_eq!(predictor.window(), Nanos(8_100_000_000));
}

#[test]
fn the_window_never_falls_below_a_period() {
    let mut predictor = planned();
    for _ in 0..60 {
        predictor.end_round(Round { page_faults: 0, kills: 4 });
        predictor.begin_round();
    }
    // 10 s × 0.9^60 would be 18 ms; one period is left, the newest.
    assert_eq!(predictor.window(), Nanos(SECOND));
    assert_eq!(predictor.prediction(), Some(Bytes(900)));
}

#[test]
fn the_baselines_take_what_is_measured() {
    let mut initial = Rule::Initial.start(parameters(10));
    let mut every = Rule::EveryRound.start(parameters(10));
    for rule in [&mut initial, &mut every] {
        assert_eq!(rule.begin_round(), None);
        // No watermark is subtracted, and nothing is weighted.
        rule.observe(&Sample { watermark_high: Bytes(50), ..sample(0, 800, &[]) }).unwrap();
        fed(rule.as_mut(), &[(1, 600, &[0])]);
    }
    assert_eq!((initial.begin_round(), every.begin_round()), (Some(Bytes(800)), Some(Bytes(600))));
    for rule in [&mut initial, &mut every] {
        fed(rule.as_mut(), &[(2, 300, &[0])]);
        rule.end_round(Round { page_faults: 1_000_000, kills: 9 });
    }
    assert_eq!((initial.begin_round(), every.begin_round()), (None, Some(Bytes(300))));
}

proptest! {
    #![proptest_config(super::cases(256))]

    #[test]
    fn the_prediction_lies_between_the_least_and_the_most_of_its_window(
        samples in prop::collection::vec((0..3_u64, 0..1_u64 << 40, prop::collection::vec(-1000..=1000_i16, 0..4)), 1..80),
        window in 1..20_u64,
        swap in prop::sample::select(vec![SwapKind::Flash, SwapKind::Zram]),
    ) {
        let mut predictor = Predictor::new(parameters(window));
        let (mut now, mut safe) = (0, Vec::new());
        for (step, available, adjustments) in &samples {
            now += step;
            let watermark_high = Bytes(1 << 30);
            let taken = Sample { watermark_high, swap, ..sample(now, *available, adjustments) };
            predictor.observe(&taken).unwrap();
            safe.push((now, taken.safe()));
            // The newest second that has ended, and `window` seconds up to it; at first the current one.
            let ended = safe.iter().map(|&(second, _)| second).filter(|&second| second < now).max();
            let newest = ended.unwrap_or(now);
            let within = || safe.iter().filter(|(second, _)| (newest + 1).saturating_sub(window) <= *second && *second <= newest);
            let least = within().map(|&(_, safe)| safe).min().unwrap();
            let most = within().map(|&(_, safe)| safe).max().unwrap();
            let predicted = predictor.prediction().unwrap();
            prop_assert!((least..=most).contains(&predicted), "{least} {predicted} {most}");
        }
    }

    #[test]
    fn the_running_sums_are_those_of_the_window(
        samples in prop::collection::vec((0..1_000_u64, 0..=1000_i16), 2..60),
        window in 1..12_u64,
    ) {
        // One sample a second, so that each period is one sample.
        let mut predictor = Predictor::new(parameters(window));
        for (second, (available, adjustment)) in samples.iter().enumerate() {
            fed(&mut predictor, &[(second as u64, *available, &[*adjustment])]);
        }
        // All but the last, whose second has not ended.
        let ended = &samples[..samples.len() - 1];
        let last = &ended[ended.len().saturating_sub(window as usize)..];
        let weight = |adjustment: i16| 1000.0 / f64::from(adjustment.max(1));
        let weights: f64 = last.iter().map(|&(_, adjustment)| weight(adjustment)).sum();
        let weighted: f64 = last.iter().map(|&(available, adjustment)| weight(adjustment) * available as f64).sum();
        let predicted = predictor.prediction().unwrap().0 as f64;
        // Rounded down, and weights to a millionth.
        prop_assert!((weighted / weights - predicted - 0.5).abs() < 0.51, "{predicted} {}", weighted / weights);
    }
}
