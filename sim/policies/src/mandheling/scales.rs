//! How a layer's scale factor changes while it trains: a stochastic process in place of the data (figure 4).
//!
//! A scale factor is the number of bits by which the largest magnitude of a tensor exceeds seven (listing 1): log₂ of
//! that magnitude, rounded up. Its logarithm is modelled as
//!
//! x(t) = level + e(t) · drift + (1 + e(t) · excess) · width · z(t), with e(t) = exp(−t / initialisation),
//!
//! where z has unit variance and reverts to its mean: an Ornstein–Uhlenbeck process that is itself driven by one of the
//! same memory m, seen once a batch, z(t + 1) = 2ρ z(t) − ρ² z(t − 1) + σ N(0, 1) with ρ = exp(−1 / m). A single such
//! process would cross a threshold in flurries, forth and back from one batch to the next; factors were not seen to.
//! While training begins, gradients fall and vary widely; later the logarithm stays around its level and crosses the
//! nearest whole number now and then, so that the factor jumps between two neighbouring values. By Rice's formula it
//! crosses a threshold at d standard deviations from its level once in about π m exp(d² / 2) batches, so that memory
//! and width decide the interval between changes.
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
/// between two thresholds would reach neither; above, a factor would have three values.
const WIDTH: [f64; 2] = [0.35, 0.45];
/// The least and the largest memory, in batches, drawn with a uniform logarithm: intervals of 10 to 60 batches, the
/// shortest at a threshold and the longest halfway between two (figure 4(b)).
const MEMORY: [f64; 2] = [3.8, 13.5];

/// The scale factor of one layer's tensor, batch by batch.
#[derive(Debug)]
#[must_use]
pub struct ScaleProcess {
    stream: Stream,
    level: f64,
    width: f64,
    /// 2ρ, ρ² and σ.
    constants: [f64; 3],
    /// z in this batch and in the one before.
    fluctuation: [f64; 2],
    batch: u64,
}

impl ScaleProcess {
    /// The factor of `layer` under `seed`; equal names have equal draws.
    pub fn new(seed: u64, layer: &str) -> Self {
        let mut stream = Stream::new(seed, layer, "scale factor");
        let level = between(LEVEL, stream.random());
        let width = between(WIDTH, stream.random());
        let memory = between(MEMORY.map(f64::ln), stream.random()).exp();
        let persistence = (-1.0 / memory).exp();
        // Drawn as late in training as any other pair: neighbouring batches correlate by 2ρ / (1 + ρ²).
        let correlation = 2.0 * persistence / (1.0 + persistence * persistence);
        let (before, apart): (f64, f64) = (stream.sample(StandardNormal), stream.sample(StandardNormal));
        let now = correlation * before + (1.0 - correlation * correlation).sqrt() * apart;
        let squared = persistence * persistence;
        // σ, for unit variance.
        let deviation = ((1.0 - squared).powi(3) / (1.0 + squared)).sqrt();
        let constants = [2.0 * persistence, squared, deviation];
        Self { stream, level, width, constants, fluctuation: [now, before], batch: 0 }
    }

    /// The factor of the batch that is under way, at first the first.
    pub fn factor(&self) -> u32 {
        let early = (-(self.batch as f64) / INITIALISATION).exp();
        let logarithm = self.level + early * DRIFT + (1.0 + early * EXCESS) * self.width * self.fluctuation[0];
        // A cast of what lies below zero is zero.
        logarithm.ceil() as u32
    }

    /// Goes on to the next batch.
    pub fn advance(&mut self) {
        let innovation: f64 = self.stream.sample(StandardNormal);
        let ([now, before], [doubled, squared, deviation]) = (self.fluctuation, self.constants);
        self.fluctuation = [doubled * now - squared * before + deviation * innovation, now];
        self.batch += 1;
    }

    /// The factor of the batch that is under way, which is over then.
    pub fn next_batch(&mut self) -> u32 {
        let factor = self.factor();
        self.advance();
        factor
    }
}

/// The point at `share` of the way.
fn between([low, high]: [f64; 2], share: f64) -> f64 {
    low + (high - low) * share
}
