//! Faults, reclaim and swap against hand arithmetic.

use haversack_devices::units::{Bytes, Factor, Fraction, Nanos};
use haversack_memory::phone::lmkd::Lmkd;
use haversack_memory::phone::{
    Access, Backing, Costs, Flash, Lists, PageMix, PhoneError, PhoneMemory, Settings, Stall,
};

use super::support::{
    ANON, CLUSTER, CORE, KIB, MIB, Simple, aosp, assert_conserved, bare, modest, phone, regions, timeless,
};

#[test]
fn a_working_set_that_fits_never_refaults() {
    // 48 of 64 MiB, touched ten times: 12288 faults of the first touch, and nothing after it.
    let mut phone = phone(Settings { zram: Bytes(32 * MIB), ..modest(64 * MIB, 64 * KIB) });
    let mut flash = Simple::new();
    let process = phone.spawn("trainer", 0).unwrap();
    let all = regions(&mut phone, process, 6, 8 * MIB, ANON);
    for round in 0..10 {
        for &region in &all {
            let stall = phone.touch(region, Access::Write, phone.now(), &mut flash).unwrap();
            // 2048 pages of 500 + 200 ns.
            let first = Stall { running: Nanos(2048 * 700), ..Stall::default() };
            assert_eq!(stall, if round == 0 { first } else { Stall::default() });
        }
    }
    let counters = phone.counters();
    assert_eq!((counters.pgfault, counters.pgmajfault, counters.pgscan_kswapd), (12_288, 0, 0));
    assert_eq!((phone.free(), phone.usage().anonymous), (Bytes(16 * MIB), Bytes(48 * MIB)));
}

#[test]
fn a_cyclic_sweep_over_more_than_fits_refaults_everything() {
    // 100 clusters of 32 pages of DRAM, 120 swept cyclically. Under LRU the next cluster of the sweep is always evicted
    // already, so each of the 120 refaults once per sweep; the first sweep evicts 20.
    let mut phone = timeless(bare(100 * CLUSTER, 200 * CLUSTER));
    let mut flash = Simple::instant();
    let process = phone.spawn("sweeper", 0).unwrap();
    let region = phone.map(process, Bytes(120 * CLUSTER), ANON).unwrap();
    for sweep in 0..5 {
        phone.touch(region, Access::Write, Nanos::ZERO, &mut flash).unwrap();
        let counters = phone.counters();
        assert_eq!(counters.workingset_refault_anon, 32 * 120 * sweep, "sweep {sweep}");
        assert_eq!(counters.pswpin, 32 * 120 * sweep);
        assert_eq!(counters.pswpout, 32 * (20 + 120 * sweep));
        assert_conserved(&phone);
    }
}

#[test]
fn forward_and_backward_with_release_refault_only_the_deficit() {
    // 120 tensors of 32 pages, 100 fit: forward evicts the oldest 20; backward frees each after its use, so that those
    // 20 return into free memory, and nothing else is evicted. The next iteration is the same.
    for lists in [Lists::Two, Lists::Generations { count: 4, min_ttl: Nanos::ZERO }] {
        let mut phone = timeless(Settings { lists, ..bare(100 * CLUSTER, 200 * CLUSTER) });
        let mut flash = Simple::instant();
        let process = phone.spawn("trainer", 0).unwrap();
        for iteration in 1..=3 {
            let mut saved = Vec::new();
            for _ in 0..120 {
                let tensor = phone.map(process, Bytes(CLUSTER), ANON).unwrap();
                phone.touch(tensor, Access::Write, Nanos::ZERO, &mut flash).unwrap();
                saved.push(tensor);
            }
            while let Some(tensor) = saved.pop() {
                phone.touch(tensor, Access::Read, Nanos::ZERO, &mut flash).unwrap();
                phone.release(tensor).unwrap();
            }
            assert_eq!(phone.counters().workingset_refault_anon, 32 * 20 * iteration, "{lists:?}");
            assert_eq!(phone.usage().free, Bytes(100 * CLUSTER));
            assert_eq!(phone.usage().swap, Bytes::ZERO);
        }
    }
}

