//! The fit of the two session parameters that follow from no single observation: the values in the file
//! equal its result.

use haversack_devices::units::{Factor, Fraction, Nanos};
use haversack_traces::usage::UsageModel;
use statrs::distribution::{ContinuousCDF, LogNormal};

/// The statistics of sessions that the model is fitted to (FedHybrid, section 4.4.2 and figure 11a).
///
/// For generated users, these statistics are inputs, not predictions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Targets {
    /// The mean session of most users: 153 s.
    pub(crate) mean: Nanos,
    /// The relative tolerance for a user's mean: a tenth.
    pub(crate) tolerance: Fraction,
    /// The fraction of users within it: 0.70.
    pub(crate) users: Fraction,
    /// The interval that most sessions of all users fall into: 126 to 412 s.
    pub(crate) interval: (Nanos, Nanos),
    /// The fraction of sessions that do: 0.73.
    pub(crate) sessions: Fraction,
}

impl Targets {
    /// As published.
    pub(crate) fn published() -> Self {
        Self {
            mean: Nanos::from_seconds(153.0),
            tolerance: Fraction(0.1),
            users: Fraction(0.70),
            interval: (Nanos::from_seconds(126.0), Nanos::from_seconds(412.0)),
            sessions: Fraction(0.73),
        }
    }
}

/// The result of `fit`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fit {
    /// `sessions.regular_share`.
    regular_share: Fraction,
    /// `sessions.spread`.
    spread: Factor,
}

/// The share of regular users and the spread within a user that meet `targets`, with everything else as in `model`.
///
/// In logarithms a user's mean is normal, and so is a session: median ln(median of the means) − σ²/2, variance σ² plus
/// that of the means. The share of users is linear in the share of regular ones, which follows; the share of sessions
/// falls as σ grows, so that bisection finds σ. `None` if no share of regular users, or no spread, meets the targets.
fn fit(model: &UsageModel, targets: &Targets) -> Option<Fit> {
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

/// The share of a lognormal distribution within, by the logarithm of its median and the deviation of its logarithms.
fn lognormal_within(interval: (Nanos, Nanos), median: f64, deviation: f64) -> f64 {
    let Ok(distribution) = LogNormal::new(median, deviation.max(1e-12)) else { return 0.0 };
    distribution.cdf(interval.1.seconds()) - distribution.cdf(interval.0.seconds())
}

#[test]
fn shares_of_a_lognormal_distribution_have_their_tabled_values() {
    // Within one and 1.96 standard deviations of the median: 2 Φ(1) − 1 = 0.6826895 and 2 Φ(1.96) − 1 = 0.9500042.
    let seconds = |logarithm: f64| Nanos::from_seconds((5.0 + 0.5 * logarithm).exp());
    for (x, expected) in [(1.0, 0.682_689_5), (1.96, 0.950_004_2)] {
        let share = lognormal_within((seconds(-x), seconds(x)), 5.0, 0.5);
        assert!((share - expected).abs() < 2e-7, "{x}: {share}");
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
