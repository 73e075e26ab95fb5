//! Compressed and swapped tensors: their size and the time until they are restored, worked out by hand; and invariants
//! of all policies that compress and swap.

use Phase::{Backward, Forward};
use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::work::OperatorKind;
use haversack_devices::{Frequency, load, load_stack};
use haversack_policies::{Holding, Relief};
use haversack_testing::Draws;
use haversack_training::{Budgets, Job, Machine, Record, RunError, SpanKind, Trains, Wall, simulate};
use haversack_workloads::training_graph::{Need, Node, Tensor};
use haversack_workloads::{Extent, MapKind, Phase, Role, TensorId, TrainingGraph};

use crate::common::{job, share};
use crate::support::drawn::{self, Drawn};
use crate::support::{
    BATCH, MB, Script, check_sums, for_its_shape, graph, near, node, phone_cpu, start_of, tensor, with_storage,
};

const X: TensorId = 1;

/// `make` makes x of 8 MB, `rest` runs for `forward` µs with another 12 MB, `first` for `backward` µs, and then
/// `gradient` reads x for 1 ms.
fn one_tensor(forward: u64, backward: u64) -> TrainingGraph {
    graph(
        vec![
            tensor("input", 8, Role::Input),
            tensor("x", 8 * MB, Role::Activation),
            tensor("y", 12 * MB, Role::Activation),
            tensor("g", 800, Role::Gradient),
            tensor("dw", 400, Role::ParameterGradient),
        ],
        vec![
            node("make", Forward, &[0], &[X], 1_000),
            node("rest", Forward, &[0], &[2], forward),
            node("first", Backward, &[], &[3], backward),
            node("gradient", Backward, &[3, X], &[4], 1_000),
        ],
    )
}

fn run(graph: &TrainingGraph, policy: &mut Script) -> Record {
    let record = simulate(&phone_cpu(), &job(graph, BATCH), policy).unwrap();
    check_sums(&record, "");
    record
}

fn run_holding(graph: &TrainingGraph, holds: &[(TensorId, Holding)]) -> Record {
    run(graph, &mut Script::holding(holds))
}

#[test]
fn a_compressed_tensor_takes_what_its_profile_says() {
    let graph = one_tensor(10_000, 5_000);
    let without = run_holding(&graph, &[]);
    // 1 + 10 + 5 + 1 ms and four launches.
    near(without.iteration, 17_080_000, "whole");
    // x and y at the same time, plus 8 B of samples.
    assert_eq!(without.peak_memory, Bytes(8 + 20 * MB));
    let mut policy = Script::holding(&[(X, Holding::Compress)]);
    let record = run(&graph, &mut policy);
    // 8 MB at 2 GB/s and back at 1 GB/s.
    let profile = policy.compressed[&X];
    assert_eq!((profile.compress, profile.decompress), (Nanos(4_000_000), Nanos(8_000_000)));
    near(record.breakdown.compression, 12_000_000, "compression");
    near(record.iteration, 17_080_000 + 12_000_000, "compressed");
    assert!(profile.bytes > Bytes::ZERO && profile.bytes < Bytes(8 * MB), "{}", profile.bytes);
    // Its compressed form lies next to y. In backward it lies next to x with 800 B of g, which is less.
    assert_eq!(record.peak_memory, Bytes(8 + 12 * MB) + profile.bytes);
    let spans = record.timeline.unwrap().spans;
    let memory: Vec<u64> = spans.iter().map(|span| span.memory.0).collect();
    let aside = profile.bytes.0;
    // After each span: x whole until it is compressed; y while `rest` runs; both forms until x is whole again.
    let expected = [8 * MB, 8 * MB, 12 * MB + aside, 800 + aside, 8 * MB + 800 + aside, 8 * MB + 1200];
    assert_eq!(memory, expected.map(|bytes| bytes + 8));
}

