//! Framework memory: how allocators turn the bytes of tensors into the memory of a process.
//!
//! *Allocated* bytes belong to live tensors; *reserved* bytes are those that the allocator has from the
//! system. They differ by rounding, by fragments too small for any request, and by cached free memory. Every
//! allocator here reports both.

mod caching;
mod pool;

use haversack_devices::{Bytes, ensure};
use thiserror::Error;

pub use caching::CachingAllocator;
pub use pool::PoolAllocator;

/// An allocated piece of memory; return it with [`Allocator::free`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Allocation(u32);

/// Why an allocation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AllocationError {
    /// The size exceeds the budget, even after releasing every cached block.
    #[error("{wanted} wanted, {available} left of a budget of {budget}")]
    OutOfMemory {
        /// The requested bytes, rounded as the allocator rounds.
        wanted: Bytes,
        /// The bytes left in the budget.
        available: Bytes,
        /// The budget.
        budget: Bytes,
    },
}

/// An allocator with a budget.
pub trait Allocator {
    /// Allocates `size` bytes.
    ///
    /// # Errors
    /// The budget is exceeded.
    fn allocate(&mut self, size: Bytes) -> Result<Allocation, AllocationError>;

    /// Allocates `size` bytes for data that outlives an iteration's maps. Allocators that separate the two take
    /// them from separate memory.
    ///
    /// # Errors
    /// The budget is exceeded.
    fn allocate_apart(&mut self, size: Bytes) -> Result<Allocation, AllocationError> {
        self.allocate(size)
    }

    /// Frees an allocation. Freeing it twice does nothing.
    fn free(&mut self, allocation: Allocation);

    /// Frees all but the first `size` bytes of an allocation; does nothing if it is not larger.
    fn shrink(&mut self, allocation: Allocation, size: Bytes);

    /// Changes the budget. Memory reserved beyond a smaller budget stays until it is freed.
    fn set_budget(&mut self, budget: Bytes);

    /// Allocated bytes, rounded as the allocator rounds.
    fn allocated(&self) -> Bytes;

    /// Bytes reserved from the system.
    fn reserved(&self) -> Bytes;

    /// Bytes of its memory that are resident: an allocator that never returns free memory keeps everything
    /// resident that it has reserved.
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
    /// An allocator with a budget of `budget` bytes.
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
