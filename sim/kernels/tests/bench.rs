//! Tests of the benchmark's own code, with the crates that kernels are compared with:
//! `cargo test -p haversack-kernels --features peers --test bench`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../benches/kernels/bench/mod.rs"]
mod bench;

#[test]
fn a_kernel_is_measured_from_outside() {
    bench::run(["gate-scalar", "--format", "json"].map(str::to_owned).into_iter()).unwrap();
    assert!(bench::run(["--jobs".to_owned()].into_iter()).unwrap_err().contains("--jobs"));
}

mod bars {
    use haversack_kernels::Isa;

    use haversack_devices::units::BytesPerSecond;

    use crate::bench::bars::*;
    use crate::bench::limit::Limit;
    use crate::bench::{Family, Measurement, Peer};

    fn measured(kernel: &str, rate: f64) -> Measurement {
        Measurement {
            kernel: kernel.to_owned(),
            family: Family::Reduction,
            size: DRAM,
            rate: BytesPerSecond(rate),
            limit: Limit::Read,
            limit_rate: BytesPerSecond(40.0),
            peer: Some(Peer { name: "other".to_owned(), rate: BytesPerSecond(10.0) }),
        }
    }

    #[test]
    fn a_ratio_is_to_the_limit_the_peer_or_the_other_kernel() {
        let measured = [measured("a", 30.0), measured("b", 20.0)];
        let bar = |against| Bar { kernel: "a".to_owned(), size: DRAM, against, least: 1.0 };
        // 30 of 40, 30 to 10, 30 to 20.
        assert_eq!(bar(Against::Limit).reached(&measured), Some(0.75));
        assert_eq!(bar(Against::Peer).reached(&measured), Some(3.0));
        assert_eq!(bar(Against::Kernel("b".to_owned())).reached(&measured), Some(1.5));
        assert_eq!(bar(Against::Kernel("c".to_owned())).reached(&measured), None);
        assert_eq!(Bar { size: SECOND_CACHE, ..bar(Against::Limit) }.reached(&measured), None);
    }

    #[test]
    fn every_bar_is_about_a_kernel_of_the_catalogue_or_about_instructions_that_are_not_here() {
        let kernels = crate::bench::catalogue::catalogue().unwrap();
        let missing: Vec<&str> = Isa::ALL.into_iter().filter(|isa| !isa.is_available()).map(Isa::name).collect();
        for bar in bars() {
            for name in bar.kernels() {
                let kernel = kernels.iter().find(|kernel| kernel.id() == name);
                assert!(kernel.is_some() || missing.iter().any(|isa| name.ends_with(isa)), "{name}");
                assert!(kernel.is_none_or(|kernel| kernel.peer.is_some() || bar.against != Against::Peer), "{name}");
            }
        }
    }
}

mod catalogue {
    use crate::bench::Kernel;

    use std::collections::HashSet;

    use crate::bench::catalogue::*;

    #[test]
    fn no_name_stands_twice_and_every_kernel_has_its_scalar_twin_or_none() {
        let kernels = catalogue().unwrap();
        let names: HashSet<&str> = kernels.iter().map(Kernel::id).collect();
        assert_eq!(names.len(), kernels.len());
        assert!(names.contains("min") && names.contains("min-scalar"));
        for kernel in &kernels {
            assert!(!kernel.id().contains(' ') && !kernel.about().is_empty(), "{}", kernel.id());
        }
    }

    #[test]
    fn what_is_not_measured_on_every_size_stands_last() {
        let kernels = catalogue().unwrap();
        assert!(kernels.iter().map(|kernel| kernel.largest).is_sorted_by_key(|largest| largest.is_some()));
        assert!(kernels.last().is_some_and(|last| last.largest.is_some()));
    }
}

mod race {
    use haversack_kernels::KernelError;
    use std::time::Duration;

    use crate::bench::race::*;

    const RULES: Rules = Rules { rounds: 5, least_turn: Duration::ZERO, patience: Duration::MAX, warm: false };

