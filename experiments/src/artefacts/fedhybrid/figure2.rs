//! Figure 2: one round of training on two phones of one chip and different memory, and what the kernel does on the
//! smaller one.

mod deficit;
mod extents;
mod round;

use haversack_training::PhoneSpan;

use super::setting::{FEW_PICTURES, OP10P, PICTURES, S22, phone_name};
use crate::artefacts::prelude::*;
use round::{Round, Starts, of_round, shares};

/// The phones, and as the reference names them.
const TWO: [(&str, &str); 2] = [(S22, "s22"), (OP10P, "op10p")];
const PAPER: &str = "paper";
/// The states of a thread as the reference names them, and for people.
const STATES: [(&str, &str); 3] =
    [("uninterruptible-sleep", "uninterruptible sleep"), ("running", "running"), ("runnable", "runnable")];

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

/// The rounds of either phone at `batch`.
fn rounds(context: &Context<'_>, batch: u64) -> Result<Vec<Arc<Starts>>> {
    TWO.iter().map(|(phone, _)| Starts::simulate(context, phone, batch)).collect()
}

pub(super) fn times(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome =
        Outcome::of("phone,batch,iterations,time_s,asleep_s,running_s,runnable_s,least_time_s,most_time_s");
    let mut grid = Grid::default();
    for batch in [FEW_PICTURES, PICTURES] {
        let (both, name) = (rounds(context, batch)?, format!("batch {batch}"));
        for starts in &both {
            let times = starts.means(|round| {
                let PhoneSpan { time, states, .. } = &round.report.run;
                [*time, states.sleeping, states.running, states.runnable].map(Nanos::seconds)
            });
            let first = starts.first()?;
            outcome.row((first.head(), times, starts.spread(Round::seconds)))?;
            grid.put([&name, phone_name(first.phone), "time"], Some(times[0]), None);
        }
        let [s22, op10p] = both.as_slice() else { bail!("the figure is of two phones") };
        let id = format!("fedhybrid/figure2a/batch-{batch}/s22/op10p/time-ratio");
        let without = op10p.mean(Round::seconds);
        let ratio = |round: &Round| round.seconds() / without;
        outcome.remark(&id, s22.words(ratio));
        grid.answer(context, &mut outcome, &id, [&name, "S22 over OnePlus", "ratio"], s22.mean(ratio))?;
    }
    outcome.bars("time of a round", grid.bars("time"), from_zero("time", "s"));
    outcome.bars("ratio of the two", grid.bars("ratio"), from_zero("ratio", "x"));
    deficit::draw(context, &mut outcome)?;
    if context.full {
        extents::list(context, &mut outcome)?;
    }
    Ok(outcome)
}

pub(super) fn states(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of(
        "phone,batch,iterations,asleep_percent,running_percent,runnable_percent,used_percent,not_free_percent",
    );
    let both = rounds(context, PICTURES)?;
    let mut grid = Grid::default();
    for (starts, (_, subject)) in both.iter().zip(TWO) {
        let (first, used) = (starts.first()?, starts.mean(Round::used));
        outcome.row((first.head(), starts.means(Round::shares), [used, starts.mean(Round::not_free)]))?;
        let id = format!("fedhybrid/figure2b/{subject}-batch-{PICTURES}/system/memory-used");
        outcome.remark(&id, starts.words(Round::used));
        grid.answer(context, &mut outcome, &id, [phone_name(first.phone), "memory", "used"], used)?;
    }
    // The paper gives the states on the S22 alone.
    let names = both.iter().map(|starts| Ok(phone_name(starts.first()?.phone))).collect::<Result<Vec<_>>>()?;
    let mut stack = Stack::new(names.into_iter().chain([PAPER])).show_shares();
    for (index, (state, name)) in STATES.into_iter().enumerate() {
        let share = |round: &Round| round.shares()[index];
        let mut values: Vec<f64> = both.iter().map(|starts| starts.mean(share)).collect();
        let id = format!("fedhybrid/figure2b/s22-batch-{PICTURES}/{state}/share-of-time");
        values.push(context.paper(&id)?.unwrap_or_default());
        if let Some(s22) = both.first() {
            outcome.remark(&id, s22.words(share));
            outcome.number(id, s22.mean(share));
        }
        stack = stack.part(name, values);
    }
    let percent = |label| axis(label, "%").range(0.0, 100.0);
    outcome.panel("states of the thread", stack, Axis::default(), percent("share of time"));
    outcome.bars("memory in use", grid.bars("used"), percent("share"));
    Ok(outcome)
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
