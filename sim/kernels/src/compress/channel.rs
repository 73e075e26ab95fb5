//! Statistics of a channel before it is compressed: its range, and whether the 3σ rule calls it salient.

use crate::Isa;
use crate::simd::{Loops, compiled};

/// The share of a normal distribution that lies beyond three standard deviations, on both sides together.
const BEYOND: f64 = 0.002_699_796;

/// Statistics of the finite elements of a tensor or a channel, from one pass over it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Statistics {
    pub(super) minimum: f32,
    pub(super) maximum: f32,
    sum: f64,
    squares: f64,
    count: usize,
}

impl Statistics {
    /// Of no elements.
    const NONE: Self = Self { minimum: f32::INFINITY, maximum: f32::NEG_INFINITY, sum: 0.0, squares: 0.0, count: 0 };

    /// Of some elements, the same on every instruction set.
    pub(super) fn of(values: &[f32], isa: Isa) -> Self {
        let found = compiled(isa, Pass { values });
        let is_finite = found.minimum.is_finite() && found.maximum.is_finite();
        if is_finite && found.sum.is_finite() && found.squares.is_finite() { found } else { Self::of_finite(values) }
    }

    /// One element after the other, in f64, where no sum overflows.
    fn of_finite(values: &[f32]) -> Self {
        values.iter().filter(|x| x.is_finite()).fold(Self::NONE, |found, &x| {
            let (sum, squares) = (f64::from(x), f64::from(x) * f64::from(x));
            found.with(Self { minimum: x, maximum: x, sum, squares, count: 1 })
        })
    }

    /// Of two tensors together.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            minimum: self.minimum.min(other.minimum),
            maximum: self.maximum.max(other.maximum),
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
            count: self.count + other.count,
        }
    }

    /// Whether there are any finite elements.
    pub(super) const fn is_some(self) -> bool {
        self.count > 0
    }

    /// The range: how far the largest lies from the smallest, or 0 without any.
    pub(super) fn range(self) -> f64 {
        if self.is_some() { f64::from(self.maximum) - f64::from(self.minimum) } else { 0.0 }
    }

    /// The largest magnitude.
    pub(super) fn magnitude(self) -> f32 {
        self.maximum.abs().max(self.minimum.abs())
    }
}

/// Sixteen lanes of each statistic, the sums moved into f64 after 64 additions. Unlike in [`crate::reduce`], the order
/// is the same on every instruction set, so that a channel has the same class on all of them.
struct Pass<'a> {
    values: &'a [f32],
}

const LANES: usize = 16;
const ADDITIONS: usize = 64;

impl Loops for Pass<'_> {
    type Output = Statistics;

    #[inline(always)]
    fn run<const WIDE: bool>(self) -> Statistics {
        let (vectors, rest) = self.values.as_chunks::<LANES>();
        let (mut low, mut high) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
        let (mut sum, mut squares) = (0.0, 0.0);
        for vectors in vectors.chunks(ADDITIONS) {
            let (mut sums, mut square_sums) = ([0.0_f32; LANES], [0.0_f32; LANES]);
            for vector in vectors {
                for i in 0..LANES {
                    let x = vector[i];
                    // NaN is neither smaller nor larger, but it does enter the sums.
                    low[i] = if x < low[i] { x } else { low[i] };
                    high[i] = if x > high[i] { x } else { high[i] };
                    sums[i] += x;
                    square_sums[i] += x * x;
                }
            }
            for i in 0..LANES {
                sum += f64::from(sums[i]);
                squares += f64::from(square_sums[i]);
            }
        }
        let start = Statistics { sum, squares, count: self.values.len(), ..Statistics::NONE };
        let mut found = rest.iter().fold(start, |found, &x| Statistics {
            minimum: found.minimum.min(x),
            maximum: found.maximum.max(x),
            sum: found.sum + f64::from(x),
            squares: found.squares + f64::from(x) * f64::from(x),
            ..found
        });
        for i in 0..LANES {
            found.minimum = found.minimum.min(low[i]);
            found.maximum = found.maximum.max(high[i]);
        }
        found
    }
}

/// The 3σ rule (Pukelsheim, The American Statistician 1994): elements further than three standard deviations from the
/// tensor's mean are outliers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ThreeSigma {
    mean: f32,
    reach: f32,
}

