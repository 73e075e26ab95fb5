//! Memory pressure: bringing tensors in, and letting the policy give something back.

use haversack_devices::units::Bytes;
use haversack_memory::AllocationError;
use haversack_policies::{MemoryView, Relief};
use haversack_workloads::{Extent, NodeId, Phase, TensorId};

use super::{Executor, Stop};
use crate::job::RunError;

impl Executor<'_> {
    /// Brings the outputs of a node into memory, locked.
    pub(super) fn make_room(&mut self, id: NodeId) -> Result<(), Stop> {
        for &output in &self.job.graph.nodes[id as usize].outputs {
            if !self.store.is_resident(output) {
                self.admit(output, id)?;
            }
            self.store.lock(output);
        }
        Ok(())
    }

    /// Brings one tensor into memory; where a budget does not hold it, the policy has to give something back.
    pub(super) fn admit(&mut self, tensor: TensorId, node: NodeId) -> Result<(), Stop> {
        let bytes = self.job.graph.tensor(tensor).bytes;
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
        let allocated = self.store.allocated();
        if allocated > self.record.peak_memory {
            self.record.peak_memory = allocated;
            if self.job.observe.peak {
                self.record.peak = Some(self.report_peak(node));
            }
        }
        Ok(())
    }

    /// What the budget of saved tensors misses for one more of them.
    pub(super) fn activation_shortfall(&self, tensor: TensorId) -> Bytes {
        match self.job.budgets.activations {
            Some(budget) if self.store.uses.saved[tensor as usize] => {
                (self.store.saved_bytes() + self.store.size(tensor)).saturating_sub(budget)
            }
            _ => Bytes::ZERO,
        }
    }

    /// Lets the policy give memory back.
    pub(super) fn relieve(&mut self, shortfall: Bytes, wanted: Extent, node: NodeId) -> Result<(), Stop> {
        let budget = Bytes(self.store.allocated().0 + wanted.at(self.store.samples)).saturating_sub(shortfall);
        let view = MemoryView {
            graph: self.job.graph,
            tensors: &self.store.states,
            candidates: &self.store.candidates,
            producers: &self.store.uses.producers,
            micro_batch: self.store.samples,
            needed: self.store.resident + wanted,
            budget,
            now: self.now,
            phase: self.phase,
        };
        let reliefs = self.policy.relieve(shortfall, &view);
        if reliefs.is_empty() && self.release_waiting() {
            return Ok(());
        }
        if reliefs.is_empty() {
            let budget = self.budget.or(self.job.budgets.activations).unwrap_or(budget);
            return Err(RunError::OutOfMemory { node: self.name_of(node), shortfall, budget }.into());
        }
        for relief in reliefs {
            self.apply(relief)?;
        }
        Ok(())
    }

    pub(super) fn apply(&mut self, relief: Relief) -> Result<(), Stop> {
        match relief {
            Relief::Rematerialise(tensor) => {
                if !self.store.candidates.contains(&tensor) {
                    let name = self.job.graph.tensors.get(tensor as usize).map_or("?", |t| t.name.as_str());
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
        loop {
            let budget = self.budget.unwrap_or(Bytes::MAX);
            let shortfall = self.store.allocated().saturating_sub(budget);
            if shortfall == Bytes::ZERO {
                return Ok(());
            }
            self.relieve(shortfall, Extent::ZERO, node)?;
        }
    }
}
