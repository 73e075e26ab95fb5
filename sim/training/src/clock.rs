//! The run's clock: the only place that charges time and energy.
//!
//! Time advances from event to event. The code that advances it ([`Lanes`](crate::lanes::Lanes)) then charges that time
//! to its purpose, so the parts of the breakdown sum to the iteration.

use haversack_devices::processor::Queue;
use haversack_devices::{Bytes, BytesPerSecond, Cost, Joules, Nanos, OperatorKind, Power, ProcessorKind, Usage, Watts};
use haversack_engine::{EventHandle, EventQueue, SharedBandwidth};
use haversack_memory::phone::Stall;
use haversack_workloads::{NodeId, Phase, TensorId};

use crate::error::Result;
use crate::job::Observe;
use crate::machine::Workers;
use crate::record::{BoundBy, Breakdown, OperatorTimes, Record, ThreadTime};
use crate::tensors::Tensors;
use crate::timeline::{Draw, PackingSpan, Span, SpanKind, Timeline};

/// Events that the engine announces.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The kernel is launched: the processor begins to compute and DRAM to move its bytes.
    Launched,
    /// The processor is done; its bytes came from a cache.
    Done,
    /// DRAM has moved the bytes of a flow.
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

/// Whose bytes DRAM moves.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Flow {
    /// The kernel's.
    Kernel,
    /// The packing CPU's.
    Packer,
}

/// Time, events, DRAM, and the record of how both were used.
pub(crate) struct Clock {
    now: Nanos,
    events: EventQueue<Event>,
    dram: SharedBandwidth<Flow>,
    /// Kernels that the host has launched ahead.
    queue: Queue,
    /// The next completion that DRAM announces.
    moved: Option<EventHandle>,
    /// When the iteration began.
    pub(crate) started: Nanos,
    phase: Phase,
    /// The schedule's node that everything is done for.
    node: NodeId,
    power: Power,
    pub(crate) usage: Usage,
    /// When the processors' power last changed, and how long everything had been busy by then.
    repowered: (Nanos, Usage),
    workers: Workers,
    /// The breakdown of the current micro-batch's time.
    part: Breakdown,
    spent: Spent,
}

impl Workers {
    /// Thread-seconds within `span`, during which a kernel of `cost` ran, and the part of them that the system's kernel
    /// took; and thread-seconds without waiting for another thread.
    fn times(&self, cost: &Cost, span: Nanos, on_cpu: bool) -> (ThreadTime, f64) {
        let [launch, preparation] = [cost.launch, cost.preparation].map(|time| time.min(span).seconds());
        let touching = cost.touching.seconds();
        if !on_cpu {
            let all = launch + (span.seconds() - launch) * self.polling;
            return (ThreadTime { all, kernel: touching }, all);
        }
        let serial = (launch - preparation + cost.serial.seconds()).clamp(0.0, span.seconds() - preparation);
        let parallel = span.seconds() - preparation - serial;
        let idle = serial * (self.threads - 1.0);
        let all = preparation + serial + parallel * self.threads;
        let spun = self.yielding.map(|share| ThreadTime { all: all + idle, kernel: touching + idle * share });
        (spun.unwrap_or(ThreadTime { all, kernel: touching }), all)
    }

    /// The time for which all cores at work would draw the energy that is drawn within `span`, while a kernel of `cost`
    /// ran and threads spent `all` seconds without waiting for another.
    fn drawing(&self, cost: &Cost, span: Nanos, all: f64) -> Nanos {
        let preparation = cost.preparation.min(span).seconds();
        let idle = span.seconds() * self.threads - all - preparation * (self.threads - 1.0);
        let spins = if self.yielding.is_some() { idle.max(0.0) * self.spinning } else { 0.0 };
        Nanos::from_seconds((all - preparation * (1.0 - self.scalar) + spins) / self.threads).min(span)
    }
}

