//! Quantised runs: rules that every policy keeps, and the costs of packing, worked out by hand.

use haversack_devices::processor::Frequency;
use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::work::{OperatorKind, Precision};
use haversack_devices::{load, load_stack};
use haversack_policies::quantised::{ArenaPlan, Control, Copies, Packing, Quantisation, Reach};
use haversack_policies::{
    Holding, IterationPlan, MemoryView, Policy, PolicyError, Relief, Schedule, Setting, Want, registry,
};
use haversack_testing::eager_on_cuda as eager;
use haversack_training::{
    AllocatorKind, Job, Machine, Observe, Record, RunError, Span, SpanKind, Trains, Wall, simulate,
};
use haversack_workloads::training_graph::{Need, Node, NodeWork, Saved, Tensor};
use haversack_workloads::{Extent, Phase, Role, TensorId, TrainingGraph};

use crate::common::{job, on};

fn jetson() -> Machine {
    on("jetson-agx-xavier", "pytorch-cuda")
}

fn build(id: &str, set: &[(&str, &str)]) -> Box<dyn Policy> {
    let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    registry::build(id, &set).unwrap()
}

/// Without a timeline, so that records are compared quickly.
fn plain(graph: &TrainingGraph, batch: u64) -> Job<'_> {
    Job { observe: Observe::default(), ..job(graph, batch) }
}

const POLICIES: [(&str, &[(&str, &str)]); 11] = [
    ("original", &[]),
    ("fixed8", &[]),
    ("elastictrainer", &[]),
    ("actnn", &[]),
    ("actnn", &[("bits", "8")]),
    ("daf", &[("packing", "gpu")]),
    ("daf", &[("packing", "cpu")]),
    ("daf", &[("packing", "shared")]),
    ("daf", &[("packing", "unified")]),
    ("daf", &[("bits", "32")]),
    ("daf", &[("control", "own-kernels"), ("bits", "4"), ("step_mb", "1"), ("page_kib", "4")]),
];

#[test]
fn every_policy_keeps_the_books() {
    let machine = jetson();
    for (model, batch) in [("lenet5", 32), ("resnet18-cifar", 4), ("bert-small-s64", 2)] {
        let graph = eager(model);
        for allocator in [AllocatorKind::Exact, AllocatorKind::Caching] {
            for (id, set) in POLICIES {
                let place = format!("{model} {allocator:?} {id} {set:?}");
                let once = Job { allocator, ..plain(&graph, batch) };
                let twice = Job { iterations: 2, ..once.clone() };
                let run = |job: &Job<'_>| simulate(&machine, job, build(id, set).as_mut()).unwrap();
                let (first, second) = (run(&once), run(&twice));
                for record in [&first, &second] {
                    assert_eq!(record.breakdown.total(), record.iteration, "{place}: breakdown");
                    assert_eq!(record.forward + record.backward + record.update, record.iteration, "{place}: phases");
                    assert!(record.energy.0 > 0.0, "{place}: energy");
                    assert_eq!(record.micro_batches, [batch], "{place}");
                    assert!(record.reserved >= record.peak_memory, "{place}: reserved");
                    assert_eq!((record.recomputed, record.given_up), (0, 0), "{place}");
                }
                // Nothing but state is left between two iterations: the second starts from where the first did and gets
                // as far. It only saves the arena's system calls.
                // A caching allocator may find a larger block in its cache, of which it does not split off the last
                // MiB.
                let close = |one: Bytes, other: Bytes| {
                    let kept = if allocator == AllocatorKind::Caching { 1 << 20 } else { 0 };
                    one.0.abs_diff(other.0) <= kept
                };
                assert!(close(first.peak_growth, second.peak_growth), "{place}: growth");
                assert!(close(first.peak_memory, second.peak_memory), "{place}: peak");
                assert_eq!(first.peak_saved, second.peak_saved, "{place}: saved");
                assert_eq!(second.breakdown.paging, Nanos::ZERO, "{place}: the arena is there");
                assert_eq!(first.iteration - first.breakdown.paging, second.iteration, "{place}: time");
                // The same again, to the last digit.
                assert_eq!(format!("{first:?}"), format!("{:?}", run(&once)), "{place}: twice");
                let quantises = matches!(id, "actnn" | "daf") && !set.contains(&("bits", "32"));
                assert_eq!(first.breakdown.packing > Nanos::ZERO, quantises, "{place}: packing");
                assert_eq!(first.breakdown.control > Nanos::ZERO, quantises, "{place}: control");
                // Tensors that stay whole lie in the arena too.
                let pages = id == "daf";
                assert_eq!(first.breakdown.paging > Nanos::ZERO, pages, "{place}: paging");
                if let Some(arena) = first.arena.filter(|_| pages) {
                    assert_eq!(arena.reserved, arena.stored + arena.internal + arena.free, "{place}: arena");
                    assert!(arena.stored <= first.peak_saved, "{place}: {arena:?}");
                }
            }
        }
    }
}

