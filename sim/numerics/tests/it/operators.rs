//! Gradients against differences on odd shapes, the same bits on any number of threads, exact
//! cases by hand, and errors.

use haversack_kernels::Isa;
use haversack_numerics::dense::batch_norm::{Affine, BatchNorm, Normalised, Sums};
use haversack_numerics::dense::layer_norm::LayerNorm;
use haversack_numerics::dense::linear::Linear;
use haversack_numerics::dense::matmul::Matmul;
use haversack_numerics::dense::pool::Pool;
use haversack_numerics::dense::strided::Strided;
use haversack_numerics::dense::transcendental::{erf, exp, tanh};
use haversack_numerics::dense::unary::{self, Saved};
use haversack_numerics::dense::{dropout, elementwise, embedding, loss, softmax};
use haversack_workloads::operator::{EPSILON, MOMENTUM, Unary, Window};
use proptest::prelude::*;

use crate::common::{self, assert_close, assert_gradient, assert_same_on_any_threads, values};

fn zeros(len: usize) -> Vec<f32> {
    vec![0.0; len]
}

fn batch_norm(batch: usize, channels: usize, positions: usize) -> BatchNorm {
    BatchNorm { batch, channels, positions, epsilon: EPSILON, momentum: MOMENTUM }
}

#[test]
fn products_have_the_gradients_that_differences_say() {
    let (linear, matmul) = (Linear { rows: 3, inputs: 5, outputs: 7 }, Matmul { batch: 2, m: 3, k: 5, n: 7 });
    let (x, w, dy) = (values(15, 1), values(35, 2), values(21, 3));
    let [mut dx, mut dw] = [15, 35].map(zeros);
    linear.input_gradient(&dy, &w, &mut dx).unwrap();
    linear.weight_gradient(&x, &dy, &mut dw, None).unwrap();
    let of = |x: &[f32], w: &[f32]| {
        let mut y = zeros(21);
        linear.forward(x, w, None, &mut y).unwrap();
        common::loss(&y, &dy)
    };
    assert_gradient("dx", &x, &dx, |x| of(x, &w));
    assert_gradient("dw", &w, &dw, |w| of(&x, w));

    let (a, b, dy) = (values(30, 1), values(70, 2), values(42, 3));
    let [mut da, mut db] = [30, 70].map(zeros);
    matmul.left_gradient(&dy, &b, &mut da).unwrap();
    matmul.right_gradient(&a, &dy, &mut db).unwrap();
    let of = |a: &[f32], b: &[f32]| {
        let mut y = zeros(42);
        matmul.forward(a, b, &mut y).unwrap();
        common::loss(&y, &dy)
    };
    assert_gradient("da", &a, &da, |a| of(a, &b));
    assert_gradient("db", &b, &db, |b| of(&a, b));
}

#[test]
fn norms_have_the_gradients_that_differences_say() {
    let batch = batch_norm(3, 5, 7);
    let layer = LayerNorm { rows: 15, width: 7, epsilon: EPSILON };
    let (x, dy) = (values(105, 1), values(105, 2));
    for width in [5, 7] {
        let (w, b) = (values(width, 3), values(width, 4));
        let affine = Affine { weight: &w, bias: &b };
        let mut dx = zeros(105);
        let of = |x: &[f32]| {
            let (mut y, mut mean, mut inverse) = (zeros(105), zeros(15), zeros(15));
            match width {
                5 => batch.forward(x, affine, None, &mut mean[..5], &mut inverse[..5], &mut y).unwrap(),
                _ => layer.forward(x, affine, &mut mean, &mut inverse, &mut y).unwrap(),
            }
            (y, mean, inverse)
        };
        let (_, mean, inverse) = of(&x);
        if width == 5 {
            let [mut dw, mut db] = [5, 5].map(zeros);
            let of = Normalised { input: &x, mean: &mean[..5], inverse: &inverse[..5] };
            common::batch_norm_backward(batch, of, &dy, &w, [&mut dw, &mut db, &mut dx]);
        } else {
            let of = Normalised { input: &x, mean: &mean, inverse: &inverse };
            layer.input_gradient(of, &dy, &w, &mut dx).unwrap();
        }
        assert_gradient("dx", &x, &dx, |x| common::loss(&of(x).0, &dy));
    }
}