/// The time and energy charged to an iteration so far.
#[derive(Default)]
struct Spent {
    /// Forward, backward and the update.
    phases: [Nanos; 3],
    /// The part of recomputation time that layout transformations took.
    layout: Nanos,
    breakdown: Breakdown,
    /// The energy until processors' power last changed.
    energy: Joules,
    /// The bottlenecks of the processors while they ran anything.
    bound_by: BoundBy,
    threads: ThreadTime,
    /// How long each operator took, where that is recorded.
    operators: Option<OperatorTimes>,
    timeline: Option<Timeline>,
}

impl Clock {
    /// The clock at the beginning of a run whose DRAM moves `bandwidth`.
    pub(crate) fn new(bandwidth: BytesPerSecond, workers: Workers) -> Result<Self> {
        Ok(Self {
            now: Nanos::ZERO,
            events: EventQueue::new(),
            dram: SharedBandwidth::new(bandwidth)?,
            queue: Queue::default(),
            moved: None,
            started: Nanos::ZERO,
            phase: Phase::Forward,
            node: 0,
            power: Power::default(),
            usage: Usage::default(),
            repowered: (Nanos::ZERO, Usage::default()),
            workers,
            part: Breakdown::default(),
            spent: Spent::default(),
        })
    }

    pub(crate) const fn now(&self) -> Nanos {
        self.now
    }

    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    /// An iteration begins; processors draw `power`.
    pub(crate) fn begin_iteration(&mut self, power: Power, observe: Observe) {
        (self.started, self.power, self.usage) = (self.now, power, Usage::default());
        self.repowered = (self.now, Usage::default());
        self.queue = Queue::default();
        let (timeline, operators) =
            (observe.timeline.then(Timeline::default), observe.operators.then(Default::default));
        self.spent = Spent { timeline, operators, ..Spent::default() };
    }

    /// The iteration is over: moves its totals to the record.
    pub(crate) fn end_iteration(&mut self, record: &mut Record) {
        let spent = std::mem::take(&mut self.spent);
        record.iteration = self.now - self.started;
        [record.forward, record.backward, record.update] = spent.phases;
        (record.breakdown, record.recomputed_layout) = (spent.breakdown, spent.layout);
        // When no processor ran, the iteration waited.
        let waited = record.iteration.saturating_sub(spent.bound_by.total());
        record.bound_by = spent.bound_by;
        record.bound_by.waiting += waited;
        record.threads = spent.threads;
        record.operators = spent.operators.map(OperatorTimes::into_run).unwrap_or_default();
        self.usage.span = record.iteration;
        record.energy = spent.energy + self.energy_since_repowered();
        record.timeline =
            spent.timeline.map(|timeline| Timeline { base_power: self.power.rest + self.power.gpu_idle, ..timeline });
    }

    /// From here on processors draw `power`.
    pub(crate) fn repower(&mut self, power: Power) {
        self.spent.energy += self.energy_since_repowered();
        (self.power, self.repowered) = (power, (self.now, self.usage));
    }

    fn energy_since_repowered(&self) -> Joules {
        let ((since, before), now) = (&self.repowered, &self.usage);
        let usage = Usage {
            span: self.now - *since,
            gpu_busy: now.gpu_busy - before.gpu_busy,
            cpu_busy: now.cpu_busy - before.cpu_busy,
            dsp_busy: now.dsp_busy - before.dsp_busy,
            dram: now.dram - before.dram,
        };
        self.power.energy(&usage).total()
    }

    // Events.

    /// Has the engine announce `event` after `span`.
    pub(crate) fn schedule_in(&mut self, span: Nanos, event: Event) -> EventHandle {
        self.events.schedule_in(span, event)
    }

    /// The event will not come.
    pub(crate) fn cancel(&mut self, event: EventHandle) {
        self.events.cancel(event);
    }

    /// Advances to the next event; `None` if none is pending.
    pub(crate) fn next(&mut self) -> Option<Event> {
        let (time, event) = self.events.pop()?;
        self.now = time;
        if matches!(event, Event::Moved) {
            self.moved = None;
        }
        Some(event)
    }

    /// The host launches a kernel of `cost`; returns its cost at its position in the queue.
    pub(crate) fn issue(&mut self, cost: &Cost) -> Cost {
        self.queue.issue(cost)
    }

