//! The two lists in lock step with a slow, obvious twin, and the invariants under random operations.

use std::collections::VecDeque;

use haversack_devices::units::{Bytes, Factor, Fraction, Nanos};
use haversack_memory::phone::lmkd::Lmkd;
use haversack_memory::phone::{
    Access, Backing, Costs, Lists, PAGE, PageMix, PhoneError, PhoneMemory, ProcessId, RegionId, Settings,
};
use proptest::prelude::*;

use super::support::{ANON, CORE, MIB, Simple, aosp_low_ram, assert_conserved, bare, modest, timeless};

/// Pages of which ZRAM stores nine in ten uncompressed.
const HARD: PageMix = PageMix { same_filled: Fraction(0.0), incompressible: Fraction(0.9), ratio: Factor(1.5) };

/// Anonymous pages in queues: the front of each list is scanned next.
#[derive(Default)]
struct Twin {
    free: usize,
    pages: Vec<Page>,
    /// Inactive, active.
    lists: [VecDeque<usize>; 2],
    owed: [i64; 2],
    cluster: (usize, u64),
    age: u64,
    activations: u64,
    seen: u64,
    refaults: u64,
    scanned: u64,
    activated: u64,
    deactivated: u64,
}

#[derive(Clone, Copy, Default)]
struct Page {
    touched: bool,
    resident: bool,
    gone: bool,
    young: bool,
    referenced: bool,
    evicted_at: u64,
}

impl Twin {
    fn touch(&mut self, page: usize) {
        if !self.pages[page].resident {
            if self.free == 0 {
                self.reclaim();
            }
            self.free -= 1;
            let active = self.pages[page].touched && self.refault(page);
            (self.pages[page].touched, self.pages[page].resident) = (true, true);
            self.lists[usize::from(active)].push_back(page);
        }
        self.pages[page].young = true;
    }

    /// Evictions and activations since then are at most the number of active pages.
    fn refault(&mut self, page: usize) -> bool {
        self.refaults += 1;
        let active = self.age - self.pages[page].evicted_at <= self.lists[1].len() as u64;
        if active {
            self.age += 1;
            self.activations += 1;
        }
        active
    }

    fn list(&mut self) -> usize {
        if self.cluster.1 > 0 && !self.lists[self.cluster.0].is_empty() {
            self.cluster.1 -= 1;
            return self.cluster.0;
        }
        let [inactive, active] = [0, 1].map(|list| self.lists[list].len());
        let deactivates = self.activations != self.seen || inactive < active;
        let weights = [inactive, if deactivates { active } else { 0 }].map(|weight| weight as i64);
        for list in 0..2 {
            let part = (32 << 20) * weights[list] / (weights[0] + weights[1]);
            self.owed[list] = if weights[list] == 0 { 0 } else { self.owed[list] + part };
        }
        let list = usize::from(weights[0] == 0 || (weights[1] > 0 && self.owed[1] > self.owed[0]));
        self.owed[list] -= 32 << 20;
        self.cluster = (list, 31);
        list
    }

    fn reclaim(&mut self) {
        let enough = self.free + 32;
        while self.free < enough {
            let list = self.list();
            let page = self.lists[list].pop_front().unwrap();
            let young = std::mem::take(&mut self.pages[page].young);
            if list == 1 {
                self.deactivated += 1;
                self.lists[0].push_back(page);
                continue;
            }
            self.scanned += 1;
            if young {
                let activate = std::mem::replace(&mut self.pages[page].referenced, true);
                self.lists[usize::from(activate)].push_back(page);
                self.activated += u64::from(activate);
                self.age += u64::from(activate);
                continue;
            }
            let evicted = Page { touched: true, evicted_at: self.age, ..Page::default() };
            self.pages[page] = evicted;
            self.age += 1;
            self.free += 1;
        }
        self.seen = self.activations;
    }

