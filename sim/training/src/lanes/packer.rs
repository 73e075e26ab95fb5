//! The CPU beside the processor that trains: it packs and unpacks one tensor after the other, and takes its bytes from
//! the same DRAM.

use std::collections::VecDeque;

use haversack_devices::processor::CpuCores;
use haversack_devices::units::{Bytes, Nanos};
use haversack_workloads::TensorId;

use crate::clock::{Clock, Flow};
use crate::error::Result;
use crate::tensors::Tensors;

/// A tensor to pack or to unpack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackingTask {
    pub(crate) tensor: TensorId,
    /// Bytes that it reads and writes.
    pub(crate) traffic: Bytes,
    /// Bytes that it holds beside the store and the tensor itself.
    pub(crate) staging: Bytes,
    pub(crate) unpacks: bool,
}

/// Cores that pack, and what waits for them.
pub(crate) struct PackerLane {
    cores: CpuCores,
    /// What they have in hand, and since when.
    running: Option<(PackingTask, Nanos)>,
    waiting: VecDeque<PackingTask>,
    peak_staging: Bytes,
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

    /// The most that was held in flight since this was last asked.
    pub(crate) fn take_peak_staging(&mut self) -> Bytes {
        std::mem::take(&mut self.peak_staging)
    }

    /// Hands over a tensor, which is locked until it is done.
    pub(crate) fn send(&mut self, task: PackingTask, clock: &mut Clock, tensors: &mut Tensors<'_>) -> Result {
        tensors.lock(task.tensor);
        self.waiting.push_back(task);
        self.peak_staging = self.peak_staging.max(self.tasks().map(|task| task.staging).sum());
        self.start(clock)
    }

    /// Takes the next tensor, if there is none in hand.
    fn start(&mut self, clock: &mut Clock) -> Result {
        if self.running.is_some() {
            return Ok(());
        }
        let Some(task) = self.waiting.pop_front() else { return Ok(()) };
        self.running = Some((task, clock.now()));
        clock.transfer(task.traffic, self.cores.streaming_bandwidth(), Flow::Packer)
    }

    /// DRAM has moved the bytes of the tensor in hand.
    pub(super) fn done(&mut self, clock: &mut Clock, tensors: &mut Tensors<'_>) -> Result {
        let Some((task, since)) = self.running.take() else { return Ok(()) };
        clock.packed(task.tensor, since, task.traffic, task.unpacks);
        tensors.unlock(task.tensor);
        if !task.unpacks {
            tensors.drop_whole(task.tensor);
        }
        self.start(clock)
    }

    /// What waits does not matter any more.
    pub(super) fn forget_waiting(&mut self) {
        self.waiting.clear();
    }
}
