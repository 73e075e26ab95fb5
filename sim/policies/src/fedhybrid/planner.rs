//! Making a plan: algorithm 1 goes through the graph once, operator by operator, on sizes alone.
//!
//! Before an operator runs, what it reads is there: what was evicted is computed again from what it was made of (line 6),
//! what is stored is brought back (line 4). Where a tensor finds no room (line 11) the chooser says what gives way, and
//! that is a step of the plan. Tensors come and go as they do in a run, so that a run with the same memory is short of it
//! at the same places, by the same bytes.
//!
//! Memory while a plan is made: sizes alone, by the rules by which tensors come and go in a run.

use std::ops::{Deref, DerefMut};

use haversack_devices::units::{Bytes, Nanos};
use haversack_workloads::training_graph::Need;
use haversack_workloads::{NodeId, Phase, Role, TensorId, TrainingGraph};

use super::choice::Chooser;
use super::plan::{Operations, PlanError, Step};
use crate::planning::Room;
use crate::restore::Technique;
use crate::{Form, Register, Storage};

/// Operators computed again, in multiples of the graph, at which no plan is found.
const THRASHING: u64 = 40;

/// A walk through a graph.
pub(super) struct Walk<'a> {
    room: Room,
    chooser: Chooser,
    memory: Memory<'a>,
    phase: Phase,
    /// Operators whose inputs are being gathered: the schedule's, and above it what is computed again for it.
    frames: Vec<Frame>,
    /// Inputs that are there and locked: the lowest operator's first.
    locked: Vec<TensorId>,
    steps: Vec<Step>,
    /// Operators that ran, and those of them that ran again.
    ran: u64,
    recomputed: u64,
}

/// An operator whose inputs are being gathered.
struct Frame {
    node: NodeId,
    /// What it runs again for; `None` for the schedule's own.
    target: Option<TensorId>,
    first_locked: usize,
}

impl<'a> Walk<'a> {
    /// Through `graph` at `samples` samples within `room`, of which `beside` is taken by what are no tensors.
    pub(super) fn new(graph: &'a TrainingGraph, samples: u64, beside: Bytes, room: Room, chooser: Chooser) -> Self {
        Self {
            memory: Memory::new(graph, samples, beside, room),
            room,
            chooser,
            phase: Phase::Forward,
            frames: Vec::new(),
            locked: Vec::new(),
            steps: Vec::new(),
            ran: 0,
            recomputed: 0,
        }
    }

    /// What gives way where, and what finding it took.
    ///
    /// # Errors
    /// A room that nothing fits.
    pub(super) fn run(mut self) -> Result<(Vec<Step>, Operations), PlanError> {
        self.admit_all(Role::is_state)?;
        self.admit_all(|role| matches!(role, Role::Input | Role::Target))?;
        let nodes = || (0..).zip(&self.memory.graph.nodes);
        let part: Vec<NodeId> = nodes().take_while(|(_, node)| node.phase != Phase::Update).map(|(id, _)| id).collect();
        let update: Vec<NodeId> = nodes().filter(|(_, node)| node.phase == Phase::Update).map(|(id, _)| id).collect();
        for id in part {
            self.run_scheduled(id)?;
        }
        for (id, tensor) in (0..).zip(&self.memory.graph.tensors) {
            if matches!(tensor.role, Role::Activation | Role::Gradient | Role::Input | Role::Target) {
                self.memory.evict(id, false);
            }
        }
        for id in update {
            self.run_scheduled(id)?;
        }
        let chosen = self.chooser.operations();
        Ok((self.steps, Operations { operators: chosen.operators + self.ran, ..chosen }))
    }

    fn admit_all(&mut self, which: impl Fn(Role) -> bool) -> Result<(), PlanError> {
        for (id, tensor) in (0..).zip(&self.memory.graph.tensors) {
            if which(tensor.role) {
                self.admit(id)?;
            }
        }
        Ok(())
    }

    /// The schedule's next operator.
    fn run_scheduled(&mut self, id: NodeId) -> Result<(), PlanError> {
        let node = &self.memory.graph.nodes[id as usize];
        self.phase = node.phase;
        self.memory.at = id;
        self.gather(id)?;
        self.make_room(id)?;
        self.ran += 1;
        self.release_top();
        for &output in &node.outputs {
            self.memory.unlock(output);
        }
        self.memory.advance(id, Nanos::ZERO);
        for tensor in node.uses() {
            if self.memory.is_dead(tensor) {
                self.memory.evict(tensor, false);
            } else if node.phase != Phase::Forward
                && self.memory.storage(tensor).is_some()
                && !self.memory.is_locked(tensor)
            {
                self.memory.drop_whole(tensor);
            }
        }
        Ok(())
    }

