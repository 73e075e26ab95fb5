//! Figure 2: one round of training on two phones of one chip and different memory, and what the kernel does on the
//! smaller one.

use haversack_devices::calibration::Settings;
use haversack_training::{AtRest, PhoneReport, PhoneSpan, watch};
use haversack_workloads::Role;

use super::setting::{
    BERT, FEW_PICTURES, MOBILENET, OP10P, PICTURES, S22, TEXTS, from_starts, on_phone, phone_name, scenario, system,
};
use crate::artefacts::prelude::*;

/// The bars: network and samples, and as the reference names them.
const BARS: [((&str, &str), u64, &str); 2] =
    [(MOBILENET, PICTURES, "mobilenetv2-batch-32"), (BERT, TEXTS, "bert-batch-8")];
/// A bar.
struct Bar {
    /// From its foot: what an idle phone holds, weights and their state, saved tensors, and all else, in GB.
    parts: [f64; 4],
    /// The most of all memory that could not be had: the mean of all starts, the least and the most, in GB.
    most: [f64; 3],
    /// What the process alone takes of tensors.
    process: f64,
}

/// What could not be had of the phone's memory before anybody trains.
fn idle(plan: &Plan) -> Result<Bytes> {
    let phone = plan.resolved.phone.as_deref().context("the run is on no phone in use")?;
    let seen = watch(AtRest::of(phone)?, phone, Nanos(1))?;
    let seen = seen.first().context("nobody has looked at the phone")?;
    Ok(phone.memory.ram.saturating_sub(seen.available))
}

/// Runs `model` on the phone in use, started over adb as in figure 2.
fn bar(context: &Context<'_>, model: &str, batch: u64) -> Result<Bar> {
    let system = system(context)?;
    let alone = scenario(context, OP10P, model, batch, "original")?;
    let trainer_adj = Some(system.constants.scores.native.value.0);
    let in_use = on_phone(context, Scenario { trainer_adj, ..alone.clone() }, None)?;
    let reports = from_starts(context, &in_use)?;
    let most = || reports.iter().map(|report| report.run.unavailable_peak.as_f64() / 1e9);
    let mean = mean(&most().collect::<Vec<_>>()).context("no run was simulated")?;
    let idle = idle(&context.plan(&in_use)?)?;
    let plan = context.plan(&alone)?;
    let record = plan.run()?;
    let state = Bytes(plan.graph.bytes_of(Role::is_state).at(batch));
    // What is saved is all there when forward ends, near the peak; by the peak itself backward may have let go of some.
    let saved = record.peak_saved.min(record.peak_memory.saturating_sub(state));
    let [idle, state, saved] = [idle, state, saved].map(|bytes| bytes.as_f64() / 1e9);
    Ok(Bar {
        parts: [idle, state, saved, (mean - idle - state - saved).max(0.0)],
        most: [mean, most().fold(f64::INFINITY, f64::min), most().fold(0.0, f64::max)],
        process: record.peak_memory.as_f64() / 1e9,
    })
}

pub(super) fn figure1c(context: &Context<'_>) -> Result<Outcome> {
    let mut records = Records::of(
        "network,name,batch,subject,system_gb,state_gb,saved_gb,rest_gb,total_gb,least_gb,most_gb,process_gb",
    );
    for ((model, name), batch, subject) in BARS {
        let Bar { parts, most, process } = bar(context, model, batch)?;
        records.row((model, name, batch, subject, parts, most, process))?;
    }
    show(context, records, Outcome::default())
}

/// The phones, and as the reference names them.
const TWO: [(&str, &str); 2] = [(S22, "s22"), (OP10P, "op10p")];
const PAPER: &str = "paper";
/// The states of a thread as the reference names them.
const STATES: [&str; 3] = ["uninterruptible-sleep", "running", "runnable"];

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
        let state = STATES.iter().position(|state| *state == row.method);
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

