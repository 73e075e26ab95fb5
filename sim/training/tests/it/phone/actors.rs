//! The system, apps and the trainer with separate clocks.

use haversack_devices::units::{Bytes, Nanos};
use haversack_training::phone::Phone;
use haversack_training::{Stalls, simulate};

use super::{check, on, run, with_even_flash};
use crate::support::phones::{FIRST, MIB, PAGE, PEAK, app, ends, layer, ms, phone};
use crate::support::{Script, on_cores, with_storage};

#[test]
fn a_launch_takes_until_an_apps_pages_are_in() {
    // 8 MiB of first touches on a core of the trainer's speed: 2,048 × 1.2 µs. Then it goes to the background and comes
    // back with all its memory still present; then it ends and starts again.
    let mut phone = phone(64, 0);
    phone.front = phone.training;
    phone.apps = vec![
        app(ms(30), "game", 0, 8),
        app(ms(60), "game", 900, 8),
        app(ms(90), "game", 0, 8),
        ends(ms(120), "game"),
        app(ms(150), "game", 0, 8),
        app(ms(151), "mail", 900, 4),
    ];
    let record = run(&phone, &layer(), 12).unwrap();
    check(&record, "launches");
    let seen = record.phone.unwrap();
    let cold = FIRST * (8 * MIB / PAGE);
    assert_eq!(seen.run.launches, Stalls { count: 2, total: cold * 2, longest: cold });
    // The mail's page faults are stalls too, as are the trainer's first touches; they do not slow each other down.
    let mail = FIRST * (4 * MIB / PAGE);
    assert_eq!(seen.run.apps, Stalls { count: 3, total: cold * 2 + mail, longest: cold });
    assert_eq!(seen.run.trainer.total, FIRST * (PEAK / PAGE));
    assert_eq!((seen.run.system, seen.iteration.launches), (Stalls::default(), Stalls::default()));
}

#[test]
fn apps_that_are_there_from_the_start_are_not_launched() {
    let mut phone = phone(64, 0);
    phone.front = phone.training;
    phone.apps = vec![app(Nanos::ZERO, "game", 0, 8)];
    let seen = run(&phone, &layer(), 3).unwrap().phone.unwrap();
    assert_eq!((seen.run.launches, seen.run.apps), (Stalls::default(), Stalls::default()));
    assert_eq!(seen.run.used_peak, Bytes(PEAK + 8 * MIB));
}

/// Flash that takes 2 ms for a page, on a phone whose game of 6 MiB is in front; it has 20 MiB for 31.
fn slow() -> Phone {
    let even = with_even_flash(20);
    let slow = with_storage(&[
        ("storage.sequential_write", 1e6),
        ("storage.sequential_read", 1e6),
        ("storage.random_write", 1e6),
        ("storage.random_read", 1e6),
        ("storage.datasheet_read", 1e6),
        ("storage.datasheet_write", 1e6),
        ("storage.latency_read", 2_000.0),
    ]);
    Phone { flash: slow.device.flash().unwrap(), apps: vec![app(Nanos::ZERO, "game", 0, 6)], ..even }
}

#[test]
fn a_stalled_app_is_late_and_keeps_nobody_from_working() {
    let record = run(&slow(), &layer(), 8).unwrap();
    check(&record, "late");
    let seen = record.phone.unwrap().run;
    let seconds = seen.time.0 / 1_000_000_000;
    // Where most of its 1,536 pages are to be read, at 2 ms each, it is late for the next second, and the one after.
    assert!(seen.apps.longest > ms(1_500), "{:?}", seen.apps);
    assert!(seen.apps.count < seconds * 3 / 4, "{:?} in {}", seen.apps, seen.time);
    assert!(seen.apps.total <= seen.time, "one stall after the other");
    // Both stall most of the time, independently: their sum exceeds the total time, which it could not in one queue.
    assert!(seen.apps.total + seen.trainer.total > seen.time, "{:?} {:?} in {}", seen.apps, seen.trainer, seen.time);
    // Some actor stalls nearly always; all do only when the trainer does, which is not while it computes.
    let (some, full) = (seen.pressure.some, seen.pressure.full);
    assert!(some > full && some <= seen.time && some > seen.trainer.total, "{some} {full} {}", seen.time);
    assert!(full > Nanos::ZERO && full <= seen.trainer.total, "{full} of {}", seen.trainer.total);
}

#[test]
fn cores_that_train_fault_side_by_side() {
    // 25 MiB in 16, on flash that serves all requests simultaneously: four threads each sleep for a quarter of the time
    // for the same pages, and first touches take them a quarter.
    let phone = with_even_flash(16);
    let [one, four] = ["big:1", "big:4"].map(|cores| {
        let graph = layer();
        let record = simulate(&on_cores(cores, &[]), &on(&phone, &graph, 3), &mut Script::default()).unwrap();
        check(&record, cores);
        record.phone.unwrap().run
    });
    let each = |seen: &haversack_training::PhoneSpan| seen.states.sleeping.0 as f64 / seen.read_from_flash() as f64;
    assert!(one.read_from_flash() > 5_000 && four.read_from_flash() > 5_000);
    let times = each(&one) / each(&four);
    assert!((3.8..4.1).contains(&times), "{times}");
    let in_memory = simulate(&on_cores("big:4", &[]), &on(&self::phone(64, 0), &layer(), 1), &mut Script::default());
    assert_eq!(in_memory.unwrap().breakdown.reclaim, FIRST * (PEAK / PAGE / 4));
}

#[test]
fn kswapd_on_a_core_that_trains_keeps_the_trainer_waiting() {
    let graph = layer();
    let run = |kswapd_shares: bool| {
        let phone = Phone { kswapd_shares, ..with_even_flash(24) };
        let record = super::run(&phone, &graph, 3).unwrap();
        check(&record, "shared");
        let seen = record.phone.unwrap().run;
        (seen.states.runnable, seen.counters.pgsteal_kswapd, record.ended)
    };
    let [(alone, _, before), (shared, stolen, after)] = [false, true].map(run);
    // Each page that kswapd takes while the trainer works costs it 0.25 + 1 + 1.5 µs and more.
    assert!(stolen > 1_000 && shared > alone, "{shared} {alone} {stolen}");
    assert!(after > before, "{after} {before}");
}
