//! The flash itself: what one command asks of it, and the faster tier that writes go to while it has room (SLC,
//! TurboWrite, WriteBooster).

use std::sync::Arc;

use crate::device::{NandConstants, StorageConstants};
use crate::storage::PAGE;
use crate::{Bytes, BytesPerSecond, Device, Direction, Interval, Nanos};

/// One direction of the flash.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// What all commands together reach.
    sequential: BytesPerSecond,
    /// The same by pages, all over the device.
    random: BytesPerSecond,
    /// How fast a command's bytes move once they do.
    link: BytesPerSecond,
    /// A page alone.
    latency: Nanos,
}

/// A flash storage: rates, latencies and its write cache.
///
/// A command takes up the device for the longer of its share of the random rate, counted by commands, and of the
/// sequential rate, counted by bytes: its *occupation*. Alone it takes the latency of a page and its other bytes at the
/// data sheet's rate, which is longer: dies and channels work side by side, so that many commands at once reach the
/// rates and one does not (UFS 3.1 reads 4 KiB in about 0.1 ms, yet 50,000 of them a second). How several commands get
/// on beside each other is said in [`crate::storage`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Flash {
    slots: usize,
    read: Way,
    write: Way,
    sustained_write: BytesPerSecond,
    write_cache: Bytes,
    /// The cells behind the controller.
    cells: Option<Arc<NandConstants>>,
}

/// What keeps a die from being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Nothing that is not shared.
    Nothing,
    /// A program of the slower tier.
    Program,
    /// The erasing of a block.
    Erase,
}

/// What the flash moves out of its write cache at once: three pages of 8 KiB, one for each bit of a cell, in four planes of four dies.
pub(super) const MOVED: Bytes = Bytes(384 << 10);

/// What a command asks of the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Demand {
    /// All of the device for so long, in nanoseconds.
    pub(crate) occupation: f64,
    /// It ends after so long at the earliest, in nanoseconds; not less.
    pub(crate) alone: f64,
    /// What it keeps dies from reading by.
    pub(crate) holds: Holds,
}

impl Device {
    /// The flash storage, if the device has one that is modelled.
    pub fn flash(&self) -> Option<Flash> {
        self.constants.storage.as_ref().map(Flash::new)
    }
}

impl Flash {
    /// The storage that `constants` describe.
    pub fn new(constants: &StorageConstants) -> Self {
        let way = |sequential: BytesPerSecond, datasheet: Option<BytesPerSecond>, random, latency| Way {
            sequential,
            random,
            // Where files reach more than the class's data sheet says, this device is better than the sheet.
            link: datasheet.filter(|sheet| sheet.0 > sequential.0).unwrap_or(sequential),
            latency,
        };
        let read = way(
            constants.sequential_read.value,
            constants.datasheet_read.as_ref().map(|rate| rate.value),
            constants.random_read.value,
            constants.latency_read.value,
        );
        let write = way(
            constants.sequential_write.value,
            constants.datasheet_write.as_ref().map(|rate| rate.value),
            constants.random_write.value,
            constants.latency_write.value,
        );
        Self {
            // A float cast saturates, and turns not-a-number into zero.
            slots: ((constants.queue_depth.value.0.floor() - constants.reserved_slots.value.0.floor()) as usize).max(1),
            read,
            write,
            sustained_write: constants.sustained_write.value,
            write_cache: constants.write_cache.value,
            cells: constants.nand.clone().map(Arc::new),
        }
    }

    /// Commands that the device works on at once.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// What all requests together reach in practice with large commands, the write cache having room.
    pub fn sequential(&self, direction: Direction) -> BytesPerSecond {
        self.way(direction).sequential
    }

    /// What writes reach behind a full write cache.
    pub fn sustained_write(&self) -> BytesPerSecond {
        self.sustained_write
    }

    /// What the write cache holds.
    pub fn write_cache(&self) -> Bytes {
        self.write_cache
    }

    /// How long a command of `bytes` takes in the device when it is alone there, the write cache having room.
    pub fn alone(&self, direction: Direction, bytes: Bytes) -> Nanos {
        Nanos::from_seconds(self.demand(direction, bytes, true).alone * 1e-9)
    }

