//! Training on a phone in use: pages are touched before an operator runs, budgets are decided between iterations, and a
//! process that was ended starts again.

use haversack_devices::processor::Cost;
use haversack_devices::units::{Bytes, Nanos};
use haversack_memory::phone::{Access, Kill, PhoneError, Stall};
use haversack_policies::budget::{BudgetRule, Round, Sample};
use haversack_workloads::training_graph::Need;
use haversack_workloads::{NodeId, Phase, Role, TensorId};

use super::processor::Progress;
use super::system::System;
use super::{Event, Executor, Stop, memory_budget};
use crate::job::RunError;
use crate::phone::{Phone, TrainerKill, WatchedSample};
use crate::timeline::SpanKind;

/// A process that is ended so often in one iteration does not start again.
const LIVES: u32 = 5;
/// For so many seconds the phone is in use before training begins, where a rule for the budget is to learn from it.
const WATCHED: u32 = 120;
/// Memory is measured once a second.
const SECOND: Nanos = Nanos(1_000_000_000);

/// What a service in the background sees of `phone`'s memory for so long, once a second; nobody trains.
///
/// # Errors
/// Memory that even the kernel's own killer does not free.
pub fn watch(phone: &Phone, length: Nanos) -> Result<Vec<WatchedSample>, RunError> {
    let mut system = System::new(phone, 0)?;
    let mut samples = Vec::new();
    let mut time = Nanos::ZERO;
    while time < length {
        system.tend(time)?;
        samples.push(system.sample(time)?);
        time += SECOND;
    }
    Ok(samples)
}

