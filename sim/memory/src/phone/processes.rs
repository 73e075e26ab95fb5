//! Processes and the regions that they map.

use std::ops::Range;

use fixedbitset::FixedBitSet;
use haversack_devices::{Bytes, Nanos};

use super::{
    ANON, Backing, DIRTY, Extent, FILE, Kill, KillReason, NONE, PAGE, PINNED, PageMix, PhoneError, PhoneMemory,
    ProcessId, ProcessUsage, RegionId, State,
};

#[derive(Clone, Debug)]
pub(super) struct Process {
    life: u32,
    alive: bool,
    name: String,
    pub(super) adj: i32,
    /// The stamp of its last change of score: the smallest is lmkd's least recently used process.
    pub(super) since: u64,
    regions: Vec<u32>,
    /// Mapped pages in DRAM.
    pub(super) resident: u64,
    /// Anonymous pages not mapped.
    pub(super) swapped: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Region {
    life: u32,
    pub(super) process: u32,
    /// Its index among its process's regions.
    place: u32,
    pub(super) backing: Backing,
    /// In address order; all but the last have full size.
    pub(super) extents: Vec<u32>,
    /// The requested bytes.
    size: u64,
    /// Extents that are mapped.
    pub(super) mapped: u32,
    /// Mapped extents that a write would change: clean ones of a file, and those with a copy in swap.
    pub(super) clean: u32,
    /// The stamp of the last touch of the whole region: extents scanned before it are young.
    pub(super) touched: u64,
    /// The mapped extents, by index.
    pub(super) there: FixedBitSet,
    /// Those of them whose page table entries were used since the last scan.
    pub(super) young: FixedBitSet,
}

impl Region {
    pub(super) fn kind(&self) -> usize {
        match self.backing {
            Backing::Anonymous(_) => ANON,
            Backing::File | Backing::Code => FILE,
            Backing::Pinned => PINNED,
        }
    }

    /// Whether a write to the extent would change its state: a clean extent of a file, or a copy in swap.
    pub(super) fn is_clean(&self, extent: &Extent) -> bool {
        if self.kind() == FILE { extent.flags & DIRTY == 0 } else { extent.slot != NONE }
    }

    /// The compressibility of its pages; `None` if they never go to ZRAM.
    pub(super) fn mix(&self) -> Option<PageMix> {
        match self.backing {
            Backing::Anonymous(mix) => Some(mix),
            Backing::File | Backing::Code | Backing::Pinned => None,
        }
    }

    /// Bytes of DRAM that ZRAM uses for `pages` of it.
    pub(super) fn compressed(&self, pages: u64) -> u64 {
        self.mix().map_or(pages * PAGE, |mix| mix.kept(pages).0)
    }
}

impl PhoneMemory {
    /// Starts a process with an `oom_score_adj`.
    ///
    /// # Errors
    /// A score outside -1000 to 1000.
    pub fn spawn(&mut self, name: impl Into<String>, adj: i32) -> Result<ProcessId, PhoneError> {
        check_adj(adj)?;
        self.stamp += 1;
        let new = |life| Process {
            life,
            alive: true,
            name: name.into(),
            adj,
            since: self.stamp,
            regions: Vec::new(),
            resident: 0,
            swapped: 0,
        };
        if let Some(index) = self.processes.take() {
            let life = self.processes[index as usize].life + 1;
            self.processes[index as usize] = new(life);
            return Ok(ProcessId { index, life });
        }
        let index = self.processes.add(new(0)).ok_or(PhoneError::TooMany("processes"))?;
        Ok(ProcessId { index, life: 0 })
    }

    /// Changes a process's `oom_score_adj`; it is then the most recently used of that score.
    ///
    /// # Errors
    /// An unknown process, or a score outside -1000 to 1000.
    pub fn set_adj(&mut self, process: ProcessId, adj: i32) -> Result<(), PhoneError> {
        check_adj(adj)?;
        let index = self.process(process)?;
        self.stamp += 1;
        (self.processes[index].adj, self.processes[index].since) = (adj, self.stamp);
        Ok(())
    }

    /// Ends a process and frees all that it maps.
    ///
    /// # Errors
    /// An unknown process.
    pub fn exit(&mut self, process: ProcessId) -> Result<(), PhoneError> {
        let index = self.process(process)?;
        self.end(index);
        Ok(())
    }

    /// Whether a process is still running.
    pub fn is_running(&self, process: ProcessId) -> bool {
        self.process(process).is_ok()
    }

    /// The memory of a process.
    ///
    /// # Errors
    /// An unknown process.
    pub fn process_usage(&self, process: ProcessId) -> Result<ProcessUsage, PhoneError> {
        let process = &self.processes[self.process(process)?];
        Ok(ProcessUsage { resident: Bytes(process.resident * PAGE), swapped: Bytes(process.swapped * PAGE) })
    }

