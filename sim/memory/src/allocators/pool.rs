//! The pool of MNN's backends (`source/core/BufferAllocator.cpp`, 1.1).
//!
//! A request takes the smallest free block that is large enough, and splits it; without such a block, the
//! system provides one of exactly that size. Two halves merge once both are free, so a block with a single
//! small piece in use serves no larger request. The pool releases nothing before the end; weights, states and
//! gradients are not part of it.

use haversack_devices::Bytes;

use super::{Allocation, AllocationError, Allocator};
use crate::slots::Slots;

/// Offsets are multiples of this (`MNN_MEMORY_ALIGN_DEFAULT`).
const ALIGNMENT: u64 = 64;

/// A pool that splits and merges its blocks.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct PoolAllocator {
    budget: u64,
    blocks: Slots<Block>,
    /// Number of blocks created so far.
    born: u64,
    /// Free blocks by size, then by age, in separate lists for classes of sizes, so that each operation
    /// searches and moves only few.
    free: Vec<Vec<Key>>,
    allocated: u64,
    reserved: u64,
}

/// A block's position among the free ones: its size, its creation number, and its index in `blocks`.
type Key = (u64, u64, u32);

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    size: u64,
    /// Its creation number.
    born: u64,
    parent: Option<u32>,
    halves: Option<[u32; 2]>,
    /// The number of its halves that are in use or split.
    used: u32,
    /// Whether it is separate from the pool, so that freeing it releases it to the system.
    apart: bool,
    /// The requested bytes; `None` while it is free or split.
    given: Option<u64>,
}

impl PoolAllocator {
    /// A pool with a budget of `budget` bytes.
    pub fn new(budget: Bytes) -> Self {
        Self { budget: budget.0, free: vec![Vec::new(); class(u64::MAX) + 1], ..Self::default() }
    }

    fn add(&mut self, block: Block) -> u32 {
        let block = Block { born: self.born, ..block };
        self.born += 1;
        self.blocks.put(block)
    }

    fn key(&self, id: u32) -> Key {
        let block = &self.blocks[id as usize];
        (block.size, block.born, id)
    }

    /// Adds a block to the free ones.
    fn offer(&mut self, id: u32) {
        let key = self.key(id);
        let alike = &mut self.free[class(key.0)];
        let place = alike.iter().rposition(|other| *other < key).map_or(0, |before| before + 1);
        alike.insert(place, key);
    }

    /// Takes `size` bytes of a free block, which it splits if it is larger.
    fn take(&mut self, size: u64) -> Option<u32> {
        let (whole, _, id) = self.free[class(size)..].iter_mut().find_map(|alike| {
            let place = alike.iter().position(|&(whole, ..)| whole >= size)?;
            Some(alike.remove(place))
        })?;
        if let Some(parent) = self.blocks[id as usize].parent {
            self.blocks[parent as usize].used += 1;
        }
        if size >= whole {
            return Some(id);
        }
        let half = |size| Block { size, parent: Some(id), ..Block::default() };
        let [taken, left] = [size, whole - size].map(|size| self.add(half(size)));
        let split = &mut self.blocks[id as usize];
        (split.used, split.halves) = (1, Some([taken, left]));
        self.offer(left);
        Some(taken)
    }

    /// Frees a block, or rather the largest block around it that has no other part in use.
    fn release(&mut self, mut id: u32) {
        while let Some(parent) = self.blocks[id as usize].parent {
            let whole = &mut self.blocks[parent as usize];
            whole.used -= 1;
            if whole.used > 0 {
                break;
            }
            for half in whole.halves.take().into_iter().flatten() {
                let alike = &mut self.free[class(self.blocks[half as usize].size)];
                alike.iter().position(|&(.., id)| id == half).map(|place| alike.remove(place));
                self.blocks.give_back(half as usize);
            }
            id = parent;
        }
        self.offer(id);
    }

    fn give(&mut self, size: Bytes, apart: bool) -> Result<Allocation, AllocationError> {
        let available = Bytes(self.budget.saturating_sub(self.allocated));
        if size > available {
            return Err(AllocationError::OutOfMemory { wanted: size, available, budget: Bytes(self.budget) });
        }
        let wanted = size.0.next_multiple_of(ALIGNMENT);
        let known = if apart { None } else { self.take(wanted) };
        let id = known.unwrap_or_else(|| {
            // If the plan were limited to the budget, it would place tensors closer together.
            let most = self.budget.max(self.allocated + wanted);
            self.reserved = (self.reserved + wanted).min(most);
            self.add(Block { size: wanted, apart, ..Block::default() })
        });
        self.blocks[id as usize].given = Some(size.0);
        self.allocated += size.0;
        Ok(Allocation(id))
    }
}

/// The list for free blocks of `size`: by the first three binary digits of the size, and the number of further digits.
fn class(size: u64) -> usize {
    let more = (size | 4).ilog2() - 2;
    (more as usize) << 2 | (size >> more & 3) as usize
}

impl Allocator for PoolAllocator {
    fn allocate(&mut self, size: Bytes) -> Result<Allocation, AllocationError> {
        self.give(size, false)
    }

    fn allocate_apart(&mut self, size: Bytes) -> Result<Allocation, AllocationError> {
        self.give(size, true)
    }

    fn free(&mut self, allocation: Allocation) {
        let Some(given) = self.blocks.get_mut(allocation.0).and_then(|block| block.given.take()) else {
            return;
        };
        self.allocated -= given;
        let Block { size, apart, .. } = self.blocks[allocation.0 as usize];
        if apart {
            self.reserved = self.reserved.saturating_sub(size);
            self.blocks.give_back(allocation.0 as usize);
        } else {
            self.release(allocation.0);
        }
    }

    fn shrink(&mut self, allocation: Allocation, size: Bytes) {
        let given = self.blocks.get_mut(allocation.0).and_then(|block| block.given.as_mut());
        if let Some(given) = given.filter(|given| size.0 < **given) {
            self.allocated -= *given - size.0;
            *given = size.0;
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

    fn resident(&self) -> Bytes {
        self.reserved()
    }
}