#[test]
fn compressing_moves_both_forms_through_dram() {
    let graph = one_tensor(10_000, 5_000);
    let mut policy = Script::holding(&[(X, Holding::Compress)]);
    let mut energy = |per_byte: f64| {
        let machine = with_storage(&[("dram.energy", per_byte)]);
        simulate(&machine, &job(&graph, BATCH), &mut policy).unwrap().energy.0
    };
    let more = energy(1_065.0) - energy(65.0);
    // The operators move 10 kB in each of 17,000 µs; each way 8 MB and their compressed form: all of it takes 1 nJ a
    // byte more.
    let moved = 170 * MB + 2 * (8 * MB + policy.compressed[&X].bytes.0);
    assert!((more / (1e-9 * moved as f64) - 1.0).abs() < 1e-6, "{more} J for {moved} B");
}

#[test]
fn a_profile_is_of_what_made_the_map_and_of_all_cores() {
    // A tensor without a producer is not a map, and stays as large as it is. A convolution makes dense maps of
    // pictures, a ReLU rectified ones, which a pooling passes on; a product of matrices dense maps of tokens, softmax
    // attention.
    let map =
        |name: &str, values: u64| Tensor { bytes: Extent::per_sample(4 * values), ..tensor(name, 0, Role::Activation) };
    let tensors = vec![
        tensor("input", 8, Role::Input),
        map("alone", 1_000),
        map("convolved", 32 * 256),
        map("rectified", 32 * 256),
        map("pooled", 32 * 64),
        map("tokens", 64 * 50),
        map("shares", 64 * 50),
    ];
    let made = |kind, makes, input, output| {
        let mut node = node("makes", Forward, &[input], &[output], 10);
        (node.work.kind, node.makes) = (kind, makes);
        node
    };
    let nodes = vec![
        made(OperatorKind::ElementWise, None, 0, 1),
        made(OperatorKind::Convolution, Some(MapKind::Dense), 1, 2),
        made(OperatorKind::ElementWise, Some(MapKind::Rectified), 2, 3),
        made(OperatorKind::Reduction, None, 3, 4),
        made(OperatorKind::Gemm, Some(MapKind::Dense), 4, 5),
        made(OperatorKind::Reduction, Some(MapKind::Attention), 5, 6),
    ];
    let graph = graph(tensors, nodes);
    let mut base = phone_cpu();
    let constants =
        [("pictures.dense", 5.0), ("pictures.rectified", 6.0), ("tokens.dense", 3.0), ("tokens.attention", 8.0)];
    for (name, ratio) in constants {
        base.stack.set(&format!("codec.{name}"), ratio).unwrap();
    }
    let ratios = [1.0, 5.0, 6.0, 6.0, 3.0, 8.0];
    // One core of 2 GHz; with a GPU all cores: this one, 3 of 2.5 and 4 of 1.8 GHz. A byte a cycle, and half a byte.
    let mut stack = load_stack("mnn").unwrap();
    stack.constants.codec = base.stack.constants.codec.clone();
    let gpu = Machine::new(base.device.clone(), stack, Trains::Gpu, None, Frequency::Highest).unwrap();
    for (machine, rate) in [(base, 2e9), (gpu, 2e9 + 3.0 * 2.5e9 + 4.0 * 1.8e9)] {
        let mut policy = Script::default();
        simulate(&machine, &job(&graph, BATCH), &mut policy).unwrap();
        for (tensor, ratio) in (1..).zip(ratios) {
            let (bytes, found) = (graph.tensor(tensor).bytes.at(BATCH) as f64, policy.compressed[&tensor]);
            assert_eq!(found.bytes, Bytes((bytes / ratio).ceil() as u64), "{tensor}");
            near(found.compress, (bytes / rate * 1e9) as u64, "compressing");
            near(found.decompress, (bytes / (rate / 2.0) * 1e9) as u64, "decompressing");
        }
    }
}

