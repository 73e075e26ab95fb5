//! Walking the graph: micro-batch by micro-batch, node by node.
//!
//! A node first needs its inputs in memory, those that were dropped are computed again; then room
//! for its outputs, for which the policy may have to give something back; then the processor.

mod governing;
mod offload;
mod packer;
mod pool;
mod power;
mod pressure;
mod processor;
mod quantise;
mod recompute;
mod swap;
mod system;
mod tending;

pub use tending::watch;

use std::sync::Arc;

use haversack_devices::processor::{Cost, CpuCores, Power, Usage};
use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::work::Precision;
use haversack_engine::{EventHandle, EventQueue, SharedBandwidth};
use haversack_memory::phone::Kill;
use haversack_policies::budget::BudgetRule;
use haversack_policies::quantised::{ElementBytes, WHOLE, working_memory};
use haversack_policies::setting::DspProfile;
use haversack_policies::{IterationPlan, IterationSummary, NodeTimes, Policy, Schedule, Setting, Storage};
use haversack_workloads::{NodeId, Phase, Role, TensorId, TrainingGraph};

use self::governing::Governing;
use self::offload::{Offloading, Profile};
use self::packer::Packer;
use self::processor::Flow;
use self::quantise::Quantiser;
use self::recompute::Frame;
use self::swap::Transfers;
use self::system::System;
use crate::job::{Job, RunError};
use crate::machine::Machine;
use crate::phone::TrainerKill;
use crate::record::{Breakdown, Held, PeakReport, Record};
use crate::restore;
use crate::store::Store;
use crate::timeline::{SpanKind, Timeline};

/// Tensors listed at the peak.
const LISTED_AT_PEAK: usize = 10;

/// Runs `job` on `machine` under `policy`.
///
/// # Errors
/// [`RunError`]: memory that the policy cannot free, an illegal answer of the policy, a malformed graph.
pub fn simulate(machine: &Machine, job: &Job<'_>, policy: &mut dyn Policy) -> Result<Record, RunError> {
    if job.batch == 0 {
        return Err(RunError::EmptyBatch);
    }
    let restore = restore::Profile::new(machine, job.graph);
    let mut schedule = policy.prepare(&setting(machine, job, &dsp_profile(machine, job), &restore))?;
    let rule = schedule.budget_rule.take();
    let mut governing = Governing::start(machine, job)?;
    let mut executor = Executor::new(machine, job, &schedule, policy, &restore)?;
    executor.store.set_budget(executor.budget);
    executor.settle(rule)?;
    executor.borrow_libraries()?;
    executor.admit_state()?;
    let mut record = Record::default();
    let mut iterations = Vec::new();
    for _ in 0..job.iterations.max(1) {
        record = executor.iteration(schedule.micro_batch)?;
        iterations.push(record.iteration);
        if let Some(cores) = governing.after(&record, &executor.usage)? {
            executor.run_on(cores);
        }
    }
    record.heat = governing.seen;
    record.iterations = iterations;
    record.planned = executor.planned;
    Ok(record)
}

/// Hands `ask` what a policy is told of `job` on `machine` before the first iteration, and returns what it answers.
pub fn with_setting<T>(machine: &Machine, job: &Job<'_>, ask: impl FnOnce(&Setting<'_>) -> T) -> T {
    ask(&setting(machine, job, &dsp_profile(machine, job), &restore::Profile::new(machine, job.graph)))
}

const fn dsp_profile<'a>(machine: &'a Machine, job: &Job<'a>) -> Profile<'a> {
    Profile { machine, graph: job.graph, precision: job.precision }
}