/// The rounds of either phone at `batch`.
fn rounds(context: &Context<'_>, batch: u64) -> Result<Vec<Arc<Starts>>> {
    TWO.iter().map(|(phone, _)| Starts::simulate(context, phone, batch)).collect()
}

pub(super) fn times(context: &Context<'_>) -> Result<Outcome> {
    let mut records = Records::of(
        "phone,batch,iterations,time_s,asleep_s,running_s,runnable_s,least_time_s,most_time_s,name,ratio,of_starts",
    );
    for batch in [FEW_PICTURES, PICTURES] {
        let both = rounds(context, batch)?;
        let without = both.last().context("the figure is of two phones")?.mean(Round::seconds);
        let ratio = |round: &Round| round.seconds() / without;
        for starts in &both {
            let times = starts.means(|round| {
                let PhoneSpan { time, states, .. } = &round.report.run;
                [*time, states.sleeping, states.running, states.runnable].map(Nanos::seconds)
            });
            let first = starts.first()?;
            let spread = starts.spread(Round::seconds);
            let name = phone_name(first.phone);
            records.row((first.head(), times, spread, name, starts.mean(ratio), starts.words(ratio)))?;
        }
    }
    let mut outcome = show(context, records, Outcome::default())?;
    draw_deficit(context, &mut outcome)?;
    if context.full {
        list_extents(context, &mut outcome)?;
    }
    Ok(outcome)
}

pub(super) fn states(context: &Context<'_>) -> Result<Outcome> {
    let mut records = Records::of(
        "phone,batch,iterations,asleep_percent,running_percent,runnable_percent,used_percent,not_free_percent,\
         name,subject,used,asleep,running,runnable",
    );
    for (starts, (_, subject)) in rounds(context, PICTURES)?.iter().zip(TWO) {
        let first = starts.first()?;
        let memory = [starts.mean(Round::used), starts.mean(Round::not_free)];
        let [asleep, running, runnable] = [0, 1, 2].map(|state| starts.words(|round| round.shares()[state]));
        let words = [starts.words(Round::used), asleep, running, runnable];
        records.row((first.head(), starts.means(Round::shares), memory, [phone_name(first.phone), subject], words))?;
    }
    // The paper gives the states on the S22 alone.
    let stated = |state| {
        let id = format!("fedhybrid/figure2b/s22-batch-{PICTURES}/{state}/share-of-time");
        Ok(context.paper(&id)?.unwrap_or_default())
    };
    let stated = STATES.into_iter().map(stated).collect::<Result<Vec<f64>>>()?;
    records.row((PAPER, [PICTURES, 0], stated, [0.0; 2], [PAPER, ""], [""; 4]))?;
    show(context, records, Outcome::default())
}

