//! The DSP by hand: products, the three regimes of a weight's gradient, padding, rejected work, crossings.

use crate::common;
use crate::common::assert_close;
use haversack_devices::processor::Stalls;
use haversack_devices::units::{Bytes, Flops, Nanos};
use haversack_devices::{
    CoreSelection, Cost, CpuCores, Device, Frequency, Offloader, OperatorKind, Precision, ProcessorKind, Product,
    ProductRole, Stack, Traffic, Work, load, load_stack,
};

fn dsp() -> Offloader {
    common::device().offloader(&common::stack()).unwrap()
}

fn cost(work: Work) -> Cost {
    dsp().cost(&work)
}

fn cores(device: &Device, frequency: Frequency) -> CpuCores {
    device.cpu().unwrap().choose("big:1".parse().unwrap(), frequency).unwrap()
}

/// 10⁸ operations of eight bits: 1 ms at 100 GOP/s. 1 MB of operands: 50 us from L2.
fn convolution() -> Work {
    Work {
        flops: Flops(1e8),
        traffic: Traffic { dram: Bytes(1_000_000), shared: Bytes::ZERO },
        working_set: Bytes(1_000_000),
        ..Work::empty(OperatorKind::Convolution, Precision::Int8)
    }
}

/// The weight's gradient of a 3×3 convolution from 64 to 64 channels over a square map.
fn gradient(side: u64, samples: u64) -> Work {
    let layer = Product {
        role: ProductRole::WeightGradient,
        inputs: 64,
        outputs: 64,
        input_size: [side; 2],
        output_size: [side; 2],
        taps: [3, 3],
        groups: 1,
        of_each_sample: false,
    };
    Work { product: Some(layer), samples, ..convolution() }
}

#[test]
fn a_product_takes_the_longer_of_arithmetic_and_stream() {
    let product = cost(convolution());
    assert_eq!((product.launch, product.busy, product.dram), (Nanos(20_000), Nanos(1_000_000), Bytes::ZERO));
    // 40 MB from L2 at 20 GB/s: 2 ms; a working set beyond it at 5 GB/s: 8 ms, from DRAM.
    let traffic = Traffic { dram: Bytes(40_000_000), shared: Bytes::ZERO };
    assert_eq!(cost(Work { traffic, ..convolution() }).busy, Nanos(2_000_000));
    let beyond = cost(Work { traffic, working_set: Bytes((1 << 20) + 1), ..convolution() });
    assert_eq!((beyond.busy, beyond.dram), (Nanos(8_000_000), Bytes(40_000_000)));
    // Sixteen-bit elements: half as many lanes.
    assert_eq!(cost(Work { precision: Precision::Int16, ..convolution() }).busy, Nanos(2_000_000));
    // A view costs nothing, regardless of its traffic.
    assert_eq!(cost(Work { launches: 0, ..convolution() }).alone(), Nanos::ZERO);
}

#[test]
fn weights_gradients_have_an_efficiency_of_their_own() {
    let mut stack = common::stack();
    stack.set("dsp.library.0.product_efficiency", 0.1953125).unwrap();
    let busy = |work| common::device().offloader(&stack).unwrap().cost(&work).busy;
    // Twice 100 GOP/s for the product, not for the gradient, which fits in the tightly coupled memory.
    assert_eq!(busy(convolution()), Nanos(500_000));
    assert_eq!(busy(gradient(8, 32)), Nanos(1_000_000));
}

#[test]
fn rates_follow_from_structure_and_clock() {
    let mut device = common::device();
    let busy = |device: &Device, work| device.offloader(&common::stack()).unwrap().cost(&work).busy;
    let resident = Traffic { dram: Bytes(1 << 20), shared: Bytes::ZERO };
    let copy = Work { kind: OperatorKind::Layout, ..convolution() };
    let stream = Work { flops: Flops(0.0), traffic: resident, ..convolution() };
    let missed = Work { working_set: Bytes(2 << 20), ..stream };
    let [product, crawl, hit, miss] = [convolution(), copy, stream, missed].map(|work| busy(&device, work).0);
    device.set("dsp.clock", 2.0).unwrap();
    assert_eq!([convolution(), copy, stream].map(|work| busy(&device, work).0), [product, crawl, hit].map(|t| t / 2));
    // Misses wait for DRAM, which does not depend on the clock: 8192 lines of 25.6 ns.
    assert_eq!((busy(&device, missed).0, miss), (209_715, 209_715));
    device.set("dsp.contexts", 4.0).unwrap();
    assert_eq!(busy(&device, convolution()).0, product / 4);
}

