//! Exact-size allocation: every tensor has its own piece of the system's memory, given back at once.

use haversack_devices::units::Bytes;

use super::{Allocation, AllocationError, Allocator};

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
        if size > available {
            return Err(AllocationError::OutOfMemory { wanted: size, available, budget: self.budget });
        }
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
