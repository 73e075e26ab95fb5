//! A cancellable priority queue: the one ordered structure of this crate.
//!
//! The event queue ranks by time, servers by finish or priority, shared bandwidth by virtual work
//! and by cap. Equal ranks keep the order of insertion.

mod rank;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;

pub(crate) use crate::agenda::rank::Rank;
use crate::slots::{Key, Slots};

/// Fewer vacated entries than this are not worth a sweep.
const SWEEP_FROM: usize = 32;

/// Values by (rank, order of insertion).
///
/// A binary heap of packed nodes refers to the values in a slab. Cancelling empties the slot at once
/// and leaves the node behind; when more than half of the nodes are such leftovers, one sweep removes
/// them all. A sweep of n nodes follows at least n/2 cancellations, so cancelling costs O(1)
/// amortised, inserting O(log n) at worst and O(1) on random ranks, popping O(log n). No cancellation
/// leaves more leftovers than live entries, unless they are fewer than [`SWEEP_FROM`].
///
/// The first node is always live, so that looking at it needs no search.
#[derive(Clone, Debug)]
pub(crate) struct Agenda<R: Rank, T> {
    heap: BinaryHeap<Reverse<R::Node>>,
    slots: Slots<T>,
    vacated: usize,
    sequence: u32,
}

impl<R: Rank, T> Agenda<R, T> {
    pub(crate) const BYTES_PER_ENTRY: usize = size_of::<R::Node>() + Slots::<T>::BYTES_PER_SLOT;

    pub(crate) fn new() -> Self {
        Self::with_capacity(0)
    }

    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            heap: BinaryHeap::with_capacity(capacity),
            slots: Slots::with_capacity(capacity),
            vacated: 0,
            sequence: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len() - self.vacated
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// The bytes allocated, used or not.
    pub(crate) fn footprint(&self) -> usize {
        self.heap.capacity() * size_of::<R::Node>() + self.slots.capacity() * Slots::<T>::BYTES_PER_SLOT
    }

    #[inline]
    pub(crate) fn insert(&mut self, rank: R, value: T) -> Key {
        if self.sequence == u32::MAX {
            self.renumber();
        }
        let key = self.slots.insert(value);
        self.heap.push(Reverse(rank.node(self.sequence, key.slot())));
        self.sequence += 1;
        key
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        self.slots.get(key)
    }

    #[inline]
    pub(crate) fn first_rank(&self) -> Option<R> {
        self.heap.peek().map(|&Reverse(node)| R::rank(node))
    }

    pub(crate) fn first(&self) -> Option<(R, &T)> {
        let &Reverse(node) = self.heap.peek()?;
        Some((R::rank(node), self.slots.at(R::slot(node))?))
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(R, T)> {
        let Reverse(node) = self.heap.pop()?;
        let value = self.slots.release(R::slot(node))?;
        if self.vacated > 0 {
            self.drop_vacated_front();
        }
        Some((R::rank(node), value))
    }

    pub(crate) fn cancel(&mut self, key: Key) -> Option<T> {
        let value = self.slots.vacate(key)?;
        self.vacated += 1;
        if self.vacated >= SWEEP_FROM && self.vacated * 2 > self.heap.len() {
            self.sweep();
        } else {
            self.drop_vacated_front();
        }
        Some(value)
    }

    fn drop_vacated_front(&mut self) {
        while let Some(&Reverse(node)) = self.heap.peek() {
            if self.slots.is_full(R::slot(node)) {
                return;
            }
            self.heap.pop();
            self.slots.release(R::slot(node));
            self.vacated -= 1;
        }
    }

    fn sweep(&mut self) {
        let slots = &mut self.slots;
        self.heap.retain(|&Reverse(node)| {
            let live = slots.is_full(R::slot(node));
            if !live {
                slots.release(R::slot(node));
            }
            live
        });
        self.vacated = 0;
    }

    /// Numbers the entries 0, 1, 2… in the order they would leave: nothing of their order is lost and
    /// the sequence numbers start again. Once in about 2³² insertions.
    #[cold]
    fn renumber(&mut self) {
        self.sweep();
        let mut nodes = mem::take(&mut self.heap).into_vec();
        nodes.sort_unstable_by_key(|&Reverse(node)| node);
        self.sequence = 0;
        for Reverse(node) in &mut nodes {
            *node = R::rank(*node).node(self.sequence, R::slot(*node));
            self.sequence += 1;
        }
        self.heap = nodes.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain<R: Rank, T>(agenda: &mut Agenda<R, T>) -> Vec<T> {
        std::iter::from_fn(|| agenda.pop()).map(|(_, value)| value).collect()
    }

    #[test]
    fn equal_ranks_keep_their_order_when_the_sequence_numbers_run_out() {
        let mut agenda = Agenda::<u64, u32>::new();
        agenda.sequence = u32::MAX - 3;
        // Three insertions fit below 2³² − 1, the fourth renumbers. All but 100 and 200 share a rank.
        let keys: Vec<_> = (0..3).map(|i| agenda.insert(5, i)).collect();
        agenda.insert(9, 200);
        agenda.insert(1, 100);
        for i in 3..8 {
            agenda.insert(5, i);
        }
        assert!(agenda.sequence < 20, "renumbered to {}", agenda.sequence);
        // A key from before the renumbering still names its entry.
        assert_eq!(agenda.cancel(keys[1]), Some(1));
        assert_eq!(drain(&mut agenda), [100, 0, 2, 3, 4, 5, 6, 7, 200]);
    }

    #[test]
    fn renumbering_keeps_the_order_of_a_heap_in_disorder() {
        let mut agenda = Agenda::<u128, u32>::new();
        for i in 0..300 {
            agenda.insert(u128::from(i * 7 % 5), i);
        }
        for _ in 0..100 {
            agenda.pop();
        }
        agenda.sequence = u32::MAX;
        agenda.insert(0, 300);
        // A stable sort by rank; 60 values of rank 0 and 40 of rank 1 are gone, and 300 has rank 0.
        let mut expected: Vec<u32> = (0..300).collect();
        expected.sort_by_key(|i| i * 7 % 5);
        expected[99] = 300;
        assert_eq!(drain(&mut agenda), expected[99..]);
    }

    #[test]
    fn renumbering_drops_the_cancelled_entries() {
        let mut agenda = Agenda::<u64, u32>::new();
        let keys: Vec<_> = (0..10).map(|i| agenda.insert(7, i)).collect();
        for &key in &keys[1..6] {
            agenda.cancel(key);
        }
        assert_eq!(agenda.vacated, 5);
        agenda.sequence = u32::MAX;
        agenda.insert(7, 10);
        // 5 live entries are numbered 0 to 4, the new one takes 5.
        assert_eq!((agenda.vacated, agenda.sequence), (0, 6));
        assert_eq!(drain(&mut agenda), [0, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn cancelled_entries_never_exceed_half_of_the_heap() {
        let mut agenda = Agenda::<u128, u64>::new();
        let keys: Vec<_> = (0..1000).map(|i| agenda.insert(u128::from(i), i)).collect();
        // Cancelled from the back, so that none is dropped as the first of the heap.
        for &key in keys[100..].iter().rev() {
            agenda.cancel(key);
            assert!(agenda.vacated < SWEEP_FROM || agenda.vacated * 2 <= agenda.heap.len());
        }
        assert_eq!(agenda.len(), 100);
        assert_eq!(drain(&mut agenda), (0..100).collect::<Vec<_>>());
    }
}