#[test]
fn element_wise_functions_and_rows_have_the_gradients_that_differences_say() {
    // From −3 to 3 without the corners of the rectifiers.
    let x: Vec<f32> = (0..37).map(|i| i as f32 / 6.0 - 3.05).collect();
    let dy = values(37, 2);
    let functions = [
        Unary::Relu,
        Unary::Relu6,
        Unary::Gelu,
        Unary::Clip { low: -1.2, high: 2.3 },
        Unary::GeluTanh,
        Unary::Power(2.0),
        Unary::Silu,
        Unary::Tanh,
        Unary::Sigmoid,
        Unary::Power(3.0),
        Unary::Scale(-1.5),
    ];
    for function in functions {
        let of = |x: &[f32]| {
            let mut y = x.to_vec();
            unary::forward(function, &mut y);
            y
        };
        let (y, mut dx) = (of(&x), zeros(37));
        let saved: &[f32] = match unary::saved(function) {
            Saved::Input => &x,
            Saved::Output => &y,
            Saved::Nothing => &[],
        };
        unary::backward(function, saved, &dy, &mut dx).unwrap();
        assert_gradient(&format!("{function:?}"), &x, &dx, |x| common::loss(&of(x), &dy));
    }
    let of = |x: &[f32]| {
        let mut y = zeros(36);
        softmax::forward(x, 9, &mut y).unwrap();
        y
    };
    let mut dx = zeros(36);
    softmax::backward(&of(&x[..36]), &dy[..36], 9, &mut dx).unwrap();
    assert_gradient("softmax", &x[..36], &dx, |x| common::loss(&of(x), &dy[..36]));
}

#[test]
fn threads_change_no_bit_of_any_sum() {
    // Each is several blocks long, and no block ends with the tensor.
    const LEN: usize = 3 * 41 * 1001;
    let (x, dy) = (values(LEN, 1), values(LEN, 2));
    assert_same_on_any_threads(|| {
        let sizes = batch_norm(41, 3, 1001);
        let (w, [mut mean, mut inverse, mut dw, mut db]) = (values(3, 3), [3; 4].map(zeros));
        let [mut y, mut dx] = [LEN, LEN].map(zeros);
        let affine = Affine { weight: &w, bias: &w };
        sizes.forward(&x, affine, None, &mut mean, &mut inverse, &mut y).unwrap();
        let of = Normalised { input: &x, mean: &mean, inverse: &inverse };
        common::batch_norm_backward(sizes, of, &dy, &w, [&mut dw, &mut db, &mut dx]);
        [y, dx, dw, db].concat()
    });
    assert_same_on_any_threads(|| {
        let sizes = LayerNorm { rows: 3 * 1001, width: 41, epsilon: EPSILON };
        let [mut dw, mut db] = [41, 41].map(zeros);
        let statistics = values(sizes.rows, 5);
        let of = Normalised { input: &x, mean: &statistics, inverse: &statistics };
        sizes.parameter_gradients(of, &dy, &mut dw, &mut db).unwrap();
        [dw, db].concat()
    });
    assert_same_on_any_threads(|| {
        let sizes = Linear { rows: 1001, inputs: 123, outputs: 77 };
        let (w, dy) = (values(123 * 77, 3), &dy[..1001 * 77]);
        let [mut y, mut dx, mut dw, mut db] = [dy.len(), LEN, w.len(), 77].map(zeros);
        sizes.forward(&x, &w, None, &mut y).unwrap();
        sizes.input_gradient(dy, &w, &mut dx).unwrap();
        sizes.weight_gradient(&x, dy, &mut dw, Some(&mut db)).unwrap();
        [y, dx, dw, db].concat()
    });
    assert_same_on_any_threads(|| {
        let mut sums = zeros(123);
        elementwise::sum_to(&x, &mut sums).unwrap();
        let mut products = zeros(123);
        elementwise::right_factor_gradient(&x, &dy, &mut products).unwrap();
        // Rows so wide that tasks share them.
        let mut wide = zeros(3003);
        elementwise::sum_to(&x, &mut wide).unwrap();
        [sums, products, wide].concat()
    });
}

