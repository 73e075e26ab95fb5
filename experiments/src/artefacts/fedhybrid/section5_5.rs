//! Section 5.5: what the budget predictor takes of the CPU.

use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact =
    Artefact::new("fedhybrid", "section5.5", "what the budget predictor takes of the CPU", run);

/// The predictor's own arithmetic is a weighted mean of as many samples as its window has; what it waits for is not
/// priced anywhere in public.
const REASON: &str = "reading /proc/meminfo and asking ActivityManager once a second has no public cost, and an average over a window has next to none";

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    for row in &context.rows {
        outcome.not_modelled(row.id.clone(), REASON);
    }
    Ok(outcome)
}
