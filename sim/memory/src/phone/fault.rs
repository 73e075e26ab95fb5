//! Touches and the faults that they raise; allocation, and the reclaim that it forces on the thread.

use std::ops::Range;

use haversack_devices::units::{Bytes, Nanos};

use super::extents::{DIRTY, LISTS, State, WORKINGSET, YOUNG};
use super::reclaim::{CLUSTER, Look, Reclaimer};
use super::settings::PAGE;
use super::time::PATIENCE;
use super::{ANON, Access, FILE, Flash, Lists, PINNED, PhoneError, PhoneMemory, RegionId, Stall};

/// The thread that touches: what it waits for, and how long it has.
struct Thread<'a> {
    region: RegionId,
    flash: &'a mut dyn Flash,
    stall: Stall,
}

impl PhoneMemory {
    /// Touches the whole of a region at `now`, from its beginning on.
    ///
    /// # Errors
    /// An unknown region; the end of its process meanwhile; no memory to be had.
    pub fn touch(
        &mut self,
        region: RegionId,
        access: Access,
        now: Nanos,
        flash: &mut dyn Flash,
    ) -> Result<Stall, PhoneError> {
        let index = self.region(region)?;
        self.advance(now, false, flash);
        if self.region(region).is_err() {
            return Err(PhoneError::Killed { stall: Stall::default() });
        }
        let known = &mut self.regions[index];
        if known.mapped as usize == known.extents.len() && (access == Access::Read || known.clean == 0) {
            // One note for all; a scan compares it with the extent's own.
            self.stamp += 1;
            known.touched = self.stamp;
            return Ok(Stall::default());
        }
        let all = 0..known.extents.len();
        self.touch_extents(index, all, access, Thread { region, flash, stall: Stall::default() })
    }

    /// Touches a part of a region, in bytes from its beginning.
    ///
    /// # Errors
    /// As [`Self::touch`], and a part that the region does not have.
    pub fn touch_part(
        &mut self,
        region: RegionId,
        part: Range<Bytes>,
        access: Access,
        now: Nanos,
        flash: &mut dyn Flash,
    ) -> Result<Stall, PhoneError> {
        let places = self.span(region, &part)?;
        let index = self.region(region)?;
        self.advance(now, false, flash);
        let thread = Thread { region, flash, stall: Stall::default() };
        if self.region(region).is_err() {
            return Err(PhoneError::Killed { stall: thread.stall });
        }
        self.touch_extents(index, places, access, thread)
    }

    fn touch_extents(
        &mut self,
        index: usize,
        places: Range<usize>,
        access: Access,
        mut thread: Thread<'_>,
    ) -> Result<Stall, PhoneError> {
        for place in places {
            let id = self.regions[index].extents[place];
            let extent = self.extents.get_mut(id);
            if extent.state == State::Mapped {
                extent.flags |= YOUNG;
            } else {
                self.fault(index, place, &mut thread)?;
            }
            if access == Access::Write {
                self.write_mapped(id);
            }
        }
        Ok(thread.stall)
    }

    /// A write makes a file page dirty, and the copy of an anonymous one worthless.
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

    /// Brings an extent into the page table. On success its process is alive still.
    fn fault(&mut self, index: usize, place: usize, thread: &mut Thread<'_>) -> Result<(), PhoneError> {
        let id = self.regions[index].extents[place];
        let kind = self.regions[index].kind();
        let pages = u64::from(self.extents.get(id).pages);
        self.counters.pgfault += pages;
        if !matches!(self.extents.get(id).state, State::Cached | State::Writeback) {
            self.claim(pages, thread)?;
        }
        let (state, costs) = (self.extents.get(id).state, self.faulting);
        if kind == ANON && state != State::Untouched {
            let owner = self.regions[index].process as usize;
            self.processes[owner].swapped -= pages;
        }
        match state {
            State::Cached | State::Writeback | State::Mapped => {
                if state == State::Writeback {
                    self.writing -= pages;
                    self.insert(id, kind, false);
                }
                self.map_extent(id);
                self.run(costs.fault * pages, false, thread);
            }
            State::Untouched if kind != FILE => {
                self.enter(id, kind, false);
                self.run((costs.fault + costs.zero) * pages, false, thread);
            }
            State::Zram => {
                self.leave_zram(id);
                let active = self.refault(id);
                self.enter(id, kind, active);
                self.counters.pgmajfault += pages;
                self.counters.pswpin += pages;
                self.counters.zram_in += pages;
                let load = self.regions[index].mix().map_or(costs.decompress, |mix| mix.load(&costs));
                self.run((costs.fault + load) * pages, true, thread);
            }
            State::Flash => self.swap_in(id, thread),
            State::Untouched | State::Dropped => self.read_file(index, place, thread),
        }
        self.alive(thread)
    }

    /// Reads a swapped extent, and its neighbours in swap order. What comes through the swap cache counts as of the working
    /// set (`__read_swap_cache_async`), so that PSI sees every wait for it.
    fn swap_in(&mut self, id: u32, thread: &mut Thread<'_>) {
        let extent = *self.extents.get(id);
        let width = (self.settings.swap_read_ahead.0 / self.settings.extent.0).max(1) as u32;
        let near: Vec<u32> = self.partition.around(extent.slot, width).filter(|&other| other != id).collect();
        let active = self.refault(id);
        self.extents.get_mut(id).flags |= WORKINGSET;
        // While swap is half empty the copy stays, and the extent may go again unwritten.
        let swap = self.zram.capacity + self.partition.capacity;
        if (self.zram.stored + self.partition.used) * 2 > swap {
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
        self.read(id, read, self.settings.swap_read_ahead, thread);
    }

    /// Reads an extent of a file, and its neighbours in the file.
    fn read_file(&mut self, index: usize, place: usize, thread: &mut Thread<'_>) {
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
        self.read(id, read, self.settings.file_read_ahead, thread);
    }

    /// Takes memory for an extent that read-ahead brings, unless that needs reclaim.
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
        extent.flags &= !YOUNG;
        self.insert(id, kind, active);
        true
    }

