//! A training step of `resnet8-cifar` that calls the kernels directly: the same arithmetic as a
//! run's, without graph or store.

use haversack_numerics::dense::batch_norm::{Affine, BatchNorm, Normalised};
use haversack_numerics::dense::convolution::Convolution;
use haversack_numerics::dense::linear::Linear;
use haversack_numerics::dense::mean::Mean;
use haversack_numerics::dense::unary;
use haversack_numerics::dense::{loss, optimiser};
use haversack_numerics::{Floats, Meter};
use haversack_workloads::operator::{EPSILON, MOMENTUM, Unary, Window};

/// Values that are neither equal nor ordered.
pub(crate) fn values(meter: &Meter, len: usize, scale: f32) -> Floats {
    let mut values = meter.floats(len);
    let mut state = 1_u32;
    values.iter_mut().for_each(|x| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *x = scale * (state as f32 / 2_f32.powi(31) - 1.0);
    });
    values
}

/// A convolution and a batch norm with their parameters, gradients and running statistics.
pub(crate) struct Layer {
    pub(crate) convolution: Convolution,
    pub(crate) norm: BatchNorm,
    pub(crate) weight: Floats,
    gradient: Floats,
    affine: [Floats; 2],
    affine_gradients: [Floats; 2],
    running: [Floats; 2],
}

/// The tensors that a layer saves for its backward pass, and its output.
struct Saved {
    convolved: Floats,
    mean: Floats,
    inverse: Floats,
    output: Floats,
}

impl Layer {
    /// A convolution with a square window, padded so that only the stride reduces the image.
    pub(crate) fn new(meter: &Meter, input: [usize; 4], filters: usize, kernel: u64, stride: u64) -> Self {
        let convolution = Convolution::new(input, filters, Window::square(kernel, stride, kernel / 2), 1).unwrap();
        let [batch, channels, h, w] = convolution.output();
        let weights = convolution.weight_len();
        let ones = || {
            let mut ones = meter.floats(channels);
            ones.fill(1.0);
            ones
        };
        Self {
            convolution,
            norm: BatchNorm { batch, channels, positions: h * w, epsilon: EPSILON, momentum: MOMENTUM },
            weight: values(meter, weights, (6.0 * filters as f32 / weights as f32).sqrt()),
            gradient: meter.zeros(weights),
            affine: [ones(), meter.zeros(channels)],
            affine_gradients: [meter.zeros(channels), meter.zeros(channels)],
            running: [meter.zeros(channels), ones()],
        }
    }

    fn forward(&mut self, x: &[f32], meter: &Meter) -> Saved {
        let mut convolved = meter.floats(self.convolution.output_len());
        self.convolution.forward(x, &self.weight, None, meter, &mut convolved).unwrap();
        let mut saved = Saved {
            output: meter.floats(convolved.len()),
            convolved,
            mean: meter.floats(self.norm.channels),
            inverse: meter.floats(self.norm.channels),
        };
        let affine = Affine { weight: &self.affine[0], bias: &self.affine[1] };
        let [mean, variance] = &mut self.running;
        let Saved { convolved, mean: means, inverse, output } = &mut saved;
        self.norm.forward(convolved, affine, Some((mean, variance)), means, inverse, output).unwrap();
        saved
    }

    /// The gradient of the input, if `wanted`.
    fn backward(&mut self, x: &[f32], saved: Saved, dy: &[f32], wanted: bool, meter: &Meter) -> Option<Floats> {
        let mut gradient = meter.floats(dy.len());
        let [weight, bias] = &mut self.affine_gradients;
        let of = Normalised { input: &saved.convolved, mean: &saved.mean, inverse: &saved.inverse };
        norm_backward(self.norm, of, dy, &self.affine[0], [weight, bias, &mut gradient]);
        drop(saved);
        self.convolution.weight_gradient(x, &gradient, meter, &mut self.gradient, None).unwrap();
        wanted.then(|| {
            let mut dx = meter.floats(x.len());
            self.convolution.input_gradient(&gradient, &self.weight, meter, &mut dx).unwrap();
            dx
        })
    }

    fn update(&mut self) {
        let [weight, bias] = &mut self.affine;
        let [weight_gradient, bias_gradient] = &mut self.affine_gradients;
        for (w, g) in [(&mut self.weight, &mut self.gradient), (weight, weight_gradient), (bias, bias_gradient)] {
            optimiser::sgd(w, g, 0.01, 0.0).unwrap();
            g.fill(0.0);
        }
    }
}

/// The gradient of a normalisation's input, from that of its output; adds those of weight and bias.
pub(crate) fn norm_backward(
    norm: BatchNorm,
    of: Normalised<'_>,
    dy: &[f32],
    weight: &[f32],
    [weight_gradient, bias_gradient, dx]: [&mut [f32]; 3],
) {
    let sums = norm.gradient_sums(of, dy).unwrap();
    norm.add_parameter_gradients(&sums, weight_gradient, bias_gradient).unwrap();
    norm.input_gradient(of, dy, weight, &sums, dx).unwrap();
}

