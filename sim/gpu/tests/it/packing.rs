//! Packing kernels: their words and values against the host's, to the bit, and the sectors of each layout.

use haversack_devices::units::Bytes;
use haversack_gpu::packing::{Access, Destination, Order, Packing, Tiles};
use haversack_kernels::quantise::{Bits, Grouping, Rounding, Scale, dequantise_into, pack_into};
use haversack_kernels::{Isa, KernelError};
use proptest::prelude::*;

use crate::common::{machine, shuffled};

const ORDERS: [Order; 3] = [Order::Sequential, Order::Interleaved, Order::Unified];

fn packing(bits: u8, order: Order, tiles: Tiles, length: usize, threads: u32) -> Packing {
    let bits = Bits::new(bits).unwrap();
    let scale = Scale::of(-4.0, 4.0, bits, Grouping::Tensor).unwrap();
    Packing { length, bits, order, tiles, scale, rounding: Rounding::NearestEven, threads }
}

/// Packs and unpacks on both, and compares.
fn assert_same(packing: &Packing, values: &[f32]) {
    let format = packing.format().unwrap();
    let mut words = vec![0; format.words(values.len())];
    let Packing { scale, bits, rounding, .. } = *packing;
    pack_into(values, scale, bits, format.layout, rounding, Isa::Scalar, &mut words).unwrap();
    for access in [Access::Direct, Access::Staged] {
        assert_eq!(packing.pack(values, access, &machine(2, 4)).unwrap().0, words, "{packing:?} {access:?}");
    }
    let mut params = vec![scale.minimum.to_bits(), scale.step.to_bits()];
    params.truncate(format.params(values.len()));
    let mut host = vec![0.0; values.len()];
    dequantise_into(&words, &params, format, Isa::Scalar, &mut host).unwrap();
    for to in [Destination::Shared, Destination::Global] {
        let (found, _) = packing.unpack(&words, to, &machine(2, 4)).unwrap();
        let same = found.iter().zip(&host).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same && found.len() == host.len(), "{packing:?} {to:?}");
    }
}

