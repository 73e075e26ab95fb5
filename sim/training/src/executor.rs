//! The executor: it walks a graph, asks the policy, and has the parts that own time, tensors and lanes carry it out.
//!
//! A node first needs its inputs in memory ([`gather`]: dropped tensors are computed again, stored ones are brought
//! back by [`restore`]); then room for its outputs ([`pressure`]: the policy may have to give something back); then the
//! processor ([`walk`]). Once forward has used a tensor for the last time the policy decides how to hold it ([`hold`]).
//! On a phone in use pages are touched first ([`paging`]).

mod compute;
mod gather;
mod hold;
mod pressure;
mod restore;
pub(crate) mod statistics;
pub(crate) mod walk;

use gather::GatherStack;
use haversack_devices::{Bytes, Cost, CpuCores, Fraction, Nanos, Power, Stalls};
use haversack_kernels::KernelError;
use haversack_memory::{Allocator, CachingAllocator, ExactAllocator, PoolAllocator};
use haversack_numerics::{MiniBatch, Rule};
use haversack_policies::{
    IterationPlan, IterationSummary, Operations, Oracle, PlanAhead, Policy, Quantised, Schedule, Storage, WHOLE,
};
use haversack_workloads::{NodeId, Phase, Role, TensorId};
use statistics::Statistics;

use crate::clock::{Clock, Event};
use crate::costs::RunCosts;
use crate::error::{Result, Stop};
use crate::governors::LoadGovernor;
use crate::importance::Importance;
use crate::lanes::Lanes;
use crate::lanes::dsp::DspLane;
use crate::lanes::packer::{FlashLane, PackerLane};
use crate::lesson::Learning;
use crate::machine::packing::CodecProfile;
use crate::phone::{PhoneInUse, SECOND, Threads};
use crate::setting::{activation_budget, element_bytes, memory_budget};
use crate::tensors::{Limits, Tensors, Values};
use crate::{
    AllocatorKind, Fidelity, Held, Job, Lesson, Machine, Observe, PeakReport, PlanReport, Record, RunError, SpanKind,
    StoreError,
};

/// Tensors listed at the peak.
const LISTED_AT_PEAK: usize = 10;
/// Seconds that a rule for the budget observes the phone in use before training begins.
const WATCHED: u32 = 120;

/// A run in progress.
pub(crate) struct Executor<'a> {
    job: &'a Job<'a>,
    policy: &'a mut dyn Policy,
    /// The planner; `None` if the policy decides everything as memory runs short.
    planner: Option<Box<dyn PlanAhead>>,
    /// Simulates the plans that the planner tries.
    oracle: &'a dyn Oracle,
    /// The planning operations of the policy that have been charged so far.
    decided: Operations,
    /// The policy's decisions for the current iteration.
    plan: IterationPlan,
    costs: RunCosts<'a>,
    clock: Clock,
    tensors: Tensors<'a>,
    lanes: Lanes,
    /// The governor of the cores' frequency; `None` if the frequency is fixed.
    load: Option<LoadGovernor>,
    /// The phone in use; `None` if the run does not simulate one.
    phone: Option<PhoneInUse<'a>>,
    /// Nodes whose inputs are being gathered.
    stack: GatherStack,
    /// Statistics that batch normalisations normalise by, if not each part's own.
    statistics: Statistics,
    /// The training state and data; `None` if only sizes are known.
    learning: Option<Learning<'a>>,
    /// Samples of the mini-batch that finished micro-batches have covered.
    done: u64,
    /// The gradients that the run has given up: before any tensor was stored, and so far.
    fidelity: [Fidelity; 2],
    /// The number of iterations that have begun.
    iterations: usize,
    /// The plans that the policy had, and their times.
    plans: Vec<PlanReport>,
    record: Record,
}

