//! Passing time: kswapd, the write queue, PSI and lmkd.

use haversack_devices::Nanos;

use super::{
    ANON, Activity, ActorId, Costs, FILE, Flash, KillReason, Look, PATIENCE, PhoneMemory, Reclaimer, State, Transfer,
    Write,
};

/// The kernel's reclaiming thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Kswapd {
    pub(super) costs: Costs,
    awake: bool,
    /// It found nothing to reclaim; it wakes when something is freed or direct reclaim succeeds.
    pub(super) hopeless: bool,
    /// The time up to which it has worked.
    clock: Nanos,
    /// It sleeps until a write ends.
    awaits_write: bool,
    /// Pages scanned since it last reclaimed one.
    fruitless: u64,
    /// The actor that shares its core, if any.
    beside: Option<u32>,
}

impl Kswapd {
    pub(super) fn new(costs: Costs) -> Self {
        Self { costs, ..Self::default() }
    }

    /// The time at which it continues without an outside event; the end of time if it does not.
    fn due(&self) -> Nanos {
        if self.awake && !self.awaits_write { self.clock } else { Nanos::MAX }
    }
}

impl PhoneMemory {
    /// Advances the time to `until` and executes everything up to then.
    pub(super) fn advance(&mut self, until: Nanos, flash: &mut dyn Flash) {
        while self.now < until || self.actors.next(self.now).is_some() {
            self.step(until, flash);
        }
    }

    /// Advances to the next event, at most to `until`: flash ends a transfer, kswapd has scanned an extent, PSI or
    /// lmkd check, actors continue.
    pub(super) fn step(&mut self, until: Nanos, flash: &mut dyn Flash) {
        let actors = self.actors.look();
        if actors.stalled > 0 || self.kswapd.awake {
            self.pressure.begin(self.now);
        }
        let polling = self.daemon.as_ref().and_then(|daemon| daemon.polling);
        let next = [self.pressure.next_check(), polling.map(|polling| polling.next)];
        let check = next.into_iter().flatten().min().unwrap_or(Nanos::MAX).max(self.now);
        let to = until.max(self.now).min(check).min(actors.due.max(self.now));
        let kswapd = self.kswapd.due();
        if let Some((transfer, at)) = flash.advance(to.min(kswapd)) {
            self.pass_to(at.max(self.now), actors);
            self.end_transfer(transfer);
        } else if kswapd < to {
            self.pass_to(kswapd.max(self.now), actors);
            self.step_kswapd(flash);
        } else {
            self.pass_to(to, actors);
            if to >= check {
                self.check_pressure();
            }
            self.step_actors(flash);
        }
    }

    /// Lets time pass in which all activities continue; kswapd's own reclaim counts as a stall (`balance_pgdat`).
    fn pass_to(&mut self, to: Nanos, actors: Activity) {
        let span = to - self.now;
        self.now = to;
        let stalled = actors.stalled + u32::from(self.kswapd.awake);
        if stalled > 0 {
            self.pressure.note(to, span, [stalled, actors.working], &self.settings.spread);
        }
    }

    /// Wakes kswapd, unless it is working already or has nothing to reclaim.
    pub(super) fn wake_kswapd(&mut self) {
        if self.kswapd.awake || self.kswapd.hopeless {
            return;
        }
        self.kswapd.awake = true;
        self.kswapd.clock = self.kswapd.clock.max(self.now);
        (self.kswapd.awaits_write, self.kswapd.fruitless) = (false, 0);
        self.counters.pageoutrun += 1;
        if self.generations.too_young(self.now) {
            self.kill_for_memory();
        }
    }

    /// kswapd scans an extent, or goes to sleep.
    fn step_kswapd(&mut self, flash: &mut dyn Flash) {
        let patience = PATIENCE * (self.extents.kind_pages(ANON) + self.extents.kind_pages(FILE));
        let enough = self.free >= self.settings.watermarks.high.0;
        if enough || self.kswapd.fruitless > patience {
            return self.rest_kswapd(!enough);
        }
        let (costs, at) = (self.kswapd.costs, self.now);
        match self.reclaim_step(Look { who: Reclaimer::Kswapd, costs, at }, flash) {
            None if self.writeback.queue.is_empty() => self.rest_kswapd(true),
            None => self.kswapd.awaits_write = true,
            Some(step) => {
                self.kswapd.clock = at + step.running + self.take_turns(step.running);
                self.kswapd.awaits_write = step.congested;
                self.kswapd.fruitless = if step.reclaimed > 0 { 0 } else { self.kswapd.fruitless + step.scanned };
            }
        }
    }

    /// Makes kswapd share a core of this actor: while both have work, each gets half of it.
    pub fn share_kswapd(&mut self, actor: ActorId) {
        self.kswapd.beside = self.actor(actor);
    }

    /// The additional time of kswapd's `work` if the actor that shares its core is working too; charges
    /// that actor the same time.
    fn take_turns(&mut self, work: Nanos) -> Nanos {
        let beside = self.kswapd.beside.filter(|&index| self.actors.get(index).works());
        beside.map_or(Nanos::ZERO, |index| {
            self.actors.get_mut(index).lost += work;
            work
        })
    }

    fn rest_kswapd(&mut self, hopeless: bool) {
        (self.kswapd.awake, self.kswapd.hopeless) = (false, hopeless);
        self.snapshot_refaults();
    }

    /// Handles all transfers that flash has ended by now.
    pub(super) fn end_transfers(&mut self, flash: &mut dyn Flash) {
        while let Some((transfer, _)) = flash.advance(self.now) {
            self.end_transfer(transfer);
        }
    }

    /// Handles one: flash has read for an actor, or written an extent, whose pages are now free.
    fn end_transfer(&mut self, transfer: Transfer) {
        if self.actors.read(transfer, self.now) {
            return;
        }
        // The queue is in the order of their start.
        let Ok(at) = self.writeback.queue.binary_search_by_key(&transfer, |write| write.transfer) else { return };
        let Some(Write { id, number, .. }) = self.writeback.queue.remove(at) else { return };
        self.actors.written(self.now);
        if std::mem::take(&mut self.kswapd.awaits_write) {
            self.kswapd.clock = self.kswapd.clock.max(self.now);
        }
        let extent = self.extents.get(id);
        if extent.state != State::Writeback || extent.clock != number {
            return;
        }
        let pages = u64::from(extent.pages);
        let kind = self.regions[extent.region as usize].kind();
        self.writeback.pages -= pages;
        self.forget_resident(id);
        self.extents.get_mut(id).state = if kind == ANON { State::Flash } else { State::Dropped };
        self.leave_shadow(id);
    }

    /// The kernel's own killer: the process with most memory, plus its score in thousandths of memory (`oom_badness`).
    /// Returns false if no process may be killed.
    pub(super) fn kill_for_memory(&mut self) -> bool {
        let total = ((self.settings.ram.0 / super::PAGE + self.swap.zram.capacity + self.swap.partition.capacity)
            / 1000) as i64;
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
