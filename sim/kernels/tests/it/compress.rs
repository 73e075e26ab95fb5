//! Compression: every element stays within the bound for any tensor, and invalid bytes are an error.

use haversack_kernels::Isa;
use haversack_kernels::compress::{Blocks, Bound, Codec, CodecError, FeatureMap, Mode, Shape, Summary, decompress};
use haversack_kernels::quantise::{Bits, Format, GROUP, Grouping, Layout, Packed, Rounding, draw};
use proptest::prelude::*;

fn shape(channels: usize, height: usize, width: usize) -> Shape {
    Shape { channels, height, width }
}

fn map(values: &[f32], Shape { channels, height, width }: Shape) -> FeatureMap<'_> {
    FeatureMap { values, channels, height, width }
}

fn compressed(mode: Mode, values: &[f32], shape: Shape) -> (Vec<u8>, Summary) {
    let mut bytes = vec![9; 3];
    let summary = Codec::new(mode, Isa::Scalar).unwrap().compress(map(values, shape), &mut bytes).unwrap();
    assert_eq!(summary.bytes as usize, bytes.len());
    (bytes, summary)
}

fn restored(bytes: &[u8], shape: Shape) -> Vec<f32> {
    let mut values = vec![7.0; shape.elements().unwrap()];
    decompress(bytes, Isa::Scalar, &mut values).unwrap();
    values
}

/// The finite elements, from the smallest to the largest.
fn range(values: &[f32]) -> f64 {
    let finite = || values.iter().copied().filter(|x| x.is_finite()).map(f64::from);
    (finite().fold(f64::NEG_INFINITY, f64::max) - finite().fold(f64::INFINITY, f64::min)).max(0.0)
}

/// Checks every element of every channel against its bound, in f64.
fn check(values: &[f32], restored: &[f32], shape: Shape, bound: impl Fn(&[f32]) -> f64) {
    for (channel, back) in values.chunks(shape.plane().unwrap()).zip(restored.chunks(shape.plane().unwrap())) {
        let bound = bound(channel);
        for (i, (&x, &y)) in channel.iter().zip(back).enumerate() {
            if x.is_finite() {
                let error = (f64::from(x) - f64::from(y)).abs();
                assert!(error <= bound, "element {i}: {x} to {y}, {error} > {bound}");
            } else {
                assert_eq!(x.to_bits(), y.to_bits(), "element {i}");
            }
        }
    }
}

/// Half a step of the group of each element, and what rounding in f32 adds to it.
fn half_steps(values: &[f32], bits: Bits) -> f64 {
    let format = Format::new(bits, Grouping::Group256, Layout::Interleaved);
    let packed = Packed::quantise(values, format, Rounding::NearestEven, Isa::Scalar).unwrap();
    let largest = values.iter().fold(0.0_f64, |most, &x| most.max(f64::from(x).abs()));
    let scales = (0..values.len()).step_by(GROUP).filter_map(|element| packed.scale(element));
    let step = scales.map(|scale| f64::from(scale.step)).fold(0.0, f64::max);
    step * (0.5 + 1.0 / 4096.0) + (largest + step) / 4_194_304.0
}

/// The kinds of channel.
#[derive(Clone, Copy, Debug)]
enum Look {
    Noise,
    Rectified,
    Smooth,
    Sparse,
    Constant,
    Denormal,
    Outliers,
    Special,
}

