//! Small phones, a simple flash, and costs of round numbers.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use haversack_devices::units::{Bytes, Factor, Nanos};
use haversack_devices::{load, load_system};
use haversack_memory::phone::lmkd::Lmkd;
use haversack_memory::phone::{
    Backing, Costs, Flash, PAGE, PageMix, PhoneMemory, ProcessId, RegionId, Settings, Transfer, Watermarks,
};

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;

/// A queue of writes at a bandwidth, and parallel reads of a latency each plus their bytes.
#[derive(Clone, Debug)]
pub(crate) struct Simple {
    pub(crate) latency: Nanos,
    /// Nanoseconds per page.
    pub(crate) read: u64,
    pub(crate) write: u64,
    pub(crate) busy: Nanos,
    pub(crate) requests: u64,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    /// Transfers in progress, by end time.
    pub(crate) under_way: BTreeSet<(Nanos, Transfer)>,
    pub(crate) begun: u64,
}

impl Simple {
    /// 100 µs a read, 2 GiB/s in, 1 GiB/s out.
    pub(crate) fn new() -> Self {
        Self {
            latency: Nanos(100_000),
            read: 1907,
            write: 3815,
            busy: Nanos::ZERO,
            requests: 0,
            bytes_read: 0,
            bytes_written: 0,
            under_way: BTreeSet::new(),
            begun: 0,
        }
    }

    /// Takes no time.
    pub(crate) fn instant() -> Self {
        Self { latency: Nanos::ZERO, read: 0, write: 0, ..Self::new() }
    }

    fn ends(&mut self, at: Nanos) -> Transfer {
        self.begun += 1;
        self.under_way.insert((at, Transfer(self.begun)));
        Transfer(self.begun)
    }
}

impl Flash for Simple {
    fn read(&mut self, now: Nanos, bytes: Bytes, requests: u64) -> Transfer {
        self.requests += requests;
        self.bytes_read += bytes.0;
        self.ends(now + self.latency * requests + Nanos(self.read * bytes.0 / PAGE))
    }

    fn write(&mut self, now: Nanos, bytes: Bytes) -> Transfer {
        self.bytes_written += bytes.0;
        self.busy = self.busy.max(now) + Nanos(self.write * bytes.0 / PAGE);
        self.ends(self.busy)
    }

    fn advance(&mut self, until: Nanos) -> Option<(Transfer, Nanos)> {
        let &(at, transfer) = self.under_way.first().filter(|&&(at, _)| at <= until)?;
        self.under_way.pop_first();
        Some((transfer, at))
    }
}

/// lmkd with AOSP's settings for a phone of 8 GB, with a single zone and without contiguous memory.
pub(crate) fn aosp() -> Lmkd {
    static LMKD: LazyLock<Lmkd> = LazyLock::new(|| lmkd_on(Bytes(8 << 30)));
    LMKD.clone()
}

/// The same for a phone with little memory: 2 GiB.
pub(crate) fn aosp_low_ram() -> Lmkd {
    static LMKD: LazyLock<Lmkd> = LazyLock::new(|| lmkd_on(Bytes(2 << 30)));
    LMKD.clone()
}

fn lmkd_on(ram: Bytes) -> Lmkd {
    let mut device = load("galaxy-s22").unwrap();
    device.constants.ram.value = ram;
    let lmkd = Lmkd::new(&load_system("android").unwrap(), &device);
    Lmkd { protection: Bytes::ZERO, contiguous: Bytes::ZERO, ..lmkd }
}

/// A big core.
pub(crate) const CORE: Costs = Costs {
    fault: Nanos(500),
    zero: Nanos(200),
    scan: Nanos(100),
    walk: Nanos(10),
    unmap: Nanos(300),
    compress: Nanos(8000),
    decompress: Nanos(3000),
    copy: Nanos(500),
    submit: Nanos(1000),
    wake_up: Nanos(20_000),
};

pub(crate) const ANON: Backing = Backing::Anonymous(PageMix::all(Factor(2.0)));

/// The 32 pages that reclaim takes at a time.
pub(crate) const CLUSTER: u64 = 32 * PAGE;

/// `ram` without reserves, in extents of a cluster, `swap` on flash.
pub(crate) fn bare(ram: u64, swap: u64) -> Settings {
    let marks = Watermarks { min: Bytes::ZERO, low: Bytes::ZERO, high: Bytes::ZERO };
    Settings { extent: Bytes(CLUSTER), swap: Bytes(swap), ..Settings::new(Bytes(ram), marks) }
}

/// `ram` with reserves of 1/256, 1/128 and 1/64 of it, extents of `extent`.
pub(crate) fn modest(ram: u64, extent: u64) -> Settings {
    let marks = Watermarks { min: Bytes(ram / 256), low: Bytes(ram / 128), high: Bytes(ram / 64) };
    Settings { extent: Bytes(extent), ..Settings::new(Bytes(ram), marks) }
}

/// A phone on which nothing takes time.
pub(crate) fn timeless(settings: Settings) -> PhoneMemory {
    PhoneMemory::new(settings, Costs::default(), Costs::default()).unwrap()
}

pub(crate) fn phone(settings: Settings) -> PhoneMemory {
    PhoneMemory::new(settings, CORE, CORE).unwrap()
}

/// `count` regions of `bytes` each.
pub(crate) fn regions(
    phone: &mut PhoneMemory,
    process: ProcessId,
    count: usize,
    bytes: u64,
    backing: Backing,
) -> Vec<RegionId> {
    (0..count).map(|_| phone.map(process, Bytes(bytes), backing).unwrap()).collect()
}

/// All memory is accounted for.
pub(crate) fn assert_conserved(phone: &PhoneMemory) {
    let usage = phone.usage();
    let all = usage.free + usage.anonymous + usage.file + usage.zram + usage.pinned;
    assert_eq!(all, phone.settings().ram, "{usage:?}");
}
