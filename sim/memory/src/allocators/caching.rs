//! The caching allocator of PyTorch's CUDA backend (`c10/cuda/CUDACachingAllocator.cpp`, PyTorch 2.6), whose rules
//! CuPy's pool and Sage's own allocator share.
//!
//! Sizes are rounded up to 512 bytes. Requests of up to 1 MiB come from segments of 2 MiB, requests below 10 MiB from
//! segments of 20 MiB, and larger ones get their own segment in steps of 2 MiB. A free block of a segment is split if
//! the rest is worth keeping (512 bytes in a small segment, more than 1 MiB in a large one), and is merged with its
//! free neighbours when it is freed; a request takes the smallest block that fits, the oldest among equals. Segments
//! stay reserved until a new one would exceed the budget; then entirely free ones are released.

use haversack_devices::Bytes;

use super::{Allocation, AllocationError, Allocator};
use crate::slots::Slots;

const MIB: u64 = 1 << 20;
/// Every size is a multiple of this.
const ROUNDING: u64 = 512;
/// Largest request that a small segment serves.
const SMALL_REQUEST: u64 = MIB;
/// Size of a small segment.
const SMALL_SEGMENT: u64 = 2 * MIB;
/// Requests from this size on get their own segment.
const OWN_SEGMENT: u64 = 10 * MIB;
/// Size of a segment that large requests share.
const SHARED_SEGMENT: u64 = 20 * MIB;
/// Segments for a single request are a multiple of this.
const SEGMENT_STEP: u64 = 2 * MIB;

/// A caching allocator with splitting, merging and fragmentation.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct CachingAllocator {
    budget: u64,
    blocks: Slots<Block>,
    /// Free blocks of small and of large segments, sorted by size, then by age. There are few, as neighbours merge.
    free: [Vec<FreeBlock>; 2],
    born: u64,
    allocated: u64,
    reserved: u64,
}

/// Size, place and id of a block.
type FreeBlock = (u64, u64, u32);

#[derive(Clone, Copy, Debug)]
struct Block {
    size: u64,
    /// Order of its segment and its place in it: older memory is preferred.
    place: u64,
    previous: Option<u32>,
    next: Option<u32>,
    large: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Used,
    Free,
    Vacant,
}

impl CachingAllocator {
    /// An allocator that may reserve `budget` bytes.
    pub fn new(budget: Bytes) -> Self {
        Self { budget: budget.0, ..Self::default() }
    }

    fn block(&self, id: u32) -> Block {
        self.blocks[id as usize]
    }

    fn insert_free(&mut self, id: u32) {
        let block = &mut self.blocks[id as usize];
        block.state = State::Free;
        let key = (block.size, block.place, id);
        let free = &mut self.free[usize::from(block.large)];
        free.insert(free.partition_point(|other| *other < key), key);
    }

    fn remove_free(&mut self, id: u32) {
        let block = self.block(id);
        let free = &mut self.free[usize::from(block.large)];
        if let Ok(found) = free.binary_search(&(block.size, block.place, id)) {
            free.remove(found);
        }
    }

    /// A free block of at least `size`, from the cache or from a new segment.
    fn find(&mut self, size: u64, large: bool) -> Result<u32, AllocationError> {
        let free = &mut self.free[usize::from(large)];
        let best = free.partition_point(|&(held, ..)| held < size);
        if best < free.len() {
            let (_, _, id) = free.remove(best);
            return Ok(id);
        }
        let segment = segment_size(size);
        if self.reserved.saturating_add(segment) > self.budget {
            self.release_cached();
        }
        if self.reserved.saturating_add(segment) > self.budget {
            return Err(AllocationError::OutOfMemory {
                wanted: Bytes(segment),
                available: Bytes(self.budget.saturating_sub(self.reserved)),
                budget: Bytes(self.budget),
            });
        }
        self.reserved += segment;
        let place = self.born;
        self.born += segment;
        Ok(self.blocks.put(Block { size: segment, place, previous: None, next: None, large, state: State::Used }))
    }