    /// For how long a command of `bytes` takes up the device, however many share it.
    pub fn occupation(&self, direction: Direction, bytes: Bytes) -> Interval {
        Interval(self.demand(direction, bytes, true).occupation * 1e-9)
    }

    /// What a command of `bytes` asks; a write that is not `cached` goes to the slower tier.
    pub(crate) fn demand(&self, direction: Direction, bytes: Bytes, cached: bool) -> Demand {
        let way = self.way(direction);
        let rate = if cached || direction == Direction::Read { way.sequential } else { self.sustained_write };
        let occupation = (PAGE.as_f64() / way.random.0).max(bytes.as_f64() / rate.0) * 1e9;
        let rest = bytes.saturating_sub(PAGE).as_f64() / way.link.0 * 1e9;
        // Never zero: the pace is divided by it.
        let occupation = occupation.max(1.0);
        let holds = if cached || direction == Direction::Read || self.cells.is_none() {
            Holds::Nothing
        } else {
            Holds::Program
        };
        Demand { occupation, alone: (way.latency.0 as f64 + rest).max(occupation), holds }
    }

    /// Whether the flash empties a full write cache while others read and write.
    pub(super) fn collects(&self) -> bool {
        self.cells.is_some() && self.write_cache > Bytes::ZERO
    }

    /// Moving [`MOVED`] from the write cache to the slower tier: it is read, and programmed in all dies.
    pub(super) fn moving(&self) -> Demand {
        let seconds = MOVED.as_f64() / self.read.sequential.0 + MOVED.as_f64() / self.sustained_write.0;
        Demand { occupation: seconds * 1e9, alone: seconds * 1e9, holds: Holds::Program }
    }

    /// Erasing a block of the write cache, in one die; and its size.
    pub(super) fn erasing(&self) -> Option<(Demand, Bytes)> {
        let cells = self.cells.as_ref()?;
        let alone = (cells.erase.value.0 as f64).max(1.0);
        let occupation = alone / cells.dies.value.0.max(1.0);
        Some((Demand { occupation, alone, holds: Holds::Erase }, cells.block.value))
    }

    /// How long a read waits where a die programs, and where one erases, with these probabilities; in nanoseconds.
    pub(super) fn wait(&self, programs: f64, erases: f64) -> f64 {
        self.cells.as_ref().map_or(0.0, |cells| {
            programs * cells.program_wait.value.0 as f64 + erases * cells.erase_wait.value.0 as f64
        })
    }

    fn way(&self, direction: Direction) -> &Way {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }
}

/// A tier that takes writes at once and is emptied into the rest of the flash while the device is idle, or by work of its own
/// where it has run full.
#[derive(Clone, Debug)]
pub(super) struct WriteCache {
    size: Bytes,
    pub(super) level: Bytes,
    drain: BytesPerSecond,
}

impl WriteCache {
    /// Empty. It drains as fast as the flash behind it takes writes.
    pub(super) fn new(flash: &Flash) -> Self {
        Self { size: flash.write_cache(), level: Bytes::ZERO, drain: flash.sustained_write() }
    }

    /// Takes a write where it has room for all of it.
    pub(super) fn take(&mut self, bytes: Bytes) -> bool {
        let room = bytes <= self.size.saturating_sub(self.level);
        if room {
            self.level += bytes;
        }
        room
    }

    /// So much of it was moved on.
    pub(super) fn give_back(&mut self, bytes: Bytes) {
        self.level = self.level.saturating_sub(bytes);
    }

    /// Whether less than a tenth of it is free: UFS tells its host of the room in tenths (`dAvailableWriteBoosterBufferSize`).
    pub(super) fn is_full(&self) -> bool {
        self.size.saturating_sub(self.level).0 < self.size.0 / 10
    }

    /// The device was idle for `span`.
    pub(super) fn drain(&mut self, span: Nanos) {
        if self.level > Bytes::ZERO {
            // A float cast saturates; signed, which processors do at once.
            let drained = (self.drain.0 * span.seconds()) as i64;
            self.level = self.level.saturating_sub(Bytes(drained.unsigned_abs()));
        }
    }
}
