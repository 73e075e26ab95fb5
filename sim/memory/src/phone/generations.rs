//! The multi-generation LRU (`lru_gen` of Linux 6.1): generations of each kind of page, the ageing walk that finds out
//! which pages are young, and eviction from the oldest generation.
//!
//! Left out: tiers of file pages read through descriptors, Bloom filters of the page-table walk, control groups.

use haversack_devices::units::Nanos;

use super::extents::{Extents, LISTS, State};
use super::reclaim::{Look, Step};
use super::{ANON, FILE, Flash, Lists, PhoneMemory};

/// Generations that are not evicted (`MIN_NR_GENS`): what is young and what was young in the last walk.
const KEPT: u64 = 2;
/// Refaults that are too few to weigh (`MIN_LRU_BATCH`).
const BATCH: u64 = 64;

#[derive(Clone, Debug)]
pub(super) struct Generations {
    count: u64,
    min_ttl: Nanos,
    /// The number of the youngest generation, of both kinds.
    newest: u64,
    /// The number of the oldest, of each kind.
    oldest: [u64; 2],
    /// When each generation began.
    birth: [Nanos; LISTS],
    control: [Control; 2],
}

/// How often evicted pages of a kind came back: the process variable of the kernel's controller.
#[derive(Clone, Copy, Debug, Default)]
struct Control {
    refaulted: u64,
    evicted: u64,
    average: [u64; 2],
}

impl Control {
    fn totals(&self) -> (u64, u64) {
        (self.average[0] + self.refaulted, self.average[1] + self.evicted)
    }

    fn fold(&mut self) {
        let (refaulted, evicted) = self.totals();
        *self = Self { average: [refaulted / 2, evicted / 2], ..Self::default() };
    }
}

impl Generations {
    pub(super) fn new(lists: Lists) -> Self {
        let (count, min_ttl) = match lists {
            Lists::Generations { count, min_ttl } => (u64::from(count), min_ttl),
            Lists::Two => (4, Nanos::ZERO),
        };
        let birth = [Nanos::ZERO; LISTS];
        // The kernel starts with MIN_NR_GENS + 1 generations.
        Self { count, min_ttl, newest: KEPT, oldest: [0; 2], birth, control: [Control::default(); 2] }
    }

    fn list(kind: usize, number: u64) -> usize {
        kind * LISTS + (number % LISTS as u64) as usize
    }

    /// The list of the youngest generation of a kind.
    pub(super) fn youngest(&self, kind: usize) -> usize {
        Self::list(kind, self.newest)
    }

    /// Pages of a kind in the two youngest generations, which the kernel counts as active.
    pub(super) fn active(&self, kind: usize, extents: &Extents) -> u64 {
        (0..KEPT).map(|back| extents.pages(Self::list(kind, self.newest - back))).sum()
    }

    /// Whether the oldest generation of file pages is younger than what must fit.
    pub(super) fn too_young(&self, now: Nanos) -> bool {
        let birth = self.birth[(self.oldest[FILE] % LISTS as u64) as usize];
        self.min_ttl > Nanos::ZERO && birth + self.min_ttl > now
    }

    pub(super) fn note_refault(&mut self, kind: usize, pages: u64) {
        self.control[kind].refaulted += pages;
    }

    pub(super) fn note_eviction(&mut self, kind: usize, pages: u64) {
        self.control[kind].evicted += pages;
    }

    /// The kind to evict from (`get_type_to_scan`): that with the older generation; of the same age, that whose pages
    /// came back less often, weighed by swappiness.
    fn kind(&self, swappiness: u64, swap: bool) -> usize {
        if !swap || swappiness == 0 {
            return FILE;
        }
        if self.oldest[ANON] != self.oldest[FILE] {
            return if self.oldest[FILE] < self.oldest[ANON] { FILE } else { ANON };
        }
        let (set, process) = (self.control[ANON].totals(), self.control[FILE].totals());
        let gain = [swappiness, 200 - swappiness].map(u128::from);
        let file = process.0 < BATCH
            || u128::from(process.0) * u128::from(set.1 + BATCH) * gain[0]
                <= u128::from(set.0 + 1) * u128::from(process.1) * gain[1];
        if file { FILE } else { ANON }
    }

    fn has_room(&self, kind: usize) -> bool {
        self.oldest[kind] + KEPT <= self.newest
    }
}

