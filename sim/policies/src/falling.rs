//! Tensors by score, largest first, where scores only fall while some are taken.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use haversack_devices::units::Nanos;
use haversack_workloads::TensorId;

/// A score; of equal ones the lower id comes first.
#[derive(Clone, Copy, Debug)]
struct Entry(f64, Reverse<TensorId>);

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

/// A queue of tensors whose scores were right when they entered and may have fallen since: giving a tensor up makes
/// others dearer, never cheaper. What it yields is what a search through all scores would.
#[derive(Clone, Debug, Default)]
pub struct Falling {
    heap: BinaryHeap<Entry>,
}

impl Falling {
    /// A queue of tensors with their scores.
    #[must_use]
    pub fn new(scores: impl Iterator<Item = (f64, TensorId)>) -> Self {
        Self { heap: scores.map(|(score, id)| Entry(score, Reverse(id))).collect() }
    }

    /// Adds a tensor.
    pub fn push(&mut self, score: f64, tensor: TensorId) {
        self.heap.push(Entry(score, Reverse(tensor)));
    }

    /// Takes the tensor with the largest score, as `score` has it now.
    pub fn pop(&mut self, mut score: impl FnMut(TensorId) -> f64) -> Option<TensorId> {
        while let Some(Entry(_, Reverse(tensor))) = self.heap.pop() {
            let now = Entry(score(tensor), Reverse(tensor));
            if self.heap.peek().is_none_or(|next| now >= *next) {
                return Some(tensor);
            }
            self.heap.push(now);
        }
        None
    }
}

/// What is won for each nanosecond that it costs: nothing where nothing is won, without bound where it costs nothing.
#[must_use]
pub fn worth(won: f64, cost: Nanos) -> f64 {
    if won > 0.0 { won / cost.0 as f64 } else { 0.0 }
}
