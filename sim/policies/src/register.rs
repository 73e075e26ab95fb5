//! Every tensor of an iteration: its form, its locks, and how many of its uses are over.
//!
//! Runs and plans keep one each, by the same rules. They account for memory separately.

use haversack_devices::{Bytes, Nanos};
use haversack_workloads::{NodeId, Phase, Role, TensorId, TrainingGraph, Uses};

use crate::{Form, MemoryView, Storage, TensorSet, TensorState};

/// The tensors of an iteration.
#[derive(Debug)]
#[must_use]
pub struct Register<'g> {
    /// The graph.
    pub graph: &'g TrainingGraph,
    /// Uses of its tensors.
    pub uses: Uses,
    /// Samples of the micro-batch.
    pub samples: u64,
    /// The current node of the schedule, or the next if one has ended.
    pub at: NodeId,
    /// Each tensor as policies see it, its form included.
    states: Vec<TensorState>,
    counts: Vec<Counts>,
    candidates: TensorSet,
    /// Tensors whose state or candidature has changed since a policy was last called for memory.
    changed: TensorSet,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// The number of operators and lanes that work on it.
    locks: u32,
    /// The number of its uses that the schedule has passed.
    passed: u32,
}

impl<'g> Register<'g> {
    /// The tensors of `graph`, none of which exists yet, nor has a next use before [`rewind`](Self::rewind).
    pub fn new(graph: &'g TrainingGraph, samples: u64) -> Self {
        let count = graph.tensors.len();
        Self {
            graph,
            uses: Uses::new(graph),
            samples,
            at: 0,
            states: vec![TensorState { next_use: NodeId::MAX, ..TensorState::default() }; count],
            counts: vec![Counts::default(); count],
            candidates: TensorSet::new(),
            changed: TensorSet::new(),
        }
    }

    /// A tensor as policies see it.
    #[inline]
    pub fn state(&self, tensor: TensorId) -> &TensorState {
        &self.states[tensor as usize]
    }

    /// Whether a tensor is in memory as it was made.
    #[inline]
    pub fn is_whole(&self, tensor: TensorId) -> bool {
        self.state(tensor).form.is_whole()
    }

    /// The stored form of a tensor that is not whole; `None` if it has none.
    #[inline]
    pub fn storage(&self, tensor: TensorId) -> Option<Storage> {
        self.state(tensor).form.storage()
    }

    /// Bytes of a tensor as it was made, at the current micro-batch.
    pub fn size(&self, tensor: TensorId) -> Bytes {
        Bytes(self.graph.tensor(tensor).bytes.at(self.samples))
    }

    /// Whether an operator or a lane works on it.
    #[inline]
    pub fn is_locked(&self, tensor: TensorId) -> bool {
        self.counts[tensor as usize].locks > 0
    }

    /// Whether it may give way.
    #[inline]
    pub fn is_candidate(&self, tensor: TensorId) -> bool {
        self.candidates.contains(tensor)
    }

    /// Whether the schedule will not use the tensor again in this micro-batch.
    pub fn is_dead(&self, tensor: TensorId) -> bool {
        let role = self.graph.tensor(tensor).role;
        self.state(tensor).next_use == NodeId::MAX
            && matches!(role, Role::Activation | Role::Gradient | Role::ParameterGradient)
    }

    /// Memory as a policy sees it in a phase, with neither a bound nor a clock.
    pub fn view(&self, phase: Phase) -> MemoryView<'_> {
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

    /// A policy was called for memory: later changes count as new to it.
    pub fn forget_changed(&mut self) {
        self.changed.clear();
    }

    /// Sets the size of a whole tensor.
    pub fn set_bytes(&mut self, tensor: TensorId, bytes: Bytes) {
        self.states[tensor as usize].bytes = bytes;
        self.changed.insert(tensor);
    }

    /// Sets the time of making the tensor, or of making it again.
    pub fn set_cost(&mut self, tensor: TensorId, cost: Nanos) {
        self.states[tensor as usize].cost = cost;
        self.changed.insert(tensor);
    }

    /// The tensor was used outside the schedule.
    pub fn note_use(&mut self, tensor: TensorId, now: Nanos) {
        self.states[tensor as usize].last_use = now;
        self.changed.insert(tensor);
    }

    /// The tensor is now stored in another form.
    pub fn reform(&mut self, tensor: TensorId, form: Form) {
        self.states[tensor as usize].form = form;
        self.changed.insert(tensor);
    }

    /// It may give way from now on, if it can.
    pub fn offer(&mut self, tensor: TensorId) {
        let free = !self.is_locked(tensor) && self.state(tensor).form == Form::Whole;
        if free && self.uses.is_rematerialisable(tensor) && self.candidates.insert(tensor) {
            self.changed.insert(tensor);
        }
    }

    /// It cannot give way.
    pub fn withdraw(&mut self, tensor: TensorId) {
        if self.candidates.remove(tensor) {
            self.changed.insert(tensor);
        }
    }

    /// A tensor in use by an operator or a lane cannot give way.
    pub fn lock(&mut self, tensor: TensorId) {
        self.counts[tensor as usize].locks += 1;
        self.withdraw(tensor);
    }

    /// One of them has finished with it.
    pub fn unlock(&mut self, tensor: TensorId) {
        let locks = &mut self.counts[tensor as usize].locks;
        *locks = locks.saturating_sub(1);
        self.offer(tensor);
    }

    /// Unlocks all tensors.
    pub fn unlock_all(&mut self) {
        for tensor in 0..self.counts.len() as TensorId {
            self.counts[tensor as usize].locks = 0;
            self.offer(tensor);
        }
    }

    /// The schedule's node `node` has ended: each tensor it uses has one remaining use less.
    pub fn advance(&mut self, node: NodeId, now: Nanos) {
        for tensor in self.graph.nodes[node as usize].uses() {
            let (uses, passed) = (self.uses.of(tensor), &mut self.counts[tensor as usize].passed);
            while uses.get(*passed as usize).is_some_and(|&used| used <= node) {
                *passed += 1;
            }
            let state = &mut self.states[tensor as usize];
            (state.last_use, state.next_use) = (now, uses.get(*passed as usize).copied().unwrap_or(NodeId::MAX));
            self.changed.insert(tensor);
        }
        self.at = node + 1;
    }

    /// A micro-batch begins: every tensor's next use is its first.
    pub fn rewind(&mut self) {
        self.at = 0;
        for tensor in 0..self.states.len() as TensorId {
            self.counts[tensor as usize].passed = 0;
            let state = &mut self.states[tensor as usize];
            state.next_use = self.uses.of(tensor).first().copied().unwrap_or(NodeId::MAX);
            if state.form == Form::Dropped {
                state.form = Form::Absent;
            }
            self.changed.insert(tensor);
        }
    }
}
