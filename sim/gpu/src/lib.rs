//! A small SIMT machine: it runs GPU kernels for real, on real tensors, and counts what they do. The counts are what
//! prices a GPU: a device's model turns them into time.
//!
//! ```text
//! Plan ──▶ kernels (reduction, baseline) ──▶ Machine::run ──▶ values + KernelCounts ──▶ Gpu::time_of
//!   │                                                             ▲
//!   └──▶ counts: the same numbers for any size, without data ─────┘──▶ Profiler: the fastest plan
//! ```
//!
//! - [`machine`] runs a grid: blocks of warps, as many resident at once as the GPU holds, in lock step from one global
//!   atomic to the next, so that compare-and-swaps fail as they would. [`block`] is what a kernel sees: registers of
//!   its own, warp shuffles, barriers, [`shared`] memory that finds missing barriers, global [`memory`] that counts
//!   sectors of 32 bytes, and atomics whose contention [`atomic`] works out.
//! - [`reduction`] is the kernel: the strategies of DAF (MobiSys 2025, section 3.2) and, in [`baseline`], of those it is
//!   compared with.
//! - [`counts`] foretells, for any size and without data, what the machine would count; [`profile`] asks a device for
//!   the time of every strategy and picks the fastest, as the paper's offline profiling does.
//!
//! The machine has no caches: every warp instruction moves the sectors that it touches, and whether an L2 serves them
//! is decided where counts become time. It has no clock either.
//!
//! ```
//! use haversack_devices::GpuLimits;
//! use haversack_devices::units::Bytes;
//! use haversack_gpu::{Machine, Plan, Strategy, counts, reduction};
//! use haversack_kernels::reduce::Statistic;
//!
//! // Two units of up to four blocks; the minimum of 1000 values by one atomic a block of 128 threads.
//! let limits = GpuLimits { units: 2, threads: 1024, blocks: 4, shared: Bytes(48 << 10) };
//! let machine = Machine { limits, lanes: 32, adds_natively: false };
//! let plan = Plan::new(Strategy::Hybrid, 128);
//! let data: Vec<f32> = (0..1000).map(|i| ((i * 37) % 1000) as f32).collect();
//! let found = reduction::run(&plan, &[Statistic::Minimum], &data, &machine)?;
//! assert_eq!(found.values, [0.0]);
//! // 1000 values in tiles of 128 threads by four are two blocks: what is foretold without data, too.
//! let foretold = counts::counts_of(&plan, &[Statistic::Minimum], 1000, &machine)?;
//! assert_eq!((found.counts.kernels[0].blocks, foretold.kernels[0].blocks), (2, 2));
//! # Ok::<(), haversack_kernels::KernelError>(())
//! ```

pub mod atomic;
pub mod baseline;
pub mod block;
pub mod counts;
pub mod machine;
pub mod memory;
pub mod plan;
pub mod profile;
pub mod reduction;
pub mod shared;

pub use atomic::{Operation, Update};
pub use machine::Machine;
pub use plan::{Grid, Placement, Plan, Strategy};
