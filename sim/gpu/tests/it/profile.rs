//! The profile: every device has a fastest strategy, and the paper's reasons for its choice are visible.

use haversack_devices::{Device, list, load};
use haversack_gpu::profile::{Profiler, Scaled, Search, Setting, Timed, block_against_passes, over_units};
use haversack_gpu::{Plan, Strategy, baseline};
use haversack_kernels::reduce::Statistic;

use crate::common::{TRIPLE, shuffled};
use crate::simt::reduction::run;

const CONVOLUTION: u64 = 256 * 14 * 14;
const ATTENTION: u64 = 512 * 768;

fn profiler(id: &str) -> Profiler {
    Profiler::of(&load(id).unwrap()).unwrap()
}

fn devices_with_gpu() -> Vec<Device> {
    list()
        .unwrap()
        .into_iter()
        .map(|listing| load(listing.id).unwrap())
        .filter(|device| device.gpu().is_some())
        .collect()
}

#[test]
fn every_gpu_has_a_fastest_strategy_for_every_size_and_setting() {
    let devices = devices_with_gpu();
    assert!(devices.len() > 10);
    for device in devices {
        let profiler = Profiler::of(&device).unwrap();
        for elements in [0, 1, 1000, CONVOLUTION, ATTENTION, 16 << 20] {
            for setting in [Setting::Own, Setting::Epilogue { outputs: 4 }] {
                let table = profiler.table(&TRIPLE, elements, setting);
                let fastest = profiler.fastest(&TRIPLE, elements, setting).unwrap();
                assert!(table.iter().all(|timed| timed.time.total() >= fastest.time.total()), "{}", device.id);
            }
        }
    }
}

#[test]
fn an_epilogue_beats_a_kernel_of_its_own_and_that_the_framework() {
    for id in ["jetson-agx-xavier", "jetson-agx-orin", "iqoo-neo3", "redmagic-7", "rtx-3090"] {
        let profiler = profiler(id);
        for elements in [CONVOLUTION, ATTENTION] {
            let own = profiler.fastest(&TRIPLE, elements, Setting::Own).unwrap().time;
            let fused = profiler.fastest(&TRIPLE, elements, Setting::Epilogue { outputs: 4 }).unwrap().time;
            let cub = profiler.time_of(&baseline::cub(&TRIPLE, elements, &profiler.machine).unwrap());
            let framework = profiler.time_of(&baseline::framework(&TRIPLE, elements, &profiler.machine).unwrap());
            assert!(fused.total() < own.total(), "{id}");
            assert!(own.total() < cub.total() && own.total() < framework.total(), "{id}");
            // It saves the launch.
            assert_eq!(fused.launch.0, 0.0);
        }
    }
}

#[test]
fn block_atomics_beat_two_passes_on_the_xavier() {
    let profiler = profiler("jetson-agx-xavier");
    for elements in [CONVOLUTION, ATTENTION] {
        let time = |strategy| {
            let search = Search { strategies: vec![strategy], ..Search::default() };
            let profiler = Profiler { search, ..profiler.clone() };
            profiler.fastest(&[Statistic::Minimum], elements, Setting::Own).unwrap().time
        };
        assert!(time(Strategy::Hybrid).total() < time(Strategy::TwoPass).total());
    }
}

#[test]
fn with_more_units_more_blocks_contend_until_two_passes_win() {
    let units: Vec<u32> = (8..=82).collect();
    let plans = block_against_passes(128);
    let mut device = load("rtx-3090").unwrap();
    // From an L2 cache as fast as the card's a second pass is never behind.
    device.constants.gpu.as_mut().unwrap().l2_bandwidth = None;
    let swept = over_units(&device, &units, &plans, &[Statistic::Minimum], ATTENTION).unwrap();
    let retries: Vec<f64> = swept.iter().map(|scaled| scaled.timed[0].counts.kernels[0].atomics[0].retries).collect();
    assert!(retries.windows(2).all(|pair| pair[0] <= pair[1]) && retries[0] < retries[74]);
    // Ahead on few units, behind on many; between, the rounding of the grid to tiles moves either.
    let ahead = |at: &Scaled| at.timed[0].time.busy.0 < at.timed[1].time.busy.0;
    assert!(swept.iter().filter(|at| at.units <= 32).all(ahead));
    assert!(!swept.iter().filter(|at| at.units >= 64).any(ahead));
}