#[test]
fn what_is_released_while_evicted_costs_no_refault() {
    // 40 clusters and more go to ZRAM and flash when 140 are touched in 100; all are released unread.
    let mut phone = timeless(Settings { zram: Bytes(10 * CLUSTER), ..bare(100 * CLUSTER, 100 * CLUSTER) });
    let mut flash = Simple::instant();
    let process = phone.spawn("trainer", 0).unwrap();
    for region in regions(&mut phone, process, 140, CLUSTER, ANON) {
        phone.touch(region, Access::Write, Nanos::ZERO, &mut flash).unwrap();
    }
    // 10 at ratio 2 take 5 of the 100, so that 140 - 95 = 45 are out: 10 in ZRAM, 35 on flash.
    let usage = phone.usage();
    assert_eq!(
        (usage.zram_stored, usage.zram, usage.swap),
        (Bytes(10 * CLUSTER), Bytes(5 * CLUSTER), Bytes(35 * CLUSTER))
    );
    assert_eq!(flash.bytes_written, 35 * CLUSTER);
    phone.exit(process).unwrap();
    assert_eq!((phone.counters().pswpin, phone.free()), (0, Bytes(100 * CLUSTER)));
    assert_eq!((phone.usage().zram, phone.usage().swap), (Bytes::ZERO, Bytes::ZERO));
}

#[test]
fn a_refault_from_zram_runs_and_one_from_flash_sleeps() {
    // One page too many, so the first is evicted when it is touched again, and another replaces it.
    let stall = |zram: u64, swap_read_ahead: u64, extent: u64| {
        let extents = 64;
        let settings = Settings {
            zram: Bytes(zram),
            extent: Bytes(extent),
            swap_read_ahead: Bytes(swap_read_ahead),
            ..bare(extents * extent, 2 * extents * extent)
        };
        let free = Costs { scan: Nanos::ZERO, unmap: Nanos::ZERO, compress: Nanos::ZERO, submit: Nanos::ZERO, ..CORE };
        let mut phone = PhoneMemory::new(settings, free, free).unwrap();
        let mut flash = Simple { write: 0, ..Simple::new() };
        let process = phone.spawn("trainer", 0).unwrap();
        let all = regions(&mut phone, process, extents as usize + 8, extent, ANON);
        for &region in &all {
            phone.touch(region, Access::Write, phone.now(), &mut flash).unwrap();
        }
        let requests = flash.requests;
        // Make room first, so that the refault itself reclaims nothing.
        for &region in &all[60..] {
            phone.release(region).unwrap();
        }
        let stall = phone.touch(all[0], Access::Read, phone.now(), &mut flash).unwrap();
        assert_conserved(&phone);
        (stall, flash.requests - requests)
    };
    // 4 pages from ZRAM: 4 × (500 + 3000) ns of running.
    let running = Stall { running: Nanos(14_000), ..Stall::default() };
    assert_eq!(stall(64 * MIB, 4 * KIB, 16 * KIB), (running, 0));
    // From flash without read-ahead: 4 × 500 running, 4 reads of 100 µs + 1907 ns, awoken 4 times for 20 µs.
    let each = Stall { running: Nanos(2000), sleeping: Nanos(407_628), runnable: Nanos(80_000) };
    assert_eq!(stall(0, 4 * KIB, 16 * KIB), (each, 4));
    // With windows of 16 KiB one read brings all 4 pages.
    let once = Stall { running: Nanos(2000), sleeping: Nanos(107_628), runnable: Nanos(20_000) };
    assert_eq!(stall(0, 16 * KIB, 16 * KIB), (once, 1));
    // In extents of a page, the one read brings in three neighbours in swap order together with the faulted page.
    let page = Stall { running: Nanos(500), sleeping: Nanos(107_628), runnable: Nanos(20_000) };
    assert_eq!(stall(0, 16 * KIB, 4 * KIB), (page, 1));
}

#[test]
fn files_are_dropped_clean_and_written_dirty() {
    // 64 clusters of file in 40 of DRAM, read: dropped and read again. 24 and 40 written: all of it dirty.
    let settings = Settings { file_read_ahead: Bytes(CLUSTER), ..bare(40 * CLUSTER, 0) };
    let mut phone = timeless(settings);
    let mut flash = Simple::instant();
    let process = phone.spawn("reader", 0).unwrap();
    let file = phone.map(process, Bytes(64 * CLUSTER), Backing::File).unwrap();
    phone.touch(file, Access::Read, Nanos::ZERO, &mut flash).unwrap();
    assert_eq!((phone.counters().file_in, phone.counters().pgsteal_file, flash.bytes_written), (32 * 64, 32 * 24, 0));
    phone.touch(file, Access::Write, Nanos::ZERO, &mut flash).unwrap();
    // Each of the 64 refaults, as in every cyclic sweep; the 40 clean ones go first, then 24 of the dirty.
    assert_eq!((phone.counters().workingset_refault_file, phone.counters().file_out), (32 * 64, 32 * 24));
    assert_conserved(&phone);
}