impl ThreeSigma {
    /// The rule of a tensor.
    pub(super) fn of(tensor: Statistics) -> Self {
        let count = tensor.count.max(1) as f64;
        let mean = tensor.sum / count;
        let variance = (tensor.squares / count - mean * mean).max(0.0);
        Self { mean: mean as f32, reach: (3.0 * variance.sqrt()) as f32 }
    }

    /// Whether a channel has more outliers than a normal distribution would leave there, by three standard deviations
    /// of their number. Infinities are outliers, NaN is not.
    pub(super) fn is_salient(self, channel: &[f32], known: Statistics, isa: Isa) -> bool {
        let is_outlier = |x: f32| (x - self.mean).abs() > self.reach;
        if known.count == channel.len() && !is_outlier(known.minimum) && !is_outlier(known.maximum) {
            return false;
        }
        let outliers = compiled(isa, Outliers { values: channel, rule: self }) as f64;
        let expected = channel.len() as f64 * BEYOND;
        outliers > expected + 3.0 * (expected * (1.0 - BEYOND)).sqrt()
    }
}

/// Counts the outliers.
struct Outliers<'a> {
    values: &'a [f32],
    rule: ThreeSigma,
}

impl Loops for Outliers<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<const WIDE: bool>(self) -> usize {
        let ThreeSigma { mean, reach } = self.rule;
        let count = |values: &[f32]| values.iter().fold(0_u32, |n, x| n + u32::from((x - mean).abs() > reach));
        self.values.chunks(1 << 16).map(|values| count(values) as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_those_of_finite_elements() {
        for isa in Isa::available() {
            for padding in [0, 40] {
                let mut values = vec![2.0; padding];
                values.extend([2.0, f32::NAN, -3.0, f32::INFINITY, 1.0]);
                let found = Statistics::of(&values, isa);
                assert_eq!((found.minimum, found.maximum, found.count), (-3.0, 2.0, padding + 3));
                assert_eq!((found.range(), found.magnitude()), (5.0, 3.0));
                // 2 - 3 + 1 = 0 and 4 + 9 + 1 = 14, and of each padding 2 and 4.
                assert_eq!((found.sum, found.squares), (2.0 * padding as f64, 14.0 + 4.0 * padding as f64));
            }
            assert!(!Statistics::of(&[f32::NAN, f32::NEG_INFINITY], isa).is_some());
        }
    }

    #[test]
    fn statistics_by_definition_on_every_length() {
        let values: Vec<f32> = (0..3000).map(|i| ((i * 37 % 101) as f32 - 50.0) / 8.0).collect();
        for len in (0..70).chain([1023, 1024, 1025, 3000]) {
            let values = &values[..len];
            let expected = Statistics::of_finite(values);
            for isa in Isa::available() {
                // Eighths below 7 and their squares' sums of 64 are exact in f32.
                assert_eq!(Statistics::of(values, isa), expected, "{isa} {len}");
            }
        }
    }

    #[test]
    fn a_channel_is_salient_by_its_outliers_beyond_chance() {
        // Mean 0, standard deviation 1: outliers lie beyond ±3. Of 1000 elements 2.7 are expected, and 2.7 + 3 · 1.64
        // = 7.6 may come by chance.
        let rule = ThreeSigma { mean: 0.0, reach: 3.0 };
        for isa in Isa::available() {
            for (outliers, salient) in [(0, false), (7, false), (8, true), (500, true)] {
                let mut channel = vec![3.0; 1000];
                channel[200..200 + outliers].fill(-3.5);
                let known = Statistics::of(&channel, isa);
                assert_eq!(rule.is_salient(&channel, known, isa), salient, "{isa} {outliers}");
            }
        }
    }

    #[test]
    fn the_rule_comes_from_the_finite_elements() {
        // ±2 in equal parts: mean 0, standard deviation 2, and 6 is three of them.
        let mut values: Vec<f32> = (0..5000).map(|i| if i % 2 == 0 { 2.0 } else { -2.0 }).collect();
        let rule = |values: &[f32], isa| ThreeSigma::of(Statistics::of(values, isa));
        let plain = ThreeSigma { mean: 0.0, reach: 6.0 };
        assert_eq!(rule(&values, Isa::Scalar), plain);
        values.extend([f32::NAN, f32::INFINITY]);
        for isa in Isa::available() {
            assert_eq!(rule(&values, isa), plain);
        }
        // Squares that overflow f32 are added in f64.
        let large = rule(&[1e30, -1e30], Isa::Scalar);
        assert!((f64::from(large.reach) / 3e30 - 1.0).abs() < 1e-6, "{large:?}");
    }
}
