//! Quantised tensors: from their last use in forward into the store, and back for those that read them.

use haversack_devices::processor::Cost;
use haversack_devices::units::{Bytes, Nanos};
use haversack_memory::pages::Effects;
use haversack_policies::importance::writes_parameter_gradients_only;
use haversack_policies::quantised::{Control, ElementBytes, Packing, Quantisation, Quantised, WHOLE};
use haversack_policies::{Holding, Storage};
use haversack_workloads::training_graph::Need;
use haversack_workloads::{Extent, NodeId, Phase, Role, TensorId, TrainingGraph};

use super::{Executor, Stop};
use crate::job::RunError;
use crate::packing::{code_bytes, packing_traffic};
use crate::store::NoPlace;
use crate::timeline::SpanKind;

/// Maps that wait for the CPU at a time: one that is packed and one behind it.
const IN_FLIGHT: usize = 2;
/// Nodes of backward that are looked ahead for a tensor that the CPU has to unpack.
const AHEAD: usize = 8;

/// How quantised tensors are stored in this run.
pub(super) struct Quantiser {
    rules: Quantisation,
    stored: Quantised,
}

impl Quantiser {
    pub(super) fn new(graph: &TrainingGraph, rules: Quantisation, sizes: ElementBytes) -> Self {
        Self { rules, stored: Quantised::new(graph, &rules, sizes) }
    }
}

