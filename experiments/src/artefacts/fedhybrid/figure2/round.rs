//! A round of figure 2 on one phone, and what was noted of it; and the same round from several starts.

use haversack_training::{PhoneReport, PhoneSpan};

use super::super::setting::{MOBILENET, PICTURES, from_starts, on_phone, scenario, system};
use crate::artefacts::prelude::*;

/// A round on one phone.
pub(super) struct Round {
    pub(super) phone: &'static str,
    batch: u64,
    pub(super) iterations: u32,
    pub(super) report: PhoneReport,
}

impl Round {
    pub(super) fn seconds(&self) -> f64 {
        self.report.run.time.seconds()
    }

    pub(super) fn shares(&self) -> [f64; 3] {
        shares(&self.report.run)
    }

    /// The mean of what could not be had, `MemTotal` less `MemAvailable`, in per cent of what the kernel manages.
    pub(super) fn used(&self) -> f64 {
        self.report.run.unavailable_mean.as_f64() / self.report.managed.as_f64() * 100.0
    }

    /// The mean of all that is not free, likewise.
    pub(super) fn not_free(&self) -> f64 {
        self.report.run.used_mean.as_f64() / self.report.managed.as_f64() * 100.0
    }

    /// Pages of a round by iteration.
    fn by_iteration(&self, pages: u64) -> f64 {
        pages as f64 / f64::from(self.iterations)
    }

    /// Pages read from flash, by iteration.
    pub(super) fn read(&self) -> f64 {
        self.by_iteration(self.report.run.read_from_flash())
    }

    /// Pages evicted, by iteration.
    pub(super) fn evicted(&self) -> f64 {
        self.by_iteration(self.report.run.evicted())
    }

    /// Pages evicted to the swap partition and to files, to ZRAM, and dropped since flash has them, by iteration.
    pub(super) fn destinations(&self) -> [f64; 3] {
        let counters = &self.report.run.counters;
        let flash = counters.pswpout - counters.zram_out + counters.file_out;
        let dropped = self.report.run.evicted().saturating_sub(counters.pswpout + counters.file_out);
        [flash, counters.zram_out, dropped].map(|pages| self.by_iteration(pages))
    }

    /// What the paper's count may be: pages read from flash an iteration, all that were wanted again, and those read from
    /// flash in the whole round.
    pub(super) fn readings(&self) -> [f64; 3] {
        let round = self.report.run.read_from_flash() as f64;
        [self.read(), self.by_iteration(self.report.run.refaults()), round]
    }

    /// Of the evicted pages those that were wanted again, wherever they came from, in per cent.
    pub(super) fn wanted_again(&self) -> Option<f64> {
        let (span, evicted) = (&self.report.run, self.report.run.evicted());
        (evicted > 0).then(|| span.refaults() as f64 / evicted as f64 * 100.0)
    }

    /// Pages that came back from ZRAM, by iteration.
    pub(super) fn zram_faults(&self) -> f64 {
        self.by_iteration(self.report.run.counters.zram_in)
    }

    /// Of the evicted pages those that are read again, in per cent; `None` if none is evicted.
    pub(super) fn read_again(&self) -> Option<f64> {
        (self.report.run.evicted() > 0).then(|| self.read() / self.evicted() * 100.0)
    }

    /// The columns that every table of the figure begins with.
    pub(super) fn head(&self) -> (&'static str, [u64; 2]) {
        (self.phone, [self.batch, u64::from(self.iterations)])
    }
}

/// The run of a round: one epoch over a client's pictures by MNN, started over adb as a native process, on a phone
/// without apps.
pub(super) fn of_round(context: &Context<'_>, phone: &str, batch: u64) -> Result<Scenario> {
    let mut scenario = scenario(context, phone, MOBILENET.0, batch, "original")?;
    // The reading's iterations are of the larger batch: as many pictures at the smaller one take more.
    let pictures = context.reading_number("figure2-window")? * PICTURES as f64;
    scenario.iterations = Some((pictures / batch as f64).round() as u32);
    scenario.trainer_adj = Some(system(context)?.constants.scores.native.value.0);
    on_phone(context, scenario, None)
}

/// Uninterruptible sleep, running and runnable, in per cent of the three.
pub(super) fn shares(span: &PhoneSpan) -> [f64; 3] {
    let parts = [span.states.sleeping, span.states.running, span.states.runnable];
    let total: Nanos = parts.into_iter().sum();
    parts.map(|part| part.seconds() / total.seconds() * 100.0)
}

