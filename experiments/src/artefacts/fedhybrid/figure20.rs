//! figure20.

use crate::reproduce::{ArtefactError, Context, Outcome};

pub(super) fn budgets(_context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    Ok(Outcome::default())
}

pub(super) fn regeneration(_context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    Ok(Outcome::default())
}