    /// Brings the inputs of the schedule's operator into memory, locked.
    fn gather(&mut self, id: NodeId) -> Result<(), PlanError> {
        self.frames.clear();
        self.locked.clear();
        self.push(id, None);
        while let Some(&Frame { node, target, .. }) = self.frames.last() {
            if let Some(input) = self.lock_inputs(node)? {
                let writers = self.memory.uses.writers(input);
                let first = writers.first().copied().filter(|&writer| writer < id);
                let Some(first) = first else { return Err(self.infeasible(Bytes::ZERO)) };
                self.push(first, Some(input));
                continue;
            }
            let Some(target) = target else { break };
            self.recompute(node, target)?;
            self.frames.pop();
            // A tensor that is written in place is made by all its writers up to where the schedule stands.
            let mut writers = self.memory.uses.writers(target).iter();
            if let Some(&next) = writers.find(|&&writer| writer > node && writer < id) {
                self.push(next, Some(target));
            }
        }
        Ok(())
    }

    fn push(&mut self, node: NodeId, target: Option<TensorId>) {
        self.frames.push(Frame { node, target, first_locked: self.locked.len() });
    }

    fn first_of_top(&self) -> usize {
        self.frames.last().map_or(0, |frame| frame.first_locked)
    }

    /// Locks the inputs of the operator on top; what is stored is brought back once all others are there. Returns the
    /// first that is not to be had.
    fn lock_inputs(&mut self, node: NodeId) -> Result<Option<TensorId>, PlanError> {
        let node = &self.memory.graph.nodes[node as usize];
        let mut stored = Vec::new();
        for &input in &node.inputs {
            if self.locked[self.first_of_top()..].contains(&input) {
                continue;
            }
            if self.memory.storage(input).is_some() {
                stored.push(input);
            } else if self.memory.is_whole(input) {
                self.lock_input(input);
            } else {
                return Ok(Some(input));
            }
        }
        for input in stored {
            if node.need_of(input) != Need::Shape {
                self.admit(input)?;
                self.memory.drop_stored(input);
                self.lock_input(input);
            }
        }
        Ok(None)
    }

    fn lock_input(&mut self, input: TensorId) {
        self.memory.lock(input);
        self.locked.push(input);
    }

    fn release_top(&mut self) {
        for input in self.locked.split_off(self.first_of_top()) {
            self.memory.unlock(input);
        }
    }

    /// Unlocks what operators that wait for others have gathered; they gather it again. Returns whether there was any.
    fn release_waiting(&mut self) -> bool {
        let waiting = self.first_of_top();
        for tensor in self.locked.drain(..waiting) {
            self.memory.unlock(tensor);
        }
        self.frames.iter_mut().for_each(|frame| frame.first_locked = 0);
        waiting > 0
    }

    /// Runs an operator again, whose inputs are there and locked, to make `target`.
    fn recompute(&mut self, id: NodeId, target: TensorId) -> Result<(), PlanError> {
        self.make_room(id)?;
        self.ran += 1;
        self.recomputed += 1;
        if self.recomputed > THRASHING * self.memory.graph.nodes.len() as u64 {
            let node = self.name();
            return Err(PlanError::Thrashing { node, recomputed: self.recomputed, room: self.room });
        }
        let node = &self.memory.graph.nodes[id as usize];
        self.release_top();
        for &output in &node.outputs {
            self.memory.unlock(output);
        }
        for &used in node.inputs.iter().chain(&node.outputs) {
            if used == target || self.memory.is_locked(used) {
                continue;
            }
            if self.memory.is_dead(used) {
                self.memory.evict(used, false);
            } else if self.memory.storage(used).is_some() {
                self.memory.drop_whole(used);
            }
        }
        Ok(())
    }

    /// Brings the outputs of an operator into memory, locked.
    fn make_room(&mut self, id: NodeId) -> Result<(), PlanError> {
        for &output in &self.memory.graph.nodes[id as usize].outputs {
            if !self.memory.is_whole(output) {
                self.admit(output)?;
            }
            self.memory.lock(output);
        }
        Ok(())
    }

    /// Brings a tensor into memory; where it finds no room, others give way (algorithm 1, lines 11 to 16).
    fn admit(&mut self, tensor: TensorId) -> Result<(), PlanError> {
        loop {
            let shortfall = self.memory.shortfall(tensor);
            if shortfall == Bytes::ZERO {
                self.memory.admit(tensor);
                return Ok(());
            }
            let chosen = self.chooser.choose(shortfall, &self.memory.view(self.phase));
            self.memory.forget_changed();
            if chosen.is_empty() && !self.release_waiting() {
                return Err(self.infeasible(shortfall));
            }
            for (tensor, technique) in chosen {
                self.steps.push(Step { before: self.memory.at, tensor, technique });
                self.give_up(tensor, technique);
            }
        }
    }

