//! Integer training: every kernel on every instruction set against definitions written here in wide arithmetic.

use haversack_kernels::int8::{
    Gemm, LARGEST_SHIFT, MOST_TERMS, Matrix, Partial, accumulate, bits, round_shift, rounded,
};
use haversack_kernels::quantise::draw;
use haversack_kernels::{Isa, KernelError};
use proptest::prelude::*;

/// Bytes without pattern, -128 among them.
fn bytes(len: usize, seed: u64) -> Vec<i8> {
    (0..len).map(|i| (draw(seed, i) * 256.0 - 128.0).floor() as i8).collect()
}

/// The product by the definition: a triple loop in i64.
fn product(left: &[i8], right: &[i8], m: usize, k: usize, n: usize) -> Vec<i32> {
    let sum = |row: usize, column: usize| {
        (0..k).map(|at| i64::from(left[row * k + at]) * i64::from(right[at * n + column])).sum::<i64>()
    };
    (0..m * n).map(|at| sum(at / n, at % n).try_into().unwrap()).collect()
}

/// The values of a rows x columns matrix in the order of its transpose.
fn transpose(values: &[i8], rows: usize, columns: usize) -> Vec<i8> {
    (0..columns * rows).map(|at| values[at % rows * columns + at / rows]).collect()
}

/// `value / 2^shift` to the nearest, halves away from zero, by i128 and by a different method from the kernels': twice
/// the quotient, one more, halved.
fn nearest(value: i64, shift: u32) -> i64 {
    let twice = (i128::from(value.unsigned_abs()) << 1) >> shift;
    let magnitude = (twice + 1) >> 1;
    i64::try_from(magnitude).unwrap() * value.signum()
}

fn narrowed(value: i64, shift: u32) -> i8 {
    nearest(value, shift).clamp(-127, 127) as i8
}

/// The smallest shift after which every magnitude is below 2^7, by trying.
fn scale_by_definition(values: &[i32]) -> u32 {
    (0..32).find(|shift| values.iter().all(|&value| i64::from(value).abs() >> shift < 128)).unwrap()
}

/// All four transpositions of one product, by one `Gemm`.
fn check_product(left: &[i8], right: &[i8], [m, k, n]: [usize; 3]) {
    let expected = product(left, right, m, k, n);
    let (turned_left, turned_right) = (transpose(left, m, k), transpose(right, k, n));
    let lefts = [Matrix::new(left, m, k).unwrap(), Matrix::new(&turned_left, k, m).unwrap().transposed()];
    let rights = [Matrix::new(right, k, n).unwrap(), Matrix::new(&turned_right, n, k).unwrap().transposed()];
    for isa in Isa::available() {
        let mut gemm = Gemm::new(isa);
        for (i, (left, right)) in lefts.iter().flat_map(|&left| rights.map(|right| (left, right))).enumerate() {
            let what = format!("{isa}, {m}x{k} by {k}x{n}, transposition {i}");
            let mut wide = vec![77; m * n];
            gemm.multiply(left, right, &mut wide).unwrap();
            assert_eq!(wide, expected, "{what}");
        }
    }
}

/// Nothing, one, and both sides of every border: a pair (2), a panel of rows (2, 3, 6, 12), a vector (16), a block of
/// rows (192) and of columns (256).
#[test]
fn products_of_every_shape_follow_the_definition() {
    let mut shapes = Vec::new();
    for m in [0, 1, 2, 5, 6, 7, 13] {
        for k in [0, 1, 2, 3, 17] {
            shapes.extend([0, 1, 15, 16, 17, 33].map(|n| (m, k, n)));
        }
    }
    shapes.extend([(191, 5, 3), (193, 4, 18), (3, 5, 255), (7, 3, 257), (195, 2, 259)]);
    for (m, k, n) in shapes {
        check_product(&bytes(m * k, 1), &bytes(k * n, 2), [m, k, n]);
    }
}

/// A stretch is 512 values deep: one less, as many, more, and several, where a block has several tiles to keep.
#[test]
fn products_of_several_stretches_follow_the_definition() {
    for (m, k, n) in [(7, 511, 17), (5, 512, 16), (13, 513, 33), (3, 1025, 15), (197, 514, 3), (3, 600, 261)] {
        check_product(&bytes(m * k, 3), &bytes(k * n, 4), [m, k, n]);
    }
}