    #[test]
    fn everybody_runs_once_a_round_and_not_always_in_the_same_order() {
        let mut runners: Vec<Pass<Vec<i32>>> = Vec::new();
        for name in 0..6 {
            runners.push(Box::new(move |seen: &mut Vec<i32>| {
                seen.push(name);
                Ok(())
            }));
        }
        let mut seen = Vec::new();
        assert_eq!(race(&mut seen, &mut runners, RULES).unwrap().len(), 6);
        // Two trial passes each come first; then five rounds of one pass each.
        let rounds = seen.split_off(12);
        assert_eq!(seen, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
        let mut rounds: Vec<Vec<i32>> = rounds.chunks(6).map(<[i32]>::to_vec).collect();
        assert_eq!(rounds.len(), 5);
        assert!(rounds.windows(2).any(|pair| pair[0] != pair[1]), "{rounds:?}");
        rounds.iter_mut().for_each(|round| round.sort_unstable());
        assert!(rounds.iter().all(|round| *round == [0, 1, 2, 3, 4, 5]), "{rounds:?}");
    }

    #[test]
    fn whoever_has_used_up_the_patience_drops_out_but_not_before_three_rounds() {
        // Two trial passes, then in each round a counted pass, and a warming one before it unless a pass is long.
        for (patience, passes_in_rounds) in [(Duration::ZERO, LEAST_ROUNDS), (Duration::MAX, RULES.rounds * 2)] {
            let mut runners: [Pass<usize>; 1] = [Box::new(|passes: &mut usize| {
                *passes += 1;
                Ok(())
            })];
            let mut passes = 0;
            race(&mut passes, &mut runners, Rules { patience, warm: true, ..RULES }).unwrap();
            assert_eq!(passes, 2 + passes_in_rounds);
        }
    }

    #[test]
    fn the_median_is_taken_and_a_failing_pass_ends_the_race() {
        assert_eq!(median([5, 1, 9, 3, 7].map(Duration::from_nanos).to_vec()), Duration::from_nanos(5));
        let mut runners: [Pass<()>; 1] = [Box::new(|(): &mut ()| Err(KernelError::Bits(9)))];
        assert_eq!(race(&mut (), &mut runners, RULES), Err(KernelError::Bits(9)));
    }

    #[test]
    fn sleeping_is_no_processor_time() {
        let nap = || {
            std::thread::sleep(Duration::from_millis(20));
            Ok::<(), ()>(())
        };
        // A nap of 20 ms costs two system calls, thousands of times less on any machine.
        #[cfg(unix)]
        assert!(time(nap).unwrap() < Duration::from_millis(10));
        #[cfg(not(unix))]
        assert!(time(nap).unwrap() >= Duration::from_millis(20));
    }
}

mod report {
    use haversack_devices::units::BytesPerSecond;

    use crate::bench::limit::Limit;
    use crate::bench::report::*;
    use crate::bench::{Asked, Family, Measurement, Peer, SIZES};

    fn measured(kernel: &str, size: usize, peer: Option<f64>) -> Measurement {
        Measurement {
            kernel: kernel.to_owned(),
            family: Family::Reduction,
            size: SIZES[size],
            rate: BytesPerSecond(12.5e9),
            limit: Limit::Read,
            limit_rate: BytesPerSecond(20e9),
            peer: peer.map(|rate| Peer { name: "a loop".to_owned(), rate: BytesPerSecond(rate) }),
        }
    }

    #[test]
    fn numbers_stand_below_their_titles() {
        // 12.5 GB/s of 20 are 0.625, and five times 2.5 GB/s. For a kernel without a third size, the
        // peer comes after the second.
        let all = [0, 1, 2].map(|size| measured("min", size, Some(2.5e9)));
        let some = [0, 1].map(|size| measured("product", size, (size == 0).then_some(2.5e9)));
        let text = text(&[all.to_vec(), some.to_vec()].concat());
        let expected = "                         204800 B                 1572864 B                67108864 B
kernel     GB/s  of limit  × peer    GB/s  of limit  × peer    GB/s  of limit  × peer

Reductions
min       12.50     0.625    5.00   12.50     0.625    5.00   12.50     0.625    5.00  a loop
product   12.50     0.625    5.00   12.50     0.625       -  a loop

of limit: the rate as a share of the fastest read, write or copy of the same tensor in the same run
× peer: how many times as fast as the peer, which the last column names
";
        assert_eq!(text, expected);
    }

