//! Reductions: their numbers against plain loops and the host's, their counts against arithmetic and the closed form.

use haversack_devices::units::Bytes;
use haversack_devices::{AtomicCounts, KernelCounts, ProgramCounts};
use haversack_gpu::counts::counts_of;
use haversack_gpu::{Grid, Machine, Plan, Strategy, Update, baseline};
use haversack_kernels::reduce::Statistic;
use haversack_kernels::{Isa, KernelError};
use proptest::prelude::*;

use crate::common::{TRIPLE, machine, naive, shuffled, squares};
use crate::simt;
use crate::simt::reduction::run;

fn assert_same(plan: &Plan, machine: &Machine, data: &[f32], statistics: &[Statistic]) {
    let reduced = run(plan, statistics, data, machine).unwrap();
    for (&statistic, &found) in statistics.iter().zip(&reduced.values) {
        let expected = naive(statistic, data);
        if statistic.is_order_free() {
            assert_eq!(found.to_bits(), expected.to_bits(), "{plan:?} {statistic} of {}", data.len());
        } else if expected.is_nan() {
            assert!(found.is_nan(), "{plan:?} {statistic}");
        } else {
            let off = (found - expected).abs();
            assert!(off <= 1e-6 * squares(data), "{plan:?} {statistic}: {found} against {expected}");
        }
    }
}

fn plans(threads: u32) -> Vec<Plan> {
    let mut plans = Vec::new();
    for strategy in Strategy::ALL {
        for update in Update::ALL {
            let plan = Plan::new(strategy, threads).with_update(update);
            plans.push(plan);
            if strategy.ends_atomically() {
                plans.push(Plan::epilogue(strategy, threads, 4).with_update(update));
                plans.push(Plan { grid: Grid::PerUnit(1), ..plan });
                plans.push(Plan { shuffles: true, ..plan });
            }
        }
    }
    plans
}

#[test]
fn every_strategy_gives_the_numbers_of_a_plain_loop() {
    for n in [0, 1, 2, 31, 32, 33, 255, 256, 257, 4097, 20_000] {
        let data = shuffled(n);
        for threads in [32, 128] {
            for plan in plans(threads) {
                assert_same(&plan, &machine(3, 4), &data, &Statistic::ALL);
            }
        }
    }
}

/// All counts except those that depend on the order of the data.
fn without_contention(counts: &KernelCounts) -> KernelCounts {
    let issued = counts.atomics.iter().map(|cell| cell.issued).fold(0.0, f64::max);
    let mut counts =
        KernelCounts { atomics: vec![AtomicCounts { issued, ..AtomicCounts::default() }], ..counts.clone() };
    if counts.shared_attempts > 0.0 {
        counts.shared_attempts = 0.0;
        counts.shared = Bytes::ZERO;
    }
    counts
}