#[test]
fn a_swapped_tensor_leaves_when_it_is_written_and_is_read_ahead() {
    let graph = one_tensor(10_000, 5_000);
    let mut policy = Script::holding(&[(X, Holding::Swap)]);
    let record = run(&graph, &mut policy);
    // 8 MB at 1 GB/s and back at 2 GB/s.
    assert_eq!((policy.swapped[&X].out, policy.swapped[&X].back), (Nanos(8_000_000), Nanos(4_000_000)));
    // Written in 8 of the 10 ms of `rest`, read in 4 of the 5 ms of `first`: no waiting.
    assert_eq!(record.breakdown.swapping, Nanos::ZERO);
    assert_eq!(record.iteration, run_holding(&graph, &[]).iteration);
    // When `rest` begins x is being written.
    assert_eq!(record.peak_memory, Bytes(8 + 20 * MB));
    let memory: Vec<u64> = record.timeline.unwrap().spans.iter().map(|span| span.memory.0).collect();
    // x is on flash when `rest` ends, in memory from when it is read ahead.
    assert_eq!(memory, [8 * MB, 12 * MB, 8 * MB + 800, 8 * MB + 1200].map(|bytes| bytes + 8));
}

#[test]
fn backward_waits_for_what_is_not_read_in_time() {
    // Reading begins with `first`, which takes 1.02 ms of the 4.
    let record = run_holding(&one_tensor(10_000, 1_000), &[(X, Holding::Swap)]);
    near(record.breakdown.swapping, 2_980_000, "partly hidden");
    near(record.iteration, 13_080_000 + 2_980_000, "partly hidden");
    near(record.backward, 2_040_000 + 2_980_000, "partly hidden");
    // Forward of 3.02 ms is too short for writing 8 ms, and flash could read only after that: x is still whole and is
    // not read back. The rest of the 8 ms after backward has ended (3.02 and 2.04 ms) is spent waiting.
    let record = run_holding(&one_tensor(3_000, 1_000), &[(X, Holding::Swap)]);
    near(record.breakdown.swapping, 8_000_000 - 3_020_000 - 2_040_000, "still being written");
    assert!(record.peak_memory == Bytes(8 + 20 * MB));
}

#[test]
fn what_is_read_ahead_is_within_eight_nodes_and_needs_room() {
    // Readers of x come after twelve nodes of 0.32 ms: eight of them before it reading begins, 8 × 0.32 = 2.56 ms of
    // the 4 are hidden.
    let mut twelve = one_tensor(10_000, 0);
    let gradient = twelve.nodes.pop().unwrap();
    twelve.nodes.pop();
    twelve.nodes.extend((0..12).map(|_| node("first", Backward, &[], &[3], 300)));
    twelve.nodes.push(gradient);
    let record = run_holding(&twelve, &[(X, Holding::Swap)]);
    near(record.breakdown.swapping, 1_440_000, "eight nodes ahead");
    // `first` makes 12 MB that are not read again; x does not fit next to them in 16 MB.
    let mut large = one_tensor(10_000, 5_000);
    large.tensors.push(tensor("temporary", 12 * MB, Role::Gradient));
    large.nodes[2].outputs.push(5);
    let within = |memory| {
        let job = Job { budgets: Budgets { memory: Some(Bytes(memory)), ..Budgets::default() }, ..job(&large, BATCH) };
        let record = simulate(&phone_cpu(), &job, &mut Script::holding(&[(X, Holding::Swap)])).unwrap();
        assert!(record.peak_memory <= Bytes(memory), "{} of {memory}", record.peak_memory);
        check_sums(&record, "");
        record.breakdown.swapping
    };
    assert_eq!(within(21 * MB), Nanos::ZERO);
    // `rest` waits 8 ms for room, and `gradient` 4 ms for x.
    near(within(16 * MB), 8_000_000 + 4_000_000, "no room");
}

