//! Quantisation: every kernel against the definition, and the definition against its promises.

use haversack_kernels::quantise::{
    Bits, Format, GROUP, Grouping, Layout, Packed, Rounding, Scale, draw, quantise_into,
};
use haversack_kernels::{Isa, KernelError};
use proptest::prelude::*;

const GROUPINGS: [Grouping; 2] = [Grouping::Tensor, Grouping::Group256];

/// Values without pattern, spread over `scale` around `offset`.
fn noise(len: usize, seed: u64, scale: f32, offset: f32) -> Vec<f32> {
    (0..len).map(|i| (draw(seed, i) - 0.5) * scale + offset).collect()
}

fn bits(b: u8) -> Bits {
    Bits::new(b).unwrap()
}

/// Scale of each element, by the definition.
fn scales(values: &[f32], bits: Bits, grouping: Grouping) -> Vec<Scale> {
    let size = if grouping == Grouping::Tensor { values.len().max(1) } else { GROUP };
    let group = |group: &[f32]| {
        let minimum = group.iter().copied().fold(f32::INFINITY, f32::min);
        let maximum = group.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        vec![Scale::of(minimum, maximum, bits, grouping).unwrap(); group.len()]
    };
    values.chunks(size).flat_map(group).collect()
}

/// The code of one value: the definition that the kernels follow.
///
/// NaN and values below the scale give 0, values above it give 2^b - 1. `element` is the value's index in its tensor,
/// which stochastic rounding draws by.
fn code(x: f32, scale: Scale, bits: Bits, rounding: Rounding, element: usize) -> u8 {
    let above = x - scale.minimum;
    let above = if above > 0.0 { above } else { 0.0 };
    let exact = match rounding {
        // The sum has no bits left for a fraction, and taking 2^23 off again is exact.
        Rounding::NearestEven => above.mul_add(scale.inverse(), 8_388_608.0) - 8_388_608.0,
        Rounding::Stochastic { seed } => above.mul_add(scale.inverse(), draw(seed, element)),
    };
    exact.min(bits.top() as f32) as u8
}

/// Words by the definition: each code into its slot.
fn packed_by_definition(values: &[f32], format: Format, rounding: Rounding) -> Vec<u32> {
    let mut words = vec![0; format.words(values.len())];
    for (i, (&x, scale)) in values.iter().zip(scales(values, format.bits, format.grouping)).enumerate() {
        let slot = format.slot(i, values.len()).unwrap();
        words[slot.word] |= u32::from(code(x, scale, format.bits, rounding, i)) << slot.shift;
    }
    words
}

fn layouts(len: usize, columns: usize, tile: (usize, usize)) -> Vec<Layout> {
    let mut layouts = vec![Layout::Interleaved, Layout::Sequential];
    if len.is_multiple_of(columns) {
        layouts.push(Layout::unified(columns, tile.0, tile.1).unwrap());
    }
    layouts
}

/// Checks all promises for one tensor in one format.
fn check(values: &[f32], format: Format, rounding: Rounding) {
    let expected = packed_by_definition(values, format, rounding);
    let scales = scales(values, format.bits, format.grouping);
    for isa in Isa::available() {
        let what = format!("{isa} {format:?} {rounding:?} {} elements", values.len());
        let packed = Packed::quantise(values, format, rounding, isa).unwrap();
        assert_eq!(packed.words(), expected, "words: {what}");
        assert_eq!(packed.bytes(), format.bytes(values.len()), "bytes: {what}");
        let codes = packed.codes();
        let decoded = packed.dequantise(isa);
        for (i, scale) in scales.iter().enumerate() {
            let slot = format.slot(i, values.len()).unwrap();
            assert_eq!(u32::from(codes[i]), expected[slot.word] >> slot.shift & format.bits.top(), "code {i}: {what}");
            assert_eq!(packed.scale(i), Some(*scale), "scale {i}: {what}");
            assert_eq!(decoded[i].to_bits(), scale.value(codes[i]).to_bits(), "value {i}: {what}");
        }
    }
}

