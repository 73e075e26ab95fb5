//! figure19.

use crate::reproduce::{ArtefactError, Context, Outcome};

pub(super) fn budgets(_context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    Ok(Outcome::default())
}

pub(super) fn rules(_context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    Ok(Outcome::default())
}
