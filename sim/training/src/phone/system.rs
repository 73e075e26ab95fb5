//! The phone's system beside the run: pages of tensors, of the system and of apps in one memory, and who is killed.

use std::collections::BTreeMap;

use haversack_devices::storage::{Direction, Driver, FlashQueue, Stream};
use haversack_devices::units::{Bytes, Fraction, Nanos};
use haversack_memory::phone::{Access, Backing, Flash, Kill, PhoneError, PhoneMemory, ProcessId, RegionId, Stall};
use haversack_policies::budget::SwapKind;
use haversack_workloads::TensorId;

use super::others::Others;
use super::pool::{Pool, PoolPlace};
use super::span::Watch;
use super::{AppState, Phone, SystemMemory, WatchedSample};
use crate::record::PhoneReport;
use crate::tensors::Change;

/// What is in use all the time is touched so often.
const PULSE: Nanos = Nanos(1_000_000_000);
/// Apps with a larger score are in the background.
const IN_FRONT: i32 = 0;
/// Reads of a page at a time: what a fault waits for.
const ONE_AT_A_TIME: u32 = 1;
/// The largest command that the block layer makes of neighbouring pages.
const WRITE_COMMAND: Bytes = Bytes(64 << 10);

/// A phone in use.
pub(super) struct PhoneSystem<'a> {
    phone: &'a Phone,
    memory: PhoneMemory,
    flash: PhoneFlash,
    /// The process that trains.
    trainer: ProcessId,
    /// Its memory: a region of pieces and a slab of what is smaller.
    pool: Pool,
    pieces: RegionId,
    slab: RegionId,
    /// Where tensors lie in it, whole and in another form.
    whole: Vec<PoolPlace>,
    stored: Vec<PoolPlace>,
    /// What the system holds, with the share that is in use all the time.
    own: Vec<Region>,
    /// What a recording says of all others.
    others: Others<'a>,
    apps: BTreeMap<String, App>,
    /// The next change of an app, and the next pulse.
    next_change: usize,
    next_pulse: Nanos,
    /// The phone's clock when the run begins.
    start: Nanos,
    /// When memory was last looked at.
    seen: Nanos,
    /// The iteration so far, and the iterations.
    watches: [Watch; 2],
    apps_killed: u64,
}

/// Memory of which a share is in use all the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) id: RegionId,
    pub(super) bytes: Bytes,
    pub(super) hot: Fraction,
}

#[derive(Debug)]
struct App {
    process: ProcessId,
    anonymous: RegionId,
    file: RegionId,
    state: AppState,
}

/// The flash as the kernel uses it: a fault reads one page after another, reclaim writes runs of pages.
pub(super) struct PhoneFlash {
    queue: FlashQueue,
    driver: Driver,
    /// When the runs that are being written will be.
    written: Nanos,
}

impl Flash for PhoneFlash {
    fn read(&mut self, now: Nanos, bytes: Bytes, requests: u64) -> Nanos {
        // Nobody asks for the writes that have ended.
        while self.queue.advance(now).is_some() {}
        let command = Bytes(bytes.0 / requests.max(1));
        self.queue.read(now, bytes, command, ONE_AT_A_TIME, self.driver)
    }

    fn write(&mut self, now: Nanos, bytes: Bytes) -> Nanos {
        self.queue.write_behind(now, bytes, WRITE_COMMAND, self.driver.in_place());
        // Behind what is on its way: the device takes up each run for so long.
        let occupied = self.queue.flash().occupation(Direction::Write, WRITE_COMMAND).0 * 1e9;
        let taken = occupied * (bytes.as_f64() / WRITE_COMMAND.as_f64());
        self.written = self.written.max(now) + Nanos(taken as u64);
        self.written - now
    }
}

