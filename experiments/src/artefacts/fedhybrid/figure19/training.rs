//! Training on a phone in use, under a rule for its budget.

use super::super::setting::{MOBILENET, PICTURES, S22, on_phone, scenario};
use super::traces::Trace;
use crate::artefacts::prelude::*;

/// The rules: the policy's name and the display name; the predictor first.
pub(crate) const RULES: [(&str, &str); 3] =
    [("predicted", "predictor"), ("initial", "initial memory"), ("every-round", "memory before every round")];

/// The declared rounds of MobileNetV2 on the S22 with the apps of `trace`, under FedHybrid with the parameters
/// `set`; `None` if they never end. A round is one epoch of ten iterations, and the paper's ten epochs if
/// everything is to be run.
pub(crate) fn train(context: &Context<'_>, trace: &Trace, set: Set<'_>) -> Result<Option<Record>> {
    let [rounds, epoch, epochs] = context.reading_numbers("rounds")? else {
        bail!("the reading `rounds` is not three numbers")
    };
    let epochs = if context.full { *epochs } else { 1.0 };
    let mut scenario = scenario(context, S22, MOBILENET.0, PICTURES, "fedhybrid")?;
    scenario.iterations = Some((rounds * epoch * epochs) as u32);
    for (name, value) in [("epoch", *epoch), ("epochs", epochs)] {
        scenario.set.insert(name.to_owned(), value.to_string());
    }
    context.run_if_it_ends(&trace.on(on_phone(context, with(&scenario, set), None)?))
}

/// Seconds of all rounds together.
pub(crate) fn time(record: &Record) -> f64 {
    record.iterations.iter().copied().sum::<Nanos>().seconds()
}

/// Seconds for new plans: making them, and the transfers to the server and back.
pub(crate) fn planning(record: &Record) -> f64 {
    record.plans.iter().skip(1).filter_map(|plan| plan.time).sum::<Nanos>().seconds()
}

/// The mean of an iteration.
pub(crate) fn round(record: &Record) -> f64 {
    time(record) / record.iterations.len().max(1) as f64
}

/// Page faults for which flash was read.
pub(crate) fn faults(record: &Record) -> f64 {
    record.phone.as_ref().map_or(0, |phone| phone.run.counters.pgmajfault) as f64
}

/// How often the trainer was killed.
pub(crate) fn kills(record: &Record) -> f64 {
    record.phone.as_ref().map_or(0, |phone| phone.kills.len()) as f64
}

/// Apps killed since the observation began.
pub(crate) fn apps_killed(record: &Record) -> f64 {
    record.phone.as_ref().map_or(0, |phone| phone.apps_killed) as f64
}

/// The budgets that were decided.
pub(crate) fn budgets(record: &Record) -> f64 {
    record.planned.len() as f64
}
