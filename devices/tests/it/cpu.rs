//! CPU clusters: the split that waits for the slowest core, cache steps, small operators, selections.

use crate::common;
use haversack_devices::units::{Bytes, Flops, FlopsPerSecond, Nanos};
use haversack_devices::{
    CoreSelection, Cost, Device, Frequency, OperatorKind, Precision, ProcessorKind, Product, ProductRole, Stack,
    Traffic, Work, load, load_stack,
};

fn cost_at(cores: &str, frequency: Frequency, work: Work) -> Cost {
    let cpu = common::device().cpu().unwrap();
    let cores = cpu.choose(cores.parse().unwrap(), frequency).unwrap();
    cores.cost(&work, common::stack().cpu().unwrap())
}

fn cost(cores: &str, work: Work) -> Cost {
    cost_at(cores, Frequency::Highest, work)
}

fn arithmetic() -> Work {
    Work { flops: Flops(64e6), parallelism: 1e6, ..Work::empty(OperatorKind::Gemm, Precision::Fp32) }
}

fn bytes(bytes: u64, working_set: u64) -> Work {
    Work {
        flops: Flops(0.0),
        traffic: Traffic { dram: Bytes(bytes), shared: Bytes::ZERO },
        working_set: Bytes(working_set),
        ..arithmetic()
    }
}

#[test]
fn an_even_split_ends_with_the_slowest_core() {
    // Big core: 2 GHz × 8 = 16 GFLOP/s, at 0.5: 8. Little: 1 GHz × 4 = 4, at 0.5: 2.
    // One big core: 64e6 / 8e9 = 8 ms. Two: 4 ms. All four: 16e6 each; a little core needs 16e6 / 2e9 = 8 ms,
    // so four cores lose to two.
    assert_eq!(cost("big:1", arithmetic()).busy, Nanos(8_000_000));
    assert_eq!(cost("big:2", arithmetic()).busy, Nanos(4_000_000));
    assert_eq!(cost("all", arithmetic()).busy, Nanos(8_000_000));
    assert_eq!(cost("little:2", arithmetic()).busy, Nanos(16_000_000));
    // 3 us of framework; half the frequency, twice the time.
    assert_eq!(cost("big:1", arithmetic()).launch, Nanos(3_000));
    assert_eq!(cost_at("big:1", Frequency::Lowest, arithmetic()).busy, Nanos(16_000_000));
    assert_eq!(cost_at("big:1", Frequency::Governor, arithmetic()).busy, Nanos(8_000_000));
}

#[test]
fn eight_threads_are_slower_than_four_big_ones() {
    // Four big cores: 64e6 / 4 / 8e9 = 2 ms. Eight: a little core takes 64e6 / 8 / 2e9 = 4 ms, and the big ones wait.
    let mut device = common::device();
    device.set("cpu.0.cores", 4.0).unwrap();
    device.set("cpu.1.cores", 4.0).unwrap();
    let busy = |cores: &str| {
        let cores = device.cpu().unwrap().choose(cores.parse().unwrap(), Frequency::Highest).unwrap();
        cores.cost(&arithmetic(), common::stack().cpu().unwrap()).busy
    };
    assert_eq!(busy("big:4"), Nanos(2_000_000));
    assert_eq!(busy("all"), Nanos(4_000_000));
    // So it is on a phone of 2021 that multiplies eight-bit integers as Mandheling's table 7 does.
    let (phone, mnn) = (load("xiaomi-11-pro").unwrap().cpu().unwrap(), load_stack("mnn").unwrap());
    let work = Work { flops: Flops(1e9), precision: Precision::Int8, ..arithmetic() };
    let of = |cores: &str, kind| {
        let cores = phone.choose(cores.parse().unwrap(), Frequency::Highest).unwrap();
        cores.cost(&Work { kind, ..work }, mnn.cpu().unwrap()).busy
    };
    for kind in [OperatorKind::Convolution, OperatorKind::Gemm] {
        assert!(of("all", kind) > of("big:4", kind), "{kind}");
        assert!(of("big:4", kind) < of("big:1", kind), "{kind}");
    }
}

