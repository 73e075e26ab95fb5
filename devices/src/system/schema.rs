//! What an operating system's calibration holds: each struct is a table, each field a key.

use crate::calibration::{Dimension, Quantity, Unit, section, words};
use crate::{Bytes, BytesPerSecond, Constant, Count, Factor, Fraction, Nanos};

words! {
    /// How the kernel orders pages for reclaim.
    pub enum PageLists {
        /// An active and an inactive list.
        Two,
        /// Generations (multi-generation LRU).
        Generations,
    }

    /// Which process of equal `oom_score_adj` dies.
    pub enum Victim {
        /// The one that was used least recently.
        LeastRecent,
        /// The one with most memory (`kill_heaviest_task`).
        Heaviest,
    }

    /// Where Android's `extra_free_kbytes` goes.
    pub enum ExtraFree {
        /// On top of the watermarks: a kernel that knows the setting.
        OnTop,
        /// Into the watermarks' distance, as `watermark_scale_factor`: Android's generic kernels, which do not.
        Scale,
    }

    /// Which lists are scanned while file pages abound that nobody misses.
    pub enum Balance {
        /// Those of files alone (`cache_trim_mode`).
        FilesFirst,
        /// All, by swappiness: vendors' `balance_anon_file_reclaim`.
        Both,
    }

    /// What ZRAM compresses with (`comp_algorithm`).
    pub enum Compressor {
        /// LZ4: fast.
        Lz4,
        /// Zstandard: slower, and pages become smaller.
        Zstd,
    }
}

section! {
    /// `[reclaim]`: the kernel's reserves, and what it takes back first.
    pub struct ReclaimConstants {
        /// Memory that firmware, the modem and other processors keep from the kernel, on a device that does not say.
        pub carve_outs: Constant<Bytes>,
        /// What the kernel keeps for each page of memory (`struct page`).
        pub page_struct: Constant<Bytes>,
        /// The kernel's image and what it reserves at boot beside.
        pub image: Constant<Bytes>,
        /// `min_free_kbytes` is not below it.
        pub min_free_lowest: Constant<Bytes>,
        /// `min_free_kbytes` is not above it.
        pub min_free_highest: Constant<Bytes>,
        /// Distance of the watermarks, in ten-thousandths of managed memory.
        pub watermark_scale_factor: Constant<Count>,
        /// Whole screens that are kept free beside them.
        pub frame_buffers: Constant<Count>,
        /// Bytes of a pixel of them.
        pub pixel: Constant<Bytes>,
        /// Pixels across the display of a device that does not say.
        pub display_width: Constant<Count>,
        /// Pixels down it.
        pub display_height: Constant<Count>,
        /// `on-top` or `scale`: where they go.
        pub extra_free: ExtraFree,
        /// Each zone keeps one page of so many of the zones above it from those who may use these
        /// (`lowmem_reserve_ratio`).
        pub lowmem_reserve_ratio: Constant<Count>,
        /// The managed memory of the zone that devices of 32 bits reach.
        pub low_zone: Constant<Bytes>,
        /// Memory set aside for the drivers' contiguous buffers (CMA), lent to pages that can move meanwhile.
        pub contiguous: Constant<Bytes>,
        /// How much anonymous pages are preferred over those of files: 0 to 200, 100 is even.
        pub swappiness: Constant<Count>,
        /// `files-first` or `both`.
        pub balance: Balance,
        /// `two` or `generations`.
        pub lists: PageLists,
        /// How many generations there are at most.
        pub generations: Option<Constant<Count>>,
        /// Pages younger than this are not taken, with generations.
        pub min_ttl: Option<Constant<Nanos>>,
        /// A fault brings in 2 to this power pages from swap.
        pub page_cluster: Constant<Count>,
        /// Pages are simulated in pieces of this size: a choice of the simulation, from 4 KiB to 1 MiB.
        pub extent: Constant<Bytes>,
    }
}

section! {
    /// `[zstd]`: what is otherwise where ZRAM compresses with Zstandard in place of LZ4.
    pub struct ZstdConstants {
        /// The time of compressing a page, in that of LZ4.
        pub compress: Constant<Factor>,
        /// The time of decompressing one, likewise.
        pub decompress: Constant<Factor>,
        /// The share of apps' pages that it cannot shrink to what ZRAM keeps compressed.
        pub incompressible: Constant<Fraction>,
        /// Bytes of the others for each byte that they compress to.
        pub ratio: Constant<Factor>,
        /// The share of the trainer's pages that it cannot shrink.
        pub trainer_incompressible: Constant<Fraction>,
        /// Bytes of the others of the trainer's for each byte that they compress to.
        pub trainer_ratio: Constant<Factor>,
    }
}

