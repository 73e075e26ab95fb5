//! PSI and lmkd on a phone under pressure.

use haversack_devices::units::{Bytes, Factor, Nanos};
use haversack_memory::phone::lmkd::Lmkd;
use haversack_memory::phone::{Access, Backing, Kill, KillReason, PhoneMemory, ProcessId, Settings};

use super::support::{ANON, CORE, MIB, Simple, aosp, assert_conserved, modest, phone, regions};

const SECOND: u64 = 1_000_000_000;

/// 256 MiB with ZRAM of 64 and `cached` apps of 20 MiB each, all touched once.
fn with_apps(lmkd: Option<Lmkd>, cached: i32) -> (PhoneMemory, Simple, Vec<ProcessId>) {
    with_cached(Settings { zram: Bytes(64 * MIB), lmkd, ..modest(256 * MIB, 64 << 10) }, cached)
}

fn with_cached(settings: Settings, cached: i32) -> (PhoneMemory, Simple, Vec<ProcessId>) {
    let mut phone = phone(settings);
    let mut flash = Simple::new();
    let apps = (0..cached)
        .map(|app| {
            let process = phone.spawn(format!("app{app}"), 900 + app % 2).unwrap();
            let region = phone.map(process, Bytes(20 * MIB), ANON).unwrap();
            phone.touch(region, Access::Write, phone.now(), &mut flash).unwrap();
            process
        })
        .collect();
    (phone, flash, apps)
}

/// Grows a process by 1 MiB every 20 ms while it runs the 30 MiB of its code; returns the kills.
fn grow(phone: &mut PhoneMemory, flash: &mut Simple, process: ProcessId, steps: usize) -> Vec<Kill> {
    let mut kills = Vec::new();
    let code = phone.map(process, Bytes(30 * MIB), Backing::File).unwrap();
    for region in regions(phone, process, steps, MIB, ANON) {
        let now = phone.now() + Nanos(SECOND / 50);
        let run = phone.touch(code, Access::Read, now, flash);
        if run.and_then(|_| phone.touch(region, Access::Write, phone.now(), flash)).is_err() {
            break;
        }
        while let Some(kill) = phone.poll_lmkd(phone.now(), flash) {
            kills.push(kill);
        }
    }
    while let Some(kill) = phone.poll_lmkd(phone.now(), flash) {
        kills.push(kill);
    }
    assert_conserved(phone);
    kills
}

#[test]
fn cached_apps_go_before_the_foreground_and_what_they_held_is_free() {
    // 8 apps of 20 MiB and a foreground of up to 200 MiB do not fit into 256 MiB and 64 MiB of ZRAM at ratio 2.
    let (mut phone, mut flash, apps) = with_apps(Some(aosp()), 8);
    let system = phone.spawn("system_server", -900).unwrap();
    let held = phone.map(system, Bytes(10 * MIB), ANON).unwrap();
    phone.touch(held, Access::Write, phone.now(), &mut flash).unwrap();
    let foreground = phone.spawn("foreground", 0).unwrap();
    let kills = grow(&mut phone, &mut flash, foreground, 200);
    assert!(!kills.is_empty());
    for kill in &kills {
        assert!(kill.adj >= 900 && kill.reason != KillReason::OutOfMemory, "{kill:?}");
        assert!(kill.freed > Bytes::ZERO);
        assert!(!phone.is_running(kill.process));
    }
    assert!(phone.is_running(foreground) && phone.is_running(system));
    // The highest score first, and among equals the one that got its score first.
    assert_eq!(kills[0].name, "app1");
    assert_eq!(apps.iter().filter(|&&app| phone.is_running(app)).count(), 8 - kills.len());
    assert_eq!(phone.counters().lmkd_kill, kills.len() as u64);
}

#[test]
fn free_swap_is_worth_the_memory_that_zram_is_filled_from_or_itself() {
    // In addition to ZRAM of 64 MiB, a partition of 1 GiB, which never fills. A tenth of both is 109 MiB: more than the
    // free and inactive memory, less than the free swap.
    let kills = |ratio: f64| {
        let lmkd = Lmkd { swap_compression_ratio: Factor(ratio), ..aosp() };
        let settings = Settings {
            zram: Bytes(64 * MIB),
            swap: Bytes(1024 * MIB),
            lmkd: Some(lmkd),
            ..modest(256 * MIB, 64 << 10)
        };
        let (mut phone, mut flash, _) = with_cached(settings, 8);
        let foreground = phone.spawn("foreground", 0).unwrap();
        grow(&mut phone, &mut flash, foreground, 100)
    };
    let [bounded, as_it_is] = [1.0, 0.0].map(kills);
    assert!(bounded.iter().any(|kill| kill.reason == KillReason::LowMemoryAndSwap), "{bounded:?}");
    let for_swap = |kill: &&Kill| matches!(kill.reason, KillReason::LowMemoryAndSwap | KillReason::LowSwapAndThrashing);
    assert_eq!(as_it_is.iter().find(for_swap), None);
}

#[test]
fn without_cached_apps_the_foreground_dies_and_without_it_nobody() {
    let (mut phone, mut flash, _) = with_apps(Some(aosp()), 0);
    let foreground = phone.spawn("foreground", 0).unwrap();
    let kills = grow(&mut phone, &mut flash, foreground, 400);
    assert_eq!(kills.last().map(|kill| kill.name.as_str()), Some("foreground"));
    // A process with a score below zero is never killed: the touch is an error.
    let (mut phone, mut flash, _) = with_apps(Some(aosp()), 0);
    let system = phone.spawn("system_server", -1).unwrap();
    assert_eq!(grow(&mut phone, &mut flash, system, 400), []);
    assert!(phone.is_running(system));
    // 256 MiB and the 32 MiB gained by ZRAM, less the reserve of 1 MiB and rounding to extents.
    let held = phone.process_usage(system).unwrap();
    let all = held.resident + held.swapped;
    assert!(all > Bytes(285 * MIB) && all <= Bytes(287 * MIB), "{held:?}");
}

