//! Reclaim: the choice of the next list to scan, and the handling of the extent at its tail.
//!
//! After `mm/vmscan.c` of Linux 5.10: `get_scan_count` (the balance of kinds), `shrink_active_list`,
//! `shrink_inactive_list` and `page_check_references` (second chance). One call scans one extent.

use std::collections::VecDeque;

use haversack_devices::Nanos;

use super::extents::{DIRTY, LISTS, NONE, REFERENCED, State, WORKINGSET};
use super::settings::PAGE;
use super::{ANON, Backing, Costs, FILE, Flash, Lists, PhoneMemory, Transfer};

/// Pages that reclaim takes in one batch (`SWAP_CLUSTER_MAX`).
pub(super) const CLUSTER: u64 = 32;
/// The first pass over a list scans a 2¹²th of it (`DEF_PRIORITY`): shorter lists do not count.
const PRIORITY: u32 = 12;

/// The number of fruitless scans of all memory before reclaim gives up. Three find everything reclaimable (to
/// deactivate, to find young pages, to evict; generations take a walk each), but touches continue meanwhile.
pub(super) const PATIENCE: u64 = 8;

/// An extent being written to flash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub(super) transfer: Transfer,
    pub(super) id: u32,
    /// The extent's clock; if it has changed, the extent was refaulted or freed.
    pub(super) number: u64,
}

/// Writes to flash in progress, in the order of their start.
#[derive(Clone, Debug, Default)]
pub(super) struct Writeback {
    pub(super) queue: VecDeque<Write>,
    /// Their pages that have not been refaulted since.
    pub(super) pages: u64,
}

/// The reclaiming party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reclaimer {
    Kswapd,
    Direct,
}

/// The context of a scan of one extent: the reclaimer, its costs, and the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) who: Reclaimer,
    pub(super) costs: Costs,
    pub(super) at: Nanos,
}

impl Look {
    /// The step's result if the `pages` of the extent stay.
    pub(super) fn spared(self, pages: u64) -> Step {
        Step { running: self.costs.scan * pages, scanned: pages, ..Step::default() }
    }
}

/// The result of scanning one extent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    /// Time on the reclaimer's core.
    pub(super) running: Nanos,
    /// Pages scanned; zero if there were none.
    pub(super) scanned: u64,
    /// Pages freed, or being written to flash.
    pub(super) reclaimed: u64,
    /// The write queue is full: nothing was done, wait until a write ends.
    pub(super) congested: bool,
}

/// Distributes scans over the lists in proportion to their weights, a cluster at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Picker {
    /// Pages due from each list, in 2²⁰ths.
    owed: [i64; 4],
    list: usize,
    left: u64,
}

impl PhoneMemory {
    /// Scans the next extent.
    pub(super) fn reclaim_step(&mut self, look: Look, flash: &mut dyn Flash) -> Option<Step> {
        match self.settings.lists {
            Lists::Two => {
                let list = self.pick()?;
                let id = self.extents.tail(list)?;
                Some(if list % LISTS == 1 {
                    self.deactivate(id, list, look)
                } else {
                    self.scan_inactive(id, list, look, flash)
                })
            }
            Lists::Generations { .. } => self.scan_oldest(look, flash),
        }
    }

    /// The list to scan. A list is scanned for a whole cluster once it is chosen.
    fn pick(&mut self) -> Option<usize> {
        if self.picker.left > 0
            && let Some(id) = self.extents.tail(self.picker.list)
        {
            let pages = u64::from(self.extents.get(id).pages);
            self.picker.left = self.picker.left.saturating_sub(pages);
            return Some(self.picker.list);
        }
        let weights = self.weights();
        let sum: u64 = weights.iter().sum();
        if sum == 0 {
            return None;
        }
        let chunk = CLUSTER.max(self.settings.extent_pages()) << 20;
        for (owed, weight) in self.picker.owed.iter_mut().zip(weights) {
            *owed = match weight {
                // Lists that are not to be scanned accumulate nothing.
                0 => 0,
                all if all == sum => *owed + chunk as i64,
                _ => *owed + (u128::from(chunk) * u128::from(weight) / u128::from(sum)) as i64,
            };
        }
        let (at, _) = (0..4)
            .filter(|&at| weights[at] > 0)
            .map(|at| (at, self.picker.owed[at]))
            .max_by_key(|&(at, owed)| (owed, std::cmp::Reverse(at)))?;
        self.picker.owed[at] -= chunk as i64;
        let list = at / 2 * LISTS + at % 2;
        let pages = u64::from(self.extents.get(self.extents.tail(list)?).pages);
        (self.picker.list, self.picker.left) = (list, (chunk >> 20).saturating_sub(pages));
        Some(list)
    }