impl Executor<'_> {
    /// Asks the policy how to hold a saved tensor, once forward has used it for the last time.
    pub(super) fn hold(&mut self, tensor: TensorId, node: NodeId) -> Result<(), Stop> {
        let uses = &self.store.uses;
        let due = uses.saved[tensor as usize]
            && uses.last_forward[tensor as usize] == Some(node)
            && self.store.is_resident(tensor)
            && !self.store.is_packed(tensor)
            // What is on its way to flash is held already.
            && !self.store.is_locked(tensor);
        if due { self.hold_as_asked(tensor, node) } else { Ok(()) }
    }

    /// Holds a saved tensor that is whole in memory as the policy wants it.
    fn hold_as_asked(&mut self, tensor: TensorId, node: NodeId) -> Result<(), Stop> {
        loop {
            match self.ask_hold(tensor) {
                Holding::Keep => {
                    self.store.keep(tensor);
                    self.note_memory(node);
                    return Ok(());
                }
                Holding::Rematerialise => {
                    self.store.evict(tensor, true);
                    return Ok(());
                }
                Holding::Skip => return self.give_up(tensor, node),
                Holding::Compress => return self.compress(tensor, node),
                Holding::Swap => return self.swap_out(tensor),
                Holding::Quantise(bits) if !matches!(bits, 1..=8 | 16 | WHOLE) => {
                    let action = format!("store {} with {bits} bits a value", self.graph.tensor(tensor).name);
                    return Err(RunError::IllegalAction { action, reason: "it has 1 to 8, 16 or 32" }.into());
                }
                Holding::Quantise(bits) => {
                    if self.place(tensor, bits, node)? {
                        return self.pack(tensor, bits);
                    }
                }
            }
        }
    }

    /// Packs the tensors that were held whole until a relief asked for fewer bits.
    pub(super) fn pack_asked(&mut self, node: NodeId) -> Result<(), Stop> {
        while let Some(tensor) = self.to_pack.pop() {
            if self.store.is_kept(tensor) && !self.store.is_locked(tensor) {
                self.hold_as_asked(tensor, node)?;
            }
        }
        Ok(())
    }

    /// Finds room for a tensor with `bits` bits a value; not where others had to give way first, since the policy may
    /// by then want it otherwise.
    fn place(&mut self, tensor: TensorId, bits: u8, node: NodeId) -> Result<bool, Stop> {
        let Some(quantiser) = &self.quantiser else { return Err(no_rules()) };
        let bytes = quantiser.stored.bytes(tensor, bits, self.store.samples);
        let within = self.activations.unwrap_or(Bytes::MAX);
        // What was held whole can only get smaller.
        let more = if self.store.is_kept(tensor) { Bytes::ZERO } else { self.store.held_bytes() + bytes };
        let mut shortfall = more.saturating_sub(within);
        if shortfall == Bytes::ZERO {
            match self.store.pack(tensor, bits, bytes) {
                Ok(effects) => {
                    self.charge_paging(effects)?;
                    self.note_memory(node);
                    return Ok(true);
                }
                Err(NoPlace::Short(missing)) => shortfall = missing,
                Err(NoPlace::Refused(error)) => return Err(RunError::from(error).into()),
            }
        }
        self.ask_policy(shortfall, Extent::ZERO, node)?;
        Ok(false)
    }

    /// Computes the statistics of a tensor and packs it: here and now, or by the CPU while the run goes on.
    fn pack(&mut self, tensor: TensorId, bits: u8) -> Result<(), Stop> {
        let Some(quantiser) = &self.quantiser else { return Err(no_rules()) };
        let samples = self.store.samples;
        let rules = quantiser.rules;
        let (values, all) = (quantiser.stored.values(tensor, samples), quantiser.stored.packed_values(tensor, samples));
        if values == 0 || bits == WHOLE {
            // Signs and masks are written by the operator itself, and so is a tensor that is not packed.
            self.store.evict_whole(tensor, false);
            return Ok(());
        }
        let copies = all / values;
        let again = if rules.control == Control::OwnKernels { copies } else { 1 };
        let control = self.control_cost(values, rules.control)?;
        for _ in 0..again {
            self.spend(&control, SpanKind::Control)?;
        }
        if self.packer.is_none() {
            let cost = self.machine.packing_cost(values, bits);
            for _ in 0..copies {
                self.spend(&cost, SpanKind::Packing)?;
            }
            self.store.evict_whole(tensor, false);
            return Ok(());
        }
        self.await_packer(|packer| packer.in_flight() < IN_FLIGHT)?;
        self.send_to_packer(tensor, packing_traffic(all, bits), code_bytes(values, bits), false)
    }

    /// What the statistics of `values` values cost; profiled once a size, as offline profiling does.
    fn control_cost(&mut self, values: u64, control: Control) -> Result<Cost, Stop> {
        if let Some(&(_, known)) = self.profiled.iter().find(|(size, _)| *size == values) {
            return Ok(known);
        }
        let cost = self.machine.control_cost(values, control).map_err(RunError::from)?;
        self.profiled.push((values, cost));
        Ok(cost)
    }

    /// What `node` reads of a packed tensor: whether its values have to be brought into memory first.
    pub(super) fn reads_unpacked(&self, node: NodeId, tensor: TensorId) -> bool {
        if !matches!(self.store.storage(tensor), Some(Storage::Quantised(_))) {
            return self.graph.nodes[node as usize].need_of(tensor) != Need::Shape;
        }
        let Some(quantiser) = &self.quantiser else { return false };
        let node = &self.graph.nodes[node as usize];
        node.need_of(tensor) == Need::Values
            && self.store.bits(tensor) != WHOLE
            && !(node.phase == Phase::Backward && self.machine.unpacks_within(quantiser.rules.packing))
    }

    /// Brings the values of a packed tensor into memory.
    pub(super) fn unpack(&mut self, tensor: TensorId, node: NodeId) -> Result<(), Stop> {
        self.await_packer(|packer| !packer.works_on(tensor))?;
        if self.store.is_resident(tensor) {
            return Ok(());
        }
        self.admit(tensor, node)?;
        let Some(quantiser) = &self.quantiser else { return Err(no_rules()) };
        let values = quantiser.stored.values(tensor, self.store.samples);
        let bits = self.store.bits(tensor);
        if quantiser.rules.packing == Packing::Cpu && self.packer.is_some() {
            self.send_to_packer(tensor, packing_traffic(values, bits), self.store.size(tensor), true)?;
            self.await_packer(|packer| !packer.works_on(tensor))
        } else {
            let cost = self.machine.packing_cost(values, bits);
            Ok(self.spend(&cost, SpanKind::Packing)?)
        }
    }

    /// Lets the CPU begin to unpack what backward reads next.
    pub(super) fn prefetch(&mut self, id: NodeId) -> Result<(), Stop> {
        let by_cpu = self.quantiser.as_ref().is_some_and(|quantiser| quantiser.rules.packing == Packing::Cpu);
        if self.phase != Phase::Backward || !by_cpu || self.packer.as_ref().is_none_or(|packer| packer.in_flight() > 0)
        {
            return Ok(());
        }
        let graph = self.graph;
        let coming = graph.nodes.iter().enumerate().skip(id as usize + 1).take(AHEAD);
        for (reader, node) in
            coming.filter(|(id, node)| node.phase == Phase::Backward && !self.is_given_up(*id as NodeId))
        {
            for &tensor in &node.inputs {
                let wanted = self.store.is_packed(tensor)
                    && !self.store.is_resident(tensor)
                    && self.reads_unpacked(reader as NodeId, tensor);
                if wanted {
                    let Some(quantiser) = &self.quantiser else { return Ok(()) };
                    let values = quantiser.stored.values(tensor, self.store.samples);
                    let bits = self.store.bits(tensor);
                    // Only where there is room: nothing gives way for what is not needed yet.
                    if self.store.admit(tensor).is_err() {
                        return Ok(());
                    }
                    self.note_memory(reader as NodeId);
                    return self.send_to_packer(tensor, packing_traffic(values, bits), self.store.size(tensor), true);
                }
            }
        }
        Ok(())
    }

    /// What unpacking inside `id` costs beside it, and the bytes that it does not read whole.
    pub(super) fn within(&self, id: NodeId) -> Option<(Cost, Bytes)> {
        let quantiser = self.quantiser.as_ref()?;
        let node = &self.graph.nodes[id as usize];
        if node.phase != Phase::Backward || !self.machine.unpacks_within(quantiser.rules.packing) {
            return None;
        }
        let packed = node.inputs.iter().copied().filter(|&tensor| {
            self.store.is_packed(tensor)
                && !self.store.is_resident(tensor)
                && self.store.bits(tensor) != WHOLE
                && node.need_of(tensor) == Need::Values
        });
        let mut sum: Option<(Cost, Bytes)> = None;
        for tensor in packed {
            let bits = self.store.bits(tensor);
            let values = quantiser.stored.values(tensor, self.store.samples);
            let cost = self.machine.unpacking_within(values, bits, node.work.columns);
            let (total, less) = sum.get_or_insert_default();
            total.busy += cost.busy;
            total.dram += cost.dram;
            *less += self.store.size(tensor);
        }
        sum
    }

    /// Gives up the weight gradients that need a tensor, for this iteration.
    pub(super) fn give_up(&mut self, tensor: TensorId, node: NodeId) -> Result<(), Stop> {
        let graph = self.graph;
        let readers = || {
            let backward = graph.nodes.iter().filter(|node| node.phase == Phase::Backward);
            backward.filter(|node| node.inputs.contains(&tensor) && node.need_of(tensor) == Need::Values)
        };
        if let Some(other) = readers().find(|node| !writes_parameter_gradients_only(graph, node)) {
            return Err(RunError::IllegalAction {
                action: format!("give up {}, which {} reads", graph.tensor(tensor).name, other.name),
                reason: "more than gradients of weights depend on it",
            }
            .into());
        }
        for &gradient in readers().flat_map(|node| &node.outputs) {
            if !std::mem::replace(&mut self.given_up[gradient as usize], true) {
                self.record.given_up += 1;
            }
            self.store.evict(gradient, false);
        }
        // What a ReLU needs of it stays.
        if self.store.is_packed(tensor) {
            return self.requantise(tensor, 0);
        }
        let aside = self.quantiser.as_ref().map_or(Bytes::ZERO, |q| q.stored.bytes(tensor, 0, self.store.samples));
        // Others may have to give way more than once.
        while aside > Bytes::ZERO && !self.place(tensor, 0, node)? {}
        self.store.evict_whole(tensor, false);
        Ok(())
    }

    /// Whether all that a node is for was given up.
    pub(super) fn is_given_up(&self, id: NodeId) -> bool {
        if self.record.given_up == 0 {
            return false;
        }
        let node = &self.graph.nodes[id as usize];
        let lost = |tensor: &TensorId| self.given_up[*tensor as usize];
        match node.phase {
            Phase::Forward => false,
            Phase::Backward => !node.outputs.is_empty() && node.outputs.iter().all(lost),
            Phase::Update => {
                node.inputs.iter().any(|id| self.graph.tensor(*id).role == Role::ParameterGradient && lost(id))
            }
        }
    }

    /// Stores a tensor with fewer bits; one that was held whole is packed soon, one that is not held yet will be asked
    /// about again.
    pub(super) fn requantise(&mut self, tensor: TensorId, bits: u8) -> Result<(), Stop> {
        if !self.store.is_packed(tensor) {
            self.to_pack.push(tensor);
            return Ok(());
        }
        self.await_packer(|packer| !packer.works_on(tensor))?;
        let Some(quantiser) = &self.quantiser else { return Err(no_rules()) };
        let bytes = quantiser.stored.bytes(tensor, bits, self.store.samples);
        let values = quantiser.stored.values(tensor, self.store.samples);
        let held = self.store.bits(tensor);
        if bits > held {
            let action = format!("store {} with {bits} bits a value", self.graph.tensor(tensor).name);
            return Err(RunError::IllegalAction { action, reason: "it has fewer already" }.into());
        }
        self.store.requantise(tensor, bits, bytes).map_err(RunError::from)?;
        let moved = Bytes((values * u64::from(held + bits)).div_ceil(8));
        let cost = self.machine.copying(Bytes(moved.0 / 2));
        Ok(self.spend(&cost, SpanKind::Packing)?)
    }

    /// System calls and copying of the arena take time.
    pub(super) fn charge_paging(&mut self, effects: Effects) -> Result<(), RunError> {
        let calls = u64::from(effects.allocations + effects.releases);
        if calls > 0 {
            let wait = Nanos(self.machine.system_allocation().0 * calls);
            self.spend(&Cost { launch: wait, ..Cost::default() }, SpanKind::Paging)?;
            self.store.set_budget(self.budget);
        }
        if effects.copied > Bytes::ZERO {
            self.spend(&self.machine.copying(effects.copied), SpanKind::Paging)?;
        }
        Ok(())
    }
}

fn no_rules() -> Stop {
    let reason = "its schedule does not say how quantised tensors are stored";
    RunError::IllegalAction { action: "quantise a tensor".to_owned(), reason }.into()
}
