//! Putting tensors away: once forward has used one for the last time the policy decides how to hold it, and under
//! pressure it may reduce the bits later.

use haversack_devices::{Bytes, Cost, Direction, Nanos, ensure};
use haversack_memory::pages::Effects;
use haversack_memory::phone::Access;
use haversack_policies::importance::writes_parameter_gradients_only;
use haversack_policies::{Control, Holding, Storage, WHOLE};
use haversack_workloads::{Extent, NodeId, TensorId};

use super::Executor;
use crate::error::{Result, RunError, Stop};
use crate::lanes::packer::PackingTask;
use crate::machine::packing::{code_bytes, packing_traffic};
use crate::tensors::NoPlace;
use crate::timeline::SpanKind;

/// Tensors that the CPU handles at a time: one being packed and one queued behind it.
const IN_FLIGHT: usize = 2;

impl Executor<'_> {
    /// Asks the policy how to hold a saved tensor, once forward has used it for the last time.
    pub(super) fn hold(&mut self, tensor: TensorId, node: NodeId) -> Result<(), Stop> {
        let uses = &self.tensors.uses;
        let due = uses.is_saved(tensor)
            && uses.last_forward(tensor) == Some(node)
            && self.tensors.is_whole(tensor)
            && self.tensors.storage(tensor).is_none()
            // A tensor on its way to flash is already taken care of.
            && !self.tensors.is_locked(tensor);
        if due { self.hold_as_asked(tensor, node) } else { Ok(()) }
    }

    /// Stores a saved tensor that is whole in memory as the policy wants it.
    fn hold_as_asked(&mut self, tensor: TensorId, node: NodeId) -> Result<(), Stop> {
        loop {
            match self.ask_hold(tensor)? {
                Holding::Keep => {
                    self.tensors.keep(tensor);
                    self.note_memory(node);
                    return Ok(());
                }
                Holding::Rematerialise => {
                    self.tensors.evict(tensor, true);
                    return Ok(());
                }
                Holding::Skip => return self.give_up(tensor, node),
                Holding::Compress => return self.compress(tensor, node),
                Holding::Swap => return self.swap_out(tensor),
                Holding::Quantise(bits) => {
                    self.check_bits(tensor, bits)?;
                    if self.place(tensor, bits, node)? {
                        return self.pack(tensor, bits);
                    }
                }
            }
        }
    }

    /// Packs the tensors that were whole until a relief reduced their bits.
    pub(super) fn pack_asked(&mut self, node: NodeId) -> Result<(), Stop> {
        while let Some(tensor) = self.tensors.next_to_pack() {
            self.hold_as_asked(tensor, node)?;
        }
        Ok(())
    }

    /// Finds room for a tensor with `bits` bits a value; `false` if others had to give way first, since the policy may
    /// want it stored differently by then.
    fn place(&mut self, tensor: TensorId, bits: u8, node: NodeId) -> Result<bool, Stop> {
        let (bytes, values) = self.costs.stored(tensor, bits, self.tensors.samples)?;
        let within = self.tensors.limits.activations.unwrap_or(Bytes::MAX);
        // A tensor that was kept whole can only get smaller.
        let more = if self.tensors.is_kept(tensor) { Bytes::ZERO } else { self.tensors.held_bytes() + bytes };
        let mut shortfall = more.saturating_sub(within);
        if shortfall == Bytes::ZERO {
            match self.tensors.pack(tensor, bits, bytes) {
                Ok(effects) => {
                    self.note_bits(bits, values);
                    self.charge_paging(effects)?;
                    self.note_memory(node);
                    return Ok(true);
                }
                Err(NoPlace::Short(missing)) => shortfall = missing,
                Err(NoPlace::Refused(error)) => return Err(RunError::from(error).into()),
                Err(NoPlace::Lost(error)) => return Err(self.lost(tensor, error)),
            }
        }
        self.ask_relief(shortfall, Extent::ZERO, node)?;
        Ok(false)
    }

    /// Computes the statistics of a tensor and packs it: immediately, or on the CPU while the run continues.
    fn pack(&mut self, tensor: TensorId, bits: u8) -> Result<(), Stop> {
        let (quantiser, samples) = (self.costs.quantiser()?, self.tensors.samples);
        let control = quantiser.rules.control;
        let (values, all) = (quantiser.stored.values(tensor, samples), quantiser.stored.packed_values(tensor, samples));
        let signs = quantiser.stored.parts(tensor, samples).map_or(0, |parts| parts.bits);
        if bits != WHOLE && signs > 0 && !quantiser.rules.writes_signs {
            let cost = self.costs.machine.signs_cost(self.tensors.size(tensor), signs);
            self.spend(&cost, SpanKind::Packing)?;
        }
        if values == 0 || bits == WHOLE {
            // A tensor that is not packed is written where it lies by the operator itself.
            self.tensors.drop_whole(tensor);
            return Ok(());
        }
        let copies = all / values;
        let again = if control == Control::OwnKernels { copies } else { 1 };
        let statistics = self.costs.statistics(values, control)?;
        for _ in 0..again {
            self.spend(&statistics, SpanKind::Control)?;
        }
        let by_cpu = self.lanes.packer.is_some() && self.costs.cpu_packs(tensor, bits, &self.tensors);
        if !by_cpu {
            let cost = self.costs.machine.packing_cost(values, bits);
            for _ in 0..copies {
                self.spend(&cost, SpanKind::Packing)?;
            }
            self.tensors.drop_whole(tensor);
            return Ok(());
        }
        self.await_packer(|packer| packer.in_flight() < IN_FLIGHT)?;
        let (traffic, staging) = (packing_traffic(all, bits), code_bytes(values, bits));
        Ok(self.send_to_packer(PackingTask { tensor, traffic, staging, unpacks: false })?)
    }

    /// Hands a tensor to the packing cores.
    pub(super) fn send_to_packer(&mut self, task: PackingTask) -> Result {
        let Some(packer) = &mut self.lanes.packer else { return Ok(()) };
        packer.send(task, &mut self.clock, &mut self.tensors)
    }

    /// Compresses a tensor that is whole in memory, channel after channel, so that it leaves as its compressed form
    /// arrives.
    pub(super) fn compress(&mut self, tensor: TensorId, node: NodeId) -> Result<(), Stop> {
        self.check_candidate(tensor, "compress")?;
        let Some(compression) = self.costs.compression(tensor, self.tensors.samples) else {
            return Err(self.refused("compress", tensor, "the stack has no codec"));
        };
        self.fidelity[1].note_codec();
        let bytes = self.tensors.compress(tensor).map_err(|error| self.lost(tensor, error))?;
        let bytes = bytes.unwrap_or(compression.bytes);
        let moved = self.tensors.size(tensor) + bytes;
        self.touch([(tensor, Access::Read)].into_iter())?;
        self.spend(&Cost { busy: compression.compress, dram: moved, ..Cost::default() }, SpanKind::Compression)?;
        self.tensors.drop_whole(tensor);
        if self.tensors.store(tensor, Storage::Compressed, bytes).is_err() {
            return Err(self.refused("compress", tensor, "its compressed form has no room"));
        }
        self.note_memory(node);
        self.touch([(tensor, Access::Write)].into_iter())
    }

    /// Has flash write a tensor that is whole in memory; it leaves memory when it is written.
    pub(super) fn swap_out(&mut self, tensor: TensorId) -> Result<(), Stop> {
        self.check_candidate(tensor, "swap")?;
        let taken = self.swapping(tensor, Direction::Write)?;
        self.lanes.flash.write(tensor, taken, &mut self.clock, &mut self.tensors);
        Ok(())
    }

    fn check_candidate(&self, tensor: TensorId, action: &str) -> Result<(), Stop> {
        let why = "it is not whole in memory, or in use";
        ensure!(self.tensors.is_candidate(tensor), self.refused(action, tensor, why));
        Ok(())
    }

    /// Gives up the weight gradients that need a tensor, for this iteration.
    pub(super) fn give_up(&mut self, tensor: TensorId, node: NodeId) -> Result<(), Stop> {
        let graph = self.tensors.graph;
        let readers: Vec<NodeId> = self.costs.readers(tensor, &self.tensors).collect();
        let readers = || readers.iter().map(|&id| &graph.nodes[id as usize]);
        if let Some(other) = readers().find(|node| !writes_parameter_gradients_only(graph, node)) {
            let action = format!("give up {}, which {} reads", graph.tensor(tensor).name, other.name);
            return Err(Stop::illegal(action, "more than gradients of weights depend on it"));
        }
        for &gradient in readers().flat_map(|node| &node.outputs) {
            self.tensors.give_up(gradient);
        }
        // The signs that a ReLU needs stay.
        if self.tensors.storage(tensor).is_some() {
            return self.requantise(tensor, 0);
        }
        let signs = self.costs.signs(tensor, self.tensors.samples);
        // Others may have to give way more than once.
        while signs > Bytes::ZERO && !self.place(tensor, 0, node)? {}
        self.tensors.drop_whole(tensor);
        Ok(())
    }

    fn check_bits(&self, tensor: TensorId, bits: u8) -> Result<(), Stop> {
        let action = || format!("store {} with {bits} bits a value", self.tensors.graph.tensor(tensor).name);
        ensure!(matches!(bits, 1..=8 | 16 | WHOLE), Stop::illegal(action(), "it has 1 to 8, 16 or 32"));
        Ok(())
    }

    /// Quantises a tensor that is whole in memory, group after group, so that it leaves as its codes arrive.
    pub(super) fn quantise(&mut self, tensor: TensorId, bits: u8, node: NodeId) -> Result<(), Stop> {
        self.check_candidate(tensor, "quantise")?;
        self.check_bits(tensor, bits)?;
        let (bytes, values) = self.costs.stored(tensor, bits, self.tensors.samples)?;
        self.note_bits(bits, values);
        let cost = self.costs.machine.packing_cost(values, bits);
        self.spend(&cost, SpanKind::Packing)?;
        match self.tensors.quantise_in_place(tensor, bits, bytes) {
            Ok(effects) => self.charge_paging(effects)?,
            Err(NoPlace::Lost(error)) => return Err(self.lost(tensor, error)),
            Err(_) => return Err(self.refused("quantise", tensor, "its codes have no room")),
        }
        self.note_memory(node);
        Ok(())
    }

    /// Stores a tensor with fewer bits. One that was kept whole is packed soon; for one without a decision yet the
    /// policy decides later.
    pub(super) fn requantise(&mut self, tensor: TensorId, bits: u8) -> Result<(), Stop> {
        if self.tensors.storage(tensor).is_none() {
            self.tensors.to_pack.push(tensor);
            return Ok(());
        }
        self.await_packer(|packer| !packer.works_on(tensor))?;
        let (bytes, values) = self.costs.stored(tensor, bits, self.tensors.samples)?;
        self.note_bits(bits, values);
        let held = self.tensors.bits(tensor);
        if bits > held {
            let action = format!("store {} with {bits} bits a value", self.tensors.graph.tensor(tensor).name);
            return Err(Stop::illegal(action, "it has fewer already"));
        }
        self.tensors.requantise(tensor, bits, bytes).map_err(|error| self.lost(tensor, error))?;
        let moved = Bytes((values * u64::from(held + bits)).div_ceil(8));
        let cost = self.costs.machine.copying(Bytes(moved.0 / 2));
        Ok(self.spend(&cost, SpanKind::Packing)?)
    }

    /// Records that backward finds `values` values with `bits` bits each; with 0 bits they are given up, and not
    /// stored.
    fn note_bits(&mut self, bits: u8, values: u64) {
        if values > 0 && bits > 0 {
            self.fidelity[1].note_bits(bits);
        }
    }

    /// System calls and copying of the arena take time.
    pub(super) fn charge_paging(&mut self, effects: Effects) -> Result {
        let calls = u64::from(effects.allocations + effects.releases);
        if calls > 0 {
            let launch = Nanos(self.costs.machine.system_allocation().0 * calls);
            self.spend(&Cost { launch, ..Cost::default() }, SpanKind::Paging)?;
            self.tensors.bound_allocator();
        }
        if effects.copied > Bytes::ZERO {
            let copying = self.costs.machine.copying(effects.copied);
            self.spend(&copying, SpanKind::Paging)?;
        }
        Ok(())
    }
}
