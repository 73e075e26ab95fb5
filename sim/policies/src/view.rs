//! Memory as a policy sees it: every tensor's form, which tensors may give way, and what has changed.

use haversack_devices::{Bytes, Nanos};
use haversack_workloads::{Extent, NodeId, Phase, TensorId, TrainingGraph};

/// The form of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub enum Form {
    /// Nowhere: it was not made yet, or it is not read any more.
    #[default]
    Absent,
    /// Nowhere: it was dropped and is computed again at its use.
    Dropped,
    /// In memory as it was made, also while flash still writes it.
    Whole,
    /// Not in memory as it was made, but in a stored form.
    Stored(Storage),
    /// In both forms for a while: it is being packed or restored, or was restored for its readers.
    InFlight(Storage),
}

/// The stored form of a tensor that is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// With this number of bits a value: 1 to 8, 16, or 32 for all of them; 0 if only signs and masks are left.
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

    /// The stored form of the tensor; `None` if it has none.
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
    /// Its form.
    pub form: Form,
    /// Its size when whole, at the micro-batch with which it last came into memory.
    pub bytes: Bytes,
    /// The time of the operator that makes it; after a recomputation, of everything that had to be computed for it.
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

    /// Removes `tensor`; returns whether it was present.
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

    /// Removes everything, in time proportional to the number of members.
    pub fn clear(&mut self) {
        for tensor in self.members.drain(..) {
            self.places[tensor as usize] = NOWHERE;
        }
    }

    /// Its members, in arbitrary order.
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

/// Memory at the time when a policy is called.
///
/// A policy that keeps state for each tensor, such as a heap of scores, needs to look only at the tensors in
/// [`MemoryView::changed`]; all others are as they were at the previous call. Time advances between calls without any
/// change of a tensor: the policy itself has to account for [`MemoryView::now`] or [`MemoryView::at`] in its scores.
#[derive(Clone, Copy)]
#[must_use]
pub struct MemoryView<'a> {
    /// The graph that runs: the schedule's, or the job's if the schedule has none.
    pub graph: &'a TrainingGraph,
    /// Every tensor, by id.
    pub tensors: &'a [TensorState],
    /// Tensors that may give way: whole in memory, not in use, possible to compute again.
    pub candidates: &'a TensorSet,
    /// Tensors whose state may have changed since [`relieve`](crate::Policy::relieve) was last called, or that became
    /// candidates or ceased to be; before the first call, all that were ever used.
    pub changed: &'a TensorSet,
    /// The node that makes each tensor first; `NodeId::MAX` for inputs and weights.
    pub producers: &'a [NodeId],
    /// The current node of the schedule, or the next if one has just ended: no tensor is used before it.
    pub at: NodeId,
    /// Samples of the current micro-batch.
    pub micro_batch: u64,
    /// Everything that is whole in memory, plus the needs of the next node.
    pub needed: Extent,
    /// Bytes that may be in memory; `Bytes::MAX` if memory is not bounded.
    pub budget: Bytes,
    /// The clock.
    pub now: Nanos,
    /// The phase of the node that memory is needed for, or that has just ended.
    pub phase: Phase,
}

impl<'a> MemoryView<'a> {
    /// An empty memory at the beginning of an iteration of `graph` with one sample: a starting point for tests of
    /// policies.
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

    /// The form of `tensor`; absent if the view does not know it.
    pub fn form(&self, tensor: TensorId) -> Form {
        self.tensors.get(tensor as usize).map_or(Form::Absent, |state| state.form)
    }

    /// The largest micro-batch, no smaller than `least`, with which everything needed fits; `least` if none does.
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
        // The last member moves to the place of the removed one, and is found there.
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
