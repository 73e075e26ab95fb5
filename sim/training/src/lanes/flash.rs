//! Flash beside the processor: it writes and reads tensors, one after the other where it has nothing else to do. On a phone in
//! use transfers stand in the phone's own queue instead, beside faults, reclaim and apps. A tensor is locked meanwhile.

use haversack_devices::units::{Bytes, Nanos};
use haversack_engine::EventHandle;
use haversack_policies::Storage;
use haversack_workloads::TensorId;

use crate::clock::{Clock, Event};
use crate::tensors::Tensors;

/// What flash has in hand.
#[derive(Debug, Default)]
pub(crate) struct FlashLane {
    writing: Vec<(TensorId, EventHandle)>,
    reading: Vec<(TensorId, EventHandle)>,
    /// When it will have done all of it.
    until: Nanos,
    /// Whether the run has swapped anything.
    pub(crate) used: bool,
}

impl FlashLane {
    pub(crate) fn reads(&self, tensor: TensorId) -> bool {
        self.reading.iter().any(|(other, _)| *other == tensor)
    }

    pub(crate) const fn is_reading(&self) -> bool {
        !self.reading.is_empty()
    }

    /// The number of tensors that are on their way to flash: memory gets free without anybody's loss.
    pub(crate) const fn writes(&self) -> usize {
        self.writing.len()
    }

    pub(crate) const fn in_flight(&self) -> usize {
        self.writing.len() + self.reading.len()
    }

    /// Begins to write a tensor that is whole in memory, which takes `taken`; it leaves memory when it is written.
    pub(crate) fn write(&mut self, tensor: TensorId, taken: Nanos, clock: &mut Clock, tensors: &mut Tensors<'_>) {
        self.used = true;
        tensors.lock(tensor);
        self.writing.push((tensor, clock.schedule_in(taken, Event::Written(tensor))));
    }

    /// Begins to read a tensor into the memory that it was given, which takes `taken`.
    pub(crate) fn bring(&mut self, tensor: TensorId, taken: Nanos, clock: &mut Clock, tensors: &mut Tensors<'_>) {
        self.used = true;
        tensors.lock(tensor);
        self.reading.push((tensor, clock.schedule_in(taken, Event::Read(tensor))));
    }

    /// How long a transfer that takes `alone` takes from now on, behind all that is in hand.
    pub(crate) fn behind(&mut self, alone: Nanos, now: Nanos) -> Nanos {
        self.until = self.until.max(now) + alone;
        self.until - now
    }

    /// A tensor is written.
    pub(super) fn written(&mut self, tensor: TensorId, tensors: &mut Tensors<'_>) {
        self.writing.retain(|(other, _)| *other != tensor);
        tensors.unlock(tensor);
        if !tensors.is_whole(tensor) || tensors.is_locked(tensor) {
            // Its last reader was faster, or an operator works on it: then it stays.
            return;
        }
        if let Some(values) = tensors.values() {
            // Flash has a copy of it.
            values.swap(tensor);
        }
        tensors.drop_whole(tensor);
        // It takes nothing, so that nothing can be short.
        let _none = tensors.store(tensor, Storage::Flash, Bytes::ZERO);
    }

    /// A tensor is read.
    pub(super) fn read(&mut self, tensor: TensorId, tensors: &mut Tensors<'_>) {
        self.reading.retain(|(other, _)| *other != tensor);
        tensors.unlock(tensor);
        tensors.drop_stored(tensor);
    }

    /// Nobody waits any more for what is in hand.
    pub(crate) fn cancel(&mut self, clock: &mut Clock) {
        for (_, end) in self.writing.drain(..).chain(self.reading.drain(..)) {
            clock.cancel(end);
        }
    }
}
