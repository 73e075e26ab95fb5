//! A set of small integers as bits, stored only between its lowest and its highest word.
//!
//! Evicted neighbourhoods are unions of unions, which are affordable only a word at a time.
//!
//! The evictable storages, in the order in which they became evictable.
//!
//! The order decides between equal scores, so removal keeps it. The pool is one dense vector of
//! small integers: closing a gap is a short `memmove`, and the scan for a victim stays contiguous.

/// A set of storages.
#[derive(Clone, Default)]
pub(crate) struct SpanSet {
    /// Words skipped before the first one.
    start: usize,
    words: Vec<u64>,
}

impl SpanSet {
    /// Makes room for the words `start..end`.
    fn cover(&mut self, start: usize, end: usize) {
        if self.words.is_empty() {
            self.start = start;
        }
        if start < self.start {
            self.words.splice(0..0, std::iter::repeat_n(0, self.start - start));
            self.start = start;
        }
        if end > self.start + self.words.len() {
            self.words.resize(end - self.start, 0);
        }
    }

    /// Adds `item`; returns whether it is new.
    #[inline]
    pub(crate) fn insert(&mut self, item: u32) -> bool {
        let (word, bit) = (item as usize / 64, 1 << (item % 64));
        if word < self.start || word >= self.start + self.words.len() {
            self.cover(word, word + 1);
        }
        let word = &mut self.words[word - self.start];
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    pub(crate) fn remove(&mut self, item: u32) {
        let (word, bit) = (item as usize / 64, 1u64 << (item % 64));
        if let Some(word) = word.checked_sub(self.start).and_then(|place| self.words.get_mut(place)) {
            *word &= !bit;
        }
    }

    /// Adds all of `other`, and passes each new item to `added`.
    pub(crate) fn union(&mut self, other: &Self, mut added: impl FnMut(u32)) {
        if other.words.is_empty() {
            return;
        }
        self.cover(other.start, other.start + other.words.len());
        let offset = other.start - self.start;
        for (place, (mine, &theirs)) in self.words[offset..].iter_mut().zip(&other.words).enumerate() {
            let new = theirs & !*mine;
            *mine |= theirs;
            bits(other.start + place, new).for_each(&mut added);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.words.iter().enumerate().flat_map(|(place, &word)| bits(self.start + place, word))
    }

    pub(crate) fn clear(&mut self) {
        self.words.clear();
    }
}

/// The items of one word.
#[inline]
fn bits(place: usize, mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        (word != 0).then(|| {
            let bit = word.trailing_zeros();
            word &= word - 1;
            place as u32 * 64 + bit
        })
    })
}

/// An ordered set of storages.
pub(crate) struct Pool {
    pub(crate) members: Vec<u32>,
    /// The stamp of each storage's last push; 0 while it is outside. Increases along `members`, so a member
    /// is found by binary search.
    pushed: Vec<u64>,
    pushes: u64,
}

impl Pool {
    pub(crate) fn new(storages: usize) -> Self {
        Self { members: Vec::with_capacity(storages), pushed: vec![0; storages], pushes: 0 }
    }

    pub(crate) fn contains(&self, storage: u32) -> bool {
        self.pushed[storage as usize] != 0
    }

    /// Appends a storage that is outside.
    pub(crate) fn push(&mut self, storage: u32) {
        debug_assert!(!self.contains(storage));
        self.pushes += 1;
        self.pushed[storage as usize] = self.pushes;
        self.members.push(storage);
    }

    /// Removes a storage from any position; does nothing if it is outside.
    pub(crate) fn remove(&mut self, storage: u32) {
        let stamp = self.pushed[storage as usize];
        if stamp == 0 {
            return;
        }
        let place = self.members.partition_point(|&other| self.pushed[other as usize] < stamp);
        self.members.remove(place);
        self.pushed[storage as usize] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{Pool, SpanSet};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// The naive twin is a plain set; both execute the same operations.
        #[test]
        fn it_is_a_set(
            mine in prop::collection::vec(0u32..1000, 0..40),
            theirs in prop::collection::vec(0u32..1000, 0..40),
            gone in prop::collection::vec(0u32..1000, 0..40),
        ) {
            let (mut set, mut plain) = (SpanSet::default(), BTreeSet::new());
            for item in mine {
                prop_assert_eq!(set.insert(item), plain.insert(item));
            }
            for item in gone {
                set.remove(item);
                plain.remove(&item);
            }
            let (mut other, mut plain_other) = (SpanSet::default(), BTreeSet::new());
            for item in theirs {
                other.insert(item);
                plain_other.insert(item);
            }
            let mut added = Vec::new();
            set.union(&other, |item| added.push(item));
            prop_assert_eq!(added, plain_other.difference(&plain).copied().collect::<Vec<_>>());
            plain.extend(plain_other);
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), plain.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn removal_keeps_the_order_and_a_returning_member_goes_last() {
        let mut pool = Pool::new(5);
        for storage in [3, 1, 4, 0] {
            pool.push(storage);
        }
        pool.remove(1);
        assert_eq!(pool.members, [3, 4, 0]);
        pool.remove(1);
        pool.push(1);
        pool.remove(3);
        pool.push(3);
        assert_eq!(pool.members, [4, 0, 1, 3]);
        assert!(pool.contains(1) && !pool.contains(2));
    }
}