#[test]
fn before_an_iteration_there_are_state_samples_and_the_librarys_workspace() {
    let machine = jetson();
    let graph = eager("resnet18-cifar");
    let starts = |role: Role| role.is_state() || matches!(role, Role::Input | Role::Target);
    let before = graph.bytes_of(starts).at(4) + machine.library_workspace().0;
    for (id, set) in POLICIES {
        let job = Job { iterations: 3, ..plain(&graph, 4) };
        let record = simulate(&machine, &job, build(id, set).as_mut()).unwrap();
        // fixed8 keeps its weights in a quarter of the bytes.
        let less = if id == "fixed8" {
            graph.bytes_of(|role| matches!(role, Role::Parameter { .. })).at(4) * 3 / 4
        } else {
            0
        };
        assert_eq!((record.peak_memory - record.peak_growth).0, before - less, "{id} {set:?}");
    }
}

#[test]
fn daf_stores_lenet5_in_what_its_rules_say() {
    let graph = eager("lenet5");
    // Four samples. Values: 4 × 1,176 = 4,704 of the first pool, 4 × 400 = 1,600 of the second, 480, 336 and 4 × 62 =
    // 248 log-probabilities; groups of 256: 19, 7, 2, 2 and 1, of four bytes. Signs: 4 × (4,704 + 1,600 + 120 + 84)
    // bits = 3,254 B. Positions: 4,704 + 1,600 B. The loss's total weight of 4 B is whole.
    let values: [u64; 5] = [4_704, 1_600, 480, 336, 248];
    // Codes lie in words of 32 bits.
    let words = |bits: u64| values.map(|count| count.div_ceil(32 / bits) * 4).iter().sum::<u64>();
    let aside = 3_254 + 6_304;
    for (bits, codes, groups) in
        [("1", words(1), 31), ("2", words(2), 31), ("4", words(4), 31), ("8", words(8), 31), ("16", words(16), 0)]
    {
        for allocator in [AllocatorKind::Exact, AllocatorKind::Caching] {
            let job = Job { allocator, ..plain(&graph, 4) };
            let record = simulate(&jetson(), &job, build("daf", &[("bits", bits)]).as_mut()).unwrap();
            assert_eq!(record.peak_saved, Bytes(codes + 4 * groups + aside + 4), "{bits} bits");
            // All of it but the total weight lies in the arena, a step of 100 MB in whole pages of 16 KiB.
            let arena = record.arena.unwrap();
            assert_eq!(arena.stored, Bytes(codes + 4 * groups + aside), "{bits} bits");
            assert_eq!(arena.reserved, Bytes(100_000_000 / 16_384 * 16_384));
        }
    }
}

#[test]
fn more_bits_take_more_memory_and_modules_take_more_than_daf() {
    let graph = eager("resnet18-cifar");
    let saved = |id: &str, set: &[(&str, &str)]| {
        simulate(&jetson(), &plain(&graph, 4), build(id, set).as_mut()).unwrap().peak_saved
    };
    let daf: Vec<Bytes> = ["1", "2", "4", "8", "16", "32"].map(|bits| saved("daf", &[("bits", bits)])).to_vec();
    assert!(daf.is_sorted() && daf.windows(2).all(|pair| pair[0] < pair[1]), "{daf:?}");
    // With 32 bits everything is whole: the tensors that forward saves for four samples.
    let whole: u64 = graph.saved().iter().map(|&tensor| graph.tensor(tensor).bytes.at(4)).sum();
    assert_eq!(daf[5], Bytes(whole));
    assert_eq!(saved("original", &[]), Bytes(whole));
    // ActNN's shortcuts keep separate copies.
    assert!(saved("actnn", &[]) >= daf[1]);
    assert!(saved("actnn", &[]) < daf[2]);
}

