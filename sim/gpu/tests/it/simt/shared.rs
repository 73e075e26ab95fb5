//! The shared memory of a block, which detects missing barriers.
//!
//! Between two barriers a word may be read by several warps or used by one, but not written by one and accessed by
//! another: such a kernel would depend on the order of its warps, and is an error.

use std::marker::PhantomData;

use super::memory::Word;

/// Words of shared memory.
#[derive(Debug)]
pub struct Array<T> {
    start: usize,
    length: usize,
    /// Bytes per word, as the GPU stores it.
    pub(crate) bytes: u64,
    word: PhantomData<T>,
}

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Array<T> {}

/// More than one warp.
const SEVERAL: u32 = u32::MAX;

/// The interval between barriers, and the warp, of an access; interval zero is before the block began.
#[derive(Clone, Copy, Debug, Default)]
struct Access {
    interval: u32,
    warp: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    bits: u64,
    written: Access,
    read: Access,
}

/// The shared memory of one block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    slots: Vec<Slot>,
    bytes: u64,
    interval: u32,
}

impl Shared {
    /// Empties it for a new block.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.bytes = 0;
        self.interval = 1;
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn barrier(&mut self) {
        self.interval += 1;
    }

    pub(crate) fn array<T: Word>(&mut self, bytes: u64, length: usize) -> Array<T> {
        let start = self.slots.len();
        self.slots.resize(start + length, Slot::default());
        self.bytes += length as u64 * bytes;
        Array { start, length, bytes, word: PhantomData }
    }

    fn slot<T: Word>(&mut self, array: Array<T>, index: usize) -> Result<&mut Slot, String> {
        let slot = (index < array.length).then(|| self.slots.get_mut(array.start + index)).flatten();
        slot.ok_or_else(|| format!("word {index} is outside a shared array of {}", array.length))
    }

    pub(crate) fn load<T: Word>(&mut self, array: Array<T>, index: usize, warp: u32) -> Result<T, String> {
        let interval = self.interval;
        let slot = self.slot(array, index)?;
        if slot.written.interval == interval && slot.written.warp != warp {
            return Err(race(&format!("warp {warp} reads"), index));
        }
        let others = slot.read.interval == interval && slot.read.warp != warp;
        slot.read = Access { interval, warp: if others { SEVERAL } else { warp } };
        Ok(T::from_bits(slot.bits))
    }

    pub(crate) fn store<T: Word>(&mut self, array: Array<T>, index: usize, warp: u32, word: T) -> Result<(), String> {
        let interval = self.interval;
        let slot = self.slot(array, index)?;
        if [slot.written, slot.read].iter().any(|access| access.interval == interval && access.warp != warp) {
            return Err(race(&format!("warp {warp} writes"), index));
        }
        slot.written = Access { interval, warp };
        slot.bits = word.bits();
        Ok(())
    }

    /// A word to be updated by atomics of all warps, which need no barriers among themselves.
    pub(crate) fn cell<T: Word>(&mut self, array: Array<T>, index: usize) -> Result<&mut u64, String> {
        let interval = self.interval;
        let slot = self.slot(array, index)?;
        let plain = |access: Access| access.interval == interval && access.warp != SEVERAL;
        if plain(slot.written) || slot.read.interval == interval {
            return Err(race("an atomic updates", index));
        }
        slot.written = Access { interval, warp: SEVERAL };
        Ok(&mut slot.bits)
    }
}

fn race(access: &str, index: usize) -> String {
    format!("a barrier is missing: {access} shared word {index}, which another warp used since the last one")
}
