//! The fit of the two numbers of sessions that no observation gives alone.

use haversack_devices::units::{Factor, Fraction, Nanos};

use super::model::UsageModel;

/// The statistics of sessions that the model is fitted to (FedHybrid, section 4.4.2 and figure 11a).
///
/// Who reports one of these of generated users reports an input, not a prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Targets {
    /// The mean session of most users: 153 s.
    pub mean: Nanos,
    /// How far a user's mean may be from it, as a share of it: a tenth.
    pub tolerance: Fraction,
    /// The share of users whose mean is there: 0.70.
    pub users: Fraction,
    /// The interval that most sessions of all users fall into: 126 to 412 s.
    pub interval: (Nanos, Nanos),
    /// The share of sessions that do: 0.73.
    pub sessions: Fraction,
}

impl Targets {
    /// As published.
    #[must_use]
    pub fn published() -> Self {
        Self {
            mean: Nanos::from_seconds(153.0),
            tolerance: Fraction(0.1),
            users: Fraction(0.70),
            interval: (Nanos::from_seconds(126.0), Nanos::from_seconds(412.0)),
            sessions: Fraction(0.73),
        }
    }
}

/// What [`fit()`] finds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// `sessions.regular_share`.
    pub regular_share: Fraction,
    /// `sessions.spread`.
    pub spread: Factor,
}

/// The share of regular users and the spread within a user that meet `targets`, everything else as in `model`.
///
/// In logarithms a user's mean is normal, and so is a session: median ln(median of the means) − σ²/2, variance σ² plus
/// that of the means. The share of users is linear in the share of regular ones, which follows; the share of sessions
/// falls as σ grows, so that bisection finds σ. None where no share of regular users, or no spread, meets the targets.
#[must_use]
pub fn fit(model: &UsageModel, targets: &Targets) -> Option<Fit> {
    let sessions = &model.sessions;
    let regular = Class { mean: sessions.regular_mean.value, spread: sessions.regular_spread.value.0 };
    let other = Class { mean: sessions.other_mean.value, spread: sessions.other_spread.value.0 };
    let share = |tolerance: f64| Nanos::from_seconds(targets.mean.seconds() * tolerance);
    let around = (share(1.0 - targets.tolerance.0), share(1.0 + targets.tolerance.0));
    let (of_regular, of_other) = (regular.means_within(around), other.means_within(around));
    let regular_share = (targets.users.0 - of_other) / (of_regular - of_other);
    if !(0.0..=1.0).contains(&regular_share) {
        return None;
    }
    let pooled = |spread: f64| {
        let of = |class: &Class| class.sessions_within(targets.interval, spread);
        regular_share * of(&regular) + (1.0 - regular_share) * of(&other)
    };
    let (mut low, mut high) = (0.01, 3.0);
    if !(pooled(high)..=pooled(low)).contains(&targets.sessions.0) {
        return None;
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if pooled(middle) > targets.sessions.0 { low = middle } else { high = middle }
    }
    Some(Fit { regular_share: Fraction(regular_share), spread: Factor(low) })
}

/// Users whose means are lognormal.
struct Class {
    mean: Nanos,
    spread: f64,
}

impl Class {
    /// The share of users whose mean lies within.
    fn means_within(&self, interval: (Nanos, Nanos)) -> f64 {
        lognormal_within(interval, self.mean.seconds().ln(), self.spread)
    }

    /// The share of sessions within, where the logarithms of a user's sessions have the standard deviation `spread`.
    fn sessions_within(&self, interval: (Nanos, Nanos), spread: f64) -> f64 {
        lognormal_within(interval, self.mean.seconds().ln() - 0.5 * spread * spread, spread.hypot(self.spread))
    }
}

fn lognormal_within((low, high): (Nanos, Nanos), median: f64, deviation: f64) -> f64 {
    let below = |end: Nanos| normal_below((end.seconds().ln() - median) / deviation.max(1e-12));
    below(high) - below(low)
}

/// The standard normal distribution function, within 1e-7 (Abramowitz and Stegun, 7.1.26).
fn normal_below(x: f64) -> f64 {
    let z = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let polynomial = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    let tail = 0.5 * polynomial.iter().fold(0.0, |sum, factor| sum * t + factor) * t * (-z * z).exp();
    if x < 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_has_its_tabled_values() {
        // Φ(0) = 0.5, Φ(1) = 0.8413447, Φ(1.96) = 0.9750021, Φ(−1.2816) = 0.1000.
        for (x, expected) in [(0.0, 0.5), (1.0, 0.841_344_7), (1.96, 0.975_002_1), (-1.281_551_6, 0.1)] {
            assert!((normal_below(x) - expected).abs() < 2e-7, "{x}");
        }
    }

    #[test]
    fn the_shipped_numbers_are_what_the_fit_finds() {
        let model = UsageModel::built_in().unwrap();
        let found = fit(&model, &Targets::published()).unwrap();
        // The file has four digits.
        assert!((found.regular_share.0 - model.sessions.regular_share.value.0).abs() < 5e-5, "{found:?}");
        assert!((found.spread.0 - model.sessions.spread.value.0).abs() < 5e-5, "{found:?}");
    }

    #[test]
    fn targets_that_nothing_meets_are_not_met() {
        let model = UsageModel::built_in().unwrap();
        // Even if all users were regular, only P(|z| < ln(1.1) / 0.04 or so) = 99 % of them would be within a tenth.
        let too_many = Targets { users: Fraction(1.0), ..Targets::published() };
        assert_eq!(fit(&model, &too_many), None);
        // The interval is empty: no spread puts 73 % of sessions there.
        let nowhere =
            Targets { interval: (Nanos::from_seconds(400.0), Nanos::from_seconds(400.0)), ..Targets::published() };
        assert_eq!(fit(&model, &nowhere), None);
    }
}