#[test]
fn the_lowest_frequency_is_slower_but_thriftier() {
    // 262 mW at 1075.2 MHz against 1636 mW at 2841.6: 2.64 times the time at 0.16 of the power.
    let phone = load("xiaomi-11-pro").unwrap().cpu().unwrap();
    let stack = common::stack();
    let run = |frequency| {
        let cores = phone.choose("big:1".parse().unwrap(), frequency).unwrap();
        let busy = cores.cost(&arithmetic(), stack.cpu().unwrap()).busy;
        (busy, (cores.power() * busy).0)
    };
    let ((fast, dear), (slow, thrifty)) = (run(Frequency::Highest), run(Frequency::Lowest));
    assert!(slow > fast && thrifty < dear, "{fast} {dear} J, {slow} {thrifty} J");
}

#[test]
fn what_tiles_read_again_comes_on_top_of_a_products_arithmetic() {
    let stack = |traffic: f64| {
        let mut stack = common::stack();
        stack.set("cpu.product_traffic", traffic).unwrap();
        stack
    };
    let cost = |cores: &str, work: Work| {
        let cores = common::device().cpu().unwrap().choose(cores.parse().unwrap(), Frequency::Highest).unwrap();
        cores.cost(&work, stack(0.1).cpu().unwrap())
    };
    // 64e6 × 0.1 B = 6.4 MB at a big core's 4 GB/s: 1.6 ms on top of 8 ms.
    let one = cost("big:1", arithmetic());
    assert_eq!((one.busy, one.dram), (Nanos(9_600_000), Bytes(6_400_000)));
    // Two cores draw half each, and share the 5 GB/s of DRAM: 3.2 MB at 2.5 GB/s, 1.28 ms on top of 4 ms.
    let two = cost("big:2", arithmetic());
    assert_eq!((two.busy, two.dram), (Nanos(5_280_000), Bytes(6_400_000)));
    // An element of eight bits is a quarter: 0.4 ms on top of 2 ms.
    let narrow = cost("big:1", Work { precision: Precision::Int8, ..arithmetic() });
    assert_eq!((narrow.busy, narrow.dram), (Nanos(2_400_000), Bytes(1_600_000)));
    // At half the frequency it takes as long: 16 + 1.6 ms.
    let cores = common::device().cpu().unwrap().choose("big:1".parse().unwrap(), Frequency::Lowest).unwrap();
    assert_eq!(cores.cost(&arithmetic(), stack(0.1).cpu().unwrap()).busy, Nanos(17_600_000));
    // Maps have no tiles.
    let map = Work { kind: OperatorKind::ElementWise, ..arithmetic() };
    assert_eq!((cost("big:1", map).busy, cost("big:1", map).dram), (Nanos(8_000_000), Bytes::ZERO));
}

/// A product of `outputs` channels.
fn layer(outputs: u64) -> Product {
    Product {
        role: ProductRole::Forward,
        inputs: 8,
        outputs,
        input_size: [10, 10],
        output_size: [10, 10],
        taps: [1, 1],
        groups: 1,
        of_each_sample: false,
    }
}

#[test]
fn packed_layouts_share_products_by_whole_vectors_of_channels() {
    let stack = common::stack_with("int8", "packed = true");
    let busy = |cores: &str, outputs| {
        let cores = common::device().cpu().unwrap().choose(cores.parse().unwrap(), Frequency::Highest).unwrap();
        let work = Work { product: Some(layer(outputs)), ..arithmetic() };
        (cores.cost(&work, stack.cpu().unwrap()).busy, cores.cost(&work, common::stack().cpu().unwrap()).busy)
    };
    // 12 channels are three vectors of four: one of two cores has two thirds of 8 ms. Any other stack shares evenly.
    assert_eq!(busy("big:2", 12), (Nanos(5_333_333), Nanos(4_000_000)));
    assert_eq!(busy("big:2", 16), (Nanos(4_000_000), Nanos(4_000_000)));
    // Three of four cores have one vector each: the third is a little one, 32 / 3 ms; it would have had a quarter.
    assert_eq!(busy("all", 12), (Nanos(10_666_667), Nanos(8_000_000)));
}

