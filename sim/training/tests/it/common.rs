//! Shared by the executor's tests: a phone, graphs of built-in models, runs.

use haversack_devices::processor::Frequency;
use haversack_devices::units::Bytes;
use haversack_devices::{load, load_stack};
use haversack_policies::{Policy, registry};
use haversack_training::{Budgets, Job, Machine, Observe, Record, RunError, Trains, simulate};
use haversack_workloads::{Phase, Role, TrainingGraph};

pub(crate) fn machine() -> Machine {
    on("galaxy-s10", "sage-opencl")
}

pub(crate) fn on(device: &str, stack: &str) -> Machine {
    Machine::new(load(device).unwrap(), load_stack(stack).unwrap(), Trains::Either, None, Frequency::default()).unwrap()
}

pub(crate) fn policy(id: &str) -> Box<dyn Policy> {
    registry::build(id, &[]).unwrap()
}

/// `batch` samples of `graph` without budgets, observed.
pub(crate) fn job(graph: &TrainingGraph, batch: u64) -> Job<'_> {
    Job {
        observe: Observe { timeline: true, peak: true, operators: true, ..Observe::default() },
        ..Job::plain(graph, batch)
    }
}

pub(crate) fn within(graph: &TrainingGraph, batch: u64, memory: Bytes) -> Job<'_> {
    Job { budgets: Budgets { memory: Some(memory), ..Budgets::default() }, ..job(graph, batch) }
}

pub(crate) fn run(job: &Job<'_>, id: &str) -> Result<Record, RunError> {
    simulate(&machine(), job, policy(id).as_mut())
}

pub(crate) fn share(of: Bytes, percent: u64) -> Bytes {
    Bytes(of.0 * percent / 100)
}

/// The peak of `graph` if everything is kept until its last use, computed from the graph only.
pub(crate) fn liveness_peak(graph: &TrainingGraph, batch: u64) -> (u64, u64) {
    let size = |tensor: u32| graph.tensor(tensor).bytes.at(batch);
    let mut last = vec![None; graph.tensors.len()];
    for (id, node) in graph.nodes.iter().enumerate() {
        for &tensor in node.inputs.iter().chain(&node.outputs).chain(&node.releases) {
            last[tensor as usize] = Some(id);
        }
    }
    let starts = |role: Role| role.is_state() || matches!(role, Role::Input | Role::Target);
    let mut live: Vec<bool> = graph.tensors.iter().map(|tensor| starts(tensor.role)).collect();
    let sum = |live: &[bool]| (0..).zip(live).filter(|(_, is)| **is).map(|(id, _)| size(id)).sum::<u64>();
    let before = sum(&live);
    let (mut now, mut peak) = (before, before);
    for (id, node) in graph.nodes.iter().enumerate() {
        // Samples leave with their part, before the update.
        if node.phase == Phase::Update {
            for (tensor, is) in (0..).zip(&mut live) {
                if matches!(graph.tensor(tensor).role, Role::Input | Role::Target) && *is {
                    *is = false;
                    now -= size(tensor);
                }
            }
        }
        for &output in &node.outputs {
            if !live[output as usize] {
                live[output as usize] = true;
                now += size(output);
            }
        }
        peak = peak.max(now);
        for &tensor in node.inputs.iter().chain(&node.outputs).chain(&node.releases) {
            let role = graph.tensor(tensor).role;
            if live[tensor as usize] && last[tensor as usize] == Some(id) && !starts(role) {
                live[tensor as usize] = false;
                now -= size(tensor);
            }
        }
        assert_eq!(now, if id % 97 == 0 { sum(&live) } else { now });
    }
    (peak, before)
}