fn add_to(sum: &mut [f32], more: &[f32]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// The gradient of a rectifier's input, from its output.
fn rectified(output: &[f32], dy: &[f32], meter: &Meter) -> Floats {
    let mut dx = meter.floats(dy.len());
    unary::backward(Unary::Relu, output, dy, &mut dx).unwrap();
    dx
}

/// Two convolutions and a shortcut.
struct Block {
    first: Layer,
    second: Layer,
    shortcut: Option<Layer>,
}

/// The network, a batch of images and its labels.
pub(crate) struct ResNet8 {
    meter: Meter,
    stem: Layer,
    blocks: Vec<Block>,
    linear: Linear,
    weights: [Floats; 2],
    gradients: [Floats; 2],
    images: Floats,
    labels: Vec<i64>,
}

impl ResNet8 {
    pub(crate) fn new(batch: usize) -> Self {
        let meter = Meter::default();
        let mut input = [batch, 16, 32, 32];
        let block = |(filters, stride): (usize, u64)| {
            let first = Layer::new(&meter, input, filters, 3, stride);
            let shortcut = (stride > 1).then(|| Layer::new(&meter, input, filters, 1, stride));
            input = first.convolution.output();
            Block { second: Layer::new(&meter, input, filters, 3, 1), first, shortcut }
        };
        Self {
            blocks: [(16, 1), (32, 2), (64, 2)].map(block).into(),
            stem: Layer::new(&meter, [batch, 3, 32, 32], 16, 3, 1),
            linear: Linear { rows: batch, inputs: 64, outputs: 10 },
            weights: [values(&meter, 640, 0.1), meter.zeros(10)],
            gradients: [meter.zeros(640), meter.zeros(10)],
            images: values(&meter, batch * 3 * 32 * 32, 1.0),
            labels: (0..batch as i64).map(|i| i % 10).collect(),
            meter,
        }
    }

    /// Forward, backward and update; returns the loss.
    pub(crate) fn step(&mut self) -> f32 {
        let meter = &self.meter.clone();
        let mut stem = self.stem.forward(&self.images, meter);
        unary::forward(Unary::Relu, &mut stem.output);
        let mut saved: Vec<[Option<Saved>; 3]> = Vec::new();
        let mut outputs: Vec<Floats> = Vec::new();
        for block in &mut self.blocks {
            let x = outputs.last().unwrap_or(&stem.output);
            let mut first = block.first.forward(x, meter);
            unary::forward(Unary::Relu, &mut first.output);
            let mut second = block.second.forward(&first.output, meter);
            let shortcut = block.shortcut.as_mut().map(|layer| layer.forward(x, meter));
            let mut y = std::mem::replace(&mut second.output, meter.floats(0));
            add_to(&mut y, shortcut.as_ref().map_or(x, |shortcut| &shortcut.output));
            unary::forward(Unary::Relu, &mut y);
            outputs.push(y);
            saved.push([Some(first), Some(second), shortcut]);
        }
        let (loss, mut dy) = self.head(&outputs[2]);
        for (i, block) in self.blocks.iter_mut().enumerate().rev() {
            let [first, second, shortcut] = std::mem::take(&mut saved[i]);
            let (first, second) = (first.unwrap(), second.unwrap());
            dy = rectified(&outputs[i], &dy, meter);
            let inner = block.second.backward(&first.output, second, &dy, true, meter).unwrap();
            let inner = rectified(&first.output, &inner, meter);
            let x = if i == 0 { &stem.output } else { &outputs[i - 1] };
            let mut dx = block.first.backward(x, first, &inner, true, meter).unwrap();
            let beside = match (&mut block.shortcut, shortcut) {
                (Some(layer), Some(saved)) => layer.backward(x, saved, &dy, true, meter).unwrap(),
                _ => dy,
            };
            add_to(&mut dx, &beside);
            dy = dx;
        }
        dy = rectified(&stem.output, &dy, meter);
        self.stem.backward(&self.images, stem, &dy, false, meter);
        self.update();
        loss
    }

    /// Pooling, the linear layer and the loss: returns the loss, and the gradient of the last block's output.
    fn head(&mut self, x: &[f32]) -> (f32, Floats) {
        let (meter, linear) = (&self.meter, self.linear);
        let rows = linear.rows;
        let pool = Mean { outer: rows * 64, axis: 64, inner: 1 };
        let [mut pooled, mut gradient] = [meter.floats(rows * 64), meter.floats(rows * 64)];
        let [mut logits, mut log_softmax, mut dlogits] = [(); 3].map(|()| meter.floats(rows * 10));
        pool.forward(x, &mut pooled).unwrap();
        let [weight, bias] = &self.weights;
        linear.forward(&pooled, weight, Some(bias), &mut logits).unwrap();
        let loss = loss::forward(&logits, 10, &self.labels, &mut log_softmax).unwrap();
        for ((row, log), &label) in dlogits.chunks_mut(10).zip(log_softmax.chunks(10)).zip(&self.labels) {
            row.iter_mut().zip(log).for_each(|(dx, log)| *dx = log.exp() / rows as f32);
            row[label as usize] -= 1.0 / rows as f32;
        }
        linear.input_gradient(&dlogits, weight, &mut gradient).unwrap();
        let [weight, bias] = &mut self.gradients;
        linear.weight_gradient(&pooled, &dlogits, weight, Some(bias)).unwrap();
        let mut dx = meter.floats(x.len());
        pool.backward(&gradient, &mut dx).unwrap();
        (loss.mean as f32, dx)
    }

    fn update(&mut self) {
        self.stem.update();
        for block in &mut self.blocks {
            block.first.update();
            block.second.update();
            block.shortcut.iter_mut().for_each(Layer::update);
        }
        for (w, g) in self.weights.iter_mut().zip(&mut self.gradients) {
            optimiser::sgd(w, g, 0.01, 0.0).unwrap();
            g.fill(0.0);
        }
    }
}
