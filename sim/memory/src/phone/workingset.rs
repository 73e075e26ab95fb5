//! Which evicted pages were worth keeping: shadow entries with the eviction clock (`mm/workingset.c` of Linux 5.10) or
//! with the generation that pages were evicted from (6.1), and the recent cost of refaults (`lru_note_cost`), which
//! shifts the balance between kinds.

use super::{ANON, FILE, LISTS, Lists, PhoneMemory, State, WORKINGSET};

#[derive(Clone, Debug, Default)]
pub(super) struct Workingset {
    /// Pages evicted or activated so far (`nonresident_age`): the eviction clock.
    pub(super) age: u64,
    /// Recent cost of reclaiming each kind, in pages.
    pub(super) cost: [u64; 2],
    /// Activations by refault at the end of the last reclaim, for each kind.
    pub(super) seen: [u64; 2],
}

impl PhoneMemory {
    /// Leaves a shadow entry for an extent whose pages are now free.
    pub(super) fn leave_shadow(&mut self, id: u32) {
        let kind = self.regions[self.extents.get(id).region as usize].kind();
        let generations = matches!(self.settings.lists, Lists::Generations { .. });
        let extent = self.extents.get_mut(id);
        extent.clock = if generations { self.generations.shadow(kind) } else { self.workingset.age };
        self.workingset.age += u64::from(extent.pages);
    }

    /// Evaluates the return of an evicted extent by its shadow: whether it goes to the active list immediately.
    ///
    /// It does if fewer pages were evicted and activated since than it competes with: if it could have displaced all of
    /// these, it would have stayed.
    pub(super) fn refault(&mut self, id: u32) -> bool {
        let extent = *self.extents.get(id);
        if !matches!(extent.state, State::Zram | State::Flash | State::Dropped) {
            return false;
        }
        let kind = self.regions[extent.region as usize].kind();
        let pages = u64::from(extent.pages);
        if matches!(self.settings.lists, Lists::Generations { .. }) {
            return self.refault_of_generation(id, kind, pages);
        }
        let refaults = [&mut self.counters.workingset_refault_anon, &mut self.counters.workingset_refault_file];
        *refaults[kind] += pages;
        let distance = self.workingset.age - extent.clock;
        if distance > self.competing(kind) {
            self.extents.get_mut(id).flags &= !WORKINGSET;
            return false;
        }
        self.workingset.age += pages;
        let activated = [&mut self.counters.workingset_activate_anon, &mut self.counters.workingset_activate_file];
        *activated[kind] += pages;
        if extent.flags & WORKINGSET != 0 {
            let restored = [&mut self.counters.workingset_restore_anon, &mut self.counters.workingset_restore_file];
            *restored[kind] += pages;
            self.note_cost(kind, pages);
        }
        true
    }

    /// With generations, pages that return this soon belonged to the working set, and nothing else
    /// counts (`lru_gen_refault`).
    fn refault_of_generation(&mut self, id: u32, kind: usize, pages: u64) -> bool {
        let extent = self.extents.get_mut(id);
        let tier = usize::from(extent.flags & WORKINGSET != 0);
        let recent = self.generations.is_recent(kind, extent.clock, tier, pages);
        extent.flags = if recent { extent.flags | WORKINGSET } else { extent.flags & !WORKINGSET };
        if recent {
            let counters = &mut self.counters;
            let counted = [
                [&mut counters.workingset_refault_anon, &mut counters.workingset_restore_anon],
                [&mut counters.workingset_refault_file, &mut counters.workingset_restore_file],
            ];
            counted.into_iter().nth(kind).into_iter().flatten().for_each(|counter| *counter += pages);
        }
        recent
    }

