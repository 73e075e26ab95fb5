//! The time of counted kernels, worked by hand on a device with round numbers.

use crate::common;
use haversack_devices::processor::Stalls;
use haversack_devices::units::{Bytes, Interval, Nanos};
use haversack_devices::{AtomicCounts, Gpu, GpuLimits, KernelCounts, KernelTime, ProgramCounts};

fn gpu() -> Gpu {
    common::device().gpu().unwrap()
}

/// Two blocks of 50 threads on the two units, in one wave, with more than the L2 to read.
fn kernel() -> KernelCounts {
    KernelCounts {
        launches: 1,
        blocks: 2,
        threads: 50,
        resident_blocks: 2,
        waves: 1,
        working_set: Bytes(2 << 20),
        ..KernelCounts::default()
    }
}

fn time(kernel: KernelCounts) -> KernelTime {
    gpu().time_of(&ProgramCounts { kernels: vec![kernel], ..ProgramCounts::default() }, None)
}

/// Within a picosecond, in nanoseconds.
fn assert_ns(found: Interval, expected: f64) {
    assert!((found.0 * 1e9 - expected).abs() < 1e-3, "{} ns against {expected}", found.0 * 1e9);
}

#[test]
fn a_program_takes_its_launches_memsets_and_operators_one_after_the_other() {
    // 3 kernels and a memset: 4 x 10 us; under the stack twice that, and 2 operators of 5 us.
    let program = ProgramCounts { kernels: vec![kernel(); 3], memsets: 1, operators: 2 };
    assert_eq!(gpu().time_of(&program, None).total(), Nanos(40_000));
    let stack = common::stack();
    let under = gpu().time_of(&program, stack.gpu());
    assert_ns(under.launch, 80_000.0);
    assert_ns(under.overhead, 10_000.0);
    assert_eq!(under.total(), Nanos(90_000));
    // An epilogue is part of a kernel that is launched anyway.
    assert_eq!(time(KernelCounts { launches: 0, ..kernel() }).total(), Nanos::ZERO);
}

#[test]
fn bytes_move_at_the_bandwidth_of_what_holds_them() {
    // 4 MB read and 1 MB written at 10 GB/s x 0.5: 1 ms. From the L2, at 20 GB/s: 250 us, and no DRAM.
    let large = KernelCounts { read: Bytes(4_000_000), written: Bytes(1_000_000), ..kernel() };
    assert_ns(time(large.clone()).memory, 1e6);
    assert_eq!(time(large.clone()).dram, Bytes(5_000_000));
    let small = time(KernelCounts { working_set: Bytes(1 << 20), ..large.clone() });
    assert_ns(small.memory, 250_000.0);
    assert_eq!((small.dram, small.total()), (Bytes::ZERO, Nanos(260_000)));
    let cost = time(large).cost();
    assert_eq!((cost.launch, cost.busy, cost.dram), (Nanos(10_000), Nanos(1_000_000), Bytes(5_000_000)));
}

#[test]
fn the_chain_of_a_thread_is_paid_once_a_wave() {
    // 2 trips of 100 ns, 3 barriers of 100 ns, 10 operations of 4 cycles of 1 ns: 540 ns, times 5 waves.
    let chain = time(KernelCounts { round_trips: 2, barriers: 3, operations: 10, waves: 5, ..kernel() });
    assert_ns(chain.round_trips, 1000.0);
    assert_ns(chain.barriers, 1500.0);
    assert_ns(chain.operations, 200.0);
    assert_ns(chain.busy, 2700.0);
}

