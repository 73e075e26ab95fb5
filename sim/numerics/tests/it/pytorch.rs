//! Every operator against PyTorch's results for the same operands: `data/operators.json`, made by `data/operators.py`.

use std::collections::BTreeMap;

use haversack_numerics::Meter;
use haversack_numerics::dense::batch_norm::{Affine, BatchNorm, Normalised};
use haversack_numerics::dense::convolution::Convolution;
use haversack_numerics::dense::layer_norm::LayerNorm;
use haversack_numerics::dense::linear::Linear;
use haversack_numerics::dense::matmul::Matmul;
use haversack_numerics::dense::mean::Mean;
use haversack_numerics::dense::optimiser::{self, Adam};
use haversack_numerics::dense::pool::Pool;
use haversack_numerics::dense::strided::Strided;
use haversack_numerics::dense::unary::{self, Saved};
use haversack_numerics::dense::{concatenate, elementwise, embedding, loss, softmax};
use haversack_workloads::operator::{Unary, Window};
use serde_json::Value;

use crate::common::{self, assert_close, values};

/// PyTorch's results for one operator.
struct Case(Value);

impl Case {
    fn named(name: &str) -> Self {
        let all: BTreeMap<String, Value> = serde_json::from_str(include_str!("../data/operators.json")).unwrap();
        Self(all[name].clone())
    }

    fn list(of: &Value) -> Vec<f32> {
        of.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
    }

    #[track_caller]
    fn check(&self, key: &str, found: &[f32]) {
        assert_close(key, found, &Self::list(&self.0[key]), 5e-6);
    }

    #[track_caller]
    fn check_gradient(&self, operand: usize, found: &[f32]) {
        assert_close(&format!("gradient {operand}"), found, &Self::list(&self.0["gradients"][operand]), 1e-5);
    }

    fn integers(&self, key: &str) -> Vec<i64> {
        self.0[key].as_array().unwrap().iter().map(|x| x.as_i64().unwrap()).collect()
    }
}

fn zeros(len: usize) -> Vec<f32> {
    vec![0.0; len]
}

fn scaled(by: f32, len: usize, k: usize) -> Vec<f32> {
    values(len, k).into_iter().map(|x| by * x).collect()
}

#[test]
fn convolutions() {
    let check = |name: &str, input, filters, window, groups| {
        let (case, meter) = (Case::named(name), Meter::default());
        let sizes = Convolution::new(input, filters, window, groups).unwrap();
        let (x, w, b) = (values(sizes.input_len(), 1), values(sizes.weight_len(), 2), values(filters, 3));
        let dy = values(sizes.output_len(), 9);
        let [mut y, mut dx, mut dw, mut db] = [dy.len(), x.len(), w.len(), b.len()].map(zeros);
        sizes.forward(&x, &w, Some(&b), &meter, &mut y).unwrap();
        sizes.input_gradient(&dy, &w, &meter, &mut dx).unwrap();
        sizes.weight_gradient(&x, &dy, &meter, &mut dw, Some(&mut db)).unwrap();
        case.check("output", &y);
        [dx, dw, db].iter().enumerate().for_each(|(i, found)| case.check_gradient(i, found));
    };
    check("convolution", [2, 3, 5, 6], 4, Window::square(3, 1, 1), 1);
    check("convolution_stride", [2, 3, 7, 6], 5, Window::square(3, 2, 1), 1);
    check("convolution_pointwise", [2, 4, 5, 5], 3, Window::square(1, 2, 0), 1);
    check(
        "convolution_grouped",
        [2, 4, 5, 4],
        6,
        Window { kernel: [3, 2], stride: [1, 1], padding: [1, 0], dilation: [1, 1] },
        2,
    );
    check("convolution_depthwise", [2, 4, 5, 5], 4, Window::square(3, 1, 1), 4);
}

#[test]
fn linear() {
    let (case, sizes) = (Case::named("linear"), Linear { rows: 5, inputs: 7, outputs: 4 });
    let (x, w, b, dy) = (values(35, 1), values(28, 2), values(4, 3), values(20, 9));
    let [mut y, mut dx, mut dw, mut db] = [20, 35, 28, 4].map(zeros);
    sizes.forward(&x, &w, Some(&b), &mut y).unwrap();
    sizes.input_gradient(&dy, &w, &mut dx).unwrap();
    sizes.weight_gradient(&x, &dy, &mut dw, Some(&mut db)).unwrap();
    case.check("output", &y);
    [dx, dw, db].iter().enumerate().for_each(|(i, found)| case.check_gradient(i, found));
}

#[test]
fn matmul() {
    let (case, sizes) = (Case::named("matmul"), Matmul { batch: 3, m: 4, k: 5, n: 2 });
    let (a, b, dy) = (values(60, 1), values(30, 2), values(24, 9));
    let [mut y, mut da, mut db] = [24, 60, 30].map(zeros);
    sizes.forward(&a, &b, &mut y).unwrap();
    sizes.left_gradient(&dy, &b, &mut da).unwrap();
    sizes.right_gradient(&a, &dy, &mut db).unwrap();
    case.check("output", &y);
    case.check_gradient(0, &da);
    case.check_gradient(1, &db);
}