/// The same round from several starts.
pub(super) struct Starts(Vec<Round>);

impl Starts {
    /// Of `phone` at `batch`, once for all parts of the figure.
    pub(super) fn simulate(context: &Context<'_>, phone: &'static str, batch: u64) -> Result<std::sync::Arc<Self>> {
        context.once(format!("rounds of figure 2 {phone} {batch}"), || {
            let scenario = of_round(context, phone, batch)?;
            let iterations = scenario.iterations.unwrap_or_default();
            let of = |report| Round { phone, batch, iterations, report };
            Ok(Self(from_starts(context, &scenario)?.into_iter().map(of).collect()))
        })
    }

    /// One of them, of what is the same in all.
    pub(super) fn first(&self) -> Result<&Round> {
        self.0.first().context("no round was simulated")
    }

    pub(super) fn mean(&self, of: impl Fn(&Round) -> f64) -> f64 {
        self.0.iter().map(of).sum::<f64>() / self.0.len().max(1) as f64
    }

    /// The mean of what not every round has; `None` if none has it.
    pub(super) fn mean_of_some(&self, of: impl Fn(&Round) -> Option<f64>) -> Option<f64> {
        mean(&self.0.iter().filter_map(of).collect::<Vec<_>>())
    }

    pub(super) fn means<const N: usize>(&self, of: impl Fn(&Round) -> [f64; N]) -> [f64; N] {
        std::array::from_fn(|place| self.mean(|round| of(round)[place]))
    }

    /// The least and the largest.
    pub(super) fn spread(&self, of: impl Fn(&Round) -> f64) -> [f64; 2] {
        let values = || self.0.iter().map(&of);
        [values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max)]
    }

    /// In words: of how many starts it is the mean, and between what they lie.
    pub(super) fn words(&self, of: impl Fn(&Round) -> f64) -> String {
        let [least, most] = self.spread(of);
        format!("the mean of {} starts, from {least:.4} to {most:.4}", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use haversack_devices::units::Bytes;
    use haversack_memory::phone::Counters;
    use haversack_training::ThreadStates;

    use super::super::super::setting::S22;
    use super::*;

    fn round() -> Round {
        let seconds = |s: f64| Nanos::from_seconds(s);
        let states = ThreadStates { running: seconds(30.0), sleeping: seconds(60.0), runnable: seconds(10.0) };
        let counters = Counters {
            pgsteal_anon: 900,
            pgsteal_file: 100,
            pswpout: 900,
            zram_out: 600,
            file_out: 20,
            workingset_refault_anon: 500,
            workingset_refault_file: 60,
            pswpin: 500,
            zram_in: 350,
            file_in: 50,
            ..Counters::default()
        };
        let span =
            PhoneSpan { used_mean: Bytes(700), unavailable_mean: Bytes(600), counters, states, ..PhoneSpan::default() };
        // The last iteration alone is not what the figure is of.
        let report = PhoneReport { managed: Bytes(800), run: span, ..PhoneReport::default() };
        Round { phone: S22, batch: 32, iterations: 4, report }
    }

    #[test]
    fn shares_are_of_the_three_states_and_of_managed_memory() {
        // 60, 30 and 10 of 100 s; 600 of 800 bytes.
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        let [asleep, running, runnable] = round().shares();
        assert!(near(asleep, 60.0) && near(running, 30.0) && near(runnable, 10.0));
        assert!(near(round().used(), 75.0) && near(round().not_free(), 87.5));
    }

    #[test]
    fn pages_are_by_iteration_and_read_again_from_flash_alone() {
        // 500 pages swapped in, of which 350 from ZRAM, and 50 of files are 200 from flash, of 900 + 100 evicted.
        let round = round();
        assert_eq!((round.read(), round.evicted(), round.zram_faults()), (50.0, 250.0, 87.5));
        assert_eq!(round.read_again(), Some(20.0));
        // 900 − 600 swapped out and 20 written back go to flash, 600 to ZRAM; of the 1,000 the other 80 are dropped.
        assert_eq!(round.destinations(), [80.0, 150.0, 20.0]);
        // The count may be 50 an iteration, (500 + 60) / 4 with ZRAM's, or 200 in the round.
        assert_eq!(round.readings(), [50.0, 140.0, 200.0]);
        assert!((round.wanted_again().unwrap() - 56.0).abs() < 1e-9);
        let idle = Round { report: PhoneReport::default(), ..round };
        assert_eq!(idle.read_again(), None);
    }
}
