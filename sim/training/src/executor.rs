//! Walking the graph: micro-batch by micro-batch, node by node.
//!
//! A node first needs its inputs in memory, those that were dropped are computed again; then room
//! for its outputs, for which the policy may have to give something back; then the processor.

use haversack_devices::processor::{Cost, Processor, Usage};
use haversack_devices::units::{Bytes, BytesPerSecond, Nanos};
use haversack_engine::{EventQueue, SharedBandwidth};
use haversack_memory::AllocationError;
use haversack_policies::{Holding, IterationSummary, MemoryView, Policy, Relief, Setting};
use haversack_workloads::{Extent, NodeId, Phase, Role, TensorId};

use crate::job::{Job, RunError};
use crate::machine::Machine;
use crate::record::{Breakdown, Held, PeakReport, Record};
use crate::store::Store;
use crate::timeline::{Span, SpanKind, Timeline};

/// Operators computed again, in multiples of the graph, at which a run counts as thrashing.
const THRASHING: u64 = 40;
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
    let filling_micro_batch = machine.filling_micro_batch(job.graph, job.batch);
    let setting = Setting { graph: job.graph, batch: job.batch, filling_micro_batch };
    let schedule = policy.prepare(&setting)?;
    let mut executor = Executor::new(machine, job, policy)?;
    executor.store.set_budget(job.budgets.memory);
    executor.admit_state()?;
    let mut record = Record::default();
    for _ in 0..job.iterations.max(1) {
        record = executor.iteration(schedule.micro_batch)?;
    }
    Ok(record)
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
}

/// How a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It has run.
    Done,
    /// The part has to start again with fewer samples.
    Restart(u64),
}

struct Executor<'a> {
    machine: &'a Machine,
    job: &'a Job<'a>,
    policy: &'a mut dyn Policy,
    store: Store<'a>,
    events: EventQueue<Event>,
    dram: SharedBandwidth<()>,
    now: Nanos,
    budget: Option<Bytes>,
    costs: Vec<Option<Cost>>,
    /// Nodes whose inputs are being gathered: the schedule's, and above it what has to be computed again first.
    frames: Vec<Frame>,
    phase: Phase,
    part: Breakdown,
    record: Record,
    usage: Usage,
    started: Nanos,
    baseline: Bytes,
}

impl<'a> Executor<'a> {
    fn new(machine: &'a Machine, job: &'a Job<'a>, policy: &'a mut dyn Policy) -> Result<Self, RunError> {
        Ok(Self {
            machine,
            job,
            policy,
            store: Store::new(job.graph, job.allocator),
            events: EventQueue::new(),
            dram: SharedBandwidth::new(machine.device.dram().bandwidth)?,
            now: Nanos::ZERO,
            budget: job.budgets.memory,
            costs: vec![None; job.graph.nodes.len()],
            frames: Vec::new(),
            phase: Phase::Forward,
            part: Breakdown::default(),
            record: Record::default(),
            usage: Usage::default(),
            started: Nanos::ZERO,
            baseline: Bytes::ZERO,
        })
    }

    fn set_budget(&mut self, memory: Bytes) {
        self.budget = Some(memory);
        self.store.set_budget(self.budget);
    }

    /// Weights, buffers and the optimiser's state are in memory before the first iteration.
    fn admit_state(&mut self) -> Result<(), RunError> {
        for (id, tensor) in (0..).zip(&self.job.graph.tensors) {
            if tensor.role.is_state() {
                self.admit(id, NodeId::MAX)?;
            }
        }
        Ok(())
    }

    fn iteration(&mut self, first: u64) -> Result<Record, RunError> {
        let first = self.policy.begin_iteration().unwrap_or(first);
        self.started = self.now;
        self.usage = Usage::default();
        self.record = Record { batch: self.job.batch, ..Record::default() };
        self.record.timeline = self.job.observe.timeline.then(Timeline::default);
        for wall in &self.job.budgets.walls {
            // A wall in the past of this clock is one that a longer iteration has overrun: it holds from now on.
            let at = self.started + wall.at;
            if self.events.schedule_at(at, Event::Wall(wall.memory)).is_err() {
                self.set_budget(wall.memory);
            }
        }
        let mut left = self.job.batch;
        let mut micro_batch = first.clamp(1, self.job.batch);
        while left > 0 {
            let part = self.run_part(micro_batch.min(left))?;
            self.record.micro_batches.push(part);
            micro_batch = micro_batch.min(part.max(1));
            // Algorithm 1 keeps m where the last part was smaller only because few samples were left.
            left -= part.min(left);
        }
        self.update()?;
        self.finish();
        Ok(self.record.clone())
    }

