//! Who touches memory: actors, each with a clock of its own.
//!
//! An actor is a process's thread, or several that share its pages out among themselves, each on a core of its own. It
//! touches what it was given, extent by extent. What an extent takes is either work on its cores (faults, decompression,
//! direct reclaim), or sleep until flash has read or written: while one works or sleeps the others go on, and only free
//! memory, the lists and the flash's queue are common to all.
//!
//! Left out: the time that threads wait for each other's locks (a fault's changes happen at one moment, when it has got its
//! memory), and cores that actors would have to share.

use std::collections::VecDeque;
use std::ops::Range;

use haversack_devices::{Bytes, Nanos, ensure};

use super::{Access, Costs, Fault, Flash, PhoneError, PhoneMemory, RegionId, Stall, Transfer};

/// Who touches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorId {
    index: u32,
    life: u32,
}

/// A part of a region that is to be touched, in bytes from its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Whose.
    pub region: RegionId,
    /// Where; what the region does not have any more when it comes to it is passed over.
    pub bytes: Range<Bytes>,
    /// How.
    pub access: Access,
}

/// An actor has touched all that it was given, or has failed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// Who.
    pub actor: ActorId,
    /// When.
    pub at: Nanos,
    /// Its faults that read flash or ZRAM, in pages.
    pub major: u64,
    /// What it took; an error says what it had taken until then.
    pub outcome: Result<Stall, PhoneError>,
}

/// What is left of a part.
#[derive(Clone, Debug)]
pub(super) struct Touch {
    pub(super) region: RegionId,
    /// Extents.
    pub(super) places: Range<usize>,
    pub(super) access: Access,
    /// All of the region, from its beginning.
    pub(super) whole: bool,
}

/// What an actor does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Doing {
    /// It touches nothing.
    #[default]
    Nothing,
    /// It works in the kernel until then.
    Works { until: Nanos },
    /// It has `work` to do for them, and sleeps for the rest until so many transfers have ended; it takes so long to wake up.
    Reads { left: u32, work: Nanos, wake: Nanos },
    /// It sleeps until something is written.
    AwaitsWrite,
    /// It waits for its core until then.
    Wakes { until: Nanos },
}

/// What all actors do at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activity {
    /// Threads that stall.
    pub(super) stalled: u32,
    /// Threads that work and do not.
    pub(super) working: u32,
    /// When the first goes on by itself.
    pub(super) due: Nanos,
}

/// A thread, or several that share their work.
#[derive(Clone, Debug, Default)]
pub(super) struct Actor {
    life: u32,
    exists: bool,
    pub(super) costs: Costs,
    pub(super) threads: u32,
    /// Whether it works on its cores while it touches nothing.
    computes: bool,
    pub(super) touches: VecDeque<Touch>,
    pub(super) fault: Fault,
    pub(super) doing: Doing,
    /// Whether what it does is a stall for want of memory.
    pub(super) stalled: bool,
    /// Since when.
    since: Nanos,
    pub(super) stall: Stall,
    pub(super) major: u64,
    /// What kswapd took of a core of its own since that was last asked.
    pub(super) lost: Nanos,
    /// Whether it is among those that may do something.
    is_listed: bool,
}

impl Actor {
    fn new(life: u32, costs: Costs, threads: u32) -> Self {
        Self { life, exists: true, costs, threads: threads.max(1), ..Self::default() }
    }

    /// When it goes on by itself.
    fn due(&self) -> Option<Nanos> {
        match self.doing {
            Doing::Works { until } | Doing::Wakes { until } => Some(until),
            Doing::Nothing | Doing::Reads { .. } | Doing::AwaitsWrite => None,
        }
    }

    /// Whether it gets work done that is not for want of memory.
    fn is_productive(&self) -> bool {
        match self.doing {
            Doing::Nothing => self.computes,
            Doing::Works { .. } => !self.stalled,
            Doing::Reads { .. } | Doing::AwaitsWrite | Doing::Wakes { .. } => false,
        }
    }

    /// Whether its cores have work of its own.
    pub(super) fn works(&self) -> bool {
        matches!(self.doing, Doing::Works { .. }) || (self.doing == Doing::Nothing && self.computes)
    }

    pub(super) fn does(&mut self, doing: Doing, stalled: bool, now: Nanos) {
        (self.doing, self.stalled, self.since) = (doing, stalled, now);
    }

    /// Adds the time of what it has done until `now`.
    fn tally(&mut self, now: Nanos) {
        let span = now - self.since;
        match self.doing {
            Doing::Nothing => {}
            Doing::Works { .. } => self.stall.running += span,
            Doing::Reads { work, .. } => {
                self.stall.running += work.min(span);
                self.stall.sleeping += span.saturating_sub(work);
            }
            Doing::AwaitsWrite => self.stall.sleeping += span,
            Doing::Wakes { .. } => self.stall.runnable += span,
        }
        self.since = now;
    }
}

