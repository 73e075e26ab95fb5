//! Settings of a phone's memory: sizes, watermarks, lists, swap and the costs of reclaim.

use haversack_devices::system::Balance;
pub use haversack_devices::system::{PageCosts as Costs, PageMix, Watermarks};
use haversack_devices::{Bytes, Device, Factor, Nanos, PageLists, System};

use super::{Lmkd, PhoneError, Spread};

/// Size of a page in bytes. Counters and [`Costs`] are in pages for any extent size.
pub const PAGE: u64 = 4096;

/// How the kernel orders reclaimable pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    /// An active and an inactive list, for anonymous and for file pages each (Linux 5.10).
    Two,
    /// The multi-generation LRU (Linux 6.1; android14-5.15).
    Generations {
        /// The largest number of generations, 3 to 8; the kernel has 4.
        count: u8,
        /// The working set of this time span must fit, or the out-of-memory killer kills a process
        /// (`min_ttl_ms`); zero disables this.
        min_ttl: Nanos,
    },
}

/// The memory that the kernel manages, and its policies.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Settings {
    /// The memory that the kernel manages: DRAM less its own image and the memory of firmware and the modem.
    pub ram: Bytes,
    /// The unit of reclaim and of faults: a power of two from 4 KiB to 1 MiB.
    pub extent: Bytes,
    /// The amounts of free memory at which reclaim starts and ends.
    pub watermarks: Watermarks,
    /// `vm.swappiness`, 0 to 200: how much cheaper refaults of anonymous pages count than those of file pages.
    pub swappiness: u32,
    /// Whether anonymous pages are reclaimed too while there are many unused file pages (vendors'
    /// `balance_anon_file_reclaim`).
    pub balanced: bool,
    /// The lists that order pages.
    pub lists: Lists,
    /// The size of the ZRAM disk, in bytes before compression; zero for none.
    pub zram: Bytes,
    /// The size of the swap partition on flash, used when ZRAM is full; zero for none.
    pub swap: Bytes,
    /// Bytes that a fault on the swap partition reads, in swap order: 4 KiB shifted by `vm.page-cluster`.
    pub swap_read_ahead: Bytes,
    /// Bytes that a fault on a file reads, in file order (`read_ahead_kb`).
    pub file_read_ahead: Bytes,
    /// Bytes that may be in flight to flash before reclaim waits: the requests of the block queue.
    pub write_queue: Bytes,
    /// The time of direct reclaim as a multiple of kswapd's for the same pages.
    pub direct: Factor,
    /// How stalls of tasks become stalls of the phone.
    pub spread: Spread,
    /// The low-memory killer daemon, if there is one.
    pub lmkd: Option<Lmkd>,
}

impl Settings {
    /// A phone of `ram` with `watermarks`: 256 KiB extents, two lists, swappiness 100, no swap, 4 KiB of swap
    /// read-ahead (`page-cluster` 0 of Qualcomm's scripts), 128 KiB of file read-ahead, 8 MiB of queued writes (128
    /// requests of 64 KiB), direct reclaim at kswapd's cost, one core, no lmkd. Set fields to change these.
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

/// Identifies a transfer of a [`Flash`]; later transfers have larger numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transfer(pub u64);

/// The flash behind files and the swap partition. Its behaviour may depend on queues, sharing or anything else; the
/// times of its calls never go back.
pub trait Flash {
    /// Starts `requests` synchronous reads of `bytes` in total, issued one after the other from `now`.
    fn read(&mut self, now: Nanos, bytes: Bytes, requests: u64) -> Transfer;
    /// The part of that time that is the reader's own work, on its core: file system, block layer and driver.
    fn work(&self, _bytes: Bytes, _requests: u64) -> Nanos {
        Nanos::ZERO
    }
    /// Starts to write `bytes` at `now`.
    fn write(&mut self, now: Nanos, bytes: Bytes) -> Transfer;
    /// Advances to the next end of a transfer or to `until`, whichever is first; returns that transfer and its end
    /// time. Each transfer is returned once.
    fn advance(&mut self, until: Nanos) -> Option<(Transfer, Nanos)>;
}

/// The source of a region's memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Backing {
    /// The process's own memory: reclaimed into ZRAM and swap.
    Anonymous(PageMix),
    /// Pages of a file on flash: dropped, or written if dirty.
    File,
    /// Pages of a file mapped for execution (`VM_EXEC`): dropped like others, but kept once they were used.
    Code,
    /// Memory of the kernel, ION and DMA buffers: never reclaimed.
    Pinned,
}

/// The kind of access of a touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A read; a copy on flash stays valid.
    Read,
    /// A write; a file page becomes dirty and a copy in swap is dropped.
    Write,
}