pub(super) fn pages(context: &Context<'_>) -> Result<Outcome> {
    let refaults = "fedhybrid/figure2c/s22-batch-32/kernel/page-refaults";
    let again = "fedhybrid/figure2c/s22-batch-32/kernel/evicted-re-accessed";
    let mut outcome = Outcome::of(
        "phone,batch,iterations,evicted_pages,to_flash_pages,to_zram_pages,dropped_pages,read_pages,zram_pages,\
         wanted_again_pages,read_in_the_round_pages,read_again_percent,wanted_again_percent",
    );
    let both = rounds(context, PICTURES)?;
    for starts in &both {
        let [_, again, of_round] = starts.means(Round::readings);
        let back = [starts.mean(Round::read), starts.mean(Round::zram_faults), again, of_round];
        let shares = [starts.mean_of_some(Round::read_again), starts.mean_of_some(Round::wanted_again)];
        let evicted = starts.mean(Round::evicted);
        outcome.row((starts.first()?.head(), evicted, starts.means(Round::destinations), back, shares))?;
    }
    let Some(s22) = both.first() else { bail!("no round was simulated") };
    let [read, wanted, of_round] = s22.means(Round::readings);
    outcome.number(refaults, read);
    outcome.remark(
        refaults,
        format!(
            "read from flash by iteration, of {} in a round, {}; all that is wanted again comes to {wanted:.0} an iteration, \
             and what is read from flash to {of_round:.0} in the round",
            s22.first()?.iterations,
            s22.words(Round::read),
        ),
    );
    let share_again = s22.mean_of_some(Round::read_again);
    outcome.number_or(again, share_again.ok_or_else(|| "nothing is evicted".to_owned()));
    if let Some(share) = s22.mean_of_some(Round::wanted_again) {
        outcome.remark(again, format!("read from flash; with what comes back from ZRAM {share:.0} %"));
    }
    let to = s22.means(Round::destinations).map(|pages| pages / 1e3);
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
    let evicted = s22.mean(Round::evicted);
    for (name, simulated, stated) in [("evicted", evicted, stated_evicted), ("read again", read, stated)] {
        grid.put([name, "pages", "thousands"], Some(simulated / 1e3), stated.map(|pages| pages / 1e3));
    }
    grid.put([phone_name(S22), "share", "read again"], share_again, share);
    outcome.bars("pages of an iteration", grid.bars("thousands"), from_zero("pages", "thousands"));
    let percent = axis("share", "%").range(0.0, 100.0);
    outcome.bars("evicted pages that are read again", grid.bars("read again"), percent);
    Ok(outcome)
}

/// A round on one phone.
struct Round {
    phone: &'static str,
    batch: u64,
    iterations: u32,
    report: PhoneReport,
}

impl Round {
    fn seconds(&self) -> f64 {
        self.report.run.time.seconds()
    }

    fn shares(&self) -> [f64; 3] {
        shares(&self.report.run)
    }

    /// The mean of what could not be had, `MemTotal` less `MemAvailable`, in per cent of what the kernel manages.
    fn used(&self) -> f64 {
        self.report.run.unavailable_mean.as_f64() / self.report.managed.as_f64() * 100.0
    }

    /// The mean of all that is not free, likewise.
    fn not_free(&self) -> f64 {
        self.report.run.used_mean.as_f64() / self.report.managed.as_f64() * 100.0
    }

    /// Pages of a round by iteration.
    fn by_iteration(&self, pages: u64) -> f64 {
        pages as f64 / f64::from(self.iterations)
    }

    /// Pages read from flash, by iteration.
    fn read(&self) -> f64 {
        self.by_iteration(self.report.run.read_from_flash())
    }

    /// Pages evicted, by iteration.
    fn evicted(&self) -> f64 {
        self.by_iteration(self.report.run.evicted())
    }

    /// Pages evicted to the swap partition and to files, to ZRAM, and dropped since flash has them, by iteration.
    fn destinations(&self) -> [f64; 3] {
        let counters = &self.report.run.counters;
        let flash = counters.pswpout - counters.zram_out + counters.file_out;
        let dropped = self.report.run.evicted().saturating_sub(counters.pswpout + counters.file_out);
        [flash, counters.zram_out, dropped].map(|pages| self.by_iteration(pages))
    }

    /// What the paper's count may be: pages read from flash an iteration, all that were wanted again, and those read from
    /// flash in the whole round.
    fn readings(&self) -> [f64; 3] {
        let round = self.report.run.read_from_flash() as f64;
        [self.read(), self.by_iteration(self.report.run.refaults()), round]
    }

    /// Of the evicted pages those that were wanted again, wherever they came from, in per cent.
    fn wanted_again(&self) -> Option<f64> {
        let (span, evicted) = (&self.report.run, self.report.run.evicted());
        (evicted > 0).then(|| span.refaults() as f64 / evicted as f64 * 100.0)
    }

    /// Pages that came back from ZRAM, by iteration.
    fn zram_faults(&self) -> f64 {
        self.by_iteration(self.report.run.counters.zram_in)
    }