/// 131071 · (−128)² = 2^31 − 2^14 fits, and so does 131071 · 127 · (−128); one term more might not.
#[test]
fn sums_reach_the_ends_of_an_i32_and_one_term_more_is_an_error() {
    assert_eq!(MOST_TERMS, 131_071);
    let (low, high) = (vec![-128; MOST_TERMS + 1], vec![127; MOST_TERMS + 1]);
    for isa in Isa::available() {
        let mut gemm = Gemm::new(isa);
        let row = |values| Matrix::new(values, 1, MOST_TERMS).unwrap();
        let mut sum = [0];
        gemm.multiply(row(&low[1..]), row(&low[1..]).transposed(), &mut sum).unwrap();
        assert_eq!(sum, [i32::MAX - (1 << 14) + 1], "{isa}");
        gemm.multiply(row(&low[1..]), row(&high[1..]).transposed(), &mut sum).unwrap();
        // −131071 · 16256.
        assert_eq!(sum, [-2_130_690_176], "{isa}");
        let long = Matrix::new(&low, 1, MOST_TERMS + 1).unwrap();
        let error = gemm.multiply(long, long.transposed(), &mut sum).unwrap_err();
        assert_eq!(error, KernelError::Overflow { terms: 131_072, most: 131_071 });
        assert!(error.to_string().contains("131072") && error.to_string().contains("131071"), "{error}");
    }
}

/// Forward, input gradient and weight gradient of one layer, by hand: x = [1 2; 3 4; 5 6], w = [1 −1; 2 0],
/// e = [1 0; 0 1; 1 1].
#[test]
fn the_three_products_of_training() {
    let (x, w, e) = ([1, 2, 3, 4, 5, 6], [1, -1, 2, 0], [1, 0, 0, 1, 1, 1]);
    let x = Matrix::new(&x, 3, 2).unwrap();
    let w = Matrix::new(&w, 2, 2).unwrap();
    let e = Matrix::new(&e, 3, 2).unwrap();
    assert_eq!((x.transposed().rows(), x.transposed().columns()), (2, 3));
    let mut gemm = Gemm::new(Isa::chosen().unwrap());
    let mut out = [0; 6];
    gemm.multiply(x, w, &mut out).unwrap();
    assert_eq!(out, [5, -1, 11, -3, 17, -5]);
    // wᵀ = [1 2; −1 0].
    gemm.multiply(e, w.transposed(), &mut out).unwrap();
    assert_eq!(out, [1, 2, -1, 0, 0, 2]);
    // xᵀ = [1 3 5; 2 4 6].
    gemm.multiply(x.transposed(), e, &mut out[..4]).unwrap();
    assert_eq!(out[..4], [6, 8, 8, 10]);
}

#[test]
fn shapes_that_do_not_fit_are_errors_that_say_what_would() {
    let values = [1; 6];
    let matrix = Matrix::new(&values, 2, 3).unwrap();
    let mut gemm = Gemm::new(Isa::Scalar);
    let error = gemm.multiply(matrix, matrix, &mut [9; 4]).unwrap_err();
    assert_eq!(error.to_string(), "cannot multiply 2x3 by 2x3; expected 3 rows on the right");
    let mut short = [9; 3];
    let found = gemm.multiply(matrix, matrix.transposed(), &mut short);
    assert_eq!(found, Err(KernelError::Length { what: "the product", found: 3, expected: 4 }));
    assert_eq!(short, [9; 3]);
    let found = Matrix::new(&values, 2, 4).unwrap_err();
    assert_eq!(found, KernelError::Length { what: "the matrix", found: 6, expected: 8 });
    // A product of rows and columns that overflows an address is an error, too.
    assert!(Matrix::new(&values, usize::MAX, 2).is_err());
    let found = round_shift(&[1, 2], 0, &mut [0], Isa::Scalar);
    assert_eq!(found, Err(KernelError::Length { what: "output", found: 1, expected: 2 }));
    assert_eq!(round_shift(&[1], 40, &mut [0], Isa::Scalar), Err(KernelError::Shift { found: 40, most: 31 }));
}

/// 0 has no bits, 2^7 eight, and −2^31, whose magnitude is 2^31, 32.
#[test]
fn bits_are_those_of_the_magnitude() {
    let cases = [(0, 0), (1, 1), (-1, 1), (127, 7), (128, 8), (-128, 8), (1 << 30, 31), (i32::MAX, 31), (i32::MIN, 32)];
    for (value, expected) in cases {
        assert_eq!(bits(value), expected, "{value}");
    }
}