impl<'a> PhoneSystem<'a> {
    /// A phone that is at rest, with the apps that are there from the start; the trainer has nothing yet.
    pub(super) fn new(phone: &'a Phone, tensors: usize) -> Result<Self, PhoneError> {
        let mut memory = PhoneMemory::new(phone.memory.clone(), phone.training, phone.kswapd)?;
        let queue = FlashQueue::new(phone.flash.clone());
        let mut flash = PhoneFlash { queue, driver: phone.driver, written: Nanos::ZERO };
        let process = memory.spawn("system", SYSTEM)?;
        let mut own = Vec::new();
        for &SystemMemory { bytes, backing, hot } in &phone.own {
            let id = memory.map(process, bytes, backing)?;
            memory.touch(id, Access::Read, Nanos::ZERO, &mut flash)?;
            own.push(Region { id, bytes, hot });
        }
        let others = Others::new(phone, &mut memory, process)?;
        let (trainer, [pieces, slab]) = trainer_process(&mut memory, phone)?;
        let start = memory.now();
        let mut system = Self {
            phone,
            memory,
            flash,
            trainer,
            pool: Pool::new(phone.memory.extent.0),
            pieces,
            slab,
            whole: vec![PoolPlace::None; tensors],
            stored: vec![PoolPlace::None; tensors],
            own,
            others,
            apps: BTreeMap::new(),
            next_change: 0,
            next_pulse: Nanos::ZERO,
            start,
            seen: Nanos::ZERO,
            watches: [Watch::default(); 2],
            apps_killed: 0,
        };
        system.tend(Nanos::ZERO)?;
        Ok(system)
    }

    /// The phone's time at the run's `now`: it was switched on before.
    fn at(&self, now: Nanos) -> Nanos {
        self.start + now
    }

    /// Everything that happens on the phone up to `now`: apps change, what is in use is touched, kswapd works.
    pub(super) fn tend(&mut self, now: Nanos) -> Result<(), PhoneError> {
        let phone = self.phone;
        loop {
            let change = phone.apps.get(self.next_change).map_or(Nanos::MAX, |change| change.at);
            let held = self.others.next();
            let next = change.min(self.next_pulse).min(held);
            if next > now {
                break;
            }
            self.look(next);
            if held <= next {
                let at = self.at(next);
                self.others.change(at, &mut self.memory, &mut self.flash)?;
            } else if change <= self.next_pulse {
                self.next_change += 1;
                let change = &phone.apps[self.next_change - 1];
                self.change_app(next, &change.app, change.state)?;
            } else {
                self.pulse(next)?;
                self.next_pulse += PULSE;
            }
        }
        self.look(now);
        Ok(())
    }

    /// Lets the kernel work up to `now`, and notes what was in use.
    fn look(&mut self, now: Nanos) {
        let (before, span) = (self.in_use(), now.saturating_sub(self.seen));
        let unavailable = self.memory.settings().ram.saturating_sub(self.memory.available());
        self.seen = self.seen.max(now);
        self.memory.pass(self.at(now), &mut self.flash);
        let after = self.in_use();
        for watch in &mut self.watches {
            watch.used += u128::from(before.0) * u128::from(span.0);
            watch.unavailable += u128::from(unavailable.0) * u128::from(span.0);
            watch.peak = watch.peak.max(after);
        }
    }

    /// All that is not free.
    fn in_use(&self) -> Bytes {
        self.memory.settings().ram.saturating_sub(self.memory.free())
    }

    /// What is in use all the time is touched.
    fn pulse(&mut self, now: Nanos) -> Result<(), PhoneError> {
        let at = self.at(now);
        for region in self.own.iter().chain(self.others.region()) {
            let hot = share(region.bytes, region.hot);
            self.memory.touch_part(region.id, Bytes::ZERO..hot, Access::Read, at, &mut self.flash)?;
        }
        let in_front: Vec<(ProcessId, RegionId, Bytes)> = self.apps.values().flat_map(App::in_use).collect();
        for (process, region, hot) in in_front {
            self.app_touches(process, region, hot, Access::Write, at)?;
        }
        Ok(())
    }

