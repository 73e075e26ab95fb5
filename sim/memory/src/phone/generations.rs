//! The multi-generation LRU (`lru_gen` of Linux 6.1): generations for each kind of page, the ageing walk that finds
//! young pages, and eviction from the oldest generation.
//!
//! Ageing is lazy: with more than three generations eviction continues without it, with two it has to wait for it.
//! Therefore there are at most four, and a larger limit changes nothing; with three, each walk merges the two oldest,
//! whose pages lose their order. A page that returns while the generation that it was evicted from is still the oldest
//! belonged to the working set, and enters the second tier: while that tier's pages return more often than the first's,
//! they move to the next generation instead of being evicted.
//!
//! Compared with the kernel's sources as they changed from 6.1 to 6.6: the controller's error and its averages
//! (`positive_ctrl_err`, `reset_ctrl_pos`), which kind is scanned (`get_type_to_scan` of 6.1, by the first tiers), when
//! ageing runs (`should_run_aging`), and which refaults count (`lru_gen_refault`, those of evictions from the
//! generation that is still the oldest).
//!
//! Left out: deferring the ageing at the first priority of a scan, and ageing by kswapd before it reclaims; higher
//! tiers, of file pages read through descriptors; Bloom filters of the page-table walk and the look around a page that
//! is found young; control groups.

use haversack_devices::Nanos;

use super::{ANON, Extents, FILE, Flash, LISTS, Lists, Look, PhoneMemory, State, Step, WORKINGSET};

/// Generations that are never evicted (`MIN_NR_GENS`): the young one, and the one that was young in the previous walk.
const KEPT: u64 = 2;
/// The smallest number of refaults with an effect (`MIN_LRU_BATCH`).
const BATCH: u64 = 64;

#[derive(Clone, Debug)]
pub(super) struct Generations {
    count: u64,
    min_ttl: Nanos,
    /// The number of the youngest generation, of both kinds.
    newest: u64,
    /// The number of the oldest generation, for each kind.
    oldest: [u64; 2],
    /// The time at which each generation began.
    birth: [Nanos; LISTS],
    control: [Control; 2],
}

/// How often evicted pages of a kind returned, by tier: the process variables of the kernel's controller.
#[derive(Clone, Copy, Debug, Default)]
struct Control {
    refaulted: [u64; 2],
    evicted: [u64; 2],
    /// Pages of the second tier that were spared.
    protected: u64,
    /// Half of the previous value, and a quarter of the one before.
    average: [[u64; 2]; 2],
}

impl Control {
    /// Pages of a tier that returned, and all that were evicted or spared.
    fn totals(&self, tier: usize) -> (u64, u64) {
        let spared = if tier > 0 { self.protected } else { 0 };
        (self.average[0][tier] + self.refaulted[tier], self.average[1][tier] + self.evicted[tier] + spared)
    }

    fn fold(&mut self) {
        let [(first, evicted_first), (second, evicted_second)] = [0, 1].map(|tier| self.totals(tier));
        let average = [[first / 2, second / 2], [evicted_first / 2, evicted_second / 2]];
        *self = Self { average, ..Self::default() };
    }
}

/// Whether pages of `process` returned no more often than those of the set point, each weighed by its
/// gain (`positive_ctrl_err`).
fn returns_less(set: (u64, u64), set_gain: u64, process: (u64, u64), gain: u64) -> bool {
    process.0 < BATCH
        || u128::from(process.0) * u128::from(set.1 + BATCH) * u128::from(set_gain)
            <= u128::from(set.0 + 1) * u128::from(process.1) * u128::from(gain)
}

/// The next pages to evict.
#[derive(Clone, Copy, Debug)]
struct Choice {
    kind: usize,
    /// Whether to include its second tier.
    second: bool,
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

    /// Whether the oldest generation of file pages is younger than the working set that must fit.
    pub(super) fn too_young(&self, now: Nanos) -> bool {
        let birth = self.birth[(self.oldest[FILE] % LISTS as u64) as usize];
        self.min_ttl > Nanos::ZERO && birth + self.min_ttl > now
    }

    pub(super) fn note_eviction(&mut self, kind: usize, tier: usize, pages: u64) {
        self.control[kind].evicted[tier] += pages;
    }

    /// The contents of a shadow entry for an evicted page of a kind.
    pub(super) fn shadow(&self, kind: usize) -> u64 {
        self.oldest[kind]
    }

