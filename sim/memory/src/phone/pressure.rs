//! Pressure-stall information (`kernel/sched/psi.c`): averages every two seconds, and the events of a window that wake
//! lmkd.

use haversack_devices::units::Nanos;

use super::lmkd::Lmkd;
use super::{Psi, PsiLine};

/// The window where no lmkd gives one: the kernel's own of a second.
const OWN_WINDOW: Nanos = Nanos(1_000_000_000);
/// How often a window is looked at while there are stalls (`UPDATES_PER_WINDOW`).
const UPDATES: u64 = 10;
/// How often averages are folded.
const PERIOD: Nanos = Nanos(2_000_000_000);

/// A share of a window that makes an event.
#[derive(Clone, Copy, Debug, Default)]
struct Trigger {
    window: Nanos,
    threshold: Nanos,
    start: Nanos,
    at_start: Nanos,
    before: Nanos,
    last: Option<Nanos>,
}

impl Trigger {
    fn reset(&mut self, now: Nanos, total: Nanos, before: Nanos) {
        (self.start, self.at_start, self.before) = (now, total, before);
    }

    /// Whether the stalls of the window that ends now reach the threshold; at most once a window.
    fn fires(&mut self, now: Nanos, total: Nanos) -> bool {
        let (elapsed, growth) = (now.saturating_sub(self.start), total.saturating_sub(self.at_start));
        let mut stalled = growth;
        if elapsed > self.window {
            self.reset(now, total, growth);
        } else {
            // What is left of the window before counts in proportion.
            let left = u128::from((self.window - elapsed).0);
            stalled += Nanos((u128::from(self.before.0) * left / u128::from(self.window.0)) as u64);
        }
        let fires = stalled >= self.threshold && self.last.is_none_or(|last| now >= last + self.window);
        if fires {
            self.last = Some(now);
        }
        fires
    }
}

/// Events of the two triggers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Events {
    pub(super) partial: bool,
    pub(super) complete: bool,
}

/// Stalls, summed and averaged. Index 0 is `some`, 1 is `full`.
#[derive(Clone, Debug, Default)]
pub(super) struct Pressure {
    total: [Nanos; 2],
    folded: [Nanos; 2],
    average: [[f64; 3]; 2],
    next_fold: Nanos,
    window: Nanos,
    triggers: Option<[Trigger; 2]>,
    /// Stalls may come until then; before it windows are looked at.
    until: Option<Nanos>,
    next_update: Nanos,
}

impl Pressure {
    pub(super) fn new(lmkd: Option<&Lmkd>) -> Self {
        let window = lmkd.map_or(OWN_WINDOW, |lmkd| lmkd.psi_window);
        let trigger = |threshold| Trigger { window, threshold, ..Trigger::default() };
        let triggers = lmkd.map(|lmkd| [trigger(lmkd.partial_stall), trigger(lmkd.complete_stall)]);
        Self { next_fold: PERIOD, window, triggers, next_update: Nanos::MAX, ..Self::default() }
    }

    /// Stalls begin: windows start anew, unless they run already.
    pub(super) fn begin(&mut self, now: Nanos) {
        if self.until.is_some() {
            return;
        }
        self.fold(now);
        for (trigger, &total) in self.triggers.iter_mut().flatten().zip(&self.total) {
            trigger.reset(now, total, Nanos::ZERO);
        }
        self.next_update = now + self.update();
        self.until = Some(now + self.window);
    }

    /// Adds the stalls between two moments between which there is no check.
    pub(super) fn record(&mut self, to: Nanos, some: Nanos, full: Nanos) {
        if some > Nanos::ZERO {
            self.total[0] += some;
            self.total[1] += full;
            self.until = Some(to + self.window);
        }
    }

    /// Between two looks at the windows; at least a nanosecond, so that time moves on.
    fn update(&self) -> Nanos {
        Nanos((self.window.0 / UPDATES).max(1))
    }

