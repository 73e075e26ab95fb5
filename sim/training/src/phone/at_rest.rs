//! A phone that has been switched on: the system holds what it holds, nobody trains, and no app has come.

use haversack_devices::storage::FlashQueue;
use haversack_devices::units::{Bytes, Nanos};
use haversack_memory::phone::{Access, PhoneError, PhoneMemory, ProcessId};

use super::flash::PhoneFlash;
use super::pulse::Region;
use super::{Phone, SystemMemory};

/// A phone at rest, from which any number of runs and watches can begin.
#[derive(Clone, Debug)]
pub struct AtRest {
    pub(super) memory: PhoneMemory,
    pub(super) flash: PhoneFlash,
    /// The system's process, and what it holds.
    pub(super) process: ProcessId,
    pub(super) own: Vec<Region>,
}

impl AtRest {
    /// Switches `phone` on.
    ///
    /// # Errors
    /// Memory that does not hold the system.
    pub fn of(phone: &Phone) -> Result<Self, PhoneError> {
        let mut memory = PhoneMemory::new(phone.memory.clone(), phone.front, phone.kswapd)?;
        let mut flash = PhoneFlash { queue: FlashQueue::new(phone.flash.clone()), driver: phone.driver };
        let process = memory.spawn("system", SYSTEM)?;
        let mut own = Vec::new();
        for &SystemMemory { bytes, backing, hot } in &phone.own {
            let id = memory.map(process, bytes, backing)?;
            memory.touch(id, Access::Read, Nanos::ZERO, &mut flash)?;
            own.push(Region { id, bytes, hot });
        }
        Ok(Self { memory, flash, process, own })
    }

    /// What could be had of its memory.
    pub fn available(&self) -> Bytes {
        self.memory.available()
    }
}

/// The system's own processes are never ended.
const SYSTEM: i32 = -900;