/// All actors. The first is the one of [`PhoneMemory::touch`].
#[derive(Clone, Debug, Default)]
pub(super) struct Actors {
    all: Vec<Actor>,
    /// Those that may do something: most do nothing most of the time.
    active: Vec<u32>,
    free: Vec<u32>,
    /// Who waits for which transfer.
    pub(super) reads: Vec<(Transfer, u32)>,
    done: VecDeque<Touched>,
}

/// The actor of calls that wait.
const CALLER: u32 = 0;

impl Actors {
    pub(super) fn new(costs: Costs) -> Self {
        Self { all: vec![Actor::new(0, costs, 1)], ..Self::default() }
    }

    pub(super) fn get(&self, index: u32) -> &Actor {
        &self.all[index as usize]
    }

    pub(super) fn get_mut(&mut self, index: u32) -> &mut Actor {
        &mut self.all[index as usize]
    }

    fn id(&self, index: u32) -> ActorId {
        ActorId { index, life: self.all[index as usize].life }
    }

    /// The first that is due by `now`.
    pub(super) fn next(&self, now: Nanos) -> Option<u32> {
        let is_due = |actor: &Actor| actor.due().is_some_and(|due| due <= now);
        self.active().filter(|(_, actor)| is_due(actor)).map(|(index, _)| index).min()
    }

    fn active(&self) -> impl Iterator<Item = (u32, &Actor)> {
        self.active.iter().map(|&index| (index, self.get(index)))
    }

    /// An actor may do something from now on.
    fn list(&mut self, index: u32) {
        if !std::mem::replace(&mut self.get_mut(index).is_listed, true) {
            self.active.push(index);
        }
    }

    /// What all of them do now; those that do nothing are forgotten.
    pub(super) fn look(&mut self) -> Activity {
        let all = &mut self.all;
        let mut seen = Activity { stalled: 0, working: 0, due: Nanos::MAX };
        self.active.retain(|&index| {
            let actor = &mut all[index as usize];
            let idle = actor.doing == Doing::Nothing;
            actor.is_listed = !idle || actor.computes;
            seen.stalled += if actor.stalled && !idle { actor.threads } else { 0 };
            seen.working += if actor.is_productive() { actor.threads } else { 0 };
            seen.due = seen.due.min(actor.due().unwrap_or(Nanos::MAX));
            actor.is_listed
        });
        seen
    }

    /// Flash has ended a transfer; whether somebody has waited for it.
    pub(super) fn read(&mut self, transfer: Transfer, now: Nanos) -> bool {
        let Some(at) = self.reads.iter().position(|&(other, _)| other == transfer) else { return false };
        let (_, index) = self.reads.swap_remove(at);
        let actor = self.get_mut(index);
        if let Doing::Reads { left, wake, .. } = &mut actor.doing {
            *left = left.saturating_sub(1);
            if *left == 0 {
                let until = now + *wake;
                actor.tally(now);
                actor.does(Doing::Wakes { until }, actor.stalled, now);
            }
        }
        true
    }

    /// Something is written.
    pub(super) fn written(&mut self, now: Nanos) {
        for &index in &self.active {
            let actor = &mut self.all[index as usize];
            if actor.doing == Doing::AwaitsWrite {
                actor.tally(now);
                let until = now + actor.costs.wake_up;
                actor.does(Doing::Wakes { until }, actor.stalled, now);
            }
        }
    }
}

impl PhoneMemory {
    /// Another actor: `threads` of them, each on a core on which a page takes `costs`.
    pub fn add_actor(&mut self, costs: Costs, threads: u32) -> ActorId {
        let actors = &mut self.actors;
        let index = if let Some(index) = actors.free.pop() {
            let life = actors.get(index).life + 1;
            actors.all[index as usize] = Actor::new(life, costs, threads);
            index
        } else {
            actors.all.push(Actor::new(0, costs, threads));
            actors.all.len() as u32 - 1
        };
        actors.id(index)
    }

    /// An actor is no more; what it has not touched it never will.
    pub fn remove_actor(&mut self, actor: ActorId) {
        if self.actor(actor).is_none() {
            return;
        }
        let actors = &mut self.actors;
        actors.reads.retain(|&(_, index)| index != actor.index);
        actors.active.retain(|&index| index != actor.index);
        actors.done.retain(|touched| touched.actor != actor);
        let gone = Actor { exists: false, ..Actor::new(actor.life, Costs::default(), 1) };
        *actors.get_mut(actor.index) = gone;
        actors.free.push(actor.index);
    }

    /// From now on an actor works on its cores while it touches nothing, or does not: where others stall meanwhile, not all
    /// do (PSI's `full`).
    pub fn set_computing(&mut self, actor: ActorId, computes: bool) {
        if let Some(index) = self.actor(actor) {
            self.actors.get_mut(index).computes = computes;
            self.actors.list(index);
        }
    }

