//! Which tensor goes first, without asking for the score of every one each time.
//!
//! A policy gives each tensor that may go a few keys, from which it can tell how high the scores of several tensors can
//! be at most, now and later. A binary tree keeps the largest keys of every range of tensors: a question walks down to
//! the tensors that may still be the first, the most promising half first, and only these are scored. Keys may promise
//! too much; each score corrects those of its tensor. So a question costs a logarithm, and what was found holds for the
//! next question wherever nothing changed. The answer is that of a search through all scores; of equal ones the lower
//! id goes first.
//!
//! Beside it what scores are kept by: who looked at a tensor while pricing another (`Watchers`), and a set that is emptied
//! in no time (`Stamps`).

use haversack_devices::Bytes;
use haversack_workloads::TensorId;

use crate::{MemoryView, Relief, TensorState};

/// Rounding may put a score this much above what its keys promise, relative to it.
const ROUNDING: f64 = 1.0 + 1e-12;

/// What is promised of products and quotients of keys: never less than the score that is rounded otherwise.
pub fn at_most(value: f64) -> f64 {
    value * if value < 0.0 { 2.0 - ROUNDING } else { ROUNDING }
}

/// What a rate of scores promises for `factor`, of which less than nothing counts as nothing.
pub(crate) fn promised(rate: f64, factor: f64) -> f64 {
    if rate == f64::INFINITY { rate } else { at_most(rate * factor.max(0.0)) }
}

/// What came of scoring a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scored<const K: usize> {
    /// Its score, and keys that promise no more than is known by now.
    At(f64, [f64; K]),
    /// It may not go this time.
    NotNow,
    /// It does not go before it changes.
    Never,
}

/// Tensors by a score that is known from above.
#[derive(Clone, Debug)]
pub struct Ranking<const K: usize> {
    /// The largest keys of each range; the whole is at 1, the halves of what is at `n` at `2n` and `2n + 1`.
    keys: Vec<[f64; K]>,
    /// The number of leaves, a power of two: the keys of tensor `t` are at `leaves + t`.
    leaves: usize,
    /// Ranges that the question under way has still to look at; empty between questions.
    open: Vec<Range>,
    /// What was taken since the last refreshing.
    taken: Vec<TensorId>,
    /// The micro-batch at the last refreshing.
    samples: u64,
    scored: u64,
}

impl<const K: usize> Default for Ranking<K> {
    fn default() -> Self {
        Self { keys: vec![Self::ABSENT; 2], leaves: 1, open: Vec::new(), taken: Vec::new(), samples: 0, scored: 0 }
    }
}

/// A range of tensors that is still to be looked at: the one below `place` of the tree.
#[derive(Clone, Copy, Debug)]
struct Range {
    bound: f64,
    place: usize,
    lowest: usize,
    span: usize,
}

impl<const K: usize> Ranking<K> {
    const ABSENT: [f64; K] = [f64::NEG_INFINITY; K];

    /// Takes `tensor` in with `keys`, or out.
    pub fn put(&mut self, tensor: TensorId, keys: Option<[f64; K]>) {
        let id = tensor as usize;
        if id >= self.leaves {
            if keys.is_none() {
                return;
            }
            self.grow(id + 1);
        }
        // No key of a tensor that is there is that of one that is not.
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

    /// Takes in what has changed since the last question, and `others`: of what may go, `keys` promises anew.
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

    /// Takes the tensor with the largest score out, until it changes or the next question begins.
    ///
    /// `bound` tells from the largest keys of some tensors how high their scores can be at most; of what is bounded by
    /// minus infinity nothing goes. `score` tells exactly.
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

    /// Drops the best, one after the other, until `wanted` is freed or none is left.
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

    /// The number of scores that were asked for so far.
    pub const fn scored(&self) -> u64 {
        self.scored
    }
}

fn larger<const K: usize>(one: &[f64; K], other: &[f64; K]) -> [f64; K] {
    std::array::from_fn(|key| one[key].max(other[key]))
}

/// The tensors in whose price each tensor counted: told when that tensor comes back, since they may be cheaper then.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watchers {
    of: Vec<Vec<TensorId>>,
}

impl Watchers {
    /// For `tensors` tensors, none of which is watched.
    pub(crate) fn new(tensors: usize) -> Self {
        Self { of: vec![Vec::new(); tensors] }
    }

    /// `watched` counts in the price of `watcher`.
    pub(crate) fn watch(&mut self, watched: TensorId, watcher: TensorId) {
        let list = &mut self.of[watched as usize];
        if list.len() == list.capacity() {
            // It is rid of repetitions before it grows; what was there then is in order still.
            list.sort();
            list.dedup();
        }
        list.push(watcher);
    }

    /// Those in whose price `watched` counted, who watch it no more; one may be named several times.
    pub(crate) fn take(&mut self, watched: TensorId) -> Vec<TensorId> {
        std::mem::take(&mut self.of[watched as usize])
    }
}

/// What a search has come upon, without clearing anything between searches.
#[derive(Clone, Debug)]
pub(crate) struct Stamps {
    of: Vec<u32>,
    search: u32,
}

impl Stamps {
    /// For so many things.
    pub(crate) fn new(things: usize) -> Self {
        Self { of: vec![0; things], search: 0 }
    }

    /// A search begins: nothing was come upon yet.
    pub(crate) fn begin(&mut self) {
        self.search += 1;
    }

    /// Whether the search comes upon `thing` for the first time.
    pub(crate) fn first(&mut self, thing: u32) -> bool {
        std::mem::replace(&mut self.of[thing as usize], self.search) != self.search
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The first by a search through all scores.
    fn searched(scores: &[Option<f64>]) -> Option<usize> {
        let present = (0..scores.len()).filter(|&id| scores[id].is_some());
        present.max_by(|&a, &b| scores[a].partial_cmp(&scores[b]).unwrap().then(b.cmp(&a)))
    }

    proptest! {
        /// Scores fall between questions, which keys learn only when they are asked; the order is that of a search.
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
                    // It falls without a word.
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
        // One score a question: the lowest of equals is found without looking at the others.
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
