//! Reductions against their naive definitions, on every instruction set of this machine, under every strategy.

use haversack_kernels::reduce::strategy::{BLOCK, Reduction, Strategy, reduce_with};
use haversack_kernels::reduce::{self, PARALLEL_FROM, PIECE, Statistic, Triple};
use haversack_kernels::{Isa, KernelError, limit};
use proptest::prelude::*;
use proptest::strategy::Strategy as Strategies;

/// The smallest and the largest that are not NaN, with +0 for -0.
fn naive_range(data: &[f32]) -> (f32, f32) {
    let numbers = || data.iter().copied().filter(|x| !x.is_nan());
    (numbers().fold(f32::INFINITY, f32::min) + 0.0, numbers().fold(f32::NEG_INFINITY, f32::max) + 0.0)
}

fn naive_absolute_maximum(data: &[f32]) -> f32 {
    data.iter().copied().filter(|x| !x.is_nan()).map(f32::abs).fold(0.0, f32::max)
}

/// The value, the sum of magnitudes that its error is measured by.
fn naive_sum(statistic: Statistic, data: &[f32]) -> (f64, f64) {
    let term = |&x: &f32| if statistic == Statistic::Sum { f64::from(x) } else { f64::from(x) * f64::from(x) };
    (data.iter().map(term).sum(), data.iter().map(|x| term(x).abs()).sum())
}

fn naive(statistic: Statistic, data: &[f32]) -> f64 {
    match statistic {
        Statistic::Minimum => naive_range(data).0.into(),
        Statistic::Maximum => naive_range(data).1.into(),
        Statistic::AbsoluteMaximum => naive_absolute_maximum(data).into(),
        Statistic::Sum | Statistic::SumOfSquares => naive_sum(statistic, data).0,
    }
}

/// The same bits, but for the sign and payload of NaN, which the language leaves open.
fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

/// A fixed stream of numbers in [-1, 1).
fn noise(seed: u64, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

/// What planted elements may be: both zeros, denormals, infinities, quiet and signalling NaN of both signs, extremes.
const SPECIAL: [u32; 14] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007F_FFFF,
    0x7F80_0000,
    0xFF80_0000,
    0x7FC0_0000,
    0xFFC0_0000,
    0x7F80_0001,
    0xFFBF_FFFF,
    0x7F7F_FFFF,
    0xFF7F_FFFF,
    0x3F80_0000,
];

/// Noise, all zero or all NaN, behind up to 16 elements that are to be ignored (so, of any alignment), with some
/// elements replaced by special ones.
fn tensors() -> impl Strategies<Value = (Vec<f32>, usize)> {
    let planted = prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(&SPECIAL[..])), 0..8);
    (any::<u64>(), 0_usize..5000, 0_usize..17, planted, 0..4).prop_map(|(seed, len, offset, planted, kind)| {
        let mut data = noise(seed, len + offset);
        match kind {
            0 => data.fill(-0.0),
            1 => data.fill(f32::NAN),
            _ => {}
        }
        for (at, bits) in planted.iter().filter(|_| len > 0) {
            data[offset + at.index(len)] = f32::from_bits(*bits);
        }
        (data, offset)
    })
}

/// The same cases on every run.
fn cases(cases: u32) -> ProptestConfig {
    let rng_seed = prop::test_runner::RngSeed::Fixed(3);
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn extrema_are_those_of_the_definition_to_the_bit((data, offset) in tensors()) {
        let data = &data[offset..];
        let (minimum, maximum) = naive_range(data);
        for isa in Isa::available() {
            prop_assert_eq!(reduce::minimum(data, isa).to_bits(), minimum.to_bits(), "minimum, {}", isa);
            prop_assert_eq!(reduce::maximum(data, isa).to_bits(), maximum.to_bits(), "maximum, {}", isa);
            let magnitude = naive_absolute_maximum(data);
            prop_assert_eq!(reduce::absolute_maximum(data, isa).to_bits(), magnitude.to_bits(), "{}", isa);
            let triple = reduce::triple(data, isa);
            prop_assert_eq!(triple.minimum.to_bits(), minimum.to_bits(), "minimum of three, {}", isa);
            prop_assert_eq!(triple.maximum.to_bits(), maximum.to_bits(), "maximum of three, {}", isa);
        }
    }

    #[test]
    fn sums_are_those_of_the_definition_within_one_in_a_million((data, offset) in tensors()) {
        let data = &data[offset..];
        for isa in Isa::available() {
            for statistic in [Statistic::Sum, Statistic::SumOfSquares] {
                let (found, (expected, magnitude)) = (statistic.of(data, isa), naive_sum(statistic, data));
                // NaN, infinity and nothing come out as they are; all else within 1e-6 of the sum of magnitudes.
                let close = (found - expected).abs() <= 1e-6 * magnitude;
                prop_assert!(same(found, expected) || close, "{} on {}: {} for {}", statistic, isa, found, expected);
            }
            let alone = reduce::sum_of_squares(data, isa);
            prop_assert!(same(reduce::triple(data, isa).sum_of_squares, alone), "{}", isa);
        }
    }

}