/// x1 and x2 of 8 MB are made in 1 ms each, `rest` needs 12 MB; backward has 10 ms, and then both are read, x2 first.
fn two_tensors() -> TrainingGraph {
    graph(
        vec![
            tensor("input", 8, Role::Input),
            tensor("x1", 8 * MB, Role::Activation),
            tensor("x2", 8 * MB, Role::Activation),
            tensor("y", 12 * MB, Role::Activation),
            tensor("g", 800, Role::Gradient),
            tensor("dw", 400, Role::ParameterGradient),
        ],
        vec![
            node("make", Forward, &[0], &[1], 1_000),
            node("make", Forward, &[0], &[2], 1_000),
            node("rest", Forward, &[0], &[3], 20_000),
            node("first", Backward, &[], &[4], 10_000),
            node("second gradient", Backward, &[4, 2], &[5], 1_000),
            node("first gradient", Backward, &[4, 1], &[5], 1_000),
        ],
    )
}

#[test]
fn flash_works_on_one_after_the_other() {
    let graph = two_tensors();
    let swapped = [(1, Holding::Swap), (2, Holding::Swap)];
    let record = run_holding(&graph, &swapped);
    // Written by 1.02 + 8 + 8 = 17.02 ms, before `rest` ends. x2 is read during `first`; x1 from when x2 is used on, 4
    // ms of which 1.02 are hidden: reading ahead takes one at a time.
    near(record.breakdown.swapping, 2_980_000, "x1");
    assert_eq!(record.peak_memory, Bytes(8 + 28 * MB));
    let waits = |memory: u64| {
        let job = Job {
            budgets: Budgets { memory: Some(Bytes(8 + memory * MB)), ..Budgets::default() },
            ..job(&graph, BATCH)
        };
        let record = simulate(&phone_cpu(), &job, &mut Script::holding(&swapped)).unwrap();
        check_sums(&record, "");
        assert!(record.peak_memory <= Bytes(8 + memory * MB));
        start_of(&record, &graph, "rest")
    };
    // Room for y and both, for y and one, for only y: `rest` begins after the makers, after one, after both writes.
    near(waits(28), 2_040_000, "both beside y");
    near(waits(20), 1_020_000 + 8_000_000, "one beside y");
    near(waits(17), 1_020_000 + 16_000_000, "none beside y");
}

#[test]
fn a_tensor_may_be_freed_while_it_is_written() {
    // `gradient` is x's last reader and runs 1.02 to 2.04 ms; until 9.02 ms x is written. `big` is to find x's memory
    // free.
    let tensors = vec![
        tensor("input", 8, Role::Input),
        tensor("x", 8 * MB, Role::Activation),
        tensor("dw", 400, Role::ParameterGradient),
        tensor("big", 12 * MB, Role::Gradient),
    ];
    let nodes = |micros| {
        vec![
            node("make", Forward, &[0], &[1], 1_000),
            node("gradient", Backward, &[1], &[2], 1_000),
            node("big", Backward, &[], &[3], micros),
        ]
    };
    for (micros, waits) in [(1_000, 9_020_000 - 3_060_000), (10_000, 0)] {
        let graph = graph(tensors.clone(), nodes(micros));
        let once = run_holding(&graph, &[(X, Holding::Swap)]);
        assert_eq!(once.peak_memory, Bytes(8 + 12 * MB));
        // An iteration does not end before flash has finished.
        near(once.breakdown.swapping, waits, "at the end");
        let twice = Job { iterations: 2, ..job(&graph, BATCH) };
        let twice = simulate(&phone_cpu(), &twice, &mut Script::holding(&[(X, Holding::Swap)])).unwrap();
        assert_eq!((twice.peak_memory, twice.iteration), (once.peak_memory, once.iteration));
    }
}

#[test]
fn what_an_operator_reads_stays_until_it_has_ended() {
    // x is written by 9.02 ms, while `gradient` runs from 5.04 to 11.06 ms. `again` reads x, too.
    let mut graph = one_tensor(4_000, 0);
    graph.nodes.truncate(2);
    graph.nodes.push(node("gradient", Backward, &[X], &[4], 6_000));
    graph.nodes.push(node("again", Backward, &[X], &[4], 1_000));
    let record = run_holding(&graph, &[(X, Holding::Swap)]);
    let spans = record.timeline.as_ref().unwrap().spans.clone();
    for span in &spans[2..] {
        assert_eq!(span.memory, Bytes(8 + 8 * MB + 400), "{}", graph.nodes[span.node as usize].name);
    }
}