/// DRAM of 5 GB/s, packing kernels that reach half of it, launches of 10 µs plus 15 µs of the framework, a CPU that
/// streams as fast as DRAM allows.
fn round() -> Machine {
    let (mut device, mut stack) = (load("jetson-agx-xavier").unwrap(), load_stack("pytorch-cuda").unwrap());
    device.set("dram.peak", 10.0).unwrap();
    device.set("dram.achievable", 0.5).unwrap();
    device.set("gpu.launch", 10.0).unwrap();
    stack.set("gpu.operator_overhead", 15.0).unwrap();
    stack.set("gpu.launch_factor", 1.0).unwrap();
    stack.set("gpu.packing_efficiency", 0.5).unwrap();
    stack.set("gpu.system_allocation", 1.0).unwrap();
    // Kernels one after the other, each after its launch: a library's host is ahead of them.
    stack.constants.gpu.as_mut().unwrap().library = None;
    Machine::new(device, stack, Trains::Either, None, Frequency::default()).unwrap()
}

fn tensor(name: &str, bytes: u64, role: Role) -> Tensor {
    Tensor::new(name, Extent::fixed(bytes), role)
}

/// A product that moves `dram` bytes and computes next to nothing.
fn node(name: &str, phase: Phase, inputs: &[u32], outputs: &[u32], dram: u64) -> Node {
    let work = NodeWork {
        flops: Extent::fixed(1),
        dram: Extent::fixed(dram),
        parallelism: Extent::fixed(1 << 30),
        columns: 128,
        ..NodeWork::new(OperatorKind::Gemm)
    };
    haversack_testing::node(name, phase, inputs, outputs, work)
}

/// `make` makes a million values, `rest` moves 45 MB, `gradient` reads the values and 5 MB in all.
fn one_tensor() -> TrainingGraph {
    let mut gradient = node("gradient", Phase::Backward, &[1], &[3], 5_000_000);
    gradient.saved = vec![Saved { tensor: 1, need: Need::Values, by_module: true }];
    TrainingGraph {
        name: "one tensor".to_owned(),
        tensors: vec![
            tensor("input", 8, Role::Input),
            tensor("x", 4_000_000, Role::Activation),
            tensor("y", 400, Role::Activation),
            tensor("dw", 400, Role::ParameterGradient),
        ],
        nodes: vec![
            node("make", Phase::Forward, &[0], &[1], 5_000_000),
            node("rest", Phase::Forward, &[0], &[2], 45_000_000),
            gradient,
        ],
    }
}

fn near(found: Nanos, expected: f64, place: &str) {
    // Each flow rounds to a nanosecond.
    assert!((found.0 as f64 - expected).abs() <= 8.0, "{place}: {} ns of {expected}", found.0);
}

#[test]
fn one_tensor_is_packed_and_unpacked_by_hand() {
    let graph = one_tensor();
    let machine = round();
    let run = |packing: &str| -> Record {
        let mut policy = build("daf", &[("bits", "4"), ("packing", packing)]);
        simulate(&machine, &job(&graph, 1), policy.as_mut()).unwrap()
    };
    let without = simulate(&machine, &job(&graph, 1), build("original", &[]).as_mut()).unwrap();
    // 5, 45 and 5 MB at 5 GB/s: 1, 9 and 1 ms, and three launches of 25 µs.
    near(without.iteration, 11_075_000.0, "original");
    // 4 MB of values and 0.5 MB of codes at 2.5 GB/s: 1.8 ms, and a launch of 25 µs; once each way.
    let gpu = run("gpu");
    near(gpu.breakdown.packing, 2.0 * 1_825_000.0, "gpu");
    // One system call for the arena.
    assert_eq!(gpu.breakdown.paging, Nanos(1_000_000));
    let control = gpu.breakdown.control.0 as f64;
    assert!(control > 0.0);
    near(gpu.iteration, 11_075_000.0 + 3_650_000.0 + 1_000_000.0 + control, "gpu");
    // The CPU packs while `rest` runs: through its launch of 25 µs alone at 5 GB/s, 125 kB; then both at 2.5 GB/s until
    // the other 4.375 MB are packed, 1.75 ms, in which `rest` moves as much instead of 8.75 MB: 0.875 ms more.
    let cpu = run("cpu");
    // Unpacking 4.5 MB at 5 GB/s: 0.9 ms that the GPU waits.
    near(cpu.breakdown.packing, 900_000.0, "cpu");
    near(cpu.iteration, 11_075_000.0 + 875_000.0 + 900_000.0 + 1_000_000.0 + control, "cpu");
    // The GPU unpacks the same in a separate kernel: a row of 64 of a tile lies in all 16 words of a block of 128, of
    // which its codes would fill 8. 4 MB of values and 1 MB of words, 2 ms.
    let shared = run("shared");
    near(shared.breakdown.packing, 2_025_000.0, "shared");
    near(shared.iteration, 11_075_000.0 + 875_000.0 + 2_025_000.0 + 1_000_000.0 + control, "shared");
    // Inside the kernel: 128 columns are two tiles of 64, so that 1.8 ms are spent twice, without a launch; `gradient`
    // does not read 4 of its 5 MB and takes 0.2 ms instead of 1 ms.
    let unified = run("unified");
    near(unified.breakdown.packing, 3_600_000.0, "unified");
    near(unified.iteration, 11_075_000.0 + 875_000.0 + 3_600_000.0 - 800_000.0 + 1_000_000.0 + control, "unified");
}