/// Every width, layout and grouping, at lengths on both sides of every border: a vector (16), a group (256), blocks
/// (64 to 512), chunks of 16 groups (4096), none and one.
#[test]
fn every_kernel_follows_the_definition() {
    for len in [0, 1, 15, 16, 17, 63, 65, 255, 256, 257, 511, 513, 1000, 4096, 5003, 9216] {
        let values = noise(len, len as u64, 7.0, 1.0);
        for b in 1..=8 {
            for grouping in GROUPINGS {
                for layout in layouts(len, 24, (5, 16)) {
                    for rounding in [Rounding::NearestEven, Rounding::Stochastic { seed: 3 }] {
                        check(&values, Format::new(bits(b), grouping, layout), rounding);
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, rng_seed: proptest::test_runner::RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_tensor_follows_the_definition(
        rows in 1_usize..40, columns in 1_usize..90, tile in (1_usize..20, 1_usize..40), b in 1_u8..=8,
        seed: u64, grouped: bool, stochastic: bool, exponent in -30_i32..30, offset in -4.0_f32..4.0,
    ) {
        let scale = 2.0_f32.powi(exponent);
        let values = noise(rows * columns, seed, scale, offset * scale);
        let rounding = if stochastic { Rounding::Stochastic { seed } } else { Rounding::NearestEven };
        for layout in layouts(values.len(), columns, tile) {
            check(&values, Format::new(bits(b), GROUPINGS[usize::from(grouped)], layout), rounding);
        }
    }

    /// The error is at most half a step (a step by chance), plus 2^-12 step for the arithmetic of codes up to 255, plus an
    /// ulp each for `x - minimum` and for the dequantised value.
    #[test]
    fn no_value_moves_by_more_than_half_a_step(
        len in 1_usize..3000, b in 1_u8..=8, seed: u64, grouped: bool, stochastic: bool,
        exponent in -120_i32..120, offset in -1000.0_f32..1000.0,
    ) {
        let scale = 2.0_f32.powi(exponent);
        let values = noise(len, seed, scale, offset * scale);
        let rounding = if stochastic { Rounding::Stochastic { seed } } else { Rounding::NearestEven };
        let format = Format::new(bits(b), GROUPINGS[usize::from(grouped)], Layout::Interleaved);
        let packed = Packed::quantise(&values, format, rounding, Isa::chosen().unwrap()).unwrap();
        let steps = if stochastic { 1.0 } else { 0.5 } + 1.0 / 4096.0;
        for (i, (x, y)) in values.iter().zip(packed.dequantise(Isa::chosen().unwrap())).enumerate() {
            let step = f64::from(packed.scale(i).unwrap().step);
            let ulps = 2.0 * f64::from(f32::EPSILON) * f64::from(x.abs().max(y.abs()));
            let error = (f64::from(*x) - f64::from(y)).abs();
            prop_assert!(error <= steps * step + ulps, "element {i}: {x} became {y}, step {step}");
        }
    }
}

/// With b bits there are 2^b - 1 steps from the minimum to the maximum: 0, 1, ..., 2^b - 1 are their own codes.
#[test]
fn equation_one() {
    for b in 1..=8 {
        let top = bits(b).top();
        let values: Vec<f32> = (0..=top).map(|q| -3.0 + 0.25 * q as f32).collect();
        let format = Format::new(bits(b), Grouping::Tensor, Layout::Interleaved);
        for isa in Isa::available() {
            let packed = Packed::quantise(&values, format, Rounding::NearestEven, isa).unwrap();
            assert_eq!(packed.scale(0), Some(Scale { minimum: -3.0, step: 0.25 }));
            assert_eq!(packed.codes(), (0..=top as u8).collect::<Vec<_>>());
            assert_eq!(packed.dequantise(isa), values);
        }
    }
}

/// Steps of 1 from 0 to 3: 0.5 lies between 0 and 1 and goes to 0, 1.5 and 2.5 both go to 2.
#[test]
fn ties_go_to_the_even_code() {
    let format = Format::new(bits(2), Grouping::Tensor, Layout::Sequential);
    for isa in Isa::available() {
        let packed = Packed::quantise(&[0.0, 0.5, 1.5, 2.5, 3.0], format, Rounding::NearestEven, isa).unwrap();
        assert_eq!(packed.codes(), [0, 0, 2, 2, 3]);
    }
}

#[test]
fn equal_values_come_back_exactly() {
    for x in [0.0, -0.1, 1e-42, 3.3e38, f32::MIN] {
        for isa in Isa::available() {
            let format = Format::new(bits(4), Grouping::Tensor, Layout::Interleaved);
            let packed = Packed::quantise(&[x; 300], format, Rounding::Stochastic { seed: 1 }, isa).unwrap();
            assert_eq!(packed.scale(0).unwrap().step, 0.0);
            assert_eq!(packed.codes(), [0; 300]);
            assert_eq!(packed.dequantise(isa), [x; 300]);
        }
    }
}

/// A bf16 has 8 significant bits. The minimum, 100.1, becomes 100 (its spacing there is 0.5). From 100 to 100.3 in 3 steps
/// is 0.1, which becomes the next bf16 above: 0.1 lies in 2^-4..2^-3, where the spacing is 2^-11; 205 / 2048 = 0.10009766.
#[test]
fn the_range_of_a_group_is_rounded_outwards() {
    let scale = Scale::of(100.1, 100.3, bits(2), Grouping::Group256).unwrap();
    assert_eq!(scale, Scale { minimum: 100.0, step: 205.0 / 2048.0 });
}

/// 3 * 2^-149 apart: a step of 2^-149 would be exact here, but f32 cannot represent its inverse. The step is 2^-126,
/// and both values take code 0.
#[test]
fn the_step_is_never_below_the_smallest_normal_number() {
    let values = [0.0, f32::from_bits(3)];
    let format = Format::new(bits(2), Grouping::Tensor, Layout::Interleaved);
    for isa in Isa::available() {
        let packed = Packed::quantise(&values, format, Rounding::NearestEven, isa).unwrap();
        assert_eq!(packed.scale(0), Some(Scale { minimum: 0.0, step: f32::MIN_POSITIVE }));
        assert_eq!(packed.codes(), [0, 0]);
    }
}

/// Whatever the length of the tail, NaN takes code 0 and leaves its neighbours (and the range 1 to 4, step 1) alone.
#[test]
fn nan_is_code_zero() {
    for len in [2, 16, 40, 300, 600] {
        for grouping in GROUPINGS {
            for rounding in [Rounding::NearestEven, Rounding::Stochastic { seed: 5 }] {
                for isa in Isa::available() {
                    let mut values: Vec<f32> = (0..len).map(|i| 1.0 + (i % 4) as f32).collect();
                    (values[0], values[1]) = (1.0, 4.0);
                    let expected =
                        Packed::quantise(&values, Format::new(bits(2), grouping, Layout::Interleaved), rounding, isa);
                    let nan = values.len() - 1;
                    if nan > 1 {
                        values[nan] = f32::NAN;
                    }
                    let found =
                        Packed::quantise(&values, Format::new(bits(2), grouping, Layout::Interleaved), rounding, isa);
                    let mut codes = expected.unwrap().codes();
                    if nan > 1 {
                        codes[nan] = 0;
                    }
                    assert_eq!(found.unwrap().codes(), codes, "{isa} {grouping:?} {len}");
                }
            }
        }
    }
}

#[test]
fn a_range_that_is_not_finite_is_an_error() {
    let mut with_infinity = vec![1.0; 600];
    with_infinity[599] = f32::INFINITY;
    let mut one_group_of_nan = vec![1.0; 600];
    one_group_of_nan[256..512].fill(f32::NAN);
    for isa in Isa::available() {
        let quantise = |values: &[f32], grouping| {
            Packed::quantise(values, Format::new(bits(4), grouping, Layout::Interleaved), Rounding::NearestEven, isa)
        };
        for grouping in GROUPINGS {
            for values in [&with_infinity[..], &[f32::NAN; 20], &[f32::MIN, f32::MAX], &[f32::NEG_INFINITY; 3]] {
                assert!(matches!(quantise(values, grouping), Err(KernelError::Range { .. })), "{isa} {grouping:?}");
            }
        }
        assert!(quantise(&one_group_of_nan, Grouping::Tensor).is_ok());
        assert!(matches!(quantise(&one_group_of_nan, Grouping::Group256), Err(KernelError::Range { .. })));
    }
}

#[test]
fn widths_and_buffers_are_checked() {
    assert_eq!(Bits::new(0), Err(KernelError::Bits(0)));
    assert_eq!(Bits::new(9), Err(KernelError::Bits(9)));
    let format = Format::new(bits(4), Grouping::Tensor, Layout::Interleaved);
    // 9 elements of 4 bits take two words.
    let short = quantise_into(&[1.0; 9], format, Rounding::NearestEven, Isa::Scalar, &mut [0; 1], &mut [0; 2]);
    assert!(matches!(short, Err(KernelError::Length { found: 1, expected: 2, .. })));
}

/// A value at fraction f of the way between two codes goes up with probability f: over n = 4096 seeds the mean of its code
/// has the standard deviation sqrt(f (1 - f) / n) <= 1 / 128. Five of them, for 40 values, fail once in 40,000 runs of
/// independent draws; these are always the same.
#[test]
fn stochastic_rounding_keeps_the_mean() {
    let values: Vec<f32> = (0..40).map(|i| if i == 39 { 3.0 } else { 3.0 * i as f32 / 39.0 }).collect();
    let format = Format::new(bits(2), Grouping::Tensor, Layout::Interleaved);
    let mut sums = [0_u32; 40];
    let seeds = 4096;
    for seed in 0..seeds {
        let packed = Packed::quantise(&values, format, Rounding::Stochastic { seed }, Isa::chosen().unwrap()).unwrap();
        for (sum, code) in sums.iter_mut().zip(packed.codes()) {
            *sum += u32::from(code);
        }
    }
    for (x, sum) in values.iter().zip(sums) {
        let mean = f64::from(sum) / seeds as f64;
        assert!((mean - f64::from(*x)).abs() <= 5.0 / 128.0, "{x} became {mean} on average");
    }
}

/// Draws are uniform, and those of neighbours and of neighbouring seeds are independent: over 2^16 of them the mean of
/// u has the standard deviation sqrt(1/12) / 256 = 0.0011, that of u u' (mean 1/4) 0.22 / 256 = 0.0009.
#[test]
fn draws_are_uniform_and_independent() {
    let n = 1 << 16;
    for seed in [0, 1, u64::MAX] {
        let mean = |f: &dyn Fn(usize) -> f64| (0..n).map(f).sum::<f64>() / n as f64;
        let u = |seed, i| f64::from(draw(seed, i));
        assert!((mean(&|i| u(seed, i)) - 0.5).abs() < 0.006);
        assert!((mean(&|i| u(seed, i) * u(seed, i + 1)) - 0.25).abs() < 0.005);
        assert!((mean(&|i| u(seed, i) * u(seed.wrapping_add(1), i)) - 0.25).abs() < 0.005);
    }
}
