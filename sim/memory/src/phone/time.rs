//! Time: what kswapd, the write queue, PSI and lmkd do while it passes.

use haversack_devices::units::Nanos;

use super::extents::State;
use super::reclaim::{Look, Reclaimer};
use super::{ANON, Costs, FILE, Flash, KillReason, PhoneMemory};

/// So often is all memory looked at in vain before reclaim gives up. Three times find what there is (to deactivate, to
/// find young, to evict; generations take a walk each), and touches go on meanwhile.
pub(super) const PATIENCE: u64 = 8;

/// An extent on its way to flash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub(super) done: Nanos,
    pub(super) id: u32,
    /// The extent's clock; another means that it was wanted back, or freed.
    pub(super) number: u64,
}

/// The kernel's thread that reclaims.
#[derive(Clone, Debug)]
pub(super) struct Kswapd {
    pub(super) costs: Costs,
    awake: bool,
    /// It found nothing to reclaim; woken again when something is freed or direct reclaim succeeds.
    pub(super) hopeless: bool,
    /// Until when it has worked.
    clock: Nanos,
    /// Pages scanned since it last reclaimed one.
    fruitless: u64,
}

impl Kswapd {
    pub(super) fn new(costs: Costs) -> Self {
        Self { costs, awake: false, hopeless: false, clock: Nanos::ZERO, fruitless: 0 }
    }
}

impl PhoneMemory {
    /// Moves time on to `until`; `stalled` says whether the faulting thread spends it waiting for memory.
    pub(super) fn advance(&mut self, until: Nanos, stalled: bool, flash: &mut dyn Flash) {
        while self.now < until {
            let idle = !stalled && !self.kswapd.awake && self.writes.is_empty();
            if stalled || self.kswapd.awake {
                self.pressure.begin(self.now);
            }
            let next = [self.pressure.next_check(), self.daemon.as_ref().and_then(super::lmkd::Daemon::next_poll)];
            let check = next.into_iter().flatten().min().unwrap_or(Nanos::MAX);
            let to = until.min(check.max(self.now));
            if idle {
                self.now = to;
            } else {
                self.work_until(to, stalled, flash);
            }
            if to >= check {
                self.check_pressure();
            }
        }
    }

    fn work_until(&mut self, to: Nanos, stalled: bool, flash: &mut dyn Flash) {
        let from = self.now;
        let busy = self.kswapd_until(to, flash);
        self.finish_writes(to);
        self.now = to;
        let span = to - from;
        let full =
            if stalled { Nanos((span.0 as f64 * (1.0 - self.settings.productive.0)) as u64) } else { Nanos::ZERO };
        // kswapd reclaims within a memory stall of its own (`balance_pgdat`).
        self.pressure.record(to, if stalled { span } else { busy }, full);
    }

    /// Wakes kswapd, unless it works already or has nothing to work on.
    pub(super) fn wake_kswapd(&mut self) {
        if self.kswapd.awake || self.kswapd.hopeless {
            return;
        }
        self.kswapd.awake = true;
        self.kswapd.clock = self.kswapd.clock.max(self.now);
        self.kswapd.fruitless = 0;
        self.counters.pageoutrun += 1;
        if self.generations.too_young(self.now) {
            self.kill_for_memory();
        }
    }

    /// Lets kswapd work until `to`; how much of the time since `now` it was awake.
    fn kswapd_until(&mut self, to: Nanos, flash: &mut dyn Flash) -> Nanos {
        if !self.kswapd.awake {
            return Nanos::ZERO;
        }
        let from = self.kswapd.clock.max(self.now).min(to);
        while self.kswapd.clock < to {
            self.finish_writes(self.kswapd.clock);
            let patience = PATIENCE * (self.extents.kind_pages(ANON) + self.extents.kind_pages(FILE));
            let enough = self.free >= self.settings.watermarks.high.0;
            if enough || self.kswapd.fruitless > patience {
                self.rest_kswapd(!enough);
                break;
            }
            let (costs, at) = (self.kswapd.costs, self.kswapd.clock);
            match self.reclaim_step(Look { who: Reclaimer::Kswapd, costs, at }, flash) {
                None => match self.writes.front() {
                    Some(write) => self.kswapd.clock = write.done,
                    None => {
                        self.rest_kswapd(true);
                        break;
                    }
                },
                Some(step) => {
                    self.kswapd.clock = step.congested.unwrap_or(at + step.running).max(at);
                    self.kswapd.fruitless = if step.reclaimed > 0 { 0 } else { self.kswapd.fruitless + step.scanned };
                }
            }
        }
        self.kswapd.clock.min(to).saturating_sub(from)
    }

    fn rest_kswapd(&mut self, hopeless: bool) {
        (self.kswapd.awake, self.kswapd.hopeless) = (false, hopeless);
        self.snapshot_refaults();
    }

    /// Frees what was written by `to`.
    pub(super) fn finish_writes(&mut self, to: Nanos) {
        while let Some(&Write { done, id, number }) = self.writes.front() {
            if done > to {
                break;
            }
            self.writes.pop_front();
            let extent = self.extents.get(id);
            if extent.state != State::Writeback || extent.clock != number {
                continue;
            }
            let pages = u64::from(extent.pages);
            let kind = self.regions[extent.region as usize].kind();
            self.writing -= pages;
            self.forget_resident(id);
            self.extents.get_mut(id).state = if kind == ANON { State::Flash } else { State::Dropped };
            self.leave_shadow(id);
        }
    }

    /// The kernel's own killer: the process that holds most, its score added in thousandths of memory
    /// (`oom_badness`). False where there is none that may be ended.
    pub(super) fn kill_for_memory(&mut self) -> bool {
        let total = ((self.settings.ram.0 / super::PAGE + self.zram.capacity + self.partition.capacity) / 1000) as i64;
        let badness = |index: usize| {
            let process = &self.processes[index];
            (process.resident + process.swapped) as i64 + i64::from(process.adj) * total
        };
        let holds = |index: &usize| {
            let process = &self.processes[*index];
            process.adj >= 0 && process.resident + process.swapped > 0
        };
        let victim = self.running().filter(holds).max_by_key(|&index| (badness(index), std::cmp::Reverse(index)));
        match victim {
            Some(index) => {
                self.kill(index, KillReason::OutOfMemory, 0, 0, self.now);
                true
            }
            None => false,
        }
    }
}
