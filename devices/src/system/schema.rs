//! The schema of an operating system's calibration: each struct is a table, each field a key.

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

    /// Which process of equal `oom_score_adj` is killed.
    pub enum Victim {
        /// The one that was used least recently.
        LeastRecent,
        /// The one with most memory (`kill_heaviest_task`).
        Heaviest,
    }

    /// The effect of Android's `extra_free_kbytes`.
    pub enum ExtraFree {
        /// Added to the watermarks, by a kernel that supports the setting.
        OnTop,
        /// Increases the watermarks' distance through `watermark_scale_factor`, as on Android's generic
        /// kernels, which lack the setting.
        Scale,
    }

    /// Which lists are scanned while there are many file pages that are not refaulted.
    pub enum Balance {
        /// Only those of files (`cache_trim_mode`).
        FilesFirst,
        /// All, by swappiness: vendors' `balance_anon_file_reclaim`.
        Both,
    }

    /// ZRAM's compressor (`comp_algorithm`).
    pub enum Compressor {
        /// LZ4: fast.
        Lz4,
        /// Zstandard: slower, with smaller pages.
        Zstd,
    }
}

section! {
    /// `[reclaim]`: the kernel's reserves, and the order of reclaim.
    pub struct ReclaimConstants {
        /// Default carve-outs, for devices without their own: memory that firmware, the modem and other
        /// processors keep from the kernel.
        pub carve_outs: Constant<Bytes>,
        /// The kernel's bookkeeping per page of memory (`struct page`).
        pub page_struct: Constant<Bytes>,
        /// The kernel's image and its other reservations at boot.
        pub image: Constant<Bytes>,
        /// Lower bound of `min_free_kbytes`.
        pub min_free_lowest: Constant<Bytes>,
        /// Upper bound of `min_free_kbytes`.
        pub min_free_highest: Constant<Bytes>,
        /// Distance of the watermarks, in ten-thousandths of managed memory.
        pub watermark_scale_factor: Constant<Count>,
        /// Additional memory that is kept free, in full screens of pixels.
        pub frame_buffers: Constant<Count>,
        /// Bytes per pixel of these screens.
        pub pixel: Constant<Bytes>,
        /// Default width of the display in pixels.
        pub display_width: Constant<Count>,
        /// Default height of the display in pixels.
        pub display_height: Constant<Count>,
        /// `on-top` or `scale`: the effect of these screens on the watermarks.
        pub extra_free: ExtraFree,
        /// Each zone reserves one page for every `lowmem_reserve_ratio` pages of the zones above it, from
        /// allocations that may use these.
        pub lowmem_reserve_ratio: Constant<Count>,
        /// Managed memory of the zone that 32-bit devices can address.
        pub low_zone: Constant<Bytes>,
        /// Memory set aside for the drivers' contiguous buffers (CMA), used for movable pages meanwhile.
        pub contiguous: Constant<Bytes>,
        /// How strongly reclaim prefers anonymous pages to those of files: 0 to 200, where 100 is even.
        pub swappiness: Constant<Count>,
        /// `files-first` or `both`.
        pub balance: Balance,
        /// `two` or `generations`.
        pub lists: PageLists,
        /// The largest number of generations.
        pub generations: Option<Constant<Count>>,
        /// With generations, pages younger than this are not reclaimed.
        pub min_ttl: Option<Constant<Nanos>>,
        /// A fault reads 2 to the power of this many pages from swap.
        pub page_cluster: Constant<Count>,
        /// Granularity of the simulation: pages are simulated in extents of this size, from 4 KiB to 1 MiB.
        pub extent: Constant<Bytes>,
    }
}

