//! Memory as a policy sees it: every tensor's form, which tensors may give way, and what has changed.

use haversack_devices::{Bytes, Nanos};
use haversack_workloads::{Extent, NodeId, Phase, TensorId, TrainingGraph};

/// How a tensor is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub enum Form {
    /// Nowhere: it was not made yet, or nobody reads it any more.
    #[default]
    Absent,
    /// Nowhere: it was dropped and is computed again at its use.
    Dropped,
    /// In memory as it was made, also while flash still writes it.
    Whole,
    /// Not in memory as it was made, but stored otherwise.
    Stored(Storage),
    /// Both at once, for a while: it is being packed or brought back, or was brought back for those that read it.
    InFlight(Storage),
}

/// How a tensor is stored that is not held whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// With so many bits a value: 1 to 8, 16, or 32 for all of them; 0 where only signs and masks are left.
    Quantised(u8),
    /// By a codec, within an error bound.
    Compressed,
    /// On flash, with nothing in memory.
    Flash,
}

impl Form {
    /// Whether the tensor takes up memory as it was made.
    pub const fn is_whole(self) -> bool {
        matches!(self, Self::Whole | Self::InFlight(_))
    }

    /// How the tensor is stored otherwise; `None` if it is not.
    pub const fn storage(self) -> Option<Storage> {
        match self {
            Self::Stored(storage) | Self::InFlight(storage) => Some(storage),
            Self::Absent | Self::Dropped | Self::Whole => None,
        }
    }

    /// The form of a tensor that is whole in memory or not, and stored in some way or not.
    #[inline]
    pub const fn of(whole: bool, storage: Option<Storage>) -> Self {
        match (whole, storage) {
            (true, Some(storage)) => Self::InFlight(storage),
            (true, None) => Self::Whole,
            (false, Some(storage)) => Self::Stored(storage),
            (false, None) => Self::Absent,
        }
    }
}

/// One tensor as a policy sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct TensorState {
    /// How it is held.
    pub form: Form,
    /// What it takes whole, at the micro-batch with which it last came into memory.
    pub bytes: Bytes,
    /// The time of the operator that makes it; after a recomputation, of all that had to be computed for it.
    pub cost: Nanos,
    /// When it was last read or written.
    pub last_use: Nanos,
    /// The next node of the schedule that reads or writes it; `NodeId::MAX` if none does.
    pub next_use: NodeId,
}

/// A set of tensors: membership, insertion and removal take constant time.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct TensorSet {
    members: Vec<TensorId>,
    /// Where each tensor is in `members`, by id; `NOWHERE` if it is not.
    places: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl TensorSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { members: Vec::new(), places: Vec::new() }
    }

    /// Whether `tensor` is in it.
    #[inline]
    pub fn contains(&self, tensor: TensorId) -> bool {
        self.places.get(tensor as usize).is_some_and(|&place| place != NOWHERE)
    }

    /// Adds `tensor`; returns whether it is new.
    #[inline]
    pub fn insert(&mut self, tensor: TensorId) -> bool {
        let id = tensor as usize;
        if id >= self.places.len() {
            self.places.resize(id + 1, NOWHERE);
        }
        let new = self.places[id] == NOWHERE;
        if new {
            self.places[id] = self.members.len() as u32;
            self.members.push(tensor);
        }
        new
    }

    /// Takes `tensor` out; returns whether it was there.
    #[inline]
    pub fn remove(&mut self, tensor: TensorId) -> bool {
        let Some(place) = self.places.get_mut(tensor as usize) else { return false };
        let place = std::mem::replace(place, NOWHERE);
        if place == NOWHERE {
            return false;
        }
        self.members.swap_remove(place as usize);
        if let Some(&moved) = self.members.get(place as usize) {
            self.places[moved as usize] = place;
        }
        true
    }

    /// Takes everything out, in time proportional to what was there.
    pub fn clear(&mut self) {
        for tensor in self.members.drain(..) {
            self.places[tensor as usize] = NOWHERE;
        }
    }

    /// Its members, in no order that means anything.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = TensorId> + '_ {
        self.members.iter().copied()
    }
}

