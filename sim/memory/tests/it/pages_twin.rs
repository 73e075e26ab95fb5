//! The page arena and the page table in lock step with slow, obvious twins over random scripts: a row of page owners,
//! and a list of activations that is searched for the least valuable one.

use std::collections::{BTreeMap, BTreeSet};

use haversack_devices::units::{Bytes, Nanos};
use haversack_memory::pages::{ArenaConfig, Effects, Fragmentation, Keys, PageArena, PageError, PageTable, Tighter};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Plan { id: u32, size: u64, importance: i32, time: u64 },
    Insert { id: u32, size: u64, importance: i32, time: u64 },
    Place { id: u32 },
    Key { id: u32, importance: i32 },
    Size { id: u32, size: u64 },
    Evict { id: u32 },
    Budget { budget: u64 },
    Write { id: u32, seed: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    let (id, size, importance, time) = (0_u32..12, 0_u64..80, -2_i32..6, 0_u64..5);
    let new = (id.clone(), size.clone(), importance.clone(), time);
    prop_oneof![
        2 => new.clone().prop_map(|(id, size, importance, time)| Step::Plan { id, size, importance, time }),
        5 => new.prop_map(|(id, size, importance, time)| Step::Insert { id, size, importance, time }),
        2 => id.clone().prop_map(|id| Step::Place { id }),
        2 => (id.clone(), importance).prop_map(|(id, importance)| Step::Key { id, importance }),
        2 => (id.clone(), size).prop_map(|(id, size)| Step::Size { id, size }),
        3 => id.clone().prop_map(|id| Step::Evict { id }),
        3 => (0_u64..400).prop_map(|budget| Step::Budget { budget }),
        4 => (id, any::<u8>()).prop_map(|(id, seed)| Step::Write { id, seed }),
    ]
}

#[derive(Clone, Debug)]
struct Held {
    size: u64,
    importance: i32,
    time: u64,
    pages: Option<Vec<usize>>,
    bytes: Option<Vec<u8>>,
}

/// Page owners in a row.
struct Twin {
    page: u64,
    step: u64,
    budget: u64,
    blocks: Vec<usize>,
    owners: Vec<Option<u32>>,
    held: BTreeMap<u32, Held>,
}

impl Twin {
    fn used(&self) -> usize {
        self.owners.iter().flatten().count()
    }

    fn lowest_free(&mut self, id: u32) -> usize {
        let page = self.owners.iter().position(Option::is_none).expect("a free page");
        self.owners[page] = Some(id);
        page
    }

    fn place(&mut self, id: u32) -> Option<Effects> {
        let wanted = self.held[&id].size.div_ceil(self.page) as usize;
        let most = (self.budget / self.page) as usize;
        if self.used() + wanted > most {
            return None;
        }
        let mut effects = Effects::default();
        while self.owners.len() - self.used() < wanted {
            let block = ((self.step / self.page) as usize).min(most - self.owners.len());
            self.blocks.push(block);
            self.owners.resize(self.owners.len() + block, None);
            effects.allocations += 1;
            effects.allocated += Bytes(block as u64 * self.page);
        }
        let pages = (0..wanted).map(|_| self.lowest_free(id)).collect();
        self.held.get_mut(&id).unwrap().pages = Some(pages);
        Some(effects)
    }

    fn resize(&mut self, id: u32, size: u64) -> bool {
        let page = self.page;
        let held = self.held.get_mut(&id).unwrap();
        if let Some(pages) = &mut held.pages {
            if size > held.size {
                return false;
            }
            for page in pages.drain(size.div_ceil(page) as usize..) {
                self.owners[page] = None;
            }
            if let Some(bytes) = &mut held.bytes {
                bytes.truncate(size as usize);
            }
        }
        held.size = size;
        true
    }

