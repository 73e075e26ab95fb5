//! The cost of touching memory that is all in DRAM, and of a training iteration that does not fit the phone: `cargo
//! bench -p haversack-memory --bench phone`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use haversack_devices::units::{Bytes, Factor, Nanos};
use haversack_memory::phone::{
    Access, Backing, Costs, Flash, Lists, PageMix, PhoneMemory, ProcessId, RegionId, Settings, Transfer, Watermarks,
};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
const ANON: Backing = Backing::Anonymous(PageMix::all(Factor(2.5)));

fn main() {
    divan::main();
}

/// Reads take 120 µs; writes run at 750 MB/s.
#[derive(Default)]
struct Ufs {
    busy: Nanos,
    under_way: BTreeSet<(Nanos, Transfer)>,
    begun: u64,
}

impl Ufs {
    fn ends(&mut self, at: Nanos) -> Transfer {
        self.begun += 1;
        self.under_way.insert((at, Transfer(self.begun)));
        Transfer(self.begun)
    }
}

impl Flash for Ufs {
    fn read(&mut self, now: Nanos, bytes: Bytes, requests: u64) -> Transfer {
        self.ends(now + Nanos(120_000 * requests + bytes.0 / 2))
    }

    fn write(&mut self, now: Nanos, bytes: Bytes) -> Transfer {
        self.busy = self.busy.max(now) + Nanos(bytes.0 * 4 / 3);
        self.ends(self.busy)
    }

    fn advance(&mut self, until: Nanos) -> Option<(Transfer, Nanos)> {
        let &(at, transfer) = self.under_way.first().filter(|&&(at, _)| at <= until)?;
        self.under_way.pop_first();
        Some((transfer, at))
    }
}

/// A phone with 8 GB, of which the kernel manages 7.3, 1 GiB of ZRAM and 3 GiB of swap, with 4.5 GB used by other
/// processes.
fn phone(extent: u64, lists: Lists) -> (PhoneMemory, Ufs, ProcessId, Vec<RegionId>) {
    let core = Costs {
        fault: Nanos(500),
        zero: Nanos(300),
        scan: Nanos(200),
        walk: Nanos(20),
        unmap: Nanos(500),
        compress: Nanos(10_000),
        decompress: Nanos(3500),
        copy: Nanos(500),
        submit: Nanos(2000),
        wake_up: Nanos(10_000),
    };
    let ram = Bytes(7_300_000_000 / MIB * MIB);
    // An 8 GB phone under Android with a display of 1080 by 2400.
    let [min, low, high] = [11, 49, 57].map(|mib| Bytes(mib * MIB));
    let settings = Settings {
        extent: Bytes(extent),
        lists,
        zram: Bytes(GIB),
        swap: Bytes(3 * GIB),
        ..Settings::new(ram, Watermarks { min, low, high })
    };
    let mut phone = PhoneMemory::new(settings, core, core).unwrap();
    let mut flash = Ufs::default();
    let system = phone.spawn("system", -900).unwrap();
    let mut others = Vec::new();
    for (size, backing) in [(800, Backing::Pinned), (2300, ANON), (1200, Backing::File)] {
        let region = phone.map(system, Bytes(size * MIB), backing).unwrap();
        phone.touch(region, Access::Read, phone.now(), &mut flash).unwrap();
        others.push(region);
    }
    let trainer = phone.spawn("trainer", 0).unwrap();
    (phone, flash, trainer, others)
}

fn regions(phone: &mut PhoneMemory, trainer: ProcessId, count: u64, size: u64) -> Vec<RegionId> {
    (0..count).map(|_| phone.map(trainer, Bytes(size), ANON).unwrap()).collect()
}

/// 2 GiB in memory, in regions of 1, 16 and 256 extents of 256 KiB; counted by extents.
#[divan::bench(args = [1, 16, 256])]
fn touch_resident(bencher: Bencher<'_, '_>, extents: u64) {
    let (mut phone, mut flash, trainer, _) = phone(256 << 10, Lists::Two);
    let all = regions(&mut phone, trainer, 8192 / extents, extents * (256 << 10));
    for &region in &all {
        phone.touch(region, Access::Write, phone.now(), &mut flash).unwrap();
    }
    let mut now = phone.now();
    bencher.counter(ItemsCount::new(8192_u64)).bench_local(|| {
        for &region in &all {
            now += Nanos(1000);
            black_box(phone.touch(region, Access::Write, now, &mut flash).unwrap());
        }
    });
}

/// The same extents one by one through parts of one region.
#[divan::bench]
fn touch_resident_parts(bencher: Bencher<'_, '_>) {
    let (mut phone, mut flash, trainer, _) = phone(256 << 10, Lists::Two);
    let region = phone.map(trainer, Bytes(2 * GIB), ANON).unwrap();
    phone.touch(region, Access::Write, phone.now(), &mut flash).unwrap();
    let mut now = phone.now();
    bencher.counter(ItemsCount::new(8192_u64)).bench_local(|| {
        for place in 0..8192 {
            now += Nanos(1000);
            let part = Bytes(place * (256 << 10))..Bytes((place + 1) * (256 << 10));
            black_box(phone.touch_part(region, part, Access::Write, now, &mut flash).unwrap());
        }
    });
}

/// An iteration that saves 5 GB forward, reads it backward and releases it, in tensors of 8 MiB every 10 ms. The other
/// processes first touch their memory again, so that every iteration reclaims.
fn iteration(phone: &mut PhoneMemory, flash: &mut Ufs, trainer: ProcessId, others: &[RegionId]) -> Nanos {
    let start = phone.now();
    for &region in others {
        phone.touch(region, Access::Read, start, flash).unwrap();
    }
    let step = Nanos(10_000_000);
    let mut saved = regions(phone, trainer, 5_000_000_000 / (8 * MIB), 8 * MIB);
    for &tensor in &saved {
        phone.touch(tensor, Access::Write, phone.now() + step, flash).unwrap();
    }
    while let Some(tensor) = saved.pop() {
        phone.touch(tensor, Access::Read, phone.now() + step, flash).unwrap();
        phone.release(tensor).unwrap();
    }
    phone.now() - start
}

fn sweep(bencher: Bencher<'_, '_>, extent: u64, lists: Lists) {
    let (mut phone, mut flash, trainer, others) = phone(extent, lists);
    let first = iteration(&mut phone, &mut flash, trainer, &others);
    println!("{} extents, {lists:?}: simulated {first}, {:?}", Bytes(extent), phone.counters());
    bencher
        .counter(ItemsCount::new(2 * 5_000_000_000 / extent))
        .bench_local(|| iteration(&mut phone, &mut flash, trainer, &others));
    println!(
        "{}, then: simulated {}, {:?}",
        Bytes(extent),
        iteration(&mut phone, &mut flash, trainer, &others),
        phone.counters()
    );
}

/// Extents of 16 and 256 KiB, two lists; counted by touches of extents.
#[divan::bench(args = [16, 256], sample_count = 20)]
fn forward_backward_lists(bencher: Bencher<'_, '_>, kib: u64) {
    sweep(bencher, kib << 10, Lists::Two);
}

/// The same with generations.
#[divan::bench(args = [16, 256], sample_count = 20)]
fn forward_backward_generations(bencher: Bencher<'_, '_>, kib: u64) {
    sweep(bencher, kib << 10, Lists::Generations { count: 4, min_ttl: Nanos::ZERO });
}
