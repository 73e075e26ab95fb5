//! Feature maps without a network: what the codec makes of tensors of some shape.
//!
//! A stand-in for recorded activations. It has what the codec lives on (correlation between neighbours, exact zeros
//! behind a rectifier, concentrated values, outliers that cluster in channels), at fixed strengths; it has not learnt
//! anything. The same shape and kind give the same values.

use std::f32::consts::TAU;

use super::{Codec, CodecError, FeatureMap, Shape};
use crate::quantise::draw;

/// Elements of a sampled tensor at most: 256 KiB.
const MOST_ELEMENTS: usize = 1 << 16;
/// Rows and columns of a sampled channel at most: a window of it.
const WINDOW: usize = 64;
/// Tokens of a sampled feature at most.
const TOKENS: usize = 512;
/// Every so manieth channel is salient.
const SALIENT_EVERY: usize = 16;
/// How many times the values of other channels those of a salient one are. The paper: by over 81 times in convolutional
/// networks, by over 347 times in transformers.
const SALIENT_MAP: f32 = 81.0;
const SALIENT_FEATURE: f32 = 347.0;
/// Of a salient channel, the share of elements that are so much larger.
const SALIENT_SHARE: f32 = 1.0 / 32.0;

/// What a tensor holds.
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
        self.window(shape, shape)
    }

    /// The upper left part, `window`, of every channel of a tensor, and of so many channels as it has.
    fn window(self, shape: Shape, window: Shape) -> Vec<f32> {
        let mut values = Vec::with_capacity(window.elements().unwrap_or(0));
        for channel in 0..window.channels {
            match self {
                Self::Smooth => waves(shape, window, channel, 0.002, &mut values),
                Self::Rectified if is_salient(channel) => islands(shape, window, channel, &mut values),
                Self::Rectified => waves(shape, window, channel, 0.02, &mut values),
                Self::Tokens => tokens(window, channel, &mut values),
            }
        }
        values
    }
}

const fn is_salient(channel: usize) -> bool {
    channel % SALIENT_EVERY == SALIENT_EVERY / 2
}

/// How many times smaller than in f32 a tensor of this shape and kind becomes, by compressing a sample of at most 256 KiB
/// of it: some of its channels, and of these a window of 64 × 64 (or 512 tokens). A tensor without elements has ratio 1.
///
/// # Errors
/// None that a codec that [`Codec::new`] made can cause.
pub fn ratio_on_synthetic(codec: &Codec, shape: Shape, kind: Kind) -> Result<f64, CodecError> {
    let window = sample(shape, kind);
    let values = kind.window(shape, window);
    if values.is_empty() {
        return Ok(1.0);
    }
    let Shape { channels, height, width } = window;
    let mut bytes = Vec::new();
    let summary = codec.compress(FeatureMap { values: &values, channels, height, width }, &mut bytes)?;
    Ok(size_of_val(values.as_slice()) as f64 / summary.bytes as f64)
}

/// The part of a tensor that stands for all of it.
fn sample(shape: Shape, kind: Kind) -> Shape {
    let (height, width) = match kind {
        Kind::Tokens => (shape.height.min(TOKENS), shape.width.min(TOKENS / shape.height.clamp(1, TOKENS))),
        Kind::Smooth | Kind::Rectified => (shape.height.min(WINDOW), shape.width.min(WINDOW)),
    };
    let most = MOST_ELEMENTS / (height * width).max(1);
    Shape { channels: shape.channels.min(most), height, width }
}

/// A number of 0 to 1 that belongs to a channel.
fn of_channel(channel: usize, purpose: u64) -> f32 {
    draw(purpose, channel)
}

/// Three waves of one to three periods a side, rectified, with noise whose standard deviation is so much of the largest value.
fn waves(shape: Shape, window: Shape, channel: usize, noise: f32, values: &mut Vec<f32>) {
    let angle = |length: usize, of: f32, purpose: u64| {
        let periods = (1.0 + 2.0 * of) / length.max(1) as f32;
        let phase = of_channel(channel, purpose);
        move |at: usize| TAU * (periods * at as f32 + phase)
    };
    // sin(a + b) = sin a cos b + cos a sin b: sines of rows and columns alone.
    let mut parts = Vec::new();
    for wave in 0..3 {
        let at_row = angle(shape.height, of_channel(channel, 10 + wave), 20 + wave);
        let at_column = angle(shape.width, of_channel(channel, 30 + wave), 40 + wave);
        let rows: Vec<(f32, f32)> = (0..window.height).map(|row| at_row(row).sin_cos()).collect();
        let columns: Vec<(f32, f32)> = (0..window.width).map(|column| at_column(column).sin_cos()).collect();
        parts.push((rows, columns));
    }
    let seed = 100 + channel as u64;
    for row in 0..window.height {
        for column in 0..window.width {
            let wave = parts.iter().fold(0.0, |sum, (rows, columns)| {
                let ((row_sine, row_cosine), (sine, cosine)) = (rows[row], columns[column]);
                sum + row_sine * cosine + row_cosine * sine
            });
            let x = wave + 3.0 * noise * centred(seed, row * window.width + column);
            values.push(if x > 0.0 { x } else { 0.0 });
        }
    }
}

/// A salient map: zero, but for islands of a quarter of a window's side, in which values are about one, some of them many
/// times as large.
fn islands(shape: Shape, window: Shape, channel: usize, values: &mut Vec<f32>) {
    let seed = 100 + channel as u64;
    let (down, across) = (shape.height.min(WINDOW).div_ceil(4), shape.width.min(WINDOW).div_ceil(4));
    for row in 0..window.height {
        for column in 0..window.width {
            let island = row / down * 64 + column / across;
            let element = row * window.width + column;
            let is_sea = draw(seed ^ 1 << 32, island) > 0.25;
            let outlier = if draw(seed ^ 1 << 33, element) < SALIENT_SHARE { SALIENT_MAP } else { 1.0 };
            values.push(if is_sea { 0.0 } else { outlier * (1.0 + 0.25 * centred(seed, element)) });
        }
    }
}

/// A feature over its tokens.
fn tokens(window: Shape, channel: usize, values: &mut Vec<f32>) {
    let seed = 100 + channel as u64;
    values.extend((0..window.height * window.width).map(|token| {
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
    fn a_sample_is_at_most_256_kib_and_has_salient_channels() {
        for shape in [(64, 112, 112), (2048, 7, 7), (3, 224, 224), (768, 1, 512), (768, 1, 4096), (1, 1, 1)] {
            let shape = Shape { channels: shape.0, height: shape.1, width: shape.2 };
            for kind in Kind::ALL {
                let elements = sample(shape, kind).elements().unwrap();
                assert!((1..=MOST_ELEMENTS).contains(&elements), "{shape:?} {kind:?}");
            }
        }
        let sampled = sample(Shape { channels: 64, height: 112, width: 112 }, Kind::Rectified);
        // 65536 / 64² = 16 channels, of which the ninth is salient.
        assert_eq!(sampled, Shape { channels: 16, height: 64, width: 64 });
        assert_eq!((0..16).filter(|&channel| is_salient(channel)).count(), 1);
    }

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
