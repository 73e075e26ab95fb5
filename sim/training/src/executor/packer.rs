//! The CPU beside the processor that trains: it packs and unpacks one tensor after the other, and takes its bytes from
//! the same DRAM.

use std::collections::VecDeque;

use haversack_devices::processor::{CpuCores, ProcessorKind};
use haversack_devices::units::{Bytes, Nanos};
use haversack_workloads::TensorId;

use super::processor::Flow;
use super::{Executor, Stop};
use crate::job::RunError;
use crate::timeline::PackingSpan;

/// A tensor to pack or to unpack.
#[derive(Clone, Copy, Debug)]
struct Task {
    tensor: TensorId,
    /// Bytes that it reads and writes.
    traffic: Bytes,
    /// Bytes that it holds beside the store and the tensor itself.
    staging: Bytes,
    unpacks: bool,
}

/// Cores that pack, and what waits for them.
pub(super) struct Packer {
    pub(super) cores: CpuCores,
    running: Option<(Task, Nanos)>,
    waiting: VecDeque<Task>,
}

impl Packer {
    pub(super) const fn new(cores: CpuCores) -> Self {
        Self { cores, running: None, waiting: VecDeque::new() }
    }

    fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.running.iter().map(|(task, _)| task).chain(&self.waiting)
    }

    /// Tensors that are packed or wait to be.
    pub(super) fn in_flight(&self) -> usize {
        self.tasks().count()
    }

    pub(super) fn works_on(&self, tensor: TensorId) -> bool {
        self.tasks().any(|task| task.tensor == tensor)
    }

    fn staging(&self) -> Bytes {
        self.tasks().map(|task| task.staging).sum()
    }
}

impl Executor<'_> {
    /// Hands a tensor to the packer.
    pub(super) fn send_to_packer(
        &mut self,
        tensor: TensorId,
        traffic: Bytes,
        staging: Bytes,
        unpacks: bool,
    ) -> Result<(), Stop> {
        self.store.lock(tensor);
        let Some(packer) = &mut self.packer else { return Ok(()) };
        packer.waiting.push_back(Task { tensor, traffic, staging, unpacks });
        self.record.peak_staging = self.record.peak_staging.max(packer.staging());
        Ok(self.start_packer()?)
    }

    /// Lets the packer take the next tensor, where it has none.
    fn start_packer(&mut self) -> Result<(), RunError> {
        let Some(packer) = &mut self.packer else { return Ok(()) };
        if packer.running.is_some() {
            return Ok(());
        }
        let Some(task) = packer.waiting.pop_front() else { return Ok(()) };
        packer.running = Some((task, self.now));
        let rate = packer.cores.streaming_bandwidth();
        self.dram.insert(self.now, task.traffic, Some(rate), Flow::Packer)?;
        self.usage.dram += task.traffic;
        self.await_dram();
        Ok(())
    }

    /// DRAM has moved the packer's bytes.
    pub(super) fn packer_done(&mut self) -> Result<(), RunError> {
        let Some((task, since)) = self.packer.as_mut().and_then(|packer| packer.running.take()) else { return Ok(()) };
        let busy = self.now - since;
        self.usage.cpu_busy += busy;
        self.note_power(ProcessorKind::Cpu, since, busy, task.traffic);
        if let Some(timeline) = &mut self.record.timeline {
            timeline.packing.push(PackingSpan {
                tensor: task.tensor,
                start: since - self.started,
                duration: self.now - since,
                unpacks: task.unpacks,
            });
        }
        self.store.unlock(task.tensor);
        if !task.unpacks {
            self.store.evict_whole(task.tensor, false);
        }
        self.start_packer()
    }

    /// Waits until the packer has come so far.
    pub(super) fn await_packer(&mut self, far_enough: impl Fn(&Packer) -> bool) -> Result<(), Stop> {
        let start = self.now;
        while self.packer.as_ref().is_some_and(|packer| !far_enough(packer)) {
            if self.next_event()?.is_none() {
                break;
            }
        }
        self.part.packing += self.now - start;
        Ok(())
    }

    /// Nothing that it had in hand matters any more.
    pub(super) fn clear_packer(&mut self) -> Result<(), Stop> {
        if let Some(packer) = &mut self.packer {
            packer.waiting.clear();
        }
        self.await_packer(|packer| packer.in_flight() == 0)
    }
}