/// The sums of two parts of a batch.
fn added(mut sums: Sums, more: &Sums) -> Sums {
    sums.count += more.count;
    sums.channels.iter_mut().zip(&more.channels).for_each(|(a, b)| *a = [a[0] + b[0], a[1] + b[1]]);
    sums
}

#[test]
fn parts_of_a_batch_that_share_sums_normalise_like_the_whole() {
    let part = |batch| batch_norm(batch, 3, 4);
    let (x, w, b) = (values(84, 1), values(3, 2), values(3, 3));
    let (first, second) = x.split_at(24);
    let sums = added(part(2).sums(first).unwrap(), &part(5).sums(second).unwrap());
    let shared = sums.statistics(EPSILON);
    let affine = Affine { weight: &w, bias: &b };
    let [mut parts, mut whole, mut mean, mut inverse] = [84, 84, 3, 3].map(zeros);
    part(2).normalise(first, affine, &shared.mean, &shared.inverse, &mut parts[..24]).unwrap();
    part(5).normalise(second, affine, &shared.mean, &shared.inverse, &mut parts[24..]).unwrap();
    part(7).forward(&x, affine, None, &mut mean, &mut inverse, &mut whole).unwrap();
    assert_close("output", &parts, &whole, 1e-6);

    // Backward: the sums of the parts' gradients, too.
    let (dy, [mut dx, mut whole]) = (values(84, 4), [84, 84].map(zeros));
    let [all, first, second] =
        [&x[..], first, second].map(|input| Normalised { input, mean: &mean, inverse: &inverse });
    let sums = part(2).gradient_sums(first, &dy[..24]).unwrap();
    let sums = added(sums, &part(5).gradient_sums(second, &dy[24..]).unwrap());
    part(2).input_gradient(first, &dy[..24], &w, &sums, &mut dx[..24]).unwrap();
    part(5).input_gradient(second, &dy[24..], &w, &sums, &mut dx[24..]).unwrap();
    let [mut dw, mut db] = [3, 3].map(zeros);
    common::batch_norm_backward(part(7), all, &dy, &w, [&mut dw, &mut db, &mut whole]);
    assert_close("dx", &dx, &whole, 1e-6);
}

#[test]
fn statistics_by_hand() {
    // 1, 2, 3, 6: mean 3, squares about it 4 + 1 + 0 + 9 = 14, biased variance 3.5, unbiased 14/3.
    let sums = batch_norm(2, 1, 2).sums(&[1.0, 2.0, 3.0, 6.0]).unwrap();
    assert_eq!(sums, Sums { count: 4, channels: vec![[12.0, 50.0]] });
    let statistics = sums.statistics(EPSILON);
    assert_eq!(statistics.mean, [3.0]);
    assert_close("inverse", &statistics.inverse, &[1.0 / 3.500_01_f32.sqrt()], 1e-7);
    assert_close("variance", &statistics.variance, &[14.0 / 3.0], 1e-7);
    // Nine tenths of the old value, one tenth of the new: 0.9 · 1 + 0.1 · 3.
    let (mut mean, mut variance) = ([1.0], [0.0]);
    statistics.update(MOMENTUM, &mut mean, &mut variance).unwrap();
    assert_close("running", &[mean[0], variance[0]], &[1.2, 0.466_666_7], 1e-6);
}

#[test]
fn a_large_mean_does_not_swallow_the_variance() {
    // ±1 about 10 000: in f32, 10 001² and 9 999² differ from 10⁸ by less than their last digit.
    let x: Vec<f32> = (0..2048).map(|i| if i % 2 == 0 { 10_001.0 } else { 9_999.0 }).collect();
    let statistics = batch_norm(2, 1, 1024).sums(&x).unwrap().statistics(EPSILON);
    assert_close("inverse", &statistics.inverse, &[1.0], 1e-4);
}

