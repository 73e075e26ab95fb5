//! Memory pressure: planning for the available memory, admitting tensors, and letting the policy free memory.
//!
//! On a phone in use: pages are touched before an operator runs, and a process that was killed starts again.

use haversack_devices::{Bytes, Direction, Nanos, ensure};
use haversack_memory::phone::{Access, Kill, Stall};
use haversack_policies::{Holding, Operations, Planner, Planning, Relief, Room, Want};
use haversack_workloads::{Extent, Need, NodeId, Phase, Role, TensorId};

use super::Executor;
use super::walk::streams;
use crate::error::{Result, Stop};
use crate::phone::PhoneInUse;
use crate::tensors::NoPlace;
use crate::{PlanReport, RunError, SpanKind};

impl Executor<'_> {
    /// Lets the planner update its plan, before anything is fixed for the iteration. The first plan is delivered with
    /// the model, before the first iteration, so that training does not wait for it.
    pub(super) fn plan(&mut self) -> Result {
        let room = self.room();
        let Some(planner) = &mut self.planner else { return Ok(()) };
        let Some(planning) = planner.plan_within(self.tensors.graph, room, self.oracle)? else { return Ok(()) };
        let time = self.costs.machine.planning_time(&planning);
        let began = self.clock.now();
        if !self.plans.is_empty() && time.is_some_and(|time| time > Nanos::ZERO) {
            self.pause(time.unwrap_or_default())?;
            self.clock.charge(began, |part| &mut part.planning);
        }
        self.plans.push(PlanReport { iteration: self.iterations.saturating_sub(1) as u64, planning, time });
        Ok(())
    }

    /// The memory that an iteration may use.
    fn room(&self) -> Room {
        let limits = &self.tensors.limits;
        Room { memory: limits.memory, activations: limits.activations }
    }

    /// Records a plan that the policy decided on its own, for the available memory, and charges the phone's time for
    /// it.
    pub(super) fn pay_for(&mut self, decided: Operations) -> Result {
        let operations = decided.since(std::mem::replace(&mut self.decided, decided));
        let room = self.room();
        let known = self.plans.iter().any(|plan| plan.planning.room == room);
        if operations.total() == 0 || known {
            return Ok(());
        }
        let planning = Planning { planner: Planner::Phone, room, operations, ..Planning::default() };
        let Some(time) = self.costs.machine.planning_time(&planning) else { return Ok(()) };
        let began = self.clock.now();
        self.pause(time)?;
        self.clock.charge(began, |part| &mut part.planning);
        self.plans.push(PlanReport { iteration: self.iterations.saturating_sub(1) as u64, planning, time: Some(time) });
        Ok(())
    }

    /// Brings the outputs of a node into memory, locked.
    pub(super) fn make_room(&mut self, id: NodeId) -> Result<(), Stop> {
        for &output in &self.tensors.graph.nodes[id as usize].outputs {
            if !self.tensors.is_whole(output) {
                self.admit(output, id)?;
            }
            self.tensors.lock(output);
        }
        Ok(())
    }

    /// Brings one tensor into memory; if a budget is exceeded, the policy has to free memory.
    pub(super) fn admit(&mut self, tensor: TensorId, node: NodeId) -> Result<(), Stop> {
        let bytes = self.tensors.graph.tensor(tensor).bytes;
        loop {
            let mut shortfall = self.tensors.activation_shortfall(tensor);
            if shortfall == Bytes::ZERO {
                match self.tensors.admit(tensor) {
                    Ok(()) => break,
                    Err(NoPlace::Short(missing)) => shortfall = missing,
                    Err(NoPlace::Refused(error)) => return Err(RunError::from(error).into()),
                    Err(NoPlace::Lost(error)) => return Err(self.lost(tensor, error)),
                }
            }
            self.relieve(shortfall, bytes, node)?;
        }
        self.note_memory(node);
        Ok(())
    }

    /// Frees memory for the allocator: lanes finish transfers that free memory anyway, copies unpacked for later are
    /// dropped, the arena gives back steps if it exists, or the policy frees something else.
    fn relieve(&mut self, shortfall: Bytes, wanted: Extent, node: NodeId) -> Result<(), Stop> {
        if self.lanes.packer.as_ref().is_some_and(|packer| packer.in_flight() > 0) {
            return Ok(self.await_packer(|packer| packer.in_flight() == 0)?);
        }
        let writes = self.lanes.flash.writes();
        if writes > 0 {
            return Ok(self.await_flash(|flash| flash.writes() < writes)?);
        }
        if self.drop_unpacked_ahead(node) {
            return Ok(());
        }
        let reserved = self.tensors.reserved_by_arena();
        if reserved > Bytes::ZERO {
            self.bound_arena(reserved.saturating_sub(shortfall), node)?;
            self.tensors.bound_allocator();
            return Ok(());
        }
        self.ask_relief(shortfall, wanted, node)
    }

    /// Asks the policy how to hold a saved tensor.
    pub(super) fn ask_hold(&mut self, tensor: TensorId) -> Result<Holding> {
        let budget = self.tensors.limits.memory.unwrap_or(Bytes::MAX);
        let memory = self.tensors.view(Extent::ZERO, budget, self.clock.now(), self.clock.phase());
        Ok(self.policy.hold(tensor, &memory)?)
    }

    /// Asks the policy which tensors give way so that `wanted` more fits into `budget`.
    fn ask(&mut self, want: Want, wanted: Extent, budget: Bytes) -> Result<Vec<Relief>> {
        let memory = self.tensors.view(wanted, budget, self.clock.now(), self.clock.phase());
        let reliefs = self.policy.relieve(want, &memory)?;
        self.tensors.forget_changed();
        Ok(reliefs)
    }

    /// Asks the policy which tensors give way, and carries that out.
    pub(super) fn ask_relief(&mut self, shortfall: Bytes, wanted: Extent, node: NodeId) -> Result<(), Stop> {
        let needed = Bytes(self.tensors.allocated().0 + wanted.at(self.tensors.samples));
        let budget = needed.saturating_sub(shortfall);
        let reliefs = self.ask(Want::Shortfall(shortfall), wanted, budget)?;
        if reliefs.is_empty() && self.stack.release_waiting(&mut self.tensors) {
            return Ok(());
        }
        if reliefs.is_empty() {
            let limits = &self.tensors.limits;
            let budget = limits.memory.or(limits.activations).unwrap_or(budget);
            return Err(RunError::OutOfMemory { node: self.name_of(node), shortfall, budget }.into());
        }
        self.apply(reliefs, node)
    }

    /// After an operator: memory above the computing budget is freed, if the policy finds something.
    pub(super) fn respect_plan(&mut self, node: NodeId) -> Result<(), Stop> {
        let Some(limit) = self.tensors.limits.after_an_operator(self.tensors.samples) else { return Ok(()) };
        let excess = self.tensors.allocated().saturating_sub(limit);
        if excess == Bytes::ZERO {
            return Ok(());
        }
        let reliefs = self.ask(Want::OverPlan(excess), Extent::ZERO, limit)?;
        self.apply(reliefs, node)
    }

    /// After a wall: the policy frees memory until the rest fits again.
    pub(super) fn respect_wall(&mut self, node: NodeId) -> Result<(), Stop> {
        self.respect_cut(node)?;
        loop {
            let budget = self.tensors.limits.memory.unwrap_or(Bytes::MAX);
            let shortfall = self.tensors.footprint().saturating_sub(budget);
            if shortfall == Bytes::ZERO {
                return Ok(());
            }
            self.relieve(shortfall, Extent::ZERO, node)?;
        }
    }

    /// After the budget of saved tensors was cut: the policy makes them smaller until they fit again.
    fn respect_cut(&mut self, node: NodeId) -> Result<(), Stop> {
        let Some(budget) = self.tensors.take_cut() else { return Ok(()) };
        loop {
            self.pack_asked(node)?;
            self.bound_arena(budget, node)?;
            let held = self.tensors.held_bytes();
            let shortfall = held.saturating_sub(budget);
            if shortfall == Bytes::ZERO {
                self.record.saved_after_cut = Some(held);
                return Ok(());
            }
            self.ask_relief(shortfall, Extent::ZERO, node)?;
        }
    }

    /// Bounds the arena; tensors in it that are in the way are made smaller first.
    fn bound_arena(&mut self, budget: Bytes, node: NodeId) -> Result<(), Stop> {
        loop {
            match self.tensors.bound_arena(budget) {
                Ok(effects) => return Ok(self.charge_paging(effects)?),
                Err(over) => {
                    self.ask_relief(over, Extent::ZERO, node)?;
                    self.pack_asked(node)?;
                }
            }
        }
    }

    /// Carries out the policy's answer.
    fn apply(&mut self, reliefs: Vec<Relief>, node: NodeId) -> Result<(), Stop> {
        for relief in reliefs {
            match relief {
                Relief::Requantise(tensor, _) | Relief::Quantise(tensor, _) | Relief::Skip(tensor)
                    if !self.tensors.uses.is_saved(tensor) =>
                {
                    let action = format!("make tensor {tensor} smaller");
                    return Err(Stop::illegal(action, "forward does not save it for backward"));
                }
                Relief::Requantise(tensor, bits) => self.requantise(tensor, bits)?,
                Relief::Quantise(tensor, bits) => self.quantise(tensor, bits, node)?,
                Relief::Skip(tensor) => self.give_up(tensor, node)?,
                Relief::Compress(tensor) => self.compress(tensor, node)?,
                Relief::Swap(tensor) => self.swap_out(tensor)?,
                Relief::Rematerialise(tensor) => self.rematerialise(tensor)?,
                Relief::ShrinkMicroBatch(samples) => self.shrink(samples)?,
            }
        }
        Ok(())
    }

    fn rematerialise(&mut self, tensor: TensorId) -> Result<(), Stop> {
        if !self.tensors.is_candidate(tensor) {
            return Err(self.refused("drop", tensor, "it is not in memory, in use, or cannot be computed again"));
        }
        self.tensors.evict(tensor, true);
        Ok(())
    }

    fn shrink(&mut self, samples: u64) -> Result<(), Stop> {
        let current = self.tensors.samples;
        if samples == 0 || samples >= current {
            let action = format!("shrink the micro-batch of {current} to {samples}");
            return Err(Stop::illegal(action, "a micro-batch shrinks to at least one sample and fewer than it has"));
        }
        let (graph, at) = (self.tensors.graph, self.tensors.at as usize);
        if self.done + current == self.job.batch && graph.nodes[..at].iter().any(|node| streams(graph, node)) {
            let action = format!("shrink the micro-batch of {current} to {samples}");
            return Err(Stop::illegal(action, "weights have taken its gradients already, which are streamed"));
        }
        ensure!(self.clock.phase() == Phase::Forward, Stop::Restart(samples));
        self.clock.discard(current - samples, current);
        self.set_samples(samples);
        Ok(())
    }

    /// Advances the phone to now, and lets the budget rule see its memory.
    pub(super) fn sample_phone(&mut self) -> Result {
        self.phone.as_mut().map_or(Ok(()), |phone| phone.sample(self.clock.now()))
    }

    /// Before node `id` runs, the pages that it reads and writes are brought in. A tensor of which it needs only the
    /// shape is not touched.
    pub(super) fn page_in(&mut self, id: NodeId) -> Result<(), Stop> {
        let node = &self.tensors.graph.nodes[id as usize];
        let read = node.inputs.iter().filter(|&&input| node.need_of(input) != Need::Shape);
        let read = read.map(|&input| (input, Access::Read));
        let written = node.outputs.iter().map(|&output| (output, Access::Write));
        self.touch(read.chain(written))
    }

    /// Brings in the pages of tensors.
    pub(super) fn touch(&mut self, tensors: impl Iterator<Item = (TensorId, Access)>) -> Result<(), Stop> {
        self.sample_phone()?;
        let Some(phone) = &mut self.phone else { return Ok(()) };
        let touched = phone.touch(self.clock.now(), self.tensors.take_changes(), tensors)?;
        self.sit_out(touched.stall)?;
        let killed = touched.killed.or_else(|| self.phone.as_mut().and_then(|phone| phone.killed(self.clock.now())));
        killed.map_or(Ok(()), |kill| Err(Stop::Killed(Box::new(kill))))
    }

    /// The thread works in the kernel, sleeps, and waits for a core.
    fn sit_out(&mut self, stall: Stall) -> Result {
        if stall.running > Nanos::ZERO {
            self.drive(stall.running, SpanKind::Reclaim)?;
        }
        let waits = stall.sleeping + stall.runnable;
        if waits > Nanos::ZERO {
            let began = self.clock.now();
            self.pause(waits)?;
            self.clock.charge_waiting(stall);
            self.clock.draw(began, SpanKind::Reclaim, self.costs.processor(), &self.tensors);
        }
        Ok(())
    }

    /// After a kill: a new process begins the iteration again with the weights of the last finished one, which it reads
    /// from flash, in one queue with all other transfers.
    pub(super) fn start_again(&mut self, kill: Box<Kill>) -> Result {
        let Some(phone) = &mut self.phone else { return Ok(()) };
        phone.may_restart(&kill)?;
        let before = self.clock.now();
        self.lanes.finish_packing(&mut self.clock, &mut self.tensors)?;
        self.lanes.flash.cancel(&mut self.clock);
        self.forget_tensors();
        let starting = self.phone.as_mut().map_or(Ok(Nanos::ZERO), |phone| phone.restart())?;
        let weights = self.tensors.graph.bytes_of(Role::is_state).at(1);
        let began = self.clock.now();
        self.pause(starting)?;
        let now = self.clock.now();
        let read = |phone: &mut PhoneInUse| phone.transfer(now, Direction::Read, Bytes(weights));
        let reading = self.phone.as_mut().map_or(Ok(Nanos::ZERO), read)?;
        self.pause(reading)?;
        self.clock.charge(began, |part| &mut part.preparation);
        self.clock.discard_iteration();
        self.record.micro_batches.clear();
        self.record.recomputed = 0;
        self.clock.enter(Phase::Forward);
        self.clock.charge_phase(before);
        if let Some(phone) = &mut self.phone {
            phone.restarted(*kill, self.clock.started, self.clock.now());
        }
        self.set_own_budget();
        let before = self.clock.now();
        self.plan()?;
        self.clock.charge_phase(before);
        self.admit_state()?;
        self.recall_state();
        Ok(())
    }

    /// All memory of the process is gone with it.
    fn forget_tensors(&mut self) {
        self.stack.clear();
        self.tensors.release_all();
        self.tensors.evict_all(|_| true);
        self.tensors.want_all_gradients();
        let _of_the_old_process = self.tensors.take_changes();
    }
}
