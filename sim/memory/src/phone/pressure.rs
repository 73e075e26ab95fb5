//! Pressure-stall information (`kernel/sched/psi.c`): averages every two seconds, and the window events that wake lmkd.

use haversack_devices::{Device, Fraction, Nanos, System};

use super::{Lmkd, Psi, PsiLine};

/// How stalls of tasks become stalls of the phone.
///
/// The kernel determines `some` and `full` for each core and sums them, weighted by each core's busy time
/// (`collect_percpu_times`, `kernel/sched/psi.c`): a single stalled task on one of eight busy cores is an eighth of a
/// stall. A core is in `full` if all tasks that run on it wait for memory (`test_state`), where kswapd's own work
/// counts as a stall, too (`balance_pgdat`). Tasks move between cores many times within the two seconds of a sum, so
/// here all cores have the same weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Cores of the phone, at least one.
    cores: f64,
    /// The share of a core's time in which it is busy with work that does not wait for memory.
    others: f64,
}

impl Spread {
    /// A single core without other work.
    pub const ONE: Self = Self { cores: 1.0, others: 0.0 };

    /// The cores of `device`, with the load of those of `system`.
    pub fn of(system: &System, device: &Device) -> Self {
        let cores: f64 = device.constants.cpu.iter().map(|cluster| cluster.cores.value.0).sum();
        Self { cores: cores.max(1.0), others: system.constants.clocks.others.value.0.clamp(0.0, 1.0) }
    }

    /// The shares of a moment that are `some` and `full` stalls while `stalled` tasks wait and `working` others work.
    pub fn now(&self, stalled: u32, working: u32) -> [Fraction; 2] {
        let without = |tasks: u32| (1.0 - 1.0 / self.cores).powi(i32::try_from(tasks).unwrap_or(i32::MAX));
        self.lines(1.0 - without(stalled), without(working))
    }

    /// The same for a `span` in which tasks stall for `total` altogether, independently of each other.
    pub fn over(&self, span: Nanos, total: Nanos) -> [Fraction; 2] {
        let tasks = total.seconds() / span.seconds().max(f64::MIN_POSITIVE);
        self.lines(1.0 - (-tasks / self.cores).exp(), 1.0)
    }

    fn lines(&self, some: f64, alone: f64) -> [Fraction; 2] {
        [Fraction(some), Fraction(some * (1.0 - self.others) * alone)]
    }
}

/// The window without lmkd: the kernel's own of one second.
const OWN_WINDOW: Nanos = Nanos(1_000_000_000);
/// Checks per window while there are stalls (`UPDATES_PER_WINDOW`).
const UPDATES: u64 = 10;
/// The interval of updating averages.
const PERIOD: Nanos = Nanos(2_000_000_000);

/// The share of a window that triggers an event.
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

    /// Whether the stalls of the window that ends now reach the threshold; at most once per window.
    fn fires(&mut self, now: Nanos, total: Nanos) -> bool {
        let (elapsed, growth) = (now.saturating_sub(self.start), total.saturating_sub(self.at_start));
        let mut stalled = growth;
        if elapsed > self.window {
            self.reset(now, total, growth);
        } else {
            // The rest of the previous window counts in proportion.
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

/// Whether each of the two triggers fired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Events {
    pub(super) partial: bool,
    pub(super) complete: bool,
}

/// Stalls, summed and averaged. Index 0 is `some`, 1 is `full`.
#[derive(Clone, Debug, Default)]
pub(super) struct Pressure {
    /// Cache: the tasks of the previous moment and their result, since most moments equal the one before.
    known: ([u32; 2], [f64; 2]),
    total: [Nanos; 2],
    folded: [Nanos; 2],
    average: [[f64; 3]; 2],
    next_fold: Nanos,
    window: Nanos,
    triggers: Option<[Trigger; 2]>,
    /// The time until which stalls may occur; windows are checked before it.
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

    /// Stalls begin: starts the windows, unless they are running already.
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

    /// Adds the stalls of a `span` up to `to` in which `tasks` are the numbers of stalled and of other working threads;
    /// the span must contain no check.
    pub(super) fn note(&mut self, to: Nanos, span: Nanos, tasks: [u32; 2], spread: &Spread) {
        if self.known.0 != tasks {
            let [stalled, working] = tasks;
            self.known = (tasks, spread.now(stalled, working).map(|share| share.0));
        }
        let [some, full] = self.known.1.map(|share| span.times(share));
        self.record(to, some, full);
    }

    fn record(&mut self, to: Nanos, some: Nanos, full: Nanos) {
        if some > Nanos::ZERO {
            self.total[0] += some;
            self.total[1] += full;
            self.until = Some(to + self.window);
        }
    }

    /// The interval between two checks of the windows; at least a nanosecond, so that time advances.
    fn update(&self) -> Nanos {
        Nanos((self.window.0 / UPDATES).max(1))
    }

    /// The time of the next check.
    pub(super) fn next_check(&self) -> Option<Nanos> {
        self.until.map(|_| self.next_update.min(self.next_fold))
    }

    /// Checks the windows, if it is time.
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

    /// Adds the ended periods to the averages. All stalls so far belong to the first period.
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
    fn a_stall_of_one_task_is_one_of_its_core() {
        let spread = Spread { cores: 8.0, others: 0.5 };
        let shares = |stalled, working| spread.now(stalled, working).map(|share| share.0);
        assert_eq!(shares(0, 3), [0.0, 0.0]);
        assert_eq!(shares(1, 0), [0.125, 0.0625]);
        // A second task is on the first one's core in one case of eight; a working task takes an eighth of the cores.
        assert_eq!(shares(2, 1), [0.234375, 0.234375 * 0.5 * 0.875]);
        // 0.8 s of stalls in 1 s, spread at random: 1 − e^−0.1.
        let [some, full] = spread.over(Nanos(1_000_000_000), Nanos(800_000_000));
        assert!((some.0 - 0.09516).abs() < 1e-5 && (full.0 - some.0 / 2.0).abs() < 1e-12);
        assert_eq!(
            [Spread::ONE.now(3, 0), Spread::ONE.now(1, 1)].map(|lines| lines.map(|line| line.0)),
            [[1.0, 1.0], [1.0, 0.0]]
        );
    }

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