    fn finish(&mut self) {
        let record = &mut self.record;
        record.iteration = self.now - self.started;
        record.reserved = self.store.peak_reserved();
        record.peak_growth = record.peak_memory.saturating_sub(self.baseline);
        self.usage.span = record.iteration;
        let cores = match &self.machine.processor {
            Processor::Cpu(cores, _) => Some(cores),
            Processor::Gpu(..) => None,
        };
        record.energy = self.machine.device.power(cores).energy(&self.usage).total();
        let summary = IterationSummary { time: record.iteration, micro_batches: record.micro_batches.clone() };
        self.policy.end_iteration(&summary);
    }

    /// Forward and backward of one micro-batch; returns how many samples it ended with.
    fn run_part(&mut self, samples: u64) -> Result<u64, RunError> {
        let mut samples = samples;
        loop {
            self.begin_part(samples)?;
            match self.walk()? {
                Step::Done => break,
                Step::Restart(fewer) => {
                    // Gradients of the dropped samples are already summed in, so the part is lost.
                    self.part.discard(1, 1);
                    self.merge_part();
                    self.clear_part();
                    samples = fewer;
                }
            }
        }
        self.merge_part();
        self.clear_part();
        Ok(self.store.samples)
    }

    fn begin_part(&mut self, samples: u64) -> Result<(), RunError> {
        if self.store.samples != samples {
            self.set_samples(samples)?;
        }
        self.store.rewind();
        self.phase = Phase::Forward;
        for (id, tensor) in (0..).zip(&self.job.graph.tensors) {
            if matches!(tensor.role, Role::Input | Role::Target) && !self.store.is_resident(id) {
                self.admit(id, NodeId::MAX)?;
            }
        }
        if self.record.micro_batches.is_empty() {
            self.baseline = self.store.allocated();
        }
        Ok(())
    }

    fn set_samples(&mut self, samples: u64) -> Result<(), RunError> {
        self.costs.fill(None);
        self.store.shrink(samples).map_err(|_| RunError::IllegalAction {
            action: format!("go on with {samples} samples"),
            reason: "the smaller tensors do not fit",
        })
    }

    fn walk(&mut self) -> Result<Step, RunError> {
        for id in 0..self.job.graph.nodes.len() as NodeId {
            let phase = self.job.graph.nodes[id as usize].phase;
            if phase == Phase::Update {
                break;
            }
            self.phase = phase;
            let before = self.now;
            let step = self.run_scheduled(id)?;
            self.charge_phase(before);
            if step != Step::Done {
                return Ok(step);
            }
        }
        Ok(Step::Done)
    }

