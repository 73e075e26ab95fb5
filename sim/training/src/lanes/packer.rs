//! CPU cores that pack and unpack one tensor after the other in parallel with the processor that trains. Their bytes
//! share its DRAM.
//!
//! Flash, also in parallel with the processor: it writes and reads tensors one after the other if it has nothing else
//! to do. On a phone in use transfers enter the phone's own queue instead, with faults, reclaim and apps. A tensor is
//! locked during its transfer.

use std::collections::VecDeque;

use haversack_devices::{Bytes, CpuCores, Nanos};
use haversack_engine::EventHandle;
use haversack_policies::Storage;
use haversack_workloads::TensorId;

use crate::clock::{Clock, Event, Flow};
use crate::error::Result;
use crate::tensors::Tensors;

/// A tensor to pack or to unpack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackingTask {
    pub(crate) tensor: TensorId,
    /// Bytes that it reads and writes.
    pub(crate) traffic: Bytes,
    /// Temporary bytes in addition to the store and the tensor itself.
    pub(crate) staging: Bytes,
    pub(crate) unpacks: bool,
}

/// Packing cores, and their queue.
pub(crate) struct PackerLane {
    cores: CpuCores,
    /// The current task, and its start.
    running: Option<(PackingTask, Nanos)>,
    pub(super) waiting: VecDeque<PackingTask>,
    /// The largest size of in-flight temporaries in this iteration.
    pub(crate) peak_staging: Bytes,
}

impl PackerLane {
    pub(crate) const fn new(cores: CpuCores) -> Self {
        Self { cores, running: None, waiting: VecDeque::new(), peak_staging: Bytes::ZERO }
    }

    pub(crate) const fn cores(&self) -> &CpuCores {
        &self.cores
    }

    fn tasks(&self) -> impl Iterator<Item = &PackingTask> {
        self.running.iter().map(|(task, _)| task).chain(&self.waiting)
    }

    /// The number of tensors that are packed or wait to be.
    pub(crate) fn in_flight(&self) -> usize {
        self.tasks().count()
    }

    pub(crate) fn works_on(&self, tensor: TensorId) -> bool {
        self.tasks().any(|task| task.tensor == tensor)
    }

    /// Hands over a tensor, which is locked until it is done.
    pub(crate) fn send(&mut self, task: PackingTask, clock: &mut Clock, tensors: &mut Tensors<'_>) -> Result {
        tensors.lock(task.tensor);
        self.waiting.push_back(task);
        self.peak_staging = self.peak_staging.max(self.tasks().map(|task| task.staging).sum());
        self.start(clock)
    }

    /// Starts the next tensor, if none is in progress.
    fn start(&mut self, clock: &mut Clock) -> Result {
        if self.running.is_some() {
            return Ok(());
        }
        let Some(task) = self.waiting.pop_front() else { return Ok(()) };
        self.running = Some((task, clock.now()));
        clock.transfer(task.traffic, self.cores.streaming_bandwidth(), Flow::Packer)
    }

    /// DRAM has moved the bytes of the current tensor.
    pub(super) fn done(&mut self, clock: &mut Clock, tensors: &mut Tensors<'_>) -> Result {
        let Some((task, since)) = self.running.take() else { return Ok(()) };
        clock.packed(task.tensor, since, task.traffic, task.unpacks);
        tensors.unlock(task.tensor);
        if !task.unpacks {
            tensors.drop_whole(task.tensor);
        }
        self.start(clock)
    }
}

/// Transfers in progress on flash.
#[derive(Debug, Default)]
pub(crate) struct FlashLane {
    writing: Vec<(TensorId, EventHandle)>,
    pub(crate) reading: Vec<(TensorId, EventHandle)>,
    /// When it will have finished all of them.
    until: Nanos,
    /// Whether the run has swapped anything.
    pub(crate) used: bool,
    /// Bytes that it has written.
    pub(crate) written: Bytes,
}

impl FlashLane {
    pub(crate) fn reads(&self, tensor: TensorId) -> bool {
        self.reading.iter().any(|(other, _)| *other == tensor)
    }

    /// The number of tensors being written to flash: memory that becomes free without any loss.
    pub(crate) const fn writes(&self) -> usize {
        self.writing.len()
    }

    pub(crate) const fn in_flight(&self) -> usize {
        self.writing.len() + self.reading.len()
    }

    /// Begins to write a tensor that is whole in memory, which takes `taken`; it leaves memory when the write is done.
    pub(crate) fn write(&mut self, tensor: TensorId, taken: Nanos, clock: &mut Clock, tensors: &mut Tensors<'_>) {
        self.used = true;
        self.written += tensors.size(tensor);
        tensors.lock(tensor);
        self.writing.push((tensor, clock.schedule_in(taken, Event::Written(tensor))));
    }

    /// Begins to read a tensor into the memory that it was given, which takes `taken`.
    pub(crate) fn bring(&mut self, tensor: TensorId, taken: Nanos, clock: &mut Clock, tensors: &mut Tensors<'_>) {
        self.used = true;
        tensors.lock(tensor);
        self.reading.push((tensor, clock.schedule_in(taken, Event::Read(tensor))));
    }

    /// How long a transfer that takes `alone` on idle flash takes from now on, behind all queued ones.
    pub(crate) fn behind(&mut self, alone: Nanos, now: Nanos) -> Nanos {
        self.until = self.until.max(now) + alone;
        self.until - now
    }

    /// A tensor is written.
    pub(super) fn written(&mut self, tensor: TensorId, tensors: &mut Tensors<'_>) {
        self.writing.retain(|(other, _)| *other != tensor);
        tensors.unlock(tensor);
        if !tensors.is_whole(tensor) || tensors.is_locked(tensor) {
            // Its last reader was faster, or an operator works on it: then it stays in memory.
            return;
        }
        if let Some(values) = tensors.values() {
            // Flash has a copy of it.
            values.swap(tensor);
        }
        tensors.drop_whole(tensor);
        // It takes no memory, so the budget cannot be exceeded.
        let _none = tensors.store(tensor, Storage::Flash, Bytes::ZERO);
    }

    /// A tensor is read.
    pub(super) fn read(&mut self, tensor: TensorId, tensors: &mut Tensors<'_>) {
        self.reading.retain(|(other, _)| *other != tensor);
        tensors.unlock(tensor);
        tensors.drop_stored(tensor);
    }

    /// Cancels all transfers.
    pub(crate) fn cancel(&mut self, clock: &mut Clock) {
        for (_, end) in self.writing.drain(..).chain(self.reading.drain(..)) {
            clock.cancel(end);
        }
    }
}
