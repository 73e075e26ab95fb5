//! lmkd's decision, case by case.

use haversack_devices::units::Bytes;
use haversack_memory::phone::KillReason as R;
use haversack_memory::phone::lmkd::{Breached, Lmkd, Sight, decide};

use super::support::aosp;

const CALM: Sight = Sight {
    after_kill: false,
    complete_stall: false,
    swap_low: false,
    thrashing: 0,
    thrashing_limit: 100,
    breached: Breached::None,
    swap_utilisation: 0,
    direct_reclaim: false,
    watching_file_cache: false,
    file_cache: Bytes(1 << 30),
    critical_stall: false,
};

fn high_end(sight: Sight) -> Option<(R, i32)> {
    decide(&aosp(), &sight)
}

#[test]
fn each_reason_and_whom_it_spares() {
    // A limit of 100%, critical at 200%.
    assert_eq!(high_end(CALM), None);
    // (1) Free below min right after a kill: any process; below low: none.
    let after = Sight { after_kill: true, ..CALM };
    assert_eq!(high_end(Sight { breached: Breached::Min, ..after }), Some((R::PressureAfterKill, 0)));
    assert_eq!(high_end(Sight { breached: Breached::Low, ..after }), None);
    // (2) The complete stall: any process.
    assert_eq!(high_end(Sight { complete_stall: true, ..CALM }), Some((R::NotResponding, 0)));
    // (3) Swap low and thrashing over the limit; perceptible apps survive while free memory is above min and
    // thrashing is not critical.
    let low_swap = Sight { swap_low: true, thrashing: 101, ..CALM };
    assert_eq!(high_end(low_swap), Some((R::LowSwapAndThrashing, 201)));
    assert_eq!(high_end(Sight { thrashing: 200, ..low_swap }), Some((R::LowSwapAndThrashing, 0)));
    assert_eq!(high_end(Sight { breached: Breached::Min, ..low_swap }), Some((R::LowSwapAndThrashing, 0)));
    assert_eq!(high_end(Sight { thrashing: 100, ..low_swap }), None);
    // (4) Swap low and free below low; below high is not enough.
    let scarce = Sight { swap_low: true, breached: Breached::Low, ..CALM };
    assert_eq!(high_end(scarce), Some((R::LowMemoryAndSwap, 201)));
    assert_eq!(high_end(Sight { breached: Breached::Min, ..scarce }), Some((R::LowMemoryAndSwap, 0)));
    assert_eq!(high_end(Sight { breached: Breached::High, ..scarce }), None);
    // (5) Too much swapped, if a maximum is configured.
    let swapped = Sight { swap_utilisation: 81, breached: Breached::Low, ..CALM };
    let strict = Lmkd { swap_util_max: 80, ..aosp() };
    assert_eq!(decide(&strict, &swapped), Some((R::LowMemoryAndSwapUtilisation, 0)));
    assert_eq!(decide(&strict, &Sight { swap_utilisation: 80, ..swapped }), None);
    assert_eq!(high_end(swapped), None);
    // (6) Free below low and thrashing over the decayed limit.
    let thrashing = Sight { thrashing: 95, thrashing_limit: 90, breached: Breached::Low, ..CALM };
    assert_eq!(high_end(thrashing), Some((R::LowMemoryAndThrashing, 201)));
    assert_eq!(high_end(Sight { thrashing: 200, ..thrashing }), Some((R::LowMemoryAndThrashing, 0)));
    // Below min it still spares perceptible apps.
    assert_eq!(high_end(Sight { breached: Breached::Min, ..thrashing }), Some((R::LowMemoryAndThrashing, 201)));
    // (7) Direct reclaim and thrashing, for any amount of free memory.
    let direct = Sight { direct_reclaim: true, breached: Breached::None, ..thrashing };
    assert_eq!(high_end(direct), Some((R::DirectReclaimAndThrashing, 201)));
    assert_eq!(high_end(Sight { direct_reclaim: false, ..direct }), None);
    // (8) The file cache small after thrashing: never a perceptible app.
    let watching =
        Sight { watching_file_cache: true, file_cache: Bytes(99), thrashing: 200, thrashing_limit: 300, ..CALM };
    let cache = Lmkd { filecache_min: Bytes(100), ..aosp() };
    assert_eq!(decide(&cache, &watching), Some((R::LowFileCacheAfterThrashing, 201)));
    assert_eq!(decide(&cache, &Sight { file_cache: Bytes(100), ..watching }), None);
}

#[test]
fn the_first_reason_wins_and_a_critical_stall_spares_nobody() {
    // All reasons together; removing the first one exposes the next.
    let lmkd = Lmkd { swap_util_max: 50, filecache_min: Bytes(100), ..aosp() };
    let mut sight = Sight {
        after_kill: true,
        complete_stall: true,
        swap_low: true,
        thrashing: 150,
        breached: Breached::Min,
        swap_utilisation: 90,
        direct_reclaim: true,
        watching_file_cache: true,
        file_cache: Bytes::ZERO,
        ..CALM
    };
    let mut order = Vec::new();
    let mut note = |sight: &Sight| order.push(decide(&lmkd, sight).unwrap().0);
    note(&sight);
    sight.after_kill = false;
    note(&sight);
    sight.complete_stall = false;
    note(&sight);
    // Thrashing below the property but over the decayed limit.
    (sight.thrashing, sight.thrashing_limit) = (95, 90);
    note(&sight);
    sight.swap_low = false;
    note(&sight);
    sight.swap_utilisation = 50;
    note(&sight);
    sight.breached = Breached::High;
    note(&sight);
    sight.direct_reclaim = false;
    note(&sight);
    let all = [
        R::PressureAfterKill,
        R::NotResponding,
        R::LowSwapAndThrashing,
        R::LowMemoryAndSwap,
        R::LowMemoryAndSwapUtilisation,
        R::LowMemoryAndThrashing,
        R::DirectReclaimAndThrashing,
        R::LowFileCacheAfterThrashing,
    ];
    assert_eq!(order, all);
    assert!(order.is_sorted());
    sight.critical_stall = true;
    assert_eq!(decide(&lmkd, &sight), Some((R::LowFileCacheAfterThrashing, 0)));
}
