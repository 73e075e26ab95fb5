//! Framework memory: how allocators turn the bytes of tensors into the bytes of a process.
//!
//! *Allocated* bytes are those that live tensors were given; *reserved* bytes are those that the allocator holds from the
//! system. They differ by rounding, by fragments that nothing fits into and by what is cached for later. Every allocator
//! here answers both.

mod caching;
mod exact;

use haversack_devices::units::Bytes;
use thiserror::Error;

pub use caching::CachingAllocator;
pub use exact::ExactAllocator;

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
}
