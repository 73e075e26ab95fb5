//! The introduction: training BERT-small takes more than 8 GB.

use super::setting::{BERT, unoptimised};
use crate::artefacts::prelude::*;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let peak = context.run(&unoptimised(context, BERT)?)?.peak_memory;
    let mut outcome = Outcome::default();
    outcome.number("sage/introduction/bert-small/training/memory", peak.megabytes() / 1e3);
    Ok(outcome)
}