    /// Reserves addresses for `bytes`, rounded up to pages; memory is allocated when they are touched.
    ///
    /// # Errors
    /// An unknown process, invalid pages, or too many extents.
    pub fn map(&mut self, process: ProcessId, bytes: Bytes, backing: Backing) -> Result<RegionId, PhoneError> {
        let owner = self.process(process)?;
        if let Backing::Anonymous(mix) = backing
            && let Some(wrong) = mix.contradiction()
        {
            return Err(PhoneError::Pages(wrong));
        }
        let place = self.processes[owner].regions.len() as u32;
        let new = |life| Region {
            life,
            process: process.index,
            place,
            backing,
            extents: Vec::new(),
            size: 0,
            mapped: 0,
            clean: 0,
            touched: 0,
            there: FixedBitSet::new(),
            young: FixedBitSet::new(),
        };
        let id = if let Some(index) = self.regions.take() {
            let region = &mut self.regions[index as usize];
            let mut extents = std::mem::take(&mut region.extents);
            extents.clear();
            let life = region.life;
            *region = Region { extents, ..new(life) };
            RegionId { index, life }
        } else {
            let index = self.regions.add(new(0)).ok_or(PhoneError::TooMany("regions"))?;
            RegionId { index, life: 0 }
        };
        self.processes[owner].regions.push(id.index);
        match self.resize(id, bytes) {
            Ok(()) => Ok(id),
            Err(error) => {
                self.release(id)?;
                Err(error)
            }
        }
    }

    /// Changes a region's size at its end; what is cut off is freed. An extent that is cut in two, or a short one that
    /// grows, becomes untouched.
    ///
    /// # Errors
    /// An unknown region, or too many extents.
    pub fn resize(&mut self, region: RegionId, bytes: Bytes) -> Result<(), PhoneError> {
        let index = self.region(region)?;
        let (whole, pages) = (self.settings.extent_pages(), bytes.0.div_ceil(PAGE));
        let count = usize::try_from(pages.div_ceil(whole)).unwrap_or(usize::MAX);
        while self.regions[index].extents.len() > count {
            self.drop_last(index);
        }
        // The last extent may be short; a short extent grows before others are added.
        let size = |at: usize| whole.min(pages - at as u64 * whole) as u16;
        if let Some(at) = self.regions[index].extents.len().checked_sub(1) {
            let id = self.regions[index].extents[at];
            if self.extents.get(id).pages != size(at) {
                self.drop_last(index);
            }
        }
        for at in self.regions[index].extents.len()..count {
            let id = self.extents.create(region.index, at as u32, size(at))?;
            self.regions[index].extents.push(id);
        }
        let region = &mut self.regions[index];
        region.size = bytes.0;
        region.there.grow(count);
        region.young.grow(count);
        Ok(())
    }

    /// Frees a region: its pages, its room in ZRAM and its slots, without a refault.
    ///
    /// # Errors
    /// An unknown region.
    pub fn release(&mut self, region: RegionId) -> Result<(), PhoneError> {
        let index = self.region(region)?;
        let owner = self.regions[index].process as usize;
        let place = self.regions[index].place;
        let siblings = &mut self.processes[owner].regions;
        siblings.swap_remove(place as usize);
        if let Some(&moved) = siblings.get(place as usize) {
            self.regions[moved as usize].place = place;
        }
        self.drop_region(index);
        Ok(())
    }

    pub(super) fn process(&self, process: ProcessId) -> Result<usize, PhoneError> {
        let known = self.processes.get(process.index);
        let known = known.is_some_and(|known| known.alive && known.life == process.life);
        if known { Ok(process.index as usize) } else { Err(PhoneError::UnknownProcess(process)) }
    }

    pub(super) fn region(&self, region: RegionId) -> Result<usize, PhoneError> {
        let known = self.regions.get(region.index).is_some_and(|known| known.life == region.life);
        if known { Ok(region.index as usize) } else { Err(PhoneError::UnknownRegion(region)) }
    }

    /// The extents of a range of a region.
    pub(super) fn span(&self, region: RegionId, range: &Range<Bytes>) -> Result<Range<usize>, PhoneError> {
        let size = self.regions[self.region(region)?].size;
        if range.end.0 > size || range.start > range.end {
            return Err(PhoneError::BeyondEnd { region, size: Bytes(size), end: range.end.max(range.start) });
        }
        if range.is_empty() {
            return Ok(0..0);
        }
        let extent = self.settings.extent.0;
        Ok((range.start.0 / extent) as usize..range.end.0.div_ceil(extent) as usize)
    }