impl PhoneMemory {
    /// Looks at the oldest extent, ageing first where too few generations are left.
    pub(super) fn scan_oldest(&mut self, look: Look, flash: &mut dyn Flash) -> Option<Step> {
        let swap = !self.swap_is_full() && self.settings.swappiness > 0;
        if self.extents.kind_pages(FILE) == 0 && !(swap && self.extents.kind_pages(ANON) > 0) {
            return None;
        }
        self.skip_empty(swap);
        if self.should_age(swap) {
            return Some(self.age(look));
        }
        let first = self.generations.kind(u64::from(self.settings.swappiness), swap);
        let kinds = [first, 1 - first];
        let id = kinds.into_iter().filter(|&kind| kind == FILE || swap).find_map(|kind| {
            let list = Generations::list(kind, self.generations.oldest[kind]);
            self.extents.tail(list).filter(|_| self.generations.has_room(kind)).map(|id| (id, kind))
        });
        let Some((id, kind)) = id else { return Some(self.age(look)) };
        if !self.test_and_clear_young(id) {
            return Some(self.evict(id, look, flash));
        }
        let pages = u64::from(self.extents.get(id).pages);
        self.count_scan(look.who, pages);
        self.extents.unlink(id);
        self.extents.push_head(id, self.generations.youngest(kind));
        Some(look.spared(pages))
    }

    /// Closes generations that have run empty (`try_to_inc_min_seq`). With swap both kinds keep pace, so that their
    /// oldest stay comparable.
    fn skip_empty(&mut self, swap: bool) {
        let generations = &mut self.generations;
        let mut oldest = generations.oldest;
        for kind in [ANON, FILE] {
            while oldest[kind] + KEPT <= generations.newest
                && self.extents.tail(Generations::list(kind, oldest[kind])).is_none()
            {
                oldest[kind] += 1;
            }
        }
        if swap {
            oldest[ANON] = oldest[ANON].min(oldest[FILE]).max(generations.oldest[ANON]);
            oldest[FILE] = oldest[ANON].max(generations.oldest[FILE]);
        }
        for kind in [ANON, FILE] {
            if oldest[kind] > generations.oldest[kind] {
                generations.oldest[kind] = oldest[kind];
                generations.control[kind].fold();
            }
        }
    }

    /// `should_run_aging`: as lazily as generations of even size allow.
    fn should_age(&self, swap: bool) -> bool {
        let generations = &self.generations;
        let kinds = if swap { ANON..=FILE } else { FILE..=FILE };
        let Some(oldest) = kinds.clone().map(|kind| generations.oldest[kind]).min() else { return false };
        if oldest + KEPT > generations.newest {
            return true;
        }
        if oldest + KEPT < generations.newest {
            return false;
        }
        let pages = |number: u64| -> u64 {
            kinds.clone().map(|kind| self.extents.pages(Generations::list(kind, number))).sum()
        };
        let total: u64 = kinds.clone().map(|kind| self.extents.kind_pages(kind)).sum();
        pages(generations.newest) * KEPT > total || pages(oldest) * (KEPT + 2) < total
    }

    /// Walks all page tables: what is young moves to the youngest generation, and the next one begins.
    fn age(&mut self, Look { costs, at, .. }: Look) -> Step {
        let mut walked = 0;
        for index in 0..self.regions.len() {
            let kind = self.regions[index].kind();
            if kind > FILE || self.regions[index].mapped == 0 {
                continue;
            }
            let list = self.generations.youngest(kind);
            for place in 0..self.regions[index].extents.len() {
                let id = self.regions[index].extents[place];
                let extent = self.extents.get(id);
                if extent.state != State::Mapped {
                    continue;
                }
                walked += u64::from(extent.pages);
                if self.test_and_clear_young(id) {
                    self.extents.unlink(id);
                    self.extents.push_head(id, list);
                }
            }
        }
        for kind in [ANON, FILE] {
            if self.generations.newest - self.generations.oldest[kind] + 1 >= self.generations.count {
                self.merge_oldest(kind);
            }
        }
        let generations = &mut self.generations;
        generations.newest += 1;
        generations.birth[(generations.newest % LISTS as u64) as usize] = at;
        Step { running: costs.walk * walked, scanned: walked.max(1), ..Step::default() }
    }

    /// The oldest generation joins the one after it, behind all that is there.
    fn merge_oldest(&mut self, kind: usize) {
        let oldest = self.generations.oldest[kind];
        let (from, to) = (Generations::list(kind, oldest), Generations::list(kind, oldest + 1));
        while let Some(id) = self.extents.head(from) {
            self.extents.unlink(id);
            self.extents.push_tail(id, to);
        }
        self.generations.oldest[kind] += 1;
        self.generations.control[kind].fold();
    }
}
