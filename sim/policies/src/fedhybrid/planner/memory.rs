//! Memory while a plan is made: sizes alone, by the rules by which tensors come and go in a run.

use std::ops::{Deref, DerefMut};

use haversack_devices::units::Bytes;
use haversack_workloads::{TensorId, TrainingGraph};

use crate::planning::Room;
use crate::register::Register;
use crate::view::{Form, Storage};

/// The tensors of an iteration.
pub(super) struct Memory<'a> {
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
    pub(super) fn new(graph: &'a TrainingGraph, samples: u64, beside: Bytes, room: Room) -> Self {
        let mut register = Register::new(graph, samples);
        register.rewind();
        Self { register, room, stored: vec![None; graph.tensors.len()], held: beside, saved: Bytes::ZERO }
    }

    /// What the room misses for `tensor` whole: first that of saved tensors.
    pub(super) fn shortfall(&self, tensor: TensorId) -> Bytes {
        let over = |held: Bytes, bound: Option<Bytes>| {
            bound.map_or(Bytes::ZERO, |bound| (held + self.size(tensor)).saturating_sub(bound))
        };
        let of_saved = if self.uses.is_saved(tensor) { over(self.saved, self.room.activations) } else { Bytes::ZERO };
        if of_saved > Bytes::ZERO { of_saved } else { over(self.held, self.room.memory) }
    }

    // From one form to another.

    /// A tensor comes in whole, beside what is stored of it.
    pub(super) fn admit(&mut self, tensor: TensorId) {
        let size = self.size(tensor);
        self.set_bytes(tensor, size);
        self.count(tensor, size, true);
        self.register.reform(tensor, Form::of(true, self.register.storage(tensor)));
        self.offer(tensor);
    }

    /// The whole form of a tensor leaves.
    pub(super) fn drop_whole(&mut self, tensor: TensorId) {
        if self.is_whole(tensor) {
            self.count(tensor, self.size(tensor), false);
        }
        self.register.reform(tensor, Form::of(false, self.register.storage(tensor)));
        self.withdraw(tensor);
    }

    /// A tensor is stored otherwise, in `bytes`.
    pub(super) fn store(&mut self, tensor: TensorId, storage: Storage, bytes: Bytes) {
        self.stored[tensor as usize] = Some(bytes);
        self.held += bytes;
        self.saved += bytes;
        self.register.reform(tensor, Form::of(self.register.is_whole(tensor), Some(storage)));
        self.withdraw(tensor);
    }

    /// The form in which a tensor is stored otherwise leaves.
    pub(super) fn drop_stored(&mut self, tensor: TensorId) {
        let Some(bytes) = self.stored[tensor as usize].take() else { return };
        self.held -= bytes;
        self.saved -= bytes;
        self.register.reform(tensor, Form::of(self.register.is_whole(tensor), None));
        self.offer(tensor);
    }

    /// A tensor leaves in every form; `dropped` if it will be computed again.
    pub(super) fn evict(&mut self, tensor: TensorId, dropped: bool) {
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
