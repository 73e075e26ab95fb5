//! Figure 13: the arena under a budget that falls within an iteration, for three steps.

use super::setting::{BOARD, RESNET_IMAGENET, artefact, scenario};
use crate::artefacts::prelude::*;
use crate::scenario::Step;

pub(super) static ARTEFACT: Artefact =
    artefact("figure13", "the arena under a budget that falls within an iteration, by its step", run);

const STEPS: [u64; 3] = [30, 100, 400];

/// What one step does.
struct Trial {
    step: u64,
    /// What saved tensors take right after the cut.
    effective: Bytes,
    /// Time of system calls and copying.
    paging: Nanos,
    given_up: u64,
    iteration: Nanos,
}

fn trial(context: &Context<'_>, step: u64, before: Bytes, after: Bytes) -> Result<Trial> {
    let plain = scenario(context, BOARD, RESNET_IMAGENET)?;
    let mut scenario = under(&plain, "daf", &[("step_mb", &step.to_string())]);
    scenario.iterations = 1;
    scenario.activation_budget = Some(Budget::Bytes(before));
    let at = context.run(&scenario)?.forward;
    scenario.budget_walls.activations = vec![Step { at, budget: Budget::Bytes(after) }];
    let record = context.run(&scenario)?;
    Ok(Trial {
        step,
        effective: record.saved_after_cut.unwrap_or_default(),
        paging: record.breakdown.paging,
        given_up: record.given_up,
        iteration: record.iteration,
    })
}

fn run(context: &Context<'_>) -> Result<Outcome> {
    let [before, after] = context.reading_numbers("budget-cut")?[..] else {
        bail!("the reading `budget-cut` is not two numbers")
    };
    let bytes = |megabytes: f64| Bytes((megabytes * 1e6) as u64);
    let trials: Vec<Trial> =
        STEPS.iter().map(|&step| trial(context, step, bytes(before), bytes(after))).collect::<Result<_, _>>()?;
    let mut outcome = Outcome::of("step_mb,effective_mb,paging_ms,gradients_given_up,iteration_ms");
    outcome.quantity("memory allowed", "B", [bytes(after).as_f64()]);
    for one in &trials {
        outcome.quantity(&format!("memory kept by steps of {} MB", one.step), "B", [one.effective.as_f64()]);
        outcome.quantity(&format!("paging by steps of {} MB", one.step), "s", [one.paging.seconds()]);
        let [paging, iteration] = [one.paging, one.iteration].map(|time| time.seconds() * 1e3);
        outcome.row([one.step as f64, one.effective.megabytes(), paging, one.given_up as f64, iteration])?;
    }
    context.judge(&mut outcome, "daf/figure13/jetson-agx-xavier/steps-30/100/400-mb/effective-memory")?;
    let names = || STEPS.map(|step| format!("{step} MB"));
    let effective = columns(names(), &trials, [("in use", |one| one.effective.megabytes())]);
    let effective = effective.series(BarSeries::new("allowed", vec![after; STEPS.len()]));
    outcome.bars("pages in use after the cut", effective, from_zero("memory", "MB"));
    let paging = columns(names(), &trials, [("calls and copies", |one| one.paging.seconds() * 1e3)]);
    outcome.bars("time of the arena", paging, from_zero("time", "ms"));
    Ok(outcome)
}