    #[test]
    fn rows_of_json_have_a_peer_where_there_is_one() {
        let rows = json(&[measured("min", 0, None), measured("max", 0, Some(2.5e9))]);
        let expected = r#"[
  {"name": "min", "size": 204800, "bytes_per_s": 12500000000, "limit_bytes_per_s": 20000000000},
  {"name": "max", "size": 204800, "bytes_per_s": 12500000000, "limit_bytes_per_s": 20000000000, "peer_bytes_per_s": 2500000000}
]"#;
        assert_eq!(rows, expected);
    }

    #[test]
    fn words_say_what_is_printed() {
        let asked = |line: &str| crate::bench::asked(line.split_whitespace().map(str::to_owned));
        assert_eq!(asked("pack2 --format json"), Ok(Asked { name: "pack2".to_owned(), json: true, list: false }));
        assert!(asked("--format xml").is_err() && asked("--jobs 2").is_err());
    }
}

mod maps {
    use haversack_kernels::compress::Shape;

    use crate::bench::maps::*;
    use crate::bench::{FEATURE_MAPS, SIZES};

    #[test]
    fn maps_fill_every_tensor_that_is_measured() {
        for size in SIZES.into_iter().chain([FEATURE_MAPS]) {
            let elements = size.0 as usize / 4;
            assert_eq!(shape(elements).elements(), Some(elements));
            assert!(shape(elements).width >= 16, "{size:?}");
        }
        assert_eq!(shape(FEATURE_MAPS.0 as usize / 4), Shape { channels: 64, height: 112, width: 112 });
    }
}

mod folds {
    use crate::bench::peers::*;

    const VALUES: [f32; 9] = [1.5, -2.0, 0.25, 3.0, -0.5, 0.0, 2.0, -1.0, 4.0];

    #[test]
    fn the_folds_and_the_mask_answer_what_they_are_named_after() {
        assert_eq!((minimum(&VALUES), maximum(&VALUES)), (-2.0, 4.0));
        // 2.25 + 4 + 0.0625 + 9 + 0.25 + 4 + 1 + 16.
        assert_eq!(sum_of_squares(&VALUES), 36.5625);
        let mut words = [0];
        mask(&VALUES, &mut words);
        // Above zero are values 0, 2, 3, 6 and 8.
        assert_eq!(words, [0b1_0100_1101]);
        let mut values = VALUES;
        gate(&words, &mut values);
        assert_eq!(values, VALUES.map(|value| value.max(0.0)));
    }

    #[test]
    fn rescaling_and_gradients_answer_what_they_are_named_after() {
        // 1000/8 = 125, −12/8 = −1.5 → −1 with halves up, 5000/8 saturates at 127.
        let mut narrow = [0; 3];
        round_shift(&[1000, -12, 5000], 3, &mut narrow);
        assert_eq!(narrow, [125, -1, 127]);
        // 10 + 7/2 = 13.5 → 14, −10 − 7/2 → −14, 127 + 0 = 127.
        let partials: [(&[i8], f32); 2] = [(&[10, -10, 127], 1.0), (&[7, -7, 0], 0.5)];
        gradients(&partials, &mut [9.0; 2], &mut narrow);
        assert_eq!(narrow, [14, -14, 127]);
    }
}

mod products {
    use haversack_kernels::Isa;

    use crate::bench::peers::products::*;

    #[test]
    fn both_multiply() {
        // Small integers, whose sums both types represent exactly: left[i, k] = i − k, right[k, j] =
        // k + 2j, modulo 7 less 3.
        let edge = 2 * COLUMNS;
        let value = |at: usize, by: usize| ((at / edge + by * (at % edge)) % 7) as i8 - 3;
        let left: Vec<i8> = (0..edge * edge).map(|at| value(at, 6)).collect();
        let right: Vec<i8> = (0..edge * edge).map(|at| value(at, 2)).collect();
        let mut sums = vec![0; edge * edge];
        triple_loop(&left, &right, edge, &mut sums);
        // Row 0 by column 0: the sum over k of (6k mod 7 − 3)(k mod 7 − 3); seven k in a row give 0·… worked out:
        // (−3)(−3) + 3(−2) + 2(−1) + 1·0 + 0·1 + (−1)·2 + (−2)·3 = −7; of 32, four sevens and k = 28 to 31: 9 − 6 − 2 + 0.
        assert_eq!(sums[0], 4 * -7 + 1);
        let float = |values: &[i8]| values.iter().copied().map(f32::from).collect::<Vec<_>>();
        for isa in Isa::available() {
            let (mut panel, mut out) = (vec![[9.0; COLUMNS]; edge], vec![9.0; edge * edge]);
            in_f32(&float(&left), &float(&right), &mut panel, &mut out, isa);
            assert!(out.iter().zip(&sums).all(|(&float, &sum)| float == sum as f32), "{isa}");
        }
    }
}

