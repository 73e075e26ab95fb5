//! Reports of the phone's memory: stalls, counters, and errors.

use std::ops::AddAssign;

use haversack_devices::{Bytes, Nanos};
use strum::IntoStaticStr;
use thiserror::Error;

use super::{ProcessId, RegionId};

/// The delay of a thread by a touch, beyond the touch itself, divided as in FedHybrid's figure 2b.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stall {
    /// Running on the core, in the kernel: faults, direct reclaim, (de)compression.
    pub running: Nanos,
    /// In uninterruptible sleep: synchronous reads from flash, congestion.
    pub sleeping: Nanos,
    /// Awake, waiting for the core.
    pub runnable: Nanos,
}

impl Stall {
    /// The thread's total delay.
    pub fn total(self) -> Nanos {
        self.running + self.sleeping + self.runnable
    }
}

impl AddAssign for Stall {
    fn add_assign(&mut self, other: Self) {
        self.running += other.running;
        self.sleeping += other.sleeping;
        self.runnable += other.runnable;
    }
}

/// Declares the struct of all counters and the difference of two, from one list.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// Events since the beginning, in 4 KiB pages unless noted otherwise, by their names in `/proc/vmstat`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names are the kernel's")]
        #[must_use]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)+
        }

        impl Counters {
            /// The events since the state `earlier`.
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($name: self.$name - earlier.$name,)+ }
            }

            /// Each counter with its name, in the order above.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)+].into_iter()
            }
        }
    };
}

counters! {
    pgfault,
    /// Faults that read flash or ZRAM; pages brought by read-ahead count once, with the fault that read them.
    pgmajfault,
    /// From ZRAM and from the partition.
    pswpin,
    /// To ZRAM and to the partition.
    pswpout,
    /// The part of `pswpin` from ZRAM. Not a name of the kernel's.
    zram_in,
    /// The part of `pswpout` to ZRAM. Not a name of the kernel's.
    zram_out,
    pgscan_kswapd,
    pgscan_direct,
    pgsteal_kswapd,
    pgsteal_direct,
    pgsteal_anon,
    pgsteal_file,
    pgrefill,
    pgactivate,
    pgdeactivate,
    workingset_refault_anon,
    workingset_refault_file,
    workingset_activate_anon,
    workingset_activate_file,
    workingset_restore_anon,
    workingset_restore_file,
    /// Direct reclaims, each of up to 32 pages.
    allocstall,
    /// Wake-ups of kswapd.
    pageoutrun,
    /// File pages read from flash: bytes over 4096, whereas the kernel's `pgpgin` counts KiB.
    file_in,
    /// Dirty file pages written back by reclaim.
    file_out,
    /// Processes killed by the kernel's own killer.
    oom_kill,
    /// Processes killed by lmkd. Not a name of the kernel's.
    lmkd_kill,
}

/// Pressure-stall information: the percentage of time for which a lack of memory kept threads from working.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Psi {
    /// At least one thread stalled.
    pub some: PsiLine,
    /// No thread worked.
    pub full: PsiLine,
}

/// A line of `/proc/pressure/memory`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PsiLine {
    /// Percent, averaged over 10, 60 and 300 s.
    pub average: [f64; 3],
    /// All stalls so far.
    pub total: Nanos,
}

/// The distribution of all memory. `free + anonymous + file + zram + pinned` is the managed memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Free pages (`MemFree`).
    pub free: Bytes,
    /// Anonymous pages in DRAM, those being written out included.
    pub anonymous: Bytes,
    /// File pages in DRAM, those being written back included.
    pub file: Bytes,
    /// The part of `file` on the inactive list, or in the older half of the generations.
    pub inactive_file: Bytes,
    /// Pinned pages touched so far.
    pub pinned: Bytes,
    /// DRAM used by ZRAM.
    pub zram: Bytes,
    /// Contents of ZRAM, before compression.
    pub zram_stored: Bytes,
    /// Contents of the swap partition.
    pub swap: Bytes,
    /// The part of `anonymous` and `file` being written to flash.
    pub writeback: Bytes,
}

/// One process's share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Mapped pages in DRAM (RSS).
    pub resident: Bytes,
    /// Anonymous pages that are not mapped: in ZRAM, on the partition or being written (`VmSwap`).
    pub swapped: Bytes,
}

/// A process that the low-memory killer, or the kernel, has killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kill {
    /// The time.
    pub at: Nanos,
    /// The process; its regions are gone.
    pub process: ProcessId,
    /// Its name.
    pub name: String,
    /// Its `oom_score_adj`.
    pub adj: i32,
    /// The reason.
    pub reason: KillReason,
    /// The lowest `oom_score_adj` that the reason allowed to kill.
    pub min_adj: i32,
    /// The DRAM that it freed, its part of ZRAM included.
    pub freed: Bytes,
    /// Free memory before.
    pub free_before: Bytes,
    /// The thrashing measured by lmkd, in percent of the file cache.
    pub thrashing: u64,
}

/// Why a process was killed: in lmkd's decision order, then the kernel's own killer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum KillReason {
    /// (1) Free memory below `min` right after a kill.
    PressureAfterKill,
    /// (2) A PSI `full` event.
    NotResponding,
    /// (3) Swap low and thrashing.
    LowSwapAndThrashing,
    /// (4) Free memory below `low` and swap low.
    LowMemoryAndSwap,
    /// (5) Free memory below `low` and too much of the swappable memory swapped.
    LowMemoryAndSwapUtilisation,
    /// (6) Free memory below `low` and thrashing.
    LowMemoryAndThrashing,
    /// (7) Direct reclaim and thrashing.
    DirectReclaimAndThrashing,
    /// (8) A small file cache after thrashing.
    LowFileCacheAfterThrashing,
    /// The kernel: nothing was left to reclaim, or the youngest working set did not fit (`min_ttl`).
    OutOfMemory,
}

impl KillReason {
    /// A description of the reason.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Errors of the phone's memory.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PhoneError {
    /// An invalid setting.
    #[error("{field}: expected {expected}")]
    Setting {
        /// The field of `Settings`.
        field: &'static str,
        /// The valid values.
        expected: &'static str,
    },
    /// A contradictory page mix.
    #[error("anonymous pages: {0}")]
    Pages(&'static str),
    /// A score outside the kernel's range.
    #[error("an oom_score_adj of {0}: expected -1000 to 1000")]
    Adj(i32),
    /// The process never existed, or has ended.
    #[error("{0:?} is not running")]
    UnknownProcess(ProcessId),
    /// The region never existed, was released, or its process has ended.
    #[error("{0:?} is not mapped")]
    UnknownRegion(RegionId),
    /// A touch beyond the region's end.
    #[error("{region:?} has {size}, touched up to {end}")]
    BeyondEnd {
        /// The region.
        region: RegionId,
        /// Its size.
        size: Bytes,
        /// The end of the touch.
        end: Bytes,
    },
    /// Too many regions, processes or extents for a simulated phone.
    #[error("too many {0}")]
    TooMany(&'static str),
    /// The touching process was killed after this stall; [`super::PhoneMemory::poll_lmkd`] returns the reason.
    #[error("the process was ended during the touch, after {}", .0.total())]
    Killed(Stall),
    /// Nothing can be reclaimed and no process may be killed.
    #[error("out of memory: {wanted} wanted, {free} free, nothing to reclaim and no process to end")]
    OutOfMemory {
        /// The bytes of the extent to allocate.
        wanted: Bytes,
        /// Free memory, reserves included.
        free: Bytes,
        /// The stall until then.
        stall: Stall,
    },
}
