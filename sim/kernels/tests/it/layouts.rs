//! Layouts: where codes are stored, changing layout and width, and masks.

use haversack_kernels::quantise::mask::{gate, mask_words};
use haversack_kernels::quantise::{
    Bits, Format, Grouping, LANES, Layout, Packed, Rounding, Scale, draw, packed_bytes, requantise,
};
use haversack_kernels::{Isa, KernelError};
use proptest::prelude::*;

const GROUPINGS: [Grouping; 2] = [Grouping::Tensor, Grouping::Group256];

fn noise(len: usize, seed: u64) -> Vec<f32> {
    (0..len).map(|i| 6.0 * draw(seed, i) - 2.0).collect()
}

fn bits(b: u8) -> Bits {
    Bits::new(b).unwrap()
}

fn layouts(len: usize, columns: usize, tile: (usize, usize)) -> Vec<Layout> {
    let mut layouts = vec![Layout::Interleaved, Layout::Sequential];
    if len.is_multiple_of(columns) {
        layouts.push(Layout::unified(columns, tile.0, tile.1).unwrap());
    }
    layouts
}

/// The tensor with fewer bits.
fn requantised(packed: &Packed, to: Bits, isa: Isa) -> Result<Packed, KernelError> {
    let (mut words, mut params) = (packed.words().to_vec(), packed.params().to_vec());
    let format = requantise(&mut words, &mut params, packed.format(), packed.len(), to, isa)?;
    words.truncate(format.words(packed.len()));
    Packed::from_parts(words, params, packed.len(), format)
}

