//! Finds the tensor that goes first without computing every score each time.
//!
//! A policy gives each tensor that may go a few keys, from which it can compute upper bounds on the scores of several
//! tensors, now and later. A binary tree keeps the largest keys of every range of tensors: a search walks down to the
//! tensors that may still be the first, the most promising half first, and scores only these. Bounds from keys may be
//! too high; each score corrects those of its tensor. So a search takes logarithmic time, and its results stay valid
//! for the next search wherever nothing changed. The result is the same as from computing all scores; among equal ones
//! the lower id goes first.
//!
//! Also helpers for keeping scores: which tensors looked at another while they were priced (`Watchers`), and a set that
//! is emptied in constant time (`Stamps`).

use haversack_devices::Bytes;
use haversack_workloads::TensorId;

use crate::{MemoryView, Relief, TensorState};

/// Rounding may put a score this much above the bound from its keys, relative to it.
const ROUNDING: f64 = 1.0 + 1e-12;

/// An upper bound on products and quotients of keys, which is valid even if the score is rounded differently.
pub fn at_most(value: f64) -> f64 {
    value * if value < 0.0 { 2.0 - ROUNDING } else { ROUNDING }
}

/// An upper bound from a rate of scores times `factor`, where negative factors count as zero.
pub(crate) fn promised(rate: f64, factor: f64) -> f64 {
    if rate == f64::INFINITY { rate } else { at_most(rate * factor.max(0.0)) }
}

/// The result of scoring a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scored<const K: usize> {
    /// Its score, and keys whose bound is tight at this time.
    At(f64, [f64; K]),
    /// It may not go this time.
    NotNow,
    /// It does not go before it changes.
    Never,
}

/// Tensors by upper bounds on their scores.
#[derive(Clone, Debug)]
pub struct Ranking<const K: usize> {
    /// The largest keys of each range; the whole is at 1, the halves of the range at `n` at `2n` and `2n + 1`.
    keys: Vec<[f64; K]>,
    /// The number of leaves, a power of two: the keys of tensor `t` are at `leaves + t`.
    leaves: usize,
    /// Ranges that the current search has yet to visit; empty between searches.
    open: Vec<Range>,
    /// Tensors taken since the last refresh.
    taken: Vec<TensorId>,
    /// The micro-batch at the last refresh.
    samples: u64,
    scored: u64,
}

impl<const K: usize> Default for Ranking<K> {
    fn default() -> Self {
        Self { keys: vec![Self::ABSENT; 2], leaves: 1, open: Vec::new(), taken: Vec::new(), samples: 0, scored: 0 }
    }
}

/// A range of tensors to search: the one below `place` of the tree.
#[derive(Clone, Copy, Debug)]
struct Range {
    bound: f64,
    place: usize,
    lowest: usize,
    span: usize,
}

impl<const K: usize> Ranking<K> {
    const ABSENT: [f64; K] = [f64::NEG_INFINITY; K];

    /// Adds `tensor` with `keys`, or removes it.
    pub fn put(&mut self, tensor: TensorId, keys: Option<[f64; K]>) {
        let id = tensor as usize;
        if id >= self.leaves {
            if keys.is_none() {
                return;
            }
            self.grow(id + 1);
        }
        // Keys of present tensors differ from those of absent ones.
        let mut largest = keys.map_or(Self::ABSENT, |keys| keys.map(|key| key.max(f64::MIN)));
        let mut place = self.leaves + id;
        while place > 0 && self.keys[place] != largest {
            self.keys[place] = largest;
            largest = larger(&self.keys[place], &self.keys[place ^ 1]);
            place /= 2;
        }
    }

    fn grow(&mut self, tensors: usize) {
        let before = std::mem::replace(&mut self.leaves, tensors.next_power_of_two());
        let mut keys = vec![Self::ABSENT; 2 * self.leaves];
        keys[self.leaves..self.leaves + before].copy_from_slice(&self.keys[before..]);
        for place in (1..self.leaves).rev() {
            keys[place] = larger(&keys[2 * place], &keys[2 * place + 1]);
        }
        self.keys = keys;
    }