    /// Weights for scanning inactive and active anonymous, inactive and active file pages: the size of a list
    /// times the share of its kind.
    ///
    /// Shares are at most 600,000 and phones have fewer than 2⁴⁰ pages.
    fn weights(&self) -> [u64; 4] {
        let pages = |kind: usize, active: usize| self.extents.pages(kind * LISTS + active);
        let thrashes = self.activations();
        let deactivate =
            [ANON, FILE].map(|kind| thrashes[kind] != self.workingset.seen[kind] || self.inactive_is_low(kind));
        let long = |kind: usize| self.extents.pages(kind * LISTS) >> PRIORITY > 0;
        // `cache_trim_mode`, which vendors may omit.
        let trim = !self.settings.balanced && long(FILE) && !deactivate[FILE];
        let tiny = self.free + self.extents.kind_pages(FILE) * PAGE <= self.settings.watermarks.high.0;
        let shares = if self.swap_is_full() {
            [0, 1]
        } else if tiny && !deactivate[ANON] && long(ANON) {
            [1, 0]
        } else if trim {
            // Large numbers of unused file pages are reclaimed first.
            [0, 1]
        } else {
            self.balance()
        };
        let weigh = |shares: [u64; 2]| {
            let list = |at: usize| {
                let (kind, active) = (at / 2, at % 2);
                if active == 1 && !deactivate[kind] { 0 } else { shares[kind] * pages(kind, active) }
            };
            [list(0), list(1), list(2), list(3)]
        };
        let weights = weigh(shares);
        let some = |weights: &[u64; 4]| weights.iter().any(|&weight| weight > 0);
        // The last resort of a scan (priority 0): everything reclaimable, with equal weights.
        if some(&weights) || self.swap_is_full() || self.settings.swappiness == 0 { weights } else { weigh([1, 1]) }
    }

    /// The shares of the two kinds: swappiness against the recent cost of each kind's refaults.
    fn balance(&self) -> [u64; 2] {
        let [anon, file] = self.workingset.cost;
        let total = anon + file;
        let (anon_cost, file_cost) = (total + anon, total + file);
        let total = anon_cost + file_cost;
        let swappiness = u64::from(self.settings.swappiness);
        // In thousandths, since the quotient is of the order of the swappiness.
        let share = |weight: u64, cost: u64| 1000 * weight * (total + 1) / (cost + 1);
        [share(swappiness, anon_cost), share(200 - swappiness, file_cost)]
    }

    /// The larger memory is, the smaller a part of it the inactive list has to be: √(10 GiB) to 1.
    fn inactive_is_low(&self, kind: usize) -> bool {
        let (inactive, active) = (self.extents.pages(kind * LISTS), self.extents.pages(kind * LISTS + 1));
        let gigabytes = ((inactive + active) * PAGE) >> 30;
        // Phones have less than 2³² GiB.
        let ratio = if gigabytes > 0 { (10 * gigabytes as u32).isqrt() } else { 1 };
        inactive * u64::from(ratio) < active
    }

    /// Whether swap lacks room for another anonymous extent.
    pub(super) fn swap_is_full(&self) -> bool {
        let pages = self.settings.extent_pages();
        !self.swap.zram.has_room(pages) && !self.swap.partition.has_room(pages)
    }

    /// Whether an extent was used since the last scan; clears the mark.
    pub(super) fn test_and_clear_young(&mut self, id: u32) -> bool {
        let stamp = self.stamp;
        let extent = self.extents.get_mut(id);
        if extent.state != State::Mapped {
            return false;
        }
        let (region, place) = (&mut self.regions[extent.region as usize], extent.place as usize);
        let young = region.young.contains(place) || region.touched > extent.clock;
        region.young.remove(place);
        extent.clock = stamp;
        young
    }

    /// `shrink_active_list`: the tail moves to the inactive list, used or not; used code goes back to
    /// the head of the active list.
    fn deactivate(&mut self, id: u32, list: usize, look: Look) -> Step {
        let stays = self.test_and_clear_young(id) && self.is_code(id);
        self.extents.move_to_head(id, if stays { list } else { list - 1 });
        let extent = self.extents.get_mut(id);
        let pages = u64::from(extent.pages);
        self.counters.pgrefill += pages;
        if !stays {
            extent.flags |= WORKINGSET;
            self.counters.pgdeactivate += pages;
        }
        look.spared(pages)
    }

    fn is_code(&self, id: u32) -> bool {
        self.regions[self.extents.get(id).region as usize].backing == Backing::Code
    }

    /// `shrink_inactive_list`: an extent used once stays; used twice, or code, it becomes active; otherwise it is
    /// evicted (`page_check_references`).
    fn scan_inactive(&mut self, id: u32, list: usize, look: Look, flash: &mut dyn Flash) -> Step {
        if !self.test_and_clear_young(id) {
            return self.evict(id, look, flash);
        }
        let code = self.is_code(id);
        let extent = self.extents.get_mut(id);
        let activate = code || extent.flags & REFERENCED != 0;
        extent.flags |= REFERENCED;
        let pages = u64::from(extent.pages);
        self.count_scan(look.who, pages);
        self.extents.move_to_head(id, list + usize::from(activate));
        if activate {
            self.counters.pgactivate += pages;
            self.workingset.age += pages;
        }
        look.spared(pages)
    }

