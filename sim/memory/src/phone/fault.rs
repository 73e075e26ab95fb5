//! Faults, step by step: the memory that they need and the direct reclaim for it, then bringing in the page.

use std::ops::Range;

use haversack_devices::{Bytes, Nanos, ensure};

use super::swap::Swap;
use super::{
    ANON, Access, CLUSTER, DIRTY, Doing, FILE, Flash, LISTS, Lists, Look, PAGE, PATIENCE, PINNED, PhoneError,
    PhoneMemory, Reclaimer, State, Touch, WORKINGSET,
};

/// An actor's progress with the extent that it touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fault {
    /// Not started.
    #[default]
    None,
    /// It allocates memory for the extent.
    Claims,
    /// It reclaims memory itself: pages reclaimed, and pages scanned since without success.
    Reclaims { reclaimed: u64, fruitless: u64 },
    /// Its work is done; it is about to read `pages` pages in `requests` requests.
    Reads { pages: u64, requests: u64, stalled: bool },
    /// Its pages have been read.
    Done,
}

/// The result of a step of a fault.
enum Step {
    /// The next step follows immediately.
    Next,
    /// The actor waits.
    Waits,
}

impl PhoneMemory {
    /// Touches the actor's parts until it has to wait; returns whether all were touched.
    pub(super) fn go_on(&mut self, actor: u32, flash: &mut dyn Flash) -> Result<bool, PhoneError> {
        loop {
            let known = self.actors.get(actor);
            let (fault, stall) = (known.fault, known.stall);
            let Some(Touch { region, places, access, whole }) = known.touches.front().cloned() else { return Ok(true) };
            let Ok(index) = self.region(region) else { return Err(PhoneError::Killed(stall)) };
            // The region may have shrunk meanwhile.
            let end = places.end.min(self.regions[index].extents.len());
            if fault == Fault::None {
                let all = whole && self.note_whole(index, access);
                let place = if all { end } else { self.touch_resident(index, places.start..end, access) };
                let known = self.actors.get_mut(actor);
                match known.touches.front_mut() {
                    Some(touch) if place < end => {
                        (touch.places.start, touch.whole) = (place, false);
                        known.fault = Fault::Claims;
                        let id = self.regions[index].extents[place];
                        self.counters.pgfault += u64::from(self.extents.get(id).pages);
                    }
                    _ => drop(known.touches.pop_front()),
                }
                continue;
            }
            let place = places.start;
            let id = self.regions[index].extents.get(place).copied();
            let step = match (id, fault) {
                (None, _) => self.pass_over(actor, fault),
                (Some(_), Fault::None) => Step::Next,
                (Some(id), Fault::Claims) => self.claim(actor, id, index, place, flash)?,
                (Some(id), Fault::Reclaims { reclaimed, fruitless }) => {
                    let pages = u64::from(self.extents.get(id).pages);
                    self.reclaim_directly(actor, pages, [reclaimed, fruitless], flash)?
                }
                (Some(_), Fault::Reads { pages, requests, stalled }) => {
                    self.read(actor, pages, requests, stalled, flash)
                }
                (Some(id), Fault::Done) => self.end_fault(actor, id, access),
            };
            if matches!(step, Step::Waits) {
                return Ok(false);
            }
        }
    }

    /// Whether all of a region is mapped and the access changes no extent's state. If so, records the touch by a single
    /// stamp of the region, which a scan compares with the extent's own.
    fn note_whole(&mut self, index: usize, access: Access) -> bool {
        let known = &mut self.regions[index];
        let all = known.mapped as usize == known.extents.len() && (access == Access::Read || known.clean == 0);
        if all {
            self.stamp += 1;
            known.touched = self.stamp;
        }
        all
    }

    /// Touches mapped extents up to the first that is not mapped; returns its index.
    fn touch_resident(&mut self, index: usize, places: Range<usize>, access: Access) -> usize {
        let region = &mut self.regions[index];
        let all = region.there.contains_all_in_range(places.clone());
        let away = if all { None } else { places.clone().find(|&place| !region.there.contains(place)) };
        let end = away.unwrap_or(places.end);
        region.young.insert_range(places.start..end);
        if access == Access::Write && region.clean > 0 {
            for place in places.start..end {
                self.write_mapped(self.regions[index].extents[place]);
            }
        }
        end
    }