#[test]
fn a_shape_alone_brings_nothing_back() {
    // Only x's shape is needed, early or late in backward.
    for holding in [Holding::Swap, Holding::Compress] {
        let mut graph = one_tensor(10_000, 5_000);
        graph.nodes[3] = for_its_shape(graph.nodes[3].clone(), X);
        let record = run_holding(&graph, &[(X, holding)]);
        let once = if holding == Holding::Compress { 4_000_000 } else { 0 };
        near(record.breakdown.compression, once, "compressed and left");
        assert_eq!(record.breakdown.swapping, Nanos::ZERO);
        let backward = record.timeline.as_ref().unwrap().spans.iter().rev().take(2);
        assert!(backward.into_iter().all(|span| span.memory < Bytes(8 * MB)), "{holding:?}");
    }
}

#[test]
fn a_shape_alone_leaves_what_is_on_its_way_back() {
    // `shaped` needs x's shape while x is being read for `gradient`: 4 ms during `first` and `shaped` of 1.02 ms each,
    // or during a `first` of 3.5 ms, so that x has been read when `gradient` begins.
    for (holding, first, compression, swapping) in
        [(Holding::Swap, 1_000, 0, 1_960_000), (Holding::Swap, 3_500, 0, 0), (Holding::Compress, 1_000, 12_000_000, 0)]
    {
        let mut graph = one_tensor(10_000, first);
        let shaped = Node { name: "shaped".to_owned(), ..for_its_shape(graph.nodes[3].clone(), X) };
        graph.nodes.insert(3, shaped);
        let record = run_holding(&graph, &[(X, holding)]);
        assert_eq!(record.recomputed, 0, "{holding:?}");
        near(record.breakdown.compression, compression, "compressed");
        near(record.breakdown.swapping, swapping, "swapped");
        let last = record.timeline.as_ref().unwrap().spans.last().copied().unwrap();
        assert_eq!(last.memory, Bytes(8 + 8 * MB + 1200), "{holding:?}");
    }
}

#[test]
fn a_part_starts_again_with_transfers_in_flight() {
    // y of 4 MB. When `first` has ended at 12.06 ms, x is being read until 15.04 ms and a wall has come.
    let mut graph = one_tensor(10_000, 1_000);
    graph.tensors[2] = tensor("y", 4 * MB, Role::Activation);
    let walls = vec![Wall { at: Nanos(11_100_000), memory: Bytes(7 * MB) }];
    let with_wall = Job { budgets: Budgets { walls, ..Budgets::default() }, ..job(&graph, BATCH) };
    let mut policy = Script::relieving(&[Relief::ShrinkMicroBatch(4)]);
    policy.holds.insert(X, Holding::Swap);
    let record = simulate(&phone_cpu(), &with_wall, &mut policy).unwrap();
    check_sums(&record, "restarted");
    assert_eq!(record.micro_batches, [4, 4]);
    // All until the read has ended is lost.
    near(record.breakdown.discarded, 15_040_000, "lost");
    // Then two parts of half of all: 0.5 + 5 + 0.5 + 0.5 ms, four launches, and of 2 ms of reading all but 0.52.
    near(record.breakdown.swapping, 2 * 1_480_000, "read again");
    near(record.iteration, 15_040_000 + 2 * (6_580_000 + 1_480_000), "restarted");
}

#[test]
fn reliefs_compress_and_swap() {
    let graph = one_tensor(10_000, 5_000);
    let within = |relief| {
        let mut policy = Script::relieving(&[relief]);
        let budgets = Budgets { memory: Some(Bytes(19 * MB)), ..Budgets::default() };
        let record = simulate(&phone_cpu(), &Job { budgets, ..job(&graph, BATCH) }, &mut policy).unwrap();
        check_sums(&record, "");
        assert!(policy.reliefs.is_empty() && record.peak_memory <= Bytes(19 * MB));
        record
    };
    // 12 MB for y do not fit next to 8 MB of x: x is compressed for 4 ms and decompressed for 8, or written for 8 ms
    // while `rest` waits, and read ahead.
    near(within(Relief::Compress(X)).iteration, 17_080_000 + 12_000_000, "compressed");
    near(within(Relief::Swap(X)).iteration, 17_080_000 + 8_000_000, "swapped");
}

