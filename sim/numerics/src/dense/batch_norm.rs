//! Batch normalisation over channels.
//!
//! Training forward is [`sums`](BatchNorm::sums) of the batch, [`Sums::statistics`] of them, and
//! [`normalise`](BatchNorm::normalise); the steps are apart so that micro-batches can add their sums up and share
//! statistics, forward and backward.

use rayon::prelude::*;

use super::sums::{sum, sum_of};
use crate::error::{Result, expect_length};

/// Samples that are summed together.
const SAMPLES: usize = 8;

/// Sizes of a tensor of batch × channels × positions, and the framework's epsilon and momentum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchNorm {
    /// Samples.
    pub batch: usize,
    /// Channels.
    pub channels: usize,
    /// Elements of a channel of a sample.
    pub positions: usize,
    /// Added to every variance.
    pub epsilon: f32,
    /// Share of a batch's statistics in the running ones.
    pub momentum: f32,
}

/// Sums of the elements of each channel: of x and x² forward, of dy and dy · x̂ backward.
#[derive(Clone, Debug, PartialEq)]
pub struct Sums {
    /// Elements of a channel.
    pub count: u64,
    /// The two sums of each channel.
    pub channels: Vec<[f64; 2]>,
}

/// Statistics of each channel.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Statistics {
    /// Mean.
    pub mean: Vec<f32>,
    /// 1/√(biased variance + epsilon).
    pub inverse: Vec<f32>,
    /// Unbiased variance, for the running one.
    pub variance: Vec<f32>,
}

/// Scale and shift of each channel.
#[derive(Clone, Copy, Debug)]
pub struct Affine<'a> {
    /// Scale.
    pub weight: &'a [f32],
    /// Shift.
    pub bias: &'a [f32],
}

/// The input of a normalisation, and the statistics that it wrote.
#[derive(Clone, Copy, Debug)]
pub struct Normalised<'a> {
    /// Its input.
    pub input: &'a [f32],
    /// The mean of each channel, or of each row.
    pub mean: &'a [f32],
    /// The inverse deviation of each.
    pub inverse: &'a [f32],
}

impl Sums {
    /// The statistics of the summed elements; `epsilon` is added to every variance.
    pub fn statistics(&self, epsilon: f32) -> Statistics {
        let count = self.count.max(1) as f64;
        let mean = |[sum, _]: &[f64; 2]| sum / count;
        let biased = |of: &[f64; 2]| (of[1] / count - mean(of) * mean(of)).max(0.0);
        let bessel = count / (count - 1.0).max(1.0);
        Statistics {
            mean: self.channels.iter().map(|of| mean(of) as f32).collect(),
            inverse: self.channels.iter().map(|of| (1.0 / (biased(of) + f64::from(epsilon)).sqrt()) as f32).collect(),
            variance: self.channels.iter().map(|of| (biased(of) * bessel) as f32).collect(),
        }
    }
}

impl Statistics {
    /// Moves running statistics towards these, which get the weight `momentum`.
    ///
    /// # Errors
    /// Running statistics with another number of channels.
    pub fn update(&self, momentum: f32, mean: &mut [f32], variance: &mut [f32]) -> Result {
        expect_length("a running mean", mean.len(), self.mean.len())?;
        expect_length("a running variance", variance.len(), self.mean.len())?;
        let towards = |running: &mut [f32], batch: &[f32]| {
            running.iter_mut().zip(batch).for_each(|(r, b)| *r = (1.0 - momentum) * *r + momentum * b);
        };
        towards(mean, &self.mean);
        towards(variance, &self.variance);
        Ok(())
    }
}

