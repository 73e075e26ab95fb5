//! One kernel on the Galaxy S10, worked out from its calibration with pencil and paper.

use haversack_devices::processor::Frequency;
use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::work::OperatorKind;
use haversack_devices::{load, load_stack};
use haversack_policies::{Holding, MemoryView, Policy, PolicyError};
use haversack_training::{Job, Machine, RunError, SpanKind, Trains, simulate};
use haversack_workloads::training_graph::{Node, NodeWork, Tensor};
use haversack_workloads::{Extent, Phase, Role, TrainingGraph};

use crate::common::{job, machine, policy, within};

fn tensor(name: &str, bytes: Extent, role: Role) -> Tensor {
    Tensor::new(name, bytes, role)
}

/// A node that moves 204.6 kB a sample and computes `flops` a sample on enough outputs to fill any GPU.
fn node(name: &str, phase: Phase, inputs: &[u32], outputs: &[u32], flops: u64) -> Node {
    let work = NodeWork {
        flops: Extent::per_sample(flops),
        dram: Extent::per_sample(204_600_000),
        parallelism: Extent::fixed(1 << 30),
        ..NodeWork::new(OperatorKind::Gemm)
    };
    haversack_testing::node(name, phase, inputs, outputs, work)
}

fn one_kernel(flops: u64) -> TrainingGraph {
    TrainingGraph {
        name: "one".to_owned(),
        tensors: vec![
            tensor("input", Extent::per_sample(1000), Role::Input),
            tensor("output", Extent::per_sample(500), Role::Activation),
        ],
        nodes: vec![node("kernel", Phase::Forward, &[0], &[1], flops)],
    }
}

/// The Galaxy S10 with the constants of the arithmetic below, independent of later calibration.
fn by_hand() -> Machine {
    let (mut device, mut stack) = (load("galaxy-s10").unwrap(), load_stack("sage-opencl").unwrap());
    stack.set("gpu.efficiency.gemm", 0.85).unwrap();
    device.set("power.rest_of_soc", 1.73).unwrap();
    // 12 units × 48 FLOP a cycle: 404 GFLOP/s.
    device.set("gpu.clock", 404e3 / (12.0 * 48.0)).unwrap();
    Machine::new(device, stack, Trains::Either, None, Frequency::default()).unwrap()
}

#[test]
fn a_kernel_takes_its_launch_and_the_longer_of_compute_and_bytes() {
    // DRAM: 204.6 MB at 0.75 × 34.1 GB/s = 25.575 GB/s take 8 ms. Compute: 404 GFLOP/s × 0.85 for a product, all lanes
    // busy: 3.434 GFLOP take 10 ms, and 0.3434 GFLOP take 1 ms. A launch is 60 µs.
    for (flops, busy) in [(3_434_000_000, 10_000_000), (343_400_000, 8_000_000)] {
        let graph = one_kernel(flops);
        let record = simulate(&by_hand(), &job(&graph, 1), policy("original").as_mut()).unwrap();
        assert!(record.iteration.0.abs_diff(60_000 + busy) <= 1, "{}", record.iteration.0);
        assert_eq!(record.breakdown.launch, Nanos(60_000));
        assert!(record.breakdown.parts().contains(&(OperatorKind::Gemm.name(), record.iteration - Nanos(60_000))));
        assert_eq!((record.forward, record.backward, record.update), (record.iteration, Nanos::ZERO, Nanos::ZERO));
        // 1,000 B of samples and 500 B of output; the growth is the output.
        assert_eq!((record.peak_memory, record.peak_growth), (Bytes(1500), Bytes(500)));
    }
}

#[test]
fn a_kernel_is_bound_by_the_longer_of_compute_and_bytes() {
    // As above: 10 ms of arithmetic hide 8 ms of DRAM, and 8 ms of DRAM hide 1 ms of arithmetic; the launch hides
    // nothing.
    for (flops, busy, bound) in [(3_434_000_000, 10_000_000, "arithmetic"), (343_400_000, 8_000_000, "dram")] {
        let graph = one_kernel(flops);
        let record = simulate(&by_hand(), &job(&graph, 1), policy("original").as_mut()).unwrap();
        for (name, time) in record.bound_by.parts() {
            let expected = if name == bound {
                busy
            } else if name == "launches" {
                60_000
            } else {
                0
            };
            assert!(time.0.abs_diff(expected) <= 1, "{flops}: {time} of {name}, not {expected}");
        }
        let [operator] = record.operators.as_slice() else { panic!("{:?}", record.operators) };
        assert_eq!((operator.node, operator.times, operator.time), (0, 1, record.iteration));
        assert_eq!((operator.bound_by, operator.bound_by.longest()), (record.bound_by, bound));
    }
}

