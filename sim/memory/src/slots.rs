//! Things that come and go, each in a slot that the next one takes over.

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
    /// The number of slots, taken or free.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.all.get(index as usize)
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.all.get_mut(index as usize)
    }

    /// The slot that takes `item`: one that is free, or another.
    pub(crate) fn put(&mut self, item: T) -> u32 {
        if let Some(index) = self.take() {
            self.all[index as usize] = item;
            return index;
        }
        self.all.push(item);
        (self.all.len() - 1) as u32
    }

    /// A slot that is free, which is not any more; `None` if all are taken.
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Another slot; `None` if there are as many as there can be.
    pub(crate) fn add(&mut self, item: T) -> Option<u32> {
        let index = u32::try_from(self.all.len()).ok()?;
        self.all.push(item);
        Some(index)
    }

    /// What is in a slot is no more.
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
