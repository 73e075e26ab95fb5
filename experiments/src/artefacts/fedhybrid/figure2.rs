//! Figure 2: one round of training on two phones of one chip and different memory, and what the kernel does on the
//! smaller one.

use haversack_devices::units::Nanos;
use haversack_reports::figure::{Axis, BarSeries, Bars, Figure, Look, Panel, Stack};
use haversack_reports::table::{Cell, Table};
use haversack_training::{PhoneReport, PhoneSpan};

use super::setting::{FEW_PICTURES, MOBILENET, OP10P, PICTURES, S22, on_phone, phone_name, scenario, system};
use crate::reproduce::{ArtefactError, Context, Outcome};

/// The phones, and as the reference names them.
const TWO: [(&str, &str); 2] = [(S22, "s22"), (OP10P, "op10p")];
const PAPER: &str = "paper";

/// A round on one phone.
struct Round {
    phone: &'static str,
    batch: u64,
    iterations: u32,
    report: PhoneReport,
}

impl Round {
    /// One epoch over a client's pictures by MNN, started over adb as a native process, on a phone without apps.
    fn simulate(context: &Context<'_>, phone: &'static str, batch: u64) -> Result<Self, ArtefactError> {
        let mut scenario = scenario(context, phone, MOBILENET.0, batch, "original")?;
        // The reading's iterations are of the larger batch: as many pictures at the smaller one take more.
        let pictures = context.reading_number("figure2-window")? * PICTURES as f64;
        scenario.iterations = (pictures / batch as f64).round() as u32;
        let native = system(context)?.constants.scores.native.value.0;
        let record = on_phone(context, &scenario, native, Vec::new())?;
        let report = record.phone.ok_or_else(|| anyhow::anyhow!("the run has no report of a phone"))?;
        Ok(Self { phone, batch, iterations: scenario.iterations, report })
    }

    const fn span(&self) -> &PhoneSpan {
        &self.report.run
    }

    fn seconds(&self) -> f64 {
        self.span().time.seconds()
    }

    /// Uninterruptible sleep, running and runnable, in per cent of the three.
    fn shares(&self) -> [f64; 3] {
        let states = &self.span().states;
        let parts = [states.sleeping, states.running, states.runnable];
        let total: Nanos = parts.into_iter().sum();
        parts.map(|part| part.seconds() / total.seconds() * 100.0)
    }

    /// The mean of what is in use, in per cent of what the kernel manages.
    fn used(&self) -> f64 {
        self.span().used_mean.as_f64() / self.report.managed.as_f64() * 100.0
    }

    /// Pages read from flash, by iteration.
    fn read(&self) -> f64 {
        self.span().read_from_flash() as f64 / f64::from(self.iterations)
    }

    /// Pages evicted, by iteration.
    fn evicted(&self) -> f64 {
        self.span().evicted() as f64 / f64::from(self.iterations)
    }

    /// Of the evicted pages those that are read again, in per cent; nothing where none is evicted.
    fn read_again(&self) -> Option<f64> {
        (self.span().evicted() > 0).then(|| self.read() / self.evicted() * 100.0)
    }

    /// The columns that every table of the figure begins with.
    fn head(&self) -> [Cell; 3] {
        [self.phone.into(), self.batch.into(), u64::from(self.iterations).into()]
    }
}

/// The round of either phone at `batch`.
fn rounds(context: &Context<'_>, batch: u64) -> Result<Vec<Round>, ArtefactError> {
    TWO.iter().map(|(phone, _)| Round::simulate(context, phone, batch)).collect()
}

