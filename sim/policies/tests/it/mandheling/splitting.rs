//! The parts of a batch.

use haversack_devices::units::Nanos;
use haversack_policies::mandheling::placement::{Parts, split};
use proptest::prelude::*;

/// Microseconds at 1, 2, 4, … samples.
fn table(times: &[u64]) -> impl Fn(u64) -> Option<Nanos> {
    move |samples| times.get(samples.ilog2() as usize).map(|&time| Nanos(1_000 * time))
}

/// An operator that falls out of the cache beyond four samples.
const CLIFF: [u64; 5] = [800, 1_600, 2_400, 60_000, 120_000];

#[test]
fn a_batch_that_leaves_the_cache_is_split_before_it_does() {
    // 60 / 8 = 7.5 ms a sample against 2.4 / 4 = 0.6: abnormal. In fours 2 × 2.4 = 4.8 ms, in twos 4 × 1.6 = 6.4.
    let parts = split(table(&CLIFF), 8, Nanos::ZERO, 1.2);
    assert_eq!(parts, Some(Parts { samples: 4, time: Nanos(4_800_000) }));
    // 16 in fours is 9.6 ms, and three sums of 1 ms.
    let parts = split(table(&CLIFF), 16, Nanos(1_000_000), 1.2);
    assert_eq!(parts, Some(Parts { samples: 4, time: Nanos(12_600_000) }));
    // 14 in fours is 7.2 ms, the last two take 1.6, and there are three sums.
    let profile = |samples| if samples == 14 { Some(Nanos(100_000_000)) } else { table(&CLIFF)(samples) };
    assert_eq!(split(profile, 14, Nanos(1_000_000), 1.2), Some(Parts { samples: 4, time: Nanos(11_800_000) }));
}

#[test]
fn a_normal_batch_stays_whole() {
    // 0.8 ms a sample at 2 and 0.6 at 4.
    assert_eq!(split(table(&CLIFF), 4, Nanos::ZERO, 1.2), None);
    assert_eq!(split(table(&CLIFF), 1, Nanos::ZERO, 1.2), None);
    // A tenth more a sample is not noticeable, a quarter more is.
    assert_eq!(split(table(&[100, 220]), 2, Nanos::ZERO, 1.2), None);
    assert_eq!(split(table(&[100, 250]), 2, Nanos::ZERO, 1.2), Some(Parts { samples: 1, time: Nanos(200_000) }));
    // Sums that use up the gain.
    assert_eq!(split(table(&[100, 250]), 2, Nanos(50_000), 1.2), None);
    assert_eq!(split(|_| None, 8, Nanos::ZERO, 1.2), None);
}

#[test]
fn of_equal_times_the_larger_parts_win() {
    // 64 of batch 8: 8 × 1, 4 × 2 and 2 × 4 all take 8; the whole takes 16.
    assert_eq!(split(table(&[1, 2, 4, 16]), 8, Nanos::ZERO, 1.2), Some(Parts { samples: 4, time: Nanos(8_000) }));
}

proptest! {
    #![proptest_config(super::cases(200))]

    #[test]
    fn no_power_of_two_takes_less(times in prop::collection::vec(1_u64..1_000, 1..8), accumulation in 0_u64..100) {
        let batch = 1 << (times.len() - 1);
        let profile = table(&times);
        let whole = profile(batch).unwrap();
        let all = (0..times.len() - 1).map(|power| {
            let parts = batch >> power;
            Nanos(1_000 * times[power] * parts) + Nanos(accumulation) * (parts - 1)
        });
        let least = all.min().filter(|&least| least < whole);
        let chosen = split(profile, batch, Nanos(accumulation), 1.2);
        // An operator that gains more than the threshold from parts without sums is abnormal.
        match (chosen, least) {
            (Some(parts), least) => prop_assert_eq!(Some(parts.time), least),
            (None, Some(least)) => prop_assert!(whole.0 as f64 <= 1.2 * least.0 as f64),
            (None, None) => {}
        }
    }
}
