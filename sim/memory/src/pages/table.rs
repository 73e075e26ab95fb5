//! The page table: which activation goes first when memory or time runs out.

use haversack_devices::{Bytes, Nanos, ensure};

use super::{IDS, PageError, Rank, Tournament};

/// What an activation is ranked by, beside its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Keys {
    /// What keeping it is worth, in any one unit; larger is worth more. Not NaN.
    pub importance: f64,
    /// What keeping it costs of the time budget.
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

/// What is planned to be kept, by id, in the two orders of Algorithm 3.
#[derive(Clone, Debug)]
pub struct PageTable {
    page: u64,
    order: Tournament,
    /// By id.
    entries: Vec<Option<Entry>>,
    /// Bytes of the pages that all entries take.
    demand: u128,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    keys: Keys,
    size: u64,
}

impl Entry {
    /// A quotient by zero is infinite: evicting what costs nothing gains nothing, so it goes last.
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

    /// Enters an activation: Algorithm 3's `Insert`.
    ///
    /// # Errors
    /// An id that is too large or taken, an importance that is not a number.
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

    /// Gives an activation another importance: `UpdateKey`.
    ///
    /// # Errors
    /// An unknown id, an importance that is not a number.
    pub fn update_key(&mut self, id: u32, importance: f64) -> Result<(), PageError> {
        let mut entry = self.entry(id)?;
        entry.keys.importance = importance;
        self.set(id, entry)
    }

    /// Gives an activation another size: `UpdateSize`.
    ///
    /// # Errors
    /// An unknown id.
    pub fn update_size(&mut self, id: u32, size: Bytes) -> Result<(), PageError> {
        let entry = self.entry(id)?;
        self.set(id, Entry { size: size.0, ..entry })?;
        self.demand = self.demand - self.footprint(entry.size) + self.footprint(size.0);
        Ok(())
    }

    /// Takes an activation out: `Evict`.
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

    /// Bytes of the pages that `size` bytes take.
    fn footprint(&self, size: u64) -> u128 {
        u128::from(size.div_ceil(self.page)) * u128::from(self.page)
    }

    /// The activation that goes first under a constraint: `SelectMax`, the one worth least for what it costs.
    pub fn first(&self, tighter: Tighter) -> Option<u32> {
        self.order.max(tighter)
    }

    /// Bytes of the pages of all activations: Algorithm 3's used memory, which the policy keeps within the budget.
    pub fn demand(&self) -> Bytes {
        Bytes(u64::try_from(self.demand).unwrap_or(u64::MAX))
    }
}
