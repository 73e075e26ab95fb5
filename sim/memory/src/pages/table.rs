//! The page table: the order in which activations are evicted when memory or time runs out.

use haversack_devices::{Bytes, Nanos, ensure};

use super::{IDS, PageError, Rank, Tournament};

/// The keys that rank an activation, besides its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Keys {
    /// The value of keeping it, in any unit; larger is worth more. Not NaN.
    pub importance: f64,
    /// The cost of keeping it, out of the time budget.
    pub time: Nanos,
}

/// The constraint that is closer to being exhausted, hence the order in which victims are picked (section 3.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Tighter {
    /// Memory: the order by importance / size.
    Memory,
    /// Time: the order by importance / time.
    Time,
}

/// The activations that are planned to be kept, by id, in the two orders of Algorithm 3.
#[derive(Clone, Debug)]
pub struct PageTable {
    page: u64,
    order: Tournament,
    /// By id.
    entries: Vec<Option<Entry>>,
    /// Bytes of the pages of all entries.
    demand: u128,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    keys: Keys,
    size: u64,
}

impl Entry {
    /// A quotient by zero is infinite: evicting an activation without cost gains nothing, so it comes last.
    fn rank(&self) -> Option<Rank> {
        let Keys { importance, time } = self.keys;
        let per = |cost: u64| if cost == 0 { f64::INFINITY } else { importance / cost as f64 };
        if importance.is_nan() { None } else { Rank::new(per(self.size), per(time.0)) }
    }
}

impl PageTable {
    /// An empty table of pages of `page` bytes.
    ///
    /// # Errors
    /// An empty page.
    pub fn new(page: Bytes) -> Result<Self, PageError> {
        ensure!(page != Bytes::ZERO, PageError::EmptyPage);
        Ok(Self { page: page.0, order: Tournament::default(), entries: Vec::new(), demand: 0 })
    }

    /// Inserts an activation: Algorithm 3's `Insert`.
    ///
    /// # Errors
    /// An id that is too large or in use; a NaN importance.
    pub fn insert(&mut self, id: u32, size: Bytes, keys: Keys) -> Result<(), PageError> {
        ensure!(id < IDS, PageError::IdTooLarge(id));
        ensure!(self.entry(id).is_err(), PageError::KnownId(id));
        if id as usize >= self.entries.len() {
            self.entries.resize(id as usize + 1, None);
        }
        self.set(id, Entry { keys, size: size.0 })?;
        self.demand += self.footprint(size.0);
        Ok(())
    }

    /// Changes an activation's importance: `UpdateKey`.
    ///
    /// # Errors
    /// An unknown id; a NaN importance.
    pub fn update_key(&mut self, id: u32, importance: f64) -> Result<(), PageError> {
        let mut entry = self.entry(id)?;
        entry.keys.importance = importance;
        self.set(id, entry)
    }

    /// Changes an activation's size: `UpdateSize`.
    ///
    /// # Errors
    /// An unknown id.
    pub fn update_size(&mut self, id: u32, size: Bytes) -> Result<(), PageError> {
        let entry = self.entry(id)?;
        self.set(id, Entry { size: size.0, ..entry })?;
        self.demand = self.demand - self.footprint(entry.size) + self.footprint(size.0);
        Ok(())
    }

    /// Removes an activation: `Evict`.
    ///
    /// # Errors
    /// An unknown id.
    pub fn evict(&mut self, id: u32) -> Result<(), PageError> {
        let entry = self.entry(id)?;
        self.entries[id as usize] = None;
        self.order.remove(id);
        self.demand -= self.footprint(entry.size);
        Ok(())
    }

    fn set(&mut self, id: u32, entry: Entry) -> Result<(), PageError> {
        let rank = entry.rank().ok_or(PageError::NotANumber(id))?;
        self.entries[id as usize] = Some(entry);
        self.order.set(id, rank);
        Ok(())
    }

    fn entry(&self, id: u32) -> Result<Entry, PageError> {
        self.entries.get(id as usize).copied().flatten().ok_or(PageError::UnknownId(id))
    }

    /// Bytes of the pages for `size` bytes.
    fn footprint(&self, size: u64) -> u128 {
        u128::from(size.div_ceil(self.page)) * u128::from(self.page)
    }

    /// The first activation to be evicted under a constraint: `SelectMax`, the one with the least value for its cost.
    pub fn first(&self, tighter: Tighter) -> Option<u32> {
        self.order.max(tighter)
    }

    /// Bytes of the pages of all activations: Algorithm 3's used memory, which the policy keeps within the budget.
    pub fn demand(&self) -> Bytes {
        Bytes(u64::try_from(self.demand).unwrap_or(u64::MAX))
    }
}