fn channel(look: Look, plane: usize, seed: u64) -> impl Iterator<Item = f32> {
    (0..plane).map(move |i| {
        let noise = draw(seed, i) - 0.5;
        let smooth = (i as f32 * 0.07).sin() + 0.01 * noise;
        match look {
            Look::Noise => 100.0 + noise,
            Look::Rectified => (smooth * 3.0).max(0.0),
            Look::Smooth => smooth * 1e-3,
            Look::Sparse if draw(seed ^ 1, i) > 0.05 => 0.0,
            Look::Sparse => noise * 1e4,
            Look::Constant => draw(seed, 0),
            Look::Denormal => noise * 1e-39,
            Look::Outliers if draw(seed ^ 1, i) > 0.03 => noise,
            Look::Outliers => noise * 300.0,
            Look::Special => match i % 7 {
                0 => f32::NAN,
                1 => f32::NEG_INFINITY,
                2 => -0.0,
                3 => f32::from_bits(0xFFC1_2345),
                _ => noise * if i % 3 == 0 { 3e38 } else { 1.0 },
            },
        }
    })
}

fn looks() -> impl Strategy<Value = Look> {
    use Look::{Constant, Denormal, Noise, Outliers, Rectified, Smooth, Sparse, Special};
    prop::sample::select(vec![Noise, Rectified, Smooth, Sparse, Constant, Denormal, Outliers, Special])
}

fn tensors() -> impl Strategy<Value = (Vec<f32>, Shape)> {
    (prop::collection::vec(looks(), 1..5), 1_usize..40, 1_usize..40, any::<u64>()).prop_map(
        |(looks, height, width, seed)| {
            let shape = shape(looks.len(), height, width);
            let channels = looks.iter().zip(seed..).flat_map(|(look, seed)| channel(*look, height * width, seed));
            (channels.collect(), shape)
        },
    )
}

