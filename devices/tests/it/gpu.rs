//! The GPU roofline, worked by hand on a device with round numbers, and Sage's occupancy.

use crate::common;
use haversack_devices::processor::Stalls;
use haversack_devices::units::{Bytes, Flops, Nanos};
use haversack_devices::{Cost, OperatorKind, Precision, Traffic, Work, load, load_stack};

fn cost(work: Work) -> Cost {
    common::device().gpu().unwrap().cost(&work, common::stack().gpu().unwrap())
}

/// A product of 1 GFLOP that fills the GPU and touches more bytes than fit in its L2.
fn product() -> Work {
    Work {
        flops: Flops(1e9),
        traffic: Traffic { dram: Bytes(4_000_000), shared: Bytes::ZERO },
        working_set: Bytes(4_000_000),
        parallelism: 400.0,
        ..Work::empty(OperatorKind::Gemm, Precision::Fp32)
    }
}

#[test]
fn the_slower_side_of_the_roofline_is_the_busy_time() {
    // 2 × 50 threads × 4 outputs = 400 at once: occupancy 1.
    // Compute: 1e9 / (200e9 × 0.5) = 10 ms. Bytes: 4e6 / (10e9 × 0.5) = 0.8 ms.
    // Launch: 5 us of framework + 1 × 10 us × 2 = 25 us.
    let full = cost(product());
    assert_eq!(full.occupancy, 1.0);
    assert_eq!(full.busy, Nanos(10_000_000));
    assert_eq!(full.launch, Nanos(25_000));
    assert_eq!(full.dram, Bytes(4_000_000));
    assert_eq!(full.alone(), Nanos(10_025_000));
    // 100 MB take 20 ms, more than the arithmetic.
    let traffic = Traffic { dram: Bytes(100_000_000), shared: Bytes::ZERO };
    let bytes = cost(Work { traffic, ..product() });
    assert_eq!(bytes.busy, Nanos(20_000_000));
    assert_eq!(bytes.stalls, Stalls { dram: Nanos(20_000_000), ..Stalls::default() });
}

#[test]
fn half_a_grid_issues_from_more_than_half_the_lanes_and_moves_bytes_as_fast() {
    // 200 of 400 outputs. A unit's 50 lanes × 4 stages want 200 threads and there are 50, so h = 4:
    // 0.5 × (1 + 4) / (0.5 + 4) = 5/9 of the rate, 10 ms × 9/5 = 18 ms.
    let half = cost(Work { parallelism: 200.0, ..product() });
    assert_eq!((half.occupancy, half.busy), (0.5, Nanos(18_000_000)));
    // One and a half grids take the time of their rate: no rounding to whole waves.
    assert_eq!(cost(Work { parallelism: 600.0, ..product() }).busy, Nanos(10_000_000));
    // Bytes without arithmetic do not depend on occupancy: 0.8 ms.
    let bytes = cost(Work { parallelism: 1.0, flops: Flops(0.0), ..product() });
    assert_eq!(bytes.busy, Nanos(800_000));
}

#[test]
fn integer_work_runs_at_half_the_fp32_peak() {
    // 1e9 / (200e9 / 2) = 10 ms, after the 10 ms of arithmetic.
    assert_eq!(cost(Work { integer_ops: 1e9, ..product() }).busy, Nanos(20_000_000));
}

#[test]
fn a_working_set_in_the_l2_moves_no_dram_bytes() {
    // 1 MB in an L2 of 1 MiB: 1e6 / 20e9 = 50 us; one byte more than the L2: 1e6 / 5e9 = 200 us from DRAM.
    let small = Work {
        flops: Flops(0.0),
        traffic: Traffic { dram: Bytes(1_000_000), shared: Bytes::ZERO },
        working_set: Bytes(1 << 20),
        ..product()
    };
    assert_eq!((cost(small).busy, cost(small).dram), (Nanos(50_000), Bytes::ZERO));
    assert_eq!(cost(small).stalls, Stalls { caches: Nanos(50_000), ..Stalls::default() });
    let large = cost(Work { working_set: Bytes((1 << 20) + 1), ..small });
    assert_eq!((large.busy, large.dram), (Nanos(200_000), Bytes(1_000_000)));
    assert_eq!(large.stalls, Stalls { dram: Nanos(200_000), ..Stalls::default() });
}

#[test]
fn only_dense_half_precision_products_reach_the_tensor_cores() {
    // Tensor: 1e9 / (1.6e12 × 0.5 × 0.5) = 2.5 ms. Element-wise FP16: 1e9 / (400e9 × 0.5) = 5 ms. INT8 has no
    // tensor peak here: 1e9 / (800e9 × 0.5) = 2.5 ms.
    let half = Work { precision: Precision::Fp16, ..product() };
    assert_eq!(cost(half).busy, Nanos(2_500_000));
    assert_eq!(cost(Work { kind: OperatorKind::ElementWise, ..half }).busy, Nanos(5_000_000));
    assert_eq!(cost(Work { precision: Precision::Int8, ..product() }).busy, Nanos(2_500_000));
}

