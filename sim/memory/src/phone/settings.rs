//! What a phone's memory is made of: sizes, watermarks, lists, swap and what reclaim costs a core.

use haversack_devices::system::Balance;
pub use haversack_devices::system::{PageCosts as Costs, PageMix, Watermarks};
use haversack_devices::{Bytes, Device, Factor, Nanos, PageLists, System};

use super::{Lmkd, PhoneError, Spread};

/// A page of the kernel, in bytes. Counters and [`Costs`] are in pages, whatever the extent.
pub const PAGE: u64 = 4096;

/// How the kernel orders what may be reclaimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    /// An active and an inactive list, of anonymous and of file pages each (Linux 5.10).
    Two,
    /// The multi-generation LRU (Linux 6.1; android14-5.15).
    Generations {
        /// The most generations, 3 to 8; the kernel has 4.
        count: u8,
        /// The working set of that span must fit, or the out-of-memory killer ends a process (`min_ttl_ms`); zero: off.
        min_ttl: Nanos,
    },
}

/// The memory that the kernel manages, and how.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Settings {
    /// What the kernel manages: DRAM less its own image and what firmware and the modem take.
    pub ram: Bytes,
    /// What is reclaimed and faulted at once: a power of two from 4 KiB to 1 MiB.
    pub extent: Bytes,
    /// When reclaim starts and ends.
    pub watermarks: Watermarks,
    /// `vm.swappiness`, 0 to 200: how much cheaper than a file page's an anonymous page's return is held to be.
    pub swappiness: u32,
    /// Whether anonymous pages are reclaimed beside those of files while files' abound that nobody misses (vendors'
    /// `balance_anon_file_reclaim`).
    pub balanced: bool,
    /// How pages are ordered.
    pub lists: Lists,
    /// The size of the ZRAM disk, in bytes before compression; zero: none.
    pub zram: Bytes,
    /// The swap partition on flash, used when ZRAM is full; zero: none.
    pub swap: Bytes,
    /// What a fault on the swap partition reads, in swap order: 4 KiB shifted by `vm.page-cluster`.
    pub swap_read_ahead: Bytes,
    /// What a fault on a file reads, in file order (`read_ahead_kb`).
    pub file_read_ahead: Bytes,
    /// What may be on its way to flash before reclaim waits: the requests of the block queue.
    pub write_queue: Bytes,
    /// What a task that reclaims for itself takes of what kswapd takes for the same pages.
    pub direct: Factor,
    /// Whose stalls become whose.
    pub spread: Spread,
    /// The low-memory killer daemon, where there is one.
    pub lmkd: Option<Lmkd>,
}

impl Settings {
    /// A phone of `ram` with `watermarks`: 256 KiB extents, two lists, swappiness 100, no swap, 4 KiB of swap
    /// read-ahead (`page-cluster` 0 of Qualcomm's scripts), 128 KiB of file read-ahead, 8 MiB of queued writes (128
    /// requests of 64 KiB), direct reclaim at kswapd's cost, one core, no lmkd. Fields are there to be set.
    pub const fn new(ram: Bytes, watermarks: Watermarks) -> Self {
        Self {
            ram,
            extent: Bytes(256 << 10),
            watermarks,
            swappiness: 100,
            balanced: false,
            lists: Lists::Two,
            zram: Bytes::ZERO,
            swap: Bytes::ZERO,
            swap_read_ahead: Bytes(PAGE),
            file_read_ahead: Bytes(128 << 10),
            write_queue: Bytes(8 << 20),
            direct: Factor(1.0),
            spread: Spread::ONE,
            lmkd: None,
        }
    }

    /// The memory of `device` as `system` manages it, with its low-memory killer.
    pub fn of(system: &System, device: &Device) -> Self {
        let reclaim = &system.constants.reclaim;
        let lists = match reclaim.lists {
            PageLists::Two => Lists::Two,
            // A float cast saturates.
            PageLists::Generations => Lists::Generations {
                count: reclaim.generations.as_ref().map_or(0, |most| most.value.0 as u8),
                min_ttl: reclaim.min_ttl.as_ref().map_or(Nanos::ZERO, |ttl| ttl.value),
            },
        };
        Self {
            extent: reclaim.extent.value,
            swappiness: reclaim.swappiness.value.0 as u32,
            balanced: reclaim.balance == Balance::Both,
            lists,
            zram: system.zram(device),
            swap: system.swap_partition(),
            swap_read_ahead: Bytes(PAGE * system.swap_read_ahead()),
            file_read_ahead: system.constants.files.read_ahead.value,
            direct: system.constants.costs.direct.value,
            spread: Spread::of(system, device),
            lmkd: Some(Lmkd::new(system, device)),
            ..Self::new(system.managed(device), system.watermarks(device))
        }
    }

    /// The pages of an extent.
    pub(super) const fn extent_pages(&self) -> u64 {
        self.extent.0 / PAGE
    }

    pub(super) fn check(&self) -> Result<(), PhoneError> {
        let power = |size: Bytes| size.0.is_power_of_two();
        let wrong = |field, expected| Err(PhoneError::Setting { field, expected });
        let Watermarks { min, low, high } = self.watermarks;
        if !power(self.extent) || !(PAGE..=1 << 20).contains(&self.extent.0) {
            return wrong("extent", "a power of two from 4 KiB to 1 MiB");
        }
        if min > low || low > high || high + self.extent >= self.ram {
            return wrong("watermarks", "min <= low <= high, and high less than ram by more than an extent");
        }
        if self.swappiness > 200 {
            return wrong("swappiness", "0 to 200");
        }
        for (field, size) in [("swap_read_ahead", self.swap_read_ahead), ("file_read_ahead", self.file_read_ahead)] {
            if !power(size) || size.0 < PAGE {
                return wrong(field, "a power of two from 4 KiB");
            }
        }
        if matches!(self.lists, Lists::Generations { count, .. } if !(3..=8).contains(&count)) {
            return wrong("lists", "3 to 8 generations");
        }
        Ok(())
    }
}

/// Names something that a [`Flash`] reads or writes; what is begun later has a larger number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transfer(pub u64);

/// The flash behind files and the swap partition. It may queue, be shared and depend on anything; times that it is asked
/// at never go back.
pub trait Flash {
    /// Begins with `requests` synchronous reads that amount to `bytes`, issued one after the other from `now`.
    fn read(&mut self, now: Nanos, bytes: Bytes, requests: u64) -> Transfer;
    /// What of that time is the reader's own work: of the file system, the block layer and the driver, on its core.
    fn work(&self, _bytes: Bytes, _requests: u64) -> Nanos {
        Nanos::ZERO
    }
    /// Begins to write `bytes` at `now`.
    fn write(&mut self, now: Nanos, bytes: Bytes) -> Transfer;
    /// Goes on to the next end of a transfer or to `until`, whichever is first; that transfer, and when it ended. Each is told
    /// once.
    fn advance(&mut self, until: Nanos) -> Option<(Transfer, Nanos)>;
}

/// What stands behind the memory of a region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Backing {
    /// The process's own: reclaimed into ZRAM and swap.
    Anonymous(PageMix),
    /// Pages of a file on flash: dropped, or written where dirty.
    File,
    /// Pages of a file that are mapped to be executed (`VM_EXEC`): dropped as others are, but kept once they were used.
    Code,
    /// The kernel's own, ION and DMA buffers: never reclaimed.
    Pinned,
}

/// What a touch does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads; a copy on flash stays good.
    Read,
    /// Writes; a file page becomes dirty and a copy in swap is given up.
    Write,
}