    fn set_budget(&mut self, budget: u64) -> Option<Effects> {
        let mut blocks = self.blocks.clone();
        while blocks.iter().sum::<usize>() as u64 * self.page > budget {
            blocks.pop();
        }
        let end: usize = blocks.iter().sum();
        if self.used() > end {
            return None;
        }
        let mut effects = Effects {
            releases: (self.blocks.len() - blocks.len()) as u32,
            released: Bytes((self.owners.len() - end) as u64 * self.page),
            ..Effects::default()
        };
        let ids: Vec<u32> = self.held.keys().copied().collect();
        for id in ids {
            let mut pages = self.held[&id].pages.clone().unwrap_or_default();
            for (index, page) in pages.iter_mut().enumerate().filter(|(_, page)| **page >= end) {
                *page = self.lowest_free(id);
                effects.copied += Bytes((self.held[&id].size - index as u64 * self.page).min(self.page));
            }
            if let Some(held) = &mut self.held.get_mut(&id).unwrap().pages {
                *held = pages;
            }
        }
        self.owners.truncate(end);
        (self.blocks, self.budget) = (blocks, budget);
        Some(effects)
    }

    /// The deciding quotient, the tie-breaking one, and the id: all as plain numbers.
    fn first(&self, tighter: Tighter) -> Option<u32> {
        let per =
            |importance: i32, cost: u64| if cost == 0 { f64::INFINITY } else { f64::from(importance) / cost as f64 };
        let key = |held: &Held| {
            let (size, time) = (per(held.importance, held.size), per(held.importance, held.time));
            if tighter == Tighter::Memory { (size, time) } else { (time, size) }
        };
        let least = self.held.iter().min_by(|a, b| key(a.1).partial_cmp(&key(b.1)).unwrap().then(a.0.cmp(b.0)));
        least.map(|(&id, _)| id)
    }

    fn fragmentation(&self) -> Fragmentation {
        let (page, mut report) = (self.page, Fragmentation::default());
        report.reserved = Bytes(self.owners.len() as u64 * page);
        let placed = || self.held.values().filter_map(|held| Some((held.size, held.pages.as_ref()?)));
        report.stored = Bytes(placed().map(|(size, _)| size).sum());
        report.internal = Bytes(placed().map(|(size, pages)| pages.len() as u64 * page - size).sum());
        report.free = Bytes((self.owners.len() - self.used()) as u64 * page);
        let stretches = self.owners.split(Option::is_some).map(<[_]>::len);
        report.longest_free = Bytes(stretches.max().unwrap_or(0) as u64 * page);
        for (_, pages) in placed().filter(|(_, pages)| !pages.is_empty()) {
            let runs = 1 + pages.windows(2).filter(|pair| pair[0] + 1 != pair[1]).count() as u32;
            report.placed += 1;
            report.runs += runs;
            report.most_runs = report.most_runs.max(runs);
        }
        report
    }

