//! The low-memory killer daemon: when it wakes, its view of the system, and which process it kills.
//!
//! Follows `mp_event_psi` and `find_and_kill_process` of AOSP's `system/memory/lmkd/lmkd.cpp` (2023). PSI events wake
//! it; for a window after each event it polls. [`decide`] is its decision, in the order of the source.

use haversack_devices::system::Victim;
use haversack_devices::{Bytes, Device, Factor, Nanos, System};

use super::{ANON, Events, FILE, KillReason, PAGE, PhoneError, PhoneMemory};

/// The properties `ro.lmk.*` and the constants of its source. Percentages are whole numbers, as the properties are.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Lmkd {
    /// The window over which stalls are summed, and the time that it polls after an event (`PSI_WINDOW_SIZE_MS`).
    pub psi_window: Nanos,
    /// The PSI `some` stall within the window that wakes it (`psi_partial_stall_ms`).
    pub partial_stall: Nanos,
    /// The PSI `full` stall within the window that means the phone does not respond (`psi_complete_stall_ms`).
    pub complete_stall: Nanos,
    /// The polling interval while swap is low or after a kill (`PSI_POLL_PERIOD_SHORT_MS`).
    pub poll_short: Nanos,
    /// The polling interval otherwise (`PSI_POLL_PERIOD_LONG_MS`).
    pub poll_long: Nanos,
    /// Swap is low if less than this percentage of it is free (`swap_free_low_percentage`).
    pub swap_free_low: u64,
    /// With ZRAM, free swap counts as at most this many times free memory and inactive files, since ZRAM stores its
    /// pages in them. Zero disables the limit, as before 2022 (`swap_compression_ratio`).
    pub swap_compression_ratio: Factor,
    /// The window over which refaults are counted (`THRASHING_RESET_INTERVAL_MS`).
    pub thrashing_reset: Nanos,
    /// The percentage of the file cache that may refault in that window (`thrashing_limit`).
    pub thrashing_limit: u64,
    /// The percentage by which the limit falls after a kill for thrashing (`thrashing_limit_decay`).
    pub thrashing_limit_decay: u64,
    /// From this limit on, perceptible processes may be killed (`thrashing_limit_critical`).
    pub thrashing_limit_critical: u64,
    /// The largest percentage of the swappable memory that may be swapped; 100 disables this (`swap_util_max`).
    pub swap_util_max: u64,
    /// The smallest file cache after thrashing; zero disables this (`filecache_min_kb`).
    pub filecache_min: Bytes,
    /// The PSI `full` avg10 in percent above which perceptible processes may be killed (`stall_limit_critical`).
    pub stall_limit_critical: u64,
    /// The lowest score that may be killed at critical pressure (`critical`).
    pub critical: i32,
    /// The lowest score that is not perceptible: processes below it are killed only at critical pressure.
    pub perceptible: i32,
    /// Among processes of equal score, kills the heaviest instead of the least recently used (`kill_heaviest_task`).
    pub kill_heaviest: bool,
    /// Reserve of the low zone, which it adds to every watermark (`calc_zone_watermarks`).
    pub protection: Bytes,
    /// Memory set aside for contiguous buffers, whose free pages do not count (`cma_free`).
    pub contiguous: Bytes,
}

impl Lmkd {
    /// The daemon of `system` on `device`; some properties differ on a device with little memory.
    pub fn new(system: &System, device: &Device) -> Self {
        let (killer, own) = (&system.constants.killer, system.killer(device));
        let percent = |share: f64| (share * 100.0).round() as u64;
        Self {
            psi_window: killer.psi_window.value,
            partial_stall: own.psi_partial_stall,
            complete_stall: killer.psi_complete_stall.value,
            poll_short: killer.poll_short.value,
            poll_long: killer.poll_long.value,
            swap_free_low: percent(killer.swap_free_low.value.0),
            swap_compression_ratio: killer.swap_compression_ratio.value,
            thrashing_reset: killer.thrashing_reset.value,
            thrashing_limit: percent(own.thrashing_limit.0),
            thrashing_limit_decay: percent(own.thrashing_limit_decay.0),
            thrashing_limit_critical: percent(own.thrashing_limit.0 * killer.thrashing_limit_critical.value.0),
            swap_util_max: percent(killer.swap_util_max.value.0),
            filecache_min: killer.filecache_min.value,
            stall_limit_critical: percent(killer.stall_limit_critical.value.0),
            critical: killer.critical.value.0,
            perceptible: killer.perceptible.value.0,
            kill_heaviest: killer.victim == Victim::Heaviest,
            protection: system.protection(device),
            contiguous: system.constants.reclaim.contiguous.value,
        }
    }