    /// An app touches the beginning of a region. One that has been ended, now or before, touches nothing.
    fn app_touches(
        &mut self,
        process: ProcessId,
        region: RegionId,
        bytes: Bytes,
        access: Access,
        at: Nanos,
    ) -> Result<(), PhoneError> {
        if !self.memory.is_running(process) {
            return Ok(());
        }
        match self.memory.touch_part(region, Bytes::ZERO..bytes, access, at, &mut self.flash) {
            Ok(_) | Err(PhoneError::Killed { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn change_app(&mut self, now: Nanos, name: &str, state: Option<AppState>) -> Result<(), PhoneError> {
        // An app that was killed is launched anew.
        if self.apps.get(name).is_some_and(|app| !self.memory.is_running(app.process)) {
            self.apps.remove(name);
        }
        let Some(state) = state else {
            if let Some(app) = self.apps.remove(name) {
                self.memory.exit(app.process)?;
            }
            self.share_flash(now);
            return Ok(());
        };
        let app = match self.apps.remove(name) {
            Some(app) => {
                self.memory.set_adj(app.process, state.adj)?;
                self.memory.resize(app.anonymous, state.anonymous)?;
                self.memory.resize(app.file, state.file)?;
                App { state, ..app }
            }
            None => {
                let process = self.memory.spawn(name, state.adj)?;
                let anonymous = Backing::Anonymous(self.phone.app_pages);
                App {
                    process,
                    anonymous: self.memory.map(process, state.anonymous, anonymous)?,
                    file: self.memory.map(process, state.file, Backing::File)?,
                    state,
                }
            }
        };
        let at = self.at(now);
        for (region, bytes, access) in
            [(app.anonymous, state.anonymous, Access::Write), (app.file, state.file, Access::Read)]
        {
            self.app_touches(app.process, region, share(bytes, state.touched), access, at)?;
        }
        self.apps.insert(name.to_owned(), app);
        self.share_flash(now);
        Ok(())
    }

    /// Apps that were not killed.
    fn living(&self) -> impl Iterator<Item = &App> {
        self.apps.values().filter(|app| self.memory.is_running(app.process))
    }

    /// Apps in the background write their caches.
    fn share_flash(&mut self, now: Nanos) {
        let behind = self.living().filter(|app| app.state.adj > IN_FRONT).count();
        let streams: Vec<Stream> = (0..behind).flat_map(|_| self.phone.background.iter().copied()).collect();
        self.flash.queue.set_streams(self.at(now), &streams);
    }

    /// Tensors came and went.
    pub(super) fn follow(&mut self, changes: Vec<Change>) -> Result<(), PhoneError> {
        for change in changes {
            let (place, bytes) = match change {
                Change::Whole(tensor, bytes) => (&mut self.whole[tensor as usize], bytes),
                Change::Stored(tensor, bytes) => (&mut self.stored[tensor as usize], bytes),
            };
            self.pool.give(std::mem::take(place));
            *place = self.pool.take(bytes.0);
        }
        self.memory.resize(self.pieces, Bytes(self.pool.bytes()))?;
        self.memory.resize(self.slab, Bytes(self.pool.slab_bytes()))
    }

    /// The process unmaps the memory that no tensor is in; what comes next faults its pages in anew.
    pub(super) fn give_pool_back(&mut self) -> Result<(), PhoneError> {
        self.pool.trim();
        self.memory.resize(self.pieces, Bytes(self.pool.bytes()))?;
        self.memory.resize(self.slab, Bytes(self.pool.slab_bytes()))
    }

    /// The trainer's thread touches a tensor.
    pub(super) fn touch(&mut self, tensor: TensorId, access: Access, now: Nanos) -> Result<Stall, PhoneError> {
        let before = self.memory.counters().pgmajfault;
        let touched = self.touch_places(tensor, access, now);
        // Nobody else faults meanwhile.
        self.watches[0].faults += self.memory.counters().pgmajfault - before;
        touched
    }

    fn touch_places(&mut self, tensor: TensorId, access: Access, now: Nanos) -> Result<Stall, PhoneError> {
        let mut stall = Stall::default();
        let piece = self.phone.memory.extent.0;
        for place in [&self.whole[tensor as usize], &self.stored[tensor as usize]] {
            match place {
                PoolPlace::None => {}
                PoolPlace::Slab(_) => {
                    let at = self.start + now + stall.total();
                    tally(&mut stall, self.memory.touch(self.slab, access, at, &mut self.flash))?;
                }
                PoolPlace::Runs(runs) => {
                    for run in runs {
                        let part = Bytes(run.start * piece)..Bytes(run.end * piece);
                        let at = self.start + now + stall.total();
                        tally(&mut stall, self.memory.touch_part(self.pieces, part, access, at, &mut self.flash))?;
                    }
                }
            }
        }
        Ok(stall)
    }

    /// Whether the trainer has been ended; apps that were are counted.
    pub(super) fn killed(&mut self, now: Nanos) -> Option<Kill> {
        let mut of_trainer = None;
        while let Some(kill) = self.memory.poll_lmkd(self.at(now), &mut self.flash) {
            if kill.process == self.trainer {
                of_trainer = Some(Kill { at: kill.at.saturating_sub(self.start), ..kill });
            } else {
                self.apps_killed += 1;
                self.share_flash(now);
            }
        }
        of_trainer
    }

    /// A new process trains; it has nothing.
    pub(super) fn restart(&mut self) -> Result<(), PhoneError> {
        (self.trainer, [self.pieces, self.slab]) = trainer_process(&mut self.memory, self.phone)?;
        self.pool = Pool::new(self.phone.memory.extent.0);
        self.whole.fill(PoolPlace::None);
        self.stored.fill(PoolPlace::None);
        Ok(())
    }

    /// Until the first instruction of a new process.
    pub(super) fn starting(&self) -> Nanos {
        self.phone.trainer.start
    }

    /// The trainer's faults in this iteration that read flash or ZRAM.
    pub(super) fn faults(&self) -> u64 {
        self.watches[0].faults
    }

    /// Notes what the thread did.
    pub(super) fn note_stall(&mut self, stall: Stall) {
        for watch in &mut self.watches {
            watch.states.sleeping += stall.sleeping;
            watch.states.runnable += stall.runnable;
        }
    }

    /// Memory as a service in the background sees it; what the trainer holds could be had, too.
    pub(super) fn sample(&self, time: Nanos) -> Result<WatchedSample, PhoneError> {
        let held = if self.memory.is_running(self.trainer) {
            self.memory.process_usage(self.trainer)?.resident
        } else {
            Bytes::ZERO
        };
        Ok(WatchedSample {
            time,
            available: self.memory.available() + held,
            used: self.in_use(),
            watermark_high: self.memory.settings().watermarks.high,
            adjustments: self.living().filter_map(|app| i16::try_from(app.state.adj).ok()).collect(),
        })
    }

    /// Where reclaimed pages go first.
    pub(super) fn swap_kind(&self) -> SwapKind {
        if self.memory.settings().zram > Bytes::ZERO { SwapKind::Zram } else { SwapKind::Flash }
    }

    /// An iteration begins; with the first, the run.
    pub(super) fn begin(&mut self, now: Nanos, first: bool) {
        self.look(now);
        let begun = Watch { since: now, before: self.memory.counters(), ..Watch::default() };
        self.watches[0] = begun;
        if first {
            self.watches[1] = begun;
        }
    }

    /// What it was like up to `now`.
    pub(super) fn report(&mut self, now: Nanos) -> PhoneReport {
        self.look(now);
        let counters = self.memory.counters();
        let [iteration, run] = self.watches.map(|watch| watch.span(now, &counters));
        let managed = self.memory.settings().ram;
        PhoneReport { managed, iteration, run, apps_killed: self.apps_killed, kills: Vec::new() }
    }
}

impl App {
    /// What it uses all the time while it is in front.
    fn in_use(&self) -> impl Iterator<Item = (ProcessId, RegionId, Bytes)> + use<> {
        let parts = [(self.anonymous, self.state.anonymous), (self.file, self.state.file)];
        let (process, touched, in_front) = (self.process, self.state.touched, self.state.adj <= IN_FRONT);
        let parts = parts.into_iter().filter(move |_| in_front);
        parts.map(move |(region, bytes)| (process, region, share(bytes, touched)))
    }
}

/// A process that trains, and its memory, of which it has none yet.
fn trainer_process(memory: &mut PhoneMemory, phone: &Phone) -> Result<(ProcessId, [RegionId; 2]), PhoneError> {
    let process = memory.spawn("trainer", phone.trainer.adj)?;
    let mut region = || memory.map(process, Bytes::ZERO, Backing::Anonymous(phone.trainer.pages));
    Ok((process, [region()?, region()?]))
}

/// Adds what a touch took, also that of one in which the process was ended.
fn tally(stall: &mut Stall, touched: Result<Stall, PhoneError>) -> Result<(), PhoneError> {
    match touched {
        Ok(more) => *stall += more,
        Err(PhoneError::Killed { stall: more }) => {
            *stall += more;
            return Err(PhoneError::Killed { stall: *stall });
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

fn share(bytes: Bytes, share: Fraction) -> Bytes {
    // A float cast saturates.
    Bytes((bytes.as_f64() * share.0) as u64)
}

/// The system's own processes are never ended.
const SYSTEM: i32 = -900;
