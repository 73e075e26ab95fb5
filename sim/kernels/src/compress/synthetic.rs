//! Synthetic feature maps, made without a network.
//!
//! A stand-in for recorded activations. It has the properties that the codec exploits (correlation between neighbours,
//! exact zeros behind a rectifier, concentrated values, outliers that cluster in channels), at fixed strengths; nothing
//! in it is learnt. The same shape and kind give the same values.

use std::f32::consts::TAU;

use super::Shape;
use crate::quantise::draw;

/// Islands are a quarter of this many rows and columns, or of a smaller channel.
const WINDOW: usize = 64;
/// One of this many channels is salient.
const SALIENT_EVERY: usize = 16;
/// How many times larger the values of a salient channel are than those of other channels. The paper: by over 81 times
/// in convolutional networks, by over 347 times in transformers.
const SALIENT_MAP: f32 = 81.0;
const SALIENT_FEATURE: f32 = 347.0;
/// The share of a salient channel's elements that are that much larger.
const SALIENT_SHARE: f32 = 1.0 / 32.0;

/// The kind of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Rectified maps without outliers: a sum of three waves and noise of 0.2 % of the range, half of it zero.
    Smooth,
    /// Rectified maps of a convolution: waves and noise of 2 % of the range, half of it zero, and salient channels that
    /// are nearly all zero and have outliers in places.
    Rectified,
    /// Tokens of a transformer, one channel a feature: noise around zero, without correlation between tokens, and salient
    /// features that have outliers at some tokens.
    Tokens,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Smooth, Self::Rectified, Self::Tokens];

    /// The values of a whole tensor, channel by channel.
    pub fn generate(self, shape: Shape) -> Vec<f32> {
        let mut values = Vec::with_capacity(shape.elements().unwrap_or(0));
        for channel in 0..shape.channels {
            match self {
                Self::Smooth => waves(shape, channel, 0.002, &mut values),
                Self::Rectified if is_salient(channel) => islands(shape, channel, &mut values),
                Self::Rectified => waves(shape, channel, 0.02, &mut values),
                Self::Tokens => tokens(shape, channel, &mut values),
            }
        }
        values
    }
}

const fn is_salient(channel: usize) -> bool {
    channel % SALIENT_EVERY == SALIENT_EVERY / 2
}

/// A number of 0 to 1 for a channel.
fn of_channel(channel: usize, purpose: u64) -> f32 {
    draw(purpose, channel)
}

/// Three waves of one to three periods a side, rectified, with noise whose standard deviation is this
/// share of the largest value.
fn waves(shape: Shape, channel: usize, noise: f32, values: &mut Vec<f32>) {
    let angle = |length: usize, of: f32, purpose: u64| {
        let periods = (1.0 + 2.0 * of) / length.max(1) as f32;
        let phase = of_channel(channel, purpose);
        move |at: usize| TAU * (periods * at as f32 + phase)
    };
    // sin(a + b) = sin a cos b + cos a sin b: only sines and cosines of rows and columns are needed.
    let mut parts = Vec::new();
    for wave in 0..3 {
        let at_row = angle(shape.height, of_channel(channel, 10 + wave), 20 + wave);
        let at_column = angle(shape.width, of_channel(channel, 30 + wave), 40 + wave);
        let rows: Vec<(f32, f32)> = (0..shape.height).map(|row| at_row(row).sin_cos()).collect();
        let columns: Vec<(f32, f32)> = (0..shape.width).map(|column| at_column(column).sin_cos()).collect();
        parts.push((rows, columns));
    }
    let seed = 100 + channel as u64;
    for row in 0..shape.height {
        for column in 0..shape.width {
            let wave = parts.iter().fold(0.0, |sum, (rows, columns)| {
                let ((row_sine, row_cosine), (sine, cosine)) = (rows[row], columns[column]);
                sum + row_sine * cosine + row_cosine * sine
            });
            let x = wave + 3.0 * noise * centred(seed, row * shape.width + column);
            values.push(if x > 0.0 { x } else { 0.0 });
        }
    }
}

/// A salient map: zero, except for islands of a quarter of a window's side, in which values are about one, some of
/// them many times as large.
fn islands(shape: Shape, channel: usize, values: &mut Vec<f32>) {
    let seed = 100 + channel as u64;
    let (down, across) = (shape.height.min(WINDOW).div_ceil(4), shape.width.min(WINDOW).div_ceil(4));
    for row in 0..shape.height {
        for column in 0..shape.width {
            let island = row / down * 64 + column / across;
            let element = row * shape.width + column;
            let is_sea = draw(seed ^ 1 << 32, island) > 0.25;
            let outlier = if draw(seed ^ 1 << 33, element) < SALIENT_SHARE { SALIENT_MAP } else { 1.0 };
            values.push(if is_sea { 0.0 } else { outlier * (1.0 + 0.25 * centred(seed, element)) });
        }
    }
}

/// A feature over its tokens.
fn tokens(shape: Shape, channel: usize, values: &mut Vec<f32>) {
    let seed = 100 + channel as u64;
    values.extend((0..shape.height * shape.width).map(|token| {
        let is_outlier = is_salient(channel) && draw(seed ^ 1 << 33, token) < SALIENT_SHARE;
        centred(seed, token) * if is_outlier { SALIENT_FEATURE } else { 1.0 }
    }));
}

/// A number around 0 of standard deviation 1, nearly normal: three draws of variance 1/12 each, twice their sum.
fn centred(seed: u64, element: usize) -> f32 {
    let sum = draw(seed, 3 * element) + draw(seed, 3 * element + 1) + draw(seed, 3 * element + 2);
    2.0 * (sum - 1.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smooth_maps_are_half_zero_and_the_noise_is_a_five_hundredth_of_the_range() {
        let shape = Shape { channels: 16, height: 112, width: 112 };
        let values = Kind::Smooth.generate(shape);
        let zeros = values.iter().filter(|x| **x == 0.0).count() as f64 / values.len() as f64;
        assert!((zeros - 0.5).abs() < 0.05, "{zeros}");
        // Three waves reach 3, and noise of three draws, at most 3 of its standard deviations, adds 0.018.
        assert!(values.iter().all(|x| (0.0..3.02).contains(x)));
    }
}