    /// The current extent no longer exists.
    fn pass_over(&mut self, actor: u32, fault: Fault) -> Step {
        if let Fault::Reclaims { reclaimed, .. } = fault {
            self.end_reclaim(reclaimed);
        }
        let known = self.actors.get_mut(actor);
        known.fault = Fault::None;
        known.touches.pop_front();
        Step::Next
    }

    /// The page is mapped: continue with the next one.
    fn end_fault(&mut self, actor: u32, id: u32, access: Access) -> Step {
        if access == Access::Write {
            self.write_mapped(id);
        }
        let known = self.actors.get_mut(actor);
        known.fault = Fault::None;
        if let Some(touch) = known.touches.front_mut() {
            touch.places.start += 1;
        }
        Step::Next
    }

    /// A write makes a file page dirty, and invalidates an anonymous page's copy in swap.
    fn write_mapped(&mut self, id: u32) {
        let extent = self.extents.get_mut(id);
        let region = &mut self.regions[extent.region as usize];
        if extent.state != State::Mapped || !region.is_clean(extent) {
            return;
        }
        region.clean -= 1;
        if region.kind() == FILE {
            extent.flags |= DIRTY;
        } else {
            self.drop_copy(id);
        }
    }

    /// Allocates the memory of an extent, and then brings it in; below `low` it wakes kswapd, below `min` the actor
    /// waits for writes if they suffice, or else reclaims.
    fn claim(
        &mut self,
        actor: u32,
        id: u32,
        index: usize,
        place: usize,
        flash: &mut dyn Flash,
    ) -> Result<Step, PhoneError> {
        self.end_transfers(flash);
        let extent = self.extents.get(id);
        let (state, need) = (extent.state, u64::from(extent.pages) * PAGE);
        if !matches!(state, State::Mapped | State::Cached | State::Writeback) {
            let (low, min) = (self.settings.watermarks.low.0, self.settings.watermarks.min.0);
            if self.free < need + low {
                self.wake_kswapd();
                self.alive(actor)?;
            }
            if self.free < need + min {
                if self.free + self.writeback.pages * PAGE >= need + min {
                    return self.wait_or_kill(actor, need);
                }
                self.actors.get_mut(actor).fault = Fault::Reclaims { reclaimed: 0, fruitless: 0 };
                return Ok(Step::Next);
            }
            self.free -= need;
        }
        Ok(self.bring(actor, id, index, place))
    }

    /// Brings an extent, whose memory was allocated, into the page table.
    fn bring(&mut self, actor: u32, id: u32, index: usize, place: usize) -> Step {
        let kind = self.regions[index].kind();
        let extent = *self.extents.get(id);
        let (pages, state, costs) = (u64::from(extent.pages), extent.state, self.actors.get(actor).costs);
        self.actors.get_mut(actor).fault = Fault::Done;
        if kind == ANON && !matches!(state, State::Untouched | State::Mapped) {
            let owner = self.regions[index].process as usize;
            self.processes[owner].swapped -= pages;
        }
        match state {
            // Another actor has brought it in.
            State::Mapped => Step::Next,
            State::Cached | State::Writeback => {
                if state == State::Writeback {
                    self.writeback.pages -= pages;
                    self.insert(id, kind, false);
                }
                self.map_extent(id);
                self.work(actor, costs.fault * pages, false)
            }
            State::Untouched if kind != FILE => {
                self.enter(id, kind, false);
                self.work(actor, (costs.fault + costs.zero) * pages, false)
            }
            State::Zram => {
                self.leave_zram(id);
                let active = self.refault(id);
                self.enter(id, kind, active);
                self.count_major(actor, pages);
                self.counters.pswpin += pages;
                self.counters.zram_in += pages;
                let load = self.regions[index].mix().map_or(costs.decompress, |mix| mix.load(&costs));
                // A page that was never active is not of the working set (`swap_readpage`, `mm/page_io.c`).
                let stalled = self.extents.get(id).flags & WORKINGSET != 0;
                self.work(actor, (costs.fault + load) * pages, stalled)
            }
            State::Flash => self.swap_in(actor, id),
            State::Untouched | State::Dropped => self.read_file(actor, index, place),
        }
    }

