//! The flash itself: the cost of a command, and the faster tier that takes writes while it has room (SLC,
//! TurboWrite, WriteBooster).

use std::sync::Arc;

use crate::device::{NandConstants, StorageConstants};
use crate::storage::PAGE;
use crate::{Bytes, BytesPerSecond, Device, Direction, Interval, Nanos};

/// One direction of the flash.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// Rate of large commands, all together.
    sequential: BytesPerSecond,
    /// Rate of single pages all over the device, all together.
    random: BytesPerSecond,
    /// Transfer rate of a single command's bytes.
    link: BytesPerSecond,
    /// Latency of a single page.
    latency: Nanos,
}

/// A flash storage: rates, latencies and its write cache.
///
/// A command takes up the device for the longer of two times: its share of the random rate, counted in commands, and of
/// the sequential rate, counted in bytes. This time is its *occupation*. A single command takes longer: the latency of
/// a page, plus its other bytes at the data sheet's rate. Dies and channels work in parallel, so only many concurrent
/// commands reach the rates (UFS 3.1 reads 4 KiB in about 0.1 ms, yet 50,000 of them a second). [`crate::storage`]
/// describes how concurrent commands slow each other down.
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

/// The reason for which a die cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// None.
    Nothing,
    /// A program of the slower tier.
    Program,
    /// The erasing of a block.
    Erase,
}

/// The amount that the flash moves out of its write cache in one step: three pages of 8 KiB, one for each bit of a
/// cell, in four planes of four dies.
pub(super) const MOVED: Bytes = Bytes(384 << 10);

/// The demand of a command on the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Demand {
    /// Time of the whole device, in nanoseconds.
    pub(crate) occupation: f64,
    /// Its shortest duration, in nanoseconds; at least the occupation.
    pub(crate) alone: f64,
    /// The reason for which its dies cannot be read meanwhile.
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
            // If files are faster than the class's data sheet, this device is better than the sheet.
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
            // A float cast saturates, and turns NaN into zero.
            slots: ((constants.queue_depth.value.0.floor() - constants.reserved_slots.value.0.floor()) as usize).max(1),
            read,
            write,
            sustained_write: constants.sustained_write.value,
            write_cache: constants.write_cache.value,
            cells: constants.nand.clone().map(Arc::new),
        }
    }

    /// Commands that the device works on concurrently.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Rate in practice of large commands, all requests together, while the write cache has room.
    pub fn sequential(&self, direction: Direction) -> BytesPerSecond {
        self.way(direction).sequential
    }

    /// Rate of writes once the write cache is full.
    pub fn sustained_write(&self) -> BytesPerSecond {
        self.sustained_write
    }

    /// Size of the write cache.
    pub fn write_cache(&self) -> Bytes {
        self.write_cache
    }

    /// Duration of a single command of `bytes` in the device, while the write cache has room.
    pub fn alone(&self, direction: Direction, bytes: Bytes) -> Nanos {
        Nanos::from_seconds(self.demand(direction, bytes, true).alone * 1e-9)
    }

    /// The occupation of a command of `bytes`, which is the same for any number of commands.
    pub fn occupation(&self, direction: Direction, bytes: Bytes) -> Interval {
        Interval(self.demand(direction, bytes, true).occupation * 1e-9)
    }

    /// The demand of a command of `bytes`; a write that is not `cached` goes to the slower tier.
    pub(crate) fn demand(&self, direction: Direction, bytes: Bytes, cached: bool) -> Demand {
        let way = self.way(direction);
        let rate = if cached || direction == Direction::Read { way.sequential } else { self.sustained_write };
        let occupation = (PAGE.as_f64() / way.random.0).max(bytes.as_f64() / rate.0) * 1e9;
        let rest = bytes.saturating_sub(PAGE).as_f64() / way.link.0 * 1e9;
        // Never zero, since the pace divides by it.
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

    /// The expected wait of a read in nanoseconds, given the probabilities that its die programs or erases.
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

/// A tier that takes writes immediately. It is emptied into the rest of the flash while the device is idle, or by the
/// flash's own commands once it has run full.
#[derive(Clone, Debug)]
pub(super) struct WriteCache {
    size: Bytes,
    pub(super) level: Bytes,
    drain: BytesPerSecond,
}

impl WriteCache {
    /// An empty cache. It drains as fast as the flash behind it takes writes.
    pub(super) fn new(flash: &Flash) -> Self {
        Self { size: flash.write_cache(), level: Bytes::ZERO, drain: flash.sustained_write() }
    }

    /// Takes a write if it has room for all of it.
    pub(super) fn take(&mut self, bytes: Bytes) -> bool {
        let room = bytes <= self.size.saturating_sub(self.level);
        if room {
            self.level += bytes;
        }
        room
    }

    /// Frees `bytes` that were moved on.
    pub(super) fn give_back(&mut self, bytes: Bytes) {
        self.level = self.level.saturating_sub(bytes);
    }

    /// Whether less than a tenth of it is free: UFS reports the free room to its host in tenths
    /// (`dAvailableWriteBoosterBufferSize`).
    pub(super) fn is_full(&self) -> bool {
        self.size.saturating_sub(self.level).0 < self.size.0 / 10
    }

    /// The device was idle for `span`.
    pub(super) fn drain(&mut self, span: Nanos) {
        if self.level > Bytes::ZERO {
            // A float cast saturates; conversion to a signed integer is a single instruction.
            let drained = (self.drain.0 * span.seconds()) as i64;
            self.level = self.level.saturating_sub(Bytes(drained.unsigned_abs()));
        }
    }
}