fn modes() -> impl Strategy<Value = Mode> {
    let share = (-70_i32..0).prop_map(|tenths| 10.0_f32.powf(tenths as f32 / 10.0));
    let bound = prop_oneof![
        share.clone().prop_map(Bound::OfChannel),
        share.clone().prop_map(Bound::OfTensor),
        share.prop_map(Bound::Absolute),
        Just(Bound::Absolute(0.0))
    ];
    let blocks = (1..20_u8, 0.0..=1.0_f32).prop_map(|(edge, threshold)| Blocks { edge, threshold });
    (bound, blocks, any::<bool>()).prop_map(|(bound, blocks, is_mixed)| {
        if is_mixed { Mode::Mixed { bits: None, bound, blocks } } else { Mode::ErrorBounded { bound } }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_bound_holds_on_every_element((values, shape) in tensors(), mode in modes()) {
        let (bytes, _) = compressed(mode, &values, shape);
        let back = restored(&bytes, shape);
        let whole = range(&values);
        check(&values, &back, shape, |channel| match mode.bound().unwrap() {
            Bound::Absolute(bound) => f64::from(bound),
            Bound::OfTensor(share) => f64::from(share) * whole,
            Bound::OfChannel(share) => f64::from(share) * range(channel),
        });
        // Only the quantisation of a normal channel changes a zero, and only within the bound; here zero is exact
        // because all channels are predicted in this mode.
        if let Mode::ErrorBounded { .. } = mode {
            prop_assert!(values.iter().zip(&back).all(|(x, y)| *x != 0.0 || *y == 0.0));
        }
    }

    #[test]
    fn quantised_channels_stay_within_half_a_step((values, shape) in tensors(), bits in 1..=8_u8) {
        let bits = Bits::new(bits).unwrap();
        let (bytes, summary) = compressed(Mode::Quantise { bits }, &values, shape);
        check(&values, &restored(&bytes, shape), shape, |channel| {
            let can = channel.iter().all(|x| x.is_finite()) && range(channel) < f64::from(f32::MAX);
            if can { half_steps(channel, bits) } else { 0.0 }
        });
        prop_assert_eq!((summary.normal, summary.salient), (shape.channels, 0));
        // With a fixed number of bits, normal channels keep half a step and salient ones the bound.
        let mixed = Mode::Mixed { bits: Some(bits), bound: Bound::OfChannel(0.01), blocks: Blocks::DEFAULT };
        let (bytes, _) = compressed(mixed, &values, shape);
        check(&values, &restored(&bytes, shape), shape, |channel| {
            let can = channel.iter().all(|x| x.is_finite()) && range(channel) < f64::from(f32::MAX);
            (f64::from(0.01_f32) * range(channel)).max(if can { half_steps(channel, bits) } else { 0.0 })
        });
    }

    #[test]
    fn every_instruction_set_writes_the_same_bytes_and_reads_the_same_values(
        (values, shape) in tensors(),
        mode in modes(),
    ) {
        let (bytes, summary) = compressed(mode, &values, shape);
        let back: Vec<u32> = restored(&bytes, shape).iter().map(|x| x.to_bits()).collect();
        for isa in Isa::available() {
            let (mut other, mut values_back) = (Vec::new(), vec![0.0; values.len()]);
            prop_assert_eq!(Codec::new(mode, isa).unwrap().compress(map(&values, shape), &mut other), Ok(summary));
            prop_assert!(other == bytes, "{}", isa);
            decompress(&bytes, isa, &mut values_back).unwrap();
            prop_assert!(values_back.iter().zip(&back).all(|(x, bits)| x.to_bits() == *bits), "{}", isa);
        }
    }

    #[test]
    fn damaged_bytes_never_panic((values, shape) in tensors(), mode in modes(), damage in prop::collection::vec(any::<(u16, u8)>(), 1..6)) {
        let (mut bytes, _) = compressed(mode, &values, shape);
        for (place, byte) in damage {
            let place = usize::from(place) % bytes.len();
            bytes[place] = byte;
        }
        let mut back = vec![0.0; values.len()];
        for isa in Isa::available() {
            // A result or an error, either is fine, unless bytes are missing.
            let _ = decompress(&bytes, isa, &mut back);
            prop_assert!(decompress(&bytes[..bytes.len() - 1], isa, &mut back).is_err());
        }
    }

    #[test]
    fn arbitrary_bytes_are_errors(bytes in prop::collection::vec(any::<u8>(), 0..200), lengths in any::<[u8; 6]>()) {
        prop_assert!(decompress(&bytes, Isa::Scalar, &mut [0.0; 12]).is_err());
        // With a valid head: 3 x 2 x 2, and sections whose lengths are nearly right.
        let mut headed = b"hvfm\x01".to_vec();
        [3_u32, 2, 2].iter().for_each(|dimension| headed.extend(dimension.to_le_bytes()));
        let mut left = bytes.len() as u64;
        for (i, length) in lengths.into_iter().enumerate() {
            let length = if i == 5 { left } else { u64::from(length % 40).min(left) };
            left -= length;
            headed.extend(length.to_le_bytes());
        }
        headed.extend(&bytes);
        let _ = decompress(&headed, Isa::Scalar, &mut [0.0; 12]);
    }
}

#[test]
fn a_frame_is_crossed_and_a_frame_may_be_all_zero() {
    // Three channels of 300 x 300 are 270000 symbols, more than two frames of 131072; most of them zero.
    let shape = shape(3, 300, 300);
    let mut values = vec![0.0; 270_000];
    for (i, x) in values.iter_mut().enumerate().skip(200_000) {
        *x = (i as f32 * 0.01).sin().max(0.0);
    }
    values[3] = 1.0;
    let mode = Mode::ErrorBounded { bound: Bound::Absolute(1e-3) };
    let (bytes, _) = compressed(mode, &values, shape);
    check(&values, &restored(&bytes, shape), shape, |_| 1e-3);
    assert!(bytes.len() < 270_000 * 4 / 20, "{}", bytes.len());
}

#[test]
fn constant_channels_take_a_record_each() {
    let shape = shape(8, 64, 64);
    let values: Vec<f32> = (0..8 * 4096).map(|i| (i / 4096) as f32 - 3.0).collect();
    for mode in [Mode::mixed(Bound::OfChannel(1e-3)), Mode::Quantise { bits: Bits::new(4).unwrap() }] {
        let (bytes, summary) = compressed(mode, &values, shape);
        // A head of 4 + 1 + 3 · 4 + 6 · 8 = 65 bytes, and 1 + 4 a channel.
        assert_eq!(bytes.len(), 65 + 8 * 5);
        assert_eq!((summary.exact, restored(&bytes, shape)), (0, values.clone()));
    }
}

#[test]
fn tensors_without_elements_and_of_one() {
    for shape in [shape(0, 3, 3), shape(4, 0, 5), shape(u32::MAX as usize, 1, 0)] {
        let (bytes, summary) = compressed(Mode::mixed(Bound::OfChannel(0.1)), &[], shape);
        assert_eq!(summary, Summary { bytes: 65, ..Summary::default() });
        assert_eq!(decompress(&bytes, Isa::Scalar, &mut []), Ok(()));
    }
    for x in [0.0, -0.0, 3.5, f32::NAN, f32::INFINITY, 1e-45, f32::MAX] {
        for mode in [Mode::mixed(Bound::OfTensor(0.1)), Mode::Quantise { bits: Bits::new(1).unwrap() }] {
            let back = restored(&compressed(mode, &[x], shape(1, 1, 1)).0, shape(1, 1, 1));
            assert!(back[0] == x || back[0].to_bits() == x.to_bits(), "{x}");
        }
    }
}

/// Eight normal channels and a salient one: an island of values about 1 in a sea of zeros, with a summit of 80.
fn mixed_tensor() -> (Vec<f32>, Shape) {
    let shape = shape(9, 32, 32);
    let values = (0..9 * 1024).map(|i| {
        let (channel, row, column) = (i / 1024, i / 32 % 32, i % 32);
        let is_summit = (4..8).contains(&row) && (4..8).contains(&column);
        match channel {
            4 if is_summit => 80.0 + draw(2, i),
            4 if row < 16 && column < 16 => 1.0 + 0.01 * (row + column) as f32,
            4 if (row, column) == (20, 30) => 5.0,
            4 => 0.0,
            _ => 0.25 * (draw(1, i) - 0.5),
        }
    });
    (values.collect(), shape)
}

#[test]
fn the_mixed_mode_sorts_channels_and_blocks_and_keeps_sparse_ones_exactly() {
    let (values, shape) = mixed_tensor();
    let (bytes, summary) = compressed(Mode::mixed(Bound::OfChannel(2e-3)), &values, shape);
    // 16 blocks of 8 x 8: the upper left quarter is dense; 11 others are empty and one has a single element.
    let found = (summary.normal, summary.salient, summary.quantised, summary.sparse_blocks, summary.dense_blocks);
    assert_eq!(found, (8, 1, 8, 12, 4));
    let back = restored(&bytes, shape);
    let salient = 4 * 1024..5 * 1024;
    assert_eq!(back[salient.start + 20 * 32 + 30], 5.0);
    let pairs = || values[salient.clone()].iter().zip(&back[salient.clone()]);
    assert!(pairs().all(|(x, y)| *x != 0.0 || *y == 0.0));
    assert!(pairs().any(|(x, y)| x != y));
    // A bound that eight bits do not keep: nothing is quantised, and the classes stay.
    let (_, tight) = compressed(Mode::mixed(Bound::OfChannel(1e-4)), &values, shape);
    assert_eq!((tight.normal, tight.salient, tight.quantised), (8, 1, 0));
}

#[test]
fn mixed_compression_adds_less_variance_than_quantisation_of_as_many_bytes() {
    let (values, shape) = mixed_tensor();
    let map = map(&values, shape);
    let plain = Codec::new(Mode::Quantise { bits: Bits::new(8).unwrap() }, Isa::Scalar).unwrap();
    // Eight bits for normal channels in both. In the salient one, quantisation moves elements of the summit's group by
    // up to half of 81/255, 0.16; with a bound of 0.08, prediction takes no more bytes, because neighbours are similar.
    let mode = Mode::Mixed { bits: Bits::new(8).ok(), bound: Bound::OfChannel(1e-3), blocks: Blocks::DEFAULT };
    let mixed = Codec::new(mode, Isa::Scalar).unwrap();
    let (mut bytes, mut fewer) = (Vec::new(), Vec::new());
    plain.compress(map, &mut bytes).unwrap();
    mixed.compress(map, &mut fewer).unwrap();
    let (plain, mixed) = (plain.error_variance(map).unwrap(), mixed.error_variance(map).unwrap());
    assert!(fewer.len() <= bytes.len() && mixed < plain, "{} {} {mixed} {plain}", fewer.len(), bytes.len());
}

#[test]
fn the_variance_of_an_error_by_hand() {
    // One bit for 0, 1, 3 and 4: the step is 4, and 1 and 3 err by -1 and 1. The mean is 0, the variance (1 + 1)/4.
    let codec = Codec::new(Mode::Quantise { bits: Bits::new(1).unwrap() }, Isa::Scalar).unwrap();
    assert_eq!(codec.error_variance(map(&[0.0, 1.0, 3.0, 4.0], shape(1, 2, 2))), Ok(0.5));
    assert_eq!(GROUP, 256);
}

#[test]
fn half_a_tensor_of_zeros_does_not_hold_the_ratio_below_32() {
    let shape = shape(4, 128, 128);
    let mode = Mode::ErrorBounded { bound: Bound::OfTensor(0.02) };
    // The upper half of each channel has four columns, the lower one is zero: a bit each would be a ratio of 32.
    let values: Vec<f32> =
        (0..4 * 16384).map(|i| if i / 128 % 128 < 64 { (1 + i % 128 / 32) as f32 } else { 0.0 }).collect();
    let (bytes, _) = compressed(mode, &values, shape);
    assert!(bytes.len() * 64 < values.len() * 4, "{}", bytes.len());
}

#[test]
fn settings_and_shapes_that_cannot_be() {
    let codec = |mode| Codec::new(mode, Isa::Scalar).map(|_| ());
    for bound in [Bound::Absolute(-1.0), Bound::OfTensor(f32::NAN), Bound::OfChannel(f32::INFINITY)] {
        assert!(matches!(codec(Mode::ErrorBounded { bound }), Err(CodecError::Setting { what: "the bound", .. })));
    }
    for (edge, threshold) in [(0, 0.5), (8, 1.5), (8, f32::NAN)] {
        let blocks = Blocks { edge, threshold };
        assert!(codec(Mode::Mixed { bits: None, bound: Bound::Absolute(0.1), blocks }).is_err(), "{blocks:?}");
    }
    let mode = Mode::mixed(Bound::OfTensor(0.1));
    let codec = Codec::new(mode, Isa::Scalar).unwrap();
    let wrong = shape(2, 3, 4);
    let error = codec.compress(map(&[0.0; 23], wrong), &mut Vec::new());
    assert_eq!(error, Err(CodecError::Shape { found: 23, shape: wrong }));
    assert_eq!(error.unwrap_err().to_string(), "23 elements for 2 channels of 3 x 4");
    let huge = shape(usize::MAX, 2, 2);
    assert!(codec.compress(map(&[0.0; 4], huge), &mut Vec::new()).is_err());
    let (bytes, _) = compressed(mode, &[1.0; 24], wrong);
    assert_eq!(decompress(&bytes, Isa::Scalar, &mut [0.0; 25]), Err(CodecError::Shape { found: 25, shape: wrong }));
    let mut other = bytes.clone();
    other[4] = 2;
    let error = decompress(&other, Isa::Scalar, &mut [0.0; 24]).unwrap_err().to_string();
    assert_eq!(error, r"not a compressed tensor of version 1: hvfm\x02");
    other = bytes;
    other.push(0);
    assert!(decompress(&other, Isa::Scalar, &mut [0.0; 24]).is_err());
}