    pub(super) fn check(&self) -> Result<(), PhoneError> {
        let percentages =
            [self.swap_free_low, self.thrashing_limit_decay, self.swap_util_max, self.stall_limit_critical];
        if self.swap_compression_ratio.0.is_nan() || self.swap_compression_ratio.0 < 0.0 {
            return Err(PhoneError::Setting { field: "lmkd", expected: "a ratio of compression of zero or more" });
        }
        if percentages.iter().any(|&percentage| percentage > 100) {
            return Err(PhoneError::Setting { field: "lmkd", expected: "percentages of 0 to 100" });
        }
        if self.partial_stall > self.psi_window || self.complete_stall > self.psi_window {
            return Err(PhoneError::Setting { field: "lmkd", expected: "stalls of at most the window of PSI" });
        }
        if [self.psi_window, self.thrashing_reset, self.poll_short, self.poll_long].contains(&Nanos::ZERO) {
            return Err(PhoneError::Setting { field: "lmkd", expected: "windows and polls that take time" });
        }
        Ok(())
    }
}

/// The lowest watermark that free memory is below, both as computed by lmkd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Breached {
    /// Below `min`.
    Min,
    /// Below `low`.
    Low,
    /// Below `high`.
    High,
    /// Above all watermarks.
    None,
}

/// The state that lmkd reads when it wakes. Thrashing is in percent of the file cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight {
    /// It has just killed a process.
    pub after_kill: bool,
    /// The complete stall woke it.
    pub complete_stall: bool,
    /// Free swap is below its threshold.
    pub swap_low: bool,
    /// The refaults of file pages.
    pub thrashing: u64,
    /// The present, decayed limit.
    pub thrashing_limit: u64,
    /// The watermark that is breached.
    pub breached: Breached,
    /// The percentage of the swappable memory that is swapped.
    pub swap_utilisation: u64,
    /// A task reclaimed directly since the last check.
    pub direct_reclaim: bool,
    /// It watches the file cache, having killed a process for thrashing.
    pub watching_file_cache: bool,
    /// The file cache.
    pub file_cache: Bytes,
    /// PSI `full` avg10 is above `stall_limit_critical`.
    pub critical_stall: bool,
}

/// Whether lmkd kills a process, why, and the lowest score that may be killed.
pub fn decide(lmkd: &Lmkd, sight: &Sight) -> Option<(KillReason, i32)> {
    use KillReason as R;
    let low = sight.breached < Breached::High;
    let above_min = sight.breached > Breached::Min;
    let bearable = sight.thrashing < lmkd.thrashing_limit_critical;
    let thrashing = sight.thrashing > sight.thrashing_limit;
    let spare = |spare: bool| if spare { lmkd.perceptible } else { lmkd.critical };
    let (reason, least) = if sight.after_kill && sight.breached == Breached::Min {
        (R::PressureAfterKill, lmkd.critical)
    } else if sight.complete_stall {
        (R::NotResponding, lmkd.critical)
    } else if sight.swap_low && sight.thrashing > lmkd.thrashing_limit {
        (R::LowSwapAndThrashing, spare(above_min && bearable))
    } else if sight.swap_low && low {
        (R::LowMemoryAndSwap, spare(above_min && bearable))
    } else if low && lmkd.swap_util_max < 100 && sight.swap_utilisation > lmkd.swap_util_max {
        (R::LowMemoryAndSwapUtilisation, lmkd.critical)
    } else if low && thrashing {
        (R::LowMemoryAndThrashing, spare(bearable))
    } else if sight.direct_reclaim && thrashing {
        (R::DirectReclaimAndThrashing, spare(bearable))
    } else if sight.watching_file_cache && sight.file_cache < lmkd.filecache_min {
        (R::LowFileCacheAfterThrashing, spare(true))
    } else {
        return None;
    };
    Some((reason, if sight.critical_stall { lmkd.critical } else { least }))
}