proptest! {
    // Fewer, as each starts a few hundred threads.
    #![proptest_config(cases(40))]

    #[test]
    fn strategies_agree((data, offset) in tensors(), repeats in 1_usize..8) {
        // Up to 9 blocks, the last of them ragged.
        let data = data[offset..].repeat(repeats);
        for (strategy, statistic) in pairs() {
            for isa in [Isa::Scalar, Isa::chosen().unwrap()] {
                let of = |threads| reduce_with(strategy, statistic, &data, threads, isa).unwrap().value;
                let (one, two, three) = (of(1), of(2), of(3));
                prop_assert!(same(one, two) && same(one, three), "{} by {}", statistic, strategy);
                let expected = naive(statistic, &data);
                if statistic.is_order_free() {
                    prop_assert_eq!(one.to_bits(), expected.to_bits(), "{} by {}", statistic, strategy);
                } else {
                    let close = (one - expected).abs() <= 1e-6 * naive_sum(statistic, &data).1;
                    prop_assert!(close || same(one, expected), "{} by {}", statistic, strategy);
                }
            }
        }
    }
}

/// Every strategy with every statistic that it gives.
fn pairs() -> impl Iterator<Item = (Strategy, Statistic)> {
    let all = Strategy::ALL.into_iter().flat_map(|strategy| Statistic::ALL.map(|statistic| (strategy, statistic)));
    all.filter(|(strategy, statistic)| strategy.gives(*statistic))
}

#[test]
fn no_position_is_overlooked_at_any_length() {
    // One element in a field of zeros and NaN is below and one above all others, wherever it stands. 1040 elements
    // are more than eight registers of the widest set, twice; an odd offset makes the first load unaligned.
    let mut memory = vec![0.0; 1041];
    for len in (1..=300).chain([511, 512, 513, 640, 1040]) {
        let data = &mut memory[1..=len];
        for at in 0..len {
            data.fill(if at % 2 == 0 { f32::NAN } else { 0.0 });
            data[at] = -2.0;
            for isa in Isa::available() {
                assert_eq!(reduce::minimum(data, isa), -2.0, "{isa}, {at} of {len}");
                assert_eq!(reduce::absolute_maximum(data, isa), 2.0, "{isa}, {at} of {len}");
                assert_eq!(reduce::triple(data, isa).minimum, -2.0, "{isa}, {at} of {len}");
            }
            data[at] = 2.0;
            for isa in Isa::available() {
                assert_eq!(reduce::maximum(data, isa), 2.0, "{isa}, {at} of {len}");
                assert_eq!(reduce::triple(data, isa).maximum, 2.0, "{isa}, {at} of {len}");
            }
        }
    }
}

#[test]
fn every_element_is_counted_once_at_every_length() {
    // Elements 0 to 6 in turn: every partial sum is an integer below 2^24, so nothing is rounded and the sums of
    // k = len / 7 rounds and the rest r = len % 7 are 21 k + r (r - 1) / 2 and 91 k + (r - 1) r (2 r - 1) / 6.
    let data: Vec<f32> = (0..5000_u16).map(|i| f32::from(i % 7)).collect();
    for len in 0..=5000_usize {
        let (k, r) = ((len / 7) as f64, (len % 7) as f64);
        let (sum, squares) = (21.0 * k + r * (r - 1.0) / 2.0, 91.0 * k + (r - 1.0) * r * (2.0 * r - 1.0) / 6.0);
        for isa in Isa::available() {
            assert_eq!(reduce::sum(&data[..len], isa), sum, "{isa}, {len}");
            assert_eq!(reduce::sum_of_squares(&data[..len], isa), squares, "{isa}, {len}");
            assert_eq!(reduce::triple(&data[..len], isa).sum_of_squares, squares, "{isa}, {len}");
            // The yardstick must read as much as the reductions do. Whole numbers: exact in f32 too.
            for in_streams in [false, true] {
                assert_eq!(f64::from(limit::read(&data[..len], in_streams, isa)), sum, "{isa}, {len}");
            }
        }
    }
}

#[test]
fn nothing_and_nothing_but_nan_give_the_identities() {
    for isa in Isa::available() {
        for data in [vec![], vec![f32::NAN; 777]] {
            assert_eq!(reduce::minimum(&data, isa), f32::INFINITY);
            assert_eq!(reduce::maximum(&data, isa), f32::NEG_INFINITY);
            assert_eq!(reduce::absolute_maximum(&data, isa).to_bits(), 0);
        }
        assert_eq!(reduce::sum(&[], isa).to_bits(), 0);
        assert_eq!(reduce::triple(&[], isa), Triple::IDENTITY);
        for (strategy, statistic) in pairs() {
            let nothing = reduce_with(strategy, statistic, &[], 2, isa).unwrap().value;
            assert_eq!(nothing.to_bits(), statistic.identity().to_bits(), "{statistic} by {strategy}");
        }
    }
}

