//! The abstract: the largest reduction of memory and the largest speed-up.

use super::figure8::{largest, reductions};
use super::figure10::speedups;
use crate::artefacts::prelude::*;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    outcome.number("daf/abstract/all/daf/memory-reduction", largest(&reductions(context)?));
    let best = speedups(context)?.iter().map(|one| one.2).fold(0.0, f64::max);
    outcome.number("daf/abstract/all/daf/speedup", best);
    Ok(outcome)
}
