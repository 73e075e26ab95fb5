//! Graphs of a few nodes, a phone's CPU with round constants, and scripted policies.

pub(crate) mod drawn;
pub(crate) mod phones;
pub(crate) mod rule;

use std::collections::{BTreeMap, VecDeque};

use haversack_devices::processor::{CoreSelection, Frequency};
use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::work::OperatorKind;
use haversack_devices::{load, load_stack};
use haversack_policies::setting::{Compression, Swapping};
use haversack_policies::{Holding, MemoryView, Policy, PolicyError, Relief, Schedule, Setting, Want};
use haversack_training::{Machine, Record, Span, SpanKind, Trains};
use haversack_workloads::training_graph::{Need, Node, NodeWork, Saved, Tensor};
use haversack_workloads::{Extent, Phase, Role, TensorId, TrainingGraph};

/// With this number of samples the tensors' bytes are round numbers.
pub(crate) const BATCH: u64 = 8;
/// A megabyte.
pub(crate) const MB: u64 = 1_000_000;

/// A tensor of `bytes` for [`BATCH`] samples.
pub(crate) fn tensor(name: &str, bytes: u64, role: Role) -> Tensor {
    let bytes = if role.is_state() || role == Role::ParameterGradient {
        Extent::fixed(bytes)
    } else {
        Extent::per_sample(bytes / BATCH)
    };
    Tensor::new(name, bytes, role)
}

/// A node that takes 20 µs to launch and then `micros` for [`BATCH`] samples on [`phone_cpu`]: it moves 10 kB a µs.
pub(crate) fn node(name: &str, phase: Phase, inputs: &[TensorId], outputs: &[TensorId], micros: u64) -> Node {
    let work = NodeWork {
        dram: Extent::per_sample(micros * 10_000 / BATCH),
        parallelism: Extent::fixed(1 << 30),
        columns: 64,
        ..NodeWork::new(OperatorKind::ElementWise)
    };
    haversack_testing::node(name, phase, inputs, outputs, work)
}

/// The same node, which needs only the shape of `tensor`.
pub(crate) fn for_its_shape(mut node: Node, tensor: TensorId) -> Node {
    node.saved.push(Saved { tensor, need: Need::Shape, by_module: true });
    node
}

pub(crate) fn graph(tensors: Vec<Tensor>, nodes: Vec<Node>) -> TrainingGraph {
    TrainingGraph { name: "by hand".to_owned(), tensors, nodes }
}

/// A core of 2 GHz that draws 10 GB/s of 100; it compresses 2 GB/s and decompresses 1 GB/s. Flash writes 1 GB/s and
/// reads 2 GB/s.
pub(crate) fn phone_cpu() -> Machine {
    with_storage(&[])
}

/// The same with other constants of the device.
pub(crate) fn with_storage(set: &[(&str, f64)]) -> Machine {
    on_cores("big:1", set)
}

/// The same on other cores.
pub(crate) fn on_cores(cores: &str, set: &[(&str, f64)]) -> Machine {
    let (mut device, mut stack) = (load("galaxy-s22").unwrap(), load_stack("mnn-2").unwrap());
    let of_device = [
        ("cpu.0.frequency", 2.0),
        ("cpu.0.dram_bandwidth", 10.0),
        // No cache, so that time is proportional to bytes.
        ("cpu.0.l1", 0.0),
        ("cpu.0.l2", 0.0),
        ("cache.l3", 0.0),
        ("dram.peak", 100.0),
        ("dram.achievable", 1.0),
        ("storage.sequential_write", 1000.0),
        ("storage.sequential_read", 2000.0),
    ];
    for (name, value) in of_device.iter().chain(set) {
        device.set(name, *value).unwrap();
    }
    let of_stack = [
        ("cpu.operator_overhead", 20.0),
        ("cpu.preparation_work", 0.0),
        ("cpu.bandwidth", 1.0),
        ("cpu.first_touch", 0.0),
        ("codec.compress_rate", 1.0),
        ("codec.decompress_rate", 0.5),
    ];
    for (name, value) in of_stack {
        stack.set(name, value).unwrap();
    }
    let cores: CoreSelection = cores.parse().unwrap();
    Machine::new(device, stack, Trains::Cpu, Some(cores), Frequency::Highest).unwrap()
}

/// Stores tensors as scripted, and answers shortages with scripted reliefs, one after the other.
#[derive(Default)]
pub(crate) struct Script {
    pub(crate) holds: BTreeMap<TensorId, Holding>,
    pub(crate) reliefs: VecDeque<Vec<Relief>>,
    /// The machine's profile of the tensors at the whole batch.
    pub(crate) compressed: BTreeMap<TensorId, Compression>,
    pub(crate) swapped: BTreeMap<TensorId, Swapping>,
}

impl Script {
    pub(crate) fn holding(holds: &[(TensorId, Holding)]) -> Self {
        Self { holds: holds.iter().copied().collect(), ..Self::default() }
    }

    pub(crate) fn relieving(reliefs: &[Relief]) -> Self {
        Self { reliefs: reliefs.iter().map(|&relief| vec![relief]).collect(), ..Self::default() }
    }
}

impl Policy for Script {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let profile = setting.restore.unwrap();
        for (id, tensor) in (0..).zip(&setting.graph.tensors) {
            let found = profile.compression(id, setting.batch);
            self.compressed.extend(found.map(|found| (id, found)));
            let found = profile.swapping(Bytes(tensor.bytes.at(setting.batch)));
            self.swapped.extend(found.map(|found| (id, found)));
        }
        Ok(Schedule::plain(setting.batch))
    }

    fn hold(&mut self, tensor: TensorId, _: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        Ok(self.holds.get(&tensor).copied().unwrap_or(Holding::Keep))
    }

    fn relieve(&mut self, _: Want, _: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        Ok(self.reliefs.pop_front().unwrap_or_default())
    }
}

/// The spans by name of the node, or by kind if they are not the schedule's, with their ends.
pub(crate) fn spans(record: &Record, graph: &TrainingGraph) -> Vec<(String, Nanos, Nanos)> {
    let spans = &record.timeline.as_ref().unwrap().spans;
    let name = |span: &Span| match span.kind {
        SpanKind::Scheduled => graph.nodes[span.node as usize].name.clone(),
        kind => format!("{kind:?}"),
    };
    spans.iter().map(|span| (name(span), span.start, span.start + span.duration)).collect()
}

/// When the schedule's node begins.
pub(crate) fn start_of(record: &Record, graph: &TrainingGraph, node: &str) -> Nanos {
    spans(record, graph).into_iter().find(|(name, ..)| name == node).unwrap().1
}

/// Checks that all sums equal the iteration.
pub(crate) fn check_sums(record: &Record, place: &str) {
    assert_eq!(record.breakdown.total(), record.iteration, "{place}: breakdown");
    assert_eq!(record.forward + record.backward + record.update, record.iteration, "{place}: phases");
}

/// Equal but for the rounding of a few flows to whole nanoseconds.
pub(crate) fn near(found: Nanos, expected: u64, place: &str) {
    assert!(found.0.abs_diff(expected) <= 8, "{place}: {} ns of {expected}", found.0);
}