    /// Reads a swapped extent, and its neighbours in swap order. Pages that come through the swap cache count as part
    /// of the working set (`__read_swap_cache_async`), so PSI includes every wait for them.
    fn swap_in(&mut self, actor: u32, id: u32) -> Step {
        let extent = *self.extents.get(id);
        let width = (self.settings.swap_read_ahead.0 / self.settings.extent.0).max(1) as u32;
        let near: Vec<u32> = self.swap.partition.around(extent.slot, width).filter(|&other| other != id).collect();
        let active = self.refault(id);
        self.extents.get_mut(id).flags |= WORKINGSET;
        let Swap { zram, partition } = &self.swap;
        // While swap is at most half full (`vm_swap_full`) the copy stays, and the extent can be evicted again without a
        // write.
        if (zram.stored + partition.used) * 2 > zram.capacity + partition.capacity {
            self.drop_copy(id);
        }
        self.enter(id, ANON, active);
        let mut read = u64::from(extent.pages);
        for other in near {
            if self.extents.get(other).state == State::Flash && self.cache(other, ANON) {
                self.extents.get_mut(other).flags |= WORKINGSET;
                read += u64::from(self.extents.get(other).pages);
            }
        }
        self.counters.pswpin += read;
        self.prepare_read(actor, id, read, self.settings.swap_read_ahead)
    }

    /// Reads an extent of a file, and its neighbours in the file.
    fn read_file(&mut self, actor: u32, index: usize, place: usize) -> Step {
        let id = self.regions[index].extents[place];
        let pages = u64::from(self.extents.get(id).pages);
        let active = self.refault(id);
        self.enter(id, FILE, active);
        let width = (self.settings.file_read_ahead.0 / self.settings.extent.0).max(1) as usize;
        let first = place - place % width;
        let mut read = pages;
        for near in first..(first + width).min(self.regions[index].extents.len()) {
            let other = self.regions[index].extents[near];
            let away = matches!(self.extents.get(other).state, State::Untouched | State::Dropped);
            if away && self.cache(other, FILE) {
                read += u64::from(self.extents.get(other).pages);
            }
        }
        self.counters.file_in += read;
        self.prepare_read(actor, id, read, self.settings.file_read_ahead)
    }

    /// Allocates memory for an extent that read-ahead brings in, unless that needs reclaim.
    fn cache(&mut self, id: u32, kind: usize) -> bool {
        let pages = u64::from(self.extents.get(id).pages);
        if self.free < self.settings.watermarks.min.0 + pages * PAGE {
            return false;
        }
        self.free -= pages * PAGE;
        self.resident[kind] += pages;
        let (active, stamp) = (self.refault(id), self.stamp);
        let extent = self.extents.get_mut(id);
        (extent.state, extent.clock) = (State::Cached, stamp);
        self.insert(id, kind, active);
        true
    }

    /// The work before `read` pages are read for a fault on `id`, one window at a time.
    ///
    /// For PSI, only waits for pages that were active when they were evicted are due to a lack of memory
    /// (`PageWorkingset` in `wait_on_page_bit_common`); other reads would wait in any case.
    fn prepare_read(&mut self, actor: u32, id: u32, read: u64, window: Bytes) -> Step {
        let extent = self.extents.get(id);
        let (pages, stalled) = (u64::from(extent.pages), extent.flags & WORKINGSET != 0);
        let requests = (pages * PAGE).div_ceil(window.0);
        self.count_major(actor, requests);
        let known = self.actors.get_mut(actor);
        known.fault = Fault::Reads { pages: read, requests, stalled };
        let span = known.costs.fault * pages + known.costs.submit * read;
        self.work(actor, span, stalled)
    }

    /// Each of the actor's threads reads its share, one request after another.
    fn read(&mut self, actor: u32, pages: u64, requests: u64, stalled: bool, flash: &mut dyn Flash) -> Step {
        let (now, known) = (self.now, self.actors.get_mut(actor));
        known.fault = Fault::Done;
        let readers = u64::from(known.threads).min(requests).max(1);
        let (most, bytes) = (requests.div_ceil(readers), Bytes((pages * PAGE).div_ceil(readers)));
        let (work, wake) = (flash.work(bytes, most), known.costs.wake_up * most);
        known.does(Doing::Reads { left: readers as u32, work, wake }, stalled, now);
        for reader in 0..readers {
            let share = |all: u64| all * (reader + 1) / readers - all * reader / readers;
            let transfer = flash.read(now, Bytes(share(pages) * PAGE), share(requests));
            self.actors.reads.push((transfer, actor));
        }
        Step::Waits
    }

