//! Products as a library runs them, worked by hand on a GPU of two units.

use crate::common;
use haversack_devices::processor::Queue;
use haversack_devices::units::{Bytes, Flops, Nanos};
use haversack_devices::work::{MemoryFormat, Product, ProductRole};
use haversack_devices::{Cost, OperatorKind, Precision, Traffic, Work, load, load_stack};

/// Inner loops reach all of the peak, and the framework's kernels all of the bandwidth.
const LIBRARY: &str = "
[gpu.library]
tensor_convolution = 1 fraction
tensor_convolution_gradient = 1 fraction
tensor_gemm = 1 fraction
depthwise_output_ops = 100 count
depthwise_tap_ops = 10 count
depthwise_weight_ops = 20 count
depthwise_channels_last = 0.5 factor
grouped_channels_last = 4 factor
bandwidth = 1 fraction
update_launches = 3 count
update_traffic = 1.6 factor
";

fn cost(work: Work) -> Cost {
    common::device().gpu().unwrap().cost(&work, common::stack_with("[gpu.efficiency]", LIBRARY).gpu().unwrap())
}

/// A linear layer of `rows` rows for each of `samples` samples.
fn linear(rows: u64, inputs: u64, outputs: u64) -> Product {
    let size = [rows, 1];
    Product {
        role: ProductRole::Forward,
        inputs,
        outputs,
        input_size: size,
        output_size: size,
        taps: [1, 1],
        groups: 1,
        of_each_sample: false,
    }
}

fn work(kind: OperatorKind, product: Product, samples: u64) -> Work {
    Work {
        flops: Flops(2.0 * product.multiply_adds(samples)),
        product: Some(product),
        samples,
        ..Work::empty(kind, Precision::Fp32)
    }
}

fn of_3090(work: &Work) -> Cost {
    let stack = load_stack("pytorch-cuda").unwrap();
    load("rtx-3090").unwrap().gpu().unwrap().cost(work, stack.gpu().unwrap())
}

#[test]
fn a_gradient_of_a_weight_has_few_outputs_and_a_long_sum() {
    // 64 → 128 channels, 3 × 3, 16 × 16 positions, 10 samples: 128 × (64 · 9) outputs of 10 · 256 terms.
    let size = [16, 16];
    let forward = Product { input_size: size, output_size: size, taps: [3, 3], ..linear(0, 64, 128) };
    let of = |role| Product { role, ..forward }.matrices(10);
    let gradient = of(ProductRole::WeightGradient);
    assert_eq!((gradient.count, gradient.rows, gradient.columns, gradient.depth), (1, 128, 576, 2560.0));
    let output = of(ProductRole::Forward);
    assert_eq!((output.rows, output.columns, output.depth), (2560, 128, 576.0));
    // In 64 groups of one input channel each: 64 products of 2 × 9 outputs.
    let grouped = Product { groups: 64, role: ProductRole::WeightGradient, ..forward }.matrices(10);
    assert_eq!((grouped.count, grouped.rows, grouped.columns, grouped.depth), (64, 2, 9, 2560.0));
    // Attention of 10 samples with 4 heads: 40 products.
    let heads = Product { of_each_sample: true, groups: 4, ..linear(16, 4 * 8, 4 * 16) }.matrices(10);
    assert_eq!((heads.count, heads.rows, heads.columns, heads.depth), (40, 16, 16, 8.0));
}

#[test]
fn tiles_run_in_whole_waves() {
    // fp32 at 200 GFLOP/s × 0.5. One tile of 32 × 32 outputs and 320 terms is 2 · 1024 · 320 = 655,360 operations; one
    // of the two units takes 655,360 / 50e9 = 13.1 us. Splitting the sum in two halves that, but the partial sums are
    // too few to matter: 2 · 2 · 1024 · 4 B.
    let small = |rows, inputs| cost(work(OperatorKind::Gemm, linear(rows, inputs, 32), 1)).busy.0 as f64;
    // Depth 32 cannot be split: one tile of 65,536 operations on one of two units, 1.31 us; two
    // take as long, three twice.
    common::assert_close(small(32, 32), 1_311.0, 2.0);
    common::assert_close(small(64, 32), 1_311.0, 2.0);
    common::assert_close(small(96, 32), 2_621.0, 2.0);
}