/// What a policy is told before the first iteration.
fn setting<'a>(
    machine: &'a Machine,
    job: &'a Job<'_>,
    dsp: &'a Profile<'a>,
    restore: &'a restore::Profile<'a>,
) -> Setting<'a> {
    Setting {
        graph: job.graph,
        batch: job.batch,
        filling_micro_batch: machine.filling_micro_batch(job.graph, job.batch),
        node_times: NodeTimes::on_demand(|| machine.times(job.graph, job.batch, job.precision)),
        value_bytes: value_bytes(job.precision),
        mask_bytes: machine.stack.constants.dropout_mask.value.0,
        activation_budget: activation_budget(machine, job),
        time_budget: job.budgets.time,
        dsp: machine.dsp.is_some().then_some(dsp as &dyn DspProfile),
        restore: Some(restore),
    }
}

/// The bytes of a value in memory.
const fn value_bytes(precision: Precision) -> u64 {
    match precision {
        Precision::Fp16 => 2,
        _ => 4,
    }
}

/// What the framework may hold: its budget, and on a GPU that can address only a share of the device's memory, that.
fn memory_budget(machine: &Machine, job: &Job<'_>) -> Option<Bytes> {
    match (job.budgets.memory, machine.addressable()) {
        (Some(budget), Some(addressable)) => Some(budget.min(addressable)),
        (budget, addressable) => budget.or(addressable),
    }
}

/// What saved tensors may take: the budget for them, or what the memory budget leaves beside all else.
fn activation_budget(machine: &Machine, job: &Job<'_>) -> Option<Bytes> {
    let beside = || working_memory(job.graph, job.batch) + machine.library_workspace();
    let left = job.budgets.memory.map(|memory| memory.saturating_sub(beside()));
    match (job.budgets.activations, left) {
        (Some(own), Some(left)) => Some(own.min(left)),
        (own, left) => own.or(left),
    }
}

/// What the engine announces.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The kernel is launched: the processor begins to compute and DRAM to move its bytes.
    Launched,
    /// The processor is done; its bytes came from a cache.
    Done,
    /// DRAM has moved a kernel's bytes.
    Moved,
    /// The memory budget changes.
    Wall(Bytes),
    /// The budget of saved tensors changes.
    ActivationWall(Bytes),
    /// Flash has written a tensor.
    Written(TensorId),
    /// Flash has read a tensor.
    Read(TensorId),
    /// A pause is over.
    Pause,
}

/// Why the walk through a part ended early.
enum Stop {
    /// The part has to start again with so many samples.
    Restart(u64),
    /// The process was ended.
    Killed(Box<Kill>),
    /// The run has failed.
    Failed(RunError),
}

impl<E: Into<RunError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl Stop {
    /// The error, where no part is under way that could start again.
    fn outside_a_part(self) -> RunError {
        match self {
            Self::Failed(error) => error,
            Self::Killed(kill) => RunError::Killed { iteration: 0, times: 1, kill },
            Self::Restart(samples) => RunError::IllegalAction {
                action: format!("shrink the micro-batch to {samples}"),
                reason: "no micro-batch is under way",
            },
        }
    }
}

