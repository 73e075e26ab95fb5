//! Counts of the work of GPU kernels: the reductions of DAF and its baselines. A device's model
//! turns the counts into time.
//!
//! ```text
//! Plan, baseline ──▶ counts: what each kernel does, for any size ──▶ Gpu::time_of ──▶ Profiler: the fastest plan
//!                      ▲
//!                      └── Machine: what the GPU holds at once
//! ```
//!
//! - [`plan`] spreads a reduction over a GPU: the strategies of DAF (MobiSys 2025, section 3.2) and CUB's.
//! - [`counts`] computes the work of its kernels on a [`machine`]: instructions, sectors of memory moved, barriers,
//!   shuffles, and contending atomics. [`baseline`] does so for the reductions of CUB and of a framework.
//! - [`profile`] computes the time of every strategy on a device and picks the fastest, as the paper's
//!   offline profiling does.
//!
//! Nothing here runs a kernel. The crate's tests do: their SIMT machine executes every plan on real data, in lock step
//! from one global atomic to the next, and counts; the closed forms here must give the same counts.
//!
//! ```
//! use haversack_devices::GpuLimits;
//! use haversack_devices::units::Bytes;
//! use haversack_gpu::{Machine, Plan, Strategy, counts};
//! use haversack_kernels::reduce::Statistic;
//!
//! // Two units of up to four blocks; the minimum of 1000 values by one atomic a block of 128 threads.
//! let limits = GpuLimits { units: 2, threads: 1024, blocks: 4, shared: Bytes(48 << 10) };
//! let machine = Machine { limits, lanes: 32, adds_natively: false };
//! let plan = Plan::new(Strategy::Hybrid, 128);
//! let counted = counts::counts_of(&plan, &[Statistic::Minimum], 1000, &machine)?;
//! // 1000 values in tiles of 128 threads by four are two blocks.
//! assert_eq!(counted.kernels[0].blocks, 2);
//! # Ok::<(), haversack_kernels::KernelError>(())
//! ```

pub mod baseline;
pub mod counts;
pub mod machine;
pub mod plan;
pub mod profile;

pub use machine::Machine;
pub use plan::{Grid, Placement, Plan, Strategy, Update};