/// The daemon's state between two wake-ups.
#[derive(Clone, Debug)]
pub(super) struct Daemon {
    lmkd: Lmkd,
    pub(super) polling: Option<Polling>,
    /// It killed a process at the last check.
    killed: bool,
    /// Refaults of file pages when the thrashing window began, and at the last check.
    refaults: [u64; 2],
    /// The file cache when the window began, in pages.
    base_file: u64,
    /// Pages scanned by kswapd and directly until the last check.
    scanned: [u64; 2],
    thrashing_limit: u64,
    /// The time at which the thrashing window began.
    window: Option<Nanos>,
    /// Thrashing of previous windows, halved with each.
    before: u64,
    watching_file_cache: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Polling {
    since: Nanos,
    pub(super) next: Nanos,
}

impl Daemon {
    pub(super) fn new(lmkd: Lmkd) -> Self {
        Self {
            polling: None,
            killed: false,
            refaults: [0; 2],
            base_file: 0,
            scanned: [0; 2],
            thrashing_limit: lmkd.thrashing_limit,
            window: None,
            before: 0,
            watching_file_cache: false,
            lmkd,
        }
    }

    /// The present thrashing: refaults in this window, and the remainder of previous windows.
    fn thrashing(&mut self, now: Nanos, refaults: u64, file: u64) -> u64 {
        let Some(window) = self.window else {
            self.restart(now, refaults, file);
            return 0;
        };
        let grown = (refaults - self.refaults[0]) * 100 / (self.base_file + 1);
        let since = now.saturating_sub(window);
        if since <= self.lmkd.thrashing_reset {
            return grown + self.before;
        }
        let windows = since.0 / self.lmkd.thrashing_reset.0;
        self.before = grown;
        // Kept if it was above the limit and no process could be killed, so that a process is killed once there is one.
        if windows > 1 || grown < self.thrashing_limit {
            self.before = grown.checked_shr(u32::try_from(windows).unwrap_or(u32::MAX)).unwrap_or(0);
        }
        self.restart(now, refaults, file);
        self.thrashing_limit = self.lmkd.thrashing_limit;
        self.before
    }

    fn restart(&mut self, now: Nanos, refaults: u64, file: u64) {
        (self.window, self.refaults[0], self.base_file) = (Some(now), refaults, file);
    }

    /// Schedules the next check. An event, a kill and direct reclaim each start another polling window.
    fn poll(&mut self, now: Nanos, start: bool, fast: bool) {
        let since = if start { Some(now) } else { self.polling.map(|polling| polling.since) };
        let next = now + if fast { self.lmkd.poll_short } else { self.lmkd.poll_long };
        let within = since.filter(|&since| now.saturating_sub(since) <= self.lmkd.psi_window);
        self.polling = within.map(|since| Polling { since, next });
    }
}

impl PhoneMemory {
    /// Checks PSI, and wakes lmkd if an event or a poll is due.
    pub(super) fn check_pressure(&mut self) {
        let events = self.pressure.check(self.now);
        let Some(mut daemon) = self.daemon.take() else { return };
        let due = daemon.polling.is_some_and(|polling| polling.next <= self.now);
        if events.partial || events.complete || due {
            self.wake_lmkd(&mut daemon, events);
        }
        self.daemon = Some(daemon);
    }

    fn wake_lmkd(&mut self, daemon: &mut Daemon, events: Events) {
        let event = events.partial || events.complete;
        let file = self.extents.kind_pages(FILE);
        let refaults = self.counters.workingset_refault_file;
        let after_kill = std::mem::take(&mut daemon.killed);
        if after_kill {
            daemon.restart(self.now, refaults, file);
            daemon.before = 0;
        }
        let scanned = [self.counters.pgscan_kswapd, self.counters.pgscan_direct];
        let direct = scanned[1] > daemon.scanned[1];
        let reclaims = direct || scanned[0] > daemon.scanned[0];
        let swap_low = self.swap_is_low(&daemon.lmkd);
        if reclaims || refaults != daemon.refaults[1] {
            if reclaims {
                daemon.scanned = scanned;
            }
            daemon.refaults[1] = refaults;
            let sight = Sight {
                after_kill,
                complete_stall: events.complete,
                swap_low,
                thrashing: daemon.thrashing(self.now, refaults, file),
                thrashing_limit: daemon.thrashing_limit,
                breached: self.breached(&daemon.lmkd),
                swap_utilisation: self.swap_utilisation(),
                direct_reclaim: direct,
                watching_file_cache: daemon.watching_file_cache,
                file_cache: Bytes(file * PAGE),
                critical_stall: self.psi(self.now).full.average[0] > daemon.lmkd.stall_limit_critical as f64,
            };
            self.act(daemon, &sight);
        }
        daemon.poll(self.now, event || daemon.killed || direct, swap_low || daemon.killed);
    }