#[test]
fn starting_threads_costs_a_level_for_every_doubling_and_step() {
    let stack = common::stack_with("int8", "fork_join = 0.5 factor");
    let launch = |cores: &str, laid_out| {
        let cores = common::device().cpu().unwrap().choose(cores.parse().unwrap(), Frequency::Highest).unwrap();
        cores.cost(&Work { laid_out: Bytes(laid_out), ..arithmetic() }, stack.cpu().unwrap()).launch
    };
    // An operator is 3 us; a doubling 1.5 us, twice of an operator with two steps.
    assert_eq!(["big:1", "big:2", "all"].map(|cores| launch(cores, 0)), [3_000, 4_500, 6_000].map(Nanos));
    assert_eq!(launch("all", 100), Nanos(9_000));
    // 3,000 millionths of an iteration at 2 GHz and one a MHz: 1.5 us on any number of cores without threads that cost.
    let scalar = common::stack_with("int8", "operator_work = 3000 factor");
    let cores = common::device_with("l1 =", "coremark = 1 factor").cpu().unwrap();
    let cores = cores.choose("big:2".parse().unwrap(), Frequency::Highest).unwrap();
    assert_eq!(cores.cost(&arithmetic(), scalar.cpu().unwrap()).launch, Nanos(1_500));
}

#[test]
fn what_is_laid_out_before_a_product_adds_to_its_time() {
    // 4 MB through DRAM at 4 GB/s: 1 ms; transforms of 8 MFLOP at 8 GFLOP/s: 1 ms; on top of 8 ms.
    let work = Work { laid_out: Bytes(4_000_000), transforms: Flops(8e6), ..arithmetic() };
    let one = cost("big:1", work);
    assert_eq!((one.busy, one.dram), (Nanos(10_000_000), Bytes(4_000_000)));
    // Two cores share 5 GB/s: 2 MB at 2.5 GB/s each, 0.8 ms, and half of the rest.
    assert_eq!((cost("big:2", work).busy, cost("big:2", work).dram), (Nanos(5_300_000), Bytes(4_000_000)));
    // In a core's L2 it is 16 B a cycle: 64 KiB in 2 us.
    assert_eq!(cost("big:1", Work { laid_out: Bytes(64_000), ..arithmetic() }).busy, Nanos(8_002_000));
}

#[test]
fn copies_that_move_elements_one_by_one_go_at_their_own_rate() {
    // A quarter of the 4 GB/s that a core draws: 64 MB in 64 ms at any clock, where a stream from DRAM takes 16 ms.
    let stack = common::stack_with("int8", "irregular_share = 0.25 fraction");
    let busy = |frequency, kind, within| {
        let cores = common::device().cpu().unwrap().choose("big:1".parse().unwrap(), frequency).unwrap();
        cores.cost(&Work { kind, ..bytes(64_000_000, within) }, stack.cpu().unwrap()).busy
    };
    assert_eq!(busy(Frequency::Highest, OperatorKind::Layout, 64 << 20), Nanos(64_000_000));
    assert_eq!(busy(Frequency::Lowest, OperatorKind::Layout, 64 << 20), Nanos(64_000_000));
    assert_eq!(busy(Frequency::Highest, OperatorKind::ElementWise, 64 << 20), Nanos(16_000_000));
    // Lines stay in a cache until all of their elements have been used.
    assert_eq!(busy(Frequency::Highest, OperatorKind::Layout, 32 << 10), Nanos(1_000_000));
    // Without the key copies stream.
    let plain = Work { kind: OperatorKind::Layout, ..bytes(64_000_000, 64 << 20) };
    assert_eq!(cost("big:1", plain).busy, Nanos(16_000_000));
}

#[test]
fn an_l3_serves_as_many_cores_at_once_as_it_has_ports() {
    // 3.2 MB from L3 at 8 B a cycle of 2 GHz: 200 us alone, 100 us each of two, whom one port serves in turn.
    let moved = bytes(3_200_000, 1_000_000);
    let busy = |cores: &str, ports: Option<f64>| {
        let mut device = common::device_with("l3 =", "l3_ports = 2 count");
        ports.iter().for_each(|&ports| device.set("cache.l3_ports", ports).unwrap());
        let cores = device.cpu().unwrap().choose(cores.parse().unwrap(), Frequency::Highest).unwrap();
        cores.cost(&moved, common::stack().cpu().unwrap()).busy
    };
    assert_eq!([busy("big:1", None), busy("big:2", None)], [Nanos(200_000), Nanos(100_000)]);
    assert_eq!([busy("big:1", Some(1.0)), busy("big:2", Some(1.0))], [Nanos(200_000), Nanos(200_000)]);
}

