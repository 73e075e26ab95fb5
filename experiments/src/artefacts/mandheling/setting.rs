//! Shared by Mandheling's artefacts: phones, and the cost of a batch.

use haversack_devices::{Frequency, Joules};

use crate::artefacts::prelude::*;

/// The phone of tables 7 and 8, and that of tables 3 and 4.
pub(crate) const XIAOMI_11_PRO: &str = "xiaomi-11-pro";
pub(crate) const XIAOMI_10: &str = "xiaomi-10";

/// The cost of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BatchCost {
    pub(crate) time: Nanos,
    pub(crate) energy: Joules,
}

/// Batches in a mean if they differ ...
const BATCHES: u64 = 8;
/// ... and the distance between them: together they span more than the longest period of a scale factor, so that each
/// factor is due about as often as on average.
const APART: u64 = 4;
/// The batch from which on a governor behaves the same in each: its memory is much shorter than a batch.
const GOVERNED: u32 = 2;

/// The runs whose last batches give the time of `scenario`, after `warm_up` batches of training. Batches of Mandheling
/// differ by the scale factors that are due; all others are equal.
pub(crate) fn timed(scenario: &Scenario, warm_up: u64) -> Vec<Scenario> {
    if scenario.policy != "mandheling" {
        return vec![scenario.clone()];
    }
    let mut settled = scenario.clone();
    let governed = scenario.frequency == Frequency::Governor;
    settled.iterations = scenario.iterations.filter(|&asked| asked >= GOVERNED || !governed).or(Some(GOVERNED));
    let run = |batch: u64| with(&settled, &[("warm_up", &(warm_up + batch * APART).to_string())]);
    (0..BATCHES).map(run).collect()
}

/// The cost of a batch, the mean over `runs`, and the largest memory of the framework in one of them; `None` if
/// one is out of memory.
pub(crate) fn mean_batch(context: &Context<'_>, runs: &[Scenario]) -> Result<Option<(BatchCost, Bytes)>> {
    let (mut sum, mut most) = (BatchCost::default(), Bytes::ZERO);
    for run in runs {
        let Some(record) = context.run_if_it_ends(run)? else { return Ok(None) };
        sum.time += record.iteration;
        sum.energy += record.energy;
        most = most.max(record.reserved);
    }
    let count = runs.len().max(1);
    let mean = BatchCost { time: Nanos(sum.time.0 / count as u64), energy: sum.energy / count as f64 };
    Ok(Some((mean, most)))
}

/// The cost of a batch of `scenario` once scales have settled: the mean over the runs of [`timed`]; `None` if
/// it is out of memory.
pub(crate) fn batch_if_it_fits(context: &Context<'_>, scenario: &Scenario) -> Result<Option<BatchCost>> {
    let runs = timed(scenario, context.reading_number("settled")? as u64);
    Ok(mean_batch(context, &runs)?.map(|(mean, _)| mean))
}

/// As [`batch_if_it_fits`], where it does.
pub(crate) fn batch(context: &Context<'_>, scenario: &Scenario) -> Result<BatchCost> {
    let batch = batch_if_it_fits(context, scenario)?;
    batch.with_context(|| format!("{} is out of memory under {}", scenario.model, scenario.policy))
}
