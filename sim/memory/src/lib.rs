//! Memory: allocators of frameworks, DAF's storage of packed activations, and a phone's memory management.
//!
//! ```text
//! tensor ── allocators ──▶ allocated, reserved            within a memory budget
//! packed tensor ── pages::PageArena ──▶ blocks of pages   pages::PageTable says which goes first
//! touched memory ── phone::PhoneMemory ──▶ stalls, kills  reclaim, ZRAM, swap, lmkd
//! ```
//!
//! - [`allocators`]: PyTorch's caching allocator, MNN's pool, and an exact allocator.
//! - [`pages`]: DAF's arena of pages and its table of activations in order of eviction.
//! - [`phone`]: page reclaim, ZRAM, swap and the low-memory killer of a phone in use.
//!
//! All of it is bookkeeping in bytes and in nanoseconds that callers pass in: nothing here knows operators,
//! policies or the event queue.
//!
//! ```
//! use haversack_devices::units::Bytes;
//! use haversack_memory::{Allocator, CachingAllocator};
//!
//! let mut allocator = CachingAllocator::new(Bytes(40 << 20));
//! let tensor = allocator.allocate(Bytes(6 << 20))?;
//! // Requests below 10 MiB share segments of 20 MiB.
//! assert_eq!((allocator.allocated(), allocator.reserved()), (Bytes(6 << 20), Bytes(20 << 20)));
//! allocator.free(tensor);
//! assert_eq!((allocator.reserved() - allocator.allocated()), Bytes(20 << 20));
//! # Ok::<(), haversack_memory::AllocationError>(())
//! ```

pub mod allocators;
pub mod pages;
pub mod phone;
mod slots;

pub use allocators::{Allocation, AllocationError, Allocator, CachingAllocator, ExactAllocator, PoolAllocator};