#[test]
fn batch_norm() {
    let (case, sizes) =
        (Case::named("batch_norm"), BatchNorm { batch: 4, channels: 3, positions: 6, epsilon: 1e-3, momentum: 0.3 });
    let (x, w, b, dy) = (values(72, 1), values(3, 2), values(3, 3), values(72, 9));
    let (mut running, mut variance) = (values(3, 4), values(3, 5));
    variance.iter_mut().for_each(|x| *x += 2.0);
    let (before, spread) = (running.clone(), variance.clone());
    let [mut y, mut dx] = [72, 72].map(zeros);
    let [mut mean, mut inverse, mut dw, mut db] = [3; 4].map(zeros);
    let affine = Affine { weight: &w, bias: &b };
    let moved = Some((&mut running[..], &mut variance[..]));
    sizes.forward(&x, affine, moved, &mut mean, &mut inverse, &mut y).unwrap();
    let of = Normalised { input: &x, mean: &mean, inverse: &inverse };
    common::batch_norm_backward(sizes, of, &dy, &w, [&mut dw, &mut db, &mut dx]);
    case.check("output", &y);
    case.check("running_mean", &running);
    case.check("running_variance", &variance);
    [dx, dw, db].iter().enumerate().for_each(|(i, found)| case.check_gradient(i, found));

    sizes.evaluate(&x, affine, &before, &spread, &mut y).unwrap();
    Case::named("batch_norm_evaluated").check("output", &y);
}

#[test]
fn layer_norm() {
    let (case, sizes) = (Case::named("layer_norm"), LayerNorm { rows: 5, width: 7, epsilon: 1e-2 });
    let (x, w, b, dy) = (values(35, 1), values(7, 2), values(7, 3), values(35, 9));
    let [mut y, mut dx, mut mean, mut inverse, mut dw, mut db] = [35, 35, 5, 5, 7, 7].map(zeros);
    sizes.forward(&x, Affine { weight: &w, bias: &b }, &mut mean, &mut inverse, &mut y).unwrap();
    let of = Normalised { input: &x, mean: &mean, inverse: &inverse };
    sizes.input_gradient(of, &dy, &w, &mut dx).unwrap();
    sizes.parameter_gradients(of, &dy, &mut dw, &mut db).unwrap();
    case.check("output", &y);
    [dx, dw, db].iter().enumerate().for_each(|(i, found)| case.check_gradient(i, found));
}

#[test]
fn functions_of_one_tensor() {
    let functions = [
        ("relu", Unary::Relu),
        ("relu6", Unary::Relu6),
        ("gelu", Unary::Gelu),
        ("gelu_tanh", Unary::GeluTanh),
        ("clip", Unary::Clip { low: -1.0, high: 5.0 }),
        ("power", Unary::Power(2.0)),
        ("silu", Unary::Silu),
        ("tanh", Unary::Tanh),
        ("sigmoid", Unary::Sigmoid),
        ("cube", Unary::Power(3.0)),
    ];
    for (name, function) in functions {
        let (case, x, dy) = (Case::named(name), scaled(8.0, 40, 1), values(40, 9));
        let (mut y, mut dx) = (x.clone(), zeros(40));
        unary::forward(function, &mut y);
        case.check("output", &y);
        let saved = if unary::saved(function) == Saved::Output { &y } else { &x };
        unary::backward(function, saved, &dy, &mut dx).unwrap();
        case.check_gradient(0, &dx);
    }
}

#[test]
fn softmax_of_rows() {
    let (case, x, dy) = (Case::named("softmax"), scaled(5.0, 36, 1), values(36, 9));
    let [mut y, mut dx] = [36, 36].map(zeros);
    softmax::forward(&x, 9, &mut y).unwrap();
    softmax::backward(&y, &dy, 9, &mut dx).unwrap();
    case.check("output", &y);
    case.check_gradient(0, &dx);
}

#[test]
fn sums_and_products_with_broadcast() {
    let (a, b, dy) = (values(24, 1), values(6, 2), values(24, 9));
    let [mut y, mut da, mut db] = [24, 24, 6].map(zeros);
    let case = Case::named("add");
    elementwise::add(&a, &b, &mut y).unwrap();
    elementwise::sum_to(&dy, &mut db).unwrap();
    case.check("output", &y);
    case.check_gradient(1, &db);

    let case = Case::named("multiply");
    elementwise::multiply(&a, &b, &mut y).unwrap();
    elementwise::multiply(&dy, &b, &mut da).unwrap();
    elementwise::right_factor_gradient(&a, &dy, &mut db).unwrap();
    case.check("output", &y);
    case.check_gradient(0, &da);
    case.check_gradient(1, &db);
}

#[test]
fn concatenation() {
    let (case, a, b, dy) = (Case::named("concatenate"), values(24, 1), values(40, 2), values(64, 9));
    let [mut y, mut da, mut db] = [64, 24, 40].map(zeros);
    concatenate::concatenate(2, &[&a, &b], &mut y).unwrap();
    // Each part's gradient is a view of the whole one: 2 runs of 12, then of 20, of 32 elements each.
    for (offset, width, part) in [(0, 12, &mut da), (12, 20, &mut db)] {
        Strided { offset, dims: &[2, width], strides: &[32, 1] }.gather(&dy, part).unwrap();
    }
    case.check("output", &y);
    case.check_gradient(0, &da);
    case.check_gradient(1, &db);
}

