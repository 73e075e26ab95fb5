//! The kernel-managed memory of a phone: page reclaim, ZRAM, swap and the low-memory killer.
//!
//! [`PhoneMemory`] is a pure resource model: the caller passes in the time and the storage, a [`Flash`], and gets back
//! a [`Stall`]. Memory moves in extents of 4 KiB to 1 MiB; results converge as extents shrink. Its parts:
//!
//! - **Actors.** Each actor that touches memory has its own clock and cores. Stalls of several actors overlap, and they
//!   share only free memory, the lists and the flash. The threads of an actor divide its pages among themselves.
//! - **Touch.** The first touch of anonymous memory allocates and zeroes; that of a file reads flash. An evicted extent
//!   refaults: by decompression from ZRAM (running), or by a synchronous read from flash (uninterruptible sleep) for
//!   each read-ahead window.
//! - **ZRAM.** Pages are stored by their kind ([`PageMix`]): same-filled ones take no space, incompressible ones take
//!   all of theirs, and the others are compressed.
//! - **Reclaim.** Below `low` kswapd wakes and works concurrently with the actors until `high`, at the speed of its
//!   [`Costs`]. Below `min` allocating actors reclaim too. Lists are scanned as in Linux 5.10 (`mm/vmscan.c`,
//!   `mm/workingset.c`): two lists with second chance, swappiness weighed with the cost of refaults, and shadow
//!   entries; or generations (`lru_gen`, Linux 6.1).
//! - **Swap.** ZRAM while it has room, with its compressed bytes in DRAM; then the partition, where a page's memory is
//!   free once it is written. When the write queue is full, reclaimers wait.
//! - **Pressure.** Stalls make PSI: reclaim, and waits for pages of the working set, which includes everything that
//!   comes through the swap cache. PSI wakes [`lmkd`], which kills processes by their `oom_score_adj` and computes free
//!   memory and watermarks as its source does. If nothing can be reclaimed, the kernel kills a process itself; if none
//!   may be killed, the touch is an error.
//!
//! `docs/phone-memory.md` lists the rules with their sources.
//!
//! Left out: waits for locks, lists and watermarks of single zones, control groups, huge pages, pages shared by several
//! mappings, the periodic flusher of dirty files, and the time that a killed process takes to die.

mod actors;
mod extents;
mod fault;
mod generations;
pub mod lmkd;
mod pressure;
mod processes;
mod reclaim;
mod report;
mod settings;
mod stalls;
mod swap;
mod time;
mod workingset;

pub use actors::{ActorId, Part, Touched};
pub use pressure::Spread;
pub use report::{Counters, Kill, KillReason, PhoneError, ProcessUsage, Psi, PsiLine, Stall, Usage};
pub use settings::{Access, Backing, Costs, Flash, Lists, PAGE, PageMix, Settings, Transfer, Watermarks};
pub use stalls::Waits;

use std::collections::VecDeque;

use actors::{Activity, Actors, Doing, Touch};
use extents::{DIRTY, Extent, Extents, LISTS, NONE, State, WORKINGSET};
use fault::Fault;
use generations::Generations;
use haversack_devices::{Bytes, Nanos};
use lmkd::{Daemon, Lmkd};
use pressure::{Events, Pressure};
use processes::{Process, Region};
use reclaim::{CLUSTER, Look, PATIENCE, Reclaimer, Step, Write, Writeback};
use swap::{Partition, Swap, Zram};
use time::Kswapd;
use workingset::Workingset;

use crate::slots::Slots;

/// Identifies a process of a [`PhoneMemory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    index: u32,
    life: u32,
}

/// Identifies a region of a process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId {
    index: u32,
    life: u32,
}

/// The memory of a phone, its processes, and the kernel's state.
///
/// Time advances in [`run`](Self::run) and [`pass`](Self::pass), in which all busy actors continue, and in
/// [`touch`](Self::touch), which waits for the touched memory. A call for a time in the past counts as made now.
#[derive(Clone, Debug)]
pub struct PhoneMemory {
    settings: Settings,
    now: Nanos,
    actors: Actors,
    /// Bytes of free pages.
    free: u64,
    /// Pages in DRAM: anonymous, file, pinned.
    resident: [u64; 3],
    extents: Extents,
    processes: Slots<Process>,
    regions: Slots<Region>,
    /// Counts touches of whole regions and changes of score, to order them.
    stamp: u64,
    swap: Swap,
    writeback: Writeback,
    workingset: Workingset,
    picker: reclaim::Picker,
    generations: Generations,
    kswapd: Kswapd,
    pressure: Pressure,
    daemon: Option<Daemon>,
    kills: VecDeque<Kill>,
    counters: Counters,
}