    /// The processor computes while DRAM moves the kernel's bytes, at most as fast as the processor asks for them.
    pub(crate) fn compute(&mut self, cost: &Cost) -> Result {
        match rate_alone(cost) {
            Some(rate) => self.transfer(cost.dram, rate, Flow::Kernel),
            None => {
                self.events.schedule_in(cost.busy, Event::Done);
                Ok(())
            }
        }
    }

    /// Launches a kernel and runs it to its end, if nothing else happens by then; returns whether it did. The event
    /// queue would give the same result.
    pub(crate) fn compute_undisturbed(&mut self, cost: &Cost) -> Result<bool> {
        let begin = Nanos(self.now.0.saturating_add(cost.launch.0));
        let before = self.events.next_time().unwrap_or(Nanos::MAX);
        let end = match rate_alone(cost) {
            Some(rate) => self.dram.move_alone(begin, cost.dram, Some(rate), before)?,
            None => Some(Nanos(begin.0.saturating_add(cost.busy.0))),
        };
        let Some(end) = end.filter(|&end| self.events.pass_to(end)) else { return Ok(false) };
        self.now = end;
        Ok(true)
    }

    /// DRAM begins to move the bytes of a flow, at most as fast as `rate`.
    pub(crate) fn transfer(&mut self, bytes: Bytes, rate: BytesPerSecond, flow: Flow) -> Result {
        self.dram.insert(self.now, bytes, Some(rate), flow)?;
        self.await_dram();
        Ok(())
    }

    /// The next flow that DRAM has completed by now.
    pub(crate) fn completed(&mut self) -> Result<Option<Flow>> {
        Ok(self.dram.advance(self.now)?.map(|completion| completion.item))
    }

    /// Has the engine announce when DRAM completes its next flow.
    pub(crate) fn await_dram(&mut self) {
        if let Some(earlier) = self.moved.take() {
            self.events.cancel(earlier);
        }
        let due = self.dram.next_completion();
        self.moved = due.map(|due| self.events.schedule_in(due.saturating_sub(self.now), Event::Moved));
    }

    // Charging time and energy.

    /// The schedule has reached a node.
    pub(crate) fn come_to(&mut self, node: NodeId) {
        self.node = node;
    }