impl BatchNorm {
    /// Forward in training: normalises by the batch's statistics, writes them to `mean` and `inverse` for the backward
    /// pass, and updates the running mean and variance, if given.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn forward(
        &self,
        input: &[f32],
        affine: Affine,
        running: Option<(&mut [f32], &mut [f32])>,
        mean: &mut [f32],
        inverse: &mut [f32],
        output: &mut [f32],
    ) -> Result {
        expect_length("the means of a batch norm", mean.len(), self.channels)?;
        expect_length("the inverse deviations of a batch norm", inverse.len(), self.channels)?;
        let statistics = self.sums(input)?.statistics(self.epsilon);
        mean.copy_from_slice(&statistics.mean);
        inverse.copy_from_slice(&statistics.inverse);
        if let Some((mean, variance)) = running {
            statistics.update(self.momentum, mean, variance)?;
        }
        self.normalise(input, affine, mean, inverse, output)
    }

    /// Forward in evaluation, with running statistics.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn evaluate(
        &self,
        input: &[f32],
        affine: Affine,
        mean: &[f32],
        variance: &[f32],
        output: &mut [f32],
    ) -> Result {
        let inverse: Vec<f32> = variance.iter().map(|variance| 1.0 / (variance + self.epsilon).sqrt()).collect();
        self.normalise(input, affine, mean, &inverse, output)
    }

    /// Sums of x and x² of each channel: each sample's about its own mean, to avoid cancellation.
    ///
    /// # Errors
    /// An input whose length does not match the sizes.
    pub fn sums(&self, input: &[f32]) -> Result<Sums> {
        expect_length("the input of a batch norm", input.len(), self.len())?;
        Ok(self.sum_planes(|plane| {
            let x = &input[plane * self.positions..][..self.positions];
            let total = sum(x);
            let mean = total / self.positions as f32;
            let square = sum_of(x, x, |x, _| (x - mean) * (x - mean));
            [
                f64::from(total),
                f64::from(square)
                    + f64::from(mean) * (2.0 * f64::from(total) - f64::from(mean) * self.positions as f64),
            ]
        }))
    }

    /// `output = (input − mean) · inverse · weight + bias`.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn normalise(
        &self,
        input: &[f32],
        affine: Affine,
        mean: &[f32],
        inverse: &[f32],
        output: &mut [f32],
    ) -> Result {
        expect_length("the input of a batch norm", input.len(), self.len())?;
        expect_length("the output of a batch norm", output.len(), self.len())?;
        self.check_channels(&[affine.weight, affine.bias, mean, inverse])?;
        self.each_plane(output, |c, plane, y| {
            let scale = affine.weight[c] * inverse[c];
            let (mean, shift) = (mean[c], affine.bias[c]);
            let x = &input[plane * self.positions..][..self.positions];
            y.iter_mut().zip(x).for_each(|(y, x)| *y = (x - mean) * scale + shift);
        });
        Ok(())
    }

    /// Sums of dy and dy · x̂ of each channel: the gradients of bias and weight, and the sums over the whole batch that
    /// the input's gradient needs.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn gradient_sums(&self, of: Normalised<'_>, gradient: &[f32]) -> Result<Sums> {
        let Normalised { input, mean, inverse } = of;
        expect_length("the input of a batch norm", input.len(), self.len())?;
        expect_length("the gradient of a batch norm's output", gradient.len(), self.len())?;
        self.check_channels(&[mean, inverse])?;
        Ok(self.sum_planes(|plane| {
            let (x, dy) = (&input[plane * self.positions..], &gradient[plane * self.positions..]);
            let (x, dy) = (&x[..self.positions], &dy[..self.positions]);
            let c = plane % self.channels;
            let product = sum_of(x, dy, |x, dy| (x - mean[c]) * dy);
            [f64::from(sum(dy)), f64::from(product) * f64::from(inverse[c])]
        }))
    }

    /// Adds the gradients of weight and bias: the results of [`gradient_sums`](Self::gradient_sums)
    /// of the parts of a batch.
    ///
    /// # Errors
    /// A slice or sums of another number of channels.
    pub fn add_parameter_gradients(&self, sums: &Sums, weight: &mut [f32], bias: &mut [f32]) -> Result {
        expect_length("the sums of a batch norm", sums.channels.len(), self.channels)?;
        self.check_channels(&[weight, bias])?;
        for ((weight, bias), sums) in weight.iter_mut().zip(bias).zip(&sums.channels) {
            *bias += sums[0] as f32;
            *weight += sums[1] as f32;
        }
        Ok(())
    }

    /// The gradient of the input, given the sums of the whole batch whose statistics normalised it.
    ///
    /// # Errors
    /// An operand whose length does not match the sizes.
    pub fn input_gradient(
        &self,
        of: Normalised<'_>,
        gradient: &[f32],
        weight: &[f32],
        sums: &Sums,
        input_gradient: &mut [f32],
    ) -> Result {
        let Normalised { input, mean, inverse } = of;
        expect_length("the input of a batch norm", input.len(), self.len())?;
        expect_length("the gradient of a batch norm's output", gradient.len(), self.len())?;
        expect_length("the gradient of a batch norm's input", input_gradient.len(), self.len())?;
        expect_length("the sums of a batch norm", sums.channels.len(), self.channels)?;
        self.check_channels(&[weight, mean, inverse])?;
        let count = sums.count.max(1) as f64;
        self.each_plane(input_gradient, |c, plane, dx| {
            // dx = γ/σ · (dy − mean(dy) − x̂ · mean(dy x̂)), with x̂ = (x − μ)/σ.
            let scale = weight[c] * inverse[c];
            let shift = (sums.channels[c][0] / count) as f32;
            let slope = (sums.channels[c][1] / count) as f32 * inverse[c];
            let mean = mean[c];
            let x = &input[plane * self.positions..][..self.positions];
            let dy = &gradient[plane * self.positions..][..self.positions];
            for ((dx, x), dy) in dx.iter_mut().zip(x).zip(dy) {
                *dx = (dy - shift - (x - mean) * slope) * scale;
            }
        });
        Ok(())
    }

    /// `f(channel, plane, output)` for each channel of each sample.
    fn each_plane(&self, output: &mut [f32], f: impl Fn(usize, usize, &mut [f32]) + Sync) {
        if self.len() == 0 {
            return;
        }
        output.par_chunks_mut(self.channels * self.positions).enumerate().for_each(|(sample, output)| {
            for (c, output) in output.chunks_exact_mut(self.positions).enumerate() {
                f(c, sample * self.channels + c, output);
            }
        });
    }

    /// Sums `f(plane)` over the samples of each channel: blocks of samples in order, then the blocks in order.
    fn sum_planes(&self, f: impl Fn(usize) -> [f64; 2] + Sync) -> Sums {
        let starts: Vec<usize> = (0..self.batch).step_by(SAMPLES).collect();
        let parts: Vec<Vec<[f64; 2]>> = starts
            .par_iter()
            .map(|&start| {
                let mut part = vec![[0.0; 2]; self.channels];
                for sample in start..self.batch.min(start + SAMPLES) {
                    for (c, sum) in part.iter_mut().enumerate() {
                        let [a, b] = f(sample * self.channels + c);
                        *sum = [sum[0] + a, sum[1] + b];
                    }
                }
                part
            })
            .collect();
        let mut channels = vec![[0.0; 2]; self.channels];
        for part in &parts {
            channels.iter_mut().zip(part).for_each(|(a, b)| *a = [a[0] + b[0], a[1] + b[1]]);
        }
        Sums { count: (self.batch * self.positions) as u64, channels }
    }

    const fn len(&self) -> usize {
        self.batch * self.channels * self.positions
    }

    fn check_channels(&self, operands: &[&[f32]]) -> Result {
        operands.iter().try_for_each(|of| expect_length("a parameter of a batch norm", of.len(), self.channels))
    }
}
