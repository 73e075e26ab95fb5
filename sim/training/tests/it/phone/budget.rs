//! A rule that decides the budget of training on a phone: its inputs, and the effect of its decisions.

use haversack_devices::units::{Bytes, Nanos};
use haversack_policies::budget::{Round, SwapKind};
use haversack_training::phone::Phone;
use haversack_training::{Record, RunError, simulate};

use super::{AGAIN, asleep, check, on, with_even_flash, with_games};
use crate::support::phones::{FIRST, ITERATION, MIB, PAGE, PEAK, app, ends, layer, ms, phone, pinned, recorded};
use crate::support::rule::{Ruled, Seen};
use crate::support::{Script, near, phone_cpu};

/// Seconds that a rule for the budget observes the phone before training.
const WATCHED: u64 = 120;

fn ruled(phone: &Phone, iterations: u32, budgets: &[Option<u64>]) -> (Result<Record, RunError>, Seen) {
    let graph = layer();
    let mut policy = Ruled::new(Script::default(), budgets);
    let record = simulate(&phone_cpu(), &on(phone, &graph, iterations), &mut policy);
    (record, policy.seen())
}

#[test]
fn a_rule_is_fed_once_a_second_and_decides_before_every_round() {
    let mut phone = phone(64, 0);
    phone.own = vec![pinned(10)];
    phone.apps = vec![app(Nanos::ZERO, "game", 0, 4), app(ms(60_000), "mail", 900, 5), ends(ms(130_000), "game")];
    let (record, seen) = ruled(&phone, 1_000, &[Some(30 * MIB), None, Some(40 * MIB)]);
    let record = record.unwrap();
    check(&record, "ruled");
    // The time of an iteration passed to the rule is the sum over its operators.
    near(seen.iteration, ITERATION.0, "an iteration");
    assert_eq!(record.planned, [Bytes(30 * MIB), Bytes(40 * MIB)]);
    // For two minutes before training begins, then during training: once a second, at the next operator's beginning.
    let times: Vec<Nanos> = seen.samples.iter().map(|sample| sample.0).collect();
    let watched: Vec<Nanos> = (0..WATCHED).map(|second| ms(second * 1_000)).collect();
    assert_eq!(times[..WATCHED as usize], watched);
    for pair in times.windows(2) {
        let apart = pair[1] - pair[0];
        assert!(apart >= ms(1_000) && apart < ms(1_000) + Nanos(10_020_000) + FIRST * (13 * MIB / PAGE), "{apart}");
    }
    let end = ms(WATCHED * 1_000) + record.iterations.iter().copied().sum();
    assert!(*times.last().unwrap() + ms(1_020) > end);
    // The first round begins after the sample at its start. No kills; new pages are not refaults.
    assert_eq!((seen.begun.len(), seen.begun[0]), (1_000, WATCHED as usize + 1));
    assert_eq!(seen.ended, [Round::default(); 1_000]);
    // 64 MiB less 10 pinned, 3 of the high watermark and the apps' 4 and 5; the trainer's memory counts as available.
    for (time, available, high, swap, adjustments) in seen.samples {
        let apps: &[i16] = match time.0 / 1_000_000_000 {
            0..60 => &[0],
            60..130 => &[0, 900],
            _ => &[900],
        };
        let taken: u64 = apps.iter().map(|&adj| if adj == 0 { 4 } else { 5 }).sum();
        assert_eq!((available, high), (Bytes((64 - 10 - 3 - taken) * MIB), Bytes(3 * MIB)), "{time}");
        assert_eq!((adjustments.as_slice(), swap), (apps, SwapKind::Flash), "{time}");
    }
}

#[test]
fn at_the_end_of_a_round_the_process_gives_its_memory_back() {
    let (phone, graph) = (phone(64, 0), layer());
    let run = |round| {
        let mut policy = Ruled::new(Script::default(), &[Some(PEAK), None, Some(PEAK)]);
        policy.round = round;
        (simulate(&phone_cpu(), &on(&phone, &graph, 6), &mut policy).unwrap(), policy.seen())
    };
    let (kept, seen) = run(None);
    // Pages come in once, and each iteration is a round.
    assert_eq!((seen.begun.len(), seen.ended.len()), (6, 6));
    assert!(kept.iterations[0] > kept.iterations[1] && kept.iterations[1..].windows(2).all(|two| two[0] == two[1]));
    // Every second iteration begins a round: all memory but the weights' is faulted in again.
    let (given_back, seen) = run(Some(2));
    assert_eq!((seen.begun.len(), seen.ended.len()), (3, 3));
    let times = &given_back.iterations;
    assert_eq!([times[1], times[3], times[5]], [kept.iterations[1]; 3]);
    assert!(times[2] > times[1] && times[2] == times[4] && times[2] <= times[0]);
    // All but the weights' pages, each as a new one.
    let anew = (times[2] - times[1]).0 / FIRST.0;
    assert!(anew > 0 && anew <= PEAK / PAGE, "{anew}");
}

