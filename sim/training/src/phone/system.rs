//! The phone around the run: the trainer's tensors, the system and apps in one memory, and the killer's choices.
//!
//! The trainer, the system and each app are actors with separate clocks. The trainer's threads, one on each of its
//! cores, share an operator's pages. The system is many processes, of which as many stall at the same time as there are
//! cores; an app is one thread; both run at the speed of the fastest core. They touch their pages in use once a second,
//! and are late when stalls delay them. A stalled actor affects others only through memory and flash.
//!
//! PSI is `full` while some actor stalls and neither the trainer's cores nor an app in front work. Left out: the work
//! of the system and of background apps, which would make it `full` less often; and the cores that the system and apps
//! take from the trainer.

use haversack_devices::storage::Stream;
use haversack_devices::{Bytes, Direction, Nanos};
use haversack_memory::phone::{Access, ActorId, Kill, Part, PhoneError, PhoneMemory, Stall, Touched};
use haversack_policies::SwapKind;
use haversack_workloads::TensorId;

use super::apps::Apps;
use super::at_rest::{AtRest, Others, Pulse, Region};
use super::flash::PhoneFlash;
use super::in_use::SECOND;
use super::pool::Places;
use super::{Phone, Threads, WatchedSample};
use crate::record::{PhoneReport, Watch};
use crate::tensors::Change;
use crate::timeline::{Happening, PhoneEvent, PhoneSample, PhoneTrack, Pressure};

/// A phone in use.
pub(super) struct PhoneSystem<'a> {
    pub(super) phone: &'a Phone,
    memory: PhoneMemory,
    flash: PhoneFlash,
    /// The process that trains, and its threads.
    trainer: Places,
    threads: ActorId,
    computes: bool,
    /// The system's memory, with the share that is in use all the time.
    own: Vec<Region>,
    /// Memory of all others, from a recording.
    others: Others<'a>,
    /// The system's thread.
    pulse: Pulse,
    apps: Apps,
    /// The next change of an app.
    next_change: usize,
    /// The phone's clock when the run begins.
    start: Nanos,
    /// When memory was last observed, with the memory in use and unavailable then.
    seen: Nanos,
    held: [Bytes; 2],
    /// Statistics of the current iteration, and of all iterations.
    watches: [Watch; 2],
    apps_killed: u64,
    /// Events of the run, if they are recorded.
    track: Option<PhoneTrack>,
    /// When the track is sampled next.
    next_look: Nanos,
}

impl<'a> PhoneSystem<'a> {
    /// A phone that is at rest, with its initial apps; the trainer has nothing yet.
    pub(super) fn new(phone: &'a Phone, tensors: usize, threads: Threads) -> Result<Self, PhoneError> {
        Self::on(AtRest::of(phone)?, phone, tensors, threads)
    }

    /// The same on a phone that was switched on before.
    pub(super) fn on(
        AtRest { mut memory, flash, process, own }: AtRest,
        phone: &'a Phone,
        tensors: usize,
        threads: Threads,
    ) -> Result<Self, PhoneError> {
        let others = Others::new(phone, &mut memory, process)?;
        let mut system = Self {
            phone,
            flash,
            trainer: Places::new(&mut memory, phone, tensors)?,
            threads: memory.add_actor(phone.training, threads.count),
            computes: threads.compute,
            own,
            others,
            pulse: Pulse::new(memory.add_actor(phone.front, phone.cores), phone.phase),
            apps: Apps::default(),
            next_change: 0,
            start: memory.now(),
            seen: Nanos::ZERO,
            held: [Bytes::ZERO; 2],
            watches: [Watch::default(); 2],
            apps_killed: 0,
            track: None,
            next_look: Nanos::MAX,
            memory,
        };
        for (place, &state) in phone.cached.iter().enumerate() {
            system.apps.change(Nanos::ZERO, &format!("cached {place}"), Some(state), phone, &mut system.memory)?;
        }
        system.tend(Nanos::ZERO)?;
        while system.memory.is_touching() {
            if let Some(touched) = system.memory.run(Nanos::MAX, &mut system.flash) {
                system.note(&touched)?;
            }
        }
        if phone.kswapd_shares {
            system.memory.share_kswapd(system.threads);
        }
        system.start = system.memory.now();
        system.held = system.held_now();
        Ok(system)
    }

