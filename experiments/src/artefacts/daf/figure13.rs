//! Figure 13: the arena under a budget that falls within an iteration, for three steps.

use super::setting::{BOARD, Network, artefact, scenario};
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

fn trial(context: &Context<'_>, step: u64, before: Bytes, after: Bytes) -> Result<Trial, ArtefactError> {
    let plain = scenario(context, BOARD, Network::ResNetImageNet)?;
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

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let [before, after] = context.reading_numbers("budget-cut")?[..] else {
        anyhow::bail!("the reading `budget-cut` is not two numbers")
    };
    let bytes = |megabytes: f64| Bytes((megabytes * 1e6) as u64);
    let trials: Vec<Trial> =
        STEPS.iter().map(|&step| trial(context, step, bytes(before), bytes(after))).collect::<Result<_, _>>()?;
    let mut outcome = Outcome::default();
    let mut table = Table::new(["step_mb", "effective_mb", "paging_ms", "gradients_given_up", "iteration_ms"]);
    outcome.quantity("memory allowed", "B", [bytes(after).as_f64()]);
    for one in &trials {
        outcome.quantity(&format!("memory kept by steps of {} MB", one.step), "B", [one.effective.as_f64()]);
        outcome.quantity(&format!("paging by steps of {} MB", one.step), "s", [one.paging.seconds()]);
        table.push([
            (one.step as f64).into(),
            one.effective.megabytes().into(),
            (one.paging.seconds() * 1e3).into(),
            (one.given_up as f64).into(),
            (one.iteration.seconds() * 1e3).into(),
        ])?;
    }
    context.judge(&mut outcome, "daf/figure13/jetson-agx-xavier/steps-30/100/400-mb/effective-memory")?;
    let names = || STEPS.map(|step| format!("{step} MB"));
    let effective = Bars::new(names())
        .series(BarSeries::new("in use", trials.iter().map(|one| one.effective.megabytes())))
        .series(BarSeries::new("allowed", vec![after; STEPS.len()]))
        .show_values();
    let paging = Bars::new(names())
        .series(BarSeries::new("calls and copies", trials.iter().map(|one| one.paging.seconds() * 1e3)))
        .show_values();
    let figure = Figure::new("DAF, figure 13: a budget cut within an iteration, by the arena's step")
        .panel_size(430, 320)
        .columns(2)
        .panel(Panel::new(effective).title("pages in use after the cut").y(Axis::new("memory").unit("MB").from_zero()))
        .panel(Panel::new(paging).title("time of the arena").y(Axis::new("time").unit("ms").from_zero()));
    Ok(outcome.drawn(figure, table))
}
