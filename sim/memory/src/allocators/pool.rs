//! The pool of MNN's backends (`source/core/BufferAllocator.cpp`, 1.1).
//!
//! A request takes the smallest free block that holds it, and splits it; where none does, the system gives a block of just that
//! size. Two halves are one again once neither is in use, so that a block whose last splinter lives serves no larger request.
//! Nothing of it is given back before the end; weights, states and gradients do not lie in it.

use std::collections::BTreeSet;

use haversack_devices::units::Bytes;

use super::{Allocation, AllocationError, Allocator};

/// Every place is a multiple of this (`MNN_MEMORY_ALIGN_DEFAULT`).
const ALIGNMENT: u64 = 64;

/// A pool that splits and merges its blocks.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct PoolAllocator {
    budget: u64,
    blocks: Vec<Block>,
    /// Places in `blocks` of those that are no more.
    vacant: Vec<u32>,
    /// Blocks made so far.
    born: u64,
    /// Free blocks by size, then by age.
    free: BTreeSet<(u64, u64, u32)>,
    allocated: u64,
    reserved: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    size: u64,
    /// How many were made before it.
    born: u64,
    parent: Option<u32>,
    halves: Option<[u32; 2]>,
    /// Of its halves, how many are in use or split in their turn.
    used: u32,
    /// Whether it lies beside the pool, and goes back to the system.
    apart: bool,
    /// What of it was asked for; `None` while it is free or split.
    given: Option<u64>,
}

impl PoolAllocator {
    /// A pool that may give out `budget` bytes.
    pub fn new(budget: Bytes) -> Self {
        Self { budget: budget.0, ..Self::default() }
    }

    fn add(&mut self, block: Block) -> u32 {
        let block = Block { born: self.born, ..block };
        self.born += 1;
        if let Some(id) = self.vacant.pop() {
            self.blocks[id as usize] = block;
            return id;
        }
        self.blocks.push(block);
        (self.blocks.len() - 1) as u32
    }

    /// Where a block stands among the free ones.
    fn key(&self, id: u32) -> (u64, u64, u32) {
        let block = &self.blocks[id as usize];
        (block.size, block.born, id)
    }

    /// Takes `size` bytes of a free block, which it splits if more is left.
    fn take(&mut self, size: u64) -> Option<u32> {
        let key @ (whole, _, id) = *self.free.range((size, 0, 0)..).next()?;
        self.free.remove(&key);
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
        self.free.insert(self.key(left));
        Some(taken)
    }

    /// A block is free again, and with it those that it was a half of, once their other half is.
    fn release(&mut self, id: u32) {
        self.free.insert(self.key(id));
        let Some(parent) = self.blocks[id as usize].parent else { return };
        let whole = &mut self.blocks[parent as usize];
        whole.used -= 1;
        if whole.used == 0 {
            for half in whole.halves.take().into_iter().flatten() {
                self.free.remove(&self.key(half));
                self.vacant.push(half);
            }
            self.release(parent);
        }
    }

    fn give(&mut self, size: Bytes, apart: bool) -> Result<Allocation, AllocationError> {
        let available = Bytes(self.budget.saturating_sub(self.allocated));
        if size > available {
            return Err(AllocationError::OutOfMemory { wanted: size, available, budget: Bytes(self.budget) });
        }
        let wanted = size.0.next_multiple_of(ALIGNMENT);
        let known = if apart { None } else { self.take(wanted) };
        let id = known.unwrap_or_else(|| {
            // A plan for no more than the budget would lay tensors closer.
            let most = self.budget.max(self.allocated + wanted);
            self.reserved = (self.reserved + wanted).min(most);
            self.add(Block { size: wanted, apart, ..Block::default() })
        });
        self.blocks[id as usize].given = Some(size.0);
        self.allocated += size.0;
        Ok(Allocation(id))
    }
}

impl Allocator for PoolAllocator {
    fn allocate(&mut self, size: Bytes) -> Result<Allocation, AllocationError> {
        self.give(size, false)
    }

    fn allocate_apart(&mut self, size: Bytes) -> Result<Allocation, AllocationError> {
        self.give(size, true)
    }

    fn free(&mut self, allocation: Allocation) {
        let Some(given) = self.blocks.get_mut(allocation.0 as usize).and_then(|block| block.given.take()) else {
            return;
        };
        self.allocated -= given;
        let Block { size, apart, .. } = self.blocks[allocation.0 as usize];
        if apart {
            self.reserved = self.reserved.saturating_sub(size);
            self.vacant.push(allocation.0);
        } else {
            self.release(allocation.0);
        }
    }

    fn shrink(&mut self, allocation: Allocation, size: Bytes) {
        let given = self.blocks.get_mut(allocation.0 as usize).and_then(|block| block.given.as_mut());
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
