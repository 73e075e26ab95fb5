//! A system's values on a given device: reserves, sizes, and costs per page on a core.

use crate::system::{Compressor, ExtraFree, PageMix, SystemConstants, TrainerConstants, ZramConstants, ZstdConstants};
use crate::{Bytes, Constant, Device, Driver, Factor, Fraction, Nanos, ScalarSpeed, System};

/// The amounts of free memory at which reclaim starts, becomes urgent and stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermarks {
    /// Below it, an allocating task reclaims memory itself (direct reclaim).
    pub min: Bytes,
    /// Below it kswapd wakes.
    pub low: Bytes,
    /// Up to it kswapd reclaims.
    pub high: Bytes,
}

/// The kernel's work per page of 4 KiB, as time on one core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCosts {
    /// A fault that finds its page in memory or gets a new one, and maps it.
    pub fault: Nanos,
    /// Clearing a new page.
    pub zero: Nanos,
    /// Reading one entry in the walk of page tables that ages generations.
    pub walk: Nanos,
    /// Looking at a page of a list.
    pub scan: Nanos,
    /// Unmapping a page from its process, and freeing it.
    pub unmap: Nanos,
    /// Compressing a page into ZRAM.
    pub compress: Nanos,
    /// Bringing a page back from ZRAM.
    pub decompress: Nanos,
    /// The same for a page that is stored uncompressed.
    pub copy: Nanos,
    /// Handing a page to the block layer.
    pub submit: Nanos,
    /// From the end of a thread's wait until it runs; the same on every core.
    pub wake_up: Nanos,
}

/// Memory that the system itself uses on an idle phone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resident {
    /// Never reclaimed.
    pub kernel: Bytes,
    /// Anonymous memory.
    pub anonymous: Bytes,
    /// Mapped files.
    pub file: Bytes,
    /// The share of both that is in constant use.
    pub hot: Fraction,
    /// Cached files that are not in use.
    pub cache: Bytes,
    /// Memory of each cached app, and the number of these apps.
    pub cached: (Bytes, u64),
}

impl Resident {
    /// Memory of the kernel and the processes.
    pub fn total(&self) -> Bytes {
        self.kernel + self.anonymous + self.file
    }
}

/// The low-memory killer's properties that depend on the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Killer {
    /// Stall time of some tasks within the pressure window that wakes it.
    pub psi_partial_stall: Nanos,
    /// It detects thrashing when refaults of file pages in an interval exceed this multiple of the files' pages.
    pub thrashing_limit: Factor,
    /// The limit falls by this share with each kill for thrashing.
    pub thrashing_limit_decay: Fraction,
}

/// Size of a page in bytes.
const PAGE: u64 = 4096;

/// The `share` of `bytes`, rounded down.
fn share(bytes: Bytes, share: Fraction) -> Bytes {
    // A float cast saturates.
    Bytes((bytes.as_f64() * share.0) as u64)
}

impl System {
    /// The memory of `device` that the kernel manages (`MemTotal`): all but the carve-outs, and the
    /// kernel's own memory at boot.
    pub fn managed(&self, device: &Device) -> Bytes {
        let reclaim = &self.constants.reclaim;
        let (ram, carve_outs) = (device.ram(), device.carve_outs().unwrap_or(reclaim.carve_outs.value));
        let pages = Bytes(ram.0 / PAGE * reclaim.page_struct.value.0);
        ram.saturating_sub(carve_outs).saturating_sub(pages).saturating_sub(reclaim.image.value)
    }

    /// The watermarks on `device`, as the kernel computes them in whole KiB (`mm/page_alloc.c`; one zone): min = √(16 ·
    /// managed), within its bounds; a step = max(min / 4, managed · scale factor / 10,000); low = min + step, high =
    /// min + 2 steps. Android's `extra_free_kbytes`, some screens' worth of memory, is added to low and high, or is
    /// part of each step (`extra_free_kbytes.sh`).
    pub fn watermarks(&self, device: &Device) -> Watermarks {
        let reclaim = &self.constants.reclaim;
        let kib = |bytes: Bytes| bytes.0 / 1024;
        let managed = kib(self.managed(device));
        let root = (managed as f64 * 16.0).sqrt() as u64;
        let min = root.max(kib(reclaim.min_free_lowest.value)).min(kib(reclaim.min_free_highest.value));
        let scaled = managed as f64 * reclaim.watermark_scale_factor.value.0 / 10_000.0;
        let screens = kib(self.screens(device));
        let (in_step, on_top) = match reclaim.extra_free {
            ExtraFree::Scale => (screens, 0),
            ExtraFree::OnTop => (0, screens),
        };
        let step = (min / 4).max(scaled as u64 + in_step);
        let at = |steps: u64| Bytes(1024_u64.saturating_mul(min + steps * step + if steps > 0 { on_top } else { 0 }));
        Watermarks { min: at(0), low: at(1), high: at(2) }
    }

    /// Bytes of the screens' worth of memory that is kept free (`ro.sys.extra_free_kbytes`).
    fn screens(&self, device: &Device) -> Bytes {
        let reclaim = &self.constants.reclaim;
        let [width, height] = device.display().unwrap_or([reclaim.display_width.value, reclaim.display_height.value]);
        let bytes = width.0 * height.0 * reclaim.pixel.value.as_f64() * reclaim.frame_buffers.value.0;
        Bytes(bytes as u64)
    }

    /// Memory of the low zone on `device` that is reserved from allocations which may use the zone above it; lmkd
    /// adds it to each watermark.
    pub fn protection(&self, device: &Device) -> Bytes {
        let reclaim = &self.constants.reclaim;
        let above = self.managed(device).saturating_sub(reclaim.low_zone.value);
        // A float cast saturates.
        Bytes((above.as_f64() / reclaim.lowmem_reserve_ratio.value.0.max(1.0)) as u64)
    }