#[test]
fn a_core_is_bound_by_arithmetic_by_dram_or_by_its_caches() {
    let (mut device, mut stack) = (load("server-core").unwrap(), load_stack("pytorch-cpu").unwrap());
    for (name, value) in [("frequency", 4.0), ("fp32_rate", 64.0), ("dram_bandwidth", 15.0), ("l3_rate", 16.0)] {
        device.set(&format!("cpu.0.{name}"), value).unwrap();
    }
    stack.set("cpu.efficiency.gemm", 0.5).unwrap();
    stack.set("cpu.operator_overhead", 16.0).unwrap();
    let machine = Machine::new(device, stack, Trains::Either, None, Frequency::default()).unwrap();
    // 64 FLOP a cycle at 4 GHz and half of it: 128 GFLOP/s, so 2.56 GFLOP take 20 ms and 128 MFLOP 1 ms. 204.6 MB are
    // more than the 32 MiB of L3 and take 13.64 ms at 15 GB/s. The framework's work is 16 µs.
    for (flops, busy, bound) in [(2_560_000_000, 20_000_000, "arithmetic"), (128_000_000, 13_640_000, "dram")] {
        let record = simulate(&machine, &job(&one_kernel(flops), 1), policy("original").as_mut()).unwrap();
        for (name, time) in record.bound_by.parts() {
            let expected = if name == bound {
                busy
            } else if name == "launches" {
                16_000
            } else {
                0
            };
            assert!(time.0.abs_diff(expected) <= 1, "{flops}: {time} of {name}, not {expected}");
        }
    }
    // 20.46 MB fit in L3, which gives 16 B a cycle: 319.7 µs for 128 kFLOP that take 1 µs.
    let mut graph = one_kernel(128_000);
    graph.nodes[0].work.dram = Extent::per_sample(20_460_000);
    let record = simulate(&machine, &job(&graph, 1), policy("original").as_mut()).unwrap();
    assert!(record.bound_by.caches.0.abs_diff(319_688) <= 1, "{:?}", record.bound_by);
}

#[test]
fn energy_is_power_times_time() {
    let graph = one_kernel(3_434_000_000);
    let record = simulate(&by_hand(), &job(&graph, 2), policy("original").as_mut()).unwrap();
    // Two samples: 20 ms busy after a launch of 60 µs. The GPU draws 5 W for 20 ms = 0.1 J and 0.1 W while it is
    // launched, 6 µJ; the rest of the chip 1.73 W over 20.06 ms = 34.70 mJ; DRAM 80 pJ for each of 409.2 MB = 32.736
    // mJ.
    assert!(record.iteration.0.abs_diff(20_060_000) <= 2, "{}", record.iteration.0);
    let expected = 0.1 + 6e-6 + 1.73 * 0.020_06 + 409.2e6 * 80e-12;
    assert!((record.energy.0 / expected - 1.0).abs() < 1e-6, "{:?} J of {expected}", record.energy);
}

/// Drops every saved tensor.
struct DropsAll;

impl Policy for DropsAll {
    fn hold(&mut self, _: u32, _: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        Ok(Holding::Rematerialise)
    }
}

/// a → b → c in forward; backward reads b, then a.
fn chain() -> TrainingGraph {
    let activation = |name: &str, bytes: u64| tensor(name, Extent::per_sample(bytes), Role::Activation);
    TrainingGraph {
        name: "chain".to_owned(),
        tensors: vec![
            tensor("input", Extent::per_sample(8), Role::Input),
            activation("a", 100),
            activation("b", 10),
            activation("c", 1),
            tensor("db", Extent::per_sample(10), Role::Gradient),
            tensor("da", Extent::per_sample(100), Role::Gradient),
        ],
        nodes: vec![
            node("a", Phase::Forward, &[0], &[1], 1),
            node("b", Phase::Forward, &[1], &[2], 1),
            node("c", Phase::Forward, &[2], &[3], 1),
            node("db", Phase::Backward, &[2], &[4], 1),
            node("da", Phase::Backward, &[4, 1], &[5], 1),
        ],
    }
}

#[test]
fn what_was_dropped_is_computed_again_from_what_is_left() {
    let graph = chain();
    let record = simulate(&machine(), &job(&graph, 3), &mut DropsAll).unwrap();
    let order: Vec<(u32, bool)> =
        record.timeline.as_ref().unwrap().spans.iter().map(|s| (s.node, s.kind == SpanKind::Recomputed)).collect();
    // b is dropped after c; db needs b, and for it a: both again. a is used later and stays.
    assert_eq!(order, [(0, false), (1, false), (2, false), (0, true), (1, true), (3, false), (4, false)]);
    assert_eq!(record.recomputed, 2);
    // Each node moves 3 × 204.6 MB: 24 ms after a launch of 60 µs; two of seven are recomputation.
    assert!(record.breakdown.recompute.0.abs_diff(2 * 24_060_000) <= 4, "{}", record.breakdown.recompute);
    assert!((record.recompute_share() - 2.0 / 7.0).abs() < 1e-6);
    assert!((record.samples_per_second() - 3.0 / (7.0 * 0.024_06)).abs() < 1e-3);
    // At the peak the samples, a, db and da are resident: 3 × (8 + 100 + 10 + 100) B.
    assert_eq!(record.peak_memory, Bytes(654));
}

#[test]
fn a_chain_needs_what_its_largest_step_holds() {
    let graph = chain();
    for (budget, works) in [(654, true), (653, false)] {
        for id in ["original", "dgc"] {
            let result = simulate(&machine(), &within(&graph, 3, Bytes(budget)), policy(id).as_mut());
            assert_eq!(result.is_ok(), works, "{id} {budget}");
        }
    }
    // With one sample at a time a third of it is enough: 218 B.
    let record = simulate(&machine(), &within(&graph, 3, Bytes(218)), policy("dga").as_mut()).unwrap();
    assert_eq!(record.micro_batches, [1, 1, 1]);
    assert_eq!(record.peak_memory, Bytes(218));
}

#[test]
fn a_graph_that_reads_what_nobody_wrote_is_named() {
    let mut graph = chain();
    graph.nodes.remove(0);
    let error = simulate(&machine(), &Job { ..job(&graph, 1) }, policy("original").as_mut()).unwrap_err();
    assert_eq!(error, RunError::Unwritten { node: "b".to_owned(), tensor: "a".to_owned() });
}
