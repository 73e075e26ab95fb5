//! Extents in an arena, and the doubly linked lists through them.

use super::PhoneError;

/// No extent, no slot.
pub(super) const NONE: u32 = u32::MAX;
/// Lists per kind of page: two, or one per generation.
pub(super) const LISTS: usize = 8;

/// Where the pages of an extent are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nowhere: never touched, or freed.
    Untouched,
    /// In DRAM and in the process's page table.
    Mapped,
    /// In DRAM, read ahead; the next touch maps it.
    Cached,
    /// In DRAM until it is written to flash; on no list.
    Writeback,
    /// Compressed in ZRAM.
    Zram,
    /// In the swap partition.
    Flash,
    /// A file's, dropped.
    Dropped,
}

/// A scan found it young and spared it (`PG_referenced`).
pub(super) const REFERENCED: u8 = 2;
/// It has been active (`PG_workingset`).
pub(super) const WORKINGSET: u8 = 4;
/// A file page newer than the flash.
pub(super) const DIRTY: u8 = 8;

/// A run of pages that move together. 40 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    prev: u32,
    next: u32,
    pub(super) region: u32,
    /// Its index in the region.
    pub(super) place: u32,
    /// Its slot in the swap partition, if it has one.
    pub(super) slot: u32,
    /// Mapped: the stamp of the last scan. In writeback: the number of the write. Evicted: the eviction clock.
    pub(super) clock: u64,
    pub(super) pages: u16,
    pub(super) list: u8,
    pub(super) state: State,
    pub(super) flags: u8,
}

/// A list from end to end: the head is the youngest, the tail the next to be scanned.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
    pages: u64,
}

/// All extents and all lists. Lists 0 to 7 are for anonymous, 8 to 15 for file pages.
#[derive(Clone, Debug)]
pub(super) struct Extents {
    all: Vec<Extent>,
    free: Vec<u32>,
    lists: [List; 2 * LISTS],
    /// The pages of all lists of a kind.
    kinds: [u64; 2],
}

const OFF: u8 = u8::MAX;

impl Extents {
    pub(super) fn new() -> Self {
        let lists = [List { head: NONE, tail: NONE, pages: 0 }; 2 * LISTS];
        Self { all: Vec::new(), free: Vec::new(), lists, kinds: [0; 2] }
    }

    pub(super) fn get(&self, id: u32) -> &Extent {
        &self.all[id as usize]
    }

    pub(super) fn get_mut(&mut self, id: u32) -> &mut Extent {
        &mut self.all[id as usize]
    }

    /// A new untouched extent.
    pub(super) fn create(&mut self, region: u32, place: u32, pages: u16) -> Result<u32, PhoneError> {
        let extent = Extent {
            prev: NONE,
            next: NONE,
            region,
            place,
            slot: NONE,
            clock: 0,
            pages,
            list: OFF,
            state: State::Untouched,
            flags: 0,
        };
        if let Some(id) = self.free.pop() {
            self.all[id as usize] = extent;
            return Ok(id);
        }
        let id = u32::try_from(self.all.len()).ok().filter(|&id| id != NONE);
        let id = id.ok_or(PhoneError::TooMany("extents"))?;
        self.all.push(extent);
        Ok(id)
    }

    /// Deletes an extent that is on no list.
    pub(super) fn remove(&mut self, id: u32) {
        // A write in progress finds another number here, and ignores the extent.
        self.all[id as usize].state = State::Untouched;
        self.free.push(id);
    }

    pub(super) fn push_head(&mut self, id: u32, list: usize) {
        self.link(id, list, [NONE, self.lists[list].head]);
    }

    pub(super) fn push_tail(&mut self, id: u32, list: usize) {
        self.link(id, list, [self.lists[list].tail, NONE]);
    }

    /// Moves an extent from its list to the head of `list`.
    pub(super) fn move_to_head(&mut self, id: u32, list: usize) {
        self.unlink(id);
        self.push_head(id, list);
    }

    /// Inserts an extent between two others of a list, or before its head or behind its tail.
    #[inline]
    fn link(&mut self, id: u32, list: usize, [prev, next]: [u32; 2]) {
        let extent = &mut self.all[id as usize];
        (extent.prev, extent.next, extent.list) = (prev, next, list as u8);
        let pages = u64::from(extent.pages);
        let ends = &mut self.lists[list];
        ends.pages += pages;
        self.kinds[list / LISTS] += pages;
        match prev {
            NONE => ends.head = id,
            prev => self.all[prev as usize].next = id,
        }
        match next {
            NONE => ends.tail = id,
            next => self.all[next as usize].prev = id,
        }
    }

    /// Removes an extent from its list, if it is on one.
    pub(super) fn unlink(&mut self, id: u32) {
        let Extent { prev, next, list, pages, .. } = self.all[id as usize];
        if list == OFF {
            return;
        }
        let lists = &mut self.lists[list as usize];
        match prev {
            NONE => lists.head = next,
            prev => self.all[prev as usize].next = next,
        }
        match next {
            NONE => lists.tail = prev,
            next => self.all[next as usize].prev = prev,
        }
        lists.pages -= u64::from(pages);
        self.kinds[list as usize / LISTS] -= u64::from(pages);
        self.all[id as usize].list = OFF;
    }

    /// The next extent to be scanned.
    pub(super) fn tail(&self, list: usize) -> Option<u32> {
        Some(self.lists[list].tail).filter(|&id| id != NONE)
    }

    /// The youngest extent.
    pub(super) fn head(&self, list: usize) -> Option<u32> {
        Some(self.lists[list].head).filter(|&id| id != NONE)
    }

    /// The pages of a list.
    pub(super) fn pages(&self, list: usize) -> u64 {
        self.lists[list].pages
    }

    /// The pages of all lists of a kind: 0 anonymous, 1 file.
    pub(super) fn kind_pages(&self, kind: usize) -> u64 {
        self.kinds[kind]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_their_order_and_their_pages() {
        let mut extents = Extents::new();
        let ids: Vec<u32> = (1..=3).map(|pages| extents.create(0, 0, pages).unwrap()).collect();
        for &id in &ids {
            extents.push_head(id, 0);
        }
        // Three pushed at the head: the first is the tail; 1 + 2 + 3 pages.
        assert_eq!((extents.tail(0), extents.pages(0), extents.kind_pages(0)), (Some(ids[0]), 6, 6));
        extents.unlink(ids[1]);
        extents.unlink(ids[1]);
        extents.push_tail(ids[1], 0);
        extents.unlink(ids[0]);
        // 2 went behind 1, then 1 left: 3, 2.
        assert_eq!((extents.head(0), extents.tail(0), extents.pages(0)), (Some(ids[2]), Some(ids[1]), 5));
        extents.push_tail(ids[0], 1);
        extents.create(0, 0, 7).map(|id| extents.push_head(id, LISTS)).unwrap();
        assert_eq!([extents.kind_pages(0), extents.kind_pages(1)], [6, 7]);
        assert_eq!(std::mem::size_of::<Extent>(), 40);
    }
}