struct Executor<'a> {
    machine: Arc<Machine>,
    job: &'a Job<'a>,
    /// The graph that runs: the job's, or the policy's version of it.
    graph: &'a TrainingGraph,
    precision: Precision,
    policy: &'a mut dyn Policy,
    /// What holds for the iteration under way.
    plan: IterationPlan,
    store: Store<'a>,
    /// How the policy stores quantised tensors; nothing where it does not.
    quantiser: Option<Quantiser>,
    /// What the statistics of a tensor cost, by its values.
    profiled: Vec<(u64, Cost)>,
    /// The cores that pack beside the processor; nothing where it packs itself.
    packer: Option<Packer>,
    /// What the DSP runs; nothing where it has no part in it.
    offloading: Option<Offloading>,
    /// What compressing and swapping takes.
    restore: &'a restore::Profile<'a>,
    /// What flash has in hand.
    transfers: Transfers,
    power: Power,
    events: EventQueue<Event>,
    dram: SharedBandwidth<Flow>,
    /// The next completion that DRAM announces.
    moved: Option<EventHandle>,
    walls: Vec<EventHandle>,
    now: Nanos,
    budget: Option<Bytes>,
    /// The schedule's computing budget, in percent of what the state leaves.
    computing_budget: Option<u64>,
    /// Weights, buffers and the optimiser's state.
    state: Bytes,
    /// What saved tensors may take.
    activations: Option<Bytes>,
    /// Whether that was cut since the last node.
    cut: bool,
    costs: Vec<Option<Cost>>,
    /// Nodes whose inputs are being gathered: the schedule's, and above it what has to be computed again first.
    frames: Vec<Frame>,
    phase: Phase,
    /// The schedule's node that everything is done for.
    at: NodeId,
    part: Breakdown,
    record: Record,
    usage: Usage,
    started: Nanos,
    baseline: Bytes,
    /// Tensors held whole that are to be quantised after all.
    to_pack: Vec<TensorId>,
    /// Parameter gradients that are given up in this iteration, by tensor.
    given_up: Vec<bool>,
    /// The phone in use, where the run is on one.
    system: Option<System<'a>>,
    /// Who decides the budget on it.
    rule: Option<Box<dyn BudgetRule>>,
    /// The budgets that it has decided.
    planned: Vec<Bytes>,
    /// When memory is measured next.
    next_watch: Nanos,
    /// How often the process was ended.
    kills: Vec<TrainerKill>,
    /// Iterations that have ended.
    ended: u32,
}

impl<'a> Executor<'a> {
    fn new(
        machine: &'a Machine,
        job: &'a Job<'a>,
        schedule: &'a Schedule,
        policy: &'a mut dyn Policy,
        restore: &'a restore::Profile<'a>,
    ) -> Result<Self, RunError> {
        let graph = schedule.graph.as_ref().unwrap_or(job.graph);
        let mut store = Store::new(graph, job.allocator);
        let sizes =
            ElementBytes { value: value_bytes(job.precision), mask: machine.stack.constants.dropout_mask.value.0 };
        store.quantises = schedule.quantisation.is_some();
        let quantiser = schedule.quantisation.map(|rules| Quantiser::new(graph, rules, sizes));
        if let Some(plan) = schedule.quantisation.and_then(|rules| rules.arena) {
            store.open_arena(plan, activation_budget(machine, job))?;
        }
        let cpu_packs = schedule.quantisation.is_some_and(|rules| rules.packing.cpu_packs());
        let packer = machine.packing_cores().filter(|_| cpu_packs).map(Packer::new);
        Ok(Self {
            machine: Arc::new(machine.clone()),
            job,
            graph,
            precision: schedule.precision.unwrap_or(job.precision),
            policy,
            store,
            quantiser,
            profiled: Vec::new(),
            packer,
            offloading: schedule.offload.clone().map(|plan| Offloading::new(plan, graph.tensors.len())),
            restore,
            plan: IterationPlan::new(schedule.micro_batch),
            transfers: Transfers::default(),
            power: Power::default(),
            events: EventQueue::new(),
            dram: SharedBandwidth::new(machine.device.dram().bandwidth)?,
            moved: None,
            walls: Vec::new(),
            now: Nanos::ZERO,
            budget: memory_budget(machine, job),
            computing_budget: schedule.computing_budget,
            state: Bytes(graph.bytes_of(Role::is_state).at(job.batch)),
            activations: job.budgets.activations,
            cut: false,
            costs: vec![None; graph.nodes.len()],
            frames: Vec::new(),
            phase: Phase::Forward,
            at: 0,
            part: Breakdown::default(),
            record: Record::default(),
            usage: Usage::default(),
            started: Nanos::ZERO,
            baseline: Bytes::ZERO,
            to_pack: Vec::new(),
            given_up: vec![false; graph.tensors.len()],
            system: job.phone.map(|phone| System::new(phone, graph.tensors.len())).transpose()?,
            rule: None,
            planned: Vec::new(),
            next_watch: Nanos::ZERO,
            kills: Vec::new(),
            ended: 0,
        })
    }