impl<'a> Executor<'a> {
    /// Creates the executor; nothing is in memory yet.
    pub(crate) fn new(
        machine: &Machine,
        job: &'a Job<'a>,
        schedule: &'a mut Schedule,
        policy: &'a mut dyn Policy,
        codec: &'a CodecProfile<'a>,
        lesson: Option<&Lesson<'a>>,
        oracle: &'a dyn Oracle,
    ) -> Result<Self> {
        let (rule, planner) = (schedule.budget_rule.take(), schedule.planner.take());
        let schedule: &Schedule = schedule;
        let graph = schedule.graph.as_ref().unwrap_or(job.graph);
        let allocator: Box<dyn Allocator> = match job.allocator {
            AllocatorKind::Exact => Box::new(ExactAllocator::new(Bytes::MAX)),
            AllocatorKind::Caching => Box::new(CachingAllocator::new(Bytes::MAX)),
            AllocatorKind::Pool => Box::new(PoolAllocator::new(Bytes::MAX)),
        };
        let precision = schedule.precision.unwrap_or(job.precision);
        let limits = Limits {
            memory: memory_budget(machine, job, Nanos::ZERO),
            activations: job.budgets.activations,
            computing: schedule.computing_budget,
            state: Bytes(graph.bytes_of(Role::is_state).at(job.batch)),
            cut: false,
        };
        let mut tensors = Tensors::new(graph, allocator, limits);
        if let Some(lesson) = lesson {
            let sizes = element_bytes(machine, job);
            let quantised = schedule.quantisation.map(|rules| Quantised::new(graph, &rules, sizes));
            let rounding = schedule.quantisation.map(|rules| rules.rounding).unwrap_or_default();
            let values = Values::new(graph, lesson.program, quantised, rounding, lesson.meter.clone());
            tensors.carry(values.map_err(|error| RunError::Store { tensor: "a saved tensor".to_owned(), error })?);
        }
        // Bits and time are distributed by importance.
        let measures = schedule.quantisation.is_some() || job.budgets.time.is_some();
        let learning = lesson.map(|lesson| {
            let importance = measures.then(|| Importance::new(graph, lesson.program, &lesson.importance));
            Learning::new(lesson, importance)
        });
        if let Some(rules) = schedule.quantisation {
            tensors.quantise(rules.arena, activation_budget(machine, job, Nanos::ZERO))?;
        }
        let cpu_packs = schedule.quantisation.is_some_and(|rules| rules.packing.cpu_packs());
        let rules = schedule.quantisation.map(|rules| (rules, element_bytes(machine, job)));
        let threads = Threads::of(machine);
        let phone = job
            .phone
            .map(|phone| PhoneInUse::new(phone, graph.tensors.len(), threads, rule, schedule.round))
            .transpose()?;
        if phone.is_some() {
            tensors.changes = Some(Vec::new());
        }
        Ok(Self {
            job,
            policy,
            planner,
            oracle,
            decided: Operations::default(),
            plan: IterationPlan::new(schedule.micro_batch),
            costs: RunCosts::new(machine, graph, precision, rules, codec),
            clock: Clock::new(machine.device.dram().bandwidth, machine.workers())?,
            tensors,
            lanes: Lanes::new(
                machine.packing_cores().filter(|_| cpu_packs).map(PackerLane::new),
                schedule.offload.clone().map(|plan| DspLane::new(plan, graph.tensors.len())),
            ),
            load: LoadGovernor::of(machine),
            phone,
            stack: GatherStack::default(),
            statistics: Statistics::new(schedule.batch_statistics, graph),
            learning,
            done: 0,
            fidelity: [Fidelity::of(job.graph, graph, precision); 2],
            iterations: 0,
            plans: Vec::new(),
            record: Record::default(),
        })
    }

    /// Before the first iteration: the rule for the budget watches the phone in use, libraries take their memory, and
    /// weights, buffers and the optimiser's state come in.
    pub(crate) fn start(&mut self) -> Result {
        // The trace begins with the run; the memory budget changes at its times, across iterations.
        for wall in &self.job.budgets.traced {
            self.clock.schedule_in(wall.at, Event::Wall(wall.memory));
        }
        if self.phone.as_ref().is_some_and(|phone| phone.rule.is_some()) {
            for _ in 0..WATCHED {
                self.sample_phone()?;
                self.pause(SECOND)?;
            }
        }
        let libraries = self.costs.machine.library_workspace();
        if libraries > Bytes::ZERO && self.tensors.borrow(libraries).is_none() {
            let budget = self.tensors.limits.memory.unwrap_or(Bytes::MAX);
            let shortfall = libraries.saturating_sub(budget);
            return Err(RunError::OutOfMemory { node: "the libraries' workspace".to_owned(), shortfall, budget });
        }
        self.admit_state()
    }

