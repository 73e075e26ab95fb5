//! The destinations of evicted anonymous pages: ZRAM, and the slots of the partition on flash.

use super::NONE;

/// Swap space.
#[derive(Clone, Debug)]
pub(super) struct Swap {
    pub(super) zram: Zram,
    pub(super) partition: Partition,
}

/// A ZRAM disk: its contents and its use of DRAM.
#[derive(Clone, Debug, Default)]
pub(super) struct Zram {
    /// The size of the disk, in pages before compression.
    pub(super) capacity: u64,
    /// Pages stored, before compression.
    pub(super) stored: u64,
    /// Their use of DRAM, in bytes.
    pub(super) dram: u64,
}

impl Zram {
    pub(super) fn has_room(&self, pages: u64) -> bool {
        self.stored + pages <= self.capacity
    }
}

/// The swap partition: slots of an extent each, allocated in order as long as there are unused ones, then the next free
/// one after the last (like clusters on an SSD). Read-ahead follows this order.
#[derive(Clone, Debug)]
pub(super) struct Partition {
    /// In pages.
    pub(super) capacity: u64,
    pub(super) used: u64,
    /// The number of slots that are allocated in order, before freed ones are reused.
    fresh: usize,
    owners: Vec<u32>,
    /// A bit per free slot.
    free: Vec<u64>,
    cursor: usize,
}

impl Partition {
    pub(super) fn new(capacity: u64, extent_pages: u64) -> Self {
        let fresh = usize::try_from(capacity / extent_pages).unwrap_or(usize::MAX);
        Self { capacity, used: 0, fresh, owners: Vec::new(), free: Vec::new(), cursor: 0 }
    }

    pub(super) fn has_room(&self, pages: u64) -> bool {
        self.used + pages <= self.capacity
    }

    /// Allocates a slot for `id`; the caller has checked that there is room.
    pub(super) fn take(&mut self, id: u32, pages: u64) -> u32 {
        self.used += pages;
        let slot = if self.owners.len() < self.fresh { None } else { self.next_free() };
        // Short extents leave room beyond the last slot.
        let slot = slot.unwrap_or_else(|| {
            self.owners.push(NONE);
            if self.free.len() * 64 < self.owners.len() {
                self.free.push(0);
            }
            self.owners.len() - 1
        });
        self.owners[slot] = id;
        self.free[slot / 64] &= !(1 << (slot % 64));
        self.cursor = slot + 1;
        slot as u32
    }

    fn next_free(&self) -> Option<usize> {
        let words = self.free.len();
        let (first, bit) = (self.cursor / 64, self.cursor % 64);
        // The word of the cursor comes first without the bits before it, and last with them.
        (0..=words).find_map(|step| {
            let at = (first + step) % words.max(1);
            let mut word = *self.free.get(at)?;
            if step == 0 && first < words {
                word &= u64::MAX << bit;
            }
            (word != 0).then(|| at * 64 + word.trailing_zeros() as usize)
        })
    }

    pub(super) fn give_back(&mut self, slot: u32, pages: u64) {
        let slot = slot as usize;
        self.used -= pages;
        self.owners[slot] = NONE;
        self.free[slot / 64] |= 1 << (slot % 64);
    }

    /// The extents in the aligned window of `width` slots around `slot`.
    pub(super) fn around(&self, slot: u32, width: u32) -> impl Iterator<Item = u32> + use<'_> {
        let first = (slot - slot % width) as usize;
        let end = (first + width as usize).min(self.owners.len());
        self.owners[first..end].iter().copied().filter(|&id| id != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_given_out_in_order_and_then_where_one_is_free() {
        // Four slots of 2 pages. Fresh ones first: 0, 1, 2, although 0 is free again.
        let mut partition = Partition::new(8, 2);
        assert_eq!([partition.take(10, 2), partition.take(11, 2)], [0, 1]);
        partition.give_back(0, 2);
        assert_eq!([partition.take(12, 2), partition.take(13, 2)], [2, 3]);
        // Round to 0, and then the partition is full.
        assert_eq!(partition.take(14, 2), 0);
        assert!(!partition.has_room(1));
        assert_eq!(partition.around(3, 2).collect::<Vec<_>>(), [12, 13]);
    }
}