#[test]
fn the_closed_form_is_what_the_machine_counts() {
    for n in [0, 1, 5, 32, 33, 255, 256, 257, 1000, 4096, 4097, 30_000] {
        let data = shuffled(n);
        for (units, blocks, lanes) in [(1, 1, 32), (3, 4, 32), (8, 16, 64)] {
            let machine = machine(units, blocks).with_lanes(lanes);
            for threads in [1, 4, 32, 64, 256, 1024] {
                for plan in plans(threads) {
                    for statistics in [&TRIPLE[..], &[Statistic::Maximum], &[Statistic::SumOfSquares]] {
                        let Ok(foretold) = counts_of(&plan, statistics, n as u64, &machine) else {
                            // A tree of one thread, or too many warps for one to combine.
                            assert!(run(&plan, statistics, &data, &machine).is_err());
                            continue;
                        };
                        let counted = run(&plan, statistics, &data, &machine).unwrap().counts;
                        assert_eq!(counted.memsets, foretold.memsets);
                        assert_eq!(counted.kernels.len(), foretold.kernels.len());
                        for (counted, foretold) in counted.kernels.iter().zip(&foretold.kernels) {
                            let (counted, foretold) = (without_contention(counted), without_contention(foretold));
                            assert_eq!(counted, foretold, "{plan:?} of {n} on {units} x {blocks}, {lanes} lanes");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_not_a_plain_number_is_treated_as_on_the_host() {
    let nan = f32::NAN;
    let cases: [&[f32]; 7] = [
        &[],
        &[nan, nan],
        &[nan, -3.0, nan, 2.0],
        &[-0.0, 0.0],
        &[-0.0],
        &[f32::INFINITY, 1.0],
        &[f32::NEG_INFINITY, f32::INFINITY, -1.0],
    ];
    for data in cases {
        for plan in plans(32) {
            let found = run(&plan, &Statistic::ALL, data, &machine(2, 2)).unwrap().values;
            for (statistic, found) in Statistic::ALL.into_iter().zip(found) {
                let host = statistic.of(data, Isa::Scalar);
                // Bits, so that -0 is not +0; one NaN is as good as another.
                assert!(found.to_bits() == host.to_bits() || found.is_nan() && host.is_nan(), "{plan:?} {data:?}");
            }
        }
    }
}

#[test]
fn the_host_s_numbers_come_out_at_the_paper_s_sizes() {
    // Figure 12: conv2d of [1, 256, 14, 14], attention of [1, 512, 768].
    for n in [256 * 14 * 14, 512 * 768] {
        let data = shuffled(n);
        let [minimum, maximum, squares] = TRIPLE.map(|statistic| statistic.of(&data, Isa::Scalar));
        for strategy in [Strategy::Tree, Strategy::Hybrid, Strategy::ThreadThenBlock, Strategy::TwoPass] {
            let found = run(&Plan::new(strategy, 256), &TRIPLE, &data, &machine(8, 8)).unwrap().values;
            assert_eq!(found[0], minimum);
            assert_eq!(found[1], maximum);
            assert!((found[2] - squares).abs() <= 1e-6 * squares, "{}", strategy.name());
        }
    }
}

/// The counts of the first launch for a minimum.
fn first(plan: &Plan, n: usize) -> KernelCounts {
    run(plan, &[Statistic::Minimum], &shuffled(n), &machine(8, 8)).unwrap().counts.kernels[0].clone()
}

#[test]
fn a_tree_takes_a_launch_a_level_and_a_barrier_a_halving() {
    let plan = Plan::new(Strategy::Tree, 256);
    for (n, launches) in [(1, 1), (256, 1), (257, 2), (65_536, 2), (65_537, 3)] {
        // ceil(log_256 n), but at least one.
        let counts = run(&plan, &[Statistic::Minimum], &shuffled(n), &machine(8, 8)).unwrap().counts;
        assert_eq!((counts.launches(), counts.memsets), (launches, 0), "{n}");
    }
    let tree = first(&plan, 65_536);
    // One barrier after the load, then log2 256 = 8.
    assert_eq!((tree.barriers, tree.barriers_of_all, tree.blocks), (9, 9 * 256, 256));
    // A block stores 256 words of 4 B, then each of 255 combinations loads two and stores one: 4 x 256 + 12 x 255.
    assert_eq!(tree.shared, Bytes(256 * (4 * 256 + 12 * 255)));
    // Each block's partial result is a separate sector.
    assert_eq!((tree.read, tree.written), (Bytes(4 * 65_536), Bytes(32 * 256)));
    // Two results of 256 B... the 256 partials are read once: 4 x 256 B, and one sector is written.
    let counts = run(&plan, &[Statistic::Minimum], &shuffled(65_536), &machine(8, 8)).unwrap().counts;
    assert_eq!((counts.kernels[1].read, counts.kernels[1].written), (Bytes(1024), Bytes(32)));
}

#[test]
fn block_strategies_differ_in_barriers_shuffles_and_atomics() {
    // 16,384 elements in blocks of 256 threads x 4: 16 blocks, all resident.
    let hybrid = first(&Plan::new(Strategy::Hybrid, 256), 16_384);
    assert_eq!((hybrid.blocks, hybrid.waves, hybrid.launches, hybrid.barriers), (16, 1, 1, 9));
    assert_eq!((hybrid.atomics[0].issued, hybrid.atomic_cells), (16.0, 1));
    // The tensor, and the cell once in and once out.
    assert_eq!((hybrid.read, hybrid.written), (Bytes(4 * 16_384 + 32), Bytes(32)));
    // A load of the tile, a load of the cell, a swap.
    assert_eq!(hybrid.round_trips, 3);
    let threads = first(&Plan::new(Strategy::ThreadThenBlock, 256), 16_384);
    assert_eq!((threads.barriers, threads.atomics[0].issued), (2, 16.0));
    assert!(threads.shared_attempts >= 256.0);
    // Eight warps: five shuffles each, then five of the first; one barrier between.
    let shuffles = first(&Plan { shuffles: true, ..Plan::new(Strategy::Hybrid, 256) }, 16_384);
    assert_eq!((shuffles.barriers, shuffles.shuffles, shuffles.shared), (1, 16 * 45, Bytes(16 * 64)));
    let atomic = first(&Plan::new(Strategy::Atomic, 256), 16_384);
    assert_eq!((atomic.barriers, atomic.shared, atomic.atomics[0].issued), (0, Bytes(0), 16_384.0));
}

#[test]
fn an_epilogue_neither_launches_nor_reads() {
    let counts = run(&Plan::epilogue(Strategy::Hybrid, 256, 4), &TRIPLE, &shuffled(16_384), &machine(8, 8)).unwrap();
    let kernel = &counts.counts.kernels[0];
    assert_eq!((counts.counts.launches(), counts.counts.memsets), (0, 0));
    // Only the three cells; three statistics share the barriers.
    assert_eq!((kernel.read, kernel.written, kernel.barriers), (Bytes(96), Bytes(96), 9));
}

#[test]
fn cub_needs_a_second_launch_from_its_second_tile_on() {
    // A tile is 256 x 16 = 4096 elements; 8 units x 8 blocks x 5 = 320 blocks at most.
    let blocks = |n: u64| {
        let plan = Plan::new(Strategy::TwoPass, 256);
        let counts = counts_of(&plan, &[Statistic::Minimum], n, &machine(8, 8)).unwrap();
        counts.kernels.iter().map(|kernel| kernel.blocks).collect::<Vec<_>>()
    };
    assert_eq!(blocks(4096), [1]);
    assert_eq!(blocks(4097), [2, 1]);
    assert_eq!(blocks(4096 * 1000), [320, 1]);
}

#[test]
fn a_framework_runs_an_operator_and_a_kernel_a_statistic() {
    // Minimum, maximum, norm: one kernel each, whose last block recognises that it is the last by a
    // counter that was cleared.
    let counts = baseline::framework(&TRIPLE, 50_176, &machine(8, 8)).unwrap();
    assert_eq!((counts.launches(), counts.operators, counts.memsets), (3, 3, 3));
    let cub = baseline::cub(&TRIPLE, 50_176, &machine(8, 8)).unwrap();
    assert_eq!((cub.launches(), cub.operators, cub.memsets), (6, 3, 0));
    let traffic =
        |counts: &ProgramCounts| counts.kernels.iter().map(|kernel| kernel.read + kernel.written).sum::<Bytes>();
    assert_eq!(traffic(&counts), traffic(&cub));
    // A size that fits in one block needs neither.
    let counts = baseline::framework(&TRIPLE, 4096, &machine(8, 8)).unwrap();
    assert_eq!((counts.launches(), counts.memsets), (3, 0));
    for n in [0, 1, 1000, 5000] {
        let data = shuffled(n);
        let (squares, counted) = simt::squares::squares(&data, &machine(2, 4)).unwrap();
        assert_eq!(squares, data.iter().map(|x| x * x).collect::<Vec<_>>());
        assert_eq!(counted, baseline::map_counts(n as u64, &machine(2, 4)).unwrap());
    }
}

#[test]
fn a_plan_that_does_not_fit_is_refused() {
    let refused = |plan: Plan, statistics: &[Statistic]| {
        let error = run(&plan, statistics, &[1.0, 2.0], &machine(2, 2)).unwrap_err();
        assert_eq!(counts_of(&plan, statistics, 2, &machine(2, 2)).unwrap_err(), error);
        let KernelError::Launch { reason, .. } = error else { panic!("{error}") };
        reason
    };
    let hybrid = Plan::new(Strategy::Hybrid, 256);
    let one = [Statistic::Minimum];
    assert!(refused(Plan { threads: 0, ..hybrid }, &one).contains("no threads"));
    assert!(refused(Plan { threads: 2048, ..hybrid }, &one).contains("at most 1024"));
    assert!(refused(Plan { threads: 96, ..hybrid }, &one).contains("power of two"));
    assert!(refused(Plan { items: 0, ..hybrid }, &one).contains("no elements"));
    assert!(refused(hybrid, &[]).contains("no statistics"));
    assert!(refused(Plan::new(Strategy::Tree, 1), &one).contains("never ends"));
    assert!(refused(Plan::epilogue(Strategy::TwoPass, 256, 4), &one).contains("epilogue"));
    // Shared memory: 1024 threads x (4 + 4 + 8) B = 16 KiB.
    let mut small = machine(2, 2);
    small.limits.shared = Bytes(16 << 10);
    let plan = Plan::new(Strategy::Hybrid, 1024);
    assert!(run(&plan, &TRIPLE, &[1.0], &small).is_ok());
    small.limits.shared = Bytes((16 << 10) - 1);
    assert!(run(&plan, &TRIPLE, &[1.0], &small).unwrap_err().to_string().contains("shared memory"));
    assert!(run(&hybrid, &one, &[1.0], &machine(2, 2).with_lanes(48)).is_err());
    // Nothing overflows: not absurd sizes, tiles or grids.
    assert!(counts_of(&hybrid, &one, u64::MAX, &machine(2, 2)).is_err());
    let wide = Plan { items: u32::MAX, grid: Grid::Resident(u32::MAX), ..hybrid };
    assert!(counts_of(&wide, &one, 1 << 48, &machine(u32::MAX, u32::MAX)).is_ok());
    assert!(counts_of(&Plan::new(Strategy::Tree, 2), &TRIPLE, 1 << 48, &machine(1, 1)).is_ok());
}

proptest! {
    #[test]
    fn any_data_any_plan(
        // In a tenth of the cases NaN occurs: it hides every sum.
        (mut data, not_a_number) in
            (proptest::collection::vec(prop_oneof![8 => -1e3_f32..1e3, 1 => Just(0.0_f32)], 0..3000), 0_usize..30_000),
        threads in 0_u32..9,
        items in 1_u32..6,
        units in 1_u32..9,
        which in 0_usize..64,
    ) {
        if let Some(value) = data.get_mut(not_a_number) {
            *value = f32::NAN;
        }
        let plans = plans(1 << threads);
        let plan = Plan { items, ..plans[which % plans.len()] };
        let machine = machine(units, 4);
        if plan.passes(&Statistic::ALL, data.len() as u64, &machine).is_ok() {
            assert_same(&plan, &machine, &data, &Statistic::ALL);
        }
    }
}

/// A block of 2 threads has a warp of 32 lanes of which 2 are there: each element counts once. 29² + 7² + 2² = 894.
#[test]
fn a_block_smaller_than_a_warp_counts_nothing_twice() {
    for threads in [1, 2, 8, 16, 32, 64] {
        for plan in plans(threads).into_iter().filter(|plan| plan.shuffles) {
            let reduced = run(&plan, &[Statistic::SumOfSquares], &[29.0, 7.0, 2.0], &machine(1, 4)).unwrap();
            assert_eq!(reduced.values, [894.0], "{plan:?}");
        }
    }
}
