//! Items in reusable slots.

use std::ops::{Index, IndexMut};

/// Slots, some of them free.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { all: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// The number of slots, in use or free.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.all.get(index as usize)
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.all.get_mut(index as usize)
    }

    /// Puts `item` into a free slot, or into a new one; returns the slot.
    pub(crate) fn put(&mut self, item: T) -> u32 {
        if let Some(index) = self.take() {
            self.all[index as usize] = item;
            return index;
        }
        self.all.push(item);
        (self.all.len() - 1) as u32
    }

    /// Takes a free slot; `None` if all are in use.
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Adds a slot; `None` at the largest possible number.
    pub(crate) fn add(&mut self, item: T) -> Option<u32> {
        let index = u32::try_from(self.all.len()).ok()?;
        self.all.push(item);
        Some(index)
    }

    /// Frees a slot.
    pub(crate) fn give_back(&mut self, index: usize) {
        self.free.push(index as u32);
    }
}

impl<T> Index<usize> for Slots<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        &self.all[index]
    }
}

impl<T> IndexMut<usize> for Slots<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.all[index]
    }
}
