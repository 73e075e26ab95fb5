//! On a phone in use: pages are touched before an operator runs, and a process that was ended starts again.

use haversack_devices::storage::Direction;
use haversack_devices::units::{Bytes, Nanos};
use haversack_memory::phone::{Access, Kill, Stall};
use haversack_workloads::training_graph::Need;
use haversack_workloads::{NodeId, Phase, Role, TensorId};

use super::Executor;
use crate::error::{Result, Stop};
use crate::phone::PhoneInUse;
use crate::timeline::SpanKind;

impl Executor<'_> {
    /// The phone goes on to now, and the rule for its budget sees its memory.
    pub(super) fn sample_phone(&mut self) -> Result {
        self.phone.as_mut().map_or(Ok(()), |phone| phone.sample(self.clock.now()))
    }

    /// Before node `id` runs, the pages of what it reads and writes are brought in. What it needs the shape of alone
    /// stays where it is.
    pub(super) fn page_in(&mut self, id: NodeId) -> Result<(), Stop> {
        let node = &self.tensors.graph.nodes[id as usize];
        let read = node.inputs.iter().filter(|&&input| node.need_of(input) != Need::Shape);
        let read = read.map(|&input| (input, Access::Read));
        let written = node.outputs.iter().map(|&output| (output, Access::Write));
        self.touch(read.chain(written))
    }

    /// The pages of tensors are brought in.
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

    /// The process was ended: a new one begins the iteration again with the weights of the last one that was finished,
    /// which it reads from flash, in one queue with everybody.
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