#[test]
fn kswapd_alone_suffices_where_memory_is_wanted_slowly() {
    // kswapd frees a page in 100 + 100 + 300 + 8000 ns (looked at twice, unmapped, compressed) and, at ratio 2, gains
    // half a page by it: 17 µs a page. 64 KiB each millisecond (16 pages, 0.27 ms of its work) is slow; back to back
    // (0.7 µs a page) is fast.
    let run = |pause: Nanos| {
        let mut phone = phone(Settings { zram: Bytes(256 * MIB), ..modest(128 * MIB, 16 * KIB) });
        let mut flash = Simple::new();
        let process = phone.spawn("app", 0).unwrap();
        let mut stall = Stall::default();
        for region in regions(&mut phone, process, 2560, 64 * KIB, ANON) {
            stall += phone.touch(region, Access::Write, phone.now() + pause, &mut flash).unwrap();
        }
        assert_conserved(&phone);
        (phone.counters(), stall)
    };
    let (slow, stall) = run(Nanos(1_000_000));
    assert_eq!((slow.allocstall, slow.pgscan_direct), (0, 0));
    assert!(slow.pgsteal_kswapd > 0);
    // 160 MiB of first touches and nothing else: 40960 × 700 ns.
    assert_eq!(stall.total(), Nanos(40_960 * 700));
    let (fast, stall) = run(Nanos::ZERO);
    assert!(fast.allocstall > 0 && fast.pgsteal_direct > 0, "{fast:?}");
    assert!(stall.running > Nanos(40_960 * 700));
    // kswapd works concurrently with the thread, at the same speed: each reclaims about half.
    assert!(fast.pgsteal_kswapd > fast.pgsteal_direct / 2, "{fast:?}");
}

#[test]
fn a_full_write_queue_makes_reclaim_wait() {
    // Writing a page takes 3.8 µs, evicting it 1.5 µs: the flash limits reclaim, and the thread sleeps.
    let settings = Settings { swap: Bytes(256 * MIB), write_queue: Bytes(MIB), ..modest(64 * MIB, 64 * KIB) };
    let mut phone = phone(settings);
    let mut flash = Simple { write: 38_150, ..Simple::new() };
    let process = phone.spawn("app", 0).unwrap();
    let start = phone.now();
    let mut stall = Stall::default();
    for region in regions(&mut phone, process, 128, MIB, ANON) {
        stall += phone.touch(region, Access::Write, phone.now(), &mut flash).unwrap();
    }
    // 64 MiB at least must be written, at 4 KiB in 38.15 µs: 625 ms.
    let span = phone.now() - start;
    assert!(span >= Nanos(620_000_000), "{span}");
    assert!(stall.sleeping > Nanos(span.0 / 2), "{stall:?} of {span}");
    assert!(phone.usage().writeback <= Bytes(MIB));
}

#[test]
fn out_of_memory_is_an_error_and_not_an_end() {
    // No swap: 60 MiB pinned in 64 leave 4, of which 1 MiB is a reserve.
    let mut phone = phone(modest(64 * MIB, 64 * KIB));
    let mut flash = Simple::new();
    let kernel = phone.spawn("kernel", -1000).unwrap();
    let pinned = phone.map(kernel, Bytes(60 * MIB), Backing::Pinned).unwrap();
    phone.touch(pinned, Access::Write, Nanos::ZERO, &mut flash).unwrap();
    let more = phone.map(kernel, Bytes(8 * MIB), ANON).unwrap();
    let error = phone.touch(more, Access::Write, phone.now(), &mut flash).unwrap_err();
    assert!(matches!(error, PhoneError::OutOfMemory { .. }), "{error}");
    assert_conserved(&phone);
    // The only process that may be killed is killed, and the touch reports it; here it is the touching process.
    let app = phone.spawn("app", 0).unwrap();
    let mine = phone.map(app, Bytes(8 * MIB), ANON).unwrap();
    phone.resize(more, Bytes::ZERO).unwrap();
    let error = phone.touch(mine, Access::Write, phone.now(), &mut flash).unwrap_err();
    assert!(matches!(error, PhoneError::Killed(_)), "{error}");
    assert_eq!(phone.poll_lmkd(phone.now(), &mut flash).unwrap().name, "app");
    assert_eq!(phone.touch(mine, Access::Write, phone.now(), &mut flash), Err(PhoneError::UnknownRegion(mine)));
    assert_eq!((phone.counters().oom_kill, phone.is_running(app)), (1, false));
}