section! {
    /// `[zram]`: swap in compressed memory; its numbers are those of LZ4.
    pub struct ZramConstants {
        /// The compressor: `lz4`, or `zstd` with the numbers of `[zstd]`.
        pub algorithm: Compressor,
        /// Size before compression, as a share of memory; `size` goes before.
        pub share: Option<Constant<Fraction>>,
        /// The most that a share may be.
        pub cap: Option<Constant<Bytes>>,
        /// Size before compression.
        pub size: Option<Constant<Bytes>>,
        /// The share of the pages of apps that one word fills.
        pub same_filled: Constant<Fraction>,
        /// The share of them that the compressor cannot shrink to what ZRAM keeps compressed.
        pub incompressible: Constant<Fraction>,
        /// Bytes of the others for each byte that they compress to.
        pub ratio: Constant<Factor>,
    }
}

section! {
    /// `[swap]`: swap on flash.
    pub struct SwapConstants {
        /// Size of the partition.
        pub partition: Constant<Bytes>,
    }
}

section! {
    /// `[costs]`: the kernel's work on a page of 4 KiB, in millionths of a CoreMark iteration, and a wait.
    pub struct CostConstants {
        /// A fault that finds its page in memory or gets a new one, and maps it.
        pub fault: Constant<Factor>,
        /// Clearing a new page.
        pub zero: Constant<Factor>,
        /// Reading one entry in the walk of page tables that ages generations.
        pub walk: Constant<Factor>,
        /// Looking at a page of a list: taking it off, asking whether it was used, putting it back.
        pub scan: Constant<Factor>,
        /// Taking a page out of its process's tables, and freeing it.
        pub unmap: Constant<Factor>,
        /// Compressing a page into ZRAM.
        pub compress: Constant<Factor>,
        /// Bringing a page back from ZRAM.
        pub decompress: Constant<Factor>,
        /// The same of a page that is kept as it is.
        pub copy: Constant<Factor>,
        /// Handing a page to be written to the block layer, beside its command's work.
        pub submit: Constant<Factor>,
        /// Work of the file system, the block layer, the driver and the interrupt for a command.
        pub command: Constant<Factor>,
        /// Bringing a page into or out of the page cache.
        pub page: Constant<Factor>,
        /// From one core's command to another's: the lock of the queue goes from core to core.
        pub handover: Constant<Nanos>,
        /// What a task that reclaims for itself takes of what kswapd takes for the same pages.
        pub direct: Constant<Factor>,
        /// From the end of what a thread waits for until it runs.
        pub wake_up: Constant<Nanos>,
    }
}

section! {
    /// `[clocks]`: what clocks come to while memory is short, as shares of what the fastest core does at its highest.
    pub struct ClockConstants {
        /// Of kswapd, and of a task that sleeps again and again, for a page or for a command.
        pub waiting: Constant<Fraction>,
        /// The part of the time in which a core has something to do that does not wait for memory.
        pub others: Constant<Fraction>,
    }
}

section! {
    /// `[files]`: how files are read and written through the page cache.
    pub struct FileConstants {
        /// A command of a sequential read.
        pub read_ahead: Constant<Bytes>,
        /// Such commands under way: the one that the reader waits for and those ahead of it.
        pub read_ahead_windows: Constant<Count>,
        /// A command of the write-back of dirty pages.
        pub write_back: Constant<Bytes>,
    }
}

section! {
    /// `[foreground]`: files that the app in front reads, beside what it faults in.
    pub struct ForegroundConstants {
        /// How much in the mean.
        pub read_rate: Constant<BytesPerSecond>,
        /// Bytes of a command.
        pub read_command: Constant<Bytes>,
        /// Commands that may wait at once.
        pub read_depth: Constant<Count>,
    }
}

section! {
    /// `[background]`: what one app in the background writes to its cache.
    pub struct BackgroundConstants {
        /// How much in the mean.
        pub rate: Constant<BytesPerSecond>,
        /// Bytes of a command.
        pub command: Constant<Bytes>,
        /// Commands of an app that may wait at once.
        pub depth: Constant<Count>,
    }
}