#[test]
fn what_is_on_its_way_to_flash_is_not_asked_about() {
    // z is dropped and makes room for y; x, which is sent to flash at the same time, is used once more while it is
    // being written. Its form was already decided.
    let mut graph = two_tensors();
    graph.nodes[2] = node("rest", Forward, &[0], &[3], 1_000);
    graph.nodes.insert(3, node("again", Forward, &[1], &[3], 1_000));
    let budgets = Budgets { memory: Some(Bytes(8 + 20 * MB)), ..Budgets::default() };
    for holding in [Holding::Compress, Holding::Swap, Holding::Keep] {
        let mut policy = Script::holding(&[(1, holding)]);
        policy.reliefs.push_back(vec![Relief::Swap(1), Relief::Rematerialise(2)]);
        let job = Job { budgets: budgets.clone(), ..job(&graph, BATCH) };
        let record = simulate(&phone_cpu(), &job, &mut policy).unwrap();
        assert_eq!(record.breakdown.compression, Nanos::ZERO, "{holding:?}");
        check_sums(&record, "asked once");
    }
}

fn illegal(machine: &Machine, job: &Job<'_>, mut policy: Script) -> (String, &'static str) {
    match simulate(machine, job, &mut policy).unwrap_err() {
        RunError::IllegalAction { action, reason } => (action, reason),
        error => panic!("{error}"),
    }
}

#[test]
fn what_cannot_be_compressed_or_swapped_is_named() {
    let graph = one_tensor(10_000, 5_000);
    let holding = |machine: &Machine, how| illegal(machine, &job(&graph, BATCH), Script::holding(&[(X, how)]));
    let on = |device, stack| {
        let (device, stack) = (load(device).unwrap(), load_stack(stack).unwrap());
        Machine::new(device, stack, Trains::Cpu, None, Frequency::Highest).unwrap()
    };
    let no_codec = holding(&on("galaxy-s22", "mnn"), Holding::Compress);
    assert_eq!(no_codec, ("compress x".to_owned(), "the stack has no codec"));
    let no_flash = holding(&on("server-core", "mnn-2"), Holding::Swap);
    assert_eq!(no_flash, ("swap x".to_owned(), "the device has no flash"));
    // Nothing fits when `gradient`, which reads x and g and makes dw, wants its 400 B.
    let wall = Wall { at: Nanos(16_000_000), memory: Bytes(8 * MB + 808) };
    let relieving = |first: Holding, relief| {
        let mut policy = Script::relieving(&[relief]);
        policy.holds.insert(X, first);
        let budgets = Budgets { walls: vec![wall], ..Budgets::default() };
        illegal(&phone_cpu(), &Job { budgets, ..job(&graph, BATCH) }, policy)
    };
    let not_whole = "it is not whole in memory, or in use";
    for (first, relief, action) in [
        // In use, no longer in memory, a gradient, not a tensor of the graph.
        (Holding::Keep, Relief::Compress(X), "compress x"),
        (Holding::Swap, Relief::Swap(X), "swap x"),
        (Holding::Keep, Relief::Compress(2), "compress y"),
        (Holding::Keep, Relief::Swap(3), "swap g"),
        (Holding::Keep, Relief::Swap(0), "swap input"),
        (Holding::Keep, Relief::Compress(999), "compress ?"),
        (Holding::Keep, Relief::Swap(u32::MAX), "swap ?"),
    ] {
        assert_eq!(relieving(first, relief), (action.to_owned(), not_whole), "{first:?}");
    }
}

