//! Reductions against their naive definitions, on every instruction set of this machine.

use haversack_kernels::Isa;
use haversack_kernels::reduce::{self, Statistic};
use proptest::prelude::*;

/// Elements that are summed separately before their sum joins the others.
const PIECE: usize = 1 << 16;
/// Elements from which an extremum is read in streams: 16 MiB.
const STREAMED: usize = 4 << 20;

/// The smallest and the largest that are not NaN, with +0 for -0.
fn naive_range(data: &[f32]) -> (f32, f32) {
    let numbers = || data.iter().copied().filter(|x| !x.is_nan());
    (numbers().fold(f32::INFINITY, f32::min) + 0.0, numbers().fold(f32::NEG_INFINITY, f32::max) + 0.0)
}

fn naive_sum(data: &[f32]) -> f64 {
    data.iter().map(|&x| f64::from(x) * f64::from(x)).sum()
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

/// Values of planted elements: both zeros, denormals, infinities, quiet and signalling NaN of both signs, extremes.
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

/// Noise, all zero or all NaN, after up to 16 elements that are to be ignored (so, of any alignment), with some
/// elements replaced by special ones.
fn tensors() -> impl Strategy<Value = (Vec<f32>, usize)> {
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
        }
    }

    #[test]
    fn sums_are_those_of_the_definition_within_one_in_a_million((data, offset) in tensors()) {
        let data = &data[offset..];
        let expected = naive_sum(data);
        for isa in Isa::available() {
            let found = reduce::sum_of_squares(data, isa);
            // NaN, infinity and an empty sum must match exactly; all else within 1e-6 of the sum.
            let close = (found - expected).abs() <= 1e-6 * expected;
            prop_assert!(same(found, expected) || close, "{}: {} for {}", isa, found, expected);
        }
    }
}

#[test]
fn extrema_of_what_no_cache_holds_are_those_of_the_definition() {
    let mut data = noise(11, STREAMED + 12345);
    for (at, element) in [(0, 3.0), (STREAMED / 2 + 7, -3.0), (STREAMED + 12344, 4.0)] {
        data[at] = element;
        let (minimum, maximum) = naive_range(&data);
        for isa in Isa::available() {
            assert_eq!((reduce::minimum(&data, isa), reduce::maximum(&data, isa)), (minimum, maximum), "{isa}");
        }
    }
}

#[test]
fn no_position_is_overlooked_at_any_length() {
    // One element in a field of zeros and NaN is below and one above all others, wherever it is. 1040 elements are more
    // than eight registers of the widest set, twice; an odd offset makes the first load unaligned.
    let mut memory = vec![0.0; 1041];
    for len in (1..=300).chain([511, 512, 513, 640, 1040]) {
        let data = &mut memory[1..=len];
        for at in 0..len {
            data.fill(if at % 2 == 0 { f32::NAN } else { 0.0 });
            data[at] = -2.0;
            for isa in Isa::available() {
                assert_eq!(reduce::minimum(data, isa), -2.0, "{isa}, {at} of {len}");
            }
            data[at] = 2.0;
            for isa in Isa::available() {
                assert_eq!(reduce::maximum(data, isa), 2.0, "{isa}, {at} of {len}");
            }
        }
    }
}

#[test]
fn every_element_is_counted_once_at_every_length() {
    // Elements 0 to 6 in turn: every partial sum is an integer below 2^24, so nothing is rounded and the sum of
    // k = len / 7 rounds and the rest r = len % 7 is 91 k + (r - 1) r (2 r - 1) / 6.
    let data: Vec<f32> = (0..5000_u16).map(|i| f32::from(i % 7)).collect();
    for len in 0..=5000_usize {
        let (k, r) = ((len / 7) as f64, (len % 7) as f64);
        let squares = 91.0 * k + (r - 1.0) * r * (2.0 * r - 1.0) / 6.0;
        for isa in Isa::available() {
            assert_eq!(reduce::sum_of_squares(&data[..len], isa), squares, "{isa}, {len}");
        }
    }
}

#[test]
fn nothing_and_nothing_but_nan_give_the_identities() {
    for isa in Isa::available() {
        for data in [vec![], vec![f32::NAN; 777]] {
            assert_eq!(reduce::minimum(&data, isa), f32::INFINITY);
            assert_eq!(reduce::maximum(&data, isa), f32::NEG_INFINITY);
        }
        for statistic in Statistic::ALL {
            assert_eq!(statistic.of(&[], isa).to_bits(), statistic.identity().to_bits(), "{statistic}, {isa}");
        }
    }
}

#[test]
fn sums_neither_overflow_nor_underflow_where_f64_does_not() {
    let len = 3000_u16;
    for isa in Isa::available() {
        // 1e30 squared is 1e60, beyond f32; 1e-30 squared is 1e-60, which f32 cannot represent.
        for element in [3e38_f32, 1e30, 1e-22, 1e-30, 1e-42] {
            let (x, n) = (f64::from(element), f64::from(len));
            let squares = reduce::sum_of_squares(&vec![element; usize::from(len)], isa);
            assert!((squares - n * x * x).abs() <= 1e-6 * n * x * x, "{isa}: {squares} for {element}");
        }
    }
}

#[test]
fn sums_depend_neither_on_the_address_nor_on_the_instruction_set() {
    let data = noise(7, 3 * PIECE / 2 + 13);
    for len in (0..200).chain([data.len()]) {
        let expected = reduce::sum_of_squares(&data[..len], Isa::Scalar).to_bits();
        for offset in 0..16 {
            let mut moved = vec![0.0; offset];
            moved.extend_from_slice(&data[..len]);
            for isa in Isa::available() {
                assert_eq!(
                    reduce::sum_of_squares(&moved[offset..], isa).to_bits(),
                    expected,
                    "{isa}, {len} at {offset}"
                );
            }
        }
    }
}

#[test]
fn a_sum_of_sixteen_million_squares_keeps_its_digits() {
    // Naive accumulation in f32 is off by 1e-5 to 1e-3 at this length.
    let data = noise(13, 16 << 20);
    let expected = naive_sum(&data);
    for isa in Isa::available() {
        let error = (reduce::sum_of_squares(&data, isa) - expected).abs() / expected;
        assert!(error < 1e-7, "{isa}: {error:e}");
    }
}

#[test]
fn an_instruction_set_that_is_not_there_runs_the_scalar_twin() {
    let data = noise(17, 5000);
    let all = |isa| Statistic::ALL.map(|statistic| statistic.of(&data, isa));
    for isa in Isa::ALL.into_iter().filter(|isa| !isa.is_available()) {
        assert_eq!(all(isa), all(Isa::Scalar), "{isa}");
    }
}