    fn act(&mut self, daemon: &mut Daemon, sight: &Sight) {
        use KillReason as R;
        let decision = decide(&daemon.lmkd, sight);
        match decision {
            Some((R::LowSwapAndThrashing | R::LowMemoryAndThrashing | R::DirectReclaimAndThrashing, _)) => {
                daemon.watching_file_cache = true;
            }
            None => daemon.watching_file_cache = false,
            Some(_) => {}
        }
        let Some((reason, least)) = decision else { return };
        let Some(victim) = self.victim(least, &daemon.lmkd) else { return };
        self.kill(victim, reason, least, sight.thrashing, self.now);
        daemon.killed = true;
        if matches!(reason, R::LowMemoryAndThrashing | R::DirectReclaimAndThrashing) {
            daemon.thrashing_limit = daemon.thrashing_limit * (100 - daemon.lmkd.thrashing_limit_decay) / 100;
        }
    }

    /// Among the processes with memory that have the highest score: the least recently used, or the one with most DRAM
    /// if that is configured or if they are perceptible. (lmkd skips processes without a page in DRAM; a real process
    /// always has some, so here one that is completely swapped out counts.)
    fn victim(&self, least: i32, lmkd: &Lmkd) -> Option<usize> {
        let processes = &self.processes;
        let may = |&index: &usize| {
            let process = &processes[index];
            process.adj >= least && process.resident + process.swapped > 0
        };
        let adj = self.running().filter(may).map(|index| processes[index].adj).max()?;
        let of_adj = self.running().filter(may).filter(|&index| processes[index].adj == adj);
        if lmkd.kill_heaviest || adj < lmkd.perceptible {
            of_adj.max_by_key(|&index| (processes[index].resident, std::cmp::Reverse(processes[index].since)))
        } else {
            of_adj.min_by_key(|&index| processes[index].since)
        }
    }

    fn breached(&self, lmkd: &Lmkd) -> Breached {
        let marks = self.settings.watermarks;
        // Movable pages come out of the contiguous memory as soon as it has more than half of the
        // free memory (`__rmqueue`).
        let free = Bytes(self.free).saturating_sub(lmkd.contiguous.min(Bytes(self.free / 2)));
        let all = [(marks.min, Breached::Min), (marks.low, Breached::Low), (marks.high, Breached::High)];
        let below = all.into_iter().find(|&(mark, _)| free < mark + lmkd.protection);
        below.map_or(Breached::None, |(_, breached)| breached)
    }

    /// Whether less than the configured share of swap is free, as lmkd computes it (`get_free_swap`).
    fn swap_is_low(&self, lmkd: &Lmkd) -> bool {
        let total = self.swap.zram.capacity + self.swap.partition.capacity;
        let mut free = total - self.swap.zram.stored - self.swap.partition.used;
        if self.swap.zram.capacity > 0 && lmkd.swap_compression_ratio.0 > 0.0 {
            let easily_had = self.free / PAGE + self.inactive(FILE);
            // A float cast saturates.
            free = free.min((easily_had as f64 * lmkd.swap_compression_ratio.0) as u64);
        }
        free < total * lmkd.swap_free_low / 100
    }

    fn swap_utilisation(&self) -> u64 {
        let used = self.swap.zram.stored + self.swap.partition.used;
        let swappable = self.extents.kind_pages(ANON) + used;
        (used * 100).checked_div(swappable).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use haversack_devices::{load, load_system};

    use super::*;
    use crate::phone::{Costs, Settings, Watermarks};

    #[test]
    fn free_memory_is_counted_without_contiguous_and_against_the_zones_protection() {
        const MIB: u64 = 1 << 20;
        let [min, low, high] = [1, 2, 4].map(|mib| Bytes(mib * MIB));
        let settings = Settings::new(Bytes(256 * MIB), Watermarks { min, low, high });
        let phone = PhoneMemory::new(settings, Costs::default(), Costs::default()).unwrap();
        let aosp = Lmkd::new(&load_system("android").unwrap(), &load("galaxy-s22").unwrap());
        let breached = |protection: u64, contiguous: u64| {
            let lmkd =
                Lmkd { protection: Bytes(protection * MIB), contiguous: Bytes(contiguous * MIB), ..aosp.clone() };
            phone.breached(&lmkd)
        };
        // 256 MiB are free: below 255 + 2 and not below 255 + 1.
        assert_eq!((breached(0, 0), breached(255, 0)), (Breached::None, Breached::Low));
        // At most half of the free memory is contiguous: 128 are left, below 126 + 4 and not below 126 + 2.
        assert_eq!((breached(0, 255), breached(126, 255)), (Breached::None, Breached::High));
        assert_eq!(breached(200, 100), Breached::Min);
    }
}