#[test]
fn a_buffer_that_crosses_is_cleaned_line_by_line() {
    // 1000 B lie in 8 lines of 128 B, each 50 ns.
    let host = cores(&common::device(), Frequency::Highest);
    let of = |bytes| dsp().maintenance(Bytes(bytes), &host);
    assert_eq!((of(0), of(1), of(1000)), (Nanos::ZERO, Nanos(50), Nanos(400)));
}

#[test]
fn the_hosts_core_cleans_lines_as_fast_as_it_runs_scalar_code() {
    // 0.001 iterations at 5 a second for each of 2000 MHz take 100 ns, at 1000 MHz 200 ns; 8 lines.
    let device = common::device_with("l1 =", "coremark = 5 factor");
    let offloader = device.offloader(&common::stack_with("line =", "line_work = 1000 factor")).unwrap();
    let of = |device, frequency| offloader.maintenance(Bytes(1000), &cores(device, frequency));
    assert_eq!(of(&device, Frequency::Highest), Nanos(800));
    assert_eq!(of(&device, Frequency::Lowest), Nanos(1600));
    // A core of unknown CoreMark takes the time `line`.
    assert_eq!(of(&common::device(), Frequency::Lowest), Nanos(400));
}

/// The stack with a second library for V68 and later, whose products reach twice as much; it leaves out all optional
/// keys.
fn two_libraries() -> Stack {
    let product =
        "product_efficiency = { value = 0.1953125, unit = \"fraction\", kind = \"estimated\", source = \"t\" }";
    let later = format!("{}\n[[dsp.library]]\nname = \"later\"\nfrom = \"V68\"\n{product}\n", common::stack_text());
    Stack::parse("round", "stack.toml", &later).unwrap()
}

fn device_of(version: &str) -> Device {
    let mut device = common::device();
    device.constants.dsp.as_mut().unwrap().version = version.parse().unwrap();
    device
}

#[test]
fn a_generation_runs_the_latest_library_that_is_not_newer() {
    let stack = two_libraries();
    let copy = Work { kind: OperatorKind::Layout, ..convolution() };
    let busy = |version| {
        let offloader = device_of(version).offloader(&stack).unwrap();
        [convolution(), gradient(8, 32), copy].map(|work| offloader.cost(&work).busy)
    };
    for version in ["V66", "V67"] {
        assert_eq!(busy(version), [convolution(), gradient(8, 32), copy].map(|work| cost(work).busy), "{version}");
    }
    // Twice as fast a product, of which a weight's gradient is one; a copy of 1 MB streams from L2 at 20 GB/s.
    for version in ["V68", "V73"] {
        assert_eq!(busy(version), [500_000, 500_000, 50_000].map(Nanos), "{version}");
    }
    // Beyond L2, 5 GB/s.
    let beyond = Work { working_set: Bytes((1 << 20) + 1), ..copy };
    let missed = device_of("V68").offloader(&stack).unwrap().cost(&beyond);
    assert_eq!((missed.busy, missed.dram), (Nanos(200_000), Bytes(1_000_000)));
    assert_eq!(missed.stalls, Stalls { dram: Nanos(200_000), ..Stalls::default() });
}

#[test]
fn a_generation_before_all_libraries_and_one_that_two_begin_with_are_refused() {
    let error = device_of("V65").offloader(&two_libraries()).unwrap_err().to_string();
    assert_eq!(error, "the software stack round runs on Hexagon V66 and later; round has a Hexagon V65");
    let refused = |from: &str, to: &str| {
        let text = common::stack_text().replacen(from, to, 1);
        Stack::parse("round", "stack.toml", &text).unwrap_err().to_string()
    };
    let message = refused("from = \"V66\"", "from = \"66\"");
    assert!(
        message.contains("dsp.library.0.from") && message.contains("a version of Hexagon such as V66"),
        "{message}"
    );
    let (_, library) =
        common::stack_text().split_once("[[dsp.library]]").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let message = refused("[[dsp.library]]", &format!("[[dsp.library]]{library}\n[[dsp.library]]"));
    assert!(message.contains("two libraries begin with V66"), "{message}");
}