mod bitpacked {
    use bitpacking::{BitPacker, BitPacker8x};

    use crate::bench::peers::bitpacked::*;

    #[test]
    fn what_is_unpacked_is_within_half_a_step_for_one_scale_and_for_one_a_block() {
        // Three blocks of different ranges.
        let values: Vec<f32> =
            (0..3 * BLOCK).map(|i| ((i * 37 % 101) as f32 - 50.0) * (1 + i / BLOCK) as f32).collect();
        for bits in 1..=8 {
            let pipeline = Pipeline { packer: BitPacker8x::new(), bits };
            assert_eq!(pipeline.bytes(values.len()), 3 * 32 * usize::from(bits));
            let mut packed = vec![0; pipeline.bytes(values.len())];
            let mut back = vec![0.0; values.len()];
            // Half a step, and the rounding of f32 at values of up to 150.
            let near = |back: f32, value: f32, scale: Scale| (back - value).abs() <= scale.step / 2.0 + 1e-4;

            let scale = pipeline.scale(&values);
            pipeline.pack(&values, Ranges::Known(scale), &mut packed);
            pipeline.unpack(&packed, &[scale; 3], &mut back);
            assert!(back.iter().zip(&values).all(|(&b, &v)| near(b, v, scale)), "{bits} bits");

            let mut scales = [Scale::default(); 3];
            pipeline.pack(&values, Ranges::Found(&mut scales), &mut packed);
            pipeline.unpack(&packed, &scales, &mut back);
            // The first block runs over all of −50 to 50, the others over two and three times that.
            assert_eq!(scales.map(|scale| scale.minimum), [-50.0, -100.0, -150.0]);
            assert!((0..values.len()).all(|i| near(back[i], values[i], scales[i / BLOCK])), "{bits} bits");

            // The pipeline with folds gives the same blocks.
            let (mut by_folds, mut scales_by_folds) = (vec![0; packed.len()], [Scale::default(); 3]);
            pipeline.pack(&values, Ranges::Folded(&mut scales_by_folds), &mut by_folds);
            assert_eq!((by_folds, scales_by_folds), (packed, scales), "{bits} bits");
        }
    }

    #[test]
    fn a_constant_tensor_is_all_zeros() {
        let mut packed = [1; 64];
        let pipeline = Pipeline { packer: BitPacker8x::new(), bits: 2 };
        let scale = pipeline.scale(&[3.0; BLOCK]);
        pipeline.pack(&[3.0; BLOCK], Ranges::Known(scale), &mut packed);
        assert_eq!((scale, packed), (Scale { minimum: 3.0, step: 0.0 }, [0; 64]));
    }
}

mod lossless {
    use haversack_kernels::Isa;
    use haversack_kernels::compress::{Bound, Codec, FeatureMap, Kind, Mode, Shape};

    use crate::bench::peers::lossless::*;

    const VALUES: [f32; 9] = [1.5, -2.0, 0.25, 3.0, -0.5, 0.0, 2.0, -1.0, 4.0];

    #[test]
    fn zstd_is_lossless_and_says_when_it_lacks_room() {
        let mut packed = vec![0; 200];
        let length = zstd_into(&VALUES, 3, &mut packed).unwrap();
        let mut back = vec![0; 36];
        zstd_from(&packed[..length], &mut back).unwrap();
        assert_eq!(back, bytes(&VALUES));
        assert!(zstd_into(&VALUES, 3, &mut packed[..3]).is_err());
        assert!(zstd_from(&packed[..length], &mut back[..35]).is_err());
    }

    #[test]
    fn lz4_is_lossless_and_says_when_it_lacks_room() {
        let mut packed = vec![0; lz4_bound(VALUES.len())];
        let length = lz4_into(&VALUES, &mut packed).unwrap();
        let bytes = lz4_flex::block::decompress(&packed[..length], 36).unwrap();
        let back: Vec<f32> = bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        assert_eq!(back, VALUES);
        assert!(lz4_into(&VALUES, &mut packed[..3]).is_err());
    }

