//! A small SIMT machine: it runs GPU kernels for real, on real tensors, and counts what they do. It is what the closed
//! forms of the crate are compared with.
//!
//! [`machine`] runs a grid: blocks of warps, as many resident at once as the GPU holds, in lock step from one global
//! atomic to the next, so that compare-and-swaps fail as they would. [`block`] is what a kernel sees: registers of
//! its own, warp shuffles, barriers, [`shared`] memory that finds missing barriers, global [`memory`] that counts
//! sectors of 32 bytes, and atomics whose contention [`atomic`] works out. [`reduction`] and [`squares`] are kernels.
//!
//! The machine has no caches: every warp instruction moves the sectors that it touches, and whether an L2 serves them
//! is decided where counts become time. It has no clock either.
#![allow(unreachable_pub)]

pub mod atomic;
pub mod block;
pub mod machine;
pub mod memory;
pub mod reduction;
pub mod shared;
pub mod squares;