    /// Updates the keys of changed tensors and of `others`: `keys` computes them for candidates.
    pub fn refresh(
        &mut self,
        memory: &MemoryView<'_>,
        others: &[TensorId],
        mut keys: impl FnMut(TensorId, &TensorState) -> Option<[f64; K]>,
    ) {
        let taken = std::mem::take(&mut self.taken);
        let resized = std::mem::replace(&mut self.samples, memory.micro_batch) != memory.micro_batch;
        let mut look = |tensor: TensorId| {
            let present = memory.candidates.contains(tensor);
            self.put(tensor, if present { keys(tensor, &memory.tensors[tensor as usize]) } else { None });
        };
        memory.changed.iter().for_each(&mut look);
        others.iter().chain(&taken).copied().for_each(&mut look);
        if resized {
            memory.candidates.iter().for_each(&mut look);
        }
    }

    /// Removes and returns the tensor with the largest score, until it changes or the next search begins.
    ///
    /// `bound` computes an upper bound on scores from the largest keys of some tensors; tensors bounded by minus
    /// infinity are never taken. `score` computes the exact score.
    pub fn take_best(
        &mut self,
        bound: impl Fn(&[f64; K]) -> f64,
        mut score: impl FnMut(TensorId) -> Scored<K>,
    ) -> Option<TensorId> {
        let mut best: Option<(f64, usize)> = None;
        let mut open = std::mem::take(&mut self.open);
        let range = |keys: &[f64; K], place, lowest, span| {
            let bound = if *keys == Self::ABSENT { f64::NEG_INFINITY } else { bound(keys) };
            Range { bound, place, lowest, span }
        };
        open.push(range(&self.keys[1], 1, 0, self.leaves));
        while let Some(Range { bound: most, place, lowest, span }) = open.pop() {
            let beaten = best.is_some_and(|(score, tensor)| most < score || (most == score && lowest > tensor));
            if beaten || most == f64::NEG_INFINITY {
                continue;
            }
            if span == 1 {
                self.scored += 1;
                match score(lowest as TensorId) {
                    Scored::At(score, keys) => {
                        self.put(lowest as TensorId, Some(keys));
                        if best.is_none_or(|(first, tensor)| score > first || (score == first && lowest < tensor)) {
                            best = Some((score, lowest));
                        }
                    }
                    Scored::NotNow => {}
                    Scored::Never => self.put(lowest as TensorId, None),
                }
                continue;
            }
            let half = |side| {
                let (place, span) = (2 * place + side, span / 2);
                range(&self.keys[place], place, lowest + side * span, span)
            };
            let (left, right) = (half(0), half(1));
            open.extend(if left.bound >= right.bound { [right, left] } else { [left, right] });
        }
        self.open = open;
        let (_, tensor) = best?;
        self.put(tensor as TensorId, None);
        self.taken.push(tensor as TensorId);
        Some(tensor as TensorId)
    }

    /// Drops the best tensors, one after the other, until `wanted` is freed or none is left.
    pub fn evict(
        &mut self,
        wanted: Bytes,
        memory: &MemoryView<'_>,
        bound: impl Fn(&[f64; K]) -> f64,
        mut score: impl FnMut(TensorId) -> Scored<K>,
    ) -> Vec<Relief> {
        let mut reliefs = Vec::new();
        let mut freed = Bytes::ZERO;
        while freed < wanted {
            let Some(victim) = self.take_best(&bound, &mut score) else { break };
            freed += memory.tensors[victim as usize].bytes;
            reliefs.push(Relief::Rematerialise(victim));
        }
        reliefs
    }

    /// The number of scores computed so far.
    pub const fn scored(&self) -> u64 {
        self.scored
    }
}

fn larger<const K: usize>(one: &[f64; K], other: &[f64; K]) -> [f64; K] {
    std::array::from_fn(|key| one[key].max(other[key]))
}

/// The tensors in whose price each tensor counted; they may become cheaper when that tensor comes back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watchers {
    of: Vec<Vec<TensorId>>,
}

impl Watchers {
    /// Watchers for `tensors` tensors, none of which is watched.
    pub(crate) fn new(tensors: usize) -> Self {
        Self { of: vec![Vec::new(); tensors] }
    }

    /// `watched` counts in the price of `watcher`.
    pub(crate) fn watch(&mut self, watched: TensorId, watcher: TensorId) {
        let list = &mut self.of[watched as usize];
        if list.len() == list.capacity() {
            // Duplicates are removed before it grows; earlier entries are still in order.
            list.sort();
            list.dedup();
        }
        list.push(watcher);
    }