impl FromIterator<TensorId> for TensorSet {
    fn from_iter<I: IntoIterator<Item = TensorId>>(tensors: I) -> Self {
        let mut set = Self::new();
        for tensor in tensors {
            set.insert(tensor);
        }
        set
    }
}

static EMPTY: TensorSet = TensorSet::new();

/// Memory as it stands when a policy is asked.
///
/// Whoever keeps something of its own for each tensor, such as a heap of scores, needs to look only at what
/// [`MemoryView::changed`] names; all else is as it was at the question before. Time goes on between questions
/// without a tensor's change: what a score takes from [`MemoryView::now`] or [`MemoryView::at`] is the policy's own
/// matter.
#[derive(Clone, Copy)]
#[must_use]
pub struct MemoryView<'a> {
    /// The graph that runs: the schedule's, or the job's where the schedule has none.
    pub graph: &'a TrainingGraph,
    /// Every tensor, by id.
    pub tensors: &'a [TensorState],
    /// Tensors that may give way: whole in memory, not in use, possible to compute again.
    pub candidates: &'a TensorSet,
    /// Tensors whose state is not, or may not be, what it was when [`relieve`](crate::Policy::relieve) was last asked,
    /// or that became candidates or ceased to be; before the first question, all that were ever used.
    pub changed: &'a TensorSet,
    /// The node that makes each tensor first; `NodeId::MAX` for inputs and weights.
    pub producers: &'a [NodeId],
    /// The node of the schedule that is under way, or the next where one has just ended: nothing is used before it.
    pub at: NodeId,
    /// Samples of the current micro-batch.
    pub micro_batch: u64,
    /// All that is whole in memory, and what the next node wants beside it.
    pub needed: Extent,
    /// Bytes that may be in memory; `Bytes::MAX` if memory is not bounded.
    pub budget: Bytes,
    /// The clock.
    pub now: Nanos,
    /// The phase of the node that memory is wanted for, or that has just ended.
    pub phase: Phase,
}

impl<'a> MemoryView<'a> {
    /// A memory with nothing in it, at the beginning of an iteration of `graph` with one sample: what tests of
    /// policies start from.
    pub const fn empty(graph: &'a TrainingGraph) -> Self {
        Self {
            graph,
            tensors: &[],
            candidates: &EMPTY,
            changed: &EMPTY,
            producers: &[],
            at: 0,
            micro_batch: 1,
            needed: Extent::ZERO,
            budget: Bytes::MAX,
            now: Nanos::ZERO,
            phase: Phase::Forward,
        }
    }

    /// How `tensor` is held; absent where the view does not know it.
    pub fn form(&self, tensor: TensorId) -> Form {
        self.tensors.get(tensor as usize).map_or(Form::Absent, |state| state.form)
    }

    /// The largest micro-batch, no smaller than `least`, with which everything needed fits; `least` where none does.
    pub fn fitting_micro_batch(&self, least: u64) -> u64 {
        let room = self.budget.0.saturating_sub(self.needed.fixed);
        let fits = room.checked_div(self.needed.per_sample).unwrap_or(self.micro_batch);
        fits.clamp(least.min(self.micro_batch), self.micro_batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_forgets_what_is_removed_and_keeps_the_rest() {
        let mut set: TensorSet = [5, 2, 9, 2].into_iter().collect();
        assert_eq!(
            (set.iter().len(), set.contains(2), set.contains(3), set.contains(u32::MAX)),
            (3, true, false, false)
        );
        // The last member takes the place of the one that goes, and is found there.
        assert!(set.remove(5) && !set.remove(5) && !set.remove(77));
        assert!(set.contains(9) && set.contains(2) && !set.contains(5));
        assert!(set.remove(9) && set.contains(2));
        assert!(set.insert(5) && !set.insert(5));
        set.clear();
        assert!(set.iter().len() == 0 && !set.contains(2) && set.insert(2));
    }

    #[test]
    fn a_form_is_whole_stored_both_or_neither() {
        for storage in [None, Some(Storage::Quantised(4)), Some(Storage::Compressed), Some(Storage::Flash)] {
            for whole in [false, true] {
                let form = Form::of(whole, storage);
                assert_eq!((form.is_whole(), form.storage()), (whole, storage), "{form:?}");
            }
        }
        assert_eq!((Form::Dropped.is_whole(), Form::Dropped.storage()), (false, None));
    }
}