#[test]
fn results_converge_as_extents_shrink() {
    // A trainer of 300 MiB with an idle app of 40 and files of 40, in 256 MiB with 48 of ZRAM and flash behind it.
    let run = |lists: Lists, extent: u64| {
        let mut phone =
            phone(Settings { lists, zram: Bytes(48 * MIB), swap: Bytes(512 * MIB), ..modest(256 * MIB, extent) });
        let mut flash = Simple::new();
        let app = phone.spawn("app", 900).unwrap();
        let trainer = phone.spawn("trainer", 0).unwrap();
        let idle = phone.map(app, Bytes(40 * MIB), ANON).unwrap();
        let file = phone.map(app, Bytes(40 * MIB), Backing::File).unwrap();
        phone.touch(file, Access::Read, Nanos::ZERO, &mut flash).unwrap();
        phone.touch(idle, Access::Write, phone.now(), &mut flash).unwrap();
        let weights = phone.map(trainer, Bytes(20 * MIB), ANON).unwrap();
        let mut stall = Stall::default();
        for _ in 0..4 {
            let mut saved = Vec::new();
            for _ in 0..70 {
                stall += phone.touch(weights, Access::Read, phone.now() + Nanos(2_000_000), &mut flash).unwrap();
                let tensor = phone.map(trainer, Bytes(4 * MIB), ANON).unwrap();
                stall += phone.touch(tensor, Access::Write, phone.now(), &mut flash).unwrap();
                saved.push(tensor);
            }
            while let Some(tensor) = saved.pop() {
                stall += phone.touch(tensor, Access::Read, phone.now() + Nanos(4_000_000), &mut flash).unwrap();
                phone.release(tensor).unwrap();
            }
        }
        assert_conserved(&phone);
        let counters = phone.counters();
        let refaults = counters.workingset_refault_anon + counters.workingset_refault_file;
        let evicted = counters.pgsteal_anon + counters.pgsteal_file;
        [stall.total().seconds() * 1e3, refaults as f64, evicted as f64]
    };
    for lists in [Lists::Two, Lists::Generations { count: 4, min_ttl: Nanos::ZERO }] {
        let fine = run(lists, 16 * KIB);
        for (extent, within) in [(MIB, 0.08), (256 * KIB, 0.04), (64 * KIB, 0.02)] {
            let coarse = run(lists, extent);
            let error = coarse.iter().zip(fine).map(|(coarse, fine)| (coarse / fine - 1.0).abs()).fold(0.0, f64::max);
            println!("{lists:?} {extent}: {coarse:?} of {fine:?}: {error:.4}");
            assert!(error <= within, "{lists:?}, {extent}: {coarse:?}, at 16 KiB {fine:?}");
        }
    }
}

#[test]
fn a_page_used_twice_is_active_and_stays_when_a_stream_passes() {
    // 16 MiB used repeatedly, with a stream of 256 MiB of file pages read once, in 64 MiB: the
    // stream displaces only itself.
    for lists in [Lists::Two, Lists::Generations { count: 4, min_ttl: Nanos::ZERO }] {
        let mut phone = phone(Settings { lists, swap: Bytes(256 * MIB), ..modest(64 * MIB, 64 * KIB) });
        let mut flash = Simple::new();
        let process = phone.spawn("app", 0).unwrap();
        let hot = phone.map(process, Bytes(16 * MIB), ANON).unwrap();
        let stream = phone.map(process, Bytes(256 * MIB), Backing::File).unwrap();
        for step in 0..256 {
            phone.touch(hot, Access::Write, phone.now(), &mut flash).unwrap();
            let part = Bytes(step * MIB)..Bytes((step + 1) * MIB);
            phone.touch_part(stream, part, Access::Read, phone.now(), &mut flash).unwrap();
        }
        let counters = phone.counters();
        assert_eq!(counters.workingset_refault_file, 0);
        // At most 1 in 16 of the hot pages, before the lists have adapted.
        assert!(counters.workingset_refault_anon <= 256, "{lists:?}: {counters:?}");
        assert!(counters.pgsteal_file > 50_000, "{counters:?}");
    }
}