    /// A governor has set the CPU's cores anew.
    fn run_on(&mut self, cores: CpuCores) {
        self.machine = Arc::new(self.machine.with_cores(cores));
        self.costs.fill(None);
        self.profiled.clear();
    }

    fn set_budget(&mut self, memory: Bytes) {
        self.budget = Some(memory);
        self.store.set_budget(self.budget);
    }

    /// What libraries hold from the start.
    fn borrow_libraries(&mut self) -> Result<(), RunError> {
        let libraries = self.machine.library_workspace();
        if libraries > Bytes::ZERO && self.store.borrow(libraries).is_none() {
            let budget = self.budget.unwrap_or(Bytes::MAX);
            let shortfall = libraries.saturating_sub(budget);
            return Err(RunError::OutOfMemory { node: "the libraries' workspace".to_owned(), shortfall, budget });
        }
        Ok(())
    }

    /// Weights, buffers and the optimiser's state are in memory before the first iteration.
    fn admit_state(&mut self) -> Result<(), RunError> {
        for (id, tensor) in (0..).zip(&self.graph.tensors) {
            if tensor.role.is_state() {
                self.admit(id, NodeId::MAX).map_err(Stop::outside_a_part)?;
            }
        }
        Ok(())
    }

    fn iteration(&mut self, first: u64) -> Result<Record, RunError> {
        self.plan = IterationPlan::new(first);
        self.policy.begin_iteration(&mut self.plan);
        let first = self.plan.micro_batch;
        self.started = self.now;
        self.usage = Usage::default();
        let cores = self.machine.cores().or(self.packer.as_ref().map(|packer| &packer.cores));
        self.power = self.machine.device.power(cores, &self.machine.stack);
        self.baseline = Bytes::ZERO;
        self.record = Record { batch: self.job.batch, ..Record::default() };
        self.record.timeline = self.job.observe.timeline.then(Timeline::default);
        self.given_up.fill(false);
        self.begin_on_phone()?;
        // Walls are of an iteration: those that the one before did not reach fall with it.
        for wall in self.walls.drain(..) {
            self.events.cancel(wall);
        }
        self.set_own_budget();
        for wall in &self.job.budgets.walls {
            self.walls.push(self.events.schedule_in(wall.at, Event::Wall(wall.memory)));
        }
        self.activations = self.job.budgets.activations;
        if self.store.quantises {
            // It holds what was planned, whatever was cut in the iteration before.
            let budget = activation_budget(&self.machine, self.job).unwrap_or(Bytes::MAX);
            let restored = self.store.bound_arena(budget).unwrap_or_default();
            self.phase = Phase::Forward;
            let before = self.now;
            self.charge_paging(restored)?;
            self.charge_phase(before);
        }
        for wall in &self.job.budgets.activation_walls {
            self.walls.push(self.events.schedule_in(wall.at, Event::ActivationWall(wall.memory)));
        }
        if first == 0 || first > self.job.batch {
            return Err(RunError::IllegalAction {
                action: format!("begin with a micro-batch of {first}"),
                reason: "it has at least one sample and at most the mini-batch's",
            });
        }
        while let Err(stop) = self.batch(first) {
            let kill = match stop {
                Stop::Killed(kill) => kill,
                other => return Err(other.outside_a_part()),
            };
            self.start_again(kill)?;
        }
        self.finish()?;
        Ok(self.record.clone())
    }

    /// The mini-batch, micro-batch by micro-batch, and the update.
    fn batch(&mut self, first: u64) -> Result<(), Stop> {
        let mut left = self.job.batch;
        let mut micro_batch = first;
        while left > 0 {
            let part = self.run_part(micro_batch.min(left))?;
            self.record.micro_batches.push(part);
            // Algorithm 1 never raises m again within an iteration.
            micro_batch = micro_batch.min(part.max(1));
            left -= part.min(left);
        }
        self.update()
    }

