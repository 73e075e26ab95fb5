//! The store: activations, their pages in the arena and their places in the two orders, kept consistent.

use super::arena::{Arena, List};
use super::{Config, Effects, Fragmentation, Keys, Over, PageError, Rank, Tighter, Tournament};
use haversack_devices::units::{Bytes, Nanos};

/// Activations by id, with or without their bytes.
#[derive(Clone, Debug)]
pub struct PageStore {
    arena: Arena,
    order: Tournament,
    /// By id.
    activations: Vec<Option<Activation>>,
    stored: u64,
    /// Bytes of pages that planned activations will need.
    planned: u128,
    peak_used: u64,
    peak_reserved: u64,
}

#[derive(Clone, Copy, Debug)]
struct Activation {
    keys: Keys,
    size: u64,
    /// Its pages, once it is placed.
    list: Option<List>,
}

impl Activation {
    /// A quotient by nothing is infinite: evicting what costs nothing gains nothing, so it goes last.
    fn rank(&self) -> Option<Rank> {
        let Keys { importance, time } = self.keys;
        let per = |cost: u64| if cost == 0 { f64::INFINITY } else { importance / cost as f64 };
        if importance.is_nan() { None } else { Rank::new(per(self.size), per(time.0)) }
    }
}

impl PageStore {
    /// Ids are below this: the store's tables are indexed by them.
    pub const IDS: u32 = 1 << 22;

    /// An empty store of sizes; nothing is reserved until an activation is placed.
    ///
    /// A step larger than the budget is allowed: the only block is then cut to the budget.
    ///
    /// # Errors
    /// An empty page, or a budget or a step smaller than a page.
    pub fn new(config: Config) -> Result<Self, PageError> {
        Self::build(config, false)
    }

    /// An empty store that keeps the bytes of its activations too.
    ///
    /// # Errors
    /// As [`PageStore::new`].
    pub fn with_data(config: Config) -> Result<Self, PageError> {
        Self::build(config, true)
    }

    fn build(config: Config, with_data: bool) -> Result<Self, PageError> {
        let Config { page, step, budget } = config;
        if page == Bytes::ZERO {
            return Err(PageError::EmptyPage);
        }
        if budget < page {
            return Err(PageError::BudgetBelowPage { budget, page });
        }
        if step < page {
            return Err(PageError::StepBelowPage { step, page });
        }
        Ok(Self {
            arena: Arena::new(page.0, step.0, budget.0, with_data),
            order: Tournament::default(),
            activations: Vec::new(),
            stored: 0,
            planned: 0,
            peak_used: 0,
            peak_reserved: 0,
        })
    }

    /// Enters an activation that has no pages yet into both orders: Algorithm 3's `Insert`.
    ///
    /// # Errors
    /// An id that is too large or taken, an importance that is not a number.
    pub fn plan(&mut self, id: u32, size: Bytes, keys: Keys) -> Result<(), PageError> {
        if id >= Self::IDS {
            return Err(PageError::IdTooLarge { id });
        }
        if self.contains(id) {
            return Err(PageError::KnownId { id });
        }
        let activation = Activation { keys, size: size.0, list: None };
        let rank = activation.rank().ok_or(PageError::NotANumber { id })?;
        if id as usize >= self.activations.len() {
            self.activations.resize(id as usize + 1, None);
        }
        self.activations[id as usize] = Some(activation);
        self.order.set(id, rank);
        self.planned += self.footprint(size.0);
        Ok(())
    }

    /// Gives a planned activation the lowest free pages: Algorithm 3's `FirstFit` and `InsertPage`.
    ///
    /// # Errors
    /// An unknown id, one that is placed already, or a budget that is full.
    pub fn place(&mut self, id: u32) -> Result<Effects, PageError> {
        let activation = self.get(id)?;
        if activation.list.is_some() {
            return Err(PageError::Placed { id });
        }
        let (list, effects) = self.arena.take(activation.size).map_err(|missing| PageError::Full {
            id,
            missing: Bytes(missing),
            budget: Bytes(self.arena.budget()),
        })?;
        self.activations[id as usize] = Some(Activation { list: Some(list), ..activation });
        self.stored += activation.size;
        self.planned -= self.footprint(activation.size);
        self.peak_used = self.peak_used.max(self.arena.used());
        self.peak_reserved = self.peak_reserved.max(self.arena.reserved());
        Ok(effects)
    }