    fn release(&mut self, page: usize) {
        for list in &mut self.lists {
            list.retain(|&other| other != page);
        }
        if std::mem::replace(&mut self.pages[page].gone, true) {
            return;
        }
        self.free += usize::from(self.pages[page].resident);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Map { pages: usize },
    Touch { at: usize, write: bool },
    Part { at: usize, from: u64, to: u64 },
    Release { at: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (1_usize..30).prop_map(|pages| Step::Map { pages }),
        6 => (any::<usize>(), any::<bool>()).prop_map(|(at, write)| Step::Touch { at, write }),
        3 => (any::<usize>(), 0_u64..30, 0_u64..30).prop_map(|(at, from, to)| Step::Part { at, from, to }),
        1 => any::<usize>().prop_map(|at| Step::Release { at }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn two_lists_behave_as_the_twin(ram in 40_u64..160, steps in prop::collection::vec(step(), 1..150)) {
        let settings = Settings { extent: Bytes(PAGE), ..bare((ram + 2) * PAGE, 100_000 * PAGE) };
        let mut phone = timeless(settings);
        let mut flash = Simple::instant();
        let process = phone.spawn("p", 0).unwrap();
        // Two pages pinned keep the settings in range for the smallest memory.
        let pinned = phone.map(process, Bytes(2 * PAGE), Backing::Pinned).unwrap();
        phone.touch(pinned, Access::Write, Nanos::ZERO, &mut flash).unwrap();
        let mut twin = Twin { free: ram as usize, ..Twin::default() };
        let mut mapped: Vec<(RegionId, std::ops::Range<usize>)> = Vec::new();
        for step in steps {
            match step {
                Step::Map { pages } => {
                    let region = phone.map(process, Bytes(pages as u64 * PAGE), ANON).unwrap();
                    let first = twin.pages.len();
                    twin.pages.resize(first + pages, Page::default());
                    mapped.push((region, first..first + pages));
                }
                _ if mapped.is_empty() => {}
                Step::Touch { at, write } => {
                    let (region, pages) = mapped[at % mapped.len()].clone();
                    let access = if write { Access::Write } else { Access::Read };
                    phone.touch(region, access, Nanos::ZERO, &mut flash).unwrap();
                    pages.for_each(|page| twin.touch(page));
                }
                Step::Part { at, from, to } => {
                    let (region, pages) = mapped[at % mapped.len()].clone();
                    let size = pages.len() as u64;
                    let (from, to) = (from.min(to) % size, to.max(from).min(size));
                    if from < to {
                        let part = Bytes(from * PAGE)..Bytes(to * PAGE);
                        phone.touch_part(region, part, Access::Read, Nanos::ZERO, &mut flash).unwrap();
                        (from..to).for_each(|page| twin.touch(pages.start + page as usize));
                    }
                }
                Step::Release { at } => {
                    let (region, pages) = mapped.swap_remove(at % mapped.len());
                    phone.release(region).unwrap();
                    pages.for_each(|page| twin.release(page));
                }
            }
            let counters = phone.counters();
            prop_assert_eq!(phone.free(), Bytes(twin.free as u64 * PAGE));
            prop_assert_eq!(counters.workingset_refault_anon, twin.refaults);
            prop_assert_eq!(counters.workingset_activate_anon, twin.activations);
            prop_assert_eq!(counters.pgscan_direct, twin.scanned);
            prop_assert_eq!((counters.pgactivate, counters.pgdeactivate), (twin.activated, twin.deactivated));
            assert_conserved(&phone);
        }
    }
}

#[derive(Clone, Debug)]
enum Act {
    Spawn { adj: i32 },
    Map { at: usize, kib: u64, kind: u8 },
    Touch { at: usize, write: bool },
    Part { at: usize, write: bool },
    Resize { at: usize, kib: u64 },
    Release { at: usize },
    Exit { at: usize },
    Adj { at: usize, adj: i32 },
    Pass { micros: u64 },
}

fn act() -> impl Strategy<Value = Act> {
    let at = any::<usize>();
    prop_oneof![
        2 => (-3_i32..10).prop_map(|adj| Act::Spawn { adj: adj * 100 }),
        6 => (at, 0_u64..6000, 0_u8..8).prop_map(|(at, kib, kind)| Act::Map { at, kib, kind }),
        12 => (at, any::<bool>()).prop_map(|(at, write)| Act::Touch { at, write }),
        4 => (at, any::<bool>()).prop_map(|(at, write)| Act::Part { at, write }),
        2 => (at, 0_u64..4000).prop_map(|(at, kib)| Act::Resize { at, kib }),
        2 => at.prop_map(|at| Act::Release { at }),
        1 => at.prop_map(|at| Act::Exit { at }),
        1 => (at, -3_i32..10).prop_map(|(at, adj)| Act::Adj { at, adj: adj * 100 }),
        3 => (0_u64..3_000_000).prop_map(|micros| Act::Pass { micros }),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let lists = prop_oneof![
        Just(Lists::Two),
        (3_u8..=8, 0_u64..2).prop_map(|(count, ttl)| Lists::Generations { count, min_ttl: Nanos(ttl * 100_000_000) })
    ];
    (lists, 12_u32..=20, 0_u64..12, 0_u64..12, 12_u32..18, 0_u32..=200, any::<bool>()).prop_map(
        |(lists, extent, zram, swap, ahead, swappiness, lmkd)| Settings {
            lists,
            zram: Bytes(zram * MIB),
            swap: Bytes(swap * MIB),
            swap_read_ahead: Bytes(1 << ahead),
            swappiness,
            write_queue: Bytes(MIB),
            lmkd: lmkd.then(|| Lmkd { swap_util_max: 50, filecache_min: Bytes(MIB), ..aosp_low_ram() }),
            ..modest(16 * MIB, 1 << extent)
        },
    )
}

/// Executes an act on an existing process; errors due to lack of memory or to dead processes are fine.
fn carry_out(
    act: Act,
    phone: &mut PhoneMemory,
    flash: &mut Simple,
    processes: &mut Vec<ProcessId>,
    regions: &mut Vec<RegionId>,
) -> Result<(), PhoneError> {
    let pick = |at: usize, len: usize| if len == 0 { None } else { Some(at % len) };
    let process = |at| pick(at, processes.len()).map(|at| processes[at]);
    let region = |at| pick(at, regions.len()).map(|at| regions[at]);
    let access = |write| if write { Access::Write } else { Access::Read };
    let now = phone.now();
    match act {
        Act::Spawn { adj } => processes.push(phone.spawn("p", adj)?),
        Act::Map { at, kib, kind } => {
            let backing = match kind {
                0 => Backing::Pinned,
                1..3 => Backing::File,
                3 => Backing::Anonymous(HARD),
                _ => ANON,
            };
            // Pinned memory is small, as it is never freed.
            let bytes = Bytes(if kind == 0 { kib << 6 } else { kib << 10 });
            if let Some(process) = process(at) {
                regions.push(phone.map(process, bytes, backing)?);
            }
        }
        Act::Touch { at, write } => {
            if let Some(region) = region(at) {
                phone.touch(region, access(write), now, flash)?;
            }
        }
        Act::Part { at, write } => {
            if let Some(region) = region(at) {
                phone.touch_part(region, Bytes(at as u64 % 5000)..Bytes(6000), access(write), now, flash)?;
            }
        }
        Act::Resize { at, kib } => {
            if let Some(region) = region(at) {
                phone.resize(region, Bytes(kib << 10))?;
            }
        }
        Act::Release { at } => {
            if let Some(region) = region(at) {
                phone.release(region)?;
            }
        }
        Act::Exit { at } => {
            if let Some(process) = process(at) {
                phone.exit(process)?;
            }
        }
        Act::Adj { at, adj } => {
            if let Some(process) = process(at) {
                phone.set_adj(process, adj)?;
            }
        }
        Act::Pass { micros } => phone.pass(now + Nanos(micros * 1000), flash),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn bytes_are_conserved_whatever_is_done(settings in settings(), acts in prop::collection::vec(act(), 1..150)) {
        for costs in [CORE, Costs::default()] {
            let mut phone = PhoneMemory::new(settings.clone(), costs, costs).unwrap();
            let mut flash = Simple::new();
            let (mut processes, mut regions) = (Vec::new(), Vec::new());
            for act in acts.clone() {
                let done = carry_out(act, &mut phone, &mut flash, &mut processes, &mut regions);
                let fine = matches!(
                    done,
                    Ok(()) | Err(
                        PhoneError::OutOfMemory { .. } | PhoneError::Killed(_) | PhoneError::UnknownProcess(_)
                        | PhoneError::UnknownRegion(_) | PhoneError::BeyondEnd { .. }
                    )
                );
                prop_assert!(fine, "{:?}", done);
                assert_conserved(&phone);
                let usage = phone.usage();
                prop_assert!(usage.zram_stored <= settings.zram && usage.swap <= settings.swap);
                prop_assert!(usage.writeback <= usage.anonymous + usage.file);
                let held: Bytes = processes
                    .iter()
                    .filter_map(|&process| phone.process_usage(process).ok())
                    .map(|held| held.resident + held.swapped)
                    .sum();
                // Swapped pages may be in DRAM too (read ahead, or with their copy kept).
                let everywhere = usage.anonymous + usage.file + usage.pinned + usage.zram_stored + usage.swap;
                prop_assert!(held <= everywhere, "{:?} of {:?}", held, usage);
            }
            while let Some(kill) = phone.poll_lmkd(phone.now(), &mut flash) {
                prop_assert!(kill.adj >= kill.min_adj.max(0), "{:?}", kill);
            }
            for process in processes {
                let _ = phone.exit(process);
            }
            prop_assert_eq!(phone.free(), settings.ram);
        }
    }
}