#[test]
fn a_refault_within_the_active_list_is_activated_at_once() {
    // Only files, in clusters of 32 pages: 20 used twice become active when scanned; others pass. One that returns
    // after fewer evictions than there are active pages goes to the active list; after more it does not.
    let settings = Settings { file_read_ahead: Bytes(CLUSTER), ..bare(40 * CLUSTER, 0) };
    let mut phone = timeless(settings);
    let mut flash = Simple::instant();
    let process = phone.spawn("reader", 0).unwrap();
    let file = phone.map(process, Bytes(400 * CLUSTER), Backing::File).unwrap();
    let mut read = |phone: &mut PhoneMemory, from: u64, to: u64| {
        phone
            .touch_part(file, Bytes(from * CLUSTER)..Bytes(to * CLUSTER), Access::Read, Nanos::ZERO, &mut flash)
            .unwrap();
    };
    for page in 20..120 {
        read(&mut phone, 0, 20);
        read(&mut phone, page, page + 1);
    }
    // The first scan finds all 40 young and evicts the first 20 for lack of better ones; they return once, after 20
    // evictions and none active. Then they are active.
    let before = phone.counters();
    assert_eq!(
        (before.workingset_refault_file, before.workingset_activate_file, before.pgactivate),
        (32 * 20, 0, 32 * 20)
    );
    // The inactive list has 20: cluster 95 was evicted about 5 evictions ago (of 20 active), cluster 30 about 70 ago.
    read(&mut phone, 95, 96);
    assert_eq!(phone.counters().workingset_activate_file, 32);
    read(&mut phone, 30, 31);
    assert_eq!((phone.counters().workingset_activate_file, phone.counters().workingset_refault_file), (32, 32 * 22));
}

#[test]
fn swappiness_tips_the_balance() {
    // 30 MiB of each kind, all idle, and 30 MiB more wanted of 64: what goes is in the ratio of the swappiness.
    let share = |swappiness: u32| {
        anonymous_share(Settings { swappiness, zram: Bytes(256 * MIB), ..modest(64 * MIB, 64 * KIB) })
    };
    let shares = [0, 60, 100, 160].map(share);
    assert_eq!(shares[0], 0.0);
    assert!(shares.is_sorted() && shares[3] > shares[1], "{shares:?}");
}

#[test]
fn zram_keeps_pages_by_what_each_is_like() {
    // 64 clusters of which a quarter is same-filled and a quarter does not shrink: in ZRAM the 32 pages of a cluster
    // take 8 × 0 + 8 × 4096 + 16 × 2048 = 65,536 bytes, half of it.
    let mix = PageMix { same_filled: Fraction(0.25), incompressible: Fraction(0.25), ratio: Factor(2.0) };
    let mut phone = phone(Settings { zram: Bytes(64 * CLUSTER), ..bare(60 * CLUSTER, 0) });
    let mut flash = Simple::new();
    let process = phone.spawn("trainer", 0).unwrap();
    let all = regions(&mut phone, process, 64, CLUSTER, Backing::Anonymous(mix));
    for &region in &all {
        phone.touch(region, Access::Write, phone.now(), &mut flash).unwrap();
    }
    let usage = phone.usage();
    assert!(usage.zram_stored > Bytes::ZERO);
    assert_eq!(usage.zram.0 * 2, usage.zram_stored.0);
    // Once there is room, a refault of the first cluster fills 8 pages in 200 ns, copies 8 in 500
    // and decompresses 16 in 3 µs.
    for &region in &all[50..] {
        phone.release(region).unwrap();
    }
    let stall = phone.touch(all[0], Access::Read, phone.now(), &mut flash).unwrap();
    assert_eq!(stall, Stall { running: Nanos(32 * (500 + 1675)), ..Stall::default() });
}