    /// The phone's time at the run's `now`: it was switched on before.
    fn at(&self, now: Nanos) -> Nanos {
        Nanos(self.start.0.saturating_add(now.0))
    }

    /// The run's time.
    fn now(&self) -> Nanos {
        self.memory.now().saturating_sub(self.start)
    }

    /// Runs everything on the phone up to `now`: apps change, memory in use is touched, kswapd works.
    pub(super) fn tend(&mut self, now: Nanos) -> Result<(), PhoneError> {
        self.go_on(now).map(|_none_touches| ())
    }

    /// Advances the phone to `until`, or until the trainer has touched all its pages.
    fn go_on(&mut self, until: Nanos) -> Result<Option<Touched>, PhoneError> {
        loop {
            let next = self.next();
            let touched = self.memory.run(self.at(until.min(next)), &mut self.flash);
            self.look();
            match touched {
                Some(touched) if touched.actor == self.threads => return Ok(Some(touched)),
                Some(touched) => self.note(&touched)?,
                None if next <= until => self.happen(next.max(self.now()))?,
                None => return Ok(None),
            }
        }
    }

    /// When something begins next.
    fn next(&self) -> Nanos {
        let change = self.phone.apps.get(self.next_change).map_or(Nanos::MAX, |change| change.at);
        change.min(self.others.next()).min(self.pulse.due()).min(self.apps.due(&self.memory)).min(self.next_look)
    }

    /// Starts everything that is due at `now`: changes from the recording first, then changes of apps, then touching
    /// the memory in use.
    fn happen(&mut self, now: Nanos) -> Result<(), PhoneError> {
        if self.next_look <= now {
            self.next_look = now + SECOND;
            self.show(now);
            return Ok(());
        }
        if self.others.next() <= now {
            let grown = self.others.change(&mut self.memory)?;
            return self.memory.begin(self.pulse.actor, grown);
        }
        if let Some(change) = self.phone.apps.get(self.next_change).filter(|change| change.at <= now) {
            self.next_change += 1;
            self.apps.change(now, &change.app, change.state, self.phone, &mut self.memory)?;
            self.share_flash(now);
            return Ok(());
        }
        if self.pulse.due() <= now {
            self.pulse.begin(now);
            let regions = self.own.iter().chain(self.others.region());
            self.memory.begin(self.pulse.actor, regions.map(|region| region.in_use(Access::Read)))?;
        }
        self.apps.pulse(now, &mut self.memory)
    }

    /// The system or an app has touched its pages.
    fn note(&mut self, touched: &Touched) -> Result<(), PhoneError> {
        let (stall, lives) = match &touched.outcome {
            Ok(stall) => (stall, true),
            Err(PhoneError::Killed(stall)) => (stall, false),
            Err(error) => return Err(error.clone()),
        };
        let now = touched.at.saturating_sub(self.start);
        let of_system = touched.actor == self.pulse.actor;
        let launched = if of_system { None } else { self.apps.touched(touched.actor, now, lives) };
        if of_system {
            self.pulse.end(now);
        }
        self.happened(now, stall.total(), if of_system { Happening::SystemStall } else { Happening::AppStall });
        if let Some((app, took)) = &launched {
            self.happened(now, *took, Happening::Launch { app: app.clone() });
        }
        for watch in &mut self.watches {
            let stalls = if of_system { &mut watch.system } else { &mut watch.apps };
            stalls.add(stall.total());
            launched.iter().for_each(|(_, took)| watch.launches.add(*took));
        }
        Ok(())
    }

    /// Accounts for the memory in use since the last observation.
    fn look(&mut self) {
        let now = self.now();
        let (span, held) = (now.saturating_sub(self.seen), self.held_now());
        let [used, unavailable] = std::mem::replace(&mut self.held, held);
        self.seen = self.seen.max(now);
        for watch in &mut self.watches {
            watch.used += u128::from(used.0) * u128::from(span.0);
            watch.unavailable += u128::from(unavailable.0) * u128::from(span.0);
            watch.peak = watch.peak.max(held[0]);
            watch.unavailable_peak = watch.unavailable_peak.max(held[1]);
        }
    }