    /// Plans and places in one: the activation is in both orders and has its pages, or nothing has changed.
    ///
    /// # Errors
    /// As [`PageStore::plan`] and [`PageStore::place`].
    pub fn insert(&mut self, id: u32, size: Bytes, keys: Keys) -> Result<Effects, PageError> {
        self.plan(id, size, keys)?;
        self.place(id).inspect_err(|_| self.forget(id))
    }

    /// Gives an activation another importance, in both orders: `UpdateKey`.
    ///
    /// # Errors
    /// An unknown id, an importance that is not a number.
    pub fn update_key(&mut self, id: u32, importance: f64) -> Result<(), PageError> {
        let mut activation = self.get(id)?;
        activation.keys.importance = importance;
        let rank = activation.rank().ok_or(PageError::NotANumber { id })?;
        self.activations[id as usize] = Some(activation);
        self.order.set(id, rank);
        Ok(())
    }

    /// Gives an activation another size: `UpdateSize`. One that is placed is requantised where it lies and gives the
    /// pages at the tail of its list back; its first bytes stay.
    ///
    /// # Errors
    /// An unknown id, or a placed activation that would grow.
    pub fn update_size(&mut self, id: u32, size: Bytes) -> Result<(), PageError> {
        let mut activation = self.get(id)?;
        let held = std::mem::replace(&mut activation.size, size.0);
        match &mut activation.list {
            Some(_) if size.0 > held => return Err(PageError::Grows { id, held: Bytes(held), wanted: size }),
            Some(list) => {
                self.arena.cut(list, size.0);
                self.stored -= held - size.0;
            }
            None => self.planned = self.planned - self.footprint(held) + self.footprint(size.0),
        }
        self.activations[id as usize] = Some(activation);
        if let Some(rank) = activation.rank() {
            self.order.set(id, rank);
        }
        Ok(())
    }

    /// Takes an activation out of both orders and frees its pages: `Evict`, and what follows its last use.
    ///
    /// # Errors
    /// An unknown id.
    pub fn evict(&mut self, id: u32) -> Result<(), PageError> {
        self.get(id)?;
        self.forget(id);
        Ok(())
    }

    fn forget(&mut self, id: u32) {
        let Some(activation) = self.activations.get_mut(id as usize).and_then(Option::take) else { return };
        self.order.remove(id);
        match activation.list {
            Some(list) => {
                self.arena.give_back(list);
                self.stored -= activation.size;
            }
            None => self.planned -= self.footprint(activation.size),
        }
    }

    /// The activation that goes first under a constraint: `SelectMax`, the one worth least for what it costs.
    #[must_use]
    pub fn select_max(&self, tighter: Tighter) -> Option<u32> {
        self.order.max(tighter)
    }

    /// The tighter of the memory budget, with all that is placed or planned, and a time budget.
    #[must_use]
    pub fn tighter(&self, spent: Nanos, allowed: Nanos) -> Tighter {
        Tighter::of((self.demand(), self.budget()), (spent, allowed))
    }

    /// Changes the budget. A smaller one gives whole blocks back from the end of the arena, after copying the pages
    /// in use there; one that is smaller than a page or than the first block gives everything back. A larger one is
    /// used when it is needed.
    ///
    /// # Errors
    /// The bytes of pages that do not fit: evict or requantise as much and call again.
    pub fn set_budget(&mut self, budget: Bytes) -> Result<Effects, Over> {
        match self.shortfall(budget) {
            Bytes::ZERO => {
                let lists = self.activations.iter_mut().flatten().filter_map(|activation| activation.list.as_mut());
                Ok(self.arena.set_budget(budget.0, lists))
            }
            bytes => Err(Over { bytes, budget }),
        }
    }

    /// Bytes of pages to give back before [`PageStore::set_budget`] can follow.
    #[must_use]
    pub fn shortfall(&self, budget: Bytes) -> Bytes {
        Bytes(self.arena.shortfall(budget.0))
    }

    /// Writes a placed activation, whole.
    ///
    /// # Errors
    /// A store without data, an unknown or unplaced id, another length than the activation's.
    pub fn write(&mut self, id: u32, bytes: &[u8]) -> Result<(), PageError> {
        let list = self.readable(id, bytes.len())?;
        self.arena.write(list, bytes);
        Ok(())
    }

