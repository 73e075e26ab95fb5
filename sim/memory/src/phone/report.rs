//! What the phone's memory reports: stalls, counters, and why something could not be done.

use std::ops::AddAssign;

use haversack_devices::{Bytes, Nanos};
use strum::IntoStaticStr;
use thiserror::Error;

use super::{ProcessId, RegionId};

/// What a touch took of the thread, beyond the touch itself, as FedHybrid's figure 2b divides it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stall {
    /// On the core, in the kernel: faults, direct reclaim, (de)compression.
    pub running: Nanos,
    /// In uninterruptible sleep: synchronous reads from flash, congestion.
    pub sleeping: Nanos,
    /// Woken, waiting for the core.
    pub runnable: Nanos,
}

impl Stall {
    /// The thread's whole delay.
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

/// The struct of all counters and the difference of two, from one list.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// Events since the beginning, in 4 KiB pages unless said otherwise, by their names in `/proc/vmstat`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names are the kernel's")]
        #[must_use]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)+
        }

        impl Counters {
            /// What has happened since they were `earlier`.
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($name: self.$name - earlier.$name,)+ }
            }

            /// Each with its name, in the order above.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)+].into_iter()
            }
        }
    };
}

counters! {
    pgfault,
    /// Faults that read flash or ZRAM; pages that read-ahead brought count once, with the fault that read them.
    pgmajfault,
    /// From ZRAM and from the partition.
    pswpin,
    /// To ZRAM and to the partition.
    pswpout,
    /// Of `pswpin`, from ZRAM. Not a name of the kernel's.
    zram_in,
    /// Of `pswpout`, to ZRAM. Not a name of the kernel's.
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
    /// File pages read from flash. Bytes over 4096, where the kernel's `pgpgin` counts KiB.
    file_in,
    /// Dirty file pages written back by reclaim.
    file_out,
    /// Processes that the kernel's own killer ended.
    oom_kill,
    /// Processes that lmkd ended. Not a name of the kernel's.
    lmkd_kill,
}

/// Pressure-stall information: the share of time, in percent, that memory kept threads from working.
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

/// Where all memory is. `free + anonymous + file + zram + pinned` is what the kernel manages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Free pages (`MemFree`).
    pub free: Bytes,
    /// Anonymous pages in DRAM, those being written out included.
    pub anonymous: Bytes,
    /// File pages in DRAM, those being written back included.
    pub file: Bytes,
    /// Of `file`, on the inactive list; the older half of the generations.
    pub inactive_file: Bytes,
    /// Pinned pages touched so far.
    pub pinned: Bytes,
    /// What ZRAM itself takes of DRAM.
    pub zram: Bytes,
    /// What is in ZRAM, before compression.
    pub zram_stored: Bytes,
    /// What the swap partition holds.
    pub swap: Bytes,
    /// Of `anonymous` and `file`, on their way to flash.
    pub writeback: Bytes,
}

/// One process's share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Mapped pages in DRAM (RSS).
    pub resident: Bytes,
    /// Anonymous pages that are not mapped: in ZRAM, on the partition or on their way (`VmSwap`).
    pub swapped: Bytes,
}

/// A process that the low-memory killer, or the kernel, ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kill {
    /// When.
    pub at: Nanos,
    /// Which; its regions are gone with it.
    pub process: ProcessId,
    /// Its name.
    pub name: String,
    /// Its `oom_score_adj`.
    pub adj: i32,
    /// Why.
    pub reason: KillReason,
    /// The least `oom_score_adj` that the reason allowed to be ended.
    pub min_adj: i32,
    /// What it gave back of DRAM, its share of ZRAM included.
    pub freed: Bytes,
    /// Free memory before.
    pub free_before: Bytes,
    /// The thrashing that lmkd saw, in percent of the file cache.
    pub thrashing: u64,
}

/// Why a process was ended: lmkd's decision order, then the kernel's own killer.
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
    /// (5) Free memory below `low` and too much of what may be swapped is.
    LowMemoryAndSwapUtilisation,
    /// (6) Free memory below `low` and thrashing.
    LowMemoryAndThrashing,
    /// (7) Direct reclaim and thrashing.
    DirectReclaimAndThrashing,
    /// (8) The file cache small after thrashing.
    LowFileCacheAfterThrashing,
    /// The kernel: nothing was left to reclaim, or the youngest working set did not fit (`min_ttl`).
    OutOfMemory,
}

impl KillReason {
    /// Its name, in words.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Why the phone's memory refuses something.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PhoneError {
    /// A setting that no phone has.
    #[error("{field}: expected {expected}")]
    Setting {
        /// The field of `Settings`.
        field: &'static str,
        /// What it may be.
        expected: &'static str,
    },
    /// Pages that contradict themselves, and how.
    #[error("anonymous pages: {0}")]
    Pages(&'static str),
    /// A score outside the kernel's range.
    #[error("an oom_score_adj of {0}: expected -1000 to 1000")]
    Adj(i32),
    /// The process is none, or it has ended.
    #[error("{0:?} is not running")]
    UnknownProcess(ProcessId),
    /// The region is none, or it was released, or its process has ended.
    #[error("{0:?} is not mapped")]
    UnknownRegion(RegionId),
    /// A touch beyond the end.
    #[error("{region:?} has {size}, touched up to {end}")]
    BeyondEnd {
        /// Which.
        region: RegionId,
        /// Its size.
        size: Bytes,
        /// Where the touch ends.
        end: Bytes,
    },
    /// More of these, which are regions, processes or extents, than a simulated phone can hold.
    #[error("too many {0}")]
    TooMany(&'static str),
    /// The process that touched was ended after this stall; [`super::PhoneMemory::poll_lmkd`] says why.
    #[error("the process was ended during the touch, after {}", .0.total())]
    Killed(Stall),
    /// Nothing can be reclaimed and no process may be ended.
    #[error("out of memory: {wanted} wanted, {free} free, nothing to reclaim and no process to end")]
    OutOfMemory {
        /// The bytes of the extent wanted.
        wanted: Bytes,
        /// Free memory, reserves included.
        free: Bytes,
        /// The stall until then.
        stall: Stall,
    },
}