#[test]
fn what_is_stored_and_what_is_in_flight_by_hand() {
    let graph = one_tensor();
    let machine = round();
    for packing in ["gpu", "cpu", "shared", "unified"] {
        let mut policy = build("daf", &[("bits", "4"), ("packing", packing)]);
        let record = simulate(&machine, &job(&graph, 1), policy.as_mut()).unwrap();
        // 500,000 B of codes and ⌈1,000,000 / 256⌉ = 3,907 groups of 4 B.
        assert_eq!(record.peak_saved, Bytes(515_628), "{packing}");
        // The CPU writes the codes, or the unpacked map, to a separate buffer first.
        let staging = match packing {
            "gpu" => 0,
            "cpu" => 4_000_000,
            _ => 500_000,
        };
        assert_eq!(record.peak_staging, Bytes(staging), "{packing}");
        // 515,628 B lie in 32 pages of 16 KiB: 524,288 B. In addition x is whole while the CPU packs it and `rest`
        // makes the 400 B of y, or while a kernel unpacks it and `gradient` makes as much.
        assert_eq!(record.peak_growth, Bytes(4_000_000 + 524_288 + 400), "{packing}");
    }
}

#[test]
fn the_cpu_packs_beside_the_gpu_and_takes_its_bandwidth() {
    let machine = jetson();
    for (model, batch) in [("resnet18-cifar", 16), ("vgg16-cifar", 8)] {
        let graph = eager(model);
        let time = |id: &str, set: &[(&str, &str)]| {
            let job = Job { iterations: 2, ..plain(&graph, batch) };
            simulate(&machine, &job, build(id, set).as_mut()).unwrap().iteration
        };
        let without = time("original", &[]);
        let [gpu, cpu, shared] = ["gpu", "cpu", "shared"].map(|packing| time("daf", &[("packing", packing)]));
        assert!(without < cpu, "{model}: {without} {cpu}");
        assert!(cpu <= gpu, "{model}: {cpu} {gpu}");
        assert!(without < shared && shared < gpu, "{model}: {without} {shared} {gpu}");
    }
}

const RULES: Quantisation = Quantisation {
    reach: Reach::Everything,
    copies: Copies::PerTensor,
    redraw_masks: true,
    writes_signs: true,
    control: Control::Fused,
    packing: Packing::Gpu,
    rounding: haversack_policies::quantised::Rounding::Nearest,
    arena: None,
};

/// Stores one tensor in one form, keeps everything else whole, and answers a shortage once.
struct Holds {
    rules: Option<Quantisation>,
    tensor: TensorId,
    how: Holding,
    reliefs: Vec<Relief>,
}

impl Holds {
    fn new(rules: Option<Quantisation>, tensor: TensorId, how: Holding) -> Self {
        Self { rules, tensor, how, reliefs: Vec::new() }
    }
}

impl Policy for Holds {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        Ok(Schedule { quantisation: self.rules, ..Schedule::plain(setting.batch) })
    }

    fn hold(&mut self, tensor: TensorId, _: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        Ok(if tensor == self.tensor { self.how } else { Holding::Keep })
    }

    fn relieve(&mut self, _: Want, _: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        Ok(std::mem::take(&mut self.reliefs))
    }
}

/// The spans of the graph's nodes, without those of packing and the like between them.
fn scheduled(record: &Record) -> Vec<Span> {
    let spans = &record.timeline.as_ref().unwrap().spans;
    spans.iter().filter(|span| span.kind == SpanKind::Scheduled).copied().collect()
}

fn named(graph: &TrainingGraph, name: &str, role: Role) -> TensorId {
    graph.tensors.iter().position(|tensor| tensor.name == name && tensor.role == role).unwrap() as TensorId
}