#[test]
fn the_vendors_libraries_serve_every_phone() {
    let stack = load_stack("mandheling").unwrap();
    let library = |version: &str| stack.dsp().unwrap().library(version.parse().unwrap()).map(|one| one.name.as_str());
    assert_eq!(["V60", "V65", "V66"].map(library), [Some("Hexagon NN"); 3]);
    assert_eq!(["V68", "V69", "V73"].map(library), [Some("QNN HTP"); 3]);
    assert_eq!(library("V5"), None);
}

#[test]
fn maps_run_at_the_width_of_the_vectors_and_copies_crawl() {
    // 5.12e8 operations at 256 G a second: 2 ms; of sixteen bits 4 ms.
    let map = Work { kind: OperatorKind::ElementWise, flops: Flops(5.12e8), ..convolution() };
    assert_eq!(cost(map).busy, Nanos(2_000_000));
    assert_eq!(cost(Work { precision: Precision::Int16, ..map }).busy, Nanos(4_000_000));
    // 1 MB at 100 MB/s: 10 ms, and every byte from DRAM.
    let copy = cost(Work { kind: OperatorKind::Layout, ..convolution() });
    assert_eq!((copy.busy, copy.dram), (Nanos(10_000_000), Bytes(1_000_000)));
    assert_eq!(copy.stalls, Stalls { dram: Nanos(10_000_000), ..Stalls::default() });
    assert_eq!(cost(map).stalls, Stalls::default());
}

#[test]
fn a_filter_in_the_tightly_coupled_memory_is_read_once() {
    // 8 × 8 × 32 samples × 64 channels = 128 KiB of 256: 1 ms of arithmetic, longer than the operands' 50 us.
    let resident = cost(gradient(8, 32));
    assert_eq!((resident.busy, resident.dram), (Nanos(1_000_000), Bytes::ZERO));
    // A stream of 10 MB from DRAM takes 2 ms.
    let traffic = Traffic { dram: Bytes(10_000_000), shared: Bytes::ZERO };
    let streamed = cost(Work { traffic, working_set: Bytes(10_000_000), ..gradient(8, 32) });
    assert_eq!((streamed.busy, streamed.dram), (Nanos(2_000_000), Bytes(10_000_000)));
}

#[test]
fn a_filter_in_l2_is_read_for_every_input_channel_and_row_of_taps() {
    // 16 × 16 × 32 × 64 = 512 KiB, with an image of 18 × 18 × 32 B within 1 MiB. 64 × 3 passes: 192 × 524,288 B at
    // 20 GB/s = 5.0331648 ms, longer than the arithmetic; nothing from DRAM.
    let streamed = cost(gradient(16, 32));
    assert_eq!((streamed.busy, streamed.dram), (Nanos(5_033_165), Bytes::ZERO));
    assert_eq!(streamed.stalls, Stalls { caches: Nanos(5_033_165), ..Stalls::default() });
    // Filters of 3 × 2 taps have three rows, of 2 × 3 two: 128 passes take 3.3554432 ms.
    let taps = |taps| Work { product: Some(Product { taps, ..gradient(16, 32).product.unwrap() }), ..gradient(16, 32) };
    assert_eq!(cost(taps([3, 2])).busy, Nanos(5_033_165));
    assert_eq!(cost(taps([2, 3])).busy, Nanos(3_355_443));
    // Operands from DRAM are read concurrently: 40 MB at 5 GB/s.
    let traffic = Traffic { dram: Bytes(40_000_000), shared: Bytes::ZERO };
    let first = cost(Work { traffic, working_set: Bytes(40_000_000), ..gradient(16, 32) });
    assert_eq!((first.busy, first.dram), (Nanos(8_000_000), Bytes(40_000_000)));
    // Hidden behind 10 ms of arithmetic.
    assert_eq!(cost(Work { flops: Flops(1e9), ..gradient(16, 32) }).busy, Nanos(10_000_000));
}

