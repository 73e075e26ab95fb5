//! Memory that a recording says others hold, as one region that grows and shrinks with it.
//!
//! `MemAvailable` counts all that could be had without swapping. On the simulated phone the system at rest holds some of
//! the rest already; what the recording says beyond that is anonymous memory of the system, touched as it grows: reclaim
//! swaps the part of it that is not in use, kswapd and direct reclaim meet its growth, and lmkd its pressure. The killer
//! does not end it, since a recording has had its own kills already.

use haversack_devices::units::{Bytes, Nanos};
use haversack_memory::phone::{Access, Backing, Part, PhoneError, PhoneMemory, ProcessId};

use super::pulse::Region;
use super::{HeldByOthers, Phone};

/// What others hold, by the recording.
pub(super) struct Others<'a> {
    series: &'a [HeldByOthers],
    /// The next of the series.
    next: usize,
    /// What is held beyond the system at rest; `None` without a recording.
    region: Option<Region>,
    /// What the system at rest holds.
    at_rest: Bytes,
}

impl<'a> Others<'a> {
    /// Of `phone`, whose `memory` holds nothing yet but the system at rest.
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

    /// The next change happens; what is to be touched for it.
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

    /// What is held beyond the system at rest.
    pub(super) fn region(&self) -> Option<&Region> {
        self.region.as_ref()
    }
}
