//! Figure 2: one round of training on two phones of one chip and different memory, and what the kernel does on the
//! smaller one.

use haversack_training::{PhoneReport, PhoneSpan};

use super::setting::{
    FEW_PICTURES, MOBILENET, OP10P, PICTURES, S22, on_phone, on_two_phones, phone_name, scenario, system,
};
use crate::artefacts::prelude::*;

pub(super) static FIGURE2A: Artefact =
    on_two_phones("figure2a", "time of an iteration on two phones of one chip and different memory", times);
pub(super) static FIGURE2B: Artefact =
    on_two_phones("figure2b", "where the time of a thread goes while pages are reclaimed", states);
pub(super) static FIGURE2C: Artefact = on_two_phones("figure2c", "pages that are evicted and read again", pages);

/// The phones, and as the reference names them.
const TWO: [(&str, &str); 2] = [(S22, "s22"), (OP10P, "op10p")];
const PAPER: &str = "paper";
/// The states of a thread as the reference names them, and for people.
const STATES: [(&str, &str); 3] =
    [("uninterruptible-sleep", "uninterruptible sleep"), ("running", "running"), ("runnable", "runnable")];

/// A round on one phone.
struct Round {
    phone: &'static str,
    batch: u64,
    iterations: u32,
    report: PhoneReport,
}

impl Round {
    fn simulate(context: &Context<'_>, phone: &'static str, batch: u64) -> Result<Self> {
        let scenario = of_round(context, phone, batch)?;
        let report = context.run(&scenario)?.phone.context("the run has no report of a phone")?;
        Ok(Self { phone, batch, iterations: scenario.iterations, report })
    }

    const fn span(&self) -> &PhoneSpan {
        &self.report.run
    }

    fn seconds(&self) -> f64 {
        self.span().time.seconds()
    }

    fn shares(&self) -> [f64; 3] {
        shares(self.span())
    }

    /// The mean of what could not be had, `MemTotal` less `MemAvailable`, in per cent of what the kernel manages.
    fn used(&self) -> f64 {
        self.span().unavailable_mean.as_f64() / self.report.managed.as_f64() * 100.0
    }

    /// The mean of all that is not free, likewise.
    fn not_free(&self) -> f64 {
        self.span().used_mean.as_f64() / self.report.managed.as_f64() * 100.0
    }

    /// Pages of a round by iteration.
    fn by_iteration(&self, pages: u64) -> f64 {
        pages as f64 / f64::from(self.iterations)
    }

    /// Pages read from flash, by iteration.
    fn read(&self) -> f64 {
        self.by_iteration(self.span().read_from_flash())
    }

    /// Pages evicted, by iteration.
    fn evicted(&self) -> f64 {
        self.by_iteration(self.span().evicted())
    }

    /// Pages evicted to the swap partition and to files, to ZRAM, and dropped since flash has them, by iteration.
    fn destinations(&self) -> [f64; 3] {
        let counters = &self.span().counters;
        let flash = counters.pswpout - counters.zram_out + counters.file_out;
        let dropped = self.span().evicted().saturating_sub(counters.pswpout + counters.file_out);
        [flash, counters.zram_out, dropped].map(|pages| self.by_iteration(pages))
    }

    /// What the paper's count may be: pages read from flash an iteration, all that were wanted again, and those read from
    /// flash in the whole round.
    fn readings(&self) -> [f64; 3] {
        let round = self.span().read_from_flash() as f64;
        [self.read(), self.by_iteration(self.span().refaults()), round]
    }

    /// Of the evicted pages those that were wanted again, wherever they came from, in per cent.
    fn wanted_again(&self) -> Option<f64> {
        let (span, evicted) = (self.span(), self.span().evicted());
        (evicted > 0).then(|| span.refaults() as f64 / evicted as f64 * 100.0)
    }

    /// Pages that came back from ZRAM, by iteration.
    fn zram_faults(&self) -> f64 {
        self.by_iteration(self.span().counters.zram_in)
    }

    /// Of the evicted pages those that are read again, in per cent; `None` if none is evicted.
    fn read_again(&self) -> Option<f64> {
        (self.span().evicted() > 0).then(|| self.read() / self.evicted() * 100.0)
    }