    #[test]
    fn smooth_maps_become_four_times_as_small_as_by_zstd() {
        let shape = Shape { channels: 64, height: 112, width: 112 };
        let values = Kind::Smooth.generate(shape);
        let lossless = zstd::bulk::compress(bytes(&values), DEFAULT_LEVEL).unwrap().len();
        for mode in [Mode::ErrorBounded { bound: Bound::OfTensor(1e-3) }, Mode::mixed(Bound::OfChannel(1e-3))] {
            let Shape { channels, height, width } = shape;
            let (codec, mut lossy) = (Codec::new(mode, Isa::chosen().unwrap()).unwrap(), Vec::new());
            codec.compress(FeatureMap { values: &values, channels, height, width }, &mut lossy).unwrap();
            assert!(4 * lossy.len() <= lossless, "{mode:?}: {} of {lossless}", lossy.len());
        }
    }
}

mod random {
    use crate::bench::random::*;

    #[test]
    fn floats_fill_their_range_around_zero() {
        let mut random = Random::default();
        let floats: Vec<f64> = (0..10_000).map(|_| f64::from(random.next_float())).collect();
        // The sum of two uniform numbers on −1 to 1: mean 0, variance 2/3; the mean of 10 000 is within 5 · 0.0082.
        let mean = floats.iter().sum::<f64>() / 1e4;
        let variance = floats.iter().map(|float| float * float).sum::<f64>() / 1e4;
        assert!(mean.abs() < 0.041 && (variance - 2.0 / 3.0).abs() < 0.05, "{mean} {variance}");
        assert!(floats.iter().all(|float| float.abs() <= 2.0) && floats.iter().any(|float| float.abs() > 1.9));
    }
}

mod buffer {
    use crate::bench::buffer::*;

    #[test]
    fn buffers_are_aligned_zero_and_writable_to_the_last_element() {
        // 1 Mi floats are 4 MiB: two huge pages. None of the others reaches that.
        for elements in [0, 1, 17, 51_200, 1 << 20] {
            let mut buffer = Buffer::<f32>::zeroed(elements);
            let align = if elements == 1 << 20 { HUGE_PAGE } else { LINE };
            assert_eq!(buffer.as_ptr().addr() % align, 0, "{buffer:?}");
            assert_eq!(buffer.len(), elements);
            assert!(buffer.iter().all(|value| value.to_bits() == 0));
            if let Some(last) = buffer.last_mut() {
                *last = 2.5;
            }
            assert_eq!(buffer.iter().sum::<f32>(), if elements == 0 { 0.0 } else { 2.5 });
        }
    }
}

mod yardstick {
    use haversack_kernels::Isa;

    use crate::bench::yardstick::*;

    #[test]
    fn both_copies_and_both_writes_reach_every_element_at_every_alignment() {
        let from: Vec<f32> = (0..100_u8).map(f32::from).collect();
        for (isa, past_caches) in Isa::available().into_iter().flat_map(|isa| [(isa, false), (isa, true)]) {
            for start in 0..18 {
                for length in [0, 1, 7, 8, 9, 33, 80] {
                    let mut to = vec![-1.0; 100];
                    copy(&from[3..3 + length], &mut to[start..start + length], past_caches, isa);
                    assert_eq!(to[start..start + length], from[3..3 + length], "{isa} {start} {length}");
                    let rest = to[..start].iter().chain(&to[start + length..]);
                    assert!(rest.copied().all(|value| value == -1.0), "{isa} {start} {length}");
                    to.fill(-1.0);
                    write(&mut to[start..start + length], 2.0, past_caches, isa);
                    // `length` twos among minus ones: 2·length − (100 − length).
                    assert_eq!(to.iter().sum::<f32>(), 3.0 * length as f32 - 100.0, "{isa} {start} {length}");
                    assert!(to[start..start + length].iter().all(|&value| value == 2.0));
                }
            }
        }
    }

    #[test]
    fn an_update_reaches_every_element() {
        for isa in Isa::available() {
            let mut values = [1.5; 37];
            update(&mut values, isa);
            assert_eq!(values, [-1.5; 37], "{isa}");
        }
    }
}
