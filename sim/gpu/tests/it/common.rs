//! Machines, data and plain loops for the tests of the SIMT machine.
#![allow(unreachable_pub)]

use haversack_devices::units::Bytes;
use haversack_devices::{AtomicCounts, GpuLimits};
use haversack_gpu::Machine;
use haversack_kernels::reduce::Statistic;

pub fn machine(units: u32, blocks: u32) -> Machine {
    let limits = GpuLimits { units, threads: 2048, blocks, shared: Bytes(96 << 10) };
    Machine { limits, lanes: 32, adds_natively: false }
}

pub const TRIPLE: [Statistic; 3] = [Statistic::Minimum, Statistic::Maximum, Statistic::SumOfSquares];

/// The counts of both, one after the other on the same cell.
pub fn both(one: AtomicCounts, other: AtomicCounts) -> AtomicCounts {
    AtomicCounts {
        issued: one.issued + other.issued,
        attempts: one.attempts + other.attempts,
        retries: one.retries + other.retries,
        changes: one.changes + other.changes,
        refetches: one.refetches + other.refetches,
    }
}

/// Values in an order without pattern, all different below 2^24 of them.
pub fn shuffled(n: usize) -> Vec<f32> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as f32) / (1 << 24) as f32 * 8.0 - 4.0
        })
        .collect()
}

/// The definition: a plain loop, NaN ignored by extrema, sums in f64, zeros as +0.
pub fn naive(statistic: Statistic, data: &[f32]) -> f64 {
    let values = data.iter().map(|&x| f64::from(x));
    let present = values.clone().filter(|x| !x.is_nan());
    let answer = match statistic {
        Statistic::Minimum => present.fold(f64::INFINITY, f64::min),
        Statistic::Maximum => present.fold(f64::NEG_INFINITY, f64::max),
        Statistic::SumOfSquares => values.map(|x| x * x).sum(),
    };
    answer + 0.0
}

pub fn squares(data: &[f32]) -> f64 {
    data.iter().map(|&x| f64::from(x).powi(2)).sum()
}