    /// The tensors in whose price `watched` counted; they no longer watch it. One may be named several times.
    pub(crate) fn take(&mut self, watched: TensorId) -> Vec<TensorId> {
        std::mem::take(&mut self.of[watched as usize])
    }
}

/// The things that a search has visited, without clearing anything between searches.
#[derive(Clone, Debug)]
pub(crate) struct Stamps {
    of: Vec<u32>,
    search: u32,
}

impl Stamps {
    /// A set for this number of things.
    pub(crate) fn new(things: usize) -> Self {
        Self { of: vec![0; things], search: 0 }
    }

    /// A search begins: nothing was visited so far.
    pub(crate) fn begin(&mut self) {
        self.search += 1;
    }

    /// Whether the search visits `thing` for the first time.
    pub(crate) fn first(&mut self, thing: u32) -> bool {
        std::mem::replace(&mut self.of[thing as usize], self.search) != self.search
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The first, by computing all scores.
    fn searched(scores: &[Option<f64>]) -> Option<usize> {
        let present = (0..scores.len()).filter(|&id| scores[id].is_some());
        present.max_by(|&a, &b| scores[a].partial_cmp(&scores[b]).unwrap().then(b.cmp(&a)))
    }

    proptest! {
        /// Scores fall between searches, which keys learn only when they are scored; the order is that of a full
        /// search.
        #[test]
        fn it_yields_what_a_search_through_all_scores_would(
            steps in proptest::collection::vec((0..40_u32, 0..6_u8, 0..4_u8), 1..200),
        ) {
            let mut scores: Vec<Option<f64>> = vec![None; 40];
            let mut ranking = Ranking::<1>::default();
            for (tensor, score, what) in steps {
                match what {
                    0 | 1 => {
                        scores[tensor as usize] = Some(f64::from(score));
                        ranking.put(tensor, Some([f64::from(score)]));
                    }
                    // It falls without notice.
                    2 => scores[tensor as usize] = scores[tensor as usize].map(|now| now.min(f64::from(score))),
                    _ => {
                        let exact = |tensor: TensorId| {
                            let score = scores[tensor as usize].unwrap();
                            Scored::At(score, [score])
                        };
                        let taken = ranking.take_best(|&[key]| key, exact);
                        prop_assert_eq!(taken.map(|tensor| tensor as usize), searched(&scores));
                        if let Some(taken) = taken {
                            scores[taken as usize] = None;
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_question_scores_few_of_many_equals() {
        let mut ranking = Ranking::<1>::default();
        for tensor in 0..10_000 {
            ranking.put(tensor, Some([7.0]));
        }
        for first in 0..100 {
            assert_eq!(ranking.take_best(|&[key]| key, |_| Scored::At(7.0, [7.0])), Some(first));
        }
        // One score per search: the lowest of equals is found without looking at the others.
        assert_eq!(ranking.scored(), 100);
    }

    #[test]
    fn of_no_tensors_none_is_scored() {
        let mut ranking = Ranking::<1>::default();
        assert_eq!(ranking.take_best(|&[key]| key, |_| Scored::At(0.0, [0.0])), None);
        ranking.put(3, Some([1.0]));
        ranking.put(3, None);
        assert_eq!(ranking.take_best(|&[key]| key, |_| Scored::At(0.0, [0.0])), None);
        assert_eq!(ranking.scored(), 0);
    }

    #[test]
    fn what_may_not_go_is_passed_over_and_what_never_goes_leaves() {
        let mut ranking = Ranking::<1>::default();
        for tensor in 0..3 {
            ranking.put(tensor, Some([f64::from(tensor)]));
        }
        let mut score = |tensor| match tensor {
            2 => Scored::NotNow,
            1 => Scored::Never,
            _ => Scored::At(0.0, [0.0]),
        };
        assert_eq!(ranking.take_best(|&[key]| key, &mut score), Some(0));
        assert_eq!(ranking.take_best(|&[key]| key, &mut score), None);
        // Tensor 2 stayed.
        assert_eq!(ranking.take_best(|&[key]| key, |_| Scored::At(2.0, [2.0])), Some(2));
    }
}
