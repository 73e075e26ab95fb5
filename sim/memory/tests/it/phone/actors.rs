//! Actors whose stalls overlap, by hand.

use haversack_devices::units::{Bytes, Nanos};
use haversack_memory::phone::{
    Access, ActorId, Flash, Part, PhoneError, PhoneMemory, RegionId, Settings, Stall, Touched,
};

use super::support::{ANON, CORE, KIB, MIB, Simple, assert_conserved, bare, modest, phone};

/// A phone with 64 of its 72 extents on flash and room for all of them, the rest never touched.
fn swapped(extent: u64) -> (PhoneMemory, Simple, RegionId) {
    let settings = Settings { extent: Bytes(extent), ..bare(80 * extent, 200 * extent) };
    let mut phone = phone(settings);
    let mut flash = Simple { write: 0, ..Simple::new() };
    let process = phone.spawn("app", 0).unwrap();
    let region = phone.map(process, Bytes(64 * extent), ANON).unwrap();
    phone.touch(region, Access::Write, Nanos::ZERO, &mut flash).unwrap();
    let hog = phone.map(process, Bytes(80 * extent), ANON).unwrap();
    phone.touch(hog, Access::Write, phone.now(), &mut flash).unwrap();
    phone.release(hog).unwrap();
    assert_eq!(phone.usage().anonymous, Bytes::ZERO);
    (phone, flash, region)
}

fn part(region: RegionId, extents: std::ops::Range<u64>, extent: u64) -> Part {
    Part { region, bytes: Bytes(extents.start * extent)..Bytes(extents.end * extent), access: Access::Read }
}

/// The results of all touching actors, in the order of completion.
fn all(phone: &mut PhoneMemory, flash: &mut dyn Flash) -> Vec<Touched> {
    let mut ends = Vec::new();
    while phone.is_touching() {
        ends.extend(phone.run(Nanos::MAX, flash));
    }
    assert_conserved(phone);
    ends
}

fn took(ends: &[Touched], actor: ActorId) -> Stall {
    ends.iter().find(|end| end.actor == actor).unwrap().outcome.clone().unwrap()
}

#[test]
fn who_sleeps_on_flash_does_not_keep_another_waiting() {
    // 8 pages each, one after the other: 500 + 1,000 ns of work, 100 µs + 1907 ns asleep and 20 µs
    // until it runs, each time.
    let (mut phone, mut flash, region) = swapped(4 * KIB);
    let alone = Stall { running: Nanos(8 * 1500), sleeping: Nanos(8 * 101_907), runnable: Nanos(8 * 20_000) };
    let [one, other] = [(); 2].map(|()| phone.add_actor(CORE, 1));
    let start = phone.now();
    phone.begin(one, [part(region, 0..8, 4 * KIB)]).unwrap();
    phone.begin(other, [part(region, 8..16, 4 * KIB)]).unwrap();
    let ends = all(&mut phone, &mut flash);
    assert_eq!((took(&ends, one), took(&ends, other)), (alone, alone));
    // Both simultaneously: PSI counts the time once, and no other actor works.
    assert!(ends.iter().all(|end| end.at == start + alone.total() && end.major == 8), "{ends:?}");
    let psi = phone.psi(phone.now());
    assert!(psi.some.total >= alone.total() && psi.some.total < alone.total() * 2 && psi.full.total > Nanos::ZERO);
}

#[test]
fn nothing_is_full_pressure_while_somebody_works() {
    let pressure = |compute: bool| {
        let (mut phone, mut flash, region) = swapped(4 * KIB);
        let [app, trainer] = [(); 2].map(|()| phone.add_actor(CORE, 1));
        phone.set_computing(trainer, compute);
        let before = phone.psi(phone.now());
        phone.begin(app, [part(region, 0..8, 4 * KIB)]).unwrap();
        let stall = took(&all(&mut phone, &mut flash), app);
        let psi = phone.psi(phone.now());
        (psi.some.total - before.some.total, psi.full.total - before.full.total, stall.total())
    };
    // The whole return of a swapped page is a stall.
    let (some, full, stall) = pressure(false);
    assert_eq!((some, full), (stall, stall));
    let (some, full, stall) = pressure(true);
    assert_eq!((some, full), (stall, Nanos::ZERO));
}

#[test]
fn threads_fault_side_by_side() {
    // 16 pages of an extent by 1, 2, 4 and 16 threads: each reads its share, and all work in parallel.
    for threads in [1, 2, 4, 16] {
        let (mut phone, mut flash, region) = swapped(64 * KIB);
        let trainer = phone.add_actor(CORE, threads);
        phone.begin(trainer, [part(region, 0..1, 64 * KIB)]).unwrap();
        let each = u64::from(16 / threads);
        let expected =
            Stall { running: Nanos(each * 1500), sleeping: Nanos(each * 101_907), runnable: Nanos(each * 20_000) };
        assert_eq!(took(&all(&mut phone, &mut flash), trainer), expected, "{threads}");
    }
    // More threads than pages give no further speed-up.
    let (mut phone, mut flash, region) = swapped(4 * KIB);
    let trainer = phone.add_actor(CORE, 4);
    phone.begin(trainer, [part(region, 0..1, 4 * KIB)]).unwrap();
    assert_eq!(took(&all(&mut phone, &mut flash), trainer).sleeping, Nanos(101_907));
}