section! {
    /// `[killer]`: the low-memory killer (lmkd); its properties carry its own names.
    pub struct KillerConstants {
        /// Stall of some tasks in the window of pressure that wakes it.
        pub psi_partial_stall: Constant<Nanos>,
        /// The same on a device of little memory.
        pub psi_partial_stall_low_ram: Constant<Nanos>,
        /// Stall of all tasks in the window that wakes it.
        pub psi_complete_stall: Constant<Nanos>,
        /// The window of both.
        pub psi_window: Constant<Nanos>,
        /// It looks again after so long where pressure is high.
        pub poll_short: Constant<Nanos>,
        /// It looks again after so long where it is not.
        pub poll_long: Constant<Nanos>,
        /// Swap counts as low while less than this share of it is free.
        pub swap_free_low: Constant<Fraction>,
        /// Free swap counts as no more than this many times the memory that is easily had; zero: as it is.
        pub swap_compression_ratio: Constant<Factor>,
        /// It thrashes where more than this many times the files' pages came back in an interval.
        pub thrashing_limit: Constant<Factor>,
        /// The same on a device of little memory.
        pub thrashing_limit_low_ram: Constant<Factor>,
        /// The limit falls by this share with each kill for thrashing.
        pub thrashing_limit_decay: Constant<Fraction>,
        /// The same on a device of little memory.
        pub thrashing_limit_decay_low_ram: Constant<Fraction>,
        /// Times the limit: beyond it perceptible apps may die.
        pub thrashing_limit_critical: Constant<Factor>,
        /// The interval over which returns are counted; what is older counts half for each interval gone by.
        pub thrashing_reset: Constant<Nanos>,
        /// Kills where memory is low and more of what can be swapped is swapped; all of it: never.
        pub swap_util_max: Constant<Fraction>,
        /// Kills where files hold less after thrashing; zero: never.
        pub filecache_min: Constant<Bytes>,
        /// Share of time in which all tasks stall, beyond which anybody may die.
        pub stall_limit_critical: Constant<Fraction>,
        /// It waits so long for a victim to be gone.
        pub kill_timeout: Constant<Nanos>,
        /// Lowest score that may die at low pressure; above all scores: nobody.
        pub low: Constant<OomScore>,
        /// The same at medium pressure.
        pub medium: Constant<OomScore>,
        /// The same at critical pressure.
        pub critical: Constant<OomScore>,
        /// `least-recent` or `heaviest`.
        pub victim: Victim,
        /// Apps below this score die only where memory is all but gone or thrashing is critical.
        pub perceptible: Constant<OomScore>,
        /// A device of at most this much memory is one of little memory.
        pub low_ram: Constant<Bytes>,
    }
}

section! {
    /// `[scores]`: `oom_score_adj` by what an app is to its user.
    pub struct ScoreConstants {
        /// A native process, which nobody may kill.
        pub native: Constant<OomScore>,
        /// The system server.
        pub system: Constant<OomScore>,
        /// A persistent process, such as telephony.
        pub persistent: Constant<OomScore>,
        /// What a persistent process depends on.
        pub persistent_service: Constant<OomScore>,
        /// The app in front.
        pub foreground: Constant<OomScore>,
        /// A foreground service whose app was in front just now.
        pub recent_foreground: Constant<OomScore>,
        /// An app that can be seen.
        pub visible: Constant<OomScore>,
        /// An app whose end would be noticed, such as a foreground service.
        pub perceptible: Constant<OomScore>,
        /// The same, less so.
        pub perceptible_medium: Constant<OomScore>,
        /// The same, least so.
        pub perceptible_low: Constant<OomScore>,
        /// An app that is being backed up.
        pub backup: Constant<OomScore>,
        /// A heavy-weight app in the background.
        pub heavy_weight: Constant<OomScore>,
        /// A service.
        pub service: Constant<OomScore>,
        /// The home screen.
        pub home: Constant<OomScore>,
        /// The app that was in front before.
        pub previous: Constant<OomScore>,
        /// An old service.
        pub service_old: Constant<OomScore>,
        /// A cached app, the most recent.
        pub cached: Constant<OomScore>,
        /// Cached apps from here on die first.
        pub cached_first_to_die: Constant<OomScore>,
        /// A cached app, the oldest.
        pub cached_last: Constant<OomScore>,
        /// Not known.
        pub unknown: Constant<OomScore>,
    }
}