#[test]
fn giving_up_a_tensor_removes_its_weight_gradient_and_keeps_its_signs() {
    let graph = eager("resnet18-cifar");
    // The input of layer1.0's second convolution lies over its first normalisation and ends in a ReLU.
    let tensor = named(&graph, "layer1.0.bn1", Role::Activation);
    let whole: u64 = graph.saved().iter().map(|&tensor| graph.tensor(tensor).bytes.at(4)).sum();
    let own = graph.tensor(tensor).bytes.at(4);
    let arena = Some(ArenaPlan { page: Bytes(4096), step: Bytes(65_536) });
    for rules in [RULES, Quantisation { arena, ..RULES }, Quantisation { packing: Packing::Cpu, ..RULES }] {
        let record = simulate(&jetson(), &job(&graph, 4), &mut Holds::new(Some(rules), tensor, Holding::Skip)).unwrap();
        assert_eq!(record.given_up, 1);
        let ran: Vec<u32> = scheduled(&record).iter().map(|span| span.node).collect();
        let missing: Vec<&str> =
            (0..).zip(&graph.nodes).filter(|(id, _)| !ran.contains(id)).map(|(_, node)| node.name.as_str()).collect();
        assert_eq!(missing, ["layer1.0.conv2.weight_gradient", "layer1.0.conv2.weight.update"]);
        assert_eq!(ran.len(), graph.nodes.len() - 2);
        assert_eq!(record.recomputed, 0);
        // A bit for each of four bytes.
        assert_eq!(record.peak_saved, Bytes(whole - own + own / 32));
        // Tensors that are given up are neither packed nor unpacked.
        assert_eq!((record.peak_staging, record.breakdown.packing), (Bytes::ZERO, Nanos::ZERO), "{:?}", rules.packing);
        assert_eq!(record.breakdown.total(), record.iteration);
    }
}

#[test]
fn what_an_input_gradient_reads_cannot_be_given_up() {
    let graph = eager("resnet18-cifar");
    let tensor = named(&graph, "layer1.0.conv1", Role::Activation);
    for rules in [None, Some(RULES)] {
        let error = simulate(&jetson(), &plain(&graph, 4), &mut Holds::new(rules, tensor, Holding::Skip)).unwrap_err();
        let RunError::IllegalAction { action, .. } = &error else { panic!("{error}") };
        assert!(action.contains("layer1.0.conv1") && action.contains("layer1.0.bn1"), "{action}");
    }
}

#[test]
fn to_quantise_without_rules_is_an_error() {
    let graph = eager("lenet5");
    let tensor = named(&graph, "pool1", Role::Activation);
    let error =
        simulate(&jetson(), &plain(&graph, 4), &mut Holds::new(None, tensor, Holding::Quantise(2))).unwrap_err();
    let RunError::IllegalAction { action, .. } = &error else { panic!("{error}") };
    assert_eq!(action, "quantise a tensor");
}

#[test]
fn bits_that_do_not_exist_are_an_error() {
    let graph = eager("lenet5");
    let tensor = named(&graph, "pool1", Role::Activation);
    for bits in [0, 9, 15, 17, 31, 33, 64, 255] {
        let result =
            simulate(&jetson(), &plain(&graph, 4), &mut Holds::new(Some(RULES), tensor, Holding::Quantise(bits)));
        assert!(matches!(result, Err(RunError::IllegalAction { .. })), "{bits}: {:?}", result.map(|r| r.peak_saved));
    }
    for bits in [1, 2, 3, 4, 5, 6, 7, 8, 16, 32] {
        let result =
            simulate(&jetson(), &plain(&graph, 4), &mut Holds::new(Some(RULES), tensor, Holding::Quantise(bits)));
        assert!(result.is_ok(), "{bits}");
    }
}

#[test]
fn reliefs_that_cannot_be_carried_out_are_errors() {
    let graph = eager("lenet5");
    let pool = named(&graph, "pool1", Role::Activation);
    let arena = ArenaPlan { page: Bytes(512), step: Bytes(512) };
    for (name, relief) in [
        ("an unknown tensor", Relief::Requantise(999_999, 1)),
        ("an unknown tensor", Relief::Skip(999_999)),
        ("more bits", Relief::Requantise(pool, 16)),
        ("bits beyond all", Relief::Requantise(pool, 250)),
        ("a weight", Relief::Skip(named(&graph, "conv1.weight", Role::Parameter { trainable: true }))),
    ] {
        for rules in [RULES, Quantisation { arena: Some(arena), ..RULES }] {
            let mut policy = Holds { reliefs: vec![relief], ..Holds::new(Some(rules), pool, Holding::Quantise(4)) };
            // Once forward has ended and the tensor is stored with four bits, nothing more fits.
            let free = simulate(&jetson(), &plain(&graph, 4), &mut Holds::new(Some(rules), pool, policy.how)).unwrap();
            let mut job = plain(&graph, 4);
            job.budgets.walls = vec![Wall { at: free.forward + Nanos(1), memory: Bytes(1) }];
            let result = simulate(&jetson(), &job, &mut policy);
            let typed = matches!(result, Err(RunError::IllegalAction { .. } | RunError::Arena(_)));
            assert!(typed, "{name} {:?}: {:?}", rules.arena, result.map(|r| r.peak_memory));
        }
    }
}

