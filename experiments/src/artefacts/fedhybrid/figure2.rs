//! Figure 2: one round of training on two phones with the same chip and different memory, and the kernel's activity
//! on the smaller one.

use haversack_devices::calibration::Settings;
use haversack_training::{AtRest, PhoneReport, PhoneSpan, watch};
use haversack_workloads::Role;

use super::setting::{
    BERT, FEW_PICTURES, MOBILENET, OP10P, PICTURES, S22, TEXTS, from_starts, on_phone, phone_name, scenario, system,
};
use crate::artefacts::prelude::*;

/// The bars: network, samples, and the name in the reference.
const BARS: [((&str, &str), u64, &str); 2] =
    [(MOBILENET, PICTURES, "mobilenetv2-batch-32"), (BERT, TEXTS, "bert-batch-8")];
/// The memory that is not available on the phone before training.
fn idle(plan: &Plan) -> Result<Bytes> {
    let phone = plan.resolved.phone.as_deref().context("the run is on no phone in use")?;
    let seen = watch(AtRest::of(phone)?, phone, Nanos(1))?;
    let seen = seen.first().context("the phone was never observed")?;
    Ok(phone.memory.ram.saturating_sub(seen.available))
}

/// The memory of `model` on the phone in use, started over adb as in figure 2, in GB. From the bottom: the idle phone,
/// weights and their state, saved tensors, and everything else; then the peak of all unavailable memory, as the mean,
/// the least and the most over all starts; then the process's own tensors.
fn bar(context: &Context<'_>, model: &str, batch: u64) -> Result<([f64; 4], [f64; 3], f64)> {
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
    // All saved tensors exist when forward ends, close to the peak; at the peak itself backward may have freed some.
    let saved = record.peak_saved.min(record.peak_memory.saturating_sub(state));
    let [idle, state, saved] = [idle, state, saved].map(|bytes| bytes.as_f64() / 1e9);
    let parts = [idle, state, saved, (mean - idle - state - saved).max(0.0)];
    let most = [mean, most().fold(f64::INFINITY, f64::min), most().fold(0.0, f64::max)];
    Ok((parts, most, record.peak_memory.as_f64() / 1e9))
}

pub(super) fn figure1c(context: &Context<'_>) -> Result<Outcome> {
    let mut records = Records::of(
        "network,name,batch,subject,system_gb,state_gb,saved_gb,rest_gb,total_gb,least_gb,most_gb,process_gb",
    );
    for ((model, name), batch, subject) in BARS {
        records.row((model, name, batch, subject, bar(context, model, batch)?))?;
    }
    show(context, records, Outcome::default())
}

/// The phones, and their names in the reference.
const TWO: [(&str, &str); 2] = [(S22, "s22"), (OP10P, "op10p")];
const PAPER: &str = "paper";
/// The states of a thread, as named in the reference.
const STATES: [&str; 3] = ["uninterruptible-sleep", "running", "runnable"];

/// The rounds that answer a row at batch 32.
pub(crate) struct RoundsOfRow {
    /// On the phone with less memory and, for a ratio of times, on the other one.
    pub(crate) rounds: Vec<Scenario>,
    /// The state whose fraction is the answer; `None` for a ratio.
    state: Option<usize>,
}

impl RoundsOfRow {
    /// The rounds that answer `row`; `None` if it is not of batch 32, or neither a time nor a state.
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

    /// The answer, computed from the events in each of the rounds.
    pub(crate) fn answer(&self, spans: &[PhoneSpan]) -> Option<f64> {
        match (self.state, spans) {
            (Some(state), [little, ..]) => Some(shares(little)[state]),
            (None, [little, enough]) => Some(little.time.seconds() / enough.time.seconds()),
            _ => None,
        }
    }
}

/// A record of each start of the rounds on either phone at each of `batches`, with the pages per iteration that the
/// paper reports as evicted and read again.
fn rounds(context: &Context<'_>, batches: &[u64], papers: [Option<f64>; 2]) -> Result<Records> {
    let mut records = Records::of(
        "phone,batch,iterations,name,subject,time_s,asleep_s,running_s,runnable_s,ratio,asleep_percent,running_percent,\
         runnable_percent,used_percent,not_free_percent,evicted_pages,to_flash_pages,to_zram_pages,dropped_pages,read_pages,\
         zram_pages,wanted_again_pages,read_in_the_round_pages,read_again_percent,wanted_again_percent,paper_evicted,\
         paper_read",
    );
    for &batch in batches {
        let without = mean_time(&starts(context, OP10P, batch)?)?;
        let iterations = of_round(context, S22, batch)?.iterations.unwrap_or_default();
        for (phone, subject) in TWO {
            for report in starts(context, phone, batch)?.iter() {
                let head = (phone, [batch, u64::from(iterations)], [phone_name(phone), subject]);
                let PhoneSpan { time, states, .. } = &report.run;
                let times = [*time, states.sleeping, states.running, states.runnable].map(Nanos::seconds);
                let ratio = time.seconds() / without;
                let (pages, again) = pages_of(report, iterations);
                records.row((head, times, ratio, shares(&report.run), memory(report), pages, again, papers))?;
            }
        }
    }
    Ok(records)
}