section! {
    /// `[zstd]`: constants that replace those of LZ4 if ZRAM compresses with Zstandard.
    pub struct ZstdConstants {
        /// The time to compress a page, as a multiple of LZ4's.
        pub compress: Constant<Factor>,
        /// The time to decompress a page, as a multiple of LZ4's.
        pub decompress: Constant<Factor>,
        /// The share of apps' pages that it cannot shrink enough for ZRAM to store them compressed.
        pub incompressible: Constant<Fraction>,
        /// Compression ratio of the other pages.
        pub ratio: Constant<Factor>,
        /// The share of the training process's pages that it cannot shrink enough.
        pub trainer_incompressible: Constant<Fraction>,
        /// Compression ratio of the other pages of the training process.
        pub trainer_ratio: Constant<Factor>,
    }
}

section! {
    /// `[zram]`: swap in compressed memory; the constants are for LZ4.
    pub struct ZramConstants {
        /// The compressor: `lz4`, or `zstd` with the constants of `[zstd]`.
        pub algorithm: Compressor,
        /// Size before compression, as a share of memory; `size` takes precedence.
        pub share: Option<Constant<Fraction>>,
        /// Upper bound of the size that follows from `share`.
        pub cap: Option<Constant<Bytes>>,
        /// Size before compression.
        pub size: Option<Constant<Bytes>>,
        /// The share of apps' pages filled with one repeated word.
        pub same_filled: Constant<Fraction>,
        /// The share of them that the compressor cannot shrink enough for ZRAM to store them compressed.
        pub incompressible: Constant<Fraction>,
        /// Compression ratio of the other pages.
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
    /// `[costs]`: the kernel's work per page of 4 KiB, in millionths of a CoreMark iteration, and durations.
    pub struct CostConstants {
        /// A fault that finds its page in memory or gets a new one, and maps it.
        pub fault: Constant<Factor>,
        /// Clearing a new page.
        pub zero: Constant<Factor>,
        /// Reading one entry in the walk of page tables that ages generations.
        pub walk: Constant<Factor>,
        /// Scanning a page of a list: taking it off, checking whether it was used, putting it back.
        pub scan: Constant<Factor>,
        /// Unmapping a page from its process, and freeing it.
        pub unmap: Constant<Factor>,
        /// Compressing a page into ZRAM.
        pub compress: Constant<Factor>,
        /// Bringing a page back from ZRAM.
        pub decompress: Constant<Factor>,
        /// The same for a page that is stored uncompressed.
        pub copy: Constant<Factor>,
        /// Submitting a page for writing to the block layer, without the work per command.
        pub submit: Constant<Factor>,
        /// Work of the file system, the block layer, the driver and the interrupt per command.
        pub command: Constant<Factor>,
        /// Moving a page into or out of the page cache.
        pub page: Constant<Factor>,
        /// The time between commands of two cores, in which the queue's lock moves from one core to the other.
        pub handover: Constant<Nanos>,
        /// The work of direct reclaim, as a multiple of kswapd's for the same pages.
        pub direct: Constant<Factor>,
        /// From the end of a thread's wait until it runs.
        pub wake_up: Constant<Nanos>,
    }
}

section! {
    /// `[clocks]`: effective speeds of cores while memory is short, as shares of the fastest core's
    /// at its highest frequency.
    pub struct ClockConstants {
        /// Speed of kswapd, and of a task that sleeps often, for a page or for a command.
        pub waiting: Constant<Fraction>,
        /// The share of the time that a core is busy with work that does not wait for memory.
        pub others: Constant<Fraction>,
    }
}

section! {
    /// `[files]`: how files are read and written through the page cache.
    pub struct FileConstants {
        /// Size of a command in a sequential read.
        pub read_ahead: Constant<Bytes>,
        /// Such commands in flight: the one that the reader waits for and those ahead of it.
        pub read_ahead_windows: Constant<Count>,
        /// Size of a command in the write-back of dirty pages.
        pub write_back: Constant<Bytes>,
    }
}

section! {
    /// `[foreground]`: files that the foreground app reads, other than by faults.
    pub struct ForegroundConstants {
        /// The mean rate.
        pub read_rate: Constant<BytesPerSecond>,
        /// Size of a command.
        pub read_command: Constant<Bytes>,
        /// Commands that may wait simultaneously.
        pub read_depth: Constant<Count>,
    }
}

section! {
    /// `[background]`: cache writes of one app in the background.
    pub struct BackgroundConstants {
        /// The mean rate.
        pub rate: Constant<BytesPerSecond>,
        /// Size of a command.
        pub command: Constant<Bytes>,
        /// Commands of an app that may wait simultaneously.
        pub depth: Constant<Count>,
    }
}

section! {
    /// `[killer]`: the low-memory killer (lmkd), with lmkd's own names of its properties.
    pub struct KillerConstants {
        /// Stall time of some tasks within the pressure window that wakes it.
        pub psi_partial_stall: Constant<Nanos>,
        /// The same on a device with little memory.
        pub psi_partial_stall_low_ram: Constant<Nanos>,
        /// Stall time of all tasks within the pressure window that wakes it.
        pub psi_complete_stall: Constant<Nanos>,
        /// The window for both.
        pub psi_window: Constant<Nanos>,
        /// Its polling interval while pressure is high.
        pub poll_short: Constant<Nanos>,
        /// Its polling interval otherwise.
        pub poll_long: Constant<Nanos>,
        /// Swap counts as low if less than this share of it is free.
        pub swap_free_low: Constant<Fraction>,
        /// Free swap counts at most as this many times the easily available memory; zero disables this limit.
        pub swap_compression_ratio: Constant<Factor>,
        /// It detects thrashing when refaults of file pages in an interval exceed this multiple of the files' pages.
        pub thrashing_limit: Constant<Factor>,
        /// The same on a device with little memory.
        pub thrashing_limit_low_ram: Constant<Factor>,
        /// Each kill for thrashing lowers the limit by this share.
        pub thrashing_limit_decay: Constant<Fraction>,
        /// The same on a device with little memory.
        pub thrashing_limit_decay_low_ram: Constant<Fraction>,
        /// A multiple of the limit, beyond which perceptible apps may be killed.
        pub thrashing_limit_critical: Constant<Factor>,
        /// The interval over which refaults are counted; older ones are halved with each further interval.
        pub thrashing_reset: Constant<Nanos>,
        /// If memory is low, it kills when more than this share of the swappable memory is swapped; 1 disables this.
        pub swap_util_max: Constant<Fraction>,
        /// After thrashing, it kills when the page cache is smaller than this; zero disables this.
        pub filecache_min: Constant<Bytes>,
        /// Share of time in which all tasks stall, beyond which every process may be killed.
        pub stall_limit_critical: Constant<Fraction>,
        /// How long it waits for a victim to exit.
        pub kill_timeout: Constant<Nanos>,
        /// The lowest score that may be killed at low pressure; a value above all scores means none.
        pub low: Constant<OomScore>,
        /// The same at medium pressure.
        pub medium: Constant<OomScore>,
        /// The same at critical pressure.
        pub critical: Constant<OomScore>,
        /// `least-recent` or `heaviest`.
        pub victim: Victim,
        /// Apps below this score are killed only if memory is nearly exhausted or thrashing is critical.
        pub perceptible: Constant<OomScore>,
        /// Devices of up to this much memory have "little memory".
        pub low_ram: Constant<Bytes>,
    }
}

section! {
    /// `[scores]`: `oom_score_adj` by an app's importance to its user.
    pub struct ScoreConstants {
        /// A native process, which is never killed.
        pub native: Constant<OomScore>,
        /// The system server.
        pub system: Constant<OomScore>,
        /// A persistent process, such as telephony.
        pub persistent: Constant<OomScore>,
        /// A process that a persistent process depends on.
        pub persistent_service: Constant<OomScore>,
        /// The foreground app.
        pub foreground: Constant<OomScore>,
        /// A foreground service whose app was in the foreground until recently.
        pub recent_foreground: Constant<OomScore>,
        /// A visible app.
        pub visible: Constant<OomScore>,
        /// An app whose end would be noticed, such as a foreground service.
        pub perceptible: Constant<OomScore>,
        /// A less perceptible app.
        pub perceptible_medium: Constant<OomScore>,
        /// The least perceptible app.
        pub perceptible_low: Constant<OomScore>,
        /// An app that is being backed up.
        pub backup: Constant<OomScore>,
        /// A heavy-weight app in the background.
        pub heavy_weight: Constant<OomScore>,
        /// A service.
        pub service: Constant<OomScore>,
        /// The home screen.
        pub home: Constant<OomScore>,
        /// The previous foreground app.
        pub previous: Constant<OomScore>,
        /// An old service.
        pub service_old: Constant<OomScore>,
        /// The most recent cached app.
        pub cached: Constant<OomScore>,
        /// Cached apps from this score on are killed first.
        pub cached_first_to_die: Constant<OomScore>,
        /// The oldest cached app.
        pub cached_last: Constant<OomScore>,
        /// An unknown state.
        pub unknown: Constant<OomScore>,
    }
}

section! {
    /// `[resident]`: memory that the system itself uses on an idle phone.
    pub struct ResidentConstants {
        /// RAM of the phones that these values are from; on phones with less, all of them are reduced in proportion.
        pub of: Constant<Bytes>,
        /// Memory of the kernel and its drivers: never reclaimed.
        pub kernel: Constant<Bytes>,
        /// Anonymous memory of the system's processes.
        pub anonymous: Constant<Bytes>,
        /// Files that the system's processes have mapped.
        pub file: Constant<Bytes>,
        /// The share of both that is in constant use.
        pub hot: Constant<Fraction>,
        /// Cached files that are not in use.
        pub cache: Constant<Bytes>,
        /// Memory of all cached, frozen apps together.
        pub cached: Constant<Bytes>,
        /// The number of these apps.
        pub cached_apps: Constant<Count>,
        /// The smallest and the largest memory of kernel and processes together on idle phones, of which `kernel`,
        /// `anonymous` and `file` are the middle.
        pub least: Constant<Bytes>,
        /// See `least`.
        pub most: Constant<Bytes>,
    }
}

section! {
    /// `[trainer]`: the training process.
    pub struct TrainerConstants {
        /// From a kill until the first instruction of the replacement process.
        pub start: Constant<Nanos>,
        /// The share of its tensors' pages filled with one repeated word.
        pub same_filled: Constant<Fraction>,
        /// The share of them that the compressor cannot shrink enough for ZRAM to store them compressed.
        pub incompressible: Constant<Fraction>,
        /// Compression ratio of the other pages.
        pub ratio: Constant<Factor>,
    }
}

section! {
    /// `[services]`: the cost of system calls for a background service.
    pub struct ServiceConstants {
        /// Work of reading `/proc/meminfo` once, in millionths of a CoreMark iteration.
        pub meminfo_read: Constant<Factor>,
        /// A binder call with its reply, both ends together.
        pub binder_call: Constant<Nanos>,
    }
}

section! {
    /// All constants of an operating system's calibration: the top level of the file.
    pub struct SystemConstants {
        /// Another system of which this one overrides a few numbers: an id, or a file in the same folder.
        pub base: Option<String>,
        /// The system.
        pub name: String,
        /// Choices and doubts worth knowing.
        pub remark: Option<String>,
        /// Reclaim.
        pub reclaim: ReclaimConstants,
        /// ZRAM. Default: none.
        pub zram: Option<ZramConstants>,
        /// ZRAM with Zstandard; required if that is its algorithm.
        pub zstd: Option<ZstdConstants>,
        /// Swap on flash. Default: none.
        pub swap: Option<SwapConstants>,
        /// Work per page.
        pub costs: CostConstants,
        /// Clocks.
        pub clocks: ClockConstants,
        /// Files.
        pub files: FileConstants,
        /// The foreground app. Default: it reads nothing except by faults.
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

/// How readily a process is killed under memory pressure: higher scores first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OomScore(pub i32);

impl OomScore {
    /// A process that is never killed.
    pub(crate) const LOWEST: Self = Self(-1000);
    /// Higher than the score of any process.
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