#[test]
fn winograds_tiles_are_read_again_for_each_group_of_channels() {
    // 64e6 operations of 64 outputs and 8 a group: tiles of 64e6 / 2 / 64 × 4 B = 2 MB, read eight times, 16 MB at the
    // 4 GB/s of DRAM in 4 ms, ahead of 8 ms of arithmetic; of 1 a group 128 MB in 32 ms.
    let work = Work { product: Some(layer(64)), transforms: Flops(1.0), ..arithmetic() };
    let busy = |rows: u64, work: Work| {
        let stack = common::stack_with("int8", &format!("winograd_rows = {rows} count"));
        let cores = common::device().cpu().unwrap().choose("big:1".parse().unwrap(), Frequency::Highest).unwrap();
        let cost = cores.cost(&work, stack.cpu().unwrap());
        (cost.busy.0 / 1000, cost.dram)
    };
    assert_eq!(busy(8, work), (8_000, Bytes(16_000_000)));
    assert_eq!(busy(1, work), (32_000, Bytes(128_000_000)));
    // 250 KB fit in an L2 and are not read again: two cores take half of 1 ms, whereas 64 times as much from one port
    // of L3, at 8 GB/s for each, would take 1 ms.
    let (device, stack) =
        (common::device_with("l3 =", "l3_ports = 1 count"), common::stack_with("int8", "winograd_rows = 1 count"));
    let two = device.cpu().unwrap().choose("big:2".parse().unwrap(), Frequency::Highest).unwrap();
    assert_eq!(two.cost(&Work { flops: Flops(8e6), ..work }, stack.cpu().unwrap()).busy, Nanos(500_000));
    assert_eq!(busy(1, Work { transforms: Flops::ZERO, ..work }), (8_000, Bytes::ZERO));
}

#[test]
fn a_graph_that_is_prepared_anew_costs_each_operator_and_each_fresh_page() {
    // 3 us of dispatch and 100 us of preparation.
    let stack = common::stack_with("int8", "preparation = 100 us\nfirst_touch = 20000 factor");
    let on_cpu = stack.cpu().unwrap();
    let device = common::device_with("l1 =", "coremark = 5 factor");
    let cores = device.cpu().unwrap().choose("big:1".parse().unwrap(), Frequency::Highest).unwrap();
    assert_eq!(cores.cost(&arithmetic(), on_cpu).launch, Nanos(103_000));
    // However much it reads.
    assert_eq!(cores.cost(&bytes(64_000_000, 64_000_000), on_cpu).launch, Nanos(103_000));
    // 5 iterations a second for each of 2000 MHz: 0.02 of one takes 2 us; 4097 B lie in two pages.
    assert_eq!(cores.first_touch(2, on_cpu), Nanos(4_000));
    assert_eq!(cores.first_touch(2, common::stack().cpu().unwrap()), Nanos::ZERO);
}

#[test]
fn scalar_sweeps_may_leave_maps_updates_and_reductions_to_vectors() {
    let device = common::device_with("l1 =", "coremark = 5 factor");
    let cores = device.cpu().unwrap().choose("big:1".parse().unwrap(), Frequency::Highest).unwrap();
    let busy = |lines: &str, kind| {
        let stack = common::stack_with("int8", lines);
        cores.cost(&Work { kind, ..arithmetic() }, stack.cpu().unwrap()).busy
    };
    // 64e6 operations of 1000 millionths of an iteration, at 10,000 iterations a second: 6.4 s. By vectors 8 ms.
    let scalar = "sweep_work = 1000 factor";
    for kind in [OperatorKind::ElementWise, OperatorKind::Optimiser, OperatorKind::Reduction, OperatorKind::Gather] {
        assert_eq!(busy(scalar, kind), Nanos(6_400_000_000), "{kind}");
        let expected = if kind != OperatorKind::Gather { 8_000_000 } else { 6_400_000_000 };
        assert_eq!(
            busy(&format!("{scalar}\nvector_maps = true\nvector_reductions = true"), kind),
            Nanos(expected),
            "{kind}"
        );
    }
}