/// Its values are stored with four bits under `rules`, everything else stays whole.
fn four_bits(machine: &Machine, graph: &TrainingGraph, rules: Quantisation) -> Record {
    simulate(machine, &plain(graph, 1), &mut Holds::new(Some(rules), 1, Holding::Quantise(4))).unwrap()
}

#[test]
fn the_packing_cpu_and_its_bytes_take_energy() {
    let graph = one_tensor();
    let energy = |name: &str, more: f64, packing: Packing| {
        let base = round();
        let mut device = base.device.clone();
        let value = if name == "cpu.0.power" { 1_500.0 } else { 80.0 };
        // In milliwatts, watts or picojoules a byte.
        let run = |device: haversack_devices::Device| {
            let machine = Machine::new(device, base.stack.clone(), Trains::Either, None, Frequency::default()).unwrap();
            four_bits(&machine, &graph, Quantisation { packing, ..RULES }).energy.0
        };
        device.set(name, value).unwrap();
        let before = run(device.clone());
        device.set(name, value + more).unwrap();
        run(device) - before
    };
    // Packing keeps the CPU busy for 25 µs + 1.75 ms as above, unpacking for another 0.9 ms; the GPU's packing not at
    // all.
    let [gpu, shared, cpu] =
        [Packing::Gpu, Packing::Shared, Packing::Cpu].map(|packing| energy("cpu.0.power", 1_000.0, packing));
    assert!(gpu.abs() < 1e-12 && shared > 0.0, "{gpu} {shared}");
    assert!((cpu / shared - 2.675 / 1.775).abs() < 1e-3, "{cpu} {shared}");
    // The GPU draws the same power when the CPU packs, if it works less.
    let [gpu, shared, cpu] =
        [Packing::Gpu, Packing::Shared, Packing::Cpu].map(|packing| energy("gpu.power", 10.0, packing));
    assert!(cpu > 0.0 && shared > cpu && gpu > shared, "{gpu} {shared} {cpu}");
    // Packing moves 4.5 MB each way, on either processor, in addition to the bytes of kernels and statistics; unpacking
    // the interleaved order moves 0.5 MB more.
    let [gpu, shared, cpu] =
        [Packing::Gpu, Packing::Shared, Packing::Cpu].map(|packing| energy("dram.energy", 100.0, packing));
    assert!((cpu / gpu - 1.0).abs() < 1e-6, "{gpu} {cpu}");
    assert!(((shared - gpu) / (100e-12 * 0.5e6) - 1.0).abs() < 1e-3, "{gpu} {shared}");
    assert!(gpu >= 100e-12 * 64e6, "{gpu}");
}

#[test]
fn a_profile_picks_for_each_tensor_who_packs_it() {
    // A million values by the GPU: 1.825 ms each way. Inside a product of 64 columns they are unpacked once, in 1.8 ms,
    // and the product reads 0.8 ms less; inside one of 128 columns twice. The CPU's 4.5 MB are hidden behind `rest`
    // where that computes, and take DRAM another 0.9 ms where it moves bytes all the time.
    let packing = |columns: u64, flops: u64, way: Packing| {
        let mut graph = one_tensor();
        graph.nodes[2].work.columns = columns;
        graph.nodes[1].work.flops = Extent::fixed(flops);
        four_bits(&round(), &graph, Quantisation { packing: way, ..RULES })
    };
    for (columns, flops, faster) in
        [(64, 1, Packing::Unified), (128, 1, Packing::Gpu), (128, 50_000_000_000, Packing::Unified)]
    {
        let [profiled, unified, gpu] =
            [Packing::Profiled, Packing::Unified, Packing::Gpu].map(|way| packing(columns, flops, way));
        let (expected, other) = if faster == Packing::Unified { (&unified, &gpu) } else { (&gpu, &unified) };
        assert_eq!(profiled.iteration, expected.iteration, "{columns} {flops}");
        assert!(profiled.iteration < other.iteration, "{columns} {flops}: {:?} {:?}", unified.iteration, gpu.iteration);
    }
    // Choosing per tensor beats both.
    let graph = eager("resnet18-cifar");
    let time = |way: &str| {
        let mut policy = build("daf", &[("packing", way)]);
        simulate(&jetson(), &plain(&graph, 128), policy.as_mut()).unwrap().breakdown.packing
    };
    assert!(time("profiled") < time("unified").min(time("gpu")));
}