fn mask_of(x: &[f32]) -> Vec<u8> {
    let byte = |chunk: &[f32]| chunk.iter().rev().fold(0, |bits, &x| bits << 1 | u8::from(x > 0.0));
    x.chunks(8).map(byte).collect()
}

#[test]
fn a_mask_is_one_bit_an_element_lowest_first() {
    let (isa, x) = (Isa::chosen().unwrap(), [1.0, -1.0, 0.0, 2.0, f32::NAN, -0.0, 0.5, -3.0, 4.0, -1.0]);
    // Elements 0, 3 and 6; of the second byte, the first.
    assert_eq!(mask_of(&x), [0b0100_1001, 0b1]);
    let mut dy: Vec<f32> = (1..=10).map(|i| i as f32).collect();
    unary::gate(&mask_of(&x), isa, &mut dy).unwrap();
    assert_eq!(dy, [1., 0., 0., 4., 0., 0., 7., 0., 9., 0.]);

    let (x, mut gated) = (values(100_003, 1), values(100_003, 2));
    let mut expected = zeros(gated.len());
    unary::backward(Unary::Relu, &x, &gated, &mut expected).unwrap();
    unary::gate(&mask_of(&x), isa, &mut gated).unwrap();
    assert_eq!(gated, expected);
}

#[test]
fn a_dropout_mask_can_be_drawn_again_in_parts() {
    let (mut whole, mut part) = (zeros(50_000), zeros(1000));
    dropout::mask(7, 0, 0.25, &mut whole);
    dropout::mask(7, 30_000, 0.25, &mut part);
    assert_eq!(part, whole[30_000..31_000]);
    // A quarter of 50 000 within four deviations: √(50 000 · 0.25 · 0.75) = 97.
    let dropped = whole.iter().filter(|&&x| x == 0.0).count();
    assert!(dropped.abs_diff(12_500) < 4 * 97, "{dropped} of 50000 dropped");
    assert!(whole.iter().all(|&x| x == 0.0 || x == 1.0 / 0.75));
    dropout::mask(8, 0, 0.25, &mut part);
    assert_ne!(part, whole[..1000], "another seed, another mask");
    dropout::mask(8, 0, 0.0, &mut part);
    assert!(part.iter().all(|&x| x == 1.0), "nothing is dropped at zero");
}

#[test]
fn wide_rows_are_summed_like_narrow_ones() {
    // Five rows of 0, 1, 2, … times 1, 2, …, 5: column i sums to 15 i, its products with themselves to 55 i².
    let x: Vec<f32> = (0..5 * 3000).map(|i| ((i % 3000) * (i / 3000 + 1)) as f32).collect();
    let [mut sums, mut squares] = [3000, 3000].map(zeros);
    elementwise::sum_to(&x, &mut sums).unwrap();
    elementwise::right_factor_gradient(&x, &x, &mut squares).unwrap();
    assert!(sums.iter().enumerate().all(|(i, &sum)| sum == (15 * i) as f32));
    let expected: Vec<f32> = (0..3000).map(|i| (55 * i * i) as f32).collect();
    let relative = squares.iter().zip(&expected).map(|(found, expected)| (found - expected).abs() / expected.max(1.0));
    assert!(relative.fold(0.0, f32::max) < 1e-6);
}

#[test]
fn views_are_gathered_and_scattered() {
    // The transpose of 2 × 3, of a storage that has one element before it.
    let storage = [9., 0., 1., 2., 3., 4., 5.];
    let view = Strided { offset: 1, dims: &[3, 2], strides: &[1, 3] };
    let mut tensor = [0.0; 6];
    view.gather(&storage, &mut tensor).unwrap();
    assert_eq!(tensor, [0., 3., 1., 4., 2., 5.]);
    let mut back = [9., 0., 0., 0., 0., 0., 0.];
    view.scatter_add(&tensor, &mut back).unwrap();
    assert_eq!(back, storage);
    // One element repeated: its gradient is the sum.
    let mut sum = [1.0, 0.0];
    Strided { offset: 1, dims: &[2, 3], strides: &[0, 0] }.scatter_add(&tensor, &mut sum).unwrap();
    assert_eq!(sum, [1.0, 15.0]);
    let error = view.gather(&storage[..6], &mut tensor).unwrap_err().to_string();
    assert_eq!(error, "a view of [3, 2] with strides [1, 3] from 1 reaches beyond 6 elements");
}