    /// When to look next.
    pub(super) fn next_check(&self) -> Option<Nanos> {
        self.until.map(|_| self.next_update.min(self.next_fold))
    }

    /// Looks at the windows, where it is time to.
    pub(super) fn check(&mut self, now: Nanos) -> Events {
        self.fold(now);
        let mut events = Events::default();
        let Some(until) = self.until.filter(|_| now >= self.next_update) else { return events };
        self.next_update = now + self.update();
        if let Some([some, full]) = &mut self.triggers {
            events.partial = some.fires(now, self.total[0]);
            events.complete = full.fires(now, self.total[1]);
        }
        if now >= until {
            self.until = None;
        }
        events
    }

    /// Folds the periods that ended into the averages. All stalls so far belong to the first.
    fn fold(&mut self, now: Nanos) {
        if now < self.next_fold {
            return;
        }
        let periods = (now - self.next_fold).0 / PERIOD.0 + 1;
        for line in 0..2 {
            let stalled = self.total[line] - self.folded[line];
            let percent = 100.0 * (stalled.0 as f64 / PERIOD.0 as f64).min(1.0);
            for (average, seconds) in self.average[line].iter_mut().zip([10.0, 60.0, 300.0]) {
                let keep = f64::exp(-PERIOD.seconds() / seconds);
                let first = *average * keep + percent * (1.0 - keep);
                *average = first * keep.powf((periods - 1) as f64);
            }
            self.folded[line] = self.total[line];
        }
        self.next_fold += PERIOD * periods;
    }

    pub(super) fn psi(&mut self, now: Nanos) -> Psi {
        self.fold(now);
        let line = |line: usize| PsiLine { average: self.average[line], total: self.total[line] };
        Psi { some: line(0), full: line(1) }
    }
}

#[cfg(test)]
mod tests {
    use haversack_devices::{load, load_system};

    use super::*;

    #[test]
    fn averages_approach_the_share_of_time_stalled() {
        let mut pressure = Pressure::new(None);
        // Half of each of 30 periods of 2 s: after 60 s avg10 is 50(1 - e^-6) = 49.88, avg60 50(1 - e^-1) = 31.6.
        for period in 0..30 {
            let start = PERIOD * period;
            pressure.begin(start);
            pressure.record(start + PERIOD, Nanos(PERIOD.0 / 2), Nanos::ZERO);
            pressure.check(start + PERIOD);
        }
        let psi = pressure.psi(PERIOD * 30);
        assert!((psi.some.average[0] - 49.876).abs() < 1e-3, "{psi:?}");
        assert!((psi.some.average[1] - 31.606).abs() < 1e-3, "{psi:?}");
        assert_eq!((psi.some.total, psi.full.total), (Nanos(30_000_000_000), Nanos::ZERO));
        // 20 s later, idle: e^-2 of it.
        let later = pressure.psi(PERIOD * 40);
        assert!((later.some.average[0] - 49.876 * f64::exp(-2.0)).abs() < 1e-3, "{later:?}");
    }

    #[test]
    fn a_window_fires_at_its_threshold_and_once() {
        let ms = |ms: u64| Nanos(ms * 1_000_000);
        let (system, device) = (load_system("android").unwrap(), load("galaxy-s22").unwrap());
        let aosp = Lmkd::new(&system, &device);
        let mut pressure = Pressure::new(Some(&aosp));
        pressure.begin(Nanos::ZERO);
        // 70 ms of 100 reach the partial threshold; the complete one of 700 ms is not reached, and neither fires again
        // within a second.
        let events: Vec<Events> = (1..=10)
            .map(|tenth| {
                pressure.record(ms(tenth * 100), ms(70), ms(70));
                pressure.check(ms(tenth * 100))
            })
            .collect();
        assert!(events[0].partial && !events[0].complete);
        assert!(events[1..].iter().all(|event| !event.partial));
        // 10 × 70 ms reach 700 ms in the tenth.
        assert!(events[9].complete && events[..9].iter().all(|event| !event.complete));
    }
}