/// Checks that the tensors a node needs are whole in memory when it ends, and that memory stays within the budget.
fn check_memory(record: &Record, graph: &TrainingGraph, place: &str) {
    for span in &record.timeline.as_ref().unwrap().spans {
        let node = &graph.nodes[span.node as usize];
        if span.kind != SpanKind::Scheduled {
            continue;
        }
        let read = node.inputs.iter().copied().filter(|&input| node.need_of(input) != Need::Shape);
        let mut used: Vec<TensorId> = read.chain(node.outputs.iter().copied()).collect();
        used.sort_unstable();
        used.dedup();
        let own: u64 = used.iter().map(|&tensor| graph.tensor(tensor).bytes.at(span.micro_batch)).sum();
        let state = graph.bytes_of(|role| role.is_state()).at(1);
        let input = graph.bytes_of(|role| role == Role::Input).at(span.micro_batch);
        let samples = if node.phase == Phase::Update { 0 } else { input };
        let elsewhere: u64 = used
            .iter()
            .filter(|&&tensor| graph.tensor(tensor).role.is_state() || graph.tensor(tensor).role == Role::Input)
            .map(|&tensor| graph.tensor(tensor).bytes.at(span.micro_batch))
            .sum();
        let least = own - elsewhere + state + samples;
        assert!(span.memory.0 >= least, "{place}: {} has {} of {least}", node.name, span.memory);
        assert!(span.memory <= record.peak_memory, "{place}: {}", node.name);
    }
}

#[test]
fn whatever_a_policy_compresses_and_swaps_the_books_are_kept() {
    let (mut worked, mut asked, mut parts) = (0, [0; 4], 0);
    for seed in 0..150 {
        let graph = drawn::network(&mut Draws(seed));
        let machine = if seed % 3 == 0 {
            with_storage(&[("storage.sequential_write", 100.0), ("storage.sequential_read", 100.0)])
        } else {
            phone_cpu()
        };
        let run = |job: &Job<'_>| {
            let mut policy = Drawn::new(seed);
            (simulate(&machine, job, &mut policy), policy.asked)
        };
        let free = run(&job(&graph, BATCH)).0.unwrap();
        for percent in [0, 90, 70, 50] {
            let budgets =
                Budgets { memory: (percent > 0).then(|| share(free.peak_memory, percent)), ..Budgets::default() };
            let once = Job { budgets, ..job(&graph, BATCH) };
            let place = format!("{seed} {percent} %");
            let (first, techniques) = match run(&once) {
                (Ok(record), asked) => (record, asked),
                (Err(error), _) => {
                    assert!(percent > 0 && error.is_infeasible(), "{place}: {error}");
                    continue;
                }
            };
            worked += 1;
            parts += first.micro_batches.len();
            for (sum, more) in asked.iter_mut().zip(techniques) {
                *sum += more;
            }
            let second = run(&Job { iterations: 2, ..once.clone() }).0.unwrap();
            for record in [&first, &second] {
                check_sums(record, &place);
                check_memory(record, &graph, &place);
                assert_eq!(record.micro_batches.iter().sum::<u64>(), BATCH, "{place}");
                let budget = once.budgets.memory.unwrap_or(Bytes::MAX);
                assert!(record.peak_memory <= budget && record.reserved <= budget, "{place}");
            }
            // Nothing is left in memory or in transit.
            assert_eq!(second.iterations[0], first.iteration, "{place}");
            assert_eq!((second.peak_memory, second.peak_growth), (first.peak_memory, first.peak_growth), "{place}");
            assert_eq!((second.peak_saved, second.recomputed), (first.peak_saved, first.recomputed), "{place}");
            assert!(second.iteration.0.abs_diff(first.iteration.0) <= 2 * graph.nodes.len() as u64, "{place}");
            // The same again, to the last digit.
            assert_eq!(format!("{first:?}"), format!("{:?}", run(&once).0.unwrap()), "{place}");
        }
    }
    // The budgets are neither too small nor too large, and every technique was used.
    assert!(worked > 350 && parts > worked + 30, "{worked} {parts}");
    assert!(asked.iter().all(|&times| times > 300), "{asked:?}");
}
