//! Memory while a plan is made: sizes alone, by the rules by which tensors come and go in a run.

use haversack_devices::units::Bytes;
use haversack_workloads::{NodeId, Phase, Role, TensorId, TrainingGraph, Uses};

use crate::planning::Room;
use crate::view::{Form, MemoryView, Storage, TensorSet, TensorState};

/// The tensors of an iteration.
pub(super) struct Memory<'a> {
    graph: &'a TrainingGraph,
    pub(super) uses: Uses,
    samples: u64,
    room: Room,
    states: Vec<TensorState>,
    slots: Vec<Slot>,
    candidates: TensorSet,
    changed: TensorSet,
    pub(super) at: NodeId,
    /// Bytes of all that is in memory, and of saved tensors in either form.
    held: Bytes,
    saved: Bytes,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    /// Operators that work on it.
    locks: u32,
    /// Uses that the schedule has passed.
    passed: u32,
    /// How it is stored otherwise, and in how many bytes.
    stored: Option<(Storage, Bytes)>,
}

impl<'a> Memory<'a> {
    /// `beside` is in it, and nothing else yet.
    pub(super) fn new(graph: &'a TrainingGraph, samples: u64, beside: Bytes, room: Room) -> Self {
        let uses = Uses::new(graph);
        let first = |tensor: usize| uses.of(tensor as TensorId).first().copied().unwrap_or(NodeId::MAX);
        let state = |tensor| TensorState { next_use: first(tensor), ..TensorState::default() };
        let count = graph.tensors.len();
        Self {
            states: (0..count).map(state).collect(),
            slots: vec![Slot::default(); count],
            candidates: TensorSet::new(),
            changed: (0..count as TensorId).collect(),
            at: 0,
            held: beside,
            saved: Bytes::ZERO,
            graph,
            uses,
            samples,
            room,
        }
    }

    pub(super) fn is_whole(&self, tensor: TensorId) -> bool {
        self.states[tensor as usize].form.is_whole()
    }

    pub(super) fn storage(&self, tensor: TensorId) -> Option<Storage> {
        self.slots[tensor as usize].stored.map(|(storage, _)| storage)
    }

    pub(super) fn is_locked(&self, tensor: TensorId) -> bool {
        self.slots[tensor as usize].locks > 0
    }

    pub(super) fn is_candidate(&self, tensor: TensorId) -> bool {
        self.candidates.contains(tensor)
    }

    /// Whether the schedule will not use the tensor again.
    pub(super) fn is_dead(&self, tensor: TensorId) -> bool {
        let role = self.graph.tensor(tensor).role;
        self.states[tensor as usize].next_use == NodeId::MAX
            && matches!(role, Role::Activation | Role::Gradient | Role::ParameterGradient)
    }

    fn size(&self, tensor: TensorId) -> Bytes {
        Bytes(self.graph.tensor(tensor).bytes.at(self.samples))
    }

    /// What the room misses for `tensor` whole: first that of saved tensors.
    pub(super) fn shortfall(&self, tensor: TensorId) -> Bytes {
        let over = |held: Bytes, bound: Option<Bytes>| {
            bound.map_or(Bytes::ZERO, |bound| (held + self.size(tensor)).saturating_sub(bound))
        };
        let of_saved = if self.uses.is_saved(tensor) { over(self.saved, self.room.activations) } else { Bytes::ZERO };
        if of_saved > Bytes::ZERO { of_saved } else { over(self.held, self.room.memory) }
    }