    fn count_major(&mut self, actor: u32, faults: u64) {
        self.counters.pgmajfault += faults;
        self.actors.get_mut(actor).major += faults;
    }

    /// Maps an extent whose memory was allocated.
    fn enter(&mut self, id: u32, kind: usize, active: bool) {
        self.resident[kind] += u64::from(self.extents.get(id).pages);
        self.map_extent(id);
        if kind != PINNED {
            self.insert(id, kind, active);
        }
    }

    /// Adds an extent to the list for new and returning ones.
    fn insert(&mut self, id: u32, kind: usize, active: bool) {
        let list = match self.settings.lists {
            Lists::Two => kind * LISTS + usize::from(active),
            Lists::Generations { .. } => self.generations.youngest(kind),
        };
        self.extents.push_head(id, list);
    }

    /// A step of one direct reclaim, which takes a cluster, or the needed memory if that is more. It ends early if
    /// nothing is left to reclaim and others have freed enough.
    fn reclaim_directly(
        &mut self,
        actor: u32,
        pages: u64,
        [reclaimed, fruitless]: [u64; 2],
        flash: &mut dyn Flash,
    ) -> Result<Step, PhoneError> {
        self.end_transfers(flash);
        if reclaimed >= pages.max(CLUSTER) {
            return Ok(self.leave_reclaim(actor, reclaimed));
        }
        let patience = PATIENCE * (self.extents.kind_pages(ANON) + self.extents.kind_pages(FILE));
        let look = Look { who: Reclaimer::Direct, costs: self.actors.get(actor).costs, at: self.now };
        let step = if fruitless > patience { None } else { self.reclaim_step(look, flash) };
        let Some(step) = step else {
            self.leave_reclaim(actor, reclaimed);
            let need = pages * PAGE;
            let enough = need + self.settings.watermarks.min.0;
            return if self.free < enough { self.wait_or_kill(actor, need) } else { Ok(Step::Next) };
        };
        let fruitless = if step.reclaimed > 0 { 0 } else { fruitless + step.scanned };
        let now = self.now;
        let known = self.actors.get_mut(actor);
        known.fault = Fault::Reclaims { reclaimed: reclaimed + step.reclaimed, fruitless };
        if step.congested {
            known.does(Doing::AwaitsWrite, true, now);
            return Ok(Step::Waits);
        }
        // More than kswapd's time for the same pages.
        let running = step.running.times(self.settings.direct.0);
        Ok(self.work(actor, running, true))
    }

    fn leave_reclaim(&mut self, actor: u32, reclaimed: u64) -> Step {
        self.actors.get_mut(actor).fault = Fault::Claims;
        self.end_reclaim(reclaimed);
        Step::Next
    }

    fn end_reclaim(&mut self, reclaimed: u64) {
        self.counters.allocstall += reclaimed.div_ceil(CLUSTER).max(1);
        self.snapshot_refaults();
        self.kswapd.hopeless &= reclaimed == 0;
    }

    /// Waits for a write to end or, if there is nothing to reclaim, kills a process.
    fn wait_or_kill(&mut self, actor: u32, need: u64) -> Result<Step, PhoneError> {
        let (now, stall) = (self.now, self.actors.get(actor).stall);
        if !self.writeback.queue.is_empty() {
            self.actors.get_mut(actor).does(Doing::AwaitsWrite, true, now);
            return Ok(Step::Waits);
        }
        if self.kill_for_memory() {
            self.alive(actor)?;
            return Ok(Step::Next);
        }
        Err(PhoneError::OutOfMemory { wanted: Bytes(need), free: Bytes(self.free), stall })
    }

    fn alive(&self, actor: u32) -> Result<(), PhoneError> {
        let known = self.actors.get(actor);
        let region = known.touches.front().map(|touch| touch.region);
        ensure!(region.is_none_or(|region| self.region(region).is_ok()), PhoneError::Killed(known.stall));
        Ok(())
    }

    /// The actor's threads work in parallel, each on its share of `span`.
    fn work(&mut self, actor: u32, span: Nanos, stalled: bool) -> Step {
        let now = self.now;
        let known = self.actors.get_mut(actor);
        let share = Nanos(span.0.div_ceil(u64::from(known.threads)));
        if share == Nanos::ZERO {
            return Step::Next;
        }
        known.does(Doing::Works { until: now + share }, stalled, now);
        Step::Waits
    }
}