    /// The columns that every table of the figure begins with.
    fn head(&self) -> (&'static str, [u64; 2]) {
        (self.phone, [self.batch, u64::from(self.iterations)])
    }
}

/// The run of a round: one epoch over a client's pictures by MNN, started over adb as a native process, on a phone
/// without apps.
fn of_round(context: &Context<'_>, phone: &str, batch: u64) -> Result<Scenario> {
    let mut scenario = scenario(context, phone, MOBILENET.0, batch, "original")?;
    // The reading's iterations are of the larger batch: as many pictures at the smaller one take more.
    let pictures = context.reading_number("figure2-window")? * PICTURES as f64;
    scenario.iterations = (pictures / batch as f64).round() as u32;
    scenario.trainer_adj = Some(system(context)?.constants.scores.native.value.0);
    on_phone(context, scenario, None)
}

/// Uninterruptible sleep, running and runnable, in per cent of the three.
fn shares(span: &PhoneSpan) -> [f64; 3] {
    let parts = [span.states.sleeping, span.states.running, span.states.runnable];
    let total: Nanos = parts.into_iter().sum();
    parts.map(|part| part.seconds() / total.seconds() * 100.0)
}

/// What answers a row at batch 32 by what happens in rounds.
pub(crate) struct RoundsOfRow {
    /// On the phone with little memory and, for a ratio of times, on the other one.
    pub(crate) rounds: Vec<Scenario>,
    /// The state whose share it is; `None` for a ratio.
    state: Option<usize>,
}

impl RoundsOfRow {
    /// What answers `row`; `None` if it is not of batch 32, or neither a time nor a state.
    pub(crate) fn new(context: &Context<'_>, row: &ReferenceRow) -> Result<Option<Self>> {
        if !row.subject.ends_with(&format!("batch {PICTURES}")) {
            return Ok(None);
        }
        let state = STATES.iter().position(|(state, ..)| *state == row.method);
        let phones: &[&str] = match (state, row.metric.as_str()) {
            (Some(_), _) => &[S22],
            (None, "time-ratio") => &[S22, OP10P],
            _ => return Ok(None),
        };
        let rounds = phones.iter().map(|phone| of_round(context, phone, PICTURES)).collect::<Result<_, _>>()?;
        Ok(Some(Self { rounds, state }))
    }

    /// The answer, by what happened in each of the rounds.
    pub(crate) fn answer(&self, spans: &[PhoneSpan]) -> Option<f64> {
        match (self.state, spans) {
            (Some(state), [little, ..]) => Some(shares(little)[state]),
            (None, [little, enough]) => Some(little.time.seconds() / enough.time.seconds()),
            _ => None,
        }
    }
}

/// The round of either phone at `batch`.
fn rounds(context: &Context<'_>, batch: u64) -> Result<Vec<Round>> {
    TWO.iter().map(|(phone, _)| Round::simulate(context, phone, batch)).collect()
}

fn times(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of("phone,batch,iterations,time_s,asleep_s,running_s,runnable_s");
    let mut grid = Grid::default();
    for batch in [FEW_PICTURES, PICTURES] {
        let (both, name) = (rounds(context, batch)?, format!("batch {batch}"));
        for round in &both {
            let PhoneSpan { time, states, .. } = round.span();
            let times = [*time, states.sleeping, states.running, states.runnable];
            outcome.row((round.head(), times.map(Nanos::seconds)))?;
            grid.put([&name, phone_name(round.phone), "time"], Some(round.seconds()), None);
        }
        let [s22, op10p] = both.as_slice() else { bail!("the figure is of two phones") };
        let id = format!("fedhybrid/figure2a/batch-{batch}/s22/op10p/time-ratio");
        let ratio = s22.seconds() / op10p.seconds();
        grid.answer((context, &mut outcome), &id, [&name, "S22 over OnePlus", "ratio"], ratio)?;
    }
    outcome.bars("time of a round", grid.bars("time"), from_zero("time", "s"));
    outcome.bars("ratio of the two", grid.bars("ratio"), from_zero("ratio", "x"));
    Ok(outcome)
}