    fn update(&mut self) -> Result<(), RunError> {
        for id in 0..self.job.graph.nodes.len() as NodeId {
            if self.job.graph.nodes[id as usize].phase == Phase::Update {
                self.phase = Phase::Update;
                let before = self.now;
                self.run_scheduled(id)?;
                self.charge_phase(before);
            }
        }
        self.merge_part();
        for (id, tensor) in (0..).zip(&self.job.graph.tensors) {
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
        self.store.unlock_all();
        for (id, tensor) in (0..).zip(&self.job.graph.tensors) {
            if matches!(tensor.role, Role::Activation | Role::Gradient | Role::Input | Role::Target) {
                self.store.evict(id, false);
            }
        }
    }

    /// Runs the schedule's next node.
    fn run_scheduled(&mut self, id: NodeId) -> Result<Step, RunError> {
        let graph = self.job.graph;
        let node = &graph.nodes[id as usize];
        let step = self.gather(id)?;
        if step != Step::Done {
            return Ok(step);
        }
        let step = self.make_room(id)?;
        if step != Step::Done {
            return Ok(step);
        }
        self.occupy(id, SpanKind::Scheduled)?;
        for input in self.frames.pop().map(|frame| frame.locked).unwrap_or_default() {
            self.store.unlock(input);
        }
        for &output in &node.outputs {
            self.store.unlock(output);
        }
        for tensor in node.uses() {
            self.store.advance(tensor, id, self.now);
        }
        for tensor in node.uses() {
            if self.store.is_dead(tensor) {
                self.store.evict(tensor, false);
            } else if node.phase == Phase::Forward {
                self.hold(tensor, id);
            }
        }
        self.respect_wall(id)
    }

    /// Asks the policy how to hold a saved tensor, once forward has used it for the last time.
    fn hold(&mut self, tensor: TensorId, node: NodeId) {
        let uses = &self.store.uses;
        if uses.saved[tensor as usize]
            && uses.last_forward[tensor as usize] == Some(node)
            && self.store.is_resident(tensor)
            && self.policy.hold(tensor) == Holding::Rematerialise
        {
            self.store.evict(tensor, true);
        }
    }

    /// Brings the inputs of the schedule's node into memory, locked; what was dropped is computed again.
    ///
    /// Works on an explicit stack: chains of dropped tensors are as long as the network. The inputs of every node on
    /// the stack are locked as they are found (the set D of Sage's algorithm 1), see [`Self::release_waiting`].
    fn gather(&mut self, id: NodeId) -> Result<Step, RunError> {
        let graph = self.job.graph;
        self.frames.clear();
        self.frames.push(Frame::scheduled(id, self.now));
        while let Some(frame) = self.frames.last_mut() {
            let inputs = &graph.nodes[frame.node as usize].inputs;
            let mut missing = None;
            for &input in inputs {
                if frame.locked.contains(&input) {
                    continue;
                }
                if !self.store.is_resident(input) {
                    missing = Some(input);
                    break;
                }
                self.store.lock(input);
                frame.locked.push(input);
            }
            if let Some(input) = missing {
                let remaking = self.remake(input, self.frames.last().map_or(id, |frame| frame.node), id)?;
                self.frames.push(remaking);
                continue;
            }
            let (writer, Some(target)) = (frame.node, frame.target) else { break };
            let step = self.recompute(writer, target, id)?;
            if step != Step::Done {
                return Ok(step);
            }
            let Some(done) = self.frames.pop() else { break };
            // Measured as an engine that evaluates on demand measures it: with all that had to be computed again for it.
            self.store.states[target as usize].cost = self.now - done.since;
            if let Some(next) = done.next_writer(&self.store.uses.writers[target as usize], id) {
                self.frames.push(next);
            }
        }
        Ok(Step::Done)
    }

    /// Unlocks what nodes that wait for others on the stack have gathered so far; they gather it again. Returns whether
    /// there was anything. Used when nothing else is left to drop, which algorithm 1 leaves open.
    fn release_waiting(&mut self) -> bool {
        let waiting = self.frames.len().saturating_sub(1);
        let mut released = false;
        for frame in &mut self.frames[..waiting] {
            for tensor in frame.locked.drain(..) {
                self.store.unlock(tensor);
                released = true;
            }
        }
        released
    }

    /// The first step towards computing `tensor` again for `reader`, while the schedule stands at `now_at`.
    fn remake(&self, tensor: TensorId, reader: NodeId, now_at: NodeId) -> Result<Frame, RunError> {
        let first = self.store.uses.writers[tensor as usize].first().copied().filter(|&writer| writer < now_at);
        match first {
            Some(node) if self.store.is_rematerialisable(tensor) => Ok(Frame::remaking(tensor, node, self.now)),
            _ => Err(self.unwritten(reader, tensor)),
        }
    }

    /// Runs `node` again, whose inputs are in memory and locked, to make `target`.
    fn recompute(&mut self, node: NodeId, target: TensorId, wanted_by: NodeId) -> Result<Step, RunError> {
        let graph = self.job.graph;
        let step = self.make_room(node)?;
        if step != Step::Done {
            return Ok(step);
        }
        self.record.recomputed += 1;
        self.check_thrashing(wanted_by)?;
        self.occupy(node, SpanKind::Recomputed)?;
        let node = &graph.nodes[node as usize];
        if let Some(frame) = self.frames.last_mut() {
            for input in frame.locked.drain(..) {
                self.store.unlock(input);
            }
        }
        for &output in &node.outputs {
            self.store.unlock(output);
        }
        for &used in node.inputs.iter().chain(&node.outputs) {
            self.store.states[used as usize].last_use = self.now;
            // What only this computation needed is not kept; what it was for is.
            if used != target && !self.store.is_locked(used) && self.store.is_dead(used) {
                self.store.evict(used, false);
            }
        }
        Ok(Step::Done)
    }

    fn unwritten(&self, node: NodeId, tensor: TensorId) -> RunError {
        let name = |id: NodeId| self.job.graph.nodes[id as usize].name.clone();
        RunError::Unwritten { node: name(node), tensor: self.job.graph.tensor(tensor).name.clone() }
    }

    fn check_thrashing(&self, node: NodeId) -> Result<(), RunError> {
        let nodes = self.job.graph.nodes.len();
        let parts = self.record.micro_batches.len() as u64 + 1;
        if self.record.recomputed > THRASHING * nodes as u64 * parts {
            let node = self.job.graph.nodes[node as usize].name.clone();
            return Err(RunError::Thrashing { node, recomputed: self.record.recomputed, nodes });
        }
        Ok(())
    }

    /// Brings the outputs of a node into memory, locked.
    fn make_room(&mut self, id: NodeId) -> Result<Step, RunError> {
        for &output in &self.job.graph.nodes[id as usize].outputs {
            if !self.store.is_resident(output) {
                let step = self.admit(output, id)?;
                if step != Step::Done {
                    return Ok(step);
                }
            }
            self.store.lock(output);
        }
        Ok(Step::Done)
    }

    /// Brings one tensor into memory; where a budget does not hold it, the policy has to give something back.
    fn admit(&mut self, tensor: TensorId, node: NodeId) -> Result<Step, RunError> {
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
            let step = self.relieve(shortfall, bytes, node)?;
            if step != Step::Done {
                return Ok(step);
            }
        }
        let allocated = self.store.allocated();
        if allocated > self.record.peak_memory {
            self.record.peak_memory = allocated;
            if self.job.observe.peak {
                self.record.peak = Some(self.report_peak(node));
            }
        }
        Ok(Step::Done)
    }