pub(super) fn times(context: &Context<'_>) -> Result<Outcome> {
    let records = rounds(context, &[FEW_PICTURES, PICTURES], [None; 2])?;
    let mut outcome = show(context, records, Outcome::default())?;
    draw_deficit(context, &mut outcome)?;
    if context.full {
        list_extents(context, &mut outcome)?;
    }
    Ok(outcome)
}

pub(super) fn states(context: &Context<'_>) -> Result<Outcome> {
    let mut records = rounds(context, &[PICTURES], [None; 2])?;
    // The paper gives the states only for the S22.
    let stated = |state| {
        let id = format!("fedhybrid/figure2b/s22-batch-{PICTURES}/{state}/share-of-time");
        Ok(context.paper(&id)?.unwrap_or_default())
    };
    let stated = STATES.into_iter().map(stated).collect::<Result<Vec<f64>>>()?;
    let head = (PAPER, [PICTURES, 0], [PAPER, ""], [0.0; 5], stated);
    records.row((head, [0.0; 10], [None::<f64>; 4]))?;
    show(context, records, Outcome::default())
}

pub(super) fn pages(context: &Context<'_>) -> Result<Outcome> {
    let paper = |metric: &str| context.paper(&format!("fedhybrid/figure2c/s22-batch-32/kernel/{metric}"));
    let (read, share) = (paper("page-refaults")?, paper("evicted-re-accessed")?);
    // Pages computed from the paper's two numbers.
    let evicted = read.zip(share).map(|(read, share)| read / share * 100.0);
    show(context, rounds(context, &[PICTURES], [evicted, read])?, Outcome::default())
}

/// The means of unavailable memory (`MemTotal` less `MemAvailable`) and of all memory that is not free, in percent of
/// the memory that the kernel manages.
fn memory(PhoneReport { run, managed, .. }: &PhoneReport) -> [f64; 2] {
    [run.unavailable_mean, run.used_mean].map(|bytes| bytes.as_f64() / managed.as_f64() * 100.0)
}

/// First, pages per iteration: evicted in total, of these to the swap partition and to files, to ZRAM, and dropped
/// because flash has them; read from flash, brought back from ZRAM, and all refaults; and last the pages read from
/// flash in the whole round. Second, the percentage of evicted pages that are read again from flash, and that are
/// brought back from anywhere.
fn pages_of(PhoneReport { run, .. }: &PhoneReport, iterations: u32) -> ([f64; 8], [Option<f64>; 2]) {
    let (counters, evicted, read) = (&run.counters, run.evicted(), run.read_from_flash());
    let flash = counters.pswpout - counters.zram_out + counters.file_out;
    let dropped = evicted.saturating_sub(counters.pswpout + counters.file_out);
    let of_round = [evicted, flash, counters.zram_out, dropped, read, counters.zram_in, run.refaults()];
    let [evicted_by, flash, zram, dropped, read_by, back, refaults] =
        of_round.map(|pages| pages as f64 / f64::from(iterations));
    let again = [read_by / evicted_by * 100.0, run.refaults() as f64 / evicted as f64 * 100.0];
    let pages = [evicted_by, flash, zram, dropped, read_by, back, refaults, read as f64];
    (pages, again.map(|share| (evicted > 0).then_some(share)))
}

/// The run of a round: one epoch over a client's pictures by MNN, started over adb as a native process, on a
/// phone without apps.
fn of_round(context: &Context<'_>, phone: &str, batch: u64) -> Result<Scenario> {
    let mut scenario = scenario(context, phone, MOBILENET.0, batch, "original")?;
    // The reading gives iterations of the larger batch: the same number of pictures takes more at the smaller one.
    let pictures = context.reading_number("figure2-window")? * PICTURES as f64;
    scenario.iterations = Some((pictures / batch as f64).round() as u32);
    scenario.trainer_adj = Some(system(context)?.constants.scores.native.value.0);
    on_phone(context, scenario, None)
}

/// Uninterruptible sleep, running and runnable, in percent of the three.
fn shares(span: &PhoneSpan) -> [f64; 3] {
    let parts = [span.states.sleeping, span.states.running, span.states.runnable];
    let total: Nanos = parts.into_iter().sum();
    parts.map(|part| part.seconds() / total.seconds() * 100.0)
}

/// The round of `phone` at `batch` from several starts, once for all parts of the figure.
fn starts(context: &Context<'_>, phone: &str, batch: u64) -> Result<Arc<Vec<PhoneReport>>> {
    let key = format!("rounds of figure 2 {phone} {batch}");
    context.once(key, || from_starts(context, &of_round(context, phone, batch)?))
}