/// Halves away from zero: 5/2 = 2.5 → 3, −2.5 → −3; 6/4 = 1.5 → 2, 5/4 → 1; 255/2 = 127.5 → 128, saturated at 127.
#[test]
fn rounding_is_to_the_nearest_and_stays_within_127() {
    let cases = [(5, 1, 3), (-5, 1, -3), (6, 2, 2), (5, 2, 1), (-6, 2, -2), (255, 1, 127), (-255, 1, -127)];
    let ends = [(-128, 0, -127), (200, 0, 127), (0, 31, 0), (i32::MIN, 31, -1), (i32::MAX, 31, 1)];
    // −2^31 / 2^25 = −64; 2^30 / 2^31 = 1/2 → 1, and one less is 0.
    let last = [(i32::MIN, 25, -64), (1 << 30, 31, 1), ((1 << 30) - 1, 31, 0), (i32::MIN, 99, -1)];
    for (value, shift, expected) in cases.into_iter().chain(ends).chain(last) {
        assert_eq!(rounded(value, shift), expected, "{value} by {shift}");
        assert_eq!(narrowed(value.into(), shift.min(LARGEST_SHIFT)), expected, "{value} by {shift}");
    }
}

/// Powers of two and their neighbours, both signs: every carry and every half.
fn borders() -> Vec<i32> {
    let powers = (0..32).flat_map(|bit| [-1, 0, 1].map(|by| (1_i64 << bit) + by));
    powers.flat_map(|value| [value, -value]).filter_map(|value| i32::try_from(value).ok()).collect()
}

#[test]
fn every_instruction_set_rounds_alike_at_every_shift() {
    let values = borders();
    assert!(values.contains(&i32::MIN) && values.contains(&i32::MAX));
    for isa in Isa::available() {
        for shift in 0..=LARGEST_SHIFT {
            let expected: Vec<i8> = values.iter().map(|&value| narrowed(value.into(), shift)).collect();
            for len in [0, 1, 15, 16, 17, 33, values.len()] {
                let mut out = vec![99; len];
                round_shift(&values[..len], shift, &mut out, isa).unwrap();
                assert_eq!(out, expected[..len], "{isa}, {shift}, {len}");
            }
        }
    }
}

/// Equation 4 in i64, each term rounded to the common scale.
fn sums_by_definition(partials: &[(Vec<i8>, u32)], len: usize) -> (Vec<i64>, u32) {
    let scale = partials.iter().map(|(_, scale)| *scale).max().unwrap_or(0);
    let term = |(values, own): &(Vec<i8>, u32), at: usize| nearest(values[at].into(), (scale - own).min(64));
    ((0..len).map(|at| partials.iter().map(|partial| term(partial, at)).sum()).collect(), scale)
}

fn check_sum(partials: &[(Vec<i8>, u32)], len: usize) {
    let (expected, scale) = sums_by_definition(partials, len);
    let borrowed: Vec<Partial<'_>> = partials.iter().map(|(values, scale)| Partial { values, scale: *scale }).collect();
    for isa in Isa::available() {
        let mut narrow = vec![77; len];
        assert_eq!(accumulate(&borrowed, &mut narrow, isa), Ok(scale));
        let held: Vec<i8> = expected.iter().map(|&sum| narrowed(sum, 0)).collect();
        assert_eq!(narrow, held, "{isa}, {len}");
    }
}

/// 3·2^2 + 5·2^4 at scale 4: 3/4 → 1, and 5: 6. −6·2^3 + 7·2^4: −6/2 = −3, and 7: 4.
#[test]
fn gradients_are_added_at_the_widest_scale() {
    let partial = |values, scale| Partial { values, scale };
    let mut sum = [0; 1];
    assert_eq!(accumulate(&[partial(&[3], 2), partial(&[5], 4)], &mut sum, Isa::Scalar), Ok(4));
    assert_eq!(sum, [6]);
    assert_eq!(accumulate(&[partial(&[-6], 3), partial(&[7], 4)], &mut sum, Isa::Scalar), Ok(4));
    assert_eq!(sum, [4]);
    // 100 + 100 − 90 = 110 fits although 200 does not: only the last step saturates. 100 + 100 saturates at 127,
    // and a single −128 at −127.
    let all = [partial(&[100], 9), partial(&[100], 9), partial(&[-90], 9)];
    assert_eq!((accumulate(&all, &mut sum, Isa::Scalar), sum), (Ok(9), [110]));
    assert_eq!((accumulate(&all[..2], &mut sum, Isa::Scalar), sum), (Ok(9), [127]));
    assert_eq!((accumulate(&[partial(&[-128], 1)], &mut sum, Isa::Scalar), sum), (Ok(1), [-127]));
    // −128/2^8 is a half and counts −1; /2^9 is a quarter and counts 0, as do scales as far apart as possible.
    for (far, expected) in [(8, -1), (9, 0), (32, 0), (u32::MAX, 0)] {
        let both = [partial(&[-128], 0), partial(&[0], far)];
        assert_eq!((accumulate(&both, &mut sum, Isa::Scalar), sum), (Ok(far), [expected]));
    }
}