    /// For how long kswapd kept one of an actor's cores from it since this was last asked.
    pub fn take_lost(&mut self, actor: ActorId) -> Nanos {
        self.actor(actor).map_or(Nanos::ZERO, |index| std::mem::take(&mut self.actors.get_mut(index).lost))
    }

    pub(super) fn actor(&self, actor: ActorId) -> Option<u32> {
        let known = self.actors.all.get(actor.index as usize);
        known.filter(|known| known.exists && known.life == actor.life).map(|_| actor.index)
    }

    /// An actor begins to touch `parts` now, or when it has touched what it has in hand. [`Self::run`] says when it has.
    ///
    /// # Errors
    /// An unknown region, and a part that it does not have. Of an actor that is no more nothing comes.
    pub fn begin(&mut self, actor: ActorId, parts: impl IntoIterator<Item = Part>) -> Result<(), PhoneError> {
        let Some(index) = self.actor(actor) else { return Ok(()) };
        for Part { region, bytes, access } in parts {
            let places = self.span(region, &bytes)?;
            self.actors.get_mut(index).touches.push_back(Touch { region, places, access, whole: false });
        }
        self.rouse(index);
        Ok(())
    }

    /// Has an actor go on with what it was given.
    fn rouse(&mut self, index: u32) {
        let now = self.now;
        self.actors.list(index);
        let actor = self.actors.get_mut(index);
        if actor.doing == Doing::Nothing {
            (actor.stall, actor.major) = (Stall::default(), 0);
            actor.does(Doing::Works { until: now }, false, now);
        }
    }

    /// Time goes on to `until`, or to when an actor has touched all that it was given.
    pub fn run(&mut self, until: Nanos, flash: &mut dyn Flash) -> Option<Touched> {
        loop {
            if let Some(done) = self.actors.done.pop_front() {
                return Some(done);
            }
            if self.now >= until && self.actors.next(self.now).is_none() {
                return None;
            }
            self.step(until, flash);
        }
    }

    /// Whether an actor touches something still, or has done so and [`run`](Self::run) has not said it.
    pub fn is_touching(&self) -> bool {
        !self.actors.done.is_empty() || self.actors.active().any(|(_, actor)| actor.doing != Doing::Nothing)
    }

    /// Touches the whole of a region at `now`, from its beginning on, and waits for it.
    ///
    /// # Errors
    /// An unknown region; the end of its process meanwhile; no memory to be had.
    pub fn touch(
        &mut self,
        region: RegionId,
        access: Access,
        now: Nanos,
        flash: &mut dyn Flash,
    ) -> Result<Stall, PhoneError> {
        let places = 0..self.regions[self.region(region)?].extents.len();
        self.touch_and_wait(Touch { region, places, access, whole: true }, now, flash)
    }

    /// Touches a part of a region, in bytes from its beginning, and waits for it.
    ///
    /// # Errors
    /// As [`Self::touch`], and a part that the region does not have.
    pub fn touch_part(
        &mut self,
        region: RegionId,
        part: Range<Bytes>,
        access: Access,
        now: Nanos,
        flash: &mut dyn Flash,
    ) -> Result<Stall, PhoneError> {
        let places = self.span(region, &part)?;
        self.touch_and_wait(Touch { region, places, access, whole: false }, now, flash)
    }

    fn touch_and_wait(&mut self, touch: Touch, now: Nanos, flash: &mut dyn Flash) -> Result<Stall, PhoneError> {
        self.pass(now, flash);
        ensure!(self.region(touch.region).is_ok(), PhoneError::Killed(Stall::default()));
        self.actors.get_mut(CALLER).touches.push_back(touch);
        self.rouse(CALLER);
        loop {
            let mine = self.actors.done.iter().position(|done| done.actor.index == CALLER);
            if let Some(done) = mine.and_then(|at| self.actors.done.remove(at)) {
                return done.outcome;
            }
            self.step(Nanos::MAX, flash);
        }
    }

    /// Lets the actors go on that are due.
    pub(super) fn step_actors(&mut self, flash: &mut dyn Flash) {
        while let Some(index) = self.actors.next(self.now) {
            self.actors.get_mut(index).tally(self.now);
            match self.go_on(index, flash) {
                // It has to wait.
                Ok(false) => {}
                Ok(true) => self.end_touch(index, Ok(())),
                Err(error) => self.end_touch(index, Err(error)),
            }
        }
    }

    fn end_touch(&mut self, index: u32, outcome: Result<(), PhoneError>) {
        let (at, id) = (self.now, self.actors.id(index));
        let actor = self.actors.get_mut(index);
        actor.does(Doing::Nothing, false, at);
        actor.fault = Fault::None;
        actor.touches.clear();
        let outcome = outcome.map(|()| actor.stall);
        let done = Touched { actor: id, at, major: actor.major, outcome };
        self.actors.done.push_back(done);
    }
}
