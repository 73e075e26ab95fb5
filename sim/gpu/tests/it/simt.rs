//! A small SIMT machine: it executes GPU kernels on real tensors and counts their work. The crate's closed
//! forms are compared with it.
//!
//! [`machine`] runs a grid: blocks of warps, as many resident as fit the GPU, in lock step from one global atomic to
//! the next, so that compare-and-swaps fail as on hardware. [`block`] is the interface for kernels: a block's
//! registers, warp shuffles, barriers, [`shared`] memory that detects missing barriers, global [`memory`] that counts
//! sectors of 32 bytes, and atomics whose contention [`atomic`] computes. [`reduction`] and [`squares`] are kernels.
//!
//! The machine has no caches: every warp instruction moves the sectors that it touches, and the conversion of counts to
//! time decides whether an L2 serves them. It has no clock either.
#![allow(unreachable_pub)]

pub mod atomic;
pub mod block;
pub mod machine;
pub mod memory;
pub mod reduction;
pub mod shared;
pub mod squares;