    /// The pages that a returning page of `kind` could have displaced: active ones, and the other kind's inactive ones.
    fn competing(&self, kind: usize) -> u64 {
        let all = [self.extents.kind_pages(ANON), self.extents.kind_pages(FILE)];
        let active = |kind: usize| self.extents.pages(kind * LISTS + 1);
        let file = if kind == FILE { active(FILE) } else { all[FILE] };
        let anon = if kind == FILE { all[ANON] } else { active(ANON) };
        // Without swap, anonymous pages cannot be displaced.
        file + if self.swap_is_full() { 0 } else { anon }
    }

    /// Records that reclaiming `kind` cost a write or a refault of `pages`; older costs fade with the size of the
    /// lists.
    pub(super) fn note_cost(&mut self, kind: usize, pages: u64) {
        self.workingset.cost[kind] += pages;
        let all = self.extents.kind_pages(ANON) + self.extents.kind_pages(FILE);
        if self.workingset.cost[ANON] + self.workingset.cost[FILE] > all / 4 {
            self.workingset.cost[ANON] /= 2;
            self.workingset.cost[FILE] /= 2;
        }
    }

    /// Records the number of activations by refault, so that the next reclaim detects thrashing.
    pub(super) fn snapshot_refaults(&mut self) {
        self.workingset.seen = self.activations();
    }

    pub(super) fn activations(&self) -> [u64; 2] {
        [self.counters.workingset_activate_anon, self.counters.workingset_activate_file]
    }
}

#[cfg(test)]
mod tests {
    use haversack_devices::system::{PageMix, Watermarks};
    use haversack_devices::units::{Bytes, Factor, Nanos};

    use super::super::{Access, Backing, Costs, Flash, PAGE, PhoneMemory, Settings, Transfer};
    use super::*;

    /// A flash without any reads.
    struct Unread;

    impl Flash for Unread {
        fn read(&mut self, _: Nanos, _: Bytes, _: u64) -> Transfer {
            Transfer(0)
        }

        fn write(&mut self, _: Nanos, _: Bytes) -> Transfer {
            Transfer(0)
        }

        fn advance(&mut self, _: Nanos) -> Option<(Transfer, Nanos)> {
            None
        }
    }

    #[test]
    fn the_return_of_pages_counts_against_their_kind_only_where_they_were_active() {
        // 1,200 extents of a page, touched cyclically in 800 with ZRAM behind: the first ones are evicted.
        let none = Watermarks { min: Bytes::ZERO, low: Bytes::ZERO, high: Bytes::ZERO };
        let settings =
            Settings { extent: Bytes(PAGE), zram: Bytes(2000 * PAGE), ..Settings::new(Bytes(800 * PAGE), none) };
        let mut phone = PhoneMemory::new(settings, Costs::default(), Costs::default()).unwrap();
        let process = phone.spawn("app", 0).unwrap();
        let pages = Backing::Anonymous(PageMix::all(Factor(2.0)));
        let regions: Vec<_> = (0..1200).map(|_| phone.map(process, Bytes(PAGE), pages).unwrap()).collect();
        for &region in regions.iter().chain(&regions) {
            phone.touch(region, Access::Write, Nanos::ZERO, &mut Unread).unwrap();
        }
        // Room for both, so that nothing else is evicted.
        for &region in &regions[1190..] {
            phone.release(region).unwrap();
        }
        let before = (phone.workingset.cost, phone.counters.workingset_refault_anon);
        phone.touch(regions[0], Access::Read, Nanos::ZERO, &mut Unread).unwrap();
        assert_eq!((phone.workingset.cost, phone.counters.workingset_refault_anon), (before.0, before.1 + 1));
        let active = phone.regions[phone.region(regions[1]).unwrap()].extents[0];
        phone.extents.get_mut(active).flags |= WORKINGSET;
        phone.extents.get_mut(active).clock = phone.workingset.age;
        phone.touch(regions[1], Access::Read, Nanos::ZERO, &mut Unread).unwrap();
        assert_eq!(phone.counters.workingset_restore_anon, 1);
        assert_ne!(phone.workingset.cost, before.0);
    }
}
