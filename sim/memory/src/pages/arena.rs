//! The arena: the pages of every activation by its id.

use haversack_devices::{Bytes, ensure};
use thiserror::Error;

use super::blocks::{Blocks, List};
use super::{IDS, PageError};

/// The layout of a [`PageArena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ArenaConfig {
    /// Bytes per page. Small pages waste less (half a page per activation); large ones have fewer links, and longer
    /// contiguous runs between two look-ups of a kernel.
    pub page: Bytes,
    /// Bytes by which the arena grows and shrinks, rounded down to whole pages.
    pub step: Bytes,
    /// The arena's largest reservation, rounded down to whole pages.
    pub budget: Bytes,
}

impl ArenaConfig {
    /// 16 KiB: a multiple of all common system pages (4 and 16 KiB), with 65,536 values of two bits per look-up. Over
    /// the 60 activations of ResNet-18 half a page each is 0.5 MB, under 1% of the 52 MB that the paper stores.
    pub const PAGE: Bytes = Bytes(16 * 1024);
    /// The step that section 4.3.3 recommends.
    pub const STEP: Bytes = Bytes(100_000_000);
}

/// An operation's effects on the system's memory, for charging time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Number of allocations from the system.
    pub allocations: u32,
    /// Bytes of these allocations.
    pub allocated: Bytes,
    /// Number of releases to the system.
    pub releases: u32,
    /// Bytes of these releases.
    pub released: Bytes,
    /// Bytes of activations copied between pages: each is read once and written once.
    pub copied: Bytes,
}

/// The use of the arena's memory. `reserved = stored + internal + free`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragmentation {
    /// Bytes reserved from the system.
    pub reserved: Bytes,
    /// Bytes of the activations themselves.
    pub stored: Bytes,
    /// Unused bytes in the last page of each activation.
    pub internal: Bytes,
    /// Bytes of free pages. Any activation may use them, so they are not lost.
    pub free: Bytes,
    /// Bytes of the longest run of free pages: the largest request that an arena without paging could serve.
    pub longest_free: Bytes,
    /// Activations that have at least one page.
    pub placed: u32,
    /// Runs of consecutive pages in list order, over all activations.
    pub runs: u32,
    /// The largest number of runs of an activation.
    pub most_runs: u32,
}

/// A smaller budget does not fit the stored activations; the arena is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{bytes} of pages must be given back before the arena fits into {budget}")]
pub struct Over {
    /// Bytes of pages to free, by evicting or requantising.
    pub bytes: Bytes,
    /// The requested budget.
    pub budget: Bytes,
}

/// Activations in pages, by id, with or without their bytes.
#[derive(Clone, Debug)]
pub struct PageArena {
    blocks: Blocks,
    /// The pages of each id.
    lists: Vec<Option<List>>,
    stored: u64,
}

impl PageArena {
    /// An empty arena for sizes only; the first insertion reserves memory.
    ///
    /// A step larger than the budget is allowed: the only block is then cut to the budget.
    ///
    /// # Errors
    /// An empty page, or a budget or a step smaller than a page.
    pub fn new(config: ArenaConfig) -> Result<Self, PageError> {
        Self::build(config, false)
    }

    /// An empty arena that keeps the bytes of its activations too.
    ///
    /// # Errors
    /// As [`PageArena::new`].
    pub fn with_data(config: ArenaConfig) -> Result<Self, PageError> {
        Self::build(config, true)
    }

    fn build(config: ArenaConfig, with_data: bool) -> Result<Self, PageError> {
        let ArenaConfig { page, step, budget } = config;
        ensure!(page != Bytes::ZERO, PageError::EmptyPage);
        ensure!(budget >= page, PageError::BudgetBelowPage { budget, page });
        ensure!(step >= page, PageError::StepBelowPage { step, page });
        let blocks = Blocks::new(page.0, step.0, budget.0, with_data);
        Ok(Self { blocks, lists: Vec::new(), stored: 0 })
    }

    /// Gives an activation the lowest free pages: Algorithm 3's `FirstFit` and `InsertPage`.
    ///
    /// # Errors
    /// An id that is too large or in use, or a full budget.
    pub fn insert(&mut self, id: u32, size: Bytes) -> Result<Effects, PageError> {
        ensure!(id < IDS, PageError::IdTooLarge(id));
        ensure!(self.list(id).is_err(), PageError::KnownId(id));
        let (list, effects) = self.blocks.take(size.0).map_err(|missing| PageError::Full {
            id,
            missing: Bytes(missing),
            budget: self.budget(),
        })?;
        if id as usize >= self.lists.len() {
            self.lists.resize(id as usize + 1, None);
        }
        self.lists[id as usize] = Some(list);
        self.stored += size.0;
        Ok(effects)
    }