    /// Of the evicted pages those that are read again, in per cent; `None` if none is evicted.
    fn read_again(&self) -> Option<f64> {
        (self.report.run.evicted() > 0).then(|| self.read() / self.evicted() * 100.0)
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
    scenario.iterations = Some((pictures / batch as f64).round() as u32);
    scenario.trainer_adj = Some(system(context)?.constants.scores.native.value.0);
    on_phone(context, scenario, None)
}

/// Uninterruptible sleep, running and runnable, in per cent of the three.
fn shares(span: &PhoneSpan) -> [f64; 3] {
    let parts = [span.states.sleeping, span.states.running, span.states.runnable];
    let total: Nanos = parts.into_iter().sum();
    parts.map(|part| part.seconds() / total.seconds() * 100.0)
}

/// The same round from several starts.
struct Starts(Vec<Round>);

impl Starts {
    /// Of `phone` at `batch`, once for all parts of the figure.
    fn simulate(context: &Context<'_>, phone: &'static str, batch: u64) -> Result<Arc<Self>> {
        context.once(format!("rounds of figure 2 {phone} {batch}"), || {
            let scenario = of_round(context, phone, batch)?;
            let iterations = scenario.iterations.unwrap_or_default();
            let of = |report| Round { phone, batch, iterations, report };
            Ok(Self(from_starts(context, &scenario)?.into_iter().map(of).collect()))
        })
    }

    /// One of them, of what is the same in all.
    fn first(&self) -> Result<&Round> {
        self.0.first().context("no round was simulated")
    }

    fn mean(&self, of: impl Fn(&Round) -> f64) -> f64 {
        self.0.iter().map(of).sum::<f64>() / self.0.len().max(1) as f64
    }

    /// The mean of what not every round has; `None` if none has it.
    fn mean_of_some(&self, of: impl Fn(&Round) -> Option<f64>) -> Option<f64> {
        mean(&self.0.iter().filter_map(of).collect::<Vec<_>>())
    }

    fn means<const N: usize>(&self, of: impl Fn(&Round) -> [f64; N]) -> [f64; N] {
        std::array::from_fn(|place| self.mean(|round| of(round)[place]))
    }

    /// The least and the largest.
    fn spread(&self, of: impl Fn(&Round) -> f64) -> [f64; 2] {
        let values = || self.0.iter().map(&of);
        [values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max)]
    }

    /// In words: of how many starts it is the mean, and between what they lie.
    fn words(&self, of: impl Fn(&Round) -> f64) -> String {
        let [least, most] = self.spread(of);
        format!("the mean of {} starts, from {least:.4} to {most:.4}", self.0.len())
    }
}

/// Memory of the phones of the curve, in GiB.
const MEMORIES: [f64; 9] = [6.5, 7.0, 7.5, 8.0, 8.5, 9.0, 9.5, 10.0, 11.0];

/// What an idle phone holds: for people, and how much of the middle.
fn holdings(context: &Context<'_>) -> Result<[(&'static str, f64); 3]> {
    let system = system(context)?;
    let (resident, middle) = (&system.constants.resident, system.resident(&context.device(S22)?).total().as_f64());
    let of_middle = |bytes: Bytes| bytes.as_f64() / middle;
    Ok([("middle", 1.0), ("least", of_middle(resident.least.value)), ("most", of_middle(resident.most.value))])
}

