//! Generations of pages, after `lru_gen` of Linux 6.1.

use haversack_devices::units::{Bytes, Nanos};
use haversack_memory::phone::{Access, Counters, Lists, PhoneMemory, Settings};

use super::support::{ANON, CLUSTER, Simple, assert_conserved, bare, timeless};

fn with(count: u8, ram: u64) -> PhoneMemory {
    let lists = Lists::Generations { count, min_ttl: Nanos::ZERO };
    timeless(Settings { lists, ..bare(ram * CLUSTER, 400 * CLUSTER) })
}

/// 40 clusters used in each round, with a stream of 30 clusters that are used once, in 60.
fn rounds(count: u8) -> Counters {
    let mut phone = with(count, 60);
    let mut flash = Simple::instant();
    let process = phone.spawn("app", 0).unwrap();
    let hot = phone.map(process, Bytes(40 * CLUSTER), ANON).unwrap();
    for _ in 0..40 {
        let stream = phone.map(process, Bytes(30 * CLUSTER), ANON).unwrap();
        for part in 0..30 {
            let bytes = |at: u64| Bytes(at * CLUSTER);
            phone.touch_part(hot, bytes(part)..bytes(part + 10), Access::Read, Nanos::ZERO, &mut flash).unwrap();
            phone.touch_part(stream, bytes(part)..bytes(part + 1), Access::Write, Nanos::ZERO, &mut flash).unwrap();
        }
        phone.release(stream).unwrap();
    }
    assert_conserved(&phone);
    phone.counters()
}

#[test]
fn ageing_is_lazy_so_that_more_than_four_generations_change_nothing() {
    let four = rounds(4);
    assert!(four.pgsteal_anon > 0);
    for count in 5..=8 {
        assert_eq!(rounds(count), four, "{count}");
    }
    // With three, the oldest two are merged at each walk, and earlier evictions no longer count as recent.
    assert_ne!(rounds(3), four);
}

#[test]
fn a_page_that_returns_counts_while_its_generation_is_the_oldest() {
    // 40 clusters in 30: the first are evicted. Those that return before the next ageing count, each 32 pages.
    let mut phone = with(4, 30);
    let mut flash = Simple::instant();
    let process = phone.spawn("app", 0).unwrap();
    let region = phone.map(process, Bytes(40 * CLUSTER), ANON).unwrap();
    phone.touch(region, Access::Write, Nanos::ZERO, &mut flash).unwrap();
    let gone = phone.usage().swap.0 / CLUSTER;
    assert_eq!(gone, 10);
    let counted = |phone: &PhoneMemory| {
        let counters = phone.counters();
        [counters.workingset_refault_anon, counters.workingset_restore_anon, counters.pswpin]
    };
    // There is room, so that the return itself reclaims nothing.
    phone.resize(region, Bytes(38 * CLUSTER)).unwrap();
    phone.touch_part(region, Bytes::ZERO..Bytes(CLUSTER), Access::Read, Nanos::ZERO, &mut flash).unwrap();
    assert_eq!(counted(&phone), [32; 3]);
    // A sweep over much more memory ages the present pages repeatedly; pages that return then no longer count.
    let sweep = phone.map(process, Bytes(120 * CLUSTER), ANON).unwrap();
    phone.touch(sweep, Access::Write, Nanos::ZERO, &mut flash).unwrap();
    phone.release(sweep).unwrap();
    let before = counted(&phone);
    phone.touch_part(region, Bytes(CLUSTER)..Bytes(3 * CLUSTER), Access::Read, Nanos::ZERO, &mut flash).unwrap();
    assert_eq!(counted(&phone), [before[0], before[1], before[2] + 64]);
}