    /// Whether a returning page was evicted from the generation that is still the oldest; only then it counts.
    pub(super) fn is_recent(&mut self, kind: usize, shadow: u64, tier: usize, pages: u64) -> bool {
        let recent = shadow == self.oldest[kind];
        if recent {
            self.control[kind].refaulted[tier] += pages;
        }
        recent
    }

    /// Chooses what to evict (`isolate_folios`): the kind with the older generation or, at equal age, the kind whose
    /// pages returned less often, weighed by swappiness.
    fn choose(&self, swappiness: u64, swap: bool) -> Choice {
        if !swap || swappiness == 0 {
            return self.of(FILE);
        }
        if self.oldest[ANON] != self.oldest[FILE] {
            return self.of(if self.oldest[FILE] < self.oldest[ANON] { FILE } else { ANON });
        }
        if swappiness == 1 || swappiness == 200 {
            return self.of(if swappiness == 1 { FILE } else { ANON });
        }
        let gain = [swappiness, 200 - swappiness];
        let first = |kind: usize| self.control[kind].totals(0);
        let kind = if returns_less(first(ANON), gain[ANON], first(FILE), gain[FILE]) { FILE } else { ANON };
        let second = self.control[kind].totals(1);
        Choice { kind, second: returns_less(first(1 - kind), gain[1 - kind], second, gain[kind]) }
    }

    /// The choice for a single kind (`get_tier_idx`): including the second tier unless that returns twice as often.
    fn of(&self, kind: usize) -> Choice {
        let control = &self.control[kind];
        Choice { kind, second: returns_less(control.totals(0), 1, control.totals(1), 2) }
    }

    fn has_room(&self, kind: usize) -> bool {
        self.oldest[kind] + KEPT <= self.newest
    }
}

impl PhoneMemory {
    /// Scans the oldest extent, ageing first if too few generations are left.
    pub(super) fn scan_oldest(&mut self, look: Look, flash: &mut dyn Flash) -> Option<Step> {
        let swap = !self.swap_is_full() && self.settings.swappiness > 0;
        if self.extents.kind_pages(FILE) == 0 && !(swap && self.extents.kind_pages(ANON) > 0) {
            return None;
        }
        self.skip_empty(swap);
        if self.should_age(swap) {
            return Some(self.age(look));
        }
        let first = self.generations.choose(u64::from(self.settings.swappiness), swap);
        let choices = [first, self.generations.of(1 - first.kind)];
        let tail = |choice: &Choice| {
            let list = Generations::list(choice.kind, self.generations.oldest[choice.kind]);
            self.extents.tail(list).filter(|_| self.generations.has_room(choice.kind)).map(|id| (id, *choice))
        };
        let found = choices.iter().filter(|choice| choice.kind == FILE || swap).find_map(tail);
        let Some((id, Choice { kind, second })) = found else { return Some(self.age(look)) };
        if !second && self.extents.get(id).flags & WORKINGSET != 0 {
            return Some(self.protect(id, kind, look));
        }
        if !self.test_and_clear_young(id) {
            return Some(self.evict(id, look, flash));
        }
        let pages = u64::from(self.extents.get(id).pages);
        self.count_scan(look.who, pages);
        self.extents.move_to_head(id, self.generations.youngest(kind));
        Some(look.spared(pages))
    }

    /// Moves a page of the second tier to the next generation, at the end that is scanned first.
    fn protect(&mut self, id: u32, kind: usize, look: Look) -> Step {
        let pages = u64::from(self.extents.get(id).pages);
        self.count_scan(look.who, pages);
        self.extents.unlink(id);
        self.extents.push_tail(id, Generations::list(kind, self.generations.oldest[kind] + 1));
        self.generations.control[kind].protected += pages;
        let activated = [&mut self.counters.workingset_activate_anon, &mut self.counters.workingset_activate_file];
        *activated[kind] += pages;
        look.spared(pages)
    }

    /// Closes generations that have become empty (`try_to_inc_min_seq`). With swap, both kinds advance together, so
    /// that their oldest stay comparable.
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

    /// Walks all page tables: moves young pages to the youngest generation, and starts the next one.
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
                    self.extents.move_to_head(id, list);
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

    /// Merges the oldest generation into the next, behind all its pages.
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