#[test]
fn barriers_count_once_a_wave_and_shared_memory_has_a_bandwidth() {
    // 800 outputs are 2 waves; 3 barriers of 100 ns each: 600 ns more than 10 ms.
    let barriers = cost(Work { barriers: 3, parallelism: 800.0, ..product() });
    assert_eq!(barriers.busy, Nanos(10_000_600));
    // The arithmetic takes longest, and of its time the barriers are waited for.
    assert_eq!(barriers.stalls, Stalls { waiting: Nanos(600), ..Stalls::default() });
    // 2 units × 50 B × 1 GHz = 100 GB/s: 2 GB take 20 ms, over the 10 ms of arithmetic.
    let traffic = Traffic { dram: Bytes::ZERO, shared: Bytes(2_000_000_000) };
    let shared = cost(Work { traffic, ..product() });
    assert_eq!(shared.busy, Nanos(20_000_000));
    assert_eq!(shared.stalls, Stalls { caches: Nanos(20_000_000), ..Stalls::default() });
}

#[test]
fn atomics_are_served_one_by_one_and_retried_by_the_blocks_that_contend() {
    let only = |atomics| Work { atomics, flops: Flops(0.0), traffic: Traffic::default(), ..product() };
    assert_eq!(cost(only(0)).busy, Nanos::ZERO);
    // k = 1: H = 0.5772; (1 + 1 × 0.5772) × 2 ns + 0.5772 × 100 ns = 60.9 ns.
    assert_eq!(cost(only(1)).busy, Nanos(61));
    // k = 1000, Q = 2 units × 4 blocks = 8, H = ln 1000 + 0.5772 = 7.4850:
    // (1000 + 8 × 7.4850) × 2 ns + 748.5 ns = 2868.3 ns.
    assert_eq!(cost(only(1000)).busy, Nanos(2868));
    assert_eq!(cost(only(1000)).stalls, Stalls { waiting: Nanos(2868), ..Stalls::default() });
}

#[test]
fn an_operator_without_a_launch_is_free() {
    let free = cost(Work { launches: 0, ..product() });
    assert_eq!((free.launch, free.busy, free.dram), (Nanos::ZERO, Nanos::ZERO, Bytes::ZERO));
}

#[test]
fn a_layer_fills_each_gpu_at_its_own_micro_batch() {
    // ResNet-50's layer4 has 512 × 7 × 7 = 25,088 outputs a sample. A grid fills a GPU at
    // Galaxy S10: 12 × 768 × 16 / 25,088 = 5.88 samples; Note 20: 3 × 4096 × 16 / 25,088 = 7.84;
    // RTX 3090: 82 × 1536 × 16 / 25,088 = 80.33.
    let stack = load_stack("sage-opencl").unwrap();
    for (id, fills) in [("galaxy-s10", 5.88), ("galaxy-note20", 7.84), ("rtx-3090", 80.33)] {
        let gpu = load(id).unwrap().gpu().unwrap();
        let work = |samples: f64| Work {
            parallelism: 25_088.0 * samples,
            ..Work::empty(OperatorKind::Convolution, Precision::Fp32)
        };
        let on_gpu = stack.gpu().unwrap();
        assert!((1.0 / gpu.occupancy(&work(1.0), on_gpu) - fills).abs() < 0.01, "{id}");
        assert_eq!(gpu.occupancy(&work(fills.ceil()), on_gpu), 1.0, "{id}");
    }
}

#[test]
fn a_single_core_is_linear_in_samples_and_infinite_cores_take_a_step_a_kernel() {
    let stack = load_stack("sage-opencl").unwrap();
    let layer = |samples: f64| Work {
        flops: Flops(1e9 * samples),
        integer_ops: 1e8 * samples,
        traffic: Traffic { dram: Bytes((4e6 * samples) as u64), shared: Bytes::ZERO },
        working_set: Bytes((4e6 * samples) as u64),
        parallelism: 1e6 * samples,
        ..Work::empty(OperatorKind::Convolution, Precision::Fp32)
    };
    let time = |id: &str, samples: f64| {
        let gpu = load(id).unwrap().gpu().unwrap();
        gpu.cost(&layer(samples), stack.gpu().unwrap()).alone()
    };
    // One unit of 64 GFLOP/s: eight samples take eight times one, to the nanosecond of rounding.
    let (one, eight) = (time("single-core", 1.0), time("single-core", 8.0));
    assert!(eight.0.abs_diff(one.0 * 8) <= 8, "{one} and {eight}");
    assert!(one > Nanos(10_000_000));
    // A step of 100 us for any batch: 128 MB at 4e15 B/s are 32 ns.
    assert_eq!(time("infinite-cores", 1.0), Nanos(100_001));
    assert_eq!(time("infinite-cores", 32.0), Nanos(100_032));
}