#[test]
fn words_and_values_are_the_host_s_in_every_layout_and_width() {
    for bits in 1..=8 {
        for order in ORDERS {
            for (columns, rows) in [(1, 0), (1, 1), (7, 5), (64, 3), (100, 33)] {
                let tiles = Tiles { columns, tile_rows: 8, tile_columns: 32 };
                let mut values = shuffled(columns * rows);
                if let Some(first) = values.first_mut() {
                    *first = f32::NAN;
                }
                let mut packing = packing(bits, order, tiles, columns * rows, 32);
                assert_same(&packing, &values);
                packing.rounding = Rounding::Stochastic { seed: 7 };
                assert_same(&packing, &values);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn words_and_values_are_the_host_s(
        bits in 1_u8..=8, order in 0_usize..3, columns in 1_usize..90, rows in 0_usize..20,
        tile_rows in 1_usize..12, tile_columns in 1_usize..70, threads in 1_u32..9,
    ) {
        let tiles = Tiles { columns, tile_rows, tile_columns };
        let packing = packing(bits, ORDERS[order], tiles, columns * rows, 16 * threads);
        assert_same(&packing, &shuffled(columns * rows));
    }
}

/// 256 x 256 elements in tiles of 64 x 64.
fn square(bits: u8, order: Order) -> Packing {
    packing(bits, order, Tiles { columns: 256, tile_rows: 64, tile_columns: 64 }, 65_536, 256)
}

#[test]
fn a_thread_that_owns_a_word_reads_its_elements_scattered_in_the_sequential_layout_only() {
    let read = |bits, order, access| square(bits, order).pack_counts(access, &machine(8, 8)).unwrap().read.0;
    let tensor = 4 * 65_536;
    for bits in [1, 2, 4] {
        // Codes of a word are at least 8 words of f32, a sector, apart between threads: 8 times the bytes.
        assert_eq!(read(bits, Order::Sequential, Access::Direct), 8 * tensor);
        assert_eq!(read(bits, Order::Sequential, Access::Staged), tensor);
        // Sixteen lanes side by side are two whole sectors.
        assert_eq!(read(bits, Order::Interleaved, Access::Direct), tensor);
    }
    // Eight bits: 4 elements a word, so 16 B apart, half a sector: 4 times.
    assert_eq!(read(8, Order::Sequential, Access::Direct), 4 * tensor);
    assert_eq!(read(4, Order::Unified, Access::Direct), tensor);
    // Staging costs a barrier and shared memory, once in and once out.
    let staged = square(4, Order::Sequential).pack_counts(Access::Staged, &machine(8, 8)).unwrap();
    assert_eq!((staged.barriers, staged.shared), (1, Bytes(2 * tensor)));
}

#[test]
fn only_the_unified_layout_gives_a_tile_its_own_sectors() {
    let read = |bits, order| square(bits, order).unpack_counts(Destination::Shared, &machine(8, 8)).unwrap().read.0;
    for bits in [1_u8, 2, 4, 8] {
        let packed = 65_536 * u64::from(bits) / 8;
        assert_eq!(read(bits, Order::Unified), packed);
        // A row of a tile has 64 elements; 16 interleaved words hold 512 (two rows of the matrix), 256, 128, 64. All of
        // them are loaded, for a quarter, a quarter, a half, all of their codes.
        assert_eq!(read(bits, Order::Interleaved), packed * (8 / u64::from(bits)).min(4));
        // Neighbouring elements share words: 64 take 8, 16, 32, 64 B, a quarter or half of a sector, or whole ones.
        assert_eq!(read(bits, Order::Sequential), packed * (4 / u64::from(bits)).max(1));
    }
}

#[test]
fn a_tile_that_goes_on_in_shared_memory_is_neither_launched_nor_written() {
    let kernel = |to| square(4, Order::Unified).unpack_counts(to, &machine(8, 8)).unwrap();
    let (shared, global) = (kernel(Destination::Shared), kernel(Destination::Global));
    assert_eq!((shared.launches, shared.written), (0, Bytes::ZERO));
    assert_eq!((global.launches, global.written), (1, Bytes(4 * 65_536)));
    assert_eq!(global.working_set, Bytes(4 * 65_536 + 65_536 / 2));
}

#[test]
fn a_sample_is_what_running_counts() {
    let machine = machine(8, 8);
    for (order, columns, rows) in
        [(Order::Sequential, 96, 40), (Order::Unified, 100, 70), (Order::Interleaved, 96, 300)]
    {
        let tiles = Tiles { columns, tile_rows: 16, tile_columns: 32 };
        let packing = packing(4, order, tiles, columns * rows, 64);
        let values = shuffled(columns * rows);
        let (words, packed) = packing.pack(&values, Access::Staged, &machine).unwrap();
        let (_, unpacked) = packing.unpack(&words, Destination::Global, &machine).unwrap();
        assert_eq!(packing.pack_counts(Access::Staged, &machine).unwrap(), packed);
        assert_eq!(packing.unpack_counts(Destination::Global, &machine).unwrap(), unpacked);
    }
    // 3000 tiles, of which 65 are run; edges and alignments differ, so within 2%.
    let tiles = Tiles { columns: 1000, tile_rows: 16, tile_columns: 16 };
    for order in ORDERS {
        let packing = packing(3, order, tiles, 1000 * 760, 64);
        let (words, packed) = packing.pack(&vec![0.5; 1000 * 760], Access::Direct, &machine).unwrap();
        let (_, unpacked) = packing.unpack(&words, Destination::Shared, &machine).unwrap();
        let near = |sampled: u64, counted: u64| sampled.abs_diff(counted) * 50 <= counted;
        let sampled = packing.pack_counts(Access::Direct, &machine).unwrap();
        assert!(near(sampled.read.0, packed.read.0), "{order:?}: {} {}", sampled.read, packed.read);
        let sampled = packing.unpack_counts(Destination::Shared, &machine).unwrap();
        assert!(near(sampled.read.0, unpacked.read.0), "{order:?}: {} {}", sampled.read, unpacked.read);
        assert!(near(sampled.lane_operations, unpacked.lane_operations));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let good = square(4, Order::Unified);
    let launch = |packing: Packing| packing.pack_counts(Access::Direct, &machine(1, 1)).unwrap_err();
    assert!(matches!(launch(Packing { threads: 24, ..good }), KernelError::Launch { .. }));
    assert!(matches!(launch(Packing { length: 65_537, ..good }), KernelError::Length { .. }));
    let tiles = Tiles { tile_columns: 0, ..good.tiles };
    assert!(matches!(launch(Packing { tiles, ..good }), KernelError::Length { .. }));
    // 256 x 256 x 4 B do not fit 96 KiB.
    let tiles = Tiles { columns: 256, tile_rows: 256, tile_columns: 256 };
    let large = Packing { tiles, ..good }.unpack_counts(Destination::Shared, &machine(1, 1)).unwrap_err();
    assert!(large.to_string().contains("shared memory"), "{large}");
    assert!(good.pack(&[0.0; 3], Access::Direct, &machine(1, 1)).is_err());
    assert!(good.unpack(&[0; 3], Destination::Global, &machine(1, 1)).is_err());
}
