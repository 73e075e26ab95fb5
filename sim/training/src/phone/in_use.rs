//! A phone in use while a run trains on it: its system, the rule for the budget, and the kills of the run.

use haversack_devices::{Bytes, Direction, Nanos};
use haversack_memory::phone::{Access, Kill, Stall};
use haversack_policies::budget::{BudgetRule, Round, Sample};
use haversack_workloads::TensorId;

use super::at_rest::AtRest;
use super::system::PhoneSystem;
use super::{Phone, Threads, WatchedSample};
use crate::tensors::Change;
use crate::{PhoneReport, PhoneTrack, RunError, TrainerKill};

/// A process that is killed this many times in one iteration does not start again.
const LIVES: u32 = 5;
/// Memory is measured once a second.
pub(crate) const SECOND: Nanos = Nanos(1_000_000_000);

/// Samples of `phone`'s memory over `length`, once a second, as a service in the background sees it without training.
/// The phone was `at_rest` before its apps came.
///
/// # Errors
/// Memory that even the kernel's own killer does not free.
pub fn watch(at_rest: AtRest, phone: &Phone, length: Nanos) -> Result<Vec<WatchedSample>, RunError> {
    let mut system = PhoneSystem::on(at_rest, phone, 0, Threads::NONE)?;
    let mut samples = Vec::new();
    let mut time = Nanos::ZERO;
    while time < length {
        system.tend(time)?;
        samples.push(system.sample(time)?);
        time += SECOND;
    }
    Ok(samples)
}

/// A phone in use, and the run on it.
pub(crate) struct PhoneInUse<'a> {
    system: PhoneSystem<'a>,
    /// The rule that decides the memory budget; `None` if there is none.
    pub(crate) rule: Option<Box<dyn BudgetRule>>,
    /// The budgets that the rule has decided.
    pub(crate) planned: Vec<Bytes>,
    /// When memory is measured next.
    next_sample: Nanos,
    /// How often the process was ended.
    kills: Vec<TrainerKill>,
    /// The number of iterations that have ended.
    ended: u32,
    /// Iterations of a round; `None` if each is one, and the process keeps its memory.
    round: Option<u64>,
    /// Statistics of the current round so far.
    seen: Round,
}

/// The outcome of touching tensors.
pub(crate) struct Touched {
    /// The threads' stall.
    pub(crate) stall: Stall,
    /// The kill that ended the process meanwhile.
    pub(crate) killed: Option<Kill>,
}

impl<'a> PhoneInUse<'a> {
    /// A run of a graph with `tensors` tensors by `threads` begins on `phone`.
    pub(crate) fn new(
        phone: &'a Phone,
        tensors: usize,
        threads: Threads,
        rule: Option<Box<dyn BudgetRule>>,
        round: Option<u64>,
    ) -> Result<Self, RunError> {
        Ok(Self {
            system: PhoneSystem::new(phone, tensors, threads)?,
            rule,
            planned: Vec::new(),
            next_sample: Nanos::ZERO,
            kills: Vec::new(),
            ended: 0,
            round,
            seen: Round::default(),
        })
    }

    /// Whether a round ends with the iteration before the one with this number.
    fn is_between_rounds(&self, iteration: u32) -> bool {
        u64::from(iteration).is_multiple_of(self.round.unwrap_or(1).max(1))
    }

    /// The budget that was decided last; `None` without a rule.
    pub(crate) fn decided(&self) -> Option<Bytes> {
        self.planned.last().copied()
    }

    /// Advances the phone to `now`; the rule sees memory as it is then, at most once a second.
    pub(crate) fn sample(&mut self, now: Nanos) -> Result<(), RunError> {
        self.system.tend(now)?;
        let Some(rule) = self.rule.as_mut().filter(|_| now >= self.next_sample) else { return Ok(()) };
        self.next_sample = now + SECOND;
        let WatchedSample { time, available, watermark_high, adjustments, .. } = self.system.sample(now)?;
        let swap = self.system.swap_kind();
        rule.observe(&Sample { time, available, watermark_high, swap, adjustments: &adjustments })?;
        Ok(())
    }

