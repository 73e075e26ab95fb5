//! figure5.

use crate::reproduce::{ArtefactError, Context, Outcome};

pub(super) fn s22(_context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    Ok(Outcome::default())
}

pub(super) fn note10(_context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    Ok(Outcome::default())
}