#[test]
fn a_rules_budget_bounds_what_is_held() {
    let phone = phone(64, 0);
    // 25 MiB are enough, a byte less is not; the job's own budget counts where it is smaller.
    assert_eq!(ruled(&phone, 1, &[Some(PEAK)]).0.unwrap().peak_memory, Bytes(PEAK));
    assert_eq!(ruled(&phone, 2, &[Some(PEAK)]).0.unwrap().planned, [Bytes(PEAK)]);
    for (iterations, budgets) in [(1, vec![Some(PEAK - 1)]), (2, vec![Some(PEAK), Some(PEAK - 1)])] {
        let (result, seen) = ruled(&phone, iterations, &budgets);
        let error = result.unwrap_err();
        assert!(matches!(error, RunError::OutOfMemory { budget, .. } if budget == Bytes(PEAK - 1)), "{error}");
        assert_eq!(seen.begun.len(), iterations as usize);
    }
    let graph = layer();
    let mut smaller = on(&phone, &graph, 1);
    smaller.budgets.memory = Some(Bytes(PEAK - 2));
    let error = simulate(&phone_cpu(), &smaller, &mut Ruled::new(Script::default(), &[Some(PEAK)])).unwrap_err();
    assert!(matches!(error, RunError::OutOfMemory { budget, .. } if budget == Bytes(PEAK - 2)), "{error}");
}

#[test]
fn a_rule_is_asked_anew_after_a_kill() {
    let start = ms(WATCHED * 1_000);
    let phone = with_games(&[start + ms(30)]);
    let (record, seen) = ruled(&phone, 3, &[Some(30 * MIB), None, Some(28 * MIB), Some(26 * MIB)]);
    let record = record.unwrap();
    check(&record, "killed");
    assert_eq!(record.planned, [30, 28, 26].map(|mib| Bytes(mib * MIB)));
    assert_eq!(seen.begun.len(), 4);
    let rounds = [0, 1, 0].map(|kills| Round { kills, ..Round::default() });
    assert_eq!(seen.ended, rounds);
    // The same times as without a rule, two minutes later.
    assert_eq!(record.phone.as_ref().unwrap().kills[0].lost, Nanos(11_040_000) + AGAIN);
    // The budget is exceeded at the start of a round, and the iteration begins again within it.
    let (result, _) = ruled(&phone, 2, &[Some(30 * MIB), None, Some(PEAK - 1)]);
    let error = result.unwrap_err();
    assert!(matches!(error, RunError::OutOfMemory { budget, .. } if budget == Bytes(PEAK - 1)), "{error}");
}

#[test]
fn a_kill_may_come_when_memory_is_measured() {
    // Samples fall on the beginnings of the first iteration and of `make`, `rest` and so on; the game comes at the time
    // of a sample, whichever operator that is in.
    let start = ms(WATCHED * 1_000);
    for after in (0..60).map(|step| ms(970 + step * 2)) {
        let phone = with_games(&[start + after]);
        let (record, seen) = ruled(&phone, 80, &[]);
        let record = record.unwrap_or_else(|error| panic!("{after}: {error}"));
        check(&record, "measured");
        assert_eq!(record.phone.unwrap().kills.len(), 1);
        assert_eq!(seen.ended.iter().map(|round| round.kills).sum::<u64>(), 1);
    }
}

#[test]
fn a_rule_hears_of_the_trainers_faults_alone() {
    // A game of 6 MiB is in front, and half of both is on flash most of the time.
    let phone = Phone { apps: vec![app(Nanos::ZERO, "game", 0, 6)], ..with_even_flash(20) };
    let (record, seen) = ruled(&phone, 8, &[]);
    let span = record.unwrap().phone.unwrap().run;
    let faults: u64 = seen.ended.iter().map(|round| round.page_faults).sum();
    // A page at a time: as often as the thread slept for 100 µs.
    asleep(span.states, faults, "beside a game");
    assert!(faults > 1_000 && faults < span.counters.pgmajfault, "{faults} of {}", span.counters.pgmajfault);
    assert_eq!(seen.ended.len(), 8);
}

#[test]
fn a_rule_sees_no_app_that_is_dead() {
    let start = ms(WATCHED * 1_000);
    let mut phone = phone(48, 0);
    phone.apps = vec![app(Nanos::ZERO, "mail", 900, 12), app(start + ms(30), "game", 0, 16)];
    let (record, seen) = ruled(&phone, 100, &[]);
    assert_eq!(record.unwrap().phone.unwrap().apps_killed, 1);
    let last = seen.samples.last().unwrap();
    assert!(last.0 > start + ms(1_000));
    assert_eq!(last.4, [0]);
}

#[test]
fn a_rule_sees_the_memory_that_a_recording_leaves() {
    let mut phone = phone(64, 0);
    phone.own = vec![pinned(10)];
    // The system at rest uses 10 MiB and the 3 of the high watermark; a smaller recorded value changes nothing.
    phone.others = recorded(&[(Nanos::ZERO, 5), (ms(3_000), 20), (ms(121_500), 34), (ms(122_500), 18)], 0.0);
    let (record, seen) = ruled(&phone, 200, &[None]);
    let record = record.unwrap();
    check(&record, "recorded");
    assert_eq!(record.ended, ms(WATCHED * 1_000) + record.iterations.iter().copied().sum());
    for (time, available, ..) in &seen.samples {
        let held = match time.0 / 1_000_000 {
            0..3_000 => 13,
            3_000..121_500 => 20,
            121_500..122_500 => 34,
            _ => 18,
        };
        // Whole pieces of 256 KiB are 1 / 4 MiB.
        assert_eq!(*available, Bytes((64 - held) * MIB), "{time}");
    }
    assert!(seen.samples.iter().any(|sample| sample.0 > ms(122_500)));
}
