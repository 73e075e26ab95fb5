//! Compressed and swapped tensors: out of memory, and back for those that read them.
//!
//! Compression runs on the processor, channel after channel, so that a map leaves as its compressed form arrives. Flash
//! works beside it: a tensor stays locked until it is written, and what backward reads soon is read ahead where there
//! is room.

use haversack_devices::processor::Cost;
use haversack_devices::units::{Bytes, Nanos};
use haversack_engine::EventHandle;
use haversack_memory::phone::Access;
use haversack_policies::Storage;
use haversack_policies::setting::RestoreProfile;
use haversack_workloads::{NodeId, Phase, TensorId};

use super::{Event, Executor, Stop};
use crate::job::RunError;
use crate::timeline::SpanKind;

/// Nodes of backward that are looked ahead for a tensor on flash.
const AHEAD: usize = 8;

/// What flash has in hand.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    writing: Vec<(TensorId, EventHandle)>,
    reading: Vec<(TensorId, EventHandle)>,
    /// When it will have done all of it.
    until: Nanos,
    /// Whether the run has swapped anything.
    swaps: bool,
}

impl Transfers {
    fn reads(&self, tensor: TensorId) -> bool {
        self.reading.iter().any(|(other, _)| *other == tensor)
    }

    fn in_flight(&self) -> usize {
        self.writing.len() + self.reading.len()
    }
}