    /// Releases every entirely free segment to the system.
    fn release_cached(&mut self) {
        let Self { blocks, free, reserved, .. } = self;
        for pool in free {
            pool.retain(|&(size, _, id)| {
                let block = &mut blocks[id as usize];
                let is_whole = block.previous.is_none() && block.next.is_none();
                if is_whole {
                    *reserved -= size;
                    block.state = State::Vacant;
                    blocks.give_back(id as usize);
                }
                !is_whole
            });
        }
    }

    /// Splits off what a block has beyond `size`, if that is worth keeping.
    fn split(&mut self, id: u32, size: u64) {
        let block = self.block(id);
        let rest = block.size - size;
        let worth_keeping = if block.large { rest > SMALL_REQUEST } else { rest >= ROUNDING };
        if !worth_keeping {
            return;
        }
        let place = block.place + size;
        let tail = Block { size: rest, place, previous: Some(id), next: block.next, ..block };
        let tail_id = self.blocks.put(tail);
        if let Some(next) = block.next {
            self.blocks[next as usize].previous = Some(tail_id);
        }
        let head = &mut self.blocks[id as usize];
        head.size = size;
        head.next = Some(tail_id);
        self.insert_free(tail_id);
    }

    /// Joins `id` with its neighbour `right`, which must follow it.
    fn join(&mut self, id: u32, right: u32) {
        let absorbed = self.block(right);
        let block = &mut self.blocks[id as usize];
        block.size += absorbed.size;
        block.next = absorbed.next;
        if let Some(next) = absorbed.next {
            self.blocks[next as usize].previous = Some(id);
        }
        self.blocks[right as usize].state = State::Vacant;
        self.blocks.give_back(right as usize);
    }
}

impl Allocator for CachingAllocator {
    fn allocate(&mut self, size: Bytes) -> Result<Allocation, AllocationError> {
        let size = rounded(size);
        let id = self.find(size, size > SMALL_REQUEST)?;
        self.split(id, size);
        let block = &mut self.blocks[id as usize];
        block.state = State::Used;
        self.allocated += block.size;
        Ok(Allocation(id))
    }

    fn free(&mut self, allocation: Allocation) {
        let mut id = allocation.0;
        let Some(&block) = self.blocks.get(id).filter(|block| block.state == State::Used) else { return };
        self.allocated -= block.size;
        if let Some(next) = block.next.filter(|&next| self.block(next).state == State::Free) {
            self.remove_free(next);
            self.join(id, next);
        }
        if let Some(previous) = block.previous.filter(|&previous| self.block(previous).state == State::Free) {
            self.remove_free(previous);
            self.join(previous, id);
            id = previous;
        }
        self.insert_free(id);
    }

    /// The part that is cut off merges with a free neighbour; a rest that is not worth keeping
    /// stays with the allocation.
    fn shrink(&mut self, allocation: Allocation, size: Bytes) {
        let id = allocation.0;
        let size = rounded(size);
        let held = match self.blocks.get(id) {
            Some(block) if block.state == State::Used && block.size > size => block.size,
            _ => return,
        };
        self.split(id, size);
        self.allocated -= held - self.block(id).size;
        let tail = self.block(id).next.filter(|&tail| self.block(tail).state == State::Free);
        let beyond = tail.and_then(|tail| self.block(tail).next).filter(|&next| self.block(next).state == State::Free);
        if let (Some(tail), Some(beyond)) = (tail, beyond) {
            self.remove_free(tail);
            self.remove_free(beyond);
            self.join(tail, beyond);
            self.insert_free(tail);
        }
    }

    fn set_budget(&mut self, budget: Bytes) {
        self.budget = budget.0;
    }

    fn allocated(&self) -> Bytes {
        Bytes(self.allocated)
    }

    fn reserved(&self) -> Bytes {
        Bytes(self.reserved)
    }
}

const fn rounded(size: Bytes) -> u64 {
    (if size.0 == 0 { 1 } else { size.0 }).div_ceil(ROUNDING) * ROUNDING
}