pub(super) fn times(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    let mut table = Table::new(["phone", "batch", "iterations", "time_s", "asleep_s", "running_s", "runnable_s"]);
    let mut seconds = TWO.map(|_| Vec::new());
    let (mut names, mut ratios, mut paper) = (Vec::new(), Vec::new(), Vec::new());
    for batch in [FEW_PICTURES, PICTURES] {
        let both = rounds(context, batch)?;
        for (round, seconds) in both.iter().zip(&mut seconds) {
            let states = &round.span().states;
            let times = [round.span().time, states.sleeping, states.running, states.runnable];
            table.push(round.head().into_iter().chain(times.map(|time| time.seconds().into())))?;
            seconds.push(round.seconds());
        }
        let [s22, op10p] = both.as_slice() else { anyhow::bail!("the figure is of two phones") };
        let id = format!("fedhybrid/figure2a/batch-{batch}/s22/op10p/time-ratio");
        let ratio = s22.seconds() / op10p.seconds();
        names.push(format!("batch {batch}"));
        ratios.push(ratio);
        paper.push(context.row(&id)?.number());
        outcome.number(id, ratio);
    }
    let mut bars = Bars::new(names.clone()).show_values();
    for ((phone, _), seconds) in TWO.iter().zip(seconds) {
        bars = bars.series(BarSeries::new(phone_name(phone), seconds));
    }
    let ratios = Bars::new(names)
        .series(BarSeries::new("S22 over OnePlus", ratios))
        .series(BarSeries::new("S22 over OnePlus", paper).look(Look::Hatched))
        .show_values();
    outcome.figure = Some(
        Figure::new("FedHybrid, figure 2a: one round of MobileNetV2 on two phones of one chip")
            .note(format!("{} At batch 32 the paper's ratio is a bound: over so many times.", window(context)?))
            .columns(2)
            .panel_size(420, 320)
            .panel(Panel::new(bars).title("time of a round").y(Axis::new("time").unit("s").from_zero()))
            .panel(Panel::new(ratios).title("ratio").y(Axis::new("time").unit("times").from_zero())),
    );
    outcome.table = Some(table);
    notes(&mut outcome);
    outcome.notes.predicted.push("That the phones agree at batch 16, and what makes them differ at 32: no constant tells them apart but their memory and their screens, which a reserve of the kernel counts in.".into());
    Ok(outcome)
}

pub(super) fn states(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    const STATES: [(&str, &str, &str); 3] = [
        ("uninterruptible-sleep", "uninterruptible sleep", "asleep_percent"),
        ("running", "running", "running_percent"),
        ("runnable", "runnable", "runnable_percent"),
    ];
    let mut outcome = Outcome::default();
    let head = ["phone", "batch", "iterations"];
    let mut table = Table::new(head.into_iter().chain(STATES.map(|(.., column)| column)).chain(["used_percent"]));
    let both = rounds(context, PICTURES)?;
    let mut used = TWO.map(|_| None);
    for ((round, (_, subject)), paper) in both.iter().zip(TWO).zip(&mut used) {
        let numbers = round.shares().into_iter().chain([round.used()]);
        table.push(round.head().into_iter().chain(numbers.map(Into::into)))?;
        let id = format!("fedhybrid/figure2b/{subject}-batch-{PICTURES}/system/memory-used");
        *paper = context.row(&id)?.number();
        outcome.number(id, round.used());
    }
    // The paper gives the states on the S22 alone.
    let names: Vec<_> = both.iter().map(|round| phone_name(round.phone)).collect();
    let mut stack = Stack::new(names.iter().copied().chain([PAPER])).show_shares();
    for (index, (state, name, _)) in STATES.into_iter().enumerate() {
        let mut values: Vec<f64> = both.iter().map(|round| round.shares()[index]).collect();
        let id = format!("fedhybrid/figure2b/s22-batch-{PICTURES}/{state}/share-of-time");
        values.push(context.row(&id)?.number().unwrap_or_default());
        if let Some(s22) = values.first() {
            outcome.number(id, *s22);
        }
        stack = stack.part(name, values);
    }
    let memory = Bars::new(names)
        .series(BarSeries::new("memory", both.iter().map(Round::used)))
        .series(BarSeries::new("memory", used).look(Look::Hatched))
        .show_values();
    outcome.figure = Some(
        Figure::new("FedHybrid, figure 2b: the thread that trains, and the phone's memory, at batch 32")
            .note(format!("{} The bar of the paper is the Galaxy S22's.", window(context)?))
            .columns(2)
            .panel_size(440, 320)
            .panel(Panel::new(stack).title("states of the thread").y(Axis::new("share of time").unit("%").range(0.0, 100.0)))
            .panel(Panel::new(memory).title("memory in use").y(Axis::new("share").unit("%").range(0.0, 100.0))),
    );
    outcome.table = Some(table);
    notes(&mut outcome);
    outcome.notes.predicted.push("The share that runs, and both phones' memory in use.".into());
    outcome.notes.misses.push("Memory in use on the S22 is near all of it: here nothing leaves a phone without apps while the killer finds nobody that it may end, and reclaim stops at its high watermark, a hundredth or two below. The paper's tenth that is free would be pages of files that a monitor does not count as used, or memory that reclaim frees ahead of need.".into());
    Ok(outcome)
}