fn mean_time(reports: &[PhoneReport]) -> Result<f64> {
    let times: Vec<f64> = reports.iter().map(|report| report.run.time.seconds()).collect();
    mean(&times).context("no round was simulated")
}

/// Memory of the phones of the curve, in GiB.
const MEMORIES: [f64; 9] = [6.5, 7.0, 7.5, 8.0, 8.5, 9.0, 9.5, 10.0, 11.0];

/// Estimates of an idle phone's memory: the label, and the fraction of the middle estimate.
fn holdings(context: &Context<'_>) -> Result<[(&'static str, f64); 3]> {
    let system = system(context)?;
    let (resident, middle) = (&system.constants.resident, system.resident(&context.device(S22)?).total().as_f64());
    let of_middle = |bytes: Bytes| bytes.as_f64() / middle;
    Ok([("middle", 1.0), ("least", of_middle(resident.least.value)), ("most", of_middle(resident.most.value))])
}

/// A point: the missing memory in GB, and the time of an iteration relative to that with enough memory.
fn point(context: &Context<'_>, ram: f64, share: f64, peak: Bytes, undisturbed: f64) -> Result<(f64, f64)> {
    let system = system(context)?;
    let resident = system.resident(&context.device(S22)?);
    let parts = [("kernel", resident.kernel), ("anonymous", resident.anonymous), ("file", resident.file)];
    let held = |bytes: Bytes| bytes.as_f64() * share / 1e9;
    // The resident memory must not shrink with the phone's here.
    let constants = parts.iter().map(|(name, bytes)| (*name, held(*bytes))).chain([("of", 1.0)]);
    let system_set: Settings =
        constants.map(|(name, size)| (format!("resident.{name}"), format!("{size} GB"))).collect();
    let device_set = Settings::from([("ram".to_owned(), format!("{ram} GiB"))]);
    let scenario = Scenario { device_set, system_set, ..of_round(context, S22, PICTURES)? };
    let reports = if context.full {
        from_starts(context, &scenario)?
    } else {
        vec![context.plan(&scenario)?.run()?.phone.context("the run has no report of a phone")?]
    };
    let first = reports.first().context("no round was simulated")?;
    let needs = parts.iter().map(|(_, bytes)| held(*bytes)).sum::<f64>() + peak.as_f64() / 1e9;
    Ok((needs - first.managed.as_f64() / 1e9, mean_time(&reports)? / undisturbed))
}

/// Draws the curves, and the paper's point at the deficit of its own phone.
fn draw_deficit(context: &Context<'_>, outcome: &mut Outcome) -> Result<()> {
    let peak = context.run(&of_round(context, OP10P, PICTURES)?)?.peak_memory;
    let undisturbed = mean_time(&starts(context, OP10P, PICTURES)?)?;
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

/// Sizes of extents, from the default down.
const EXTENTS: [&str; 3] = ["64 KiB", "32 KiB", "16 KiB"];

/// Lists the slow-down at each size of extent.
fn list_extents(context: &Context<'_>, outcome: &mut Outcome) -> Result<()> {
    let undisturbed = mean_time(&starts(context, OP10P, PICTURES)?)?;
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

    fn report() -> PhoneReport {
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
        // The figure covers all iterations, not only the last.
        PhoneReport { managed: Bytes(800), run: span, ..PhoneReport::default() }
    }

    #[test]
    fn shares_are_of_the_three_states_and_of_managed_memory() {
        // 60, 30 and 10 of 100 s; 600 and 700 of 800 bytes.
        let near = |found: &[f64], expected: &[f64]| found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(near(&shares(&report().run), &[60.0, 30.0, 10.0]));
        assert!(near(&memory(&report()), &[75.0, 87.5]));
    }

    #[test]
    fn pages_are_by_iteration_and_read_again_from_flash_alone() {
        let (pages, [read_again, wanted_again]) = pages_of(&report(), 4);
        // Of 900 + 100 evicted pages, 900 − 600 swapped out and 20 written back go to flash, 600 to ZRAM; the
        // other 80 are dropped.
        assert_eq!(pages[..4], [250.0, 80.0, 150.0, 20.0]);
        // 500 pages are swapped in, 350 of them from ZRAM, and 50 of files: 200 are from flash. The paper's count may
        // be 50 per iteration, (500 + 60) / 4 including ZRAM's, or 200 in the round.
        assert_eq!(pages[4..], [50.0, 87.5, 140.0, 200.0]);
        assert_eq!(read_again, Some(20.0));
        assert!((wanted_again.unwrap() - 56.0).abs() < 1e-9);
        assert_eq!(pages_of(&PhoneReport::default(), 4).1, [None; 2]);
    }
}