impl Executor<'_> {
    /// Compresses a tensor that is whole in memory.
    pub(super) fn compress(&mut self, tensor: TensorId, node: NodeId) -> Result<(), Stop> {
        self.check_whole(tensor, "compress")?;
        let Some(compression) = self.restore.compression(tensor, self.store.samples) else {
            return Err(self.refused("compress", tensor, "the stack has no codec"));
        };
        let moved = self.store.size(tensor) + compression.bytes;
        self.touch([(tensor, Access::Read)].into_iter())?;
        self.spend(&Cost { busy: compression.compress, dram: moved, ..Cost::default() }, SpanKind::Compression)?;
        self.store.evict_whole(tensor, false);
        if self.store.set_aside(tensor, Storage::Compressed, compression.bytes).is_err() {
            return Err(self.refused("compress", tensor, "its compressed form has no room"));
        }
        self.note_memory(node);
        self.touch([(tensor, Access::Write)].into_iter())
    }

    /// Has flash write a tensor that is whole in memory; it leaves memory when it is written.
    pub(super) fn swap_out(&mut self, tensor: TensorId) -> Result<(), Stop> {
        self.check_whole(tensor, "swap")?;
        let Some(taken) = self.flash_time(self.store.size(tensor), true) else {
            return Err(self.refused("swap", tensor, "the device has no flash"));
        };
        self.store.lock(tensor);
        let end = self.events.schedule_in(taken, Event::Written(tensor));
        self.transfers.writing.push((tensor, end));
        Ok(())
    }

    /// How long flash takes for so many bytes from now on, behind all that it has in hand.
    fn flash_time(&mut self, bytes: Bytes, writes: bool) -> Option<Nanos> {
        let alone = self.machine.swapping(bytes)?;
        let alone = if writes { alone.out } else { alone.back };
        let transfers = &mut self.transfers;
        transfers.until = transfers.until.max(self.now) + alone;
        transfers.swaps = true;
        Some(transfers.until - self.now)
    }

    /// Brings a tensor that is not whole into memory.
    pub(super) fn bring_back(&mut self, tensor: TensorId, node: NodeId) -> Result<(), Stop> {
        match self.store.storage(tensor) {
            Some(Storage::Compressed) => self.decompress(tensor, node),
            Some(Storage::Flash) => {
                if !self.transfers.reads(tensor) {
                    self.admit(tensor, node)?;
                    self.read_back(tensor)?;
                }
                self.await_transfers(|transfers| !transfers.reads(tensor))
            }
            Some(Storage::Quantised(_)) => self.unpack(tensor, node),
            None => Ok(()),
        }
    }

    fn decompress(&mut self, tensor: TensorId, node: NodeId) -> Result<(), Stop> {
        self.admit(tensor, node)?;
        let compression = self.restore.compression(tensor, self.store.samples).unwrap_or_default();
        let moved = self.store.size(tensor) + compression.bytes;
        self.store.lock(tensor);
        self.touch([(tensor, Access::Write)].into_iter())?;
        self.spend(&Cost { busy: compression.decompress, dram: moved, ..Cost::default() }, SpanKind::Compression)?;
        self.store.unlock(tensor);
        self.store.unpack_for_good(tensor);
        Ok(())
    }

    /// Has flash read a tensor into the memory that it was given.
    fn read_back(&mut self, tensor: TensorId) -> Result<(), Stop> {
        let Some(taken) = self.flash_time(self.store.size(tensor), false) else {
            return Err(self.refused("swap", tensor, "the device has no flash"));
        };
        self.store.lock(tensor);
        let end = self.events.schedule_in(taken, Event::Read(tensor));
        self.transfers.reading.push((tensor, end));
        Ok(())
    }

    /// Has flash read what backward reads soon, where there is room: nothing gives way for what is not needed yet.
    pub(super) fn read_ahead(&mut self, id: NodeId) -> Result<(), Stop> {
        if self.phase != Phase::Backward || !self.transfers.swaps || !self.transfers.reading.is_empty() {
            return Ok(());
        }
        let graph = self.graph;
        for (reader, node) in (0..).zip(&graph.nodes).skip(id as usize + 1).take(AHEAD) {
            for &tensor in &node.inputs {
                if self.store.storage(tensor) == Some(Storage::Flash) && self.reads_unpacked(reader, tensor) {
                    if self.store.admit(tensor).is_ok() {
                        self.note_memory(id);
                        self.read_back(tensor)?;
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Flash has written a tensor.
    pub(super) fn written(&mut self, tensor: TensorId) {
        self.transfers.writing.retain(|(other, _)| *other != tensor);
        self.store.unlock(tensor);
        if !self.store.is_resident(tensor) || self.store.is_locked(tensor) {
            // Its last reader was faster, or an operator works on it: then it stays.
            return;
        }
        self.store.evict_whole(tensor, false);
        // It takes nothing, so that nothing can be short.
        let _none = self.store.set_aside(tensor, Storage::Flash, Bytes::ZERO);
    }

    /// Flash has read a tensor.
    pub(super) fn read(&mut self, tensor: TensorId) {
        self.transfers.reading.retain(|(other, _)| *other != tensor);
        self.store.unlock(tensor);
        self.store.unpack_for_good(tensor);
    }

    /// Whether tensors are on their way to flash; then memory gets free without anybody's loss.
    pub(super) fn is_writing(&self) -> bool {
        !self.transfers.writing.is_empty()
    }

    /// Waits until flash has written one more tensor.
    pub(super) fn await_write(&mut self) -> Result<(), Stop> {
        let left = self.transfers.writing.len();
        self.await_transfers(|transfers| transfers.writing.len() < left)
    }

    /// Flash finishes what it has in hand.
    pub(super) fn clear_transfers(&mut self) -> Result<(), Stop> {
        self.await_transfers(|transfers| transfers.in_flight() == 0)
    }

    /// Nobody waits any more for what flash has in hand.
    pub(super) fn drop_transfers(&mut self) {
        let Transfers { writing, reading, .. } = &mut self.transfers;
        for (_, end) in writing.drain(..).chain(reading.drain(..)) {
            self.events.cancel(end);
        }
    }

    fn await_transfers(&mut self, far_enough: impl Fn(&Transfers) -> bool) -> Result<(), Stop> {
        let start = self.now;
        while !far_enough(&self.transfers) {
            if self.next_event()?.is_none() {
                break;
            }
        }
        self.part.swapping += self.now - start;
        Ok(())
    }

    fn check_whole(&self, tensor: TensorId, action: &str) -> Result<(), Stop> {
        if self.store.candidates.contains(tensor) {
            return Ok(());
        }
        Err(self.refused(action, tensor, "it is not whole in memory, or in use"))
    }

    fn refused(&self, action: &str, tensor: TensorId, reason: &'static str) -> Stop {
        let name = self.graph.tensors.get(tensor as usize).map_or("?", |tensor| tensor.name.as_str());
        RunError::IllegalAction { action: format!("{action} {name}"), reason }.into()
    }
}
