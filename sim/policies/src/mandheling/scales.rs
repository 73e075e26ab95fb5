//! How a layer's scale factor changes while it trains: a stochastic process in place of the data (figure 4).
//!
//! A scale factor is the number of bits by which the largest magnitude of a tensor exceeds seven (listing 1): log₂ of
//! that magnitude, rounded up. Its logarithm is modelled as
//!
//! x(t) = level + e(t) · drift + (1 + e(t) · excess) · width · z(t), with e(t) = exp(−t / initialisation),
//!
//! where z is an Ornstein–Uhlenbeck process of unit variance, seen once a batch: z(t + 1) = ρ z(t) + √(1 − ρ²) · N(0, 1)
//! with ρ = exp(−1 / memory). While training begins, gradients fall and vary widely; later the logarithm stays around
//! its level and crosses the nearest whole number now and then, so that the factor jumps between two neighbouring
//! values. By Rice's formula a process of this kind crosses a threshold at d widths from its level once in
//! π / arccos ρ · exp(d² / 2) batches, so that `memory` and `width` decide the interval between changes.
//!
//! One set of constants serves all layers; a layer differs from another by its draw of level, width and memory.

use haversack_engine::Stream;
use rand::RngExt;
use rand_distr::StandardNormal;

/// Batches in which what is peculiar to the beginning falls to 1/e: a thousand batches later nothing is left of it.
const INITIALISATION: f64 = 150.0;
/// Bits by which the logarithm lies above its level at first.
const DRIFT: f64 = 3.0;
/// By how much fluctuations are wider at first, of their later width.
const EXCESS: f64 = 2.0;
/// The least and the largest level, in bits: sums of 32 bits hold 24 beside the seven that are kept, and layers of
/// tens to thousands of products use about half (10 and 11 in figure 4(a)).
const LEVEL: [f64; 2] = [6.0, 14.0];
/// The least and the largest standard deviation late in training, in bits. Below, a layer whose level lies halfway
/// between two thresholds would not reach either; above, a factor would have three values.
const WIDTH: [f64; 2] = [0.3, 0.4];
/// The least and the largest memory, in batches, drawn with a uniform logarithm: by Rice's formula intervals of 11 to
/// 38 batches at a threshold, and of up to 60 for levels between two (the 10 to 60 of figure 4(b)).
const MEMORY: [f64; 2] = [25.0, 300.0];

/// The scale factor of one layer's tensor, batch by batch.
#[derive(Debug)]
pub struct ScaleProcess {
    stream: Stream,
    level: f64,
    width: f64,
    /// ρ.
    persistence: f64,
    fluctuation: f64,
    batch: u64,
}

impl ScaleProcess {
    /// The factor of `layer` under `seed`; equal names have equal draws.
    #[must_use]
    pub fn new(seed: u64, layer: &str) -> Self {
        let mut stream = Stream::new(seed, layer, "scale factor");
        let level = between(LEVEL, stream.random());
        let width = between(WIDTH, stream.random());
        let memory = between(MEMORY.map(f64::ln), stream.random()).exp();
        let fluctuation = stream.sample(StandardNormal);
        Self { stream, level, width, persistence: (-1.0 / memory).exp(), fluctuation, batch: 0 }
    }

    /// The factor of the next batch, from the first on.
    pub fn next_batch(&mut self) -> u32 {
        let early = (-(self.batch as f64) / INITIALISATION).exp();
        let logarithm = self.level + early * DRIFT + (1.0 + early * EXCESS) * self.width * self.fluctuation;
        let innovation: f64 = self.stream.sample(StandardNormal);
        self.fluctuation =
            self.persistence * self.fluctuation + (1.0 - self.persistence * self.persistence).sqrt() * innovation;
        self.batch += 1;
        // A cast of what lies below nought is nought.
        logarithm.ceil() as u32
    }
}

/// The point at `share` of the way.
fn between([low, high]: [f64; 2], share: f64) -> f64 {
    low + (high - low) * share
}
