//! Large networks drawn from a fixed sequence, and the phone that they run on; for tests and benches.

use haversack_devices::processor::{CoreSelection, Frequency};
use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::work::{OperatorKind, Precision};
use haversack_devices::{load, load_stack};
use haversack_policies::Policy;
use haversack_policies::original::Original;
use haversack_training::{AllocatorKind, Budgets, Job, Machine, Observe, Record, RunError, Trains, Wall, simulate};
use haversack_workloads::training_graph::{Element, Need, Node, NodeWork, Saved, Tensor};
use haversack_workloads::{Extent, Phase, Role, TensorId, TrainingGraph};

/// Samples of the mini-batch.
pub(crate) const BATCH: u64 = 8;

/// A chain of operators of which every `shortcut`-th also reads the tensor made `shortcut` operators earlier, and their
/// backward: about `operators` in all. Sizes and times differ from one to the next.
pub(crate) fn network(operators: usize, shortcut: usize) -> TrainingGraph {
    let layers = operators / 2;
    let mut seed = 7_u64;
    let mut below = |limit: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % limit
    };
    let tensor =
        |name: String, bytes, role| Tensor { name, bytes: Extent::per_sample(bytes), role, element: Element::Float };
    let mut tensors = vec![tensor("input".to_owned(), 10_000, Role::Input)];
    let mut nodes = Vec::new();
    let mut sizes = vec![10_000];
    let inputs = |layer: usize| {
        let mut read = vec![layer as TensorId];
        if shortcut > 0 && layer >= shortcut && layer.is_multiple_of(shortcut) {
            read.push((layer - shortcut) as TensorId);
        }
        read
    };
    for layer in 0..layers {
        let bytes = 4 * (1_000 + below(9_000));
        sizes.push(bytes);
        tensors.push(tensor(format!("a{layer}"), bytes, Role::Activation));
        let made = [layer as TensorId + 1];
        nodes.push(node(format!("f{layer}"), Phase::Forward, inputs(layer), &made, 1 + below(400), below(4) == 0));
    }
    let mut gradient = None;
    for layer in (0..layers).rev() {
        let made = [tensors.len() as TensorId];
        tensors.push(tensor(format!("g{layer}"), sizes[layer], Role::Gradient));
        let mut read = inputs(layer);
        read.extend(gradient);
        nodes.push(node(format!("b{layer}"), Phase::Backward, read, &made, 1 + below(800), false));
        gradient = Some(made[0]);
    }
    TrainingGraph { name: "drawn".to_owned(), tensors, nodes }
}

/// A node that moves `kilobytes` a sample.
fn node(name: String, phase: Phase, inputs: Vec<TensorId>, outputs: &[TensorId], kilobytes: u64, layout: bool) -> Node {
    let need = if phase == Phase::Backward { Need::Values } else { Need::Shape };
    let saved = inputs.iter().map(|&tensor| Saved { tensor, need, by_module: true }).collect();
    let work = NodeWork {
        dram: Extent::per_sample(kilobytes * 1000),
        parallelism: Extent::fixed(1 << 30),
        columns: 64,
        ..NodeWork::new(if layout { OperatorKind::Layout } else { OperatorKind::ElementWise })
    };
    let outputs = outputs.to_vec();
    Node { inputs, outputs, saved, ..Node::new(name, phase, work) }
}

/// Four big cores of a phone with a codec and flash.
pub(crate) fn phone() -> Machine {
    let (device, stack) = (load("galaxy-s22").unwrap(), load_stack("mnn-2").unwrap());
    let cores: CoreSelection = "big:3".parse().unwrap();
    Machine::new(device, stack, Trains::Cpu, Some(cores), Frequency::default()).unwrap()
}

/// The shortage of memory.
#[allow(dead_code, reason = "the bench needs one of them")]
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pressure {
    /// A percentage of the memory that the network needs with everything kept.
    Planned(u64),
    /// The same from the first nanosecond on, unknown in advance.
    Sudden(u64),
}

/// Iterations of `graph` under pressure.
#[allow(dead_code, reason = "a bench needs the networks alone")]
pub(crate) fn run(
    machine: &Machine,
    graph: &TrainingGraph,
    pressure: Pressure,
    iterations: u32,
    policy: &mut dyn Policy,
) -> Result<Record, RunError> {
    let mut job = Job {
        graph,
        batch: BATCH,
        precision: Precision::Fp32,
        budgets: Budgets::default(),
        allocator: AllocatorKind::Exact,
        iterations,
        ambient: None,
        phone: None,
        observe: Observe::default(),
        measured: &[],
        factors: &[],
    };
    let whole = simulate(machine, &Job { iterations: 1, ..job.clone() }, &mut Original)?.peak_memory;
    let share = |percent: u64| Bytes(whole.0 / 100 * percent);
    match pressure {
        Pressure::Planned(percent) => job.budgets.memory = Some(share(percent)),
        Pressure::Sudden(percent) => {
            job.budgets.memory = Some(whole);
            job.budgets.walls = vec![Wall { at: Nanos(1), memory: share(percent) }];
        }
    }
    simulate(machine, &job, policy)
}