#[test]
fn blocks_of_a_unit_queue_for_its_shared_memory() {
    // 20 attempts x 2 cycles = 40 ns in a block's chain; of 3 blocks on each of 2 units they queue for 120 ns.
    let alone = KernelCounts { shared_attempts: 20.0, ..kernel() };
    assert_ns(time(alone.clone()).busy, 40.0);
    let three = time(KernelCounts { blocks: 6, resident_blocks: 6, ..alone });
    assert_ns(three.shared_atomics, 40.0);
    assert_ns(three.busy, 120.0);
    // 2 units x 50 B x 1 GHz = 100 GB/s: 1 MB takes 10 us; one block reaches one unit's half of it.
    let bytes = KernelCounts { shared: Bytes(1_000_000), ..kernel() };
    assert_ns(time(bytes.clone()).shared, 10_000.0);
    assert_ns(time(KernelCounts { blocks: 1, resident_blocks: 1, ..bytes }).shared, 20_000.0);
    // Lanes: 200 GFLOP/s of multiply-adds are 100 G operations a second.
    assert_ns(time(KernelCounts { lane_operations: 1_000_000, ..kernel() }).issue, 10_000.0);
}

#[test]
fn one_cell_serves_attempts_in_turn_and_refetches_wait_for_memory() {
    let atomics = AtomicCounts { issued: 8.0, attempts: 20.0, retries: 12.0, changes: 4.0, refetches: 3.0 };
    // 20 x 2 ns + 3 x 100 ns.
    assert_ns(time(KernelCounts { atomics: vec![atomics], ..kernel() }).atomics, 340.0);
    // The same law as for work of which only the number is known: k = 1 is 1 + H and H, H = 0.5772 (60.9 ns).
    let h = 0.577_215_664_901_532_9;
    let one = AtomicCounts { attempts: 1.0 + h, refetches: h, ..AtomicCounts::default() };
    assert_eq!(time(KernelCounts { launches: 0, atomics: vec![one], ..kernel() }).total(), Nanos(61));
}

#[test]
fn of_several_cells_the_slowest_counts_whatever_makes_it_slow() {
    let cell = |attempts, refetches| AtomicCounts { attempts, refetches, ..AtomicCounts::default() };
    // 100 x 2 ns + 0 = 200 ns; 10 x 2 ns + 3 x 100 ns = 320 ns; the others do no more than one of these.
    let cells = vec![cell(10.0, 2.0), cell(10.0, 3.0), cell(100.0, 0.0), cell(5.0, 3.0), cell(100.0, 0.0)];
    let most = AtomicCounts::most_contended(cells);
    assert_eq!(most, [cell(100.0, 0.0), cell(10.0, 3.0)]);
    assert_ns(time(KernelCounts { atomics: most, ..kernel() }).atomics, 320.0);
}

#[test]
fn a_kernel_takes_the_longest_of_what_runs_at_once_and_kernels_follow_each_other() {
    let bytes = KernelCounts { read: Bytes(5_000), ..kernel() };
    let waits = KernelCounts { barriers: 7, ..kernel() };
    // 1000 ns and 700 ns overlapping; then one after the other.
    assert_ns(time(KernelCounts { barriers: 7, ..bytes.clone() }).busy, 1000.0);
    let program = ProgramCounts { kernels: vec![bytes, waits], ..ProgramCounts::default() };
    let both = gpu().time_of(&program, None);
    assert_ns(both.busy, 1700.0);
    // One waits for DRAM, the other for its barriers.
    assert_eq!(both.stalls, Stalls { dram: Nanos(1000), waiting: Nanos(700), ..Stalls::default() });
}

#[test]
fn what_is_resident_is_bound_by_threads_blocks_and_shared_memory() {
    // 2 units of 50 threads, 4 blocks, 32 KiB.
    let limits = gpu().limits();
    assert_eq!(limits, GpuLimits { units: 2, threads: 50, blocks: 4, shared: Bytes(32 << 10) });
    assert_eq!(limits.blocks_per_unit(5, Bytes::ZERO), 4);
    assert_eq!(limits.blocks_per_unit(20, Bytes::ZERO), 2);
    assert_eq!(limits.blocks_per_unit(5, Bytes(11 << 10)), 2);
    assert_eq!(limits.blocks_per_unit(51, Bytes::ZERO), 0);
}

#[test]
fn programs_add_up() {
    let one = ProgramCounts { kernels: vec![kernel()], memsets: 1, operators: 1 };
    let mut two = one.clone();
    two.extend(one);
    assert_eq!((two.launches(), two.memsets, two.operators), (2, 2, 2));
}