#[test]
fn perceptible_processes_die_by_weight() {
    // Scores of at most 200: the heaviest goes, although the other was used less recently.
    for (adj, victim) in [(200, "heavy"), (300, "light")] {
        let (mut phone, mut flash, _) = with_apps(Some(aosp()), 0);
        for (name, size) in [("light", 10), ("heavy", 30)] {
            let process = phone.spawn(name, adj).unwrap();
            let region = phone.map(process, Bytes(size * MIB), Backing::Pinned).unwrap();
            phone.touch(region, Access::Write, phone.now(), &mut flash).unwrap();
        }
        let foreground = phone.spawn("foreground", 0).unwrap();
        let kills = grow(&mut phone, &mut flash, foreground, 260);
        assert_eq!(kills.first().map(|kill| kill.name.as_str()), Some(victim), "{kills:?}");
    }
}

#[test]
fn stalls_are_pressure_and_idleness_is_not() {
    // 16 MiB of file with 52 of a process in 64: evicted pages return while they would still be active, so before long
    // nearly all of the thread's sleep is due to a lack of memory. If another actor works, not all threads stall.
    for others_work in [false, true] {
        let mut phone = phone(Settings { swap: Bytes(512 * MIB), ..modest(64 * MIB, 64 << 10) });
        let mut flash = Simple::new();
        let other = phone.add_actor(CORE, 1);
        phone.set_computing(other, others_work);
        let process = phone.spawn("app", 0).unwrap();
        let file = phone.map(process, Bytes(16 * MIB), Backing::File).unwrap();
        let own = phone.map(process, Bytes(52 * MIB), ANON).unwrap();
        let mut slept = Nanos::ZERO;
        while phone.now() < Nanos(30 * SECOND) {
            for region in [file, own] {
                let now = phone.now() + Nanos(1_000_000);
                slept += phone.touch(region, Access::Write, now, &mut flash).unwrap().sleeping;
            }
        }
        let now = phone.now();
        let psi = phone.psi(now);
        assert!(psi.some.total > Nanos(slept.0 * 9 / 10), "{psi:?}, {slept}");
        if others_work {
            assert_eq!(psi.full.total, Nanos::ZERO);
        } else {
            // First touches are work; everything else is stalls of the thread, and of kswapd without other work.
            assert!(psi.full.total >= Nanos(psi.some.total.0 * 99 / 100), "{psi:?}");
            assert!(psi.full.average[0] > 50.0, "{psi:?}");
        }
        // 100 s of idleness are ten time constants: e^-10.
        phone.pass(now + Nanos(100 * SECOND), &mut flash);
        let later = phone.psi(phone.now());
        assert!(later.some.average[0] < 0.01, "{later:?}");
        assert!(later.some.total < psi.some.total + Nanos(SECOND));
    }
}

#[test]
fn reading_what_never_was_active_is_no_want_of_memory() {
    // A cyclic sweep over 1.5 times the memory sleeps nearly all the time, although no page was active before its
    // eviction. Swapped pages come through the swap cache, which always counts them as part of the working set.
    let sweep = |backing: Backing| {
        let mut phone = phone(Settings { swap: Bytes(512 * MIB), ..modest(64 * MIB, 64 << 10) });
        let mut flash = Simple::new();
        let process = phone.spawn("app", 0).unwrap();
        let region = phone.map(process, Bytes(96 * MIB), backing).unwrap();
        let slept: Nanos =
            (0..4).map(|_| phone.touch(region, Access::Read, phone.now(), &mut flash).unwrap().sleeping).sum();
        let now = phone.now();
        assert!(slept > Nanos(now.0 / 2), "{slept} of {now}");
        phone.psi(now).some.total.seconds() / slept.seconds()
    };
    let [files, swapped] = [Backing::File, ANON].map(sweep);
    assert!(files < 0.1 && swapped > 0.9, "{files} {swapped}");
}

#[test]
fn a_working_set_that_min_ttl_protects_ends_a_process() {
    use haversack_memory::phone::Lists;
    // 80 MiB touched repeatedly in 64 MiB: generations younger than 1 s would have to be evicted.
    let run = |min_ttl: Nanos| {
        let lists = Lists::Generations { count: 4, min_ttl };
        let mut phone = phone(Settings { lists, zram: Bytes(64 * MIB), ..modest(64 * MIB, 64 << 10) });
        let mut flash = Simple::new();
        let hog = phone.spawn("hog", 900).unwrap();
        let ballast = phone.map(hog, Bytes(30 * MIB), ANON).unwrap();
        phone.touch(ballast, Access::Write, Nanos::ZERO, &mut flash).unwrap();
        let app = phone.spawn("app", 0).unwrap();
        for region in regions(&mut phone, app, 50, MIB, ANON) {
            phone.touch(region, Access::Write, phone.now(), &mut flash).unwrap();
        }
        phone.counters().oom_kill
    };
    assert_eq!(run(Nanos::ZERO), 0);
    assert_eq!(run(Nanos(SECOND)), 1);
}
