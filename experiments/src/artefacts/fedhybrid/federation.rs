//! What only a federation of devices can answer.

use crate::reproduce::{ArtefactError, Context, Outcome};

/// The reason of every row that needs one.
const REASON: &str = "federation";

pub(super) fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    for row in &context.rows {
        outcome.not_modelled(row.id.clone(), REASON);
    }
    Ok(outcome)
}