/// Without micro-batches, without elements, and across a block of 1024.
#[test]
fn sums_of_every_length_follow_equation_4() {
    check_sum(&[], 5);
    for len in [0, 1, 15, 17, 1023, 1024, 1040, 2051] {
        check_sum(&[(bytes(len, 5), 10), (bytes(len, 6), 11), (bytes(len, 7), 11), (bytes(len, 8), 3)], len);
    }
    let short = [Partial { values: &[1, 2], scale: 0 }, Partial { values: &[1], scale: 0 }];
    let error = accumulate(&short, &mut [0; 2], Isa::Scalar);
    assert_eq!(error, Err(KernelError::Length { what: "a micro-batch's gradient", found: 1, expected: 2 }));
}

/// Splitting a batch changes only the rounding: the weight gradients of two halves, each rescaled separately and added
/// by equation 4, are within two halves of a step, plus half a step a partial rescaling, of the whole.
#[test]
fn a_split_batch_has_the_gradient_of_the_whole_but_for_rounding() {
    let (batch, inputs, outputs) = (32, 9, 10);
    let (x, e) = (bytes(batch * inputs, 9), bytes(batch * outputs, 10));
    let isa = Isa::chosen().unwrap();
    let mut gemm = Gemm::new(isa);
    let mut whole = vec![0; inputs * outputs];
    let of = |rows: std::ops::Range<usize>| {
        let x = Matrix::new(&x[rows.start * inputs..rows.end * inputs], rows.len(), inputs).unwrap();
        (x.transposed(), Matrix::new(&e[rows.start * outputs..rows.end * outputs], rows.len(), outputs).unwrap())
    };
    let (x_all, e_all) = of(0..batch);
    gemm.multiply(x_all, e_all, &mut whole).unwrap();
    let mut halves = vec![(vec![0; inputs * outputs], 0); 2];
    for ((values, scale), rows) in halves.iter_mut().zip([0..16, 16..32]) {
        let (x, e) = of(rows);
        let mut wide = vec![0; inputs * outputs];
        gemm.multiply(x, e, &mut wide).unwrap();
        *scale = scale_by_definition(&wide);
        round_shift(&wide, *scale, values, isa).unwrap();
    }
    let partials: Vec<Partial<'_>> = halves.iter().map(|(values, scale)| Partial { values, scale: *scale }).collect();
    let mut sum = vec![0; inputs * outputs];
    let scale = accumulate(&partials, &mut sum, isa).unwrap();
    // Each half is off by at most half a step of its own scale where it was rescaled (one step where 127.5 and more
    // saturated at 127) and half a common one where it was rescaled again: two halves, two times one and a half.
    let step = f64::from(1_u32 << scale);
    for (&whole, &sum) in whole.iter().zip(&sum) {
        // A sum beyond i8 saturates at 127.
        let is_held = sum.unsigned_abs() == 127;
        assert!(is_held || (f64::from(whole) - f64::from(sum) * step).abs() <= 3.0 * step, "{whole} {sum} {scale}");
    }
    assert!(sum.iter().any(|&sum| sum != 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_product_follows_the_definition(m in 0_usize..40, k in 0_usize..80, n in 0_usize..40, seed: u64) {
        check_product(&bytes(m * k, seed), &bytes(k * n, !seed), [m, k, n]);
    }

    #[test]
    fn any_tensor_is_rounded_by_the_definition(
        values in prop::collection::vec(any::<i32>().prop_flat_map(|value| (0_u32..32).prop_map(move |by| value >> by)), 0..200),
        shift in 0_u32..32,
    ) {
        let scale = scale_by_definition(&values);
        for isa in Isa::available() {
            for shift in [shift, scale] {
                let mut out = vec![0; values.len()];
                round_shift(&values, shift, &mut out, isa).unwrap();
                let expected: Vec<i8> = values.iter().map(|&value| narrowed(value.into(), shift)).collect();
                prop_assert_eq!(out, expected);
            }
        }
    }

    #[test]
    fn any_micro_batches_are_added_by_equation_4(
        scales in prop::collection::vec(0_u32..26, 0..9), len in 0_usize..70, seed: u64,
    ) {
        let partials: Vec<(Vec<i8>, u32)> =
            scales.iter().zip((0..).map(|i: u64| seed.wrapping_add(i))).map(|(&scale, seed)| (bytes(len, seed), scale)).collect();
        check_sum(&partials, len);
    }
}