    /// Memory in use, and unavailable memory (`MemTotal` less `MemAvailable`).
    fn held_now(&self) -> [Bytes; 2] {
        [self.in_use(), self.memory.settings().ram.saturating_sub(self.memory.available())]
    }

    /// All memory that is not free.
    fn in_use(&self) -> Bytes {
        self.memory.settings().ram.saturating_sub(self.memory.free())
    }

    /// Apps in the background write their caches, and the one in front reads its files.
    fn share_flash(&mut self, now: Nanos) {
        let (behind, in_front) = (self.apps.behind(&self.memory), self.apps.in_front(&self.memory));
        let of = |apps: usize, streams: &'a [Stream]| (0..apps).flat_map(move |_| streams.iter().copied());
        let streams: Vec<Stream> =
            of(behind, &self.phone.background).chain(of(in_front, &self.phone.foreground)).collect();
        self.flash.queue.set_streams(self.at(now), &streams);
    }

    /// How long the flash takes to write or read `bytes` of the process from `now` on.
    pub(super) fn transfer(&mut self, now: Nanos, direction: Direction, bytes: Bytes) -> Nanos {
        let at = self.at(now);
        self.flash.transfer(at, direction, bytes)
    }

    /// Tensors came and went.
    pub(super) fn follow(&mut self, changes: Vec<Change>) -> Result<(), PhoneError> {
        self.trainer.follow(changes, &mut self.memory)?;
        self.look();
        Ok(())
    }

    /// The process unmaps the memory that no tensor is in; later allocations fault their pages in again.
    pub(super) fn give_pool_back(&mut self) -> Result<(), PhoneError> {
        self.trainer.give_back(&mut self.memory)?;
        self.look();
        Ok(())
    }

    /// The trainer's threads touch tensors from now on. Returns their stall until they finish, or until their process
    /// is killed, including the time that kswapd took from one of their cores before.
    pub(super) fn touch(&mut self, tensors: impl Iterator<Item = (TensorId, Access)>) -> Result<Stall, PhoneError> {
        let parts: Vec<Part> = tensors.flat_map(|(tensor, access)| self.trainer.parts(tensor, access)).collect();
        self.memory.set_computing(self.threads, self.computes);
        self.memory.begin(self.threads, parts)?;
        let Some(touched) = self.go_on(Nanos::MAX)? else { return Ok(Stall::default()) };
        let stall = match touched.outcome {
            Ok(stall) | Err(PhoneError::Killed(stall)) => stall,
            Err(error) => return Err(error),
        };
        // All threads wait for the one whose core kswapd has used.
        let lost = self.memory.take_lost(self.threads);
        let stall = Stall { runnable: stall.runnable + lost, ..stall };
        self.happened(touched.at.saturating_sub(self.start), stall.total(), Happening::TrainerStall);
        for watch in &mut self.watches {
            watch.faults += touched.major;
            watch.trainer.add(stall.total());
            watch.states.sleeping += stall.sleeping;
            watch.states.runnable += stall.runnable;
        }
        Ok(stall)
    }