    /// A synchronous read of `read` pages for a fault on `id`, a window at a time.
    ///
    /// For PSI only waiting for what was active when it was evicted is want of memory (`PageWorkingset` in
    /// `wait_on_page_bit_common`); other reads would wait in any case.
    fn read(&mut self, id: u32, read: u64, window: Bytes, thread: &mut Thread<'_>) {
        let extent = self.extents.get(id);
        let (pages, stalled) = (u64::from(extent.pages), extent.flags & WORKINGSET != 0);
        let requests = (pages * PAGE).div_ceil(window.0);
        self.counters.pgmajfault += requests;
        let costs = self.faulting;
        self.run(costs.fault * pages + costs.submit * read, stalled, thread);
        let span = thread.flash.read(self.now, Bytes(read * PAGE), requests);
        self.sleep(span, requests, stalled, thread);
    }

    /// Maps an extent whose memory was claimed.
    fn enter(&mut self, id: u32, kind: usize, active: bool) {
        self.resident[kind] += u64::from(self.extents.get(id).pages);
        self.map_extent(id);
        if kind != PINNED {
            self.insert(id, kind, active);
        }
    }

    /// Puts an extent on the list that new and returning ones go to.
    fn insert(&mut self, id: u32, kind: usize, active: bool) {
        let list = match self.settings.lists {
            Lists::Two => kind * LISTS + usize::from(active),
            Lists::Generations { .. } => self.generations.youngest(kind),
        };
        self.extents.push_head(id, list);
    }

    /// Takes free memory; below `low` kswapd is woken, below `min` the thread waits for writes that suffice, or reclaims.
    fn claim(&mut self, pages: u64, thread: &mut Thread<'_>) -> Result<(), PhoneError> {
        let need = pages * PAGE;
        let (low, min) = (self.settings.watermarks.low.0, self.settings.watermarks.min.0);
        loop {
            self.finish_writes(self.now);
            if self.free < need + low {
                self.wake_kswapd();
                self.alive(thread)?;
            }
            if self.free >= need + min {
                self.free -= need;
                return Ok(());
            }
            if self.free + self.writing * PAGE >= need + min {
                self.wait_or_kill(pages, thread)?;
            } else {
                self.reclaim_directly(pages, thread)?;
            }
            self.alive(thread)?;
        }
    }

    /// One direct reclaim: a cluster, or what is wanted where that is more. It ends early where nothing is left to
    /// reclaim and others have freed enough.
    fn reclaim_directly(&mut self, pages: u64, thread: &mut Thread<'_>) -> Result<(), PhoneError> {
        let enough = pages * PAGE + self.settings.watermarks.min.0;
        let (mut reclaimed, mut fruitless) = (0, 0);
        while reclaimed < pages.max(CLUSTER) {
            self.finish_writes(self.now);
            let patience = PATIENCE * (self.extents.kind_pages(ANON) + self.extents.kind_pages(FILE));
            let look = Look { who: Reclaimer::Direct, costs: self.faulting, at: self.now };
            let step = if fruitless > patience { None } else { self.reclaim_step(look, thread.flash) };
            let Some(step) = step else {
                if self.free < enough {
                    self.wait_or_kill(pages, thread)?;
                }
                break;
            };
            reclaimed += step.reclaimed;
            fruitless = if step.reclaimed > 0 { 0 } else { fruitless + step.scanned };
            self.run(step.running, true, thread);
            if let Some(until) = step.congested {
                self.sleep(until.saturating_sub(self.now), 1, true, thread);
            }
            self.alive(thread)?;
        }
        self.counters.allocstall += reclaimed.div_ceil(CLUSTER).max(1);
        self.snapshot_refaults();
        self.kswapd.hopeless &= reclaimed == 0;
        Ok(())
    }

    /// Waits for a write to end, or else, as there is nothing to reclaim, ends a process.
    fn wait_or_kill(&mut self, pages: u64, thread: &mut Thread<'_>) -> Result<(), PhoneError> {
        if let Some(write) = self.writes.front() {
            let span = write.done.saturating_sub(self.now);
            self.sleep(span, 1, true, thread);
            return Ok(());
        }
        if self.kill_for_memory() {
            return Ok(());
        }
        Err(PhoneError::OutOfMemory { wanted: Bytes(pages * PAGE), free: Bytes(self.free), stall: thread.stall })
    }

    fn alive(&self, thread: &Thread<'_>) -> Result<(), PhoneError> {
        match self.region(thread.region) {
            Ok(_) => Ok(()),
            Err(_) => Err(PhoneError::Killed { stall: thread.stall }),
        }
    }

    fn run(&mut self, span: Nanos, stalled: bool, thread: &mut Thread<'_>) {
        thread.stall.running += span;
        self.advance(self.now + span, stalled, thread.flash);
    }

    fn sleep(&mut self, span: Nanos, times: u64, stalled: bool, thread: &mut Thread<'_>) {
        let wake = self.faulting.wake_up * times;
        thread.stall.sleeping += span;
        thread.stall.runnable += wake;
        self.advance(self.now + span + wake, stalled, thread.flash);
    }
}