    /// Reads a placed activation, whole. What was never written is of no use.
    ///
    /// # Errors
    /// As [`PageStore::write`].
    pub fn read(&self, id: u32, bytes: &mut [u8]) -> Result<(), PageError> {
        let list = self.readable(id, bytes.len())?;
        self.arena.read(list, bytes);
        Ok(())
    }

    fn readable(&self, id: u32, length: usize) -> Result<List, PageError> {
        if !self.arena.has_data() {
            return Err(PageError::NoData);
        }
        let list = self.get(id)?.list.ok_or(PageError::NotPlaced { id })?;
        if length as u64 != list.size() {
            return Err(PageError::WrongLength { id, size: Bytes(list.size()), given: Bytes(length as u64) });
        }
        Ok(list)
    }

    fn get(&self, id: u32) -> Result<Activation, PageError> {
        self.activations.get(id as usize).copied().flatten().ok_or(PageError::UnknownId { id })
    }

    /// Bytes of the pages that `size` bytes take.
    fn footprint(&self, size: u64) -> u128 {
        u128::from(size.div_ceil(self.arena.page())) * u128::from(self.arena.page())
    }

    /// Whether an activation is there, placed or planned.
    #[must_use]
    pub fn contains(&self, id: u32) -> bool {
        self.get(id).is_ok()
    }

    /// Whether an activation has its pages.
    #[must_use]
    pub fn is_placed(&self, id: u32) -> bool {
        self.get(id).is_ok_and(|activation| activation.list.is_some())
    }

    /// The size of an activation.
    #[must_use]
    pub fn size(&self, id: u32) -> Option<Bytes> {
        self.get(id).ok().map(|activation| Bytes(activation.size))
    }

    /// What an activation is ranked by.
    #[must_use]
    pub fn keys(&self, id: u32) -> Option<Keys> {
        self.get(id).ok().map(|activation| activation.keys)
    }

    /// The page numbers of an activation in list order; none while it is planned.
    pub fn pages(&self, id: u32) -> impl Iterator<Item = u32> {
        let list = self.get(id).ok().and_then(|activation| activation.list);
        list.into_iter().flat_map(|list| self.arena.pages(list))
    }

    /// Both orders.
    #[must_use]
    pub const fn order(&self) -> &Tournament {
        &self.order
    }

    /// Activations, placed or planned.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether no activation is there.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The budget.
    #[must_use]
    pub const fn budget(&self) -> Bytes {
        Bytes(self.arena.budget())
    }

    /// The bytes of pages that the budget allows: whole pages, and 2²⁶ of them at most, whatever the budget.
    #[must_use]
    pub fn capacity(&self) -> Bytes {
        Bytes(self.arena.capacity())
    }

    /// Bytes of placed activations.
    #[must_use]
    pub const fn stored(&self) -> Bytes {
        Bytes(self.stored)
    }

    /// Bytes of pages in use.
    #[must_use]
    pub fn used(&self) -> Bytes {
        Bytes(self.arena.used())
    }

    /// Bytes of pages in use or planned: Algorithm 3's used memory, which the policy keeps within the budget.
    #[must_use]
    pub fn demand(&self) -> Bytes {
        Bytes(u64::try_from(u128::from(self.arena.used()) + self.planned).unwrap_or(u64::MAX))
    }

    /// Bytes held from the system.
    #[must_use]
    pub fn reserved(&self) -> Bytes {
        Bytes(self.arena.reserved())
    }

    /// The largest [`PageStore::used`] so far.
    #[must_use]
    pub const fn peak_used(&self) -> Bytes {
        Bytes(self.peak_used)
    }

    /// The largest [`PageStore::reserved`] so far.
    #[must_use]
    pub const fn peak_reserved(&self) -> Bytes {
        Bytes(self.peak_reserved)
    }

    /// How well the arena is filled; walks all pages.
    #[must_use]
    pub fn fragmentation(&self) -> Fragmentation {
        let mut report = Fragmentation {
            reserved: self.reserved(),
            stored: self.stored(),
            internal: self.used() - self.stored(),
            free: self.reserved() - self.used(),
            longest_free: Bytes(self.arena.longest_free()),
            ..Fragmentation::default()
        };
        for list in self.activations.iter().flatten().filter_map(|activation| activation.list) {
            let mut runs = 0;
            let mut expected = None;
            for page in self.arena.pages(list) {
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