    /// Weights, buffers and the optimiser's state come into memory.
    fn admit_state(&mut self) -> Result {
        for (id, _) in (0..).zip(&self.tensors.graph.tensors).filter(|(_, tensor)| tensor.role.is_state()) {
            self.admit(id, NodeId::MAX).map_err(Stop::outside_a_part)?;
        }
        Ok(())
    }

    /// The CPU's cores as they run now; `None` if a GPU trains.
    pub(crate) fn cores(&self) -> Option<&CpuCores> {
        self.costs.machine.cores()
    }

    /// Heat allows a share of the highest frequency.
    pub(crate) fn allow(&mut self, share: Fraction) {
        if let Some(load) = &mut self.load {
            load.allow(share);
        }
    }

    /// Moves to `record` at the end of the run: the phone's history, the budgets that a rule decided, and the plans for
    /// them.
    pub(crate) fn into_end(self, record: &mut Record) {
        (record.ended, record.plans) = (self.clock.now(), self.plans);
        (record.fidelity, record.flash_written) = (self.fidelity[1], self.lanes.flash.written);
        if let Some(mut phone) = self.phone {
            record.track = phone.track(record.ended).filter(|_| self.job.observe.phone);
            record.planned = phone.planned;
        }
    }

    /// The next iteration learns from `batch`.
    pub(crate) fn learn(&mut self, batch: MiniBatch, rule: Rule) {
        if let Some(learning) = &mut self.learning {
            learning.begin(batch, rule);
        }
    }

    /// One iteration, from a micro-batch of `first` samples if the policy does not want another.
    pub(crate) fn iteration(&mut self, first: u64) -> Result<Record> {
        self.iterations += 1;
        self.begin_iteration()?;
        self.plan = IterationPlan::new(first);
        let importance = self.learning.as_ref().and_then(|learning| learning.importance.as_ref());
        match (importance, self.job.measured.get(self.iterations - 1)) {
            (Some(importance), _) => self.plan.importance.extend(importance.averages()),
            (None, Some(measured)) => self.plan.importance.clone_from(measured),
            (None, None) => {}
        }
        self.tell_factors();
        let (measured, factors) = (self.plan.importance.clone(), self.plan.factors.clone());
        self.policy.begin_iteration(&mut self.plan)?;
        self.keep_factors();
        let first = self.plan.micro_batch;
        if first == 0 || first > self.job.batch {
            return Err(RunError::IllegalAction {
                action: format!("begin with a micro-batch of {first}"),
                reason: "it has at least one sample and at most the mini-batch's",
            });
        }
        self.keep_state();
        while let Err(stop) = self.batch(first) {
            let kill = match stop {
                Stop::Killed(kill) => kill,
                other => return Err(other.outside_a_part()),
            };
            self.start_again(kill)?;
        }
        self.end_iteration()?;
        (self.record.measured, self.record.factors) = (measured, factors);
        Ok(std::mem::take(&mut self.record))
    }

    /// The power of the processors in their current state.
    fn power(&self) -> Power {
        let machine = &self.costs.machine;
        let power = machine.device.power(machine.cores(), &machine.stack);
        let packing = self.lanes.packer.as_ref().map(PackerLane::cores);
        packing.map_or(power, |cores| power.beside(cores))
    }

