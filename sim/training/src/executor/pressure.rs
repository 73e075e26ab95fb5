//! Memory pressure: bringing tensors in, and letting the policy give something back.

use haversack_devices::units::{Bytes, Nanos};
use haversack_memory::AllocationError;
use haversack_policies::{Holding, MemoryView, Relief, Want};
use haversack_workloads::{Extent, NodeId, Phase, TensorId};

use super::{Executor, Stop};
use crate::job::RunError;
use crate::store::Store;

/// Memory as a policy sees it, while `wanted` more is to fit into `budget`.
fn view<'a>(store: &'a Store<'_>, wanted: Extent, budget: Bytes, (now, phase): (Nanos, Phase)) -> MemoryView<'a> {
    MemoryView {
        graph: store.graph,
        tensors: &store.states,
        candidates: &store.candidates,
        changed: &store.changed,
        at: store.at,
        producers: &store.uses.producers,
        micro_batch: store.samples,
        needed: store.resident + wanted,
        budget,
        now,
        phase,
    }
}

impl Executor<'_> {
    /// Brings the outputs of a node into memory, locked.
    pub(super) fn make_room(&mut self, id: NodeId) -> Result<(), Stop> {
        for &output in &self.graph.nodes[id as usize].outputs {
            if !self.store.is_resident(output) {
                self.admit(output, id)?;
            }
            self.store.lock(output);
        }
        Ok(())
    }

    /// Brings one tensor into memory; where a budget does not hold it, the policy has to give something back.
    pub(super) fn admit(&mut self, tensor: TensorId, node: NodeId) -> Result<(), Stop> {
        let bytes = self.graph.tensor(tensor).bytes;
        loop {
            let mut shortfall = self.activation_shortfall(tensor);
            if shortfall == Bytes::ZERO {
                match self.store.admit(tensor) {
                    Ok(()) => break,
                    Err(AllocationError::OutOfMemory { wanted, available, .. }) => {
                        shortfall = wanted.saturating_sub(available);
                    }
                }
            }
            self.relieve(shortfall, bytes, node)?;
        }
        self.note_memory(node);
        Ok(())
    }

    /// Keeps the peaks.
    pub(super) fn note_memory(&mut self, node: NodeId) {
        let allocated = self.store.allocated();
        if allocated > self.record.peak_memory {
            self.record.peak_memory = allocated;
            if self.job.observe.peak {
                self.record.peak = Some(self.report_peak(node));
            }
        }
        self.record.reserved = self.record.reserved.max(self.store.reserved());
        self.record.peak_saved = self.record.peak_saved.max(self.store.held_bytes());
    }

    /// What the budget of saved tensors misses for one more of them.
    pub(super) fn activation_shortfall(&self, tensor: TensorId) -> Bytes {
        match self.activations {
            // What is to be quantised is whole only for a while; its stored form counts.
            Some(budget) if self.store.uses.saved[tensor as usize] && !self.store.quantises => {
                (self.store.held_bytes() + self.store.size(tensor)).saturating_sub(budget)
            }
            _ => Bytes::ZERO,
        }
    }

    /// Frees memory for the allocator: the arena gives steps back where there is one, or the policy something else.
    fn relieve(&mut self, shortfall: Bytes, wanted: Extent, node: NodeId) -> Result<(), Stop> {
        // What the CPU has in hand leaves memory without anybody's loss.
        if self.packer.as_ref().is_some_and(|packer| packer.in_flight() > 0) {
            return self.await_packer(|packer| packer.in_flight() == 0);
        }
        if self.is_writing() {
            return self.await_write();
        }
        if self.shrink_arena(shortfall, node)? {
            return Ok(());
        }
        self.ask_policy(shortfall, wanted, node)
    }

    /// Asks the policy how a saved tensor is to be held.
    pub(super) fn ask_hold(&mut self, tensor: TensorId) -> Holding {
        let budget = self.budget.unwrap_or(Bytes::MAX);
        self.policy.hold(tensor, &view(&self.store, Extent::ZERO, budget, (self.now, self.phase)))
    }

    /// Asks the policy what gives way, and carries it out.
    pub(super) fn ask_policy(&mut self, shortfall: Bytes, wanted: Extent, node: NodeId) -> Result<(), Stop> {
        let budget = Bytes(self.store.allocated().0 + wanted.at(self.store.samples)).saturating_sub(shortfall);
        let view = view(&self.store, wanted, budget, (self.now, self.phase));
        let reliefs = self.policy.relieve(Want::Shortfall(shortfall), &view);
        self.store.changed.clear();
        if reliefs.is_empty() && self.release_waiting() {
            return Ok(());
        }
        if reliefs.is_empty() {
            let budget = self.budget.or(self.activations).unwrap_or(budget);
            return Err(RunError::OutOfMemory { node: self.name_of(node), shortfall, budget }.into());
        }
        for relief in reliefs {
            self.apply(relief, node)?;
        }
        Ok(())
    }

    /// After an operator: what exceeds the computing budget gives way, where the policy finds something.
    pub(super) fn trim(&mut self, node: NodeId) -> Result<(), Stop> {
        let Some((percent, budget)) = self.computing_budget.zip(self.budget) else { return Ok(()) };
        let covered = budget.saturating_sub(self.state);
        let limit = self.state + Bytes(covered.0 / 100 * percent);
        let excess = self.store.allocated().saturating_sub(limit);
        if excess == Bytes::ZERO {
            return Ok(());
        }
        let view = view(&self.store, Extent::ZERO, limit, (self.now, self.phase));
        let reliefs = self.policy.relieve(Want::OverPlan(excess), &view);
        self.store.changed.clear();
        for relief in reliefs {
            self.apply(relief, node)?;
        }
        Ok(())
    }

    /// Keeps how well the arena is filled where it is fuller than before: when forward has ended.
    pub(super) fn note_arena(&mut self) {
        let stored = self.store.stored_in_arena();
        if self.record.arena.map_or(stored > Bytes::ZERO, |fullest| stored > fullest.stored) {
            self.record.arena = self.store.fragmentation();
        }
    }

    /// Lets the arena give whole steps back until `shortfall` bytes are free for the allocator; tensors in it that
    /// stand in the way are made smaller first. Returns whether there was an arena to take from.
    fn shrink_arena(&mut self, shortfall: Bytes, node: NodeId) -> Result<bool, Stop> {
        let reserved = self.store.reserved_by_arena();
        if reserved == Bytes::ZERO {
            return Ok(false);
        }
        self.bound_arena(reserved.saturating_sub(shortfall), node)?;
        self.store.set_budget(self.budget);
        Ok(true)
    }

    /// Bounds the arena; tensors in it that stand in the way are made smaller first.
    fn bound_arena(&mut self, budget: Bytes, node: NodeId) -> Result<(), Stop> {
        loop {
            match self.store.bound_arena(budget) {
                Ok(effects) => return Ok(self.charge_paging(effects)?),
                Err(over) => {
                    self.ask_policy(over, Extent::ZERO, node)?;
                    self.pack_asked(node)?;
                }
            }
        }
    }

    /// After the budget of saved tensors was cut: the policy makes them smaller until they fit again.
    fn respect_cut(&mut self, node: NodeId) -> Result<(), Stop> {
        let Some(budget) = self.activations.filter(|_| std::mem::take(&mut self.cut)) else { return Ok(()) };
        loop {
            self.pack_asked(node)?;
            self.bound_arena(budget, node)?;
            let shortfall = self.store.held_bytes().saturating_sub(budget);
            if shortfall == Bytes::ZERO {
                self.record.saved_after_cut = Some(self.store.held_bytes());
                return Ok(());
            }
            self.ask_policy(shortfall, Extent::ZERO, node)?;
        }
    }

    fn apply(&mut self, relief: Relief, node: NodeId) -> Result<(), Stop> {
        if let Relief::Requantise(tensor, _) | Relief::Skip(tensor) = relief
            && self.store.uses.saved.get(tensor as usize) != Some(&true)
        {
            let action = format!("make tensor {tensor} smaller");
            return Err(RunError::IllegalAction { action, reason: "forward does not save it for backward" }.into());
        }
        match relief {
            Relief::Requantise(tensor, bits) => self.requantise(tensor, bits),
            Relief::Skip(tensor) => self.give_up(tensor, node),
            Relief::Compress(tensor) => self.compress(tensor, node),
            Relief::Swap(tensor) => self.swap_out(tensor),
            Relief::Rematerialise(tensor) => {
                if !self.store.candidates.contains(tensor) {
                    let name = self.graph.tensors.get(tensor as usize).map_or("?", |t| t.name.as_str());
                    return Err(RunError::IllegalAction {
                        action: format!("drop {name}"),
                        reason: "it is not in memory, in use, or cannot be computed again",
                    }
                    .into());
                }
                self.store.evict(tensor, true);
                Ok(())
            }
            Relief::ShrinkMicroBatch(samples) => {
                let current = self.store.samples;
                if samples == 0 || samples >= current {
                    return Err(RunError::IllegalAction {
                        action: format!("shrink the micro-batch of {current} to {samples}"),
                        reason: "a micro-batch shrinks to at least one sample and fewer than it has",
                    }
                    .into());
                }
                if self.phase == Phase::Forward {
                    self.part.discard(current - samples, current);
                    self.set_samples(samples);
                    Ok(())
                } else {
                    Err(Stop::Restart(samples))
                }
            }
        }
    }

    /// After a wall: the policy gives back until what is resident fits again.
    pub(super) fn respect_wall(&mut self, node: NodeId) -> Result<(), Stop> {
        self.respect_cut(node)?;
        loop {
            let budget = self.budget.unwrap_or(Bytes::MAX);
            let shortfall = self.store.footprint().saturating_sub(budget);
            if shortfall == Bytes::ZERO {
                return Ok(());
            }
            self.relieve(shortfall, Extent::ZERO, node)?;
        }
    }
}