#[test]
fn maximum_pooling() {
    let check = |name: &str, planes, input: [usize; 2], padding, up| {
        let case = Case::named(name);
        let pool = Pool::new(planes, input, Window::square(3, 2, padding), up).unwrap();
        let (inner, outer) = (planes * input[0] * input[1], planes * pool.output[0] * pool.output[1]);
        let [mut y, mut dx] = [outer, inner].map(zeros);
        let mut indices = vec![0; outer];
        pool.maximum(&values(inner, 1), &mut y, &mut indices).unwrap();
        pool.maximum_gradient(&values(outer, 9), &indices, &mut dx).unwrap();
        case.check("output", &y);
        case.check_gradient(0, &dx);
        (case, indices)
    };
    let (case, indices) = check("max_pool", 6, [7, 6], 1, false);
    assert_eq!(indices, case.integers("indices"));
    check("max_pool_up", 2, [6, 8], 0, true);
}

#[test]
fn average_pooling() {
    let check = |name: &str, pool: Pool, count_padding| {
        let case = Case::named(name);
        let (inner, outer) = (2 * pool.input[0] * pool.input[1], 2 * pool.output[0] * pool.output[1]);
        let [mut y, mut dx] = [outer, inner].map(zeros);
        pool.average(&values(inner, 1), count_padding, &mut y).unwrap();
        pool.average_gradient(&values(outer, 9), count_padding, &mut dx).unwrap();
        case.check("output", &y);
        case.check_gradient(0, &dx);
    };
    let window = Window::square(3, 2, 1);
    check("average_pool", Pool::new(2, [7, 6], window, false).unwrap(), true);
    check("average_pool_up", Pool::new(2, [6, 8], window, true).unwrap(), true);
    check("average_pool_without_padding", Pool::new(2, [7, 6], window, false).unwrap(), false);
    check("adaptive_pool", Pool::adaptive(2, [7, 6], [3, 4]), true);
}

#[test]
fn means() {
    let check = |name: &str, sizes: Mean| {
        let case = Case::named(name);
        let (inner, outer) = (sizes.outer * sizes.axis * sizes.inner, sizes.outer * sizes.inner);
        let [mut y, mut dx] = [outer, inner].map(zeros);
        sizes.forward(&values(inner, 1), &mut y).unwrap();
        sizes.backward(&values(outer, 9), &mut dx).unwrap();
        case.check("output", &y);
        case.check_gradient(0, &dx);
    };
    check("global_pool", Mean { outer: 6, axis: 20, inner: 1 });
    check("mean", Mean { outer: 2, axis: 5, inner: 3 });
}

#[test]
fn embeddings() {
    let (case, table, tokens) = (Case::named("embedding"), values(24, 1), [3, 0, 3, 5, 1, 3]);
    let [mut y, mut dt] = [24, 24].map(zeros);
    embedding::forward(&table, 4, &tokens, &mut y).unwrap();
    embedding::backward(&values(24, 9), 4, &tokens, &mut dt).unwrap();
    case.check("output", &y);
    case.check_gradient(0, &dt);
}

#[test]
fn cross_entropy() {
    let (case, logits, labels) = (Case::named("cross_entropy"), scaled(4.0, 20, 1), [2, 0, 3, 1, 2]);
    let mut log_softmax = zeros(20);
    let answer = loss::forward(&logits, 4, &labels, &mut log_softmax).unwrap();
    case.check("output", &[answer.mean as f32]);
    // (softmax − one-hot) / rows.
    let mut dx: Vec<f32> = log_softmax.iter().map(|log| log.exp() / 5.0).collect();
    dx.chunks_mut(4).zip(labels).for_each(|(row, label)| row[label as usize] -= 0.2);
    case.check_gradient(0, &dx);
    assert_eq!(vec![answer.correct as i64], case.integers("correct"));
}

/// Three steps of an optimiser against PyTorch's.
fn check_steps(name: &str, mut update: impl FnMut(u64, &mut [f32], &[f32])) {
    let (case, mut weight) = (Case::named(name), values(11, 1));
    for step in 0..3 {
        update(step as u64 + 1, &mut weight, &values(11, step + 2));
        case.check_gradient(step, &weight);
    }
}

#[test]
fn optimisers() {
    check_steps("sgd", |_, w, g| optimiser::sgd(w, g, 0.1, 0.01).unwrap());
    let mut velocity = zeros(11);
    check_steps("momentum", |_, w, g| optimiser::momentum(w, g, &mut velocity, 0.1, 0.9, 0.01).unwrap());
    let (mut mean, mut square) = (zeros(11), zeros(11));
    let adam = Adam { rate: 0.01, decay: 0.01, ..Adam::default() };
    check_steps("adam", |step, w, g| adam.step(step, w, g, &mut mean, &mut square).unwrap());
}