section! {
    /// `[resident]`: what the system itself holds on an idle phone.
    pub struct ResidentConstants {
        /// The memory of the phones that these are of; on smaller ones all of it is less in proportion.
        pub of: Constant<Bytes>,
        /// The kernel's own and its drivers': never reclaimed.
        pub kernel: Constant<Bytes>,
        /// Anonymous memory of the system's processes.
        pub anonymous: Constant<Bytes>,
        /// Files that the system's processes have mapped.
        pub file: Constant<Bytes>,
        /// The share of both that is used all the time.
        pub hot: Constant<Fraction>,
        /// Files that were read and that nobody uses.
        pub cache: Constant<Bytes>,
        /// Apps that were used before and wait, frozen: all of them together.
        pub cached: Constant<Bytes>,
        /// How many these are.
        pub cached_apps: Constant<Count>,
        /// The least and the most that kernel and processes hold together on idle phones, of which `kernel`, `anonymous` and
        /// `file` are the middle.
        pub least: Constant<Bytes>,
        /// See `least`.
        pub most: Constant<Bytes>,
    }
}

section! {
    /// `[trainer]`: the process that trains, as the system sees it.
    pub struct TrainerConstants {
        /// From a kill until the first instruction of the process that takes its place.
        pub start: Constant<Nanos>,
        /// The share of its tensors' pages that one word fills.
        pub same_filled: Constant<Fraction>,
        /// The share of them that the compressor cannot shrink to what ZRAM keeps compressed.
        pub incompressible: Constant<Fraction>,
        /// Bytes of the others for each byte that they compress to.
        pub ratio: Constant<Factor>,
    }
}

section! {
    /// `[services]`: what asking the system costs a service in the background.
    pub struct ServiceConstants {
        /// Work of reading `/proc/meminfo` once, in millionths of a CoreMark iteration.
        pub meminfo_read: Constant<Factor>,
        /// One call over binder and its answer, both ends together.
        pub binder_call: Constant<Nanos>,
    }
}

section! {
    /// All that an operating system's calibration holds; the top of the file.
    pub struct SystemConstants {
        /// Another system of which this one overrides a few numbers: an id, or a file beside this one.
        pub base: Option<String>,
        /// The system.
        pub name: String,
        /// Choices and doubts that a reader should know.
        pub remark: Option<String>,
        /// Reclaim.
        pub reclaim: ReclaimConstants,
        /// ZRAM; none where it is not given.
        pub zram: Option<ZramConstants>,
        /// ZRAM with Zstandard; needed where that is its algorithm.
        pub zstd: Option<ZstdConstants>,
        /// Swap on flash; none where it is not given.
        pub swap: Option<SwapConstants>,
        /// Work on a page.
        pub costs: CostConstants,
        /// Clocks.
        pub clocks: ClockConstants,
        /// Files.
        pub files: FileConstants,
        /// The app in front; it reads nothing beside its faults where this is not given.
        pub foreground: Option<ForegroundConstants>,
        /// Apps in the background.
        pub background: BackgroundConstants,
        /// The low-memory killer.
        pub killer: KillerConstants,
        /// Scores.
        pub scores: ScoreConstants,
        /// The system's own memory.
        pub resident: ResidentConstants,
        /// The process that trains.
        pub trainer: TrainerConstants,
        /// Services in the background.
        pub services: ServiceConstants,
    }
}

/// How readily a process is killed under memory pressure: the higher, the sooner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OomScore(pub i32);

impl OomScore {
    /// A process that is never killed.
    pub(crate) const LOWEST: Self = Self(-1000);
    /// Above every process.
    pub(crate) const HIGHEST: Self = Self(1001);
}

/// In a calibration its unit is `count`.
impl Quantity for OomScore {
    const DIMENSION: Dimension = Dimension::Count;

    fn from_base(value: f64) -> Self {
        Self(value as i32)
    }

    fn base(self) -> f64 {
        f64::from(self.0)
    }

    fn convert(value: f64, _: &Unit) -> Result<Self, String> {
        let (lowest, highest) = (Self::LOWEST.0, Self::HIGHEST.0);
        if value.fract() == 0.0 && (f64::from(lowest)..=f64::from(highest)).contains(&value) {
            Ok(Self::from_base(value))
        } else {
            Err(format!("a whole number from {lowest} to {highest}"))
        }
    }
}