    fn finish(&mut self) -> Result<(), RunError> {
        self.end_on_phone()?;
        let record = &mut self.record;
        record.iteration = self.now - self.started;
        record.peak_growth = record.peak_memory.saturating_sub(self.baseline);
        self.usage.span = record.iteration;
        record.energy = self.power.energy(&self.usage).total();
        if let Some(timeline) = &mut record.timeline {
            timeline.base_power = self.power.rest + self.power.gpu_idle + self.power.dram.power_idle;
        }
        let record = &mut self.record;
        let summary = IterationSummary {
            time: record.iteration,
            micro_batches: record.micro_batches.clone(),
            ..IterationSummary::default()
        };
        self.policy.end_iteration(&summary);
        self.end_offloading();
        self.ended += 1;
        Ok(())
    }

    /// Forward and backward of one micro-batch; returns how many samples it ended with.
    fn run_part(&mut self, samples: u64) -> Result<u64, Stop> {
        let mut samples = samples;
        loop {
            let before = self.now;
            let begun = self.begin_part(samples);
            self.charge_phase(before);
            begun?;
            match self.walk() {
                Ok(()) => break,
                Err(Stop::Restart(fewer)) => {
                    self.await_packing()?;
                    // Gradients of the dropped samples are already summed in, so the part is lost.
                    self.part.discard(1, 1);
                    self.merge_part();
                    self.clear_part();
                    samples = fewer;
                }
                Err(stop) => return Err(stop),
            }
        }
        self.await_packing()?;
        self.merge_part();
        self.clear_part();
        Ok(self.store.samples)
    }

    /// The cores that pack finish what they have in hand, within the phase.
    fn await_packing(&mut self) -> Result<(), Stop> {
        let before = self.now;
        self.clear_packer()?;
        self.clear_transfers()?;
        self.charge_phase(before);
        Ok(())
    }

    fn begin_part(&mut self, samples: u64) -> Result<(), Stop> {
        if self.store.samples != samples {
            self.set_samples(samples);
        }
        self.store.rewind();
        self.phase = Phase::Forward;
        for (id, tensor) in (0..).zip(&self.graph.tensors) {
            if matches!(tensor.role, Role::Input | Role::Target) && !self.store.is_resident(id) {
                self.admit(id, NodeId::MAX)?;
            }
        }
        if self.baseline == Bytes::ZERO {
            self.baseline = self.store.allocated();
        }
        Ok(())
    }

    fn set_samples(&mut self, samples: u64) {
        self.costs.fill(None);
        self.store.shrink(samples);
    }

    fn walk(&mut self) -> Result<(), Stop> {
        for id in 0..self.graph.nodes.len() as NodeId {
            let phase = self.graph.nodes[id as usize].phase;
            if phase == Phase::Update {
                break;
            }
            if phase == Phase::Backward && self.phase == Phase::Forward {
                self.note_arena();
            }
            self.phase = phase;
            if self.is_given_up(id) {
                self.pass_over(id);
                continue;
            }
            let before = self.now;
            let ended = self.run_scheduled(id);
            self.charge_phase(before);
            ended?;
        }
        Ok(())
    }

    fn update(&mut self) -> Result<(), Stop> {
        for id in 0..self.graph.nodes.len() as NodeId {
            if self.graph.nodes[id as usize].phase == Phase::Update && !self.is_given_up(id) {
                self.phase = Phase::Update;
                let before = self.now;
                let ended = self.run_scheduled(id);
                self.charge_phase(before);
                ended?;
            }
        }
        self.merge_part();
        for (id, tensor) in (0..).zip(&self.graph.tensors) {
            if tensor.role == Role::ParameterGradient {
                self.store.evict(id, false);
            }
        }
        Ok(())
    }

    fn charge_phase(&mut self, before: Nanos) {
        let spent = self.now - before;
        match self.phase {
            Phase::Forward => self.record.forward += spent,
            Phase::Backward => self.record.backward += spent,
            Phase::Update => self.record.update += spent,
        }
    }

