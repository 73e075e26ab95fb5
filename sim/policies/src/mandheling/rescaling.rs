//! How often a scale factor is taken anew (section 3.4): half as often as it was seen to change.

use std::collections::VecDeque;

/// The longest interval between changes that is believed in, in batches: the upper end of figure 4(b).
///
/// A check sees only whether the factor differs from the last one that was taken. Of a factor that jumps between two
/// values it misses every even number of jumps, so the interval that it sees grows with the period, and the period
/// with it: unbounded, the two would never settle.
pub const LONGEST_INTERVAL: u64 = 60;

/// Decides in which batches one scale factor is taken anew.
///
/// It remembers the last K batches in which that was done. Where they show a change every f batches on average, the
/// factor is taken anew every f / 2 batches, and at least once in [`LONGEST_INTERVAL`] / 2; where they show none, f is
/// taken for as long as they reach back. Until there are K of them the factor is taken anew in every batch.
#[derive(Clone, Debug)]
pub struct Rescaler {
    history: VecDeque<Check>,
    remembered: usize,
    /// Its share of a period, as a fraction, by which it comes after the others.
    place: (u64, u64),
    period: u64,
    last: Option<u64>,
    next: u64,
}

/// One batch in which the factor was taken anew.
#[derive(Clone, Copy, Debug)]
struct Check {
    /// Batches since the one before.
    gap: u64,
    changed: bool,
}

impl Rescaler {
    /// Remembers `remembered` batches; it is number `place` of `of` factors, whose turns are spread evenly over the
    /// batches so that all batches have as many. At least one is remembered, and of at least one it is the first.
    #[must_use]
    pub fn new(remembered: usize, place: u64, of: u64) -> Self {
        let remembered = remembered.max(1);
        let history = VecDeque::with_capacity(remembered);
        Self { history, remembered, place: (place, of.max(1)), period: 1, last: None, next: 0 }
    }

    /// Whether the factor is to be taken anew in `batch`.
    #[must_use]
    pub fn due(&self, batch: u64) -> bool {
        batch >= self.next
    }

    /// The factor was taken anew in `batch`, and had `changed` or not since it last was.
    pub fn observe(&mut self, batch: u64, changed: bool) {
        let gap = self.last.map_or(1, |last| batch.saturating_sub(last));
        if self.history.len() == self.remembered {
            self.history.pop_front();
        }
        self.history.push_back(Check { gap, changed });
        self.last = Some(batch);
        self.period = if self.history.len() < self.remembered { 1 } else { self.half_an_interval() };
        self.next = self.turn_after(batch);
    }

    /// Batches from one turn to the next.
    #[must_use]
    pub fn period(&self) -> u64 {
        self.period
    }

    fn half_an_interval(&self) -> u64 {
        let reach: u64 = self.history.iter().map(|check| check.gap).sum();
        let changes = self.history.iter().filter(|check| check.changed).count() as u64;
        let doubled = 2 * changes.max(1);
        (reach / doubled).clamp(1, LONGEST_INTERVAL / 2)
    }

    /// The first batch after `batch` that is its own of a period's.
    fn turn_after(&self, batch: u64) -> u64 {
        let (place, of) = self.place;
        let own = (place % of) * self.period / of;
        let passed = (batch + self.period - own) % self.period;
        batch + self.period - passed
    }
}
