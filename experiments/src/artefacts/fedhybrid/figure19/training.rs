//! Training on a phone in use, and what the rule for its budget makes of it.

use super::super::setting::{MOBILENET, PICTURES, S22, on_phone, scenario};
use super::traces::Trace;
use crate::artefacts::prelude::*;

/// The rules as the policy names them, and for people; the predictor first.
pub(crate) const RULES: [(&str, &str); 3] =
    [("predicted", "predictor"), ("initial", "initial memory"), ("every-round", "memory before every round")];

/// Five rounds on one phone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trained {
    /// All of them together.
    pub(crate) time: Nanos,
    /// Their number.
    pub(crate) rounds: usize,
    /// Page faults for which flash was read.
    pub(crate) faults: u64,
    /// The budgets that were decided, in their order.
    pub(crate) budgets: Vec<Bytes>,
    /// How often the trainer was killed.
    pub(crate) kills: usize,
    /// Apps that were killed since the phone was watched.
    pub(crate) apps_killed: u64,
}

impl Trained {
    /// The mean of a round.
    pub(crate) fn mean(&self) -> f64 {
        self.time.seconds() / self.rounds.max(1) as f64
    }
}

/// The rounds that the reading declares, of MobileNetV2 on the S22 beside the apps of `trace`, under FedHybrid with
/// the parameters `set`; `None` if they never end.
pub(crate) fn train(context: &Context<'_>, trace: &Trace, set: Set<'_>) -> Result<Option<Trained>, ArtefactError> {
    let mut scenario = scenario(context, S22, MOBILENET.0, PICTURES, "fedhybrid")?;
    scenario.iterations = context.reading_number("round")? as u32;
    let scenario = on_phone(context, with(&scenario, set), Some(trace.apps.clone()))?;
    let Some(record) = context.run_if_it_ends(&scenario)? else { return Ok(None) };
    let phone = record.phone.ok_or_else(|| anyhow::anyhow!("the run was not on a phone in use"))?;
    Ok(Some(Trained {
        time: record.iterations.iter().copied().sum(),
        rounds: record.iterations.len(),
        faults: phone.run.counters.pgmajfault,
        budgets: record.planned,
        kills: phone.kills.len(),
        apps_killed: phone.apps_killed,
    }))
}