fn states(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of(
        "phone,batch,iterations,asleep_percent,running_percent,runnable_percent,used_percent,not_free_percent",
    );
    let both = rounds(context, PICTURES)?;
    let mut grid = Grid::default();
    for (round, (_, subject)) in both.iter().zip(TWO) {
        outcome.row((round.head(), round.shares(), [round.used(), round.not_free()]))?;
        let id = format!("fedhybrid/figure2b/{subject}-batch-{PICTURES}/system/memory-used");
        grid.answer((context, &mut outcome), &id, [phone_name(round.phone), "memory", "used"], round.used())?;
    }
    // The paper gives the states on the S22 alone.
    let mut stack = Stack::new(both.iter().map(|round| phone_name(round.phone)).chain([PAPER])).show_shares();
    for (index, (state, name)) in STATES.into_iter().enumerate() {
        let mut values: Vec<f64> = both.iter().map(|round| round.shares()[index]).collect();
        let id = format!("fedhybrid/figure2b/s22-batch-{PICTURES}/{state}/share-of-time");
        values.push(context.paper(&id)?.unwrap_or_default());
        if let Some(s22) = values.first() {
            outcome.number(id, *s22);
        }
        stack = stack.part(name, values);
    }
    let percent = |label| axis(label, "%").range(0.0, 100.0);
    outcome.panel("states of the thread", stack, Axis::default(), percent("share of time"));
    outcome.bars("memory in use", grid.bars("used"), percent("share"));
    Ok(outcome)
}

fn pages(context: &Context<'_>) -> Result<Outcome> {
    let refaults = "fedhybrid/figure2c/s22-batch-32/kernel/page-refaults";
    let again = "fedhybrid/figure2c/s22-batch-32/kernel/evicted-re-accessed";
    let mut outcome = Outcome::of(
        "phone,batch,iterations,evicted_pages,to_flash_pages,to_zram_pages,dropped_pages,read_pages,zram_pages,\
         wanted_again_pages,read_in_the_round_pages,read_again_percent,wanted_again_percent",
    );
    let both = rounds(context, PICTURES)?;
    for round in &both {
        let [_, again, of_round] = round.readings();
        let back = [round.read(), round.zram_faults(), again, of_round];
        let shares = [round.read_again(), round.wanted_again()];
        outcome.row((round.head(), round.evicted(), round.destinations(), back, shares))?;
    }
    let Some(s22) = both.first() else { bail!("no round was simulated") };
    outcome.number(refaults, s22.read());
    outcome.remark(
        refaults,
        format!(
            "read from flash by iteration, of {} in a round; all that is wanted again comes to {:.0} an iteration, and what \
             is read from flash to {:.0} in the round",
            s22.iterations,
            s22.readings()[1],
            s22.readings()[2]
        ),
    );
    outcome.number_or(again, s22.read_again().ok_or_else(|| "nothing is evicted".to_owned()));
    if let Some(share) = s22.wanted_again() {
        outcome.remark(again, format!("read from flash; with what comes back from ZRAM {share:.0} %"));
    }
    let to = s22.destinations().map(|pages| pages / 1e3);
    let destinations =
        Stack::new([phone_name(S22)]).part("flash", [to[0]]).part("ZRAM", [to[1]]).part("dropped", [to[2]]);
    outcome.panel(
        "where an iteration's pages go",
        destinations.show_totals(),
        Axis::default(),
        from_zero("pages", "thousands"),
    );
    let (stated, share) = (context.paper(refaults)?, context.paper(again)?);
    // Pages that the paper's two numbers make together.
    let stated_evicted = stated.zip(share).map(|(read, share)| read / share * 100.0);
    let mut grid = Grid::default();
    for (name, simulated, stated) in [("evicted", s22.evicted(), stated_evicted), ("read again", s22.read(), stated)] {
        grid.put([name, "pages", "thousands"], Some(simulated / 1e3), stated.map(|pages| pages / 1e3));
    }
    grid.put([phone_name(S22), "share", "read again"], s22.read_again(), share);
    outcome.bars("pages of an iteration", grid.bars("thousands"), from_zero("pages", "thousands"));
    let percent = axis("share", "%").range(0.0, 100.0);
    outcome.bars("evicted pages that are read again", grid.bars("read again"), percent);
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use haversack_devices::units::Bytes;
    use haversack_memory::phone::Counters;
    use haversack_training::ThreadStates;

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
        assert_eq!(round.wanted_again(), Some(56.0));
        let idle = Round { report: PhoneReport::default(), ..round };
        assert_eq!(idle.read_again(), None);
    }
}
