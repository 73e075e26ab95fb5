//! Restoring tensors that are not stored whole, for their readers; and in advance, where there is room.

use haversack_devices::{Cost, Direction, Nanos};
use haversack_memory::phone::Access;
use haversack_policies::{Packing, Storage};
use haversack_workloads::{Node, NodeId, Phase, TensorId};

use super::Executor;
use crate::error::Stop;
use crate::lanes::packer::PackingTask;
use crate::machine::packing::packing_traffic;
use crate::timeline::SpanKind;

/// Number of backward nodes that are searched ahead for a tensor to restore.
const AHEAD: usize = 8;

impl Executor<'_> {
    /// Brings a tensor that is not stored whole into memory whole.
    pub(super) fn restore(&mut self, tensor: TensorId, node: NodeId) -> Result<(), Stop> {
        match self.tensors.storage(tensor) {
            Some(Storage::Compressed) => self.decompress(tensor, node),
            Some(Storage::Quantised(_)) => self.unpack(tensor, node),
            Some(Storage::Flash) => {
                if !self.lanes.flash.reads(tensor) {
                    self.admit(tensor, node)?;
                    self.read(tensor)?;
                }
                Ok(self.await_flash(|flash| !flash.reads(tensor))?)
            }
            None => Ok(()),
        }
    }

    fn decompress(&mut self, tensor: TensorId, node: NodeId) -> Result<(), Stop> {
        self.admit(tensor, node)?;
        let compression = self.costs.compression(tensor, self.tensors.samples).unwrap_or_default();
        let bytes = self.tensors.stored_size(tensor).unwrap_or(compression.bytes);
        let moved = self.tensors.size(tensor) + bytes;
        self.tensors.lock(tensor);
        self.touch([(tensor, Access::Write)].into_iter())?;
        self.spend(&Cost { busy: compression.decompress, dram: moved, ..Cost::default() }, SpanKind::Compression)?;
        self.tensors.unlock(tensor);
        self.tensors.drop_stored(tensor);
        Ok(())
    }

    /// Lets flash read a tensor into the memory allocated for it.
    fn read(&mut self, tensor: TensorId) -> Result<(), Stop> {
        let taken = self.swapping(tensor, Direction::Read)?;
        self.lanes.flash.bring(tensor, taken, &mut self.clock, &mut self.tensors);
        Ok(())
    }

    /// How long flash takes from now on to write or read a tensor, including what is already queued.
    pub(super) fn swapping(&mut self, tensor: TensorId, direction: Direction) -> Result<Nanos, Stop> {
        let bytes = self.tensors.size(tensor);
        let Some(alone) = self.costs.machine.swapping(bytes) else {
            return Err(self.refused("swap", tensor, "the device has no flash"));
        };
        let (now, phone) = (self.clock.now(), self.phone.as_mut());
        if let Some(phone) = phone {
            return Ok(phone.transfer(now, direction, bytes)?);
        }
        let alone = if direction == Direction::Read { alone.back } else { alone.out };
        Ok(self.lanes.flash.behind(alone, now))
    }

    fn unpack(&mut self, tensor: TensorId, node: NodeId) -> Result<(), Stop> {
        self.await_packer(|packer| !packer.works_on(tensor))?;
        if self.tensors.is_whole(tensor) {
            return Ok(());
        }
        self.admit(tensor, node)?;
        let packing = self.costs.packing_of(tensor).unwrap_or_default();
        if packing == Packing::Cpu && self.lanes.packer.is_some() {
            self.send_to_unpack(tensor)?;
            return Ok(self.await_packer(|packer| !packer.works_on(tensor))?);
        }
        let values = self.costs.quantiser()?.stored.values(tensor, self.tensors.samples);
        let cost = self.costs.machine.unpacking_cost(values, self.tensors.bits(tensor), packing);
        Ok(self.spend(&cost, SpanKind::Packing)?)
    }

    /// Lets the CPU unpack a tensor into the memory allocated for it.
    fn send_to_unpack(&mut self, tensor: TensorId) -> Result<(), Stop> {
        let values = self.costs.quantiser()?.stored.values(tensor, self.tensors.samples);
        let traffic = packing_traffic(values, self.tensors.bits(tensor));
        let staging = self.tensors.size(tensor);
        Ok(self.send_to_packer(PackingTask { tensor, traffic, staging, unpacks: true })?)
    }

    /// The nodes after `id`, up to the look-ahead limit.
    fn ahead(&self, id: NodeId) -> impl Iterator<Item = (NodeId, &Node)> {
        let following = self.tensors.graph.nodes.iter().enumerate().skip(id as usize + 1).take(AHEAD);
        following.map(|(id, node)| (id as NodeId, node))
    }

    /// Lets the CPU begin to unpack what backward reads next, if there is room: nothing is freed for a tensor that is
    /// not needed yet.
    pub(super) fn unpack_ahead(&mut self, id: NodeId) -> Result<(), Stop> {
        let idle = self.lanes.packer.as_ref().is_some_and(|packer| packer.in_flight() == 0);
        if self.clock.phase() != Phase::Backward || !idle {
            return Ok(());
        }
        let wanted = |&(reader, tensor): &(NodeId, TensorId)| {
            self.costs.packing_of(tensor) == Some(Packing::Cpu)
                && self.tensors.storage(tensor).is_some()
                && !self.tensors.is_whole(tensor)
                && self.costs.reads_values(reader, tensor, &self.tensors)
        };
        let readers = self.ahead(id).filter(|(id, node)| node.phase == Phase::Backward && !self.is_given_up(*id));
        let read = readers.flat_map(|(reader, node)| node.inputs.iter().map(move |&tensor| (reader, tensor)));
        let Some((reader, tensor)) = read.into_iter().find(wanted) else { return Ok(()) };
        if self.tensors.admit(tensor).is_err() {
            return Ok(());
        }
        self.note_memory(reader);
        self.send_to_unpack(tensor)
    }

    /// Drops the copy of a tensor that was unpacked before `id` for a later reader; `false` if there is none.
    pub(super) fn drop_unpacked_ahead(&mut self, id: NodeId) -> bool {
        let unpacked = |&tensor: &TensorId| {
            let is_packed = matches!(self.tensors.storage(tensor), Some(storage) if storage != Storage::Flash);
            is_packed && self.tensors.is_whole(tensor) && !self.tensors.is_locked(tensor)
        };
        let ahead = self.ahead(id).filter(|_| self.clock.phase() == Phase::Backward);
        let found = ahead.flat_map(|(_, node)| node.inputs.iter().copied()).find(unpacked);
        found.inspect(|&tensor| self.tensors.drop_whole(tensor)).is_some()
    }

    /// Lets flash read what backward reads soon, if there is room.
    pub(super) fn read_ahead(&mut self, id: NodeId) -> Result<(), Stop> {
        let flash = &self.lanes.flash;
        if self.clock.phase() != Phase::Backward || !flash.used || !flash.reading.is_empty() {
            return Ok(());
        }
        let wanted = |&(reader, tensor): &(NodeId, TensorId)| {
            self.tensors.storage(tensor) == Some(Storage::Flash)
                && self.costs.reads_values(reader, tensor, &self.tensors)
        };
        let read = self.ahead(id).flat_map(|(reader, node)| node.inputs.iter().map(move |&tensor| (reader, tensor)));
        let Some((_, tensor)) = read.into_iter().find(wanted) else { return Ok(()) };
        if self.tensors.admit(tensor).is_ok() {
            self.note_memory(id);
            self.read(tensor)?;
        }
        Ok(())
    }
}