#[test]
fn what_misses_l2_is_waited_for() {
    // 32 × 32 × 32 × 64 = 2 MiB and 34 × 34 × 32 B: 2,134,144 B through 1,048,576 B. Misses m = 0.8062 solve 1 − m =
    // e^(−2.03528 m). This share of 192 × 2 MiB = 402,653,184 B comes at 5 GB/s: 64.92 ms; the rest at 20 GB/s takes
    // 3.90 ms, longer than the arithmetic.
    let excess = 2_134_144.0 / 1_048_576.0;
    let missed: f64 = 0.806_172;
    assert_close(1.0 - missed, (-excess * missed).exp(), 1e-5);
    let cost_of = |flops| cost(Work { flops: Flops(flops), ..gradient(32, 32) });
    let moved = 402_653_184.0;
    assert_close(cost_of(1e8).busy.seconds(), moved * (missed / 5e9 + (1.0 - missed) / 20e9), 1e-6);
    assert_close(cost_of(1e8).dram.as_f64(), moved * missed, 400.0);
    // 10 ms of arithmetic hide the hits and none of the misses.
    assert_close(cost_of(1e9).busy.seconds(), moved * missed / 5e9 + 10e-3, 1e-6);
    // In the first, L2 limits the hits; in the second, the arithmetic does.
    let [hits, hidden] = [1e8, 1e9].map(|flops| cost_of(flops).stalls);
    assert_close(hits.dram.seconds(), moved * missed / 5e9, 1e-6);
    assert_close(hits.caches.seconds(), moved * (1.0 - missed) / 20e9, 1e-6);
    assert_eq!((hidden.dram, hidden.caches), (hits.dram, Nanos::ZERO));
}

#[test]
fn depths_beyond_four_are_padded_to_32_in_bytes_and_not_in_arithmetic() {
    // A map of 32 × 32 × 64 B a sample: 4 samples are 256 KiB and fit in the tightly coupled memory.
    assert_eq!(cost(gradient(32, 4)).busy, Nanos(1_000_000));
    // 5 to 32 samples stream as 32, 33 to 64 as 64; the given arithmetic stays 1 ms.
    let of = |samples| cost(gradient(16, samples));
    assert_eq!(of(5), of(32));
    assert_eq!(of(33), of(64));
    assert!(of(64).busy > of(32).busy);
    // 4 samples are 64 KiB.
    assert_eq!(of(4).busy, Nanos(1_000_000));
}

#[test]
fn time_has_no_step_where_a_filter_outgrows_l2() {
    // 1 × w positions of 32 samples × 64 channels: 2080 B each with the image's row, so that 504 fit and 505 do not.
    // One more position is 0.2 % more of everything, and the 0.35 % that miss take four times as long: 1.3 % in total.
    let of = |width| {
        let mut work = gradient(1, 32);
        let layer = Product { input_size: [1, width], output_size: [1, width], taps: [1, 1], ..work.product.unwrap() };
        work.product = Some(layer);
        cost(work)
    };
    let (fits, beyond) = (of(504), of(505));
    assert_eq!(fits.dram, Bytes::ZERO);
    assert!(beyond.dram > Bytes::ZERO);
    let step = beyond.busy.seconds() / fits.busy.seconds();
    assert!(step > 1.002 && step < 1.014, "{step}");
}

#[test]
fn only_narrow_integers_run_there() {
    for (precision, runs) in [
        (Precision::Int8, true),
        (Precision::Int16, true),
        (Precision::Int32, false),
        (Precision::Fp16, false),
        (Precision::Fp32, false),
    ] {
        assert_eq!(dsp().runs(&Work { precision, ..convolution() }), runs, "{precision}");
    }
}

#[test]
fn a_dsp_helps_a_cpu_and_trains_nothing_alone() {
    let (round, stack) = (common::device(), common::stack());
    let error = |id: &str, stack: &str| load(id).unwrap().offloader(&load_stack(stack).unwrap()).unwrap_err();
    assert_eq!(error("server-core", "mandheling").to_string(), "server-core has no modelled DSP");
    let error = error("xiaomi-10", "mnn").to_string();
    assert_eq!(error, "the software stack mnn has no kernels for a DSP");
    let alone = round.processor(ProcessorKind::Dsp, &stack, CoreSelection::All, Frequency::Highest).unwrap_err();
    assert!(alone.to_string().starts_with("a DSP does not train alone"), "{alone}");
}

#[test]
fn crossing_is_a_call_lines_and_a_copy() {
    // 300 us; 1 MB is 7813 lines of 50 ns each; the core reads and writes it at 4 GB/s: 500 us.
    let host = cores(&common::device(), Frequency::Highest);
    assert_eq!(dsp().crossing(Bytes::ZERO, &host), Nanos(300_000));
    assert_eq!(dsp().crossing(Bytes(1_000_000), &host), Nanos(300_000 + 390_650 + 500_000));
    assert_eq!(dsp().dsp.memory(), Bytes(2 << 30));
}
