//! Figure 13: the arena under a budget that falls within an iteration, for three steps.

use super::setting::{BOARD, IMPORTANCE, RESNET_IMAGENET, scenario};
use crate::artefacts::prelude::*;
use crate::scenario::Step;

const STEPS: [u64; 3] = [30, 100, 400];
/// When the budget falls: after which share of forward, and for people.
const CUTS: [(f64, &str); 2] = [(0.5, "half-way through forward"), (1.0, "at forward's end")];

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

fn trial(context: &Context<'_>, step: u64, [before, after]: [Bytes; 2], share: f64) -> Result<Trial> {
    let plain = scenario(context, BOARD, RESNET_IMAGENET)?;
    let mut scenario = under(&plain, "daf", &[("step_mb", &step.to_string()), IMPORTANCE]);
    scenario.iterations = 1;
    scenario.activation_budget = Some(Budget::Bytes(before));
    let forward = context.run(&scenario)?.forward;
    let at = if share < 1.0 { Nanos((forward.0 as f64 * share) as u64) } else { forward };
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

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let [before, after] = context.reading_numbers("budget-cut")?[..] else {
        bail!("the reading `budget-cut` is not two numbers")
    };
    let budgets = [before, after].map(|megabytes| Bytes((megabytes * 1e6) as u64));
    let mut outcome = Outcome::of("cut,step_mb,effective_mb,paging_ms,gradients_given_up,iteration_ms");
    let mut found = Vec::new();
    for (share, name) in CUTS {
        let trials = STEPS.map(|step| trial(context, step, budgets, share));
        let trials: Vec<Trial> = trials.into_iter().collect::<Result<_>>()?;
        for one in &trials {
            let [paging, iteration] = [one.paging, one.iteration].map(|time| time.seconds() * 1e3);
            let numbers = [one.step as f64, one.effective.megabytes(), paging, one.given_up as f64, iteration];
            outcome.row((name, numbers))?;
        }
        found.push((name, trials));
    }
    // One number a cut: the row holds if it does at both.
    let cuts = || found.iter().map(|(_, trials)| trials);
    outcome.quantity("memory allowed", "B", cuts().map(|_| budgets[1].as_f64()));
    for (place, step) in STEPS.into_iter().enumerate() {
        let kept = cuts().map(|trials| trials[place].effective.as_f64());
        outcome.quantity(&format!("memory kept by steps of {step} MB"), "B", kept);
        let paging = cuts().map(|trials| trials[place].paging.seconds());
        outcome.quantity(&format!("paging by steps of {step} MB"), "s", paging);
    }
    context.judge(&mut outcome, "daf/figure13/jetson-agx-xavier/steps-30/100/400-mb/effective-memory")?;
    let names = || STEPS.map(|step| format!("{step} MB"));
    for (name, trials) in &found {
        let effective = columns(names(), trials, [("in use", |one: &Trial| one.effective.megabytes())]);
        let effective = effective.series(BarSeries::new("allowed", vec![after; STEPS.len()]));
        outcome.bars(&format!("in use after a cut {name}"), effective, from_zero("memory", "MB"));
    }
    for (name, trials) in &found {
        let paging = columns(names(), trials, [("calls and copies", |one: &Trial| one.paging.seconds() * 1e3)]);
        outcome.bars(&format!("time of the arena, cut {name}"), paging, from_zero("time", "ms"));
    }
    Ok(outcome)
}