    /// Kills the process for `reason`, and records it.
    pub(super) fn kill(&mut self, index: usize, reason: KillReason, min_adj: i32, thrashing: u64, at: Nanos) -> u64 {
        let free_before = Bytes(self.free);
        let Process { life, adj, .. } = self.processes[index];
        let name = std::mem::take(&mut self.processes[index].name);
        self.end(index);
        let freed = Bytes(self.free - free_before.0);
        let process = ProcessId { index: index as u32, life };
        match reason {
            KillReason::OutOfMemory => self.counters.oom_kill += 1,
            _ => self.counters.lmkd_kill += 1,
        }
        self.kills.push_back(Kill { at, process, name, adj, reason, min_adj, freed, free_before, thrashing });
        freed.0
    }

    /// The indices of running processes.
    pub(super) fn running(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.processes.len()).filter(|&index| self.processes[index].alive)
    }

    fn end(&mut self, index: usize) {
        for region in std::mem::take(&mut self.processes[index].regions) {
            self.drop_region(region as usize);
        }
        self.processes[index].alive = false;
        self.processes.give_back(index);
        // Now there may be something to reclaim again, or no need to.
        self.kswapd.hopeless = false;
    }

    fn drop_region(&mut self, index: usize) {
        while !self.regions[index].extents.is_empty() {
            self.drop_last(index);
        }
        self.regions[index].life += 1;
        self.regions.give_back(index);
    }

    /// Frees the last extent of a region, in any state.
    fn drop_last(&mut self, index: usize) {
        let Some(id) = self.regions[index].extents.pop() else { return };
        let extent = *self.extents.get(id);
        let pages = u64::from(extent.pages);
        self.extents.unlink(id);
        match extent.state {
            State::Mapped => {
                self.unmap(id);
                self.forget_resident(id);
            }
            State::Cached => self.forget_resident(id),
            State::Writeback => {
                self.writeback.pages -= pages;
                self.forget_resident(id);
            }
            State::Zram => self.leave_zram(id),
            State::Untouched | State::Flash | State::Dropped => {}
        }
        self.drop_copy(id);
        let region = &self.regions[index];
        let in_process = matches!(extent.state, State::Cached | State::Writeback | State::Zram | State::Flash);
        if in_process && region.kind() == ANON {
            self.processes[region.process as usize].swapped -= pages;
        }
        self.extents.remove(id);
        self.kswapd.hopeless = false;
    }

    /// Adds an extent's pages to the process's page table, as young.
    pub(super) fn map_extent(&mut self, id: u32) {
        self.stamp += 1;
        let stamp = self.stamp;
        let extent = self.extents.get_mut(id);
        (extent.state, extent.clock) = (State::Mapped, stamp);
        let region = &mut self.regions[extent.region as usize];
        region.mapped += 1;
        region.there.insert(extent.place as usize);
        region.young.insert(extent.place as usize);
        region.clean += u32::from(region.is_clean(extent));
        self.processes[region.process as usize].resident += u64::from(extent.pages);
    }

    /// Removes a mapped extent's pages from the page table.
    pub(super) fn unmap(&mut self, id: u32) {
        let extent = self.extents.get(id);
        let region = &mut self.regions[extent.region as usize];
        region.mapped -= 1;
        region.there.remove(extent.place as usize);
        region.young.remove(extent.place as usize);
        region.clean -= u32::from(region.is_clean(extent));
        self.processes[region.process as usize].resident -= u64::from(extent.pages);
    }

    /// Frees the DRAM of an extent.
    pub(super) fn forget_resident(&mut self, id: u32) {
        let extent = self.extents.get(id);
        let pages = u64::from(extent.pages);
        self.resident[self.regions[extent.region as usize].kind()] -= pages;
        self.free += pages * PAGE;
    }

    /// Drops the copy in the swap partition.
    pub(super) fn drop_copy(&mut self, id: u32) {
        let extent = self.extents.get_mut(id);
        let slot = std::mem::replace(&mut extent.slot, NONE);
        if slot != NONE {
            self.swap.partition.give_back(slot, u64::from(extent.pages));
        }
    }

    pub(super) fn leave_zram(&mut self, id: u32) {
        let extent = self.extents.get(id);
        let pages = u64::from(extent.pages);
        let bytes = self.regions[extent.region as usize].compressed(pages);
        self.swap.zram.stored -= pages;
        self.swap.zram.dram -= bytes;
        self.free += bytes;
    }
}

fn check_adj(adj: i32) -> Result<(), PhoneError> {
    if (-1000..=1000).contains(&adj) { Ok(()) } else { Err(PhoneError::Adj(adj)) }
}