fn config(cases: u32) -> ProptestConfig {
    let rng_seed = proptest::test_runner::RngSeed::Fixed(11);
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

/// Codes 0 to 15 and 4 bits: k = 8. Sequential: eight to a word. Interleaved: 16 elements are less than a block, so
/// there are ceil(16 / 8) = 2 lanes, and lane 0 takes the even elements. Unified, a 4 x 4 matrix in 2 x 2 tiles: a tile
/// of 4 has its own word; the first has elements 0, 1, 4, 5.
#[test]
fn words_of_a_small_tensor() {
    let values: Vec<f32> = (0..16_u8).map(f32::from).collect();
    let words = |layout| {
        let format = Format::new(bits(4), Grouping::Tensor, layout);
        Packed::quantise(&values, format, Rounding::NearestEven, Isa::chosen().unwrap()).unwrap().words().to_vec()
    };
    assert_eq!(words(Layout::Sequential), [0x7654_3210, 0xFEDC_BA98]);
    assert_eq!(words(Layout::Interleaved), [0xECA8_6420, 0xFDB9_7531]);
    assert_eq!(words(Layout::unified(4, 2, 2).unwrap()), [0x5410, 0x7632, 0xDC98, 0xFEBA]);
}

/// A whole block of 4-bit codes is 128 elements: word `lane` has elements lane, 16 + lane, ..., 112 + lane. Element e
/// is 15 / 7 of e / 16, over steps of 1: rounded, 0, 2, 4, 6, 9, 11, 13, 15, and every word is 0xFDB96420.
#[test]
fn a_whole_block_has_sixteen_lanes() {
    let values: Vec<f32> = (0..128).map(|i| (i / LANES) as f32 * 15.0 / 7.0).collect();
    let format = Format::new(bits(4), Grouping::Tensor, Layout::Interleaved);
    for isa in Isa::available() {
        let packed = Packed::quantise(&values, format, Rounding::NearestEven, isa).unwrap();
        assert_eq!(packed.words(), [0xFDB9_6420; LANES], "{isa}");
    }
}

/// 1000 elements of 2 bits: ceil(1000 / 16) = 63 words. One range: 8 bytes more; 4 groups: 16 more. 3 bits: 10 to a word,
/// 100 words. A 10 x 100 matrix in tiles of 4 x 64, 2 bits: bands of 4, 4 and 2 rows; 256 / 16 + 144 / 16 = 25 words, twice,
/// and 128 / 16 + ceil(72 / 16) = 13. A mask of 33 elements has a bit in its second word.
#[test]
fn stored_bytes() {
    assert_eq!(packed_bytes(1000, bits(2), Grouping::Tensor, Layout::Interleaved), 4 * 63 + 8);
    assert_eq!(packed_bytes(1000, bits(2), Grouping::Group256, Layout::Sequential), 4 * 63 + 16);
    assert_eq!(packed_bytes(1000, bits(3), Grouping::Tensor, Layout::Interleaved), 4 * 100 + 8);
    let unified = Layout::unified(100, 4, 64).unwrap();
    assert_eq!(packed_bytes(1000, bits(2), Grouping::Tensor, unified), 4 * (25 + 25 + 13) + 8);
    assert_eq!(packed_bytes(0, bits(2), Grouping::Tensor, Layout::Interleaved), 0);
    assert_eq!(mask_words(33), 2);
}

proptest! {
    #![proptest_config(config(64))]

    /// Every element has its own bits within the words, and the words contain only the codes.
    #[test]
    fn slots_do_not_overlap(rows in 1_usize..30, columns in 1_usize..60, tile in (1_usize..20, 1_usize..40), b in 1_u8..=8) {
        let len = rows * columns;
        for layout in layouts(len, columns, tile) {
            let format = Format::new(bits(b), Grouping::Tensor, layout);
            let mut taken = vec![0_u32; format.words(len)];
            for i in 0..len {
                let slot = format.slot(i, len).unwrap();
                let mine = bits(b).top() << slot.shift;
                prop_assert_eq!(taken[slot.word] & mine, 0, "{:?} element {}", layout, i);
                taken[slot.word] |= mine;
            }
            prop_assert!(taken.iter().all(|&word| word != 0), "{:?} has an empty word", layout);
            prop_assert_eq!(format.slot(len, len), None);
        }
    }

    /// Every layout gives the same codes, ranges and values as every other.
    #[test]
    fn the_layout_changes_no_code(
        rows in 1_usize..30, columns in 1_usize..90, tile in (1_usize..20, 1_usize..70), b in 1_u8..=8, seed: u64, grouped: bool,
    ) {
        let values = noise(rows * columns, seed);
        let layouts = layouts(values.len(), columns, tile);
        for isa in Isa::available() {
            for &from in &layouts {
                let format = Format::new(bits(b), GROUPINGS[usize::from(grouped)], from);
                let packed = Packed::quantise(&values, format, Rounding::NearestEven, isa).unwrap();
                for &to in &layouts {
                    let other = Packed::quantise(&values, Format { layout: to, ..format }, Rounding::NearestEven, isa);
                    let other = other.unwrap();
                    prop_assert_eq!(other.codes(), packed.codes());
                    prop_assert_eq!(other.params(), packed.params());
                    prop_assert_eq!(other.dequantise(isa), packed.dequantise(isa));
                }
            }
        }
    }

    /// Half an old step and half a new one, 2^-12 of the new one for arithmetic, and two ulps.
    #[test]
    fn requantising_adds_half_a_step(
        rows in 1_usize..30, columns in 1_usize..90, tile in (1_usize..20, 1_usize..70), b in (1_u8..=8, 1_u8..=8), seed: u64,
        grouped: bool,
    ) {
        let (from, to) = (bits(b.0.max(b.1)), bits(b.0.min(b.1)));
        let values = noise(rows * columns, seed);
        for layout in layouts(values.len(), columns, tile) {
            let format = Format::new(from, GROUPINGS[usize::from(grouped)], layout);
            let mut results = vec![];
            for isa in Isa::available() {
                let old = Packed::quantise(&values, format, Rounding::NearestEven, isa).unwrap();
                let new = requantised(&old, to, isa).unwrap();
                prop_assert_eq!(new.bytes(), packed_bytes(values.len(), to, format.grouping, layout));
                for (i, (x, y)) in values.iter().zip(new.dequantise(isa)).enumerate() {
                    let (old, new) = (old.scale(i).unwrap().step, new.scale(i).unwrap().step);
                    let added = if from == to { 0.0 } else { new * (0.5 + 1.0 / 4096.0) };
                    let bound = old * (0.5 + 1.0 / 4096.0) + added + 4.0 * f32::EPSILON * 4.0;
                    prop_assert!((x - y).abs() <= bound, "{} became {}: {} to {}", x, y, old, new);
                }
                results.push(new);
            }
            prop_assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
        }
    }

    /// Gating keeps the marked elements, here those above zero.
    #[test]
    fn masks_come_back(len in 0_usize..300, seed: u64) {
        let mut values = noise(len, seed);
        if let Some(x) = values.first_mut() {
            *x = f32::NAN;
        }
        let flags: Vec<bool> = values.iter().map(|&x| x > 0.0).collect();
        let word = |flags: &[bool]| flags.iter().rev().fold(0, |word: u32, &flag| word << 1 | u32::from(flag));
        let words: Vec<u32> = flags.chunks(32).map(word).collect();
        prop_assert_eq!(words.len(), mask_words(len));
        for isa in Isa::available() {
            let mut gated = values.clone();
            gate(&words, isa, &mut gated).unwrap();
            let rectified: Vec<f32> = values.iter().map(|&x| if x > 0.0 { x } else { 0.0 }).collect();
            prop_assert_eq!(gated, rectified);
        }
    }

}

/// 8 bits to 4 over 0..255: the step goes from 1 to 17, and 8, 9, 25 and 26 to 8/17, 9/17, 25/17 and 26/17: codes 0, 1, 1, 2.
#[test]
fn requantising_by_hand() {
    let mut values = vec![0.0, 8.0, 9.0, 25.0, 26.0, 255.0];
    values.resize(40, 255.0);
    for isa in Isa::available() {
        let format = Format::new(bits(8), Grouping::Tensor, Layout::Interleaved);
        let wide = Packed::quantise(&values, format, Rounding::NearestEven, isa).unwrap();
        let packed = requantised(&wide, bits(4), isa).unwrap();
        assert_eq!(packed.scale(0), Some(Scale { minimum: 0.0, step: 17.0 }));
        assert_eq!(packed.codes()[..6], [0, 0, 1, 1, 2, 15]);
        assert_eq!(requantised(&packed, bits(5), isa), Err(KernelError::Widen { from: 4, to: 5 }));
    }
}

#[test]
fn shapes_are_checked() {
    assert!(matches!(Layout::unified(0, 1, 1), Err(KernelError::Length { .. })));
    let format = Format::new(bits(2), Grouping::Tensor, Layout::unified(7, 2, 2).unwrap());
    // 20 elements are two rows of 7 and a part.
    let ragged = Packed::quantise(&[1.0; 20], format, Rounding::NearestEven, Isa::Scalar);
    assert!(matches!(ragged, Err(KernelError::Length { found: 6, expected: 7, .. })));
    let short = requantise(
        &mut [0; 3],
        &mut [0; 2],
        Format::new(bits(8), Grouping::Tensor, Layout::Interleaved),
        16,
        bits(4),
        Isa::Scalar,
    );
    assert!(matches!(short, Err(KernelError::Length { found: 3, expected: 4, .. })));
}