const fn segment_size(size: u64) -> u64 {
    if size <= SMALL_REQUEST {
        SMALL_SEGMENT
    } else if size < OWN_SEGMENT {
        SHARED_SEGMENT
    } else {
        size.div_ceil(SEGMENT_STEP) * SEGMENT_STEP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocator() -> CachingAllocator {
        CachingAllocator::new(Bytes::MAX)
    }

    #[test]
    fn small_requests_share_a_segment_of_two_mebibytes() {
        let mut a = allocator();
        // 1,000 B rounds to 1,024 B and 1 B to 512 B: 1,536 B allocated in one 2 MiB segment.
        a.allocate(Bytes(1000)).unwrap();
        a.allocate(Bytes(1)).unwrap();
        assert_eq!(a.allocated(), Bytes(1536));
        assert_eq!(a.reserved(), Bytes(2 * MIB));
    }

    #[test]
    fn a_block_of_its_own_is_not_split_for_less_than_a_mebibyte() {
        let mut a = allocator();
        let big = a.allocate(Bytes(11 * MIB)).unwrap();
        // 11 MiB is rounded up to a 12 MiB segment; the last MiB is not worth splitting off.
        assert_eq!(a.reserved(), Bytes(12 * MIB));
        assert_eq!(a.allocated(), Bytes(12 * MIB));
        a.free(big);
        assert_eq!((a.allocated(), (a.reserved() - a.allocated())), (Bytes::ZERO, Bytes(12 * MIB)));
    }

    #[test]
    fn freed_neighbours_merge_and_serve_a_larger_request() {
        let mut a = allocator();
        let parts = [5, 5, 5].map(|mib| a.allocate(Bytes(mib * MIB)).unwrap());
        assert_eq!(a.reserved(), Bytes(20 * MIB));
        for part in parts {
            a.free(part);
        }
        // The whole 20 MiB segment is one block again, so 18 MiB need no new segment.
        a.allocate(Bytes(18 * MIB)).unwrap();
        assert_eq!(a.reserved(), Bytes(20 * MIB));
    }

    #[test]
    fn fragments_force_a_new_segment_though_enough_is_free() {
        let mut a = allocator();
        let parts = [6, 6, 6].map(|mib| a.allocate(Bytes(mib * MIB)).unwrap());
        a.free(parts[0]);
        a.free(parts[2]);
        // 6 + (6 + 2) MiB are free around a used block, but no 9 MiB are contiguous.
        assert_eq!((a.reserved() - a.allocated()), Bytes(14 * MIB));
        a.allocate(Bytes(9 * MIB)).unwrap();
        assert_eq!(a.reserved(), Bytes(40 * MIB));
    }

    #[test]
    fn the_cache_is_given_back_before_memory_runs_out() {
        let mut a = CachingAllocator::new(Bytes(40 * MIB));
        let first = a.allocate(Bytes(30 * MIB)).unwrap();
        a.free(first);
        a.allocate(Bytes(36 * MIB)).unwrap();
        assert_eq!(a.reserved(), Bytes(36 * MIB));
        let error = a.allocate(Bytes(12 * MIB)).unwrap_err();
        assert_eq!(
            error,
            AllocationError::OutOfMemory {
                wanted: Bytes(12 * MIB),
                available: Bytes(4 * MIB),
                budget: Bytes(40 * MIB)
            }
        );
    }

    #[test]
    fn a_piece_that_shrinks_gives_its_tail_back() {
        let mut a = allocator();
        let pieces = [8, 8].map(|mib| a.allocate(Bytes(mib * MIB)).unwrap());
        // 8 + 8 MiB of a 20 MiB segment; the first shrinks to 3 MiB, and 5 MiB are free before the second.
        a.shrink(pieces[0], Bytes(3 * MIB));
        assert_eq!((a.allocated(), a.reserved()), (Bytes(11 * MIB), Bytes(20 * MIB)));
        a.allocate(Bytes(5 * MIB)).unwrap();
        assert_eq!(a.reserved(), Bytes(20 * MIB));
        // The last piece's tail merges with the 4 MiB after it: 10 MiB less one fit into 6 + 4 MiB.
        a.shrink(pieces[1], Bytes(2 * MIB));
        a.allocate(Bytes(10 * MIB - ROUNDING)).unwrap();
        assert_eq!(a.reserved(), Bytes(20 * MIB));
    }

    #[test]
    fn taking_back_twice_does_nothing() {
        let mut a = allocator();
        let only = a.allocate(Bytes(4096)).unwrap();
        a.free(only);
        a.free(only);
        assert_eq!(a.allocated(), Bytes::ZERO);
    }
}
