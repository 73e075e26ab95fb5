//! The memory budget predictor (section 4.4.2): a moving average of the safely available memory, weighted by the
//! importance of the running apps, and the conditions for a new plan.
//!
//! Also the two baselines of figure 19b: a budget from the first measurement, and one from the latest before every
//! round.
//!
//! Samples are averaged over each sampling period; the average over a window of periods is the prediction, computed
//! each time the window has slid far enough. All sums are integers, so that values leaving the window leave no rounding
//! error.

use std::collections::VecDeque;

use haversack_devices::units::{Bytes, Nanos};
use serde::Deserialize;

use crate::budget::{BudgetRule, Round, Sample, SampleError};

/// The greatest `oom_score_adj`.
const MAX_SCORE: u128 = 1000;

/// Parameters of the predictor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Parameters {
    /// W: the window at first, the duration of one epoch of training.
    pub window: Nanos,
    /// T_sample: the period over which samples are averaged.
    pub period: Nanos,
    /// T_slide: how far the window slides between predictions.
    pub slide: Nanos,
    /// TP_1 in percent: a round with more page faults than this multiple of the average of earlier rounds triggers a
    /// new plan. The paper's 1.5 to 3 is a factor: as a number of faults it would be negligible.
    pub fault_percent: u64,
    /// TP_2: more kills than this under one plan trigger a new one.
    pub kills: u64,
    /// WS_adj in percent: the share of the window that remains after a new plan.
    pub shrink_percent: u64,
}

impl Parameters {
    /// The paper's thresholds (section 5.2: TP_1 = 2, TP_2 = 3, WS_adj = 0.9) for epochs of this duration. It states
    /// neither period: here a second each, several within the shortest changes of its figure 12.
    pub const fn for_epoch(epoch: Nanos) -> Self {
        let second = Nanos(1_000_000_000);
        Self { window: epoch, period: second, slide: second, fault_percent: 200, kills: 3, shrink_percent: 90 }
    }
}

/// The importance w of the running apps: Σ max score / adjustment, over activities that are not below 0; an adjustment
/// of 0, the foreground, counts as 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[must_use]
pub struct Weight(u128);

impl Weight {
    /// Units of one: fine enough that 1000 / 999 differs from 1.
    const ONE: u128 = 1 << 20;

    /// The weight of activities with these values of `oom_score_adj`.
    pub fn of(adjustments: &[i16]) -> Self {
        let listed = adjustments.iter().filter_map(|&adjustment| u128::try_from(adjustment).ok());
        Self(listed.map(|adjustment| MAX_SCORE * Self::ONE / adjustment.max(1)).sum())
    }

    /// The weight as a number.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / Self::ONE as f64
    }
}

/// One sampling period.
#[derive(Clone, Copy, Debug, Default)]
struct Period {
    /// Its number since time 0.
    index: u64,
    samples: u64,
    safe: u128,
    weight: u128,
}

/// A period that has ended: its averages.
#[derive(Clone, Copy, Debug)]
struct Point {
    time: Nanos,
    safe: u128,
    weight: u128,
}

/// Predicts the memory available to training.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Predictor {
    parameters: Parameters,
    window: Nanos,
    last: Option<Nanos>,
    open: Period,
    points: VecDeque<Point>,
    /// Over the window: Σ w M_safe, Σ w, Σ M_safe.
    sums: (u128, u128, u128),
    /// The last prediction, and the period at which it was made.
    predicted: Option<(Nanos, Bytes)>,
    planned: bool,
    due: bool,
    rounds: u64,
    faults: u128,
    kills: u64,
}

impl Predictor {
    /// Before any measurement. Periods and windows are at least a nanosecond, a window at least a period.
    pub fn new(mut parameters: Parameters) -> Self {
        parameters.period = parameters.period.max(Nanos(1));
        Self { window: parameters.window.max(parameters.period), parameters, ..Self::default() }
    }

    /// M_Pred (equation 10), as of the last slide of the window; before the first period has ended, from its samples so
    /// far. `None` before the first sample.
    ///
    /// If the window has no known activity at all, its periods have equal weights.
    pub fn prediction(&self) -> Option<Bytes> {
        self.predicted.map(|(_, budget)| budget).or_else(|| Some(bytes(self.open.mean()?.0)))
    }

    /// W, its current length.
    pub const fn window(&self) -> Nanos {
        self.window
    }