#[test]
fn a_touch_that_is_given_while_another_is_under_way_follows_it() {
    let (mut phone, mut flash, region) = swapped(4 * KIB);
    let app = phone.add_actor(CORE, 1);
    phone.begin(app, [part(region, 0..1, 4 * KIB)]).unwrap();
    phone.pass(phone.now() + Nanos(50_000), &mut flash);
    phone.begin(app, [part(region, 1..2, 4 * KIB)]).unwrap();
    let ends = all(&mut phone, &mut flash);
    assert_eq!((ends.len(), took(&ends, app).sleeping), (1, Nanos(2 * 101_907)));
    // A removed actor touches nothing, and is never returned.
    phone.begin(app, [part(region, 2..3, 4 * KIB)]).unwrap();
    phone.remove_actor(app);
    phone.begin(app, [part(region, 3..4, 4 * KIB)]).unwrap();
    assert_eq!(all(&mut phone, &mut flash), []);
}

#[test]
fn what_shrinks_or_ends_meanwhile_is_passed_over() {
    let (mut phone, mut flash, region) = swapped(4 * KIB);
    let app = phone.add_actor(CORE, 1);
    phone.begin(app, [part(region, 0..64, 4 * KIB)]).unwrap();
    phone.pass(phone.now() + Nanos(50_000), &mut flash);
    phone.resize(region, Bytes(8 * KIB)).unwrap();
    assert_eq!(took(&all(&mut phone, &mut flash), app).sleeping, Nanos(2 * 101_907));
    let (mut phone, mut flash, region) = swapped(4 * KIB);
    let app = phone.add_actor(CORE, 1);
    phone.begin(app, [part(region, 0..64, 4 * KIB)]).unwrap();
    phone.pass(phone.now() + Nanos(50_000), &mut flash);
    phone.release(region).unwrap();
    let ends = all(&mut phone, &mut flash);
    assert!(matches!(ends[0].outcome, Err(PhoneError::Killed(stall)) if stall.sleeping == Nanos(101_907)), "{ends:?}");
}

#[test]
fn reclaim_by_one_is_room_for_all() {
    // Two actors grow simultaneously beyond the free memory, and ZRAM takes unused pages; both
    // reclaim, and both make progress.
    let mut phone = phone(Settings { zram: Bytes(256 * MIB), ..modest(64 * MIB, 64 * KIB) });
    let mut flash = Simple::new();
    let process = phone.spawn("app", 0).unwrap();
    let actors = [(); 2].map(|()| phone.add_actor(CORE, 1));
    for actor in actors {
        let region = phone.map(process, Bytes(48 * MIB), ANON).unwrap();
        phone.begin(actor, [Part { region, bytes: Bytes::ZERO..Bytes(48 * MIB), access: Access::Write }]).unwrap();
    }
    let ends = all(&mut phone, &mut flash);
    let [one, other] = actors.map(|actor| took(&ends, actor));
    assert!(phone.counters().pgsteal_direct > 0 && phone.counters().pgsteal_kswapd > 0);
    // 12,288 first touches of 700 ns, and reclaim; both simultaneously, neither much longer than the other.
    assert!(one.running > Nanos(12_288 * 700) && other.running > Nanos(12_288 * 700), "{one:?} {other:?}");
    assert!(one.total() < other.total() * 2 && other.total() < one.total() * 2, "{one:?} {other:?}");
}

#[test]
fn kswapd_takes_half_of_a_core_that_it_shares() {
    // An app grows by 64 KiB every millisecond; kswapd frees 16 pages in about 0.27 ms of its work, while a
    // trainer computes all the time.
    let run = |shares: bool, computes: bool| {
        let mut phone = phone(Settings { zram: Bytes(256 * MIB), ..modest(64 * MIB, 16 * KIB) });
        let mut flash = Simple::new();
        let process = phone.spawn("app", 0).unwrap();
        let [trainer, app] = [(); 2].map(|()| phone.add_actor(CORE, 1));
        phone.set_computing(trainer, computes);
        if shares {
            phone.share_kswapd(trainer);
        }
        let region = phone.map(process, Bytes(80 * MIB), ANON).unwrap();
        for step in 0..80 * 16 {
            let bytes = Bytes(step * 64 * KIB)..Bytes((step + 1) * 64 * KIB);
            phone.begin(app, [Part { region, bytes, access: Access::Write }]).unwrap();
            phone.pass(phone.now() + Nanos(1_000_000), &mut flash);
        }
        assert_conserved(&phone);
        (phone.take_lost(trainer), phone.counters().pgsteal_kswapd, phone.counters().pgsteal_direct)
    };
    let (lost, stolen, direct) = run(true, true);
    // All its work was taken from the trainer: 300 ns to unmap and 8 µs to compress each page, plus scans.
    assert!(
        stolen > 0 && direct == 0 && lost >= Nanos(8_300 * stolen) && lost < Nanos(9_000 * stolen),
        "{lost} {stolen}"
    );
    for (shares, computes) in [(false, true), (true, false)] {
        assert_eq!(run(shares, computes).0, Nanos::ZERO);
    }
}