    fn begin_iteration(&mut self) -> Result {
        self.clock.begin_iteration(self.power(), self.job.observe);
        if let Some(load) = &mut self.load {
            load.begin_iteration(self.clock.now());
        }
        self.record = Record { batch: self.job.batch, ..Record::default() };
        self.tensors.want_all_gradients();
        if let Some(phone) = &mut self.phone {
            let Observe { timeline, phone: whole, .. } = self.job.observe;
            phone.begin_iteration(self.clock.now(), timeline || whole)?;
        }
        // Walls belong to an iteration: those that the previous one did not reach are cancelled with it.
        self.lanes.cancel_walls(&mut self.clock);
        self.set_own_budget();
        let budgets = &self.job.budgets;
        self.lanes.expect_walls(&budgets.walls, |wall| Event::Wall(wall.memory), &mut self.clock);
        self.tensors.limits.activations = budgets.activations;
        self.in_phase(Phase::Forward, |run| Ok(run.plan()?)).map_err(Stop::outside_a_part)?;
        if self.costs.quantises() {
            // The arena has the planned size, even if the budget was cut in the iteration before.
            let budget = activation_budget(&self.costs.machine, self.job, self.clock.now()).unwrap_or(Bytes::MAX);
            let restored = self.tensors.bound_arena(budget).unwrap_or_default();
            self.in_phase(Phase::Forward, |run| Ok(run.charge_paging(restored)?)).map_err(Stop::outside_a_part)?;
        }
        let activation_wall = |wall: &crate::job::Wall| Event::ActivationWall(wall.memory);
        self.lanes.expect_walls(&budgets.activation_walls, activation_wall, &mut self.clock);
        Ok(())
    }

    /// The mini-batch, micro-batch by micro-batch, and the update.
    fn batch(&mut self, first: u64) -> Result<(), Stop> {
        let mut micro_batch = first;
        self.done = 0;
        let began = self.clock.now();
        self.take_statistics()?;
        while self.done < self.job.batch {
            let part = self.run_part(micro_batch.min(self.job.batch - self.done))?;
            self.record.micro_batches.push(part);
            // Algorithm 1 never raises m again within an iteration.
            micro_batch = micro_batch.min(part.max(1));
            self.done += part;
        }
        self.give_statistics_back();
        let rehearsals = self.clock.now().saturating_sub(began) * self.plan.rehearsals;
        if rehearsals > Nanos::ZERO {
            self.in_phase(Phase::Backward, |run| Ok(run.drive(rehearsals, SpanKind::Control)?))?;
        }
        self.update()?;
        self.record.loss = self.learning.as_mut().map(Learning::end);
        Ok(())
    }

    fn end_iteration(&mut self) -> Result {
        let time = self.clock.now() - self.clock.started;
        let summary = IterationSummary { time, micro_batches: self.record.micro_batches.clone() };
        let decided = self.policy.end_iteration(&summary)?;
        self.in_phase(Phase::Update, |run| Ok(run.pay_for(decided)?)).map_err(Stop::outside_a_part)?;
        let changes = self.tensors.take_changes();
        if let Some(phone) = &mut self.phone {
            self.record.phone = Some(phone.end_iteration(self.clock.now(), changes)?);
        }
        self.clock.end_iteration(&mut self.record);
        if let (Some(timeline), Some(phone)) = (&mut self.record.timeline, &mut self.phone) {
            timeline.phone = phone.track_of_iteration(self.clock.now());
        }
        let record = &mut self.record;
        record.peak_growth = record.peak_memory.saturating_sub(std::mem::take(&mut self.tensors.baseline));
        record.given_up = self.tensors.given_up();
        let [before, fidelity] = &mut self.fidelity;
        let given_up = before.gradients_given_up + record.given_up;
        fidelity.gradients_given_up = fidelity.gradients_given_up.max(given_up);
        if record.micro_batches.len() > 1 && self.statistics.are_taken() {
            fidelity.batch_statistics = Some(self.statistics.of);
        }
        if let Some(packer) = &mut self.lanes.packer {
            record.peak_staging = std::mem::take(&mut packer.peak_staging);
        }
        if let Some(dsp) = &mut self.lanes.dsp {
            dsp.end_iteration();
        }
        Ok(())
    }

    /// Bounds memory by the job's budget and the phone's rule.
    fn set_own_budget(&mut self) {
        let decided = self.phone.as_ref().and_then(PhoneInUse::decided);
        let given = memory_budget(&self.costs.machine, self.job, self.clock.now());
        self.tensors.set_budget(given.into_iter().chain(decided).min());
    }

    // Advancing time.

    /// The load governor looks at the load since its last look, and sets the cores.
    fn follow_load(&mut self) {
        let Some(load) = &mut self.load else { return };
        let Some(cores) = load.come_to(self.clock.now(), &self.clock.usage) else { return };
        self.costs.run_on(cores);
        self.clock.repower(self.power());
    }

