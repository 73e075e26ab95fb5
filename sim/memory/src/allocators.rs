//! Framework memory: how allocators turn the bytes of tensors into the bytes of a process.
//!
//! *Allocated* bytes are those that live tensors were given; *reserved* bytes are those that the allocator holds from the
//! system. They differ by rounding, by fragments that nothing fits into and by what is cached for later. Every allocator
//! here answers both.

mod caching;
mod pool;

use haversack_devices::{Bytes, ensure};
use thiserror::Error;

pub use caching::CachingAllocator;
pub use pool::PoolAllocator;

/// A piece of memory given out; give it back with [`Allocator::free`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Allocation(u32);

/// Why memory could not be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AllocationError {
    /// The budget does not hold it, even with every cached block given back.
    #[error("{wanted} wanted, {available} left of a budget of {budget}")]
    OutOfMemory {
        /// The bytes wanted, rounded as the allocator rounds.
        wanted: Bytes,
        /// The bytes that the budget still leaves.
        available: Bytes,
        /// The budget.
        budget: Bytes,
    },
}

/// Something that gives out memory within a budget.
pub trait Allocator {
    /// Gives `size` bytes.
    ///
    /// # Errors
    /// Where the budget does not hold them.
    fn allocate(&mut self, size: Bytes) -> Result<Allocation, AllocationError>;

    /// Gives `size` bytes for what outlives an iteration's maps; from memory of its own, where the allocator keeps the two apart.
    ///
    /// # Errors
    /// Where the budget does not hold them.
    fn allocate_apart(&mut self, size: Bytes) -> Result<Allocation, AllocationError> {
        self.allocate(size)
    }

    /// Takes back what [`Allocator::allocate`] gave. Taking back twice does nothing.
    fn free(&mut self, allocation: Allocation);

    /// Gives back all but the first `size` bytes of a piece; nothing happens if it is no larger.
    fn shrink(&mut self, allocation: Allocation, size: Bytes);

    /// Changes the budget; what is already held beyond a smaller one stays until it is freed.
    fn set_budget(&mut self, budget: Bytes);

    /// Bytes given out, rounded as the allocator rounds.
    fn allocated(&self) -> Bytes;

    /// Bytes held from the system.
    fn reserved(&self) -> Bytes;

    /// Bytes that are in memory for it: of one that never has what is free back, all that it holds.
    fn resident(&self) -> Bytes {
        self.allocated()
    }
}

/// An allocator without rounding, caching or fragments: reserved equals allocated.
#[derive(Clone, Debug)]
#[must_use]
pub struct ExactAllocator {
    budget: Bytes,
    sizes: Vec<Option<Bytes>>,
    vacant: Vec<u32>,
    allocated: Bytes,
}

impl ExactAllocator {
    /// An allocator that may hold `budget` bytes.
    pub fn new(budget: Bytes) -> Self {
        Self { budget, sizes: Vec::new(), vacant: Vec::new(), allocated: Bytes::ZERO }
    }
}

impl Allocator for ExactAllocator {
    fn allocate(&mut self, size: Bytes) -> Result<Allocation, AllocationError> {
        let available = self.budget.saturating_sub(self.allocated);
        ensure!(size <= available, AllocationError::OutOfMemory { wanted: size, available, budget: self.budget });
        self.allocated += size;
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.sizes.push(None);
            (self.sizes.len() - 1) as u32
        });
        self.sizes[slot as usize] = Some(size);
        Ok(Allocation(slot))
    }

    fn free(&mut self, allocation: Allocation) {
        if let Some(size) = self.sizes.get_mut(allocation.0 as usize).and_then(Option::take) {
            self.allocated -= size;
            self.vacant.push(allocation.0);
        }
    }

    fn shrink(&mut self, allocation: Allocation, size: Bytes) {
        if let Some(Some(held)) = self.sizes.get_mut(allocation.0 as usize)
            && size < *held
        {
            self.allocated -= *held - size;
            *held = size;
        }
    }

    fn set_budget(&mut self, budget: Bytes) {
        self.budget = budget;
    }

    fn allocated(&self) -> Bytes {
        self.allocated
    }

    fn reserved(&self) -> Bytes {
        self.allocated
    }
}
