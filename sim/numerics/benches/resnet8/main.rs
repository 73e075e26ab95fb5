//! The layers of `resnet8-cifar` with a batch of 128, and a whole training step of them:
//! `RAYON_NUM_THREADS=2 cargo bench -p haversack-numerics`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod step;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use haversack_numerics::Meter;
use haversack_numerics::dense::batch_norm::{Affine, Normalised};
use haversack_numerics::dense::unary;
use haversack_workloads::operator::Unary;

use crate::step::{Layer, ResNet8, norm_backward, values};

const BATCH: usize = 128;

fn main() {
    divan::main();
}

/// Channels, side of the image, filters, kernel, stride of every kind of convolution in the network.
const LAYERS: [(usize, usize, usize, u64, u64); 7] = [
    (3, 32, 16, 3, 1),
    (16, 32, 16, 3, 1),
    (16, 32, 32, 3, 2),
    (16, 32, 32, 1, 2),
    (32, 16, 32, 3, 1),
    (32, 16, 64, 3, 2),
    (64, 8, 64, 3, 1),
];

fn layer(meter: &Meter, (channels, side, filters, kernel, stride): (usize, usize, usize, u64, u64)) -> Layer {
    Layer::new(meter, [BATCH, channels, side, side], filters, kernel, stride)
}

/// Multiplications and additions of a convolution.
fn flops(layer: &Layer) -> ItemsCount {
    ItemsCount::new(2 * layer.convolution.output_len() * layer.weight.len() / layer.norm.channels)
}

#[divan::bench(args = LAYERS)]
fn convolution_forward(bencher: Bencher, of: (usize, usize, usize, u64, u64)) {
    let meter = Meter::default();
    let layer = layer(&meter, of);
    let (x, mut y) = (values(&meter, layer.convolution.input_len(), 1.0), meter.zeros(layer.convolution.output_len()));
    bencher
        .counter(flops(&layer))
        .bench_local(|| layer.convolution.forward(black_box(&x), &layer.weight, None, &meter, &mut y).unwrap());
}

#[divan::bench(args = LAYERS)]
fn convolution_input_gradient(bencher: Bencher, of: (usize, usize, usize, u64, u64)) {
    let meter = Meter::default();
    let layer = layer(&meter, of);
    let (dy, mut dx) =
        (values(&meter, layer.convolution.output_len(), 1.0), meter.zeros(layer.convolution.input_len()));
    bencher
        .counter(flops(&layer))
        .bench_local(|| layer.convolution.input_gradient(black_box(&dy), &layer.weight, &meter, &mut dx).unwrap());
}

#[divan::bench(args = LAYERS)]
fn convolution_weight_gradient(bencher: Bencher, of: (usize, usize, usize, u64, u64)) {
    let meter = Meter::default();
    let layer = layer(&meter, of);
    let dy = values(&meter, layer.convolution.output_len(), 1.0);
    let (x, mut dw) = (values(&meter, layer.convolution.input_len(), 1.0), meter.zeros(layer.weight.len()));
    bencher
        .counter(flops(&layer))
        .bench_local(|| layer.convolution.weight_gradient(black_box(&x), &dy, &meter, &mut dw, None).unwrap());
}

#[divan::bench]
fn batch_norm_forward(bencher: Bencher) {
    let meter = Meter::default();
    let layer = layer(&meter, LAYERS[1]);
    let (x, ones) = (values(&meter, layer.convolution.output_len(), 1.0), [1.0; 16]);
    let ([mut mean, mut inverse], mut y) = ([[0.0; 16]; 2], meter.zeros(x.len()));
    let affine = Affine { weight: &ones, bias: &ones };
    bencher.counter(ItemsCount::new(x.len())).bench_local(|| {
        layer.norm.forward(black_box(&x), affine, None, &mut mean, &mut inverse, &mut y).unwrap();
    });
}

#[divan::bench]
fn batch_norm_backward(bencher: Bencher) {
    let meter = Meter::default();
    let layer = layer(&meter, LAYERS[1]);
    let [x, dy] = [1.0, 2.0].map(|scale| values(&meter, layer.convolution.output_len(), scale));
    let (ones, [mut dw, mut db], mut dx) = ([1.0; 16], [[0.0; 16]; 2], meter.zeros(x.len()));
    bencher.counter(ItemsCount::new(x.len())).bench_local(|| {
        let of = Normalised { input: black_box(&x), mean: &ones, inverse: &ones };
        norm_backward(layer.norm, of, &dy, &ones, [&mut dw, &mut db, &mut dx]);
    });
}

#[divan::bench]
fn relu_in_place(bencher: Bencher) {
    let meter = Meter::default();
    let mut x = values(&meter, BATCH * 16 * 32 * 32, 1.0);
    bencher.counter(ItemsCount::new(x.len())).bench_local(|| unary::forward(Unary::Relu, black_box(&mut x)));
}

#[divan::bench]
fn training_step(bencher: Bencher) {
    let mut network = ResNet8::new(BATCH);
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| network.step());
}