    fn merge_part(&mut self) {
        let part = std::mem::take(&mut self.part);
        self.record.breakdown.merge(&part);
    }

    /// Everything that belongs to one micro-batch leaves memory.
    fn clear_part(&mut self) {
        self.frames.clear();
        self.to_pack.clear();
        self.store.unlock_all();
        for (id, tensor) in (0..).zip(&self.graph.tensors) {
            if matches!(tensor.role, Role::Activation | Role::Gradient | Role::Input | Role::Target) {
                self.store.evict(id, false);
            }
        }
    }

    /// Runs the schedule's next node.
    fn run_scheduled(&mut self, id: NodeId) -> Result<(), Stop> {
        self.at = id;
        self.store.come_to(id);
        let graph = self.graph;
        let node = &graph.nodes[id as usize];
        self.gather(id)?;
        self.make_room(id)?;
        self.prefetch(id)?;
        self.read_ahead(id)?;
        let workspace =
            self.store.borrow(self.machine.workspace(graph, id as usize, self.store.samples, self.precision));
        if workspace.is_some() {
            self.note_memory(id);
        }
        let ran = self.occupy(id, SpanKind::Scheduled);
        if let Some(workspace) = workspace {
            self.store.give_back(workspace);
        }
        ran?;
        for input in self.frames.pop().map(|frame| frame.locked).unwrap_or_default() {
            self.store.unlock(input);
        }
        for &output in &node.outputs {
            self.store.unlock(output);
        }
        for tensor in node.uses() {
            self.store.advance(tensor, id, self.now);
        }
        self.store.come_to(id + 1);
        for tensor in node.uses() {
            if self.store.is_dead(tensor) {
                self.store.evict(tensor, false);
            } else if node.phase == Phase::Forward {
                self.hold(tensor, id)?;
            } else if self.store.is_packed(tensor) && !self.store.is_locked(tensor) {
                self.store.evict_whole(tensor, false);
            }
        }
        self.respect_wall(id)?;
        self.trim(id)
    }

    /// A node that is not run uses its tensors no more.
    fn pass_over(&mut self, id: NodeId) {
        for tensor in self.graph.nodes[id as usize].uses() {
            self.store.advance(tensor, id, self.now);
            if self.store.is_dead(tensor) {
                self.store.evict(tensor, false);
            }
        }
        self.store.come_to(id + 1);
    }

    fn name_of(&self, node: NodeId) -> String {
        self.graph.nodes.get(node as usize).map_or_else(|| "the start".to_owned(), |node| node.name.clone())
    }

    fn report_peak(&self, node: NodeId) -> PeakReport {
        let states = (0..).zip(self.graph.tensors.iter().zip(&self.store.states));
        let mut held: Vec<Held> = Vec::new();
        for (id, (tensor, state)) in states {
            let mut hold = |bytes, hold: String| held.push(Held { name: tensor.name.clone(), bytes, hold });
            if state.form.is_whole() {
                hold(state.bytes, "whole".to_owned());
            }
            if let Some(bytes) = self.store.packed_size(id) {
                let form = match state.form.storage() {
                    Some(Storage::Compressed) => "compressed".to_owned(),
                    Some(Storage::Flash) => "on flash".to_owned(),
                    Some(Storage::Quantised(WHOLE)) => "whole, in the arena".to_owned(),
                    Some(Storage::Quantised(bits @ 1..)) => format!("{bits} bits a value"),
                    Some(Storage::Quantised(0)) | None => "signs alone".to_owned(),
                };
                hold(bytes, form);
            }
        }
        // Equal ones in the order of the graph.
        held.sort_by_key(|one| std::cmp::Reverse(one.bytes));
        held.truncate(LISTED_AT_PEAK);
        PeakReport { node: self.name_of(node), micro_batch: self.store.samples, largest: held }
    }
}