#[test]
fn a_stack_multiplies_bytes_by_dot_products_or_by_widening() {
    let widening = Stack::parse("w", "w.toml", &common::stack_text().replace("dot-product", "widening")).unwrap();
    let busy = |device: &Device, stack: &Stack, precision| {
        let cores = device.cpu().unwrap().choose("big:1".parse().unwrap(), Frequency::Highest).unwrap();
        cores.cost(&Work { precision, ..arithmetic() }, stack.cpu().unwrap()).busy
    };
    // 2 GHz × 32 at a half: 2 ms by dot products. Widening runs at the FP32 rate by default, 8 ms, and at the device's
    // own rate of 16, if it gives one, 4 ms.
    let (round, wide) = (common::device(), common::device_with("l1 =", "int8_widening_rate = 16 OP/cycle"));
    assert_eq!(busy(&round, &common::stack(), Precision::Int8), Nanos(2_000_000));
    assert_eq!(busy(&round, &widening, Precision::Int8), Nanos(8_000_000));
    assert_eq!(busy(&wide, &common::stack(), Precision::Int8), Nanos(2_000_000));
    assert_eq!(busy(&wide, &widening, Precision::Int8), Nanos(4_000_000));
    // Sixteen bits have half the lanes of the widening rate, 8 per cycle, independently of the rate for eight;
    // sums of 32 bits are as FP32.
    assert_eq!(busy(&wide, &common::stack(), Precision::Int16), Nanos(8_000_000));
    assert_eq!(busy(&wide, &widening, Precision::Int32), Nanos(8_000_000));
}

#[test]
fn products_of_floats_reach_what_a_core_multiplies_by_one_element() {
    let slow = common::device_with("l1 =", "by_element = 0.5 fraction");
    let busy = |device: &Device, kind, precision| {
        let cores = device.cpu().unwrap().choose("big:1".parse().unwrap(), Frequency::Highest).unwrap();
        cores.cost(&Work { kind, precision, ..arithmetic() }, common::stack().cpu().unwrap()).busy.0
    };
    use OperatorKind::{Convolution, ElementWise, Gemm};
    for (kind, precision, times) in [
        (Convolution, Precision::Fp32, 2),
        (Gemm, Precision::Fp16, 2),
        (Convolution, Precision::Int8, 1),
        (ElementWise, Precision::Fp32, 1),
    ] {
        let [whole, half] = [&common::device(), &slow].map(|device| busy(device, kind, precision));
        assert_eq!(half, whole * times, "{kind} {precision}");
    }
}

#[test]
fn each_precision_has_its_rate() {
    // Twice and four times the FP32 rate: 4 and 2 ms instead of 8.
    let at = |precision| cost("big:1", Work { precision, ..arithmetic() }).busy;
    assert_eq!(at(Precision::Fp16), Nanos(4_000_000));
    assert_eq!(at(Precision::Int8), Nanos(2_000_000));
    // With integer work at half of 16 GFLOP/s: 8e6 / 8e9 = 1 ms more.
    assert_eq!(cost("big:1", Work { integer_ops: 8e6, ..arithmetic() }).busy, Nanos(9_000_000));
}

#[test]
fn a_working_set_beyond_a_level_moves_at_the_next_levels_bandwidth() {
    // One big core at 2 GHz: L1 64 GB/s, L2 32 GB/s, L3 16 GB/s, DRAM min(4, 5, 16) = 4 GB/s.
    // 64 MB: 1, 2, 4 and 16 ms; only the last loads DRAM.
    let moved = 64_000_000;
    for (working_set, busy, dram) in [
        (32 << 10, 1_000_000, 0),
        ((32 << 10) + 1, 2_000_000, 0),
        (256 << 10, 2_000_000, 0),
        ((256 << 10) + 1, 4_000_000, 0),
        (1 << 20, 4_000_000, 0),
        ((1 << 20) + 1, 16_000_000, moved),
    ] {
        let cost = cost("big:1", bytes(moved, working_set));
        assert_eq!((cost.busy, cost.dram), (Nanos(busy), Bytes(dram)), "{working_set} bytes");
    }
    // Each of two cores works on half of the set: 512 KiB fit in two L2 of 256 KiB. 32 MB each at 32 GB/s: 1 ms.
    assert_eq!(cost("big:2", bytes(moved, 512 << 10)).busy, Nanos(1_000_000));
}

#[test]
fn cores_share_what_dram_gives() {
    // Two big cores could draw 4 GB/s each; 5 GB/s in total leaves 2.5 each: 50e6 / 2.5e9 = 20 ms.
    assert_eq!(cost("big:2", bytes(100_000_000, 1 << 30)).busy, Nanos(20_000_000));
    // All four: 25 MB each; a little core draws 1 GB/s: 25 ms, and DRAM moves every byte.
    let all = cost("all", bytes(100_000_000, 1 << 30));
    assert_eq!((all.busy, all.dram), (Nanos(25_000_000), Bytes(100_000_000)));
}