#[test]
fn what_is_out_of_range_is_named() {
    let error = loss::forward(&[0.0; 6], 3, &[2, 3], &mut [0.0; 6]).unwrap_err().to_string();
    assert_eq!(error, "label 1 is 3; expected 0 to 2");
    let error = embedding::forward(&[0.0; 6], 2, &[0, -1], &mut [0.0; 4]).unwrap_err().to_string();
    assert_eq!(error, "index 1 is -1; expected 0 to 2");
    let error = Pool::new(1, [2, 5], Window::square(3, 1, 0), false).unwrap_err().to_string();
    assert_eq!(error, "a window of 3x3 does not fit an input of 2x5 with its padding");
    let error = elementwise::add(&[0.0; 5], &[0.0; 2], &mut [0.0; 5]).unwrap_err().to_string();
    assert_eq!(error, "the left of two operands has 5 elements; expected 4");
}

#[test]
fn losses_by_hand() {
    // Equal logits of four classes: ln 4 for each label; the prediction is the first of equals.
    let mut log_softmax = zeros(8);
    let answer = loss::forward(&[1.0; 8], 4, &[0, 3], &mut log_softmax).unwrap();
    assert_close("loss", &[answer.mean as f32], &[4.0_f32.ln()], 1e-6);
    assert_eq!(answer.correct, 1);
    assert_close("log-softmax", &log_softmax, &[-4.0_f32.ln(); 8], 1e-6);
}

#[test]
fn a_diverged_logit_gives_a_loss_that_is_not_a_number() {
    let mut log_softmax = zeros(3);
    let answer = loss::forward(&[f32::NAN, 0.0, 1.0], 3, &[1], &mut log_softmax).unwrap();
    assert!(answer.mean.is_nan());
}

proptest! {
    #[test]
    fn functions_are_close_to_those_of_f64(x in -100.0_f32..88.5) {
        let wide = f64::from(x);
        let relative = (f64::from(exp(x)) / wide.exp() - 1.0).abs();
        // Below 2^-126 an f32 has fewer digits.
        prop_assert!(relative < 2.5e-7 || x < -87.0, "exp({x}): {relative:e}");
        prop_assert!((f64::from(tanh(x)) - wide.tanh()).abs() < 5e-7, "tanh({x})");
        let small = x / 20.0;
        // The integral of 2/√π e^(−t²) by Simpson's rule in 2000 steps.
        let step = f64::from(small) / 2000.0;
        let density = |i: usize| (-(i as f64 * step).powi(2)).exp() * [2.0, 4.0][i % 2];
        let sum = (0..=2000).map(density).sum::<f64>() - 1.0 - (-(2000.0 * step).powi(2)).exp();
        let expected = sum * step / 3.0 * std::f64::consts::FRAC_2_SQRT_PI;
        prop_assert!((f64::from(erf(small)) - expected).abs() < 1e-6, "erf({small})");
    }

    #[test]
    fn permuted_views_agree_with_the_twin(dims in [1_usize..5, 1_usize..5, 1_usize..5], swap in 0_usize..3) {
        let (len, [a, b, c]) = (dims.iter().product::<usize>(), dims);
        let (mut dims, mut strides) = ([a, b, c], [b * c, c, 1]);
        dims.swap(swap, 2);
        strides.swap(swap, 2);
        let (storage, mut tensor) = (values(len, 1), zeros(len));
        Strided { offset: 0, dims: &dims, strides: &strides }.gather(&storage, &mut tensor).unwrap();
        for (i, &x) in tensor.iter().enumerate() {
            let index = [i / dims[2] / dims[1], i / dims[2] % dims[1], i % dims[2]];
            let place: usize = index.iter().zip(strides).map(|(i, stride)| i * stride).sum();
            prop_assert_eq!(x, storage[place]);
        }
    }
}