    pub(super) fn count_scan(&mut self, who: Reclaimer, pages: u64) {
        match who {
            Reclaimer::Kswapd => self.counters.pgscan_kswapd += pages,
            Reclaimer::Direct => self.counters.pgscan_direct += pages,
        }
    }

    fn count_steal(&mut self, who: Reclaimer, kind: usize, pages: u64) {
        match who {
            Reclaimer::Kswapd => self.counters.pgsteal_kswapd += pages,
            Reclaimer::Direct => self.counters.pgsteal_direct += pages,
        }
        match kind {
            ANON => self.counters.pgsteal_anon += pages,
            _ => self.counters.pgsteal_file += pages,
        }
    }

    /// Evicts an unused extent: dropped, compressed or written to flash. Without room for it, it goes
    /// back to the head, as active.
    pub(super) fn evict(&mut self, id: u32, look: Look, flash: &mut dyn Flash) -> Step {
        let Look { who, costs, at } = look;
        let extent = *self.extents.get(id);
        let pages = u64::from(extent.pages);
        let kind = self.regions[extent.region as usize].kind();
        let to_zram = kind == ANON && extent.slot == NONE && self.swap.zram.has_room(pages);
        let to_flash = !to_zram
            && if kind == ANON {
                extent.slot == NONE && self.swap.partition.has_room(pages)
            } else {
                extent.flags & DIRTY != 0
            };
        if to_flash && self.is_congested(pages) {
            return Step { congested: true, ..Step::default() };
        }
        self.count_scan(who, pages);
        let mut step = look.spared(pages);
        let list = extent.list as usize;
        if kind == ANON && extent.slot == NONE && !to_zram && !to_flash {
            self.extents.move_to_head(id, self.keep_list(list));
            return step;
        }
        step.reclaimed = pages;
        step.running += costs.unmap * pages;
        self.extents.unlink(id);
        if extent.state == State::Mapped {
            self.unmap(id);
            if kind == ANON {
                let owner = self.regions[extent.region as usize].process as usize;
                self.processes[owner].swapped += pages;
            }
        }
        self.extents.get_mut(id).flags &= !REFERENCED;
        self.count_steal(who, kind, pages);
        self.generations.note_eviction(kind, usize::from(extent.flags & WORKINGSET != 0), pages);
        if to_flash {
            step.running += costs.submit * pages;
            self.write_out(id, kind, at, flash);
            return step;
        }
        self.forget_resident(id);
        if to_zram {
            let mix = self.regions[extent.region as usize].mix();
            step.running += mix.map_or(costs.compress, |mix| mix.store(&costs)) * pages;
            self.enter_zram(id);
        }
        let state = match kind {
            ANON if to_zram => State::Zram,
            ANON => State::Flash,
            _ => State::Dropped,
        };
        self.extents.get_mut(id).state = state;
        self.leave_shadow(id);
        step
    }

    /// The list for an extent that cannot be evicted: the active list, or the youngest generation.
    fn keep_list(&self, list: usize) -> usize {
        match self.settings.lists {
            Lists::Two => list | 1,
            Lists::Generations { .. } => self.generations.youngest(list / LISTS),
        }
    }

    fn enter_zram(&mut self, id: u32) {
        let extent = self.extents.get(id);
        let pages = u64::from(extent.pages);
        let bytes = self.regions[extent.region as usize].compressed(pages);
        self.swap.zram.stored += pages;
        self.swap.zram.dram += bytes;
        self.free -= bytes;
        self.counters.pswpout += pages;
        self.counters.zram_out += pages;
        self.note_cost(ANON, pages);
    }

    /// Whether the write queue is too full for `pages` more.
    fn is_congested(&self, pages: u64) -> bool {
        !self.writeback.queue.is_empty() && (self.writeback.pages + pages) * PAGE > self.settings.write_queue.0
    }

    /// Starts to write an extent to flash; its pages are free once they are written.
    fn write_out(&mut self, id: u32, kind: usize, at: Nanos, flash: &mut dyn Flash) {
        let pages = u64::from(self.extents.get(id).pages);
        let slot = if kind == ANON { self.swap.partition.take(id, pages) } else { NONE };
        let transfer = flash.write(at, haversack_devices::units::Bytes(pages * PAGE));
        self.stamp += 1;
        let number = self.stamp;
        let extent = self.extents.get_mut(id);
        (extent.state, extent.clock, extent.slot) = (State::Writeback, number, slot);
        extent.flags &= !DIRTY;
        self.writeback.queue.push_back(Write { transfer, id, number });
        self.writeback.pages += pages;
        match kind {
            ANON => self.counters.pswpout += pages,
            _ => self.counters.file_out += pages,
        }
        self.note_cost(if kind == ANON { ANON } else { FILE }, pages);
    }
}