    /// An iteration begins, and maybe a round of training, for the rule.
    ///
    /// Events are recorded for a timeline if the iteration is `tracked`.
    pub(crate) fn begin_iteration(&mut self, now: Nanos, tracked: bool) -> Result<(), RunError> {
        self.sample(now)?;
        if self.is_between_rounds(self.ended) {
            self.decide();
        }
        self.system.begin(now, self.ended == 0, tracked);
        self.show_budget(now);
        Ok(())
    }

    /// A new budget, if the rule wants one.
    fn decide(&mut self) {
        self.planned.extend(self.rule.as_mut().and_then(|rule| rule.begin_round()));
    }

    /// Puts the budget in force on the track.
    fn show_budget(&mut self, now: Nanos) {
        if let Some(budget) = self.decided() {
            self.system.planned(now, budget);
        }
    }

    /// Events on the phone in the iteration up to `now`; `None` if not recorded.
    pub(crate) fn track_of_iteration(&mut self, now: Nanos) -> Option<PhoneTrack> {
        self.system.track_of_iteration(now)
    }

    /// The same for the run.
    pub(crate) fn track(&mut self, now: Nanos) -> Option<PhoneTrack> {
        self.system.track(now).cloned()
    }

    /// An iteration has ended at `now`; returns the kernel's statistics of it.
    pub(crate) fn end_iteration(&mut self, now: Nanos, changes: Vec<Change>) -> Result<PhoneReport, RunError> {
        self.system.follow(changes)?;
        self.system.tend(now)?;
        let mut report = self.system.report(now);
        self.seen.page_faults += self.system.faults();
        self.seen.kills += u64::from(self.kills_now());
        report.kills.clone_from(&self.kills);
        self.ended += 1;
        if self.is_between_rounds(self.ended) {
            let seen = std::mem::take(&mut self.seen);
            if let Some(rule) = &mut self.rule {
                rule.end_round(seen);
            }
            if self.round.is_some() {
                self.system.give_pool_back()?;
            }
        }
        Ok(report)
    }

    /// How often the process was killed in the current iteration.
    fn kills_now(&self) -> u32 {
        self.kills.iter().filter(|kill| kill.iteration == self.ended).count() as u32
    }

    /// The process's threads bring in the pages of tensors.
    pub(crate) fn touch(
        &mut self,
        now: Nanos,
        changes: Vec<Change>,
        tensors: impl Iterator<Item = (TensorId, Access)>,
    ) -> Result<Touched, RunError> {
        let mut touched = Touched { stall: Stall::default(), killed: self.system.killed(now) };
        // A killed process has nothing left to touch.
        if touched.killed.is_some() {
            return Ok(touched);
        }
        self.system.follow(changes)?;
        touched.stall = self.system.touch(tensors)?;
        touched.killed = self.system.killed(now + touched.stall.total());
        Ok(touched)
    }

    /// Lets the phone's flash write or read `bytes` of the process from `now` on; returns how long that takes.
    pub(crate) fn transfer(&mut self, now: Nanos, direction: Direction, bytes: Bytes) -> Result<Nanos, RunError> {
        self.system.tend(now)?;
        Ok(self.system.transfer(now, direction, bytes))
    }

    /// Whether the process has been ended by `now`.
    pub(crate) fn killed(&mut self, now: Nanos) -> Option<Kill> {
        self.system.killed(now)
    }

    /// Whether the process may start again after `kill`.
    ///
    /// # Errors
    /// A process that was ended too often in this iteration.
    pub(crate) fn may_restart(&mut self, kill: &Kill) -> Result<(), RunError> {
        let times = 1 + self.kills_now();
        if times <= LIVES {
            return Ok(());
        }
        let track = self.track(kill.at).map(Box::new);
        Err(RunError::Killed { iteration: self.ended, times, kill: Box::new(kill.clone()), track })
    }

    /// A new process takes the place of the one that was ended; returns the time until its first instruction.
    pub(crate) fn restart(&mut self) -> Result<Nanos, RunError> {
        self.system.restart()?;
        Ok(self.system.phone.trainer.start)
    }

    /// The new process has read its weights by `now`, in an iteration that began at `started`.
    pub(crate) fn restarted(&mut self, kill: Kill, started: Nanos, now: Nanos) {
        let since = self.kills.last().map_or(started, |last| last.until.max(started));
        self.kills.push(TrainerKill { iteration: self.ended, kill, lost: now - since, until: now });
        self.decide();
        self.show_budget(now);
    }
}