    /// Charges from here on go to this phase.
    pub(crate) fn enter(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// Charges the time since `start` to the current phase.
    pub(crate) fn charge_phase(&mut self, start: Nanos) {
        self.spent.phases[self.phase as usize] += self.now - start;
    }

    /// Charges the time since `start` to work or waiting outside the schedule.
    pub(crate) fn charge(&mut self, start: Nanos, part: impl FnOnce(&mut Breakdown) -> &mut Nanos) {
        *part(&mut self.part) += self.now - start;
    }

    /// The thread slept and waited for a core.
    pub(crate) fn charge_waiting(&mut self, stall: Stall) {
        self.part.refault += stall.sleeping;
        self.part.runnable += stall.runnable;
    }

    /// Charges the time since `start` to an operator of the schedule, of `cost`.
    pub(crate) fn charge_operator(&mut self, start: Nanos, kind: OperatorKind, cost: &Cost) {
        let preparation = cost.preparation.min(cost.launch);
        self.part.preparation += preparation;
        *if cost.ahead { &mut self.part.host } else { &mut self.part.launch } += cost.launch - preparation;
        self.part.add(kind, (self.now - start).saturating_sub(cost.launch));
    }

    /// Charges the time since `start` to an operator that is computed again.
    pub(crate) fn charge_recomputation(&mut self, start: Nanos, kind: OperatorKind) {
        self.charge(start, |part| &mut part.recompute);
        if kind == OperatorKind::Layout {
            self.spent.layout += self.now - start;
        }
    }

    /// Of the micro-batch's work so far `lost` of `all` samples are dropped.
    pub(crate) fn discard(&mut self, lost: u64, all: u64) {
        self.part.discard(lost, all);
    }

    /// The micro-batch is over.
    pub(crate) fn merge_part(&mut self) {
        let part = std::mem::take(&mut self.part);
        self.spent.breakdown.merge(&part);
    }

    /// All work of the iteration so far is lost.
    pub(crate) fn discard_iteration(&mut self) {
        self.discard(1, 1);
        self.merge_part();
        self.spent.breakdown.discard(1, 1);
        self.spent.layout = Nanos::ZERO;
    }

    /// A processor has run a kernel of `cost` since `start`.
    pub(crate) fn was_busy(&mut self, on: ProcessorKind, start: Nanos, cost: &Cost) {
        let span = self.now - start;
        self.spent.bound_by += BoundBy::of(cost, span);
        let on_cpu = on == ProcessorKind::Cpu;
        let (threads, all) = self.workers.times(cost, span, on_cpu);
        self.spent.threads += threads;
        // On a CPU the framework's own work counts too; while some of its cores sleep, proportionally less of it
        // counts.
        let busy = if on_cpu && self.workers.threads > 1.0 {
            self.workers.drawing(cost, span, all)
        } else {
            span.saturating_sub(if on_cpu { Nanos::ZERO } else { cost.launch })
        };
        self.use_processor(on, busy, cost.dram);
    }

    /// The operator `node` of `cost` has run since `start`.
    pub(crate) fn note_operator(&mut self, node: NodeId, start: Nanos, cost: &Cost) {
        let took = self.now - start;
        if let Some(operators) = &mut self.spent.operators {
            operators.add(node, took, BoundBy::of(cost, took));
        }
    }

    /// The cores that pack were busy with a tensor since `start`.
    pub(crate) fn packed(&mut self, tensor: TensorId, start: Nanos, bytes: Bytes, unpacks: bool) {
        self.use_processor(ProcessorKind::Cpu, self.now - start, bytes);
        let (start, duration) = (start - self.started, self.now - start);
        if let Some(timeline) = &mut self.spent.timeline {
            timeline.packing.push(PackingSpan { tensor, start, duration, unpacks });
        }
    }

    /// A processor was busy until now, and DRAM moved `bytes` meanwhile.
    ///
    /// The run's joules are worked out from how long everything was busy; the power on the timeline integrates to the
    /// same.
    fn use_processor(&mut self, on: ProcessorKind, busy: Nanos, bytes: Bytes) {
        let power = &self.power;
        let (used, drawn) = match on {
            ProcessorKind::Cpu => (&mut self.usage.cpu_busy, power.cpu),
            ProcessorKind::Gpu => (&mut self.usage.gpu_busy, power.gpu - power.gpu_idle),
            ProcessorKind::Dsp => (&mut self.usage.dsp_busy, power.dsp + power.cpu_waiting),
        };
        *used += busy;
        self.usage.dram += bytes;
        if let Some(timeline) = self.spent.timeline.as_mut().filter(|_| busy > Nanos::ZERO) {
            let moving = power.dram.energy_per_byte * bytes;
            timeline.draws.push(Draw {
                start: self.now - busy - self.started,
                duration: busy,
                power: drawn + Watts(moving.0 / busy.seconds()),
            });
        }
    }

    /// Puts the work of the schedule's node since `start` on the timeline, if there is one.
    pub(crate) fn draw(&mut self, start: Nanos, kind: SpanKind, on: ProcessorKind, tensors: &Tensors<'_>) {
        self.draw_node(self.node, start, kind, on, tensors);
    }

    /// Puts the work of `node` since `start` on the timeline, if there is one.
    pub(crate) fn draw_node(
        &mut self,
        node: NodeId,
        start: Nanos,
        kind: SpanKind,
        on: ProcessorKind,
        tensors: &Tensors<'_>,
    ) {
        let Some(timeline) = &mut self.spent.timeline else { return };
        timeline.spans.push(Span {
            node,
            start: start - self.started,
            duration: self.now - start,
            kind,
            on,
            micro_batch: tensors.samples,
            memory: tensors.allocated(),
            budget: tensors.limits.memory,
        });
    }
}

/// The bandwidth at which a kernel moves its bytes if it has DRAM to itself; `None` if it moves none.
fn rate_alone(cost: &Cost) -> Option<BytesPerSecond> {
    let moves = cost.dram > Bytes::ZERO && cost.busy > Nanos::ZERO;
    moves.then(|| BytesPerSecond(cost.dram.as_f64() / cost.busy.seconds()))
}