    /// Ends the open period and adds its averages to the window.
    fn close(&mut self) {
        let Some((safe, weight)) = self.open.mean() else { return };
        let time = Nanos(self.open.index.saturating_mul(self.parameters.period.0));
        self.points.push_back(Point { time, safe, weight });
        self.sums = (self.sums.0 + weight * safe, self.sums.1 + weight, self.sums.2 + safe);
        self.forget();
        let slid = |(made, _): (Nanos, Bytes)| time.saturating_sub(made) >= self.parameters.slide;
        if self.predicted.is_none_or(slid) {
            self.predict();
        }
    }

    /// Drops the points that have left the window.
    fn forget(&mut self) {
        let Some(newest) = self.points.back().map(|point| point.time) else { return };
        while let Some(&Point { time, safe, weight }) = self.points.front()
            && newest.saturating_sub(time) >= self.window
        {
            self.sums = (self.sums.0 - weight * safe, self.sums.1 - weight, self.sums.2 - safe);
            self.points.pop_front();
        }
    }

    fn predict(&mut self) {
        let Some(newest) = self.points.back().map(|point| point.time) else { return };
        let (weighted, weights, plain) = self.sums;
        let average = weighted.checked_div(weights).unwrap_or(plain / self.points.len() as u128);
        self.predicted = Some((newest, bytes(average)));
    }
}

fn bytes(count: u128) -> Bytes {
    Bytes(u64::try_from(count).unwrap_or(u64::MAX))
}

impl Period {
    /// The averages of M_safe and of the weight; `None` without samples.
    fn mean(&self) -> Option<(u128, u128)> {
        let samples = u128::from(self.samples);
        Some((self.safe.checked_div(samples)?, self.weight.checked_div(samples)?))
    }
}

impl BudgetRule for Predictor {
    fn observe(&mut self, sample: &Sample<'_>) -> Result<(), SampleError> {
        SampleError::check(sample, self.last)?;
        self.last = Some(sample.time);
        let index = sample.time.0 / self.parameters.period.0;
        if index != self.open.index {
            self.close();
            self.open = Period { index, ..Period::default() };
        }
        self.open.samples += 1;
        self.open.safe += u128::from(sample.safe().0);
        self.open.weight += Weight::of(sample.adjustments).0;
        Ok(())
    }

    fn begin_round(&mut self) -> Option<Bytes> {
        let _ = self.prediction()?;
        if std::mem::take(&mut self.due) {
            let less = u128::from(self.window.0) * u128::from(self.parameters.shrink_percent) / 100;
            self.window = Nanos(u64::try_from(less).unwrap_or(u64::MAX)).max(self.parameters.period);
            self.forget();
            self.predict();
            self.kills = 0;
        } else if std::mem::replace(&mut self.planned, true) {
            return None;
        }
        self.planned = true;
        self.prediction()
    }

    fn end_round(&mut self, round: Round) {
        self.kills += round.kills;
        // faults > TP_1 × (sum / rounds) without a division; never in the first round, which has no earlier ones.
        let own = u128::from(round.page_faults) * u128::from(self.rounds) * 100;
        let exceeds = own > self.faults * u128::from(self.parameters.fault_percent);
        self.due |= exceeds || self.kills > self.parameters.kills;
        self.rounds += 1;
        self.faults += u128::from(round.page_faults);
    }
}

/// The available rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// FedHybrid's predictor.
    Predicted,
    /// The memory available at first, fixed.
    Initial,
    /// The memory available before each round.
    EveryRound,
}

impl Rule {
    /// The rule, before any measurement; the baselines have no parameters.
    pub fn start(self, parameters: Parameters) -> Box<dyn BudgetRule> {
        match self {
            Self::Predicted => Box::new(Predictor::new(parameters)),
            Self::Initial => Box::new(Measured { again: false, ..Measured::default() }),
            Self::EveryRound => Box::new(Measured { again: true, ..Measured::default() }),
        }
    }
}

/// A budget as measured: once, or before every round.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    again: bool,
    planned: bool,
    latest: Option<(Nanos, Bytes)>,
}

impl BudgetRule for Measured {
    fn observe(&mut self, sample: &Sample<'_>) -> Result<(), SampleError> {
        SampleError::check(sample, self.latest.map(|(time, _)| time))?;
        // The initial budget is the first that was measured, however late the first round begins.
        let kept = self.latest.filter(|_| !self.again).map_or(sample.available, |(_, first)| first);
        self.latest = Some((sample.time, kept));
        Ok(())
    }

    fn begin_round(&mut self) -> Option<Bytes> {
        let (_, available) = self.latest?;
        let wanted = self.again || !self.planned;
        self.planned = true;
        wanted.then_some(available)
    }

    fn end_round(&mut self, _round: Round) {}
}