    /// Size of ZRAM on `device` before compression; zero if there is none.
    pub fn zram(&self, device: &Device) -> Bytes {
        let Some(zram) = &self.constants.zram else { return Bytes::ZERO };
        if let Some(size) = &zram.size {
            return size.value;
        }
        let part = zram.share.as_ref().map_or(Bytes::ZERO, |part| share(device.ram(), part.value));
        zram.cap.as_ref().map_or(part, |cap| part.min(cap.value))
    }

    /// Compressibility of apps' pages in ZRAM; all are stored whole if there is none.
    pub fn app_pages(&self) -> PageMix {
        let whole = PageMix { same_filled: Fraction(0.0), incompressible: Fraction(1.0), ratio: Factor(1.0) };
        let mix = self.constants.zram.as_ref().map_or(whole, ZramConstants::mix);
        self.constants.zstd().map_or(mix, |zstd| zstd.apps(mix))
    }

    /// Compressibility of the training process's pages in ZRAM.
    pub fn trainer_pages(&self) -> PageMix {
        let mix = self.constants.trainer.mix();
        self.constants.zstd().map_or(mix, |zstd| zstd.trainer(mix))
    }

    /// The swap partition on flash; zero if there is none.
    pub fn swap_partition(&self) -> Bytes {
        self.constants.swap.as_ref().map_or(Bytes::ZERO, |swap| swap.partition.value)
    }

    /// Pages that a fault brings in from swap.
    pub fn swap_read_ahead(&self) -> u64 {
        1_u64 << (self.constants.reclaim.page_cluster.value.0 as u32).min(31)
    }

    /// The kernel's work per page on a core of this speed.
    pub fn page_costs(&self, speed: ScalarSpeed) -> PageCosts {
        let costs = &self.constants.costs;
        let [slower_in, slower_out] =
            self.constants.zstd().map_or([1.0; 2], |zstd| [zstd.compress.value.0, zstd.decompress.value.0]);
        PageCosts {
            fault: speed.time(costs.fault.value),
            zero: speed.time(costs.zero.value),
            walk: speed.time(costs.walk.value),
            scan: speed.time(costs.scan.value),
            unmap: speed.time(costs.unmap.value),
            compress: speed.time(Factor(costs.compress.value.0 * slower_in)),
            decompress: speed.time(Factor(costs.decompress.value.0 * slower_out)),
            copy: speed.time(costs.copy.value),
            submit: speed.time(costs.submit.value),
            wake_up: costs.wake_up.value,
        }
    }

    /// The driver's work on a core of this speed.
    pub fn driver(&self, speed: ScalarSpeed) -> Driver {
        let costs = &self.constants.costs;
        Driver {
            command: speed.time(costs.command.value),
            page: speed.time(costs.page.value),
            handover: costs.handover.value,
        }
    }

    /// Memory that the system itself uses on `device` while it is idle; less on a phone with little memory.
    pub fn resident(&self, device: &Device) -> Resident {
        let resident = &self.constants.resident;
        let part = Fraction((device.ram().as_f64() / resident.of.value.as_f64().max(1.0)).min(1.0));
        // A float cast saturates.
        let apps = resident.cached_apps.value.0 as u64;
        Resident {
            kernel: share(resident.kernel.value, part),
            anonymous: share(resident.anonymous.value, part),
            file: share(resident.file.value, part),
            hot: resident.hot.value,
            cache: share(resident.cache.value, part),
            cached: (Bytes(share(resident.cached.value, part).0 / apps.max(1)), apps),
        }
    }

    /// The low-memory killer's properties on `device`, which differ if it has little memory.
    pub fn killer(&self, device: &Device) -> Killer {
        let killer = &self.constants.killer;
        if device.ram() <= killer.low_ram.value {
            Killer {
                psi_partial_stall: killer.psi_partial_stall_low_ram.value,
                thrashing_limit: killer.thrashing_limit_low_ram.value,
                thrashing_limit_decay: killer.thrashing_limit_decay_low_ram.value,
            }
        } else {
            Killer {
                psi_partial_stall: killer.psi_partial_stall.value,
                thrashing_limit: killer.thrashing_limit.value,
                thrashing_limit_decay: killer.thrashing_limit_decay.value,
            }
        }
    }
}

impl SystemConstants {
    /// The constants that replace those of LZ4, if ZRAM compresses with Zstandard.
    fn zstd(&self) -> Option<&ZstdConstants> {
        let chosen = self.zram.as_ref().is_some_and(|zram| zram.algorithm == Compressor::Zstd);
        self.zstd.as_ref().filter(|_| chosen)
    }
}

impl ZstdConstants {
    pub(super) fn apps(&self, lz4: PageMix) -> PageMix {
        PageMix { incompressible: self.incompressible.value, ratio: self.ratio.value, ..lz4 }
    }

    pub(super) fn trainer(&self, lz4: PageMix) -> PageMix {
        let (incompressible, ratio) = (self.trainer_incompressible.value, self.trainer_ratio.value);
        PageMix { incompressible, ratio, ..lz4 }
    }
}

fn mix(same_filled: &Constant<Fraction>, incompressible: &Constant<Fraction>, ratio: &Constant<Factor>) -> PageMix {
    PageMix { same_filled: same_filled.value, incompressible: incompressible.value, ratio: ratio.value }
}

impl ZramConstants {
    pub(super) fn mix(&self) -> PageMix {
        mix(&self.same_filled, &self.incompressible, &self.ratio)
    }
}

impl TrainerConstants {
    pub(super) fn mix(&self) -> PageMix {
        mix(&self.same_filled, &self.incompressible, &self.ratio)
    }
}
