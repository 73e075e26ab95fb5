//! Actors touch memory, each with its own clock.
//!
//! An actor is a thread of a process, or several threads that divide its pages among themselves, each on its own core.
//! It touches its parts extent by extent. For an extent it either works on its cores (faults, decompression, direct
//! reclaim) or sleeps until flash has read or written. Meanwhile the other actors continue; they share only free
//! memory, the lists and the flash's queue.
//!
//! Left out: the time that threads wait for each other's locks (a fault takes effect at one moment, when it has got its
//! memory), and cores shared by actors.

use std::collections::VecDeque;
use std::ops::Range;

use haversack_devices::{Bytes, Nanos, ensure};

use super::{Access, Costs, Fault, Flash, PhoneError, PhoneMemory, RegionId, Stall, Transfer};

/// Identifies an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorId {
    index: u32,
    life: u32,
}

/// A part of a region to touch, in bytes from its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The region.
    pub region: RegionId,
    /// The range. Extents that the region no longer has when the actor gets there are skipped.
    pub bytes: Range<Bytes>,
    /// The kind of access.
    pub access: Access,
}

/// An actor has touched all its parts, or failed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The actor.
    pub actor: ActorId,
    /// The time.
    pub at: Nanos,
    /// Its faults that read flash or ZRAM, in pages.
    pub major: u64,
    /// The actor's stall. An error contains the stall until then.
    pub outcome: Result<Stall, PhoneError>,
}

/// The rest of a part.
#[derive(Clone, Debug)]
pub(super) struct Touch {
    pub(super) region: RegionId,
    /// The extents.
    pub(super) places: Range<usize>,
    pub(super) access: Access,
    /// Whether it is the whole region, from its beginning.
    pub(super) whole: bool,
}

/// The activity of an actor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Doing {
    /// It touches nothing.
    #[default]
    Nothing,
    /// It works in the kernel until this time.
    Works { until: Nanos },
    /// It does `work` of its own for the transfers and otherwise sleeps until the `left` remaining ones have
    /// ended; waking up takes `wake`.
    Reads { left: u32, work: Nanos, wake: Nanos },
    /// It sleeps until a write ends.
    AwaitsWrite,
    /// It waits for its core until this time.
    Wakes { until: Nanos },
}

/// A summary of all actors' activities at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activity {
    /// Stalled threads.
    pub(super) stalled: u32,
    /// Threads that work without a stall.
    pub(super) working: u32,
    /// The time at which the first of them continues without an outside event.
    pub(super) due: Nanos,
}

/// A thread, or several that share their work.
#[derive(Clone, Debug, Default)]
pub(super) struct Actor {
    life: u32,
    exists: bool,
    pub(super) costs: Costs,
    pub(super) threads: u32,
    /// Whether it computes on its cores while it touches nothing.
    computes: bool,
    pub(super) touches: VecDeque<Touch>,
    pub(super) fault: Fault,
    pub(super) doing: Doing,
    /// Whether its present activity is a stall for lack of memory.
    pub(super) stalled: bool,
    /// The start of the present activity.
    since: Nanos,
    pub(super) stall: Stall,
    pub(super) major: u64,
    /// The time that kswapd has taken from one of its cores since the last query.
    pub(super) lost: Nanos,
    /// Whether it is in the list of active actors.
    is_listed: bool,
}

impl Actor {
    fn new(life: u32, costs: Costs, threads: u32) -> Self {
        Self { life, exists: true, costs, threads: threads.max(1), ..Self::default() }
    }

    /// The time at which it continues without an outside event.
    fn due(&self) -> Option<Nanos> {
        match self.doing {
            Doing::Works { until } | Doing::Wakes { until } => Some(until),
            Doing::Nothing | Doing::Reads { .. } | Doing::AwaitsWrite => None,
        }
    }

    /// Whether it does work other than for lack of memory.
    fn is_productive(&self) -> bool {
        match self.doing {
            Doing::Nothing => self.computes,
            Doing::Works { .. } => !self.stalled,
            Doing::Reads { .. } | Doing::AwaitsWrite | Doing::Wakes { .. } => false,
        }
    }

    /// Whether it keeps its cores busy.
    pub(super) fn works(&self) -> bool {
        matches!(self.doing, Doing::Works { .. }) || (self.doing == Doing::Nothing && self.computes)
    }