#[test]
fn small_operators_leave_lanes_empty() {
    // FP32 has 4 lanes in 16 B. Two outputs on one core fill half: 16 ms instead of 8. One output: a quarter, 32 ms.
    let small = |cores, outputs| cost(cores, Work { parallelism: outputs, ..arithmetic() });
    assert_eq!(small("big:1", 2.0).busy, Nanos(16_000_000));
    assert_eq!(small("big:1", 1.0).busy, Nanos(32_000_000));
    assert_eq!(small("big:1", 1.0).occupancy, 0.25);
    // One output cannot be split over two cores: 32 ms still, and of two cores an eighth is used.
    assert_eq!(small("big:2", 1.0).busy, Nanos(32_000_000));
    assert_eq!(small("big:2", 1.0).occupancy, 0.125);
}

#[test]
fn big_goes_on_into_the_middle_clusters_but_never_into_the_little_ones() {
    // Snapdragon 865: 2.8416 and 2.4192 GHz × 16 = 45.4656 + 3 × 38.7072 = 161.5872 GFLOP/s for the four big cores.
    let cpu = load("xiaomi-10").unwrap().cpu().unwrap();
    let choose = |cores: &str| cpu.choose(cores.parse().unwrap(), Frequency::Highest);
    let FlopsPerSecond(four) = choose("big:4").unwrap().peak(Precision::Fp32);
    assert!((four / 1e9 - 161.5872).abs() < 1e-6);
    let FlopsPerSecond(two) = choose("middle:2").unwrap().peak(Precision::Fp32);
    assert!((two / 1e9 - 77.4144).abs() < 1e-6);
    assert_eq!(choose("all").unwrap().cores().len(), 8);
    let error = choose("big:5").unwrap_err().to_string();
    assert_eq!(error, "5 big cores were requested; the device has 4");
    let board = load("jetson-agx-orin").unwrap().cpu().unwrap();
    let error = board.choose("little:1".parse().unwrap(), Frequency::Highest).unwrap_err();
    assert_eq!(error.to_string(), "the device has no little cores; it has big");
}

#[test]
fn a_selection_that_is_not_understood_says_what_was_meant() {
    let error = |text: &str| text.parse::<CoreSelection>().unwrap_err().to_string();
    assert!(error("bgi:4").contains("did you mean `big`"), "{}", error("bgi:4"));
    assert!(error("big").contains("did you mean `big:1`"), "{}", error("big"));
    assert!(error("alll").contains("did you mean `all`"), "{}", error("alll"));
    assert!(error("big:0").contains("whole number from 1"), "{}", error("big:0"));
    assert!(error("big:x").contains("whole number from 1"), "{}", error("big:x"));
    for text in ["all", "big:4", "middle:2", "little:1"] {
        assert_eq!(text.parse::<CoreSelection>().unwrap().to_string(), text);
    }
    let error = "highst".parse::<Frequency>().unwrap_err().to_string();
    assert!(error.contains("did you mean `highest`"), "{error}");
}

#[test]
fn a_processor_joins_a_device_and_a_stack() {
    let device = load("server-core").unwrap();
    let stack = load_stack(&device.constants.default_stack).unwrap();
    let make = |kind| device.processor(kind, &stack, CoreSelection::All, Frequency::Highest);
    let cpu = make(ProcessorKind::Cpu).unwrap();
    // 1 GFLOP at 4 GHz × 64 × the stack's efficiency for products.
    let work = Work { flops: Flops(1e9), ..arithmetic() };
    let efficiency = stack.cpu().unwrap().efficiency.of(OperatorKind::Gemm).0;
    let busy = 1e9 / (4e9 * 64.0 * efficiency);
    assert!((cpu.cost(&work).busy.seconds() - busy).abs() < 1e-9);
    assert_eq!(make(ProcessorKind::Gpu).unwrap_err().to_string(), "server-core has no modelled GPU");
    let cuda = load_stack("pytorch-cuda").unwrap();
    let error = device.processor(ProcessorKind::Cpu, &cuda, CoreSelection::All, Frequency::Highest).unwrap_err();
    assert_eq!(error.to_string(), "the software stack pytorch-cuda has no kernels for a CPU");
}