    /// Executes the step on both and compares the results.
    fn follow(&mut self, arena: &mut PageArena, table: &mut PageTable, step: &Step) {
        match *step {
            Step::Plan { id, size, importance, time } | Step::Insert { id, size, importance, time } => {
                let keys = Keys { importance: f64::from(importance), time: Nanos(time) };
                if self.held.contains_key(&id) {
                    assert_eq!(table.insert(id, Bytes(size), keys), Err(PageError::KnownId(id)));
                    return;
                }
                self.held.insert(id, Held { size, importance, time, pages: None, bytes: None });
                table.insert(id, Bytes(size), keys).unwrap();
                if matches!(step, Step::Insert { .. }) {
                    let placed = self.place(id);
                    assert_eq!(arena.insert(id, Bytes(size)).ok(), placed);
                }
            }
            Step::Place { id } => match self.held.get(&id) {
                Some(held) if held.pages.is_none() => {
                    let size = Bytes(held.size);
                    let placed = self.place(id);
                    assert_eq!(arena.insert(id, size).ok(), placed);
                }
                Some(held) => {
                    assert_eq!(arena.insert(id, Bytes(held.size)), Err(PageError::KnownId(id)));
                }
                None => assert_eq!(arena.size(id), None),
            },
            Step::Key { id, importance } => {
                assert_eq!(table.update_key(id, f64::from(importance)).is_ok(), self.held.contains_key(&id));
                self.held.entry(id).and_modify(|held| held.importance = importance);
            }
            Step::Size { id, size } => {
                let placed = self.held.get(&id).is_some_and(|held| held.pages.is_some());
                let done = self.held.contains_key(&id) && self.resize(id, size);
                assert_eq!(arena.shrink(id, Bytes(size)).is_ok(), placed && done);
                if done {
                    table.update_size(id, Bytes(size)).unwrap();
                }
            }
            Step::Evict { id } => {
                let held = self.held.remove(&id);
                assert_eq!(table.evict(id).is_ok(), held.is_some());
                assert_eq!(arena.evict(id).is_ok(), held.is_some_and(|held| held.pages.is_some()));
                self.owners.iter_mut().filter(|owner| **owner == Some(id)).for_each(|owner| *owner = None);
            }
            Step::Budget { budget } => assert_eq!(arena.set_budget(Bytes(budget)).ok(), self.set_budget(budget)),
            Step::Write { id, seed } => {
                let Some(held) = self.held.get_mut(&id).filter(|held| held.pages.is_some()) else { return };
                let bytes: Vec<u8> = (0..held.size).map(|i| seed.wrapping_mul(31).wrapping_add(i as u8)).collect();
                arena.write(id, &bytes).unwrap();
                held.bytes = Some(bytes);
            }
        }
    }

    fn compare(&self, store: &PageArena, table: &PageTable) {
        let mut seen = vec![false; self.owners.len()];
        for id in 0..12 {
            let held = self.held.get(&id);
            let placed = held.filter(|held| held.pages.is_some());
            assert_eq!(store.size(id), placed.map(|held| Bytes(held.size)));
            let expected = held.and_then(|held| held.pages.clone()).unwrap_or_default();
            let pages: Vec<usize> = store.pages(id).map(|page| page as usize).collect();
            assert_eq!(pages, expected);
            for page in pages {
                assert!(!std::mem::replace(&mut seen[page], true), "page {page} has two owners");
            }
            if let Some(bytes) = held.and_then(|held| held.bytes.as_ref()) {
                let mut read = vec![0; bytes.len()];
                store.read(id, &mut read).unwrap();
                assert_eq!(&read, bytes);
            }
        }
        let footprint = |held: &Held| held.size.div_ceil(self.page) * self.page;
        let demand = self.held.values().map(footprint).sum();
        let used: u64 = self.held.values().filter(|held| held.pages.is_some()).map(footprint).sum();
        assert_eq!((table.demand(), store.used()), (Bytes(demand), Bytes(used)));
        let report = store.fragmentation();
        assert_eq!(report, self.fragmentation());
        assert_eq!(report.stored + report.internal + report.free, store.reserved());
        for tighter in [Tighter::Memory, Tighter::Time] {
            assert_eq!(table.first(tighter), self.first(tighter));
            let mut left = table.clone();
            let drained: BTreeSet<u32> =
                std::iter::from_fn(|| left.first(tighter).inspect(|&id| left.evict(id).unwrap())).collect();
            assert_eq!(drained, self.held.keys().copied().collect());
        }
    }
}

proptest! {
    #[test]
    fn arena_and_table_follow_their_twin(
        page in 1_u64..17, pages_a_step in 1_u64..9, budget in 17_u64..400,
        script in prop::collection::vec(step(), 1..80),
    ) {
        let step = page * pages_a_step + page / 2;
        let config = ArenaConfig { page: Bytes(page), step: Bytes(step), budget: Bytes(budget) };
        let (mut arena, mut table) = (PageArena::with_data(config).unwrap(), PageTable::new(Bytes(page)).unwrap());
        let mut twin = Twin { page, step, budget, blocks: Vec::new(), owners: Vec::new(), held: BTreeMap::new() };
        for step in &script {
            twin.follow(&mut arena, &mut table, step);
            twin.compare(&arena, &table);
        }
    }
}