    pub(super) fn does(&mut self, doing: Doing, stalled: bool, now: Nanos) {
        (self.doing, self.stalled, self.since) = (doing, stalled, now);
    }

    /// Adds the time of its activity until `now` to its stall.
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

/// All actors. The first is that of [`PhoneMemory::touch`].
#[derive(Clone, Debug, Default)]
pub(super) struct Actors {
    all: Vec<Actor>,
    /// The indices of active actors; most actors are idle most of the time.
    active: Vec<u32>,
    free: Vec<u32>,
    /// Which actor waits for which transfer.
    pub(super) reads: Vec<(Transfer, u32)>,
    done: VecDeque<Touched>,
}

/// The actor of blocking calls.
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

    /// The first actor that is due by `now`.
    pub(super) fn next(&self, now: Nanos) -> Option<u32> {
        let is_due = |actor: &Actor| actor.due().is_some_and(|due| due <= now);
        self.active().filter(|(_, actor)| is_due(actor)).map(|(index, _)| index).min()
    }

    fn active(&self) -> impl Iterator<Item = (u32, &Actor)> {
        self.active.iter().map(|&index| (index, self.get(index)))
    }

    /// Adds an actor to the active ones.
    fn list(&mut self, index: u32) {
        if !std::mem::replace(&mut self.get_mut(index).is_listed, true) {
            self.active.push(index);
        }
    }

    /// A summary of their present activities; removes idle ones from the active actors.
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

    /// Handles the end of a transfer; returns whether an actor has waited for it.
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

    /// Handles the end of a write.
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
    /// Adds an actor with `threads` threads, each on a core with the costs `costs` per page.
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

    /// Removes an actor; its remaining touches are dropped.
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

    /// Sets whether an actor computes on its cores while it touches nothing. If it does, other actors' stalls are not
    /// stalls of all (PSI's `full`).
    pub fn set_computing(&mut self, actor: ActorId, computes: bool) {
        if let Some(index) = self.actor(actor) {
            self.actors.get_mut(index).computes = computes;
            self.actors.list(index);
        }
    }

    /// The time that kswapd has taken from one of an actor's cores since the last call.
    pub fn take_lost(&mut self, actor: ActorId) -> Nanos {
        self.actor(actor).map_or(Nanos::ZERO, |index| std::mem::take(&mut self.actors.get_mut(index).lost))
    }

    pub(super) fn actor(&self, actor: ActorId) -> Option<u32> {
        let known = self.actors.all.get(actor.index as usize);
        known.filter(|known| known.exists && known.life == actor.life).map(|_| actor.index)
    }

    /// An actor touches `parts`, starting now or after its present parts. [`Self::run`] returns it when it has
    /// finished.
    ///
    /// # Errors
    /// An unknown region; a part beyond its end. For a removed actor nothing happens.
    pub fn begin(&mut self, actor: ActorId, parts: impl IntoIterator<Item = Part>) -> Result<(), PhoneError> {
        let Some(index) = self.actor(actor) else { return Ok(()) };
        for Part { region, bytes, access } in parts {
            let places = self.span(region, &bytes)?;
            self.actors.get_mut(index).touches.push_back(Touch { region, places, access, whole: false });
        }
        self.rouse(index);
        Ok(())
    }

    /// Makes an actor start on its parts.
    fn rouse(&mut self, index: u32) {
        let now = self.now;
        self.actors.list(index);
        let actor = self.actors.get_mut(index);
        if actor.doing == Doing::Nothing {
            (actor.stall, actor.major) = (Stall::default(), 0);
            actor.does(Doing::Works { until: now }, false, now);
        }
    }

    /// Advances the time to `until`, or until an actor has touched all its parts.
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

    /// Whether an actor is still touching, or has finished and was not yet returned by [`run`](Self::run).
    pub fn is_touching(&self) -> bool {
        !self.actors.done.is_empty() || self.actors.active().any(|(_, actor)| actor.doing != Doing::Nothing)
    }

    /// Touches a whole region at `now`, from its beginning, and waits for it.
    ///
    /// # Errors
    /// An unknown region; the death of its process meanwhile; no available memory.
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
    /// Those of [`Self::touch`], and a part beyond the region's end.
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

    /// Lets the actors continue that are due.
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