impl Executor<'_> {
    /// Before training: the rule for the budget watches the phone in use.
    pub(super) fn settle(&mut self, rule: Option<Box<dyn BudgetRule>>) -> Result<(), RunError> {
        if self.system.is_none() {
            return Ok(());
        }
        self.store.note_changes();
        self.rule = rule;
        if self.rule.is_some() {
            for _ in 0..WATCHED {
                self.watch()?;
                self.pause(SECOND)?;
            }
        }
        Ok(())
    }

    /// Nothing happens here for so long.
    fn pause(&mut self, span: Nanos) -> Result<(), RunError> {
        self.events.schedule_in(span, Event::Pause);
        while !matches!(self.next_event()?, Some(Progress::Paused) | None) {}
        Ok(())
    }

    /// The rule for the budget sees memory as it is now, once a second at most.
    fn watch(&mut self) -> Result<(), RunError> {
        let Some(system) = &mut self.system else { return Ok(()) };
        system.tend(self.now)?;
        let Some(rule) = self.rule.as_mut().filter(|_| self.now >= self.next_watch) else { return Ok(()) };
        self.next_watch = self.now + SECOND;
        let WatchedSample { time, available, watermark_high, adjustments, .. } = system.sample(self.now)?;
        let swap = system.swap_kind();
        rule.observe(&Sample { time, available, watermark_high, swap, adjustments: &adjustments })?;
        Ok(())
    }

    /// All that the framework may hold: the job's budget, and what the rule has decided.
    pub(super) fn own_budget(&self) -> Option<Bytes> {
        let given = memory_budget(&self.machine, self.job);
        let decided = self.rule.as_ref().and(self.planned.last().copied());
        given.into_iter().chain(decided).min()
    }

    /// An iteration begins: a round of training, for the rule.
    pub(super) fn begin_on_phone(&mut self) -> Result<(), RunError> {
        self.watch()?;
        self.plan();
        if let Some(system) = &mut self.system {
            system.begin(self.now, self.ended == 0);
        }
        Ok(())
    }

    /// A new plan, where the rule wants one.
    fn plan(&mut self) {
        if let Some(budget) = self.rule.as_mut().and_then(|rule| rule.begin_round()) {
            self.planned.push(budget);
        }
    }

    /// An iteration has ended.
    pub(super) fn end_on_phone(&mut self) -> Result<(), RunError> {
        let changes = self.store.take_changes();
        let Some(system) = &mut self.system else { return Ok(()) };
        system.follow(changes)?;
        system.tend(self.now)?;
        let mut report = system.report(self.now);
        let kills = self.kills.iter().filter(|kill| kill.iteration == self.ended).count() as u64;
        if let Some(rule) = &mut self.rule {
            rule.end_round(Round { page_faults: system.faults(), kills });
        }
        report.kills.clone_from(&self.kills);
        self.record.phone = Some(report);
        Ok(())
    }

    /// Before node `id` runs, the pages of what it reads and writes are brought in. What it needs the shape of alone
    /// stays where it is.
    pub(super) fn page_in(&mut self, id: NodeId) -> Result<(), Stop> {
        if self.system.is_none() {
            return Ok(());
        }
        let node = &self.graph.nodes[id as usize];
        let read = node.inputs.iter().filter(|&&input| node.need_of(input) != Need::Shape);
        let read = read.map(|&input| (input, Access::Read));
        let written = node.outputs.iter().map(|&output| (output, Access::Write));
        self.touch(read.chain(written))
    }

    /// The pages of tensors are brought in.
    pub(super) fn touch(&mut self, tensors: impl Iterator<Item = (TensorId, Access)>) -> Result<(), Stop> {
        self.watch()?;
        let changes = self.store.take_changes();
        let Some(system) = &mut self.system else { return Ok(()) };
        // What was ended has nothing left to touch.
        if let Some(kill) = system.killed(self.now) {
            return Err(Stop::Killed(Box::new(kill)));
        }
        system.follow(changes)?;
        let (mut stall, mut killed) = (Stall::default(), None);
        for (tensor, access) in tensors {
            match system.touch(tensor, access, self.now + stall.total()) {
                Ok(more) => stall += more,
                Err(PhoneError::Killed { stall: more }) => {
                    stall += more;
                    killed = system.killed(self.now + stall.total());
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        system.note_stall(stall);
        self.sit_out(stall)?;
        let killed = killed.or_else(|| self.system.as_mut().and_then(|system| system.killed(self.now)));
        killed.map_or(Ok(()), |kill| Err(Stop::Killed(Box::new(kill))))
    }

    /// The thread works in the kernel, sleeps, and waits for a core.
    fn sit_out(&mut self, stall: Stall) -> Result<(), RunError> {
        if stall.running > Nanos::ZERO {
            self.spend(&Cost { busy: stall.running, ..Cost::default() }, SpanKind::Reclaim)?;
        }
        let waits = stall.sleeping + stall.runnable;
        if waits > Nanos::ZERO {
            let began = self.now;
            self.pause(waits)?;
            self.part.refault += stall.sleeping;
            self.part.runnable += stall.runnable;
            self.draw_span(began, SpanKind::Reclaim);
        }
        Ok(())
    }

    /// The process was ended: a new one begins the iteration again with the weights of the last one that was finished,
    /// which it reads from flash.
    pub(super) fn start_again(&mut self, kill: Box<Kill>) -> Result<(), RunError> {
        let times = 1 + self.kills.iter().filter(|kill| kill.iteration == self.ended).count() as u32;
        if times > LIVES {
            return Err(RunError::Killed { iteration: self.ended, times, kill });
        }
        let before = self.now;
        self.clear_packer().map_err(Stop::outside_a_part)?;
        self.drop_transfers();
        self.frames.clear();
        self.to_pack.clear();
        self.store.unlock_all();
        for id in 0..self.graph.tensors.len() as TensorId {
            self.store.evict(id, false);
        }
        let _of_the_old_process = self.store.take_changes();
        let Some(system) = &mut self.system else { return Ok(()) };
        system.restart()?;
        let starting = system.starting();
        let weights = self.graph.bytes_of(Role::is_state).at(1);
        let reading = self.machine.swapping(Bytes(weights)).unwrap_or_default().back;
        self.pause(starting + reading)?;
        self.part.preparation += starting + reading;
        self.part.discard(1, 1);
        self.merge_part();
        self.record.breakdown.discard(1, 1);
        self.record.micro_batches.clear();
        (self.record.recomputed, self.record.recomputed_layout) = (0, Nanos::ZERO);
        self.record.given_up = 0;
        self.given_up.fill(false);
        self.phase = Phase::Forward;
        self.charge_phase(before);
        let since = self.kills.last().map_or(self.started, |last| last.until.max(self.started));
        self.kills.push(TrainerKill { iteration: self.ended, kill: *kill, lost: self.now - since, until: self.now });
        self.plan();
        self.set_own_budget();
        self.admit_state()
    }

    /// Bounds memory as the job and the rule have it.
    pub(super) fn set_own_budget(&mut self) {
        self.budget = self.own_budget();
        self.store.set_budget(self.budget);
    }
}