    /// What the budget of saved tensors misses for one more of them.
    fn activation_shortfall(&self, tensor: TensorId) -> Bytes {
        match self.job.budgets.activations {
            Some(budget) if self.store.uses.saved[tensor as usize] => {
                (self.store.saved_bytes() + self.store.size(tensor)).saturating_sub(budget)
            }
            _ => Bytes::ZERO,
        }
    }

    /// Lets the policy give memory back.
    fn relieve(&mut self, shortfall: Bytes, wanted: Extent, node: NodeId) -> Result<Step, RunError> {
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
            return Ok(Step::Done);
        }
        if reliefs.is_empty() {
            let budget = self.budget.or(self.job.budgets.activations).unwrap_or(budget);
            return Err(RunError::OutOfMemory { node: self.name_of(node), shortfall, budget });
        }
        for relief in reliefs {
            let step = self.apply(relief)?;
            if step != Step::Done {
                return Ok(step);
            }
        }
        Ok(Step::Done)
    }

    fn apply(&mut self, relief: Relief) -> Result<Step, RunError> {
        match relief {
            Relief::Rematerialise(tensor) => {
                if !self.store.candidates.contains(&tensor) {
                    let name = self.job.graph.tensors.get(tensor as usize).map_or("?", |t| t.name.as_str());
                    return Err(RunError::IllegalAction {
                        action: format!("drop {name}"),
                        reason: "it is not in memory, in use, or cannot be computed again",
                    });
                }
                self.store.evict(tensor, true);
                Ok(Step::Done)
            }
            Relief::ShrinkMicroBatch(samples) => {
                let current = self.store.samples;
                if samples == 0 || samples >= current {
                    return Err(RunError::IllegalAction {
                        action: format!("shrink the micro-batch of {current} to {samples}"),
                        reason: "a micro-batch shrinks to at least one sample and fewer than it has",
                    });
                }
                if self.phase == Phase::Forward {
                    self.part.discard(current - samples, current);
                    self.set_samples(samples)?;
                    Ok(Step::Done)
                } else {
                    Ok(Step::Restart(samples))
                }
            }
        }
    }

    /// After a wall: the policy gives back until what is resident fits again.
    fn respect_wall(&mut self, node: NodeId) -> Result<Step, RunError> {
        loop {
            let budget = self.budget.unwrap_or(Bytes::MAX);
            let shortfall = self.store.allocated().saturating_sub(budget);
            if shortfall == Bytes::ZERO {
                return Ok(Step::Done);
            }
            let step = self.relieve(shortfall, Extent::ZERO, node)?;
            if step != Step::Done {
                return Ok(step);
            }
        }
    }

    /// Lets the processor run the node and waits for it.
    fn occupy(&mut self, id: NodeId, kind: SpanKind) -> Result<(), RunError> {
        let samples = self.store.samples;
        let (machine, job) = (self.machine, self.job);
        let cost = *self.costs[id as usize]
            .get_or_insert_with(|| machine.cost(job.graph, id as usize, samples, job.precision));
        let start = self.now;
        let (memory, budget) = (self.store.allocated(), self.budget);
        self.events.schedule_in(cost.launch, Event::Launched);
        while let Some((time, event)) = self.events.pop() {
            self.now = time;
            match event {
                Event::Launched => self.begin(&cost)?,
                Event::Done => break,
                Event::Moved => {
                    if self.dram.advance(time)?.is_some() {
                        break;
                    }
                }
                Event::Wall(memory) => self.set_budget(memory),
            }
        }
        let spent = self.now - start;
        let busy = spent.saturating_sub(cost.launch);
        let node = &job.graph.nodes[id as usize];
        for &output in &node.outputs {
            // In-place operators add to the cost of what they overwrite.
            let state = &mut self.store.states[output as usize];
            let first = self.store.uses.producers[output as usize] == id;
            state.cost = if first { spent } else { state.cost.max(spent) };
        }
        if kind == SpanKind::Recomputed {
            self.part.recompute += spent;
        } else {
            self.part.launch += cost.launch;
            self.part.add(node.work.kind, busy);
        }
        match machine.processor {
            Processor::Cpu(..) => self.usage.cpu_busy += busy,
            Processor::Gpu(..) => self.usage.gpu_busy += busy,
        }
        self.usage.dram += cost.dram;
        if let Some(timeline) = &mut self.record.timeline {
            timeline.spans.push(Span {
                node: id,
                start: start - self.started,
                duration: spent,
                kind,
                micro_batch: samples,
                memory,
                budget,
            });
        }
        Ok(())
    }

    /// The processor computes while DRAM moves the kernel's bytes, at most as fast as the processor asks for them.
    fn begin(&mut self, cost: &Cost) -> Result<(), RunError> {
        if cost.dram == Bytes::ZERO || cost.busy == Nanos::ZERO {
            self.events.schedule_in(cost.busy, Event::Done);
            return Ok(());
        }
        let rate = BytesPerSecond(cost.dram.as_f64() / cost.busy.seconds());
        self.dram.insert(self.now, cost.dram, Some(rate), ())?;
        let due = self.dram.next_completion().unwrap_or(self.now);
        self.events.schedule_in(due.saturating_sub(self.now), Event::Moved);
        Ok(())
    }

    fn name_of(&self, node: NodeId) -> String {
        self.job.graph.nodes.get(node as usize).map_or_else(|| "the start".to_owned(), |node| node.name.clone())
    }

    fn report_peak(&self, node: NodeId) -> PeakReport {
        let tensors = self.job.graph.tensors.iter().zip(&self.store.states).enumerate();
        let mut resident: Vec<_> = tensors.filter(|(_, (_, state))| state.resident).collect();
        resident.sort_by(|a, b| b.1.1.bytes.cmp(&a.1.1.bytes).then(a.0.cmp(&b.0)));
        let held = |(_, (tensor, state)): (usize, (&haversack_workloads::training_graph::Tensor, &haversack_policies::TensorState))| Held {
            name: tensor.name.clone(),
            bytes: state.bytes,
            hold: "whole",
        };
        PeakReport {
            node: self.name_of(node),
            micro_batch: self.store.samples,
            largest: resident.into_iter().take(LISTED_AT_PEAK).map(held).collect(),
        }
    }
}

/// A node whose inputs are being brought into memory.
struct Frame {
    node: NodeId,
    /// What it is run again for; nothing for the schedule's own node.
    target: Option<TensorId>,
    /// Inputs that are there and locked.
    locked: Vec<TensorId>,
    /// When it was put on the stack.
    since: Nanos,
}

impl Frame {
    const fn scheduled(node: NodeId, since: Nanos) -> Self {
        Self { node, target: None, locked: Vec::new(), since }
    }

    const fn remaking(target: TensorId, node: NodeId, since: Nanos) -> Self {
        Self { node, target: Some(target), locked: Vec::new(), since }
    }

    /// A tensor that is written in place is made by all its writers up to where the schedule stands.
    fn next_writer(&self, writers: &[NodeId], now_at: NodeId) -> Option<Self> {
        let next = writers.iter().copied().find(|&writer| writer > self.node && writer < now_at)?;
        Some(Self { node: next, target: self.target, locked: Vec::new(), since: self.since })
    }
}