#[test]
fn every_modules_copy_is_measured_and_packed() {
    let mut graph = one_tensor();
    let mut second = graph.nodes[2].clone();
    second.name = "second".to_owned();
    second.outputs = vec![4];
    graph.tensors.push(tensor("dv", 400, Role::ParameterGradient));
    graph.nodes.push(second);
    let run = |copies, control| four_bits(&round(), &graph, Quantisation { copies, control, ..RULES });
    // Each reader unpacks: 2 × 1.825 ms; one copy or two are packed.
    let (one, two) = (run(Copies::PerTensor, Control::OwnKernels), run(Copies::PerModule, Control::OwnKernels));
    near(one.breakdown.packing, 3.0 * 1_825_000.0, "one copy");
    near(two.breakdown.packing, 4.0 * 1_825_000.0, "two copies");
    assert_eq!(two.peak_saved.0, 2 * one.peak_saved.0);
    // Modules compute statistics separately; in the kernel that makes the tensor they are computed once.
    near(two.breakdown.control, 2.0 * one.breakdown.control.0 as f64, "own kernels");
    let fused = [Copies::PerTensor, Copies::PerModule].map(|copies| run(copies, Control::Fused).breakdown.control);
    assert_eq!(fused[0], fused[1]);
    assert!(fused[0] < one.breakdown.control, "{fused:?}");
}

#[test]
fn every_block_of_an_arena_is_a_system_call() {
    // 515,628 B are 126 pages of 4 KiB, eight blocks of 16: a call of 1 ms each.
    let arena = Some(ArenaPlan { page: Bytes(4096), step: Bytes(65_536) });
    let record = four_bits(&round(), &one_tensor(), Quantisation { arena, ..RULES });
    assert_eq!(record.breakdown.paging, Nanos(8_000_000));
    assert_eq!(record.arena.unwrap().reserved, Bytes(8 * 65_536));
    assert_eq!(record.arena.unwrap().internal, Bytes(126 * 4096 - 515_628));
}

#[test]
fn fewer_bits_under_a_wall_read_the_old_and_write_the_new() {
    let graph = one_tensor();
    let machine = round();
    let rules = Quantisation { packing: Packing::Unified, ..RULES };
    let mut policy =
        Holds { reliefs: vec![Relief::Requantise(1, 4)], ..Holds::new(Some(rules), 1, Holding::Quantise(8)) };
    let mut job = job(&graph, 1);
    // After `rest` the workspace, 8 B of samples and 1,015,628 B of eight bits are in memory; 600,000 B fit 515,628 of
    // four.
    let memory = machine.library_workspace() + Bytes(600_000);
    job.budgets.walls = vec![Wall { at: Nanos(5_000_000), memory }];
    let record = simulate(&machine, &job, &mut policy).unwrap();
    assert!(policy.reliefs.is_empty());
    // 1 MB read and 0.5 MB written at 5 GB/s: 0.3 ms. Then 3.6 ms in `gradient`, as above. The CPU packs meanwhile.
    near(record.breakdown.packing, 300_000.0 + 3_600_000.0, "requantised");
    let spans = scheduled(&record);
    assert!(spans[2].memory <= memory && spans[1].memory > memory, "{spans:?}");
}

