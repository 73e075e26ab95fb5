//! A small SIMT machine: it runs GPU kernels for real, on real tensors, and counts what they do.
//!
//! - [`machine`] runs a grid: blocks of warps, as many resident at once as the GPU holds, in lock step from one global
//!   atomic to the next, so that compare-and-swaps fail as they would. [`block`] is what a kernel sees: registers of
//!   its own, warp shuffles, barriers, [`shared`] memory that finds missing barriers, global [`memory`] that counts
//!   sectors of 32 bytes, and atomics whose contention [`atomic`] works out.
//! - [`reduction`] and [`packing`] are the kernels: the strategies of DAF (MobiSys 2025, sections 3.2 and 3.3) and of
//!   those it is compared with.
//! - [`counts`] foretells, for any size and without data, what the machine would count; [`profile`] asks a device for
//!   the time of every strategy and picks the fastest, as the paper's offline profiling does.
//!
//! The machine has no caches: every warp instruction moves the sectors that it touches, and whether an L2 serves them
//! is decided where counts become time. It has no clock either.

pub mod atomic;
pub mod baseline;
pub mod block;
pub mod counts;
pub mod machine;
pub mod memory;
pub mod packing;
pub mod plan;
pub mod profile;
pub mod reduction;
pub mod shared;

pub use atomic::{Operation, Update};
pub use machine::Machine;
pub use plan::{Grid, Placement, Plan, Strategy};