    /// Requantises an activation in place: its first bytes stay, and the pages at the end of its list are freed.
    ///
    /// # Errors
    /// An unknown id, or a size that is larger.
    pub fn shrink(&mut self, id: u32, size: Bytes) -> Result<(), PageError> {
        let mut list = self.list(id)?;
        let held = list.size();
        ensure!(size.0 <= held, PageError::Grows { id, placed: Bytes(held), wanted: size });
        self.blocks.cut(&mut list, size.0);
        self.lists[id as usize] = Some(list);
        self.stored -= held - size.0;
        Ok(())
    }

    /// Frees the pages of an activation: `Evict`, or after its last use.
    ///
    /// # Errors
    /// An unknown id.
    pub fn evict(&mut self, id: u32) -> Result<(), PageError> {
        let list = self.list(id)?;
        self.lists[id as usize] = None;
        self.blocks.give_back(list);
        self.stored -= list.size();
        Ok(())
    }

    /// Changes the budget. A smaller one releases whole blocks from the end of the arena, after copying the pages
    /// in use there; one smaller than a page or than the first block releases everything. A larger one takes
    /// effect when memory is needed.
    ///
    /// # Errors
    /// The bytes of pages that do not fit: evict or requantise that many and call again.
    pub fn set_budget(&mut self, budget: Bytes) -> Result<Effects, Over> {
        match self.shortfall(budget) {
            Bytes::ZERO => Ok(self.blocks.set_budget(budget.0, self.lists.iter_mut().flatten())),
            bytes => Err(Over { bytes, budget }),
        }
    }

    /// Bytes of pages to free before [`PageArena::set_budget`] can succeed.
    pub fn shortfall(&self, budget: Bytes) -> Bytes {
        Bytes(self.blocks.shortfall(budget.0))
    }

    /// Writes an activation as a whole.
    ///
    /// # Errors
    /// An arena without data, an unknown id, a length other than the activation's.
    pub fn write(&mut self, id: u32, bytes: &[u8]) -> Result<(), PageError> {
        let list = self.readable(id, bytes.len())?;
        self.blocks.write(list, bytes);
        Ok(())
    }

    /// Reads an activation as a whole. Its contents are unspecified before the first write.
    ///
    /// # Errors
    /// As [`PageArena::write`].
    pub fn read(&self, id: u32, bytes: &mut [u8]) -> Result<(), PageError> {
        let list = self.readable(id, bytes.len())?;
        self.blocks.read(list, bytes);
        Ok(())
    }

    fn readable(&self, id: u32, length: usize) -> Result<List, PageError> {
        ensure!(self.blocks.has_data(), PageError::NoData);
        let list = self.list(id)?;
        if length as u64 != list.size() {
            return Err(PageError::WrongLength { id, size: Bytes(list.size()), given: Bytes(length as u64) });
        }
        Ok(list)
    }

    fn list(&self, id: u32) -> Result<List, PageError> {
        self.lists.get(id as usize).copied().flatten().ok_or(PageError::UnknownId(id))
    }

    /// The size of an activation; `None` if the id is unknown.
    pub fn size(&self, id: u32) -> Option<Bytes> {
        self.list(id).ok().map(|list| Bytes(list.size()))
    }

    /// The page numbers of an activation in list order.
    pub fn pages(&self, id: u32) -> impl Iterator<Item = u32> {
        self.list(id).ok().into_iter().flat_map(|list| self.blocks.pages(list))
    }

    /// The arena's largest reservation.
    pub const fn budget(&self) -> Bytes {
        Bytes(self.blocks.budget())
    }

    /// The bytes of pages that the budget allows: whole pages, at most 2²⁶ of them for any budget.
    pub fn capacity(&self) -> Bytes {
        Bytes(self.blocks.capacity())
    }

    /// Bytes of the activations.
    pub const fn stored(&self) -> Bytes {
        Bytes(self.stored)
    }

    /// Bytes of pages in use.
    pub fn used(&self) -> Bytes {
        Bytes(self.blocks.used())
    }

    /// Bytes reserved from the system.
    pub fn reserved(&self) -> Bytes {
        Bytes(self.blocks.reserved())
    }

    /// The use of the arena's memory; walks all pages.
    pub fn fragmentation(&self) -> Fragmentation {
        let mut report = Fragmentation {
            reserved: self.reserved(),
            stored: self.stored(),
            internal: self.used() - self.stored(),
            free: self.reserved() - self.used(),
            longest_free: Bytes(self.blocks.longest_free()),
            ..Fragmentation::default()
        };
        for &list in self.lists.iter().flatten() {
            let mut runs = 0;
            let mut expected = None;
            for page in self.blocks.pages(list) {
                runs += u32::from(expected != Some(page));
                expected = Some(page + 1);
            }
            report.placed += u32::from(runs > 0);
            report.runs += runs;
            report.most_runs = report.most_runs.max(runs);
        }
        report
    }
}