    /// Whether the trainer has been ended; apps that were are counted.
    pub(super) fn killed(&mut self, now: Nanos) -> Option<Kill> {
        let mut of_trainer = None;
        while let Some(kill) = self.memory.poll_lmkd(self.at(now), &mut self.flash) {
            let of_trainer_itself = kill.process == self.trainer.process;
            self.ended(&kill, of_trainer_itself);
            if of_trainer_itself {
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
        self.memory.set_computing(self.threads, false);
        self.trainer = Places::new(&mut self.memory, self.phone, self.trainer.tensors())?;
        Ok(())
    }

    /// The trainer's faults in this iteration that read flash or ZRAM.
    pub(super) fn faults(&self) -> u64 {
        self.watches[0].faults
    }

    /// Memory as a service in the background sees it; the trainer's memory counts as available.
    pub(super) fn sample(&self, time: Nanos) -> Result<WatchedSample, PhoneError> {
        let held = if self.memory.is_running(self.trainer.process) {
            self.memory.process_usage(self.trainer.process)?.resident
        } else {
            Bytes::ZERO
        };
        Ok(WatchedSample {
            time,
            available: self.memory.available() + held,
            used: self.in_use(),
            watermark_high: self.memory.settings().watermarks.high,
            adjustments: self.apps.adjustments(&self.memory),
        })
    }

    /// Where reclaimed pages go first.
    pub(super) fn swap_kind(&self) -> SwapKind {
        if self.memory.settings().zram > Bytes::ZERO { SwapKind::Zram } else { SwapKind::Flash }
    }

    /// An iteration begins at `now`; with the first, the run.
    pub(super) fn begin(&mut self, now: Nanos, first: bool, tracked: bool) {
        self.look();
        let psi = self.memory.psi(self.at(now));
        let begun = Watch::new(now, self.memory.counters(), &psi);
        self.watches[0] = begun;
        if first {
            self.watches[1] = begun;
        }
        if first {
            let settings = self.memory.settings();
            let (managed, low_watermark) = (settings.ram, settings.watermarks.low);
            self.track = tracked.then(|| PhoneTrack { managed, low_watermark, ..PhoneTrack::default() });
            self.next_look = if tracked { now + SECOND } else { Nanos::MAX };
        }
        self.show(now);
    }

    /// Puts the kernel's counters at `now` on the track, if there is one.
    fn show(&mut self, now: Nanos) {
        if self.track.is_none() {
            return;
        }
        let sample = PhoneSample {
            at: now,
            usage: self.memory.usage(),
            trainer: self.memory.process_usage(self.trainer.process).map_or(Bytes::ZERO, |held| held.resident),
            unavailable: self.held_now()[1],
            pressure: Pressure::of(&self.memory.psi(self.at(now))),
            counters: self.memory.counters(),
        };
        self.track.iter_mut().for_each(|track| track.samples.push(sample.clone()));
    }

    /// Puts an event that took `duration` until `now` on the track, if it took any time.
    fn happened(&mut self, now: Nanos, duration: Nanos, what: Happening) {
        let start = now.saturating_sub(duration);
        if let Some(track) = self.track.as_mut().filter(|_| duration > Nanos::ZERO) {
            track.events.push(PhoneEvent { start, duration, what });
        }
    }

    /// Puts a kill on the track.
    fn ended(&mut self, kill: &Kill, of_trainer: bool) {
        let start = kill.at.saturating_sub(self.start);
        let app = (!of_trainer).then(|| kill.name.clone());
        let what = Happening::Kill { app, reason: kill.reason.name(), adj: kill.adj, min_adj: kill.min_adj };
        if let Some(track) = &mut self.track {
            track.events.push(PhoneEvent { start, duration: Nanos::ZERO, what });
        }
    }

    /// Puts a budget that is planned at `now` on the track.
    pub(super) fn planned(&mut self, now: Nanos, budget: Bytes) {
        if let Some(track) = &mut self.track {
            track.budgets.push((now, budget));
        }
    }

    /// The track up to `now`, in order of time.
    pub(super) fn track(&mut self, now: Nanos) -> Option<&PhoneTrack> {
        self.show(now);
        let track = self.track.as_mut()?;
        track.events.sort_by_key(|event| event.start);
        Some(track)
    }

    /// The iteration's part of the track.
    pub(super) fn track_of_iteration(&mut self, now: Nanos) -> Option<PhoneTrack> {
        let since = self.watches[0].since;
        Some(self.track(now)?.part(since))
    }

    /// Statistics up to `now`.
    pub(super) fn report(&mut self, now: Nanos) -> PhoneReport {
        self.look();
        let (counters, psi) = (self.memory.counters(), self.memory.psi(self.at(now)));
        let [iteration, run] = self.watches.map(|watch| watch.span(now, &counters, &psi));
        let managed = self.memory.settings().ram;
        PhoneReport { managed, iteration, run, apps_killed: self.apps_killed, kills: Vec::new() }
    }
}