    /// Memory as whoever chooses sees it.
    pub(super) fn view(&self, phase: Phase) -> MemoryView<'_> {
        MemoryView {
            tensors: &self.states,
            candidates: &self.candidates,
            changed: &self.changed,
            producers: self.uses.producers(),
            at: self.at,
            micro_batch: self.samples,
            phase,
            ..MemoryView::empty(self.graph)
        }
    }

    /// Whoever chooses has been told what changed.
    pub(super) fn forget_changed(&mut self) {
        self.changed.clear();
    }

    // From one form to another.

    /// A tensor comes in whole, beside what is stored of it.
    pub(super) fn admit(&mut self, tensor: TensorId) {
        let size = self.size(tensor);
        self.states[tensor as usize].bytes = size;
        self.count(tensor, size, true);
        self.reform(tensor, true);
        self.offer(tensor);
    }

    /// The whole form of a tensor leaves.
    pub(super) fn drop_whole(&mut self, tensor: TensorId) {
        if self.is_whole(tensor) {
            self.count(tensor, self.size(tensor), false);
        }
        self.reform(tensor, false);
        self.withdraw(tensor);
    }

    /// A tensor is stored otherwise, in `bytes`.
    pub(super) fn store(&mut self, tensor: TensorId, storage: Storage, bytes: Bytes) {
        self.slots[tensor as usize].stored = Some((storage, bytes));
        self.held += bytes;
        self.saved += bytes;
        self.reform(tensor, self.is_whole(tensor));
        self.withdraw(tensor);
    }

    /// The form in which a tensor is stored otherwise leaves.
    pub(super) fn drop_stored(&mut self, tensor: TensorId) {
        let Some((_, bytes)) = self.slots[tensor as usize].stored.take() else { return };
        self.held -= bytes;
        self.saved -= bytes;
        self.reform(tensor, self.is_whole(tensor));
        self.offer(tensor);
    }

    /// A tensor leaves in every form; `dropped` if it will be computed again.
    pub(super) fn evict(&mut self, tensor: TensorId, dropped: bool) {
        self.drop_whole(tensor);
        self.drop_stored(tensor);
        if dropped {
            self.states[tensor as usize].form = Form::Dropped;
        }
    }

    fn count(&mut self, tensor: TensorId, bytes: Bytes, comes: bool) {
        let saved = if self.uses.is_saved(tensor) { bytes } else { Bytes::ZERO };
        if comes {
            self.held += bytes;
            self.saved += saved;
        } else {
            self.held -= bytes;
            self.saved -= saved;
        }
    }

    fn reform(&mut self, tensor: TensorId, whole: bool) {
        self.states[tensor as usize].form = Form::of(whole, self.storage(tensor));
        self.changed.insert(tensor);
    }

    // Who works on what.

    pub(super) fn lock(&mut self, tensor: TensorId) {
        self.slots[tensor as usize].locks += 1;
        self.withdraw(tensor);
    }

    pub(super) fn unlock(&mut self, tensor: TensorId) {
        let locks = &mut self.slots[tensor as usize].locks;
        *locks = locks.saturating_sub(1);
        self.offer(tensor);
    }

    fn offer(&mut self, tensor: TensorId) {
        let free = !self.is_locked(tensor) && self.states[tensor as usize].form == Form::Whole;
        if free && self.uses.is_rematerialisable(tensor) && self.candidates.insert(tensor) {
            self.changed.insert(tensor);
        }
    }

    fn withdraw(&mut self, tensor: TensorId) {
        if self.candidates.remove(tensor) {
            self.changed.insert(tensor);
        }
    }

    // The schedule goes on.

    /// It has come to `node`.
    pub(super) const fn come_to(&mut self, node: NodeId) {
        self.at = node;
    }

    /// `node` has ended: what it uses has one use less before it.
    pub(super) fn advance(&mut self, node: NodeId) {
        for tensor in self.graph.nodes[node as usize].uses() {
            let (uses, slot) = (self.uses.of(tensor), &mut self.slots[tensor as usize]);
            while uses.get(slot.passed as usize).is_some_and(|&used| used <= node) {
                slot.passed += 1;
            }
            let next_use = uses.get(slot.passed as usize).copied().unwrap_or(NodeId::MAX);
            self.states[tensor as usize].next_use = next_use;
            self.changed.insert(tensor);
        }
        self.at = node + 1;
    }
}