    /// The work of a phase: its time is charged to the phase, even if it ends early.
    fn in_phase<T>(&mut self, phase: Phase, work: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Result<T, Stop> {
        self.clock.enter(phase);
        let start = self.clock.now();
        let done = work(self);
        self.clock.charge_phase(start);
        done
    }

    /// Work of the processor outside the graph's nodes.
    fn spend(&mut self, cost: &Cost, kind: SpanKind) -> Result {
        self.lanes.spend(cost, kind, self.costs.processor(), &mut self.clock, &mut self.tensors)
    }

    /// The host works for `busy` outside the graph's nodes, which wait for it.
    fn drive(&mut self, busy: Nanos, kind: SpanKind) -> Result {
        let stalls = Stalls { waiting: busy, ..Stalls::default() };
        self.spend(&Cost { busy, stalls, ..Cost::default() }, kind)?;
        self.follow_load();
        Ok(())
    }

    fn pause(&mut self, span: Nanos) -> Result {
        self.lanes.pause(span, &mut self.clock, &mut self.tensors)
    }

    fn await_packer(&mut self, far_enough: impl Fn(&PackerLane) -> bool) -> Result {
        self.lanes.await_packer(far_enough, &mut self.clock, &mut self.tensors)
    }

    fn await_flash(&mut self, far_enough: impl Fn(&FlashLane) -> bool) -> Result {
        self.lanes.await_flash(far_enough, &mut self.clock, &mut self.tensors)
    }

    // Recording memory.

    /// Updates the peaks while `node` runs.
    fn note_memory(&mut self, node: NodeId) {
        let resident = self.tensors.resident();
        if resident > self.record.peak_memory {
            self.record.peak_memory = resident;
            if self.job.observe.peak {
                self.record.peak = Some(self.report_peak(node));
            }
        }
        self.record.reserved = self.record.reserved.max(self.tensors.reserved());
        self.record.peak_saved = self.record.peak_saved.max(self.tensors.held_bytes());
    }

    fn report_peak(&self, node: NodeId) -> PeakReport {
        let mut largest: Vec<Held> = Vec::new();
        for (id, tensor) in (0..).zip(&self.tensors.graph.tensors) {
            let mut hold = |bytes, hold: String| largest.push(Held { name: tensor.name.clone(), bytes, hold });
            if self.tensors.is_whole(id) {
                hold(self.tensors.state(id).bytes, "whole".to_owned());
            }
            if let Some((storage, bytes)) = self.tensors.storage(id).zip(self.tensors.stored_size(id)) {
                let form = match storage {
                    Storage::Compressed => "compressed".to_owned(),
                    Storage::Flash => "on flash".to_owned(),
                    Storage::Quantised(0) => "signs alone".to_owned(),
                    Storage::Quantised(WHOLE) => "whole, in the arena".to_owned(),
                    Storage::Quantised(bits) => format!("{bits} bits a value"),
                };
                hold(bytes, form);
            }
        }
        // Equal ones in the order of the graph.
        largest.sort_by_key(|one| std::cmp::Reverse(one.bytes));
        largest.truncate(LISTED_AT_PEAK);
        PeakReport { node: self.name_of(node), micro_batch: self.tensors.samples, largest }
    }

    fn name_of(&self, node: NodeId) -> String {
        let node = self.tensors.graph.nodes.get(node as usize);
        node.map_or_else(|| "the start".to_owned(), |node| node.name.clone())
    }

    /// A tensor's values cannot be stored, or not be restored.
    fn lost(&self, tensor: TensorId, error: StoreError) -> Stop {
        let tensor = self.tensors.graph.tensors.get(tensor as usize).map_or("?", |tensor| tensor.name.as_str());
        match (&self.learning, error) {
            // A range that is not finite cannot be cut into steps.
            (Some(learning), StoreError::Kernel(KernelError::Range { .. })) => {
                learning.diverged(tensor.to_owned()).into()
            }
            (_, error) => RunError::Store { tensor: tensor.to_owned(), error }.into(),
        }
    }

    /// The policy requested an illegal action on a tensor.
    fn refused(&self, action: &str, tensor: TensorId, reason: &'static str) -> Stop {
        let name = self.tensors.graph.tensors.get(tensor as usize).map_or("?", |tensor| tensor.name.as_str());
        Stop::illegal(format!("{action} {name}"), reason)
    }
}