#[test]
fn a_long_sum_is_split_until_the_units_are_full() {
    // One tile of 32 × 32, 65,536 terms: 134.2 MFLOP on one unit at 50 GFLOP/s take 2.68 ms, on both 1.34 ms and a pass
    // over partial sums.
    let long = cost(work(OperatorKind::Gemm, linear(32, 65_536, 32), 1)).busy;
    assert!((1_342_000..1_360_000).contains(&long.0), "{long:?}");
}

#[test]
fn a_depthwise_gradient_of_a_weight_takes_some_times_what_forward_takes() {
    // mnasnet's first: 32 channels of 112 × 112 in fp16, 512 samples. Operations per output are those for its index
    // plus those for nine taps: 100 + 9 · 10 = 190 forward, 1066 + 9 · 10 = 1156 backward: 6.08 times.
    let size = [112, 112];
    let layer = Product { input_size: size, output_size: size, taps: [3, 3], groups: 32, ..linear(0, 32, 32) };
    let time = |role| {
        let maps = Bytes(2 * 2 * 32 * 112 * 112 * 512);
        let traffic = Traffic { dram: maps, shared: Bytes::ZERO };
        let precision = Precision::Fp16;
        let work = work(OperatorKind::DepthwiseConvolution, Product { role, ..layer }, 512);
        of_3090(&Work { traffic, working_set: maps, precision, ..work }).busy.0 as f64
    };
    let ratio = time(ProductRole::WeightGradient) / time(ProductRole::Forward);
    let stack = load_stack("pytorch-cuda").unwrap();
    let library = stack.gpu().unwrap().library.as_ref().unwrap();
    let output = |found: f64| found + 9.0 * library.depthwise_tap_ops.value.0;
    let [forward, backward] =
        [&library.depthwise_output_ops, &library.depthwise_weight_ops].map(|ops| output(ops.value.0));
    common::assert_close(ratio, backward / forward, 0.002);
}

#[test]
fn channels_last_saves_the_conversions_of_tensor_cores() {
    // 256 channels of 14 × 14 in fp16, 256 samples: both maps are 25.7 MB, read and written once
    // more at 833 GB/s: 123 us.
    let size = [14, 14];
    let layer = Product { input_size: size, output_size: size, taps: [3, 3], ..linear(0, 256, 256) };
    let time = |memory_format| {
        let work = work(OperatorKind::Convolution, layer, 256);
        of_3090(&Work { precision: Precision::Fp16, memory_format, ..work }).busy.0 as f64
    };
    let saved = time(MemoryFormat::Contiguous) - time(MemoryFormat::ChannelsLast);
    let bandwidth = load_stack("pytorch-cuda").unwrap().gpu().unwrap().library.as_ref().unwrap().bandwidth.value.0;
    let maps = 2.0 * 2.0 * 256.0 * 14.0 * 14.0 * 256.0 * 2.0;
    common::assert_close(saved, maps / (936.0 * 0.89 * bandwidth), 20.0);
}

#[test]
fn fp16_runs_at_the_rate_of_sums_of_32_bits() {
    // 8192³ multiply-adds at no more than 71 TFLOP/s: at least 15.5 ms.
    let product = work(OperatorKind::Gemm, linear(8192, 8192, 8192), 1);
    let busy = of_3090(&Work { precision: Precision::Fp16, ..product }).busy.seconds();
    assert!((15.4e-3..25e-3).contains(&busy), "{busy}");
}

#[test]
fn the_host_runs_ahead_of_a_busy_gpu_and_holds_up_an_idle_one() {
    let kernel = |busy| Cost { launch: Nanos(10), ahead: true, busy: Nanos(busy), ..Cost::default() };
    let mut queue = Queue::default();
    // The first waits for its launch; the second is launched while 100 of the first run; 90 are left, 3 more make 93.
    let waits: Vec<u64> = [100, 3, 3, 3].map(|busy| queue.issue(&kernel(busy)).launch.0).to_vec();
    assert_eq!(waits, [10, 0, 0, 0]);
    // Nothing is left: every kernel of 3 waits 7 for its host.
    let mut idle = Queue::default();
    let waits: Vec<u64> = [3, 3, 3].map(|busy| idle.issue(&kernel(busy)).launch.0).to_vec();
    assert_eq!(waits, [10, 7, 7]);
    // Launches that are not ahead stay.
    assert_eq!(idle.issue(&Cost { ahead: false, ..kernel(3) }).launch, Nanos(10));
}
