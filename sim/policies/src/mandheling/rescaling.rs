//! How often a scale factor is taken anew (section 3.4): half as often as it was seen to change.

use serde::{Deserialize, Serialize};

/// The longest interval between changes that is believed in, in batches: the upper end of figure 4(b).
pub const LONGEST_INTERVAL: u64 = 60;

/// The shortest history that tells much: of three batches, none with a change and all with one are too alike.
pub const LEAST_HISTORY: u64 = 4;

/// Decides in which batches one scale factor is taken anew.
///
/// Each K batches in which that was done are the history from which the next K follow: where they show a change every
/// f batches on average, the factor is taken anew every f / 2 batches, and at least once in [`LONGEST_INTERVAL`] / 2.
/// The first K batches have no history: in each of them the factor is taken anew.
///
/// A check sees only whether the factor differs from the last one that was taken. Of a factor that jumps between two
/// values it misses every even number of jumps, so that counting what it sees would lengthen the interval with the
/// period, and then the period with the interval. Where such jumps come at random every f batches, a share
/// s = (1 − exp(−2g / f)) / 2 of checks g batches apart sees a change; f is worked out from that. Where none sees one,
/// or half of them or more, half a change is added or taken away.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[must_use]
pub struct Rescaler {
    /// K.
    remembered: u64,
    /// Its share of a period, as a fraction, by which it comes after the first of all factors.
    place: (u64, u64),
    period: u64,
    last: Option<u64>,
    next: u64,
    checks: u64,
    changes: u64,
    /// Batches since the history began.
    reach: u64,
}

impl Rescaler {
    /// Remembers `remembered` batches, at least [`LEAST_HISTORY`]; it is number `place` of `of` factors, whose turns are spread
    /// evenly over the batches so that all batches have as many.
    pub fn new(remembered: u64, place: u64, of: u64) -> Self {
        let (remembered, place) = (remembered.max(LEAST_HISTORY), (place % of.max(1), of.max(1)));
        Self { remembered, place, period: 1, last: None, next: 0, checks: 0, changes: 0, reach: 0 }
    }

    /// Whether the factor is to be taken anew in `batch`.
    pub fn due(&self, batch: u64) -> bool {
        batch >= self.next
    }

    /// The factor was taken anew in `batch`, and had `changed` or not since it last was.
    pub fn observe(&mut self, batch: u64, changed: bool) {
        self.reach += self.last.map_or(1, |last| batch.saturating_sub(last));
        self.last = Some(batch);
        self.checks += 1;
        self.changes += u64::from(changed);
        if self.checks == self.remembered {
            let half = (self.interval() / 2.0).floor() as u64;
            self.period = half.clamp(1, LONGEST_INTERVAL / 2);
            (self.checks, self.changes, self.reach) = (0, 0, 0);
        }
        self.next = self.turn_after(batch);
    }

    /// Batches from one turn to the next.
    pub fn period(&self) -> u64 {
        self.period
    }

    /// Batches from one change to the next, f.
    fn interval(&self) -> f64 {
        let checks = self.checks as f64;
        let gap = self.reach as f64 / checks;
        let share = (self.changes as f64).clamp(0.5, checks / 2.0 - 0.5) / checks;
        -2.0 * gap / (1.0 - 2.0 * share).ln()
    }

    /// The first batch after `batch` that is its own of a period's.
    fn turn_after(&self, batch: u64) -> u64 {
        let (place, of) = self.place;
        let own = place * self.period / of;
        let passed = (batch + self.period - own) % self.period;
        batch + self.period - passed
    }
}