pub(super) fn pages(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let refaults = "fedhybrid/figure2c/s22-batch-32/kernel/page-refaults";
    let again = "fedhybrid/figure2c/s22-batch-32/kernel/evicted-re-accessed";
    let mut outcome = Outcome::default();
    let mut table = Table::new(["phone", "batch", "iterations", "evicted_pages", "read_pages", "read_again_percent"]);
    let both = rounds(context, PICTURES)?;
    for round in &both {
        let numbers = [Some(round.evicted()), Some(round.read()), round.read_again()].map(Into::into);
        table.push(round.head().into_iter().chain(numbers))?;
    }
    let Some(s22) = both.first() else { anyhow::bail!("no round was simulated") };
    outcome.number(refaults, s22.read());
    outcome.remark(refaults, format!("by iteration, of {} in a round; {:.0} are evicted", s22.iterations, s22.evicted()));
    match s22.read_again() {
        Some(share) => outcome.number(again, share),
        None => outcome.not_modelled(again, "nothing is evicted"),
    }
    let pages = |row: &str| -> Result<Option<f64>, ArtefactError> { Ok(context.row(row)?.number()) };
    let (stated, share) = (pages(refaults)?, pages(again)?);
    // Pages that the paper's two numbers make together.
    let stated_evicted = stated.zip(share).map(|(read, share)| read / share * 100.0);
    let simulated = [Some(s22.evicted()), Some(s22.read())];
    let counts = Bars::new(["evicted", "read again"])
        .series(BarSeries::new("pages", simulated.map(|pages| pages.map(|pages| pages / 1e3))))
        .series(
            BarSeries::new("pages", [stated_evicted, stated].map(|pages| pages.map(|pages| pages / 1e3)))
                .look(Look::Hatched),
        )
        .show_values();
    let shares = Bars::new([phone_name(S22)])
        .series(BarSeries::new("share", [s22.read_again()]))
        .series(BarSeries::new("share", [share]).look(Look::Hatched))
        .show_values();
    outcome.figure = Some(
        Figure::new("FedHybrid, figure 2c: pages that the Galaxy S22 evicts and reads again, at batch 32")
            .note(format!("{} Counts are those of an iteration.", window(context)?))
            .columns(2)
            .panel_size(380, 320)
            .panel(Panel::new(counts).title("pages of an iteration").y(Axis::new("pages").unit("thousands").from_zero()))
            .panel(Panel::new(shares).title("evicted pages that are read again").y(
                Axis::new("share").unit("%").range(0.0, 100.0),
            )),
    );
    outcome.table = Some(table);
    notes(&mut outcome);
    outcome.notes.predicted.push("Both counts: what reclaim takes, and what of it is read again.".into());
    Ok(outcome)
}

/// What a round is, in words.
fn window(context: &Context<'_>) -> Result<String, ArtefactError> {
    let iterations = context.reading_number("figure2-window")?;
    Ok(format!("A round is {iterations} iterations at batch 32, and as many pictures at 16."))
}

fn notes(outcome: &mut Outcome) {
    let notes = &mut outcome.notes;
    notes.calibrated.push("What the system holds on an idle phone and uses all the time, on the fit rows of figures 1c and 2. The kernel's work on a page and the flash's latency are those of their class.".into());
    notes.left_out.push("Read-ahead from swap is off, as on phones, and one thread waits at a time: others of the engine wait for it.".into());
    notes.left_out.push("Pages outside the system and the process: the paper's phones ran no apps either.".into());
}
