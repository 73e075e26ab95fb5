//! Figure 12: memory over one iteration while the budget falls.

use haversack_training::{Observe, SpanKind};
use haversack_workloads::Role;

use super::setting::{RESNET, S10, scenario};
use crate::artefacts::prelude::*;
use crate::scenario::Step;

/// Micro-batches that last a smaller fraction of the iteration are not named in the picture.
const NAMED: f64 = 0.05;
/// The times of the first two walls, as fractions of the unmanaged iteration: both within the first forward pass.
const FIRST_WALLS: [f64; 2] = [0.02, 0.25];

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut base = scenario(context, S10, RESNET)?;
    // The picture shows the iteration with the walls.
    base.iterations = Some(1);
    let unmanaged = context.run(&base)?;
    let mut scenario = under(&base, "sage", &[]);
    let is_held = |role| matches!(role, Role::Parameter { .. } | Role::ParameterGradient);
    let held = context.plan(&scenario)?.graph.bytes_of(is_held).at(1);
    let added = unmanaged.peak_memory.as_f64() - held as f64;
    let percents = context.reading_numbers("walls")?;
    let memory = |percent: f64| Bytes(held + (added * percent / 100.0) as u64);
    let share = |share: f64| Nanos::from_seconds(unmanaged.iteration.seconds() * share);

    scenario.memory_budget = Some(Budget::Bytes(unmanaged.peak_memory));
    let mut with_another_wall = |percent: f64, at: Nanos| -> Result<Record> {
        scenario.budget_walls.memory.push(Step { at, budget: Budget::Bytes(memory(percent)) });
        let observe = Observe { timeline: true, ..Observe::default() };
        Ok(Plan { observe, ..context.plan(&scenario)? }.run()?)
    };
    let after_first = with_another_wall(percents[0], share(FIRST_WALLS[0]))?.micro_batches;
    let after_second = with_another_wall(percents[1], share(FIRST_WALLS[1]))?;
    // The third wall rises once the last part has begun.
    let last = after_second.micro_batches.last().copied().unwrap_or(0);
    let spans = after_second.timeline.iter().flat_map(|timeline| &timeline.spans);
    let parts = spans.rev().take_while(|span| span.micro_batch == last).last().map_or(Nanos::ZERO, |span| span.start);
    let third = with_another_wall(percents[2], parts)?;

    let mut outcome = Outcome::of("time_s,memory_mb,budget_mb,micro_batch,recomputed");
    let samples = |parts: &[u64]| parts.iter().map(|&samples| samples as f64).collect::<Vec<_>>();
    outcome.quantity("micro-batches after the first wall", "", samples(&after_first));
    outcome.quantity("micro-batches after the second wall", "", samples(&after_second.micro_batches));
    outcome.quantity("micro-batches after the last wall", "", samples(&third.micro_batches));
    outcome.quantity("recomputed after the second wall", "", [after_second.recomputed as f64]);
    outcome.quantity("recomputed after the last wall", "", [third.recomputed as f64]);
    let id = "sage/figure12/resnet50-on-galaxy-s10/sage/micro-batches";
    context.judge(&mut outcome, id)?;
    outcome.remark(
        id,
        format!(
            "{after_first:?}, {:?}, then {} operators computed again",
            after_second.micro_batches, third.recomputed
        ),
    );
    draw(&mut outcome, &third)?;
    Ok(outcome)
}

fn draw(outcome: &mut Outcome, record: &Record) -> Result<()> {
    let (mut memory, mut budget) = (Vec::new(), Vec::new());
    let mut parts: Vec<(f64, u64)> = Vec::new();
    let spans = record.timeline.as_ref().map(|timeline| timeline.spans.as_slice()).unwrap_or_default();
    for span in spans {
        let at = span.start.seconds();
        let limit = span.budget.map(|budget| budget.megabytes());
        outcome.row((at, span.memory.megabytes(), limit, span.micro_batch, span.kind == SpanKind::Recomputed))?;
        memory.push((at, span.memory.megabytes()));
        budget.extend(limit.map(|limit| (at, limit)));
        if parts.last().is_none_or(|(_, samples)| *samples != span.micro_batch) {
            parts.push((at, span.micro_batch));
        }
    }
    let end = record.iteration.seconds();
    budget.extend(budget.last().map(|(_, limit)| (end, *limit)));
    let mut trace = Trace::new("memory in use", memory).wall("memory available", budget);
    for (from, to, label) in named(&parts, end) {
        trace = trace.phase(from, to, label);
    }
    if let Some(first) = spans.iter().find(|span| span.kind == SpanKind::Recomputed) {
        trace = trace.event(first.start.seconds(), "checkpointing");
    }
    outcome.panel("", trace, axis("time", "s"), axis("memory", "MB"));
    Ok(())
}

/// Phases with their names: micro-batches that last only a few kernels, while the size shrinks, are one phase.
fn named(parts: &[(f64, u64)], end: f64) -> Vec<(f64, f64, String)> {
    let mut phases: Vec<(f64, f64, String)> = Vec::new();
    let mut shrinking: Option<(f64, u64)> = None;
    for (k, &(from, samples)) in parts.iter().enumerate() {
        let to = parts.get(k + 1).map_or(end, |(next, _)| *next);
        let lasts = to - from > NAMED * end;
        if let Some((since, first)) = shrinking.filter(|_| lasts) {
            let last = k.checked_sub(1).and_then(|before| parts.get(before)).map_or(first, |(_, samples)| *samples);
            phases.push((since, from, format!("{first} to {last}")));
            shrinking = None;
        }
        if lasts {
            phases.push((from, to, samples.to_string()));
        } else if shrinking.is_none() {
            shrinking = Some((from, samples));
        }
    }
    phases
}
