//! A cancellable priority queue: the only ordered structure of this crate.
//!
//! The event queue ranks by time, shared bandwidth by virtual work and by cap. Entries of equal rank keep
//! their order of insertion.

mod ladder;

pub(crate) use ladder::Rank;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;

use ladder::Ladder;

use crate::slots::{Key, Slots};

/// Fewer vacated entries than this are not worth a sweep.
const SWEEP_FROM: usize = 32;
/// With more near nodes than this, a binary heap no longer fits in the inner caches.
const LARGE: usize = 1 << 14;

/// Values by (rank, order of insertion).
///
/// Packed nodes refer to the values in a slab. The nodes that come next are *near*, in a binary heap; up to [`LARGE`]
/// nodes, all of them are. With more, the others wait unsorted in a [`Ladder`] and become near a few at a time, until
/// an eighth of [`LARGE`] is left: then all become near again.
///
/// Cancelling empties the slot immediately and leaves the node behind; when more than half of the nodes are such
/// leftovers, one sweep removes them all. A sweep of n nodes follows at least n/2 cancellations, so cancelling costs
/// O(1) amortised. Inserting costs O(1) on random ranks, popping O(log n) of the near nodes and a constant for each of
/// the at most eleven moves of a far one; in the worst case, when everything is inserted among the near nodes, both are
/// O(log n). After a cancellation there are at most as many leftovers as live entries, or fewer than [`SWEEP_FROM`].
///
/// The first near node is always live, so peeking needs no search.
#[derive(Clone, Debug)]
pub(crate) struct Agenda<R: Rank, T> {
    near: BinaryHeap<Reverse<R::Node>>,
    far: Ladder<R::Node>,
    /// With more near nodes than this, they are spread over the ladder.
    limit: usize,
    large: usize,
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
            near: BinaryHeap::with_capacity(capacity.min(LARGE)),
            far: Ladder::new(),
            limit: LARGE,
            large: LARGE,
            slots: Slots::with_capacity(capacity),
            vacated: 0,
            sequence: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes() - self.vacated
    }

    fn nodes(&self) -> usize {
        self.near.len() + self.far.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.near.is_empty()
    }

    /// The bytes allocated, used or not.
    pub(crate) fn footprint(&self) -> usize {
        let slots = self.slots.capacity() * Slots::<T>::BYTES_PER_SLOT;
        self.near.capacity() * size_of::<R::Node>() + self.far.footprint() + slots
    }

    #[inline]
    pub(crate) fn insert(&mut self, rank: R, value: T) -> Key {
        if self.sequence == u32::MAX {
            self.renumber();
        }
        let key = self.slots.insert(value);
        let node = rank.node(self.sequence, key.slot);
        self.sequence += 1;
        if R::high(node) <= self.far.reach {
            self.near.push(Reverse(node));
            if self.near.len() > self.limit {
                self.spread();
            }
        } else {
            self.far.insert(R::high(node), node);
        }
        key
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        self.slots.get(key)
    }

    #[inline]
    pub(crate) fn first_rank(&self) -> Option<R> {
        self.near.peek().map(|&Reverse(node)| R::rank(node))
    }

    pub(crate) fn first(&self) -> Option<(R, &T)> {
        let &Reverse(node) = self.near.peek()?;
        Some((R::rank(node), self.slots.at(R::slot(node))?))
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(R, T)> {
        let Reverse(node) = self.near.pop()?;
        let value = self.slots.release(R::slot(node))?;
        if self.vacated > 0 || self.near.is_empty() {
            self.find_first();
        }
        Some((R::rank(node), value))
    }

    pub(crate) fn cancel(&mut self, key: Key) -> Option<T> {
        let value = self.slots.vacate(key)?;
        self.vacated += 1;
        if self.vacated >= SWEEP_FROM && self.vacated * 2 > self.nodes() {
            self.sweep();
        }
        self.find_first();
        Some(value)
    }

    /// Drops vacated nodes until a live one is the first, and fetches far ones when no near one is left.
    fn find_first(&mut self) {
        loop {
            while let Some(&Reverse(node)) = self.near.peek() {
                if self.slots.is_full(R::slot(node)) {
                    return;
                }
                self.near.pop();
                self.slots.release(R::slot(node));
                self.vacated -= 1;
            }
            if self.far.len == 0 {
                return;
            }
            let near = mem::take(&mut self.near).into_vec();
            self.refill(near);
        }
    }

    /// Moves the first of the far nodes into `near`, which is empty.
    fn refill(&mut self, mut near: Vec<Reverse<R::Node>>) {
        self.far.refill(&mut near, self.large / 8, R::high);
        // The number of insertions among the near nodes before they are spread again.
        self.limit = self.large.max(2 * near.len()).max(self.far.len / 4);
        self.near = near.into();
    }

    /// Moves all nodes to the ladder, and the first of them back.
    #[cold]
    #[inline(never)]
    fn spread(&mut self) {
        let mut nodes = mem::take(&mut self.near).into_vec();
        self.far.empty(&mut nodes);
        let ranked = || nodes.iter().map(|&Reverse(node)| (R::high(node), node));
        self.far.fill(ranked().map(|(rank, _)| rank).min().unwrap_or(0), ranked());
        nodes.clear();
        nodes.shrink_to(self.large);
        self.refill(nodes);
    }

    fn sweep(&mut self) {
        let slots = &mut self.slots;
        let mut live = |node: R::Node| {
            let live = slots.is_full(R::slot(node));
            if !live {
                slots.release(R::slot(node));
            }
            live
        };
        self.near.retain(|&Reverse(node)| live(node));
        self.far.retain(live);
        self.vacated = 0;
    }

    /// Renumbers the entries 0, 1, 2… in the order they would leave. Their order is unchanged and the sequence numbers
    /// start again. Needed once in about 2³² insertions.
    #[cold]
    fn renumber(&mut self) {
        self.sweep();
        let mut nodes = mem::take(&mut self.near).into_vec();
        self.far.empty(&mut nodes);
        nodes.sort_unstable_by_key(|&Reverse(node)| node);
        self.sequence = 0;
        for Reverse(node) in &mut nodes {
            *node = R::rank(*node).node(self.sequence, R::slot(*node));
            self.sequence += 1;
        }
        self.near = nodes.into();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, RngSeed};

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
        // A key from before the renumbering still identifies its entry.
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
        // The 5 live entries are numbered 0 to 4, the new one 5.
        assert_eq!((agenda.vacated, agenda.sequence), (0, 6));
        assert_eq!(drain(&mut agenda), [0, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn cancelled_entries_never_exceed_half_of_the_heap() {
        let mut agenda = Agenda::<u128, u64>::new();
        let keys: Vec<_> = (0..1000).map(|i| agenda.insert(u128::from(i), i)).collect();
        // Cancelled from the back, so that none is dropped from the front of the heap.
        for &key in keys[100..].iter().rev() {
            agenda.cancel(key);
            assert!(agenda.vacated < SWEEP_FROM || agenda.vacated * 2 <= agenda.nodes());
        }
        assert_eq!(agenda.len(), 100);
        assert_eq!(drain(&mut agenda), (0..100).collect::<Vec<_>>());
    }

    /// An agenda that counts as large from 65 near nodes on.
    fn small_ladder() -> Agenda<u64, u32> {
        Agenda { limit: 64, large: 64, ..Agenda::new() }
    }

    #[test]
    fn nodes_move_to_the_ladder_beyond_the_threshold_and_back_below_an_eighth() {
        let mut agenda = small_ladder();
        for i in 0..64 {
            agenda.insert(u64::from(i) << 40, i);
        }
        assert_eq!((agenda.near.len(), agenda.far.len, agenda.far.reach), (64, 0, u64::MAX));
        // Only rank 0 has no digit that differs from the base, 0: it becomes near, and nothing above it.
        agenda.insert(64 << 40, 64);
        assert_eq!((agenda.near.len(), agenda.far.len, agenda.far.reach), (1, 64, 0));
        // Among the near nodes, and beyond.
        agenda.insert(0, 100);
        agenda.insert((1 << 40) + 5, 101);
        let first: Vec<_> = (0..5).filter_map(|_| agenda.pop()).map(|(_, value)| value).collect();
        assert_eq!(first, [0, 100, 1, 101, 2]);
        // 3 is near. The others differ from it first in bits 42 to 47, in which 4 to 7 are equal, 8 to 11 and so on: 61
        // lie in 15 buckets of four and one of one, and a bucket becomes near as a whole.
        assert_eq!((agenda.near.len(), agenda.far.len), (1, 61));
        // After 14 buckets 61 − 56 = 5 are left, fewer than 64 / 8: they become near together.
        let before: Vec<_> = std::iter::from_fn(|| (agenda.far.len > 0).then(|| agenda.pop())?).collect();
        assert_eq!(before.last(), Some(&(59 << 40, 59)));
        assert_eq!((agenda.near.len(), agenda.far.reach), (5, u64::MAX));
        assert_eq!(drain(&mut agenda), [60, 61, 62, 63, 64]);
    }

    #[test]
    fn equal_ranks_in_great_number_are_spread_no_more_than_they_double() {
        let mut agenda = small_ladder();
        for i in 0..65 {
            agenda.insert(7, i);
        }
        // Equal ranks cannot be separated: all are near again, and the next spread waits for twice as many.
        assert_eq!((agenda.near.len(), agenda.limit), (65, 130));
        for i in 65..400 {
            agenda.insert(7, i);
        }
        // At 131 > 130, for the limit 262, and at 263, for the limit 526.
        assert_eq!(agenda.limit, 526);
        assert_eq!(drain(&mut agenda), (0..400).collect::<Vec<_>>());
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64),
        Pop(usize),
        Cancel(prop::sample::Index),
        Renumber,
    }

    /// Equal ranks, close ones, and ones that differ in high digits; and the largest rank.
    fn rank() -> impl Strategy<Value = u64> {
        prop_oneof![4 => 0..4_000_u64, 4 => 0..1_u64 << 40, 1 => any::<u64>(), 1 => Just(u64::MAX), 1 => Just(9)]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            60 => rank().prop_map(Step::Insert),
            20 => (1..3_usize).prop_map(Step::Pop),
            1 => (30..200_usize).prop_map(Step::Pop),
            20 => any::<prop::sample::Index>().prop_map(Step::Cancel),
            1 => Just(Step::Renumber),
        ]
    }

    proptest! {
        #![proptest_config(Config { cases: 60, rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..Config::default() })]

        /// In lock step with a list that is searched for the smallest (rank, number), at a threshold of 64 that scripts
        /// cross both ways. Ranks need not rise: an insertion may precede all near nodes.
        #[test]
        fn a_large_agenda_and_a_list_agree(script in prop::collection::vec(step(), 1..800)) {
            let mut agenda = small_ladder();
            let (mut list, mut keys) = (Vec::<(u64, u32)>::new(), Vec::new());
            for step in script {
                match step {
                    Step::Insert(rank) => {
                        let number = keys.len() as u32;
                        keys.push(agenda.insert(rank, number));
                        list.push((rank, number));
                    }
                    Step::Pop(times) => {
                        for _ in 0..times {
                            let first = list.iter().enumerate().min_by_key(|(_, entry)| **entry).map(|(at, _)| at);
                            prop_assert_eq!(agenda.pop(), first.map(|at| list.remove(at)));
                        }
                    }
                    Step::Cancel(index) if !keys.is_empty() => {
                        let number = index.index(keys.len());
                        let at = list.iter().position(|entry| entry.1 == number as u32);
                        prop_assert_eq!(agenda.cancel(keys[number]), at.map(|at| list.remove(at).1));
                    }
                    Step::Cancel(_) => {}
                    Step::Renumber => agenda.sequence = u32::MAX,
                }
                prop_assert_eq!(agenda.len(), list.len());
                prop_assert_eq!(agenda.is_empty(), list.is_empty());
                prop_assert_eq!(agenda.first_rank(), list.iter().min().map(|entry| entry.0));
                prop_assert!(agenda.vacated < SWEEP_FROM || agenda.vacated * 2 <= agenda.nodes());
            }
            list.sort_unstable();
            prop_assert_eq!(drain(&mut agenda), list.into_iter().map(|entry| entry.1).collect::<Vec<_>>());
        }
    }
}
