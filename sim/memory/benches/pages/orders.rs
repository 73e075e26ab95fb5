//! Alternative ways to keep activations in order, behind a common interface.

use std::collections::BTreeMap;
use std::hint::black_box;

use haversack_devices::units::{Bytes, Nanos};
use haversack_memory::pages::red_black::RedBlackTree;
use haversack_memory::pages::{ArenaConfig, Keys, PageTable, Rank, Tighter};

use crate::measure::Random;

#[derive(Clone, Copy)]
pub(crate) struct Activation {
    pub(crate) importance: f64,
    pub(crate) size: u64,
    pub(crate) time: u64,
}

impl Activation {
    pub(crate) fn quotient(self) -> f64 {
        self.importance / self.size as f64
    }

    fn rank(self) -> Rank {
        Rank::new(self.quotient(), self.importance / self.time as f64).unwrap()
    }

    const fn keys(self) -> Keys {
        Keys { importance: self.importance, time: Nanos(self.time) }
    }
}

pub(crate) fn activations(n: usize) -> Vec<Activation> {
    let mut random = Random(7);
    (0..n)
        .map(|_| Activation {
            importance: random.unit(),
            size: 4096 + random.bits() % 1_000_000,
            time: 1000 + random.bits() % 100_000,
        })
        .collect()
}

/// The operations that every method supports.
pub(crate) trait Order: Default {
    fn set(&mut self, id: u32, activation: Activation);
    fn remove(&mut self, id: u32);
    fn max(&mut self) -> u32;

    fn filled(activations: &[Activation]) -> Self {
        let mut order = Self::default();
        for (id, &activation) in activations.iter().enumerate() {
            order.set(id as u32, activation);
        }
        order
    }
}

/// The page table as a policy uses it, with checks of ids and errors.
pub(crate) struct Ours(PageTable);

impl Default for Ours {
    fn default() -> Self {
        Self(PageTable::new(ArenaConfig::PAGE).unwrap())
    }
}

impl Order for Ours {
    fn set(&mut self, id: u32, activation: Activation) {
        if self.0.update_key(id, activation.importance).is_err() {
            self.0.insert(id, Bytes(activation.size), activation.keys()).unwrap();
        }
    }

    fn remove(&mut self, id: u32) {
        self.0.evict(id).unwrap();
    }

    fn max(&mut self) -> u32 {
        self.0.first(Tighter::Memory).unwrap()
    }
}

#[derive(Default)]
pub(crate) struct TwoTrees([RedBlackTree; 2]);

impl TwoTrees {
    pub(crate) fn descending(&self) -> impl Iterator<Item = u32> {
        self.0[0].descending()
    }
}

impl Order for TwoTrees {
    fn set(&mut self, id: u32, activation: Activation) {
        let rank = activation.rank();
        self.0[0].set(id, rank.key(Tighter::Memory));
        self.0[1].set(id, rank.key(Tighter::Time));
    }

    fn remove(&mut self, id: u32) {
        self.0[0].remove(id);
        self.0[1].remove(id);
    }

    fn max(&mut self) -> u32 {
        self.0[0].max().unwrap()
    }
}

#[derive(Default)]
pub(crate) struct OneTree(RedBlackTree);

impl OneTree {
    pub(crate) fn descending(&self) -> impl Iterator<Item = u32> {
        self.0.descending()
    }
}

impl Order for OneTree {
    fn set(&mut self, id: u32, activation: Activation) {
        self.0.set(id, activation.rank().key(Tighter::Memory));
    }

    fn remove(&mut self, id: u32) {
        self.0.remove(id);
    }

    fn max(&mut self) -> u32 {
        self.0.max().unwrap()
    }
}

/// Two maps from (key, id) to the size, with the keys kept by id so that the old ones can be removed.
#[derive(Default)]
pub(crate) struct TwoMaps {
    keys: Vec<Option<[u64; 2]>>,
    maps: [BTreeMap<(u64, u32), u64>; 2],
}

impl Order for TwoMaps {
    fn set(&mut self, id: u32, activation: Activation) {
        if id as usize >= self.keys.len() {
            self.keys.resize(id as usize + 1, None);
        }
        let (memory, time) = activation.rank().key(Tighter::Memory);
        let old = self.keys[id as usize].replace([memory, time]);
        for (order, key) in [memory, time].into_iter().enumerate() {
            if let Some(old) = old {
                self.maps[order].remove(&(old[order], !id));
            }
            self.maps[order].insert((key, !id), activation.size);
        }
    }

    fn remove(&mut self, id: u32) {
        if let Some(old) = self.keys[id as usize].take() {
            for (map, key) in self.maps.iter_mut().zip(old) {
                map.remove(&(key, !id));
            }
        }
    }

    fn max(&mut self) -> u32 {
        !self.maps[0].last_key_value().unwrap().0.1
    }
}

/// No order at all: importance / size by id, searched or sorted when the first is needed.
pub(crate) struct Quotients {
    by_id: Vec<f64>,
    ids: Vec<u32>,
}

impl Quotients {
    pub(crate) fn of(activations: &[Activation]) -> Self {
        Self { by_id: activations.iter().map(|a| a.quotient()).collect(), ids: (0..activations.len() as u32).collect() }
    }

    pub(crate) fn set(&mut self, id: u32, activation: Activation) {
        self.by_id[id as usize] = activation.quotient();
    }

    pub(crate) fn scan(&self) -> usize {
        let first =
            self.by_id.iter().enumerate().fold((0, f64::INFINITY), |first, (id, &quotient)| {
                if quotient < first.1 { (id, quotient) } else { first }
            });
        first.0
    }

    /// The ids in order, sorted from the order of ids.
    pub(crate) fn sort(&mut self) -> &[u32] {
        self.ids.clear();
        self.ids.extend(0..self.by_id.len() as u32);
        self.sort_kept()
    }

    /// The ids in order, sorted from the previous order.
    pub(crate) fn sort_kept(&mut self) -> &[u32] {
        let by_id = &self.by_id;
        self.ids.sort_unstable_by(|&a, &b| by_id[a as usize].total_cmp(&by_id[b as usize]));
        &self.ids
    }
}

/// The victims of one iteration without an order: quotients as f32 packed with ids, partitioned around the median until
/// the sizes on the victims' side reach the goal.
pub(crate) fn quickselect(activations: &[Activation], goal: u64, packed: &mut Vec<u64>) {
    packed.clear();
    let pack = |(id, a): (usize, &Activation)| u64::from((a.quotient() as f32).to_bits()) << 32 | id as u64;
    packed.extend(activations.iter().enumerate().map(pack));
    let mut left = goal;
    let mut range = &mut packed[..];
    while range.len() > 1 {
        let middle = range.len() / 2;
        range.select_nth_unstable(middle);
        let (low, high) = range.split_at_mut(middle);
        let size: u64 = low.iter().map(|&key| activations[key as u32 as usize].size).sum();
        if size >= left {
            range = low;
        } else {
            left -= size;
            range = high;
        }
    }
    black_box(range.first());
}