/// A point: how much memory is missing, in GB, and how many times as long as without want an iteration takes.
fn point(context: &Context<'_>, ram: f64, share: f64, peak: Bytes, undisturbed: f64) -> Result<(f64, f64)> {
    let system = system(context)?;
    let resident = system.resident(&context.device(S22)?);
    let parts = [("kernel", resident.kernel), ("anonymous", resident.anonymous), ("file", resident.file)];
    let held = |bytes: Bytes| bytes.as_f64() * share / 1e9;
    // What is held does not shrink with the phone here.
    let constants = parts.iter().map(|(name, bytes)| (*name, held(*bytes))).chain([("of", 1.0)]);
    let system_set: Settings =
        constants.map(|(name, held)| (format!("resident.{name}"), format!("{held} GB"))).collect();
    let device_set = Settings::from([("ram".to_owned(), format!("{ram} GiB"))]);
    let scenario = Scenario { device_set, system_set, ..of_round(context, S22, PICTURES)? };
    let reports = if context.full {
        from_starts(context, &scenario)?
    } else {
        vec![context.plan(&scenario)?.run()?.phone.context("the run has no report of a phone")?]
    };
    let times: Vec<f64> = reports.iter().map(|report| report.run.time.seconds()).collect();
    let (first, time) = reports.first().zip(mean(&times)).context("no round was simulated")?;
    let needs = parts.iter().map(|(_, bytes)| held(*bytes)).sum::<f64>() + peak.as_f64() / 1e9;
    Ok((needs - first.managed.as_f64() / 1e9, time / undisturbed))
}

/// Draws the curves, and the paper's point at the deficit of its own phone.
fn draw_deficit(context: &Context<'_>, outcome: &mut Outcome) -> Result<()> {
    let peak = context.run(&of_round(context, OP10P, PICTURES)?)?.peak_memory;
    let undisturbed = Starts::simulate(context, OP10P, PICTURES)?.mean(Round::seconds);
    let of = |(name, share): (&'static str, f64)| {
        let at = |ram: &f64| point(context, *ram, share, peak, undisturbed);
        Ok((name, MEMORIES.par_iter().map(at).collect::<Result<Vec<_>>>()?))
    };
    let curves: Vec<(&str, Vec<(f64, f64)>)> = holdings(context)?.into_par_iter().map(of).collect::<Result<_>>()?;
    let mut lines = Lines::new();
    for (name, points) in curves {
        if name == "middle" {
            let own = MEMORIES.iter().position(|ram| (ram - 8.0).abs() < 0.01).and_then(|place| points.get(place));
            let stated = context.paper(&format!("fedhybrid/figure2a/batch-{PICTURES}/s22/op10p/time-ratio"))?;
            if let Some((own, stated)) = own.zip(stated) {
                lines = lines.series(Series::new("paper", [(own.0, stated)]).look(Look::Hatched));
            }
            let figures = points.iter().map(|(missing, slower)| format!("{missing:.2} GB: {slower:.2}"));
            outcome.list("slow-down by the memory that is missing", figures);
        }
        lines = lines.series(Series::new(format!("idle phone, {name}"), points));
    }
    outcome.panel("by the memory that is missing", lines, axis("memory missing", "GB"), from_zero("time", "x"));
    Ok(())
}

/// Extents, from the usual ones down.
const EXTENTS: [&str; 3] = ["64 KiB", "32 KiB", "16 KiB"];

/// Lists the slow-down at each size of extent.
fn list_extents(context: &Context<'_>, outcome: &mut Outcome) -> Result<()> {
    let undisturbed = Starts::simulate(context, OP10P, PICTURES)?.mean(Round::seconds);
    let figures = EXTENTS.map(|extent| {
        let system_set = Settings::from([("reclaim.extent".to_owned(), extent.to_owned())]);
        let rounds = from_starts(context, &Scenario { system_set, ..of_round(context, S22, PICTURES)? })?;
        let ratios: Vec<f64> = rounds.iter().map(|report| report.run.time.seconds() / undisturbed).collect();
        let mean = mean(&ratios).context("no round was simulated")?;
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        Ok(format!("{extent}: {mean:.2}, from {least:.2} to {most:.2}"))
    });
    outcome.list("slow-down by extents", figures.into_iter().collect::<Result<Vec<_>>>()?);
    Ok(())
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
        assert!((round.wanted_again().unwrap() - 56.0).abs() < 1e-9);
        let idle = Round { report: PhoneReport::default(), ..round };
        assert_eq!(idle.read_again(), None);
    }
}
