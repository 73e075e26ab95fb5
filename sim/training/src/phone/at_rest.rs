//! Memory that is in use whether or not the phone trains: by the system of a phone that was just switched on, without
//! apps, and by others, as one region that grows and shrinks with a recording. The part of it that is in use all the
//! time is touched once a second, by a thread that may be late.
//!
//! `MemAvailable` counts all memory that is available without swapping. On the simulated phone the system at rest
//! already uses some of the rest; the recorded memory beyond that is anonymous memory of the system, touched as it
//! grows: reclaim swaps the part of it that is not in use, kswapd and direct reclaim meet its growth, and lmkd its
//! pressure. The killer does not end it, since the recording already includes the effect of its own kills.

use haversack_devices::{Bytes, FlashQueue, Fraction, Nanos};
use haversack_memory::phone::{Access, ActorId, Backing, Part, PhoneError, PhoneMemory, ProcessId, RegionId};

use super::flash::PhoneFlash;
use super::{HeldByOthers, Phone, SystemMemory};

/// A phone at rest, from which any number of runs and observations can begin.
#[derive(Clone, Debug)]
pub struct AtRest {
    pub(super) memory: PhoneMemory,
    pub(super) flash: PhoneFlash,
    /// The system's process, and its memory.
    pub(super) process: ProcessId,
    pub(super) own: Vec<Region>,
}

impl AtRest {
    /// Switches `phone` on.
    ///
    /// # Errors
    /// The system does not fit the memory.
    pub fn of(phone: &Phone) -> Result<Self, PhoneError> {
        let mut memory = PhoneMemory::new(phone.memory.clone(), phone.front, phone.kswapd)?;
        let Phone { driver, faulting, .. } = *phone;
        let mut flash = PhoneFlash { queue: FlashQueue::new(phone.flash.clone()), driver, faulting };
        let process = memory.spawn("system", SYSTEM)?;
        let mut own = Vec::new();
        for &SystemMemory { bytes, backing, hot } in &phone.own {
            let id = memory.map(process, bytes, backing)?;
            memory.touch(id, Access::Read, Nanos::ZERO, &mut flash)?;
            own.push(Region { id, bytes, hot });
        }
        Ok(Self { memory, flash, process, own })
    }

    /// Its available memory.
    pub fn available(&self) -> Bytes {
        self.memory.available()
    }
}

/// The system's own processes are never ended.
const SYSTEM: i32 = -900;

/// Memory used by others, from the recording.
pub(super) struct Others<'a> {
    series: &'a [HeldByOthers],
    /// The next of the series.
    next: usize,
    /// Memory beyond the system at rest; `None` without a recording.
    region: Option<Region>,
    /// Memory of the system at rest.
    at_rest: Bytes,
}

impl<'a> Others<'a> {
    /// The state for `phone`, whose `memory` contains only the system at rest so far.
    pub(super) fn new(phone: &'a Phone, memory: &mut PhoneMemory, system: ProcessId) -> Result<Self, PhoneError> {
        let (series, hot) = (phone.others.series.as_slice(), phone.others.hot);
        let at_rest = memory.settings().ram.saturating_sub(memory.available());
        let region = if series.is_empty() {
            None
        } else {
            let backing = Backing::Anonymous(phone.app_pages);
            Some(Region { id: memory.map(system, Bytes::ZERO, backing)?, bytes: Bytes::ZERO, hot })
        };
        Ok(Self { series, next: 0, region, at_rest })
    }

    /// When the next change is.
    pub(super) fn next(&self) -> Nanos {
        self.series.get(self.next).map_or(Nanos::MAX, |held| held.at)
    }

    /// Applies the next change; returns the part to be touched for it.
    pub(super) fn change(&mut self, memory: &mut PhoneMemory) -> Result<Option<Part>, PhoneError> {
        let (Some(held), Some(region)) = (self.series.get(self.next), &mut self.region) else { return Ok(None) };
        self.next += 1;
        let extent = memory.settings().extent.0;
        let beyond = held.bytes.saturating_sub(self.at_rest).0 / extent * extent;
        let before = std::mem::replace(&mut region.bytes, Bytes(beyond));
        memory.resize(region.id, region.bytes)?;
        let grown = Part { region: region.id, bytes: before..region.bytes, access: Access::Write };
        Ok(Some(grown).filter(|part| !part.bytes.is_empty()))
    }

    /// Memory beyond the system at rest.
    pub(super) fn region(&self) -> Option<&Region> {
        self.region.as_ref()
    }
}

/// Interval at which the part that is in use all the time is touched.
const PULSE: Nanos = Nanos(1_000_000_000);

/// A thread that touches the memory in use, one pulse after it last began to, or as soon as it has finished if that
/// took longer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pulse {
    pub(super) actor: ActorId,
    /// When it begins next, if it is idle then.
    next: Nanos,
    touches: bool,
}

impl Pulse {
    /// The first pulse is at `next`.
    pub(super) const fn new(actor: ActorId, next: Nanos) -> Self {
        Self { actor, next, touches: false }
    }

    /// When it begins next; the end of time while it is touching memory.
    pub(super) const fn due(&self) -> Nanos {
        if self.touches { Nanos::MAX } else { self.next }
    }

    /// It begins to touch memory at `now`.
    pub(super) fn begin(&mut self, now: Nanos) {
        (self.next, self.touches) = (now + PULSE, true);
    }

    /// It has touched all by `now`.
    pub(super) fn end(&mut self, now: Nanos) {
        (self.next, self.touches) = (self.next.max(now), false);
    }
}

/// Memory of which a share is in use all the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) id: RegionId,
    pub(super) bytes: Bytes,
    pub(super) hot: Fraction,
}

impl Region {
    /// The part of it that is in use.
    pub(super) fn in_use(&self, access: Access) -> Part {
        Part { region: self.id, bytes: Bytes::ZERO..share(self.bytes, self.hot), access }
    }
}

fn share(bytes: Bytes, share: Fraction) -> Bytes {
    // A float cast saturates.
    Bytes((bytes.as_f64() * share.0) as u64)
}