#[test]
fn sums_neither_overflow_nor_underflow_where_f64_does_not() {
    let len = 3000_u16;
    for isa in Isa::available() {
        // 3000 times 3e38 is 9e41, beyond f32; 1e30 squared is 1e60; 1e-30 squared is 1e-60, which f32 has not.
        let of = |element: f32, statistic: Statistic| statistic.of(&vec![element; usize::from(len)], isa);
        for element in [3e38_f32, 1e30, 1e-22, 1e-30, 1e-42] {
            let (x, n) = (f64::from(element), f64::from(len));
            let (sum, squares) = (of(element, Statistic::Sum), of(element, Statistic::SumOfSquares));
            assert!((sum - n * x).abs() <= 1e-6 * n * x, "{isa}: {sum} for {element}");
            assert!((squares - n * x * x).abs() <= 1e-6 * n * x * x, "{isa}: {squares} for {element}");
            let fused = reduce::triple(&vec![element; usize::from(len)], isa).sum_of_squares;
            assert_eq!(fused.to_bits(), squares.to_bits(), "{isa}: {element}");
        }
    }
}

#[test]
fn sums_do_not_depend_on_the_address() {
    let data = noise(7, 3 * PIECE / 2 + 13);
    for isa in Isa::available() {
        let expected = (reduce::sum(&data, isa).to_bits(), reduce::sum_of_squares(&data, isa).to_bits());
        for offset in 1..16 {
            let mut moved = vec![0.0; offset];
            moved.extend_from_slice(&data);
            let moved = &moved[offset..];
            let found = (reduce::sum(moved, isa).to_bits(), reduce::sum_of_squares(moved, isa).to_bits());
            assert_eq!(found, expected, "{isa}, moved by {offset}");
        }
    }
}

#[test]
fn the_number_of_threads_does_not_show() {
    let isa = Isa::chosen().unwrap();
    let data = noise(11, PARALLEL_FROM / size_of::<f32>() + 12345);
    let alone = Statistic::ALL.map(|statistic| statistic.of(&data, isa).to_bits());
    let triple = reduce::triple(&data, isa);
    for threads in [1, 2, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            assert_eq!(Statistic::ALL.map(|statistic| statistic.parallel(&data, isa).to_bits()), alone);
            assert_eq!(reduce::parallel_triple(&data, isa), triple);
        });
    }
}

#[test]
fn a_sum_of_sixteen_million_squares_keeps_its_digits() {
    // Naive accumulation in f32 is off by 1e-5 to 1e-3 at this length.
    let data = noise(13, 16 << 20);
    let (expected, _) = naive_sum(Statistic::SumOfSquares, &data);
    for isa in Isa::available() {
        let error = (reduce::sum_of_squares(&data, isa) - expected).abs() / expected;
        assert!(error < 1e-7, "{isa}: {error:e}");
    }
}

#[test]
fn an_instruction_set_that_is_not_there_runs_the_scalar_twin() {
    let data = noise(17, 5000);
    let scalar = reduce::triple(&data, Isa::Scalar);
    for isa in Isa::ALL.into_iter().filter(|isa| !isa.is_available()) {
        assert_eq!(reduce::triple(&data, isa), scalar, "{isa}");
    }
}

#[test]
fn swaps_that_succeed_are_as_many_as_the_algorithm_says() {
    let isa = Isa::chosen().unwrap();
    // Descending: every element is a record, so every strategy must swap it, and threads do get in each other's way.
    let len = 10 * BLOCK + 5;
    let data: Vec<f32> = (0..len).rev().map(|i| i as f32).collect();
    for threads in [1, 2, 3] {
        let of = |strategy| reduce_with(strategy, Statistic::Minimum, &data, threads, isa).unwrap();
        let succeeded = |Reduction { value, progress }: Reduction| {
            assert_eq!(value, 0.0);
            progress.attempts - progress.retries
        };
        assert_eq!(succeeded(of(Strategy::AtomicUnconditional)), len as u64);
        // 11 blocks; the elements go to their cells, and then the cells.
        assert_eq!(succeeded(of(Strategy::Hybrid)), 11);
        assert_eq!(succeeded(of(Strategy::ThreadThenBlock)), len as u64 + 11);
        assert_eq!(of(Strategy::Tree).progress.attempts, 0);
        // The last thread's share alone, a third at least, is a run of records unless others were ahead of it.
        let tested = succeeded(of(Strategy::AtomicTested));
        assert!(tested >= 1 && tested <= len as u64, "{tested}");
        assert!(threads > 1 || tested == len as u64, "{tested}");
    }
}

#[test]
fn sums_are_refused_by_strategies_that_swap_and_so_are_no_threads() {
    let data = [1.0; 10];
    for strategy in Strategy::ALL {
        let sum = reduce_with(strategy, Statistic::Sum, &data, 1, Isa::Scalar);
        match strategy {
            Strategy::Tree | Strategy::TwoPass => assert_eq!(sum.unwrap().value, 10.0),
            _ => assert!(matches!(sum, Err(KernelError::Launch { kernel, .. }) if kernel == strategy.name())),
        }
        assert!(reduce_with(strategy, Statistic::Minimum, &data, 0, Isa::Scalar).is_err());
    }
}