    fn give_up(&mut self, tensor: TensorId, technique: Technique) {
        debug_assert!(self.memory.is_candidate(tensor), "only what may give way is chosen");
        match technique {
            Technique::Recompute => self.memory.evict(tensor, true),
            Technique::Compress => {
                let compressed = self.chooser.costs.compression(tensor, self.memory.samples).unwrap_or_default();
                self.memory.drop_whole(tensor);
                self.memory.store(tensor, Storage::Compressed, compressed.bytes);
            }
            Technique::Swap => {
                self.memory.drop_whole(tensor);
                self.memory.store(tensor, Storage::Flash, Bytes::ZERO);
            }
        }
    }

    fn name(&self) -> String {
        let node = self.memory.graph.nodes.get(self.memory.at as usize);
        node.map_or_else(|| "the start".to_owned(), |node| node.name.clone())
    }

    fn infeasible(&self, shortfall: Bytes) -> PlanError {
        PlanError::Infeasible { node: self.name(), shortfall, room: self.room }
    }
}

/// The tensors of an iteration.
struct Memory<'a> {
    register: Register<'a>,
    room: Room,
    /// In how many bytes each is stored otherwise than whole.
    stored: Vec<Option<Bytes>>,
    /// Bytes of all that is in memory, and of saved tensors in either form.
    held: Bytes,
    saved: Bytes,
}

impl<'a> Deref for Memory<'a> {
    type Target = Register<'a>;

    fn deref(&self) -> &Register<'a> {
        &self.register
    }
}

impl DerefMut for Memory<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.register
    }
}

impl<'a> Memory<'a> {
    /// `beside` is in it, and nothing else yet.
    fn new(graph: &'a TrainingGraph, samples: u64, beside: Bytes, room: Room) -> Self {
        let mut register = Register::new(graph, samples);
        register.rewind();
        Self { register, room, stored: vec![None; graph.tensors.len()], held: beside, saved: Bytes::ZERO }
    }

    /// What the room misses for `tensor` whole: first that of saved tensors.
    fn shortfall(&self, tensor: TensorId) -> Bytes {
        let over = |held: Bytes, bound: Option<Bytes>| {
            bound.map_or(Bytes::ZERO, |bound| (held + self.size(tensor)).saturating_sub(bound))
        };
        let of_saved = if self.uses.is_saved(tensor) { over(self.saved, self.room.activations) } else { Bytes::ZERO };
        if of_saved > Bytes::ZERO { of_saved } else { over(self.held, self.room.memory) }
    }

    // From one form to another.

    /// A tensor comes in whole, beside what is stored of it.
    fn admit(&mut self, tensor: TensorId) {
        let size = self.size(tensor);
        self.set_bytes(tensor, size);
        self.count(tensor, size, true);
        self.register.reform(tensor, Form::of(true, self.register.storage(tensor)));
        self.offer(tensor);
    }

    /// The whole form of a tensor leaves.
    fn drop_whole(&mut self, tensor: TensorId) {
        if self.is_whole(tensor) {
            self.count(tensor, self.size(tensor), false);
        }
        self.register.reform(tensor, Form::of(false, self.register.storage(tensor)));
        self.withdraw(tensor);
    }

    /// A tensor is stored otherwise, in `bytes`.
    fn store(&mut self, tensor: TensorId, storage: Storage, bytes: Bytes) {
        self.stored[tensor as usize] = Some(bytes);
        self.held += bytes;
        self.saved += bytes;
        self.register.reform(tensor, Form::of(self.register.is_whole(tensor), Some(storage)));
        self.withdraw(tensor);
    }

    /// The form in which a tensor is stored otherwise leaves.
    fn drop_stored(&mut self, tensor: TensorId) {
        let Some(bytes) = self.stored[tensor as usize].take() else { return };
        self.held -= bytes;
        self.saved -= bytes;
        self.register.reform(tensor, Form::of(self.register.is_whole(tensor), None));
        self.offer(tensor);
    }

    /// A tensor leaves in every form; `dropped` if it will be computed again.
    fn evict(&mut self, tensor: TensorId, dropped: bool) {
        self.drop_whole(tensor);
        self.drop_stored(tensor);
        if dropped {
            self.reform(tensor, Form::Dropped);
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
}