#[test]
fn two_maps_wait_for_the_cpu_and_the_next_is_unpacked_ahead() {
    // Four maps of a million values in quick succession, then 45 MB; 45 MB again, then their readers.
    let mut tensors = vec![tensor("input", 8, Role::Input)];
    let mut nodes = Vec::new();
    for map in 1..=4 {
        tensors.push(tensor(&format!("x{map}"), 4_000_000, Role::Activation));
        nodes.push(node("make", Phase::Forward, &[0], &[map], 4_000));
    }
    tensors.push(tensor("y", 400, Role::Activation));
    nodes.push(node("rest", Phase::Forward, &[0], &[5], 45_000_000));
    tensors.push(tensor("g", 400, Role::Gradient));
    nodes.push(node("first", Phase::Backward, &[], &[6], 45_000_000));
    let mut last = node("gradient", Phase::Backward, &[6, 1], &[7], 5_000_000);
    last.saved = vec![Saved { tensor: 1, need: Need::Values, by_module: true }];
    tensors.push(tensor("dw", 400, Role::ParameterGradient));
    nodes.push(last);
    for map in 2..=4 {
        let mut reader = node("gradient", Phase::Backward, &[map], &[7], 4_000);
        reader.saved = vec![Saved { tensor: map, need: Need::Values, by_module: true }];
        nodes.push(reader);
    }
    let graph = TrainingGraph { name: "four maps".to_owned(), tensors, nodes };
    let run = |packing: &str| {
        let mut policy = build("daf", &[("bits", "4"), ("packing", packing)]);
        simulate(&round(), &job(&graph, 1), policy.as_mut()).unwrap()
    };
    // Half a megabyte of codes each: one that is being packed, and one queued behind it.
    let shared = run("shared");
    assert_eq!(shared.peak_staging, Bytes(1_000_000));
    let cpu = run("cpu");
    // Unpacked, a map has four megabytes; one at a time.
    assert_eq!(cpu.peak_staging, Bytes(4_000_000));
    // Forward waits as it does with `shared`. The first map is unpacked during `first` and the second during the first
    // reader. The third has the second reader's launch of 25 µs at 5 GB/s, 125 kB, and then as much as its 4 kB at half
    // of that: the other 4.371 MB take 0.8742 ms. So has the fourth.
    let forward = shared.breakdown.packing.0 as f64 - 4.0 * 2_025_000.0;
    near(cpu.breakdown.packing, forward + 2.0 * 874_200.0, "ahead");
}

/// Gives up one tensor in the first iteration only.
struct SkipsOnce {
    tensor: TensorId,
    iteration: u32,
}

impl Policy for SkipsOnce {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        Ok(Schedule { quantisation: Some(RULES), ..Schedule::plain(setting.batch) })
    }

    fn begin_iteration(&mut self, _: &mut IterationPlan) -> Result<(), PolicyError> {
        self.iteration += 1;
        Ok(())
    }

    fn hold(&mut self, tensor: TensorId, _: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        Ok(if tensor == self.tensor && self.iteration == 1 { Holding::Skip } else { Holding::Keep })
    }
}

#[test]
fn what_one_iteration_gives_up_the_next_computes() {
    let graph = eager("resnet18-cifar");
    let tensor = named(&graph, "layer1.0.bn1", Role::Activation);
    let run = |iterations| {
        let job = Job { iterations, ..job(&graph, 4) };
        simulate(&jetson(), &job, &mut SkipsOnce { tensor, iteration: 0 }).unwrap()
    };
    let ran = |record: &Record| scheduled(record).len();
    let (first, second) = (run(1), run(2));
    assert_eq!((first.given_up, ran(&first)), (1, graph.nodes.len() - 2));
    assert_eq!((second.given_up, ran(&second)), (0, graph.nodes.len()));
}

#[test]
fn libraries_take_what_their_arithmetic_says() {
    let machine = jetson();
    // The second has maps of 7×7, which tiles of 2×2 do not fill.
    let [graph, odd] = ["resnet18-cifar", "resnet18"].map(eager);
    let nodes =
        [&graph, &odd].into_iter().flat_map(|graph| graph.nodes.iter().enumerate().map(move |node| (graph, node)));
    for (graph, (id, node)) in nodes {
        // F(2×2, 3×3), not fused: 16 values for every 2×2 outputs of each map that is read or written, and for each
        // weight.
        let tiles = node.work.product.filter(|_| node.work.winograd).map_or(0, |layer| {
            let [height, width] = layer.output_size.map(|length| length.div_ceil(2));
            16 * 4 * (2 * height * width * (layer.inputs + layer.outputs) + layer.inputs * layer.outputs)
        });
        assert_eq!(machine.workspace(graph, id, 2, Precision::Fp32), Bytes(tiles), "{}", node.name);
        assert_eq!(machine.workspace(graph, id, 2, Precision::Int8), Bytes::ZERO, "{}", node.name);
    }
    // The libraries' own memory comes first: nothing else fits a budget below it.
    let mut job = plain(&graph, 2);
    job.budgets.memory = Some(Bytes(machine.library_workspace().0 - 1));
    let error = simulate(&machine, &job, build("original", &[]).as_mut()).unwrap_err();
    assert!(error.to_string().contains("libraries' workspace"), "{error}");
}