impl PhoneMemory {
    /// An idle phone with all memory free; `faulting` are the costs on the core of the thread of
    /// [`touch`](Self::touch), `kswapd` those on kswapd's core. Further actors are [added](Self::add_actor).
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(settings: Settings, faulting: Costs, kswapd: Costs) -> Result<Self, PhoneError> {
        settings.check()?;
        if let Some(lmkd) = &settings.lmkd {
            lmkd.check()?;
        }
        Ok(Self {
            now: Nanos::ZERO,
            actors: Actors::new(faulting),
            free: settings.ram.0,
            resident: [0; 3],
            extents: Extents::new(),
            processes: Slots::default(),
            regions: Slots::default(),
            stamp: 0,
            swap: Swap {
                zram: Zram { capacity: settings.zram.0 / PAGE, stored: 0, dram: 0 },
                partition: Partition::new(settings.swap.0 / PAGE, settings.extent_pages()),
            },
            writeback: Writeback::default(),
            workingset: Workingset::default(),
            picker: reclaim::Picker::default(),
            generations: Generations::new(settings.lists),
            kswapd: Kswapd::new(kswapd),
            pressure: Pressure::new(settings.lmkd.as_ref()),
            daemon: settings.lmkd.clone().map(Daemon::new),
            kills: VecDeque::new(),
            counters: Counters::default(),
            settings,
        })
    }

    /// The settings that the phone was created with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Advances the time to `until`: actors continue, kswapd works and writes end. A time in the past changes nothing.
    pub fn pass(&mut self, until: Nanos, flash: &mut dyn Flash) {
        self.advance(until, flash);
    }

    /// The next process that lmkd or the kernel killed up to `now`, the earliest first. Its regions are already gone
    /// when the caller learns of it.
    pub fn poll_lmkd(&mut self, now: Nanos, flash: &mut dyn Flash) -> Option<Kill> {
        self.advance(now, flash);
        self.kills.pop_front()
    }

    /// The time up to which everything has been simulated.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Pressure-stall information at `now`.
    pub fn psi(&mut self, now: Nanos) -> Psi {
        self.pressure.psi(now.max(self.now))
    }

    /// Free memory (`MemFree`).
    pub fn free(&self) -> Bytes {
        Bytes(self.free)
    }

    /// Memory that could be used without swapping (`MemAvailable`): free memory less the reserve of the high watermark,
    /// and the file pages less half of them or the low watermark (`si_mem_available`).
    pub fn available(&self) -> Bytes {
        let Watermarks { low, high, .. } = self.settings.watermarks;
        let file = self.extents.kind_pages(FILE) * PAGE;
        let kept = (file / 2).min(low.0);
        Bytes((self.free + file - kept).saturating_sub(high.0))
    }

    /// The distribution of all memory.
    pub fn usage(&self) -> Usage {
        let pages = |pages: u64| Bytes(pages * PAGE);
        Usage {
            free: Bytes(self.free),
            anonymous: pages(self.resident[ANON]),
            file: pages(self.resident[FILE]),
            inactive_file: pages(self.inactive(FILE)),
            pinned: pages(self.resident[PINNED]),
            zram: Bytes(self.swap.zram.dram),
            zram_stored: pages(self.swap.zram.stored),
            swap: pages(self.swap.partition.used),
            writeback: pages(self.writeback.pages),
        }
    }

    /// Events so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Inactive pages of a kind.
    fn inactive(&self, kind: usize) -> u64 {
        match self.settings.lists {
            Lists::Two => self.extents.pages(kind * LISTS),
            Lists::Generations { .. } => self.extents.kind_pages(kind) - self.generations.active(kind, &self.extents),
        }
    }
}

/// Kinds of pages: indices into lists, counters and costs.
const ANON: usize = 0;
const FILE: usize = 1;
const PINNED: usize = 2;