/// The anonymous share of evictions, of 30 MiB of files and 60 MiB of anonymous memory, all touched once in 64 MiB.
fn anonymous_share(settings: Settings) -> f64 {
    let mut phone = phone(settings);
    let mut flash = Simple::new();
    let process = phone.spawn("app", 0).unwrap();
    let file = phone.map(process, Bytes(30 * MIB), Backing::File).unwrap();
    phone.touch(file, Access::Read, Nanos::ZERO, &mut flash).unwrap();
    for region in regions(&mut phone, process, 60, MIB, ANON) {
        phone.touch(region, Access::Write, phone.now(), &mut flash).unwrap();
    }
    let counters = phone.counters();
    counters.pgsteal_anon as f64 / (counters.pgsteal_anon + counters.pgsteal_file) as f64
}

#[test]
fn vendors_balance_the_kinds_where_files_abound() {
    // An inactive list of files of 16 MiB and more is the only one scanned (a 2¹²th of it is a page),
    // unless vendors change that.
    let share =
        |balanced: bool| anonymous_share(Settings { balanced, zram: Bytes(256 * MIB), ..modest(64 * MIB, 64 * KIB) });
    let [first, both] = [false, true].map(share);
    assert!(first + 0.1 < both, "{first} {both}");
}

#[test]
fn code_that_is_used_stays_where_other_files_go() {
    // 8 MiB are used between one stream of 40 MiB and the next, once each time, in 32 MiB.
    let dropped = |backing: Backing| {
        let mut phone = phone(modest(32 * MIB, 64 * KIB));
        let mut flash = Simple::new();
        let process = phone.spawn("app", 0).unwrap();
        let used = phone.map(process, Bytes(8 * MIB), backing).unwrap();
        let stream = regions(&mut phone, process, 40, MIB, Backing::File);
        let mut read = 0;
        for _ in 0..4 {
            let before = phone.counters().file_in;
            phone.touch(used, Access::Read, phone.now(), &mut flash).unwrap();
            read += phone.counters().file_in - before;
            for &part in &stream {
                phone.touch(part, Access::Read, phone.now(), &mut flash).unwrap();
            }
        }
        read
    };
    let [data, code] = [Backing::File, Backing::Code].map(dropped);
    assert!(code < data, "{code} and {data} pages");
}

#[test]
fn bad_input_is_refused_by_name() {
    let good = modest(64 * MIB, 64 * KIB);
    let field = |settings: Settings| match PhoneMemory::new(settings, CORE, CORE) {
        Err(PhoneError::Setting { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(field(Settings { extent: Bytes(3 * KIB), ..good.clone() }), "extent");
    assert_eq!(field(Settings { swappiness: 201, ..good.clone() }), "swappiness");
    assert_eq!(field(Settings { ram: Bytes(MIB / 2), ..good.clone() }), "watermarks");
    assert_eq!(field(Settings { swap_read_ahead: Bytes::ZERO, ..good.clone() }), "swap_read_ahead");
    let two = Lists::Generations { count: 2, min_ttl: Nanos::ZERO };
    assert_eq!(field(Settings { lists: two, ..good.clone() }), "lists");
    for ratio in [-1.0, f64::NAN] {
        let lmkd = Lmkd { swap_compression_ratio: Factor(ratio), ..aosp() };
        assert_eq!(field(Settings { lmkd: Some(lmkd), ..good.clone() }), "lmkd");
    }
    let mut phone = phone(good);
    assert_eq!(phone.spawn("x", 1001), Err(PhoneError::Adj(1001)));
    let process = phone.spawn("x", 0).unwrap();
    let nothing = Backing::Anonymous(PageMix::all(Factor(f64::NAN)));
    assert!(matches!(phone.map(process, Bytes(1), nothing), Err(PhoneError::Pages(_))));
    let region = phone.map(process, Bytes(5000), ANON).unwrap();
    let mut flash: Box<dyn Flash> = Box::new(Simple::new());
    let beyond = phone.touch_part(region, Bytes(0)..Bytes(5001), Access::Read, Nanos::ZERO, flash.as_mut());
    assert!(matches!(beyond, Err(PhoneError::BeyondEnd { .. })));
    // 5000 bytes are 2 pages, not an extent.
    phone.touch(region, Access::Read, Nanos::ZERO, flash.as_mut()).unwrap();
    assert_eq!(phone.process_usage(process).unwrap().resident, Bytes(8192));
    phone.exit(process).unwrap();
    assert_eq!(phone.exit(process), Err(PhoneError::UnknownProcess(process)));
    assert_eq!(phone.release(region), Err(PhoneError::UnknownRegion(region)));
}