#[test]
fn thread_level_atomics_pay_where_barriers_are_dear() {
    let sizes = [12_544, CONVOLUTION, 100_352, ATTENTION, 802_816];
    let share = |id: &str, barrier: f64| {
        let mut device = load(id).unwrap();
        device.set("gpu.barrier", barrier).unwrap();
        let profiler = Profiler::of(&device).unwrap();
        let won =
            profiler.share_won(Strategy::ThreadThenBlock, Strategy::Hybrid, &[Statistic::Minimum], &sizes, &[1, 4]);
        won.unwrap().0
    };
    for id in ["galaxy-s10", "iqoo-neo3", "jetson-agx-xavier"] {
        let shares = [0.0, 20.0, 150.0, 1000.0, 100_000.0].map(|barrier| share(id, barrier));
        assert!(shares.is_sorted(), "{id}: {shares:?}");
        // Two barriers against at least seven: in the end they always pay.
        assert_eq!((shares[0], shares[4]), (0.0, 1.0), "{id}: {shares:?}");
    }
}

#[test]
fn order_decides_what_atomics_take() {
    let profiler = profiler("jetson-agx-xavier");
    let plan = Plan::epilogue(Strategy::Hybrid, 64, 1);
    let random = shuffled(CONVOLUTION as usize);
    let mut falling = random.clone();
    falling.sort_by(|a, b| b.total_cmp(a));
    let on = |data: &[f32]| {
        let counts = run(&plan, &[Statistic::Minimum], data, &profiler.machine).unwrap().counts;
        let time = profiler.time_of(&counts);
        Timed { plan, counts, time }
    };
    let (random, falling) = (on(&random), on(&falling));
    // 784 blocks, each with a new minimum: 784 changes, at 218 ns each that fails another.
    assert_eq!(falling.counts.kernels[0].atomics[0].changes, 784.0);
    assert!(falling.time.total().0 > 20 * random.time.total().0);
    // Without data the profile expects about what random order gives.
    let expected = profiler.time(plan, &[Statistic::Minimum], CONVOLUTION).unwrap();
    let ratio = random.time.total().seconds() / expected.time.total().seconds();
    assert!((0.6..1.6).contains(&ratio), "{ratio}");
}

#[test]
fn a_large_tree_is_a_launch_and_a_line_in_the_bytes() {
    // Public NvBench runs of a tree on an RTX 3060 Ti follow a + 4n / (0.9 of peak) from 16 MiB up. So does this one,
    // with items enough that latency hides: twice the elements take twice the time beyond the launches.
    let profiler = profiler("rtx-3090");
    let time = |elements| {
        let plan = Plan { items: 8, ..Plan::new(Strategy::Tree, 512) };
        profiler.time(plan, &[Statistic::SumOfSquares], elements).unwrap().time
    };
    // From 2^25 to 2^27 there are three launches: 4096 elements a block, and again, and one.
    let (one, two, four) = (time(1 << 25), time(1 << 26), time(1 << 27));
    assert_eq!(one.launch, four.launch);
    let first = two.total().seconds() - one.total().seconds();
    let second = four.total().seconds() - two.total().seconds();
    assert!((second / first - 2.0).abs() < 0.01, "{first} {second}");
    // 128 MiB more at 0.89 x 936 GB/s.
    let bytes = f64::from(1_u32 << 27) / (0.89 * 936e9);
    assert!((first / bytes - 1.0).abs() < 0.02, "{first} {bytes}");
}
