//! A run as a Chrome/Perfetto trace: operators as spans, memory as a counter, and the phone in use.

mod phone;

use haversack_devices::{Bytes, Nanos, ProcessorKind, Watts};
use haversack_workloads::{Phase, TrainingGraph};
use serde_json::{Value, json};

pub use phone::{Happening, PhoneEvent, PhoneSample, PhoneTrack, Pressure};

/// Why an operator ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Because it was next.
    Scheduled,
    /// To compute a dropped tensor again.
    Recomputed,
    /// For the statistics of a tensor that it makes.
    Control,
    /// To pack or unpack a tensor.
    Packing,
    /// To get or give back memory, or to copy within it.
    Paging,
    /// To cross between the CPU and the DSP.
    Crossing,
    /// To prepare a subgraph of the DSP.
    Preparation,
    /// To compress a tensor or to get it back.
    Compression,
    /// For the kernel: faults, direct reclaim, and waiting for pages.
    Reclaim,
}

/// One run of one operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The node that ran, or for which something else did; by its place in the graph.
    pub node: u32,
    /// When it began.
    pub start: Nanos,
    /// How long it took, launch included.
    pub duration: Nanos,
    /// Why it ran.
    pub kind: SpanKind,
    /// Where it ran.
    pub on: ProcessorKind,
    /// Samples of the micro-batch.
    pub micro_batch: u64,
    /// Bytes resident while it ran, its outputs included.
    pub memory: Bytes,
    /// The memory budget at the time; `None` if memory is not bounded.
    pub budget: Option<Bytes>,
}

/// One tensor being packed or unpacked by the packing cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackingSpan {
    /// The tensor, by its place in the graph.
    pub tensor: u32,
    /// When they began.
    pub start: Nanos,
    /// How long it took them.
    pub duration: Nanos,
    /// Whether they unpacked it.
    pub unpacks: bool,
}

/// Power of a component above its idle power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    /// From when.
    pub start: Nanos,
    /// For how long.
    pub duration: Nanos,
    /// The power, above the idle power.
    pub power: Watts,
}

/// Every operator of a run, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// All spans of the processor that trains.
    pub spans: Vec<Span>,
    /// All spans of the cores that pack in parallel with it.
    pub packing: Vec<PackingSpan>,
    /// The power of each of them.
    pub draws: Vec<Draw>,
    /// The constant power of the device.
    pub base_power: Watts,
    /// The phone in use around the run; `None` if the run does not simulate one.
    pub phone: Option<PhoneTrack>,
}

impl Timeline {
    /// The times at which the power changes, with the power from then on.
    pub fn power(&self) -> Vec<(Nanos, Watts)> {
        let ends = self
            .draws
            .iter()
            .flat_map(|draw| [(draw.start, draw.power), (draw.start + draw.duration, Watts::ZERO - draw.power)]);
        let mut changes: Vec<(Nanos, Watts)> = ends.collect();
        changes.sort_by_key(|(time, _)| *time);
        let mut steps: Vec<(Nanos, Watts)> = vec![(Nanos::ZERO, self.base_power)];
        let mut power = self.base_power;
        for (time, change) in changes {
            power += change;
            match steps.last_mut() {
                Some(last) if last.0 == time => last.1 = power,
                _ => steps.push((time, power)),
            }
        }
        steps
    }

    /// The trace as JSON that `chrome://tracing` and Perfetto read; times are in microseconds.
    pub fn to_chrome_json(&self, graph: &TrainingGraph) -> Value {
        let mut events = vec![
            json!({"name": "process_name", "ph": "M", "pid": 1, "args": {"name": graph.name}}),
            thread(1, "processor"),
        ];
        for span in &self.spans {
            let node = &graph.nodes[span.node as usize];
            let category = match (span.kind, node.phase) {
                (SpanKind::Recomputed, _) => "recompute",
                (SpanKind::Control, _) => "control",
                (SpanKind::Packing, _) => "packing",
                (SpanKind::Paging, _) => "paging",
                (SpanKind::Crossing, _) => "crossing",
                (SpanKind::Preparation, _) => "preparation",
                (_, Phase::Forward) => "forward",
                (_, Phase::Backward) => "backward",
                (_, Phase::Update) => "update",
            };
            events.push(json!({
                "name": node.name, "cat": category, "ph": "X", "pid": 1, "tid": if span.on == ProcessorKind::Dsp { 3 } else { 1 },
                "ts": microseconds(span.start), "dur": microseconds(span.duration),
                "args": {"micro_batch": span.micro_batch, "kind": node.work.kind.name()},
            }));
            let mut counters = json!({"resident": span.memory.0});
            if let (Some(budget), Some(map)) = (span.budget, counters.as_object_mut()) {
                map.insert("budget".to_owned(), json!(budget.0));
            }
            events.push(json!({
                "name": "memory", "ph": "C", "pid": 1, "ts": microseconds(span.start), "args": counters,
            }));
        }
        if !self.packing.is_empty() {
            events.push(thread(2, "packing cores"));
        }
        for span in &self.packing {
            let doing = if span.unpacks { "unpack" } else { "pack" };
            let name = format!("{doing} {}", graph.tensor(span.tensor).name);
            events.push(json!({
                "name": name, "cat": "packing", "ph": "X", "pid": 1, "tid": 2,
                "ts": microseconds(span.start), "dur": microseconds(span.duration),
            }));
        }
        if self.spans.iter().any(|span| span.on == ProcessorKind::Dsp) {
            events.push(thread(3, "DSP"));
        }
        for (time, power) in self.power() {
            events.push(json!({
                "name": "power", "ph": "C", "pid": 1, "ts": microseconds(time), "args": {"watts": power.0},
            }));
        }
        events.extend(self.phone.iter().flat_map(PhoneTrack::chrome_events));
        json!({"displayTimeUnit": "ms", "traceEvents": events})
    }
}

/// The name of a thread of the trace.
fn thread(id: u32, name: &str) -> Value {
    json!({"name": "thread_name", "ph": "M", "pid": 1, "tid": id, "args": {"name": name}})
}

fn microseconds(time: Nanos) -> f64 {
    time.0 as f64 * 1e-3
}
