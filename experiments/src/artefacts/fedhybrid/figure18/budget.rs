//! Figures 18c and 18d: the memory budget predictor in training, against direct measurement and by its thresholds.

use super::super::figure19::traces::{ROUNDS, Trace, synthetic, with_starts};
use super::super::figure19::training::train;
use crate::artefacts::prelude::*;

/// Phones in use: the first of figure 19b's.
const TRACES: usize = 5;
/// TP_1 in percent and TP_2 of the caption's C1 to C5.
pub(super) const THRESHOLDS: [(&str, &str); 5] = [("200", "3"), ("150", "3"), ("300", "3"), ("200", "4"), ("200", "5")];

/// What one phone in use made of training; `None` if it never ends.
#[derive(Clone, Debug)]
pub(super) struct Phone {
    pub(super) user: String,
    /// Memory is measured before every round, and taken for the budget.
    pub(super) measured: Option<Record>,
    /// With the predictor, by its thresholds.
    pub(super) predicted: Vec<Option<Record>>,
}

pub(super) fn phones(context: &Context<'_>) -> Result<Vec<Phone>> {
    let traces = with_starts(synthetic(context.seed, TRACES, ROUNDS)?, context.full);
    traces.par_iter().map(|trace| phone(context, trace)).collect()
}

fn phone(context: &Context<'_>, trace: &Trace) -> Result<Phone> {
    let under =
        |(tp1, tp2): (&str, &str)| train(context, trace, &[("budget", "predicted"), ("tp1", tp1), ("tp2", tp2)]);
    Ok(Phone {
        user: trace.user.clone(),
        measured: train(context, trace, &[("budget", "every-round")])?,
        predicted: THRESHOLDS.into_iter().map(under).collect::<Result<_, _>>()?,
    })
}
